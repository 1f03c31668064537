-- Linking and unlinking of identities. The caller's session determines the user; an identity must be proved before it
-- is linked.
create or replace function internal.fail_in_use(app_user_id uuid default internal.user_id()) returns void
language plpgsql volatile as $$
begin
  -- a user without any identity may be merged into the account that has this identity
  perform internal.fail(409, 'IDENTITY_IN_USE', 'This identity belongs to another user.',
                        json_build_object('merge_available', not internal.has_identity(fail_in_use.app_user_id)));
end $$;
comment on function internal.fail_in_use is
  'Refuses 409 IDENTITY_IN_USE. merge_available: the user, that of the call unless given, is purely anonymous, so the
   owner of the identity may sign in and merge this user.';

create or replace function internal.linked_reply() returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.user_json(u)) from app.users u where u.id = internal.user_id()
$$;
comment on function internal.linked_reply is 'The caller''s profile after the change.';

create or replace function api.auth_link_email(email text, secret_hash text, password_hash text default null,
                                               checked_hash text default null, profile json default null)
returns api.reply
language plpgsql volatile as $$
declare
  normal constant text := internal.email_normal(auth_link_email.email);
  me app.users;
begin
  perform internal.lock_address('email', normal);
  me := internal.session_owner();
  if not internal.code_consume('link', 'email', normal, me.id, auth_link_email.secret_hash) then
    return internal.wrong_code();
  end if;
  begin
    update app.users u set email = normal, email_verified = true, updated_at = internal.now() where u.id = me.id;
  exception when unique_violation then
    perform internal.fail_in_use();
  end;
  insert into app.user_identities (app_user_id, provider, provider_id)
  values (me.id, 'email', normal)
  on conflict on constraint user_identities_unique do nothing;
  if me.email is distinct from normal or not me.email_verified then
    perform internal.identity_linked_notify(me.id, 'email');
  end if;
  if auth_link_email.password_hash is not null then
    perform internal.set_password(me, auth_link_email.password_hash, auth_link_email.checked_hash);
  end if;
  perform internal.profile_also(auth_link_email.profile);
  return internal.linked_reply();
end $$;
comment on function api.auth_link_email is
  'Links an address by a code that this session requested, and replaces the former address; password and sessions stay.
   profile: what the access of Supabase''s clients changes with it.
   Refuses 401 OTP_INVALID, UNAUTHORIZED, 409 IDENTITY_IN_USE. Locks address, user, code.';

create or replace function api.auth_link_phone(phone text, secret_hash text, profile json default null)
returns api.reply
language plpgsql volatile as $$
declare
  normal constant text := internal.email_normal(auth_link_phone.phone);
  me app.users;
begin
  perform internal.lock_address('phone', normal);
  me := internal.session_owner();
  if not internal.code_consume('link', 'phone', normal, me.id, auth_link_phone.secret_hash) then
    return internal.wrong_code();
  end if;
  begin
    update app.users u set phone = normal, phone_verified = true, updated_at = internal.now() where u.id = me.id;
  exception when unique_violation then
    perform internal.fail_in_use();
  end;
  insert into app.user_identities (app_user_id, provider, provider_id)
  values (me.id, 'phone', normal)
  on conflict on constraint user_identities_unique do nothing;
  if me.phone is distinct from normal or not me.phone_verified then
    perform internal.identity_linked_notify(me.id, 'phone');
  end if;
  perform internal.profile_also(auth_link_phone.profile);
  return internal.linked_reply();
end $$;
comment on function api.auth_link_phone is
  'Links a number by a code that this session requested, and replaces the former number. Refuses 401 OTP_INVALID,
   UNAUTHORIZED, 409 IDENTITY_IN_USE. Locks address, user, code.';

create or replace function internal.identity_link(me app.users, provider text, provider_id text, email text)
returns void
language plpgsql volatile as $$
declare
  me constant app.users := identity_link.me;
  proved constant text := internal.proved_email(identity_link.email);
  owner_id uuid;
begin
  insert into app.user_identities as mine (app_user_id, provider, provider_id)
  values (me.id, identity_link.provider, identity_link.provider_id)
  on conflict on constraint user_identities_unique do nothing;
  if found then
    perform internal.identity_linked_notify(me.id, identity_link.provider);
  else
    select i.app_user_id into owner_id
      from app.user_identities i
     where (i.provider, i.provider_id) = (identity_link.provider, identity_link.provider_id);
    if owner_id <> me.id then
      perform internal.fail_in_use(me.id);
    end if;
  end if;
  -- the owner of the session has proved this address; an address of another user stays with that user
  begin
    update app.users u
       set email = proved, email_verified = true, updated_at = internal.now()
     where u.id = me.id and proved is not null and not u.email_verified and (u.email is null or u.email = proved);
  exception when unique_violation then
    null;
  end;
end $$;
comment on function internal.identity_link is
  'Links a verified identity to a user; an address that the provider has verified, null for none, verifies the same
   email of the account, or becomes its email if the account has none and no other user has it. Refuses 409
   IDENTITY_IN_USE. The identity and the user must be locked.';

create or replace function api.auth_link_social(provider text, provider_id text, email text default null)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.lock_identity(auth_link_social.provider, auth_link_social.provider_id);
  perform internal.identity_link(internal.session_owner(), auth_link_social.provider, auth_link_social.provider_id,
                                 auth_link_social.email);
  return internal.linked_reply();
end $$;
comment on function api.auth_link_social is
  'Links a verified identity. An email that the provider has verified verifies the same email of the account, or becomes
   its email if the account has none and no other user has it. Refuses 401 UNAUTHORIZED, 409 IDENTITY_IN_USE. Locks
   identity, user.';

create or replace function api.auth_link_password(password_hash text, checked_hash text default null) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.set_password(internal.session_owner(), auth_link_password.password_hash,
                                auth_link_password.checked_hash);
  return internal.linked_reply();
end $$;
comment on function api.auth_link_password is
  'Sets a password; sessions stay. Refuses 400 INVALID_INPUT, 401 UNAUTHORIZED. Locks the user.';

create or replace function api.auth_unlink(provider text, provider_id text default null) returns api.reply
language plpgsql volatile as $$
declare
  me constant app.users := internal.session_owner();
  social constant text[] := array(select i.provider_id from app.user_identities i
                                   where i.app_user_id = me.id and i.provider not in ('email', 'phone')
                                     and i.provider = auth_unlink.provider
                                     and i.provider_id = coalesce(auth_unlink.provider_id, i.provider_id));
  ways constant int := (me.email is not null)::int + (me.phone is not null)::int
                       + (select count(*) from app.user_identities i
                           where i.app_user_id = me.id and i.provider not in ('email', 'phone'));
  is_linked constant boolean := case auth_unlink.provider
    when 'email' then me.email is not null and me.email = coalesce(internal.email_normal(auth_unlink.provider_id),
                                                                   me.email)
    when 'phone' then me.phone is not null and me.phone = coalesce(btrim(auth_unlink.provider_id), me.phone)
    when 'password' then exists (select from app.user_passwords p where p.app_user_id = me.id)
    else cardinality(social) > 0 end;
begin
  if not is_linked and auth_unlink.provider not in ('email', 'phone', 'password', 'apple', 'google')
     and not exists (select from app.oauth_providers p where p.name = auth_unlink.provider) then
    perform internal.invalid('provider', 'must be email, phone, password, apple, google, or a provider of the project',
                             'INVALID_INPUT');
  elsif not is_linked then
    perform internal.fail(404, 'IDENTITY_NOT_FOUND', 'This identity is not linked to the user.');
  end if;
  if cardinality(social) > 1 then
    perform internal.invalid('provider_id', 'is needed: several of this provider are linked', 'INVALID_INPUT');
  end if;
  -- a password alone is not a way to sign in: it needs the email
  if ways - (auth_unlink.provider <> 'password')::int < 1 then
    perform internal.fail(409, 'LAST_IDENTITY', 'This is the only way to sign in: link another one first.');
  end if;
  case auth_unlink.provider
    when 'email' then
      update app.users u set email = null, email_verified = false, updated_at = internal.now() where u.id = me.id;
      delete from app.user_passwords p where p.app_user_id = me.id;
    when 'phone' then
      update app.users u set phone = null, phone_verified = false, updated_at = internal.now() where u.id = me.id;
    when 'password' then
      delete from app.user_passwords p where p.app_user_id = me.id;
    else
      delete from app.user_identities i where (i.app_user_id, i.provider, i.provider_id) = (me.id, auth_unlink.provider,
                                        social[1]);
  end case;
  return internal.linked_reply();
end $$;
comment on function api.auth_unlink is
  'Removes a way to sign in. Removing the email also removes the password, which needs it. Refuses 404
   IDENTITY_NOT_FOUND, 409 LAST_IDENTITY, 400 INVALID_INPUT (several of the provider), 401 UNAUTHORIZED. Locks the user,
   so that concurrent requests cannot remove the last one.';

create or replace function internal.tg_users__identities() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.user_identities i
   where i.app_user_id = new.id
     and (i.provider = 'email' and i.provider_id is distinct from new.email
          or i.provider = 'phone' and i.provider_id is distinct from new.phone);
  return null;
end $$;
comment on function internal.tg_users__identities is
  'Deletes the identity of a user''s address when the address is removed or replaced, by any writer.';

create or replace trigger tg_users__identities
  after update of email, phone on app.users
  for each row when (old.email is distinct from new.email or old.phone is distinct from new.phone)
  execute function internal.tg_users__identities();
