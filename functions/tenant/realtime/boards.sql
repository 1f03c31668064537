-- Leaderboards as channels. Nothing is done when a score changes: while somebody listens, one server looks at the board
-- once a second and compares it with what subscribers were told last. What a new subscriber is compared with is the
-- state at the subscription.

create or replace function internal.realtime_first(run_id uuid) returns app.leaderboard_entries[]
language sql stable
return (select array_agg(f.e order by (f.e).place, (f.e).reached_at, (f.e).app_user_id)
          from (select e from app.leaderboard_entries e
                 where e.run_id = realtime_first.run_id and not e.is_hidden
                 order by e.place, e.reached_at, e.app_user_id limit 10) f);
comment on function internal.realtime_first is 'The first ten visible entries of a run. Granted to nobody.';

create or replace function internal.realtime_top(run_key text, first app.leaderboard_entries[]) returns text
language sql stable
return json_build_object('run_key', realtime_top.run_key, 'entries', coalesce((
  select json_agg(json_build_object('app_user_id', f.app_user_id, 'score', internal.numeric_json(f.score), 'rank', f.n,
                                    'reached_at', internal.iso(f.reached_at), 'metadata', f.metadata) order by f.n)
    from unnest(realtime_top.first) with ordinality as f
           (run_id, app_user_id, score, place, reached_at, submissions, metadata, is_hidden, biggest_step, final_rank,
            window_started_at, window_count, created_at, n)),
  '[]'))::text;
comment on function internal.realtime_top is
  'The payload of top.changed. Without names: everybody gets the same entries, and names are hidden from users who have
   blocked each other. Granted to nobody.';

create or replace function internal.realtime_board_begin(key text, connection_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  board constant app.leaderboards := (select b from app.leaderboards b where b.key = realtime_board_begin.key);
  run constant app.leaderboard_runs := internal.leaderboard_run_at(board, internal.now());
begin
  -- each is one statement, so of one snapshot: whoever is not seen to listen yet is acknowledged after all that this
  -- state has
  insert into app.realtime_boards as b (leaderboard_id, looked_at, top)
  select board.id, internal.now(), internal.realtime_top(run.run_key, internal.realtime_first(run.id))
   where not exists (select from internal.listeners_of('leaderboard:' || board.key) l
                      where l.connection_id <> realtime_board_begin.connection_id)
  on conflict on constraint realtime_boards_pkey do update
     set looked_at = excluded.looked_at, top = excluded.top
   where b.top <> excluded.top;
  insert into app.realtime_places as p (leaderboard_id, app_user_id, run_key, score, rank)
  select board.id, me, run.run_key, e.score,
         case when e.score is not null then internal.leaderboard_rank(run.id, e.place, e.reached_at, me) end
    from (select) one
    left join app.leaderboard_entries e on (e.app_user_id, e.run_id) = (me, run.id) and not e.is_hidden
   where not exists (select from internal.listeners_of('leaderboard:' || board.key) l
                      where l.connection_id <> realtime_board_begin.connection_id and l.app_user_id = me)
  on conflict on constraint realtime_places_pkey do update
     set run_key = excluded.run_key, score = excluded.score, rank = excluded.rank
   where (p.run_key, p.score, p.rank) is distinct from (excluded.run_key, excluded.score, excluded.rank);
end $$;
comment on function internal.realtime_board_begin is
  'The caller begins to listen to a leaderboard by a connection: later looks are compared with the board as it is now,
   and with the caller''s place in it, unless somebody listens already, who is yet to be told of what has changed since
   the last look. Granted to nobody.';

create or replace function internal.realtime_board(leaderboard_id uuid, subscribers uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  board constant app.leaderboards := (select b from app.leaderboards b where b.id = realtime_board.leaderboard_id);
  run constant app.leaderboard_runs := internal.leaderboard_run_at(board, internal.now());
  target constant text := 'leaderboard:' || board.key;
  is_first boolean;
  first constant app.leaderboard_entries[] := internal.realtime_first(run.id);
  top constant text := internal.realtime_top(run.run_key, first);
  moved record;
begin
  is_first := not exists (select from app.realtime_boards b where b.leaderboard_id = board.id);
  insert into app.realtime_boards as b (leaderboard_id, looked_at, top)
  values (board.id, internal.now(), top)
  on conflict on constraint realtime_boards_pkey do update
     set looked_at = excluded.looked_at, top = excluded.top
   where b.top <> excluded.top;
  if found and not is_first then
    perform internal.publish(target, 'top.changed', top::json);
  end if;

  for moved in
    with entries as materialized (
      select u as app_user_id, e.score, e.place, e.reached_at, p.leaderboard_id is not null as is_known, p.run_key,
             p.score as was_score, p.rank as was_rank,
             (select f.n from unnest(first) with ordinality as f
               (run_id, app_user_id, score, place, reached_at, submissions, metadata, is_hidden, biggest_step,
                final_rank, window_started_at, window_count, created_at, n)
               where f.app_user_id = e.app_user_id) as n
        from unnest(realtime_board.subscribers) u
        left join app.leaderboard_entries e on (e.app_user_id, e.run_id) = (u, run.id) and not e.is_hidden
        left join app.realtime_places p on (p.leaderboard_id, p.app_user_id) = (board.id, u)
    ), changed as (
      -- a rank is looked up where the score changed or the entry is among the first ten: others who pass it elsewhere
      -- cost nothing
      select c.*, case when c.score is not null then coalesce(c.n,
                                                              internal.leaderboard_rank(run.id, c.place, c.reached_at,
                                                                c.app_user_id)) end as rank
        from entries c
       where (c.run_key, c.was_score) is distinct from (run.run_key, c.score) or c.n <> c.was_rank
    ), kept as (
      insert into app.realtime_places as p (leaderboard_id, app_user_id, run_key, score, rank)
      select board.id, c.app_user_id, run.run_key, c.score, c.rank from changed c order by c.app_user_id
      on conflict on constraint realtime_places_pkey do update
         set run_key = excluded.run_key, score = excluded.score, rank = excluded.rank
       where (p.run_key, p.score, p.rank) is distinct from (excluded.run_key, excluded.score, excluded.rank)
      returning p.app_user_id
    )
    select c.* from changed c join kept k on k.app_user_id = c.app_user_id where c.is_known and c.score is not null
     order by c.app_user_id
  loop
    perform internal.publish_many(
      array[target], 'me.changed',
      json_build_object('run_key', run.run_key, 'score', internal.numeric_json(moved.score), 'rank', moved.rank,
                        'previous_rank', case when moved.run_key = run.run_key then moved.was_rank end),
      json_build_object('only', moved.app_user_id));
  end loop;
end $$;
comment on function internal.realtime_board is
  'Publishes top.changed {run_key, entries} when the first ten of the current run changed, and me.changed {run_key,
   score, rank, previous_rank} to each of these subscribers whose score changed, or whose rank among the first ten did.
   Granted to nobody.';

create or replace function api.realtime_boards(boards jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  board record;
begin
  for board in
    select b.id, l.users
      from (select e.value ->> 0 as key, array(select u::uuid from jsonb_array_elements_text(e.value -> 1) u) as users
              from jsonb_array_elements(realtime_boards.boards) e) l
      join app.leaderboards b on b.key = l.key
     order by b.id
  loop
    perform internal.realtime_board(board.id, board.users);
  end loop;
  return internal.reply(200, 'true');
end $$;
comment on function api.realtime_boards is
  'For servers, once a second while somebody listens to leaderboards: looks at leaderboards for their subscribers,
   [[key, [user ids]]].';
