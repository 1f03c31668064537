alter table app.webhooks enable row level security;
select internal.checks_declare('app.webhooks', but => '{status}');
alter table app.webhook_secrets enable row level security;
alter table app.webhook_deliveries enable row level security;
alter table app.webhook_attempts enable row level security;
alter table app.webhook_breakers enable row level security;

create policy "administrators read webhooks" on app.webhooks for select to app_admin using (true);
create policy "administrators add webhooks" on app.webhooks for insert to app_admin with check (true);
create policy "administrators change webhooks" on app.webhooks for update to app_admin using (true) with check (true);
create policy "administrators delete webhooks" on app.webhooks for delete to app_admin using (true);
create policy "administrators store signing secrets" on app.webhook_secrets for insert to app_admin with check (true);
create policy "administrators read deliveries" on app.webhook_deliveries for select to app_admin using (true);
create policy "administrators replay deliveries" on app.webhook_deliveries for update to app_admin using (true)
  with check (status = 'pending');
create policy "administrators read attempts" on app.webhook_attempts for select to app_admin using (true);

create policy "workers read webhooks" on app.webhooks for select to app_worker using (true);
create policy "workers switch webhooks off" on app.webhooks for update to app_worker using (true)
  with check (status <> 'active');
create policy "workers read signing secrets" on app.webhook_secrets for select to app_worker using (true);
create policy "workers forget secrets that are not in use" on app.webhook_secrets for delete to app_worker
  using (id not in (select w.secret_id from app.webhooks w));
create policy "workers read deliveries" on app.webhook_deliveries for select to app_worker using (true);
create policy "workers settle deliveries" on app.webhook_deliveries for update to app_worker using (true)
  with check (true);
create policy "workers forget deliveries" on app.webhook_deliveries for delete to app_worker using (true);
create policy "workers log attempts" on app.webhook_attempts for insert to app_worker with check (true);
create policy "workers read attempts" on app.webhook_attempts for select to app_worker using (true);
create policy "workers read breakers" on app.webhook_breakers for select to app_worker using (true);
create policy "workers begin to count" on app.webhook_breakers for insert to app_worker with check (true);
create policy "workers count" on app.webhook_breakers for update to app_worker using (true) with check (true);

grant insert (secret_id), update (secret_id) on app.webhooks to app_admin;
grant insert (id, webhook_id, secret_sealed) on app.webhook_secrets to app_admin;
grant select, update (status, series_attempts, failed_reason, settled_at, next_attempt_at,
                      secret_id) on app.webhook_deliveries to app_admin;
grant select on app.webhook_attempts to app_admin;

grant select, update (status, updated_at) on app.webhooks to app_worker;
grant select, delete on app.webhook_secrets to app_worker;
grant select, delete,
      update (attempts, series_attempts, status, failed_reason, next_attempt_at, held_until, settled_at, secret_id)
   on app.webhook_deliveries to app_worker;
grant select, insert on app.webhook_attempts to app_worker;
grant select, insert, update on app.webhook_breakers to app_worker;

grant execute on function internal.webhook_not_found to app_admin, app_worker;
grant execute on function internal.webhook_json, internal.webhook_filter_check, internal.webhook_check,
  internal.webhook_stats_json, api.webhook_create, api.webhook_get, api.webhook_rotate_secret to app_admin;
grant execute on function internal.uuid5, internal.webhook_requeue to app_admin, app_worker;
grant execute on function internal.webhook_attempts_json, internal.webhook_delivery_json,
  internal.webhook_delivery_line_json, internal.webhook_delivery_page, internal.webhook_delivery_not_found,
  internal.webhook_deliveries_page, api.webhook_deliveries_list,
  api.webhook_delivery_list, api.webhook_delivery_get, api.webhook_delivery_replay,
  api.webhook_replay_check to app_admin;
grant execute on function internal.webhook_body, internal.webhook_event_json, internal.webhook_sendable_json,
  internal.webhook_retry_seconds, internal.webhook_retry_at, internal.webhook_hold_interval,
  internal.webhook_probe_interval, internal.webhook_record_outcome, internal.outbox_begun__webhooks__deliver,
  internal.webhook_attempt, api.webhook_delivery_begin, api.webhook_attempt_finish, api.webhook_attempt_record,
  api.webhook_test, api.webhook_probe_begin, api.webhook_release, api.webhook_replay_batch,
  api.webhook_purge to app_worker;
grant execute on function internal.purge__webhooks to app_worker;

select internal.graphql_declare('app.webhook_attempts', hidden => '{response_excerpt}');
select internal.graphql_declare('app.webhook_deliveries', hidden => '{secret_id}');
select internal.graphql_declare('app.webhooks', hidden => '{secret_id,target_url}');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.webhook_deliveries', 'app_user_id', 'webhook_deliveries', null, '{}', 'events', 'move', 'delete',
   'copies of events that the events section holds', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, found_by, fixed_columns, state_columns, max_count,
                                  create_order, kept_back, declared_in)
values ('webhook', 'app.webhooks', 'webhook', 'webhook subscriptions', 'id', '{include_user}', '{secret_id}', 50, 20,
        'its receiver knows a secret, and it belongs to one environment', current_setting('trellis.file'));
select internal.definition_declare('webhook');
