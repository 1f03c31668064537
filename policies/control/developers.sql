alter table app.developers enable row level security;
select internal.checks_declare('app.developers', 'INVALID_INPUT', but => '{account_state,provisioning}');
alter table app.developer_sessions enable row level security;
alter table app.disposable_domains enable row level security;

create policy "sign-in reads every account" on app.developers for select to control_auth using (true);
create policy "sign-in creates accounts" on app.developers for insert to control_auth with check (true);
create policy "sign-in changes accounts" on app.developers for update to control_auth using (true) with check (true);
create policy "developers read their own account" on app.developers for select to control_developer
  using (id = (select internal.developer_id()));
create policy "sign-in reads sessions" on app.developer_sessions for select to control_auth using (true);
create policy "sign-in starts sessions" on app.developer_sessions for insert to control_auth with check (true);
create policy "sign-in renews and ends sessions" on app.developer_sessions for update to control_auth using (true)
  with check (true);
create policy "developers change their own account" on app.developers for update to control_developer
  using (id = (select internal.developer_id()))
  with check (id = (select internal.developer_id()));
create policy "developers read their own sign-ins" on app.developer_sessions for select to control_developer
  using (developer_id = (select internal.developer_id()));
create policy "developers end their own sign-ins" on app.developer_sessions for update to control_developer
  using (developer_id = (select internal.developer_id()))
  with check (developer_id = (select internal.developer_id()));
create policy "sign-in reads disposable domains" on app.disposable_domains for select to control_auth using (true);

grant select, insert, update on app.developers, app.developer_sessions to control_auth;
grant select on app.disposable_domains to control_auth;
grant select (id, email, name, email_verified, account_state, provisioning, created_at, updated_at),
      update (name, updated_at) on app.developers to control_developer;
grant select (id, developer_id, created_at, last_used_at, expires_at, ended_at, ip, user_agent),
  update (ended_at, end_reason)
  on app.developer_sessions to control_developer;
grant execute on function internal.developer_json, internal.is_disposable, internal.developer_session,
  internal.developer_make, api.developer_signup, api.developer_password, api.developer_own_password,
  api.developer_login, api.developer_refresh, api.developer_logout, api.developer_session_check to control_auth;
grant execute on function internal.developer_own_json, internal.change_own_password, api.developer_me,
  api.developer_patch, api.developer_session_list, api.developer_session_end to control_developer;
grant execute on function internal.purge_accounts to control_worker;
