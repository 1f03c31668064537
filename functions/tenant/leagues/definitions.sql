-- Checks of league definitions, what they watch, and their deletion.
comment on constraint leagues_key_unique on app.leagues is '409 CONFLICT key: A league with this key exists.';

create or replace function internal.league_points_problem(points jsonb) returns text
language sql immutable as $$
  select case coalesce(p ->> 'type', '')
    when 'xp' then null
    when 'event' then case
      when jsonb_typeof(p -> 'event_name') is distinct from 'string'
        or char_length(p ->> 'event_name') not between 1 and 255 or p ->> 'event_name' ~ '^\s|\s$'
        then 'event_name must have 1 to 255 characters, no white space at either end'
      when p ->> 'event_name' like 'svc.league.%' then 'event_name must be no event of leagues: it would feed itself'
      when coalesce(jsonb_typeof(p -> 'value_property'), 'null') not in ('string', 'null')
        or char_length(p ->> 'value_property') not between 1 and 255
        then 'value_property must be a path of 1 to 255 characters' end
    else 'type must be xp or event' end
    from (select league_points_problem.points as p) o
$$;
comment on function internal.league_points_problem is 'What is wrong with the points of a league, or null.';

create or replace function internal.league_tiers_problem(tiers jsonb, cohort_size int) returns text
language sql immutable as $$
  select case
    when count(*) not between 2 and 20 then 'must have 2 to 20 items'
    when bool_or(t.value ->> 'key' is null) then 'each needs a key'
    when count(distinct t.value ->> 'key') < count(*) then 'must have different keys'
    when bool_or((t.value ->> 'promote_count')::numeric + (t.value ->> 'relegate_count')::numeric
                 >= league_tiers_problem.cohort_size)
      then 'promote_count and relegate_count together must be less than cohort_size' end
    from jsonb_array_elements(league_tiers_problem.tiers) t
$$;
comment on function internal.league_tiers_problem is 'What is wrong with whole tiers, or null.';

create or replace function internal.league_rewards_problem(rewards jsonb, tiers jsonb, cohort_size int) returns text
language sql immutable as $$
  select case
    when not bool_and(exists (select from jsonb_array_elements(league_rewards_problem.tiers) t
                               where t.value ->> 'key' = r.value ->> 'tier_key'))
      then 'tier_key must be the key of a tier'
    when bool_or((r.value ->> 'to_rank')::bigint < (r.value ->> 'from_rank')::bigint)
      then 'to_rank must not be below from_rank'
    when bool_or((r.value ->> 'to_rank')::bigint > league_rewards_problem.cohort_size)
      then 'to_rank must not be above cohort_size' end
    from jsonb_array_elements(league_rewards_problem.rewards) r
$$;
comment on function internal.league_rewards_problem is 'What is wrong with the rewards of a league, or null.';

create or replace function internal.league_check(requested app.leagues, was app.leagues, sent jsonb)
returns app.leagues
language plpgsql volatile as $$
declare
  l app.leagues := league_check.requested;
  o constant app.leagues := league_check.was;
  problem text;
begin
  l.tiers := (
    select coalesce(jsonb_agg(jsonb_build_object(
             'key', t.value -> 'key', 'name', coalesce(t.value ->> 'name', t.value ->> 'key'),
             'icon_url', t.value -> 'icon_url',
             'promote_count', coalesce((t.value ->> 'promote_count')::int, 0),
             'relegate_count', coalesce((t.value ->> 'relegate_count')::int, 0)) order by t.n), '[]')
      from jsonb_array_elements(l.tiers) with ordinality as t (value, n));
  problem := internal.league_tiers_problem(l.tiers, l.cohort_size);
  if problem is not null then
    perform internal.invalid('tiers', problem);
  end if;
  problem := internal.league_points_problem(l.points);
  if problem is not null then
    perform internal.invalid('points', problem);
  end if;
  problem := internal.league_rewards_problem(l.rewards, l.tiers, l.cohort_size);
  if problem is not null then
    perform internal.invalid('rewards', problem);
  elsif not exists (select from app.timezones t where t.name = l.timezone) then
    perform internal.invalid('timezone', 'must be the name of a time zone');
  end if;
  if o.id is not null and l.period is distinct from o.period then
    -- a first member who is on the way is waited for
    perform internal.league_runs_close(o.id);
    if exists (select from app.league_runs r join app.league_cohorts c on c.run_id = r.id where r.league_id = o.id) then
      perform internal.fail(409, 'LEAGUE_IMMUTABLE', 'The period is fixed once a run has members.');
    end if;
    -- its runs were of the former periods
    perform internal.league_runs_disown(o.id);
  end if;
  return l;
end $$;
comment on function internal.league_check is
  'Completes the tiers, and checks what the constraints of app.leagues cannot express. Refuses 400 VALIDATION_ERROR, 409
   LEAGUE_IMMUTABLE (the period, once a run has members). Without members, deletes the runs of the former period.';

create or replace function internal.tg_leagues__watch() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a run that is not settled keeps the points that it began with
  new.watches := array(
    select internal.league_watched(new.points)
    union
    select internal.league_watched(r.points) from app.league_runs r where r.league_id = new.id and not r.is_settled
    order by 1);
  return new;
end $$;
comment on function internal.tg_leagues__watch is 'Stores the names of the events that give points in a league.';

create or replace function internal.league_watched(points jsonb) returns text
language sql immutable as $$
  select case when league_watched.points ->> 'type' = 'event' then league_watched.points ->> 'event_name' else '' end
$$;
comment on function internal.league_watched is 'The event that gives points; an empty text for XP.';

create or replace trigger tg_leagues__watch
  before insert or update of points on app.leagues
  for each row execute function internal.tg_leagues__watch();

create or replace trigger tg_leagues__event_plans
  after insert or delete or update of is_active, points, watches on app.leagues
  for each statement execute function internal.tg_event_plans();

select internal.audit_declare('app.leagues', 'leagues');

create or replace function internal.league_ids() returns uuid[]
language sql stable security definer set search_path = '' as $$
  select array(select l.id from app.leagues l)
$$;
comment on function internal.league_ids is 'The leagues that there are, whose rows are shown.';

create or replace function internal.league_run_ids() returns uuid[]
language sql stable security definer set search_path = '' as $$
  select array(select r.id from app.league_runs r join app.leagues l on l.id = r.league_id)
$$;
comment on function internal.league_run_ids is 'The runs of the leagues that there are, whose cohorts are shown.';

create or replace function internal.league_runs_close(league_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'leagues are changed by administrators');
  perform from app.league_runs r where r.league_id = league_runs_close.league_id order by r.id for update;
end $$;
comment on function internal.league_runs_close is
  'Locks the runs of a league against new entries. Waits for transactions that are storing one.';

create or replace function internal.league_runs_disown(league_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  nobody constant uuid := internal.new_id();
begin
  perform internal.check_caller('developer', 'leagues are changed by administrators');
  update app.league_runs r set league_id = nobody where r.league_id = league_runs_disown.league_id;
  if found then
    perform internal.enqueue('leagues__turn', nobody::text);
  end if;
end $$;
comment on function internal.league_runs_disown is
  'Takes the runs of a league away from it; the job deletes them, as those of a league that is no more.';

create or replace function internal.league_clear(league_id uuid, most int default 2000) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  run_ids constant uuid[] := array(select r.id from app.league_runs r where r.league_id = league_clear.league_id);
  cleared int;
begin
  -- nothing waits here: what an event is storing at this moment goes with a later step
  delete from app.league_entries e
    where e.ctid = any (array(
      select x.ctid from app.league_entries x where x.run_id = any (run_ids) limit league_clear.most
         for update skip locked));
  get diagnostics cleared = row_count;
  if cleared < league_clear.most then
    delete from app.league_tiers t
      where t.ctid = any (array(
        select x.ctid from app.league_tiers x where x.league_id = league_clear.league_id
         limit league_clear.most - cleared for update skip locked));
    get diagnostics cleared = row_count;
  end if;
  if exists (select from app.league_entries e where e.run_id = any (run_ids))
     or exists (select from app.league_tiers t where t.league_id = league_clear.league_id) then
    return false;
  end if;
  delete from app.league_cohorts c
    where c.ctid = any (array(
      select x.ctid from app.league_cohorts x where x.run_id = any (run_ids) limit league_clear.most
         for update skip locked));
  if exists (select from app.league_cohorts c where c.run_id = any (run_ids)) then
    return false;
  end if;
  delete from app.league_runs r
    where r.ctid = any (array(
      select x.ctid from app.league_runs x where x.league_id = league_clear.league_id limit league_clear.most
         for update skip locked));
  return not exists (select from app.league_runs r where r.league_id = league_clear.league_id);
end $$;
comment on function internal.league_clear is
  'Deletes some rows of a league that is no more: its entries, then cohorts, then runs. True when all are gone. Waits
   for no lock. Granted to nobody.';

create or replace function internal.tg_leagues__clear() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not internal.league_clear(old.id) then
    perform internal.enqueue('leagues__turn', old.id::text);
  end if;
  return null;
end $$;
comment on function internal.tg_leagues__clear is
  'With a league go its runs and results: a small one at once, the rest of a large one by steps of a job. Nobody sees
   them meanwhile.';

create or replace trigger tg_leagues__clear
  after delete on app.leagues
  for each row execute function internal.tg_leagues__clear();
