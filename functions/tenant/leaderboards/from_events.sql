-- Submissions by the event pipeline: scores of events and of the XP ledger, for many users at once, who are locked.

create or replace function internal.leaderboard_blank(run_id uuid, app_user_id uuid) returns app.leaderboard_entries
language plpgsql immutable as $$
declare
  entry app.leaderboard_entries;
begin
  entry.run_id := leaderboard_blank.run_id;
  entry.app_user_id := leaderboard_blank.app_user_id;
  return entry;
end $$;
comment on function internal.leaderboard_blank is 'The entry of a user who has none yet.';

create or replace function internal.leaderboards_tally(facts internal.leaderboard_fact[])
returns table (app_user_id uuid, board_id uuid, run app.leaderboard_runs, tally internal.leaderboard_tally)
language plpgsql stable set plan_cache_mode = 'force_generic_plan' rows 1000 as $$
declare
  boards uuid[];
  runs app.leaderboard_runs[];
  is_common boolean;
begin
  -- mostly one run takes all that is submitted to a board: then it is looked for once, and submissions are added up
  -- before it is
  select array_agg(o.leaderboard_id), array_agg(o.run),
         bool_and(o.runs = 1 and ((o.run).starts_at is null or (o.run).starts_at <= o.since)
                  and ((o.run).ends_at is null or (o.run).ends_at > o.until))
    into boards, runs, is_common
    from (select s.leaderboard_id, s.since, s.until, (array_agg(r))[1] as run, count(r.id) as runs
            from (select f.leaderboard_id, min(f.place_at) as since, max(f.place_at) as until
                    from unnest(leaderboards_tally.facts) f group by 1) s
            left join app.leaderboard_runs r on r.leaderboard_id = s.leaderboard_id and r.state = 'live'
             and (r.starts_at is null or r.starts_at <= s.until) and (r.ends_at is null or r.ends_at > s.since)
           group by 1, 2, 3) o;
  return query
  -- as internal.leaderboard_tallied, but the best and the last only where the board asks for them
  select t.app_user_id, t.board_id, t.run,
         row(t.app_user_id, t.submissions, (t.best).value, (t.best).reached_at, t.total, t.total_at, (t.last).value,
             t.last_at, null)::internal.leaderboard_tally
    from (select f.app_user_id, b.id as board_id,
          case when is_common then runs[array_position(boards, b.id)] else (array_agg(p.run))[1] end as run,
                 count(*) as submissions, sum(f.value) as total,
                 max(f.reached_at) filter (where f.value <> 0) as total_at, max(f.reached_at) as last_at,
                 (array_agg(f order by case b.sort when 'desc' then -f.value else f.value end,
                            f.reached_at) filter (where b.scoring = 'best'))[1] as best,
                 (array_agg(f order by f.reached_at desc,
                            f.source_id desc) filter (where b.scoring = 'last'))[1] as last
            from unnest(leaderboards_tally.facts) f
            join app.leaderboards b on b.id = f.leaderboard_id
           cross join lateral (select case when not is_common then internal.leaderboard_run_at(b, f.place_at) end as run
                               offset 0) p
           where b.is_active and (b.starts_at is null or f.place_at >= b.starts_at)
             and (b.ends_at is null or f.place_at < b.ends_at)
             and (b.min_score is null or b.scoring = 'count' or f.value >= b.min_score)
             and (b.max_score is null or b.scoring = 'count' or f.value <= b.max_score)
           group by f.app_user_id, b.id, (p.run).id, (p.run).run_key) t
   where internal.leaderboard_is_open(t.run);
end $$;
comment on function internal.leaderboards_tally is
  'Aggregates the submissions of each user to each board, by the open run that they belong to; a run without id has no
   row yet. Granted to nobody.';

create or replace function internal.leaderboards_submit_many(facts internal.leaderboard_fact[]) returns void
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  taken record;
  told record;
begin
  if leaderboards_submit_many.facts is null then
    return;
  end if;
  with tallied as materialized (
    select t.app_user_id, t.board_id, t.run, t.tally from internal.leaderboards_tally(leaderboards_submit_many.facts) t
  ), made as materialized (
    -- the first submission of a period creates its run
    select m.board_id, m.run_key, internal.leaderboard_run_make(m.run) as run
      from (select distinct on (t.board_id, (t.run).run_key) t.board_id, (t.run).run_key, t.run
              from tallied t
             where (t.run).id is null
             order by t.board_id, (t.run).run_key) m
  ), due as (
    select t.app_user_id, t.tally, b, coalesce((t.run).id, (m.run).id) as run_id,
           coalesce((t.run).shadow_id, (m.run).shadow_id) as shadow_id
      from tallied t
      join app.leaderboards b on b.id = t.board_id
      left join made m on (m.board_id, m.run_key) = (t.board_id, (t.run).run_key) and (t.run).id is null
     where coalesce((t.run).id, (m.run).id) is not null
       and case when b.segment_id is null then true else internal.leaderboard_admits(b, t.app_user_id) end
  ), stepped as (
    -- what is being rebuilt to replace a run gets the same
    select d.app_user_id, d.tally, d.b, d.run_id, true as is_live from due d
    union all
    select d.app_user_id, d.tally, d.b, d.shadow_id, false from due d where d.shadow_id is not null
  )
  select array_agg(e order by s.app_user_id, s.run_id) filter (where s.is_live) as befores,
         array_agg(internal.leaderboard_folded(s.b,
                                               case when e.run_id is null then internal.leaderboard_blank(s.run_id,
                                                 s.app_user_id) else e end, s.tally)
                   order by s.app_user_id, s.run_id) filter (where s.is_live) as entries,
         array_agg(internal.leaderboard_folded(s.b,
                                               case when e.run_id is null then internal.leaderboard_blank(s.run_id,
                                                 s.app_user_id) else e end, s.tally)
                   order by s.app_user_id, s.run_id) filter (where not s.is_live) as shadows
    into taken
    from stepped s
    left join app.leaderboard_entries e on (e.app_user_id, e.run_id) = (s.app_user_id, s.run_id);
  if taken.entries is null then
    return;
  end if;
  perform internal.leaderboard_store_many(taken.entries || taken.shadows);
  perform internal.leaderboards_notify(taken.befores, taken.entries);
end $$;
comment on function internal.leaderboards_submit_many is
  'Stores submissions of events or of the XP ledger in the runs that they belong to, where the run is open and the board
   admits the user. The users must be locked. Granted to nobody.';

create or replace function internal.leaderboard_store_many(entries app.leaderboard_entries[]) returns void
language plpgsql volatile as $$
declare
  stored int;
  due record;
begin
  -- the row trigger of entries leaves the changes to this statement
  perform set_config('app.leaderboard_changes', 'inserted', true);
  with known as materialized (
    select x.app_user_id, x.run_id, x.place as place_was, x.reached_at as reached_was, x.is_hidden, e.score, e.place,
           e.reached_at, e.submissions, e.metadata, e.biggest_step
      from unnest(leaderboard_store_many.entries) e
      join app.leaderboard_entries x on (x.app_user_id, x.run_id) = (e.app_user_id, e.run_id)
  ), written as (
    update app.leaderboard_entries x
       set score = k.score, place = k.place, reached_at = k.reached_at, submissions = k.submissions,
         metadata = k.metadata, biggest_step = k.biggest_step
      from known k
     where (x.app_user_id, x.run_id) = (k.app_user_id, k.run_id)
  ), noted as (
    insert into app.leaderboard_changes (run_id, place, at, whose, n)
    select k.run_id, c.place, c.at, k.app_user_id, c.n
      from known k
     cross join lateral (values (k.place_was, k.reached_was, -1), (k.place, k.reached_at, 1)) as c (place, at, n)
     where not k.is_hidden and (k.place, k.reached_at) is distinct from (k.place_was, k.reached_was)
  )
  select count(*) into stored from known;
  perform set_config('app.leaderboard_changes', '', true);
  if stored < cardinality(leaderboard_store_many.entries) then
    with held as materialized (
      -- a run that is being deleted accepts no entry
      select r.id
        from app.leaderboard_runs r
       where r.id in (select e.run_id from unnest(leaderboard_store_many.entries) e)
       order by r.id
         for key share
    )
    insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at, submissions, metadata,
                                         is_hidden, biggest_step, window_count, created_at)
    select e.run_id, e.app_user_id, e.score, e.place, e.reached_at, e.submissions, e.metadata, u.is_banned,
           e.biggest_step, 0, internal.now()
      from unnest(leaderboard_store_many.entries) e
      join held h on h.id = e.run_id
      join app.users u on u.id = e.app_user_id
     where not exists (select from app.leaderboard_entries x
                        where (x.app_user_id, x.run_id) = (e.app_user_id, e.run_id))
     order by e.app_user_id, e.run_id;
  end if;
  for due in
    select e.run_id, count(*) as n from unnest(leaderboard_store_many.entries) e group by e.run_id order by e.run_id
  loop
    perform internal.leaderboard_fold_by_chance(due.run_id, due.n);
  end loop;
end $$;
comment on function internal.leaderboard_store_many is
  'Stores the new values of entries, each once. The users must be locked. Granted to nobody.';

create or replace function internal.leaderboards_notify(befores app.leaderboard_entries[],
                                                        entries app.leaderboard_entries[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  notifies_others constant boolean := not internal.is_history();
  found_ones record;
  told record;
  ranks record;
  users uuid[] := '{}';
  properties jsonb[] := '{}';
begin
  if not notifies_others and not internal.collects_effects() then
    return;
  end if;
  with moves as materialized (
    select n, leaderboards_notify.befores[n] as w, leaderboards_notify.entries[n] as e
      from generate_subscripts(leaderboards_notify.entries, 1) n
     where not coalesce((leaderboards_notify.befores[n]).is_hidden, false)
  ), runs as materialized (
    select (m.e).run_id as id, array_agg((m.e).app_user_id) as movers from moves m group by 1
  ), others as materialized (
    -- users who did not move keep their order, so only the ten best of them can be in the top 10, before or after
    select r.id as run_id, o.place, o.reached_at, o.app_user_id
      from runs r
     cross join lateral (
       select e.place, e.reached_at, e.app_user_id
         from app.leaderboard_entries e
        where e.run_id = r.id and not e.is_hidden and e.app_user_id <> all (r.movers)
        order by e.place, e.reached_at, e.app_user_id
        limit 10) o
  ), top_before as (
    select t.run_id, t.app_user_id
      from (select a.run_id, a.app_user_id, row_number() over (partition by a.run_id order by a.place, a.reached_at,
                                                               a.app_user_id) as n
              from (select o.* from others o
                    union all
                    select (m.w).run_id, (m.w).place, (m.w).reached_at, (m.w).app_user_id from moves m
                     where (m.w).score is not null) a) t
     where t.n <= 10
  ), top_now as (
    select t.run_id, t.app_user_id
      from (select a.run_id, a.app_user_id, row_number() over (partition by a.run_id order by a.place, a.reached_at,
                                                               a.app_user_id) as n
              from (select o.* from others o
                    union all
                    select (m.e).run_id, (m.e).place, (m.e).reached_at, (m.e).app_user_id from moves m) a) t
     where t.n <= 10
  ), crossed as materialized (
    select coalesce(n.run_id, b.run_id) as run_id, coalesce(n.app_user_id, b.app_user_id) as app_user_id,
           b.run_id is null as is_in
      from top_now n
      full join top_before b on (b.run_id, b.app_user_id) = (n.run_id, n.app_user_id)
     where n.run_id is null or b.run_id is null
  ), befriended as materialized (
    -- a separate statement: it runs once for each move, and most users have no friends on this board
    select m.n, m.w, m.e, o.id from moves m cross join lateral internal.friends_of((m.e).app_user_id) as o (id)
  ), passing as (
    select m.n, array_agg(f.app_user_id order by f.app_user_id) as passed
      from befriended m
      join app.leaderboard_entries f on (f.app_user_id, f.run_id) = (m.id, (m.e).run_id)
     where not f.is_hidden and (f.place, f.reached_at, f.app_user_id) > ((m.e).place, (m.e).reached_at,
                                                                         (m.e).app_user_id)
       and ((m.w).score is null or (f.place, f.reached_at, f.app_user_id) < ((m.w).place, (m.w).reached_at,
                                        (m.w).app_user_id))
     group by m.n
  )
  select (select jsonb_agg(jsonb_build_object('n', m.n, 'is_in', c.is_in, 'passed', p.passed) order by m.n)
            from moves m
            left join crossed c on (c.run_id, c.app_user_id) = ((m.e).run_id, (m.e).app_user_id)
            left join passing p on p.n = m.n
           where internal.collects_effects() or c.is_in is not null or p.n is not null) as movers,
         (select jsonb_agg(jsonb_build_object('run_id', c.run_id, 'id', c.app_user_id, 'is_in', c.is_in, 'by',
                                              r.movers[1]) order by c.run_id, c.app_user_id)
            from crossed c
            join runs r on r.id = c.run_id
           where c.app_user_id <> all (r.movers)) as displaced
    into found_ones;

  for told in
    select leaderboards_notify.befores[t.n] as w, leaderboards_notify.entries[t.n] as e, t.is_in, t.passed, b.id, b.key,
           r.run_key
      from jsonb_to_recordset(found_ones.movers) as t (n int, is_in boolean, passed jsonb)
      join app.leaderboard_runs r on r.id = (leaderboards_notify.entries[t.n]).run_id
      join app.leaderboards b on b.id = r.leaderboard_id
     order by t.n
  loop
    ranks := internal.leaderboard_ranks(told.w, told.e);
    if (told.w).score is distinct from (told.e).score or ranks.previous_rank is distinct from ranks.rank then
      perform internal.add_effect('leaderboards', json_build_object(
        'app_user_id', (told.e).app_user_id, 'key', told.key, 'score', internal.numeric_json((told.e).score),
          'rank', ranks.rank, 'previous_rank', ranks.previous_rank));
    end if;
    continue when not notifies_others;
    if told.is_in is not null then
      users := users || (told.e).app_user_id;
      properties := properties || jsonb_build_object(
        'leaderboard_id', told.id, 'key', told.key, 'run_key', told.run_key, 'score', (told.e).score,
          'rank', ranks.rank, 'previous_rank', ranks.previous_rank,
        'reason', case when told.is_in then 'entered_top_10' else 'left_top_10' end);
    end if;
    -- the job emits events of other users, for these are not locked
    if told.passed <> 'null' then
      perform internal.enqueue('leaderboards__notify', internal.new_id()::text, jsonb_build_object(
        'run_id', (told.e).run_id, 'by', (told.e).app_user_id, 'passed', told.passed, 'displaced', null,
          'displaced_reason', null));
    end if;
  end loop;
  if notifies_others then
    perform internal.enqueue('leaderboards__notify', internal.new_id()::text, jsonb_build_object(
              'run_id', d.run_id, 'by', d.by, 'passed', '[]'::jsonb, 'displaced', d.id,
              'displaced_reason', case when d.is_in then 'entered_top_10' else 'left_top_10' end))
       from jsonb_to_recordset(found_ones.displaced) as d (run_id uuid, id uuid, is_in boolean, by uuid);
  end if;
  perform internal.emit_many(users, array_fill('svc.leaderboard.rank_changed'::text, array[cardinality(users)]),
                             properties)
    where cardinality(users) > 0;
end $$;
comment on function internal.leaderboards_notify is
  'After moves are stored: collects their effects, and emits rank changes: users who enter a top 10 or leave it, by
   moving or by being displaced, and friends who were passed, the last two by a job. Granted to nobody.';
