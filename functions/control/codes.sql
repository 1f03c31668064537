-- Sign-in codes by mail. To prevent user enumeration, a request does the same work for an address with an account as
-- for one without: only the job that sends the mail and the sign-in itself read the account.
create or replace function api.code_mailbox(email text) returns api.reply
language plpgsql stable as $$
begin
  if not internal.is_email(btrim(code_mailbox.email)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  return internal.reply(200, json_build_object('mailbox', internal.email_mailbox(code_mailbox.email)));
end $$;
comment on function api.code_mailbox is
  'The mailbox of an address (its normal form), which rate limits count and codes are bound to. Reads no account.
   Refuses 400 INVALID_INPUT.';

create or replace function api.code_request(mailbox text, code_id uuid, code_mac text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'sign_in' then
    raise exception 'codes are made for those who sign in';
  end if;
  insert into app.developer_codes as c (mailbox, id, code_mac, expires_at, created_at)
  values (code_request.mailbox, code_request.code_id, code_request.code_mac, internal.now() + interval '10 minutes',
          internal.now())
  on conflict on constraint developer_codes_pkey do update
     set id = excluded.id, code_mac = excluded.code_mac, wrong = 0, expires_at = excluded.expires_at,
       created_at = excluded.created_at;
  perform internal.add_job('codes__mail', json_build_object('code_id', code_request.code_id),
                           'code ' || code_request.code_id);
  return internal.reply(200, '{"ok": true}');
end $$;
comment on function api.code_request is
  'Starts a sign-in by code: stores a code that is valid for ten minutes, replacing the previous one, and queues its
   mail in this transaction. The response and the work are the same whether or not the account exists.';

create or replace function api.code_mail(code_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('email', d.email)
      from app.developer_codes c
      join app.developers d on d.mailbox = c.mailbox
     where c.id = code_mail.code_id and c.expires_at > internal.now()))
$$;
comment on function api.code_mail is
  'For the job: the recipient of a code, always the address that the account was created with. Null when there is no
   account, or when the code is used, replaced or expired.';

create or replace function internal.organizations_reclaim(developer_id uuid) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  kept uuid[];
  left_count int;
  invites int;
  members int;
  machines int;
  hooks int;
  ended_id uuid;
begin
  -- whoever opened the account may own an organization together with another account of theirs. Only an accepted invite
  -- came through the mailbox
  delete from app.organization_members m
   where m.developer_id = organizations_reclaim.developer_id
     and exists (select from app.organization_members other
                  where other.organization_id = m.organization_id and other.role = 'owner'
                    and other.developer_id <> m.developer_id)
     and not exists (select from app.organizations o where o.id = m.organization_id and o.developer_id = m.developer_id)
     and not exists (select from app.organization_invites i
                      where i.organization_id = m.organization_id and i.accepted_by = m.developer_id);
  get diagnostics left_count = row_count;
  -- the organizations that are the account's alone, the personal one among them
  kept := array(select m.organization_id from app.organization_members m
                 where m.developer_id = organizations_reclaim.developer_id and m.role = 'owner'
                   and (exists (select from app.organizations o
                                 where o.id = m.organization_id and o.developer_id = m.developer_id)
                        or not exists (select from app.organization_members other
                                        where other.organization_id = m.organization_id and other.role = 'owner'
                                          and other.developer_id <> m.developer_id)));
  -- the invites before the members: one that is accepted meanwhile has made its member when this has waited for it
  update app.organization_invites i set revoked_at = internal.now()
   where (i.organization_id = any (kept) or i.invited_by = organizations_reclaim.developer_id) and i.accepted_at is null
     and i.revoked_at is null;
  get diagnostics invites = row_count;
  delete from app.organization_members m
   where m.organization_id = any (kept) and m.developer_id <> organizations_reclaim.developer_id;
  get diagnostics members = row_count;
  machines := 0;
  for ended_id in
    delete from app.service_accounts a where a.organization_id = any (kept) returning a.id
  loop
    machines := machines + 1;
    perform internal.changed('service_account:' || ended_id);
  end loop;
  for ended_id in
    update app.operator_tokens t set revoked_at = internal.now()
     where t.organization_id = any (kept) and t.revoked_at is null and t.expires_at > internal.now()
    returning t.id
  loop
    perform internal.changed('operator_token:' || ended_id);
  end loop;
  delete from app.webhooks w where w.organization_id = any (kept);
  get diagnostics hooks = row_count;
  return json_build_object('memberships', json_build_array(left_count, 0), 'invites', json_build_array(invites, 0),
                           'members', json_build_array(members, 0),
                           'service_accounts', json_build_array(machines, 0), 'webhooks', json_build_array(hooks, 0));
end $$;
comment on function internal.organizations_reclaim is
  'For internal.account_reclaim: the account leaves organizations that others own too, unless it came by an invite; in
   those that are its own, the personal one among them, other members, open invites, service accounts, operator tokens
   and webhooks end. Returns how much. Granted to nobody.';

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
  perform internal.audit_developer('developer.taken_back', account_reclaim.developer_id, internal.json_merge(
                                   json_build_object('sessions', json_build_array(sessions, 0),
                                                     'tokens', json_build_array(tokens, 0)),
                                   internal.organizations_reclaim(account_reclaim.developer_id)));
  perform internal.changed('developer:' || account_reclaim.developer_id);
end $$;
comment on function internal.account_reclaim is
  'Removes everything that could act for an account before its address was verified: password, providers, sessions,
   personal access tokens, operator tokens, approved devices, and what internal.organizations_reclaim ends. Projects
   stay, with their API keys and what is in them. The caller must hold the lock of the account''s row, which whatever
   adds one of these takes too (internal.lock_own_account).';

create or replace function internal.account_lock_for_proof(developer_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.organizations o
    where o.id in (select m.organization_id from app.organization_members m
                    where m.developer_id = account_lock_for_proof.developer_id)
    order by o.id
      for no key update;
end $$;
comment on function internal.account_lock_for_proof is
  'Locks the organizations of an account whose address is not proved, which a proof may change: before the account, as
   in every change of members.';

create or replace function internal.account_prove(them app.developers, own_sid uuid, ip text) returns void
language plpgsql volatile as $$
begin
  -- anybody can sign up with anybody's address. The person who signed up counts as the owner of the mailbox only if the
  -- verification comes from the account's own session, or within an hour from the same ip, as with a console that signs
  -- up and verifies in one session
  if not exists (select from app.developer_sessions s
                  where s.developer_id = (account_prove.them).id and s.ended_at is null
                    and s.expires_at > internal.now()
                    and (s.id = account_prove.own_sid or s.ip = account_prove.ip
                         and s.created_at > internal.now() - interval '1 hour')) then
    perform internal.account_reclaim((account_prove.them).id);
  end if;
end $$;
comment on function internal.account_prove is
  'The first proof of an account''s address: reclaims the account, unless its own session or a recent one from the same
   ip gives the proof. The caller holds the lock of the account''s row.';

create or replace function api.code_verify(sid uuid, refresh_hash text, mailbox text, code_mac text,
                                           own_sid uuid default null, ip text default null,
                                           user_agent text default null)
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
  perform internal.account_lock_for_proof(d.id) from app.developers d
    where d.mailbox = code.mailbox and not d.email_verified;
  select d.* into them from app.developers d where d.mailbox = code.mailbox for no key update;
  if them.id is null then
    return internal.refuse(401, 'OTP_INVALID', 'This code is wrong, expired, used or locked.');
  end if;
  if not them.email_verified then
    perform internal.account_prove(them, code_verify.own_sid, code_verify.ip);
    update app.developers d set email_verified = true, updated_at = internal.now() where d.id = them.id
      returning d.* into them;
  end if;
  return internal.developer_session(them, 200, code_verify.sid, code_verify.refresh_hash, code_verify.ip,
                                    code_verify.user_agent);
end $$;
comment on function api.code_verify is
  'Signs in by a code, which works once, and marks the address verified: 200 {developer}. The first verification of an
   address reclaims the account (internal.account_reclaim), unless it comes with a session of the account, own_sid, or
   within an hour of the start of one from the same ip. Refuses 401 OTP_INVALID, the same for every reason; the fifth
   wrong attempt locks the code. Locks the code, the organizations of an unproved account, then the account.';
