-- Outbound webhooks: subscriptions, and what becomes of each delivery. The worker only carries: it asks what to send, sends
-- it, and tells what came back; every decision is made here.
comment on constraint webhooks_event_name_form on app.webhooks is
  '400 VALIDATION_ERROR event_name: must match ^[a-z][a-z0-9_.-]{0,127}$.';

create or replace function internal.webhook_json(w app.webhooks) returns json
language sql stable as $$
  select json_build_object(
    'id', (webhook_json.w).id, 'event_name', (webhook_json.w).event_name, 'target_url', (webhook_json.w).target_url,
    'description', (webhook_json.w).description, 'filter', (webhook_json.w).filter,
    'include_user', (webhook_json.w).include_user, 'status', (webhook_json.w).status,
    'created_at', internal.iso((webhook_json.w).created_at), 'updated_at', internal.iso((webhook_json.w).updated_at))
$$;
comment on function internal.webhook_json is 'A subscription as every answer shows it; the secret is shown once, by the server that made it.';

create or replace function api.webhook_create(event_name text, target_url text, secret_sealed text, description text default null,
                                              filter json default null, include_user boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  made app.webhooks;
  problem constant text := case when webhook_create.filter is not null then internal.filter_problem(webhook_create.filter) end;
begin
  if problem is not null then
    perform internal.invalid('filter', problem);
  end if;
  -- taken before the count, so that two at once cannot pass the limit together
  perform pg_advisory_xact_lock(7305441005);
  if (select count(*) from app.webhooks) >= 50 then
    perform internal.fail(409, 'LIMIT_REACHED', 'A project has at most 50 webhook subscriptions.', '{"limit": 50}');
  end if;
  insert into app.webhooks (event_name, target_url, description, filter, include_user, secret_id)
  values (webhook_create.event_name, webhook_create.target_url, webhook_create.description, webhook_create.filter::jsonb,
          webhook_create.include_user, internal.new_id())
  returning * into made;
  insert into app.webhook_secrets (id, webhook_id, secret_sealed) values (made.secret_id, made.id, webhook_create.secret_sealed);
  return internal.reply(201, internal.webhook_json(made));
end $$;
comment on function api.webhook_create is
  'A new subscription; the server adds the secret to the answer, once. Refuses 400 VALIDATION_ERROR, 409 LIMIT_REACHED (50). Supplement F4.';

create or replace function api.webhook_list(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.reply_page(
    (select json_agg(internal.webhook_json(w) order by w.created_at desc, w.id desc)
       from (select l.* from app.webhooks l order by l.created_at desc, l.id desc
             limit webhook_list.page_limit offset webhook_list.page_offset) w),
    (select count(*) from app.webhooks), webhook_list.page_offset, webhook_list.page_limit)
$$;
comment on function api.webhook_list is 'Subscriptions, newest first. At most 50 exist, so the list needs no index.';

create or replace function api.webhook_delete(webhook_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  delete from app.webhooks w where w.id = webhook_delete.webhook_id;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such webhook.');
  end if;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.webhook_delete is 'Deletes a subscription with its deliveries; what is being sent finds its row gone. Refuses 404 NOT_FOUND.';

create or replace trigger tg_webhooks__audit
  after insert or update or delete on app.webhooks
  for each row execute function internal.tg_audit('webhooks', 'secret_id');

create or replace function internal.uuid5(namespace uuid, name text) returns uuid
language sql immutable parallel safe as $$
  -- RFC 9562, version 5; Postgres has no SHA-1 of its own outside extensions, so pgcrypto's is used
  select encode(
    set_byte(set_byte(h.digest, 6, (get_byte(h.digest, 6) & 15) | 80), 8, (get_byte(h.digest, 8) & 63) | 128), 'hex')::uuid
    from (select substring(extensions.digest(uuid_send(uuid5.namespace) || convert_to(uuid5.name, 'UTF8'), 'sha1') from 1 for 16) as digest) h
$$;
comment on function internal.uuid5 is 'The name-based UUID of a name within a namespace.';

create or replace function internal.tg_engagement_events__90_webhooks() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- most projects watch few names: one look at the names of the batch, then nothing
  if not exists (select from app.webhooks w
                  where w.status <> 'disabled' and w.event_name in (select i.event_name from inserted i)) then
    return null;
  end if;
  with watching as materialized (
    -- kept from being deleted until the delivery that leans on it is there
    select w.id, w.event_name, w.secret_id, w.filter, w.include_user
      from app.webhooks w
     where w.status <> 'disabled' and w.event_name in (select i.event_name from inserted i)
       for key share
  ), matching as materialized (
    select internal.new_id() as id, w.id as webhook_id, w.secret_id, w.include_user, i.id as event_id, i.app_user_id, i.event_name,
           i.properties, i.occurred_at, i.source, i.session_id
      from inserted i
      join watching w on w.event_name = i.event_name
     where not i.is_historical
       and (w.filter is null or internal.filter_truth(w.filter, i.properties))
  ), queued as (
    insert into app.webhook_deliveries (id, webhook_id, secret_id, event_id, event_name, payload, next_attempt_at, created_at)
    select m.id, m.webhook_id, m.secret_id, m.event_id, m.event_name,
           json_build_object(
             'id', m.id, 'type', m.event_name, 'api_version', '1.0.0', 'created_at', internal.iso(internal.now()),
             'project_id', internal.setting('project_id') #>> '{}',
             'data', json_build_object(
               'event', json_build_object(
                 'id', m.event_id, 'event_name', m.event_name, 'properties', m.properties, 'occurred_at', internal.iso(m.occurred_at),
                 'source', m.source, 'session_id', m.session_id),
               'user', case when m.include_user then (
                 select json_build_object('id', u.id, 'external_id', u.external_id, 'email', u.email,
                                          'display_name', u.display_name, 'properties', u.properties)
                   from app.users u where u.id = m.app_user_id) end))::text,
           internal.now(), internal.now()
      from matching m
    on conflict on constraint webhook_deliveries_once_per_event do nothing
    returning id, webhook_id
  )
  insert into app.outbox (task, key, lane, due_at)
  select 'webhooks__deliver', q.id::text, 'webhook ' || q.webhook_id, internal.now()
    from queued q;
  if found then
    perform internal.wake(internal.now());
  end if;
  return null;
end $$;
comment on function internal.tg_engagement_events__90_webhooks is
  'One delivery, with its body built once, for each subscription that watches an event, and its work in the outbox. Imported history is not sent.';

create or replace trigger tg_engagement_events__90_webhooks
  after insert on app.engagement_events
  referencing new table as inserted
  for each statement execute function internal.tg_engagement_events__90_webhooks();

create or replace function api.webhook_delivery_begin(delivery_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  -- nothing is sent for a subscription that was switched off meanwhile: it failed, so that a person can replay it
  update app.webhook_deliveries d
     set status = 'failed', next_attempt_at = null, settled_at = internal.now()
   where d.id = webhook_delivery_begin.delivery_id and d.status = 'pending'
     and exists (select from app.webhooks w where w.id = d.webhook_id and w.status = 'disabled');
  return internal.reply(200, (
    select json_build_object(
             'id', d.id, 'event_id', d.event_id, 'event_name', d.event_name, 'payload', d.payload,
             'attempt', d.attempts + 1, 'target_url', w.target_url, 'secret_sealed', s.secret_sealed,
             'idempotency_key', internal.uuid5(d.webhook_id, d.event_id::text),
             'sent_at', floor(extract(epoch from internal.now()))::bigint)
      from app.webhook_deliveries d
      join app.webhooks w on w.id = d.webhook_id
      join app.webhook_secrets s on s.id = d.secret_id
     where d.id = webhook_delivery_begin.delivery_id and d.status = 'pending'));
end $$;
comment on function api.webhook_delivery_begin is
  'What to send for a pending delivery, and where; null when it was settled or deleted. That of a disabled subscription becomes failed. Locks the delivery.';

create or replace function internal.webhook_retry_seconds(attempt int) returns int
language sql immutable parallel safe as $$
  -- after the first try: 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h; then no more
  select (array[5, 30, 120, 600, 1800, 7200, 21600, 43200])[webhook_retry_seconds.attempt]
$$;
comment on function internal.webhook_retry_seconds is 'Seconds to wait after the n-th failed attempt of a series; null when it was the last.';

create or replace function api.webhook_attempt_record(
  delivery_id uuid, status_code int, error text, duration_ms int, response_excerpt text, retry_after int default null,
  is_refused boolean default false)
returns api.reply
language plpgsql volatile as $$
declare
  delivery app.webhook_deliveries;
  is_delivered constant boolean := coalesce(webhook_attempt_record.status_code between 200 and 299, false)
                                   and webhook_attempt_record.error is null;
  wait int;
  next_at timestamptz;
begin
  if webhook_attempt_record.status_code = 410 then
    -- the subscription before its delivery, as a deletion locks them
    perform from app.webhooks w
      where w.id = (select d.webhook_id from app.webhook_deliveries d where d.id = webhook_attempt_record.delivery_id)
        for no key update;
  end if;
  select d.* into delivery from app.webhook_deliveries d where d.id = webhook_attempt_record.delivery_id for update;
  if delivery.id is null or delivery.status <> 'pending' then
    return internal.reply(200, json_build_object('next_attempt_at', null));
  end if;
  insert into app.webhook_attempts (delivery_id, n, at, status_code, error, duration_ms, response_excerpt)
  values (delivery.id, delivery.attempts + 1, internal.now(), webhook_attempt_record.status_code, webhook_attempt_record.error,
          webhook_attempt_record.duration_ms, webhook_attempt_record.response_excerpt);

  if not is_delivered and not webhook_attempt_record.is_refused
     and webhook_attempt_record.status_code is distinct from 410 then
    wait := internal.webhook_retry_seconds(delivery.series_attempts + 1);
    -- up to ten per cent earlier or later, so that many do not come back at one moment
    next_at := internal.now() + make_interval(secs => greatest(
                 wait * (0.9 + 0.2 * random()), least(coalesce(webhook_attempt_record.retry_after, 0), 3600)));
  end if;
  update app.webhook_deliveries d
     set attempts = d.attempts + 1,
         series_attempts = d.series_attempts + 1,
         status = case when is_delivered then 'delivered'
                       when webhook_attempt_record.is_refused or webhook_attempt_record.status_code = 410 then 'failed'
                       when wait is null then 'dlq' else 'pending' end,
         next_attempt_at = case when wait is not null then next_at end,
         settled_at = case when wait is null then internal.now() end
   where d.id = delivery.id;
  if not is_delivered and webhook_attempt_record.status_code = 410 then
    update app.webhooks w set status = 'disabled', updated_at = internal.now() where w.id = delivery.webhook_id;
  end if;
  return internal.reply(200, json_build_object('next_attempt_at', case when wait is not null then internal.iso(next_at) end));
end $$;
comment on function api.webhook_attempt_record is
  'Logs an attempt and decides: delivered on 2xx; failed at once when the address is refused or on 410, which also switches the subscription off;
   else pending until the schedule is exhausted, then dlq. Answers when to try again, or null. Retry-After counts up to an hour. Locks the delivery,
   on 410 its subscription before it.';
