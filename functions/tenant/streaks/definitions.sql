-- Checks of streak definitions, and the effects of their changes on users.
comment on constraint streak_definitions_key_unique on app.streak_definitions is
  '409 CONFLICT key: A streak with this key exists.';
comment on constraint streak_definitions_qualifying_event_form on app.streak_definitions is
  '400 VALIDATION_ERROR qualifying_event: must have 1 to 255 characters, no white space at either end.';
comment on constraint streak_definitions_week_starts_on_0_to_7 on app.streak_definitions is
  '400 VALIDATION_ERROR week_starts_on: must be 1 (Monday) to 7 (Sunday); 0 is Sunday too.';
comment on constraint streak_definitions_timezone_when_fixed on app.streak_definitions is
  '400 VALIDATION_ERROR timezone: is required when timezone_mode is fixed, and must be left out otherwise.';
comment on constraint streak_definitions_initial_within_max on app.streak_definitions is
  '400 VALIDATION_ERROR freezes_initial: must be at most freezes_max.';

create or replace function internal.streak_definition_json(d app.streak_definitions) returns json
language sql stable as $$
  select json_build_object(
    'id', (streak_definition_json.d).id, 'key', (streak_definition_json.d).key, 'name', (streak_definition_json.d).name,
    'description', (streak_definition_json.d).description,
    'qualifying_event', (streak_definition_json.d).qualifying_event,
    'event_filter', (streak_definition_json.d).event_filter, 'period', (streak_definition_json.d).period,
    'min_count', (streak_definition_json.d).min_count, 'week_starts_on', (streak_definition_json.d).week_starts_on,
    'timezone_mode', (streak_definition_json.d).timezone_mode, 'timezone', (streak_definition_json.d).timezone,
    'grace_hours', (streak_definition_json.d).grace_hours,
    'freezes_initial', (streak_definition_json.d).freezes_initial,
    'freezes_max', (streak_definition_json.d).freezes_max,
    'freeze_earn_every', (streak_definition_json.d).freeze_earn_every,
    'at_risk_hours', internal.streak_at_risk_hours(streak_definition_json.d),
    'restore_window_hours', (streak_definition_json.d).restore_window_hours,
    'milestones', (streak_definition_json.d).milestones,
    'allow_client_qualify', (streak_definition_json.d).allow_client_qualify,
    'is_active', (streak_definition_json.d).is_active,
    'created_at', internal.iso((streak_definition_json.d).created_at),
    'updated_at', internal.iso((streak_definition_json.d).updated_at))
$$;
comment on function internal.streak_definition_json is
  'The JSON of a definition in responses, with the effective at_risk_hours.';

create or replace function internal.streak_rules_check(d app.streak_definitions) returns void
language plpgsql stable as $$
declare
  problem text := case when (streak_rules_check.d).event_filter is not null
                       then internal.filter_problem((streak_rules_check.d).event_filter::json) end;
  missing text;
begin
  select c.field into missing
    from jsonb_each(to_jsonb(streak_rules_check.d)) as c (field, value)
   where c.value = 'null' and c.field not in ('description', 'event_filter', 'timezone', 'at_risk_hours')
   limit 1;
  if missing is not null then
    perform internal.invalid(missing, 'must not be null');
  end if;
  if problem is not null then
    perform internal.invalid('event_filter', problem);
  end if;
  if (streak_rules_check.d).timezone is not null and not internal.is_timezone((streak_rules_check.d).timezone) then
    perform internal.invalid('timezone', 'must be the name of an IANA time zone');
  end if;
  -- repeats checks of the table, because a simulation stores no row that the table could check
  if ((streak_rules_check.d).timezone_mode = 'fixed') <> ((streak_rules_check.d).timezone is not null) then
    perform internal.invalid('timezone', 'is required when timezone_mode is fixed, and must be left out otherwise');
  elsif (streak_rules_check.d).freezes_initial > (streak_rules_check.d).freezes_max then
    perform internal.invalid('freezes_initial', 'must be at most freezes_max');
  end if;
  if jsonb_typeof((streak_rules_check.d).milestones) <> 'array'
    or jsonb_array_length((streak_rules_check.d).milestones) > 100 then
    perform internal.invalid('milestones', 'must be a list of at most 100');
  end if;
  select case
           when jsonb_typeof(m.value) <> 'object' then 'must be objects {count, reward}'
           when not coalesce(jsonb_typeof(m.value -> 'count') = 'number' and m.value ->> 'count' ~ '^[1-9][0-9]{0,5}$',
                             false)
             then 'must have a whole count of 1 to 999999'
           when not coalesce(jsonb_typeof(m.value -> 'reward') = 'object', false) then 'must have a reward, an object'
           when exists (select from jsonb_array_elements((streak_rules_check.d).milestones) o
                         group by o.value ->> 'count' having count(*) > 1) then 'must have different counts'
         end
    into problem
    from jsonb_array_elements((streak_rules_check.d).milestones) with ordinality as m (value, n)
   order by 1 nulls last
   limit 1;
  if problem is not null then
    perform internal.invalid('milestones', problem);
  end if;
end $$;
comment on function internal.streak_rules_check is
  'Checks what the constraints of app.streak_definitions cannot express: the filter''s form, the zone''s name, the
   milestones; and, for simulations, the constraints on two fields. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.streak_definition_find(id_or_key text) returns app.streak_definitions
language sql stable as $$
  select internal.streak_find(streak_definition_find.id_or_key)
$$;
comment on function internal.streak_definition_find is
  'As internal.streak_find. Refuses 404 STREAK_NOT_FOUND with details.hint.';

create or replace function internal.streak_definition_check(requested app.streak_definitions,
                                                            was app.streak_definitions, sent jsonb)
returns app.streak_definitions
language plpgsql stable as $$
declare
  d app.streak_definitions := streak_definition_check.requested;
begin
  -- a zone is of use to a fixed streak only
  if (streak_definition_check.was).id is not null and d.timezone_mode = 'user'
    and not coalesce(streak_definition_check.sent ? 'timezone', false) then
    d.timezone := null;
  end if;
  perform internal.streak_rules_check(d);
  if (streak_definition_check.was).id is not null
     and (d.period, case when d.period = 'week' then d.week_starts_on end)
       is distinct from ((streak_definition_check.was).period,
                         case when (streak_definition_check.was).period = 'week'
                                then (streak_definition_check.was).week_starts_on end)
     and exists (select from app.user_streaks s where s.streak_definition_id = d.id) then
    perform internal.fail(409, 'PERIOD_IMMUTABLE',
                          'The period can be changed only while nobody has this streak: create another streak.',
                          json_build_object('field', case when d.period = (streak_definition_check.was).period
                                                            then 'week_starts_on' else 'period' end));
  end if;
  return d;
end $$;
comment on function internal.streak_definition_check is
  'Checks what the constraints of app.streak_definitions cannot express. Refuses 400 VALIDATION_ERROR, 409
   PERIOD_IMMUTABLE once users have the streak.';

create or replace function internal.streak_definition_with(d app.streak_definitions, changes jsonb)
returns app.streak_definitions
language plpgsql stable as $$
declare
  changed app.streak_definitions := internal.definition_patched(
    streak_definition_with.d, streak_definition_with.changes,
    array(select c.name from internal.definition_columns(internal.definition_of('streak_definition')) c
           where c.is_field));
begin
  if changed.timezone_mode = 'user' and not coalesce(streak_definition_with.changes ? 'timezone', false) then
    changed.timezone := null;
  end if;
  perform internal.streak_rules_check(changed);
  return changed;
end $$;
comment on function internal.streak_definition_with is
  'A definition with some fields changed, for a simulation; unknown fields are ignored. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.streak_definition_before_update(was app.streak_definitions, sent jsonb) returns void
language plpgsql volatile as $$
begin
  -- users before definitions, as events lock them
  if streak_definition_before_update.sent ?| array['is_active', 'timezone_mode', 'timezone', 'grace_hours',
                                                   'at_risk_hours'] then
    perform internal.streak_users_lock((streak_definition_before_update.was).id);
  end if;
  perform internal.streak_definition_apply_time((streak_definition_before_update.was).id, false);
  if streak_definition_before_update.sent ?| array['period', 'week_starts_on'] then
    -- a user who starts concurrently holds a lock on the row, so the period cannot change under a first user
    perform from app.streak_definitions d where d.id = (streak_definition_before_update.was).id for update;
  end if;
end $$;
comment on function internal.streak_definition_before_update is
  'Locks the users whose deadlines a change moves, applies their time-based changes by the old rules, and locks the
   definition against a first user where its period may change.';

create or replace function internal.streak_definition_after_write(stored app.streak_definitions,
                                                                  was app.streak_definitions, sent jsonb)
returns void
language plpgsql volatile as $$
declare
  d constant app.streak_definitions := streak_definition_after_write.stored;
  o constant app.streak_definitions := streak_definition_after_write.was;
begin
  if o.id is not null
     and (d.is_active, d.timezone_mode, d.timezone, d.grace_hours, internal.streak_at_risk_hours(d))
       is distinct from (o.is_active, o.timezone_mode, o.timezone, o.grace_hours, internal.streak_at_risk_hours(o)) then
    perform internal.streak_definition_apply_time(d.id, true);
  end if;
end $$;
comment on function internal.streak_definition_after_write is
  'After a change that moves deadlines: reschedules the next check of all users.';

create or replace function internal.streak_definition_before_delete(doomed app.streak_definitions) returns void
language sql volatile as $$
  select internal.streak_users_lock((streak_definition_before_delete.doomed).id)
$$;
comment on function internal.streak_definition_before_delete is
  'Locks all users who have the streak, before the definition.';

create or replace function internal.streak_users_lock(definition_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'the rules of streaks are changed by administrators');
  perform internal.lock_users(array(
    select s.app_user_id from app.user_streaks s where s.streak_definition_id = streak_users_lock.definition_id));
end $$;
comment on function internal.streak_users_lock is
  'Locks all users who have a streak, before the streak itself: events use the same order, which prevents deadlocks.';

create or replace function internal.streak_definition_apply_time(definition_id uuid, is_changed boolean) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  due_users uuid[];
begin
  perform internal.check_caller('developer', 'the rules of streaks are changed by administrators');
  if streak_definition_apply_time.is_changed then
    perform from app.user_streaks s
      where s.streak_definition_id = streak_definition_apply_time.definition_id
      order by s.app_user_id
        for no key update;
    update app.user_streaks s
       set next_check_at = case when (internal.streak_definition(s.streak_definition_id)).is_active
                                  then internal.now() end
     where s.streak_definition_id = streak_definition_apply_time.definition_id and s.last_period is not null;
    perform internal.streaks_enqueue_tick(internal.now());
  else
    due_users := internal.lock_users(array(
      select s.app_user_id from app.user_streaks s
       where s.streak_definition_id = streak_definition_apply_time.definition_id
         and s.next_check_at <= internal.now()));
    perform from app.user_streaks s
      where s.streak_definition_id = streak_definition_apply_time.definition_id and s.app_user_id = any (due_users)
      order by s.app_user_id
        for no key update;
    perform internal.streaks_apply_time(due_users,
                                        array(select streak_definition_apply_time.definition_id
                                                from unnest(due_users)));
  end if;
end $$;
comment on function internal.streak_definition_apply_time is
  'Before the rules of a streak change: applies time-based changes by the old rules. After it: reschedules the next
   check of all users. Locks the users concerned, and their streaks.';

select internal.audit_declare('app.streak_definitions', 'streaks');
