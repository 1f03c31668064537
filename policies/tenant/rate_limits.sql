alter table app.rate_limits enable row level security;

create policy "the sign-in role counts attempts" on app.rate_limits for select to app_auth using (true);
create policy "the sign-in role starts windows" on app.rate_limits for insert to app_auth with check (true);
create policy "the sign-in role adds to windows" on app.rate_limits for update to app_auth using (true)
  with check (true);
create policy "workers see old windows" on app.rate_limits for select to app_worker using (true);
create policy "workers clear old windows" on app.rate_limits for delete to app_worker using (true);

grant select, insert, update on app.rate_limits to app_auth;
grant select, delete on app.rate_limits to app_worker;
grant execute on function internal.limits_wait, internal.take_limits, api.rate_limit_take,
  api.rate_limit_give_back to app_auth;
