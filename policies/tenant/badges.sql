alter table app.badges enable row level security;
select internal.checks_declare('app.badges');

create policy "administrators read badges" on app.badges for select to app_admin using (true);
create policy "administrators add badges" on app.badges for insert to app_admin with check (true);
create policy "administrators change badges" on app.badges for update to app_admin using (true) with check (true);
create policy "administrators delete badges" on app.badges for delete to app_admin using (true);

insert into internal.definitions (kind, table_name, singular, plural, key_column, fixed_columns, max_count, create_order, declared_in)
values ('badge', 'app.badges', 'badge', 'badges', 'key', '{key}', 200, 30, current_setting('trellis.file'));
select internal.definition_declare('badge');
grant execute on function api.badges_retire to app_admin;
