-- Sign-in with an identity token (OpenID Connect). The server has verified it and passes its claims.
create or replace function internal.lock_identity(provider text, provider_id text) returns void
language sql volatile as $$
  select internal.advisory_lock('identity', lock_identity.provider || ' ' || lock_identity.provider_id)
$$;
comment on function internal.lock_identity is
  'Serialises sign-in with, linking and unlinking of an identity of a provider. Held until the end of the transaction.';

create or replace function internal.identity_linked_notify(app_user_id uuid, provider text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() not in ('sign_in', 'user') then
    raise exception 'identities are linked by sign-in, not by %', internal.caller();
  end if;
  perform internal.emit(identity_linked_notify.app_user_id, 'svc.user.identity_linked',
                        jsonb_build_object('provider', identity_linked_notify.provider));
end $$;
comment on function internal.identity_linked_notify is 'Emits svc.user.identity_linked.';

create or replace function internal.user_of_identity(provider text, provider_id text) returns app.users
language plpgsql volatile as $$
declare
  them app.users;
begin
  select u.* into them
    from app.user_identities i
    join app.users u on u.id = i.app_user_id
   where (i.provider, i.provider_id) = (user_of_identity.provider, user_of_identity.provider_id)
     for update of u;
  -- the identity may have been unlinked, or its account reclaimed, while this waited for the user
  if them.id is not null and not exists (
       select from app.user_identities i
        where (i.provider, i.provider_id, i.app_user_id) = (user_of_identity.provider, user_of_identity.provider_id,
                                                            them.id)) then
    return null;
  end if;
  return them;
end $$;
comment on function internal.user_of_identity is
  'The user who has this identity of a provider, with the row locked; null when there is none.';

create or replace function api.auth_social(sid uuid, refresh_hash text, provider text, provider_id text,
                                           email text default null, display_name text default null,
                                           device jsonb default null)
returns api.reply
language plpgsql volatile as $$
declare
  proved constant text := internal.proved_email(auth_social.email);
  them app.users;
  is_new boolean := false;
begin
  perform internal.lock_identity(auth_social.provider, auth_social.provider_id);
  if proved is not null then
    perform internal.lock_address('email', proved);
  end if;
  them := internal.user_of_identity(auth_social.provider, auth_social.provider_id);
  if them.id is not null then
    if them.email = proved and not them.email_verified then
      perform internal.email_proved_elsewhere(them);
    end if;
  else
    insert into app.users (email, email_verified, display_name)
    values (proved, proved is not null,
            coalesce(case when not internal.is_blank(auth_social.display_name) then auth_social.display_name end,
                     internal.generated_name()))
    on conflict on constraint users_email_unique do nothing
    returning * into them;
    is_new := them.id is not null;
    if is_new and not internal.is_blank(auth_social.display_name) then
      -- the provider chose the name: a name that a moderation rule blocks is hidden rather than refused, so that the
      -- user can sign in
      perform internal.moderate('display_name', 'user', them.id, them.display_name, author_id => them.id,
                                may_block => false);
      select u.* into them from app.users u where u.id = them.id;
    end if;
    if not is_new then
      select u.* into them from app.users u where u.email = proved for update;
      if not found then
        perform internal.fail(401, 'UNAUTHORIZED', 'The account has just changed: try again.');
      end if;
      if them.email_verified then
        perform internal.fail(409, 'LINK_REQUIRED',
                              'This address has an account: sign in to it another way, then link this provider.');
      end if;
      perform internal.email_proved_elsewhere(them);
    end if;
  end if;
  -- also when the account was reclaimed by one of its own identities
  insert into app.user_identities (app_user_id, provider, provider_id)
  values (them.id, auth_social.provider, auth_social.provider_id)
  on conflict on constraint user_identities_unique do nothing;
  if found and not is_new then
    perform internal.identity_linked_notify(them.id, auth_social.provider);
  end if;
  return internal.sign_in(them.id, is_new, auth_social.provider, auth_social.sid, auth_social.refresh_hash,
                          auth_social.device);
end $$;
comment on function api.auth_social is
  'Signs in with a verified identity; email is sent only when the provider has verified it. 201 for a new user. If the
   address of an account is unproved, the person who proves it takes the account over. Refuses 401 UNAUTHORIZED, 409
   LINK_REQUIRED when another account has proved the address; 403 USER_BANNED. Locks identity, address, user.';

create or replace function internal.proved_email(email text) returns text
language sql immutable
return case when internal.is_email(btrim(proved_email.email)) then internal.email_normal(proved_email.email) end;
comment on function internal.proved_email is
  'The normalised address that a provider has verified; null when it is not valid here.';
