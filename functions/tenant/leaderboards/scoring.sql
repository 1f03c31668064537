-- What submissions make of an entry, by the scoring of its board. The three functions are one expression each, which
-- Postgres puts into the statement or the expression that calls them: a call costs nothing.

create or replace function internal.leaderboard_replaces(scoring text, sign int, place numeric, reached_at timestamptz,
                                                         best numeric, last_at timestamptz)
returns boolean
language sql immutable parallel safe as $$
  select case leaderboard_replaces.scoring
           when 'best' then leaderboard_replaces.place is null
             or leaderboard_replaces.best * leaderboard_replaces.sign < leaderboard_replaces.place
           when 'last' then leaderboard_replaces.place is null
             or leaderboard_replaces.last_at >= leaderboard_replaces.reached_at
           else false end
$$;
comment on function internal.leaderboard_replaces is
  'Whether submissions take the place of an entry, with their metadata. place and reached_at are of the entry, null
   where there is none yet; sign is -1 where a higher score is better. Granted to nobody.';

create or replace function internal.leaderboard_score(scoring text, is_replaced boolean, score numeric, best numeric,
                                                      total numeric, last numeric, submissions bigint)
returns numeric
language sql immutable parallel safe as $$
  select trim_scale(case leaderboard_score.scoring
                      when 'best' then case when leaderboard_score.is_replaced then leaderboard_score.best
                                            else leaderboard_score.score end
                      when 'last' then case when leaderboard_score.is_replaced then leaderboard_score.last
                                            else leaderboard_score.score end
                      when 'sum' then coalesce(leaderboard_score.score, 0) + leaderboard_score.total
                      else coalesce(leaderboard_score.score, 0) + leaderboard_score.submissions end)
$$;
comment on function internal.leaderboard_score is
  'The score of an entry (null: none yet) after submissions. best, sum and count do not depend on the order in which
   they come; last goes by their time. Granted to nobody.';

create or replace function internal.leaderboard_reached(scoring text, is_replaced boolean, score numeric,
                                                        reached_at timestamptz, best numeric, best_at timestamptz,
                                                        total_at timestamptz, last_at timestamptz)
returns timestamptz
language sql immutable parallel safe as $$
  select case leaderboard_reached.scoring
           when 'best' then case when leaderboard_reached.is_replaced then leaderboard_reached.best_at
                                 when leaderboard_reached.best =
                                   leaderboard_reached.score then least(leaderboard_reached.reached_at,
                                                                        leaderboard_reached.best_at)
                                 else leaderboard_reached.reached_at end
           -- a sum is reached by what changes it, an entry by its first submission
           when 'sum' then greatest(leaderboard_reached.reached_at,
                                    case when leaderboard_reached.score is null then leaderboard_reached.last_at
                                         else leaderboard_reached.total_at end)
           else greatest(leaderboard_reached.reached_at, leaderboard_reached.last_at) end
$$;
comment on function internal.leaderboard_reached is
  'When the score of an entry (null: none yet) was reached, after submissions. Granted to nobody.';

create or replace function internal.leaderboard_folded(board app.leaderboards, entry app.leaderboard_entries,
                                                       tally internal.leaderboard_tally)
returns app.leaderboard_entries
language plpgsql stable as $$
declare
  after app.leaderboard_entries := entry;
  sign constant int := case board.sort when 'desc' then -1 else 1 end;
  is_replaced constant boolean := internal.leaderboard_replaces(board.scoring, sign, entry.place, entry.reached_at,
                                                                tally.best, tally.last_at);
begin
  after.score := internal.leaderboard_score(board.scoring, is_replaced, entry.score, tally.best, tally.total,
                                            tally.last, tally.submissions);
  after.place := after.score * sign;
  after.reached_at := internal.leaderboard_reached(board.scoring, is_replaced, entry.score, entry.reached_at,
                                                   tally.best, tally.best_at, tally.total_at,
                                                   tally.last_at);
  after.submissions := coalesce(entry.submissions, 0) + tally.submissions;
  -- what does not replace an entry of best or last leaves its metadata
  after.metadata := case when is_replaced then coalesce(tally.metadata, '{}')
                         when board.scoring in ('best', 'last') then entry.metadata
                         else coalesce(tally.metadata, entry.metadata, '{}') end;
  if after.place < entry.place then
    after.biggest_step := greatest(entry.biggest_step, entry.place - after.place);
  end if;
  return after;
end $$;
comment on function internal.leaderboard_folded is
  'An entry (null: none yet) after submissions, by the board''s scoring.';
