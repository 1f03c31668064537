-- Submissions of one user to entries that are there: the short path, for one event or one row of the ledger. What is rarer goes to take.sql.

create or replace function internal.leaderboard_takes(board app.leaderboards, run app.leaderboard_runs, value numeric, at timestamptz) returns boolean
language sql stable as $$
  select ((board).starts_at is null or at >= (board).starts_at) and ((board).ends_at is null or at < (board).ends_at)
     and ((board).min_score is null or (board).scoring = 'count' or value >= (board).min_score)
     and ((board).max_score is null or (board).scoring = 'count' or value <= (board).max_score)
     and ((run).id is null or internal.leaderboard_is_open(run))
$$;
comment on function internal.leaderboard_takes is
  'Whether a board takes a submission of this value and time into a run; whether a run that is still to be made is open is not asked. Granted to nobody.';

create or replace function internal.leaderboards_take_one(facts internal.leaderboard_fact[]) returns void
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  due record;
begin
  select array_agg(b order by r.id) as boards, array_agg(r order by r.id) as runs, array_agg(x order by r.id) as befores,
         array_agg(f.value order by r.id) as scores, array_agg(f.reached_at order by r.id) as reached,
         bool_or(b.segment_id is not null or r.id is null or r.shadow_id is not null or x.run_id is null or x.is_hidden) as is_rare
    into due
    from unnest(leaderboards_take_one.facts) f
    join app.leaderboards b on b.id = f.leaderboard_id
    left join lateral internal.leaderboard_runs_at(b.id, f.place_at) r on true
    left join app.leaderboard_entries x on (x.app_user_id, x.run_id) = (f.app_user_id, r.id)
   where b.is_active and internal.leaderboard_takes(b, r, f.value, f.place_at);
  if due.is_rare then
    perform internal.leaderboards_submit_many(leaderboards_take_one.facts);
  elsif due.boards is not null then
    perform internal.leaderboards_move(due.boards, due.runs, due.befores, due.scores, due.reached);
  end if;
end $$;
comment on function internal.leaderboards_take_one is
  'Submissions of one user, one to each board, where the user has an entry in the run of each; else as internal.leaderboards_submit_many. The user must be locked.
   Granted to nobody.';

create or replace function internal.leaderboards_move(boards app.leaderboards[], runs app.leaderboard_runs[], befores app.leaderboard_entries[],
                                                      scores numeric[], reached timestamptz[])
returns void
language plpgsql volatile as $$
declare
  entries app.leaderboard_entries[] := '{}';
  entry app.leaderboard_entries;
begin
  for i in 1 .. cardinality(boards) loop
    entry := befores[i];
    entry := internal.leaderboard_folded(boards[i], entry, (
      entry.app_user_id, 1, scores[i], reached[i], scores[i], case when scores[i] <> 0 then reached[i] end, scores[i], reached[i],
      null)::internal.leaderboard_tally);
    perform internal.leaderboard_store(entry);
    entries := entries || entry;
  end loop;
  perform internal.leaderboards_tell_one(boards, runs, befores, entries);
end $$;
comment on function internal.leaderboards_move is
  'Takes one submission into each of these entries of one user, stores them and tells of them. The lists go together. The user must be locked. Granted to nobody.';

create or replace function internal.leaderboards_tell_one(boards app.leaderboards[], runs app.leaderboard_runs[], befores app.leaderboard_entries[],
                                                          entries app.leaderboard_entries[])
returns void
language plpgsql volatile as $$
declare
  collects_effects constant boolean := internal.collects_effects();
  ranks record;
  is_news boolean;
begin
  if internal.is_history() then
    perform internal.leaderboards_notify(befores, entries);
    return;
  end if;
  -- a friend may have been passed, or somebody have entered or left the ten best: others are told
  is_news := exists (select from internal.friends_of((entries[1]).app_user_id));
  for i in 1 .. cardinality(entries) loop
    exit when is_news;
    continue when ((befores[i]).place, (befores[i]).reached_at) is not distinct from ((entries[i]).place, (entries[i]).reached_at);
    select ((befores[i]).place, (befores[i]).reached_at, (befores[i]).app_user_id) < (o.place, o.reached_at, o.app_user_id)
           is distinct from ((entries[i]).place, (entries[i]).reached_at, (entries[i]).app_user_id) < (o.place, o.reached_at, o.app_user_id)
      into is_news
      from app.leaderboard_entries o
     where o.run_id = (entries[i]).run_id and not o.is_hidden and o.app_user_id <> (entries[i]).app_user_id
     order by o.place, o.reached_at, o.app_user_id
    offset 9
     limit 1;
    is_news := coalesce(is_news, false);
  end loop;
  if is_news then
    perform internal.leaderboards_notify(befores, entries);
  elsif collects_effects then
    for i in 1 .. cardinality(entries) loop
      ranks := internal.leaderboard_ranks(befores[i], entries[i]);
      if (befores[i]).score is distinct from (entries[i]).score or ranks.previous_rank is distinct from ranks.rank then
        perform internal.add_effect('leaderboards', json_build_object(
          'app_user_id', (entries[i]).app_user_id, 'key', (boards[i]).key, 'score', internal.numeric_json((entries[i]).score), 'rank', ranks.rank,
          'previous_rank', ranks.previous_rank));
      end if;
    end loop;
  end if;
end $$;
comment on function internal.leaderboards_tell_one is
  'After moves of one user, which are stored: notes their effects. Where friends or the ten best are concerned, internal.leaderboards_notify does that and tells.
   Granted to nobody.';
