-- Runs: which one a time belongs to, and whether it takes points. Both follow from the clock.

create or replace function internal.league_is_open(run app.league_runs) returns boolean
language sql stable as $$
  -- five minutes for what was on its way
  select (league_is_open.run).closed_at is null and (league_is_open.run).starts_at <= internal.now()
     and internal.now() < (league_is_open.run).ends_at + interval '5 minutes'
$$;
comment on function internal.league_is_open is
  'Whether a run takes points: from its start until five minutes after its end, or until it was closed by hand.';

create or replace function internal.league_is_over(run app.league_runs) returns boolean
language sql stable as $$
  select (league_is_over.run).closed_at is not null or (league_is_over.run).ends_at <= internal.now()
$$;
comment on function internal.league_is_over is 'Whether a run has ended, so that its results are shown.';

create or replace function internal.league_run_key(league_id uuid, period_key text) returns text
language sql stable as $$
  select case when max(r.n) is null then league_run_key.period_key
              else league_run_key.period_key || '-' || max(r.n) + 1 end
    from (select coalesce(substr(x.run_key, char_length(x.period_key) + 2)::int, 1) as n
            from (select nullif(y.run_key, y.period_key) as run_key, y.period_key
                    from app.league_runs y
                   where y.league_id = league_run_key.league_id
                     and y.period_key = league_run_key.period_key) x) r
$$;
comment on function internal.league_run_key is
  'The key of the next run of a period: that of the period, and then with -2, -3, ... behind it. Granted to nobody.';

create or replace function internal.league_run_at(league app.leagues, at timestamptz) returns app.league_runs
language plpgsql stable security definer set search_path = '' as $$
declare
  l constant app.leagues := league_run_at.league;
  unit constant text := case l.period when 'daily' then 'day' when 'weekly' then 'week' else 'month' end;
  run app.league_runs;
  last_end timestamptz;
  number int;
begin
  select r.* into run
    from app.league_runs r
   where r.league_id = l.id and r.takes_from <= league_run_at.at
   order by r.starts_at desc, r.id desc
   limit 1;
  if run.ends_at > league_run_at.at then
    return run;
  end if;
  last_end := run.ends_at;
  run := null;
  number := internal.period_number(unit, 1, (league_run_at.at at time zone l.timezone)::date);
  run.league_id := l.id;
  run.period_key := internal.period_key(unit, internal.period_date(unit, 1, number));
  run.run_key := internal.league_run_key(l.id, run.period_key);
  -- where the zone was changed, the run between begins when the former one ends, and ends when the next one begins
  run.starts_at := greatest(internal.local_midnight(l.timezone, internal.period_date(unit, 1, number)), last_end);
  run.takes_from := run.starts_at;
  run.ends_at := least(internal.local_midnight(l.timezone, internal.period_date(unit, 1, number + 1)),
                       (select min(r.starts_at) from app.league_runs r
                         where r.league_id = l.id and r.starts_at > league_run_at.at));
  run.tiers := l.tiers;
  run.cohort_size := l.cohort_size;
  run.points := l.points;
  run.min_points_to_join := l.min_points_to_join;
  run.inactive_relegates := l.inactive_relegates;
  run.rewards := l.rewards;
  return run;
end $$;
comment on function internal.league_run_at is
  'The run that a time belongs to; a run without id has no row yet, and would begin with the league''s present rules.
   Granted to nobody.';

create or replace function internal.league_run_make(requested app.league_runs, at timestamptz)
returns app.league_runs
language plpgsql volatile security definer set search_path = '' as $$
declare
  w constant app.league_runs := league_run_make.requested;
  league app.leagues;
  run app.league_runs;
begin
  -- the lock waits for a concurrent deletion of the league, after which no run is created
  select l.* into league from app.leagues l where l.id = w.league_id for key share;
  if not found then
    return null;
  end if;
  insert into app.league_runs (league_id, run_key, period_key, starts_at, ends_at, takes_from, tiers, cohort_size,
                               points, min_points_to_join, inactive_relegates, rewards)
  values (w.league_id, w.run_key, w.period_key, w.starts_at, w.ends_at, w.takes_from, w.tiers, w.cohort_size, w.points,
          w.min_points_to_join, w.inactive_relegates, w.rewards)
  on conflict on constraint league_runs_key_unique do nothing
  returning * into run;
  if not found then
    -- made meanwhile, and perhaps closed already: then another one has begun
    return internal.league_run_at(league, league_run_make.at);
  end if;
  perform internal.league_turn_later(league, run);
  return run;
end $$;
comment on function internal.league_run_make is
  'The row of a run that a time belongs to, created by the first points in it. Null when the league was deleted
   concurrently. Granted to nobody.';

create or replace function internal.league_turn_due(period text, run app.league_runs) returns timestamptz
language sql stable as $$
  select case when (league_turn_due.run).closed_at is not null then (league_turn_due.run).closed_at
              when not (league_turn_due.run).is_warned and league_turn_due.period <> 'daily'
                and internal.now() < (league_turn_due.run).ends_at
                then greatest((league_turn_due.run).ends_at - interval '3 hours', internal.now())
              else (league_turn_due.run).ends_at + interval '5 minutes' end
$$;
comment on function internal.league_turn_due is
  'When a run that is not settled needs the job: three hours before the end, which is announced then (but that of a
   day), when it takes points no more, or at once where it was closed by hand. Granted to nobody.';

create or replace function internal.league_turn_later(league app.leagues, run app.league_runs) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.enqueue('leagues__turn', (league_turn_later.league).id::text, '{}',
                           internal.league_turn_due((league_turn_later.league).period, league_turn_later.run));
end $$;
comment on function internal.league_turn_later is 'Queues the job that announces and settles a run. Granted to nobody.';
