-- Webhook deliveries as administrators see them: lists with the attempt log, and the start of a new series of attempts.
create or replace function internal.webhook_attempts_json(delivery_id uuid, with_excerpts boolean) returns json
language sql stable as $$
  select coalesce(json_agg(
           case when webhook_attempts_json.with_excerpts
                then json_build_object('n', a.n, 'at', internal.iso(a.at), 'status_code', a.status_code,
                                       'error', a.error,
                                       'duration_ms', a.duration_ms, 'response_excerpt', a.response_excerpt)
                else json_build_object('n', a.n, 'at', internal.iso(a.at), 'status_code', a.status_code,
                                       'error', a.error,
                                       'duration_ms', a.duration_ms) end order by a.n), '[]')
    from app.webhook_attempts a
   where a.delivery_id = webhook_attempts_json.delivery_id
$$;
comment on function internal.webhook_attempts_json is
  'The attempt log of a delivery, from attempt 1. Lists leave out the response excerpts, which have up to 1 KB each.';

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
comment on function internal.webhook_delivery_json is
  'A delivery as responses show it, with its attempt log; the read of a single delivery adds the payload.';

create or replace function internal.webhook_delivery_line_json(d app.webhook_deliveries) returns json
language sql stable as $$
  select internal.webhook_delivery_json(webhook_delivery_line_json.d, false)
$$;
comment on function internal.webhook_delivery_line_json is 'A delivery as lists show it.';

-- served by webhook_deliveries_newest, or webhook_deliveries_by_status
select internal.list_declare('webhook_delivery_page', null::app.webhook_deliveries, 'webhook_delivery_line_json',
                             '{created_at,id}',
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
  return internal.webhook_delivery_page(webhook_delivery_list.webhook_id, webhook_delivery_list.status, from_time,
                                        webhook_delivery_list.cursor,
                                        webhook_delivery_list.page_limit);
end $$;
comment on function api.webhook_delivery_list is
  'Deliveries of a subscription, newest first, by cursor; since compares the time at which they were queued. Refuses 404
   NOT_FOUND, 400 INVALID_INPUT.';

create or replace function internal.webhook_delivery_not_found() returns void
language sql volatile
return internal.fail(404, 'NOT_FOUND', 'There is no such delivery. They are kept for 30 days.');
comment on function internal.webhook_delivery_not_found is 'Refuses 404 NOT_FOUND.';

create or replace function internal.webhook_requeue(delivery_ids uuid[]) returns setof app.webhook_deliveries
language sql volatile as $$
  update app.webhook_deliveries d
     set status = 'pending', series_attempts = 0, failed_reason = null, settled_at = null,
       next_attempt_at = internal.now(),
         -- signed with the current secret, which the receiver of a replay verifies with
         secret_id = w.secret_id
    from app.webhooks w
   where d.id = any (webhook_requeue.delivery_ids) and d.status in ('failed', 'dlq')
     and w.id = d.webhook_id
  returning d.*
$$;
comment on function internal.webhook_requeue is
  'Starts a new series of attempts for deliveries that are failed or dlq: same body, same idempotency key; attempt
   numbers continue. Returns the deliveries that it changed: among concurrent callers, only one changes a given
   delivery.';

create or replace function internal.tg_webhook_deliveries__due() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.enqueue('webhooks__deliver', new.id::text, due_at => new.next_attempt_at,
                           lane => 'webhook ' || new.webhook_id);
  return null;
end $$;
comment on function internal.tg_webhook_deliveries__due is
  'Queues the task of a delivery again when the delivery is replayed or released.';

create or replace trigger tg_webhook_deliveries__due
  after update of status, next_attempt_at on app.webhook_deliveries
  for each row when (new.next_attempt_at is not null and old.next_attempt_at is null)
  execute function internal.tg_webhook_deliveries__due();
