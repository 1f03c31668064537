-- Points: events and the ledger of XP move entries, users join. Every entry is written here, with its user locked.

create or replace function internal.league_value(points jsonb, event_name text, properties jsonb, value numeric)
returns numeric
language plpgsql immutable as $$
declare
  property jsonb;
  number numeric;
begin
  if league_value.points ->> 'type' = 'xp' then
    return case when league_value.event_name = '' then league_value.value end;
  elsif league_value.points ->> 'event_name' is distinct from league_value.event_name then
    return null;
  elsif league_value.points ->> 'value_property' is null then
    return 1;
  end if;
  property := league_value.properties #> string_to_array(league_value.points ->> 'value_property', '.');
  if jsonb_typeof(property) is distinct from 'number' then
    return null;
  end if;
  number := (property #>> '{}')::numeric;
  return case when abs(number) <= 1e18 then round(number, 9) end;
end $$;
comment on function internal.league_value is
  'What an event gives under the points of a run: 1, or the number at value_property; of XP, under an empty name, its
   amount. Null: nothing. Granted to nobody.';

create or replace function internal.leagues_add(facts internal.league_fact[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  due record;
  left_over internal.league_fact[];
  latest timestamptz;
  run app.league_runs;
begin
  for due in
    select l as league, array_agg(w.fact order by w.n) as facts
      from (select f as fact, row_number() over () as n from unnest(leagues_add.facts) f) w
      join app.leagues l on l.id = (w.fact).league_id
     where l.is_active
     group by l.id
     order by l.created_at, l.id
  loop
    left_over := due.facts;
    -- mostly one run takes all
    while cardinality(left_over) > 0 loop
      select max(f.place_at) into latest from unnest(left_over) f;
      run := internal.league_run_at(due.league, latest);
      if internal.league_is_open(run) then
        perform internal.league_add(due.league, run, latest, array(
          select w.fact from (select f as fact, row_number() over () as n from unnest(left_over) f) w
           where (w.fact).place_at >= run.takes_from order by w.n));
      end if;
      left_over := array(
        select w.fact from (select f as fact, row_number() over () as n from unnest(left_over) f) w
         where (w.fact).place_at < run.takes_from order by w.n);
    end loop;
  end loop;
end $$;
comment on function internal.leagues_add is
  'Adds points to the runs that facts belong to, where these are open, the oldest league first. The users must be
   locked. Granted to nobody.';

create or replace function internal.league_sums(run app.league_runs, facts internal.league_fact[])
returns table (app_user_id uuid, total numeric, at_least numeric, reached_at timestamptz)
language sql stable rows 10 as $$
  -- points are never below 0 after any fact: so the end is at least what came after the lowest point
  select s.app_user_id, max(s.total) as total, max(s.total - s.so_far) as at_least,
         max(s.reached_at) filter (where s.value <> 0) as reached_at
    from (select v.app_user_id, v.value, v.reached_at, sum(v.value) over (partition by v.app_user_id) as total,
                 sum(v.value) over (partition by v.app_user_id order by v.n) as so_far
            from (select f.app_user_id, f.reached_at, row_number() over () as n,
                         internal.league_value((league_sums.run).points, f.event_name, f.properties, f.value) as value
                    from unnest(league_sums.facts) f) v
           where v.value is not null) s
   group by s.app_user_id
$$;
comment on function internal.league_sums is
  'What facts of a run come to for each user: from p points on it has the greater of p + total and at_least. Granted to
   nobody.';

create or replace function internal.league_add(league app.leagues, requested app.league_runs, at timestamptz,
                                               facts internal.league_fact[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  run app.league_runs := league_add.requested;
  moved record;
  joining uuid[];
  seated uuid[];
  tiers int[];
  cohorts uuid[];
begin
  if not exists (select from internal.league_sums(run, league_add.facts) s where s.total <> 0 or s.at_least <> 0) then
    return;
  end if;
  if run.id is null then
    run := internal.league_run_make(run, league_add.at);
  end if;
  -- a run that is being deleted takes nothing
  perform from app.league_runs r where r.id = run.id for key share;
  if not found or not internal.league_is_open(run) then
    return;
  end if;
  select array_agg(m.app_user_id) as users, array_agg(m.was) as was, array_agg(m.reached_was) as reached_was,
         array_agg(m.points) as points, array_agg(m.reached_at) as reached, array_agg(m.is_member) as are_members
    into moved
    from (select s.app_user_id, e.points as was, e.reached_at as reached_was, p.points,
                 greatest(e.reached_at, s.reached_at) as reached_at, e.cohort_id is not null as is_member
            from internal.league_sums(run, league_add.facts) s
            left join app.league_entries e on (e.app_user_id, e.run_id) = (s.app_user_id, run.id)
           cross join lateral (select trim_scale(greatest(coalesce(e.points, 0) + s.total, s.at_least)) as points) p
           where p.points is distinct from coalesce(e.points, 0)
           order by s.app_user_id) m;
  if moved.users is null then
    return;
  end if;
  select array_agg(m.id) into joining
    from unnest(moved.users, moved.points, moved.are_members) as m (id, points, is_member)
   where not m.is_member and m.points >= run.min_points_to_join;
  if joining is not null then
    select s.users, s.tiers, s.cohorts into seated, tiers, cohorts from internal.league_seats(run, joining) s;
  end if;
  insert into app.league_entries as e (run_id, app_user_id, league_id, began_at, cohort_id, tier, points, reached_at,
                                       is_hidden)
  select run.id, u.id, run.league_id, run.starts_at, s.cohort_id, s.tier, m.points, m.reached_at, u.is_banned
    from unnest(moved.users, moved.points, moved.reached) as m (id, points, reached_at)
    join app.users u on u.id = m.id
    left join unnest(seated, tiers, cohorts) as s (id, tier, cohort_id) on s.id = m.id
   order by u.id
  on conflict on constraint league_entries_pkey do update
     set points = excluded.points, reached_at = excluded.reached_at,
         cohort_id = coalesce(e.cohort_id, excluded.cohort_id), tier = coalesce(e.tier, excluded.tier);
  perform internal.league_tell(league_add.league, run, moved.users, moved.was, moved.reached_was, moved.are_members);
end $$;
comment on function internal.league_add is
  'Adds points of facts to the entries of one open run, and lets users join whose points are enough. Granted to
   nobody.';

create or replace function internal.league_enter(run app.league_runs, app_user_id uuid, points numeric,
                                                 reached_at timestamptz)
returns boolean
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  r constant app.league_runs := league_enter.run;
  since constant timestamptz := internal.league_filling_since(r);
  begins_at int;
begin
  select b.tier into begins_at from internal.league_begin_at(r, array[league_enter.app_user_id]) b;
  with held as materialized (
    -- a run that is being deleted takes nothing
    select x.id from app.league_runs x where x.id = r.id for key share
  ), seat as (
    -- as internal.league_seats_free
    update app.league_cohorts c
       set members = c.members + 1
     where c.id = (select x.id
                     from app.league_cohorts x
                    where x.run_id = (select h.id from held h) and x.tier = begins_at and not x.is_full
                      and x.created_at >= since
                    order by x.id desc
                    limit 1
                      for no key update skip locked)
    returning c.id
  ), used as (
    delete from app.league_tiers t
     using seat
     where (t.app_user_id, t.league_id) = (league_enter.app_user_id, r.league_id)
  )
  insert into app.league_entries as e (run_id, app_user_id, league_id, began_at, cohort_id, tier, points, reached_at,
                                       is_hidden)
  select r.id, u.id, r.league_id, r.starts_at, s.id, begins_at, league_enter.points, league_enter.reached_at,
         u.is_banned
    from seat s
   cross join app.users u
   where u.id = league_enter.app_user_id
  on conflict on constraint league_entries_pkey do update
     set points = excluded.points, reached_at = excluded.reached_at, cohort_id = excluded.cohort_id,
         tier = excluded.tier;
  return found;
end $$;
comment on function internal.league_enter is
  'Has a user enter a run with so many points, in one statement, where a cohort has room; false where none has, or the
   run is being deleted: then internal.leagues_add does. Granted to nobody.';

create or replace function internal.league_tell(league app.leagues, run app.league_runs, users uuid[], was numeric[],
                                                reached_was timestamptz[], were_members boolean[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  noted jsonb;
begin
  if not internal.collects_effects() then
    return;
  end if;
  noted := internal.effects_noted();
  perform internal.add_effects('league', (
    select array_agg(json_build_object(
             'app_user_id', m.id, 'key', (league_tell.league).key, 'run_key', (league_tell.run).run_key,
             'tier', (league_tell.run).tiers -> (e.tier::int) ->> 'key', 'points', internal.numeric_json(k.points),
             'rank', k.rank,
             'previous_rank', case when m.was_member then b.rank end, 'zone', k.zone) order by m.id)
      from unnest(league_tell.users, league_tell.was, league_tell.reached_was, league_tell.were_members)
             as m (id, was, reached_was, was_member)
      join app.league_entries e on (e.app_user_id, e.run_id) = (m.id, (league_tell.run).id)
     cross join lateral (
       select l.* from internal.league_ladder(league_tell.run, e.cohort_id, e.tier) l where l.app_user_id = m.id) k
     cross join lateral (
       select 1 + count(*) as rank
         from app.league_entries o
        where o.run_id = e.run_id and o.cohort_id = e.cohort_id and not o.is_hidden and o.app_user_id <> m.id
          and (-o.points, o.reached_at, o.app_user_id) < (-m.was, m.reached_was, m.id)) b
     -- one league is told of, the oldest where several changed
     where not e.is_hidden
       and not exists (select from jsonb_array_elements(noted) n
                        cross join lateral jsonb_array_elements(n.value -> 'effects') x
                         join app.leagues l on l.key = x.value ->> 'key'
                        where n.value ->> 'part' = 'league' and x.value ->> 'app_user_id' = m.id::text
                          and (l.created_at, l.id) < ((league_tell.league).created_at, (league_tell.league).id))));
end $$;
comment on function internal.league_tell is
  'Notes the effects of moves in a run: place and zone now, and the rank before, null for who has just entered. Granted
   to nobody.';
