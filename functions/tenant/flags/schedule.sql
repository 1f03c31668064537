-- Time-based changes of flags: schedules, ramps, and the guardrail that stops a ramp. A due step applies at once,
-- whether a worker runs or not:
-- evaluation takes due steps into account (flag_current); administrators' changes and the worker store them
-- (flags_apply_schedule).
create or replace function internal.flag_current(f app.flags) returns app.flags
language plpgsql stable as $$
declare
  step jsonb;
begin
  for step in
    select s.value from jsonb_array_elements(f.schedule) with ordinality s (value, n)
     where (s.value ->> 'at')::timestamptz <= internal.now() order by s.n
  loop
    f := internal.flag_patched(f, step -> 'patch');
    f.version := f.version + 1;
  end loop;
  return f;
end $$;
comment on function internal.flag_current is 'A flag with the due steps of its schedule applied.';

create or replace function internal.flags_apply_schedule() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  flag app.flags;
  caller constant text := current_setting('app.caller', true);
begin
  if not exists (select from app.flags f where f.next_at <= internal.now()) then
    return;
  end if;
  if internal.caller() not in ('developer', 'worker') then
    raise exception 'schedules are kept by workers and administrators, not by %', internal.caller();
  end if;
  -- the actor is the system, not the administrator whose read applies the step
  perform set_config('app.caller', 'worker', true);
  -- locks all flags before the first change: each change also locks the hash, and a transaction that holds the hash
  -- must not wait for a flag
  perform from app.flags f where f.next_at <= internal.now() order by f.id for no key update;
  for flag in select f.* from app.flags f where f.next_at <= internal.now() order by f.id loop
    while flag.next_at <= internal.now() loop
      flag := internal.flag_patched(flag, flag.schedule #> '{0,patch}');
      update app.flags f
         set is_enabled = flag.is_enabled, off_value = flag.off_value, default_value = flag.default_value,
           rules = flag.rules,
             schedule = flag.schedule - 0, updated_at = flag.next_at
       where f.id = flag.id
      returning f.* into flag;
    end loop;
  end loop;
  perform set_config('app.caller', caller, true);
end $$;
comment on function internal.flags_apply_schedule is
  'Applies the due steps of schedules, each as a version of its own at its own time. Locks the flags that have one.';

create or replace function api.flags_advance() returns api.reply
language plpgsql volatile as $$
begin
  perform internal.flags_apply_schedule();
  return internal.reply(200, to_json((select internal.iso(min(f.next_at)) from app.flags f)));
end $$;
comment on function api.flags_advance is
  'For the worker: applies the due steps, and answers when the next one is due, or null.';

create or replace function internal.flag_ramp_json(ramp jsonb) returns json
language sql stable as $$
  select case when flag_ramp_json.ramp is not null then (flag_ramp_json.ramp || jsonb_build_object('status',
    case when flag_ramp_json.ramp ->> 'stopped_at' is not null then 'stopped'
         when (flag_ramp_json.ramp ->> 'ends_at')::timestamptz <= internal.now() then 'done'
         else 'running' end))::json end
$$;
comment on function internal.flag_ramp_json is
  'A ramp as responses show it: running, done, or stopped by its guardrail.';

create or replace function internal.flag_guardrail(guardrail jsonb) returns jsonb
language plpgsql volatile as $$
declare
  stray text;
begin
  if coalesce(flag_guardrail.guardrail, 'null') = 'null' then
    return null;
  end if;
  select k into stray from jsonb_object_keys(flag_guardrail.guardrail) k
   where k not in ('event_name', 'max_rate', 'min_users') order by k limit 1;
  if stray is not null then
    perform internal.invalid('guardrail.' || stray, 'is not a field of a guardrail');
  elsif coalesce(jsonb_typeof(flag_guardrail.guardrail -> 'event_name'), '') <> 'string'
        or char_length(flag_guardrail.guardrail ->> 'event_name') not between 1 and 255 then
    perform internal.invalid('guardrail.event_name', 'must have 1 to 255 characters');
  end if;
  perform internal.flag_number(flag_guardrail.guardrail -> 'max_rate', 0, 1, 'guardrail.max_rate');
  if flag_guardrail.guardrail ? 'min_users'
     and internal.flag_number(flag_guardrail.guardrail -> 'min_users', 1, 1000000, 'guardrail.min_users') % 1 <> 0 then
    perform internal.invalid('guardrail.min_users', 'must be a whole number');
  end if;
  return '{"min_users": 1}' || flag_guardrail.guardrail;
end $$;
comment on function internal.flag_guardrail is
  'Validates a guardrail and returns it as it is stored. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_ramped_rule(f app.flags, rule_index int, value json, out rules jsonb,
                                                     out place int)
language plpgsql volatile as $$
declare
  new_value jsonb;
begin
  rules := (flag_ramped_rule.f).rules;
  place := coalesce(flag_ramped_rule.rule_index, (
    select r.n - 1 from jsonb_array_elements(rules) with ordinality r (value, n) where r.value ? 'percentage'
     order by r.n limit 1));
  if place >= jsonb_array_length(rules) then
    perform internal.invalid('rule_index', 'must be the place of a rule of this flag, from 0');
  elsif place is null then
    if flag_ramped_rule.value is not null and not internal.is_storable_json(flag_ramped_rule.value) then
      perform internal.invalid('value', 'holds a character or a number that cannot be stored, or nests too deeply');
    end if;
    new_value := internal.flag_value(coalesce(flag_ramped_rule.value::jsonb,
                                              case when (flag_ramped_rule.f).value_type = 'boolean'
                                                     then 'true'::jsonb end),
                                     (flag_ramped_rule.f).value_type, 'value');
    place := jsonb_array_length(rules);
    if place >= 50 then
      perform internal.invalid('rules', 'must be a list of at most 50');
    end if;
    rules := rules || jsonb_build_array(jsonb_build_object('value', new_value));
  elsif flag_ramped_rule.value is not null then
    perform internal.invalid('value', 'must be left out: the rule has its own');
  end if;
end $$;
comment on function internal.flag_ramped_rule is
  'The rule of a ramp: the one at rule_index, else the first with a percentage, else a new one at the end with this
   value. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_reset_exposures(flag_id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  delete from app.flag_exposures e where e.flag_id = flag_reset_exposures.flag_id
$$;
comment on function internal.flag_reset_exposures is
  'Deletes the record of the users who got the value of a former ramp.';

create or replace function api.flag_ramp(id_or_key text, "from" numeric, "to" numeric, step numeric,
                                         every_hours numeric, guardrail json default null, rule_index int default null,
                                         value json default null)
returns api.reply
language plpgsql volatile as $$
declare
  flag app.flags := internal.flag_locked(flag_ramp.id_or_key);
  began constant timestamptz := internal.now();
  every constant interval := make_interval(secs => (flag_ramp.every_hours * 3600)::double precision);
  steps int;
  ramped record;
begin
  if flag_ramp."to" <= flag_ramp."from" then
    perform internal.invalid('to', 'must be more than from');
  end if;
  steps := ceil((flag_ramp."to" - flag_ramp."from") / flag_ramp.step);
  flag := internal.flag_without_ramp(flag);
  if steps + jsonb_array_length(flag.schedule) > 100 then
    perform internal.invalid('step', 'makes a schedule of more than 100 steps');
  end if;
  select r.rules, r.place into ramped from internal.flag_ramped_rule(flag, flag_ramp.rule_index, flag_ramp.value) r;
  flag.rules := jsonb_set(ramped.rules, array[ramped.place::text, 'percentage'], to_jsonb(flag_ramp."from"));
  flag.schedule := internal.flag_schedule(flag, flag.schedule || (
    select jsonb_agg(jsonb_build_object(
             'at', internal.iso(began + n * every),
             'patch', jsonb_build_object('rule_index', ramped.place, 'percentage',
                                         least(flag_ramp."from" + n * flag_ramp.step, flag_ramp."to"))) order by n)
      from generate_series(1, steps) n));
  flag.ramp := jsonb_strip_nulls(jsonb_build_object(
    'rule_index', ramped.place, 'from', flag_ramp."from", 'to', flag_ramp."to", 'step', flag_ramp.step,
      'every_hours', flag_ramp.every_hours,
    'guardrail', internal.flag_guardrail(flag_ramp.guardrail::jsonb), 'started_at', internal.iso(began),
    -- the guardrail is checked after the last step for as long as after each step before it
    'ends_at', internal.iso(began + (steps + 1) * every)));
  perform internal.flag_reset_exposures(flag.id);
  return internal.reply(200, internal.flag_json(internal.flag_stored(flag)));
end $$;
comment on function api.flag_ramp is
  'Raises the percentage of a rule from now on, in steps of the schedule; replaces a former ramp. Refuses 404 NOT_FOUND,
   400 VALIDATION_ERROR. Locks the flag.';

create or replace function internal.flag_guarded(f app.flags) returns boolean
language sql stable as $$
  select (flag_guarded.f).ramp -> 'guardrail' is not null and (flag_guarded.f).ramp ->> 'stopped_at' is null
     and ((flag_guarded.f).ramp ->> 'ends_at')::timestamptz > internal.now()
$$;
comment on function internal.flag_guarded is 'Whether a ramp of this flag is monitored by a guardrail now.';

create or replace function internal.on_events__85_flags(events app.engagement_events[]) returns void
language plpgsql volatile set plan_cache_mode = 'auto' as $$
begin
  -- a queued check that has not begun sees this event too: it is delayed by some seconds, for events that are being
  -- written
  perform internal.enqueue('flags__guard', f.id::text, due_at => internal.now() + interval '5 seconds')
     from app.flags f
    where f.ramp -> 'guardrail' is not null
      and f.ramp #>> '{guardrail,event_name}' in (select i.event_name from unnest(on_events__85_flags.events) i
                                                   where not i.is_historical)
      and internal.flag_guarded(f)
      and not exists (select from app.outbox o
                       where o.task = 'flags__guard' and o.key = f.id::text and o.failed_at is null
                         and o.locked_until is null);
end $$;
comment on function internal.on_events__85_flags is
  'When a ramp''s guardrail event arrives, queues the check of its rate.';

create or replace function internal.event_plan__flags() returns table (event_name text, plan uuid[])
language sql stable as $$
  select f.ramp #>> '{guardrail,event_name}', array_agg(f.id order by f.id)
    from app.flags f
   where f.ramp #>> '{guardrail,event_name}' is not null
   group by 1
$$;
comment on function internal.event_plan__flags is
  'The flags whose ramp, running or not, has a guardrail with this event. Granted to nobody.';

create or replace trigger tg_flags__event_plans
  after insert or delete or update of ramp on app.flags
  for each statement execute function internal.tg_event_plans();

create or replace function api.flag_guard(flag_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  flag app.flags;
  exposed bigint;
  hit bigint;
  rate numeric;
begin
  perform internal.check_caller('worker', 'ramps are guarded by workers');
  perform internal.flags_flush_counts();
  perform internal.flags_apply_schedule();
  select f.* into flag from app.flags f where f.id = flag_guard.flag_id for no key update;
  if not found or not internal.flag_guarded(flag) then
    return internal.reply(200, null);
  end if;
  select count(*) into exposed from app.flag_exposures e where e.flag_id = flag.id;
  select count(distinct v.app_user_id) into hit
    from app.engagement_events v
    join app.flag_exposures e on e.flag_id = flag.id and e.app_user_id = v.app_user_id
   where v.event_name = flag.ramp #>> '{guardrail,event_name}' and not v.is_historical
     and v.occurred_at >= (flag.ramp ->> 'started_at')::timestamptz and v.occurred_at >= e.first_at;
  rate := round(hit::numeric / nullif(exposed, 0), 6);
  if rate is null or exposed < (flag.ramp #>> '{guardrail,min_users}')::numeric
    or rate <= (flag.ramp #>> '{guardrail,max_rate}')::numeric then
    return internal.reply(200, null);
  end if;
  update app.flags f
     set rules = jsonb_set(flag.rules, array[flag.ramp ->> 'rule_index', 'percentage'], '0'),
         schedule = (internal.flag_without_ramp(flag)).schedule,
         ramp = flag.ramp || jsonb_build_object('stopped_at', internal.iso(internal.now()), 'rate', rate,
                                                'exposed_users', exposed),
         updated_at = internal.now()
   where f.id = flag.id
  returning f.* into flag;
  perform internal.audit('flags.guardrail', 'flags', flag.id::text,
                         json_build_object('ramp', json_build_array(null, flag.ramp)));
  perform internal.enqueue('flags__notify', flag.id || ' ' || flag.version,
                           jsonb_build_object('flag_id', flag.id, 'key', flag.key, 'ramp', flag.ramp));
  return internal.reply(200, internal.flag_ramp_json(flag.ramp));
end $$;
comment on function api.flag_guard is
  'For the worker: checks a ramp. When the guardrail''s event is too frequent among users who got the rule''s value,
   sets the rule to nobody, ends the ramp, audits it, and queues the owner''s mail. Returns the ramp when it was
   stopped, else null. Locks the flag.';
