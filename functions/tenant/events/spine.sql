-- The event spine: what happens to a user is a row here, and every area that an event moves hooks in with a statement-level
-- trigger on app.engagement_events, named tg_engagement_events__NN_<area>; NN is its place in the pipeline:
-- 10 counters, 20 streaks, 30 xp, 40 challenges, 50 achievements, 60 leaderboards, 70 leagues, 90 webhooks.

create or replace function internal.ensure_event_partition(at timestamptz) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  month constant date := date_trunc('month', ensure_event_partition.at at time zone 'UTC')::date;
  partition constant text := 'engagement_events_' || to_char(month, 'YYYYMM');
begin
  if to_regclass('app.' || partition) is not null then
    return;
  end if;
  perform pg_advisory_xact_lock(7305441004);
  execute format('create table if not exists app.%I partition of app.engagement_events for values from (%L) to (%L)',
                 partition, month::timestamp at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
  execute format('alter table app.%I enable row level security', partition);
end $$;
comment on function internal.ensure_event_partition is
  'Makes the partition of a month of receipt if it is missing. The sweep calls it ahead of time; an event finds it missing only when no worker ran for months.';

create or replace function api.events_maintain() returns api.reply
language plpgsql volatile as $$
begin
  for months in 0..2 loop
    perform internal.ensure_event_partition(internal.now() + make_interval(months => months));
  end loop;
  delete from app.event_ids i where i.received_at < internal.now() - interval '90 days';
  delete from app.idempotency_keys k where k.created_at < internal.now() - interval '24 hours';
  delete from app.rate_limits r where r.started_at < internal.now() - interval '2 days';
  return internal.reply(200, 'true');
end $$;
comment on function api.events_maintain is 'Daily: partitions for this month and the next two; forgets client ids after 90 days.';

create or replace function internal.add_effect(part text, effect json) returns void
language sql volatile as $$
  select set_config('app.effects',
                    concat_ws(e'\n', nullif(current_setting('app.effects', true), ''),
                              json_build_object('part', add_effect.part, 'effect', add_effect.effect)::text), true)
$$;
comment on function internal.add_effect is
  'Tells the app what an event moved: part is streaks, xp, achievements, ..., effect one entry of it with app_user_id. An event that changes nothing has no entry.';

create or replace function internal.effects_json(app_user_id uuid default null) returns json
language sql stable as $$
  -- a later effect on the same thing replaces the earlier: the last word of the transaction is shown
  with noted as (
    select line.n, line.text::jsonb ->> 'part' as part, line.text::jsonb -> 'effect' as effect
      from regexp_split_to_table(nullif(current_setting('app.effects', true), ''), e'\n') with ordinality as line (text, n)
  ), latest as (
    select distinct on (n.part, n.effect -> 'app_user_id', coalesce(n.effect ->> 'key', n.effect ->> 'id', n.effect ->> 'code'))
           n.n, n.part, n.effect
      from noted n
     where effects_json.app_user_id is null or n.effect ->> 'app_user_id' = effects_json.app_user_id::text
     order by n.part, n.effect -> 'app_user_id', coalesce(n.effect ->> 'key', n.effect ->> 'id', n.effect ->> 'code'), n.n desc
  ), parts as (
    select l.part,
           json_agg(case when effects_json.app_user_id is null then l.effect else l.effect - 'app_user_id' end order by l.n) as entries,
           -- xp and league are single objects, the other parts lists
           (array_agg(l.effect - 'app_user_id' order by l.n desc))[1] as single
      from latest l
     group by l.part
  )
  select coalesce(json_object_agg(p.part, case when p.part in ('xp', 'league') then p.single::json else p.entries end), '{}')
    from parts p
$$;
comment on function internal.effects_json is
  'The effects noted in this transaction: of one user without app_user_id in the entries, or of all with it.';

create or replace function internal.json_depth(value jsonb, at_most int) returns boolean
language plpgsql immutable parallel safe as $$
begin
  if jsonb_typeof(json_depth.value) = 'object' then
    return json_depth.at_most > 0
       and not exists (select from jsonb_each(json_depth.value) e
                        where jsonb_typeof(e.value) in ('object', 'array') and not internal.json_depth(e.value, json_depth.at_most - 1));
  elsif jsonb_typeof(json_depth.value) = 'array' then
    return json_depth.at_most > 0
       and not exists (select from jsonb_array_elements(json_depth.value) e (value)
                        where jsonb_typeof(e.value) in ('object', 'array') and not internal.json_depth(e.value, json_depth.at_most - 1));
  end if;
  return true;
end $$;
comment on function internal.json_depth is 'Whether objects and arrays nest no deeper than at_most; the outermost counts 1.';

create or replace function internal.event_json(event app.engagement_events) returns json
language sql stable as $$
  select json_build_object(
    'id', (event_json.event).id, 'app_user_id', (event_json.event).app_user_id, 'event_name', (event_json.event).event_name,
    'properties', (event_json.event).properties, 'occurred_at', internal.iso((event_json.event).occurred_at),
    'source', (event_json.event).source, 'session_id', (event_json.event).session_id)
$$;
comment on function internal.event_json is 'An event as every answer shows it.';

create or replace function internal.emit(app_user_id uuid, event_name text, properties jsonb default '{}') returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
  values (internal.new_id(), emit.app_user_id, emit.event_name, emit.properties, internal.now(), internal.now(), 'system');
end $$;
comment on function internal.emit is
  'A system event, svc.<area>.<verb>, in the transaction of its cause: it moves what any event moves. Granted to nobody.';

create or replace function internal.hooks_may_run() returns boolean
language sql stable as $$
  -- an event may cause events that cause events: five rounds, then the rest is recorded and moves nothing
  select pg_trigger_depth() <= 5
$$;
comment on function internal.hooks_may_run is 'What a hook of the pipeline asks first, so that a loop of causes ends.';

create or replace function internal.tg_engagement_events__10_counters() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.user_event_counters as counter (app_user_id, event_name, day, count)
  select i.app_user_id, i.event_name, (i.occurred_at at time zone 'UTC')::date, count(*)
    from inserted i
   group by 1, 2, 3
   order by 1, 2, 3
  on conflict (app_user_id, event_name, day) do update set count = counter.count + excluded.count;
  return null;
end $$;

create or replace trigger tg_engagement_events__10_counters
  after insert on app.engagement_events
  referencing new table as inserted
  for each statement execute function internal.tg_engagement_events__10_counters();

create or replace function internal.judge_event(index int, item json, historical boolean) returns internal.judged_event
language plpgsql stable security definer set search_path = '' as $$
declare
  e internal.judged_event;
  named json := coalesce(item -> 'event_name', item -> 'event', item -> 'name');
  is_server constant boolean := internal.caller() in ('server_key', 'server_key_user', 'developer');
begin
  e.index := judge_event.index;
  e.clock_adjusted := false;
  e.problem := 'VALIDATION_ERROR';

  if json_typeof(item) <> 'object' then
    e.field := 'events'; e.reason := 'must be an object'; return e;
  end if;
  e.is_client_id := json_typeof(item -> 'id') is not null and json_typeof(item -> 'id') <> 'null';
  e.id := case when e.is_client_id then internal.as_uuid(item ->> 'id') else internal.new_id() end;
  if e.id is null then
    e.field := 'id'; e.reason := 'must be a uuid'; return e;
  end if;
  e.event_name := named #>> '{}';
  if named is null or json_typeof(named) <> 'string' then
    e.field := 'event_name'; e.reason := 'is required and must be a string'; return e;
  end if;
  if char_length(e.event_name) not between 1 and 255 then
    e.field := 'event_name'; e.reason := 'must have 1 to 255 characters'; return e;
  end if;
  if e.event_name ~ '^\s|\s$' then
    e.field := 'event_name'; e.reason := 'must not begin or end with white space'; return e;
  end if;

  e.properties := coalesce((item -> 'properties')::jsonb, '{}');
  if jsonb_typeof(e.properties) = 'null' then
    e.properties := '{}';
  end if;
  if jsonb_typeof(e.properties) <> 'object' then
    e.field := 'properties'; e.reason := 'must be an object'; return e;
  end if;
  if octet_length((item -> 'properties')::text) > 32768 then
    e.field := 'properties'; e.reason := 'must have at most 32 KB'; return e;
  end if;
  if not internal.json_depth(e.properties, 8) then
    e.field := 'properties'; e.reason := 'must nest at most 8 deep'; return e;
  end if;

  if json_typeof(item -> 'session_id') not in ('null') then
    e.session_id := internal.as_uuid(item ->> 'session_id');
    if e.session_id is null then
      e.field := 'session_id'; e.reason := 'must be a uuid'; return e;
    end if;
  end if;

  e.occurred_at := internal.now();
  if json_typeof(item -> 'occurred_at') not in ('null') then
    e.occurred_at := internal.as_time(item -> 'occurred_at');
    if e.occurred_at is null then
      e.field := 'occurred_at'; e.reason := 'must be an ISO 8601 time'; return e;
    end if;
  end if;

  e.app_user_id := internal.user_id();
  if json_typeof(item -> 'app_user_id') not in ('null') and is_server then
    e.app_user_id := internal.as_uuid(item ->> 'app_user_id');
    if e.app_user_id is null then
      e.field := 'app_user_id'; e.reason := 'must be a uuid'; return e;
    end if;
  end if;
  if e.app_user_id is null then
    e.field := 'app_user_id'; e.reason := 'a server key must name a user'; e.problem := 'INVALID_INPUT'; return e;
  end if;

  if e.event_name like 'svc.%' then
    e.field := 'event_name'; e.reason := 'names that begin with svc. are ours'; e.problem := 'RESERVED_EVENT_NAME'; return e;
  end if;
  if e.occurred_at > internal.now() + interval '5 minutes' then
    e.occurred_at := internal.now();
    e.clock_adjusted := true;
  elsif e.occurred_at < internal.now() - interval '30 days' and not (is_server and judge_event.historical) then
    e.field := 'occurred_at'; e.reason := 'is more than 30 days ago'; e.problem := 'EVENT_TOO_OLD'; return e;
  end if;
  e.problem := null;
  return e;
end $$;
comment on function internal.judge_event is 'One item of POST events against the rules of form and time. Supplement C7.';

create or replace function internal.as_time(value json) returns timestamptz
language plpgsql stable set search_path = '' as $$
begin
  if json_typeof(as_time.value) <> 'string'
     or as_time.value #>> '{}' !~ '^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|z|[+-]\d{2}:?\d{2})?)?$' then
    return null;
  end if;
  -- a time without a zone is UTC
  return (as_time.value #>> '{}')::timestamptz;
exception when data_exception then
  return null;
end $$;
comment on function internal.as_time is 'The time that a JSON string spells in ISO 8601, UTC when it names no zone; null for anything else.';

create or replace function internal.ingest_events(items json, historical boolean, source text) returns setof internal.judged_event
language plpgsql volatile security definer set search_path = '' rows 500 as $$
declare
  judged internal.judged_event[];
  duplicates uuid[];
begin
  if internal.caller() not in ('user', 'server_key', 'server_key_user', 'developer') then
    raise exception 'events come from users, server keys and developers, not from %', internal.caller();
  end if;
  perform internal.ensure_event_partition(internal.now());

  select array_agg(internal.judge_event(i.n::int - 1, i.item, ingest_events.historical) order by i.n)
    into judged
    from json_array_elements(ingest_events.items) with ordinality as i (item, n);

  -- users that are not there, and ids that came before: once for the whole batch
  select array_agg(case when e.problem is null and u.id is null
                        then (e.index, e.id, e.is_client_id, e.app_user_id, e.event_name, e.properties, e.occurred_at, e.session_id,
                              e.clock_adjusted, 'USER_NOT_FOUND', 'app_user_id', 'there is no such user')::internal.judged_event
                        else e end order by e.index)
    into judged
    from unnest(judged) e
    left join app.users u on u.id = e.app_user_id;

  -- sorted, as everything that touches rows which two batches may share
  with remembered as (
    insert into app.event_ids (id, app_user_id, received_at)
    select distinct on (e.id) e.id, e.app_user_id, internal.now()
      from unnest(judged) e
     where e.problem is null and e.is_client_id
     order by e.id, e.index
    on conflict (id) do nothing
    returning id
  )
  select array_agg(e.id) into duplicates
    from unnest(judged) e
   where e.problem is null and e.is_client_id and e.id not in (select r.id from remembered r);

  select array_agg(
           case when e.problem is not null then e
                when e.id = any (duplicates) or exists (
                  select from unnest(judged) earlier
                   where earlier.problem is null and earlier.is_client_id and e.is_client_id
                     and earlier.id = e.id and earlier.index < e.index)
                then (e.index, e.id, e.is_client_id, e.app_user_id, e.event_name, e.properties, e.occurred_at, e.session_id,
                      e.clock_adjusted,
                      case when e.app_user_id = coalesce(known.app_user_id, e.app_user_id) then 'DUPLICATE' else 'EVENT_ID_CONFLICT' end,
                      'id', 'this id came before')::internal.judged_event
                else e end order by e.index)
    into judged
    from unnest(judged) e
    left join app.event_ids known on known.id = e.id and e.is_client_id;

  insert into app.engagement_events
    (id, app_user_id, event_name, properties, occurred_at, received_at, source, session_id, is_historical, clock_adjusted)
  select e.id, e.app_user_id, e.event_name, e.properties, e.occurred_at, internal.now(), ingest_events.source, e.session_id,
         ingest_events.historical, e.clock_adjusted
    from unnest(judged) e
   where e.problem is null
   order by e.app_user_id, e.occurred_at, e.index;

  update app.users u
     set last_seen_at = internal.now()
   where u.id in (select e.app_user_id from unnest(judged) e where e.problem is null)
     and u.last_seen_at < internal.now() - interval '1 minute';

  return query select * from unnest(judged) e order by e.index;
end $$;
comment on function internal.ingest_events is
  'Stores the good items of a request, once per client-chosen id, and answers every item judged: problem is null (accepted), DUPLICATE, or the
   code of its rejection. The pipeline runs in the triggers of the one insert. Locks ids and per-user rows in sorted order.';

create or replace function api.events_post(body json, idempotency_key text default null, body_hash text default null)
returns api.reply
language plpgsql volatile as $$
declare
  is_server constant boolean := internal.caller() in ('server_key', 'server_key_user', 'developer');
  is_batch constant boolean := json_typeof(events_post.body -> 'events') is not null;
  most constant int := case when is_server then 1000 else 500 end;
  route constant text := 'POST events';
  stored api.reply;
  answer api.reply;
begin
  if is_batch and json_typeof(events_post.body -> 'events') <> 'array' then
    perform internal.invalid('events', 'must be a list');
  end if;
  if is_batch and json_array_length(events_post.body -> 'events') = 0 then
    perform internal.invalid('events', 'must have 1 to ' || most || ' items');
  end if;
  if is_batch and json_array_length(events_post.body -> 'events') > most then
    perform internal.fail(400, 'BATCH_TOO_LARGE', 'A batch holds at most ' || most || ' events.',
                          json_build_object('field', 'events', 'reason', 'must have 1 to ' || most || ' items'));
  end if;

  stored := internal.idempotency_begin(route, events_post.idempotency_key, events_post.body_hash);
  if stored is not null then
    return stored;
  end if;
  answer := case when is_batch then internal.events_batch(events_post.body) else internal.events_single(events_post.body) end;
  perform internal.idempotency_end(route, events_post.idempotency_key, answer);
  return answer;
end $$;
comment on function api.events_post is
  'Records one event, 201 {event, effects}, or a batch, 201 {accepted, duplicates, rejected, results, effects?}; 200 when all came before.
   Refuses: 400 VALIDATION_ERROR, BATCH_TOO_LARGE, EVENT_TOO_OLD, RESERVED_EVENT_NAME, INVALID_INPUT (no user named), 404 USER_NOT_FOUND,
   409 EVENT_ID_CONFLICT, IDEMPOTENCY_CONFLICT. Supplement C7.';

create or replace function internal.event_source() returns text
language sql stable as $$
  select case when internal.caller() = 'user' then 'client' else 'server' end
$$;
comment on function internal.event_source is 'client for events that a device sends for itself, server for those of a server key or a developer.';

create or replace function internal.is_historical(body json) returns boolean
language sql stable as $$
  select internal.caller() <> 'user' and coalesce(is_historical.body ->> 'historical', 'false') = 'true'
$$;
comment on function internal.is_historical is 'Whether a request may import events of any age: server keys and developers that say so.';

create or replace function internal.events_single(body json) returns api.reply
language plpgsql volatile as $$
declare
  judged internal.judged_event;
  stored app.engagement_events;
begin
  select j.* into judged
    from internal.ingest_events(json_build_array(events_single.body), internal.is_historical(events_single.body), internal.event_source()) j;
  if judged.problem is not null and judged.problem <> 'DUPLICATE' then
    perform internal.fail(
      case judged.problem when 'USER_NOT_FOUND' then 404 when 'EVENT_ID_CONFLICT' then 409 else 400 end,
      judged.problem, judged.field || ': ' || judged.reason || '.',
      json_build_object('field', judged.field, 'reason', judged.reason));
  end if;
  select e.* into stored from internal.event_by_id(judged.id) e;
  return internal.reply(
    case when judged.problem is null then 201 else 200 end,
    case when judged.clock_adjusted
         then json_build_object('event', internal.event_json(stored), 'clock_adjusted', true, 'effects', internal.effects_json(judged.app_user_id))
         else json_build_object('event', internal.event_json(stored), 'effects', internal.effects_json(judged.app_user_id)) end);
end $$;
comment on function internal.events_single is 'One event and what it moved. A known id of the same user answers the stored event with 200 and moves nothing.';

create or replace function internal.event_by_id(id uuid) returns setof app.engagement_events
language sql stable security definer set search_path = '' rows 1 as $$
  select e.*
    from app.engagement_events e
   where e.id = event_by_id.id
     and (internal.caller() in ('server_key', 'developer') or e.app_user_id = internal.user_id())
$$;
comment on function internal.event_by_id is 'An event that the caller may see: one''s own, or any for server keys and developers.';

create or replace function internal.events_batch(body json) returns api.reply
language plpgsql volatile as $$
declare
  results json;
  accepted int;
  duplicates int;
  rejected int;
  users int;
  only_user uuid;
  problem text;
begin
  select json_agg(json_strip_nulls(json_build_object(
           'index', j.index, 'id', j.id,
           'status', case when j.problem is null then 'accepted' when j.problem = 'DUPLICATE' then 'duplicate' else 'rejected' end,
           'clock_adjusted', case when j.problem is null and j.clock_adjusted then true end,
           'code', case when j.problem <> 'DUPLICATE' then j.problem end,
           'message', case when j.problem <> 'DUPLICATE' then j.field || ': ' || j.reason || '.' end)) order by j.index),
         count(*) filter (where j.problem is null), count(*) filter (where j.problem = 'DUPLICATE'),
         count(*) filter (where j.problem <> 'DUPLICATE'),
         count(distinct j.app_user_id) filter (where j.problem is null),
         (array_agg(j.app_user_id) filter (where j.problem is null))[1],
         case when bool_and(j.problem = 'INVALID_INPUT') then 'INVALID_INPUT' else 'VALIDATION_ERROR' end
    into results, accepted, duplicates, rejected, users, only_user, problem
    from internal.ingest_events(events_batch.body -> 'events', internal.is_historical(events_batch.body), internal.event_source()) j;

  if accepted + duplicates = 0 then
    perform internal.fail(400, problem, 'None of the events can be stored.',
                          json_build_object('field', 'events', 'reason', 'every item was rejected', 'results', results));
  end if;
  return internal.reply(
    case when accepted > 0 then 201 else 200 end,
    case when events_batch.body ->> 'include_effects' = 'true'
         then json_build_object('accepted', accepted, 'duplicates', duplicates, 'rejected', rejected, 'results', results,
                                'effects', internal.effects_json(case when users = 1 then only_user end))
         else json_build_object('accepted', accepted, 'duplicates', duplicates, 'rejected', rejected, 'results', results) end);
end $$;
comment on function internal.events_batch is
  'Up to 500 events (1000 with a server key): good items are stored, the others say why not. include_effects sums what they moved; over several users each entry names its app_user_id.';
