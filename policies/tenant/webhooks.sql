alter table app.webhooks enable row level security;
alter table app.webhook_secrets enable row level security;
alter table app.webhook_deliveries enable row level security;
alter table app.webhook_attempts enable row level security;

create policy "administrators read webhooks" on app.webhooks for select to app_admin using (true);
create policy "administrators add webhooks" on app.webhooks for insert to app_admin with check (true);
create policy "administrators change webhooks" on app.webhooks for update to app_admin using (true) with check (true);
create policy "administrators delete webhooks" on app.webhooks for delete to app_admin using (true);
create policy "administrators store signing secrets" on app.webhook_secrets for insert to app_admin with check (true);
create policy "administrators read deliveries" on app.webhook_deliveries for select to app_admin using (true);
create policy "administrators read attempts" on app.webhook_attempts for select to app_admin using (true);

create policy "workers read webhooks" on app.webhooks for select to app_worker using (true);
create policy "workers switch webhooks off" on app.webhooks for update to app_worker using (true) with check (true);
create policy "workers read signing secrets" on app.webhook_secrets for select to app_worker using (true);
create policy "workers read deliveries" on app.webhook_deliveries for select to app_worker using (true);
create policy "workers settle deliveries" on app.webhook_deliveries for update to app_worker using (true) with check (true);
create policy "workers forget old deliveries" on app.webhook_deliveries for delete to app_worker using (true);
create policy "workers log attempts" on app.webhook_attempts for insert to app_worker with check (true);
create policy "workers read attempts" on app.webhook_attempts for select to app_worker using (true);

grant select, insert, update, delete on app.webhooks to app_admin;
grant insert on app.webhook_secrets to app_admin;
grant select on app.webhook_deliveries, app.webhook_attempts to app_admin;
grant select, update (status, updated_at) on app.webhooks to app_worker;
grant select on app.webhook_secrets to app_worker;
grant select, delete, update (attempts, series_attempts, status, next_attempt_at, settled_at) on app.webhook_deliveries to app_worker;
grant select, insert on app.webhook_attempts to app_worker;
grant execute on function internal.webhook_json, api.webhook_create, api.webhook_list, api.webhook_delete to app_admin;
grant execute on function internal.uuid5, internal.webhook_retry_seconds, api.webhook_delivery_begin, api.webhook_attempt_record
  to app_worker;
