-- POST events: one event or a batch, with or without an Idempotency-Key, and the response.

create or replace function api.events_post(body json, idempotency_key text default null, body_hash text default null)
returns api.reply
language plpgsql volatile as $$
declare
  items json;
  most constant int := case when internal.caller() = 'user' then 500 else 1000 end;
  route constant text := 'POST events';
  stored api.reply;
  answer api.reply;
begin
  -- the HTTP server has validated the JSON; a body passed in SQL, or a number that is too long, must not break the
  -- casts below
  begin
    perform events_post.body::jsonb;
  exception when data_exception or program_limit_exceeded then
    perform internal.invalid('', 'holds a character or a number that cannot be stored, or nests too deeply');
  end;
  if json_typeof(events_post.body) is distinct from 'object' then
    perform internal.invalid('', 'must be a JSON object');
  end if;
  if json_typeof(events_post.body -> 'historical') not in ('boolean', 'null') then
    perform internal.invalid('historical', 'must be true or false');
  end if;
  items := events_post.body -> 'events';
  if items is not null then
    if json_typeof(items) <> 'array' then
      perform internal.invalid('events', 'must be a list');
    end if;
    if json_typeof(events_post.body -> 'include_effects') not in ('boolean', 'null') then
      perform internal.invalid('include_effects', 'must be true or false');
    end if;
    if json_array_length(items) = 0 then
      perform internal.invalid('events', 'must have 1 to ' || most || ' items');
    end if;
    if json_array_length(items) > most then
      perform internal.fail(400, 'BATCH_TOO_LARGE', 'A batch holds at most ' || most || ' events.',
                            json_build_object('field', 'events', 'reason', 'must have 1 to ' || most || ' items'));
    end if;
  end if;

  if events_post.idempotency_key is not null then
    stored := internal.idempotency_begin(route, events_post.idempotency_key, events_post.body_hash);
    if stored is not null then
      return stored;
    end if;
  end if;
  answer := case when items is null then internal.events_single(events_post.body)
                 else internal.events_batch(events_post.body, items) end;
  if internal.caller() = 'developer' and answer.status = 201 then
    perform internal.audit_act('events.create', 'events', null,
                               json_build_object('events', json_build_array(null,
                                        coalesce(json_array_length(items), 1))), 201);
  end if;
  if events_post.idempotency_key is not null then
    perform internal.idempotency_end(route, events_post.idempotency_key, answer);
  end if;
  return answer;
end $$;
comment on function api.events_post is
  'Records one event, 201 {event, effects}, or a batch, 201 {accepted, duplicates, rejected, results, effects?}; 200
   when all came before. Refuses: 400 VALIDATION_ERROR, BATCH_TOO_LARGE, EVENT_TOO_OLD, RESERVED_EVENT_NAME,
   EVENT_BLOCKED, INVALID_INPUT (no user named), 404 USER_NOT_FOUND, 409 EVENT_ID_CONFLICT, IDEMPOTENCY_CONFLICT.';

create or replace function internal.event_source() returns text
language sql stable as $$
  select case when internal.caller() = 'user' then 'client' else 'server' end
$$;
comment on function internal.event_source is
  'client for events that a device sends for itself, server for those of a server key or a developer.';

create or replace function internal.is_historical(body json) returns boolean
language sql stable as $$
  select internal.caller() <> 'user' and coalesce(is_historical.body ->> 'historical', 'false') = 'true'
$$;
comment on function internal.is_historical is
  'Whether a request may import events of any age: server keys and developers that say so.';

create or replace function internal.events_single(body json) returns api.reply
language plpgsql volatile as $$
declare
  source constant text := internal.event_source();
  ingested record;
  validated internal.validated_event;
  problem internal.event_problem;
  stored app.engagement_events;
begin
  perform internal.collect_effects();
  ingested := internal.ingest_event(events_single.body, internal.is_historical(events_single.body), source);
  validated := ingested.validated;
  problem := validated.problem;
  if problem.code <> 'DUPLICATE' then
    perform internal.fail(
      case problem.code when 'USER_NOT_FOUND' then 404 when 'EVENT_ID_CONFLICT' then 409 else 400 end,
      problem.code, problem.field || ': ' || problem.reason || '.',
      json_build_object('field', problem.field, 'reason', problem.reason));
  end if;
  if problem.code is not null then
    select e.* into stored from internal.event_by_id(validated.id, validated.app_user_id) e;
    if stored.id is not null then
      return internal.reply(200, json_build_object('event', internal.event_json(stored),
                                                   'effects', json_build_object()));
    end if;
    -- the id is known, but the log does not contain the event: it was deleted, or excluded by its sample_rate
  end if;
  return internal.reply(case when problem.code is null then 201 else 200 end,
                        internal.event_answer(validated, ingested.violates, source));
end $$;
comment on function internal.events_single is
  'Stores one event and returns it with its effects. For a known id of the same user, returns the stored event with 200
   and without effects; when the log no longer contains it, the event as sent.';

create or replace function internal.event_answer(validated internal.validated_event, violates boolean, source text)
returns json
language plpgsql stable as $$
declare
  v constant internal.validated_event := event_answer.validated;
  stored app.engagement_events;
begin
  stored.id := v.id;
  stored.app_user_id := v.app_user_id;
  stored.event_name := v.event_name;
  stored.properties := v.properties;
  stored.occurred_at := v.occurred_at;
  stored.source := event_answer.source;
  stored.session_id := v.session_id;
  if (v.problem).code is not null then
    return json_build_object('event', internal.event_json(stored), 'effects', json_build_object());
  elsif not v.clock_adjusted and not event_answer.violates then
    return json_build_object('event', internal.event_json(stored), 'effects', internal.effects_json(v.app_user_id));
  end if;
  return internal.json_merge(
    json_build_object('event', internal.event_json(stored)),
    internal.json_merge(
      json_strip_nulls(json_build_object('clock_adjusted', case when v.clock_adjusted then true end,
                                         'schema_violation', case when event_answer.violates then true end)),
      json_build_object('effects', internal.effects_json(v.app_user_id))));
end $$;
comment on function internal.event_answer is
  'What POST events answers for one event: {event, clock_adjusted?, schema_violation?, effects}; without effects when
   its id was known.';

create or replace function internal.events_together(users uuid[], bodies json) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  source constant text := internal.event_source();
  validated internal.validated_event[];
  free uuid[];
  ingested record;
begin
  perform internal.events_caller_check();
  -- nobody waits for what another transaction does with the row of somebody else
  free := array(select u.id from app.users u
                 where u.id = any (events_together.users)
                 order by u.id
                   for no key update skip locked);
  validated := array(
    select v
      from unnest(internal.validate_events(events_together.bodies, false, events_together.users)) v
      join json_array_elements(events_together.bodies) with ordinality b (body, n) on b.n = v.index + 1
     where v.problem is null and v.app_user_id = any (free)
       and v.index + 1 = array_position(events_together.users, v.app_user_id)
       -- a batch, and an import of history, go their own way
       and b.body -> 'events' is null and b.body -> 'historical' is null
     order by v.index);
  if validated = '{}' then
    return '[]';
  end if;
  perform internal.collect_effects();
  ingested := internal.ingest_validated(validated, false, source);
  return (
    select json_agg(json_build_object(
             'index', v.index,
             'answer', internal.event_answer(v, coalesce(v.id = any (ingested.violating), false), source)::text))
      from unnest(ingested.validated) v
     where v.problem is null);
end $$;
comment on function internal.events_together is
  'api.events_post_together without its frame.';

create or replace function api.events_post_together(users uuid[], bodies json) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.events_together(events_post_together.users, events_post_together.bodies))
$$;
comment on function api.events_post_together is
  'Records single events of several users at once, by the bodies of POST events that came with credentials of one kind,
   one for each user: [{index, answer}], answer being the text of what 201 has as data. Events that are not in it
   changed nothing: a refusal, a known id, a batch, history, or a user whose row somebody holds. Locks the users, then
   ids. For the server, which has checked the credentials.';

create or replace function internal.event_by_id(id uuid, app_user_id uuid) returns setof app.engagement_events
language sql stable security definer set search_path = '' rows 1 as $$
  select e.*
    from app.engagement_events e
   where e.id = event_by_id.id
     -- names the one partition that has it
     and e.received_at = (select i.received_at from app.event_ids i where i.id = event_by_id.id)
     and e.app_user_id = event_by_id.app_user_id
     and (internal.caller() in ('server_key', 'server_key_user', 'developer') or e.app_user_id = internal.user_id())
$$;
comment on function internal.event_by_id is
  'A user''s event by the id that its sender chose, while ids are remembered: one''s own, or anybody''s for server keys
   and developers.';

create or replace function internal.events_batch(body json, items json) returns api.reply
language plpgsql volatile as $$
declare
  ingested record;
  validated internal.validated_event[];
  results json;
  accepted int;
  duplicates int;
  users int;
  only_user uuid;
  problem text;
begin
  if events_batch.body ->> 'include_effects' = 'true' then
    perform internal.collect_effects();
  end if;
  ingested := internal.ingest_events(events_batch.items, internal.is_historical(events_batch.body),
                                     internal.event_source());
  validated := ingested.validated;
  select json_agg(case
           when j.problem is null and not j.clock_adjusted and ingested.violating is null
             then json_build_object('index', j.index, 'id', j.id, 'status', 'accepted')
           when j.problem is null then json_strip_nulls(json_build_object(
             'index', j.index, 'id', j.id, 'status', 'accepted',
               'clock_adjusted', case when j.clock_adjusted then true end,
             'schema_violation', case when j.id = any (ingested.violating) then true end))
           when (j.problem).code = 'DUPLICATE' then json_build_object('index', j.index, 'id', j.id,
                                                                      'status', 'duplicate')
           else json_strip_nulls(json_build_object(
             'index', j.index, 'id', case when j.is_client_id then j.id end, 'status', 'rejected',
               'code', (j.problem).code,
             'message', (j.problem).field || ': ' || (j.problem).reason || '.'))
         end order by j.index),
         count(*) filter (where j.problem is null), count(*) filter (where (j.problem).code = 'DUPLICATE'),
         count(distinct j.app_user_id) filter (where j.problem is null),
         (array_agg(j.app_user_id) filter (where j.problem is null))[1],
         case when bool_and((j.problem).code = 'INVALID_INPUT') then 'INVALID_INPUT' else 'VALIDATION_ERROR' end
    into results, accepted, duplicates, users, only_user, problem
    from unnest(validated) j;

  if accepted + duplicates = 0 then
    perform internal.fail(400, problem, 'None of the events can be stored.',
                          json_build_object('field', 'events', 'reason', 'every item was rejected',
                                            'results', results));
  end if;
  return internal.reply(
    case when accepted > 0 then 201 else 200 end,
    case when events_batch.body ->> 'include_effects' = 'true'
         then json_build_object('accepted', accepted, 'duplicates', duplicates,
                                'rejected', cardinality(validated) - accepted - duplicates,
                                'results', results, 'effects', internal.effects_json(case
                                        when users = 1 then only_user end))
         else json_build_object('accepted', accepted, 'duplicates', duplicates,
                                'rejected', cardinality(validated) - accepted - duplicates,
                                'results', results) end);
end $$;
comment on function internal.events_batch is
  'Stores up to 500 events (1000 with a server key): valid items are stored, each other item has its reason in the
   results. include_effects adds up their effects; with several users each entry contains its app_user_id.';
