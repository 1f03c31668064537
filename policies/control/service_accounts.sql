alter table app.service_accounts enable row level security;
select internal.checks_declare('app.service_accounts');

create policy "the server reads service accounts" on app.service_accounts for select to control_auth using (true);
create policy "the server records the use of service accounts" on app.service_accounts for update to control_auth
  using (true) with check (true);

grant select, update (last_used_at) on app.service_accounts to control_auth;
grant execute on function api.service_account_check to control_auth;
grant execute on function internal.service_account_json, internal.service_account_make, api.service_account_create,
  api.service_account_list, api.service_account_get, api.service_account_patch, api.service_account_delete,
  api.service_account_rotate to control_developer;
