-- What users see of their leagues: their place now, and the results of runs that have ended.

create or replace function internal.league_for_me(id_or_key text) returns app.leagues
language plpgsql stable security definer set search_path = '' as $$
declare
  league app.leagues;
begin
  perform internal.user_id();
  select l.* into league
    from app.leagues l
   where l.is_active and (l.id = internal.as_uuid(league_for_me.id_or_key) or l.key = league_for_me.id_or_key)
   order by l.id = internal.as_uuid(league_for_me.id_or_key) desc nulls last
   limit 1;
  perform internal.check_found(league.id is not null, 'league');
  return league;
end $$;
comment on function internal.league_for_me is
  'An active league by id or key. Refuses 404 NOT_FOUND. Granted to nobody.';

create or replace function internal.league_shown(league app.leagues) returns json
language sql stable as $$
  select json_build_object('id', (league_shown.league).id, 'key', (league_shown.league).key,
                           'name', (league_shown.league).name, 'tiers', (league_shown.league).tiers,
                           'period', (league_shown.league).period, 'timezone', (league_shown.league).timezone,
                           'cohort_size', (league_shown.league).cohort_size)
$$;
comment on function internal.league_shown is 'A league as apps see it.';

create or replace function internal.league_run_now(league app.leagues) returns app.league_runs
language sql stable as $$
  select r.*
    from app.league_runs r
   where r.league_id = (league_run_now.league).id and r.starts_at <= internal.now() and r.ends_at > internal.now()
     and r.closed_at is null
   order by r.starts_at desc, r.id desc
   limit 1
$$;
comment on function internal.league_run_now is 'The run of now, if it has a row. Granted to nobody.';

create or replace function internal.league_current_json(run app.league_runs, app_user_id uuid) returns json
language sql stable as $$
  select json_build_object(
           'run_key', (league_current_json.run).run_key,
           'tier', (league_current_json.run).tiers -> e.tier::int ->> 'key', 'points', internal.numeric_json(k.points),
           'rank', k.rank, 'members', k.members, 'zone', k.zone,
           'starts_at', internal.iso((league_current_json.run).starts_at),
           'ends_at', internal.iso((league_current_json.run).ends_at))
    from app.league_entries e
   cross join lateral internal.league_ladder(league_current_json.run, e.cohort_id, e.tier) k
   where (e.app_user_id, e.run_id) = (league_current_json.app_user_id, (league_current_json.run).id)
     and k.app_user_id = e.app_user_id
$$;
comment on function internal.league_current_json is
  'The place of a user in a run that is open; null before entering. Granted to nobody.';

create or replace function internal.league_result_json(run app.league_runs, entry app.league_entries) returns json
language sql stable as $$
  select json_build_object(
           'run_key', (league_result_json.run).run_key,
           'tier_from', (league_result_json.run).tiers -> (league_result_json.entry).tier::int ->> 'key',
           'tier_to', (league_result_json.run).tiers
                      -> internal.league_tier_after((league_result_json.entry).tier, k.result) ->> 'key',
           'points', internal.numeric_json(k.points), 'rank', k.rank, 'members', k.members, 'result', k.result,
           'closed_at', internal.iso(coalesce((league_result_json.run).closed_at, (league_result_json.run).ends_at)),
           'seen', (league_result_json.entry).is_seen)
    from internal.league_ladder(league_result_json.run, (league_result_json.entry).cohort_id,
                                (league_result_json.entry).tier) k
   where k.app_user_id = (league_result_json.entry).app_user_id
$$;
comment on function internal.league_result_json is 'The result of a member of a run that has ended. Granted to nobody.';

create or replace function internal.league_last(league_id uuid, app_user_id uuid, out run app.league_runs,
                                                out entry app.league_entries)
language sql stable as $$
  select r, e
    from app.league_entries e
    join app.league_runs r on r.id = e.run_id
   where e.league_id = league_last.league_id and e.app_user_id = league_last.app_user_id and e.cohort_id is not null
     and internal.league_is_over(r)
   order by e.began_at desc, e.run_id desc
   limit 1
$$;
comment on function internal.league_last is 'A user''s entry in the newest run that has ended. Granted to nobody.';

create or replace function internal.league_last_json(league_id uuid, app_user_id uuid) returns json
language sql stable as $$
  select internal.league_result_json(l.run, l.entry)
    from internal.league_last(league_last_json.league_id, league_last_json.app_user_id) l
   where (l.run).id is not null
$$;
comment on function internal.league_last_json is 'A user''s newest result, or null. Granted to nobody.';

create or replace function internal.league_mine(league app.leagues, app_user_id uuid) returns json
language sql stable as $$
  select json_build_object(
    'league', internal.league_shown(league_mine.league),
    'current', internal.league_current_json(internal.league_run_now(league_mine.league), league_mine.app_user_id),
    'last_result', internal.league_last_json((league_mine.league).id, league_mine.app_user_id))
$$;
comment on function internal.league_mine is
  'A league with the place and the newest result of a user. Granted to nobody.';

create or replace function api.leagues_list() returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
begin
  return internal.reply(200, (
    select coalesce(json_agg(internal.league_mine(l, me) order by l.created_at, l.id), '[]')
      from app.leagues l
     where l.is_active));
end $$;
comment on function api.leagues_list is
  'The active leagues, oldest first, each with the caller''s place and newest result.';

create or replace function internal.league_cohort_json(run app.league_runs, app_user_id uuid) returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  nameless constant uuid[] := array(select internal.blocked_ids());
begin
  return (
    select coalesce(json_agg(json_build_object(
             'app_user_id', k.app_user_id, 'points', internal.numeric_json(k.points), 'rank', k.rank, 'zone', k.zone,
             'reached_at', internal.iso(k.reached_at),
             'user', json_build_object(
               'id', k.app_user_id, 'display_name', case when u.id <> all (nameless) then u.display_name end,
               'avatar_url', case when u.id <> all (nameless) then u.avatar_url end)) order by k.rank), '[]')
      from app.league_entries e
     cross join lateral internal.league_ladder(league_cohort_json.run, e.cohort_id, e.tier) k
      join app.users u on u.id = k.app_user_id
     where (e.app_user_id, e.run_id) = (league_cohort_json.app_user_id, (league_cohort_json.run).id)
       and k.rank is not null);
end $$;
comment on function internal.league_cohort_json is
  'The cohort of a user in order of rank, without the names of those who are blocked either way. Granted to nobody.';

create or replace function api.league_get(id_or_key text) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  league constant app.leagues := internal.league_for_me(league_get.id_or_key);
begin
  return internal.reply(200, internal.json_merge(
    internal.league_mine(league, me),
    json_build_object('cohort', internal.league_cohort_json(internal.league_run_now(league), me))));
end $$;
comment on function api.league_get is
  'A league with the caller''s place, newest result, and cohort. Refuses 404 NOT_FOUND.';

create or replace function api.league_seen(id_or_key text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  league constant app.leagues := internal.league_for_me(league_seen.id_or_key);
begin
  update app.league_entries e
     set is_seen = true
    from internal.league_last(league.id, me) l
   where (e.app_user_id, e.run_id) = (me, (l.run).id) and not e.is_seen;
  return internal.reply(200, internal.league_last_json(league.id, me));
end $$;
comment on function api.league_seen is
  'Marks the caller''s newest result as seen, and answers it; null without one. Refuses 404 NOT_FOUND.';

create or replace function api.league_history(id_or_key text, page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  league constant app.leagues := internal.league_for_me(league_history.id_or_key);
begin
  return internal.reply_page(
    (select json_agg(internal.league_result_json(h.run, h.entry) order by (h.entry).began_at desc,
                     (h.entry).run_id desc)
       from (select r as run, e as entry
               from app.league_entries e
               join app.league_runs r on r.id = e.run_id
              where e.league_id = league.id and e.app_user_id = me and e.cohort_id is not null
                and internal.league_is_over(r)
              order by e.began_at desc, e.run_id desc
              limit league_history.page_limit offset league_history.page_offset) h),
    (select count(*)
       from app.league_entries e
       join app.league_runs r on r.id = e.run_id
      where e.league_id = league.id and e.app_user_id = me and e.cohort_id is not null and internal.league_is_over(r)),
    league_history.page_offset, league_history.page_limit);
end $$;
comment on function api.league_history is 'The caller''s results, newest first. Refuses 404 NOT_FOUND.';
