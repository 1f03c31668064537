-- Progress of challenges: the values they count, when they are counted, and the rewards. Progress is computed from
-- stored data, never incremented, so it is exact for late joiners and for events in any order. Lock order: users before
-- their rows.

create or replace function internal.is_in_segment(segment_id uuid, app_user_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select is_in_segment.segment_id is null
      or is_in_segment.segment_id = any (internal.segments_holding(array[is_in_segment.segment_id],
                                                                   is_in_segment.app_user_id))
$$;
comment on function internal.is_in_segment is
  'Whether a user is in a segment; true for every user when segment_id is null. Accepts any user, because one user''s
   request may cause another''s events. Granted to nobody.';

create or replace function internal.first_whole_day(at timestamptz) returns date
language sql immutable parallel safe as $$
  select ((first_whole_day.at at time zone 'UTC') + interval '1 day' - interval '1 microsecond')::date
$$;
comment on function internal.first_whole_day is 'The first UTC day that lies whole after a time.';

create or replace function internal.challenge_values(challenge app.challenges, app_user_ids uuid[],
                                                     shift interval default '0')
returns table (app_user_id uuid, value bigint)
language plpgsql stable security definer set search_path = '' set plan_cache_mode = 'auto' rows 1000 as $$
declare
  c constant app.challenges := challenge_values.challenge;
  starts constant timestamptz := c.start_at - challenge_values.shift;
  ends constant timestamptz := c.end_at - challenge_values.shift;
  everybody constant boolean := challenge_values.app_user_ids is null;
  -- the UTC days that lie entirely within the window
  first_day constant date := internal.first_whole_day(starts);
  last_day constant date := (ends at time zone 'UTC')::date;
  days_from constant timestamptz := first_day::timestamp at time zone 'UTC';
  days_to constant timestamptz := last_day::timestamp at time zone 'UTC';
begin
  if c.goal_type = 'event_count' and c.event_name is null then
    return;
  elsif c.goal_type = 'event_count' and first_day < last_day and internal.now() < ends + interval '24 hours' then
    return query
    select w.id, sum(w.count)::bigint
      from (select k.app_user_id as id, k.count
              -- two branches, of which one is empty at once, here and below: a condition `everybody or in` would read
              -- all users also for a few
              from (select a.* from app.user_event_counters a where everybody
                    union all
                    select m.* from app.user_event_counters m
                     where m.app_user_id in (select unnest(challenge_values.app_user_ids))) k
             where k.event_name = c.event_name and k.day >= first_day and k.day < last_day
            union all
            -- the partial days at both ends of the window: counters have whole days only
            select e.app_user_id, 1
              from (select a.* from app.engagement_events a where everybody
                    union all
                    select m.* from app.engagement_events m
                     where m.app_user_id in (select unnest(challenge_values.app_user_ids))) e
             where e.event_name = c.event_name
               and (e.occurred_at >= starts and e.occurred_at < days_from
                    or e.occurred_at >= days_to and e.occurred_at < ends)) w
     group by w.id;
  elsif c.goal_type = 'event_count' then
    return query
    -- events received more than a day after the end do not count
    select e.app_user_id, count(*)
      from (select a.* from app.engagement_events a where everybody
            union all
            select m.* from app.engagement_events m
             where m.app_user_id in (select unnest(challenge_values.app_user_ids))) e
     where e.event_name = c.event_name and e.occurred_at >= starts and e.occurred_at < ends
       and e.received_at < ends + interval '24 hours'
     group by e.app_user_id;
  elsif c.goal_type = 'xp_earned' then
    return query
    select t.app_user_id, greatest(0, sum(t.amount))::bigint
      from (select a.* from app.xp_transactions a where everybody
            union all
            select m.* from app.xp_transactions m
             where m.app_user_id in (select unnest(challenge_values.app_user_ids))) t
     where t.occurred_at >= starts and t.occurred_at < ends and t.created_at < ends + interval '24 hours'
       and t.source <> 'merge'
       -- a bound that the index serves
       and t.id >= internal.xp_first_id(starts)
     group by t.app_user_id;
  else
    return query
    select r.app_user_id, max(r.length)::bigint
      from (select p.app_user_id, count(*) as length
              from (select s.app_user_id, s.streak_definition_id,
                           internal.period_number(d.period, d.week_starts_on, s.starts_on)
                             - row_number() over (partition by s.app_user_id,
                                                  s.streak_definition_id order by s.starts_on) as run
                      from (select a.* from app.streak_periods a where everybody
                            union all
                            select m.* from app.streak_periods m
                             where m.app_user_id in (select unnest(challenge_values.app_user_ids))) s
                      join app.streak_definitions d on d.id = s.streak_definition_id
                     where s.source is not null and s.starts_on >= (starts at time zone 'UTC')::date
                       and s.starts_on < ((ends at time zone 'UTC') + interval '1 day'
                                          - interval '1 microsecond')::date) p
             group by p.app_user_id, p.streak_definition_id, p.run) r
     group by r.app_user_id;
  end if;
end $$;
comment on function internal.challenge_values is
  'The progress of users (null: all who have any) towards a challenge''s goal in its window, or in an earlier one:
   events by occurred_at, XP, or the longest chain of periods. Granted to nobody.';

create or replace function internal.challenges_pay(app_user_ids uuid[], challenge_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  completer record;
begin
  for completer in
    select w.app_user_id, c.*
      from unnest(challenges_pay.app_user_ids, challenges_pay.challenge_ids) as w (app_user_id, challenge_id)
      join app.challenges c on c.id = w.challenge_id
     order by w.app_user_id, c.id
  loop
    -- one ledger entry for the XP of both fields, so that deduplication by source holds
    perform internal.grant_reward(completer.app_user_id, coalesce(completer.reward, '{}') || case
      when completer.reward_xp > 0 and jsonb_typeof(completer.reward -> 'xp') = 'number'
        -- limited to the maximum of one reward, instead of being refused
        then jsonb_build_object('xp', least(1000000000, (completer.reward ->> 'xp')::numeric + completer.reward_xp))
      when completer.reward_xp > 0 then jsonb_build_object('xp', completer.reward_xp)
      else '{}' end, 'challenge', completer.id::text);
    if completer.reward_achievement_id is not null then
      perform internal.achievements_unlock(array[completer.app_user_id], array[completer.reward_achievement_id],
                                           'reward');
    end if;
  end loop;
end $$;
comment on function internal.challenges_pay is
  'Pays users the rewards of completed challenges, once. The users must be locked. Granted to nobody.';

create or replace function internal.events_between(app_user_id uuid, event_name text, since timestamptz,
                                                   until timestamptz)
returns bigint
language plpgsql stable as $$
begin
  -- the log has a partition a month to look into, the counters of these days are one lookup
  if not exists (select from app.user_event_counters k
                  where k.app_user_id = events_between.app_user_id and k.event_name = events_between.event_name
                    and k.day >= (events_between.since at time zone 'UTC')::date
                    and k.day < internal.first_whole_day(events_between.until)) then
    return 0;
  end if;
  return (select count(*)
            from app.engagement_events e
           where e.app_user_id = events_between.app_user_id and e.event_name = events_between.event_name
             and e.occurred_at >= events_between.since and e.occurred_at < events_between.until
             -- skips partitions that end before the window or lie in the future; a device's clock may be five minutes
             -- ahead
             and e.received_at >= events_between.since - interval '5 minutes' and e.received_at <= internal.now());
end $$;
comment on function internal.events_between is
  'How many events of a name a user has in the log, within a time. Granted to nobody.';

create or replace function internal.challenges_measure(app_user_ids uuid[], challenge_ids uuid[]) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  found_ones record;
  moved record;
begin
  with wanted as materialized (
    -- unnested in parallel: pairs of user and definition
    select c.id, c, w.app_user_id, d.first_day, d.last_day,
           c.goal_type = 'event_count' and c.event_name is not null and d.first_day < d.last_day
             and internal.now() < c.end_at + interval '24 hours' as is_of_days
      from (select distinct w.app_user_id, w.challenge_id
              from unnest(challenges_measure.app_user_ids, challenges_measure.challenge_ids) as w (app_user_id,
                                        challenge_id)) w
      join app.challenges c on c.id = w.challenge_id
     cross join lateral (select internal.first_whole_day(c.start_at) as first_day,
                         (c.end_at at time zone 'UTC')::date as last_day) d
  ), edged as materialized (
    -- the partial days at both ends of windows: counters have whole days only. Challenges with the same window share
    -- them
    select x.app_user_id, x.event_name, x.since, x.until,
           internal.events_between(x.app_user_id, x.event_name, x.since, x.until) as count
      from (select w.app_user_id, (w.c).event_name, (w.c).start_at as since,
            w.first_day::timestamp at time zone 'UTC' as until
              from wanted w
             where w.is_of_days and (w.c).start_at < w.first_day::timestamp at time zone 'UTC'
            union
            select w.app_user_id, (w.c).event_name, w.last_day::timestamp at time zone 'UTC', (w.c).end_at
              from wanted w
             where w.is_of_days and w.last_day::timestamp at time zone 'UTC' < (w.c).end_at
               and w.last_day::timestamp at time zone 'UTC' < internal.now() + interval '1 hour') x
  ), valued as (
    -- the common case, an index lookup for each pair
    select w.app_user_id, w.id,
           coalesce((select sum(k.count)
                       from app.user_event_counters k
                      where k.app_user_id = w.app_user_id and k.event_name = (w.c).event_name and k.day >= w.first_day
                        and k.day < w.last_day), 0)
           + coalesce(s.count, 0) + coalesce(f.count, 0) as value
      from wanted w
      left join edged s on (s.app_user_id, s.event_name, s.since, s.until)
                           = (w.app_user_id, (w.c).event_name, (w.c).start_at,
                              w.first_day::timestamp at time zone 'UTC')
      left join edged f on (f.app_user_id, f.event_name, f.since, f.until)
                           = (w.app_user_id, (w.c).event_name, w.last_day::timestamp at time zone 'UTC', (w.c).end_at)
     where w.is_of_days
    union all
    select v.app_user_id, g.id, v.value
      from (select w.id, w.c, array_agg(w.app_user_id) as users from wanted w where not w.is_of_days group by w.id,
            w.c) g
     cross join lateral internal.challenge_values(g.c, g.users) v
  ), measured as (
    select w.id, w.app_user_id, (w.c).team_mode, (w.c).is_active, (w.c).goal_value,
           coalesce(v.value, 0)::bigint as amount, p.app_user_id is null as is_new,
           p.progress, p.group_id, p.status,
           case when (w.c).team_mode = 'group' then internal.challenge_team(w.c, w.app_user_id, p.group_id) end as team
      from wanted w
      left join valued v on (v.app_user_id, v.id) = (w.app_user_id, w.id)
      left join app.challenge_participants p on (p.app_user_id, p.challenge_id) = (w.app_user_id, w.id)
     where case when p.app_user_id is null
                -- the first qualifying activity joins a user who is eligible
                then v.value > 0 and internal.is_in_segment((w.c).segment_id, w.app_user_id)
                else p.status <> 'left' end
  ), reached as (
    select m.*, m.team is not null and exists (select from app.challenge_teams r
                                                where (r.challenge_id, r.group_id) = (m.id, m.team)) as is_reached
      from measured m
  ), evaluated as (
    select r.*, c.completes, r.is_new or c.completes or r.progress <> r.amount or r.group_id is distinct
      from r.team as moves
      from reached r
     cross join lateral (
       select r.is_active and coalesce(r.status, 'in_progress') = 'in_progress'
              -- whether a team has reached its target is checked by a job
              and case r.team_mode when 'none' then r.amount >= r.goal_value
                       else r.amount > 0 and r.is_reached end as completes) c
  )
  select array_agg(j.app_user_id) filter (where j.moves) as users, array_agg(j.id) filter (where j.moves) as ids,
         array_agg(j.amount) filter (where j.moves) as amounts, array_agg(j.team) filter (where j.moves) as teams,
         array_agg(j.completes) filter (where j.moves) as completing,
         array_agg(j.id) filter (where j.team is not null and j.amount > 0 and not j.is_reached) as looked_at,
         array_agg(j.team) filter (where j.team is not null and j.amount > 0 and not j.is_reached) as moved_teams,
         array_agg(j.app_user_id) filter (where j.team is not null and j.amount > 0 and not j.is_reached) as movers
    into found_ones
    from evaluated j;
  if found_ones.movers is not null then
    perform internal.challenge_teams_enqueue(found_ones.looked_at, found_ones.moved_teams, found_ones.movers);
  end if;
  if found_ones.users is null then
    return '[]';
  end if;

  with counted as (
    select w.*, p.app_user_id is null as is_new, coalesce(p.progress, 0) as before,
           coalesce(p.status = 'completed', false) as was_completed, c.name,
           c.goal_value
      from unnest(found_ones.users, found_ones.ids, found_ones.amounts, found_ones.teams, found_ones.completing)
             as w (app_user_id, challenge_id, amount, team, completes)
      join app.challenges c on c.id = w.challenge_id
      left join app.challenge_participants p on (p.app_user_id, p.challenge_id) = (w.app_user_id, w.challenge_id)
  ), living as materialized (
    -- the lock waits for a concurrent deletion, after which the challenge is no longer found
    select c.id from app.challenges c where c.id in (select k.challenge_id from counted k where k.is_new)
     order by c.id for key share
  ), kept as (
    select k.* from counted k where not k.is_new or k.challenge_id in (select l.id from living l)
  ), joined as (
    insert into app.challenge_participants (app_user_id, challenge_id, joined_at, progress, reached_at, status,
                                            completed_at, group_id)
    select k.app_user_id, k.challenge_id, internal.now(), k.amount, internal.now(),
           case when k.completes then 'completed' else 'in_progress' end, case when k.completes then internal.now() end,
           k.team
      from kept k
     where k.is_new
     order by k.app_user_id, k.challenge_id
  ), moved_on as (
    update app.challenge_participants p
       set progress = k.amount, reached_at = case when p.progress = k.amount then p.reached_at else internal.now() end,
           status = case when p.status = 'in_progress' and k.completes then 'completed' else p.status end,
           completed_at = coalesce(p.completed_at, case when k.completes then internal.now() end), group_id = k.team
      from kept k
     where not k.is_new and (p.app_user_id, p.challenge_id) = (k.app_user_id, k.challenge_id)
  )
  select array_agg(json_build_object('app_user_id', k.app_user_id, 'id', k.challenge_id, 'name', k.name,
                                     'progress', k.amount, 'goal_value', k.goal_value,
                                     'completed', k.completes or k.was_completed) order by k.app_user_id,
                                     k.challenge_id)
           filter (where internal.collects_effects()) as effects,
         array_agg(k.app_user_id order by k.app_user_id, k.challenge_id) filter (where k.completes) as completers,
         array_agg(k.challenge_id order by k.app_user_id, k.challenge_id) filter (where k.completes) as completed,
         array_agg(k.app_user_id order by k.app_user_id, k.challenge_id) filter (where k.is_new) as joiners,
         array_agg(k.challenge_id order by k.app_user_id, k.challenge_id) filter (where k.is_new) as joined,
         jsonb_agg(jsonb_build_object('app_user_id', k.app_user_id, 'challenge_id', k.challenge_id, 'before', k.before,
                                      'after', k.amount)
                   order by k.app_user_id, k.challenge_id) as changes
    into moved
    from kept k;
  perform internal.add_effects('challenges', moved.effects);
  perform internal.challenges_pay(moved.completers, moved.completed);
  -- most events neither join nor complete a challenge
  if moved.joiners is null and moved.completers is null then
    return moved.changes;
  end if;
  perform internal.emit_many(array_agg(e.app_user_id order by e.n, e.app_user_id),
                             array_agg(e.event_name order by e.n, e.app_user_id),
                             array_agg(jsonb_build_object('challenge_id', c.id, 'name', c.name, 'goal_type',
                                                          c.goal_type, 'goal_value', c.goal_value)
                                       order by e.n, e.app_user_id))
     from (select j.app_user_id, j.challenge_id, 'svc.challenge.joined' as event_name, 1 as n
             from unnest(moved.joiners, moved.joined) as j (app_user_id, challenge_id)
           union all
           select d.app_user_id, d.challenge_id, 'svc.challenge.completed', 2
             from unnest(moved.completers, moved.completed) as d (app_user_id, challenge_id)) e
     join app.challenges c on c.id = e.challenge_id;
  return moved.changes;
end $$;
comment on function internal.challenges_measure is
  'Recounts pairs of users and challenges, joins users at their first activity, completes those who reach the goal, pays
   rewards and emits events. Users who left are skipped; completed is final. Queues the recount of teams. Returns what
   changed. The users must be locked. Granted to nobody.';

create or replace function internal.challenges_of_xp(app_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  touched constant uuid[] := array(
    select c.id
      from app.challenges c
      join app.challenge_participants p on (p.app_user_id, p.challenge_id) = (challenges_of_xp.app_user_id, c.id)
     where c.goal_type = 'xp_earned' and c.is_active and c.start_at <= internal.now()
       and c.end_at > internal.now() - interval '24 hours');
begin
  perform internal.challenges_measure(array(select challenges_of_xp.app_user_id from unnest(touched)), touched);
end $$;
comment on function internal.challenges_of_xp is
  'Recounts a user''s challenges of XP after XP was taken, which emits no event and therefore runs no hook. The user
   must be locked. Granted to nobody.';

create or replace function internal.challenges_count_up(events app.engagement_events[], out users uuid[],
                                                        out challenge_ids uuid[])
language plpgsql volatile security definer
set search_path = '' set plan_cache_mode = 'force_generic_plan' set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off as $$
declare
  at constant timestamptz := internal.now();
  collects constant boolean := internal.collects_effects();
  counted record;
begin
  with happened as materialized (
    select e.app_user_id, e.event_name, min(e.occurred_at) as first_at, max(e.occurred_at) as last_at
      from unnest(challenges_count_up.events) e
     group by 1, 2
  ), open as materialized (
    select c.id, c.name, c.event_name, c.goal_value, c.team_mode, c.start_at, c.end_at, d.first_day, d.last_day,
           d.first_day::timestamp at time zone 'UTC' as days_from, d.last_day::timestamp at time zone 'UTC' as days_to
      from app.challenges c
     cross join lateral (select internal.first_whole_day(c.start_at) as first_day,
                                (c.end_at at time zone 'UTC')::date as last_day) d
     where c.is_active and c.goal_type = 'event_count' and c.end_at > at - interval '24 hours' and c.start_at <= at
       and c.event_name in (select h.event_name from happened h)
  ), valued as materialized (
    -- challenges with the same window share its value
    select w.app_user_id, w.event_name, w.start_at, w.end_at,
           coalesce((select sum(k.count)::bigint
                       from app.user_event_counters k
                      where k.app_user_id = w.app_user_id and k.event_name = w.event_name
                        and k.day >= w.first_day and k.day < w.last_day), 0)
           -- the partial days at both ends of the window: counters have whole days only
           + case when w.start_at < w.days_from
                  then internal.events_between(w.app_user_id, w.event_name, w.start_at, w.days_from) else 0 end
           + case when w.days_to < w.end_at and w.days_to < at + interval '1 hour'
                  then internal.events_between(w.app_user_id, w.event_name, w.days_to, w.end_at) else 0 end as amount
      from (select distinct h.app_user_id, h.event_name, o.start_at, o.end_at, o.first_day, o.last_day, o.days_from,
                   o.days_to
              from happened h
              join open o on o.event_name = h.event_name and h.first_at >= o.start_at and h.last_at < o.end_at
                         and o.first_day < o.last_day) w
  ), simple as materialized (
    select v.app_user_id, o.id, v.amount, o.name, o.goal_value
      from valued v
      join open o on o.event_name = v.event_name and o.start_at = v.start_at and o.end_at = v.end_at
      join app.challenge_participants p on p.app_user_id = v.app_user_id and p.challenge_id = o.id
     where o.team_mode = 'none' and v.amount < o.goal_value and p.status = 'in_progress' and p.group_id is null
       and p.progress <> v.amount
  ), wanted as (
    select count(*) as pairs
      from happened h
      join open o on o.event_name = h.event_name and h.first_at < o.end_at and h.last_at >= o.start_at
  ), moved as (
    update app.challenge_participants p
       set progress = s.amount, reached_at = at
      from simple s
     where p.app_user_id = s.app_user_id and p.challenge_id = s.id
       -- effects are noted in the order of users and challenges: of all here, or of none
       and (not collects or (select count(*) from simple) = (select w.pairs from wanted w))
    returning p.app_user_id, p.challenge_id, s.amount, s.name, s.goal_value
  )
  select (select w.pairs from wanted w) as wanted, count(*) as moved,
         array_agg(m.app_user_id || ' ' || m.challenge_id) as pairs,
         array_agg(json_build_object('app_user_id', m.app_user_id, 'id', m.challenge_id, 'name', m.name,
                                     'progress', m.amount, 'goal_value', m.goal_value, 'completed', false)
                   order by m.app_user_id, m.challenge_id) filter (where collects) as effects
    into counted
    from moved m;
  perform internal.add_effects('challenges', counted.effects);
  if counted.moved < counted.wanted then
    select array_agg(h.app_user_id), array_agg(h.id) into users, challenge_ids
      from (select distinct e.app_user_id, c.id
              from unnest(challenges_count_up.events) e
              join app.challenges c on c.event_name = e.event_name and c.is_active and c.goal_type = 'event_count'
               and c.end_at > at - interval '24 hours' and c.start_at <= at and e.occurred_at >= c.start_at
               and e.occurred_at < c.end_at) h
     -- an array would be searched for each, a subselect is hashed
     where counted.pairs is null or h.app_user_id || ' ' || h.id not in (select unnest(counted.pairs));
  end if;
end $$;
comment on function internal.challenges_count_up is
  'Sets the progress in challenges of events, of participants who neither join nor complete one, nor count for a team:
   one value for each user and window, and one statement for all. Returns the other pairs of users and challenges that
   the events belong to, or null, for internal.challenges_measure. By index alone: a plan made while a table was empty
   would scan it ever after. The users must be locked. Granted to nobody.';

create or replace function internal.on_events__40_challenges(events app.engagement_events[]) returns void
language plpgsql volatile as $$
declare
  users uuid[];
  touched uuid[];
begin
  -- counted by occurred_at; events that arrive late are accepted for a day after the end
  if not internal.event_hooks_may_run()
     or not exists (select from app.challenges c
                     where c.is_active and c.end_at > internal.now() - interval '24 hours'
                       and c.start_at <= internal.now()) then
    return;
  end if;
  if not internal.runs_sets()
     -- challenges of XP and of streaks, and merges
     and not exists (select from app.event_plans p
                      where p.challenges and p.event_name in (select i.event_name
                                                                from unnest(on_events__40_challenges.events) i)) then
    select c.users, c.challenge_ids into users, touched
      from internal.challenges_count_up(on_events__40_challenges.events) c;
    if users is not null then
      perform internal.challenges_measure(users, touched);
    end if;
    return;
  end if;
  with happened as (
    select i.app_user_id, i.event_name, i.occurred_at,
           i.event_name in ('svc.streak.started', 'svc.streak.extended', 'svc.streak.restored', 'svc.streak.frozen')
             or exists (select from app.streak_definitions d
                         where d.is_active and d.qualifying_event = i.event_name) as is_of_streaks
      from unnest(on_events__40_challenges.events) i
  )
  select array_agg(p.app_user_id), array_agg(p.id) into users, touched
    from (select distinct h.app_user_id, c.id
            from happened h
            join app.challenges c on c.is_active and c.end_at > internal.now() - interval '24 hours'
              and c.start_at <= internal.now()
             and (h.event_name = 'svc.user.merged'
                  or case c.goal_type
                       when 'event_count' then h.event_name = c.event_name and h.occurred_at >= c.start_at
                         and h.occurred_at < c.end_at
                       when 'xp_earned' then h.event_name = 'svc.xp.awarded'
                       else h.is_of_streaks end)) p;
  if users is not null then
    perform internal.challenges_measure(users, touched);
  end if;
end $$;
comment on function internal.on_events__40_challenges is
  'Counts the challenges under way that events belong to, for the users that they are of.';

create or replace function internal.on_event__40_challenges(event app.engagement_events, plan boolean) returns void
language plpgsql volatile as $$
declare
  e constant app.engagement_events := on_event__40_challenges.event;
  at constant timestamptz := internal.now();
  counting record;
  touched uuid[] := '{}';
  is_rare boolean := false;
  moved uuid[] := '{}';
  amount bigint;
  amounts bigint[] := '{}';
  effects json[] := '{}';
  edge_from timestamptz;
  edge_to timestamptz;
  at_edge bigint;
begin
  -- XP, streaks, or a merge of two users
  if on_event__40_challenges.plan
     and exists (select from app.challenges c
                  where c.is_active and c.end_at > at - interval '24 hours' and c.start_at <= at
                    and (c.goal_type <> 'event_count' or e.event_name = 'svc.user.merged')) then
    perform internal.on_events__40_challenges(array[e]);
    return;
  end if;
  for counting in
    select c.id, c.name, c.goal_value, p.progress, coalesce(p.status = 'in_progress', true) as may_complete,
           p.status = 'completed' as is_completed,
           p.status is not null and c.team_mode = 'none' and p.group_id is null
             and d.first_day < d.last_day as is_simple,
           (select sum(k.count)
              from app.user_event_counters k
             where k.app_user_id = e.app_user_id and k.event_name = e.event_name and k.day >= d.first_day
               and k.day < d.last_day) as amount,
           c.start_at, d.first_day::timestamp at time zone 'UTC' as days_from,
           d.last_day::timestamp at time zone 'UTC' as days_to, c.end_at
      from app.challenges c
     cross join lateral (select internal.first_whole_day(c.start_at) as first_day,
                         (c.end_at at time zone 'UTC')::date as last_day) d
      left join app.challenge_participants p on (p.app_user_id, p.challenge_id) = (e.app_user_id, c.id)
     where c.event_name = e.event_name and c.is_active and c.goal_type = 'event_count'
       and c.end_at > at - interval '24 hours'
       and c.start_at <= at and c.start_at <= e.occurred_at and c.end_at > e.occurred_at
       and p.status is distinct from 'left'
     order by c.id
  loop
    touched := touched || counting.id;
    continue when is_rare;
    if not counting.is_simple then
      is_rare := true;
      continue;
    end if;
    amount := coalesce(counting.amount, 0);
    -- the partial days at both ends of the window: counters have whole days only
    if counting.start_at < counting.days_from then
      -- challenges with the same window share one
      if (edge_from, edge_to) is distinct from (counting.start_at, counting.days_from) then
        edge_from := counting.start_at;
        edge_to := counting.days_from;
        at_edge := internal.events_between(e.app_user_id, e.event_name, edge_from, edge_to);
      end if;
      amount := amount + at_edge;
    end if;
    if counting.days_to < counting.end_at and counting.days_to < at + interval '1 hour' then
      amount := amount + internal.events_between(e.app_user_id, e.event_name, counting.days_to, counting.end_at);
    end if;
    if counting.may_complete and amount >= counting.goal_value then
      is_rare := true;
    elsif amount <> counting.progress then
      moved := moved || counting.id;
      amounts := amounts || amount;
      effects := effects || json_build_object('app_user_id', e.app_user_id, 'id', counting.id, 'name', counting.name,
                                              'progress', amount,
                                              'goal_value', counting.goal_value, 'completed', counting.is_completed);
    end if;
  end loop;
  -- participants that join, complete, or count for a team, locked in one order
  if is_rare then
    perform internal.challenges_measure(array_fill(e.app_user_id, array[cardinality(touched)]), touched);
    return;
  elsif moved = '{}' then
    return;
  end if;
  update app.challenge_participants p
     set progress = w.amount, reached_at = at
    from unnest(moved, amounts) as w (id, amount)
   -- both conditions, so that the user's former challenges are not read
   where p.app_user_id = e.app_user_id and p.challenge_id = any (moved) and p.challenge_id = w.id;
  perform internal.add_effects('challenges', effects);
end $$;
comment on function internal.on_event__40_challenges is
  'Sets the progress of challenges that a user takes part in to what is counted in their window. Who joins or completes,
   teams, and challenges of XP and of streaks are counted by internal.challenges_measure.';

create or replace function internal.event_plan__challenges() returns table (event_name text, plan boolean)
language sql stable as $$
  select n.event_name, bool_or(n.is_of_all)
    from (select c.event_name, false as is_of_all from app.challenges c
           where c.is_active and c.goal_type = 'event_count' and c.event_name is not null
          union
          select x.event_name, true
            from (values ('svc.xp.awarded', 'xp_earned'), ('svc.streak.started', 'streak_maintained'),
                  ('svc.streak.extended', 'streak_maintained'),
                         ('svc.streak.restored', 'streak_maintained'), ('svc.streak.frozen', 'streak_maintained'),
                         ('svc.user.merged', null))
                   as x (event_name, goal_type)
           where exists (select from app.challenges c
                          where c.is_active and (x.goal_type is null or c.goal_type = x.goal_type))
          union
          select d.qualifying_event, true
            from app.streak_definitions d
           where d.is_active and exists (select from app.challenges c
                                          where c.is_active and c.goal_type = 'streak_maintained')) n
   group by 1
$$;
comment on function internal.event_plan__challenges is
  'Which events active challenges count, whatever their time; true: not those of event_count alone. Granted to nobody.';

create or replace trigger tg_challenges__event_plans
  after insert or delete or update of is_active, goal_type, event_name on app.challenges
  for each statement execute function internal.tg_event_plans();

create or replace function internal.replay__challenges(app_user_ids uuid[], since timestamptz, until timestamptz)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  users uuid[];
  touched uuid[];
begin
  select array_agg(u.id), array_agg(c.id) into users, touched
    from unnest(replay__challenges.app_user_ids) as u (id)
   cross join app.challenges c
   where c.is_active and c.start_at < replay__challenges.until and c.end_at > replay__challenges.since
     and c.start_at <= internal.now();
  return coalesce(internal.challenges_measure(users, touched), '[]');
end $$;
comment on function internal.replay__challenges is
  'Recounts the challenges whose window overlaps the range. Completed stays completed. The users must be locked.';

create or replace function internal.merge__challenges(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
begin
  -- recounted with the events of both users when the merge emits its event
  insert into app.challenge_participants as mine (app_user_id, challenge_id, joined_at, progress, reached_at, status,
                                                  completed_at, group_id)
  select merge__challenges.survivor, t.challenge_id, t.joined_at, t.progress, t.reached_at, t.status, t.completed_at,
         t.group_id
    from app.challenge_participants t
   where t.app_user_id = merge__challenges.other and t.status <> 'left'
   order by t.challenge_id
  on conflict on constraint challenge_participants_pkey do update
     set joined_at = least(mine.joined_at, excluded.joined_at), status = excluded.status,
       completed_at = excluded.completed_at,
         progress = greatest(mine.progress, excluded.progress)
   where mine.status <> 'completed' and excluded.status = 'completed';
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__challenges is
  'Unites two users'' challenges: completed by one is completed, and rewarded no second time. Granted to nobody.';

create or replace function internal.tg_challenge_participants__forget() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.reward_grants g where (g.app_user_id, g.source_type, g.source_id) = (old.app_user_id, 'challenge',
                                        old.challenge_id::text);
  update app.xp_transactions t
     set source_id = t.source_id || ' until ' || internal.new_id()
   where (t.app_user_id, t.source, t.source_id) = (old.app_user_id, 'challenge', old.challenge_id::text);
  return null;
end $$;
comment on function internal.tg_challenge_participants__forget is
  'When a reset deletes a participation, lets the challenge be completed and paid again.';

create or replace trigger tg_challenge_participants__forget
  after delete on app.challenge_participants
  for each row execute function internal.tg_challenge_participants__forget();
