alter table app.developer_codes enable row level security;

create policy "sign-in reads codes" on app.developer_codes for select to control_auth using (true);
create policy "sign-in counts wrong codes" on app.developer_codes for update to control_auth using (true)
  with check (true);
create policy "sign-in consumes codes" on app.developer_codes for delete to control_auth using (true);
create policy "workers read the recipients of codes" on app.developer_codes for select to control_worker using (true);
create policy "workers read addresses of accounts" on app.developers for select to control_worker using (true);

grant select, update (wrong), delete on app.developer_codes to control_auth;
grant select (id, mailbox, expires_at) on app.developer_codes to control_worker;
grant select (email, mailbox) on app.developers to control_worker;
grant execute on function internal.account_reclaim, internal.account_lock_for_proof, internal.account_prove,
  api.code_mailbox, api.code_request, api.code_verify
  to control_auth;
grant execute on function api.code_mail to control_worker;
