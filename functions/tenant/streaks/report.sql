-- Administrators' statistics of streaks. Status is a comparison of stored dates with the clock, and the clock is the
-- same for all users of a zone, so it is computed once for each zone: reading a hundred thousand users is one scan and two joins.

create or replace function internal.streak_statuses(definition app.streak_definitions)
returns table (app_user_id uuid, status text, current_count int, started_on int, last_period int, covered_through int, passed int,
               lapsed_through int, paused int[], created_at timestamptz)
language sql stable rows 10000 as $$
  with mine as (
    select s.*, case when (streak_statuses.definition).timezone_mode = 'fixed' then (streak_statuses.definition).timezone
                     else coalesce(t.name, 'UTC') end as zone
      from app.user_streaks s
      join app.users u on u.id = s.app_user_id
      left join app.timezones t on t.name = u.timezone
     where s.streak_definition_id = (streak_statuses.definition).id and s.first_qualified_at is not null
  ), clocks as materialized (
    select z.zone, c.*
      from (select distinct m.zone from mine m) z
     cross join lateral internal.streak_period_at(streak_statuses.definition, z.zone, null, internal.now()) c
  ), travellers as materialized (
    -- users whose last change of zone is older have the clock of their zone
    select v.app_user_id, c.*
      from (select distinct z.app_user_id
              from app.streak_timezones z
             where (streak_statuses.definition).timezone_mode = 'user' and z.moved_at > internal.now() - interval '95 days') v
      join mine m on m.app_user_id = v.app_user_id
     cross join lateral internal.streak_period_at(streak_statuses.definition, m.zone,
                                                  internal.streak_zone_changes(streak_statuses.definition, v.app_user_id), internal.now()) c
  ), paused as materialized (
    select p.app_user_id, internal.paused_periods(streak_statuses.definition, array_agg(p)) as numbers
      from app.streak_pauses p
     where p.streak_definition_id = (streak_statuses.definition).id and p.ends_on > (internal.now() - interval '70 days')::date
     group by p.app_user_id
  ), numbered as (
    select m.app_user_id, m.current_count, m.created_at, n.*, p.numbers as paused,
           coalesce(t.current, c.current) as current, coalesce(t.previous, c.previous) as previous, coalesce(t.passed, c.passed) as passed,
           coalesce(t.deadline, c.deadline) as deadline
      from mine m
      join clocks c on c.zone = m.zone
      left join travellers t on t.app_user_id = m.app_user_id
      left join paused p on p.app_user_id = m.app_user_id
     cross join lateral (
       select internal.period_number(r.period, r.week_starts_on, m.last_period) as last_period,
              internal.period_number(r.period, r.week_starts_on, m.started_on) as started_on,
              internal.period_number(r.period, r.week_starts_on, m.covered_through) as covered_through,
              internal.period_number(r.period, r.week_starts_on, m.lapsed_through) as lapsed_through
         from (values ((streak_statuses.definition).period, (streak_statuses.definition).week_starts_on)) as r (period, week_starts_on)
     ) n
  )
  select n.app_user_id,
         internal.streak_status(
           n.last_period, n.covered_through, n.current, n.previous, n.passed,
           case when n.paused is null then greatest(n.last_period, n.passed) < n.previous
                else internal.streak_has_open_period(n.last_period, n.passed, n.previous, n.paused) end,
           coalesce(n.current = any (n.paused), false),
           n.deadline - make_interval(hours => internal.streak_at_risk_hours(streak_statuses.definition))),
         n.current_count, n.started_on, n.last_period, n.covered_through, n.passed, n.lapsed_through, n.paused, n.created_at
    from numbered n
$$;
comment on function internal.streak_statuses is
  'The status of every user who ever qualified a streak, now. Reads all rows of the streak: a status is nowhere stored, so that no
   schedule can make it wrong.';

create or replace function internal.count_within(numbers int[], lowest int, highest int) returns int
language plpgsql immutable parallel safe as $$
begin
  if count_within.numbers is null then
    return 0;
  end if;
  return (select count(*) from unnest(count_within.numbers) n where n between count_within.lowest and count_within.highest);
end $$;
comment on function internal.count_within is 'How many of some numbers lie between two, both included; 0 for null.';

create or replace function internal.is_streak_begun(s app.user_streaks) returns boolean
language sql immutable as $$
  select (is_streak_begun.s).first_qualified_at is not null
$$;
comment on function internal.is_streak_begun is 'Whether a user has ever qualified the streak.';

select internal.count_declare('streak_users', 'app.user_streaks', key => 'streak_definition_id', condition => 'is_streak_begun', condition_reads => '{first_qualified_at}');

create or replace function api.streak_users(id_or_key text, status text default null, page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_users.id_or_key);
  total bigint;
  users json;
begin
  if streak_users.status is not null and streak_users.status not in ('active', 'at_risk', 'frozen', 'broken') then
    perform internal.invalid('status', 'must be active, at_risk, frozen or broken', 'INVALID_INPUT');
  end if;
  if streak_users.status is null then
    -- without a status the index of the list serves it
    total := coalesce(internal.list_counted('streak_users', 'app.user_streaks', d.id),
                      (select count(*) from app.user_streaks s where s.streak_definition_id = d.id and s.first_qualified_at is not null));
    select json_agg(internal.streak_of_user(d, p) order by p.created_at desc, p.app_user_id desc) into users
      from (select s.*
              from app.user_streaks s
             where s.streak_definition_id = d.id and s.first_qualified_at is not null
             order by s.created_at desc, s.app_user_id desc
             limit streak_users.page_limit offset streak_users.page_offset) p;
  else
    with matching as materialized (
      select m.app_user_id, m.created_at from internal.streak_statuses(d) m where m.status = streak_users.status
    ), page as (
      select m.app_user_id
        from matching m
       order by m.created_at desc, m.app_user_id desc
       limit streak_users.page_limit offset streak_users.page_offset
    )
    select (select count(*) from matching),
           (select json_agg(internal.streak_of_user(d, s) order by s.created_at desc, s.app_user_id desc)
              from page p
              join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (p.app_user_id, d.id))
      into total, users;
  end if;
  return internal.reply_page(users, total, streak_users.page_offset, streak_users.page_limit);
end $$;
comment on function api.streak_users is
  'Users who have a streak, newest first, all or those of one status. Refuses 404 STREAK_NOT_FOUND, 400 INVALID_INPUT.';

create or replace function internal.streak_of_user(definition app.streak_definitions, streak app.user_streaks) returns json
language sql stable as $$
  select internal.json_with(
           internal.json_with(internal.streak_json(streak_of_user.definition, streak_of_user.streak), 'app_user_id', to_json(u.id)),
           'app_users', json_build_object('id', u.id, 'display_name', u.display_name, 'avatar_url', u.avatar_url))
    from app.users u
   where u.id = (streak_of_user.streak).app_user_id
$$;
comment on function internal.streak_of_user is 'A streak with whose it is.';

create or replace function api.streak_stats(id_or_key text) returns api.reply
language plpgsql stable as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_stats.id_or_key);
  week_ago constant int := internal.period_number(d.period, d.week_starts_on, (internal.now() - interval '7 days')::date);
  stats json;
begin
  with everybody as materialized (
    select s.*,
           -- periods since the newest qualified one that used a freeze: over, covered, and not paused
           r.reached - s.last_period - internal.count_within(s.paused, s.last_period + 1, r.reached) as frozen,
           r.reached - greatest(s.last_period, week_ago - 1)
             - internal.count_within(s.paused, greatest(s.last_period + 1, week_ago), r.reached) as frozen_7d
      from internal.streak_statuses(d) s
     cross join lateral (select least(s.covered_through, s.passed) as reached) r
  ), settled as (
    select r.app_user_id, internal.period_number(d.period, d.week_starts_on, r.starts_on) as number
      from app.streak_periods r
     where r.streak_definition_id = d.id and r.source = 'freeze'
  ), buckets (label, lowest, highest) as (
    values ('1', 1, 1), ('2-6', 2, 6), ('7-13', 7, 13), ('14-29', 14, 29), ('30-89', 30, 89), ('90-364', 90, 364), ('365+', 365, null)
  ), lengths as (
    select e.current_count as length, count(*) as users
      from everybody e
     where e.status <> 'broken'
     group by e.current_count
  )
  select json_build_object(
    'active', count(*) filter (where e.status = 'active'),
    'at_risk', count(*) filter (where e.status = 'at_risk'),
    'frozen', count(*) filter (where e.status = 'frozen'),
    -- the first period that nothing covered was one of the last seven days
    'broken_7d', count(*) filter (where case when e.status = 'broken' then e.covered_through else e.lapsed_through end + 1 >= week_ago),
    'distribution', (
      select json_agg(json_build_object('bucket', b.label, 'users', (
               select coalesce(sum(l.users), 0) from lengths l where l.length between b.lowest and coalesce(b.highest, l.length)))
               order by b.lowest)
        from buckets b),
    'freezes_used_7d', coalesce(sum(greatest(e.frozen_7d, 0)), 0) + (select count(*) from settled f where f.number >= week_ago),
    'saved_by_freeze', count(*) filter (where e.status <> 'broken' and (e.frozen > 0 or exists (
      select from settled f where f.app_user_id = e.app_user_id and f.number >= e.started_on))))
    into stats
    from everybody e;
  return internal.reply(200, stats);
end $$;
comment on function api.streak_stats is
  'How a streak is doing: users by status, breaks and freezes used in the last seven days, living streaks by length, and how many of
   them a freeze has saved. Refuses 404 STREAK_NOT_FOUND. Reads all rows of the streak.';

create or replace function internal.streak_replay(definition app.streak_definitions, since timestamptz)
returns table (app_user_id uuid, is_broken boolean, length int)
language plpgsql stable rows 1000 as $$
declare
  d constant app.streak_definitions := streak_replay.definition;
  replayed record;
  folded record;
begin
  for replayed in
    with placed as (
      select e.app_user_id, internal.period_date(d.period, d.week_starts_on, p.number) as starts_on, count(*)::int as count,
             (count(*) filter (where p.reach >= 1))::int as open_1, (count(*) filter (where p.reach >= 2))::int as open_2,
             (count(*) filter (where p.reach >= 3))::int as open_3
        from app.engagement_events e
       cross join lateral internal.streak_place(d, internal.streak_zone_of(d, e.app_user_id), internal.streak_zone_changes(d, e.app_user_id),
                                                e.occurred_at) p
       where e.event_name = d.qualifying_event and e.occurred_at >= streak_replay.since
         and (d.event_filter is null or internal.filter_truth(d.event_filter, e.properties))
       group by 1, 2
    )
    select p.app_user_id,
           array_agg((p.app_user_id, d.id, p.starts_on, null, p.count, p.open_1, p.open_2, p.open_3, 0, d.min_count,
                      d.freeze_earn_every, d.freezes_max, null)::app.streak_periods) as periods
      from placed p
     group by p.app_user_id
  loop
    select f.chain as chain, c.passed as passed
      into folded
      from internal.streak_fold(
             d, internal.streak_zone_of(d, replayed.app_user_id), d.freezes_initial, replayed.periods,
             (select array_agg(p) from app.streak_pauses p
               where (p.app_user_id, p.streak_definition_id) = (replayed.app_user_id, d.id)), null) f
     cross join internal.streak_period_at(d, internal.streak_zone_of(d, replayed.app_user_id),
                                          internal.streak_zone_changes(d, replayed.app_user_id), internal.now()) c;
    if (folded.chain).last_period is not null then
      app_user_id := replayed.app_user_id;
      is_broken := (folded.chain).covered_through < folded.passed;
      length := (folded.chain).longest_count;
      return next;
    end if;
  end loop;
end $$;
comment on function internal.streak_replay is
  'What stored events since a time would have come to under a definition: per user whether the streak is broken now, and its longest
   chain. Pauses count, gifts and restores do not. Writes nothing.';

create or replace function api.streak_simulate(id_or_key text, definition jsonb default '{}', since timestamptz default null) returns api.reply
language plpgsql stable as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_simulate.id_or_key);
  requested constant app.streak_definitions := internal.streak_definition_with(d, streak_simulate.definition);
  since constant timestamptz := coalesce(streak_simulate.since, internal.now() - interval '30 days');
  outcome json;
begin
  if since > internal.now() or since < internal.now() - interval '366 days' then
    perform internal.invalid('since', 'must be within the last 366 days');
  end if;
  select json_build_object(
           'users', count(*),
           'broken_before', count(*) filter (where b.is_broken),
           'broken_after', count(*) filter (where a.is_broken),
           'median_length_before', percentile_cont(0.5) within group (order by b.length),
           'median_length_after', percentile_cont(0.5) within group (order by a.length))
    into outcome
    from internal.streak_replay(d, since) b
    full join internal.streak_replay(requested, since) a on a.app_user_id = b.app_user_id;
  return internal.reply(200, outcome);
end $$;
comment on function api.streak_simulate is
  'Replays real events since a time under the stored rules and under changed ones: {users, broken_before, broken_after,
   median_length_before, median_length_after}; writes nothing. Refuses 404 STREAK_NOT_FOUND, 400 VALIDATION_ERROR.';
