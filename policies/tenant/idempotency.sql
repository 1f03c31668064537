alter table app.idempotency_keys enable row level security;

create policy "workers find old keys" on app.idempotency_keys for select to app_worker using (true);
create policy "workers clear old keys" on app.idempotency_keys for delete to app_worker using (true);

grant select, delete on app.idempotency_keys to app_worker;
grant execute on function internal.idempotency_begin, internal.idempotency_end, internal.idempotency_caller
  to app_user, app_server, app_admin;
