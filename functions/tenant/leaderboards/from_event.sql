-- Submissions of one user to existing entries: the fast path, for one event or one row of the ledger. Other cases are
-- in from_events.sql.

create or replace function internal.leaderboard_takes(board app.leaderboards, run app.leaderboard_runs, value numeric,
                                                      at timestamptz)
returns boolean
language sql stable as $$
  select ((board).starts_at is null or at >= (board).starts_at) and ((board).ends_at is null or at < (board).ends_at)
     and ((board).min_score is null or (board).scoring = 'count' or value >= (board).min_score)
     and ((board).max_score is null or (board).scoring = 'count' or value <= (board).max_score)
     and ((run).id is null or internal.leaderboard_is_open(run))
$$;
comment on function internal.leaderboard_takes is
  'Whether a board accepts a submission of this value and time into a run; does not check whether a run that has no row
   yet is open. Granted to nobody.';

create or replace function internal.leaderboards_take(app_user_id uuid, board_ids uuid[], scores numeric[],
                                                      event_name text, properties jsonb, place_at timestamptz,
                                                      reached_at timestamptz, source_id uuid)
returns void
language plpgsql volatile
  set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off as $$
declare
  most constant int := case when internal.collects_effects() then 100 else 10 end;
  moved record;
  effects json[] := '{}';
begin
  -- the row trigger of entries leaves the changes to the statement below, which inserts those of all boards at once
  if set_config('app.leaderboard_changes', 'inserted', true) is null then
  end if;
  with due as materialized (
    select b.id as board_id, b.key, v.value, x.run_id, x.score as score_was, x.place as place_was,
           x.reached_at as reached_was,
           s.score, s.score * o.sign as place, s.reached_at, p.is_replaced,
           b.segment_id is not null or r.id is null or r.shadow_id is not null or x.run_id is null
             or x.is_hidden as is_rare
      from unnest(leaderboards_take.board_ids, leaderboards_take.scores) as w (id, score)
      join app.leaderboards b on b.id = w.id
     -- computed once
     cross join lateral (
       select case when leaderboards_take.scores is not null then w.score
                   when b.source ->> 'type' = 'event' and not b.source ? 'filter'
                     and (b.scoring = 'count' or b.source ->> 'value_property' is null) then 1
                   else internal.leaderboard_value(b, leaderboards_take.event_name,
                                                   leaderboards_take.properties) end as value
       offset 0) v
     cross join lateral (select case b.sort when 'desc' then -1 else 1 end as sign) o
      left join lateral internal.leaderboard_runs_at(b.id, leaderboards_take.place_at) r on true
      left join app.leaderboard_entries x on (x.app_user_id, x.run_id) = (leaderboards_take.app_user_id, r.id)
     cross join lateral (
       select internal.leaderboard_replaces(b.scoring, o.sign, x.place, x.reached_at, v.value,
                                            leaderboards_take.reached_at) as is_replaced
       offset 0) p
     cross join lateral (
       select internal.leaderboard_score(b.scoring, p.is_replaced, x.score, v.value, v.value, v.value, 1) as score,
              internal.leaderboard_reached(b.scoring, p.is_replaced, x.score, x.reached_at, v.value,
                                           leaderboards_take.reached_at,
                                           case when v.value <> 0 then leaderboards_take.reached_at end,
                                           leaderboards_take.reached_at) as reached_at
       offset 0) s
     where b.is_active and v.value is not null and internal.leaderboard_takes(b, r, v.value, leaderboards_take.place_at)
  ), stored as (
    update app.leaderboard_entries x
       set score = d.score, place = d.place, reached_at = d.reached_at, submissions = x.submissions + 1,
           metadata = case when d.is_replaced then '{}' else x.metadata end,
           biggest_step = case when d.place < x.place then greatest(x.biggest_step, x.place - d.place)
                               else x.biggest_step end
      from due d
     where (x.app_user_id, x.run_id) = (leaderboards_take.app_user_id, d.run_id)
       and not (select bool_or(a.is_rare) from due a)
  ), noted as (
    insert into app.leaderboard_changes (run_id, place, at, whose, n)
    select d.run_id, c.place, c.at, leaderboards_take.app_user_id, c.n
      from due d
     cross join lateral (values (d.place_was, d.reached_was, -1), (d.place, d.reached_at, 1)) as c (place, at, n)
     where (d.place, d.reached_at) is distinct
       from (d.place_was, d.reached_was) and not (select bool_or(a.is_rare) from due a)
  )
  select bool_or(d.is_rare) as is_rare, array_agg(d.board_id) as boards, array_agg(d.value) as scores,
         array_agg(d.run_id) as runs,
         array_agg(d.key) as keys, array_agg(d.score_was) as scores_was, array_agg(d.place_was) as places_was,
         array_agg(d.reached_was) as reached_was,
         array_agg(d.score) as scores_now, array_agg(d.place) as places, array_agg(d.reached_at) as reached,
         array_agg(f.n_was) as ahead_was, array_agg(f.n) as ahead,
         coalesce(bool_or(greatest(f.n, f.n_was) >= most), false) as is_far,
         -- somebody enters or leaves the ten best
         coalesce(bool_or((f.n < 10) <> (f.n_was < 10)), false)
           or exists (select from internal.friends_of(leaderboards_take.app_user_id)) as is_news
    into moved
    from (select a.* from due a order by a.run_id) d
    -- how many others are ahead of both places, and how many between them, as far as that is few; in order, so that the
    -- planner takes the index of the order
    left join lateral (
      select case when w.is_up then c.ahead else c.ahead + c.passed end as n,
             case when w.is_up then c.ahead + c.passed else c.ahead end as n_was
        from (select (d.place, d.reached_at) < (d.place_was, d.reached_was) as is_up
               where (d.place, d.reached_at) is distinct from (d.place_was, d.reached_was)) w
       cross join lateral (
         select (select count(*)
                   from (select from app.leaderboard_entries o
                          where o.run_id = d.run_id and not o.is_hidden
                            and o.app_user_id <> leaderboards_take.app_user_id
                            and (o.place, o.reached_at, o.app_user_id)
                                < (case when w.is_up then d.place else d.place_was end,
                                   case when w.is_up then d.reached_at else d.reached_was end,
                                   leaderboards_take.app_user_id)
                          order by o.place, o.reached_at, o.app_user_id
                          limit most) x) as ahead,
                (select count(*)
                   from (select from app.leaderboard_entries o
                          where o.run_id = d.run_id and not o.is_hidden
                            and o.app_user_id <> leaderboards_take.app_user_id
                            and (o.place, o.reached_at, o.app_user_id)
                                > (case when w.is_up then d.place else d.place_was end,
                                   case when w.is_up then d.reached_at else d.reached_was end,
                                   leaderboards_take.app_user_id)
                            and (o.place, o.reached_at, o.app_user_id)
                                < (case when w.is_up then d.place_was else d.place end,
                                   case when w.is_up then d.reached_was else d.reached_at end,
                                   leaderboards_take.app_user_id)
                          order by o.place, o.reached_at, o.app_user_id
                          limit most) x) as passed
         offset 0) c) f on true;
  if set_config('app.leaderboard_changes', '', true) is null then
  end if;
  if moved.is_rare then
    perform internal.leaderboards_submit_many(array(
      select (w.id, leaderboards_take.app_user_id, w.score, leaderboards_take.place_at, leaderboards_take.reached_at,
              leaderboards_take.source_id)::internal.leaderboard_fact
        from unnest(moved.boards, moved.scores) as w (id, score)));
    return;
  elsif moved.runs is null then
    return;
  end if;
  for i in 1 .. cardinality(moved.runs) loop
    if random() < internal.leaderboard_fold_chance() then
      perform internal.leaderboard_fold_later(moved.runs[i]);
    end if;
  end loop;
  if moved.is_news or internal.is_history() then
    perform internal.leaderboards_notify(moved.runs,
                                         array_fill(leaderboards_take.app_user_id, array[cardinality(moved.runs)]),
                                         moved.scores_was, moved.places_was, moved.reached_was, moved.scores_now,
                                         moved.places, moved.reached);
  elsif moved.is_far and internal.collects_effects() then
    perform internal.add_effects('leaderboards', internal.leaderboard_effects(
      leaderboards_take.app_user_id, moved.keys, moved.runs, moved.scores_was, moved.places_was, moved.reached_was,
        moved.scores_now, moved.places, moved.reached));
  elsif internal.collects_effects() then
    for i in 1 .. cardinality(moved.runs) loop
      if moved.scores_was[i] <> moved.scores_now[i] or moved.ahead[i] <> moved.ahead_was[i] then
        effects := effects || json_build_object(
          'app_user_id', leaderboards_take.app_user_id, 'key', moved.keys[i],
            'score', internal.numeric_json(moved.scores_now[i]), 'rank', moved.ahead[i] + 1,
          'previous_rank', moved.ahead_was[i] + 1);
      end if;
    end loop;
    perform internal.add_effects('leaderboards', effects);
  end if;
end $$;
comment on function internal.leaderboards_take is
  'Stores submissions of one user, one to each board: the given scores, or without them the values of the event. Leaves
   to internal.leaderboards_submit_many users without an entry, hidden users, boards of segments, and runs without a row
   or being rebuilt. The user must be locked. Granted to nobody.';

create or replace function internal.leaderboard_effects(app_user_id uuid, keys text[], runs uuid[],
                                                        scores_was numeric[], places_was numeric[],
                                                        reached_was timestamptz[], scores numeric[], places numeric[],
                                                        reached timestamptz[])
returns json[]
language plpgsql stable security definer
set search_path = '' set plan_cache_mode = 'force_generic_plan' set enable_seqscan = off
  set enable_bitmapscan = off as $$
begin
  return (
    select array_agg(json_build_object('app_user_id', leaderboard_effects.app_user_id, 'key', m.key,
                                       'score', internal.numeric_json(m.score), 'rank', k.rank,
                                       'previous_rank', p.rank) order by m.n)
      from unnest(leaderboard_effects.keys, leaderboard_effects.runs, leaderboard_effects.scores_was,
                  leaderboard_effects.places_was,
                  leaderboard_effects.reached_was, leaderboard_effects.scores, leaderboard_effects.places,
                  leaderboard_effects.reached)
             with ordinality as m (key, run_id, score_was, place_was, reached_was, score, place, reached_at, n)
     cross join lateral (
       select 1 + coalesce(sum(b.n), 0) as rank
         from internal.leaderboard_before(m.run_id, m.place, m.reached_at, leaderboard_effects.app_user_id) as b (n)) k
     cross join lateral internal.leaderboard_rank_before(m.run_id, leaderboard_effects.app_user_id, m.place,
                                                         m.reached_at, m.place_was, m.reached_was, k.rank) as p (rank)
     where m.score_was is distinct from m.score or k.rank is distinct from p.rank);
end $$;
comment on function internal.leaderboard_effects is
  'The effects of stored moves of one user, with ranks before and after: one statement for all boards. The arrays are
   parallel. Granted to nobody.';
