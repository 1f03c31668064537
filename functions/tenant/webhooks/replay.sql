-- Webhook deliveries for administrators: lists, the attempt log, and replay of failed and dead-letter (dlq) deliveries.
create or replace function internal.webhook_attempts_json(delivery_id uuid, with_excerpts boolean) returns json
language sql stable as $$
  select coalesce(json_agg(
           case when webhook_attempts_json.with_excerpts
                then json_build_object('n', a.n, 'at', internal.iso(a.at), 'status_code', a.status_code, 'error', a.error,
                                       'duration_ms', a.duration_ms, 'response_excerpt', a.response_excerpt)
                else json_build_object('n', a.n, 'at', internal.iso(a.at), 'status_code', a.status_code, 'error', a.error,
                                       'duration_ms', a.duration_ms) end order by a.n), '[]')
    from app.webhook_attempts a
   where a.delivery_id = webhook_attempts_json.delivery_id
$$;
comment on function internal.webhook_attempts_json is 'The attempt log of a delivery, from attempt 1. Lists leave out the response excerpts, which have up to 1 KB each.';

create or replace function internal.webhook_delivery_json(d app.webhook_deliveries, with_excerpts boolean) returns json
language sql stable as $$
  select json_build_object(
    'id', (webhook_delivery_json.d).id, 'webhook_id', (webhook_delivery_json.d).webhook_id,
    'event_id', (webhook_delivery_json.d).event_id, 'event_name', (webhook_delivery_json.d).event_name,
    'idempotency_key', internal.uuid5((webhook_delivery_json.d).webhook_id, (webhook_delivery_json.d).event_id::text),
    'status', (webhook_delivery_json.d).status, 'failed_reason', (webhook_delivery_json.d).failed_reason,
    'attempt_count', (webhook_delivery_json.d).attempts,
    'next_attempt_at', internal.iso((webhook_delivery_json.d).next_attempt_at),
    'held_until', internal.iso((webhook_delivery_json.d).held_until),
    'created_at', internal.iso((webhook_delivery_json.d).created_at),
    'settled_at', internal.iso((webhook_delivery_json.d).settled_at),
    'attempts', internal.webhook_attempts_json((webhook_delivery_json.d).id, webhook_delivery_json.with_excerpts))
$$;
comment on function internal.webhook_delivery_json is 'A delivery as responses show it, with its attempt log; the read of a single delivery adds the payload.';

create or replace function internal.webhook_delivery_line_json(d app.webhook_deliveries) returns json
language sql stable as $$
  select internal.webhook_delivery_json(webhook_delivery_line_json.d, false)
$$;
comment on function internal.webhook_delivery_line_json is 'A delivery as lists show it.';

-- served by webhook_deliveries_newest, or webhook_deliveries_by_status
select internal.list_declare('webhook_delivery_page', null::app.webhook_deliveries, 'webhook_delivery_line_json', '{created_at,id}',
                             required => '{webhook_id}', filters => '{status}', by_cursor => true, has_since => true);

create or replace function api.webhook_delivery_list(webhook_id uuid, status text default null, since text default null,
                                                     cursor text default null, page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  from_time constant timestamptz := internal.time_parameter('since', webhook_delivery_list.since);
begin
  if not exists (select from app.webhooks w where w.id = webhook_delivery_list.webhook_id) then
    perform internal.webhook_not_found();
  end if;
  return internal.webhook_delivery_page(webhook_delivery_list.webhook_id, webhook_delivery_list.status, from_time, webhook_delivery_list.cursor,
                                        webhook_delivery_list.page_limit);
end $$;
comment on function api.webhook_delivery_list is
  'Deliveries of a subscription, newest first, by cursor; since compares the time at which they were queued. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';

create or replace function internal.webhook_delivery_not_found() returns void
language sql volatile
return internal.fail(404, 'NOT_FOUND', 'There is no such delivery. They are kept for 30 days.');
comment on function internal.webhook_delivery_not_found is 'Refuses 404 NOT_FOUND.';

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

create or replace function internal.webhook_requeue(delivery_ids uuid[]) returns setof app.webhook_deliveries
language sql volatile as $$
  update app.webhook_deliveries d
     set status = 'pending', series_attempts = 0, failed_reason = null, settled_at = null, next_attempt_at = internal.now(),
         -- signed with the current secret, which the receiver of a replay verifies with
         secret_id = w.secret_id
    from app.webhooks w
   where d.id = any (webhook_requeue.delivery_ids) and d.status in ('failed', 'dlq')
     and w.id = d.webhook_id
  returning d.*
$$;
comment on function internal.webhook_requeue is
  'Starts a new series of attempts for deliveries that are failed or dlq: same body, same idempotency key; attempt numbers continue. Returns the
   deliveries that it changed: among concurrent callers, only one changes a given delivery.';

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
  'Queues a delivery again, 202. Refuses 404 NOT_FOUND, 409 DELIVERY_NOT_REPLAYABLE unless it is failed or dlq. Locks the delivery, and its
   subscription against deletion.';

create or replace function api.webhook_replay_check(webhook_id uuid, since text default null, until text default null) returns api.reply
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
  'Validates the range of a replay and answers its two ends as timestamps, with as_of, the current time. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR.';

create or replace function api.webhook_replay_batch(webhook_id uuid, statuses json, as_of timestamptz, since timestamptz default null,
                                                    until timestamptz default null, batch int default 500)
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
  'Queues the next batch of deliveries of a range again, oldest first, and answers how many remain; null when the subscription was deleted. Both
   ends of the range are inclusive. Idempotent: a delivery that is pending is not queued twice. Locks the deliveries, and the subscription
   against deletion.';
