-- Creating, joining and leaving groups. Users have no privilege to write the tables, because membership grants access.
-- Lock order: the user, the group, its members.

create or replace function internal.group_limit_check(app_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.users u where u.id = group_limit_check.app_user_id for no key update;
  perform internal.check_found(found, 'user', 'USER_NOT_FOUND');
  perform internal.check_limit((select count(*) from app.group_members m
                                 where m.app_user_id = group_limit_check.app_user_id), 50,
                               'A user is in at most 50 groups.', 'GROUP_LIMIT_REACHED');
end $$;
comment on function internal.group_limit_check is
  'Checks that a user may join one more group, and locks the user''s row, so that concurrent joins are counted. Refuses
   404 USER_NOT_FOUND, 409 GROUP_LIMIT_REACHED. Granted to nobody.';

create or replace function internal.group_enter(group_id uuid, app_user_id uuid, role text) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  m app.group_members;
  u app.users;
begin
  insert into app.group_members as mine (group_id, app_user_id, role)
  values (group_enter.group_id, group_enter.app_user_id, group_enter.role)
  returning mine.* into m;
  perform internal.emit(m.app_user_id, 'svc.group.joined', jsonb_build_object('group_id', m.group_id, 'role', m.role));
  select k.* into u from app.users k where k.id = m.app_user_id;
  return internal.group_member_json(m, u);
end $$;
comment on function internal.group_enter is
  'Adds a user to a group, emits the event, and returns the member. groups_within_max_members refuses 409 GROUP_FULL.
   Granted to nobody.';

create or replace function internal.group_member(group_id uuid, app_user_id uuid) returns json
language sql stable security definer set search_path = '' as $$
  select internal.group_member_json(m, u)
    from app.group_members m
    join app.users u on u.id = m.app_user_id
   where (m.group_id, m.app_user_id) = (group_member.group_id, group_member.app_user_id)
$$;
comment on function internal.group_member is 'A member of a group, or null. Granted to nobody.';

create or replace function api.group_create(name text, description text default null, avatar_url text default null,
                                            is_public boolean default true, max_members int default 100,
                                            metadata jsonb default '{}')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  g app.groups;
begin
  perform internal.group_limit_check(me);
  perform internal.check_rate('groups created ' || me, 10, 86400, 'A user makes at most 10 groups a day.');
  insert into app.groups as mine (name, description, avatar_url, is_public, max_members, metadata)
  values (group_create.name, group_create.description, group_create.avatar_url, group_create.is_public,
          group_create.max_members,
          group_create.metadata)
  returning mine.id into g.id;
  perform internal.group_enter(g.id, me, 'owner');
  select k.* into g from app.groups k where k.id = g.id;
  return internal.reply(201, internal.group_json(g));
end $$;
comment on function api.group_create is
  'Creates a group with the caller as its owner. Refuses 404 USER_NOT_FOUND, 409 GROUP_LIMIT_REACHED, 400
   CONTENT_REJECTED, 403 USER_MUTED, 429 RATE_LIMITED. Locks the caller''s row.';

create or replace function api.group_join(group_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  known json;
  is_open boolean;
begin
  perform from app.users u where u.id = me for no key update;
  select g.is_public into is_open from app.groups g where g.id = group_join.group_id for no key update;
  known := internal.group_member(group_join.group_id, me);
  if known is not null then
    return internal.reply(200, known);
  end if;
  -- the existence of a private group is not revealed
  if is_open is not true then
    perform internal.group_not_found();
  end if;
  perform internal.group_limit_check(me);
  return internal.reply(201, internal.group_enter(group_join.group_id, me, 'member'));
end $$;
comment on function api.group_join is
  'The caller joins a public group: 201 with the member, or 200 for a member. Refuses 404 NOT_FOUND, 409 GROUP_FULL,
   GROUP_LIMIT_REACHED. Locks the caller''s row and the group.';

create or replace function api.group_leave(group_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  role text;
begin
  perform internal.lock_users(array[me]);
  perform from app.groups g where g.id = group_leave.group_id for no key update;
  select m.role into role from app.group_members m where (m.group_id, m.app_user_id) = (group_leave.group_id, me);
  if role is null then
    perform internal.group_not_found();
  elsif role = 'owner' then
    perform internal.fail(400, 'OWNER_CANNOT_LEAVE',
                          'The owner of a group cannot leave it: transfer the ownership first, or delete the group.');
  end if;
  delete from app.group_members m where (m.group_id, m.app_user_id) = (group_leave.group_id, me);
  perform internal.emit(me, 'svc.group.left', jsonb_build_object('group_id', group_leave.group_id, 'role', role));
  return internal.reply(200, json_build_object('left', true));
end $$;
comment on function api.group_leave is
  'The caller leaves a group. Refuses 404 NOT_FOUND, 400 OWNER_CANNOT_LEAVE. Locks the caller''s row and the group.';

create or replace function api.group_member_add(group_id uuid, app_user_id uuid, role text default 'member')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  known json;
begin
  if internal.developer_id() is null then
    raise exception 'members are added by administrators only';
  end if;
  perform from app.users u where u.id = group_member_add.app_user_id for no key update;
  perform from app.groups g where g.id = group_member_add.group_id for no key update;
  if not found then
    perform internal.group_not_found();
  end if;
  known := internal.group_member(group_member_add.group_id, group_member_add.app_user_id);
  if known is not null then
    return internal.reply(200, known);
  end if;
  perform internal.group_limit_check(group_member_add.app_user_id);
  known := internal.group_enter(group_member_add.group_id, group_member_add.app_user_id, group_member_add.role);
  perform internal.audit('groups.member_add', 'groups', group_member_add.group_id::text,
                         json_build_object('app_user_id', json_build_array(null, group_member_add.app_user_id),
                                           'role', json_build_array(null, group_member_add.role)), 201);
  return internal.reply(201, known);
end $$;
comment on function api.group_member_add is
  'An administrator adds a user to a group, public or private: 201, or 200 for a member. Refuses 404 NOT_FOUND (group),
   USER_NOT_FOUND, 409 GROUP_FULL, GROUP_LIMIT_REACHED. Locks the user''s row and the group. Audited as
   groups.member_add.';

create or replace function internal.merge__group_members(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  theirs app.group_members;
  mine app.group_members;
  room bigint;
  moved int := 0;
begin
  perform from app.groups g
    where g.id in (select m.group_id from app.group_members m
                    where m.app_user_id in (merge__group_members.survivor, merge__group_members.other))
    order by g.id
      for no key update;
  room := 50 - (select count(*) from app.group_members m where m.app_user_id = merge__group_members.survivor);
  -- all groups are locked. If the limit does not allow all, groups that the other user leads come first, then the
  -- oldest memberships
  for theirs in
    select m.* from app.group_members m where m.app_user_id = merge__group_members.other
     order by internal.group_rank(m.role) desc, m.joined_at, m.group_id
  loop
    select m.* into mine from app.group_members m
     where (m.group_id, m.app_user_id) = (theirs.group_id, merge__group_members.survivor);
    if mine.group_id is null then
      continue when moved >= room;
      update app.group_members m set app_user_id = merge__group_members.survivor
       where (m.group_id, m.app_user_id) = (theirs.group_id, merge__group_members.other);
      moved := moved + 1;
    elsif internal.group_rank(theirs.role) > internal.group_rank(mine.role) then
      -- the lower role first, because a group has one owner
      update app.group_members m set role = mine.role
        where (m.group_id, m.app_user_id) = (theirs.group_id, merge__group_members.other);
      update app.group_members m set role = theirs.role
        where (m.group_id, m.app_user_id) = (theirs.group_id, merge__group_members.survivor);
    end if;
  end loop;
  return moved;
end $$;
comment on function internal.merge__group_members is
  'Merges the memberships of one user into another''s, keeping the higher role of the two, in at most 50 groups;
   memberships beyond the limit end with the other user. Returns how many moved. Granted to nobody.';

comment on constraint groups_within_max_members on app.groups is
  '409 GROUP_FULL: The group has reached its maximum number of members.';
