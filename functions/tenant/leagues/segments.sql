-- Tiers as a source of segment rules.
create or replace function internal.league_standings(key text) returns table (app_user_id uuid, value text)
language sql stable as $$
  select s.app_user_id, l.tiers -> internal.league_fit(s.ladder, l.tiers) ->> 'key'
    from app.leagues l
   cross join lateral (
     select distinct on (o.app_user_id) o.app_user_id, o.ladder
       from (select t.app_user_id, t.ladder, null::timestamptz as began_at, null::uuid as run_id
               from app.league_tiers t
              where t.league_id = l.id
             union all
             select e.app_user_id,
                    internal.league_steps(r.tiers,
                                          internal.league_tier_after(e.tier, internal.league_result_of(r, e))),
                    e.began_at, e.run_id
               from (select distinct on (x.app_user_id) x.*
                       from app.league_entries x
                      where x.league_id = l.id and x.cohort_id is not null
                      order by x.app_user_id, x.began_at desc, x.run_id desc) e
               join app.league_runs r on r.id = e.run_id) o
      order by o.app_user_id, o.began_at desc nulls first) s
   where l.key = league_standings.key
$$;
comment on function internal.league_standings is
  'The key of the tier in which the next run would begin for each user who was in a run of a league, or was given a
   tier. The run that is open has no result yet. Granted to nobody.';

create or replace function internal.segment_source__league(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__league.leaf, segment_source__league.place,
    exists (select from app.leagues l where l.key = segment_source__league.leaf ->> 'key'),
    'must be the key of a league');
  return internal.segment_operand('text', members => format(
    'select s.app_user_id, s.value from internal.league_standings(%s ->> ''key'') s',
    segment_source__league.parameter));
end $$;
comment on function internal.segment_source__league is
  'Leaves on a user''s tier in a league, by the keys of both; null for a user who was never in it.';
