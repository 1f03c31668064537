-- Sign-in of end users. These functions run as app_auth, the only role that reads password hashes. The server creates
-- and signs the tokens; this database receives only the hash of a refresh token.
--
-- Lock order of every function that changes how a user signs in, so that they never deadlock: an identity of a
-- provider, an address, a code or link to sign in with, the user's row, the codes that the user's session requested,
-- everything else.

create or replace function internal.lock_address(channel text, address text) returns void
language sql volatile as $$
  select internal.advisory_lock('address', lock_address.channel || ' ' || lock_address.address)
$$;
comment on function internal.lock_address is
  'Serialises proofs of an address and creation of its user. Held until the end of the transaction.';

create or replace function internal.has_identity(app_user_id uuid) returns boolean
language sql stable as $$
  select exists (select from app.users u
                  where u.id = has_identity.app_user_id and (u.email is not null or u.phone is not null))
      or exists (select from app.user_passwords p where p.app_user_id = has_identity.app_user_id)
      or exists (select from app.user_identities i where i.app_user_id = has_identity.app_user_id)
$$;
comment on function internal.has_identity is
  'Whether a user is more than anonymous: an email, a phone, a password or a linked provider.';

create or replace function internal.sign_in(app_user_id uuid, is_new boolean, method text, sid uuid, refresh_hash text,
                                            device jsonb default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  them app.users;
begin
  if internal.caller() <> 'sign_in' then
    raise exception 'sessions are started by sign-in routes, not by %', internal.caller();
  end if;
  update app.users u
     set last_seen_at = internal.now()
   where u.id = sign_in.app_user_id
  returning u.* into them;
  if them.is_banned then
    perform internal.fail(403, 'USER_BANNED', 'This user is banned.');
  end if;
  insert into app.user_sessions (id, app_user_id, refresh_hash, original_anonymous_id, expires_at, platform,
                                 app_version, ip_country)
  values (sign_in.sid, them.id, sign_in.refresh_hash, them.anonymous_id, internal.now() + interval '90 days',
          sign_in.device ->> 'platform', sign_in.device ->> 'app_version', sign_in.device ->> 'ip_country');
  if sign_in.is_new then
    perform internal.emit(them.id, 'svc.user.created', jsonb_build_object('method', sign_in.method));
  end if;
  perform internal.emit(them.id, 'svc.user.signed_in', jsonb_build_object('method', sign_in.method));
  return internal.reply(case when sign_in.is_new then 201 else 200 end,
                        json_build_object('user', internal.user_json(them), 'is_new_user', sign_in.is_new));
end $$;
comment on function internal.sign_in is
  'Starts a session (90 days from its last refresh) and returns {user, is_new_user}; 201 for a new user. Refuses 403
   USER_BANNED. Emits svc.user.created and svc.user.signed_in.';

create or replace function internal.end_sessions(app_user_id uuid, reason text, except_sid uuid default null)
returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  ended_count int;
begin
  if internal.caller() not in ('sign_in', 'user', 'developer', 'worker')
     or internal.caller() = 'user' and internal.user_id() <> end_sessions.app_user_id then
    raise exception 'these sessions are not to be ended by %', internal.caller();
  end if;
  with live as materialized (
    select s.id
      from app.user_sessions s
     where s.app_user_id = end_sessions.app_user_id and s.ended_at is null and s.id is distinct
       from end_sessions.except_sid
     order by s.id
       for update
  )
  update app.user_sessions s
     set ended_at = internal.now(), end_reason = end_sessions.reason
    from live
   where s.id = live.id;
  get diagnostics ended_count = row_count;
  -- one invalidation for the user, not one for each of thousands of sessions: a server scans its cache for each
  perform internal.changed('user:' || end_sessions.app_user_id);
  return ended_count;
end $$;
comment on function internal.end_sessions is
  'Ends the sessions of a user (session revocation), except the given one, and invalidates the servers'' caches. Locks
   the sessions in the order of their ids.';

create or replace function internal.session_is_active() returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.user_sessions s
                   join app.users u on u.id = s.app_user_id
                  where s.id = internal.session_id() and s.app_user_id = internal.user_id()
                    and s.ended_at is null and s.expires_at > internal.now() and not u.is_banned)
$$;
comment on function internal.session_is_active is
  'Whether the calling session has not ended, and its user is not banned.';

create or replace function internal.session_owner() returns app.users
language plpgsql volatile as $$
declare
  me app.users;
begin
  select u.* into me from app.users u where u.id = internal.user_id() for update;
  -- servers cache a session for some seconds after its end, so functions that change an account check it again, under
  -- the lock
  if me.id is null or not internal.session_is_active() then
    perform internal.fail(401, 'UNAUTHORIZED', 'The session has ended.');
  end if;
  return me;
end $$;
comment on function internal.session_owner is
  'The user of the calling session, with the row locked. Refuses 401 UNAUTHORIZED when the session has ended.';

create or replace function internal.check_session() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'user' then
    return;
  end if;
  perform from app.users u where u.id = internal.user_id() for key share;
  -- if the user was deleted, the caller raises its own error
  if found and not internal.session_is_active() then
    perform internal.fail(401, 'UNAUTHORIZED', 'The session has ended.');
  end if;
end $$;
comment on function internal.check_session is
  'For rows that stay with an account, such as devices, so that none is added during an account takeover: refuses 401
   UNAUTHORIZED when the calling session has ended. Does nothing for a server key, which has no session. Takes a shared
   lock on the user, against reclaiming and deletion.';

create or replace function internal.session_is_young() returns boolean
language sql stable security definer set search_path = '' as $$
  -- counted from the sign-in, never from a refresh
  select exists (select from app.user_sessions s
                  where s.id = internal.session_id() and s.app_user_id = internal.user_id()
                    and s.signed_in_at > internal.now() - interval '10 minutes')
$$;
comment on function internal.session_is_young is
  'Whether the caller signed in less than 10 minutes ago, so that no further proof of identity is needed.';

create or replace function internal.is_test_over(s app.user_sessions, tests_since timestamptz) returns boolean
language sql immutable parallel safe as $$
  select (is_test_over.s).is_test and coalesce((is_test_over.s).signed_in_at < is_test_over.tests_since, true)
$$;
comment on function internal.is_test_over is
  'Whether a session for tests has ended because its project left development: tests_since is since when it is there
   without a break, null outside of it.';

create or replace function api.auth_refresh(sid uuid, presented_hash text, next_hash text, device jsonb default null,
                                            tests_since timestamptz default null)
returns api.reply
language plpgsql volatile as $$
declare
  session app.user_sessions;
begin
  select s.* into session from app.user_sessions s where s.id = auth_refresh.sid for update;
  if session.id is null or session.ended_at is not null or session.expires_at <= internal.now()
     or internal.is_test_over(session, auth_refresh.tests_since) then
    return internal.refuse(401, 'INVALID_TOKEN',
                           'The refresh token is invalid or its session has ended: sign in again.');
  end if;
  if session.refresh_hash <> auth_refresh.presented_hash then
    -- returned, not raised, so that the end of the session is committed
    update app.user_sessions s set ended_at = internal.now(), end_reason = 'reuse' where s.id = session.id;
    perform internal.changed('session:' || session.id);
    return internal.refuse(401, 'REFRESH_TOKEN_REUSED',
                           'This refresh token had been replaced, so its session was ended: sign in again.');
  end if;
  if exists (select from app.users u where u.id = session.app_user_id and u.is_banned) then
    return internal.refuse(403, 'USER_BANNED', 'This user is banned.');
  end if;
  update app.user_sessions s
     set refresh_hash = auth_refresh.next_hash,
         last_used_at = internal.now(),
         expires_at = internal.now() + interval '90 days',
         platform = coalesce(auth_refresh.device ->> 'platform', s.platform),
         app_version = coalesce(auth_refresh.device ->> 'app_version', s.app_version),
         ip_country = coalesce(auth_refresh.device ->> 'ip_country', s.ip_country)
   where s.id = session.id;
  return internal.reply(200, json_build_object('user_id', session.app_user_id,
                                               'anonymous_id', session.original_anonymous_id));
end $$;
comment on function api.auth_refresh is
  'Replaces the refresh token of its session. Refuses 401 INVALID_TOKEN, 403 USER_BANNED. Reuse of an older token ends
   the session: 401 REFRESH_TOKEN_REUSED. Locks the session.';

create or replace function api.auth_logout(sid uuid default null, "all" boolean default false) returns api.reply
language plpgsql volatile as $$
declare
  ended uuid;
begin
  if auth_logout."all" then
    perform internal.end_sessions((internal.session_owner()).id, 'logout');
  end if;
  update app.user_sessions s
     set ended_at = internal.now(), end_reason = 'logout'
   where s.id = auth_logout.sid and s.ended_at is null
  returning s.id into ended;
  if ended is not null then
    perform internal.changed('session:' || ended);
  end if;
  return internal.reply(200, '{"success": true}');
end $$;
comment on function api.auth_logout is
  'Ends the session of a refresh token; with all, every session of the caller. 200 also when the session is unknown or
   has ended. With all: refuses 401 UNAUTHORIZED.';

create or replace function api.auth_session(sid uuid, tests_since timestamptz default null) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('is_live', exists (
    select from app.user_sessions s
      join app.users u on u.id = s.app_user_id
     where s.id = auth_session.sid and s.ended_at is null and s.expires_at > internal.now() and not u.is_banned
       and not internal.is_test_over(s, auth_session.tests_since))))
$$;
comment on function api.auth_session is
  'Whether the tokens of a session are still valid; tests_since as for internal.is_test_over.';

create or replace function internal.auth_session_json(s app.user_sessions) returns json
language sql stable as $$
  select json_build_object(
    'id', (auth_session_json.s).id, 'created_at', internal.iso((auth_session_json.s).signed_in_at),
    'last_used_at', internal.iso((auth_session_json.s).last_used_at), 'platform', (auth_session_json.s).platform,
    'app_version', (auth_session_json.s).app_version, 'ip_country', (auth_session_json.s).ip_country,
    'current', (auth_session_json.s).id = internal.session_id())
$$;
comment on function internal.auth_session_json is 'A session as its user sees it.';

create or replace function internal.is_auth_session_live(s app.user_sessions) returns boolean
language sql stable as $$
  select (is_auth_session_live.s).ended_at is null and (is_auth_session_live.s).expires_at > internal.now()
$$;
comment on function internal.is_auth_session_live is 'Whether a session has neither ended nor expired.';

select internal.list_declare('auth_sessions_page', null::app.user_sessions, 'auth_session_json', '{signed_in_at,id}',
                             required => '{app_user_id}',
                             condition => 'is_auth_session_live');

create or replace function api.auth_sessions(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.auth_sessions_page(internal.user_id(), auth_sessions.page_offset, auth_sessions.page_limit)
$$;
comment on function api.auth_sessions is 'The caller''s live sessions, newest first.';

create or replace function api.auth_session_end(session_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  me constant app.users := internal.session_owner();
  ended uuid;
begin
  update app.user_sessions s
     set ended_at = internal.now(), end_reason = 'ended'
   where s.id = auth_session_end.session_id and s.app_user_id = me.id
     and s.ended_at is null and s.expires_at > internal.now()
  returning s.id into ended;
  perform internal.check_found(ended is not null, 'session');
  perform internal.changed('session:' || ended);
  return internal.reply_deleted();
end $$;
comment on function api.auth_session_end is
  'Ends one of the caller''s live sessions, which may be the calling one. Refuses 401 UNAUTHORIZED, 404 NOT_FOUND. Locks
   the user.';

create or replace function internal.purge__client_auth(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select greatest(internal.purge_rows('app.user_codes', 't.expires_at < internal.now() - interval ''1 day''',
                                      purge__client_auth.most),
                  internal.purge_rows('app.user_sessions',
                                      'least(t.expires_at, t.ended_at) < internal.now() - interval ''30 days''',
                                        purge__client_auth.most))
$$;
comment on function internal.purge__client_auth is
  'Daily: codes and links a day after they expired, sessions 30 days after their end.';
