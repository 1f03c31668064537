-- Sign-in without a message or identity provider: by an anonymous id, or by an address with a password.
create or replace function internal.profile_of_new(app_user_id uuid, profile json) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'sign_in' then
    raise exception 'new users are described by sign-in routes, not by %', internal.caller();
  elsif profile_of_new.profile is not null then
    -- nobody is signed in yet: the change is one of the new user
    perform set_config('app.user_id', profile_of_new.app_user_id::text, true);
    perform api.me_update(profile_of_new.profile);
    perform set_config('app.user_id', '', true);
  end if;
end $$;
comment on function internal.profile_of_new is
  'The profile that the access of Supabase''s clients gives a user whom the same transaction makes; null changes
   nothing. Fails as api.me_update.';

create or replace function api.auth_anonymous(sid uuid, refresh_hash text, anonymous_id text default null,
                                              device jsonb default null, profile json default null)
returns api.reply
language plpgsql volatile as $$
declare
  requested constant text := coalesce(auth_anonymous.anonymous_id,
                                      'anon_' || translate(internal.new_id()::text || gen_random_uuid(), '-', ''));
  user_id uuid;
  is_new boolean;
begin
  insert into app.users (anonymous_id, display_name)
  values (requested, internal.generated_name())
  on conflict on constraint users_anonymous_id_unique do nothing
  returning id into user_id;
  is_new := user_id is not null;
  if not is_new then
    -- blocks new rows that refer to the user: an identity that is being linked is waited for and seen
    select u.id into user_id from app.users u where u.anonymous_id = requested for update;
    if user_id is null or internal.has_identity(user_id) then
      perform internal.fail(401, 'UNAUTHORIZED',
                            'This user now has another way to sign in: use that instead of the anonymous id.');
    end if;
  end if;
  perform internal.profile_of_new(user_id, auth_anonymous.profile);
  return internal.sign_in(user_id, is_new, 'anonymous', auth_anonymous.sid, auth_anonymous.refresh_hash,
                          auth_anonymous.device);
end $$;
comment on function api.auth_anonymous is
  'Signs in by anonymous id, 200, or creates a user, 201. Refuses 401 UNAUTHORIZED once the user has any identity. The
   display name is always generated.';

create or replace function api.auth_email_signup(sid uuid, refresh_hash text, email text, password_hash text,
                                                 display_name text default null, device jsonb default null,
                                                 profile json default null)
returns api.reply
language plpgsql volatile as $$
declare
  user_id uuid;
begin
  if not internal.is_email(btrim(auth_email_signup.email)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  if internal.is_blank(auth_email_signup.display_name) then
    perform internal.invalid('display_name', 'must have 1 to 100 characters', 'INVALID_INPUT');
  end if;
  insert into app.users (email, display_name)
  values (internal.email_normal(auth_email_signup.email),
          coalesce(auth_email_signup.display_name, internal.generated_name()))
  on conflict on constraint users_email_unique do nothing
  returning id into user_id;
  if user_id is null then
    perform internal.fail(409, 'EMAIL_EXISTS', 'This address is in use.', '{"field": "email"}');
  end if;
  if auth_email_signup.display_name is not null then
    perform internal.moderate('display_name', 'user', user_id, auth_email_signup.display_name, author_id => user_id);
  end if;
  insert into app.user_passwords (app_user_id, password_hash) values (user_id, auth_email_signup.password_hash);
  -- records that the address is claimed; until it is proved, whoever proves it takes the account over
  insert into app.user_identities (app_user_id, provider, provider_id)
  values (user_id, 'email', internal.email_normal(auth_email_signup.email));
  perform internal.profile_of_new(user_id, auth_email_signup.profile);
  return internal.sign_in(user_id, true, 'email', auth_email_signup.sid, auth_email_signup.refresh_hash,
                          auth_email_signup.device);
end $$;
comment on function api.auth_email_signup is
  'Creates a user with address and password, signed in, address unverified: 201. Refuses 409 EMAIL_EXISTS, 400
   CONTENT_REJECTED for a display_name that a rule of moderation blocks.';

create or replace function api.auth_email_password(email text) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('email', e.email, 'user_id', u.id, 'password_hash', p.password_hash))
    from (select internal.email_normal(auth_email_password.email) as email) e
    left join app.users u on u.email = e.email
    left join app.user_passwords p on p.app_user_id = u.id
$$;
comment on function api.auth_email_password is
  'For the server alone: the user whose password to check, nulls when there is none, and the normalised address, by
   which attempts are counted.';

create or replace function api.auth_email_login(sid uuid, refresh_hash text, user_id uuid, password_hash text,
                                                device jsonb default null, renewed_hash text default null)
returns api.reply
language plpgsql volatile as $$
begin
  -- the password may have changed, or have been deleted with a reclaimed account, during the check
  perform from app.users u where u.id = auth_email_login.user_id for update;
  perform from app.user_passwords p
    where p.app_user_id = auth_email_login.user_id and p.password_hash = auth_email_login.password_hash;
  if not found then
    perform internal.fail(401, 'UNAUTHORIZED', 'The email or the password is wrong.');
  end if;
  if auth_email_login.renewed_hash is not null then
    update app.user_passwords p set password_hash = auth_email_login.renewed_hash
      where p.app_user_id = auth_email_login.user_id;
  end if;
  return internal.sign_in(auth_email_login.user_id, false, 'email', auth_email_login.sid, auth_email_login.refresh_hash,
                          auth_email_login.device);
end $$;
comment on function api.auth_email_login is
  'Signs in the user whose hash, which the server has checked, is still the stored one. Refuses 401 UNAUTHORIZED, 403
   USER_BANNED. Locks the user.';

create or replace function api.auth_password_state() returns api.reply
language plpgsql volatile as $$
declare
  me constant app.users := internal.session_owner();
begin
  return internal.reply(200, json_build_object(
    'password_hash', (select p.password_hash from app.user_passwords p where p.app_user_id = me.id),
    'is_young', internal.session_is_young()));
end $$;
comment on function api.auth_password_state is
  'For the server alone: the caller''s password hash, null when there is none, and whether the session is younger than
   10 minutes. Refuses 401 UNAUTHORIZED.';

create or replace function internal.set_password(me app.users, password_hash text, checked_hash text) returns void
language plpgsql volatile as $$
declare
  stored constant text := (select p.password_hash from app.user_passwords p where p.app_user_id = (set_password.me).id);
begin
  if stored is distinct from set_password.checked_hash then
    perform internal.fail(401, 'UNAUTHORIZED', 'The password has just changed: try again.');
  end if;
  if (select u.email from app.users u where u.id = (set_password.me).id) is null then
    -- a password stops sign-in by anonymous id; without an email the user could not sign in at all
    perform internal.invalid('password', 'needs an email to sign in with: link one first', 'INVALID_INPUT');
  end if;
  insert into app.user_passwords as mine (app_user_id, password_hash, updated_at)
  values ((set_password.me).id, set_password.password_hash, internal.now())
  on conflict (app_user_id) do update set password_hash = excluded.password_hash, updated_at = excluded.updated_at;
  if stored is null then
    perform internal.identity_linked_notify((set_password.me).id, 'password');
  end if;
end $$;
comment on function internal.set_password is
  'Replaces the password that the server has checked (null: none was set). Refuses 401 UNAUTHORIZED when it has changed
   since, 400 INVALID_INPUT without an email.';

create or replace function internal.profile_also(profile json) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.user_id() is not null and profile_also.profile is not null then
    perform api.me_update(profile_also.profile);
  end if;
end $$;
comment on function internal.profile_also is
  'A change of the caller''s profile beside another one of their account, in its transaction; null changes nothing.
   Fails as api.me_update.';

create or replace function api.auth_password_set(password_hash text, checked_hash text default null,
                                                 profile json default null)
returns api.reply
language plpgsql volatile as $$
declare
  me constant app.users := internal.session_owner();
begin
  perform internal.set_password(me, auth_password_set.password_hash, auth_password_set.checked_hash);
  perform internal.end_sessions(me.id, 'password', internal.session_id());
  perform internal.profile_also(auth_password_set.profile);
  return internal.reply(200, '{"success": true}');
end $$;
comment on function api.auth_password_set is
  'Sets the caller''s password and ends their other sessions; profile: what the access of Supabase''s clients changes
   with it. Refuses 400 INVALID_INPUT, 401 UNAUTHORIZED. Locks the user.';
