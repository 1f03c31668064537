alter table app.push_tokens enable row level security;

create policy "users read their own push tokens" on app.push_tokens for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every push token" on app.push_tokens for select to app_admin using (true);

grant select on app.push_tokens to app_user, app_admin;
grant execute on function internal.push_device_json, internal.push_devices_page, api.user_devices to app_admin;
grant execute on function internal.push_token_json, internal.push_token_claim, api.push_token_register,
  api.push_token_unregister to app_user;
grant execute on function internal.push_tokens_hand_over to app_auth;
grant execute on function internal.purge__push_tokens to app_worker;

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.push_tokens', 'app_user_id', 'push_tokens',
   array['id', 'app_user_id', 'platform', 'provider', 'is_active', 'created_at', 'updated_at'],
   array['token', 'session_id'],
   'push', 'move', 'cascade', current_setting('trellis.file'));
