-- Members of an organization. A change reaches every server within 30 seconds, and the server that made it at once: the
-- trigger drops the developer's cached credentials, in which the roles are.
create or replace function internal.member_json(m app.organization_members) returns json
language sql stable security definer set search_path = '' as $$
  select json_build_object('developer_id', d.id, 'email', d.email, 'name', d.name, 'role', (member_json.m).role,
                           'joined_at', internal.iso((member_json.m).joined_at))
    from app.developers d
   where d.id = (member_json.m).developer_id
$$;
comment on function internal.member_json is
  'A member as the other members see them. Granted to nobody: it reads any account.';

select internal.list_declare('members_page', null::app.organization_members, 'member_json', '{joined_at,developer_id}',
                             required => '{organization_id}',
                             direction => 'asc');

create or replace function api.member_list(org_id uuid, page_limit int, page_offset bigint) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.organization_check(member_list.org_id, 'viewer');
  return internal.members_page(member_list.org_id, member_list.page_offset, member_list.page_limit);
end $$;
comment on function api.member_list is
  'Members of an organization of the caller, longest membership first: at most 100. Refuses 404 NOT_FOUND.';

create or replace function internal.member_may_leave(member app.organization_members) returns void
language plpgsql stable security definer set search_path = '' as $$
begin
  if (member_may_leave.member).role <> 'owner' then
    return;
  end if;
  if exists (select from app.organizations o
              where o.id = (member_may_leave.member).organization_id
                and o.developer_id = (member_may_leave.member).developer_id) then
    perform internal.fail(409, 'PERSONAL_ORGANIZATION',
                          'The developer whose personal organization this is stays its owner.');
  end if;
  if not exists (select from app.organization_members m
                  where m.organization_id = (member_may_leave.member).organization_id and m.role = 'owner'
                    and m.developer_id <> (member_may_leave.member).developer_id) then
    perform internal.fail(409, 'LAST_OWNER', 'An organization has an owner: make somebody else owner first.');
  end if;
end $$;
comment on function internal.member_may_leave is
  'Refuses 409 LAST_OWNER, PERSONAL_ORGANIZATION for an owner who must stay one. The organization is locked. Granted to
   nobody.';

create or replace function internal.member_locked(organization_id uuid, developer_id uuid, given text)
returns app.organization_members
language plpgsql volatile security definer set search_path = '' as $$
declare
  member app.organization_members;
begin
  perform internal.organization_lock(member_locked.organization_id, 'viewer');
  select m.* into member
    from app.organization_members m
   where m.organization_id = member_locked.organization_id and m.developer_id = member_locked.developer_id
     for update;
  perform internal.check_found(member.developer_id is not null, 'member');
  -- members of a lower role may leave, and nothing else; only owners remove and lower owners
  if member.developer_id <> internal.developer_id() or member_locked.given is not null then
    perform internal.organization_check(member_locked.organization_id,
                                        case when 'owner' in (member.role, member_locked.given) then 'owner'
                                             else 'admin' end);
  end if;
  return member;
end $$;
comment on function internal.member_locked is
  'A member whom the caller may change, locked with the organization. given: the role that the member gets; null for a
   removal, which everybody may ask for themselves. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN. Granted to nobody.';

create or replace function api.member_patch(org_id uuid, developer_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  role_given constant text := member_patch.patch ->> 'role';
  member app.organization_members := internal.member_locked(member_patch.org_id, member_patch.developer_id,
                                                            coalesce(role_given, 'viewer'));
begin
  if role_given <> member.role then
    perform internal.member_may_leave(member);
    update app.organization_members m set role = role_given
     where m.organization_id = member.organization_id and m.developer_id = member.developer_id
    returning m.* into member;
  end if;
  return internal.reply(200, internal.member_json(member));
end $$;
comment on function api.member_patch is
  'Gives a member another role; null changes nothing. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN, 409 LAST_OWNER,
   PERSONAL_ORGANIZATION. Locks the organization.';

create or replace function api.member_delete(org_id uuid, developer_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  member constant app.organization_members := internal.member_locked(member_delete.org_id, member_delete.developer_id,
                                                                     null);
begin
  perform internal.member_may_leave(member);
  delete from app.organization_members m where m.organization_id = member.organization_id
    and m.developer_id = member.developer_id;
  return internal.reply_deleted();
end $$;
comment on function api.member_delete is
  'Removes a member, or the caller themselves. Refuses 404 NOT_FOUND, 403 ROLE_FORBIDDEN, 409 LAST_OWNER,
   PERSONAL_ORGANIZATION. Locks the organization.';

create or replace function internal.tg_organization_members() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  own_id constant uuid := case when tg_op = 'INSERT' then new.developer_id else old.developer_id end;
  organization constant uuid := case when tg_op = 'INSERT' then new.organization_id else old.organization_id end;
  before constant text := case when tg_op <> 'INSERT' then old.role end;
  after constant text := case when tg_op <> 'DELETE' then new.role end;
begin
  perform internal.changed('developer:' || own_id);
  -- what they delegated ends with their part in it, and does not come back with them
  if tg_op = 'DELETE' and exists (select from app.organizations o where o.id = organization) then
    perform internal.operator_tokens_revoke(organization_id => organization, developer_id => own_id);
  end if;
  -- who may no longer invite takes the invites that wait along
  if internal.role_rank(before) >= internal.role_rank('admin')
    and internal.role_rank(after) < internal.role_rank('admin') then
    update app.organization_invites i set revoked_at = internal.now()
     where i.organization_id = organization and i.invited_by = own_id and i.accepted_at is null
       and i.revoked_at is null;
  end if;
  -- the memberships of an organization that is deleted go with it: its own row in the trail says so
  if internal.caller() = 'developer' and exists (select from app.organizations o where o.id = organization) then
    perform internal.audit('members.' || case tg_op when 'INSERT' then 'create' when 'UPDATE' then 'update'
                                              else 'delete' end, 'members', own_id::text,
                           json_build_object('role', json_build_array(before, after)),
                           case tg_op when 'INSERT' then 201 else 200 end, organization);
  end if;
  return null;
end $$;
comment on function internal.tg_organization_members is
  'Drops the member''s cached credentials on every server, revokes the operator tokens of a member who leaves and the
   open invites of a member who was an admin, and audits the change.';
create or replace trigger tg_organization_members
  after insert or update or delete on app.organization_members
  for each row execute function internal.tg_organization_members();
