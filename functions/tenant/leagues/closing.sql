-- Closing: the end of a run is announced, and its results are stored, by steps of a job. Answers to users do not wait
-- for it. A step is a transaction that visits a few cohorts and stores how far it came: one that is interrupted is
-- repeated, one that is committed never is.

create or replace function internal.league_fenced(run app.league_runs) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  if (league_fenced.run).fence is null then
    update app.league_runs r set fence = pg_current_xact_id(), is_warned = true, cursor_id = null
     where r.id = (league_fenced.run).id;
    return false;
  end if;
  return not exists (select from internal.writing_transactions() as w (id)
                      where age(w.id) > age((league_fenced.run).fence::xid));
end $$;
comment on function internal.league_fenced is
  'Whether every transaction that may not have seen the end of a run has ended: those older than a fence, the id of a
   transaction that began after it. Sets the fence if there is none. No transaction waits for a lock. Granted to
   nobody.';

create or replace function internal.league_cohorts_next(run app.league_runs, out ids uuid[], out users uuid[])
language plpgsql volatile security definer set search_path = '' as $$
declare
  patience constant text := current_setting('lock_timeout');
begin
  -- some 500 users a step, whom an event may have to wait for
  ids := array(
    select c.id
      from app.league_cohorts c
     where c.run_id = (league_cohorts_next.run).id
       and ((league_cohorts_next.run).cursor_id is null or c.id > (league_cohorts_next.run).cursor_id)
     order by c.id
     limit greatest(1, 500 / (league_cohorts_next.run).cohort_size));
  begin
    -- whoever has one of them for long makes this step wait, but not the others behind it
    perform set_config('lock_timeout', '100ms', true);
    users := internal.lock_users(array(
      select e.app_user_id from app.league_entries e
       where e.run_id = (league_cohorts_next.run).id and e.cohort_id = any (ids)));
    perform set_config('lock_timeout', patience, true);
  exception when lock_not_available then
    ids := null;
  end;
end $$;
comment on function internal.league_cohorts_next is
  'The cohorts after the cursor of a run, and their members, whom it locks. Null where a member stays locked by another
   transaction: then the locks are given back. Granted to nobody.';

create or replace function internal.league_announce(league app.leagues, run app.league_runs) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  r constant app.league_runs := league_announce.run;
  due constant record := internal.league_cohorts_next(r);
  told record;
begin
  if due.ids is null then
    return false;
  end if;
  select array_agg(k.app_user_id) as users, array_agg('svc.league.ending'::text) as names,
         array_agg(jsonb_build_object(
           'league_id', r.league_id, 'key', (league_announce.league).key, 'run_key', r.run_key,
           'tier', r.tiers -> c.tier::int ->> 'key', 'rank', k.rank, 'points', k.points, 'zone', k.zone,
           'ends_at', internal.iso(r.ends_at))) as properties
    into told
    from app.league_cohorts c
   cross join lateral internal.league_ladder(r, c.id, c.tier) k
   where c.id = any (due.ids) and k.app_user_id = any (due.users);
  update app.league_runs x
     set cursor_id = due.ids[cardinality(due.ids)], is_warned = due.ids = '{}'
   where x.id = r.id;
  perform internal.emit_many(told.users, told.names, told.properties);
  return true;
end $$;
comment on function internal.league_announce is
  'Emits svc.league.ending for the members of the next cohorts. Locks the users; false where one stays locked. Granted
   to nobody.';

create or replace function internal.league_settle(league app.leagues, run app.league_runs) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  r constant app.league_runs := league_settle.run;
  due constant record := internal.league_cohorts_next(r);
  settled record;
  given record;
begin
  if due.ids is null then
    return false;
  end if;
  with ranked as materialized (
    select k.app_user_id, k.rank, k.result, k.points, c.tier
      from app.league_cohorts c
     cross join lateral internal.league_ladder(r, c.id, c.tier) k
     where c.id = any (due.ids) and k.app_user_id = any (due.users)
  ), written as (
    update app.league_entries e
       set result = k.result, final_rank = k.rank
      from ranked k
     where (e.app_user_id, e.run_id) = (k.app_user_id, r.id)
  )
  select array_agg(k.app_user_id order by k.app_user_id) as users, array_agg(k.rank order by k.app_user_id) as ranks,
         array_agg(r.tiers -> k.tier::int ->> 'key' order by k.app_user_id) as tiers,
         array_agg('svc.league.' || k.result order by k.app_user_id) as names,
         array_agg(jsonb_build_object(
           'league_id', r.league_id, 'key', (league_settle.league).key, 'run_key', r.run_key,
           'tier_from', r.tiers -> k.tier::int ->> 'key',
           'tier_to', r.tiers -> internal.league_tier_after(k.tier, k.result) ->> 'key', 'rank', k.rank,
           'points', k.points) order by k.app_user_id) as properties
    into settled
    from ranked k;
  update app.league_cohorts c set settled_at = internal.now() where c.id = any (due.ids);
  update app.league_runs x
     set cursor_id = due.ids[cardinality(due.ids)], is_settled = due.ids = '{}'
   where x.id = r.id;
  select array_agg(w.id order by w.id, w.n) as users, array_agg(w.reward order by w.id, w.n) as rewards,
         array_agg(r.id || ' ' || w.n order by w.id, w.n) as sources
    into given
    from (select u.id, w.value -> 'reward' as reward, w.n
            from unnest(settled.users, settled.ranks, settled.tiers) as u (id, rank, tier)
            join jsonb_array_elements(r.rewards) with ordinality as w (value, n)
              on w.value ->> 'tier_key' = u.tier
             and u.rank between (w.value ->> 'from_rank')::bigint and (w.value ->> 'to_rank')::bigint) w;
  perform internal.grant_rewards(given.users, given.rewards, 'league', given.sources);
  perform internal.emit_many(settled.users, settled.names, settled.properties);
  return true;
end $$;
comment on function internal.league_settle is
  'Stores the results of the next cohorts of an ended run, gives their rewards and emits svc.league.promoted, stayed and
   relegated. Locks the users; false where one stays locked. Granted to nobody.';

create or replace function api.league_turn(league_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  league app.leagues;
  run app.league_runs;
  is_done boolean;
begin
  perform internal.check_caller('worker', 'leagues are turned by a worker');
  if not internal.try_advisory_lock('league_turn', league_turn.league_id::text) then
    return internal.reply(200, json_build_object('state', 'wait'));
  end if;
  -- one that is being deleted is waited for; one that is there stays until this step ends
  select l.* into league from app.leagues l where l.id = league_turn.league_id for key share;
  if league.id is null then
    return internal.reply(200, json_build_object('state', case when internal.league_clear(league_turn.league_id)
                                                               then 'done' else 'more' end));
  end if;
  select r.* into run
    from app.league_runs r
   where r.league_id = league.id and not r.is_settled and internal.league_turn_due(league.period, r) <= internal.now()
   order by r.starts_at, r.id
   limit 1
     for no key update;
  if run.id is null then
    return internal.reply(200, json_build_object('state', 'done', 'due_at', internal.iso((
      select min(internal.league_turn_due(league.period, r)) from app.league_runs r
       where r.league_id = league.id and not r.is_settled))));
  elsif not internal.league_is_over(run) then
    is_done := internal.league_announce(league, run);
  elsif not internal.league_fenced(run) then
    is_done := run.fence is null;
  else
    is_done := internal.league_settle(league, run);
  end if;
  return internal.reply(200, json_build_object('state', case when is_done then 'more' else 'wait' end));
end $$;
comment on function api.league_turn is
  'For the worker: performs the next due step of a league: {state: more, wait (for running writers), or done, due_at}.
   One at a time for each league. Locks the run and some users. Of a league that is no more, deletes what it left.';

create or replace function internal.purge__leagues(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.league_entries',
                             't.cohort_id is null and exists (select from app.league_runs r where r.id = t.run_id '
                             'and r.is_settled)', purge__leagues.most)
$$;
comment on function internal.purge__leagues is
  'Daily: points in settled runs that were not enough to enter them.';
