-- Access to sign-up: invite codes, each valid for one account, and the waitlist.
create or replace function internal.invite_lock(code_hash text, details json) returns uuid
language plpgsql volatile as $$
declare
  invite_id uuid;
begin
  -- a transaction that waits here for a concurrent sign-up then sees that the code is used
  select i.id into invite_id
    from app.invites i
   where i.code_hash = invite_lock.code_hash
     and i.used_at is null and i.revoked_at is null and i.expires_at > internal.now()
     for update;
  if invite_id is null then
    perform internal.fail(403, 'INVITE_INVALID', 'This invite code is mistyped, expired, revoked or used.',
                          invite_lock.details);
  end if;
  return invite_id;
end $$;
comment on function internal.invite_lock is
  'The invite of a valid code, locked until the transaction ends. Refuses 403 INVITE_INVALID.';

create or replace function api.invite_redeem(code_hash text, details json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  them app.developers;
  invite_id uuid;
begin
  select d.* into them from app.developers d where d.id = internal.developer_id() for no key update;
  if them.id is null then
    perform internal.fail(401, 'INVALID_DEVELOPER_TOKEN', 'This account does not exist any more.');
  end if;
  if them.provisioning = 'on' then
    return internal.reply(200, json_build_object('can_provision', true, 'redeemed', false));
  end if;
  if them.provisioning = 'revoked' then
    perform internal.fail(403, 'PROVISIONING_REVOKED',
                          'This account may no longer create projects, even with a code: contact the operator.');
  end if;
  invite_id := internal.invite_lock(invite_redeem.code_hash, invite_redeem.details);
  update app.invites i set used_at = internal.now(), used_by = them.id where i.id = invite_id;
  update app.developers d set provisioning = 'on', updated_at = internal.now() where d.id = them.id;
  return internal.reply(200, json_build_object('can_provision', true, 'redeemed', true));
end $$;
comment on function api.invite_redeem is
  'Redeems a code, so that the caller''s account may create projects: {can_provision, redeemed}. redeemed is false, and
   the code stays usable, when it may already. Refuses 403 PROVISIONING_REVOKED, INVITE_INVALID, 401
   INVALID_DEVELOPER_TOKEN. Locks the account, then the invite.';

create or replace function api.waitlist_join(email text, note text default null) returns api.reply
language plpgsql volatile as $$
begin
  if not internal.is_email(btrim(waitlist_join.email)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  -- serialised, so that the list never exceeds its limit; a full list refuses addresses that are on it too, or the
  -- response would reveal them
  perform internal.advisory_lock('waitlist');
  if (select count(*) from app.waitlist_entries) >= 10000 then
    perform internal.fail(429, 'WAITLIST_FULL', 'The waitlist is full.', null, '{"Retry-After": "86400"}');
  end if;
  insert into app.waitlist_entries (email, mailbox, note)
  values (internal.email_normal(waitlist_join.email), internal.email_mailbox(waitlist_join.email),
          left(waitlist_join.note, 500))
  on conflict on constraint waitlist_entries_mailbox_unique do nothing;
  return internal.reply(200, '{"ok": true}');
end $$;
comment on function api.waitlist_join is
  'Adds an address to the waitlist; an address that is on it already keeps its first note. The response is the same in
   both cases. Refuses 400 INVALID_INPUT, 429 WAITLIST_FULL at 10,000.';
