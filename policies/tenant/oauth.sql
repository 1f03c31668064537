alter table app.oauth_providers enable row level security;
select internal.checks_declare('app.oauth_providers');
alter table app.oauth_redirects enable row level security;
alter table app.oauth_flows enable row level security;

create policy "administrators read providers" on app.oauth_providers for select to app_admin using (true);
create policy "administrators set providers" on app.oauth_providers for insert to app_admin with check (true);
create policy "administrators change providers" on app.oauth_providers for update to app_admin using (true)
  with check (true);
create policy "administrators delete providers" on app.oauth_providers for delete to app_admin using (true);
create policy "sign-in reads providers" on app.oauth_providers for select to app_auth using (true);
create policy "the server reads sealed secrets" on app.oauth_providers for select to app_worker using (true);
create policy "administrators read redirect addresses" on app.oauth_redirects for select to app_admin using (true);
create policy "administrators add redirect addresses" on app.oauth_redirects for insert to app_admin with check (true);
create policy "administrators order redirect addresses" on app.oauth_redirects for update to app_admin using (true)
  with check (true);
create policy "administrators remove redirect addresses" on app.oauth_redirects for delete to app_admin using (true);
create policy "sign-in reads redirect addresses" on app.oauth_redirects for select to app_auth using (true);
create policy "the server counts redirect addresses" on app.oauth_redirects for select to app_worker using (true);
create policy "sign-in reads flows" on app.oauth_flows for select to app_auth using (true);
create policy "sign-in begins flows" on app.oauth_flows for insert to app_auth with check (true);
create policy "sign-in advances flows" on app.oauth_flows for update to app_auth using (true) with check (true);
create policy "sign-in ends flows" on app.oauth_flows for delete to app_auth using (true);

grant select, insert, update, delete on app.oauth_providers, app.oauth_redirects to app_admin;
grant select on app.oauth_providers, app.oauth_redirects to app_auth, app_worker;
grant select, insert, update, delete on app.oauth_flows to app_auth;

grant execute on function api.oauth_provider_list, api.oauth_provider_put, api.oauth_provider_delete,
  api.oauth_redirects, api.oauth_redirects_put, internal.oauth_has_users, internal.oauth_check_issuer,
  internal.oauth_flows_end to app_admin;
grant execute on function internal.oauth_provider_json to app_admin, app_auth, app_worker;
grant execute on function internal.oauth_redirect_list to app_admin, app_auth;
grant execute on function api.oauth_offer, api.oauth_offered, api.oauth_flow_begin, api.oauth_flow_take,
  api.oauth_flow_identify, internal.oauth_linked, api.oauth_exchange to app_auth;
grant execute on function api.oauth_provider_sealed, internal.purge__oauth to app_worker;

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.oauth_flows', 'app_user_id', 'oauth_flows', null,
   array['state_hash', 'code_hash', 'challenge', 'session_id', 'email', 'provider_id', 'display_name'], null, 'end',
   'cascade', 'a sign-in under way, for minutes', current_setting('trellis.file'));
