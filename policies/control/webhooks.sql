alter table app.webhooks enable row level security;
alter table app.webhook_secrets enable row level security;
alter table app.webhook_deliveries enable row level security;
alter table app.webhook_attempts enable row level security;
alter table app.webhook_breakers enable row level security;
alter table app.webhook_audit_cursors enable row level security;

create policy "workers read webhooks" on app.webhooks for select to control_worker using (true);
create policy "workers switch webhooks off" on app.webhooks for update to control_worker using (true)
  with check (status <> 'active');
create policy "workers read signing secrets" on app.webhook_secrets for select to control_worker using (true);
create policy "workers read deliveries" on app.webhook_deliveries for select to control_worker using (true);
create policy "workers settle deliveries" on app.webhook_deliveries for update to control_worker using (true)
  with check (true);
create policy "workers forget deliveries" on app.webhook_deliveries for delete to control_worker using (true);
create policy "workers log attempts" on app.webhook_attempts for insert to control_worker with check (true);
create policy "workers read attempts" on app.webhook_attempts for select to control_worker using (true);
create policy "workers read breakers" on app.webhook_breakers for select to control_worker using (true);
create policy "workers begin to count" on app.webhook_breakers for insert to control_worker with check (true);
create policy "workers count" on app.webhook_breakers for update to control_worker using (true) with check (true);

grant select, update (status, updated_at) on app.webhooks to control_worker;
grant select on app.webhook_secrets to control_worker;
grant select, delete, update (attempts, series_attempts, status, failed_reason, next_attempt_at, held_until, settled_at)
   on app.webhook_deliveries to control_worker;
grant select, insert on app.webhook_attempts to control_worker;
grant select, insert, update on app.webhook_breakers to control_worker;

grant execute on function internal.webhook_replay_operation, api.webhook_replay_start, internal.webhook_json,
  api.control_webhook_create, api.control_webhook_list, api.control_webhook_get, api.control_webhook_patch,
  api.control_webhook_delete, api.control_webhook_rotate_secret, api.control_webhook_test,
  api.control_webhook_delivery_list, api.control_webhook_delivery_replay to control_developer;
grant execute on function api.webhook_owner, api.control_webhook_owner, api.webhook_degraded, internal.webhook_schedule,
  api.webhook_task_repeat, internal.purge_webhooks, api.webhook_audit_begin, api.webhook_audit_report, internal.uuid5,
  internal.webhook_sendable_json, internal.webhook_retry_seconds, internal.webhook_retry_at,
  internal.webhook_hold_interval, internal.webhook_probe_interval, internal.webhook_record_outcome,
  internal.webhook_attempt, api.webhook_delivery_begin, api.webhook_attempt_record, api.webhook_probe_begin,
  api.webhook_release, api.webhook_purge to control_worker;
