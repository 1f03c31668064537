alter table app.rate_limits enable row level security;

create policy "the sign-in role counts attempts" on app.rate_limits for select to control_auth using (true);
create policy "the sign-in role starts windows" on app.rate_limits for insert to control_auth with check (true);
create policy "the sign-in role adds to windows" on app.rate_limits for update to control_auth using (true)
  with check (true);
create policy "workers read old windows" on app.rate_limits for select to control_worker using (true);
create policy "workers delete old windows" on app.rate_limits for delete to control_worker using (true);

grant select, insert, update on app.rate_limits to control_auth;
grant select, delete on app.rate_limits to control_worker;
grant execute on function internal.limits_wait, internal.take_limits, api.rate_limit_take,
  api.rate_limit_give_back to control_auth;
