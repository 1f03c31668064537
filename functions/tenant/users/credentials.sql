-- Ways to sign in that administrators set: a password, addresses that are known to be proved, links and codes.

create or replace function internal.user_credentials_set(user_id uuid, credentials jsonb, password_hash text,
                                                         code text) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  them app.users;
  had_password boolean;
begin
  perform internal.check_caller('developer', 'ways to sign in are set by administrators');
  select u.* into them from app.users u where u.id = user_credentials_set.user_id for update;
  perform internal.check_found(them.id is not null, 'user');
  if them.email is null and user_credentials_set.password_hash is not null then
    perform internal.invalid('password', 'needs an email to sign in with', user_credentials_set.code);
  elsif them.email is null and (user_credentials_set.credentials ->> 'verify_email')::boolean then
    perform internal.invalid('verify_email', 'needs an email', user_credentials_set.code);
  elsif them.phone is null and (user_credentials_set.credentials ->> 'verify_phone')::boolean then
    perform internal.invalid('verify_phone', 'needs a phone', user_credentials_set.code);
  end if;
  update app.users u
     set email_verified = coalesce((user_credentials_set.credentials ->> 'verify_email')::boolean, u.email_verified),
         phone_verified = coalesce((user_credentials_set.credentials ->> 'verify_phone')::boolean, u.phone_verified),
         updated_at = internal.now()
   where u.id = them.id
  returning * into them;
  insert into app.user_identities (app_user_id, provider, provider_id)
  select them.id, i.provider, i.address
    from (values ('email', them.email, them.email_verified or user_credentials_set.password_hash is not null),
                 ('phone', them.phone, them.phone_verified)) as i (provider, address, is_way)
   where i.is_way and i.address is not null
  on conflict on constraint user_identities_unique do nothing;
  if user_credentials_set.password_hash is null then
    return;
  end if;
  had_password := exists (select from app.user_passwords p where p.app_user_id = them.id);
  insert into app.user_passwords (app_user_id, password_hash, updated_at)
  values (them.id, user_credentials_set.password_hash, internal.now())
  on conflict (app_user_id) do update set password_hash = excluded.password_hash, updated_at = excluded.updated_at;
  if had_password then
    perform internal.end_sessions(them.id, 'password');
  end if;
  perform internal.audit('users.password', 'users', them.id::text);
end $$;
comment on function internal.user_credentials_set is
  'Sets {verify_email, verify_phone} and a password (null: none) of a user, for administrators, with the identities
   of the addresses. A password that is replaced ends the user''s sessions. Refuses 400 with the given code: a password
   without an email, a proof of an address that is not there. Audited as users.password. Locks the user.';

create or replace function internal.is_credential(field text) returns boolean
language sql immutable parallel safe
return is_credential.field in ('verify_email', 'verify_phone');
comment on function internal.is_credential is 'Whether a field of a user says that an address is proved.';

create or replace function internal.user_credentials(user_id uuid, patch jsonb, password_hash text, code text)
returns void
language plpgsql volatile as $$
declare
  credentials constant jsonb := coalesce((
    select jsonb_object_agg(f.key, f.value) from jsonb_each(user_credentials.patch) f
     where internal.is_credential(f.key) and f.value <> 'null'), '{}');
begin
  if credentials <> '{}' or user_credentials.password_hash is not null then
    perform internal.user_credentials_set(user_credentials.user_id, credentials, user_credentials.password_hash,
                                          user_credentials.code);
  end if;
end $$;
comment on function internal.user_credentials is
  'internal.user_credentials_set, where the body of a request names any of it; refuses what that function refuses.';

create or replace function internal.user_link_store(user_id uuid, link_id uuid, link_hash text, code_id uuid,
                                                    code_hash text) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  address constant text := (select u.email from app.users u where u.id = user_link_store.user_id);
begin
  perform internal.check_caller('developer', 'links that are not mailed are made by administrators');
  perform internal.code_store(user_link_store.code_id, null, 'email', address, 'sign_in', user_link_store.code_hash,
                              null);
  insert into app.user_codes (id, kind, channel, address, purpose, secret_hash, expires_at)
  values (user_link_store.link_id, 'magic_link', 'email', address, 'sign_in', user_link_store.link_hash,
          internal.now() + interval '15 minutes');
  perform internal.audit('users.link', 'users', user_link_store.user_id::text);
end $$;
comment on function internal.user_link_store is
  'A link (15 minutes) and a code (10 minutes) to sign in as a user by their address, which nobody mails: whoever asked
   for them does. Audited as users.link.';

create or replace function api.user_link(email text, link_id uuid, link_hash text, code_id uuid, code_hash text)
returns api.reply
language plpgsql volatile as $$
declare
  them app.users;
begin
  select u.* into them from app.users u where u.email = internal.email_normal(user_link.email);
  perform internal.check_found(them.id is not null, 'user');
  if them.is_banned then
    perform internal.fail(403, 'USER_BANNED', 'This user is banned.');
  end if;
  perform internal.user_link_store(them.id, user_link.link_id, user_link.link_hash, user_link.code_id,
                                   user_link.code_hash);
  return internal.reply(201, internal.user_admin_json(them));
end $$;
comment on function api.user_link is
  'Makes a link and a code with which the user of an address signs in, for whoever sends mails of their own; answers the
   user, 201. The secrets are the server''s: only their hashes come here. Refuses 404 NOT_FOUND, 403 USER_BANNED.';
