alter table app.roles enable row level security;
select internal.checks_declare('app.roles');
alter table app.role_assignments enable row level security;

create policy "administrators read roles" on app.roles for select to app_admin using (true);
create policy "administrators add roles" on app.roles for insert to app_admin with check (true);
create policy "administrators change roles" on app.roles for update to app_admin using (true) with check (true);
create policy "administrators delete roles" on app.roles for delete to app_admin using (true);
create policy "users read the default role and their own" on app.roles for select to app_user
  using (is_default or id in (select a.role_id from app.role_assignments a
                               where a.app_user_id = (select internal.user_id())));
create policy "administrators read assignments" on app.role_assignments for select to app_admin using (true);
create policy "users read their own assignments" on app.role_assignments for select to app_user
  using (app_user_id = (select internal.user_id()));

grant select on app.role_assignments to app_admin;
grant select on app.roles to app_user;
grant select (id, role_id, app_user_id, group_id, expires_at, created_at) on app.role_assignments to app_user;
grant execute on function api.user_roles to app_admin;
grant execute on function internal.has_role, internal.my_role_group_ids to app_user, app_server, app_admin;
grant execute on function internal.my_roles, api.roles_mine, api.role_check to app_user;
grant execute on function internal.role_before_delete, internal.role_assignment_json, internal.role_assign,
  internal.role_revoke, api.role_assign, api.role_assignments, api.role_revoke, api.role_delete to app_admin;

select internal.graphql_declare('app.role_assignments');
select internal.graphql_declare('app.roles');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.role_assignments', 'app_user_id', 'role_assignments',
   array['id', 'role_id', 'app_user_id', 'group_id', 'expires_at', 'created_at'], array['granted_by'],
   null, 'later end', 'cascade', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, fixed_columns, max_count,
                                  create_order, declared_in)
values ('role', 'app.roles', 'role', 'roles', 'key', '{key}', 50, 20, current_setting('trellis.file'));
select internal.definition_declare('role');
