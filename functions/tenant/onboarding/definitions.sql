-- Onboarding flows: definitions and statistics.
comment on constraint onboarding_flows_steps_is_list on app.onboarding_flows is
  '400 INVALID_INPUT steps: must be a list of at most 100.';

create or replace function internal.onboarding_config_problem(type text, config jsonb) returns text
language sql immutable as $$
  select case
    when jsonb_typeof(onboarding_config_problem.config) <> 'object' then 'must be an object'
    when onboarding_config_problem.type = 'question' and exists (
           select from jsonb_array_elements(case
                                                 when jsonb_typeof(onboarding_config_problem.config -> 'options') =
                                                   'array'
                                                 then onboarding_config_problem.config -> 'options'
                                                 when onboarding_config_problem.config ? 'options' then '[null]'
                                                   else '[]' end) o
            group by o.value ->> 'id'
           having count(*) > 1 or not coalesce(bool_and(jsonb_typeof(o.value -> 'id') = 'string'
                                                        and jsonb_typeof(o.value -> 'label') = 'string'),
                                               false))
      then 'must have options of {id, label}, with different ids'
    when onboarding_config_problem.type = 'question'
      and jsonb_typeof(onboarding_config_problem.config -> 'multiple') <> 'boolean'
      then 'must have multiple as true or false'
    when onboarding_config_problem.type = 'permission' and onboarding_config_problem.config ? 'kind'
         and coalesce(onboarding_config_problem.config ->> 'kind', '') not in ('push', 'location', 'tracking')
      then 'must have a kind of push, location or tracking'
    when onboarding_config_problem.type = 'paywall'
      and jsonb_typeof(onboarding_config_problem.config -> 'offering_key') <> 'string'
      then 'must have an offering_key that is a string'
    when onboarding_config_problem.type = 'action'
      and jsonb_typeof(onboarding_config_problem.config -> 'deep_link') <> 'string'
      then 'must have a deep_link that is a string'
  end
$$;
comment on function internal.onboarding_config_problem is
  'The problem of the config of a step of this type, or null. Unknown fields are kept.';

create or replace function internal.onboarding_step_check(step jsonb, place text) returns void
language plpgsql volatile as $$
declare
  segment constant uuid := internal.as_uuid(onboarding_step_check.step ->> 'segment_id');
  problem text := internal.onboarding_config_problem(onboarding_step_check.step ->> 'type',
                                                     onboarding_step_check.step -> 'config');
begin
  if coalesce(jsonb_typeof(onboarding_step_check.step -> 'id'), '') <> 'string'
    or char_length(onboarding_step_check.step ->> 'id') not between 1 and 128 then
    perform internal.invalid(onboarding_step_check.place || '.id', 'must have 1 to 128 characters', 'INVALID_INPUT');
  elsif coalesce(onboarding_step_check.step ->> 'type', '') not in ('info', 'question', 'permission', 'action',
                                                                    'paywall', 'input', 'custom') then
    perform internal.invalid(onboarding_step_check.place || '.type',
                             'must be info, question, permission, action, paywall, input or custom', 'INVALID_INPUT');
  elsif jsonb_typeof(onboarding_step_check.step -> 'title') not in ('string', 'null')
    or char_length(onboarding_step_check.step ->> 'title') > 200 then
    perform internal.invalid(onboarding_step_check.place || '.title', 'must have at most 200 characters',
                             'INVALID_INPUT');
  elsif not internal.is_line(onboarding_step_check.step ->> 'title') then
    perform internal.invalid(onboarding_step_check.place || '.title', 'must be one line of text', 'INVALID_INPUT');
  elsif jsonb_typeof(onboarding_step_check.step -> 'description') not in ('string', 'null')
        or char_length(onboarding_step_check.step ->> 'description') > 2000 then
    perform internal.invalid(onboarding_step_check.place || '.description', 'must have at most 2000 characters',
                             'INVALID_INPUT');
  elsif jsonb_typeof(onboarding_step_check.step -> 'skippable') <> 'boolean' then
    perform internal.invalid(onboarding_step_check.place || '.skippable', 'must be true or false', 'INVALID_INPUT');
  elsif problem is not null then
    perform internal.invalid(onboarding_step_check.place || '.config', problem, 'INVALID_INPUT');
  elsif jsonb_typeof(onboarding_step_check.step -> 'segment_id') <> 'null'
        and not internal.segment_lock_shared(segment) then
    perform internal.invalid(onboarding_step_check.place || '.segment_id', 'must be a segment of the project',
                             'INVALID_INPUT');
  end if;
end $$;
comment on function internal.onboarding_step_check is
  'Refuses an invalid step, whose missing fields have been filled in before: 400 INVALID_INPUT.';

create or replace function internal.onboarding_steps(steps json) returns jsonb
language plpgsql volatile as $$
declare
  sent jsonb;
  taken text[];
  step jsonb;
  free int := 0;
  made jsonb := '[]';
begin
  if json_typeof(onboarding_steps.steps) is distinct from 'array'
    or json_array_length(onboarding_steps.steps) > 100 then
    perform internal.invalid('steps', 'must be a list of at most 100', 'INVALID_INPUT');
  elsif not internal.is_storable_json(onboarding_steps.steps) then
    perform internal.invalid('steps', 'holds a character or a number that cannot be stored, or nests too deeply',
                             'INVALID_INPUT');
  elsif internal.json_size(onboarding_steps.steps::text) > 262144 then
    perform internal.invalid('steps', 'must have at most 256 KB', 'INVALID_INPUT');
  end if;
  sent := onboarding_steps.steps::jsonb;
  taken := array(select s.value ->> 'id' from jsonb_array_elements(sent) s);
  for i in 0 .. jsonb_array_length(sent) - 1 loop
    step := sent -> i;
    if jsonb_typeof(step) <> 'object' then
      perform internal.invalid('steps.' || i, 'must be an object', 'INVALID_INPUT');
    end if;
    if coalesce(step -> 'id', 'null') = 'null' then
      free := i + 1;
      while 'step_' || free = any (taken) loop
        free := free + 1;
      end loop;
      step := step || jsonb_build_object('id', 'step_' || free);
      taken := taken || ('step_' || free);
    end if;
    step := '{"type": "custom", "title": null, "description": null, "config": {}, "skippable": true, "segment_id": '
            'null}' || step;
    perform internal.onboarding_step_check(step, 'steps.' || i);
    if made @> jsonb_build_array(jsonb_build_object('id', step -> 'id')) then
      perform internal.invalid('steps.' || i || '.id', 'must be unique in the flow', 'INVALID_INPUT');
    end if;
    made := made || jsonb_build_array(step);
  end loop;
  return made;
end $$;
comment on function internal.onboarding_steps is
  'Validates steps and returns them as they are stored: with an id (step_<place> by default) and every field; unknown
   fields are kept. Refuses 400 INVALID_INPUT.';

select internal.row_declare('onboarding_flow_json', null::app.onboarding_flows,
                            '{id,name,steps,is_active,created_at,updated_at}');
comment on function internal.onboarding_flow_json is 'A flow as every response shows it.';

create or replace function internal.onboarding_flow(flow_id uuid) returns app.onboarding_flows
language plpgsql volatile as $$
declare
  flow app.onboarding_flows;
begin
  select f.* into flow from app.onboarding_flows f where f.id = onboarding_flow.flow_id;
  perform internal.check_found(found, 'flow');
  return flow;
end $$;
comment on function internal.onboarding_flow is 'A flow that the caller may see. Refuses 404 NOT_FOUND.';

create or replace function api.onboarding_flow_create(name text, steps json, is_active boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  flow app.onboarding_flows;
begin
  insert into app.onboarding_flows as f (name, steps, is_active)
  values (onboarding_flow_create.name, internal.onboarding_steps(onboarding_flow_create.steps),
          onboarding_flow_create.is_active)
  returning f.* into flow;
  return internal.reply(201, internal.onboarding_flow_json(flow));
end $$;
comment on function api.onboarding_flow_create is 'A new flow, 201. Refuses 400 INVALID_INPUT.';

create or replace function api.onboarding_flow_list() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(json_build_object('id', f.id, 'name', f.name, 'is_active', f.is_active)
                                               order by f.created_at desc, f.id desc), '[]'))
    from app.onboarding_flows f
$$;
comment on function api.onboarding_flow_list is 'Flows, newest first, without their steps.';

create or replace function api.onboarding_flow_update(flow_id uuid, patch json) returns api.reply
language plpgsql volatile as $$
declare
  flow app.onboarding_flows := internal.onboarding_flow(onboarding_flow_update.flow_id);
  field text;
begin
  select p.key into field
    from json_each_text(onboarding_flow_update.patch) p
   where p.key in ('name', 'steps', 'is_active') and p.value is null;
  if found then
    perform internal.invalid(field, 'must not be null', 'INVALID_INPUT');
  end if;
  select f.* into flow from app.onboarding_flows f where f.id = flow.id for no key update;
  update app.onboarding_flows f
     set name = coalesce(onboarding_flow_update.patch ->> 'name', f.name),
         steps = case when onboarding_flow_update.patch -> 'steps' is null then f.steps
                      else internal.onboarding_steps(onboarding_flow_update.patch -> 'steps') end,
         is_active = coalesce((onboarding_flow_update.patch ->> 'is_active')::boolean, f.is_active),
         updated_at = internal.now()
   where f.id = flow.id
     and exists (select from json_object_keys(onboarding_flow_update.patch) k where k in ('name', 'steps', 'is_active'))
  returning f.* into flow;
  return internal.reply(200, internal.onboarding_flow_json(internal.onboarding_flow(onboarding_flow_update.flow_id)));
end $$;
comment on function api.onboarding_flow_update is
  'Changes name, steps or is_active; users who are in the flow continue with the new steps. Refuses 404 NOT_FOUND, 400
   INVALID_INPUT. Locks the flow.';

create or replace function api.onboarding_stats() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(json_build_object(
           'flow_id', f.id, 'flow_name', f.name, 'total_started', p.started, 'total_completed', p.completed,
             'total_skipped', p.skipped,
           'completion_rate', round(p.completed::numeric / nullif(p.started, 0), 4)) order by f.created_at desc,
           f.id desc), '[]'))
    from app.onboarding_flows f
   cross join lateral (
     select count(*) as started, count(*) filter (where r.status = 'completed') as completed,
            count(*) filter (where r.status = 'skipped') as skipped
       from app.onboarding_progress r
      where r.flow_id = f.id) p
$$;
comment on function api.onboarding_stats is
  'For each flow, newest first, how many users started, completed, skipped it; the rate is 0 to 1, null when nobody
   started.';

select internal.audit_declare('app.onboarding_flows', 'onboarding');

create or replace function internal.segment_used__onboarding(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'onboarding ' || f.name
                 from app.onboarding_flows f
                where exists (select from jsonb_array_elements(f.steps) s
                               where internal.as_uuid(s.value ->> 'segment_id') = segment_used__onboarding.segment_id)
                order by f.name)
$$;
comment on function internal.segment_used__onboarding is 'The flows whose steps refer to a segment.';
