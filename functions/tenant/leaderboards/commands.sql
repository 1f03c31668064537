-- Scores by requests: submissions of apps and servers, and administrators' changes, deletions and imports.

create or replace function internal.leaderboard_submit_check(board app.leaderboards, score numeric) returns void
language plpgsql stable as $$
begin
  if board.source ->> 'type' <> 'manual' then
    perform internal.fail(409, 'LEADERBOARD_NOT_MANUAL',
                          'Scores may be submitted only to a leaderboard whose source has the type manual.');
  elsif not board.client_writable and internal.caller() <> 'server_key_user' then
    perform internal.fail(403, 'SERVER_KEY_REQUIRED',
                          'Only a server key may submit scores to this leaderboard, unless client_writable is true.');
  elsif score < board.min_score or score > board.max_score then
    perform internal.fail(400, 'SCORE_OUT_OF_RANGE',
                          'The score must lie between min_score and max_score of this leaderboard.',
                          json_build_object(
      'field', 'score', 'min_score', internal.numeric_json(board.min_score),
        'max_score', internal.numeric_json(board.max_score)));
  end if;
end $$;
comment on function internal.leaderboard_submit_check is
  'Refuses a submission that a board does not accept: 409 LEADERBOARD_NOT_MANUAL, 403 SERVER_KEY_REQUIRED, 400
   SCORE_OUT_OF_RANGE. Granted to nobody.';

create or replace function internal.leaderboard_stored(board app.leaderboards, entry app.leaderboard_entries)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.leaderboard_entries e
    where (e.app_user_id, e.run_id) = ((leaderboard_stored.entry).app_user_id, (leaderboard_stored.entry).run_id);
  if not found then
    perform internal.leaderboard_run_missing(leaderboard_stored.board);
  end if;
end $$;
comment on function internal.leaderboard_stored is
  'Checks that a first entry was stored: a run that was deleted concurrently accepts none. Refuses 404 NOT_FOUND, 409
   LEADERBOARD_NOT_ACTIVE. Granted to nobody.';

create or replace function api.leaderboard_submit(id_or_key text, score numeric, metadata jsonb default null,
                                                  idempotency_key text default null, body_hash text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  at constant timestamptz := internal.now();
  board constant app.leaderboards := internal.leaderboard_for_me(leaderboard_submit.id_or_key);
  run app.leaderboard_runs;
  shown record;
  stored api.reply;
  answer api.reply;
  moved record;
  ranks record;
begin
  if leaderboard_submit.idempotency_key is not null then
    stored := internal.idempotency_begin('POST leaderboards/' || board.id || '/scores',
                                         leaderboard_submit.idempotency_key, leaderboard_submit.body_hash);
    if stored is not null then
      return stored;
    end if;
  end if;
  if board.source ->> 'type' <> 'manual' or not board.client_writable or score < board.min_score
    or score > board.max_score then
    perform internal.leaderboard_submit_check(board, leaderboard_submit.score);
  end if;
  -- locks like internal.lock_users, but one user by key, and reads the columns of the response
  select u.display_name, u.avatar_url into shown from app.users u where u.id = me for no key update;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  -- after the lock: closing a run waits for every transaction that has an id, and the lock has assigned one to this
  -- transaction
  select r.* into run from internal.leaderboard_runs_at(board.id, at) r;
  if not found then
    run := internal.leaderboard_run_at(board, at);
  end if;
  if at < board.starts_at or at >= board.ends_at or not internal.leaderboard_is_open(run) then
    perform internal.fail(409, 'LEADERBOARD_NOT_ACTIVE', 'This leaderboard takes no scores now.');
  end if;
  if run.id is null then
    run := internal.leaderboard_run_make(run);
    if run.id is null then
      perform internal.leaderboard_run_missing(board);
    end if;
  end if;
  moved := internal.leaderboard_put(board, run,
                                    (me, 1, leaderboard_submit.score, at, leaderboard_submit.score, at,
                                     leaderboard_submit.score, at,
                                     leaderboard_submit.metadata)::internal.leaderboard_tally, board.max_per_minute);
  if (moved.was).score is null then
    perform internal.leaderboard_stored(board, moved.entry);
  end if;
  ranks := internal.leaderboard_moved(board, run, moved.was, moved.entry);
  answer := internal.reply(case when (moved.was).score is null then 201 else 200 end, json_build_object(
    'entry', internal.leaderboard_entry_json(moved.entry, ranks.rank, shown.display_name, shown.avatar_url),
    'previous', case when (moved.was).score is not null
                       then json_build_object('score', internal.numeric_json((moved.was).score),
                                              'rank', ranks.previous_rank) end,
    'improved', (moved.was).score is null or (moved.entry).place < (moved.was).place));
  if leaderboard_submit.idempotency_key is not null then
    perform internal.idempotency_end('POST leaderboards/' || board.id || '/scores', leaderboard_submit.idempotency_key,
                                     answer);
  end if;
  return answer;
end $$;
comment on function api.leaderboard_submit is
  'Submits a score of the caller, 201 for the first of the run, else 200: {entry, previous, improved}. Refuses 404
   NOT_FOUND, 409 LEADERBOARD_NOT_MANUAL, LEADERBOARD_NOT_ACTIVE, IDEMPOTENCY_CONFLICT, 403 SERVER_KEY_REQUIRED, 400
   SCORE_OUT_OF_RANGE, 429 RATE_LIMITED. Locks the user.';

create or replace function internal.leaderboard_admin_only() returns void
language plpgsql stable as $$
begin
  perform internal.check_caller('developer', 'entries are managed by administrators');
end $$;
comment on function internal.leaderboard_admin_only is 'Raises for anybody but an administrator.';

create or replace function internal.leaderboard_run_now(board app.leaderboards) returns app.leaderboard_runs
language plpgsql volatile security definer set search_path = '' as $$
declare
  run constant app.leaderboard_runs := internal.leaderboard_run_at(leaderboard_run_now.board, internal.now());
  made app.leaderboard_runs;
begin
  if not internal.leaderboard_is_open(run) then
    perform internal.fail(409, 'LEADERBOARD_NOT_ACTIVE', 'This leaderboard has no run that is open.');
  end if;
  made := internal.leaderboard_run_make(run);
  if made.id is null then
    perform internal.leaderboard_run_missing(leaderboard_run_now.board);
  end if;
  return made;
end $$;
comment on function internal.leaderboard_run_now is
  'The current run, created if it is missing. Refuses 409 LEADERBOARD_NOT_ACTIVE, 404 NOT_FOUND. Granted to nobody.';

create or replace function internal.leaderboard_set(board app.leaderboards, run app.leaderboard_runs, app_user_id uuid,
                                                    score numeric, metadata jsonb, out was app.leaderboard_entries,
                                                    out entry app.leaderboard_entries)
language plpgsql volatile security definer set search_path = '' as $$
declare
  shadow app.leaderboard_entries;
begin
  select e.* into was from app.leaderboard_entries e
   where (e.app_user_id, e.run_id) = (leaderboard_set.app_user_id, (leaderboard_set.run).id);
  entry := was;
  entry.run_id := (leaderboard_set.run).id;
  entry.app_user_id := leaderboard_set.app_user_id;
  entry.score := trim_scale(leaderboard_set.score);
  entry.place := entry.score * case (leaderboard_set.board).sort when 'desc' then -1 else 1 end;
  entry.reached_at := case when entry.score = was.score then was.reached_at else internal.now() end;
  entry.submissions := coalesce(was.submissions, 1);
  entry.metadata := coalesce(leaderboard_set.metadata, was.metadata, '{}');
  -- a score that an administrator sets is not an anomaly
  entry.biggest_step := null;
  perform internal.leaderboard_store(entry);
  if (leaderboard_set.run).shadow_id is not null then
    shadow := entry;
    shadow.run_id := (leaderboard_set.run).shadow_id;
    perform internal.leaderboard_store(shadow);
  end if;
end $$;
comment on function internal.leaderboard_set is
  'Sets an entry to a score, whatever the scoring. The user must be locked. Granted to nobody.';

create or replace function internal.leaderboard_entry_put(board app.leaderboards, user_id uuid, score numeric,
                                                          metadata jsonb)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  run app.leaderboard_runs;
  moved record;
  ranks record;
begin
  perform internal.leaderboard_admin_only();
  perform internal.check_found(internal.lock_users(array[leaderboard_entry_put.user_id]) is not null, 'user');
  run := internal.leaderboard_run_now(leaderboard_entry_put.board);
  moved := internal.leaderboard_set(leaderboard_entry_put.board, run, leaderboard_entry_put.user_id,
                                    leaderboard_entry_put.score,
                                    leaderboard_entry_put.metadata);
  if (moved.was).score is null then
    perform internal.leaderboard_stored(leaderboard_entry_put.board, moved.entry);
  end if;
  ranks := internal.leaderboard_moved(leaderboard_entry_put.board, run, moved.was, moved.entry);
  perform internal.audit('leaderboards.entry_set', 'users', leaderboard_entry_put.user_id::text, json_build_object(
    'leaderboard', json_build_array(null, (leaderboard_entry_put.board).key),
      'score', json_build_array((moved.was).score, (moved.entry).score)));
  return internal.reply(case when (moved.was).score is null then 201 else 200 end,
                        internal.leaderboard_entry_shown(moved.entry, ranks.rank));
end $$;
comment on function internal.leaderboard_entry_put is 'The body of api.leaderboard_entry_put. Locks the user.';

create or replace function api.leaderboard_entry_put(id_or_key text, user_id uuid, score numeric,
                                                     metadata jsonb default null)
returns api.reply
language sql volatile as $$
  select internal.leaderboard_entry_put(internal.definition_find(null::app.leaderboards,
                                                                 leaderboard_entry_put.id_or_key),
                                                                   leaderboard_entry_put.user_id,
                                        leaderboard_entry_put.score, leaderboard_entry_put.metadata)
$$;
comment on function api.leaderboard_entry_put is
  'Sets a user''s score in the current run, 201 when there was none. Refuses 404 NOT_FOUND, 409
   LEADERBOARD_NOT_ACTIVE.';

create or replace function internal.leaderboard_entry_delete(board app.leaderboards, user_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  run app.leaderboard_runs := internal.leaderboard_run_at(leaderboard_entry_delete.board, internal.now());
  gone app.leaderboard_entries;
begin
  perform internal.leaderboard_admin_only();
  perform internal.lock_users(array[leaderboard_entry_delete.user_id]);
  delete from app.leaderboard_entries e where (e.app_user_id, e.run_id) = (leaderboard_entry_delete.user_id, run.id)
    returning e.* into gone;
  perform internal.check_found(gone.run_id is not null, 'entry in the current run');
  delete from app.leaderboard_entries e where (e.app_user_id, e.run_id) = (leaderboard_entry_delete.user_id,
                                        run.shadow_id);
  perform internal.audit('leaderboards.entry_delete', 'users', leaderboard_entry_delete.user_id::text,
                         json_build_object(
    'leaderboard', json_build_array((leaderboard_entry_delete.board).key, null),
      'score', json_build_array(gone.score, null)));
  return internal.reply_deleted();
end $$;
comment on function internal.leaderboard_entry_delete is 'The body of api.leaderboard_entry_delete. Locks the user.';

create or replace function api.leaderboard_entry_delete(id_or_key text, user_id uuid) returns api.reply
language sql volatile as $$
  select internal.leaderboard_entry_delete(internal.definition_find(null::app.leaderboards,
                                                                    leaderboard_entry_delete.id_or_key),
                                                                      leaderboard_entry_delete.user_id)
$$;
comment on function api.leaderboard_entry_delete is
  'Takes a user''s entry out of the current run; ranks close up. Refuses 404 NOT_FOUND.';

create or replace function internal.leaderboard_import(board app.leaderboards, entries jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  sign constant int := case (leaderboard_import.board).sort when 'desc' then -1 else 1 end;
  run app.leaderboard_runs;
  known uuid[];
  errors json;
  failed int;
begin
  perform internal.leaderboard_admin_only();
  known := coalesce(internal.lock_users(array(select (i.value ->> 'app_user_id')::uuid
                                                from jsonb_array_elements(leaderboard_import.entries) i)), '{}');
  run := internal.leaderboard_run_now(leaderboard_import.board);
  perform from app.leaderboard_runs r where r.id = run.id for key share;
  if not found then
    perform internal.leaderboard_run_missing(leaderboard_import.board);
  end if;
  -- of two scores for one user the later one applies
  insert into app.leaderboard_entries as e (run_id, app_user_id, score, place, reached_at, submissions, metadata,
                                            is_hidden, created_at)
  select r.id, u.id, trim_scale(w.score), trim_scale(w.score) * sign, internal.now(), 1, coalesce(w.metadata, '{}'),
         u.is_banned, internal.now()
    from (select distinct on (1) (i.value ->> 'app_user_id')::uuid as id, (i.value ->> 'score')::numeric as score,
          nullif(i.value -> 'metadata', 'null') as metadata
            from jsonb_array_elements(leaderboard_import.entries) with ordinality as i (value, n)
           order by 1, i.n desc) w
    join app.users u on u.id = w.id
   cross join unnest(array_remove(array[run.id, run.shadow_id], null)) as r (id)
   where u.id = any (known)
   order by u.id
  on conflict on constraint leaderboard_entries_pkey do update
     set score = excluded.score, place = excluded.place, biggest_step = null,
         reached_at = case when e.score = excluded.score then e.reached_at else excluded.reached_at end,
         metadata = excluded.metadata;
  perform internal.leaderboard_fold(r.id) from unnest(array_remove(array[run.id, run.shadow_id], null)) as r (id);
  select json_agg(json_build_object('index', i.n - 1, 'code', 'USER_NOT_FOUND',
                                    'message', 'There is no such user.') order by i.n), count(*)
    into errors, failed
    from jsonb_array_elements(leaderboard_import.entries) with ordinality as i (value, n)
    left join unnest(known) as u (id) on u.id = (i.value ->> 'app_user_id')::uuid
   where u.id is null;
  perform internal.audit('leaderboards.import', 'leaderboards', (leaderboard_import.board).id::text,
                         json_build_object('entries', json_build_array(null,
                                                                       jsonb_array_length(leaderboard_import.entries)
                                                                         - failed)), 200);
  return internal.reply(200, json_build_object(
    'imported', jsonb_array_length(leaderboard_import.entries) - failed, 'failed', failed,
      'errors', coalesce(errors, '[]')));
end $$;
comment on function internal.leaderboard_import is 'The body of api.leaderboard_import. Locks the users.';

create or replace function api.leaderboard_import(id_or_key text, entries jsonb) returns api.reply
language sql volatile as $$
  select internal.leaderboard_import(internal.definition_find(null::app.leaderboards, leaderboard_import.id_or_key),
                                     leaderboard_import.entries)
$$;
comment on function api.leaderboard_import is
  'Sets the scores of up to 10,000 users in the current run, in one transaction, without events. Users that do not exist
   are listed: {imported, failed, errors}. Refuses 404 NOT_FOUND, 409 LEADERBOARD_NOT_ACTIVE.';

create or replace function internal.leaderboard_entries_page(board app.leaderboards, run text, page_offset bigint,
                                                             page_limit bigint)
returns json
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.leaderboard_admin_only();
  return (select json_build_object('data', p -> 'data', 'total', p -> 'total', 'offset', p -> 'offset',
                                   'limit', p -> 'limit', 'run', p -> 'run')
            from internal.leaderboard_page(internal.leaderboard_run_find(leaderboard_entries_page.board,
                                                                         leaderboard_entries_page.run), null,
                                           leaderboard_entries_page.page_offset, leaderboard_entries_page.page_limit,
                                           null) p);
end $$;
comment on function internal.leaderboard_entries_page is 'The body of api.leaderboard_entries.';

create or replace function api.leaderboard_entries(id_or_key text, run text default 'current',
                                                   page_offset bigint default 0, page_limit bigint default 50)
returns api.reply
language sql stable as $$
  select row(200, internal.leaderboard_entries_page(internal.definition_find(null::app.leaderboards,
                                        leaderboard_entries.id_or_key), leaderboard_entries.run,
                                                    leaderboard_entries.page_offset, leaderboard_entries.page_limit),
                                                    null)::api.reply
$$;
comment on function api.leaderboard_entries is 'The entries of a run in their order. Refuses 404 NOT_FOUND.';

create or replace function internal.leaderboard_runs_page(board app.leaderboards, page_offset int, page_limit int)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.leaderboard_admin_only();
  return internal.reply_page(
    (select json_agg(internal.json_merge(internal.leaderboard_run_json(r), json_build_object(
              'id', r.id, 'entries', internal.leaderboard_total(r.id), 'closed_at', internal.iso(r.closed_at),
                'is_frozen', r.is_frozen))
              order by r.starts_at desc nulls last, r.id desc)
       from (select x.* from app.leaderboard_runs x
              where x.leaderboard_id = (leaderboard_runs_page.board).id and x.state = 'live'
              order by x.starts_at desc nulls last, x.id desc
              limit leaderboard_runs_page.page_limit offset leaderboard_runs_page.page_offset) r),
    (select count(*) from app.leaderboard_runs x
      where x.leaderboard_id = (leaderboard_runs_page.board).id and x.state = 'live'),
    leaderboard_runs_page.page_offset, leaderboard_runs_page.page_limit);
end $$;
comment on function internal.leaderboard_runs_page is 'The body of api.leaderboard_runs.';

create or replace function api.leaderboard_runs(id_or_key text, page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.leaderboard_runs_page(internal.definition_find(null::app.leaderboards, leaderboard_runs.id_or_key),
                                        leaderboard_runs.page_offset, leaderboard_runs.page_limit)
$$;
comment on function api.leaderboard_runs is
  'The runs of a board, newest first; is_frozen: final ranks are assigned and rewards paid. Refuses 404 NOT_FOUND.';

create or replace function internal.leaderboard_close(board app.leaderboards) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  run app.leaderboard_runs;
begin
  perform internal.leaderboard_admin_only();
  run := internal.leaderboard_run_now(leaderboard_close.board);
  update app.leaderboard_runs r
     set closed_at = internal.now(), ends_at = least(r.ends_at, internal.now())
   where r.id = run.id and r.closed_at is null
  returning r.* into run;
  if not found then
    if not exists (select from app.leaderboards b where b.id = (leaderboard_close.board).id) then
      perform internal.leaderboard_run_missing(leaderboard_close.board);
    end if;
    perform internal.fail(409, 'LEADERBOARD_NOT_ACTIVE', 'This leaderboard has no run that is open.');
  end if;
  if (leaderboard_close.board).period = 'all_time'
    and coalesce(internal.now() < (leaderboard_close.board).ends_at, true) then
    -- a season has ended, and the next one begins
    insert into app.leaderboard_runs (leaderboard_id, run_key, starts_at, ends_at)
    values (run.leaderboard_id, 'all-' || 1 + coalesce(substring(run.run_key from '^all-(\d+)$')::int, 1),
            internal.now(),
            (leaderboard_close.board).ends_at);
  end if;
  perform internal.enqueue('leaderboards__rollover', run.leaderboard_id::text);
  perform internal.audit('leaderboards.close_run', 'leaderboards', run.leaderboard_id::text,
                         json_build_object('run_key', json_build_array(null, run.run_key)), 200);
  return internal.reply(200, internal.leaderboard_run_json(run));
end $$;
comment on function internal.leaderboard_close is 'The body of api.leaderboard_close.';

create or replace function api.leaderboard_close(id_or_key text) returns api.reply
language sql volatile as $$
  select internal.leaderboard_close(internal.definition_find(null::app.leaderboards, leaderboard_close.id_or_key))
$$;
comment on function api.leaderboard_close is
  'Closes the current run now; final ranks and rewards follow at once in the background. A board of all time goes on
   with a new run. Refuses 404 NOT_FOUND, 409 LEADERBOARD_NOT_ACTIVE.';

create or replace function internal.leaderboard_anomalies(board app.leaderboards, run text, page_offset int,
                                                          page_limit int, affordable int default 50000)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  of_run constant app.leaderboard_runs := internal.leaderboard_run_find(leaderboard_anomalies.board,
                                                                        leaderboard_anomalies.run);
  entries constant bigint := internal.planned_rows(format('select from app.leaderboard_entries e where e.run_id = %L '
                                                          'and not e.is_hidden', of_run.id));
  population constant bigint := internal.users_estimate();
  is_estimate constant boolean := entries > leaderboard_anomalies.affordable;
  -- null for everybody
  sampled uuid[];
  usual record;
  found_ones json;
  total bigint;
begin
  perform internal.leaderboard_admin_only();
  if is_estimate then
    select s.ids into sampled from internal.users_sampled(population, 1,
                                                          internal.users_afforded(population, entries, 5000)) s;
  end if;
  -- medians and deviations of places, which have the sign that makes smaller better: of all, or of a sample
  with entries as materialized (
    select e.place::float8 as place, e.biggest_step::float8 as step
      from app.leaderboard_entries e
     where not is_estimate and e.run_id = of_run.id and not e.is_hidden
    union all
    select e.place::float8, e.biggest_step::float8
      from unnest(sampled) as i (id)
      join app.leaderboard_entries e on (e.app_user_id, e.run_id) = (i.id, of_run.id)
     where is_estimate and not e.is_hidden
  ), middles as (
    select percentile_cont(0.5) within group (order by e.place) as place, percentile_cont(0.5) within
     group (order by e.step) as step,
           count(*) as n, count(e.step) as steps
      from entries e
  )
  -- the median deviation, or where half of all are alike the mean one: both estimate sigma
  select m.place, m.step,
         case when m.n >= 10 then nullif(coalesce(nullif(1.4826 * percentile_cont(0.5) within
                                                           group (order by abs(e.place - m.place)), 0),
                                                  1.2533 * avg(abs(e.place - m.place))), 0) end as place_sigma,
         case when m.steps >= 10 then nullif(coalesce(nullif(1.4826 * percentile_cont(0.5) within
                                                               group (order by abs(e.step - m.step)), 0),
                                                      1.2533 * avg(abs(e.step - m.step))), 0) end as step_sigma
    into usual
    from entries e
   cross join middles m
   group by m.place, m.step, m.n, m.steps;
  with far as materialized (
    -- the first by the index of the order; jumps by one scan of the run
    select e.app_user_id, e.place, e.biggest_step
      from app.leaderboard_entries e
     where e.run_id = of_run.id and not e.is_hidden and e.place < (usual.place - 6 * usual.place_sigma)::numeric
    union
    select e.app_user_id, e.place, e.biggest_step
      from app.leaderboard_entries e
     where e.run_id = of_run.id and not e.is_hidden and e.biggest_step > (usual.step + 6 * usual.step_sigma)::numeric
  ), evaluated as (
    select f.app_user_id,
           case when f.place::float8 < usual.place
                  then (usual.place - f.place::float8) / usual.place_sigma end as score_sigmas,
           (f.biggest_step::float8 - usual.step) / usual.step_sigma as step_sigmas
      from far f
  ), odd as materialized (
    select j.*, row_number() over (order by greatest(j.score_sigmas, j.step_sigmas) desc, j.app_user_id) as n
      from evaluated j
     where j.score_sigmas > 6 or j.step_sigmas > 6
  )
  select (select count(*) from odd),
         (select json_agg(json_build_object(
                   'entry', (select internal.leaderboard_entry_shown(e,
                                                                     coalesce(e.final_rank,
                                                                       internal.leaderboard_rank(e.run_id, e.place,
                                                                         e.reached_at, e.app_user_id)))
                               from app.leaderboard_entries e where (e.app_user_id, e.run_id) = (o.app_user_id,
                                        of_run.id)),
                   'reasons', array_remove(array[case when o.score_sigmas > 6 then 'score' end,
                                                 case when o.step_sigmas > 6 then 'jump' end], null),
                   'score_sigmas', round(o.score_sigmas::numeric, 2), 'jump_sigmas', round(o.step_sigmas::numeric, 2))
                     order by o.n)
            from odd o
           where o.n > leaderboard_anomalies.page_offset
             and o.n <= leaderboard_anomalies.page_offset + leaderboard_anomalies.page_limit)
    into total, found_ones;
  return internal.reply_page(found_ones, total, leaderboard_anomalies.page_offset, leaderboard_anomalies.page_limit);
end $$;
comment on function internal.leaderboard_anomalies is
  'The body of api.leaderboard_anomalies. The median and sigma are computed from all entries of the run while the
   planner expects at most affordable of them, otherwise from those of a sample of users; every entry is compared with
   them.';

create or replace function api.leaderboard_anomalies(id_or_key text, run text default 'current',
                                                     page_offset int default 0, page_limit int default 50)
returns api.reply
language sql volatile as $$
  select internal.leaderboard_anomalies(internal.definition_find(null::app.leaderboards,
                                                                 leaderboard_anomalies.id_or_key),
                                                                   leaderboard_anomalies.run,
                                                                     leaderboard_anomalies.page_offset,
                                        leaderboard_anomalies.page_limit)
$$;
comment on function api.leaderboard_anomalies is
  'Entries whose score is more than six robust sigmas better than the median, or that one submission changed by as much
   more than is usual; most unusual first. Null for fewer than ten entries. Of a run with very many entries the median
   and the sigma are those of a sample. Refuses 404 NOT_FOUND.';
