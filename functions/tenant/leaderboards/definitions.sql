-- Checks of leaderboard definitions, and their deletion.
comment on constraint leaderboards_key_unique on app.leaderboards is
  '409 CONFLICT key: A leaderboard with this key exists.';
comment on constraint leaderboards_end_after_start on app.leaderboards is
  '400 VALIDATION_ERROR ends_at: must be after starts_at.';
comment on constraint leaderboards_max_above_min on app.leaderboards is
  '400 VALIDATION_ERROR max_score: must not be below min_score.';

create or replace function internal.leaderboard_source_problem(source jsonb) returns text
language plpgsql stable as $$
declare
  s constant jsonb := leaderboard_source_problem.source;
begin
  return case coalesce(s ->> 'type', '')
    when 'manual' then null
    when 'xp' then null
    when 'event' then case
      when jsonb_typeof(s -> 'event_name') is distinct from 'string'
        or char_length(s ->> 'event_name') not between 1 and 255
           or s ->> 'event_name' ~ '^\s|\s$' then 'event_name must have 1 to 255 characters, no white space at either '
                                                  'end'
      when s ->> 'event_name' like 'svc.leaderboard.%' then 'event_name must be no event of leaderboards: it would '
                                                            'feed itself'
      when coalesce(jsonb_typeof(s -> 'value_property'), 'null') not in ('string', 'null')
        or char_length(s ->> 'value_property') not between 1 and 255
        then 'value_property must be a path of 1 to 255 characters'
      when coalesce(jsonb_typeof(s -> 'filter'),
                    'null') <> 'null' then 'filter: ' || internal.filter_problem((s -> 'filter')::json)
    end
    when 'currency' then case
      when jsonb_typeof(s -> 'currency_code') is distinct from 'string'
        or char_length(s ->> 'currency_code') not between 1 and 128
        then 'currency_code is required' end
    when 'streak' then case
      when jsonb_typeof(s -> 'streak_key') is distinct from 'string'
        or char_length(s ->> 'streak_key') not between 1 and 128
        then 'streak_key is required' end
    else 'type must be manual, event, xp, currency or streak'
  end;
end $$;
comment on function internal.leaderboard_source_problem is 'What is wrong with a source, or null.';

create or replace function internal.leaderboard_check(requested app.leaderboards, was app.leaderboards, sent jsonb)
returns app.leaderboards
language plpgsql volatile as $$
declare
  w constant app.leaderboards := leaderboard_check.requested;
  o constant app.leaderboards := leaderboard_check.was;
  problem constant text := internal.leaderboard_source_problem(w.source);
begin
  if problem is not null then
    perform internal.invalid('source', problem);
  -- a source that was valid when it was stored stays, so that a board whose currency was deleted may still be changed
  elsif w.source ->> 'type' = 'currency' and w.source is distinct from o.source
        and not exists (select from app.currencies c where c.code = w.source ->> 'currency_code') then
    perform internal.invalid('source', 'currency_code must be a currency of this project');
  elsif not exists (select from app.timezones t where t.name = w.timezone) then
    perform internal.invalid('timezone', 'must be the name of a time zone');
  elsif exists (select from jsonb_array_elements(w.rewards) r
                 where (r.value ->> 'to_rank')::bigint < (r.value ->> 'from_rank')::bigint) then
    perform internal.invalid('rewards', 'to_rank must not be below from_rank');
  elsif w.segment_id is not null and not internal.segment_lock_shared(w.segment_id) then
    perform internal.invalid('segment_id', 'must be the id of a segment');
  end if;
  if o.id is not null and (w.scoring, w.sort, w.period) is distinct from (o.scoring, o.sort, o.period) then
    -- a first score that is on its way is waited for
    perform internal.leaderboard_runs_close(o.id);
    if exists (select from app.leaderboard_entries e join app.leaderboard_runs r on r.id = e.run_id
                where r.leaderboard_id = o.id) then
      perform internal.fail(409, 'LEADERBOARD_IMMUTABLE', 'scoring, sort and period are fixed once there are entries.');
    end if;
    -- its runs were of the former periods
    perform internal.leaderboard_runs_drop(o.id);
  end if;
  return w;
end $$;
comment on function internal.leaderboard_check is
  'Checks what the constraints of app.leaderboards cannot express. Refuses 400 VALIDATION_ERROR, 409
   LEADERBOARD_IMMUTABLE (scoring, sort or period, with entries). Without entries, deletes the runs of the former
   period.';

create or replace function internal.leaderboard_before_delete(doomed app.leaderboards) returns void
language plpgsql volatile as $$
begin
  if internal.leaderboard_lock((leaderboard_before_delete.doomed).id) then
    perform internal.leaderboard_runs_drop((leaderboard_before_delete.doomed).id);
  end if;
end $$;
comment on function internal.leaderboard_before_delete is
  'Locks a board and its users, and deletes its runs and entries; rewards stay.';

create or replace function internal.segment_used__leaderboards(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'leaderboard ' || b.key from app.leaderboards b
                where b.segment_id = segment_used__leaderboards.segment_id order by b.key)
$$;
comment on function internal.segment_used__leaderboards is 'The leaderboards that name a segment.';

create or replace function internal.tg_leaderboards__watch() returns trigger
language plpgsql volatile as $$
begin
  new.watches := case new.source ->> 'type'
    when 'event' then array[new.source ->> 'event_name']
    when 'currency' then array['svc.currency.credited', 'svc.currency.debited']
    when 'streak' then array['svc.streak.started', 'svc.streak.extended', 'svc.streak.restored']
    else '{}' end;
  return new;
end $$;
comment on function internal.tg_leaderboards__watch is 'Stores the names of the events that submit scores to a board.';

create or replace trigger tg_leaderboards__watch
  before insert or update of source on app.leaderboards
  for each row execute function internal.tg_leaderboards__watch();

create or replace function internal.tg_leaderboards__plan() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if tg_op = 'UPDATE' and new.period = 'all_time' then
    -- the one run ends when its board does
    update app.leaderboard_runs r
       set ends_at = new.ends_at
     where r.leaderboard_id = new.id and r.state = 'live' and internal.leaderboard_is_open(r) and r.ends_at is distinct
       from new.ends_at;
  end if;
  perform internal.enqueue('leaderboards__rollover', new.id::text);
  return null;
end $$;
comment on function internal.tg_leaderboards__plan is
  'Queues the job that creates the due run and schedules its next check.';

create or replace trigger tg_leaderboards__plan
  after insert or update on app.leaderboards
  for each row execute function internal.tg_leaderboards__plan();
select internal.audit_declare('app.leaderboards', 'leaderboards');

create or replace function internal.leaderboard_runs_close(leaderboard_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'boards are changed by administrators');
  -- live ones first, then what is to replace them, as the jobs do
  perform from app.leaderboard_runs r where r.leaderboard_id = leaderboard_runs_close.leaderboard_id
    order by r.state <> 'live', r.id for update;
end $$;
comment on function internal.leaderboard_runs_close is
  'Locks the runs of a board against new entries. Waits for transactions that are storing one.';

create or replace function internal.leaderboard_lock(leaderboard_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'boards are deleted by administrators');
  -- neither of these two blocks a transaction that stores a score: it has locked its user and waits for the board next
  perform from app.leaderboards b where b.id = leaderboard_lock.leaderboard_id for no key update;
  if not found then
    return false;
  end if;
  perform from app.leaderboard_runs r where r.leaderboard_id = leaderboard_lock.leaderboard_id
    order by r.state <> 'live', r.id for no key update;
  perform internal.lock_users(array(
    select distinct e.app_user_id
      from app.leaderboard_entries e
      join app.leaderboard_runs r on r.id = e.run_id
     where r.leaderboard_id = leaderboard_lock.leaderboard_id));
  perform from app.leaderboards b where b.id = leaderboard_lock.leaderboard_id for update;
  return true;
end $$;
comment on function internal.leaderboard_lock is
  'Locks a board to be deleted, in the same order as scores, jobs and other changes: the board and its runs against
   other changes, then all users who have an entry, then the board against new runs. False when it was deleted
   concurrently.';

create or replace function internal.leaderboard_runs_drop(leaderboard_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'boards are changed by administrators');
  -- waits for a concurrent fold of each run, which waits for no lock of this transaction
  perform internal.advisory_lock('leaderboard_fold', r.id::text)
     from (select x.id from app.leaderboard_runs x where x.leaderboard_id = leaderboard_runs_drop.leaderboard_id
            order by x.id) r;
  delete from app.leaderboard_runs r where r.leaderboard_id = leaderboard_runs_drop.leaderboard_id;
end $$;
comment on function internal.leaderboard_runs_drop is
  'Deletes the runs of a board with their entries. Waits for concurrent folds of these runs.';

