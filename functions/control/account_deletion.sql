-- Deletion of a developer's account.
create or replace function internal.account_leave_organizations() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  team app.organizations;
begin
  for team in
    select o.* from app.organizations o
      join app.organization_members m on m.organization_id = o.id and m.developer_id = internal.developer_id()
        and m.role = 'owner'
     where o.developer_id is distinct from internal.developer_id()
     order by o.id
  loop
    continue when exists (select from app.organization_members m
                           where m.organization_id = team.id and m.role = 'owner'
                             and m.developer_id <> internal.developer_id());
    if exists (select from app.organization_members m
                where m.organization_id = team.id and m.developer_id <> internal.developer_id()) then
      perform internal.fail(409, 'LAST_OWNER',
                            format('You are the last owner of %s, which has other members: make somebody else owner '
                                   'first.', team.name),
                            json_build_object('organization_id', team.id));
    end if;
    delete from app.organizations o where o.id = team.id;
  end loop;
end $$;
comment on function internal.account_leave_organizations is
  'Deletes the organizations in which the caller is alone. Refuses 409 LAST_OWNER for one that would keep members
   without an owner. Granted to nobody.';

create or replace function internal.account_trail_remove(scopes uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- the sealer would write seals of rows that go, and each scope has a chain of its own: no other trail misses these
  perform internal.advisory_lock('audit seal');
  delete from app.audit_digests d where d.scope = any (account_trail_remove.scopes);
  delete from app.audit_seals s where s.scope = any (account_trail_remove.scopes);
  delete from app.audit_heads h where h.scope = any (account_trail_remove.scopes);
  delete from app.audit_events e where e.scope = any (account_trail_remove.scopes);
end $$;
comment on function internal.account_trail_remove is
  'Deletes whole trails: the one of a deleted account and of its personal organization, which have its address, name and
   origins. Granted to nobody. Waits for the sealer.';

create or replace function api.account_delete(confirmation text, checked_hash text default null) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  own_id constant uuid := internal.developer_id();
  them app.developers;
  home uuid;
begin
  -- the organizations before the account, as in every change of members; nobody creates a project in one of them
  -- meanwhile
  perform from app.organizations o
    where o.id in (select m.organization_id from app.organization_members m where m.developer_id = own_id)
    order by o.id
      for update;
  perform internal.lock_own_account();
  select d.* into them from app.developers d where d.id = own_id for update;
  if internal.email_normal(account_delete.confirmation) is distinct from them.email then
    perform internal.invalid('confirm', 'must be the address of your own account');
  end if;
  -- the password may have changed while it was being checked
  if them.password_hash is distinct from account_delete.checked_hash then
    perform internal.fail(401, 'INVALID_CREDENTIALS', 'The current password is wrong.');
  end if;
  if them.password_hash is null
     and not exists (select from app.developer_sessions s
                      where s.id = internal.session_id() and s.created_at > internal.now() - interval '10 minutes') then
    perform internal.fail(401, 'INVALID_CREDENTIALS',
                          'This account has no password: sign in again, and delete it within ten minutes.');
  end if;
  -- a deleted project counts until its database is gone: its row still names its creator
  if exists (select from app.projects p
              where p.organization_id in (select m.organization_id from app.organization_members m
                                           where m.developer_id = own_id and m.role = 'owner'
                                             and not exists (select from app.organization_members other
                                                              where other.organization_id = m.organization_id
                                                                and other.role = 'owner'
                                                                and other.developer_id <> own_id))
                 -- the personal organization goes with the account, whoever else owns it
                 or p.organization_id in (select o.id from app.organizations o where o.developer_id = own_id)
                 or p.organization_id is null and p.developer_id = own_id) then
    perform internal.fail(409, 'PROJECTS_EXIST',
                          'Projects would lose their owner or their organization: delete or transfer them first. A '
                          'deletion takes a moment to be complete.');
  end if;
  perform internal.account_leave_organizations();
  -- what the account created for others stays, and its oldest owner counts as the creator
  update app.projects p
     set developer_id = (select m.developer_id from app.organization_members m
                          where m.organization_id = p.organization_id and m.developer_id <> own_id
                          order by internal.role_rank(m.role) desc, m.joined_at, m.developer_id limit 1)
   where p.developer_id = own_id;
  delete from app.developer_codes c where c.mailbox = them.mailbox;
  delete from app.waitlist_entries w where w.mailbox = them.mailbox;
  delete from app.organization_invites i where i.mailbox = them.mailbox;
  select o.id into home from app.organizations o where o.developer_id = own_id;
  -- with its sessions, tokens, memberships and personal organization
  delete from app.developers d where d.id = own_id;
  perform internal.account_trail_remove(array[own_id, home]);
  perform internal.changed('developer:' || own_id);
  return internal.reply(202, '{"deleted": true}');
end $$;
comment on function api.account_delete is
  'Deletes the caller''s account: 202 {deleted}. confirmation is its address; checked_hash the stored hash that the
   server checked a password against, or null where none is set: then the session must be at most ten minutes old.
   Refuses 400 VALIDATION_ERROR, 401 INVALID_CREDENTIALS, INVALID_DEVELOPER_TOKEN, 409 PROJECTS_EXIST, LAST_OWNER. Locks
   the caller''s organizations, then the account.';
