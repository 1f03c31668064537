-- Sign-in codes by mail. To prevent user enumeration, a request does the same work for an address with an account as for one without: only the
-- job that sends the mail and the sign-in itself read the account.
create or replace function internal.code_start(mailbox text, id uuid, code_mac text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'sign_in' then
    raise exception 'codes are made for those who sign in';
  end if;
  insert into app.developer_codes as c (mailbox, id, code_mac, expires_at, created_at)
  values (code_start.mailbox, code_start.id, code_start.code_mac, internal.now() + interval '10 minutes', internal.now())
  on conflict on constraint developer_codes_pkey do update
     set id = excluded.id, code_mac = excluded.code_mac, wrong = 0, expires_at = excluded.expires_at, created_at = excluded.created_at;
  perform internal.add_job('codes__mail', json_build_object('code_id', code_start.id), 'code ' || code_start.id);
end $$;
comment on function internal.code_start is 'Stores a code that is valid for ten minutes, replacing the previous one, and queues its mail in this transaction.';

create or replace function api.code_mailbox(email text) returns api.reply
language plpgsql stable as $$
begin
  if not internal.is_email(btrim(code_mailbox.email)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  return internal.reply(200, json_build_object('mailbox', internal.email_mailbox(code_mailbox.email)));
end $$;
comment on function api.code_mailbox is
  'The mailbox of an address (its normal form), which rate limits count and codes are bound to. Reads no account. Refuses 400 INVALID_INPUT.';

create or replace function api.code_request(mailbox text, code_id uuid, code_mac text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.code_start(code_request.mailbox, code_request.code_id, code_request.code_mac);
  return internal.reply(200, '{"ok": true}');
end $$;
comment on function api.code_request is 'Starts a sign-in by code. The response and the work are the same whether or not the account exists.';

create or replace function api.code_mail(code_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('email', d.email)
      from app.developer_codes c
      join app.developers d on d.mailbox = c.mailbox
     where c.id = code_mail.code_id and c.expires_at > internal.now()))
$$;
comment on function api.code_mail is
  'For the job: the recipient of a code, always the address that the account was created with. Null when there is no account, or when the code is used, replaced or expired.';

create or replace function internal.account_reclaim(developer_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  sessions int;
  tokens int;
begin
  if internal.caller() <> 'sign_in' then
    raise exception 'accounts are taken back by proof of their address, not by %', internal.caller();
  end if;
  update app.developers d set password_hash = null, oauth_providers = '{}', updated_at = internal.now()
   where d.id = account_reclaim.developer_id;
  delete from app.developer_identities i where i.developer_id = account_reclaim.developer_id;
  update app.developer_sessions s set ended_at = internal.now(), end_reason = 'taken_back'
   where s.developer_id = account_reclaim.developer_id and s.ended_at is null;
  get diagnostics sessions = row_count;
  update app.developer_tokens t set revoked_at = internal.now(), updated_at = internal.now()
   where t.developer_id = account_reclaim.developer_id and t.revoked_at is null;
  get diagnostics tokens = row_count;
  update app.operator_tokens t set revoked_at = internal.now()
   where t.developer_id = account_reclaim.developer_id and t.revoked_at is null and t.expires_at > internal.now();
  -- whoever made the account may have let another account of theirs into its personal organization
  update app.organization_invites i set revoked_at = internal.now()
    from app.organizations o
   where o.developer_id = account_reclaim.developer_id and i.organization_id = o.id and i.accepted_at is null and i.revoked_at is null;
  delete from app.organization_members m
   using app.organizations o
   where o.developer_id = account_reclaim.developer_id and m.organization_id = o.id and m.developer_id <> account_reclaim.developer_id;
  perform internal.audit_developer('developer.taken_back', account_reclaim.developer_id,
                                   json_build_object('sessions', json_build_array(sessions, 0), 'tokens', json_build_array(tokens, 0)));
  perform internal.changed('developer:' || account_reclaim.developer_id);
end $$;
comment on function internal.account_reclaim is
  'Removes every credential that an account had before its address was verified: password, providers, sessions, personal access tokens, operator tokens, and the
   other members and open invites of its personal organization. The caller must hold the lock of the account''s row.';

create or replace function internal.account_prove(them app.developers, own_sid uuid, ip text) returns void
language plpgsql volatile as $$
begin
  -- anybody can sign up with anybody's address. The person who signed up counts as the owner of the mailbox only if the verification comes from
  -- the account's own session, or within an hour from the same ip, as with a console that signs up and verifies in one session
  if not exists (select from app.developer_sessions s
                  where s.developer_id = (account_prove.them).id and s.ended_at is null and s.expires_at > internal.now()
                    and (s.id = account_prove.own_sid or s.ip = account_prove.ip and s.created_at > internal.now() - interval '1 hour')) then
    perform internal.account_reclaim((account_prove.them).id);
  end if;
end $$;
comment on function internal.account_prove is
  'The first proof of an account''s address: reclaims the account, unless its own session or a recent one from the same ip gives the proof. The caller holds
   the lock of the account''s row.';

create or replace function api.code_verify(sid uuid, refresh_hash text, mailbox text, code_mac text, own_sid uuid default null,
                                           ip text default null, user_agent text default null)
returns api.reply
language plpgsql volatile as $$
declare
  code app.developer_codes;
  them app.developers;
begin
  select c.* into code from app.developer_codes c where c.mailbox = code_verify.mailbox for update;
  if code.id is null or code.expires_at <= internal.now() or code.wrong >= 5 then
    return internal.refuse(401, 'OTP_INVALID', 'This code is wrong, expired, used or locked.');
  end if;
  if code.code_mac <> code_verify.code_mac then
    -- returned, not raised: the failed attempt must be stored
    update app.developer_codes c set wrong = c.wrong + 1 where c.mailbox = code.mailbox;
    return internal.refuse(401, 'OTP_INVALID', 'This code is wrong, expired, used or locked.');
  end if;
  delete from app.developer_codes c where c.mailbox = code.mailbox;
  select d.* into them from app.developers d where d.mailbox = code.mailbox for no key update;
  if them.id is null then
    return internal.refuse(401, 'OTP_INVALID', 'This code is wrong, expired, used or locked.');
  end if;
  if not them.email_verified then
    perform internal.account_prove(them, code_verify.own_sid, code_verify.ip);
    update app.developers d set email_verified = true, updated_at = internal.now() where d.id = them.id returning d.* into them;
  end if;
  return internal.developer_session(them, 200, code_verify.sid, code_verify.refresh_hash, code_verify.ip, code_verify.user_agent);
end $$;
comment on function api.code_verify is
  'Signs in by a code, which works once, and marks the address verified: 200 {developer}. The first verification of an address reclaims the account
   (internal.account_reclaim), unless it comes with a session of the account, own_sid, or within an hour of the start of one from the same ip. Refuses
   401 OTP_INVALID, the same for every reason; the fifth wrong attempt locks the code. Locks the code, then the account.';
