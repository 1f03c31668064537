-- App sessions: when an app was in use, for analytics. They are not sign-in sessions. Whether one has ended is computed
-- on read: a session without heartbeat for 30 minutes ended at its last heartbeat; the worker only stores that end.

create or replace function internal.app_session_end(session app.app_sessions) returns timestamptz
language sql stable parallel safe as $$
  select coalesce((app_session_end.session).ended_at,
                  case when (app_session_end.session).last_seen_at <= internal.now() - interval '30 minutes'
                       then (app_session_end.session).last_seen_at end)
$$;
comment on function internal.app_session_end is
  'When a session ended, whether or not the end is stored yet; null while it is open.';

create or replace function internal.app_session_seconds(started_at timestamptz, ended_at timestamptz) returns bigint
language sql immutable parallel safe as $$
  select floor(extract(epoch from app_session_seconds.ended_at - app_session_seconds.started_at))::bigint
$$;
comment on function internal.app_session_seconds is 'Whole seconds of a session, null while it goes on.';

create or replace function internal.app_session_json(session app.app_sessions) returns json
language sql stable as $$
  select json_build_object(
    'id', s.id, 'app_user_id', s.app_user_id, 'started_at', internal.iso(s.started_at),
      'last_seen_at', internal.iso(s.last_seen_at),
    'ended_at', internal.iso(e.ended_at), 'duration_seconds', internal.app_session_seconds(s.started_at, e.ended_at),
    'platform', s.platform, 'app_version', s.app_version, 'os_version', s.os_version, 'device_model', s.device_model,
    'locale', s.locale,
    'end_reason', coalesce(s.end_reason, case when e.ended_at is not null then 'timeout' end))
    from (select (app_session_json.session).*) s
   cross join lateral (select internal.app_session_end(app_session_json.session) as ended_at) e
$$;
comment on function internal.app_session_json is 'A session as apps see it.';

create or replace function internal.app_session_lock(to_the_minute boolean default true) returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
begin
  if me is null then
    raise exception 'app sessions belong to users, not to %', internal.caller();
  end if;
  -- lock order: the user first, as events do; other writers of the user's sessions wait here
  perform from app.users u where u.id = me for no key update;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  update app.users u
     set last_seen_at = internal.now()
   where u.id = me
     and u.last_seen_at < internal.now() - case when app_session_lock.to_the_minute then interval '1 minute'
                                                else interval '0' end;
  return me;
end $$;
comment on function internal.app_session_lock is
  'Locks the caller''s row, sets last_seen_at (to the minute, for each change moves the row in an index), and returns
   the caller''s id. Refuses 404 NOT_FOUND.';

create or replace function internal.app_session_close(session app.app_sessions, at timestamptz, reason text)
returns app.app_sessions
language plpgsql volatile security definer set search_path = '' as $$
declare
  closed app.app_sessions;
begin
  update app.app_sessions s
     set ended_at = app_session_close.at, last_seen_at = greatest(s.last_seen_at, app_session_close.at),
       end_reason = app_session_close.reason
   where s.id = (app_session_close.session).id
  returning s.* into closed;
  -- a session that the worker ended and whose device reports another end has had its event already
  if (app_session_close.session).ended_at is null then
    perform internal.emit(closed.app_user_id, 'svc.session.ended', jsonb_build_object(
      'session_id', closed.id, 'duration_seconds', internal.app_session_seconds(closed.started_at, closed.ended_at),
      'end_reason', closed.end_reason));
  end if;
  return closed;
end $$;
comment on function internal.app_session_close is
  'Writes the end of a session down, once with svc.session.ended. Granted to nobody.';

create or replace function api.app_session_start(
  id uuid default null, platform text default null, app_version text default null, os_version text default null,
  device_model text default null, locale text default null, started_at timestamptz default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.app_session_lock(to_the_minute => false);
  began constant timestamptz := least(coalesce(app_session_start.started_at, internal.now()), internal.now());
  known app.app_sessions;
  open app.app_sessions;
begin
  select s.* into known from app.app_sessions s where s.id = app_session_start.id;
  if known.app_user_id = me then
    return internal.reply(200, internal.app_session_json(known));
  end if;
  for open in
    select s.*
      from app.app_sessions s
     where s.app_user_id = me and s.ended_at is null
       and s.platform is not distinct from app_session_start.platform
       and s.device_model is not distinct from app_session_start.device_model
     order by s.id
  loop
    perform internal.app_session_close(open, open.last_seen_at,
      case when open.last_seen_at <= internal.now() - interval '30 minutes' then 'timeout' else 'replaced' end);
  end loop;
  insert into app.app_sessions (id, app_user_id, started_at, last_seen_at, platform, app_version, os_version,
                                device_model, locale)
  values (coalesce(app_session_start.id, internal.new_id()), me, began, began, app_session_start.platform,
          app_session_start.app_version,
          app_session_start.os_version, app_session_start.device_model, app_session_start.locale)
  on conflict on constraint app_sessions_pkey do nothing
  returning * into known;
  if not found then
    perform internal.fail(409, 'CONFLICT', 'This id belongs to another session.', '{"field": "id"}');
  end if;
  perform internal.emit(me, 'svc.session.started', jsonb_strip_nulls(jsonb_build_object(
    'session_id', known.id, 'platform', known.platform, 'app_version', known.app_version,
      'device_model', known.device_model)));
  return internal.reply(201, internal.app_session_json(known));
end $$;
comment on function api.app_session_start is
  'Starts an app session of the caller, and ends what is open on the same device: 201. A known id of the caller: 200
   with the same row, and nothing moves. Refuses 409 CONFLICT (an id of another user). Locks the user.';

create or replace function internal.app_session_mine(session_id uuid) returns app.app_sessions
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.app_session_lock();
  mine app.app_sessions;
begin
  select s.* into mine from app.app_sessions s where s.id = app_session_mine.session_id and s.app_user_id = me;
  if mine.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such session.');
  end if;
  return mine;
end $$;
comment on function internal.app_session_mine is 'A session of the caller, who is locked. Refuses 404 NOT_FOUND.';

create or replace function api.app_session_heartbeat(session_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  mine app.app_sessions := internal.app_session_mine(app_session_heartbeat.session_id);
begin
  if internal.app_session_end(mine) is not null then
    perform internal.fail(409, 'SESSION_ENDED', 'This session has ended: start another.');
  end if;
  update app.app_sessions s set last_seen_at = greatest(s.last_seen_at, internal.now()) where s.id = mine.id
    returning s.* into mine;
  return internal.reply(200, internal.app_session_json(mine));
end $$;
comment on function api.app_session_heartbeat is
  'Notes that a session of the caller goes on. Refuses 404 NOT_FOUND, 409 SESSION_ENDED.';

create or replace function api.app_session_finish(session_id uuid, ended_at timestamptz default null) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  mine app.app_sessions := internal.app_session_mine(app_session_finish.session_id);
  has_timed_out constant boolean := mine.end_reason is not distinct from 'timeout'
    or mine.end_reason is null and internal.app_session_end(mine) is not null;
begin
  -- what was only taken for ended by silence, its device may still put right
  if mine.end_reason is null and not has_timed_out or has_timed_out and app_session_finish.ended_at is not null then
    mine := internal.app_session_close(
      mine, greatest(mine.started_at, least(coalesce(app_session_finish.ended_at, internal.now()), internal.now())),
        'client');
  end if;
  return internal.reply(200, internal.app_session_json(mine));
end $$;
comment on function api.app_session_finish is
  'Ends a session of the caller at the device''s own time, within [started_at, now]; one that has ended stays as it is,
   unless it ended by silence and the device says when it was. Refuses 404 NOT_FOUND.';

create or replace function internal.on_events__15_app_sessions(events app.engagement_events[]) returns void
language plpgsql volatile as $$
begin
  -- most events name no session
  if not exists (select from unnest(on_events__15_app_sessions.events) i where i.session_id is not null) then
    return;
  end if;
  update app.app_sessions s
     set last_seen_at = greatest(s.last_seen_at, least(i.seen_at, internal.now()))
    from (select n.session_id, n.app_user_id, max(n.occurred_at) as seen_at
            from unnest(on_events__15_app_sessions.events) n
           where n.session_id is not null
           group by n.session_id, n.app_user_id) i
   where s.id = i.session_id and s.app_user_id = i.app_user_id
     and s.ended_at is null and s.last_seen_at > internal.now() - interval '30 minutes'
     and i.seen_at > s.last_seen_at;
end $$;
comment on function internal.on_events__15_app_sessions is
  'An event that names an open session of its user counts as its heartbeat, at the time that it occurred.';

create or replace function internal.on_event__15_app_sessions(event app.engagement_events) returns void
language plpgsql volatile as $$
begin
  if (on_event__15_app_sessions.event).session_id is not null then
    perform internal.on_events__15_app_sessions(array[on_event__15_app_sessions.event]);
  end if;
end $$;
comment on function internal.on_event__15_app_sessions is 'An event that names no session, as most, costs nothing.';

create or replace function internal.tg_app_sessions__timeout() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- one row for each user, so that no two users wait for each other
  perform internal.enqueue('app_sessions__timeout', new.app_user_id::text, '{}',
                           greatest(new.last_seen_at + interval '30 minutes', internal.now()));
  return null;
end $$;
comment on function internal.tg_app_sessions__timeout is
  'Queues the look whether a user''s sessions have ended by silence.';

create or replace trigger tg_app_sessions__timeout
  after insert on app.app_sessions
  for each row execute function internal.tg_app_sessions__timeout();
-- a merge moves open sessions to a user who may have had none
create or replace trigger tg_app_sessions__timeout_of_moved
  after update of app_user_id on app.app_sessions
  for each row when (new.ended_at is null and old.app_user_id <> new.app_user_id)
  execute function internal.tg_app_sessions__timeout();

create or replace function api.app_sessions_timeout(user_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  open app.app_sessions;
begin
  perform internal.check_caller('worker', 'sessions are timed out by workers');
  perform from app.users u where u.id = app_sessions_timeout.user_id for no key update;
  for open in
    select s.*
      from app.app_sessions s
     where s.app_user_id = app_sessions_timeout.user_id and s.ended_at is null
       and s.last_seen_at <= internal.now() - interval '30 minutes'
     order by s.id
  loop
    perform internal.app_session_close(open, open.last_seen_at, 'timeout');
  end loop;
  return internal.reply(200,
                        json_build_object('due_at', internal.iso((select min(s.last_seen_at) + interval '30 minutes'
                                                                    from app.app_sessions s
                                                                   where s.app_user_id = app_sessions_timeout.user_id
                                                                     and s.ended_at is null))));
end $$;
comment on function api.app_sessions_timeout is
  'For the task of that name: stores the end of a user''s sessions that timed out, emits svc.session.ended, and returns
   when to check again; null when none is open. Locks the user.';

create or replace function internal.app_sessions_figures(since timestamptz, affordable int default 50000,
                                                         out users bigint, out sessions bigint, out average numeric,
                                                         out median numeric, out is_estimate boolean, out margin bigint)
language plpgsql volatile as $$
declare
  population bigint;
  active bigint;
  -- null for everybody
  sampled uuid[];
  pages int[];
  started bigint[];
  scale numeric := 1;
begin
  is_estimate := internal.planned_rows(format('select from app.app_sessions s where s.started_at > %L and '
                                              's.started_at <= %L',
                                              app_sessions_figures.since,
                                              internal.now())) > app_sessions_figures.affordable;
  margin := 0;
  if is_estimate then
    population := internal.users_estimate();
    -- a start sets last_seen_at, so only users seen since can have one. The sample has about 2,500 of them, out of at
    -- most 50,000 users
    active := internal.planned_rows(format('select from app.users u where u.last_seen_at > %L',
                                           app_sessions_figures.since));
    select s.ids, s.pages into sampled, pages
      from internal.users_sampled(population, 1, least(50000, 2500 * population / greatest(active, 1))::int) s;
    scale := population::numeric / greatest(cardinality(sampled), 1);
    -- per user, in the order of the pages
    started := array(
      select case when u.last_seen_at > app_sessions_figures.since
                  then (select count(*) from app.app_sessions s
                         where s.app_user_id = u.id and s.started_at > app_sessions_figures.since
                           and s.started_at <= internal.now())
                  else 0 end
        from unnest(sampled) with ordinality as i (id, n)
        join app.users u on u.id = i.id
       order by i.n);
    if cardinality(started) = cardinality(pages) then
      margin := internal.sample_margin(population, pages,
                                       array(select k > 0 from unnest(started) with ordinality o (k, n) order by o.n));
    end if;
    sampled := array(select i.id from unnest(sampled, started) as i (id, k) where i.k > 0);
  end if;
  with chosen as (
    select s.app_user_id, s.started_at, internal.app_session_end(s) as ended_at
      from app.app_sessions s
     where not is_estimate and s.started_at > app_sessions_figures.since and s.started_at <= internal.now()
    union all
    select s.app_user_id, s.started_at, internal.app_session_end(s)
      from unnest(sampled) as i (id)
      join app.app_sessions s on s.app_user_id = i.id and s.started_at > app_sessions_figures.since
        and s.started_at <= internal.now()
     where is_estimate
  ), timed as (
    select c.app_user_id, internal.app_session_seconds(c.started_at, c.ended_at) as seconds from chosen c
  )
  select round(scale * count(distinct t.app_user_id)), round(scale * count(*)), trim_scale(round(avg(t.seconds), 3)),
         trim_scale(round((percentile_cont(0.5) within group (order by t.seconds))::numeric, 3))
    into users, sessions, average, median
    from timed t;
end $$;
comment on function internal.app_sessions_figures is
  'Users and sessions that began since a time, and average and median seconds of those that have ended. Exact while the
   planner expects at most affordable sessions; otherwise estimates from about 2,500 users who were seen since, where
   users is within margin in 95 of 100 samples. A session that a merge moved counts for its survivor only if the
   survivor was seen since.';

create or replace function api.app_sessions_stats(period text) returns api.reply
language plpgsql volatile as $$
declare
  length constant interval := case app_sessions_stats.period
    when '24h' then interval '24 hours' when '7d' then interval '7 days' when '30d' then interval '30 days'
      when '90d' then interval '90 days' end;
  all_of_it record;
  of_a_day record;
begin
  if length is null then
    perform internal.invalid('period', 'must be 24h, 7d, 30d or 90d', 'INVALID_PERIOD');
  end if;
  select f.* into all_of_it from internal.app_sessions_figures(internal.now() - length) f;
  if app_sessions_stats.period = '24h' then
    of_a_day := all_of_it;
  else
    select f.* into of_a_day from internal.app_sessions_figures(internal.now() - interval '24 hours') f;
  end if;
  return internal.reply(200, json_build_object(
    'period', app_sessions_stats.period, 'dau', of_a_day.users, 'period_active_users', all_of_it.users,
      'total_sessions', all_of_it.sessions,
    'avg_duration_seconds', all_of_it.average, 'median_duration_seconds', all_of_it.median,
    'is_estimate', all_of_it.is_estimate, 'margin', all_of_it.margin));
end $$;
comment on function api.app_sessions_stats is
  'What sessions that began within a period come to: users, sessions, and how long those lasted that have ended (null
   when none has). dau is of the last 24 hours whatever the period. In large projects estimates, where
   period_active_users has the margin: see internal.app_sessions_figures. Refuses 400 INVALID_PERIOD.';

create or replace function internal.app_session_line_json(s app.app_sessions) returns json
language sql stable as $$
  select json_build_object(
    'id', (app_session_line_json.s).id, 'app_user_id', (app_session_line_json.s).app_user_id,
    'started_at', internal.iso((app_session_line_json.s).started_at),
    'ended_at', internal.iso(internal.app_session_end(app_session_line_json.s)),
    'duration_seconds', internal.app_session_seconds((app_session_line_json.s).started_at,
                                                     internal.app_session_end(app_session_line_json.s)))
$$;
comment on function internal.app_session_line_json is 'A session as administrators see it.';

select internal.list_declare('app_sessions_page', null::app.app_sessions, 'app_session_line_json', '{started_at,id}',
                             is_counted => true);

create or replace function api.app_sessions_list(page_limit bigint, page_offset bigint, include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.app_sessions_page(app_sessions_list.page_offset, app_sessions_list.page_limit),
    app_sessions_list.include)
$$;
comment on function api.app_sessions_list is 'Sessions of all users, newest first.';

select internal.list_declare('user_app_sessions_page', null::app.app_sessions, 'app_session_json', '{started_at,id}',
                             required => '{app_user_id}');

create or replace function api.user_app_sessions(user_id uuid, page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql stable as $$
begin
  perform internal.check_found(exists (select from app.users u where u.id = user_app_sessions.user_id), 'user');
  return internal.user_app_sessions_page(user_app_sessions.user_id, user_app_sessions.page_offset,
                                         user_app_sessions.page_limit);
end $$;
comment on function api.user_app_sessions is
  'Sessions of a user in the app with their devices, newest first. Refuses 404 NOT_FOUND.';
