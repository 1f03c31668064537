-- Passwordless sign-in: six-digit codes by mail and phone, magic links. A request reads no account, so that neither its
-- response nor its duration reveals whether there is one (user enumeration). Codes and tokens are made by the server;
-- this database stores only their hashes.
comment on table app.user_codes is
  'One-time codes and magic links. secret_hash is the HMAC of a code under SECRETS_KEY, or the SHA-256 of a link''s
   token. sealed is the content of the message, encrypted by the server, until it is sent. app_user_id is the user whose
   session requested the code; null for sign-in.';

create or replace function internal.has_provider(provider text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.integrations i where i.provider = has_provider.provider and i.is_active)
$$;
comment on function internal.has_provider is
  'Whether a provider is connected and enabled. Returns nothing of its configuration.';

create or replace function internal.message_limit_take(what text, address text, hourly int, daily int) returns boolean
language sql volatile as $$
  select internal.take_limits(json_build_array(
           json_build_object('key', k.key || ' hour', 'max', message_limit_take.hourly, 'seconds', 3600),
           json_build_object('key', k.key || ' day', 'max', message_limit_take.daily, 'seconds', 86400))) is null
    from (select 'client ' || message_limit_take.what || ' address '
          || encode(sha256(convert_to(message_limit_take.address, 'UTF8')), 'hex') as key) k
$$;
comment on function internal.message_limit_take is
  'Counts one message against the hourly and daily limits of an address. Returns false, and counts nothing, when either
   limit is reached.';

create or replace function internal.code_store(id uuid, app_user_id uuid, channel text, address text, purpose text,
                                               secret_hash text, sealed text, locales text[] default null)
returns void
language sql volatile as $$
  insert into app.user_codes as code (id, app_user_id, kind, channel, address, purpose, secret_hash, sealed, locales,
                                      expires_at)
  values (code_store.id, code_store.app_user_id, 'code', code_store.channel, code_store.address, code_store.purpose,
          code_store.secret_hash,
          code_store.sealed, code_store.locales, internal.now() + interval '10 minutes')
  on conflict (channel, address, purpose, app_user_id) where kind = 'code' and used_at is null do update
     set id = excluded.id, secret_hash = excluded.secret_hash, sealed = excluded.sealed, locales = excluded.locales,
       attempts = 0, sent_at = null,
         created_at = excluded.created_at, expires_at = excluded.expires_at
$$;
comment on function internal.code_store is
  'Stores a code for 10 minutes. Replaces the current code for the same purpose, address and user.';

create or replace function api.auth_code_request(id uuid, channel text, address text, purpose text, secret_hash text,
                                                 sealed text, locales text[] default null)
returns api.reply
language plpgsql volatile as $$
declare
  ok constant json := '{"ok": true}';
  normal constant text := internal.email_normal(auth_code_request.address);
  me app.users;
begin
  if auth_code_request.channel = 'email' and not internal.is_email(btrim(auth_code_request.address)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  if auth_code_request.channel = 'phone' and not internal.has_provider('sms') then
    perform internal.fail(400, 'PROVIDER_NOT_CONFIGURED',
                          'This project has no provider for text messages: connect one first.');
  end if;
  if auth_code_request.purpose <> 'sign_in' then
    me := internal.session_owner();
  end if;
  -- a code that confirms a deletion is sent only to the account's own address
  if auth_code_request.purpose = 'delete'
     and normal is distinct from (case auth_code_request.channel when 'email' then me.email else me.phone end) then
    return internal.reply(200, ok);
  end if;
  -- a request over the limit does not replace a valid code
  if not internal.message_limit_take(case auth_code_request.channel when 'email' then 'code' else 'phone code' end,
                                     normal,
                                     case auth_code_request.channel when 'email' then 5 else 3 end, 20) then
    return internal.reply(200, ok);
  end if;
  perform internal.code_store(auth_code_request.id, me.id, auth_code_request.channel, normal, auth_code_request.purpose,
                              auth_code_request.secret_hash, auth_code_request.sealed, auth_code_request.locales);
  return internal.reply(200, ok);
end $$;
comment on function api.auth_code_request is
  'Creates a code for an address, valid for 10 minutes, and replaces the current one; a trigger queues its message.
   Always answers 200: each address gets 5 codes an hour (phone: 3) and 20 a day, and a request over the limit does
   nothing. Refuses 400 INVALID_INPUT, PROVIDER_NOT_CONFIGURED; 401 UNAUTHORIZED for purposes that need a session.';

create or replace function internal.code_consume(purpose text, channel text, address text, app_user_id uuid,
                                                 secret_hash text)
returns boolean
language plpgsql volatile as $$
declare
  code app.user_codes;
begin
  select c.* into code
    from app.user_codes c
   where c.kind = 'code' and c.used_at is null
     and (c.channel, c.address, c.purpose) = (code_consume.channel, code_consume.address, code_consume.purpose)
     and c.app_user_id is not distinct from code_consume.app_user_id
     for update;
  if code.id is null or code.attempts >= 5 or code.expires_at <= internal.now() then
    return false;
  end if;
  if code.secret_hash <> code_consume.secret_hash then
    update app.user_codes c set attempts = c.attempts + 1 where c.id = code.id;
    return false;
  end if;
  update app.user_codes c set used_at = internal.now(), sealed = null where c.id = code.id;
  return true;
end $$;
comment on function internal.code_consume is
  'Consumes a code for its purpose, address and user: true once. A wrong attempt is counted, and the fifth locks the
   code; so after false the caller must return, not raise. Locks the code.';

create or replace function internal.deletion_code_consume(secret_hash text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  address record;
  is_used boolean := false;
begin
  if internal.caller() <> 'user' then
    raise exception 'an account is deleted by its own session, not by %', internal.caller();
  end if;
  for address in
    select own.channel, own.address
      from app.users u
     cross join lateral (values ('email', u.email), ('phone', u.phone)) as own (channel, address)
     where u.id = internal.user_id() and own.address is not null
     order by own.channel
  loop
    is_used := internal.code_consume('delete', address.channel, address.address, internal.user_id(),
                                     deletion_code_consume.secret_hash) or is_used;
  end loop;
  return is_used;
end $$;
comment on function internal.deletion_code_consume is
  'Consumes a code that the caller requested by email or phone to delete their account. A code that was sent to a former
   address of theirs is invalid. After false return, do not raise: the wrong attempt is counted. The caller must hold
   the lock on the user.';

create or replace function internal.wrong_code() returns api.reply
language sql immutable
return internal.refuse(401, 'OTP_INVALID', 'The code is wrong, used, locked or expired: request a new one.');
comment on function internal.wrong_code is '401 OTP_INVALID, returned so that the wrong attempt stays counted.';

create or replace function internal.sign_in_by_email(email text, method text, sid uuid, refresh_hash text, device jsonb)
returns api.reply
language plpgsql volatile as $$
declare
  them app.users;
  is_new boolean;
begin
  insert into app.users (email, email_verified, display_name)
  values (sign_in_by_email.email, true, internal.generated_name())
  on conflict on constraint users_email_unique do nothing
  returning * into them;
  is_new := them.id is not null;
  if not is_new then
    select u.* into them from app.users u where u.email = sign_in_by_email.email for update;
    if not found then
      -- the account was deleted, or its address was changed, at this moment
      perform internal.fail(401, 'UNAUTHORIZED', 'The account has just changed: try again.');
    end if;
    if not them.email_verified then
      perform internal.email_proved_elsewhere(them);
    end if;
  end if;
  insert into app.user_identities (app_user_id, provider, provider_id)
  values (them.id, 'email', them.email)
  on conflict on constraint user_identities_unique do nothing;
  return internal.sign_in(them.id, is_new, sign_in_by_email.method, sign_in_by_email.sid, sign_in_by_email.refresh_hash,
                          sign_in_by_email.device);
end $$;
comment on function internal.sign_in_by_email is
  'Signs in the person who has just proved an address: as its user, or as a new, verified user. Reclaims an account with
   an unproved address. The caller must hold the address lock.';

create or replace function internal.sign_in_by_phone(phone text, sid uuid, refresh_hash text, device jsonb)
returns api.reply
language plpgsql volatile as $$
declare
  them app.users;
  is_new boolean;
begin
  insert into app.users (phone, phone_verified, display_name)
  values (sign_in_by_phone.phone, true, internal.generated_name())
  on conflict on constraint users_phone_unique do nothing
  returning * into them;
  is_new := them.id is not null;
  if not is_new then
    -- only an administrator can set a phone that nobody has proved
    update app.users u
       set phone_verified = true
     where u.phone = sign_in_by_phone.phone
    returning u.* into them;
    if not found then
      perform internal.fail(401, 'UNAUTHORIZED', 'The account has just changed: try again.');
    end if;
  end if;
  insert into app.user_identities (app_user_id, provider, provider_id)
  values (them.id, 'phone', them.phone)
  on conflict on constraint user_identities_unique do nothing;
  return internal.sign_in(them.id, is_new, 'phone', sign_in_by_phone.sid, sign_in_by_phone.refresh_hash,
                          sign_in_by_phone.device);
end $$;
comment on function internal.sign_in_by_phone is
  'Signs in the person who has just proved a number: as its user, or as a new one. The caller must hold the address
   lock.';

create or replace function api.auth_offered() returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('phone', internal.has_provider('sms')))
$$;
comment on function api.auth_offered is 'With what users may sign in beside mail: {phone}, whether texts can be sent.';

create or replace function api.auth_code_sign_in(channel text, address text, secret_hash text, sid uuid,
                                                 refresh_hash text, device jsonb default null)
returns api.reply
language plpgsql volatile as $$
declare
  normal constant text := internal.email_normal(auth_code_sign_in.address);
  reply api.reply;
begin
  if auth_code_sign_in.channel = 'phone' and not internal.has_provider('sms') then
    perform internal.fail(400, 'PROVIDER_NOT_CONFIGURED',
                          'This project has no provider for text messages: connect one first.');
  end if;
  perform internal.lock_address(auth_code_sign_in.channel, normal);
  if not internal.code_consume('sign_in', auth_code_sign_in.channel, normal, null, auth_code_sign_in.secret_hash) then
    return internal.wrong_code();
  end if;
  if auth_code_sign_in.channel = 'email' then
    reply := internal.sign_in_by_email(normal, 'email_code', auth_code_sign_in.sid, auth_code_sign_in.refresh_hash,
                                       auth_code_sign_in.device);
  else
    reply := internal.sign_in_by_phone(normal, auth_code_sign_in.sid, auth_code_sign_in.refresh_hash,
                                       auth_code_sign_in.device);
  end if;
  return reply;
end $$;
comment on function api.auth_code_sign_in is
  'Signs in by a code: 200, or 201 for a new user. If nobody had proved the account''s address, the person who proves it
   takes the account over. Refuses 401 OTP_INVALID, 400 PROVIDER_NOT_CONFIGURED, 403 USER_BANNED.';

create or replace function api.auth_magic_link_request(id uuid, email text, secret_hash text, sealed text,
                                                       locales text[] default null)
returns api.reply
language plpgsql volatile as $$
declare
  normal constant text := internal.email_normal(auth_magic_link_request.email);
begin
  if not internal.is_email(btrim(auth_magic_link_request.email)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  if internal.message_limit_take('magic link', normal, 5, 20) then
    insert into app.user_codes (id, kind, channel, address, purpose, secret_hash, sealed, locales, expires_at)
    values (auth_magic_link_request.id, 'magic_link', 'email', normal, 'sign_in', auth_magic_link_request.secret_hash,
            auth_magic_link_request.sealed, auth_magic_link_request.locales, internal.now() + interval '15 minutes');
  end if;
  return internal.reply(200, '{"ok": true}');
end $$;
comment on function api.auth_magic_link_request is
  'Creates a link for an address, valid for 15 minutes; earlier links stay valid. Always answers 200: each address gets
   5 links an hour and 20 a day, and a request over the limit does nothing. Refuses 400 INVALID_INPUT.';

create or replace function api.auth_magic_link_verify(token_hash text, sid uuid, refresh_hash text,
                                                      device jsonb default null)
returns api.reply
language plpgsql volatile as $$
declare
  address text;
begin
  -- lock order: the address, then the link
  select c.address into address from app.user_codes c
   where c.kind = 'magic_link' and c.secret_hash = auth_magic_link_verify.token_hash;
  if address is not null then
    perform internal.lock_address('email', address);
    update app.user_codes c
       set used_at = internal.now(), sealed = null
     where c.kind = 'magic_link' and c.secret_hash = auth_magic_link_verify.token_hash
       and c.used_at is null and c.expires_at > internal.now();
  end if;
  if not found or address is null then
    perform internal.fail(401, 'INVALID_TOKEN', 'The link was used or has expired: request a new one.');
  end if;
  return internal.sign_in_by_email(address, 'magic_link', auth_magic_link_verify.sid,
                                   auth_magic_link_verify.refresh_hash,
                                   auth_magic_link_verify.device);
end $$;
comment on function api.auth_magic_link_verify is
  'Signs in by a link, once: 200, or 201 for a new user, verified. If nobody had proved the account''s address, the
   person who proves it takes the account over. Refuses 401 INVALID_TOKEN, 403 USER_BANNED.';
