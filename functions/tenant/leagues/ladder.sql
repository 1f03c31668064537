-- Ladders: the order within a cohort, and what its run gives each member. All answers and the job read it here.

create or replace function internal.league_ladder(run app.league_runs, cohort_id uuid, tier int)
returns table (app_user_id uuid, points numeric, reached_at timestamptz, rank bigint, members bigint, zone text,
               result text)
language sql stable rows 30 as $$
  select k.app_user_id, k.points, k.reached_at, case k.result when 'pending' then k.rank else k.final_rank end,
         k.members, k.zone,
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

create or replace function internal.league_ladders_of(league_id uuid, app_user_ids uuid[],
                                                       run app.league_runs default null)
returns table (app_user_id uuid, ladder text[])
language sql stable security definer set search_path = '' as $$
  select u.id, coalesce(t.ladder, l.ladder)
    from unnest(league_ladders_of.app_user_ids) as u (id)
    left join app.league_tiers t on (t.app_user_id, t.league_id) = (u.id, league_ladders_of.league_id)
    left join lateral (
      select internal.league_steps(r.tiers, internal.league_tier_after(e.tier, internal.league_result_of(r, e)))
               as ladder
        from app.league_entries e
        join app.league_runs r on r.id = e.run_id
       where t.ladder is null and e.league_id = league_ladders_of.league_id and e.app_user_id = u.id
         and e.cohort_id is not null
         and ((league_ladders_of.run).id is null
              or (e.began_at, e.run_id) < ((league_ladders_of.run).starts_at, (league_ladders_of.run).id))
       order by e.began_at desc, e.run_id desc
       limit 1) l on true
$$;
comment on function internal.league_ladders_of is
  'The tiers up to that of each user: what an administrator has set since, or that of the last run (before one) after
   its result. Null for who was in none. Granted to nobody.';

create or replace function internal.league_begin_at(run app.league_runs, app_user_ids uuid[])
returns table (app_user_id uuid, tier int)
language sql stable security definer set search_path = '' as $$
  select l.app_user_id,
         case when l.ladder is null then 0 else internal.league_fit(l.ladder, (league_begin_at.run).tiers) end
    from internal.league_ladders_of((league_begin_at.run).league_id, league_begin_at.app_user_ids,
                                    league_begin_at.run) l
$$;
comment on function internal.league_begin_at is 'The tier in which each user begins a run. Granted to nobody.';
