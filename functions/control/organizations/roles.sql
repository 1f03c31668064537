-- Roles: what a developer may do in an organization, and so in each of its projects. The server checks the rank that a
-- route declares before the call (server/http/ranks.ts); policies and commands check it again, on the rows as they are
-- now.
create or replace function internal.role_rank(role text) returns int
language sql immutable parallel safe
return case role_rank.role when 'owner' then 4 when 'admin' then 3 when 'developer' then 2 when 'viewer' then 1
            else 0 end;
comment on function internal.role_rank is 'owner > admin > developer > viewer > no role, as a number.';

create or replace function internal.organization_ids(lowest text default 'viewer') returns uuid[]
language sql stable security definer set search_path = '' as $$
  select case
    -- the server has checked that the project of the call is the token's; the restrictive policy of projects shows no
    -- other
    when internal.actor() ->> 'type' = 'operator_token' then
      case when internal.role_rank(organization_ids.lowest) <= internal.role_rank(internal.actor() ->> 'role')
           then array[internal.as_uuid(internal.actor() ->> 'home')] else '{}' end
    else array(select m.organization_id
                 from app.organization_members m
                where m.developer_id = internal.developer_id()
                  and internal.role_rank(m.role) >= internal.role_rank(organization_ids.lowest))
    end
$$;
comment on function internal.organization_ids is
  'The organizations in which the caller has at least this role; of an operator token the one that it is for. In
   policies always as (select internal.organization_ids())::uuid[].';

create or replace function internal.organization_roles(developer_id uuid) returns json
language sql stable security definer set search_path = '' as $$
  select coalesce(json_object_agg(m.organization_id, m.role), '{}')
    from app.organization_members m
   where m.developer_id = organization_roles.developer_id
$$;
comment on function internal.organization_roles is
  'For the server''s cache of credentials: {organization_id: role} of a developer.';

create or replace function internal.organization_check(organization_id uuid, lowest text) returns text
language plpgsql stable security definer set search_path = '' as $$
declare
  own_role text;
begin
  select m.role into own_role
    from app.organization_members m
   where m.organization_id = organization_check.organization_id and m.developer_id = internal.developer_id();
  perform internal.check_found(own_role is not null, 'organization');
  if internal.role_rank(own_role) < internal.role_rank(organization_check.lowest) then
    perform internal.fail(403, 'ROLE_FORBIDDEN',
                          format('This needs the role %s of the organization, or a higher one.',
                                 organization_check.lowest),
                          json_build_object('required', organization_check.lowest, 'role', own_role));
  end if;
  return own_role;
end $$;
comment on function internal.organization_check is
  'The caller''s role in an organization. Refuses 404 NOT_FOUND to a stranger, 403 ROLE_FORBIDDEN to a member of a lower
   role.';

create or replace function internal.organization_lock(organization_id uuid, lowest text) returns text
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- every change of members and invites takes this lock first: they are decided one after the other
  perform from app.organizations o where o.id = organization_lock.organization_id for no key update;
  return internal.organization_check(organization_lock.organization_id, organization_lock.lowest);
end $$;
comment on function internal.organization_lock is
  'Locks an organization until the transaction ends and returns the caller''s role. Refuses 404 NOT_FOUND, 403
   ROLE_FORBIDDEN. Granted to nobody.';
