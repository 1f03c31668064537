alter table app.device_grants enable row level security;
select internal.checks_declare('app.device_grants', but => '{status}');

create policy "sign-in reads grants of devices" on app.device_grants for select to control_auth using (true);
create policy "sign-in stores grants of devices" on app.device_grants for insert to control_auth
  with check (status = 'pending');
create policy "sign-in records polls of devices" on app.device_grants for update to control_auth using (true)
  with check (true);
create policy "sign-in ends grants of devices" on app.device_grants for delete to control_auth using (true);

grant select, delete, insert (device_hash, user_code_mac, client_name, ip, expires_at),
  update (polled_at, interval_seconds)
  on app.device_grants to control_auth;
grant execute on function api.device_grant_create, api.device_grant_redeem to control_auth;
grant execute on function api.device_grant_get, api.device_grant_approve to control_developer;
