-- Developer accounts. Passwords are hashed and tokens signed by the server; only hashes come here.
comment on index app.developers_mailbox_unique is '409 EMAIL_EXISTS email: An account with this mailbox exists.';
comment on constraint developers_name_at_most_200 on app.developers is '400 INVALID_INPUT name: must have at most 200 characters.';

create or replace function internal.developer_json(d app.developers) returns json
language sql stable as $$
  select json_build_object(
    'id', (developer_json.d).id, 'email', (developer_json.d).email, 'name', (developer_json.d).name,
    'oauth_providers', to_json((developer_json.d).oauth_providers), 'email_verified', (developer_json.d).email_verified,
    'has_password', (developer_json.d).password_hash is not null, 'account_state', (developer_json.d).account_state,
    'can_provision', (developer_json.d).provisioning = 'on',
    'created_at', internal.iso((developer_json.d).created_at), 'updated_at', internal.iso((developer_json.d).updated_at))
$$;
comment on function internal.developer_json is 'A developer as answers show it: never the hash.';

create or replace function internal.is_disposable(email text) returns boolean
language sql stable as $$
  -- the domain itself and every domain above it: x.mailinator.com is mailinator.com's
  with parts as (
    select string_to_array(split_part(internal.email_normal(is_disposable.email), '@', 2), '.') as labels
  )
  select exists (
    select from parts p
     cross join lateral generate_series(1, array_length(p.labels, 1) - 1) as first
      join app.disposable_domains d on d.domain = array_to_string(p.labels[first:], '.'))
$$;
comment on function internal.is_disposable is 'Whether an address is at a throw-away mail domain.';

create or replace function internal.developer_session(developer app.developers, status int, sid uuid, refresh_hash text, ip text, user_agent text)
returns api.reply
language plpgsql volatile as $$
begin
  insert into app.developer_sessions (id, developer_id, refresh_hash, expires_at, ip, user_agent)
  values (developer_session.sid, (developer_session.developer).id, developer_session.refresh_hash,
          internal.now() + interval '30 days', developer_session.ip, left(developer_session.user_agent, 500));
  return internal.reply(developer_session.status, json_build_object('developer', internal.developer_json(developer_session.developer)));
end $$;
comment on function internal.developer_session is 'Starts a sign-in of 30 days.';

create or replace function api.developer_signup(sid uuid, refresh_hash text, email text, password_hash text, name text default null,
                                                ip text default null, user_agent text default null)
returns api.reply
language plpgsql volatile as $$
declare
  made app.developers;
begin
  if not internal.is_email(btrim(developer_signup.email)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  if internal.is_disposable(developer_signup.email) then
    perform internal.fail(400, 'DISPOSABLE_EMAIL', 'This is an address of a throw-away inbox.', '{"field": "email"}');
  end if;
  insert into app.developers (email, mailbox, name, password_hash)
  values (internal.email_normal(developer_signup.email), internal.email_mailbox(developer_signup.email), developer_signup.name,
          developer_signup.password_hash)
  on conflict (mailbox) do nothing
  returning * into made;
  if made.id is null then
    perform internal.fail(409, 'EMAIL_EXISTS', 'An account with this mailbox exists.', '{"field": "email"}');
  end if;
  return internal.developer_session(made, 201, developer_signup.sid, developer_signup.refresh_hash, developer_signup.ip,
                                    developer_signup.user_agent);
end $$;
comment on function api.developer_signup is
  'A new account, signed in: 201 {developer}. Refuses 400 INVALID_INPUT, DISPOSABLE_EMAIL, 409 EMAIL_EXISTS (an alias of the same mailbox counts).';

create or replace function api.developer_password(email text) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('mailbox', m.mailbox, 'developer_id', d.id, 'password_hash', d.password_hash))
    from (select internal.email_mailbox(developer_password.email) as mailbox) m
    left join app.developers d on d.mailbox = m.mailbox
$$;
comment on function api.developer_password is
  'For the server alone: whose password to check, nulls when there is none, and the mailbox, which failures count against. Only control_auth may ask.';

create or replace function api.developer_login(sid uuid, refresh_hash text, developer_id uuid, password_hash text, ip text default null,
                                               user_agent text default null)
returns api.reply
language plpgsql volatile as $$
declare
  them app.developers;
begin
  -- the password may have changed while it was being checked
  select d.* into them
    from app.developers d
   where d.id = developer_login.developer_id and d.password_hash = developer_login.password_hash
     for share;
  if them.id is null then
    perform internal.fail(401, 'INVALID_CREDENTIALS', 'The email or the password is wrong.');
  end if;
  return internal.developer_session(them, 200, developer_login.sid, developer_login.refresh_hash, developer_login.ip,
                                    developer_login.user_agent);
end $$;
comment on function api.developer_login is 'Signs in the developer whose checked hash is still the stored one: 200 {developer}. Refuses 401 INVALID_CREDENTIALS.';

create or replace function api.developer_refresh(sid uuid, presented_hash text, next_hash text) returns api.reply
language plpgsql volatile as $$
declare
  session app.developer_sessions;
begin
  select s.* into session from app.developer_sessions s where s.id = developer_refresh.sid for update;
  if session.id is null or session.ended_at is not null or session.expires_at <= internal.now() then
    return internal.refuse(401, 'INVALID_TOKEN', 'The refresh token is not valid any more.');
  end if;
  if session.refresh_hash <> developer_refresh.presented_hash then
    -- returned, not raised: the end of the session must stay
    update app.developer_sessions s set ended_at = internal.now(), end_reason = 'reuse' where s.id = session.id;
    perform internal.changed('session:' || session.id);
    return internal.refuse(401, 'REFRESH_TOKEN_REUSED', 'This refresh token was replaced; its session has ended.');
  end if;
  update app.developer_sessions s
     set refresh_hash = developer_refresh.next_hash, last_used_at = internal.now(), expires_at = internal.now() + interval '30 days'
   where s.id = session.id;
  return internal.reply(200, json_build_object('developer_id', session.developer_id));
end $$;
comment on function api.developer_refresh is
  'Replaces the refresh token within its session. Refuses 401 INVALID_TOKEN; an older token of the session ends it: 401 REFRESH_TOKEN_REUSED. Locks the session.';

create or replace function api.developer_logout(sid uuid) returns api.reply
language plpgsql volatile as $$
begin
  update app.developer_sessions s set ended_at = internal.now(), end_reason = 'logout'
   where s.id = developer_logout.sid and s.ended_at is null;
  if found then
    perform internal.changed('session:' || developer_logout.sid);
  end if;
  return internal.reply(200, '{"success": true}');
end $$;
comment on function api.developer_logout is 'Ends one sign-in; the others stay. Ending what is ended, or unknown, is 200 too.';

create or replace function api.developer_session_check(sid uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('is_live', exists (
    select from app.developer_sessions s
     where s.id = developer_session_check.sid and s.ended_at is null and s.expires_at > internal.now())))
$$;
comment on function api.developer_session_check is 'Whether the access tokens of a sign-in still work.';

create or replace function api.developer_me(token json) returns api.reply
language plpgsql stable as $$
declare
  me json;
begin
  me := internal.developer_own_json();
  if me is null then
    perform internal.fail(401, 'INVALID_DEVELOPER_TOKEN', 'This account does not exist any more.');
  end if;
  return internal.reply(200, internal.json_merge(me, json_build_object('organizations', '[]'::json, 'token', developer_me.token)));
end $$;
comment on function api.developer_me is
  'The current developer with what token is held: {type, scopes, expires_at}. organizations is empty until organizations come. Refuses 401 INVALID_DEVELOPER_TOKEN.';

create or replace function internal.developer_own_json() returns json
language sql stable security definer set search_path = '' as $$
  -- definer: whether a password is set is shown to its owner, the hash to nobody but sign-in
  select internal.developer_json(d) from app.developers d where d.id = internal.developer_id()
$$;
comment on function internal.developer_own_json is 'The caller''s own account, or null.';
