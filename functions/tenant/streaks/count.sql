-- Counts acts for streaks: acts increment the counts of periods, and counts determine chains. This file makes every
-- change of a user's streak, under the lock of its row in app.user_streaks; rows are locked in the order of user and
-- definition.

create or replace function internal.streak_join(app_user_id uuid, definition app.streak_definitions)
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  streak app.user_streaks;
begin
  if internal.lock_users(array[streak_join.app_user_id]) is null then
    return null;
  end if;
  perform internal.streaks_begin(array[streak_join.app_user_id], array[(streak_join.definition).id]);
  select s.* into streak
    from app.user_streaks s
   where (s.app_user_id, s.streak_definition_id) = (streak_join.app_user_id, (streak_join.definition).id)
     for no key update;
  return internal.streak_brought_up_to_date(streak);
end $$;
comment on function internal.streak_join is
  'Locks the user, then the user''s row of a streak, which is created if it is missing, and returns the row; null when
   the user or the streak was deleted concurrently. Responses show the row only once a period has qualified. Granted to
   nobody.';

create or replace function internal.streaks_begin(app_user_ids uuid[], definition_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  with missing as materialized (
    select b.app_user_id, b.definition_id
      from unnest(streaks_begin.app_user_ids, streaks_begin.definition_ids) as b (app_user_id, definition_id)
     where not exists (select from app.user_streaks s
                        where (s.app_user_id, s.streak_definition_id) = (b.app_user_id, b.definition_id))
  ), living as materialized (
    -- the lock waits for a concurrent deletion, after which the definition is no longer found
    select d.id, d.freezes_initial
      from app.streak_definitions d
     where d.id in (select m.definition_id from missing m)
     order by d.id
       for key share
  )
  insert into app.user_streaks (app_user_id, streak_definition_id, freezes_initial, freezes)
  select m.app_user_id, l.id, l.freezes_initial, l.freezes_initial
    from missing m
    join living l on l.id = m.definition_id
   order by 1, 2
  on conflict on constraint user_streaks_pkey do nothing;
end $$;
comment on function internal.streaks_begin is
  'Creates the missing rows of app.user_streaks for these users and streaks, except for streaks that were deleted
   concurrently. The users must be locked. Locks the streaks against deletion. Granted to nobody.';

create or replace function internal.streak_brought_up_to_date(streak app.user_streaks) returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  s app.user_streaks := streak_brought_up_to_date.streak;
begin
  if s.next_check_at <= internal.now() then
    perform internal.streaks_apply_time(array[s.app_user_id], array[s.streak_definition_id]);
    select u.* into s
      from app.user_streaks u
     where (u.app_user_id, u.streak_definition_id) = (s.app_user_id, s.streak_definition_id);
  end if;
  return s;
end $$;
comment on function internal.streak_brought_up_to_date is
  'Applies the time-based changes of a locked row that is about to change, until now, and returns the row. Granted to
   nobody.';

create or replace function internal.streak_refold(app_user_id uuid, definition app.streak_definitions)
returns app.user_streaks
language plpgsql volatile security definer set search_path = '' as $$
declare
  d constant app.streak_definitions := streak_refold.definition;
  zone constant text := internal.streak_zone_of(d, streak_refold.app_user_id);
  streak app.user_streaks;
  folded record;
begin
  select s.* into streak
    from app.user_streaks s
   where (s.app_user_id, s.streak_definition_id) = (streak_refold.app_user_id, d.id);

  select f.* into folded
    from internal.streak_fold(
           d, zone, streak.freezes_initial,
           (select array_agg(r) from app.streak_periods r
             where (r.app_user_id, r.streak_definition_id) = (streak.app_user_id, d.id)),
           (select array_agg(r) from app.streak_pauses r
             where (r.app_user_id, r.streak_definition_id) = (streak.app_user_id, d.id)),
           (select array_agg(r) from app.streak_freezes r
             where (r.app_user_id, r.streak_definition_id) = (streak.app_user_id, d.id))) f;

  with covered as (
    select internal.period_date(d.period, d.week_starts_on, v.number) as starts_on, v.source
      from unnest(folded.numbers, folded.sources) as v (number, source)
  )
  insert into app.streak_periods as r (app_user_id, streak_definition_id, starts_on, source, needed, earn_every,
                                       freezes_max, qualified_at)
  select streak.app_user_id, d.id, c.starts_on, c.source, d.min_count, d.freeze_earn_every, d.freezes_max,
         case when c.source = 'event' then internal.now() end
    from covered c
   where not exists (select from app.streak_periods known
                      where (known.app_user_id, known.streak_definition_id, known.starts_on) = (streak.app_user_id,
                                        d.id, c.starts_on)
                        and known.source = c.source)
  on conflict on constraint streak_periods_pkey do update
     set source = excluded.source, qualified_at = coalesce(r.qualified_at, excluded.qualified_at);

  update app.streak_periods r
     set taken = f.taken
    from unnest(folded.fed_at, folded.taken) as f (number, taken)
   where (r.app_user_id, r.streak_definition_id) = (streak.app_user_id, d.id)
     and r.starts_on = internal.period_date(d.period, d.week_starts_on, f.number)
     and r.taken <> f.taken;

  -- periods that were covered before and are not covered any more
  update app.streak_periods r
     set source = null
   where (r.app_user_id, r.streak_definition_id) = (streak.app_user_id, d.id)
     and r.source is not null
     and not internal.period_number(d.period, d.week_starts_on, r.starts_on) = any (folded.numbers);
  delete from app.streak_periods r
   where (r.app_user_id, r.streak_definition_id) = (streak.app_user_id, d.id)
     and r.source is null and r.count = 0;

  update app.user_streaks s
     set current_count = (folded.chain).current_count,
         longest_count = (folded.chain).longest_count,
         started_on = internal.period_date(d.period, d.week_starts_on, (folded.chain).started_on),
         last_period = internal.period_date(d.period, d.week_starts_on, (folded.chain).last_period),
         covered_through = internal.period_date(d.period, d.week_starts_on, (folded.chain).covered_through),
         freezes = (folded.chain).freezes,
         lapsed_count = (folded.chain).lapsed_count,
         lapsed_through = internal.period_date(d.period, d.week_starts_on, (folded.chain).lapsed_through),
         first_qualified_at = case when (folded.chain).last_period is not null then coalesce(s.first_qualified_at,
                                        internal.now()) end,
         last_qualified_at = (select r.qualified_at
                                from app.streak_periods r
                               where (r.app_user_id, r.streak_definition_id) = (streak.app_user_id, d.id)
                                 and r.starts_on = internal.period_date(d.period, d.week_starts_on,
                                                                        (folded.chain).last_period)),
         updated_at = internal.now()
   where (s.app_user_id, s.streak_definition_id) = (streak.app_user_id, d.id)
  returning s.* into streak;
  return internal.streak_reschedule(streak, d);
end $$;
comment on function internal.streak_refold is
  'Folds all stored periods of one user''s streak and stores the result. Used for every change other than appending the
   next period: late events, grace, gaps, gifts, pauses, restores. The row must be locked. Granted to nobody.';

create or replace function internal.streaks_store(acts internal.streak_act[]) returns setof internal.streak_fed
language plpgsql volatile security definer set search_path = '' rows 500 as $$
declare
  fed_users uuid[];
  fed_definitions uuid[];
  due_users uuid[];
  due_definitions uuid[];
begin
  -- each streak of a user once, however many acts count for it
  select array_agg(p.app_user_id order by p.app_user_id, p.streak_definition_id),
         array_agg(p.streak_definition_id order by p.app_user_id, p.streak_definition_id)
    into fed_users, fed_definitions
    from (select distinct a.app_user_id, a.streak_definition_id from unnest(streaks_store.acts) a) p;
  perform internal.streaks_begin(fed_users, fed_definitions);
  select array_agg(l.app_user_id) filter (where l.next_check_at <= internal.now()),
         array_agg(l.streak_definition_id) filter (where l.next_check_at <= internal.now())
    into due_users, due_definitions
    from (select s.app_user_id, s.streak_definition_id, s.next_check_at
            from unnest(fed_users, fed_definitions) as p (app_user_id, streak_definition_id)
            join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (p.app_user_id, p.streak_definition_id)
           order by s.app_user_id, s.streak_definition_id
             for no key update of s) l;
  perform internal.streaks_apply_time(due_users, due_definitions);

  return query
  with people as materialized (
    select u.id, coalesce(t.name, 'UTC') as zone,
           (select array_agg(m order by m.moved_at) from app.streak_timezones m where m.app_user_id = u.id) as moves
      from app.users u
      left join app.timezones t on t.name = u.timezone
     where u.id in (select a.app_user_id from unnest(streaks_store.acts) a)
  ), fed as (
    -- no grace, no journey: an act counts on the date that it was. Dates first, so that periods are worked out once for
    -- all acts of a day; and by the indexes of the tables, for of a list the planner does not know how long it is
    select a.app_user_id, a.streak_definition_id, z.zone, (a.occurred_at at time zone z.zone)::date as day,
           count(*) as count, max(a.occurred_at) as latest
      from unnest(streaks_store.acts) a
      join app.streak_definitions d on d.id = a.streak_definition_id and d.grace_hours = 0
      join app.users u on u.id = a.app_user_id
      left join app.timezones t on t.name = u.timezone
     cross join lateral (select case when d.timezone_mode = 'fixed' then d.timezone
                                     else coalesce(t.name, 'UTC') end as zone) z
     where d.timezone_mode = 'fixed' or not exists (select from app.streak_timezones m
                                                     where m.app_user_id = a.app_user_id)
     group by 1, 2, 3, 4
  ), lived as (
    select a.app_user_id, a.occurred_at, d,
           case when d.timezone_mode = 'fixed' then d.timezone else u.zone end as zone,
           case when d.timezone_mode = 'user' then u.moves end as moves
      from unnest(streaks_store.acts) a
      join app.streak_definitions d on d.id = a.streak_definition_id
      join people u on u.id = a.app_user_id
     where d.grace_hours > 0 or u.moves is not null and d.timezone_mode = 'user'
  ), placed as (
    select f.app_user_id, d.id, case d.period when 'day' then f.day
                                     else internal.period_date(d.period, d.week_starts_on, p.number) end as starts_on,
           sum(f.count)::int as count, 0 as open_1, 0 as open_2, 0 as open_3, max(f.latest) as latest,
           bool_or(internal.period_number(d.period, d.week_starts_on,
                                          (internal.now() at time zone f.zone)::date) = p.number) as is_under_way,
           d.min_count, d.freeze_earn_every, d.freezes_max
      from fed f
      join app.streak_definitions d on d.id = f.streak_definition_id
     cross join lateral (select internal.period_number(d.period, d.week_starts_on, f.day) as number) p
     group by 1, 2, 3
    union all
    select l.app_user_id, (l.d).id, internal.period_date((l.d).period, (l.d).week_starts_on, p.number) as starts_on,
           count(*)::int as count, (count(*) filter (where p.reach >= 1))::int as open_1,
           (count(*) filter (where p.reach >= 2))::int as open_2, (count(*) filter (where p.reach >= 3))::int as open_3,
           max(l.occurred_at) as latest,
           bool_or(internal.period_number((l.d).period, (l.d).week_starts_on,
                                          (internal.now() at time zone l.zone)::date) = p.number) as is_under_way,
           (l.d).min_count, (l.d).freeze_earn_every, (l.d).freezes_max
      from lived l
     cross join lateral internal.streak_place(l.d, l.zone, l.moves, l.occurred_at) p
     group by 1, 2, 3, 10, 11, 12
     order by 1, 2, 3
  ), stored as (
    insert into app.streak_periods as r
      (app_user_id, streak_definition_id, starts_on, count, open_1, open_2, open_3, needed, earn_every, freezes_max,
       qualified_at)
    select p.app_user_id, p.id, p.starts_on, p.count, p.open_1, p.open_2, p.open_3, p.min_count, p.freeze_earn_every,
           p.freezes_max, p.latest
      from placed p
    on conflict on constraint streak_periods_pkey do update
       set count = r.count + excluded.count,
           open_1 = r.open_1 + excluded.open_1,
           open_2 = r.open_2 + excluded.open_2,
           open_3 = r.open_3 + excluded.open_3,
           -- rules may change under a period until it has reached them
           needed = case when r.count >= r.needed then r.needed else excluded.needed end,
           earn_every = case when r.count >= r.needed then r.earn_every else excluded.earn_every end,
           freezes_max = case when r.count >= r.needed then r.freezes_max else excluded.freezes_max end,
           qualified_at = case when r.source in ('event', 'manual', 'restore') then r.qualified_at
                               else excluded.qualified_at end
    returning r.app_user_id, r.streak_definition_id, r.starts_on, r.source, r.count, r.open_1, r.open_2, r.open_3,
      r.taken, r.needed,
              r.earn_every, r.freezes_max, r.qualified_at
  )
  select s.app_user_id, s.streak_definition_id, s.starts_on, s.source, s.count, s.count - p.count, s.open_1, s.open_2,
         s.open_3, s.taken,
         s.needed, s.earn_every, s.freezes_max, s.qualified_at, p.is_under_way
    from stored s
    join placed p on (p.app_user_id, p.id, p.starts_on) = (s.app_user_id, s.streak_definition_id, s.starts_on);
end $$;
comment on function internal.streaks_store is
  'Adds acts to the counts of the periods that they fall in, and returns those periods. Locks the rows of
   app.user_streaks in the order of user and definition. Granted to nobody.';

create or replace function internal.streaks_step(fed internal.streak_fed[], is_historical boolean) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  notified_to uuid[];
  notified_names text[];
  notified_properties jsonb[];
  effects json[];
  others_before app.user_streaks[];
  others_now app.user_streaks[];
  other_effects json[];
  wake_at timestamptz;
begin
  with ready as (
    select f.app_user_id, f.streak_definition_id, f.starts_on, f.is_under_way, f.qualified_at, d, s as was,
           s.current_count + 1 as current_count,
           -- every n-th qualified period of a chain earns a freeze
           case when f.earn_every > 0 and (s.current_count + 1) % f.earn_every = 0
                then greatest(s.freezes, least(s.freezes + 1, f.freezes_max)) else s.freezes end as freezes,
           internal.period_number(d.period, d.week_starts_on, f.starts_on) as number,
           case when d.timezone_mode = 'fixed' then d.timezone else coalesce(t.name, 'UTC') end as zone,
           case when d.timezone_mode = 'user'
                then (select array_agg(m order by m.moved_at) from app.streak_timezones m
                       where m.app_user_id = f.app_user_id) end as moves,
           internal.paused_periods(d, (
             select array_agg(p)
               from app.streak_pauses p
              where (p.app_user_id, p.streak_definition_id) = (f.app_user_id, f.streak_definition_id)
                and p.ends_on > f.starts_on)) as paused
      from unnest(streaks_step.fed) f
      join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (f.app_user_id, f.streak_definition_id)
      join app.streak_definitions d on d.id = f.streak_definition_id
      join app.users u on u.id = f.app_user_id
      left join app.timezones t on t.name = u.timezone
     where f.count - f.taken >= f.needed
  ), reaching as (
    -- gifts of freezes still to come are not seen: a streak that has any is folded
    select y.*, w.covered_through
      from ready y
     cross join lateral internal.streak_extent(y.d, y.zone, y.number, y.freezes, y.paused, null, y.number + 2000) w
  ), forecast as materialized (
    select r.*, o.next_check_at, o.notice_kinds, o.notice_numbers
      from reaching r
     cross join lateral internal.streak_forecast(
       r.d, r.zone, r.moves, r.paused, r.number, r.covered_through, r.freezes, null,
       internal.period_number((r.d).period, (r.d).week_starts_on, (r.was).risk_notified_through),
       internal.period_number((r.d).period, (r.d).week_starts_on, (r.was).lapse_notified_through), internal.now()) o
  ), covered as (
    update app.streak_periods r
       set source = 'event'
      from forecast y
     where (r.app_user_id, r.streak_definition_id, r.starts_on) = (y.app_user_id, y.streak_definition_id, y.starts_on)
  ), extended as (
    update app.user_streaks u
       set current_count = y.current_count,
           longest_count = greatest(u.longest_count, y.current_count),
           started_on = coalesce(u.started_on, y.starts_on),
           last_period = y.starts_on,
           covered_through = internal.period_date((y.d).period, (y.d).week_starts_on, y.covered_through),
           freezes = y.freezes,
           first_qualified_at = coalesce(u.first_qualified_at, internal.now()),
           last_qualified_at = y.qualified_at,
           updated_at = internal.now(),
           next_check_at = case when (y.d).is_active then y.next_check_at end,
           -- changes of past periods by a late event emit no time-based events
           risk_notified_through = case when y.notice_kinds is null then u.risk_notified_through
                            else greatest(u.risk_notified_through,
                                          internal.notified_through(y.d, y.notice_kinds, y.notice_numbers, true)) end,
           lapse_notified_through = case when y.notice_kinds is null then u.lapse_notified_through
                             else greatest(u.lapse_notified_through,
                                           internal.notified_through(y.d, y.notice_kinds, y.notice_numbers, false)) end
      from forecast y
     where (u.app_user_id, u.streak_definition_id) = (y.app_user_id, y.streak_definition_id)
    returning y.d, y.was, u as now,
              -- the period under way: the chain was alive if there was one, and is now
              case when y.is_under_way
                    and not (y.d).milestones @> jsonb_build_array(jsonb_build_object('count', u.current_count))
                   then case when (y.was).last_period is null then 'started' else 'extended' end end as change
  )
  select array_agg((e.now).app_user_id order by (e.now).app_user_id,
                   (e.now).streak_definition_id) filter (where e.change is not null),
         array_agg('svc.streak.' || e.change order by (e.now).app_user_id,
                   (e.now).streak_definition_id) filter (where e.change is not null),
         array_agg(internal.streak_properties(e.d, e.now) order by (e.now).app_user_id, (e.now).streak_definition_id)
           filter (where e.change is not null),
         array_agg(internal.streak_effect_json(e.d, e.now, 'active', e.change) order by (e.now).app_user_id,
                   (e.now).streak_definition_id)
           filter (where e.change is not null and internal.collects_effects()),
         array_agg(e.was order by (e.now).app_user_id, (e.now).streak_definition_id) filter (where e.change is null),
         array_agg(e.now order by (e.now).app_user_id, (e.now).streak_definition_id) filter (where e.change is null),
         min((e.now).next_check_at)
    into notified_to, notified_names, notified_properties, effects, others_before, others_now, wake_at
    from extended e;

  perform internal.streaks_enqueue_tick(wake_at);
  if notified_to is not null then
    perform internal.add_effects('streaks', effects);
    if not streaks_step.is_historical then
      perform internal.emit_many(notified_to, notified_names, notified_properties);
    end if;
  end if;
  for i in 1 .. coalesce(cardinality(others_now), 0) loop
    other_effects := other_effects || internal.streak_notify_change(
      internal.streak_definition((others_now[i]).streak_definition_id), others_before[i], others_now[i],
      streaks_step.is_historical);
  end loop;
  if other_effects is not null then
    perform internal.add_effects('streaks', array(select e from unnest(other_effects) as e where e is not null));
  end if;
end $$;
comment on function internal.streaks_step is
  'The step that the fold would take for a newest period right after the last qualified one, for many users at once;
   periods that have too few acts yet are left as they are. The rows of app.user_streaks must be locked. Granted to
   nobody.';

create or replace function internal.streaks_count(acts internal.streak_act[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_historical constant boolean := (select bool_and(a.is_historical) from unnest(streaks_count.acts) a);
  fed internal.streak_fed[];
  steps internal.streak_fed[];
  folds internal.streak_act[];
  fold internal.streak_act;
  definition app.streak_definitions;
  before app.user_streaks;
  effects json[];
begin
  -- a separate statement, because the next one must see the rows that this one inserts
  select array_agg(f) into fed from internal.streaks_store(streaks_count.acts) f;
  with fed as (
    -- a period that has already qualified by events of its own only counts
    select f as period, f.*, count(*) over (partition by f.app_user_id, f.streak_definition_id) as periods
      from unnest(fed) f
     where f.source is distinct from 'event' or f.count_before - f.taken < f.needed or f.open_1 > 0
  ), evaluated as (
    select f.*,
           -- not qualified by events of its own before: nothing, a freeze or later events covered it
           f.source is null or f.source in ('freeze', 'pause')
             or f.source = 'event' and f.count_before - f.taken < f.needed as is_open,
           -- events that arrived while an earlier period was open may count for that period
           f.open_1 > 0 and internal.streak_gap_before(d, f.period) as may_fill_earlier,
           -- by far the most frequent case: the newest period, right after the newest qualified one
           f.source is null and f.periods = 1
           and coalesce(internal.period_number(d.period, d.week_starts_on, f.starts_on)
                        = internal.period_number(d.period, d.week_starts_on, s.last_period) + 1, s.last_period is null)
           and not exists (
             select from app.streak_periods r
              where (r.app_user_id, r.streak_definition_id) = (f.app_user_id, f.streak_definition_id)
                and case when s.last_period is null then r.starts_on <> f.starts_on else r.starts_on > f.starts_on end)
           and not exists (
             select from app.streak_freezes g
              where (g.app_user_id, g.streak_definition_id) = (f.app_user_id, f.streak_definition_id)
                and (g.applies_from > s.last_period or s.last_period is null)) as is_next
      from fed f
      join app.user_streaks s on (s.app_user_id, s.streak_definition_id) = (f.app_user_id, f.streak_definition_id)
      join app.streak_definitions d on d.id = f.streak_definition_id
  )
  select array_agg(j.period order by j.app_user_id,
                   j.streak_definition_id) filter (where j.is_next and not j.may_fill_earlier),
         array_agg(distinct (j.app_user_id, j.streak_definition_id, null, null)::internal.streak_act)
           filter (where (j.is_open or j.may_fill_earlier) and not (j.is_next and not j.may_fill_earlier))
    into steps, folds
    from evaluated j;

  if steps is not null then
    perform internal.streaks_step(steps, is_historical);
  end if;
  -- in the order of the locks: distinct has sorted them
  foreach fold in array coalesce(folds, '{}') loop
    select d.* into definition from app.streak_definitions d where d.id = fold.streak_definition_id;
    select s.* into before
      from app.user_streaks s
     where (s.app_user_id, s.streak_definition_id) = (fold.app_user_id, fold.streak_definition_id);
    effects := effects || internal.streak_notify_change(
      definition, before, internal.streak_refold(fold.app_user_id, definition), is_historical);
  end loop;
  if effects is not null then
    perform internal.add_effects('streaks', array(select e from unnest(effects) as e where e is not null));
  end if;
end $$;
comment on function internal.streaks_count is
  'Adds acts to the counts of periods and updates the chains of their users: incrementally where possible, otherwise by
   the fold. Granted to nobody.';

create or replace function internal.streak_gap_before(definition app.streak_definitions, fed internal.streak_fed)
returns boolean
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_gap_before.definition;
  reach constant int := case when (streak_gap_before.fed).open_3 > 0 then 3
                             when (streak_gap_before.fed).open_2 > 0 then 2 else 1 end;
begin
  return reach > (
    select count(*)
      from app.streak_periods r
     where (r.app_user_id, r.streak_definition_id) = ((streak_gap_before.fed).app_user_id, d.id)
       and r.source in ('event', 'manual', 'restore')
       and r.starts_on < (streak_gap_before.fed).starts_on
       and r.starts_on >= internal.period_date(d.period, d.week_starts_on,
                            internal.period_number(d.period, d.week_starts_on,
                                                   (streak_gap_before.fed).starts_on) - reach));
end $$;
comment on function internal.streak_gap_before is
  'Whether any of the periods that were still open when this one was counted has not qualified.';
