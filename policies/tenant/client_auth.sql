alter table app.user_codes enable row level security;

create policy "sign-in reads codes" on app.user_codes for select to app_auth using (true);
create policy "sign-in creates codes" on app.user_codes for insert to app_auth with check (true);
create policy "sign-in replaces and consumes codes" on app.user_codes for update to app_auth using (true)
  with check (true);
create policy "workers read unsent messages" on app.user_codes for select to app_worker using (true);
create policy "workers delete the contents of sent messages" on app.user_codes for update to app_worker using (true)
  with check (true);
create policy "workers delete old codes" on app.user_codes for delete to app_worker using (true);
create policy "users remove their password" on app.user_passwords for delete to app_auth using (true);
create policy "users unlink identities" on app.user_identities for delete to app_auth using (true);
create policy "workers read old sessions" on app.user_sessions for select to app_worker using (true);
create policy "workers delete old sessions" on app.user_sessions for delete to app_worker using (true);

grant select, insert, update on app.user_codes to app_auth;
grant select (id, kind, channel, address, purpose, sealed, locales, expires_at, used_at), update (sealed, sent_at),
  delete on app.user_codes to app_worker;
grant delete on app.user_passwords, app.user_identities to app_auth;
grant select (id, ended_at, expires_at), delete on app.user_sessions to app_worker;

grant execute on function internal.lock_address, internal.lock_identity, internal.has_identity, internal.sign_in,
  internal.end_sessions, internal.session_is_active, internal.session_owner, internal.has_provider,
  internal.message_limit_take, internal.code_store, internal.code_consume, internal.wrong_code,
  internal.sign_in_by_email, internal.sign_in_by_phone, internal.is_claimed, internal.account_reclaim,
  internal.email_proved_elsewhere, internal.identity_linked_notify, internal.user_of_identity, internal.proved_email,
  internal.fail_in_use, internal.identity_link, internal.linked_reply, internal.set_password, internal.users_merge,
  api.auth_anonymous,
  api.auth_email_signup, api.auth_email_password, api.auth_email_login, api.auth_refresh, api.auth_logout,
  api.auth_session, internal.auth_session_json, internal.is_auth_session_live, internal.is_test_over,
  internal.auth_sessions_page, api.auth_sessions, api.auth_session_end, api.auth_password_state, api.auth_password_set,
  internal.profile_also, internal.profile_of_new,
  api.auth_code_request, api.auth_offered,
  api.auth_code_sign_in, api.auth_magic_link_request, api.auth_magic_link_verify,
  api.auth_social, api.auth_link_email, api.auth_link_phone, api.auth_link_social, api.auth_link_password,
  api.auth_unlink, api.auth_merge to app_auth;
grant execute on function internal.session_is_young, internal.deletion_code_consume to app_auth, app_user;
grant execute on function internal.check_session to app_user;
grant execute on function internal.auth_message_content, api.auth_message_begin, api.auth_message_sent to app_worker;

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.user_codes', 'app_user_id', 'user_codes',
   array['id', 'app_user_id', 'kind', 'channel', 'address', 'purpose', 'locales', 'attempts', 'created_at',
         'expires_at', 'sent_at', 'used_at'],
   array['secret_hash', 'sealed'], 'sessions', 'end', 'cascade', null, current_setting('trellis.file'));
grant execute on function internal.purge__client_auth to app_worker;
