-- Webhook deliveries for administrators: lists, the attempt log, and replay of failed and dead-letter (dlq) deliveries.
create or replace function api.webhook_delivery_replay(delivery_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  delivery app.webhook_deliveries;
begin
  perform from app.webhooks w
    where w.id = (select d.webhook_id from app.webhook_deliveries d where d.id = webhook_delivery_replay.delivery_id)
      for key share;
  if not found then
    perform internal.webhook_delivery_not_found();
  end if;
  select r.* into delivery from internal.webhook_requeue(array[webhook_delivery_replay.delivery_id]) r;
  if delivery.id is null then
    perform internal.fail(409, 'DELIVERY_NOT_REPLAYABLE', 'Only a delivery that is failed or dlq can be replayed.');
  end if;
  perform internal.audit_act('webhooks.replay', 'webhook_deliveries', delivery.id::text, '{}', 202);
  return internal.reply(202, internal.webhook_delivery_json(delivery, false));
end $$;
comment on function api.webhook_delivery_replay is
  'Queues a delivery again, 202. Refuses 404 NOT_FOUND, 409 DELIVERY_NOT_REPLAYABLE unless it is failed or dlq. Locks
   the delivery, and its subscription against deletion.';

create or replace function api.webhook_replay_check(webhook_id uuid, since text default null, until text default null)
returns api.reply
language plpgsql stable as $$
declare
  from_time constant timestamptz := internal.as_time(webhook_replay_check.since);
  to_time constant timestamptz := internal.as_time(webhook_replay_check.until);
begin
  if webhook_replay_check.since is not null and from_time is null then
    perform internal.invalid('since', 'must be an ISO 8601 time');
  end if;
  if webhook_replay_check.until is not null and to_time is null then
    perform internal.invalid('until', 'must be an ISO 8601 time');
  end if;
  if to_time < from_time then
    perform internal.invalid('until', 'must not be before since');
  end if;
  if not exists (select from app.webhooks w where w.id = webhook_replay_check.webhook_id) then
    perform internal.webhook_not_found();
  end if;
  return internal.reply(200, json_build_object('since', from_time, 'until', to_time, 'as_of', internal.now()));
end $$;
comment on function api.webhook_replay_check is
  'Validates the range of a replay and answers its two ends as timestamps, with as_of, the current time. Refuses 404
   NOT_FOUND, 400 VALIDATION_ERROR.';

create or replace function api.webhook_replay_batch(webhook_id uuid, statuses json, as_of timestamptz,
                                                    since timestamptz default null, until timestamptz default null,
                                                    batch int default 500)
returns api.reply
language plpgsql volatile as $$
declare
  wanted constant text[] := array(select s from json_array_elements_text(webhook_replay_batch.statuses) s);
  from_time constant timestamptz := coalesce(webhook_replay_batch.since, '-infinity');
  to_time constant timestamptz := coalesce(webhook_replay_batch.until, 'infinity');
  chosen uuid[];
  remaining bigint;
begin
  perform from app.webhooks w where w.id = webhook_replay_batch.webhook_id for key share;
  if not found then
    return internal.reply(200, null);
  end if;
  if webhook_replay_batch.batch > 0 then
    chosen := array(
      select d.id
        from app.webhook_deliveries d
       where d.webhook_id = webhook_replay_batch.webhook_id and d.status = any (wanted)
         and d.created_at between from_time and to_time
         -- deliveries that failed again after the replay began are excluded, or it would never end
         and d.settled_at <= webhook_replay_batch.as_of
       order by d.created_at, d.id
       limit webhook_replay_batch.batch
         for update);
    perform from internal.webhook_requeue(chosen);
  end if;
  select count(*) into remaining
    from app.webhook_deliveries d
   where d.webhook_id = webhook_replay_batch.webhook_id and d.status = any (wanted)
     and d.created_at between from_time and to_time
     and d.settled_at <= webhook_replay_batch.as_of;
  return internal.reply(200, json_build_object('remaining', remaining));
end $$;
comment on function api.webhook_replay_batch is
  'Queues the next batch of deliveries of a range again, oldest first, and answers how many remain; null when the
   subscription was deleted. Both ends of the range are inclusive. Idempotent: a delivery that is pending is not queued
   twice. Locks the deliveries, and the subscription against deletion.';
