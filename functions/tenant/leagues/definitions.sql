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
    perform internal.league_runs_drop(o.id);
  end if;
  return l;
end $$;
comment on function internal.league_check is
  'Completes the tiers, and checks what the constraints of app.leagues cannot express. Refuses 400 VALIDATION_ERROR, 409
   LEAGUE_IMMUTABLE (the period, once a run has members). Without members, deletes the runs of the former period.';

create or replace function internal.league_before_delete(doomed app.leagues) returns void
language plpgsql volatile as $$
begin
  if internal.league_lock((league_before_delete.doomed).id) then
    perform internal.league_runs_drop((league_before_delete.doomed).id);
  end if;
end $$;
comment on function internal.league_before_delete is
  'Locks a league and its users, and deletes its runs with their results; rewards stay.';

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

create or replace function internal.league_runs_close(league_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'leagues are changed by administrators');
  perform from app.league_runs r where r.league_id = league_runs_close.league_id order by r.id for update;
end $$;
comment on function internal.league_runs_close is
  'Locks the runs of a league against new entries. Waits for transactions that are storing one.';

create or replace function internal.league_lock(league_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'leagues are deleted by administrators');
  -- neither of these two blocks a transaction that stores points: it has locked its user and waits for the league next
  perform from app.leagues l where l.id = league_lock.league_id for no key update;
  if not found then
    return false;
  end if;
  perform from app.league_runs r where r.league_id = league_lock.league_id order by r.id for no key update;
  perform internal.lock_users(array(
    select distinct e.app_user_id
      from app.league_entries e
      join app.league_runs r on r.id = e.run_id
     where r.league_id = league_lock.league_id));
  perform from app.leagues l where l.id = league_lock.league_id for update;
  return true;
end $$;
comment on function internal.league_lock is
  'Locks a league to be deleted, in the same order as points, jobs and other changes: the league and its runs against
   other changes, then all users who have points, then the league against new runs. False when it was deleted
   concurrently.';

create or replace function internal.league_runs_drop(league_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'leagues are changed by administrators');
  -- cohorts first: their entries go with them, and then count down in none
  delete from app.league_cohorts c using app.league_runs r
   where r.id = c.run_id and r.league_id = league_runs_drop.league_id;
  delete from app.league_runs r where r.league_id = league_runs_drop.league_id;
end $$;
comment on function internal.league_runs_drop is 'Deletes the runs of a league with their cohorts and entries.';
