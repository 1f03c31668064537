-- Circuit breaker of webhook subscriptions. A receiver that keeps failing opens the breaker: the subscription becomes
-- degraded, new deliveries are held, and half-open probes send one delivery at a time. Only an administrator closes the
-- breaker, by setting the status to active.
create or replace function internal.webhook_hold_interval() returns interval
language sql immutable parallel safe
return interval '72 hours';
comment on function internal.webhook_hold_interval is
  'How long a delivery of a degraded subscription is held before it goes to the dead-letter queue.';

create or replace function internal.webhook_probe_interval() returns interval
language sql immutable parallel safe
return interval '15 minutes';
comment on function internal.webhook_probe_interval is
  'The interval between half-open probes of a degraded subscription.';

create or replace function internal.webhook_record_outcome(webhook_id uuid, state text, is_delivered boolean,
                                                           is_gone boolean, is_dlq boolean)
returns void
language plpgsql volatile as $$
declare
  trips boolean;
begin
  -- null: the attempt succeeded and the breaker had counted no failures
  if webhook_record_outcome.state is null then
    return;
  end if;
  if webhook_record_outcome.is_gone then
    update app.webhooks w
       set status = 'disabled', updated_at = internal.now()
     where w.id = webhook_record_outcome.webhook_id and w.status <> 'disabled';
    return;
  end if;
  if webhook_record_outcome.state <> 'active' then
    return;
  end if;
  if webhook_record_outcome.is_delivered then
    update app.webhook_breakers b
       set dlq_in_row = 0, failed_in_row = 0, failing_since = null
     where b.webhook_id = webhook_record_outcome.webhook_id;
    return;
  end if;

  insert into app.webhook_breakers as b (webhook_id, dlq_in_row, failed_in_row, failing_since)
  values (webhook_record_outcome.webhook_id, webhook_record_outcome.is_dlq::int, 1, internal.now())
  on conflict on constraint webhook_breakers_pkey do update
     set dlq_in_row = b.dlq_in_row + excluded.dlq_in_row,
         failed_in_row = b.failed_in_row + 1,
         failing_since = coalesce(b.failing_since, excluded.failing_since)
  returning b.dlq_in_row >= 5 or (b.failed_in_row >= 50 and b.failing_since <= internal.now() - interval '30 minutes')
    into trips;
  if trips then
    update app.webhooks w set status = 'degraded', updated_at = internal.now()
      where w.id = webhook_record_outcome.webhook_id;
  end if;
end $$;
comment on function internal.webhook_record_outcome is
  'Counts the outcome of an attempt in the circuit breaker of a subscription, which the caller has locked. Five
   consecutive deliveries in the dead-letter queue, or fifty consecutive failed attempts over half an hour, degrade the
   subscription; a successful delivery resets both counts; a 410 disables the subscription. state is the subscription''s
   status under that lock.';

create or replace function internal.tg_webhooks__status() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  breaker app.webhook_breakers;
begin
  if new.status = 'degraded' then
    insert into app.webhook_breakers (webhook_id, degraded_at, probed_at)
    values (new.id, internal.now(), internal.now())
    on conflict on constraint webhook_breakers_pkey do update
       set degraded_at = excluded.degraded_at, probed_at = excluded.probed_at
    returning * into breaker;
    perform internal.enqueue('webhooks__probe', new.id::text,
                             due_at => internal.now() + internal.webhook_probe_interval());
    -- a separate task: a mail that fails does not stop deliveries or probes
    perform internal.enqueue('webhooks__notify', internal.new_id()::text, jsonb_build_object(
      'webhook_id', new.id, 'event_name', internal.webhook_watched(new),
        'target_url', split_part(new.target_url, '?', 1),
      'degraded_at', internal.iso(breaker.degraded_at), 'dlq_in_row', breaker.dlq_in_row,
      'failed_in_row', breaker.failed_in_row,
      'failing_since', internal.iso(breaker.failing_since)));
    return null;
  end if;
  update app.webhook_breakers b
     set dlq_in_row = 0, failed_in_row = 0, failing_since = null, degraded_at = null, probed_at = null
   where b.webhook_id = new.id;
  if old.status = 'degraded' then
    perform internal.enqueue('webhooks__release', new.id::text);
  end if;
  return null;
end $$;
comment on function internal.tg_webhooks__status is
  'When a subscription becomes degraded, by the circuit breaker or by hand in SQL: schedules probes and one notification
   of the owner. When it becomes active or disabled: resets the counts and queues the release of held deliveries.';

create or replace trigger tg_webhooks__status
  after update of status on app.webhooks
  for each row when (old.status is distinct from new.status)
  execute function internal.tg_webhooks__status();

create or replace function api.webhook_probe_begin(webhook_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  breaker app.webhook_breakers;
  given_up int;
  oldest uuid;
begin
  perform from app.webhooks w where w.id = webhook_probe_begin.webhook_id and w.status = 'degraded' for no key update;
  if not found then
    return internal.reply(200, null);
  end if;
  with over as (
    select d.id
      from app.webhook_deliveries d
     where d.webhook_id = webhook_probe_begin.webhook_id and d.held_until <= internal.now()
     order by d.held_until, d.id
     limit 500
       for update
  )
  update app.webhook_deliveries d
     set status = 'dlq', failed_reason = 'held_too_long', held_until = null, settled_at = internal.now()
    from over o
   where d.id = o.id;
  get diagnostics given_up = row_count;

  select b.* into breaker from app.webhook_breakers b where b.webhook_id = webhook_probe_begin.webhook_id for update;
  if breaker.probed_at <= internal.now() - internal.webhook_probe_interval() then
    breaker.probed_at := internal.now();
    -- recorded before the probe is sent: a worker that dies skips one probe and never causes a second
    update app.webhook_breakers b set probed_at = breaker.probed_at where b.webhook_id = breaker.webhook_id;
    select d.id into oldest
      from app.webhook_deliveries d
     where d.webhook_id = webhook_probe_begin.webhook_id and d.status = 'pending'
     order by d.created_at, d.id
     limit 1;
  end if;
  return internal.reply(200, json_build_object(
    'delivery', internal.webhook_sendable_json(oldest),
    'due_at', internal.iso(case
      when given_up = 500 then internal.now()
      else least(breaker.probed_at + internal.webhook_probe_interval(),
                 (select min(d.held_until) from app.webhook_deliveries d
                   where d.webhook_id = webhook_probe_begin.webhook_id)) end)));
end $$;
comment on function api.webhook_probe_begin is
  'For a degraded subscription: moves deliveries that were held for 72 hours to the dead-letter queue and answers
   {delivery, due_at}. delivery is the oldest pending delivery if a half-open probe is due (every 15 minutes). Null when
   the subscription is no longer degraded. Locks the subscription and its circuit breaker.';

create or replace function api.webhook_release(webhook_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  state text;
  let_go int;
begin
  select w.status into state from app.webhooks w where w.id = webhook_release.webhook_id for key share;
  if state is null or state = 'degraded' then
    return internal.reply(200, 'false');
  end if;
  with chosen as (
    select d.id
      from app.webhook_deliveries d
     where d.webhook_id = webhook_release.webhook_id and d.held_until is not null
     order by d.held_until, d.id
     limit 500
       for update
  )
  update app.webhook_deliveries d
     set held_until = null,
         next_attempt_at = case when state = 'active' then internal.now() end,
         status = case when state = 'active' then 'pending' else 'failed' end,
         failed_reason = case when state = 'disabled' then 'subscription_disabled' end,
         settled_at = case when state = 'disabled' then internal.now() end
    from chosen c
   where d.id = c.id;
  get diagnostics let_go = row_count;
  return internal.reply(200, to_json(let_go = 500));
end $$;
comment on function api.webhook_release is
  'Releases up to 500 held deliveries of a subscription that is no longer degraded: they become due, or failed when the
   subscription is disabled. Answers whether more may be held. Locks the subscription against deletion, then the
   deliveries.';
