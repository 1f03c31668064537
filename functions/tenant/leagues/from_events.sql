-- Where points come from: the hooks of events, the ledger of XP; and the short path of members whose points move.

create or replace function internal.leagues_take(app_user_id uuid, league_ids uuid[], event_name text,
                                                 properties jsonb, value numeric, place_at timestamptz,
                                                 reached_at timestamptz)
returns void
language plpgsql volatile
  set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off as $$
declare
  moved record;
begin
  with due as materialized (
    select l as league, r.run, e.points as was, e.reached_at as reached_was, o.points,
           e.cohort_id is null as is_outside,
           -- without a row of the run, hidden, or with points that are not enough to enter
           (r.run).id is null or (r.run).ends_at <= leagues_take.place_at or coalesce(e.is_hidden, false)
             or e.cohort_id is null and o.points <> coalesce(e.points, 0)
                and o.points < (r.run).min_points_to_join as is_rare
      from unnest(leagues_take.league_ids) as w (id)
      join app.leagues l on l.id = w.id
      left join lateral (
        select x as run
          from app.league_runs x
         where x.league_id = l.id and x.takes_from <= leagues_take.place_at
         order by x.starts_at desc, x.id desc
         limit 1) r on true
      left join app.league_entries e on (e.app_user_id, e.run_id) = (leagues_take.app_user_id, (r.run).id)
     cross join lateral (
       select internal.league_value(case when (r.run).ends_at > leagues_take.place_at then (r.run).points
                                         else l.points end,
                                    leagues_take.event_name, leagues_take.properties, leagues_take.value) as value
       offset 0) v
     cross join lateral (select trim_scale(greatest(0, coalesce(e.points, 0) + v.value)) as points offset 0) o
     where l.is_active and v.value is not null
       and ((r.run).id is null or (r.run).ends_at <= leagues_take.place_at or internal.league_is_open(r.run))
  ), stored as (
    update app.league_entries e
       set points = d.points, reached_at = greatest(e.reached_at, leagues_take.reached_at)
      from due d
     where (e.app_user_id, e.run_id) = (leagues_take.app_user_id, (d.run).id)
       and d.points <> e.points and not d.is_outside and not (select bool_or(a.is_rare) from due a)
  )
  select bool_or(d.is_rare) as is_rare, bool_or(d.is_outside) as is_outside,
         array_agg(d.league order by (d.league).created_at, (d.league).id) as leagues,
         array_agg(d.run order by (d.league).created_at, (d.league).id) as runs,
         array_agg(d.was order by (d.league).created_at, (d.league).id) as was,
         array_agg(d.points order by (d.league).created_at, (d.league).id) as points,
         array_agg(d.reached_was order by (d.league).created_at, (d.league).id) as reached_was,
         array_agg(d.is_outside order by (d.league).created_at, (d.league).id) as are_outside
    into moved
    from due d
   where d.is_rare or d.points <> coalesce(d.was, 0);
  if moved.is_rare then
    perform internal.leagues_add(internal.league_facts(leagues_take.league_ids, leagues_take.app_user_id,
                                                       leagues_take.event_name, leagues_take.properties,
                                                       leagues_take.value, leagues_take.place_at,
                                                       leagues_take.reached_at));
  elsif moved.is_outside or moved.leagues is not null and internal.collects_effects() then
    for i in 1 .. cardinality(moved.leagues) loop
      if moved.are_outside[i]
         and not internal.league_enter(moved.runs[i], leagues_take.app_user_id, moved.points[i],
                                       greatest(moved.reached_was[i], leagues_take.reached_at)) then
        perform internal.leagues_add(internal.league_facts(array[(moved.leagues[i]).id], leagues_take.app_user_id,
                                                           leagues_take.event_name, leagues_take.properties,
                                                           leagues_take.value, leagues_take.place_at,
                                                           leagues_take.reached_at));
      elsif internal.collects_effects() then
        perform internal.league_tell(moved.leagues[i], moved.runs[i], array[leagues_take.app_user_id],
                                     array[moved.was[i]], array[moved.reached_was[i]],
                                     array[not moved.are_outside[i]]);
      end if;
    end loop;
  end if;
end $$;
comment on function internal.leagues_take is
  'Adds the points of one event to the entries of its user, who is a member of each run, or enters it. Leaves to
   internal.leagues_add points that are not enough, banned users, new cohorts, and runs without a row. The user must be
   locked. Granted to nobody.';

create or replace function internal.league_facts(league_ids uuid[], app_user_id uuid, event_name text,
                                                 properties jsonb, value numeric, place_at timestamptz,
                                                 reached_at timestamptz)
returns internal.league_fact[]
language sql immutable as $$
  select array_agg((w.id, league_facts.app_user_id, league_facts.event_name, league_facts.properties,
                    league_facts.value, league_facts.place_at, league_facts.reached_at)::internal.league_fact)
    from unnest(league_facts.league_ids) as w (id)
$$;
comment on function internal.league_facts is 'What one event may give in each league. Granted to nobody.';

create or replace function internal.on_events__65_leagues(events app.engagement_events[]) returns void
language plpgsql volatile set plan_cache_mode = 'auto' as $$
begin
  if not internal.event_hooks_may_run()
     or not exists (select from app.leagues l
                     where l.is_active and exists (select from unnest(on_events__65_leagues.events) i
                                                    where i.event_name = any (l.watches))) then
    return;
  end if;
  perform internal.leagues_add(array(
    select (l.id, i.app_user_id, i.event_name, i.properties, null, i.occurred_at,
            internal.xp_counted_at(i.source, i.occurred_at, i.received_at))::internal.league_fact
      from unnest(on_events__65_leagues.events) i
      join app.leagues l on l.is_active and i.event_name = any (l.watches)
     -- history moves no league
     where not i.is_historical));
end $$;
comment on function internal.on_events__65_leagues is 'Events give points in the leagues that watch them.';

create or replace function internal.on_event__65_leagues(event app.engagement_events, plan uuid[]) returns void
language plpgsql volatile as $$
begin
  perform internal.leagues_take(
    (on_event__65_leagues.event).app_user_id, on_event__65_leagues.plan, (on_event__65_leagues.event).event_name,
    (on_event__65_leagues.event).properties, null, (on_event__65_leagues.event).occurred_at,
    internal.xp_counted_at((on_event__65_leagues.event).source, (on_event__65_leagues.event).occurred_at,
                           (on_event__65_leagues.event).received_at));
end $$;
comment on function internal.on_event__65_leagues is 'An event gives points in the leagues that watch it.';

create or replace function internal.event_plan__leagues() returns table (event_name text, plan uuid[])
language sql stable as $$
  select w.event_name, array_agg(distinct l.id)
    from app.leagues l
   cross join lateral unnest(l.watches) as w (event_name)
   where l.is_active and w.event_name <> ''
   group by 1
$$;
comment on function internal.event_plan__leagues is 'The active leagues that watch an event. Granted to nobody.';

create or replace function internal.tg_xp_transactions__leagues() returns trigger
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  leagues uuid[];
  one record;
begin
  leagues := array(select l.id from app.leagues l where l.is_active and '' = any (l.watches));
  if leagues = '{}' or internal.is_history() then
    return null;
  end if;
  if (select count(*) from inserted) = 1 and not internal.runs_sets() then
    select i.* into one from inserted i where i.source not in ('merge', 'league') and i.amount <> 0;
    if found then
      perform internal.leagues_take(one.app_user_id, leagues, '', null, one.amount, one.created_at, one.counted_at);
    end if;
    return null;
  end if;
  perform internal.leagues_add(array(
    select (l.id, i.app_user_id, '', null, i.amount, i.created_at, i.counted_at)::internal.league_fact
      from inserted i
     cross join unnest(leagues) as l (id)
     where i.source not in ('merge', 'league') and i.amount <> 0
     order by i.app_user_id, i.id));
  return null;
end $$;
comment on function internal.tg_xp_transactions__leagues is
  'Rows of the XP ledger give their amounts as points, taken ones too, but for what a merge or a league booked.';

create or replace trigger tg_xp_transactions__leagues
  after insert on app.xp_transactions
  referencing new table as inserted
  for each statement execute function internal.tg_xp_transactions__leagues();
