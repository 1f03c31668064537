alter table app.users enable row level security;
select internal.checks_declare('app.users', 'INVALID_INPUT');
alter table app.user_passwords enable row level security;
alter table app.user_identities enable row level security;
alter table app.user_sessions enable row level security;
alter table app.name_words enable row level security;
alter table internal.user_data enable row level security;

create policy "users read their own profile" on app.users for select to app_user
  using (id = (select internal.user_id()));
create policy "users change their own profile" on app.users for update to app_user
  using (id = (select internal.user_id()))
  with check (id = (select internal.user_id()));
create policy "server keys read every user" on app.users for select to app_server using (true);
create policy "administrators read every user" on app.users for select to app_admin using (true);
create policy "administrators create users" on app.users for insert to app_admin with check (true);
create policy "administrators change users" on app.users for update to app_admin using (true) with check (true);
create policy "sign-in reads every user" on app.users for select to app_auth using (true);
create policy "sign-in creates users" on app.users for insert to app_auth with check (true);
create policy "sign-in changes users" on app.users for update to app_auth using (true) with check (true);

create policy "sign-in reads password hashes" on app.user_passwords for select to app_auth using (true);
create policy "sign-in stores password hashes" on app.user_passwords for insert to app_auth with check (true);
create policy "sign-in replaces password hashes" on app.user_passwords for update to app_auth using (true)
  with check (true);

create policy "users read their own identities" on app.user_identities for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "server keys read every identity" on app.user_identities for select to app_server using (true);
create policy "administrators read every identity" on app.user_identities for select to app_admin using (true);
create policy "sign-in reads every identity" on app.user_identities for select to app_auth using (true);
create policy "sign-in links identities" on app.user_identities for insert to app_auth with check (true);

create policy "sign-in reads sessions" on app.user_sessions for select to app_auth using (true);
create policy "sign-in starts sessions" on app.user_sessions for insert to app_auth with check (true);
create policy "sign-in renews and ends sessions" on app.user_sessions for update to app_auth using (true)
  with check (true);

create policy "sign-in reads name words" on app.name_words for select to app_auth using (true);
create policy "administrators read name words" on app.name_words for select to app_admin using (true);
create policy "workers read the registry of user data" on internal.user_data for select to app_worker using (true);

grant select on app.users, app.user_identities to app_user, app_server, app_admin, app_auth;
-- the columns that PATCH me may change, which exclude flags and value
grant update (display_name, avatar_url, properties, timezone) on app.users to app_user;
grant insert (external_id, anonymous_id, email, phone, display_name, avatar_url, properties, is_banned),
  update (external_id, email, phone, display_name, avatar_url, timezone, properties, is_banned, muted_until)
  on app.users to app_admin;
grant insert, update on app.users to app_auth;
grant select, insert, update on app.user_passwords, app.user_sessions to app_auth;
grant insert on app.user_identities to app_auth;
grant select on app.name_words to app_auth, app_admin;
grant select on internal.user_data to app_worker;
grant execute on function internal.user_json to app_user, app_server, app_admin, app_auth;
grant execute on function internal.user_fields, internal.merged_properties, internal.check_properties_size
  to app_user, app_admin;
grant execute on function internal.is_blank to app_user, app_admin, app_auth;
grant execute on function internal.profiles_named, internal.account_delete, internal.user_bundle,
  api.me_update, api.me_delete, api.me_export, api.user_profile, api.users_search
  to app_user;
grant execute on function internal.user_admin_json, internal.user_found, internal.users_created,
  internal.already_exists, internal.new_anonymous_id, internal.segment_members, internal.user_sections,
  internal.user_set, internal.users_set, internal.user_session_start, internal.naming_part, internal.user_named,
  internal.users_named, internal.bulk_contested, internal.bulk_fields, internal.bulk_apply, internal.bulk_segments,
  internal.with_index, internal.user_delete_by_administrator, internal.reset_sections, internal.user_reset,
  internal.export_time, internal.csv_quoted, internal.csv_cell, internal.csv_object, internal.user_bundle,
  api.user_create, internal.reply_with_users, internal.rows_with_users,
  internal.users_page, internal.users_exactly, internal.users_sorted,
  internal.users_of_segment, internal.users_beginning, internal.users_containing,
  internal.users_containing_count, internal.users_beginning_count, internal.users_lately_containing,
  internal.is_event_from_outside, internal.user_events_page, internal.user_sent_events_page, api.users_list,
  api.user_get, api.user_events, api.user_update, api.user_session, api.users_bulk_update, api.users_cohort,
  internal.user_credentials_set, internal.is_credential, internal.user_credentials, internal.user_link_store,
  api.user_link,
  api.user_delete, api.user_delete_anonymous, api.user_reset, api.users_export, api.user_events_export,
  api.user_export to app_admin;
grant execute on function internal.generated_name to app_auth, app_admin;
grant execute on function api.me_get to app_user;
grant execute on function api.user_exists to app_server;

select internal.graphql_declare('app.user_identities');
select internal.graphql_declare('app.users');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.users', 'id', 'users',
   array['id', 'email', 'phone', 'display_name', 'avatar_url', 'external_id', 'anonymous_id', 'properties', 'timezone',
         'email_verified', 'phone_verified', 'is_banned', 'muted_until', 'first_seen_at', 'last_seen_at', 'created_at',
         'updated_at'],
   '{}', null, 'keep survivor', 'delete', null, current_setting('trellis.file')),
  ('app.user_passwords', 'app_user_id', 'user_passwords', null, array['password_hash'], null, 'keep survivor',
   'cascade',
   'holds nothing but a secret', current_setting('trellis.file')),
  ('app.user_identities', 'app_user_id', 'user_identities',
   array['id', 'app_user_id', 'provider', 'provider_id', 'created_at'], '{}', null, 'move', 'cascade', null,
   current_setting('trellis.file')),
  ('app.user_sessions', 'app_user_id', 'user_sessions',
   array['id', 'app_user_id', 'original_anonymous_id', 'signed_in_at', 'last_used_at', 'expires_at', 'ended_at',
         'end_reason', 'is_test',
         'platform', 'app_version', 'ip_country'],
   array['refresh_hash'], 'sessions', 'end', 'cascade', null, current_setting('trellis.file'));
