-- Ingestion, from JSON to rows: the form and time of each item of a request are validated, then one statement stores
-- the valid items.

create or replace function internal.json_depth(value jsonb, at_most int) returns boolean
language plpgsql immutable parallel safe as $$
begin
  if jsonb_typeof(json_depth.value) = 'object' then
    return json_depth.at_most > 0
       and not exists (select from jsonb_each(json_depth.value) e
                        where jsonb_typeof(e.value) in ('object', 'array')
                          and not internal.json_depth(e.value, json_depth.at_most - 1));
  elsif jsonb_typeof(json_depth.value) = 'array' then
    return json_depth.at_most > 0
       and not exists (select from jsonb_array_elements(json_depth.value) e (value)
                        where jsonb_typeof(e.value) in ('object', 'array')
                          and not internal.json_depth(e.value, json_depth.at_most - 1));
  end if;
  return true;
end $$;
comment on function internal.json_depth is
  'Whether objects and arrays nest no deeper than at_most; the outermost counts 1.';

create or replace function internal.event_verdict(is_object boolean, is_client_id boolean, id uuid, name_type text,
                                                  event_name text, properties_type text, properties text,
                                                  session_text text, session_id uuid, occurred_at timestamptz,
                                                  now timestamptz, app_user_id uuid, is_user_named boolean,
                                                  is_server boolean, historical boolean)
returns internal.event_problem
language sql stable as $$
  select case
    when not event_verdict.is_object then ('VALIDATION_ERROR', 'events', 'must be an object')::internal.event_problem
    when event_verdict.is_client_id and event_verdict.id is null
      then ('VALIDATION_ERROR', 'id', 'must be a uuid')::internal.event_problem
    when event_verdict.name_type is distinct from 'string'
      then ('VALIDATION_ERROR', 'event_name', 'is required and must be a string')::internal.event_problem
    when char_length(event_verdict.event_name) not between 1 and 255
      then ('VALIDATION_ERROR', 'event_name', 'must have 1 to 255 characters')::internal.event_problem
    when event_verdict.event_name ~ '^\s|\s$'
      then ('VALIDATION_ERROR', 'event_name', 'must not begin or end with white space')::internal.event_problem
    when event_verdict.properties_type <> 'object'
      then ('VALIDATION_ERROR', 'properties', 'must be an object')::internal.event_problem
    when internal.json_size(event_verdict.properties) > 32768
      then ('VALIDATION_ERROR', 'properties', 'must have at most 32 KB')::internal.event_problem
    -- what has few brackets cannot nest deeply
    when length(event_verdict.properties) - length(translate(event_verdict.properties, '[{', '')) > 8
         and not internal.json_depth(event_verdict.properties::jsonb, 8)
      then ('VALIDATION_ERROR', 'properties', 'must nest at most 8 deep')::internal.event_problem
    when event_verdict.session_text is not null and event_verdict.session_id is null
      then ('VALIDATION_ERROR', 'session_id', 'must be a uuid')::internal.event_problem
    when event_verdict.occurred_at is null
      then ('VALIDATION_ERROR', 'occurred_at', 'must be an ISO 8601 time')::internal.event_problem
    -- where a zone is behind UTC, the first dates of our era are before it
    when event_verdict.occurred_at < '0002-01-01T00:00:00Z'
      then ('VALIDATION_ERROR', 'occurred_at', 'must be in the year 2 or later')::internal.event_problem
    when event_verdict.app_user_id is null and event_verdict.is_user_named
      then ('VALIDATION_ERROR', 'app_user_id', 'must be a uuid')::internal.event_problem
    when event_verdict.app_user_id is null and internal.caller() = 'developer'
      then ('VALIDATION_ERROR', 'app_user_id', 'is required')::internal.event_problem
    when event_verdict.app_user_id is null then ('INVALID_INPUT', 'app_user_id',
                                                 'a server key must name a user')::internal.event_problem
    when event_verdict.event_name like 'svc.%' then ('RESERVED_EVENT_NAME', 'event_name',
                                                     'names that begin with svc. are ours')::internal.event_problem
    when event_verdict.occurred_at < event_verdict.now - interval '30 days'
      and not (event_verdict.is_server and event_verdict.historical)
      then ('EVENT_TOO_OLD', 'occurred_at', 'is more than 30 days ago')::internal.event_problem
  end
$$;
comment on function internal.event_verdict is
  'The first rule of form or time that an item of POST events violates, or null. Single items and batches share it:
   Postgres inlines it into the calling statement.';

create or replace function internal.validate_events(items json, historical boolean, users uuid[] default null)
returns internal.validated_event[]
language sql volatile as $$
  with item as materialized (
    select i.n::int - 1 as index, json_typeof(i.item) = 'object' as is_object, f.id, f.properties, f.occurred_at,
           f.session_id, f.app_user_id,
           coalesce(f.event_name, f.event, f.name) as event_name
      from json_array_elements(validate_events.items) with ordinality as i (item, n)
     cross join lateral json_to_record(case when json_typeof(i.item) = 'object' then i.item else '{}' end)
             as f (id json, event_name json, event json, name json, properties json, occurred_at json, session_id json,
                   app_user_id json)
  ), claims as materialized (
    select internal.user_id() as user_id, internal.caller() <> 'user' as is_server, internal.now() as now
  ), field as materialized (
    select i.index, i.is_object, i.id is not null as is_client_id, i.id #>> '{}' as id,
           json_typeof(i.event_name) as name_type,
           i.event_name #>> '{}' as event_name, json_typeof(i.properties) as properties_type,
           i.properties::text as properties,
           i.occurred_at is null as is_now,
           case when json_typeof(i.occurred_at) = 'string' then i.occurred_at #>> '{}' end as occurred_at,
           i.session_id #>> '{}' as session_id,
           -- of anybody but a server the credential says who it was
           case when c.is_server then i.app_user_id #>> '{}' end as app_user_id
      from item i
     cross join claims c
  ), value as materialized (
    select f.index, f.is_object, f.is_client_id, internal.as_uuid(f.id) as id, f.name_type, f.event_name,
           f.properties_type, f.properties,
           case when f.is_now then c.now else internal.as_time(f.occurred_at) end as occurred_at,
           f.session_id as session_text, internal.as_uuid(f.session_id) as session_id,
           f.app_user_id is not null as is_user_named,
           case when f.app_user_id is not null then internal.as_uuid(f.app_user_id)
                when validate_events.users is null then c.user_id
                else validate_events.users[f.index + 1] end as app_user_id,
           c.is_server, c.now
      from field f
     cross join claims c
  )
  select array_agg((v.index, case when v.is_client_id then v.id else internal.new_id() end, v.is_client_id,
                    v.app_user_id, v.event_name,
                    coalesce(v.properties, '{}')::jsonb,
                    case when v.occurred_at > v.now + interval '5 minutes' then v.now else v.occurred_at end,
                    v.session_id, coalesce(v.occurred_at > v.now + interval '5 minutes', false),
                    internal.event_verdict(v.is_object, v.is_client_id, v.id, v.name_type, v.event_name,
                                           v.properties_type, v.properties, v.session_text,
                                           v.session_id, v.occurred_at, v.now, v.app_user_id, v.is_user_named,
                                           v.is_server,
                                           validate_events.historical))::internal.validated_event order by v.index)
    from value v
$$;
comment on function internal.validate_events is
  'The items of POST events against the rules of form and time, in order, with ids where none were sent. users are whose
   credentials they came with, where these are several.';

create or replace function internal.events_caller_check() returns void
language plpgsql stable as $$
begin
  -- a worker records what providers report in webhooks
  if internal.caller() not in ('user', 'server_key', 'server_key_user', 'developer', 'worker') then
    raise exception 'events come from users, server keys, developers and workers, not from %', internal.caller();
  end if;
end $$;
comment on function internal.events_caller_check is 'Raises for a caller that posts no events.';

create or replace function internal.ingest_event(item json, historical boolean, source text,
                                                 out validated internal.validated_event, out violates boolean)
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  at constant timestamptz := internal.now();
  is_server constant boolean := internal.caller() <> 'user';
  sent record;
  ingested record;
  seen_at timestamptz;
  owner uuid;
begin
  perform internal.events_caller_check();
  if exists (select from app.event_definitions) or internal.runs_sets() then
    ingested := internal.ingest_events(json_build_array(ingest_event.item), ingest_event.historical,
                                       ingest_event.source);
    validated := ingested.validated[1];
    violates := ingested.violating is not null;
    return;
  end if;
  violates := false;
  -- parsed once
  select f.id is not null as is_client_id, internal.as_uuid(f.id #>> '{}') as id, json_typeof(n.name) as name_type,
         n.name #>> '{}' as event_name,
         json_typeof(f.properties) as properties_type, f.properties::text as properties,
         f.session_id #>> '{}' as session_text,
         case when f.occurred_at is null then at
              when json_typeof(f.occurred_at) = 'string' then internal.as_time(
                f.occurred_at #>> '{}') end as occurred_at,
         -- of anybody but a server the credential says who it was
         case when is_server then f.app_user_id #>> '{}' end as user_text
    into sent
    from json_to_record(ingest_event.item)
           as f (id json, event_name json, event json, name json, properties json, occurred_at json, session_id json,
                 app_user_id json)
   cross join lateral (select coalesce(f.event_name, f.event, f.name) as name) n;
  validated.index := 0;
  validated.is_client_id := sent.is_client_id;
  validated.id := case when sent.is_client_id then sent.id else internal.new_id() end;
  validated.app_user_id := case when sent.user_text is null then internal.user_id()
                                else internal.as_uuid(sent.user_text) end;
  validated.event_name := sent.event_name;
  validated.session_id := internal.as_uuid(sent.session_text);
  validated.clock_adjusted := coalesce(sent.occurred_at > at + interval '5 minutes', false);
  validated.occurred_at := case when validated.clock_adjusted then at else sent.occurred_at end;
  validated.properties := coalesce(sent.properties, '{}')::jsonb;
  validated.problem := internal.event_verdict(true, sent.is_client_id, sent.id, sent.name_type, sent.event_name,
                                              sent.properties_type, sent.properties,
                                              sent.session_text, validated.session_id, sent.occurred_at, at,
                                              validated.app_user_id,
                                              sent.user_text is not null, is_server, ingest_event.historical);
  if (validated.problem).code is not null then
    return;
  end if;
  -- as internal.lock_users does, of one
  select u.last_seen_at into seen_at from app.users u where u.id = validated.app_user_id for no key update;
  if not found then
    validated.problem := internal.event_problem_of('USER_NOT_FOUND');
    return;
  end if;
  if validated.is_client_id then
    insert into app.event_ids (id, app_user_id, received_at)
      values (validated.id, validated.app_user_id, at) on conflict (id) do nothing;
    if not found then
      select i.app_user_id into owner from app.event_ids i where i.id = validated.id;
      validated.problem := internal.event_problem_of(case when owner = validated.app_user_id then 'DUPLICATE'
                                                          else 'EVENT_ID_CONFLICT' end);
      return;
    end if;
  end if;
  if ingest_event.historical then
    perform set_config('app.is_history', 'true', true);
  end if;
  insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source,
                                     session_id, is_historical, clock_adjusted)
  values (validated.id, validated.app_user_id, validated.event_name, validated.properties, validated.occurred_at, at,
          ingest_event.source,
          validated.session_id, ingest_event.historical, validated.clock_adjusted);
  -- at most once a minute of each user
  if seen_at < at - interval '1 minute' then
    update app.users u set last_seen_at = at where u.id = validated.app_user_id;
  end if;
end $$;
comment on function internal.ingest_event is
  'internal.ingest_events for one item, in a few small statements; calls that function when events have definitions.
   violates: the item violates its schema. Locks the user, then the id.';

create or replace function internal.event_problem_of(code text) returns internal.event_problem
language sql immutable parallel safe as $$
  select case event_problem_of.code
    when 'USER_NOT_FOUND' then (event_problem_of.code, 'app_user_id', 'there is no such user')::internal.event_problem
    -- only the owner of a known id learns that it is a duplicate
    when 'DUPLICATE' then (event_problem_of.code, 'id', 'came before')::internal.event_problem
    when 'EVENT_ID_CONFLICT' then (event_problem_of.code, 'id', 'belongs to another event')::internal.event_problem
    when 'EVENT_BLOCKED' then (event_problem_of.code, 'event_name',
                               'is blocked by its definition')::internal.event_problem
  end
$$;
comment on function internal.event_problem_of is 'The reason why an item with a valid form cannot be stored.';

create or replace function internal.ingest_events(items json, historical boolean, source text,
                                                 out validated internal.validated_event[], out violating uuid[])
language plpgsql volatile security definer set search_path = '' as $$
declare
  stored record;
begin
  perform internal.events_caller_check();
  stored := internal.ingest_validated(internal.validate_events(ingest_events.items, ingest_events.historical),
                                      ingest_events.historical, ingest_events.source);
  validated := stored.validated;
  violating := stored.violating;
end $$;
comment on function internal.ingest_events is
  'Stores the valid items of a request, deduplicated by client-chosen id, and returns the result of every item, in
   order: no problem (accepted), DUPLICATE, or rejected; and the ids of items that violate their schema. The pipeline
   runs in the triggers of the single insert. Locks the users, then ids, each in order.';

create or replace function internal.ingest_validated(inout validated internal.validated_event[], historical boolean,
                                                    source text, out violating uuid[])
language plpgsql volatile as $$
declare
  known uuid[];
  fresh uuid[];
  has_rules boolean;
  unseen uuid[];
begin
  -- most projects have no definitions: one read of an empty table
  has_rules := exists (select from app.event_definitions);
  if has_rules then
    validated := internal.reject_blocked_events(validated);
  end if;

  known := internal.lock_users(array(select e.app_user_id from unnest(validated) e where e.problem is null));
  if exists (select from unnest(validated) e
              where e.problem is null and e.app_user_id <> all (coalesce(known, '{}'))) then
    select array_agg(case when e.problem is null and e.app_user_id <> all (coalesce(known, '{}'))
                          then internal.event_with_problem(e, 'USER_NOT_FOUND') else e end order by e.index)
      into validated
      from unnest(validated) e;
  end if;

  if exists (select from unnest(validated) e where e.problem is null and e.is_client_id) then
    with remembered as (
      insert into app.event_ids (id, app_user_id, received_at)
      select distinct on (e.id) e.id, e.app_user_id, internal.now()
        from unnest(validated) e
       where e.problem is null and e.is_client_id
       order by e.id, e.index
      on conflict (id) do nothing
      returning id
    )
    select array_agg(r.id) into fresh from remembered r;
    if coalesce(cardinality(fresh), 0) < (select count(*) from unnest(validated) e
                                           where e.problem is null and e.is_client_id) then
      validated := internal.mark_duplicate_events(validated, coalesce(fresh, '{}'));
    end if;
  end if;

  if has_rules then
    violating := internal.events_violating(validated);
  end if;
  if ingest_validated.historical then
    perform set_config('app.is_history', 'true', true);
  end if;
  insert into app.engagement_events
    (id, app_user_id, event_name, properties, occurred_at, received_at, source, session_id, is_historical,
     clock_adjusted, schema_violation)
  select e.id, e.app_user_id, e.event_name, e.properties, e.occurred_at, internal.now(), ingest_validated.source,
         e.session_id,
         ingest_validated.historical, e.clock_adjusted, coalesce(e.id = any (violating), false)
    from unnest(validated) e
   where e.problem is null
   order by e.app_user_id, e.occurred_at, e.index;
  if has_rules then
    perform internal.events_delete_unsampled(validated);
  end if;

  unseen := array(
    select u.id
      from app.users u
     where u.id = any (known)
       and u.last_seen_at < internal.now() - interval '1 minute'
       and u.id in (select e.app_user_id from unnest(validated) e where e.problem is null));
  -- at most once a minute of each user: a statement that changes nothing would still prepare its triggers
  if unseen <> '{}' then
    update app.users u set last_seen_at = internal.now() where u.id = any (unseen);
  end if;
end $$;
comment on function internal.ingest_validated is
  'internal.ingest_events for items that internal.validate_events has looked at. Granted to nobody.';

create or replace function internal.event_with_problem(event internal.validated_event, code text)
returns internal.validated_event
language sql immutable as $$
  select ((event_with_problem.event).index, (event_with_problem.event).id, (event_with_problem.event).is_client_id,
          (event_with_problem.event).app_user_id,
          (event_with_problem.event).event_name, (event_with_problem.event).properties,
          (event_with_problem.event).occurred_at, (event_with_problem.event).session_id,
          (event_with_problem.event).clock_adjusted,
          internal.event_problem_of(event_with_problem.code))::internal.validated_event
$$;
comment on function internal.event_with_problem is 'A validated item with another problem.';

create or replace function internal.mark_duplicate_events(validated internal.validated_event[], fresh uuid[])
returns internal.validated_event[]
language sql stable security definer set search_path = '' as $$
  select array_agg(
           case
             when e.problem is not null or not e.is_client_id or e.nth = 1 and f.id is not null then e.event
             when known.app_user_id = e.app_user_id then internal.event_with_problem(e.event, 'DUPLICATE')
             else internal.event_with_problem(e.event, 'EVENT_ID_CONFLICT')
           end order by e.index)
    from (select j as event, j.index, j.id, j.is_client_id, j.problem, j.app_user_id,
                 row_number() over (partition by j.id, j.problem is null order by j.index) as nth
            from unnest(mark_duplicate_events.validated) j) e
    left join unnest(mark_duplicate_events.fresh) f (id) on f.id = e.id
    left join app.event_ids known on known.id = e.id and e.is_client_id
$$;
comment on function internal.mark_duplicate_events is
  'Marks valid items whose client-chosen id is not new, or is repeated in the request: DUPLICATE, or
   EVENT_ID_CONFLICT.';
