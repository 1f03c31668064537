-- From submissions to entries: every score is written here, with its user locked, so that writes of one user never
-- race.

create or replace function internal.leaderboard_store(e app.leaderboard_entries) returns void
language plpgsql volatile as $$
begin
  update app.leaderboard_entries x
     set score = e.score, place = e.place, reached_at = e.reached_at, submissions = e.submissions,
       metadata = e.metadata, biggest_step = e.biggest_step,
         window_started_at = e.window_started_at, window_count = coalesce(e.window_count, 0)
   where (x.app_user_id, x.run_id) = (e.app_user_id, e.run_id);
  if found then
    perform internal.leaderboard_fold_by_chance(e.run_id, 1);
    return;
  end if;
  -- a run that goes away at this moment takes no entry
  perform from app.leaderboard_runs r where r.id = e.run_id for key share;
  if found then
    insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at, submissions, metadata,
                                         is_hidden, biggest_step, window_started_at,
                                         window_count, created_at)
    values (e.run_id, e.app_user_id, e.score, e.place, e.reached_at, e.submissions, e.metadata,
            (select u.is_banned from app.users u where u.id = e.app_user_id), e.biggest_step, e.window_started_at,
            coalesce(e.window_count, 0),
            internal.now());
  end if;
end $$;
comment on function internal.leaderboard_store is
  'Stores the new values of an entry. The user must be locked. Granted to nobody.';

create or replace function internal.leaderboard_put(board app.leaderboards, run app.leaderboard_runs,
                                                    tally internal.leaderboard_tally, max_per_minute int default null,
                                                    out was app.leaderboard_entries, out entry app.leaderboard_entries)
language plpgsql volatile as $$
declare
  shadow app.leaderboard_entries;
begin
  select e.* into was
    from app.leaderboard_entries e
   where (e.app_user_id, e.run_id) = ((leaderboard_put.tally).app_user_id, (leaderboard_put.run).id);
  entry := was;
  entry.run_id := (leaderboard_put.run).id;
  entry.app_user_id := (leaderboard_put.tally).app_user_id;
  entry := internal.leaderboard_folded(leaderboard_put.board, entry, leaderboard_put.tally);
  if leaderboard_put.max_per_minute is not null then
    if was.window_started_at > internal.now() - interval '1 minute' then
      if was.window_count >= leaderboard_put.max_per_minute then
        perform internal.fail(429, 'RATE_LIMITED', 'Too many scores in a minute.', null,
                              json_build_object('Retry-After', greatest(1, ceil(
          extract(epoch from was.window_started_at + interval '1 minute' - internal.now())))::text));
      end if;
      entry.window_count := was.window_count + 1;
    else
      entry.window_started_at := internal.now();
      entry.window_count := 1;
    end if;
  end if;
  perform internal.leaderboard_store(entry);
  if (leaderboard_put.run).shadow_id is not null then
    -- in either order with the rebuild's read of the log: the rebuild sets what it reads, and this adds to the stored
    -- entry
    select e.* into shadow
      from app.leaderboard_entries e
     where (e.app_user_id, e.run_id) = ((leaderboard_put.tally).app_user_id, (leaderboard_put.run).shadow_id);
    shadow.run_id := (leaderboard_put.run).shadow_id;
    shadow.app_user_id := (leaderboard_put.tally).app_user_id;
    perform internal.leaderboard_store(internal.leaderboard_folded(leaderboard_put.board, shadow,
                                                                   leaderboard_put.tally));
  end if;
end $$;
comment on function internal.leaderboard_put is
  'Adds submissions to a user''s entry in a run, and in its shadow during a rebuild; returns the entry before and after.
   The entry itself counts max_per_minute, from the first submission of a minute: refuses 429 RATE_LIMITED. The user
   must be locked. Granted to nobody.';

create or replace function internal.leaderboard_rank_before(run_id uuid, app_user_id uuid, place numeric,
                                                            reached_at timestamptz, place_was numeric,
                                                            reached_was timestamptz, rank numeric)
returns setof bigint
language sql stable rows 1 as $$
  -- those between both places were passed; where these are many, the former place is looked up like the present one
  select case when passed.n < 300 then (leaderboard_rank_before.rank + case when way.is_up then passed.n
                                        else - passed.n end)::bigint
              else internal.leaderboard_rank(leaderboard_rank_before.run_id, leaderboard_rank_before.place_was,
                                             leaderboard_rank_before.reached_was,
                                             leaderboard_rank_before.app_user_id) - way.is_up::int end
    from (select (leaderboard_rank_before.place, leaderboard_rank_before.reached_at)
                 < (leaderboard_rank_before.place_was, leaderboard_rank_before.reached_was) as is_up) way
   cross join lateral (
     select count(*) as n
       from (select from app.leaderboard_entries e
              where e.run_id = leaderboard_rank_before.run_id and not e.is_hidden
                and (e.place, e.reached_at, e.app_user_id)
                    > (case when way.is_up then leaderboard_rank_before.place
                            else leaderboard_rank_before.place_was end,
                       case when way.is_up then leaderboard_rank_before.reached_at
                            else leaderboard_rank_before.reached_was end,
                       leaderboard_rank_before.app_user_id)
                and (e.place, e.reached_at, e.app_user_id)
                    < (case when way.is_up then leaderboard_rank_before.place_was
                            else leaderboard_rank_before.place end,
                       case when way.is_up then leaderboard_rank_before.reached_was
                            else leaderboard_rank_before.reached_at end,
                       leaderboard_rank_before.app_user_id)
              limit 300) e) passed
$$;
comment on function internal.leaderboard_rank_before is
  'The rank that a user had in a run before a move, among the others'' current entries, from the rank after it. Neither
   definer nor with settings, so that it becomes part of the statement that asks. Granted to nobody.';

create or replace function internal.leaderboard_ranks(was app.leaderboard_entries, entry app.leaderboard_entries,
                                                      out rank bigint, out previous_rank bigint)
language plpgsql stable security definer
set search_path = '' set plan_cache_mode = 'force_generic_plan' set enable_seqscan = off
  set enable_bitmapscan = off as $$
begin
  if entry.is_hidden then
    return;
  end if;
  -- among the current entries of others, and in one statement, so of one snapshot
  select k.rank, p.rank
    into rank, previous_rank
    from (select 1 + coalesce(sum(b.n), 0) as rank
            from internal.leaderboard_before(entry.run_id, entry.place, entry.reached_at, entry.app_user_id) as b (n)) k
    left join lateral internal.leaderboard_rank_before(entry.run_id, entry.app_user_id, entry.place, entry.reached_at,
                                                       was.place, was.reached_at, k.rank) as p (rank)
           on was.score is not null;
end $$;
comment on function internal.leaderboard_ranks is 'Ranks after and before a move, of one moment. Granted to nobody.';

create or replace function internal.leaderboard_moved(board app.leaderboards, run app.leaderboard_runs,
                                                      was app.leaderboard_entries, entry app.leaderboard_entries,
                                                      out rank bigint, out previous_rank bigint)
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan'
  set enable_seqscan = off as $$
declare
  ranks constant record := internal.leaderboard_ranks(was, entry);
  passed uuid[];
  displaced uuid;
begin
  rank := ranks.rank;
  previous_rank := ranks.previous_rank;
  if rank is not distinct from previous_rank or internal.is_history() then
    return;
  end if;
  -- the job emits events of other users, for these are not locked
  if rank < coalesce(previous_rank, rank + 1) then
    select array_agg(f.app_user_id) into passed
      from internal.friends_of(entry.app_user_id) as o (id)
      join app.leaderboard_entries f on (f.app_user_id, f.run_id) = (o.id, entry.run_id)
     where not f.is_hidden and (f.place, f.reached_at, f.app_user_id) > (entry.place, entry.reached_at,
                                                                         entry.app_user_id)
       and (was.score is null or (f.place, f.reached_at, f.app_user_id) < (was.place, was.reached_at, was.app_user_id));
  end if;
  if (rank <= 10) <> coalesce(previous_rank <= 10, false) then
    -- the user at the edge of the top 10 now was on its other side before
    select f.app_user_id into displaced
      from app.leaderboard_entries f
     where f.run_id = entry.run_id and not f.is_hidden
     order by f.place, f.reached_at, f.app_user_id
    offset case when rank <= 10 then 10 else 9 end
     limit 1;
    perform internal.emit(entry.app_user_id, 'svc.leaderboard.rank_changed', jsonb_build_object(
      'leaderboard_id', board.id, 'key', board.key, 'run_key', run.run_key,
      'score', entry.score, 'rank', rank, 'previous_rank', previous_rank,
      'reason', case when rank <= 10 then 'entered_top_10' else 'left_top_10' end));
  end if;
  if passed is not null or displaced is not null then
    perform internal.enqueue('leaderboards__notify', internal.new_id()::text, jsonb_build_object(
      'run_id', entry.run_id, 'by', entry.app_user_id, 'passed', coalesce(passed, '{}'), 'displaced', displaced,
      'displaced_reason', case when rank <= 10 then 'left_top_10' else 'entered_top_10' end));
  end if;
end $$;
comment on function internal.leaderboard_moved is
  'Ranks before and after, of one snapshot, and who is notified of the move: the user who enters the top 10 or leaves
   it, and by a job the user who was displaced there, and friends who were passed. Granted to nobody.';

create or replace function internal.leaderboard_admits(board app.leaderboards, app_user_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  return (leaderboard_admits.board).segment_id is null
      or (leaderboard_admits.board).segment_id
         = any (internal.segments_holding(array[(leaderboard_admits.board).segment_id],
                                          leaderboard_admits.app_user_id));
end $$;
comment on function internal.leaderboard_admits is
  'Whether a board admits a user: all users, or the present members of its segment. Granted to nobody.';

create or replace function internal.leaderboard_tallied(facts internal.leaderboard_fact[], sort text)
returns internal.leaderboard_tally
language sql stable as $$
  select (min(f.app_user_id::text)::uuid, count(*), (best.value), best.reached_at, sum(f.value),
          max(f.reached_at) filter (where f.value <> 0),
          last.value, last.reached_at, null)::internal.leaderboard_tally
    from unnest(leaderboard_tallied.facts) f
   cross join lateral (
     select b.value, b.reached_at
       from unnest(leaderboard_tallied.facts) b
      order by case leaderboard_tallied.sort when 'desc' then -b.value else b.value end, b.reached_at
      limit 1) best
   cross join lateral (
     select l.value, l.reached_at from unnest(leaderboard_tallied.facts) l order by l.reached_at desc, l.source_id desc
      limit 1) last
   group by best.value, best.reached_at, last.value, last.reached_at
$$;
comment on function internal.leaderboard_tallied is 'Aggregates the submissions of one user.';

create or replace function internal.leaderboard_value(board app.leaderboards, event_name text, properties jsonb)
returns numeric
language plpgsql stable as $$
declare
  s constant jsonb := (leaderboard_value.board).source;
  p constant jsonb := leaderboard_value.properties;
  adds constant boolean := (leaderboard_value.board).scoring in ('sum', 'count');
  value jsonb;
  number numeric;
begin
  case s ->> 'type'
    when 'event' then
      if s ? 'filter' and s -> 'filter' <> 'null' and not coalesce(internal.filter_truth(s -> 'filter', p), false) then
        return null;
      elsif s ->> 'value_property' is null or (leaderboard_value.board).scoring = 'count' then
        return 1;
      end if;
      value := p #> string_to_array(s ->> 'value_property', '.');
    when 'currency' then
      if p ->> 'currency_code' is distinct from s ->> 'currency_code'
        or adds and leaderboard_value.event_name = 'svc.currency.debited' then
        return null;
      end if;
      value := p -> case when adds then 'amount' else 'balance' end;
    when 'streak' then
      if p ->> 'key' is distinct from s ->> 'streak_key' then
        return null;
      elsif adds then
        return 1;
      end if;
      value := p -> 'current_count';
    else
      return null;
  end case;
  if jsonb_typeof(value) is distinct from 'number' then
    return null;
  end if;
  number := (value #>> '{}')::numeric;
  return case when abs(number) <= 1e18 then round(number, 9) end;
end $$;
comment on function internal.leaderboard_value is
  'The value that an event submits to a board: its property (1 without one), the current balance or streak, or for sums
   the added amount. Null: none.';

create or replace function internal.leaderboard_facts(events app.engagement_events[], pairs text[] default null)
returns internal.leaderboard_fact[]
language sql stable as $$
  select array_agg((b.id, i.app_user_id, v.value, least(i.occurred_at, i.received_at),
                    internal.xp_counted_at(i.source, i.occurred_at, i.received_at),
                    i.id)::internal.leaderboard_fact)
    from unnest(leaderboard_facts.events) i
    join app.leaderboards b on b.is_active and i.event_name = any (b.watches)
   -- worked out once
   cross join lateral (
     select case when b.source ->> 'type' = 'event' and not b.source ? 'filter'
                 and (b.scoring = 'count' or b.source ->> 'value_property' is null) then 1
                 else internal.leaderboard_value(b, i.event_name, i.properties) end as value
     offset 0) v
   -- history moves no board
   where not i.is_historical and v.value is not null
     -- an array would be searched for each, a subselect is hashed
     and (leaderboard_facts.pairs is null
          or i.app_user_id || ' ' || b.id in (select unnest(leaderboard_facts.pairs)))
$$;
comment on function internal.leaderboard_facts is
  'What events submit to the boards that watch them, or to pairs of a user and a board alone: both ids, with a space
   between them. Granted to nobody.';

create or replace function internal.on_events__60_leaderboards(events app.engagement_events[]) returns void
language plpgsql volatile set plan_cache_mode = 'auto' as $$
begin
  if not internal.event_hooks_may_run()
     or not exists (select from app.leaderboards b
                     where b.is_active and exists (select from unnest(on_events__60_leaderboards.events) i
                                                    where i.event_name = any (b.watches))) then
    return;
  end if;
  if internal.runs_sets() then
    perform internal.leaderboards_submit_many(internal.leaderboard_facts(on_events__60_leaderboards.events));
  else
    perform internal.leaderboards_count(on_events__60_leaderboards.events);
  end if;
end $$;
comment on function internal.on_events__60_leaderboards is 'Events submit scores to the boards that watch them.';

create or replace function internal.on_event__60_leaderboards(event app.engagement_events, plan uuid[]) returns void
language plpgsql volatile as $$
begin
  perform internal.leaderboards_take(
    (on_event__60_leaderboards.event).app_user_id, on_event__60_leaderboards.plan, null,
      (on_event__60_leaderboards.event).event_name,
    (on_event__60_leaderboards.event).properties,
    least((on_event__60_leaderboards.event).occurred_at, (on_event__60_leaderboards.event).received_at),
    internal.xp_counted_at((on_event__60_leaderboards.event).source, (on_event__60_leaderboards.event).occurred_at,
                           (on_event__60_leaderboards.event).received_at),
    (on_event__60_leaderboards.event).id);
end $$;
comment on function internal.on_event__60_leaderboards is
  'An event submits scores to the boards that watch it.';

create or replace function internal.event_plan__leaderboards() returns table (event_name text, plan uuid[])
language sql stable as $$
  select w.event_name, array_agg(distinct b.id)
    from app.leaderboards b
   cross join lateral unnest(b.watches) as w (event_name)
   where b.is_active
   group by 1
$$;
comment on function internal.event_plan__leaderboards is 'The active boards that watch an event. Granted to nobody.';

create or replace trigger tg_leaderboards__event_plans
  after insert or delete or update of is_active, source, watches on app.leaderboards
  for each statement execute function internal.tg_event_plans();

create or replace function internal.tg_xp_transactions__leaderboards() returns trigger
language plpgsql volatile security definer set search_path = '' set plan_cache_mode = 'force_generic_plan' as $$
declare
  facts internal.leaderboard_fact[];
  one record;
begin
  if not exists (select from app.leaderboards b where b.is_active and b.source ->> 'type' = 'xp')
    or internal.is_history() then
    return null;
  end if;
  -- one row of the ledger is one submission to each board
  if (select count(*) from inserted) = 1 and not internal.runs_sets() then
    select i.id, i.app_user_id, least(i.occurred_at, i.created_at) as place_at, i.counted_at, array_agg(b.id) as boards,
           array_agg(case when b.scoring in ('sum', 'count') then i.amount else i.total_after end::numeric) as scores
      into one
      from inserted i
      join app.leaderboards b on b.is_active and b.source ->> 'type' = 'xp'
     where i.source <> 'merge' and i.amount <> 0
     group by 1, 2, 3, 4;
    if found then
      perform internal.leaderboards_take(one.app_user_id, one.boards, one.scores, null, null, one.place_at,
                                         one.counted_at, one.id);
    end if;
    return null;
  end if;
  select array_agg((b.id, i.app_user_id, case when b.scoring in ('sum', 'count') then i.amount else i.total_after end,
                    least(i.occurred_at, i.created_at), i.counted_at, i.id)::internal.leaderboard_fact)
    into facts
    from inserted i
    join app.leaderboards b on b.is_active and b.source ->> 'type' = 'xp'
   where i.source <> 'merge' and i.amount <> 0;
  perform internal.leaderboards_submit_many(facts);
  return null;
end $$;
comment on function internal.tg_xp_transactions__leaderboards is
  'Submits rows of the XP ledger to its boards: totals to boards with the scoring best or last, amounts, including
   debits, to boards with the scoring sum.';

create or replace trigger tg_xp_transactions__leaderboards
  after insert on app.xp_transactions
  referencing new table as inserted
  for each statement execute function internal.tg_xp_transactions__leaderboards();

create or replace function internal.tg_users__leaderboards() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.leaderboard_entries e set is_hidden = new.is_banned
    where e.app_user_id = new.id and e.is_hidden <> new.is_banned;
  return null;
end $$;
comment on function internal.tg_users__leaderboards is
  'Hides entries of banned users, so that ranks close up, and shows them again at their former place after the ban.';

create or replace trigger tg_users__leaderboards
  after update of is_banned on app.users
  for each row when (old.is_banned is distinct from new.is_banned)
  execute function internal.tg_users__leaderboards();

create or replace function internal.merge__leaderboards(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  theirs record;
  moved int := 0;
begin
  for theirs in
    select e, r as run, b as board
      from app.leaderboard_entries e
      join app.leaderboard_runs r on r.id = e.run_id
      join app.leaderboards b on b.id = r.leaderboard_id
     where e.app_user_id = merge__leaderboards.other
     order by b.id, r.id
  loop
    -- old runs go without a word to anybody
    perform from app.leaderboard_runs r where r.id = (theirs.run).id for key share;
    continue when not found;
    if not internal.leaderboard_is_open(theirs.run) then
      -- what is over stays as it was, under the name that is left
      insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at, submissions, metadata,
                                           is_hidden, biggest_step, final_rank, created_at)
      select (theirs.e).run_id, merge__leaderboards.survivor, (theirs.e).score, (theirs.e).place, (theirs.e).reached_at,
             (theirs.e).submissions,
             (theirs.e).metadata, (theirs.e).is_hidden, (theirs.e).biggest_step, (theirs.e).final_rank,
             (theirs.e).created_at
      on conflict do nothing;
    elsif (theirs.run).state = 'live' then
      perform internal.leaderboard_put(theirs.board, theirs.run, (
        merge__leaderboards.survivor, (theirs.e).submissions, (theirs.e).score, (theirs.e).reached_at, (theirs.e).score,
          (theirs.e).reached_at,
        (theirs.e).score, (theirs.e).reached_at, (theirs.e).metadata)::internal.leaderboard_tally);
    end if;
    moved := moved + 1;
  end loop;
  return moved;
end $$;
comment on function internal.merge__leaderboards is
  'Unites two users'' entries by the scoring of each board: the better, the sum, the later. In runs that are over the
   survivor''s stays. Granted to nobody.';
