-- From JSON to rows: each item of a request is validated by form and time, then the good ones are stored at once.

create or replace function internal.as_time(value text) returns timestamptz
language sql stable parallel safe
return case
  -- the form bounds every field but the day, which its month bounds; so the cast at the end cannot fail
  when as_time.value ~ '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([T ]([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)(\.\d{1,9})?)?([Zz]|[+-](0\d|1[0-5]):?[0-5]\d)?)?$'
   and as_time.value !~ '^0000'
  then case
    when substr(as_time.value, 9, 2) <= '28'
      or substr(as_time.value, 9, 2)::int
         <= extract(day from (substr(as_time.value, 1, 8) || '01')::date + interval '1 month' - interval '1 day')
    -- a time without a zone is UTC, whatever the session's zone
    then (case when length(as_time.value) = 10 then as_time.value || 'T00:00Z'
               when as_time.value ~ '([Zz]|[+-]\d\d:?\d\d)$' and length(as_time.value) > 16 then as_time.value
               else as_time.value || 'Z' end)::timestamptz
  end
end;
comment on function internal.as_time is 'The time that a text spells in ISO 8601, UTC when it names no zone; null for anything else.';

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

create or replace function internal.validate_events(items json, historical boolean)
returns table (index int, id uuid, is_client_id boolean, app_user_id uuid, event_name text, properties jsonb, occurred_at timestamptz,
               session_id uuid, clock_adjusted boolean, problem text)
language sql stable as $$
  with item as materialized (
    select i.n::int - 1 as index, json_typeof(i.item) = 'object' as is_object, f.id, f.properties, f.occurred_at, f.session_id, f.app_user_id,
           coalesce(f.event_name, f.event, f.name) as event_name
      from json_array_elements(validate_events.items) with ordinality as i (item, n)
     cross join lateral json_to_record(case when json_typeof(i.item) = 'object' then i.item else '{}' end)
             as f (id json, event_name json, event json, name json, properties json, occurred_at json, session_id json, app_user_id json)
  ), claims as materialized (
    select internal.user_id() as user_id, internal.caller() <> 'user' as is_server, internal.now() as now
  ), field as materialized (
    select i.index, i.is_object, i.id is not null as is_client_id, i.id #>> '{}' as id, json_typeof(i.event_name) as name_type,
           i.event_name #>> '{}' as event_name, json_typeof(i.properties) as properties_type, i.properties::text as properties,
           i.occurred_at is null as is_now, case when json_typeof(i.occurred_at) = 'string' then i.occurred_at #>> '{}' end as occurred_at,
           i.session_id #>> '{}' as session_id,
           -- of anybody but a server the credential says who it was
           case when c.is_server then i.app_user_id #>> '{}' end as app_user_id
      from item i
     cross join claims c
  ), value as materialized (
    select f.index, f.is_object, f.is_client_id, internal.as_uuid(f.id) as id, f.name_type, f.event_name, f.properties_type, f.properties,
           case when f.is_now then c.now else internal.as_time(f.occurred_at) end as occurred_at,
           f.session_id as session_text, internal.as_uuid(f.session_id) as session_id,
           f.app_user_id is not null as is_user_named,
           case when f.app_user_id is null then c.user_id else internal.as_uuid(f.app_user_id) end as app_user_id, c.is_server, c.now
      from field f
     cross join claims c
  )
  select v.index, v.id, v.is_client_id, v.app_user_id, v.event_name, coalesce(v.properties, '{}')::jsonb,
         case when v.occurred_at > v.now + interval '5 minutes' then v.now else v.occurred_at end, v.session_id,
         coalesce(v.occurred_at > v.now + interval '5 minutes', false),
         case
           when not v.is_object then 'VALIDATION_ERROR events: must be an object'
           when v.is_client_id and v.id is null then 'VALIDATION_ERROR id: must be a uuid'
           when v.name_type is distinct from 'string' then 'VALIDATION_ERROR event_name: is required and must be a string'
           when char_length(v.event_name) not between 1 and 255 then 'VALIDATION_ERROR event_name: must have 1 to 255 characters'
           when v.event_name ~ '^\s|\s$' then 'VALIDATION_ERROR event_name: must not begin or end with white space'
           when v.properties_type <> 'object' then 'VALIDATION_ERROR properties: must be an object'
           when internal.json_size(v.properties) > 32768 then 'VALIDATION_ERROR properties: must have at most 32 KB'
           -- what has few brackets cannot nest deeply
           when length(v.properties) - length(translate(v.properties, '[{', '')) > 8 and not internal.json_depth(v.properties::jsonb, 8)
             then 'VALIDATION_ERROR properties: must nest at most 8 deep'
           when v.session_text is not null and v.session_id is null then 'VALIDATION_ERROR session_id: must be a uuid'
           when v.occurred_at is null then 'VALIDATION_ERROR occurred_at: must be an ISO 8601 time'
           -- where a zone is behind UTC, the first dates of our era are before it
           when v.occurred_at < '0002-01-01T00:00:00Z' then 'VALIDATION_ERROR occurred_at: must be in the year 2 or later'
           when v.app_user_id is null and v.is_user_named then 'VALIDATION_ERROR app_user_id: must be a uuid'
           when v.app_user_id is null and internal.caller() = 'developer' then 'VALIDATION_ERROR app_user_id: is required'
           when v.app_user_id is null then 'INVALID_INPUT app_user_id: a server key must name a user'
           when v.event_name like 'svc.%' then 'RESERVED_EVENT_NAME event_name: names that begin with svc. are ours'
           when v.occurred_at < v.now - interval '30 days' and not (v.is_server and validate_events.historical)
             then 'EVENT_TOO_OLD occurred_at: is more than 30 days ago'
         end
    from value v
$$;
comment on function internal.validate_events is
  'The items of POST events against the rules of form and time. problem is null for a good one, else "CODE field: reason". Supplement C7.';

create or replace function internal.ingest_events(items json, historical boolean, source text,
                                                 out validated internal.judged_event[], out violating uuid[])
language plpgsql volatile security definer set search_path = '' as $$
declare
  known uuid[];
  fresh uuid[];
  has_rules boolean;
  unseen uuid[];
begin
  if internal.caller() not in ('user', 'server_key', 'server_key_user', 'developer') then
    raise exception 'events come from users, server keys and developers, not from %', internal.caller();
  end if;
  select array_agg((j.index, case when j.is_client_id then j.id else internal.new_id() end, j.is_client_id, j.app_user_id, j.event_name, j.properties, j.occurred_at,
                    j.session_id, j.clock_adjusted, j.problem)::internal.judged_event)
    into validated
    from internal.validate_events(ingest_events.items, ingest_events.historical) j;

  -- most projects define nothing: one look at an empty table
  has_rules := exists (select from app.event_definitions);
  if has_rules then
    validated := internal.reject_blocked_events(validated);
  end if;

  known := internal.lock_users(array(select e.app_user_id from unnest(validated) e where e.problem is null));
  if exists (select from unnest(validated) e where e.problem is null and e.app_user_id <> all (coalesce(known, '{}'))) then
    select array_agg(case when e.problem is null and e.app_user_id <> all (coalesce(known, '{}'))
                          then internal.event_with_problem(e, 'USER_NOT_FOUND app_user_id: there is no such user') else e end order by e.index)
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
    if coalesce(cardinality(fresh), 0) < (select count(*) from unnest(validated) e where e.problem is null and e.is_client_id) then
      validated := internal.mark_duplicate_events(validated, coalesce(fresh, '{}'));
    end if;
  end if;

  if has_rules then
    violating := internal.events_violating(validated);
  end if;
  if ingest_events.historical then
    perform set_config('app.is_history', 'true', true);
  end if;
  insert into app.engagement_events
    (id, app_user_id, event_name, properties, occurred_at, received_at, source, session_id, is_historical, clock_adjusted, schema_violation)
  select e.id, e.app_user_id, e.event_name, e.properties, e.occurred_at, internal.now(), ingest_events.source, e.session_id,
         ingest_events.historical, e.clock_adjusted, coalesce(e.id = any (violating), false)
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
comment on function internal.ingest_events is
  'Stores the good items of a request, once per client-chosen id, and answers every item validated, in order: problem is null (accepted), DUPLICATE,
   or the code of its rejection with field and reason; and the ids of those that their schema does not accept. The pipeline runs in the triggers
   of the one insert. Locks the users, then ids, each in order.';

create or replace function internal.event_with_problem(event internal.judged_event, problem text) returns internal.judged_event
language sql immutable as $$
  select ((event_with_problem.event).index, (event_with_problem.event).id, (event_with_problem.event).is_client_id, (event_with_problem.event).app_user_id,
          (event_with_problem.event).event_name, (event_with_problem.event).properties, (event_with_problem.event).occurred_at, (event_with_problem.event).session_id,
          (event_with_problem.event).clock_adjusted, event_with_problem.problem)::internal.judged_event
$$;
comment on function internal.event_with_problem is 'A validated item under another verdict.';

create or replace function internal.mark_duplicate_events(validated internal.judged_event[], fresh uuid[]) returns internal.judged_event[]
language sql stable security definer set search_path = '' as $$
  select array_agg(
           case
             when e.problem is not null or not e.is_client_id or e.nth = 1 and f.id is not null then e.event
             -- of an id that came before only its owner learns what became of it
             when known.app_user_id = e.app_user_id then internal.event_with_problem(e.event, 'DUPLICATE id: came before')
             else internal.event_with_problem(e.event, 'EVENT_ID_CONFLICT id: belongs to another event')
           end order by e.index)
    from (select j as event, j.index, j.id, j.is_client_id, j.problem, j.app_user_id,
                 row_number() over (partition by j.id, j.problem is null order by j.index) as nth
            from unnest(mark_duplicate_events.validated) j) e
    left join unnest(mark_duplicate_events.fresh) f (id) on f.id = e.id
    left join app.event_ids known on known.id = e.id and e.is_client_id
$$;
comment on function internal.mark_duplicate_events is
  'Good items whose client-chosen id is not among the fresh ones, or stands in the request a second time: DUPLICATE, or EVENT_ID_CONFLICT.';
