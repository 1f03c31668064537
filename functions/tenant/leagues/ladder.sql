-- Ladders: the order within a cohort, and what its run gives each member. All answers and the job read it here.

create or replace function internal.league_ladder(run app.league_runs, cohort_id uuid, tier int)
returns table (app_user_id uuid, points numeric, reached_at timestamptz, rank bigint, members bigint, zone text,
               result text)
language sql stable rows 30 as $$
  select k.app_user_id, k.points, k.reached_at, coalesce(k.final_rank, k.rank), k.members, k.zone,
         case when k.result <> 'pending' then k.result
              else case k.zone when 'promotion' then 'promoted' when 'relegation' then 'relegated' else 'stayed' end end
    from (select p.*,
                 case when p.rank is null then null
                      when not p.is_highest and p.rank <= p.promotes and p.points > 0 then 'promotion'
                      when p.is_lowest then 'safe'
                      when p.points = 0 and (league_ladder.run).inactive_relegates then 'relegation'
                      when p.members >= 5 and p.rank > p.members - p.relegates then 'relegation'
                      else 'safe' end as zone
            from (select e.app_user_id, e.points, e.reached_at, e.result, e.final_rank,
                         case when not e.is_hidden
                              then row_number() over (order by e.is_hidden, e.points desc, e.reached_at, e.app_user_id)
                              end as rank,
                         count(*) filter (where not e.is_hidden) over () as members,
                         league_ladder.tier = 0 as is_lowest,
                         league_ladder.tier = jsonb_array_length((league_ladder.run).tiers) - 1 as is_highest,
                         ((league_ladder.run).tiers -> league_ladder.tier ->> 'promote_count')::int as promotes,
                         ((league_ladder.run).tiers -> league_ladder.tier ->> 'relegate_count')::int as relegates
                    from app.league_entries e
                   where e.run_id = (league_ladder.run).id and e.cohort_id = league_ladder.cohort_id) p) k
$$;
comment on function internal.league_ladder is
  'The members of a cohort with their ranks, where closing now would take them (zone), and their result: the stored one,
   or where there is none yet that of closing now. Who is banned has neither rank nor zone, and stays. Granted to
   nobody.';

create or replace function internal.league_tier_after(tier int, result text) returns int
language sql immutable as $$
  select league_tier_after.tier
         + case league_tier_after.result when 'promoted' then 1 when 'relegated' then -1 else 0 end
$$;
comment on function internal.league_tier_after is 'The tier that a result leads to.';

create or replace function internal.league_result_of(run app.league_runs, entry app.league_entries) returns text
language sql stable as $$
  select case when (league_result_of.entry).result <> 'pending' then (league_result_of.entry).result
              when not internal.league_is_over(league_result_of.run) then 'pending'
              else (select k.result
                      from internal.league_ladder(league_result_of.run, (league_result_of.entry).cohort_id,
                                                  (league_result_of.entry).tier) k
                     where k.app_user_id = (league_result_of.entry).app_user_id) end
$$;
comment on function internal.league_result_of is
  'The result of a member of a run: pending while it lasts, also before the job has stored it. Granted to nobody.';

create or replace function internal.league_steps(tiers jsonb, up_to int) returns text[]
language sql immutable as $$
  select array(select t.value ->> 'key' from jsonb_array_elements(league_steps.tiers) with ordinality as t (value, n)
                where t.n <= league_steps.up_to + 1 order by t.n)
$$;
comment on function internal.league_steps is 'The keys of the tiers up to one, lowest first.';

create or replace function internal.league_fit(ladder text[], tiers jsonb) returns int
language sql immutable as $$
  select coalesce((
    select (t.n - 1)::int
      from unnest(league_fit.ladder) with ordinality as s (key, n)
      join jsonb_array_elements(league_fit.tiers) with ordinality as t (value, n) on t.value ->> 'key' = s.key
     order by s.n desc
     limit 1), 0)
$$;
comment on function internal.league_fit is
  'The place among tiers of the last key of a ladder; where that tier is no more, of the nearest below it that is, else
   of the lowest.';

create or replace function internal.league_ladder_of(league_id uuid, app_user_id uuid, run app.league_runs default null)
returns text[]
language plpgsql stable security definer set search_path = '' as $$
declare
  steps text[];
  last record;
begin
  select t.ladder into steps
    from app.league_tiers t
   where (t.app_user_id, t.league_id) = (league_ladder_of.app_user_id, league_ladder_of.league_id);
  if found then
    return steps;
  end if;
  select e as entry, r as run into last
    from app.league_entries e
    join app.league_runs r on r.id = e.run_id
   where e.league_id = league_ladder_of.league_id and e.app_user_id = league_ladder_of.app_user_id
     and e.cohort_id is not null
     and ((league_ladder_of.run).id is null
          or (e.began_at, e.run_id) < ((league_ladder_of.run).starts_at, (league_ladder_of.run).id))
   order by e.began_at desc, e.run_id desc
   limit 1;
  if not found then
    return null;
  end if;
  return internal.league_steps((last.run).tiers, internal.league_tier_after((last.entry).tier,
                                                   internal.league_result_of(last.run, last.entry)));
end $$;
comment on function internal.league_ladder_of is
  'The tiers up to that of a user: what an administrator has set since, or that of the last run (before one) after its
   result. Null for who was in none. Granted to nobody.';
