-- Reads of boards: pages of entries, anywhere in a run, around a user, among friends or in a group.

create or replace function internal.leaderboard_entry_json(e app.leaderboard_entries, rank bigint, display_name text,
                                                           avatar_url text)
returns json
language sql stable parallel safe
return json_build_object(
  'app_user_id', (leaderboard_entry_json.e).app_user_id,
    'score', internal.numeric_json((leaderboard_entry_json.e).score), 'rank', leaderboard_entry_json.rank,
  'submissions', (leaderboard_entry_json.e).submissions,
  'reached_at', internal.iso((leaderboard_entry_json.e).reached_at),
  'metadata', (leaderboard_entry_json.e).metadata,
  'user', json_build_object('id', (leaderboard_entry_json.e).app_user_id,
                            'display_name', leaderboard_entry_json.display_name,
                            'avatar_url', leaderboard_entry_json.avatar_url));
comment on function internal.leaderboard_entry_json is
  'The JSON of an entry in responses. A single expression, which the planner inlines into the query of a page. Granted
   to nobody.';

create or replace function internal.leaderboard_entry_shown(e app.leaderboard_entries, rank bigint) returns json
language plpgsql stable as $$
begin
  return (select internal.leaderboard_entry_json(leaderboard_entry_shown.e, leaderboard_entry_shown.rank,
                                                 u.display_name, u.avatar_url)
            from app.users u
           where u.id = (leaderboard_entry_shown.e).app_user_id);
end $$;
comment on function internal.leaderboard_entry_shown is 'A single entry as answers show it. Granted to nobody.';

create or replace function internal.leaderboard_entry_of(run_id uuid, app_user_id uuid,
                                                         out entry app.leaderboard_entries, out rank bigint)
language plpgsql stable security definer set search_path = '' as $$
begin
  select e.* into entry
    from app.leaderboard_entries e
   where (e.app_user_id, e.run_id) = (leaderboard_entry_of.app_user_id, leaderboard_entry_of.run_id)
     and not e.is_hidden;
  if entry.run_id is not null then
    rank := coalesce(entry.final_rank, internal.leaderboard_rank(entry.run_id, entry.place, entry.reached_at,
                                                                 entry.app_user_id));
  end if;
end $$;
comment on function internal.leaderboard_entry_of is
  'A user''s visible entry in a run with its rank, the final one where the run is over. Granted to nobody.';

create or replace function internal.leaderboard_start(total bigint, place_of bigint, page_limit bigint) returns bigint
language sql immutable parallel safe
-- a full page also near the end
return greatest(0, least(leaderboard_start.place_of - 1 - (leaderboard_start.page_limit - 1) / 2,
                         leaderboard_start.total - leaderboard_start.page_limit));
comment on function internal.leaderboard_start is 'The offset of a page that has a given position in its middle.';

create or replace function internal.leaderboard_page(run app.leaderboard_runs, around uuid, page_offset bigint,
                                                     page_limit bigint, viewer uuid)
returns json
language plpgsql stable security definer set search_path = '' set plan_cache_mode = 'force_generic_plan'
  set enable_seqscan = off as $$
declare
  r constant app.leaderboard_runs := leaderboard_page.run;
  total constant bigint := internal.leaderboard_total(r.id);
  mine constant record := internal.leaderboard_entry_of(r.id, leaderboard_page.viewer);
  nameless constant uuid[] := array(select internal.blocked_ids());
  centre record;
  place_of bigint;
  starts bigint;
  -- from where entries are read, how many there are before it, and how many of the page are among those
  here record;
  back bigint;
  page json;
begin
  if leaderboard_page.around is null then
    starts := leaderboard_page.page_offset;
    here := internal.leaderboard_seek(r.id, starts);
  else
    centre := case when leaderboard_page.around = leaderboard_page.viewer then mine
                   else internal.leaderboard_entry_of(r.id, leaderboard_page.around) end;
    if (centre.entry).run_id is null then
      perform internal.fail(404, 'NOT_FOUND', 'There is no such entry.');
    end if;
    -- by position: a final rank may have gaps before it
    place_of := case when (centre.entry).final_rank is null then centre.rank
                     else internal.leaderboard_rank(r.id, (centre.entry).place, (centre.entry).reached_at,
                                                    (centre.entry).app_user_id) end;
    starts := internal.leaderboard_start(total, place_of, leaderboard_page.page_limit);
    select ((centre.entry).place, (centre.entry).reached_at,
            (centre.entry).app_user_id)::internal.leaderboard_bound as bound, place_of - 1 as before
      into here;
  end if;
  back := greatest(here.before - starts, 0);
  -- a lookup by key for each user instead of a join: a generic plan estimates a page as a tenth of the run
  select json_agg(internal.leaderboard_entry_json(p.e, coalesce((p.e).final_rank, starts + p.n), u.display_name,
                                                  u.avatar_url) order by p.n) into page
    from (select o.e, row_number() over (order by (o.e).place, (o.e).reached_at, (o.e).app_user_id) as n
            from ((select e
                     from app.leaderboard_entries e
                    where e.run_id = r.id and not e.is_hidden
                      and (e.place, e.reached_at, e.app_user_id) < ((here.bound).from_place, (here.bound).from_at,
                                                                    (here.bound).from_id)
                    order by e.place desc, e.reached_at desc, e.app_user_id desc
                    limit back)
                  union all
                  (select e
                     from app.leaderboard_entries e
                    where e.run_id = r.id and not e.is_hidden
                      and (e.place, e.reached_at, e.app_user_id) >= ((here.bound).from_place, (here.bound).from_at,
                                                                     (here.bound).from_id)
                    order by e.place, e.reached_at, e.app_user_id
                   offset greatest(starts - here.before, 0)
                    limit leaderboard_page.page_limit - back)) o) p
   cross join lateral (select case when w.id <> all (nameless) then w.display_name end as display_name,
                              case when w.id <> all (nameless) then w.avatar_url end as avatar_url
                         from app.users w where w.id = (p.e).app_user_id limit 1) u;
  return json_build_object(
    'data', coalesce(page, '[]'), 'total', total, 'offset', starts, 'limit', leaderboard_page.page_limit,
    'run', internal.leaderboard_run_json(r),
    'me', case when (mine.entry).run_id is not null then internal.leaderboard_entry_shown(mine.entry, mine.rank) end);
end $$;
comment on function internal.leaderboard_page is
  'A page of all entries of a run, from an offset or around a user; every page costs the same. Blocked users, in either
   direction, have a rank but no name. Refuses 404 NOT_FOUND when the user to center on has no entry. Granted to
   nobody.';

create or replace function internal.leaderboard_page_among(run app.leaderboard_runs, members uuid[], around uuid,
                                                           page_offset bigint, page_limit bigint, viewer uuid)
returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  nameless constant uuid[] := array(select internal.blocked_ids());
  ranked uuid[];
  place_of bigint;
  mine bigint;
  starts bigint;
  page json;
begin
  ranked := array(
    select e.app_user_id
      from unnest(leaderboard_page_among.members) as m (id)
      join app.leaderboard_entries e on (e.app_user_id, e.run_id) = (m.id, (leaderboard_page_among.run).id)
     where not e.is_hidden
     order by e.place, e.reached_at, e.app_user_id);
  mine := array_position(ranked, leaderboard_page_among.viewer);
  if leaderboard_page_among.around is not null then
    place_of := array_position(ranked, leaderboard_page_among.around);
    perform internal.check_found(place_of is not null, 'entry');
  end if;
  starts := case when place_of is null then leaderboard_page_among.page_offset
                 else internal.leaderboard_start(cardinality(ranked), place_of, leaderboard_page_among.page_limit) end;
  select json_agg(internal.leaderboard_entry_json(e, starts + p.n,
                                                  case when u.id <> all (nameless) then u.display_name end,
                                                  case when u.id <> all (nameless) then u.avatar_url end)
                                                    order by p.n) into page
    from unnest(ranked[starts + 1 : starts + leaderboard_page_among.page_limit]) with ordinality as p (id, n)
    join app.leaderboard_entries e on (e.app_user_id, e.run_id) = (p.id, (leaderboard_page_among.run).id)
    join app.users u on u.id = p.id;
  return json_build_object(
    'data', coalesce(page, '[]'), 'total', cardinality(ranked), 'offset', starts,
      'limit', leaderboard_page_among.page_limit,
    'run', internal.leaderboard_run_json(leaderboard_page_among.run),
    'me', (select internal.leaderboard_entry_shown(e, mine)
             from app.leaderboard_entries e
            where mine is not null and (e.app_user_id, e.run_id) = (leaderboard_page_among.viewer,
                                                                    (leaderboard_page_among.run).id)));
end $$;
comment on function internal.leaderboard_page_among is
  'A page of some users'' entries, ranked among themselves. Refuses 404 NOT_FOUND. Granted to nobody.';

create or replace function internal.leaderboard_is_visible(board app.leaderboards) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  return (leaderboard_is_visible.board).is_active
     and ((leaderboard_is_visible.board).segment_id is null
          or internal.leaderboard_admits(leaderboard_is_visible.board, internal.user_id()));
end $$;
comment on function internal.leaderboard_is_visible is
  'Whether the caller may see a board: an active board without a segment, or with one that the caller is in. Boards have
   no policy for users: every function that shows a board to users calls this one. Granted to nobody.';

create or replace function internal.leaderboard_for_me(id_or_key text) returns app.leaderboards
language plpgsql stable security definer set search_path = '' as $$
declare
  board app.leaderboards;
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'boards are shown to their users so, not to %', internal.caller();
  end if;
  select b.* into board
    from app.leaderboards b
   where internal.is_id_or_key(b.id, b.key, leaderboard_for_me.id_or_key);
  if board.id is null or not internal.leaderboard_is_visible(board) then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such leaderboard.');
  end if;
  return board;
end $$;
comment on function internal.leaderboard_for_me is
  'A board that the caller sees (internal.leaderboard_is_visible). Refuses 404 NOT_FOUND.';

create or replace function internal.leaderboard_members(scope text) returns uuid[]
language plpgsql stable security definer set search_path = '' as $$
declare
  group_id constant uuid := internal.as_uuid(substr(leaderboard_members.scope, 7));
begin
  if leaderboard_members.scope = 'friends' then
    return array(select f from internal.friend_ids() f union select internal.user_id());
  elsif group_id is null or group_id not in (select g from internal.my_group_ids() g) then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such group that you are in.');
  end if;
  return array(select m from internal.group_member_ids(group_id) m);
end $$;
comment on function internal.leaderboard_members is
  'The users of a scope: the caller and their friends, or the members of a group of the caller. Refuses 404 NOT_FOUND.
   Granted to nobody.';

create or replace function api.leaderboard_get(id_or_key text, run text default 'current', scope text default 'global',
                                               around text default null, page_offset bigint default 0,
                                               page_limit bigint default null)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  board constant app.leaderboards := internal.leaderboard_for_me(leaderboard_get.id_or_key);
  found_run constant app.leaderboard_runs := internal.leaderboard_run_find(board, leaderboard_get.run);
  centre constant uuid := case when leaderboard_get.around = 'me' then internal.user_id()
                               else leaderboard_get.around::uuid end;
  size constant bigint := coalesce(leaderboard_get.page_limit, case when centre is null then 50 else 11 end);
begin
  if leaderboard_get.scope = 'global' then
    return row(200, internal.leaderboard_page(found_run, centre, leaderboard_get.page_offset, size, internal.user_id()),
               null)::api.reply;
  end if;
  return row(200, internal.leaderboard_page_among(found_run, internal.leaderboard_members(leaderboard_get.scope),
                                                  centre, leaderboard_get.page_offset, size,
                                                  internal.user_id()), null)::api.reply;
end $$;
comment on function api.leaderboard_get is
  'A page of a board: {data, total, offset, limit, run, me}; around centers it on the caller or another user. With the
   scope friends or group, ranks are computed within that scope. Refuses 404 NOT_FOUND: no such board, run, group of the
   caller, or entry to center on.';

create or replace function api.leaderboard_me(id_or_key text, run text default 'current') returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  board constant app.leaderboards := internal.leaderboard_for_me(leaderboard_me.id_or_key);
  found_run constant app.leaderboard_runs := internal.leaderboard_run_find(board, leaderboard_me.run);
  mine constant record := internal.leaderboard_entry_of(found_run.id, internal.user_id());
  total bigint;
begin
  if (mine.entry).run_id is null then
    perform internal.fail(404, 'NOT_FOUND', 'You have no entry in this run.');
  end if;
  total := greatest(internal.leaderboard_total(found_run.id), mine.rank);
  return internal.reply(200, internal.json_merge(internal.leaderboard_entry_shown(mine.entry, mine.rank),
                                                 json_build_object(
    'percentile', round(100.0 * (total - mine.rank + 1) / total, 2))));
end $$;
comment on function api.leaderboard_me is
  'The caller''s entry, with percentile: the share of entries, in hundredths, that it is at or above. Refuses 404
   NOT_FOUND: no board, run or entry.';

create or replace function api.leaderboards_list(page_offset int default 0, page_limit int default 50) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  seen app.leaderboards[];
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'boards are shown to their users so, not to %', internal.caller();
  end if;
  seen := array(select b from app.leaderboards b
                 where internal.leaderboard_is_visible(b)
                 order by b.created_at desc, b.id desc);
  return internal.reply_page(
    (select json_agg(json_build_object(
              'id', b.id, 'key', b.key, 'name', b.name, 'description', b.description, 'scoring', b.scoring,
                'sort', b.sort, 'period', b.period,
              'timezone', b.timezone, 'starts_at', internal.iso(b.starts_at), 'ends_at', internal.iso(b.ends_at),
              'client_writable', b.client_writable,
              'rewards', b.rewards, 'run', internal.leaderboard_run_json(internal.leaderboard_run_at(b,
                                        internal.now()))) order by p.n)
       from generate_series(leaderboards_list.page_offset + 1,
                            least(leaderboards_list.page_offset + leaderboards_list.page_limit,
                                  cardinality(seen))) as p (n)
      cross join lateral unnest(seen[p.n : p.n]) b),
    cardinality(seen), leaderboards_list.page_offset, leaderboards_list.page_limit);
end $$;
comment on function api.leaderboards_list is
  'Boards that the caller may see, newest first, each with its current run. Their sources are not shown.';

-- where a board has many entries of other days, the runs that the days do not touch are skipped as well
select internal.days_declare('leaderboard_days', 'app.leaderboard_entries', 'created_at',
  array[['entries', 'count(*)'], ['users', 'count(distinct r.app_user_id)']],
  'r.run_id = any (array(select u.id from app.leaderboard_runs u where u.leaderboard_id = {of}::uuid and u.state = '
  '''live''))');

create or replace function api.leaderboard_daily(id_or_key text, "from" date default null, "to" date default null,
                                                 timezone text default null)
returns api.reply
language sql stable as $$
  select internal.days_reply('{leaderboard_days}', leaderboard_daily."from", leaderboard_daily."to",
                             leaderboard_daily.timezone,
                             (internal.definition_find(null::app.leaderboards,
                                                       leaderboard_daily.id_or_key)).id::text)
$$;
comment on function api.leaderboard_daily is
  'Users who entered a run of a leaderboard on each day. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';
