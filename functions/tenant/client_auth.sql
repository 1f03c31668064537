-- Sign-in of end users. These functions run as app_auth, the one role that reads password hashes. Tokens are made and signed
-- by the server; only the hash of a refresh token comes here.

create or replace function internal.has_identity(app_user_id uuid) returns boolean
language sql stable as $$
  select exists (select from app.users u
                  where u.id = has_identity.app_user_id and (u.email is not null or u.phone is not null))
      or exists (select from app.user_passwords p where p.app_user_id = has_identity.app_user_id)
      or exists (select from app.user_identities i where i.app_user_id = has_identity.app_user_id)
$$;
comment on function internal.has_identity is 'Whether a user is more than anonymous: an email, a phone, a password or a linked provider.';

create or replace function internal.sign_in(app_user_id uuid, is_new boolean, method text, sid uuid, refresh_hash text)
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
  insert into app.user_sessions (id, app_user_id, refresh_hash, original_anonymous_id, expires_at)
  values (sign_in.sid, them.id, sign_in.refresh_hash, them.anonymous_id, internal.now() + interval '90 days');
  if sign_in.is_new then
    perform internal.emit(them.id, 'svc.user.created', jsonb_build_object('method', sign_in.method));
  end if;
  perform internal.emit(them.id, 'svc.user.signed_in', jsonb_build_object('method', sign_in.method));
  return internal.reply(case when sign_in.is_new then 201 else 200 end,
                        json_build_object('user', internal.user_json(them), 'is_new_user', sign_in.is_new));
end $$;
comment on function internal.sign_in is
  'Starts a session (90 days from its last refresh) and answers {user, is_new_user}; 201 for a new user. Refuses 403 USER_BANNED. Emits svc.user.created and svc.user.signed_in.';

create or replace function api.auth_anonymous(sid uuid, refresh_hash text, anonymous_id text default null) returns api.reply
language plpgsql volatile as $$
declare
  wished constant text := coalesce(auth_anonymous.anonymous_id, 'anon_' || translate(internal.new_id()::text || gen_random_uuid(), '-', ''));
  user_id uuid;
  is_new boolean;
begin
  insert into app.users (anonymous_id, display_name)
  values (wished, internal.generated_name())
  on conflict on constraint users_anonymous_id_unique do nothing
  returning id into user_id;
  is_new := user_id is not null;
  if not is_new then
    -- locked against new rows that refer to the user, so that an identity which is being linked is waited for and seen
    select u.id into user_id from app.users u where u.anonymous_id = wished for update;
    if user_id is null or internal.has_identity(user_id) then
      perform internal.fail(401, 'UNAUTHORIZED', 'This anonymous id does not sign in any more.');
    end if;
  end if;
  return internal.sign_in(user_id, is_new, 'anonymous', auth_anonymous.sid, auth_anonymous.refresh_hash);
end $$;
comment on function api.auth_anonymous is
  'Signs in by anonymous id, 200, or makes a user, 201. Refuses 401 UNAUTHORIZED once the user has any identity. The name is always generated.';

create or replace function api.auth_email_signup(sid uuid, refresh_hash text, email text, password_hash text, display_name text default null)
returns api.reply
language plpgsql volatile as $$
declare
  user_id uuid;
begin
  if not internal.is_email(btrim(auth_email_signup.email)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  insert into app.users (email, display_name)
  values (internal.email_normal(auth_email_signup.email), coalesce(auth_email_signup.display_name, internal.generated_name()))
  on conflict on constraint users_email_unique do nothing
  returning id into user_id;
  if user_id is null then
    perform internal.fail(409, 'EMAIL_EXISTS', 'This address is in use.', '{"field": "email"}');
  end if;
  insert into app.user_passwords (app_user_id, password_hash) values (user_id, auth_email_signup.password_hash);
  insert into app.user_identities (app_user_id, provider, provider_id)
  values (user_id, 'email', internal.email_normal(auth_email_signup.email));
  return internal.sign_in(user_id, true, 'email', auth_email_signup.sid, auth_email_signup.refresh_hash);
end $$;
comment on function api.auth_email_signup is 'A new user with address and password, signed in at once, address unverified: 201. Refuses 409 EMAIL_EXISTS.';

create or replace function api.auth_email_password(email text) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('email', e.email, 'user_id', u.id, 'password_hash', p.password_hash))
    from (select internal.email_normal(auth_email_password.email) as email) e
    left join app.users u on u.email = e.email
    left join app.user_passwords p on p.app_user_id = u.id
$$;
comment on function api.auth_email_password is
  'For the server alone: whose password to check, nulls when there is none, and the address in the form that attempts count against.';

create or replace function api.auth_email_login(sid uuid, refresh_hash text, user_id uuid, password_hash text) returns api.reply
language plpgsql volatile as $$
begin
  -- the password may have changed, or gone, while it was being checked
  perform from app.user_passwords p
    where p.app_user_id = auth_email_login.user_id and p.password_hash = auth_email_login.password_hash
      for share;
  if not found then
    perform internal.fail(401, 'UNAUTHORIZED', 'The email or the password is wrong.');
  end if;
  return internal.sign_in(auth_email_login.user_id, false, 'email', auth_email_login.sid, auth_email_login.refresh_hash);
end $$;
comment on function api.auth_email_login is 'Signs in the user whose checked hash is still the stored one. Refuses 401 UNAUTHORIZED, 403 USER_BANNED.';

create or replace function api.auth_refresh(sid uuid, presented_hash text, next_hash text) returns api.reply
language plpgsql volatile as $$
declare
  session app.user_sessions;
begin
  select s.* into session from app.user_sessions s where s.id = auth_refresh.sid for update;
  if session.id is null or session.ended_at is not null or session.expires_at <= internal.now() then
    return internal.refuse(401, 'INVALID_TOKEN', 'The refresh token is not valid any more.');
  end if;
  if session.refresh_hash <> auth_refresh.presented_hash then
    -- returned, not raised: the end of the session must stay
    update app.user_sessions s set ended_at = internal.now(), end_reason = 'reuse' where s.id = session.id;
    perform internal.changed('session:' || session.id);
    return internal.refuse(401, 'REFRESH_TOKEN_REUSED', 'This refresh token was replaced; its session has ended.');
  end if;
  if exists (select from app.users u where u.id = session.app_user_id and u.is_banned) then
    return internal.refuse(403, 'USER_BANNED', 'This user is banned.');
  end if;
  update app.user_sessions s
     set refresh_hash = auth_refresh.next_hash, last_used_at = internal.now(), expires_at = internal.now() + interval '90 days'
   where s.id = session.id;
  return internal.reply(200, json_build_object('user_id', session.app_user_id, 'anonymous_id', session.original_anonymous_id));
end $$;
comment on function api.auth_refresh is
  'Replaces the refresh token within its session. Refuses 401 INVALID_TOKEN, 403 USER_BANNED; an older token of the session ends it: 401 REFRESH_TOKEN_REUSED. Locks the session.';

create or replace function api.auth_logout(sid uuid, "all" boolean default false) returns api.reply
language plpgsql volatile as $$
declare
  ended uuid;
  user_id uuid;
begin
  select s.app_user_id into user_id from app.user_sessions s where s.id = auth_logout.sid;
  for ended in
    update app.user_sessions s
       set ended_at = internal.now(), end_reason = 'logout'
     where s.ended_at is null
       and (s.id = auth_logout.sid or (auth_logout."all" and s.app_user_id = user_id))
    returning s.id
  loop
    perform internal.changed('session:' || ended);
  end loop;
  return internal.reply(200, '{"success": true}');
end $$;
comment on function api.auth_logout is 'Ends the session, or every session of its user. Ending what is ended, or unknown, is 200 too.';

create or replace function api.auth_session(sid uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('is_live', exists (
    select from app.user_sessions s
      join app.users u on u.id = s.app_user_id
     where s.id = auth_session.sid and s.ended_at is null and s.expires_at > internal.now() and not u.is_banned)))
$$;
comment on function api.auth_session is 'Whether the tokens of a session still work.';
