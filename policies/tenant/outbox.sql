alter table app.outbox enable row level security;

create policy "workers read queued work" on app.outbox for select to app_worker using (true);
create policy "workers settle queued work" on app.outbox for update to app_worker using (true) with check (true);
create policy "workers remove finished work" on app.outbox for delete to app_worker using (true);

grant select, delete, update (due_at, requested_at, locked_until, lease, attempts, last_error,
                              failed_at) on app.outbox to app_worker;
grant execute on function internal.outbox_groups, internal.outbox_begun, internal.outbox_finish, internal.outbox_next,
  api.outbox_lease, api.outbox_renew, api.outbox_finish, api.outbox_release, api.outbox_next,
  api.outbox_due to app_worker;
-- in the file that gave it in the former version too, so that it stays granted when that version is started again
