alter table app.reward_grants enable row level security;

create policy "administrators read every reward" on app.reward_grants for select to app_admin using (true);

grant select on app.reward_grants to app_admin;

select internal.graphql_declare('app.reward_grants');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.reward_grants', 'app_user_id', 'reward_grants',
   array['id', 'app_user_id', 'source_type', 'source_id', 'reward', 'outcome', 'granted_at'],
   null, 'union by source', 'cascade', current_setting('trellis.file'));
