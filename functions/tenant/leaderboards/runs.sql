-- Runs: the period that contains a time, and whether it accepts scores. Both follow from the clock; the job only
-- freezes ended runs.

create or replace function internal.leaderboard_period(board app.leaderboards, at timestamptz, out run_key text,
                                                       out starts_at timestamptz, out ends_at timestamptz)
language plpgsql stable as $$
declare
  b constant app.leaderboards := leaderboard_period.board;
  unit constant text := case b.period when 'daily' then 'day' when 'weekly' then 'week' when 'monthly' then 'month' end;
  number int;
begin
  if unit is null then
    run_key := 'all';
    starts_at := b.starts_at;
    ends_at := b.ends_at;
    return;
  end if;
  number := internal.period_number(unit, 1, (leaderboard_period.at at time zone b.timezone)::date);
  run_key := internal.period_key(unit, internal.period_date(unit, 1, number));
  starts_at := internal.local_midnight(b.timezone, internal.period_date(unit, 1, number));
  ends_at := internal.local_midnight(b.timezone, internal.period_date(unit, 1, number + 1));
end $$;
comment on function internal.leaderboard_period is
  'The period of a board that a time is in, by its zone: key, and bounds (null: none). A board of all time has one, from
   its starts_at to its ends_at.';

create or replace function internal.leaderboard_runs_at(leaderboard_id uuid, at timestamptz)
returns setof app.leaderboard_runs
language sql stable rows 1 as $$
  select r.*
    from app.leaderboard_runs r
   where r.leaderboard_id = leaderboard_runs_at.leaderboard_id and r.state = 'live'
     and (r.starts_at is null or r.starts_at <= leaderboard_runs_at.at)
     and (r.ends_at is null or r.ends_at > leaderboard_runs_at.at)
   order by r.starts_at desc nulls last, r.id desc
   limit 1
$$;
comment on function internal.leaderboard_runs_at is
  'The run that contains a time, if its row exists. Inlined into the calling statement. Granted to nobody.';

create or replace function internal.leaderboard_run_at(board app.leaderboards, at timestamptz)
returns app.leaderboard_runs
language plpgsql stable security definer set search_path = '' as $$
declare
  run app.leaderboard_runs;
  period record;
begin
  select r.* into run from internal.leaderboard_runs_at((leaderboard_run_at.board).id, leaderboard_run_at.at) r;
  if run.id is not null then
    return run;
  end if;
  period := internal.leaderboard_period(leaderboard_run_at.board, leaderboard_run_at.at);
  -- one that was closed early, or whose zone was changed, keeps its key
  select r.* into run
    from app.leaderboard_runs r
   where r.leaderboard_id = (leaderboard_run_at.board).id and r.state = 'live' and r.run_key = period.run_key;
  if run.id is null then
    run.leaderboard_id := (leaderboard_run_at.board).id;
    run.run_key := period.run_key;
    run.starts_at := period.starts_at;
    run.ends_at := period.ends_at;
    run.state := 'live';
  end if;
  return run;
end $$;
comment on function internal.leaderboard_run_at is
  'The run that contains a time; a run without id has no row yet. Granted to nobody.';

create or replace function internal.leaderboard_is_open(run app.leaderboard_runs) returns boolean
language sql stable as $$
  -- five minutes for what was on its way
  select (leaderboard_is_open.run).closed_at is null
     and ((leaderboard_is_open.run).ends_at is null
          or internal.now() < (leaderboard_is_open.run).ends_at + interval '5 minutes')
$$;
comment on function internal.leaderboard_is_open is
  'Whether a run takes scores: until five minutes after its end, or until it was closed by hand.';

create or replace function internal.leaderboard_run_make(requested app.leaderboard_runs) returns app.leaderboard_runs
language plpgsql volatile security definer set search_path = '' as $$
declare
  run app.leaderboard_runs := leaderboard_run_make.requested;
begin
  if run.id is not null then
    return run;
  end if;
  -- the lock waits for a concurrent deletion of the board, after which no run is created
  perform from app.leaderboards b where b.id = run.leaderboard_id for key share;
  if not found then
    return null;
  end if;
  insert into app.leaderboard_runs (leaderboard_id, run_key, starts_at, ends_at)
  values (run.leaderboard_id, run.run_key, run.starts_at, run.ends_at)
  on conflict (leaderboard_id, run_key) where state = 'live' do nothing;
  select r.* into run
    from app.leaderboard_runs r
   where r.leaderboard_id = (leaderboard_run_make.requested).leaderboard_id
     and r.run_key = (leaderboard_run_make.requested).run_key and r.state = 'live';
  perform internal.enqueue('leaderboards__rollover', run.leaderboard_id::text, '{}',
                           run.ends_at - interval '10 minutes');
  return run;
end $$;
comment on function internal.leaderboard_run_make is
  'The row of a run, created at its first use; the job creates the next one ahead of time, so that no request waits
   here. Null when the board was deleted concurrently. Granted to nobody.';

create or replace function internal.leaderboard_run_missing(board app.leaderboards) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if exists (select from app.leaderboards b where b.id = (leaderboard_run_missing.board).id) then
    perform internal.fail(409, 'LEADERBOARD_NOT_ACTIVE', 'This leaderboard got other rules just now.');
  end if;
  perform internal.fail(404, 'NOT_FOUND', 'The leaderboard was deleted just now.');
end $$;
comment on function internal.leaderboard_run_missing is
  'For a caller whose run was deleted while it waited for the lock. Refuses 404 NOT_FOUND, or 409 LEADERBOARD_NOT_ACTIVE
   where the board still exists. Granted to nobody.';

create or replace function internal.leaderboard_run_json(run app.leaderboard_runs) returns json
language sql stable as $$
  select json_build_object(
    'key', (leaderboard_run_json.run).run_key,
    'status', case when internal.leaderboard_is_open(leaderboard_run_json.run) then 'open' else 'closed' end,
    'starts_at', internal.iso((leaderboard_run_json.run).starts_at),
    'ends_at', internal.iso((leaderboard_run_json.run).ends_at))
$$;
comment on function internal.leaderboard_run_json is 'A run as every answer shows it.';

create or replace function internal.leaderboard_run_find(board app.leaderboards, run text) returns app.leaderboard_runs
language plpgsql stable security definer set search_path = '' as $$
declare
  current constant app.leaderboard_runs := internal.leaderboard_run_at(leaderboard_run_find.board, internal.now());
  found_one app.leaderboard_runs;
begin
  if coalesce(leaderboard_run_find.run, 'current') = 'current' or leaderboard_run_find.run = current.run_key then
    return current;
  end if;
  select r.* into found_one
    from app.leaderboard_runs r
   where r.leaderboard_id = (leaderboard_run_find.board).id and r.state = 'live'
     and case when leaderboard_run_find.run = 'previous' then r.ends_at <= coalesce(current.starts_at, '-infinity')
              else r.run_key = leaderboard_run_find.run end
   order by r.starts_at desc nulls last, r.id desc
   limit 1;
  perform internal.check_found(found_one.id is not null, 'run');
  return found_one;
end $$;
comment on function internal.leaderboard_run_find is
  'A run by its key, current (by default), or previous, the last one that there was before. Refuses 404 NOT_FOUND.
   Granted to nobody.';
