-- Consequences of a changed streak: milestones and their rewards, system events, and effects in the response. Freezes
-- as a reward.

create or replace function internal.streak_milestones_reached(definition app.streak_definitions,
                                                              before app.user_streaks, after app.user_streaks,
                                                              is_historical boolean)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- a continued chain starts from its former count, a new chain from 0
  is_same constant boolean := coalesce((streak_milestones_reached.before).last_period >=
    (streak_milestones_reached.after).started_on, false);
  already constant int := case when is_same then (streak_milestones_reached.before).current_count else 0 end;
  d constant app.streak_definitions := streak_milestones_reached.definition;
  s constant app.user_streaks := streak_milestones_reached.after;
  milestone record;
  reached uuid;
begin
  for milestone in
    select (m.value ->> 'count')::int as count, m.value -> 'reward' as reward
      from jsonb_array_elements(d.milestones) m
     where (m.value ->> 'count')::int > already and (m.value ->> 'count')::int <= s.current_count
     order by 1
  loop
    reached := null;
    insert into app.streak_milestones (app_user_id, streak_definition_id, count, reached_on, reached_at)
    select s.app_user_id, d.id, milestone.count, s.last_period, internal.now()
     where not exists (select from app.streak_milestones m
                        where (m.app_user_id, m.streak_definition_id, m.count) = (s.app_user_id, d.id, milestone.count)
                          and m.reached_on between s.started_on and s.last_period)
    returning id into reached;
    continue when reached is null;
    -- the source id contains the period divided by the count, so that a merge of two users does not pay the same days
    -- twice
    perform internal.grant_reward(s.app_user_id, milestone.reward, 'streak_milestone', concat_ws(
      ' ', d.id, milestone.count, internal.period_number(d.period, d.week_starts_on, s.last_period) / milestone.count));
    if not streak_milestones_reached.is_historical then
      perform internal.emit(s.app_user_id, 'svc.streak.milestone', jsonb_build_object(
        'streak_definition_id', d.id, 'key', d.key, 'name', d.name, 'count', milestone.count,
          'reward', milestone.reward));
    end if;
  end loop;
end $$;
comment on function internal.streak_milestones_reached is
  'Rewards the milestones that a chain passed between two states of its row, each once per chain. Granted to nobody.';

create or replace function internal.tg_user_streaks__forget_rewards() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a merge deletes one of two streaks, whose rewards stay paid; a streak that is deleted with its definition cannot be
  -- earned again
  if coalesce(current_setting('app.merges_streaks', true), '') = 'true'
     or not exists (select from app.streak_definitions d where d.id = old.streak_definition_id) then
    return null;
  end if;
  delete from app.reward_grants g
   where g.app_user_id = old.app_user_id and g.source_type = 'streak_milestone'
     and g.source_id like old.streak_definition_id || ' %';
  update app.xp_transactions t
     set source_id = t.source_id || ' until ' || internal.new_id()
   where t.app_user_id = old.app_user_id and t.source = 'reward'
     and t.source_id like 'streak_milestone ' || old.streak_definition_id || ' %'
     and t.source_id not like '% until %';
  return null;
end $$;
comment on function internal.tg_user_streaks__forget_rewards is
  'When a reset deletes a user''s streak, lets its milestones be paid again: renames the source_id of their rows in the
   ledger, which stay.';

create or replace trigger tg_user_streaks__forget_rewards
  after delete on app.user_streaks
  for each row execute function internal.tg_user_streaks__forget_rewards();

create or replace function internal.streak_notify_change(definition app.streak_definitions, before app.user_streaks,
                                                         after app.user_streaks, is_historical boolean)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := streak_notify_change.definition;
  b constant app.user_streaks := streak_notify_change.before;
  s constant app.user_streaks := streak_notify_change.after;
  zone constant text := internal.streak_zone_of(d, s.app_user_id);
  moves constant app.streak_timezones[] := internal.streak_zone_changes(d, s.app_user_id);
  clock record;
  was_alive boolean;
  status text := 'active';
  change text;
begin
  if s.last_period is null or (b.current_count, b.started_on, b.last_period, b.covered_through)
                              is not distinct from (s.current_count, s.started_on, s.last_period,
                                                    s.covered_through) then
    return null;
  end if;
  perform internal.streak_milestones_reached(d, b, s, streak_notify_change.is_historical);

  select internal.period_date(d.period, d.week_starts_on, c.passed) as passed,
         internal.period_date(d.period, d.week_starts_on, c.current) as current
    into clock
    from internal.streak_period_at(d, zone, moves, internal.now()) c;
  was_alive := coalesce(b.covered_through >= clock.passed, false);
  if s.covered_through < clock.passed or was_alive and s.current_count <= b.current_count then
    return null;
  end if;
  change := case
    -- a chain that had ended is part of this one: whole again
    when coalesce(case when was_alive then b.lapsed_through else b.last_period end >= s.started_on,
                  false) then 'restored'
    when was_alive then 'extended'
    else 'started'
  end;
  if not streak_notify_change.is_historical then
    perform internal.emit(s.app_user_id, 'svc.streak.' || change, internal.streak_properties(d, s));
  end if;
  if s.last_period < clock.current then
    status := (internal.streak_now(d, s)).status;
  end if;
  return internal.streak_effect_json(d, s, status, change);
end $$;
comment on function internal.streak_notify_change is
  'Emits the changes of a streak between two states of its row: milestones, svc.streak.started, extended or restored.
   Returns the effect for the response, which callers note for many streaks at once. A streak that is broken before and
   after emits nothing and returns null; imported history emits no events. Granted to nobody.';

create or replace function internal.streak_properties(definition app.streak_definitions, streak app.user_streaks)
returns jsonb
language sql stable as $$
  select jsonb_build_object(
    'streak_definition_id', (streak_properties.definition).id, 'key', (streak_properties.definition).key,
      'name', (streak_properties.definition).name,
    'current_count', (streak_properties.streak).current_count,
    'longest_count', (streak_properties.streak).longest_count)
$$;
comment on function internal.streak_properties is 'The properties of svc.streak.started, extended and restored.';

create or replace function internal.streak_effect_json(definition app.streak_definitions, streak app.user_streaks,
                                                       status text, change text)
returns json
language sql stable as $$
  select json_build_object(
    'app_user_id', (streak_effect_json.streak).app_user_id, 'key', (streak_effect_json.definition).key,
      'status', streak_effect_json.status,
    'current_count', (streak_effect_json.streak).current_count, 'change', streak_effect_json.change)
$$;
comment on function internal.streak_effect_json is 'The effect of an event on a streak, as the response shows it.';

create or replace function internal.reward__freezes(app_user_id uuid, part jsonb, source_type text, source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  item record;
  definition app.streak_definitions;
  gifts jsonb := '[]';
begin
  for item in
    select p.value ->> 'streak_key' as key, (p.value ->> 'amount')::int as amount
      from jsonb_array_elements(reward__freezes.part) p
     order by 1
  loop
    select d.* into definition from app.streak_definitions d where d.key = item.key;
    gifts := gifts || case
      when definition.id is null then jsonb_build_object('streak_key', item.key, 'given', 0, 'reason',
                                                         'there is no such streak')
      else jsonb_build_object('streak_key', item.key, 'given', internal.streak_give_freezes(
             reward__freezes.app_user_id, definition, item.amount, reward__freezes.source_type,
               reward__freezes.source_id))
    end;
  end loop;
  return jsonb_build_object('given', jsonb_path_exists(gifts, '$[*] ? (@.given > 0)'), 'freezes', gifts);
end $$;
comment on function internal.reward__freezes is
  'The freezes of a reward, [{streak_key, amount}], each up to its streak''s freezes_max; answers how many of each took
   effect. Granted to nobody.';

create or replace function internal.streak_give_freezes(app_user_id uuid, definition app.streak_definitions, amount int,
                                                        source_type text, source_id text)
returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := streak_give_freezes.definition;
  streak constant app.user_streaks := internal.streak_join(streak_give_freezes.app_user_id, d);
  state constant internal.streak_state := internal.streak_now(d, streak);
  given constant int := greatest(0, least(streak_give_freezes.amount, d.freezes_max - state.freezes_remaining));
begin
  if streak.app_user_id is null then
    return 0;
  end if;
  if given > 0 then
    insert into app.streak_freezes
      (app_user_id, streak_definition_id, applies_from, amount, freezes_max, source_type, source_id, granted_at)
    values (streak.app_user_id, d.id, internal.period_date(d.period, d.week_starts_on, state.passed + 1), given,
            d.freezes_max,
            streak_give_freezes.source_type, streak_give_freezes.source_id, internal.now());
    perform internal.streak_refold(streak.app_user_id, d);
  end if;
  return given;
end $$;
comment on function internal.streak_give_freezes is
  'Gives freezes, up to freezes_max, and returns how many: 0 when the streak was deleted concurrently. They cover
   periods from the oldest that is still open. Locks the user''s row of the streak. Granted to nobody.';
