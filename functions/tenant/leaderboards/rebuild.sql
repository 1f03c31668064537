-- Runs from the event log: a rebuild counts a shadow of a run and replaces the run with it; a replay adds missed
-- submissions.

create or replace function internal.leaderboard_log(board app.leaderboards, run app.leaderboard_runs,
                                                    app_user_ids uuid[])
returns setof internal.leaderboard_tally
language plpgsql stable security definer set search_path = '' rows 1000 as $$
declare
  b constant app.leaderboards := leaderboard_log.board;
  r constant app.leaderboard_runs := leaderboard_log.run;
begin
  return query
  with submitted as (
    select (b.id, e.app_user_id, internal.leaderboard_value(b, e.event_name, e.properties),
            least(e.occurred_at, e.received_at),
            internal.xp_counted_at(e.source, e.occurred_at, e.received_at), e.id)::internal.leaderboard_fact as fact,
            e.received_at
      from app.engagement_events e
     where e.app_user_id = any (leaderboard_log.app_user_ids) and e.event_name = any (b.watches) and not e.is_historical
       and (r.starts_at is null or e.occurred_at >= r.starts_at)
    union all
    select (b.id, t.app_user_id, case when b.scoring in ('sum', 'count') then t.amount else t.total_after end,
            least(t.occurred_at, t.created_at),
            t.counted_at, t.id)::internal.leaderboard_fact, t.created_at
      from app.xp_transactions t
     where b.source ->> 'type' = 'xp' and t.app_user_id = any (leaderboard_log.app_user_ids) and t.source <> 'merge'
       and t.amount <> 0
       and (r.starts_at is null or t.occurred_at >= r.starts_at)
       and not (t.source = 'event' and exists (
         select from app.engagement_events e where e.id = t.source_id::uuid and e.is_historical))
  ), due as (
    select s.fact
      from submitted s
     where (s.fact).value is not null
       and (r.ends_at is null or (s.fact).place_at < r.ends_at and s.received_at < r.ends_at + interval '5 minutes')
       and (b.starts_at is null or (s.fact).place_at >= b.starts_at)
       and (b.ends_at is null or (s.fact).place_at < b.ends_at)
       and (b.min_score is null or b.scoring = 'count' or (s.fact).value >= b.min_score)
       and (b.max_score is null or b.scoring = 'count' or (s.fact).value <= b.max_score)
  ), users as (
    select (d.fact).app_user_id as id, array_agg(d.fact) as facts from due d group by 1
  )
  select (internal.leaderboard_tallied(u.facts, b.sort)).*
    from users u
   where internal.leaderboard_admits(b, u.id);
end $$;
comment on function internal.leaderboard_log is
  'The submissions of stored events, or of the XP ledger, to a run for these users, by the present rules. History is
   excluded. Granted to nobody.';

create or replace function internal.leaderboard_begin_shadow(board app.leaderboards, live app.leaderboard_runs,
                                                             operation_id uuid)
returns app.leaderboard_runs
language plpgsql volatile security definer set search_path = '' as $$
declare
  shadow app.leaderboard_runs;
begin
  select r.* into shadow from app.leaderboard_runs r where r.id = (leaderboard_begin_shadow.live).shadow_id;
  if shadow.operation_id = leaderboard_begin_shadow.operation_id then
    return shadow;
  end if;
  -- one rebuild at a time: who comes later takes over, and the other ends at its next step
  update app.leaderboard_runs r set state = 'doomed', fence = null where r.id = shadow.id;
  insert into app.leaderboard_runs (leaderboard_id, run_key, starts_at, ends_at, state, operation_id)
  values ((leaderboard_begin_shadow.board).id, (leaderboard_begin_shadow.live).run_key,
          (leaderboard_begin_shadow.live).starts_at,
          (leaderboard_begin_shadow.live).ends_at, 'shadow', leaderboard_begin_shadow.operation_id)
  returning * into shadow;
  update app.leaderboard_runs r set shadow_id = shadow.id where r.id = (leaderboard_begin_shadow.live).id;
  return null;
end $$;
comment on function internal.leaderboard_begin_shadow is
  'The shadow of a rebuild, or null where it was made just now: writers see it from the next step on. Granted to
   nobody.';

create or replace function api.leaderboard_rebuild_step(operation_id uuid, leaderboard_id uuid, batch int)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  board app.leaderboards;
  live app.leaderboard_runs;
  shadow app.leaderboard_runs;
  wanted uuid[];
  entry app.leaderboard_entries;
  tally internal.leaderboard_tally;
begin
  perform internal.check_caller('worker', 'runs are rebuilt by a worker');
  select b.* into board from app.leaderboards b where b.id = leaderboard_rebuild_step.leaderboard_id;
  -- done before, and asked again after a crash
  select r.* into live from app.leaderboard_runs r
   where r.operation_id = leaderboard_rebuild_step.operation_id and r.state = 'live';
  if board.id is null or live.id is not null then
    return internal.reply(200, json_build_object('state', 'done', 'users', live.frozen,
                                                 'entries', internal.leaderboard_total(live.id),
                                                   'swapped', live.id is not null));
  end if;
  live := internal.leaderboard_run_at(board, internal.now());
  if not internal.leaderboard_is_open(live) then
    return internal.reply(200, json_build_object('state', 'done', 'users', 0, 'entries', 0, 'swapped', false));
  end if;
  live := internal.leaderboard_run_make(live);
  select r.* into live from app.leaderboard_runs r where r.id = live.id for no key update;
  if not found then
    return internal.reply(200, json_build_object('state', 'done', 'users', 0, 'entries', 0, 'swapped', false));
  end if;
  -- another rebuild of this run took over: two that took over from each other in turn would never end
  if exists (select from app.leaderboard_runs r
              where r.leaderboard_id = board.id and r.run_key = live.run_key
                and r.operation_id = leaderboard_rebuild_step.operation_id and r.state = 'doomed') then
    return internal.reply(200, json_build_object('state', 'done', 'users', 0,
                                                 'entries', internal.leaderboard_total(live.id), 'swapped', false));
  end if;
  shadow := internal.leaderboard_begin_shadow(board, live, leaderboard_rebuild_step.operation_id);
  if shadow.id is null then
    return internal.reply(200, json_build_object('state', 'more', 'users', 0));
  elsif not internal.leaderboard_fenced(shadow) then
    return internal.reply(200, json_build_object('state', case when shadow.fence is null then 'more' else 'wait' end,
                                                 'users', shadow.frozen));
  end if;
  wanted := array(select u.id from app.users u where shadow.cursor_id is null or u.id > shadow.cursor_id order by u.id
                   limit leaderboard_rebuild_step.batch);
  perform internal.lock_users(wanted);
  for tally in select t.* from internal.leaderboard_log(board, live, wanted) t order by t.app_user_id loop
    entry := null;
    entry.run_id := shadow.id;
    entry.app_user_id := tally.app_user_id;
    perform internal.leaderboard_store(internal.leaderboard_folded(board, entry, tally));
  end loop;
  update app.leaderboard_runs r
     set cursor_id = coalesce(wanted[cardinality(wanted)], r.cursor_id), frozen = r.frozen + cardinality(wanted)
   where r.id = shadow.id
  returning r.* into shadow;
  if cardinality(wanted) = leaderboard_rebuild_step.batch then
    return internal.reply(200, json_build_object('state', 'more', 'users', shadow.frozen));
  end if;
  update app.leaderboard_runs r set state = 'doomed', shadow_id = null, fence = null where r.id = live.id;
  update app.leaderboard_runs r set state = 'live', fence = null, frozen = 0, cursor_id = null where r.id = shadow.id;
  perform internal.enqueue('leaderboards__rollover', board.id::text);
  return internal.reply(200, json_build_object('state', 'done', 'users', shadow.frozen,
                                               'entries', internal.leaderboard_total(shadow.id), 'swapped', true));
end $$;
comment on function api.leaderboard_rebuild_step is
  'For the job: processes the next users of a rebuild of the current run, into a shadow that replaces the run at the
   end; until then readers see the old run, and writers write both. One transaction for each step. {state: more, wait or
   done, users, entries, swapped}. Locks the run, then users.';

create or replace function api.leaderboard_rebuild_check(id_or_key text) returns api.reply
language plpgsql stable as $$
declare
  board constant app.leaderboards := internal.definition_find(null::app.leaderboards,
                                                              leaderboard_rebuild_check.id_or_key);
begin
  if board.source ->> 'type' = 'manual' then
    perform internal.fail(409, 'CONFLICT',
                          'Scores that were submitted by hand are in no log: there is nothing to rebuild from.');
  elsif not internal.leaderboard_is_open(internal.leaderboard_run_at(board, internal.now())) then
    perform internal.fail(409, 'LEADERBOARD_NOT_ACTIVE', 'This leaderboard has no run that is open.');
  end if;
  return internal.reply(200, to_json(board.id));
end $$;
comment on function api.leaderboard_rebuild_check is
  'The id of a board whose current run can be rebuilt. Refuses 404 NOT_FOUND, 409 CONFLICT (manual),
   LEADERBOARD_NOT_ACTIVE.';

create or replace function internal.replay__leaderboards(app_user_ids uuid[], since timestamptz, until timestamptz)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  place record;
  tally internal.leaderboard_tally;
  was app.leaderboard_entries;
  entry app.leaderboard_entries;
  changes jsonb := '[]';
begin
  for place in
    select b as board, internal.leaderboard_run_at(b, internal.now()) as run
      from app.leaderboards b
     where b.is_active and b.source ->> 'type' <> 'manual'
     order by b.id
  loop
    continue when not internal.leaderboard_is_open(place.run)
               or (place.run).starts_at >= replay__leaderboards.until
               or (place.run).ends_at <= replay__leaderboards.since;
    place.run := internal.leaderboard_run_make(place.run);
    -- deleted meanwhile
    continue when (place.run).id is null;
    for tally in
      select t.* from internal.leaderboard_log(place.board, place.run, replay__leaderboards.app_user_ids) t
       order by t.app_user_id
    loop
      select e.* into was from app.leaderboard_entries e
       where (e.app_user_id, e.run_id) = (tally.app_user_id, (place.run).id);
      continue when was.submissions >= tally.submissions;
      entry := null;
      entry.run_id := (place.run).id;
      entry.app_user_id := tally.app_user_id;
      entry := internal.leaderboard_folded(place.board, entry, tally);
      entry.window_started_at := was.window_started_at;
      perform internal.leaderboard_store(entry);
      changes := changes || jsonb_build_object('app_user_id', tally.app_user_id, 'key', (place.board).key, 'run_key',
                                               (place.run).run_key,
                                               'before', was.score, 'after', entry.score);
    end loop;
  end loop;
  return changes;
end $$;
comment on function internal.replay__leaderboards is
  'Brings entries of current runs up to the stored events where these hold more submissions than were counted. It only
   adds, and emits no events. The users must be locked.';
