-- Webhook fan-out: the hook of the event pipeline that creates one delivery for each subscription that matches an
-- event, and the body to send.
create or replace function internal.webhook_body(id uuid, type text, project_id text, event json, "user" json)
returns text
language sql stable
return json_build_object(
  'id', webhook_body.id, 'type', webhook_body.type, 'api_version', '1.0.0', 'created_at', internal.iso(internal.now()),
  'project_id', webhook_body.project_id,
  'data', json_build_object('event', webhook_body.event, 'user', webhook_body."user"))::text;
comment on function internal.webhook_body is
  'The body of a delivery: built once, stored, and sent byte for byte the same in every attempt.';

create or replace function internal.webhook_event_json(id uuid, event_name text, properties jsonb,
                                                       occurred_at timestamptz, source text, session_id uuid)
returns json
language sql stable
return json_build_object(
  'id', webhook_event_json.id, 'event_name', webhook_event_json.event_name, 'properties', webhook_event_json.properties,
  'occurred_at', internal.iso(webhook_event_json.occurred_at), 'source', webhook_event_json.source,
  'session_id', webhook_event_json.session_id);
comment on function internal.webhook_event_json is 'data.event of a body.';

create or replace function internal.on_events__90_webhooks(events app.engagement_events[]) returns void
language plpgsql volatile set plan_cache_mode = 'auto' as $$
declare
  has_degraded boolean;
  held uuid[] := '{}';
  project_id text;
begin
  -- most projects have subscriptions for few event names: in the usual case this one query on the names of the batch is
  -- all
  select bool_or(w.status = 'degraded') into has_degraded
    from app.webhooks w
   where w.status <> 'disabled' and w.event_name in (select i.event_name from unnest(on_events__90_webhooks.events) i);
  if has_degraded is null then
    return;
  end if;
  if has_degraded then
    -- locked so that these subscriptions stay degraded until the event is committed: otherwise a release could miss the
    -- deliveries held here
    held := array(
      select w.id from app.webhooks w
       where w.status = 'degraded' and w.event_name in (select i.event_name
                                                          from unnest(on_events__90_webhooks.events) i)
       order by w.id
         for share);
  end if;
  project_id := internal.setting('project_id') #>> '{}';
  with watching as materialized (
    -- locked against deletion until the delivery is committed, so that the purge of a deleted subscription finds it
    select w.id, w.event_name, w.secret_id, w.filter, w.include_user
      from app.webhooks w
     where w.status <> 'disabled' and w.event_name in (select i.event_name from unnest(on_events__90_webhooks.events) i)
       for key share
  ), matching as materialized (
    select internal.new_id() as id, w.id as webhook_id, w.secret_id, w.include_user, w.id = any (held) as is_held,
           i.id as event_id, i.app_user_id, i.event_name, i.properties, i.occurred_at, i.source, i.session_id
      from unnest(on_events__90_webhooks.events) i
      join watching w on w.event_name = i.event_name
     where not i.is_historical
       and (w.filter is null or internal.filter_truth(w.filter, i.properties))
  ), queued as (
    insert into app.webhook_deliveries (id, webhook_id, secret_id, event_id, app_user_id, event_name, payload,
                                        next_attempt_at, held_until,
                                        created_at)
    select m.id, m.webhook_id, m.secret_id, m.event_id, m.app_user_id, m.event_name,
           internal.webhook_body(
             m.id, m.event_name, project_id,
             internal.webhook_event_json(m.event_id, m.event_name, m.properties, m.occurred_at, m.source, m.session_id),
             case when m.include_user then (
               select json_build_object('id', u.id, 'external_id', u.external_id, 'email', u.email,
                                        'display_name', u.display_name, 'properties', u.properties)
                 from app.users u where u.id = m.app_user_id) end),
           case when not m.is_held then internal.now() end,
           case when m.is_held then internal.now() + internal.webhook_hold_interval() end,
           internal.now()
      from matching m
    on conflict on constraint webhook_deliveries_once_per_event do nothing
    returning id, webhook_id, next_attempt_at
  )
  insert into app.outbox (task, key, lane, due_at)
  select 'webhooks__deliver', q.id::text, 'webhook ' || q.webhook_id, q.next_attempt_at
    from queued q
   where q.next_attempt_at is not null;
  if found then
    perform internal.wake(internal.now());
  end if;
end $$;
comment on function internal.on_events__90_webhooks is
  'Fan-out: for each event and each subscription that matches it, one delivery with its body, and its task in the
   outbox, with deduplication by subscription and event. Deliveries of a degraded subscription are held. Historical
   (imported) events are not sent. Locks the subscriptions against deletion, and degraded ones against a change of
   status.';

create or replace function internal.event_plan__webhooks() returns table (event_name text, plan uuid[])
language sql stable as $$
  select w.event_name, array_agg(w.id order by w.id) from app.webhooks w where w.status <> 'disabled' group by 1
$$;
comment on function internal.event_plan__webhooks is
  'The ids of the subscriptions to each event name, without disabled ones. Granted to nobody.';

create or replace trigger tg_webhooks__event_plans
  after insert or delete or update of status, event_name on app.webhooks
  for each statement execute function internal.tg_event_plans();

create or replace function internal.purge__webhooks(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select greatest(internal.purge_rows('app.webhook_deliveries', 't.created_at < internal.now() - interval ''30 days''',
                                      purge__webhooks.most),
                  -- a day after the last delivery that was queued with it
                  internal.purge_rows('app.webhook_secrets', 't.replaced_at < internal.now() - interval ''31 days''',
                                      purge__webhooks.most))
$$;
comment on function internal.purge__webhooks is
  'Daily: deliveries with their attempts after 30 days, and signing secrets 31 days after they were replaced.';
