-- Validation of flags that administrators send: complete, with the path of each error.
comment on constraint flags_key_unique on app.flags is '409 CONFLICT key: A flag with this key exists.';
comment on constraint flags_rules_at_most_50 on app.flags is
  '400 VALIDATION_ERROR rules: must be a list of at most 50.';
comment on constraint flags_schedule_at_most_100 on app.flags is
  '400 VALIDATION_ERROR schedule: must be a list of at most 100.';
comment on constraint flags_tags_at_most_20 on app.flags is '400 VALIDATION_ERROR tags: must be a list of at most 20.';

create or replace function internal.flag_value(value jsonb, value_type text, place text) returns jsonb
language plpgsql volatile as $$
begin
  if flag_value.value is null then
    perform internal.invalid(flag_value.place, 'is required');
  elsif flag_value.value_type <> 'json' and jsonb_typeof(flag_value.value) <> flag_value.value_type then
    perform internal.invalid(flag_value.place, format('must be a %s, as the flag is', flag_value.value_type));
  elsif octet_length(flag_value.value::text) > 16384 then
    perform internal.invalid(flag_value.place, 'must have at most 16 KB');
  end if;
  return flag_value.value;
end $$;
comment on function internal.flag_value is
  'Validates a value against a flag''s type, without coercion. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_number(value jsonb, lowest numeric, highest numeric, place text)
returns numeric
language plpgsql volatile as $$
begin
  if jsonb_typeof(flag_number.value) is distinct from 'number'
    or not flag_number.value::numeric between flag_number.lowest and flag_number.highest then
    perform internal.invalid(flag_number.place,
                             format('must be a number from %s to %s', flag_number.lowest, flag_number.highest));
  end if;
  return flag_number.value::numeric;
end $$;
comment on function internal.flag_number is 'A number within its bounds. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_time(value jsonb, place text) returns timestamptz
language plpgsql volatile as $$
begin
  if jsonb_typeof(flag_time.value) is distinct from 'string'
    or not internal.segment_is_time(flag_time.value #>> '{}') then
    perform internal.invalid(flag_time.place, 'must be a time such as 2026-10-03T09:00:00Z');
  end if;
  return internal.segment_date(flag_time.value);
end $$;
comment on function internal.flag_time is 'A time, or a date at midnight UTC. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_rule(rule jsonb, value_type text, place text) returns jsonb
language plpgsql volatile as $$
declare
  r jsonb := flag_rule.rule;
  stray text;
  problem text;
begin
  if jsonb_typeof(r) <> 'object' then
    perform internal.invalid(flag_rule.place, 'must be an object {segment_id? | filter?, percentage?, value}');
  end if;
  -- a field that is null counts as absent, except value, for which null is a value
  r := coalesce((select jsonb_object_agg(e.key, e.value) from jsonb_each(r) e where e.key = 'value'
                     or e.value <> 'null'), '{}');
  select k into stray
    from jsonb_object_keys(r) k
   where k not in ('segment_id', 'filter', 'percentage', 'value', 'starts_at', 'ends_at', 'min_app_version',
                   'platforms')
   order by k limit 1;
  if stray = 'experiment_key' then
    perform internal.invalid(flag_rule.place || '.experiment_key',
                             'is not possible: this server has no experiments. Give a value');
  elsif stray is not null then
    -- otherwise a misspelled condition would match every user
    perform internal.invalid(flag_rule.place || '.' || stray, 'is not a field of a rule');
  elsif r ? 'segment_id' and not coalesce(internal.segment_lock_shared(internal.as_uuid(r ->> 'segment_id')),
                                          false) then
    perform internal.invalid(flag_rule.place || '.segment_id', 'must be a segment of the project');
  end if;
  problem := case when r ? 'filter' then internal.filter_problem((r -> 'filter')::json) end;
  if problem is not null then
    perform internal.invalid(flag_rule.place || '.filter', problem);
  elsif r ? 'min_app_version' and (jsonb_typeof(r -> 'min_app_version') <> 'string'
                                   or char_length(r ->> 'min_app_version') > 64
                                   or internal.version_key(r ->> 'min_app_version') is null) then
    perform internal.invalid(flag_rule.place || '.min_app_version', 'must be a version such as 2.10.0');
  elsif r ? 'platforms' and (jsonb_typeof(r -> 'platforms') <> 'array'
                             or jsonb_array_length(r -> 'platforms') not between 1 and 20
        or exists (select from jsonb_array_elements(r -> 'platforms') p
                    where jsonb_typeof(p.value) <> 'string' or char_length(p.value #>> '{}') not between 1 and 64)) then
    perform internal.invalid(flag_rule.place || '.platforms',
                             'must be a list of 1 to 20 names, each of 1 to 64 characters');
  end if;
  if r ? 'percentage' then
    perform internal.flag_number(r -> 'percentage', 0, 100, flag_rule.place || '.percentage');
  end if;
  if r ? 'starts_at' then
    r := r || jsonb_build_object('starts_at',
                                 internal.iso(internal.flag_time(r -> 'starts_at', flag_rule.place || '.starts_at')));
  end if;
  if r ? 'ends_at' then
    r := r || jsonb_build_object('ends_at', internal.iso(internal.flag_time(r -> 'ends_at',
                                        flag_rule.place || '.ends_at')));
  end if;
  if (r ->> 'starts_at')::timestamptz >= (r ->> 'ends_at')::timestamptz then
    perform internal.invalid(flag_rule.place || '.ends_at', 'must be after starts_at');
  end if;
  perform internal.flag_value(r -> 'value', flag_rule.value_type, flag_rule.place || '.value');
  return r;
end $$;
comment on function internal.flag_rule is
  'Validates a rule and returns it as it is stored. Refuses 400 VALIDATION_ERROR. Locks the referenced segment against
   deletion.';

create or replace function internal.flag_rules(rules jsonb, value_type text, place text) returns jsonb
language plpgsql volatile as $$
begin
  if octet_length(flag_rules.rules::text) > 262144 then
    perform internal.invalid(flag_rules.place, 'must have at most 256 KB');
  elsif jsonb_typeof(flag_rules.rules) is distinct from 'array' or jsonb_array_length(flag_rules.rules) > 50 then
    perform internal.invalid(flag_rules.place, 'must be a list of at most 50');
  end if;
  return (select coalesce(jsonb_agg(internal.flag_rule(r.value, flag_rules.value_type,
                                                       flag_rules.place || '.' || (r.n - 1)) order by r.n), '[]')
            from jsonb_array_elements(flag_rules.rules) with ordinality r (value, n));
end $$;
comment on function internal.flag_rules is
  'Validates rules and returns them as they are stored. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_step(f app.flags, step jsonb, place text) returns jsonb
language plpgsql volatile as $$
declare
  patch constant jsonb := flag_step.step -> 'patch';
  type constant text := (flag_step.f).value_type;
  inside constant text := flag_step.place || '.patch';
  checked jsonb := patch;
  stray text;
begin
  if jsonb_typeof(flag_step.step) <> 'object' or coalesce(jsonb_typeof(patch), '') <> 'object' then
    perform internal.invalid(flag_step.place, 'must be an object {at, patch}');
  end if;
  select k into stray
    from jsonb_object_keys(patch) k
   where k not in ('is_enabled', 'off_value', 'default_value', 'rules', 'rule_index', 'percentage')
   order by k limit 1;
  if stray is not null or patch = '{}' then
    perform internal.invalid(concat_ws('.', inside, stray),
                             'must be of is_enabled, off_value, default_value, rules, or rule_index with percentage');
  elsif (patch ? 'rule_index') <> (patch ? 'percentage') then
    perform internal.invalid(inside || '.rule_index', 'must stand beside percentage');
  elsif patch ? 'is_enabled' and jsonb_typeof(patch -> 'is_enabled') <> 'boolean' then
    perform internal.invalid(inside || '.is_enabled', 'must be true or false');
  end if;
  if patch ? 'off_value' then
    perform internal.flag_value(patch -> 'off_value', type, inside || '.off_value');
  end if;
  if patch ? 'default_value' then
    perform internal.flag_value(patch -> 'default_value', type, inside || '.default_value');
  end if;
  if patch ? 'rules' then
    checked := checked || jsonb_build_object('rules', internal.flag_rules(patch -> 'rules', type, inside || '.rules'));
  end if;
  if patch ? 'percentage' then
    perform internal.flag_number(patch -> 'percentage', 0, 100, inside || '.percentage');
    if jsonb_typeof(patch -> 'rule_index') <> 'number'
       or coalesce(checked -> 'rules', (flag_step.f).rules) -> (case
                                                                     when patch ->> 'rule_index' ~
                                                                       '^\d{1,2}$' then (patch ->> 'rule_index')::int
                                                                         else 99 end) is null then
      perform internal.invalid(inside || '.rule_index', 'must be the place of a rule that the flag has then, from 0');
    end if;
  end if;
  return jsonb_build_object('at', internal.iso(internal.flag_time(flag_step.step -> 'at', flag_step.place || '.at')),
                            'patch', checked);
end $$;
comment on function internal.flag_step is
  'Validates a step of a schedule against the flag as the steps before leave it, and returns the step as it is stored.
   Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_patched(f app.flags, patch jsonb) returns app.flags
language plpgsql immutable as $$
begin
  f.is_enabled := coalesce((flag_patched.patch -> 'is_enabled')::boolean, f.is_enabled);
  f.off_value := coalesce(flag_patched.patch -> 'off_value', f.off_value);
  f.default_value := coalesce(flag_patched.patch -> 'default_value', f.default_value);
  f.rules := coalesce(flag_patched.patch -> 'rules', f.rules);
  if flag_patched.patch ? 'rule_index' and f.rules -> (flag_patched.patch ->> 'rule_index')::int is not null then
    f.rules := jsonb_set(f.rules, array[flag_patched.patch ->> 'rule_index', 'percentage'],
                         flag_patched.patch -> 'percentage');
  end if;
  return f;
end $$;
comment on function internal.flag_patched is 'A flag after a step of its schedule.';

create or replace function internal.flag_schedule(f app.flags, schedule jsonb) returns jsonb
language plpgsql volatile as $$
declare
  sorted jsonb;
  step record;
  checked jsonb;
  steps jsonb := '[]';
begin
  if octet_length(flag_schedule.schedule::text) > 262144 then
    perform internal.invalid('schedule', 'must have at most 256 KB');
  elsif jsonb_typeof(flag_schedule.schedule) is distinct from 'array'
    or jsonb_array_length(flag_schedule.schedule) > 100 then
    perform internal.invalid('schedule', 'must be a list of at most 100');
  end if;
  perform internal.flag_time(case when jsonb_typeof(s.value) = 'object' then s.value -> 'at' end,
                             'schedule.' || (s.n - 1) || '.at')
     from jsonb_array_elements(flag_schedule.schedule) with ordinality s (value, n);
  -- in the order of their times, each validated against the result of the steps before
  for step in
    select s.value, s.n - 1 as place
      from jsonb_array_elements(flag_schedule.schedule) with ordinality s (value, n)
     order by internal.segment_date(s.value -> 'at'), s.n
  loop
    checked := internal.flag_step(f, step.value, 'schedule.' || step.place);
    steps := steps || jsonb_build_array(checked);
    f := internal.flag_patched(f, checked -> 'patch');
  end loop;
  return steps;
end $$;
comment on function internal.flag_schedule is
  'Validates a schedule and returns it as it is stored, ordered by time. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_tags(tags jsonb) returns text[]
language plpgsql volatile as $$
begin
  if jsonb_typeof(flag_tags.tags) is distinct from 'array' or jsonb_array_length(flag_tags.tags) > 20
     or exists (select from jsonb_array_elements(flag_tags.tags) t
                 where jsonb_typeof(t.value) <> 'string' or char_length(t.value #>> '{}') not between 1 and 50) then
    perform internal.invalid('tags', 'must be a list of at most 20 texts, each of 1 to 50 characters');
  end if;
  return array(select t.tag from jsonb_array_elements_text(flag_tags.tags) with ordinality t (tag, n) order by t.n);
end $$;
comment on function internal.flag_tags is
  'Validates tags and returns them as they are stored. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_changed(f app.flags, patch json) returns app.flags
language plpgsql volatile as $$
declare
  p jsonb;
  field text;
begin
  select e.key into field from json_each(flag_changed.patch) e where not internal.is_storable_json(e.value) limit 1;
  if found then
    perform internal.invalid(field, 'holds a character or a number that cannot be stored, or nests too deeply');
  end if;
  p := flag_changed.patch::jsonb;
  select k into field from jsonb_object_keys(p) k
   where k in ('name', 'is_enabled', 'rules', 'schedule', 'tags') and p -> k = 'null' limit 1;
  if found then
    perform internal.invalid(field, 'must not be null');
  end if;
  f.name := coalesce(p ->> 'name', f.name);
  f.description := case when p ? 'description' then p ->> 'description' else f.description end;
  f.owner := case when p ? 'owner' then p ->> 'owner' else f.owner end;
  f.is_enabled := coalesce((p -> 'is_enabled')::boolean, f.is_enabled);
  f.tags := case when p ? 'tags' then internal.flag_tags(p -> 'tags') else f.tags end;
  f.off_value := case when p ? 'off_value' then internal.flag_value(p -> 'off_value', f.value_type, 'off_value')
                      else f.off_value end;
  f.default_value := case when p ? 'default_value' then internal.flag_value(p -> 'default_value', f.value_type,
                                        'default_value') else f.default_value end;
  if p ? 'rules' then
    f := internal.flag_without_ramp(f);
    f.rules := internal.flag_rules(p -> 'rules', f.value_type, 'rules');
  end if;
  if p ? 'schedule' then
    f.schedule := internal.flag_schedule(f, p -> 'schedule');
    -- the ramp with its guardrail stays while the schedule has a step of it
    if not f.schedule @> jsonb_build_array(jsonb_build_object('patch',
                                                              jsonb_build_object('rule_index',
                                                                f.ramp -> 'rule_index'))) then
      f.ramp := null;
    end if;
  elsif f.schedule <> '[]' and p ?| array['rules', 'off_value', 'default_value'] then
    -- pending steps must still be valid
    f.schedule := internal.flag_schedule(f, f.schedule);
  end if;
  return f;
end $$;
comment on function internal.flag_changed is
  'Validates a patch and returns the flag with its fields: name, description, owner, is_enabled, tags, off_value,
   default_value, rules, schedule. New rules end a ramp. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.flag_without_ramp(f app.flags) returns app.flags
language plpgsql immutable as $$
begin
  f.schedule := coalesce((select jsonb_agg(s.value order by s.n)
                            from jsonb_array_elements(f.schedule) with ordinality s (value, n)
                           where not s.value -> 'patch' ? 'rule_index'), '[]');
  f.ramp := null;
  return f;
end $$;
comment on function internal.flag_without_ramp is
  'A flag without its ramp and without the steps of its schedule that change the percentage of a rule.';
