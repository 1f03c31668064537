alter table app.developer_identities enable row level security;
alter table app.github_starts enable row level security;

create policy "sign-in reads identities" on app.developer_identities for select to control_auth using (true);
create policy "sign-in adds identities" on app.developer_identities for insert to control_auth with check (true);
create policy "sign-in reads what began" on app.github_starts for select to control_auth using (true);
create policy "sign-in begins" on app.github_starts for insert to control_auth with check (true);
create policy "sign-in ends what began" on app.github_starts for delete to control_auth using (true);

grant select, insert on app.developer_identities to control_auth;
grant select, insert, delete on app.github_starts to control_auth;
grant execute on function api.github_start, api.github_state_take, api.github_sign_in to control_auth;
