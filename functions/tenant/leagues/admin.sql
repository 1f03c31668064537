-- What administrators do: look at runs and cohorts, close a run by hand, move a user to a tier, read statistics.

create or replace function internal.league_admin_only() returns void
language plpgsql stable as $$
begin
  perform internal.check_caller('developer', 'runs are managed by administrators');
end $$;
comment on function internal.league_admin_only is 'Raises for anybody but an administrator.';

create or replace function internal.league_run_json(run app.league_runs) returns json
language sql stable as $$
  select json_build_object(
    'key', (league_run_json.run).run_key,
    'status', case when internal.league_is_over(league_run_json.run) then 'closed' else 'open' end,
    'starts_at', internal.iso((league_run_json.run).starts_at), 'ends_at', internal.iso((league_run_json.run).ends_at),
    'closed_at', internal.iso(case when internal.league_is_over(league_run_json.run)
                                   then coalesce((league_run_json.run).closed_at, (league_run_json.run).ends_at) end),
    'members', c.members, 'cohorts', c.cohorts,
    'is_settled', (league_run_json.run).is_settled)
    from (select coalesce(sum(x.members), 0) as members, count(*) as cohorts
            from app.league_cohorts x where x.run_id = (league_run_json.run).id) c
$$;
comment on function internal.league_run_json is 'A run as administrators see it.';

create or replace function internal.league_runs_page(league app.leagues, page_offset int, page_limit int)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.league_admin_only();
  return internal.reply_page(
    (select json_agg(internal.league_run_json(r) order by r.starts_at desc, r.id desc)
       from (select x.*
               from app.league_runs x
              where x.league_id = (league_runs_page.league).id
                and (x.closed_at is not null or exists (select from app.league_cohorts c where c.run_id = x.id))
              order by x.starts_at desc, x.id desc
              limit league_runs_page.page_limit offset league_runs_page.page_offset) r),
    (select count(*)
       from app.league_runs x
      where x.league_id = (league_runs_page.league).id
        and (x.closed_at is not null or exists (select from app.league_cohorts c where c.run_id = x.id))),
    league_runs_page.page_offset, league_runs_page.page_limit);
end $$;
comment on function internal.league_runs_page is 'The body of api.league_runs.';

create or replace function api.league_runs(id_or_key text, page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.league_runs_page(internal.definition_find(null::app.leagues, league_runs.id_or_key),
                                   league_runs.page_offset, league_runs.page_limit)
$$;
comment on function api.league_runs is
  'The runs of a league that have had a member or were closed by hand, newest first. Refuses 404 NOT_FOUND.';

create or replace function internal.league_cohorts_page(league app.leagues, run_key text, tier_key text,
                                                        page_offset int, page_limit int)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  run app.league_runs;
  only_tier int;
begin
  perform internal.league_admin_only();
  select r.* into run
    from app.league_runs r
   where r.league_id = (league_cohorts_page.league).id and r.run_key = league_cohorts_page.run_key;
  perform internal.check_found(run.id is not null, 'run');
  if league_cohorts_page.tier_key is not null then
    only_tier := internal.league_tier_at(run.tiers, league_cohorts_page.tier_key);
    if only_tier is null then
      perform internal.invalid('tier_key', 'must be the key of a tier of this run', 'INVALID_INPUT');
    end if;
  end if;
  return internal.reply_page(
    (select json_agg(json_build_object(
              'id', c.id, 'tier_key', run.tiers -> c.tier::int ->> 'key', 'members', c.members,
              'is_filling', not c.is_full and internal.league_is_open(run)
                            and c.created_at >= internal.league_filling_since(run),
              'created_at', internal.iso(c.created_at),
              'entries', (
                select coalesce(json_agg(json_build_object(
                         'app_user_id', k.app_user_id, 'points', internal.numeric_json(k.points), 'rank', k.rank,
                         'result', case when internal.league_is_over(run) then k.result else 'pending' end)
                         order by k.rank, k.app_user_id), '[]')
                  from internal.league_ladder(run, c.id, c.tier) k)) order by c.tier, c.id)
       from (select x.*
               from app.league_cohorts x
              where x.run_id = run.id and x.tier between coalesce(only_tier, 0) and coalesce(only_tier, 32767)
              order by x.tier, x.id
              limit league_cohorts_page.page_limit offset league_cohorts_page.page_offset) c),
    (select count(*)
       from app.league_cohorts x
      where x.run_id = run.id and x.tier between coalesce(only_tier, 0) and coalesce(only_tier, 32767)),
    league_cohorts_page.page_offset, league_cohorts_page.page_limit);
end $$;
comment on function internal.league_cohorts_page is 'The body of api.league_cohorts.';

create or replace function internal.league_tier_at(tiers jsonb, tier_key text) returns int
language sql immutable as $$
  select (t.n - 1)::int
    from jsonb_array_elements(league_tier_at.tiers) with ordinality as t (value, n)
   where t.value ->> 'key' = league_tier_at.tier_key
$$;
comment on function internal.league_tier_at is 'The place of a tier among others, by its key; null where it is none.';

create or replace function api.league_cohorts(id_or_key text, run_key text, tier_key text default null,
                                              page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.league_cohorts_page(internal.definition_find(null::app.leagues, league_cohorts.id_or_key),
                                      league_cohorts.run_key, league_cohorts.tier_key, league_cohorts.page_offset,
                                      league_cohorts.page_limit)
$$;
comment on function api.league_cohorts is
  'The cohorts of a run with their members in order of rank: the lowest tier first, then the oldest. Refuses 404
   NOT_FOUND, 400 INVALID_INPUT (a tier that the run does not have).';

create or replace function internal.league_close(league app.leagues, run_key text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  at constant timestamptz := internal.now();
  -- with the rules of now, after whoever has closed it meanwhile
  l app.leagues;
  run app.league_runs;
  next app.league_runs;
  until timestamptz;
begin
  perform internal.league_admin_only();
  perform internal.advisory_lock('league_close', (league_close.league).id::text);
  select x.* into l from app.leagues x where x.id = (league_close.league).id for key share;
  perform internal.check_found(l.id is not null, 'league');
  run := internal.league_run_at(l, at);
  if league_close.run_key is not null and run.run_key is distinct from league_close.run_key then
    perform internal.check_found(exists (select from app.league_runs r
                                          where r.league_id = l.id and r.run_key = league_close.run_key), 'run');
    perform internal.fail(409, 'RUN_CLOSED', 'This run is closed already.');
  end if;
  if run.id is null then
    run := internal.league_run_make(run, at);
  end if;
  until := run.ends_at;
  update app.league_runs r set closed_at = at, ends_at = at where r.id = run.id returning r.* into run;
  next := internal.league_run_at(l, at);
  next.starts_at := at;
  next.period_key := run.period_key;
  next.run_key := internal.league_run_key(l.id, run.period_key);
  next.ends_at := until;
  -- events that are on their way count in it
  next.takes_from := at - interval '1 minute';
  perform internal.league_run_make(next, at);
  perform internal.league_turn_later(l, run);
  perform internal.audit('leagues.close_run', 'leagues', l.id::text,
                         json_build_object('run_key', json_build_array(null, run.run_key)), 200);
  return internal.reply(200, internal.league_run_json(run));
end $$;
comment on function internal.league_close is 'The body of api.league_close. Takes the lock of closing the league.';

create or replace function api.league_close(id_or_key text, run_key text default null) returns api.reply
language sql volatile as $$
  select internal.league_close(internal.definition_find(null::app.leagues, league_close.id_or_key),
                               league_close.run_key)
$$;
comment on function api.league_close is
  'Closes the open run now, and begins the next one, which ends with the period; results, rewards and events follow in
   the background. Refuses 404 NOT_FOUND, 409 RUN_CLOSED (the run that is named).';

create or replace function internal.league_user_put(league app.leagues, user_id uuid, tier_key text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  l constant app.leagues := league_user_put.league;
  run app.league_runs;
  was app.league_entries;
  tier int;
  before text[];
begin
  perform internal.league_admin_only();
  perform internal.check_found(internal.lock_users(array[league_user_put.user_id]) is not null, 'user');
  select o.ladder into before from internal.league_ladders_of(l.id, array[league_user_put.user_id]) o;
  run := internal.league_run_now(l);
  select e.* into was
    from app.league_entries e
   where (e.app_user_id, e.run_id) = (league_user_put.user_id, run.id) and e.cohort_id is not null;
  tier := case when was.run_id is not null then internal.league_tier_at(run.tiers, league_user_put.tier_key) end;
  if tier is null and internal.league_tier_at(l.tiers, league_user_put.tier_key) is null then
    perform internal.invalid('tier_key', 'must be the key of a tier of this league');
  end if;
  perform from app.leagues x where x.id = l.id for key share;
  perform internal.check_found(found, 'league');
  -- it says where the next run begins, also for who is a member of this one when this one has no such tier
  insert into app.league_tiers as t (league_id, app_user_id, ladder)
  values (l.id, league_user_put.user_id,
          case when tier is not null then internal.league_steps(run.tiers, tier)
               else internal.league_steps(l.tiers, internal.league_tier_at(l.tiers, league_user_put.tier_key)) end)
  on conflict on constraint league_tiers_pkey do update set ladder = excluded.ladder, created_at = internal.now();
  if tier = was.tier then
    delete from app.league_tiers t where (t.app_user_id, t.league_id) = (league_user_put.user_id, l.id);
  elsif tier is not null then
    update app.league_entries e
       set cohort_id = s.cohorts[1], tier = s.tiers[1]
      from internal.league_seats(run, array[league_user_put.user_id]) s
     where (e.app_user_id, e.run_id) = (league_user_put.user_id, run.id);
    perform internal.league_seats_leave(array[was.cohort_id]);
  end if;
  perform internal.audit('leagues.user_tier', 'users', league_user_put.user_id::text, json_build_object(
    'league', json_build_array(null, l.key),
    'tier', json_build_array(before[cardinality(before)], league_user_put.tier_key)));
  return internal.reply(200, json_build_object('app_user_id', league_user_put.user_id,
                                               'tier_key', league_user_put.tier_key));
end $$;
comment on function internal.league_user_put is 'The body of api.league_user_put. Locks the user.';

create or replace function api.league_user_put(id_or_key text, user_id uuid, tier_key text) returns api.reply
language sql volatile as $$
  select internal.league_user_put(internal.definition_find(null::app.leagues, league_user_put.id_or_key),
                                  league_user_put.user_id, league_user_put.tier_key)
$$;
comment on function api.league_user_put is
  'Puts a user into a tier: at once with the points, where the user is in the open run, else where the next one begins.
   Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR (a tier that there is not).';

create or replace function internal.league_stats(league app.leagues) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  run constant app.league_runs := internal.league_run_at(league_stats.league, internal.now());
begin
  perform internal.league_admin_only();
  return internal.reply(200, json_build_object('run_key', run.run_key, 'tiers', (
    select json_agg(json_build_object(
             'tier_key', t.value ->> 'key', 'users', s.users,
             'median_points', internal.numeric_json(trim_scale(s.median::numeric)),
             'promotion_cutoff', internal.numeric_json(s.cutoff)) order by t.n)
      from jsonb_array_elements(run.tiers) with ordinality as t (value, n)
     cross join lateral (
       select count(*) as users, percentile_cont(0.5) within group (order by k.points::float8) as median,
              min(k.points) filter (where k.zone = 'promotion') as cutoff
         from app.league_cohorts c
        cross join lateral internal.league_ladder(run, c.id, c.tier) k
        where c.run_id = run.id and c.tier = t.n - 1) s)));
end $$;
comment on function internal.league_stats is 'The body of api.league_stats.';

create or replace function api.league_stats(id_or_key text) returns api.reply
language sql stable as $$
  select internal.league_stats(internal.definition_find(null::app.leagues, league_stats.id_or_key))
$$;
comment on function api.league_stats is
  'Users, median points and the least points that are promoted, of each tier of the open run, lowest first. Refuses 404
   NOT_FOUND.';
