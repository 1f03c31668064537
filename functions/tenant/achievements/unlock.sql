-- Unlocks: the values of criteria, when they are measured, and the rewards of an unlock. Lock order: users before their
-- rows.

create or replace function internal.achievement_values(criteria jsonb, app_user_ids uuid[],
                                                       before timestamptz default null)
returns table (app_user_id uuid, value numeric)
language plpgsql stable security definer set search_path = '' set plan_cache_mode = 'auto' rows 1000 as $$
declare
  kind constant text := achievement_values.criteria ->> 'type';
  name constant text := achievement_values.criteria ->> 'event_name';
  filter constant jsonb := nullif(achievement_values.criteria -> 'event_filter', 'null');
  since constant timestamptz := (achievement_values.criteria ->> 'since')::timestamptz;
  first_day constant date := (since at time zone 'UTC')::date;
  -- when `since` is not at midnight, its own day is counted from the log and the days after it from the counters
  is_midnight constant boolean := since = first_day::timestamp at time zone 'UTC';
begin
  if kind = 'event_count' and filter is null and achievement_values.before is null then
    return query
    select u.id, coalesce(c.count, 0) + coalesce(e.count, 0)
      from unnest(achievement_values.app_user_ids) as u (id)
      left join lateral (
        select sum(k.count) as count
          from app.user_event_counters k
         where k.app_user_id = u.id and k.event_name = name
           and (since is null or k.day > first_day or k.day = first_day and is_midnight)) c on true
      left join lateral (
        select count(*)::numeric as count
          from app.engagement_events l
         where not is_midnight and l.app_user_id = u.id and l.event_name = name and l.occurred_at >= since
           and l.occurred_at < (first_day + 1)::timestamp at time zone 'UTC') e on true
     where achievement_values.app_user_ids is not null
    union all
    select k.app_user_id, sum(k.count)
      from app.user_event_counters k
     where achievement_values.app_user_ids is null and k.event_name = name and (since is null or k.day >= first_day)
     group by k.app_user_id;
  elsif kind = 'event_count' then
    return query
    select l.app_user_id, count(*)::numeric
      -- two branches, of which one is empty at once, here and below: a condition `is null or in` would read the rows of
      -- all users also for a few
      from (select a.* from app.engagement_events a where achievement_values.app_user_ids is null
            union all
            select m.* from app.engagement_events m
             where m.app_user_id in (select unnest(achievement_values.app_user_ids))) l
     where l.event_name = name
       and (since is null or l.occurred_at >= since)
       and (achievement_values.before is null or l.occurred_at < achievement_values.before)
       and (filter is null or internal.filter_truth(filter, l.properties))
     group by l.app_user_id;
  elsif kind = 'xp_threshold' and achievement_values.before is null then
    return query
    select t.app_user_id, t.total::numeric
      from app.xp_totals t
     where achievement_values.app_user_ids is null
    union all
    select t.app_user_id, t.total::numeric
      from app.xp_totals t
     where t.app_user_id in (select unnest(achievement_values.app_user_ids));
  elsif kind = 'xp_threshold' then
    return query
    select t.app_user_id, sum(t.amount)
      from (select a.* from app.xp_transactions a where achievement_values.app_user_ids is null
            union all
            select m.* from app.xp_transactions m
             where m.app_user_id in (select unnest(achievement_values.app_user_ids))) t
     where t.created_at < achievement_values.before
     group by t.app_user_id;
  elsif kind = 'streak_length' then
    return query
    -- for a time in the past, the least that the streak must have had then: a streak grows by at most one a day
    select s.app_user_id,
           max(case when achievement_values.before is null
                    or s.last_qualified_at < achievement_values.before then s.longest_count
                    else greatest(0,
                                  s.longest_count - ceil(extract(epoch
                                                                 from internal.now() - achievement_values.before) /
                                                                   86400)::int) end)::numeric
      from (select a.* from app.user_streaks a where achievement_values.app_user_ids is null
            union all
            select m.* from app.user_streaks m
             where m.app_user_id in (select unnest(achievement_values.app_user_ids))) s
     where (achievement_values.criteria ->> 'streak_definition_id' is null
            or s.streak_definition_id = (achievement_values.criteria ->> 'streak_definition_id')::uuid)
     group by s.app_user_id;
  elsif kind = 'property_value' then
    return query
    select u.id, (u.properties #>> p.path)::numeric
      from (select a.id, a.properties from app.users a where achievement_values.app_user_ids is null
            union all
            select m.id, m.properties from app.users m where m.id in (select unnest(achievement_values.app_user_ids))) u
     cross join (select string_to_array(achievement_values.criteria ->> 'property_key', '.') as path) p
     where jsonb_typeof(u.properties #> p.path) = 'number';
  end if;
end $$;
comment on function internal.achievement_values is
  'The values of a criterion for some users, or for all that have one (null): now, or approximately at an earlier time.
   Events are read from counters, except with a filter. Granted to nobody.';

create or replace function internal.achievements_unlock(app_user_ids uuid[], achievement_ids uuid[], source text)
returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  made record;
begin
  with living as materialized (
    -- the lock waits for a concurrent deletion, after which the achievement is no longer found
    select a.id from app.achievements a where a.id = any (achievements_unlock.achievement_ids)
     order by a.id for key share
  ), unlocked as (
    insert into app.user_achievements as u (app_user_id, achievement_id, unlocked_at, source)
    select w.app_user_id, l.id, internal.now(), achievements_unlock.source
      from unnest(achievements_unlock.app_user_ids, achievements_unlock.achievement_ids) as w (app_user_id,
                                        achievement_id)
      join living l on l.id = w.achievement_id
     group by 1, 2
     order by 1, 2
    on conflict on constraint user_achievements_pkey do update
       set unlocked_at = excluded.unlocked_at, source = excluded.source, seen_at = null, revoked_at = null
     where u.revoked_at is not null
    returning u.app_user_id, u.achievement_id
  )
  select array_agg(u.app_user_id order by u.app_user_id, a.sort_order, a.id) as users,
         array_agg(json_build_object('app_user_id', u.app_user_id, 'key', a.key, 'name', a.name,
                                     'xp_reward', a.xp_reward)
                   order by u.app_user_id, a.sort_order, a.id) as effects,
         array_agg('svc.achievement.unlocked'::text) as names,
         array_agg(jsonb_build_object('achievement_id', a.id, 'key', a.key, 'name', a.name, 'icon_url', a.icon_url,
                                      'xp_reward', a.xp_reward,
                                      'source', achievements_unlock.source)
                   order by u.app_user_id, a.sort_order, a.id) as properties,
         array_agg((u.app_user_id, a.xp_reward, 'achievement', a.id::text, null, null, a.xp_reward, null,
                    internal.now(), internal.now())::internal.xp_move
                   order by u.app_user_id, a.sort_order, a.id)
           filter (where a.xp_reward > 0 and achievements_unlock.source <> 'grant') as moves
    into made
    from unlocked u
    join app.achievements a on a.id = u.achievement_id;
  if made.users is null then
    return 0;
  end if;
  perform internal.add_effects('achievements', made.effects);
  -- the ledger deduplicates by source, so a reward that was paid before is not paid again
  if made.moves is not null then
    perform internal.xp_apply(made.moves);
  end if;
  perform internal.emit_many(made.users, made.names, made.properties);
  return cardinality(made.users);
end $$;
comment on function internal.achievements_unlock is
  'Unlocks pairs of users and achievements, emits events and pays rewards for new ones, and returns how many. A grant
   pays nothing. The users must be locked. Granted to nobody.';

create or replace function internal.achievements_measure(app_user_ids uuid[], achievement_ids uuid[], source text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  users uuid[];
  reached uuid[];
begin
  with wanted as materialized (
    -- unnested in parallel: pairs of user and achievement
    select a.id, a.criteria, w.app_user_id, a.criteria ->> 'event_name' as event_name,
           (a.criteria ->> 'target_value')::numeric as target,
           a.criteria ->> 'type' = 'event_count' and coalesce(a.criteria -> 'event_filter', 'null') = 'null'
             and a.criteria ->> 'since' is null as is_of_all_days
      from (select distinct w.app_user_id, w.achievement_id
              from unnest(achievements_measure.app_user_ids, achievements_measure.achievement_ids) as w (app_user_id,
                                        achievement_id)) w
      join app.achievements a on a.id = w.achievement_id
     where not exists (select from app.user_achievements u
                        where (u.app_user_id, u.achievement_id) = (w.app_user_id, a.id) and u.revoked_at is null)
  ), valued as (
    -- the common case, an index lookup for each pair
    select w.app_user_id, w.id
      from wanted w
     where w.is_of_all_days
       and (select sum(k.count) from app.user_event_counters k
             where k.app_user_id = w.app_user_id and k.event_name = w.event_name) >= w.target
    union all
    select v.app_user_id, g.id
      from (select w.id, w.criteria, w.target, array_agg(w.app_user_id) as users from wanted w
             where not w.is_of_all_days group by w.id, w.criteria, w.target) g
     cross join lateral internal.achievement_values(g.criteria, g.users) v
     where v.value >= g.target
  )
  select array_agg(v.app_user_id order by v.app_user_id, v.id), array_agg(v.id order by v.app_user_id, v.id) into users,
         reached from valued v;
  if users is null then
    return '[]';
  end if;
  perform internal.achievements_unlock(users, reached, achievements_measure.source);
  return (select jsonb_agg(jsonb_build_object('app_user_id', r.app_user_id, 'achievement_id', a.id, 'key', a.key,
                                              'before', jsonb_build_object('unlocked', false),
                                              'after', jsonb_build_object('unlocked', true))
                           order by r.app_user_id, a.sort_order, a.id)
            from unnest(users, reached) as r (app_user_id, achievement_id)
            join app.achievements a on a.id = r.achievement_id);
end $$;
comment on function internal.achievements_measure is
  'Measures pairs of users and achievements that are not unlocked, unlocks those that reach their target, and returns
   these. The users must be locked. Granted to nobody.';

create or replace function internal.on_events__50_achievements(events app.engagement_events[]) returns void
language plpgsql volatile as $$
declare
  users uuid[];
  touched uuid[];
begin
  if not internal.event_hooks_may_run() or not exists (
    select from app.achievements a
     where a.is_active
       and (a.criteria ->> 'event_name' in (select i.event_name from unnest(on_events__50_achievements.events) i)
            or a.criteria ->> 'type' <> 'event_count'
            -- counters of two users that were merged
            or exists (select from unnest(on_events__50_achievements.events) i
                        where i.event_name = 'svc.user.merged'))) then
    return;
  end if;
  with happened as (
    select distinct i.app_user_id, i.event_name from unnest(on_events__50_achievements.events) i
  ), moved as (
    -- the values that an event may have changed; imported history changes streaks without emitting an event
    select h.app_user_id, h.event_name, 'event_count' as kind from happened h
    union all
    select h.app_user_id, null, 'xp_threshold' from happened h
     where h.event_name in ('svc.xp.awarded', 'svc.user.merged')
    union all
    select h.app_user_id, null, 'streak_length'
      from happened h
     where h.event_name in ('svc.streak.started', 'svc.streak.extended', 'svc.streak.restored', 'svc.user.merged')
        or exists (select from app.streak_definitions d where d.is_active and d.qualifying_event = h.event_name)
    union all
    select h.app_user_id, null, 'property_value' from happened h where h.event_name = 'svc.user.merged'
    union all
    select h.app_user_id, a.criteria ->> 'event_name', 'event_count'
      from happened h
      join app.achievements a on a.is_active and a.criteria ->> 'type' = 'event_count'
     where h.event_name = 'svc.user.merged'
  ), pairs as (
    select distinct m.app_user_id, a.id
      from moved m
      join app.achievements a on a.is_active and a.criteria ->> 'type' = m.kind
       and (m.kind <> 'event_count' or a.criteria ->> 'event_name' = m.event_name)
  )
  select array_agg(p.app_user_id), array_agg(p.id) into users, touched from pairs p;
  if users is not null then
    perform internal.achievements_measure(users, touched, 'criteria');
  end if;
end $$;
comment on function internal.on_events__50_achievements is
  'Measures the achievements whose criteria depend on values that an event changed, for its users.';

create or replace function internal.on_event__50_achievements(event app.engagement_events,
                                                              plan internal.achievement_plan)
returns void
language plpgsql volatile as $$
declare
  e constant app.engagement_events := on_event__50_achievements.event;
  p constant internal.achievement_plan := on_event__50_achievements.plan;
  counted numeric;
  near uuid[] := '{}';
begin
  if e.event_name = 'svc.user.merged' then
    perform internal.on_events__50_achievements(array[e]);
    return;
  end if;
  if p.counted is not null then
    select sum(k.count) into counted from app.user_event_counters k
     where k.app_user_id = e.app_user_id and k.event_name = e.event_name;
    for i in 1 .. cardinality(p.counted) loop
      if counted >= p.targets[i] then
        near := near || p.counted[i];
      end if;
    end loop;
  end if;
  if p.others is not null then
    near := near || array(
      select a.id
        from app.achievements a
       where a.id = any (p.others)
         and case a.criteria ->> 'type'
               when 'xp_threshold'
                 then exists (select from app.xp_totals t
                               where t.app_user_id = e.app_user_id
                                 and t.total >= (a.criteria ->> 'target_value')::numeric)
               when 'streak_length'
                 then exists (select from app.user_streaks s
                               where s.app_user_id = e.app_user_id
                                 and s.longest_count >= (a.criteria ->> 'target_value')::numeric
                                 and (a.criteria ->> 'streak_definition_id' is null
                                      or s.streak_definition_id = (a.criteria ->> 'streak_definition_id')::uuid))
               else true end);
  end if;
  -- most achievements are far from their target, or unlocked already
  if near <> '{}' then
    near := array(select n.id from unnest(near) as n (id)
                   where not exists (select from app.user_achievements u
                                      where (u.app_user_id, u.achievement_id) = (e.app_user_id, n.id)
                                        and u.revoked_at is null));
    if near <> '{}' then
      perform internal.achievements_measure(array_fill(e.app_user_id, array[cardinality(near)]), near, 'criteria');
    end if;
  end if;
end $$;
comment on function internal.on_event__50_achievements is
  'Measures the achievements that an event may have reached: by the counter, the total and the streaks of its user those
   that are, and whatever else there is.';

create or replace function internal.event_plan__achievements()
returns table (event_name text, plan internal.achievement_plan)
language sql stable as $$
  select m.event_name,
         (array_agg(a.id order by a.id) filter (where m.is_counted),
          array_agg((a.criteria ->> 'target_value')::numeric order by a.id) filter (where m.is_counted),
          array_agg(distinct a.id) filter (where not m.is_counted))::internal.achievement_plan
    from app.achievements a
   cross join lateral (
     select a.criteria ->> 'event_name' as event_name,
            coalesce(a.criteria -> 'event_filter', 'null') = 'null' and a.criteria ->> 'since' is null as is_counted
      where a.criteria ->> 'type' = 'event_count'
     union all
     select 'svc.xp.awarded', false where a.criteria ->> 'type' = 'xp_threshold'
     union all
     select s.name, false
       from unnest('{svc.streak.started,svc.streak.extended,svc.streak.restored}'::text[]) as s (name)
      where a.criteria ->> 'type' = 'streak_length'
     union all
     select d.qualifying_event, false from app.streak_definitions d
      where a.criteria ->> 'type' = 'streak_length' and d.is_active
     union all
     select 'svc.user.merged', false) m
   where a.is_active and m.event_name is not null
   group by 1
$$;
comment on function internal.event_plan__achievements is
  'The active achievements that an event may reach. Granted to nobody.';

create or replace trigger tg_achievements__event_plans
  after insert or delete or update of is_active, criteria on app.achievements
  for each statement execute function internal.tg_event_plans();

create or replace function internal.tg_users__achievements() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  touched uuid[];
begin
  select array_agg(a.id order by a.id) into touched
    from app.achievements a
   cross join lateral (select string_to_array(a.criteria ->> 'property_key', '.') as path) p
   where a.is_active and a.criteria ->> 'type' = 'property_value'
     and case when tg_op = 'INSERT' then new.properties #> p.path is not null
              else new.properties #> p.path is distinct from old.properties #> p.path end;
  if touched is not null then
    perform internal.achievements_measure(array(select new.id from unnest(touched)), touched, 'criteria');
  end if;
  return null;
end $$;
comment on function internal.tg_users__achievements is
  'Measures the achievements of a property that changed, or that a user is made with. The user''s row is locked by the
   change.';

create or replace trigger tg_users__achievements_of_new
  after insert on app.users
  for each row when (new.properties <> '{}')
  execute function internal.tg_users__achievements();

create or replace trigger tg_users__achievements
  after update of properties on app.users
  for each row when (old.properties is distinct from new.properties)
  execute function internal.tg_users__achievements();

create or replace function internal.reward__achievement_key(app_user_id uuid, part jsonb, source_type text,
                                                            source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  achievement uuid;
begin
  select a.id into achievement
    from app.achievements a
   where jsonb_typeof(reward__achievement_key.part) = 'string' and a.key = reward__achievement_key.part #>> '{}';
  if achievement is null then
    return '{"given": false, "reason": "there is no such achievement"}';
  end if;
  perform internal.lock_users(array[reward__achievement_key.app_user_id]);
  return jsonb_build_object('given', internal.achievements_unlock(array[reward__achievement_key.app_user_id],
                                                                  array[achievement], 'reward') = 1);
end $$;
comment on function internal.reward__achievement_key is
  'An achievement as part of a reward, by its key, with its XP; given false when the user has it. Granted to nobody.';

create or replace function internal.replay__achievements(app_user_ids uuid[], since timestamptz, until timestamptz)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  users uuid[];
  touched uuid[];
begin
  select array_agg(u.id), array_agg(a.id) into users, touched
    from unnest(replay__achievements.app_user_ids) as u (id)
   cross join app.achievements a
   where a.is_active;
  return coalesce(internal.achievements_measure(users, touched, 'backfill'), '[]');
end $$;
comment on function internal.replay__achievements is
  'Measures every achievement of these users from stored data, and unlocks those that reach their target. Values cover
   all time: the range selects only users.';

create or replace function internal.merge__achievements(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
begin
  insert into app.user_achievements as mine (app_user_id, achievement_id, unlocked_at, source, seen_at)
  select merge__achievements.survivor, t.achievement_id, t.unlocked_at, t.source, t.seen_at
    from app.user_achievements t
   where t.app_user_id = merge__achievements.other and t.revoked_at is null
   order by t.achievement_id
  on conflict on constraint user_achievements_pkey do update
     set unlocked_at = excluded.unlocked_at
   -- an achievement that was revoked from the surviving user is not restored by the merge
   where mine.revoked_at is null and mine.unlocked_at > excluded.unlocked_at;
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__achievements is
  'Unites two users'' unlocks, each with the earlier time. Granted to nobody.';

create or replace function internal.tg_user_achievements__forget() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.xp_transactions t
     set source_id = t.source_id || ' until ' || internal.new_id()
   where (t.app_user_id, t.source, t.source_id) = (old.app_user_id, 'achievement', old.achievement_id::text);
  return null;
end $$;
comment on function internal.tg_user_achievements__forget is
  'When a reset deletes an unlock, lets it be earned and paid again: renames the source_id of its row in the ledger,
   which stays.';

create or replace trigger tg_user_achievements__forget
  after delete on app.user_achievements
  for each row execute function internal.tg_user_achievements__forget();
