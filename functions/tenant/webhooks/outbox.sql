-- Webhook deliveries of a project: their place in the outbox, whose row holds the schedule, and the read of one.
create or replace function internal.outbox_begun__webhooks__deliver(keys text[]) returns table (key text, begun json)
language sql stable as $$
  select d.id::text, internal.webhook_sendable_json(d.id)
    from app.webhook_deliveries d
    join app.webhooks w on w.id = d.webhook_id
   where d.id = any (array(select internal.as_uuid(k) from unnest(outbox_begun__webhooks__deliver.keys) k))
     and d.status = 'pending' and d.held_until is null and w.status = 'active'
$$;
comment on function internal.outbox_begun__webhooks__deliver is
  'The requests to send for deliveries whose outbox rows are leased. None for a delivery that must be changed first,
   which api.webhook_delivery_begin does.';

create or replace function api.webhook_attempt_finish(
  row_id uuid, lease int, rules json, is_last boolean, delivery_id uuid, status_code int, error text, duration_ms int,
  response_excerpt text, retry_after int default null, is_refused boolean default false, is_probe boolean default false,
  target_url text default null)
returns api.reply
language plpgsql volatile as $$
declare
  again constant timestamptz := internal.webhook_attempt(
    webhook_attempt_finish.delivery_id, webhook_attempt_finish.status_code, webhook_attempt_finish.error,
    webhook_attempt_finish.duration_ms, webhook_attempt_finish.response_excerpt, webhook_attempt_finish.retry_after,
    webhook_attempt_finish.is_refused, webhook_attempt_finish.is_probe, webhook_attempt_finish.target_url);
begin
  perform internal.outbox_finish(webhook_attempt_finish.row_id, webhook_attempt_finish.lease, again);
  return internal.reply(200, case when webhook_attempt_finish.is_last then json_build_object(
    'due_at', internal.iso(internal.outbox_next(webhook_attempt_finish.rules))) end);
end $$;
comment on function api.webhook_attempt_finish is
  'internal.webhook_attempt and internal.outbox_finish in one transaction: the row of the outbox is the only schedule,
   written once. With is_last, which a drain sends for its last running row, it answers {due_at} of
   internal.outbox_next, which spares the drain a round trip at its end.';

create or replace function api.webhook_attempt_record(
  delivery_id uuid, status_code int, error text, duration_ms int, response_excerpt text, retry_after int default null,
  is_refused boolean default false, is_probe boolean default false, target_url text default null)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.webhook_attempt(
    webhook_attempt_record.delivery_id, webhook_attempt_record.status_code, webhook_attempt_record.error,
    webhook_attempt_record.duration_ms, webhook_attempt_record.response_excerpt, webhook_attempt_record.retry_after,
    webhook_attempt_record.is_refused, webhook_attempt_record.is_probe, webhook_attempt_record.target_url);
  return internal.reply(200, null);
end $$;
comment on function api.webhook_attempt_record is
  'internal.webhook_attempt for a probe, which has no task of its own: it schedules nothing.';

create or replace function api.webhook_delivery_get(delivery_id uuid) returns api.reply
language plpgsql stable as $$
declare
  delivery app.webhook_deliveries;
begin
  select d.* into delivery
    from app.webhook_deliveries d
   where d.id = webhook_delivery_get.delivery_id
     and exists (select from app.webhooks w where w.id = d.webhook_id);
  if delivery.id is null then
    perform internal.webhook_delivery_not_found();
  end if;
  return internal.reply(200, internal.json_merge(internal.webhook_delivery_json(delivery, true),
                                                 json_build_object('payload', delivery.payload::json)));
end $$;
comment on function api.webhook_delivery_get is
  'A delivery with its payload and its attempt log. Refuses 404 NOT_FOUND.';
