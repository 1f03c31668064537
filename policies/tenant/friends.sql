alter table app.friendships enable row level security;
alter table app.blocks enable row level security;
alter table app.friend_codes enable row level security;

create policy "users read their own friendships" on app.friendships for select to app_user
  using (user_a = (select internal.user_id()) or user_b = (select internal.user_id()));
create policy "administrators read every friendship" on app.friendships for select to app_admin using (true);
create policy "users read whom they blocked" on app.blocks for select to app_user
  using (blocker = (select internal.user_id()));
create policy "administrators read every block" on app.blocks for select to app_admin using (true);
create policy "users read their own code" on app.friend_codes for select to app_user
  using (app_user_id = (select internal.user_id()));

-- one row holds the notes of both sides: no column grant here, or one side would read the other's
grant select (user_a, user_b, status, requested_by, asked, requested_at, responded_at) on app.friendships to app_user,
  app_admin;
grant select on app.blocks to app_user, app_admin;
grant select on app.friend_codes to app_user;
grant execute on function internal.friend_ids, internal.blocked_ids, internal.is_blocked to app_user;
grant execute on function internal.friend_answer, internal.friend_undo, internal.friend_code_mine,
  internal.friends_mine, api.friend_request, api.friend_accept, api.friend_decline, api.friend_withdraw,
  api.friend_remove, api.friend_update, api.friend_code, api.friend_code_rotate, api.friend_block, api.friend_unblock,
  api.friends_blocked, api.friends_list, api.friend_requests, api.friend_suggestions to app_user;
grant execute on function api.friends_of_user, api.friend_add, api.friend_delete to app_admin;

select internal.graphql_declare('app.blocks');
select internal.graphql_declare('app.friendships', hidden => '{metadata_a,metadata_b}');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.friendships', 'user_a', 'friendships',
   array['user_a', 'user_b', 'status', 'requested_by', 'asked', 'requested_at', 'responded_at', 'metadata_a'],
   array['metadata_b'],
   'friends', 'one row per pair', 'cascade', null, current_setting('trellis.file')),
  ('app.friendships', 'user_b', 'friendships',
   array['user_a', 'user_b', 'status', 'requested_by', 'asked', 'requested_at', 'responded_at', 'metadata_b'],
   array['metadata_a'],
   'friends', 'one row per pair', 'cascade', null, current_setting('trellis.file')),
  ('app.blocks', 'blocker', 'blocks', array['blocker', 'blocked', 'created_at'], '{}',
   'friends', 'move', 'cascade', null, current_setting('trellis.file')),
  ('app.blocks', 'blocked', 'blocks', null, '{}',
   null, 'move', 'cascade', 'who blocked a user is the other''s to know', current_setting('trellis.file')),
  ('app.friend_codes', 'app_user_id', 'friend_codes', array['app_user_id', 'code', 'created_at'], '{}',
   'friends', 'move', 'cascade', null, current_setting('trellis.file'));
