alter table app.groups enable row level security;
select internal.checks_declare('app.groups', 'INVALID_INPUT');
alter table app.group_members enable row level security;
alter table app.group_invites enable row level security;

create policy "users read public groups and their own" on app.groups for select to app_user
  using (internal.group_is_visible(groups, (select array(select internal.my_group_ids()))));
-- the groups that the policy above shows
create policy "users read their own memberships and members of visible groups" on app.group_members
  for select to app_user
  using (app_user_id = (select internal.user_id()) or exists (select from app.groups g where g.id = group_id));
create policy "server keys read groups" on app.groups for select to app_server using (true);
create policy "server keys read members" on app.group_members for select to app_server using (true);
create policy "administrators read groups" on app.groups for select to app_admin using (true);
create policy "administrators read members" on app.group_members for select to app_admin using (true);

grant select on app.groups, app.group_members to app_user, app_server, app_admin;
grant execute on function internal.group_rank, internal.group_json,
  internal.group_not_found to app_user, app_server, app_admin;
grant execute on function internal.my_group_ids, internal.group_is_visible, api.group_create, api.groups_mine,
  api.groups_search, api.group_get, api.group_join, api.group_leave, api.group_members to app_user;
grant execute on function internal.group_led_json, api.group_update, api.group_delete, api.group_member_update,
  api.group_member_kick, api.group_transfer, api.group_invite_create, api.group_invites_list, api.group_invite_delete,
  api.group_join_by_code to app_user;
grant execute on function internal.groups_all_page, internal.group_members_json, internal.group_member_json,
  api.group_member_add, api.groups_list, api.group_show, api.group_update_any, api.group_delete_any,
  api.group_members_any, api.group_member_update_any, api.group_member_remove to app_admin;
grant execute on function api.group_inherited to app_worker;

select internal.graphql_declare('app.group_members');
select internal.graphql_declare('app.groups');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, exempt_reason, declared_in)
values
  ('app.group_members', 'app_user_id', 'group_members',
   array['group_id', 'app_user_id', 'role', 'metadata', 'joined_at'],
   'groups', 'keep higher role', 'cascade', null, current_setting('trellis.file')),
  -- triggers delete and move them with the membership of their creator
  ('app.group_invites', 'created_by', 'group_invites',
   array['id', 'group_id', 'code', 'role', 'max_uses', 'uses', 'created_by', 'expires_at', 'created_at'],
   'groups', 'with app.group_members', 'cascade', null, current_setting('trellis.file'));

insert into internal.feed_events (action, event_name, target_property, group_property, shown, declared_in)
values ('group.joined', 'svc.group.joined', 'group_id', 'group_id', '{}', current_setting('trellis.file'));
