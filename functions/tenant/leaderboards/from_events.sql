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

create or replace function internal.leaderboards_store(facts internal.leaderboard_fact[], out run_ids uuid[],
                                                       out app_user_ids uuid[], out scores_was numeric[],
                                                       out places_was numeric[], out reached_was timestamptz[],
                                                       out scores numeric[], out places numeric[],
                                                       out reached timestamptz[])
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  entries app.leaderboard_entries[];
begin
  if leaderboards_store.facts is null then
    return;
  end if;
  with tallied as materialized (
    select t.app_user_id, t.board_id, t.run, t.tally from internal.leaderboards_tally(leaderboards_store.facts) t
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
  ), folded as materialized (
    select s.app_user_id, s.run_id, s.is_live, e as was,
           internal.leaderboard_folded(s.b, case when e.run_id is null
                                                 then internal.leaderboard_blank(s.run_id, s.app_user_id) else e end,
                                       s.tally) as now
      from stepped s
      left join app.leaderboard_entries e on (e.app_user_id, e.run_id) = (s.app_user_id, s.run_id)
  ), told as (
    -- hidden entries move without a word
    select f.* from folded f where f.is_live and not coalesce((f.was).is_hidden, false) order by f.app_user_id, f.run_id
  )
  select (select array_agg(f.now) from folded f), array_agg(t.run_id), array_agg(t.app_user_id),
         array_agg((t.was).score), array_agg((t.was).place), array_agg((t.was).reached_at), array_agg((t.now).score),
         array_agg((t.now).place), array_agg((t.now).reached_at)
    into entries, run_ids, app_user_ids, scores_was, places_was, reached_was, scores, places, reached
    from told t;
  if entries is not null then
    perform internal.leaderboard_store_many(entries);
  end if;
end $$;
comment on function internal.leaderboards_store is
  'Stores submissions of events or of the XP ledger in the runs that they belong to, where the run is open and the board
   admits the user. Returns the moves of visible entries in the order of users and runs, for
   internal.leaderboards_notify. The users must be locked. Granted to nobody.';

create or replace function internal.leaderboards_submit_many(facts internal.leaderboard_fact[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved constant record := internal.leaderboards_store(leaderboards_submit_many.facts);
begin
  perform internal.leaderboards_notify(moved.run_ids, moved.app_user_ids, moved.scores_was, moved.places_was,
                                       moved.reached_was, moved.scores, moved.places, moved.reached);
end $$;
comment on function internal.leaderboards_submit_many is
  'Stores submissions, and notifies. The users must be locked. Granted to nobody.';

create or replace function internal.leaderboard_store_many(entries app.leaderboard_entries[]) returns void
language plpgsql volatile as $$
declare
  stored int;
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
  perform internal.leaderboards_fold_by_chance(array(select e.run_id from unnest(leaderboard_store_many.entries) e));
end $$;
comment on function internal.leaderboard_store_many is
  'Stores the new values of entries, each once. The users must be locked. Granted to nobody.';

create or replace function internal.leaderboards_fold_by_chance(run_ids uuid[]) returns void
language plpgsql volatile as $$
declare
  due record;
begin
  for due in
    select r.id, count(*) as n from unnest(leaderboards_fold_by_chance.run_ids) as r (id) group by r.id order by r.id
  loop
    perform internal.leaderboard_fold_by_chance(due.id, due.n);
  end loop;
end $$;
comment on function internal.leaderboards_fold_by_chance is
  'Requests folds after moves: one run for each, in any order. Granted to nobody.';

create or replace function internal.leaderboards_move(events app.engagement_events[], out run_ids uuid[],
                                                      out app_user_ids uuid[], out scores_was numeric[],
                                                      out places_was numeric[], out reached_was timestamptz[],
                                                      out scores numeric[], out places numeric[],
                                                      out reached timestamptz[], out rare text[])
language plpgsql volatile security definer
set search_path = '' set plan_cache_mode = 'force_generic_plan' set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off as $$
begin
  -- the row trigger of entries leaves the changes to the statement below
  perform set_config('app.leaderboard_changes', 'inserted', true);
  with fed as materialized (
    select e.app_user_id, e.event_name, count(*) as n, min(least(e.occurred_at, e.received_at)) as since,
           max(least(e.occurred_at, e.received_at)) as until,
           max(internal.xp_counted_at(e.source, e.occurred_at, e.received_at)) as reached_at
      from unnest(leaderboards_move.events) e
     -- history moves no board
     where not e.is_historical
     group by 1, 2
  ), watching as materialized (
    select s.event_name, s.since, s.until, w.id
      from (select f.event_name, min(f.since) as since, max(f.until) as until from fed f group by 1) s
      join app.event_plans p on p.event_name = s.event_name
     cross join lateral unnest(p.leaderboards) as w (id)
  ), counting as materialized (
    -- boards that count each event, and of which one open run takes all of them
    select w.event_name, b.id, case b.sort when 'desc' then -1 else 1 end as sign, (r.run).id as run_id
      from watching w
      join app.leaderboards b on b.id = w.id
     cross join lateral (
       select (array_agg(l))[1] as run, count(*) as runs
         from app.leaderboard_runs l
        where l.leaderboard_id = b.id and l.state = 'live'
          and (l.starts_at is null or l.starts_at <= w.until) and (l.ends_at is null or l.ends_at > w.since)) r
     where b.is_active and b.scoring = 'count' and b.source ->> 'type' = 'event' and not b.source ? 'filter'
       and cardinality(b.watches) = 1 and b.segment_id is null
       and (b.starts_at is null or b.starts_at <= w.since) and (b.ends_at is null or b.ends_at > w.until)
       and r.runs = 1 and (r.run).shadow_id is null
       and ((r.run).starts_at is null or (r.run).starts_at <= w.since)
       and ((r.run).ends_at is null or (r.run).ends_at > w.until) and internal.leaderboard_is_open(r.run)
  ), moved as (
    update app.leaderboard_entries x
       set score = w.score + f.n, place = (w.score + f.n) * c.sign, reached_at = greatest(w.reached_at, f.reached_at),
           submissions = w.submissions + f.n,
           biggest_step = case when c.sign < 0 then greatest(w.biggest_step, f.n) else w.biggest_step end
      from fed f
      join counting c on c.event_name = f.event_name
      -- the entry as it was, which Postgres returns by itself from version 18 on
      join app.leaderboard_entries w on w.app_user_id = f.app_user_id and w.run_id = c.run_id
     where x.ctid = w.ctid and not x.is_hidden
    returning x.run_id, x.app_user_id, c.id as board_id, w.score as score_was, w.place as place_was,
              w.reached_at as reached_was, x.score, x.place, x.reached_at
  ), noted as (
    insert into app.leaderboard_changes (run_id, place, at, whose, n)
    select m.run_id, c.place, c.at, m.app_user_id, c.n
      from moved m
     cross join lateral (values (m.place_was, m.reached_was, -1), (m.place, m.reached_at, 1)) as c (place, at, n)
  ), ordered as (
    select m.* from moved m order by m.app_user_id, m.run_id
  ), left_over as (
    select f.app_user_id, w.id from fed f join watching w on w.event_name = f.event_name
    except
    select m.app_user_id, m.board_id from moved m
  )
  select array_agg(o.run_id), array_agg(o.app_user_id), array_agg(o.score_was), array_agg(o.place_was),
         array_agg(o.reached_was), array_agg(o.score), array_agg(o.place), array_agg(o.reached_at),
         (select array_agg(l.app_user_id || ' ' || l.id) from left_over l)
    into run_ids, app_user_ids, scores_was, places_was, reached_was, scores, places, reached, rare
    from ordered o;
  perform set_config('app.leaderboard_changes', '', true);
  if run_ids is not null then
    perform internal.leaderboards_fold_by_chance(run_ids);
  end if;
end $$;
comment on function internal.leaderboards_move is
  'Moves the entries that are there on boards that count events, in one statement, from the events of each user added up
   once for all boards. Returns the moves in the order of users and runs, and as rare the pairs that it left alone:
   other scorings, filters, segments, rebuilds, first entries, hidden ones, each as the ids of user and board with a
   space between them. By index alone: a plan made while a table was empty would scan it ever after. The users must be
   locked. Granted to nobody.';

create or replace function internal.leaderboards_count(events app.engagement_events[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved record;
  rest record;
begin
  moved := internal.leaderboards_move(leaderboards_count.events);
  if moved.rare is not null then
    rest := internal.leaderboards_store(internal.leaderboard_facts(leaderboards_count.events, moved.rare));
    if rest.run_ids is not null then
      -- all are told at once: who moved first is who passed others
      select array_agg(m.run_id) as run_ids, array_agg(m.app_user_id) as app_user_ids,
             array_agg(m.score_was) as scores_was, array_agg(m.place_was) as places_was,
             array_agg(m.reached_was) as reached_was, array_agg(m.score) as scores, array_agg(m.place) as places,
             array_agg(m.reached_at) as reached
        into moved
        from (select a.*
                from unnest(moved.run_ids || rest.run_ids, moved.app_user_ids || rest.app_user_ids,
                            moved.scores_was || rest.scores_was, moved.places_was || rest.places_was,
                            moved.reached_was || rest.reached_was, moved.scores || rest.scores,
                            moved.places || rest.places, moved.reached || rest.reached)
                       as a (run_id, app_user_id, score_was, place_was, reached_was, score, place, reached_at)
               order by a.app_user_id, a.run_id) m;
    end if;
  end if;
  perform internal.leaderboards_notify(moved.run_ids, moved.app_user_ids, moved.scores_was, moved.places_was,
                                       moved.reached_was, moved.scores, moved.places, moved.reached);
end $$;
comment on function internal.leaderboards_count is
  'Submits events to the boards that watch them: most by internal.leaderboards_move, the rest by
   internal.leaderboards_store, and notifies of all at once. The users must be locked. Granted to nobody.';

create or replace function internal.leaderboards_notify(run_ids uuid[], app_user_ids uuid[], scores_was numeric[],
                                                        places_was numeric[], reached_was timestamptz[],
                                                        scores numeric[], places numeric[], reached timestamptz[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  notifies_others constant boolean := not internal.is_history();
  found_ones record;
  ranked record;
  told record;
begin
  if leaderboards_notify.run_ids is null or not notifies_others and not internal.collects_effects() then
    return;
  end if;
  with moves as materialized (
    select m.*
      from unnest(leaderboards_notify.run_ids, leaderboards_notify.app_user_ids, leaderboards_notify.places_was,
                  leaderboards_notify.reached_was, leaderboards_notify.places, leaderboards_notify.reached)
             with ordinality as m (run_id, app_user_id, place_was, reached_was, place, reached_at, n)
  ), runs as materialized (
    select m.run_id as id, array_agg(m.app_user_id order by m.n) as movers from moves m group by 1
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
                    select m.run_id, m.place_was, m.reached_was, m.app_user_id from moves m
                     where m.place_was is not null) a) t
     where t.n <= 10
  ), top_now as (
    select t.run_id, t.app_user_id
      from (select a.run_id, a.app_user_id, row_number() over (partition by a.run_id order by a.place, a.reached_at,
                                                               a.app_user_id) as n
              from (select o.* from others o
                    union all
                    select m.run_id, m.place, m.reached_at, m.app_user_id from moves m) a) t
     where t.n <= 10
  ), crossed as materialized (
    select coalesce(n.run_id, b.run_id) as run_id, coalesce(n.app_user_id, b.app_user_id) as app_user_id,
           b.run_id is null as is_in
      from top_now n
      full join top_before b on (b.run_id, b.app_user_id) = (n.run_id, n.app_user_id)
     where n.run_id is null or b.run_id is null
  ), friends as materialized (
    -- once for each mover, however many boards: most have none
    select u.app_user_id, o.id
      from (select distinct m.app_user_id from moves m) u
     cross join lateral internal.friends_of(u.app_user_id) as o (id)
  ), passing as (
    select m.n, array_agg(f.app_user_id order by f.app_user_id) as passed
      from friends o
      join moves m on m.app_user_id = o.app_user_id
      join app.leaderboard_entries f on (f.app_user_id, f.run_id) = (o.id, m.run_id)
     where not f.is_hidden and (f.place, f.reached_at, f.app_user_id) > (m.place, m.reached_at, m.app_user_id)
       and (m.place_was is null
            or (f.place, f.reached_at, f.app_user_id) < (m.place_was, m.reached_was, m.app_user_id))
     group by m.n
  ), movers as materialized (
    select m.n, c.is_in, p.passed
      from moves m
      left join crossed c on (c.run_id, c.app_user_id) = (m.run_id, m.app_user_id)
      left join passing p on p.n = m.n
     where internal.collects_effects() or c.is_in is not null or p.n is not null
  )
  select (select array_agg(m.n order by m.n) from movers m) as asked,
         (select array_agg(m.is_in order by m.n) from movers m) as are_in,
         (select jsonb_agg(jsonb_build_object('n', m.n, 'passed', m.passed) order by m.n) from movers m
           where m.passed is not null) as passing,
         (select jsonb_agg(jsonb_build_object('run_id', c.run_id, 'id', c.app_user_id, 'is_in', c.is_in, 'by',
                                              r.movers[1]) order by c.run_id, c.app_user_id)
            from crossed c
            join runs r on r.id = c.run_id
           where c.app_user_id <> all (r.movers)) as displaced
    into found_ones;

  -- effects are noted once: noting each would copy all before it, each time
  if found_ones.asked is not null then
    ranked := internal.leaderboards_ranks(found_ones.asked, leaderboards_notify.run_ids,
                                          leaderboards_notify.app_user_ids, leaderboards_notify.places_was,
                                          leaderboards_notify.reached_was, leaderboards_notify.places,
                                          leaderboards_notify.reached);
    with boards as materialized (
      select r.id as run_id, r.run_key, b.id, b.key
        from app.leaderboard_runs r
        join app.leaderboards b on b.id = r.leaderboard_id
       where r.id = any (leaderboards_notify.run_ids)
    )
    select array_agg(json_build_object(
             'app_user_id', leaderboards_notify.app_user_ids[t.n], 'key', b.key,
             'score', internal.numeric_json(leaderboards_notify.scores[t.n]), 'rank', t.rank,
             'previous_rank', t.previous_rank) order by t.n)
             filter (where leaderboards_notify.scores_was[t.n] is distinct from leaderboards_notify.scores[t.n]
                        or t.previous_rank is distinct from t.rank) as effects,
           array_agg(leaderboards_notify.app_user_ids[t.n] order by t.n) filter (where t.is_in is not null) as users,
           array_agg(jsonb_build_object(
             'leaderboard_id', b.id, 'key', b.key, 'run_key', b.run_key, 'score', leaderboards_notify.scores[t.n],
             'rank', t.rank, 'previous_rank', t.previous_rank,
             'reason', case when t.is_in then 'entered_top_10' else 'left_top_10' end) order by t.n)
             filter (where t.is_in is not null) as properties
      into told
      from unnest(found_ones.asked, found_ones.are_in, ranked.ranks, ranked.previous_ranks)
             as t (n, is_in, rank, previous_rank)
      join boards b on b.run_id = leaderboards_notify.run_ids[t.n];
    perform internal.add_effects('leaderboards', told.effects);
  end if;
  if not notifies_others then
    return;
  end if;
  -- the job emits events of other users, for these are not locked
  perform internal.enqueue('leaderboards__notify', internal.new_id()::text, jsonb_build_object(
            'run_id', leaderboards_notify.run_ids[p.n], 'by', leaderboards_notify.app_user_ids[p.n], 'passed', p.passed,
            'displaced', null, 'displaced_reason', null))
     from jsonb_to_recordset(found_ones.passing) as p (n int, passed jsonb);
  perform internal.enqueue('leaderboards__notify', internal.new_id()::text, jsonb_build_object(
            'run_id', d.run_id, 'by', d.by, 'passed', '[]'::jsonb, 'displaced', d.id,
            'displaced_reason', case when d.is_in then 'entered_top_10' else 'left_top_10' end))
     from jsonb_to_recordset(found_ones.displaced) as d (run_id uuid, id uuid, is_in boolean, by uuid);
  if found_ones.asked is not null then
    perform internal.emit_many(told.users, (select array_agg('svc.leaderboard.rank_changed'::text)
                                              from unnest(told.users)), told.properties);
  end if;
end $$;
comment on function internal.leaderboards_notify is
  'After moves are stored: collects their effects, and emits rank changes: users who enter a top 10 or leave it, by
   moving or by being displaced, and friends who were passed, the last two by a job. The arrays are parallel, in the
   order of users and runs; what was is null for a new entry. Granted to nobody.';

create or replace function internal.leaderboards_ranks(asked bigint[], run_ids uuid[], app_user_ids uuid[],
                                                       places_was numeric[], reached_was timestamptz[],
                                                       places numeric[], reached timestamptz[],
                                                       out ranks bigint[], out previous_ranks bigint[])
language plpgsql stable security definer
set search_path = '' set plan_cache_mode = 'force_generic_plan' set enable_seqscan = off
  set enable_bitmapscan = off as $$
begin
  -- a lookup in the buckets costs as much as some thirty steps of a sort: where many of a run moved, all its entries
  -- are sorted, once, with the former places among them
  with moves as materialized (
    select a.n, leaderboards_ranks.run_ids[a.n] as run_id, leaderboards_ranks.app_user_ids[a.n] as app_user_id,
           leaderboards_ranks.places_was[a.n] as place_was, leaderboards_ranks.reached_was[a.n] as reached_was,
           leaderboards_ranks.places[a.n] as place, leaderboards_ranks.reached[a.n] as reached_at
      from unnest(leaderboards_ranks.asked) as a (n)
  ), runs as materialized (
    select r.id, internal.leaderboard_total(r.id) <= 30 * r.movers as is_sorted
      from (select m.run_id as id, count(*) as movers from moves m group by 1) r
  ), sorted as (
    select s.n, s.is_former, s.is_up,
           sum(s.counts) over (partition by s.run_id order by s.place, s.reached_at, s.app_user_id, s.counts
                               rows unbounded preceding) as ahead
      from (select e.run_id, e.place, e.reached_at, e.app_user_id, 1 as counts, null::bigint as n, false as is_former,
                   false as is_up
              from runs r
              join app.leaderboard_entries e on e.run_id = r.id and not e.is_hidden
             where r.is_sorted
            union all
            select m.run_id, m.place, m.reached_at, m.app_user_id, 0, m.n, false, false
              from moves m
              join runs r on r.id = m.run_id and r.is_sorted
            union all
            select m.run_id, m.place_was, m.reached_was, m.app_user_id, 0, m.n, true,
                   (m.place, m.reached_at) < (m.place_was, m.reached_was)
              from moves m
              join runs r on r.id = m.run_id and r.is_sorted
             where m.place_was is not null) s
  ), ranked as (
    -- of the former place the user's own entry is no longer ahead
    select s.n, 1 + max(s.ahead) filter (where not s.is_former) as rank,
           1 + max(s.ahead - s.is_up::int) filter (where s.is_former) as previous_rank
      from sorted s
     where s.n is not null
     group by s.n
    union all
    select m.n, k.rank::bigint, p.rank
      from moves m
      join runs r on r.id = m.run_id and not r.is_sorted
     cross join lateral (
       select 1 + coalesce(sum(b.n), 0) as rank
         from internal.leaderboard_before(m.run_id, m.place, m.reached_at, m.app_user_id) as b (n)) k
      left join lateral internal.leaderboard_rank_before(m.run_id, m.app_user_id, m.place, m.reached_at, m.place_was,
                                                         m.reached_was, k.rank) as p (rank)
             on m.place_was is not null
  )
  select array_agg(r.rank order by r.n), array_agg(r.previous_rank order by r.n)
    into ranks, previous_ranks
    from ranked r;
end $$;
comment on function internal.leaderboards_ranks is
  'Ranks after and before many moves, of one snapshot, in the order of asked: positions in the other arrays, ascending.
   The rank before is that among the others'' current entries, null for a new entry. Granted to nobody.';
