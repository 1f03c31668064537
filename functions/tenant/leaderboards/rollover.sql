-- Rollover of boards by the clock, in small steps of a job: the next run is created ahead of time; an ended run is
-- frozen, rewarded and its event emitted; old runs are deleted. Responses to users do not depend on it.

create or replace function internal.leaderboard_fenced(run app.leaderboard_runs) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  if (leaderboard_fenced.run).fence is null then
    update app.leaderboard_runs r set fence = pg_current_xact_id() where r.id = (leaderboard_fenced.run).id;
    return false;
  end if;
  return not exists (select from internal.writing_transactions() as w (id)
                      where age(w.id) > age((leaderboard_fenced.run).fence::xid));
end $$;
comment on function internal.leaderboard_fenced is
  'Whether every transaction of this database that may not have seen the last change of a run has ended: those older
   than a fence, the id of a transaction that began after the change. Sets the fence if there is none. No transaction
   waits for a lock. Granted to nobody.';

create or replace function internal.leaderboard_freeze(board app.leaderboards, run app.leaderboard_runs, batch int)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  r constant app.leaderboard_runs := leaderboard_freeze.run;
  wanted uuid[];
  ending app.leaderboard_entries;
  ranked record;
  total bigint;
  given record;
begin
  select array_agg(w.app_user_id) into wanted
    from (select e.app_user_id
            from app.leaderboard_entries e
           where e.run_id = r.id and not e.is_hidden
             and (r.cursor_place is null or (e.place, e.reached_at, e.app_user_id) > (r.cursor_place, r.cursor_at,
                                        r.cursor_id))
           order by e.place, e.reached_at, e.app_user_id
           limit leaderboard_freeze.batch) w;
  -- who is deleted or banned while we wait has no rank
  perform internal.lock_users(wanted);
  total := internal.leaderboard_total(r.id);
  with numbered as (
    select e.app_user_id, r.frozen + row_number() over (order by e.place, e.reached_at, e.app_user_id) as rank
      from app.leaderboard_entries e
     where e.run_id = r.id and e.app_user_id = any (wanted) and not e.is_hidden
  ), written as (
    update app.leaderboard_entries e
       set final_rank = n.rank
      from numbered n
     where (e.app_user_id, e.run_id) = (n.app_user_id, r.id)
    returning e.app_user_id, e.final_rank, e.score
  )
  select array_agg(w.app_user_id order by w.final_rank) as users,
         array_agg(w.final_rank order by w.final_rank) as ranks,
         array_agg(jsonb_build_object(
           'leaderboard_id', (leaderboard_freeze.board).id, 'key', (leaderboard_freeze.board).key, 'run_key', r.run_key,
             'score', w.score,
           'rank', w.final_rank, 'total', total) order by w.final_rank) as properties
    into ranked
    from written w;
  select e.* into ending
    from app.leaderboard_entries e
   where e.run_id = r.id and e.app_user_id = any (wanted)
   order by e.place desc, e.reached_at desc, e.app_user_id desc
   limit 1;
  update app.leaderboard_runs x
     set frozen = r.frozen + coalesce(cardinality(ranked.users), 0),
         cursor_place = coalesce(ending.place, r.cursor_place), cursor_at = coalesce(ending.reached_at, r.cursor_at),
         cursor_id = coalesce(ending.app_user_id, r.cursor_id),
         is_frozen = coalesce(cardinality(wanted), 0) < leaderboard_freeze.batch
   where x.id = r.id;
  for given in
    select u.id, w.value -> 'reward' as reward, w.n
      from unnest(ranked.users, ranked.ranks) as u (id, rank)
      join jsonb_array_elements((leaderboard_freeze.board).rewards) with ordinality as w (value, n)
        on u.rank between (w.value ->> 'from_rank')::bigint and (w.value ->> 'to_rank')::bigint
     order by u.id, w.n
  loop
    perform internal.grant_reward(given.id, given.reward, 'leaderboard', r.id || ' ' || given.n);
  end loop;
  perform internal.emit_many(ranked.users, array_fill('svc.leaderboard.run_closed'::text,
                                                      array[coalesce(cardinality(ranked.users), 0)]),
                                                        ranked.properties);
end $$;
comment on function internal.leaderboard_freeze is
  'Assigns final ranks to the next entries of an ended run, pays their rewards and emits svc.leaderboard.run_closed. The
   progress is stored in the same transaction: an interrupted step is repeated, a committed one never is. Locks the
   users. Granted to nobody.';

create or replace function internal.leaderboard_sweep(board app.leaderboards) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  old app.leaderboard_runs;
  deleted int;
begin
  select r.* into old
    from app.leaderboard_runs r
   where r.leaderboard_id = (leaderboard_sweep.board).id
     and (r.state = 'doomed'
          or r.state = 'live' and r.is_frozen
             and (select count(*) from app.leaderboard_runs n
                   where n.leaderboard_id = r.leaderboard_id and n.state = 'live' and n.is_frozen
                     and (n.ends_at, n.id) > (r.ends_at, r.id)) >= (leaderboard_sweep.board).keep_runs)
   order by r.id
   limit 1;
  if old.id is null then
    return 'done';
  elsif not internal.leaderboard_fenced(old) then
    return case when old.fence is null then 'more' else 'wait' end;
  end if;
  delete from app.leaderboard_entries e
   where e.run_id = old.id
     and e.app_user_id in (select x.app_user_id from app.leaderboard_entries x where x.run_id = old.id
                            order by x.app_user_id limit 5000);
  get diagnostics deleted = row_count;
  if deleted < 5000 then
    perform internal.advisory_lock('leaderboard_fold', old.id::text);
    delete from app.leaderboard_runs r where r.id = old.id;
  end if;
  return 'more';
end $$;
comment on function internal.leaderboard_sweep is
  'Deletes a batch of entries of an obsolete run: beyond keep_runs, or replaced. Returns more, wait, or done. Granted to
   nobody.';

create or replace function api.leaderboard_rollover(leaderboard_id uuid, batch int) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  board app.leaderboards;
  current app.leaderboard_runs;
  over app.leaderboard_runs;
  state text;
  due timestamptz;
begin
  perform internal.check_caller('worker', 'boards are turned by a worker');
  if not internal.try_advisory_lock('leaderboard_rollover', leaderboard_rollover.leaderboard_id::text) then
    return internal.reply(200, json_build_object('state', 'wait'));
  end if;
  select b.* into board from app.leaderboards b where b.id = leaderboard_rollover.leaderboard_id;
  if board.id is null then
    return internal.reply(200, json_build_object('state', 'done'));
  end if;
  -- made ahead, so that the first scores of a period do not wait for each other
  if board.is_active then
    current := internal.leaderboard_run_at(board, internal.now());
    if internal.leaderboard_is_open(current) then
      current := internal.leaderboard_run_make(current);
    end if;
    if current.ends_at <= internal.now() + interval '10 minutes' and board.period <> 'all_time' then
      perform internal.leaderboard_run_make(internal.leaderboard_run_at(board, current.ends_at));
    end if;
  end if;
  select r.* into over
    from app.leaderboard_runs r
   where r.leaderboard_id = board.id and r.state = 'live' and not r.is_frozen and not internal.leaderboard_is_open(r)
   order by r.starts_at nulls first, r.id
   limit 1
     for no key update;
  if over.closed_at is null and over.id is not null then
    update app.leaderboard_runs r set closed_at = internal.now(), shadow_id = null, fence = null where r.id = over.id;
    update app.leaderboard_runs r set state = 'doomed', fence = null where r.id = over.shadow_id;
    return internal.reply(200, json_build_object('state', 'more'));
  elsif over.id is not null then
    if not internal.leaderboard_fenced(over) then
      return internal.reply(200, json_build_object('state', case when over.fence is null then 'more' else 'wait' end));
    end if;
    perform internal.leaderboard_freeze(board, over, leaderboard_rollover.batch);
    return internal.reply(200, json_build_object('state', 'more'));
  end if;
  state := internal.leaderboard_sweep(board);
  if state = 'done' then
    select min(case when r.ends_at - interval '10 minutes' > internal.now() then r.ends_at - interval '10 minutes'
                    else r.ends_at + interval '5 minutes' end)
      into due
      from app.leaderboard_runs r
     where r.leaderboard_id = board.id and r.state = 'live' and not r.is_frozen;
  end if;
  return internal.reply(200, json_build_object('state', state, 'due_at', internal.iso(due)));
end $$;
comment on function api.leaderboard_rollover is
  'For the worker: performs the next due step of a board: {state: more, wait (for running writers), or done, due_at}.
   One at a time for each board. Locks the run.';

create or replace function api.leaderboard_notify(run_id uuid, by uuid, passed json, displaced uuid default null,
                                                  displaced_reason text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  run app.leaderboard_runs;
  board app.leaderboards;
  them record;
  mover record;
  told record;
begin
  perform internal.check_caller('worker', 'moves are told by a worker');
  select r.* into run from app.leaderboard_runs r where r.id = leaderboard_notify.run_id and r.state = 'live';
  select b.* into board from app.leaderboards b where b.id = run.leaderboard_id;
  if board.id is null then
    return internal.reply(200, '0');
  end if;
  perform internal.lock_users(array(select p::uuid
                                      from json_array_elements_text(leaderboard_notify.passed) p)
                                        || leaderboard_notify.displaced);
  mover := internal.leaderboard_entry_of(run.id, leaderboard_notify.by);
  -- by the present ranks: a user who has passed again, or is back in the top 10, is not notified
  select array_agg(n.id) as users, array_agg('svc.leaderboard.rank_changed'::text) as names,
         array_agg(jsonb_build_object(
           'leaderboard_id', board.id, 'key', board.key, 'run_key', run.run_key, 'score', (n.mine).score,
             'rank', n.rank, 'reason', n.reason,
           'by_user_id', leaderboard_notify.by)) as properties
    into told
    from (select w.id, m.rank, m.entry as mine, w.reason
            from (select p::uuid as id, 'passed_by_friend' as reason
                    from json_array_elements_text(leaderboard_notify.passed) p
                  union all
                  select leaderboard_notify.displaced, leaderboard_notify.displaced_reason
                   where leaderboard_notify.displaced is not null) w
           cross join lateral internal.leaderboard_entry_of(run.id, w.id) m
           where case w.reason when 'passed_by_friend' then m.rank > mover.rank
                               when 'left_top_10' then m.rank > 10
                               else m.rank <= 10 end) n;
  perform internal.emit_many(told.users, told.names, told.properties);
  return internal.reply(200, to_json(coalesce(cardinality(told.users), 0)));
end $$;
comment on function api.leaderboard_notify is
  'For the worker: emits svc.leaderboard.rank_changed for friends who were passed and for the user who was displaced
   from the top 10, if that still holds; returns how many. Locks the users.';
