-- Webhooks of projects and of the control plane: one implementation, loaded into both kinds of database, over tables of
-- the same names. Each database has its own internal.enqueue and its own record of an attempt: a project's tasks are
-- rows of its outbox, those of the control database are jobs. This file: one attempt of a delivery, that is the request
-- to send, the handling of its outcome, and the retry schedule (back-off with jitter).
create or replace function internal.uuid5(namespace uuid, name text) returns uuid
language sql immutable parallel safe as $$
  -- RFC 9562, version 5; Postgres has SHA-1 only in the extension pgcrypto
  select encode(
    set_byte(set_byte(h.digest, 6, (get_byte(h.digest, 6) & 15) | 80), 8, (get_byte(h.digest, 8) & 63) | 128),
      'hex')::uuid
    from (select substring(extensions.digest(uuid_send(uuid5.namespace) || convert_to(uuid5.name, 'UTF8'),
                                             'sha1') from 1 for 16) as digest) h
$$;
comment on function internal.uuid5 is
  'The name-based UUID (version 5) of a name within a namespace: the idempotency key of a delivery.';

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
comment on function internal.webhook_sendable_json is
  'Everything that a worker needs for one attempt of a pending delivery; null when the delivery is finished or
   deleted.';

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
    -- read again under a lock: a transaction that activates the subscription waits until this delivery is held, so its
    -- release finds the delivery
    select w.status into state from app.webhooks w where w.id = watched for share;
  end if;
  if state = 'degraded' then
    update app.webhook_deliveries d
       set next_attempt_at = null, held_until = coalesce(d.held_until,
                                                         internal.now() + internal.webhook_hold_interval())
     where d.id = webhook_delivery_begin.delivery_id and d.status = 'pending';
  elsif state = 'disabled' then
    -- failed rather than deleted, so that an administrator can replay the delivery
    update app.webhook_deliveries d
       set status = 'failed', failed_reason = 'subscription_disabled', next_attempt_at = null, held_until = null,
           settled_at = internal.now()
     where d.id = webhook_delivery_begin.delivery_id and d.status = 'pending';
  elsif state = 'active' and not is_held then
    return internal.reply(200,
                          json_build_object('delivery', internal.webhook_sendable_json(
                            webhook_delivery_begin.delivery_id)));
  end if;
  return internal.reply(200, null);
end $$;
comment on function api.webhook_delivery_begin is
  '{delivery} to send now, or null when there is nothing to send; only who records an attempt schedules the next one. A
   delivery of a degraded subscription is held from now on; a delivery of a disabled subscription becomes failed. Both
   lock the subscription against changes.';

create or replace function internal.webhook_retry_seconds(attempt int) returns int
language sql immutable parallel safe as $$
  -- back-off after the first attempt: 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h; then no further attempt
  select (array[5, 30, 120, 600, 1800, 7200, 21600, 43200])[webhook_retry_seconds.attempt]
$$;
comment on function internal.webhook_retry_seconds is
  'Back-off in seconds after the n-th failed attempt of a series; null after the last attempt.';

create or replace function internal.webhook_retry_at(attempt int, retry_after int) returns timestamptz
language sql volatile as $$
  -- jitter of up to 10 % earlier or later, so that many deliveries are not retried at the same moment; whole
  -- milliseconds, as in the outbox
  select date_trunc('milliseconds', internal.now() + make_interval(secs => greatest(
           w.seconds * (0.9 + 0.2 * random()), least(coalesce(webhook_retry_at.retry_after, 0), 3600))))
    from (select internal.webhook_retry_seconds(webhook_retry_at.attempt) as seconds) w
   where w.seconds is not null
$$;
comment on function internal.webhook_retry_at is
  'The time of the next attempt after the n-th failed attempt of a series: back-off with jitter, and not before the
   receiver''s Retry-After, of which at most one hour is honoured. Null after the last attempt.';

create or replace function internal.webhook_attempt(delivery_id uuid, status_code int, error text, duration_ms int,
                                                    response_excerpt text, retry_after int, is_refused boolean,
                                                    is_probe boolean, target_url text)
returns timestamptz
language plpgsql volatile as $$
declare
  delivery app.webhook_deliveries;
  is_delivered constant boolean := coalesce(webhook_attempt.status_code between 200 and 299, false)
    and webhook_attempt.error is null;
  is_gone constant boolean := coalesce(webhook_attempt.status_code = 410, false);
  watched constant uuid := (select d.webhook_id from app.webhook_deliveries d where d.id = webhook_attempt.delivery_id);
  state text;
  is_former boolean;
begin
  -- a success with no failures counted changes no counter and needs no lock on the subscription; otherwise the lock
  -- order everywhere is subscription, then delivery
  if is_delivered and not exists (select from app.webhook_breakers b
                                   where b.webhook_id = watched and b.failed_in_row > 0) then
    perform from app.webhooks w where w.id = watched;
  else
    -- the attempt went to a former target_url: its outcome does not apply to the current one
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
  -- a probe does not consume an attempt of the series: a held delivery stays held
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
         failed_reason = delivery.failed_reason, next_attempt_at = delivery.next_attempt_at,
         held_until = delivery.held_until,
         settled_at = delivery.settled_at
   where d.id = delivery.id;
  if is_former is not true then
    perform internal.webhook_record_outcome(delivery.webhook_id, state, is_delivered, is_gone, delivery.status = 'dlq');
  end if;
  return delivery.next_attempt_at;
end $$;
comment on function internal.webhook_attempt is
  'Logs an attempt and sets the state of its delivery: delivered on 2xx; failed at once when the address is refused or
   on 410, which also disables the subscription; otherwise pending until the retry schedule is exhausted, then dlq
   (dead-letter queue). A failed probe leaves its delivery held. A failure at a target_url that has been changed since
   is retried at the new one and is not counted by the circuit breaker. Returns the time of the next attempt, or null,
   at which its caller schedules the task in the same transaction: the death of a worker causes no early retry.
   next_attempt_at only displays that time. Locks the subscription (not for a success where no failures are counted),
   then the delivery.';
