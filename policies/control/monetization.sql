alter table app.monetization_applies enable row level security;

create policy "workers read applies" on app.monetization_applies for select to control_worker using (true);
create policy "workers record the steps of applies" on app.monetization_applies for update to control_worker
  using (true) with check (true);

grant select, update (is_checked, position, begun, run) on app.monetization_applies to control_worker;
grant execute on function internal.monetization_apply_request, api.monetization_apply_start to control_developer;
grant execute on function internal.monetization_apply_held,
  api.monetization_apply_take, api.monetization_apply_mark, api.monetization_apply_wait, api.monetization_apply_expire
  to control_worker;
