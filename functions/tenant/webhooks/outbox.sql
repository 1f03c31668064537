-- Webhook deliveries of a project: their place in the outbox, whose row holds the schedule, and the read of one.
create or replace function internal.webhook_delivery_begun(delivery_id uuid) returns json
language sql stable as $$
  select internal.webhook_sendable_json(d.id)
    from app.webhook_deliveries d
    join app.webhooks w on w.id = d.webhook_id
   where d.id = webhook_delivery_begun.delivery_id and d.status = 'pending' and d.held_until is null and w.status = 'active'
$$;
comment on function internal.webhook_delivery_begun is
  'The request to send for a delivery whose outbox row is leased. Null when the delivery must be changed first, which api.webhook_delivery_begin
   does.';

create or replace function internal.webhook_schedule(delivery_id uuid, due_at timestamptz) returns void
language sql volatile as $$
  update app.outbox o
     set due_at = webhook_schedule.due_at
   where o.task = 'webhooks__deliver' and o.key = webhook_schedule.delivery_id::text and o.locked_until is not null
$$;
comment on function internal.webhook_schedule is 'Sets when the task of a delivery, which is running, is due again. Locks its outbox row.';

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
  'internal.webhook_attempt and internal.outbox_finish in one transaction. With is_last, which a drain sends for its last running row, it answers
   {due_at} of internal.outbox_next, which spares the drain a round trip at its end.';

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
comment on function api.webhook_delivery_get is 'A delivery with its payload and its attempt log. Refuses 404 NOT_FOUND.';
