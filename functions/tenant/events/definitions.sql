-- Definitions of events: whether they are accepted, the schema of their properties, and the share of them that stays in
-- the log.
comment on constraint event_definitions_name_1_to_255 on app.event_definitions is
  '400 VALIDATION_ERROR event_name: must have 1 to 255 characters, and no white space at its ends.';

select internal.row_declare('event_definition_json', null::app.event_definitions,
                            '{event_name,description,status,schema,sample_rate,created_at,updated_at}');
comment on function internal.event_definition_json is 'A definition as every answer shows it.';

create or replace function api.event_definition_put(event_name text, description text default null,
                                                    status text default 'active', schema json default null,
                                                    sample_rate numeric default 1)
returns api.reply
language plpgsql volatile as $$
declare
  schema_text constant text := event_definition_put.schema::text;
  requested jsonb;
  defined app.event_definitions;
  is_new boolean;
  problem record;
begin
  if event_definition_put.event_name like 'svc.%' then
    perform internal.fail(400, 'RESERVED_EVENT_NAME', 'Names that begin with svc. are ours, and need no definition.',
                          '{"field": "event_name", "reason": "must not begin with svc."}');
  elsif event_definition_put.status is null or event_definition_put.status not in ('active', 'blocked',
                                        'deprecated') then
    perform internal.invalid('status', 'must be active, blocked or deprecated');
  elsif event_definition_put.sample_rate is null or event_definition_put.sample_rate not between 0 and 1 then
    perform internal.invalid('sample_rate', 'must be a number from 0 to 1');
  end if;
  if json_typeof(event_definition_put.schema) <> 'null' then
    if not internal.is_storable_json(event_definition_put.schema) then
      perform internal.invalid('schema', 'holds a character or a number that cannot be stored, or nests too deeply');
    elsif internal.json_size(schema_text) > 32768 then
      perform internal.invalid('schema', 'must have at most 32 KB');
    end if;
    requested := schema_text::jsonb;
    select p.path, p.reason into problem from internal.schema_problem(requested) p;
    if problem.reason is not null then
      perform internal.invalid(concat_ws('.', 'schema', nullif(problem.path, '')), problem.reason);
    end if;
  end if;
  -- one definition is made at a time, so that the limit holds
  perform internal.advisory_lock('event definitions');
  is_new := not exists (select from app.event_definitions d where d.event_name = event_definition_put.event_name);
  if is_new then
    perform internal.definition_limit_check(null::app.event_definitions);
  end if;
  insert into app.event_definitions as d (event_name, description, status, schema, sample_rate)
  values (event_definition_put.event_name, event_definition_put.description, event_definition_put.status, requested,
          event_definition_put.sample_rate)
  on conflict on constraint event_definitions_pkey do update
     set description = excluded.description, status = excluded.status, schema = excluded.schema,
       sample_rate = excluded.sample_rate,
         updated_at = internal.now()
  returning d.* into defined;
  return internal.reply(case when is_new then 201 else 200 end, internal.event_definition_json(defined));
end $$;
comment on function api.event_definition_put is
  'Defines an event, whole: 201 when the definition is new, 200 when it replaced the former. Refuses 400
   VALIDATION_ERROR (a keyword of the schema that is not evaluated, by its name), RESERVED_EVENT_NAME, 409 LIMIT_REACHED
   (1000).';

create or replace function internal.event_definition_find(event_name text) returns app.event_definitions
language plpgsql stable as $$
declare
  definition app.event_definitions;
begin
  select d.* into definition from app.event_definitions d where d.event_name = event_definition_find.event_name;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'This event has no definition.');
  end if;
  return definition;
end $$;
comment on function internal.event_definition_find is 'The definition of an event. Refuses 404 NOT_FOUND.';

create or replace function internal.event_definition_before_write(sent jsonb) returns void
language sql volatile as $$
  -- one definition changes at a time, so that a creation says truly whether the definition is new
  select internal.advisory_lock('event definitions')
$$;
comment on function internal.event_definition_before_write is
  'Lets one administrator write definitions of events at a time.';

create or replace function internal.reject_blocked_events(validated internal.validated_event[])
returns internal.validated_event[]
language sql stable security definer set search_path = '' as $$
  select array_agg(case when e.problem is null and d.event_name is not null
                        then internal.event_with_problem(e.event, 'EVENT_BLOCKED') else e.event end
                   order by e.index)
    from (select j as event, j.index, j.problem, j.event_name from unnest(reject_blocked_events.validated) j) e
    left join app.event_definitions d on d.event_name = e.event_name and d.status = 'blocked'
$$;
comment on function internal.reject_blocked_events is 'Rejects valid items whose name is blocked: EVENT_BLOCKED.';

create or replace function internal.events_violating(validated internal.validated_event[]) returns uuid[]
language sql stable security definer set search_path = '' as $$
  select array_agg(e.id)
    from unnest(events_violating.validated) e
    join app.event_definitions d on d.event_name = e.event_name and d.schema is not null
   where e.problem is null and not internal.schema_accepts(d.schema, e.properties)
$$;
comment on function internal.events_violating is
  'Ids of the valid items that violate the schema of their event. They are stored nevertheless.';

create or replace function internal.event_is_sampled(id uuid, sample_rate numeric) returns boolean
language sql immutable parallel safe as $$
  -- by its id, so that a repeated event gets the same result
  select (hashtextextended(event_is_sampled.id::text, 0) & 1048575) < event_is_sampled.sample_rate * 1048576
$$;
comment on function internal.event_is_sampled is 'Whether an event belongs to the share that stays in the log.';

create or replace function internal.events_delete_unsampled(validated internal.validated_event[]) returns void
language sql volatile security definer set search_path = '' as $$
  delete from app.engagement_events e
   using unnest(events_delete_unsampled.validated) j
    join app.event_definitions d on d.event_name = j.event_name and d.sample_rate < 1
   where j.problem is null and e.id = j.id and e.received_at = internal.now()
     and not internal.event_is_sampled(j.id, d.sample_rate)
$$;
comment on function internal.events_delete_unsampled is
  'After the pipeline has run for all events: deletes those that sample_rate excludes from the log. Their effects stay.
   Granted to nobody.';

select internal.audit_declare('app.event_definitions', 'event_definitions');
