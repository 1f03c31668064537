-- Administrators' statistics of streaks. Status is a comparison of stored dates with the clock, and the clock is the
-- same for all users of a zone, so it is computed once for each zone: reading a hundred thousand users is one scan and
-- two joins.

create or replace function internal.streak_statuses(definition app.streak_definitions, app_user_ids uuid[] default null)
returns table (app_user_id uuid, status text, current_count int, started_on int, last_period int, covered_through int,
               passed int,
               lapsed_through int, paused int[], created_at timestamptz)
language sql stable rows 10000 as $$
  with mine as (
    select s.*, case when (streak_statuses.definition).timezone_mode = 'fixed'
                       then (streak_statuses.definition).timezone
                     else coalesce(t.name, 'UTC') end as zone
      -- two branches, of which one is empty at once: a condition `is null or in` would read the streaks of all users
      -- also for a few
      from (select a.* from app.user_streaks a where streak_statuses.app_user_ids is null
            union all
            select m.* from app.user_streaks m where m.app_user_id in (select unnest(streak_statuses.app_user_ids))) s
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
             where (streak_statuses.definition).timezone_mode = 'user'
               and z.moved_at > internal.now() - interval '95 days') v
      join mine m on m.app_user_id = v.app_user_id
     cross join lateral internal.streak_period_at(streak_statuses.definition, m.zone,
                                                  internal.streak_zone_changes(streak_statuses.definition,
                                                    v.app_user_id), internal.now()) c
  ), paused as materialized (
    select p.app_user_id, internal.paused_periods(streak_statuses.definition, array_agg(p)) as numbers
      from app.streak_pauses p
     where p.streak_definition_id = (streak_statuses.definition).id
       and p.ends_on > (internal.now() - interval '70 days')::date
     group by p.app_user_id
  ), numbered as (
    select m.app_user_id, m.current_count, m.created_at, n.*, p.numbers as paused,
           coalesce(t.current, c.current) as current, coalesce(t.previous, c.previous) as previous,
           coalesce(t.passed, c.passed) as passed,
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
         from (values ((streak_statuses.definition).period, (streak_statuses.definition).week_starts_on)) as r (period,
                                        week_starts_on)
     ) n
  )
  select n.app_user_id,
         internal.streak_status(
           n.last_period, n.covered_through, n.current, n.previous, n.passed,
           case when n.paused is null then greatest(n.last_period, n.passed) < n.previous
                else internal.streak_has_open_period(n.last_period, n.passed, n.previous, n.paused) end,
           coalesce(n.current = any (n.paused), false),
           n.deadline - make_interval(hours => internal.streak_at_risk_hours(streak_statuses.definition))),
         n.current_count, n.started_on, n.last_period, n.covered_through, n.passed, n.lapsed_through, n.paused,
         n.created_at
    from numbered n
$$;
comment on function internal.streak_statuses is
  'The present status of some or all (null) users who ever qualified a streak. Reads each user''s row of the streak:
   statuses are computed and never stored, so they do not depend on a schedule.';

create or replace function internal.count_within(numbers int[], lowest int, highest int) returns int
language plpgsql immutable parallel safe as $$
begin
  if count_within.numbers is null then
    return 0;
  end if;
  return (select count(*) from unnest(count_within.numbers) n
           where n between count_within.lowest and count_within.highest);
end $$;
comment on function internal.count_within is
  'The number of array elements between two bounds, both included; 0 for null.';

create or replace function internal.is_streak_begun(s app.user_streaks) returns boolean
language sql immutable as $$
  select (is_streak_begun.s).first_qualified_at is not null
$$;
comment on function internal.is_streak_begun is 'Whether a user has ever qualified the streak.';

select internal.count_declare('streak_users', 'app.user_streaks', key => 'streak_definition_id',
                              condition => 'is_streak_begun', condition_reads => '{first_qualified_at}');

create or replace function internal.streak_users_of_status(definition app.streak_definitions, status text,
                                                           page_offset int, page_limit int,
                                                           affordable int default 50000,
                                                           patience interval default '2 seconds', out users json,
                                                           out total bigint)
-- a generic plan would serve both all users and a batch, and read all users for each batch
language plpgsql volatile set plan_cache_mode = 'force_custom_plan' as $$
declare
  d constant app.streak_definitions := streak_users_of_status.definition;
  wanted constant int := streak_users_of_status.page_offset + streak_users_of_status.page_limit;
  began constant timestamptz := clock_timestamp();
  -- bounds that hold in every time zone, also for users who changed zone: a broken streak was last covered before the
  -- newest period that cannot be saved in any zone, any other streak since the first period that can be saved in some
  -- zone; they leave few candidates for a status
  is_broken constant boolean := streak_users_of_status.status = 'broken';
  covered_before constant date := case when is_broken then internal.period_date(d.period, d.week_starts_on, (
    select c.passed from internal.streak_period_at(d, 'Pacific/Kiritimati', null,
                                                   internal.now()) c)) else 'infinity' end;
  covered_from constant date := case when is_broken then '-infinity'
                                     else internal.period_date(d.period, d.week_starts_on, (
    select c.current - 7 from internal.streak_period_at(d, 'Etc/GMT+12', null, internal.now()) c)) end;
  population bigint;
  everybody bigint := internal.list_counted('streak_users', 'app.user_streaks', d.id);
  candidates uuid[];
  batch uuid[];
  last_at timestamptz := 'infinity';
  last_id uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  matching uuid[] := '{}';
  size int := 200;
  is_over boolean := false;
begin
  if coalesce(everybody, 0) > streak_users_of_status.affordable then
    candidates := array(select s.app_user_id
                          from app.user_streaks s
                         where s.streak_definition_id = d.id and s.first_qualified_at is not null
                           and s.covered_through < covered_before and s.covered_through >= covered_from
                         limit streak_users_of_status.affordable + 1);
  end if;
  if coalesce(cardinality(candidates), 0) <= streak_users_of_status.affordable then
    matching := array(select m.app_user_id from internal.streak_statuses(d, candidates) m
                       where m.status = streak_users_of_status.status
                       order by m.created_at desc, m.app_user_id desc);
    total := cardinality(matching);
  else
    -- newest first, in batches that grow, until the page is full
    while cardinality(matching) < wanted and not is_over
      and clock_timestamp() < began + streak_users_of_status.patience loop
      select array_agg(l.app_user_id), (array_agg(l.created_at order by l.created_at, l.app_user_id))[1],
             (array_agg(l.app_user_id order by l.created_at, l.app_user_id))[1]
        into batch, last_at, last_id
        from (select s.app_user_id, s.created_at
                from app.user_streaks s
               where s.streak_definition_id = d.id and s.first_qualified_at is not null
                 and (s.created_at, s.app_user_id) < (last_at, last_id)
                 and s.covered_through < covered_before and s.covered_through >= covered_from
               order by s.created_at desc, s.app_user_id desc
               limit size) l;
      is_over := coalesce(cardinality(batch), 0) < size;
      matching := matching || array(select m.app_user_id from internal.streak_statuses(d, batch) m
                                     where batch is not null and m.status = streak_users_of_status.status
                                     order by m.created_at desc, m.app_user_id desc);
      size := least(size * 2, 5000);
    end loop;
    if is_over then
      total := cardinality(matching);
    else
      population := internal.users_estimate();
      total := greatest(
        cardinality(matching),
        (select round(everybody * count(*) filter (where m.status = streak_users_of_status.status)::numeric / greatest(
          count(*), 1))
           from internal.streak_statuses(d, (select s.ids
                                               from internal.users_sampled(population, 1,
                                                 internal.users_afforded(population, everybody, 5000)) s)) m));
    end if;
  end if;
  users := (select json_agg(internal.streak_of_user(d, s) order by p.n)
              from unnest(matching[streak_users_of_status.page_offset + 1 : wanted]) with ordinality as p (id, n)
              join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (p.id, d.id));
end $$;
comment on function internal.streak_users_of_status is
  'A page of users of one status, newest first, and their number. Exact while at most affordable users have the streak,
   or may have the status by the dates of their streaks. Beyond that, users are read in order until the page is full or
   patience has elapsed, and total is estimated from a sample.';

create or replace function api.streak_users(id_or_key text, status text default null, page_offset int default 0,
                                            page_limit int default 50, include text default null)
returns api.reply
language plpgsql volatile as $$
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
                      (select count(*) from app.user_streaks s
                        where s.streak_definition_id = d.id and s.first_qualified_at is not null));
    select json_agg(internal.streak_of_user(d, p) order by p.created_at desc, p.app_user_id desc) into users
      from (select s.*
              from app.user_streaks s
             where s.streak_definition_id = d.id and s.first_qualified_at is not null
             order by s.created_at desc, s.app_user_id desc
             limit streak_users.page_limit offset streak_users.page_offset) p;
  else
    select p.users, p.total into users, total
      from internal.streak_users_of_status(d, streak_users.status, streak_users.page_offset, streak_users.page_limit) p;
  end if;
  return internal.reply_with_users(internal.reply_page(users, total, streak_users.page_offset, streak_users.page_limit),
                                   streak_users.include);
end $$;
comment on function api.streak_users is
  'Users who have a streak, newest first, all or those of one status; in large projects, total with a status is an
   estimate: see internal.streak_users_of_status. Refuses 404 STREAK_NOT_FOUND, 400 INVALID_INPUT.';

create or replace function internal.streak_of_user(definition app.streak_definitions, streak app.user_streaks)
returns json
language sql stable as $$
  select internal.json_with(
           internal.json_with(internal.streak_json(streak_of_user.definition, streak_of_user.streak), 'app_user_id',
                              to_json(u.id)),
           'app_users', json_build_object('id', u.id, 'display_name', u.display_name, 'avatar_url', u.avatar_url))
    from app.users u
   where u.id = (streak_of_user.streak).app_user_id
$$;
comment on function internal.streak_of_user is 'A streak with its user.';

create or replace function internal.streak_figures(definition app.streak_definitions, affordable int default 50000)
returns json
language plpgsql volatile as $$
declare
  d constant app.streak_definitions := streak_figures.definition;
  week_ago constant int := internal.period_number(d.period, d.week_starts_on,
                                                  (internal.now() - interval '7 days')::date);
  reads constant bigint := coalesce(internal.list_counted('streak_users', 'app.user_streaks', d.id), 0);
  is_estimate constant boolean := reads > streak_figures.affordable;
  population constant bigint := internal.users_estimate();
  -- null for everybody
  sampled uuid[];
  pages int[];
  scale numeric := 1;
  figures json;
begin
  if is_estimate then
    -- how many have the streak is known: their shares are estimated
    select coalesce(array_agg(i.id order by i.n), '{}'), coalesce(array_agg(i.page order by i.n), '{}')
      into sampled, pages
      from internal.users_sampled(population, 1, internal.users_afforded(population, reads, 10000)) u
     cross join lateral unnest(u.ids, u.pages) with ordinality as i (id, page, n)
      join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (i.id, d.id)
     where s.first_qualified_at is not null;
    scale := reads::numeric / greatest(cardinality(sampled), 1);
  end if;
  with everybody as materialized (
    select s.*,
           -- periods since the newest qualified one that used a freeze: over, covered, and not paused
           r.reached - s.last_period - internal.count_within(s.paused, s.last_period + 1, r.reached) as frozen,
           r.reached - greatest(s.last_period, week_ago - 1)
             - internal.count_within(s.paused, greatest(s.last_period + 1, week_ago), r.reached) as frozen_7d
      from internal.streak_statuses(d, sampled) s
     cross join lateral (select least(s.covered_through, s.passed) as reached) r
  ), settled as (
    select r.app_user_id, internal.period_number(d.period, d.week_starts_on, r.starts_on) as number
      from app.streak_periods r
     where r.streak_definition_id = d.id and r.source = 'freeze'
       and (not is_estimate or r.app_user_id in (select unnest(sampled)))
  ), buckets (label, lowest, highest) as (
    values ('1', 1, 1), ('2-6', 2, 6), ('7-13', 7, 13), ('14-29', 14, 29), ('30-89', 30, 89), ('90-364', 90, 364),
      ('365+', 365, null)
  ), lengths as (
    select e.current_count as length, count(*) as users
      from everybody e
     where e.status <> 'broken'
     group by e.current_count
  )
  select json_build_object(
    'is_estimate', is_estimate,
    'margin', case when is_estimate then internal.sample_margin(reads, pages, array(
                select exists (select from everybody w where w.app_user_id = i.id and w.status = 'active')
                  from unnest(sampled) with ordinality as i (id, n)
                 order by i.n)) else 0 end,
    'active', round(scale * count(*) filter (where e.status = 'active')),
    'at_risk', round(scale * count(*) filter (where e.status = 'at_risk')),
    'frozen', round(scale * count(*) filter (where e.status = 'frozen')),
    -- the first period that nothing covered was one of the last seven days
    'broken_7d', round(scale * count(*) filter (where case when e.status = 'broken' then e.covered_through
                                                           else e.lapsed_through end + 1 >= week_ago)),
    'distribution', (
      select json_agg(json_build_object('bucket', b.label, 'users', (
               select round(scale * coalesce(sum(l.users), 0)) from lengths l
                where l.length between b.lowest and coalesce(b.highest, l.length)))
               order by b.lowest)
        from buckets b),
    'freezes_used_7d', round(scale * (coalesce(sum(greatest(e.frozen_7d, 0)), 0) + (select count(*) from settled f
                                        where f.number >= week_ago))),
    'saved_by_freeze', round(scale * count(*) filter (where e.status <> 'broken' and (e.frozen > 0 or exists (
      select from settled f where f.app_user_id = e.app_user_id and f.number >= e.started_on)))))
    into figures
    from everybody e;
  return figures;
end $$;
comment on function internal.streak_figures is
  'The body of api.streak_stats. Exact while at most affordable users have the streak; otherwise an estimate from up to
   10,000 users, whose active is within margin in 95 of 100 samples.';

create or replace function api.streak_stats(id_or_key text) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.streak_figures(internal.streak_find(streak_stats.id_or_key)))
$$;
comment on function api.streak_stats is
  'Statistics of a streak: users by status, breaks and freezes used in the last seven days, living streaks by length,
   and how many of them a freeze has saved; with many users an estimate: see internal.streak_figures. Refuses 404
   STREAK_NOT_FOUND.';

create or replace function internal.streak_replay(definition app.streak_definitions, since timestamptz,
                                                  app_user_ids uuid[] default null)
returns table (app_user_id uuid, is_broken boolean, length int)
language plpgsql stable rows 1000 as $$
declare
  d constant app.streak_definitions := streak_replay.definition;
  replayed record;
  folded record;
begin
  for replayed in
    with placed as (
      select e.app_user_id, internal.period_date(d.period, d.week_starts_on, p.number) as starts_on,
             count(*)::int as count,
             (count(*) filter (where p.reach >= 1))::int as open_1,
             (count(*) filter (where p.reach >= 2))::int as open_2,
             (count(*) filter (where p.reach >= 3))::int as open_3
        -- two branches, of which one is empty at once: a condition `is null or in` would read the events of all users
        -- also for a few
        from (select a.* from app.engagement_events a where streak_replay.app_user_ids is null
              union all
              select m.* from app.engagement_events m
               where m.app_user_id in (select unnest(streak_replay.app_user_ids))) e
       cross join lateral internal.streak_place(d, internal.streak_zone_of(d, e.app_user_id),
                                                internal.streak_zone_changes(d, e.app_user_id),
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
  'The result of applying stored events since a time under a definition, for some or all (null) users: per user, whether
   the streak is broken now, and its longest chain. Includes pauses, but not gifts and restores. Writes nothing.';

create or replace function internal.streak_simulation(stored app.streak_definitions, requested app.streak_definitions,
                                                      since timestamptz, affordable int default 5000)
returns json
language plpgsql volatile as $$
declare
  population constant bigint := internal.users_estimate();
  reads constant bigint := internal.planned_rows(format('select from app.engagement_events e where e.event_name = %L '
                                                        'and e.occurred_at >= %L',
                                                        (streak_simulation.stored).qualifying_event,
                                                        streak_simulation.since));
  is_estimate constant boolean := reads > streak_simulation.affordable;
  -- null for everybody
  sampled uuid[];
  pages int[];
  scale numeric := 1;
begin
  if is_estimate then
    select s.ids, s.pages into sampled, pages
      from internal.users_sampled(population, 1, internal.users_afforded(population, reads, 2500)) s;
    scale := population::numeric / greatest(cardinality(sampled), 1);
  end if;
  return (
    with replayed as materialized (
      select coalesce(b.app_user_id, a.app_user_id) as app_user_id, b.is_broken as was_broken, a.is_broken,
             b.length as former_length, a.length
        from internal.streak_replay(streak_simulation.stored, streak_simulation.since, sampled) b
        full join internal.streak_replay(streak_simulation.requested, streak_simulation.since,
                                         sampled) a on a.app_user_id = b.app_user_id
    )
    select json_build_object(
             'users', round(scale * count(*)),
             'is_estimate', is_estimate,
             'margin', case when is_estimate then internal.sample_margin(population, pages, array(
                         select exists (select from replayed w where w.app_user_id = i.id)
                           from unnest(sampled) with ordinality as i (id, n) order by i.n))
                            else 0 end,
             'broken_before', round(scale * count(*) filter (where r.was_broken)),
             'broken_after', round(scale * count(*) filter (where r.is_broken)),
             'median_length_before', percentile_cont(0.5) within group (order by r.former_length),
             'median_length_after', percentile_cont(0.5) within group (order by r.length))
      from replayed r);
end $$;
comment on function internal.streak_simulation is
  'The body of api.streak_simulate. Exact while the planner expects at most affordable events; otherwise an estimate
   from a sample of users, whose users is within margin in 95 of 100 samples; medians are those of the sample.';

create or replace function api.streak_simulate(id_or_key text, definition jsonb default '{}',
                                               since timestamptz default null)
returns api.reply
language plpgsql volatile as $$
declare
  d constant app.streak_definitions := internal.streak_find(streak_simulate.id_or_key);
  requested constant app.streak_definitions := internal.streak_definition_with(d, streak_simulate.definition);
  since constant timestamptz := coalesce(streak_simulate.since, internal.now() - interval '30 days');
begin
  if since > internal.now() or since < internal.now() - interval '366 days' then
    perform internal.invalid('since', 'must be within the last 366 days');
  end if;
  return internal.reply(200, internal.streak_simulation(d, requested, since));
end $$;
comment on function api.streak_simulate is
  'Replays real events since a time under the stored rules and under changed ones: {users, broken_before, broken_after,
   is_estimate, margin, median_length_before, median_length_after}; writes nothing. Refuses 404 STREAK_NOT_FOUND, 400
   VALIDATION_ERROR.';

-- A period that counts, on the day of the act that filled it; freezes and pauses fill none.
select internal.days_declare('streak_days_kept', 'app.streak_periods', 'qualified_at',
  array[['kept', 'count(*)'], ['users', 'count(distinct r.app_user_id)']],
  'r.streak_definition_id = {of}::uuid and r.source in (''event'', ''manual'', ''restore'')');
-- by the index of the name
select internal.days_declare('streak_days_broken', 'app.engagement_events', 'occurred_at',
  array[['broken', 'count(*)']],
  'r.event_name = ''svc.streak.broken'' and r.properties ->> ''streak_definition_id'' = {of}');

create or replace function api.streak_daily(id_or_key text, "from" date default null, "to" date default null,
                                            timezone text default null)
returns api.reply
language sql stable as $$
  select internal.days_reply('{streak_days_kept,streak_days_broken}', streak_daily."from", streak_daily."to",
                             streak_daily.timezone, (internal.streak_find(streak_daily.id_or_key)).id::text)
$$;
comment on function api.streak_daily is
  'Periods that were filled on each day and by how many users, and breaks that were emitted. Refuses 404
   STREAK_NOT_FOUND, 400 INVALID_INPUT.';
