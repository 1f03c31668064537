-- Streaks as part of the event pipeline: the acts that an event is, for the streaks which its name qualifies.

create or replace function internal.streak_period_start(period text, week_starts_on int, day date) returns date
language sql immutable as $$
  select case streak_period_start.period
           when 'day' then streak_period_start.day
           else internal.period_date(streak_period_start.period, streak_period_start.week_starts_on,
                                     internal.period_number(streak_period_start.period,
                                                            streak_period_start.week_starts_on,
                                                            streak_period_start.day)) end
$$;
comment on function internal.streak_period_start is 'The first date of the period that a date is in.';

create or replace function internal.streak_acts(events app.engagement_events[], counted text[] default null)
returns internal.streak_act[]
language sql stable as $$
  select array_agg((i.app_user_id, d.id, i.occurred_at, i.is_historical)::internal.streak_act)
    from unnest(streak_acts.events) i
    join app.streak_definitions d on d.qualifying_event = i.event_name and d.is_active
    join app.users u on u.id = i.app_user_id
    left join app.timezones t on t.name = u.timezone
   where (d.event_filter is null or internal.filter_truth(d.event_filter, i.properties))
     -- an array would be searched for each, a subselect is hashed
     and (streak_acts.counted is null
          or i.app_user_id || ' ' || d.id || ' ' || internal.streak_period_start(
               d.period, d.week_starts_on, (i.occurred_at at time zone coalesce(t.name, 'UTC'))::date)
             not in (select unnest(streak_acts.counted)))
$$;
comment on function internal.streak_acts is
  'What events do for the streaks that their names qualify, without the periods that have counted them: each as the ids
   of user and streak and the date, with spaces between them. Granted to nobody.';

create or replace function internal.streaks_count_up(events app.engagement_events[]) returns internal.streak_act[]
language plpgsql volatile security definer
set search_path = '' set plan_cache_mode = 'force_generic_plan' set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off as $$
declare
  at constant timestamptz := internal.now();
  counted record;
begin
  with fed as materialized (
    select e.app_user_id, e.event_name, (e.occurred_at at time zone coalesce(t.name, 'UTC'))::date as day,
           exists (select from app.streak_timezones m where m.app_user_id = e.app_user_id) as has_moved,
           count(*)::int as n
      from unnest(streaks_count_up.events) e
      join app.users u on u.id = e.app_user_id
      left join app.timezones t on t.name = u.timezone
     group by 1, 2, 3
  ), definitions as materialized (
    select d.id, d.qualifying_event, d.period, d.week_starts_on,
           d.grace_hours = 0 and d.timezone_mode <> 'fixed' and d.event_filter is null as is_plain
      from app.streak_definitions d
     where d.is_active and d.qualifying_event in (select f.event_name from fed f)
  ), wanted as (
    select f.app_user_id, d.id, internal.streak_period_start(d.period, d.week_starts_on, f.day) as starts_on,
           sum(f.n)::int as n
      from fed f
      join definitions d on d.qualifying_event = f.event_name
     where d.is_plain and not f.has_moved
     group by 1, 2, 3
  ), counted as (
    update app.streak_periods r
       set count = r.count + w.n
      from wanted w
      join app.user_streaks s on s.app_user_id = w.app_user_id and s.streak_definition_id = w.id
     where coalesce(s.next_check_at, 'infinity') > at
       and r.app_user_id = w.app_user_id and r.streak_definition_id = w.id and r.starts_on = w.starts_on
       and r.source = 'event' and r.count >= r.needed and r.count - r.taken >= r.needed and r.open_1 = 0
    returning r.app_user_id, r.streak_definition_id, r.starts_on, w.n
  )
  select (select sum(f.n) from fed f join definitions d on d.qualifying_event = f.event_name) as wanted,
         sum(c.n) as counted,
         array_agg(c.app_user_id || ' ' || c.streak_definition_id || ' ' || c.starts_on) as periods
    into counted
    from counted c;
  if counted.wanted = counted.counted then
    return null;
  end if;
  return internal.streak_acts(streaks_count_up.events, counted.periods);
end $$;
comment on function internal.streaks_count_up is
  'Counts events for periods that have already qualified by events, of streaks for which no time-based event is due:
   only the count goes up. Returns the acts of the others, or null, for internal.streaks_count. By index alone: a plan
   made while a table was empty would scan it ever after. The users must be locked. Granted to nobody.';

create or replace function internal.on_events__20_streaks(events app.engagement_events[]) returns void
language plpgsql volatile as $$
declare
  acts internal.streak_act[];
begin
  -- most events count for no streak: one check of their names, then nothing
  if not internal.event_hooks_may_run()
     or not exists (select from app.streak_definitions d
                     where d.is_active and d.qualifying_event in (select i.event_name
                                                                    from unnest(on_events__20_streaks.events) i)) then
    return;
  end if;
  acts := case when internal.runs_sets() then internal.streak_acts(on_events__20_streaks.events)
               else internal.streaks_count_up(on_events__20_streaks.events) end;
  if acts is not null then
    perform internal.streaks_count(acts);
  end if;
end $$;
comment on function internal.on_events__20_streaks is
  'Part of the event pipeline: counts events for the streaks that their names qualify.';

create or replace function internal.on_event__20_streaks(event app.engagement_events, plan internal.streak_plan)
returns void
language plpgsql volatile as $$
declare
  e constant app.engagement_events := on_event__20_streaks.event;
  at constant timestamptz := internal.now();
  users_day date;
  has_moved boolean;
  fed uuid[];
  counted uuid[];
begin
  fed := (on_event__20_streaks.plan).ids;
  if (on_event__20_streaks.plan).has_filters then
    fed := array(select d.id
                   from app.streak_definitions d
                  where d.id = any (fed) and (d.event_filter is null
                                              or internal.filter_truth(d.event_filter, e.properties))
                  order by d.id);
    if fed = '{}' then
      return;
    end if;
  end if;
  select (e.occurred_at at time zone coalesce(t.name, 'UTC'))::date,
         exists (select from app.streak_timezones m where m.app_user_id = u.id)
    into users_day, has_moved
    from app.users u
    left join app.timezones t on t.name = u.timezone
   where u.id = e.app_user_id;
  if not has_moved then
    -- when the period has already qualified by events and no time-based event is due, only the count is incremented
    with counted as (
      update app.streak_periods r
         set count = r.count + 1
        from app.streak_definitions d
       cross join lateral (select case when d.timezone_mode = 'fixed' then (e.occurred_at at time zone d.timezone)::date
                                       else users_day end as day) l
        join app.user_streaks s on s.streak_definition_id = d.id
       where d.id = any (fed) and d.grace_hours = 0
         and s.app_user_id = e.app_user_id
         and coalesce(s.next_check_at, 'infinity') > at
         and (r.app_user_id, r.streak_definition_id) = (e.app_user_id, d.id)
         and r.starts_on = case d.period when 'day' then l.day
                                         else internal.period_date(d.period, d.week_starts_on,
                                                                   internal.period_number(d.period, d.week_starts_on,
                                                                     l.day)) end
         and r.source = 'event' and r.count >= r.needed and r.count - r.taken >= r.needed and r.open_1 = 0
      returning r.streak_definition_id
    )
    select array_agg(c.streak_definition_id) into counted from counted c;
  end if;
  if counted is null or cardinality(counted) < cardinality(fed) then
    perform internal.streaks_count(array(
      select (e.app_user_id, f.id, e.occurred_at, e.is_historical)::internal.streak_act
        from unnest(fed) as f (id)
       where counted is null or f.id <> all (counted)));
  end if;
end $$;
comment on function internal.on_event__20_streaks is
  'Increments the counts of periods that have qualified already; internal.streaks_count handles every other case.';

create or replace function internal.event_plan__streaks() returns table (event_name text, plan internal.streak_plan)
language sql stable as $$
  select d.qualifying_event, (array_agg(d.id order by d.id), bool_or(d.event_filter is not null))::internal.streak_plan
    from app.streak_definitions d
   where d.is_active
   group by 1
$$;
comment on function internal.event_plan__streaks is 'The active streaks that an event feeds. Granted to nobody.';

create or replace trigger tg_streak_definitions__event_plans
  after insert or delete or update of is_active, qualifying_event, event_filter on app.streak_definitions
  for each statement execute function internal.tg_event_plans();
