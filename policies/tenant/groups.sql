alter table app.groups enable row level security;
alter table app.group_members enable row level security;

grant execute on function internal.group_rank, internal.my_group_ids to app_user;

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, exempt_reason, declared_in)
values
  ('app.group_members', 'app_user_id', 'group_members',
   array['group_id', 'app_user_id', 'role', 'metadata', 'joined_at'],
   'groups', 'keep higher role', 'cascade', null, current_setting('trellis.file'));
