-- One attempt: what to send, and what its outcome means.
create or replace function internal.webhook_sendable_json(delivery_id uuid) returns json
language sql stable as $$
  select json_build_object(
           'id', d.id, 'event_id', d.event_id, 'event_name', d.event_name, 'payload', d.payload,
           'attempt', d.attempts + 1, 'target_url', w.target_url, 'secret_sealed', s.secret_sealed,
           'idempotency_key', internal.uuid5(d.webhook_id, d.event_id::text),
           'sent_at', floor(extract(epoch from internal.now()))::bigint)
    from app.webhook_deliveries d
    join app.webhooks w on w.id = d.webhook_id
    join app.webhook_secrets s on s.id = d.secret_id
   where d.id = webhook_sendable_json.delivery_id and d.status = 'pending'
$$;
comment on function internal.webhook_sendable_json is 'All that a worker needs for one attempt of a pending delivery; null when it was settled or deleted.';

create or replace function internal.webhook_delivery_begun(delivery_id uuid) returns json
language sql stable as $$
  select internal.webhook_sendable_json(d.id)
    from app.webhook_deliveries d
    join app.webhooks w on w.id = d.webhook_id
   where d.id = webhook_delivery_begun.delivery_id and d.status = 'pending' and d.held_until is null and w.status = 'active'
$$;
comment on function internal.webhook_delivery_begun is
  'What to send for a delivery whose outbox row is leased; null when that needs a change first, which api.webhook_delivery_begin makes.';

create or replace function api.webhook_delivery_begin(delivery_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  watched uuid;
  state text;
  is_held boolean;
begin
  select d.webhook_id, d.held_until is not null, w.status
    into watched, is_held, state
    from app.webhook_deliveries d
    join app.webhooks w on w.id = d.webhook_id
   where d.id = webhook_delivery_begin.delivery_id and d.status = 'pending';
  if state <> 'active' then
    -- asked again under a lock: whoever switches it on waits until this delivery is held, and so finds it
    select w.status into state from app.webhooks w where w.id = watched for share;
  end if;
  if state = 'degraded' then
    update app.webhook_deliveries d
       set next_attempt_at = null, held_until = coalesce(d.held_until, internal.now() + internal.webhook_hold_interval())
     where d.id = webhook_delivery_begin.delivery_id and d.status = 'pending';
  elsif state = 'disabled' then
    -- it failed, so that a person can replay it
    update app.webhook_deliveries d
       set status = 'failed', failed_reason = 'subscription_disabled', next_attempt_at = null, held_until = null,
           settled_at = internal.now()
     where d.id = webhook_delivery_begin.delivery_id and d.status = 'pending';
  elsif state = 'active' and not is_held then
    return internal.reply(200, json_build_object('delivery', internal.webhook_sendable_json(webhook_delivery_begin.delivery_id)));
  end if;
  return internal.reply(200, null);
end $$;
comment on function api.webhook_delivery_begin is
  '{delivery} to send now, or null when there is nothing to do: when, says the outbox alone. A delivery of a degraded subscription is held
   from here on, that of a disabled one becomes failed; both lock the subscription against changes.';

create or replace function internal.webhook_retry_seconds(attempt int) returns int
language sql immutable parallel safe as $$
  -- after the first try: 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h; then no more
  select (array[5, 30, 120, 600, 1800, 7200, 21600, 43200])[webhook_retry_seconds.attempt]
$$;
comment on function internal.webhook_retry_seconds is 'Seconds to wait after the n-th failed attempt of a series; null when it was the last.';

create or replace function internal.webhook_retry_at(attempt int, retry_after int) returns timestamptz
language sql volatile as $$
  -- up to ten per cent earlier or later, so that many do not come back at one moment; in whole milliseconds, as the outbox is told it
  select date_trunc('milliseconds', internal.now() + make_interval(secs => greatest(
           w.seconds * (0.9 + 0.2 * random()), least(coalesce(webhook_retry_at.retry_after, 0), 3600))))
    from (select internal.webhook_retry_seconds(webhook_retry_at.attempt) as seconds) w
   where w.seconds is not null
$$;
comment on function internal.webhook_retry_at is
  'When to try again after the n-th failed attempt of a series, never before the receiver wishes, up to an hour; null when it was the last.';

create or replace function internal.webhook_attempt(
  delivery_id uuid, status_code int, error text, duration_ms int, response_excerpt text, retry_after int, is_refused boolean,
  is_probe boolean, target_url text)
returns timestamptz
language plpgsql volatile as $$
declare
  delivery app.webhook_deliveries;
  is_delivered constant boolean := coalesce(webhook_attempt.status_code between 200 and 299, false) and webhook_attempt.error is null;
  is_gone constant boolean := coalesce(webhook_attempt.status_code = 410, false);
  watched constant uuid := (select d.webhook_id from app.webhook_deliveries d where d.id = webhook_attempt.delivery_id);
  state text;
  is_former boolean;
begin
  -- where all goes well there is nothing to count, and nothing to lock; else the subscription comes before its deliveries, everywhere
  if is_delivered and not exists (select from app.webhook_breakers b where b.webhook_id = watched and b.failed_in_row > 0) then
    perform from app.webhooks w where w.id = watched;
  else
    -- sent elsewhere than it would be now: what that address answered says nothing of this one
    select w.status, w.target_url <> webhook_attempt.target_url
      into state, is_former
      from app.webhooks w where w.id = watched for no key update;
  end if;
  if not found then
    return null;
  end if;
  select d.* into delivery from app.webhook_deliveries d where d.id = webhook_attempt.delivery_id for update;
  if delivery.id is null or delivery.status <> 'pending' then
    return null;
  end if;
  delivery.attempts := delivery.attempts + 1;
  insert into app.webhook_attempts (delivery_id, webhook_id, n, at, status_code, error, duration_ms, response_excerpt)
  values (delivery.id, delivery.webhook_id, delivery.attempts, internal.now(), webhook_attempt.status_code,
          webhook_attempt.error, webhook_attempt.duration_ms, webhook_attempt.response_excerpt);

  if is_delivered then
    delivery.status := 'delivered';
  elsif (webhook_attempt.is_refused or is_gone) and is_former is not true then
    delivery.status := 'failed';
    delivery.failed_reason := case when webhook_attempt.is_refused then 'target_not_allowed' else 'gone' end;
  -- a probe uses none of the series up: what is held stays held
  elsif not webhook_attempt.is_probe and delivery.held_until is null then
    delivery.series_attempts := delivery.series_attempts + 1;
    delivery.next_attempt_at := internal.webhook_retry_at(delivery.series_attempts, webhook_attempt.retry_after);
    if delivery.next_attempt_at is null then
      delivery.status := 'dlq';
      delivery.failed_reason := 'attempts_exhausted';
    end if;
  end if;
  if delivery.status <> 'pending' then
    delivery.next_attempt_at := null;
    delivery.held_until := null;
    delivery.settled_at := internal.now();
  end if;
  update app.webhook_deliveries d
     set attempts = delivery.attempts, series_attempts = delivery.series_attempts, status = delivery.status,
         failed_reason = delivery.failed_reason, next_attempt_at = delivery.next_attempt_at, held_until = delivery.held_until,
         settled_at = delivery.settled_at
   where d.id = delivery.id;
  -- the schedule is the outbox row's: it moves with the attempt, so that a worker that dies before it settles the row makes no retry early
  update app.outbox o
     set due_at = delivery.next_attempt_at
   where o.task = 'webhooks__deliver' and o.key = delivery.id::text and o.locked_until is not null and delivery.next_attempt_at is not null;
  if is_former is not true then
    perform internal.webhook_record_outcome(delivery.webhook_id, state, is_delivered, is_gone, delivery.status = 'dlq');
  end if;
  return delivery.next_attempt_at;
end $$;
comment on function internal.webhook_attempt is
  'Logs an attempt and decides: delivered on 2xx; failed at once when the address is refused or on 410, which also switches the subscription off;
   else pending until the schedule is exhausted, then dlq. A probe''s failure leaves its delivery held. A failure at an address that was changed
   meanwhile is tried again at the new one, and counts for nothing. Returns when to try again, or null; next_attempt_at shows that time and
   decides nothing, the due_at of the outbox row does. Locks the subscription unless all is well, then the delivery, then its outbox row.';

create or replace function api.webhook_attempt_record(
  delivery_id uuid, status_code int, error text, duration_ms int, response_excerpt text, retry_after int default null,
  is_refused boolean default false, is_probe boolean default false, target_url text default null)
returns api.reply
language plpgsql volatile as $$
declare
  again constant timestamptz := internal.webhook_attempt(
    webhook_attempt_record.delivery_id, webhook_attempt_record.status_code, webhook_attempt_record.error,
    webhook_attempt_record.duration_ms, webhook_attempt_record.response_excerpt, webhook_attempt_record.retry_after,
    webhook_attempt_record.is_refused, webhook_attempt_record.is_probe, webhook_attempt_record.target_url);
begin
  return internal.reply(200, json_build_object('next_attempt_at', internal.iso(again)));
end $$;
comment on function api.webhook_attempt_record is
  'internal.webhook_attempt for a probe, and for a delivery whose worker settles the outbox row itself: answers {next_attempt_at}.';

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
  'internal.webhook_attempt and internal.outbox_finish in one transaction. With is_last, which the last running row of a drain sends, it answers
   {due_at} of internal.outbox_next, so that the drain can end without asking.';

create or replace function api.webhook_test(webhook_id uuid) returns api.reply
language plpgsql stable as $$
declare
  hook app.webhooks;
  sealed text;
  event_id constant uuid := internal.new_id();
  delivery_id constant uuid := internal.new_id();
begin
  select w.* into hook from app.webhooks w where w.id = webhook_test.webhook_id;
  if hook.id is null then
    perform internal.webhook_not_found();
  end if;
  select s.secret_sealed into sealed from app.webhook_secrets s where s.id = hook.secret_id;
  return internal.reply(200, json_build_object(
    'id', delivery_id, 'event_id', event_id, 'event_name', 'svc.webhook.test',
    'payload', internal.webhook_body(
      delivery_id, 'svc.webhook.test', internal.setting('project_id') #>> '{}',
      internal.webhook_event_json(event_id, 'svc.webhook.test', '{}', internal.now(), 'system', null), null),
    'attempt', 1, 'target_url', hook.target_url, 'secret_sealed', sealed,
    'idempotency_key', internal.uuid5(hook.id, event_id::text),
    'sent_at', floor(extract(epoch from internal.now()))::bigint));
end $$;
comment on function api.webhook_test is
  'A synthetic delivery for the server to send: it is stored nowhere, so neither breaker nor stats see it. Refuses 404 NOT_FOUND.';
