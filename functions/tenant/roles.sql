-- Roles of users. Only definer functions write assignments: they count the roles of a user, emit events and write the
-- audit trail. Lock order: the role, then users.
comment on constraint roles_key_unique on app.roles is '409 CONFLICT key: A role with this key exists.';
comment on constraint roles_permissions_form on app.roles is
  '400 VALIDATION_ERROR permissions: must match ^[a-z0-9_.:-]{1,64}$.';
comment on index app.roles_one_default is '409 CONFLICT is_default: Another role is the default.';
comment on constraint role_assignments_role_id_fkey on app.role_assignments is
  '409 ROLE_IN_USE: Users have this role. Revoke it first, or send force=true.';

select internal.audit_declare('app.roles', 'roles');

create or replace function internal.role_before_delete(doomed app.roles) returns void
language sql volatile security definer set search_path = '' as $$
  -- the role first, in the order of an assignment, which then overwrites the expired row
  select from app.roles r where r.id = (role_before_delete.doomed).id for update;
  delete from app.role_assignments a where a.role_id = (role_before_delete.doomed).id and a.expires_at <= internal.now()
$$;
comment on function internal.role_before_delete is
  'Deletes the expired assignments of a role, which do not prevent its deletion. Locks the role.';

create or replace function internal.role_assignment_json(a app.role_assignments) returns json
language sql stable as $$
  select json_build_object(
    'role_key', r.key, 'app_user_id', (role_assignment_json.a).app_user_id,
      'group_id', (role_assignment_json.a).group_id,
    'granted_by', (role_assignment_json.a).granted_by, 'expires_at', internal.iso((role_assignment_json.a).expires_at),
    'created_at', internal.iso((role_assignment_json.a).created_at))
    from app.roles r
   where r.id = (role_assignment_json.a).role_id
$$;
comment on function internal.role_assignment_json is 'An assignment as responses show it.';

create or replace function internal.role_assign(role_id uuid, app_user_id uuid, group_id uuid, patch jsonb)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  ends constant timestamptz := (role_assign.patch ->> 'expires_at')::timestamptz;
  was app.role_assignments;
  given app.role_assignments;
  role_key text;
  is_new boolean;
begin
  perform internal.check_caller('developer', 'roles are assigned by administrators');
  if ends <= internal.now() then
    perform internal.invalid('expires_at', 'must be in the future');
  end if;
  select r.key into role_key from app.roles r where r.id = role_assign.role_id for key share;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The role was deleted just now.');
  elsif internal.lock_users(array[role_assign.app_user_id]) is null then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  -- functions that end a membership lock the user first, and functions that delete a group lock the group
  perform from app.groups g where g.id = role_assign.group_id for key share;
  if role_assign.group_id is not null
     and not exists (select from app.group_members m
                      where (m.group_id, m.app_user_id) = (role_assign.group_id, role_assign.app_user_id)) then
    perform internal.invalid('group_id', 'must be the id of a group that the user is in');
  end if;
  select a.* into was
    from app.role_assignments a
   where a.role_id = role_assign.role_id and a.app_user_id = role_assign.app_user_id and a.group_id is not distinct
     from role_assign.group_id;
  is_new := was.id is null or was.expires_at <= internal.now();
  if is_new and (select count(distinct a.role_id)
                   from app.role_assignments a
                  where a.app_user_id = role_assign.app_user_id and a.role_id <> role_assign.role_id
                    and (a.expires_at is null or a.expires_at > internal.now())) >= 20 then
    perform internal.fail(409, 'LIMIT_REACHED', 'A user has at most 20 roles.', '{"limit": 20}');
  end if;
  insert into app.role_assignments as a (role_id, app_user_id, group_id, granted_by, expires_at)
  values (role_assign.role_id, role_assign.app_user_id, role_assign.group_id, internal.actor() ->> 'id', ends)
  on conflict on constraint role_assignments_once do update
     set expires_at = case when is_new or role_assign.patch ? 'expires_at' then excluded.expires_at
                           else a.expires_at end,
         granted_by = case when is_new then excluded.granted_by else a.granted_by end,
         created_at = case when is_new then excluded.created_at else a.created_at end
  returning a.* into given;
  if is_new then
    perform internal.emit(given.app_user_id, 'svc.role.assigned', jsonb_build_object(
      'role_key', role_key, 'group_id', given.group_id, 'expires_at', internal.iso(given.expires_at)));
  end if;
  if is_new or given.expires_at is distinct from was.expires_at then
    perform internal.audit('roles.assign', 'users', given.app_user_id::text, json_build_object(
      'role_key', json_build_array(case when not is_new then role_key end, role_key),
        'group_id', json_build_array(given.group_id, given.group_id),
      'expires_at', json_build_array(internal.iso(was.expires_at), internal.iso(given.expires_at))),
      case when is_new then 201 else 200 end);
  end if;
  return internal.reply(case when is_new then 201 else 200 end, internal.role_assignment_json(given));
end $$;
comment on function internal.role_assign is
  'Assigns a role to a user: 201, or 200 when the user has it; then changes expires_at if it was sent. Refuses 404
   NOT_FOUND, USER_NOT_FOUND, 400 VALIDATION_ERROR, 409 LIMIT_REACHED (20 roles). Locks the role and the user. Emits
   svc.role.assigned.';

create or replace function internal.role_revoke(role_id uuid, app_user_id uuid default null, group_id uuid default null)
returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  revoked record;
  role_key text;
begin
  perform internal.check_caller('developer', 'roles are revoked by administrators');
  -- serialised with assignments, which lock the role first
  select r.key into role_key from app.roles r where r.id = role_revoke.role_id for update;
  perform internal.lock_users(array(
    select a.app_user_id from app.role_assignments a
     where a.role_id = role_revoke.role_id and a.app_user_id = coalesce(role_revoke.app_user_id, a.app_user_id)));
  with gone as (
    delete from app.role_assignments a
     where a.role_id = role_revoke.role_id and a.app_user_id = coalesce(role_revoke.app_user_id, a.app_user_id)
       and (role_revoke.group_id is null or a.group_id = role_revoke.group_id)
    returning a.app_user_id, a.group_id, a.expires_at
  )
  select array_agg(g.app_user_id) as users, array_agg('svc.role.revoked'::text) as names, count(*)::int as count,
         array_agg(jsonb_build_object('role_key', role_key, 'group_id', g.group_id)) as properties,
         array_agg(g.app_user_id::text) as targets
    into revoked
    from gone g
   where g.expires_at is null or g.expires_at > internal.now();
  perform internal.emit_many(revoked.users, revoked.names, revoked.properties);
  if revoked.count > 0 then
    perform internal.audit('roles.revoke', case when role_revoke.app_user_id is null then 'roles' else 'users' end,
                           coalesce(role_revoke.app_user_id, role_revoke.role_id)::text,
                           json_build_object('role_key', json_build_array(role_key, null),
                                             'assignments', json_build_array(revoked.count, 0)));
  end if;
  return revoked.count;
end $$;
comment on function internal.role_revoke is
  'Revokes a role from one user or from all, in one group or everywhere; returns how many of these assignments were
   live. Locks the role and the users. Emits svc.role.revoked for each.';

create or replace function internal.tg_group_members__roles() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  ended record;
begin
  with revoked as (
    delete from app.role_assignments a using gone g where (a.group_id, a.app_user_id) = (g.group_id, g.app_user_id)
    returning a.role_id, a.app_user_id, a.group_id, a.expires_at
  )
  select array_agg(v.app_user_id) as users, array_agg('svc.role.revoked'::text) as names,
         array_agg(jsonb_build_object('role_key', r.key, 'group_id', v.group_id)) as properties
    into ended
    from revoked v
    join app.roles r on r.id = v.role_id
    -- no event for deleted users, or for members of a deleted group, who are not locked
    join app.users u on u.id = v.app_user_id
    join app.groups g on g.id = v.group_id
   where v.expires_at is null or v.expires_at > internal.now();
  perform internal.emit_many(ended.users, ended.names, ended.properties);
  return null;
end $$;
comment on function internal.tg_group_members__roles is
  'When memberships end, ends the members'' roles in these groups. Emits svc.role.revoked for users and groups that
   still exist.';

create or replace trigger tg_group_members__roles
  after delete on app.group_members
  referencing old table as gone
  for each statement execute function internal.tg_group_members__roles();

create or replace function api.role_assign(id_or_key text, app_user_id uuid, patch jsonb, group_id uuid default null)
returns api.reply
language sql volatile as $$
  select internal.role_assign((internal.definition_find(null::app.roles, role_assign.id_or_key)).id,
                              role_assign.app_user_id, role_assign.group_id,
                              role_assign.patch)
$$;
comment on function api.role_assign is 'Assigns a role. Refuses as internal.role_assign.';

create or replace function api.role_assignments(id_or_key text, page_offset int default 0, page_limit int default 50,
                                                include text default null)
returns api.reply
language plpgsql stable as $$
declare
  role constant app.roles := internal.definition_find(null::app.roles, role_assignments.id_or_key);
begin
  return internal.reply_with_users(internal.reply_page(
    (select json_agg(internal.role_assignment_json(p.listed) order by (p.listed).created_at desc, (p.listed).id desc)
       from (select a as listed from app.role_assignments a
              where a.role_id = role.id and (a.expires_at is null or a.expires_at > internal.now())
              order by a.created_at desc, a.id desc limit role_assignments.page_limit
                offset role_assignments.page_offset) p),
    (select count(*) from app.role_assignments a
      where a.role_id = role.id and (a.expires_at is null or a.expires_at > internal.now())),
    role_assignments.page_offset, role_assignments.page_limit), role_assignments.include);
end $$;
comment on function api.role_assignments is
  'Live assignments of a role, newest first, by role_assignments_newest. Refuses 404 NOT_FOUND.';

create or replace function api.role_revoke(id_or_key text, user_id uuid, group_id uuid default null) returns api.reply
language plpgsql volatile as $$
begin
  if internal.role_revoke((internal.definition_find(null::app.roles, role_revoke.id_or_key)).id, role_revoke.user_id,
                          role_revoke.group_id) = 0 then
    perform internal.fail(404, 'NOT_FOUND', 'The user does not have this role.');
  end if;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.role_revoke is
  'Revokes a role from a user; without group_id also in every group. Refuses 404 NOT_FOUND.';

create or replace function api.role_delete(id_or_key text, force boolean default false) returns api.reply
language plpgsql volatile as $$
begin
  if role_delete.force then
    perform internal.role_revoke((internal.definition_find(null::app.roles, role_delete.id_or_key)).id);
  end if;
  return api.definition_delete('role', role_delete.id_or_key);
end $$;
comment on function api.role_delete is
  'Deletes a role; with force, revokes it from all users first. Refuses 404 NOT_FOUND, 409 ROLE_IN_USE.';

create or replace function internal.my_roles()
returns table (key text, name text, permissions text[], group_id uuid, expires_at timestamptz)
language sql stable as $$
  select r.key, r.name, r.permissions, null::uuid, null::timestamptz from app.roles r where r.is_default
  union all
  select r.key, r.name, r.permissions, a.group_id, a.expires_at
    from app.role_assignments a
    join app.roles r on r.id = a.role_id and not r.is_default
   where a.app_user_id = internal.user_id() and (a.expires_at is null or a.expires_at > internal.now())
$$;
comment on function internal.my_roles is
  'The caller''s present roles: the default role, and assigned roles that have not expired.';

create or replace function internal.has_role(key text) returns boolean
language sql stable parallel safe security definer set search_path = '' as $$
  select exists (
    select from app.roles r
     where r.key = has_role.key
       and (r.is_default or exists (select from app.role_assignments a
                                     where a.role_id = r.id and a.app_user_id = internal.user_id()
                                       and a.group_id is null
                                       and (a.expires_at is null or a.expires_at > internal.now()))))
$$;
comment on function internal.has_role is
  'Whether the caller has a role in the whole project. In policies always as (select internal.has_role(''editor'')),
   which is evaluated once a statement.';

create or replace function internal.my_role_group_ids(key text) returns setof uuid
language sql stable parallel safe security definer rows 20 set search_path = '' as $$
  select m.group_id
    from app.group_members m
   where m.app_user_id = internal.user_id()
     and (internal.has_role(my_role_group_ids.key)
          or exists (select from app.role_assignments a join app.roles r on r.id = a.role_id
                      where r.key = my_role_group_ids.key and a.app_user_id = m.app_user_id and a.group_id = m.group_id
                        and (a.expires_at is null or a.expires_at > internal.now())))
$$;
comment on function internal.my_role_group_ids is
  'The caller''s groups in which a role applies; all of them for a role in the whole project. In policies as
   internal.my_group_ids.';

create or replace function api.roles_mine() returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
    'roles', coalesce((select json_agg(json_build_object('key', m.key, 'name', m.name, 'group_id', m.group_id,
                                                         'expires_at', internal.iso(m.expires_at))
                                       order by m.key, m.group_id nulls first) from internal.my_roles() m), '[]'),
    'permissions', array(select distinct p from internal.my_roles() m cross join unnest(m.permissions) p order by p)))
$$;
comment on function api.roles_mine is
  'The caller''s roles and the union of their permissions, including those in groups.';

create or replace function api.role_check(permission text, group_id uuid default null) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('allowed', exists (
    select from internal.my_roles() m
     where role_check.permission = any (m.permissions) and (m.group_id is null or m.group_id = role_check.group_id))))
$$;
comment on function api.role_check is
  'Whether a role of the caller has a permission, in the whole project or in the group.';

create or replace function internal.merge__role_assignments(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- memberships have been merged before (internal.users_merge orders by table name): a role in a group requires
  -- membership
  groups constant uuid[] := array(select m.group_id from app.group_members m
                                   where m.app_user_id = merge__role_assignments.survivor);
  -- the survivor keeps all roles, and gets the oldest of the other user's, up to the limit of a user
  kept constant uuid[] := array(
    select r.role_id
      from app.role_assignments r
     where r.app_user_id in (merge__role_assignments.survivor, merge__role_assignments.other)
       and (r.expires_at is null or r.expires_at > internal.now())
       and (r.group_id is null or r.group_id = any (groups))
     group by r.role_id
     order by bool_or(r.app_user_id = merge__role_assignments.survivor) desc, min(r.created_at), r.role_id
     limit 20);
  moved int;
begin
  -- a role of both ends at the later of the two times; an expired role of the survivor is renewed only within the limit
  update app.role_assignments a
     set expires_at = nullif(greatest(coalesce(a.expires_at, 'infinity'), coalesce(o.expires_at, 'infinity')),
                             'infinity')
    from app.role_assignments o
   where a.app_user_id = merge__role_assignments.survivor and o.app_user_id = merge__role_assignments.other
     and o.role_id = a.role_id and o.group_id is not distinct from a.group_id and a.role_id = any (kept);
  update app.role_assignments a
     set app_user_id = merge__role_assignments.survivor
   where a.app_user_id = merge__role_assignments.other and a.role_id = any (kept)
     and (a.group_id is null or a.group_id = any (groups))
     and not exists (select from app.role_assignments s
                      where s.app_user_id = merge__role_assignments.survivor and s.role_id = a.role_id
                        and s.group_id is not distinct from a.group_id)
     and (a.expires_at is null or a.expires_at > internal.now());
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__role_assignments is
  'Merges the roles of one user into another''s, at most 20 in all; a role of both keeps the later end. Granted to
   nobody.';

create or replace function internal.segment_source__role(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__role.leaf, segment_source__role.place,
    exists (select from app.roles r where r.key = segment_source__role.leaf ->> 'key'), 'must be the key of a role');
  return internal.segment_operand('boolean',
    missing => format('exists (select from app.roles r where r.key = (%s ->> ''key'') and r.is_default)',
                      segment_source__role.parameter),
    members => format(
      'select m.app_user_id, true as value from app.roles r join app.role_assignments m on m.role_id = r.id where '
      'r.key = (%1$s ->> ''key'') and (m.expires_at is null or m.expires_at > internal.segment_time(%1$s ->> ''now'')) '
      'group by m.app_user_id',
      segment_source__role.parameter));
end $$;
comment on function internal.segment_source__role is
  'Rules on whether a user has a role, in the whole project or in any group: true or false.';

create or replace function internal.role_until() returns json
language sql stable security definer set search_path = ''
return coalesce((select json_build_object('until', internal.iso(min(a.expires_at)))
                   from app.role_assignments a
                  where a.app_user_id = internal.user_id() and a.expires_at > internal.now()
                 having min(a.expires_at) is not null), '{}');
comment on function internal.role_until is
  'until: when the first of the caller''s roles ends by itself. A scope that has it is asked for again then. Granted to
   nobody.';

select internal.source_declare(null::app.role_assignments,
  'A role that is assigned or removed changes which channels its user may subscribe to.',
  ops => 'insert or update or delete', also => 'perform internal.recheck_users(array[r.app_user_id]);');

create or replace function api.user_roles(user_id uuid) returns api.reply
language plpgsql stable as $$
begin
  perform internal.check_found(exists (select from app.users u where u.id = user_roles.user_id), 'user');
  return internal.reply(200, coalesce((
    select json_agg(internal.json_merge(internal.role_assignment_json(a), json_build_object('role_name', r.name))
                    order by a.created_at desc, a.id desc)
      from app.role_assignments a
      join app.roles r on r.id = a.role_id
     where a.app_user_id = user_roles.user_id and (a.expires_at is null or a.expires_at > internal.now())), '[]'));
end $$;
comment on function api.user_roles is
  'Live assignments of a user, at most 20, newest first, by role_assignments_of_user; without the role that everybody
   has. Refuses 404 NOT_FOUND.';
