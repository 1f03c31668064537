-- Invites into an organization, by mail. The token in the mail derives from the invite's id and SECRETS_KEY; the row
-- has its hash only.
create or replace function internal.organization_invite_status(i app.organization_invites) returns text
language sql stable as $$
  select case
    when (organization_invite_status.i).accepted_at is not null then 'accepted'
    when (organization_invite_status.i).revoked_at is not null then 'revoked'
    when (organization_invite_status.i).expires_at <= internal.now() then 'expired'
    else 'pending'
  end
$$;
comment on function internal.organization_invite_status is
  'The status of an invite: pending, accepted, revoked or expired.';

create or replace function internal.organization_invite_json(i app.organization_invites) returns json
language sql stable as $$
  select json_build_object(
    'id', (organization_invite_json.i).id, 'email', (organization_invite_json.i).email,
      'role', (organization_invite_json.i).role,
    'status', internal.organization_invite_status(organization_invite_json.i),
    'expires_at', internal.iso((organization_invite_json.i).expires_at),
    'created_at', internal.iso((organization_invite_json.i).created_at))
$$;
comment on function internal.organization_invite_json is 'An invite as responses show it, without its token.';

create or replace function internal.organization_invite_make(organization_id uuid, id uuid, email text, role text,
                                                             token_hash text, sandbox_invites boolean default false)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  own_mailbox constant text := internal.email_mailbox(organization_invite_make.email);
  made app.organization_invites;
begin
  -- owners are made by owners
  perform internal.organization_lock(organization_invite_make.organization_id,
                                     case when organization_invite_make.role = 'owner' then 'owner' else 'admin' end);
  perform internal.lock_own_account();
  -- the mail names the inviter, and who that is nobody knows yet
  if not organization_invite_make.sandbox_invites
     and exists (select from app.developers d where d.id = internal.developer_id() and d.account_state = 'sandbox') then
    perform internal.fail(403, 'EMAIL_NOT_VERIFIED',
                          'Verify your own address before you invite others: sign in with a code by mail.');
  end if;
  if exists (select from app.organization_members m
               join app.developers d on d.id = m.developer_id
              where m.organization_id = organization_invite_make.organization_id and d.mailbox = own_mailbox) then
    perform internal.fail(409, 'ALREADY_MEMBER', 'The account with this address is a member already.',
                          '{"field": "email"}');
  end if;
  if exists (select from app.organization_invites i
              where i.organization_id = organization_invite_make.organization_id and i.mailbox = own_mailbox
                and internal.organization_invite_status(i) = 'pending') then
    perform internal.fail(409, 'CONFLICT', 'This address has a pending invite: revoke it to send another one.',
                          '{"field": "email"}');
  end if;
  perform internal.check_limit((select count(*) from app.organization_invites i
                                 where i.organization_id = organization_invite_make.organization_id
                                   and i.accepted_at is null and i.revoked_at is null
                                   and i.expires_at > internal.now()),
                               50, 'An organization has at most 50 pending invites: revoke one first.');
  insert into app.organization_invites (id, organization_id, email, mailbox, role, token_hash, invited_by, expires_at)
  values (organization_invite_make.id, organization_invite_make.organization_id,
          internal.email_normal(organization_invite_make.email), own_mailbox,
          organization_invite_make.role, organization_invite_make.token_hash, internal.developer_id(),
          internal.now() + interval '7 days')
  returning * into made;
  perform internal.add_job('organizations__invite', json_build_object('invite_id', made.id),
                           'organization invite ' || made.id);
  return internal.reply(201, internal.organization_invite_json(made));
end $$;
comment on function internal.organization_invite_make is
  'Invites an address for seven days and queues the mail, in this transaction. Refuses 404 NOT_FOUND, 403
   ROLE_FORBIDDEN, EMAIL_NOT_VERIFIED (unless sandbox_invites), 409 ALREADY_MEMBER, CONFLICT (a pending invite of the
   address), LIMIT_REACHED, 401 INVALID_DEVELOPER_TOKEN. Locks the organization, then the account of the caller.';

create or replace function api.organization_invite_create(organization_id uuid, id uuid, email text, role text,
                                                          token_hash text, sandbox_invites boolean default false)
returns api.reply
language plpgsql volatile as $$
begin
  if not internal.is_email(btrim(organization_invite_create.email)) then
    perform internal.invalid('email', 'must be a mail address');
  end if;
  return internal.organization_invite_make(organization_invite_create.organization_id, organization_invite_create.id,
                                           organization_invite_create.email,
                                           organization_invite_create.role, organization_invite_create.token_hash,
                                           organization_invite_create.sandbox_invites);
end $$;
comment on function api.organization_invite_create is
  'Invites an address: 201. Refuses 400 VALIDATION_ERROR, and as internal.organization_invite_make.';

select internal.list_declare('organization_invites_page', null::app.organization_invites, 'organization_invite_json',
                             '{created_at,id}',
                             required => '{organization_id}');

create or replace function api.organization_invite_list(org_id uuid, page_limit int, page_offset bigint)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.organization_check(organization_invite_list.org_id, 'viewer');
  return internal.organization_invites_page(organization_invite_list.org_id, organization_invite_list.page_offset,
                                            organization_invite_list.page_limit);
end $$;
comment on function api.organization_invite_list is
  'Invites of an organization of the caller, newest first, with those that ended; they are deleted 90 days after their
   end. Refuses 404 NOT_FOUND.';

create or replace function internal.organization_invite_not_pending(status text) returns void
language plpgsql stable as $$
begin
  perform internal.fail(409, 'INVITE_NOT_PENDING', format('This invite is %s.', organization_invite_not_pending.status),
                        json_build_object('status', organization_invite_not_pending.status));
end $$;
comment on function internal.organization_invite_not_pending is 'Refuses 409 INVITE_NOT_PENDING with details {status}.';

create or replace function api.organization_invite_delete(org_id uuid, invite_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  invite app.organization_invites;
begin
  perform internal.organization_lock(organization_invite_delete.org_id, 'admin');
  select i.* into invite from app.organization_invites i
   where i.id = organization_invite_delete.invite_id and i.organization_id = organization_invite_delete.org_id
     for update;
  perform internal.check_found(invite.id is not null and invite.revoked_at is null, 'invite');
  if invite.accepted_at is not null then
    perform internal.organization_invite_not_pending('accepted');
  end if;
  update app.organization_invites i set revoked_at = internal.now() where i.id = invite.id;
  return internal.reply_deleted();
end $$;
comment on function api.organization_invite_delete is
  'Revokes an invite, also an expired one. Refuses 404 NOT_FOUND, also for a revoked one, 403 ROLE_FORBIDDEN, 409
   INVITE_NOT_PENDING for an accepted one. Locks the organization.';

create or replace function api.organization_invite_accept(token_hash text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.developer_id();
  invite app.organization_invites;
  member app.organization_members;
  organization app.organizations;
begin
  select i.* into invite from app.organization_invites i where i.token_hash = organization_invite_accept.token_hash;
  perform internal.check_found(invite.id is not null, 'invite');
  if not exists (select from app.developers d where d.id = me and d.mailbox = invite.mailbox) then
    perform internal.fail(403, 'INVITE_EMAIL_MISMATCH',
                          'This invite is for another address: sign in with the account of that address.');
  end if;
  -- the organization before the invite, as in every change of its members
  select o.* into organization from app.organizations o where o.id = invite.organization_id for no key update;
  select i.* into invite from app.organization_invites i where i.id = invite.id for update;
  -- deleted during the wait, with its organization
  perform internal.check_found(invite.id is not null, 'invite');
  if internal.organization_invite_status(invite) <> 'pending' then
    perform internal.organization_invite_not_pending(internal.organization_invite_status(invite));
  end if;
  if exists (select from app.organization_members m
              where m.organization_id = invite.organization_id and m.developer_id = me) then
    perform internal.fail(409, 'ALREADY_MEMBER', 'You are a member of this organization already.');
  end if;
  perform internal.check_limit((select count(*) from app.organization_members m
                                 where m.organization_id = invite.organization_id), 100,
                               'An organization has at most 100 members.');
  perform internal.membership_limit_check(me);
  update app.organization_invites i set accepted_at = internal.now(), accepted_by = me where i.id = invite.id;
  insert into app.organization_members (organization_id, developer_id, role)
  values (invite.organization_id, me, invite.role)
  returning * into member;
  return internal.reply(200, internal.json_merge(json_build_object('organization_id', organization.id,
                                                                   'organization_name', organization.name),
                                                 internal.member_json(member)));
end $$;
comment on function api.organization_invite_accept is
  'Makes the caller a member by the token of an invite: 200 membership. Refuses 404 NOT_FOUND, 403
   INVITE_EMAIL_MISMATCH, 409 INVITE_NOT_PENDING, ALREADY_MEMBER, LIMIT_REACHED. Locks the organization, the invite,
   then the account.';

create or replace function api.organization_invite_mail(invite_id uuid) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'texts of mails are read by workers');
  return internal.reply(200, (
    select json_build_object('email', i.email, 'organization', o.name, 'role', i.role, 'invited_by', d.email,
                             'expires_at', internal.iso(i.expires_at))
      from app.organization_invites i
      join app.organizations o on o.id = i.organization_id
      left join app.developers d on d.id = i.invited_by
     where i.id = organization_invite_mail.invite_id and internal.organization_invite_status(i) = 'pending'));
end $$;
comment on function api.organization_invite_mail is
  'For the job: what the mail of an invite says, or null when the invite is no longer pending.';

create or replace trigger tg_organization_invites__audit
  after insert or update on app.organization_invites
  for each row execute function internal.tg_audit('invites', 'mailbox');
