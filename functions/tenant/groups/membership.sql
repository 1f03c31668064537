-- Membership of groups, which policies read, and triggers that enforce its invariants for every role that writes
-- members.

create or replace function internal.group_rank(role text) returns int
language sql immutable parallel safe
return case group_rank.role when 'owner' then 4 when 'admin' then 3 when 'member' then 2 when 'viewer' then 1 end;
comment on function internal.group_rank is 'The rank of a role: owner 4, admin 3, member 2, viewer 1.';

create or replace function internal.my_group_ids(min_role text default 'viewer') returns setof uuid
language sql stable parallel safe security definer rows 20 set search_path = '' as $$
  select m.group_id
    from app.group_members m
   where m.app_user_id = internal.user_id()
     and internal.group_rank(m.role) >= internal.group_rank(my_group_ids.min_role)
$$;
comment on function internal.my_group_ids is
  'The groups in which the caller has at least this role. In policies always as group_id in (select
   internal.my_group_ids(''member'')), which is evaluated once a statement; a function of the row is twenty times
   slower.';

create or replace function internal.group_is_visible(g app.groups, own_ids uuid[]) returns boolean
language sql immutable parallel safe
return (group_is_visible.g).is_public or (group_is_visible.g).id = any (group_is_visible.own_ids);
comment on function internal.group_is_visible is
  'Whether a user may see a group and its members: a public group, or one of the user''s own. Shared by the policies on
   groups and members, and by functions that read other users'' rows for the user. own_ids is array(select
   internal.my_group_ids()), in policies inside (select ...), so that the rule is inlined and the array is computed once
   a statement.';

create or replace function internal.group_member_ids(group_id uuid) returns setof uuid
language sql stable security definer set search_path = '' rows 50 as $$
  select m.app_user_id from app.group_members m where m.group_id = group_member_ids.group_id
$$;
comment on function internal.group_member_ids is
  'The members of a group, for areas that have checked access. Granted to nobody.';

create or replace function internal.tg_group_members__count() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a fixed order, because a user may leave many groups at once
  perform from app.groups g where g.id in (select c.group_id from changed c) order by g.id for no key update;
  update app.groups g
     set member_count = g.member_count + c.difference
    from (select x.group_id, case tg_op when 'INSERT' then 1 else -1 end * count(*) as difference
            from changed x group by x.group_id) as c
   where g.id = c.group_id;
  return null;
end $$;
comment on function internal.tg_group_members__count is
  'Maintains app.groups.member_count, on which the check groups_within_max_members enforces the limit exactly. Locks the
   groups in order.';

create or replace trigger tg_group_members__count_in
  after insert on app.group_members
  referencing new table as changed
  for each statement execute function internal.tg_group_members__count();
create or replace trigger tg_group_members__count_out
  after delete on app.group_members
  referencing old table as changed
  for each statement execute function internal.tg_group_members__count();

create or replace function internal.group_succeed(group_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  heir app.group_members;
begin
  if exists (select from app.group_members m where m.group_id = group_succeed.group_id and m.role = 'owner') then
    return;
  end if;
  -- whoever is banned cannot lead a group, and has it only where all are
  select m.* into heir
    from app.group_members m
    join app.users u on u.id = m.app_user_id
   where m.group_id = group_succeed.group_id
   order by u.is_banned, internal.group_rank(m.role) desc, m.joined_at, m.app_user_id
   limit 1
     for update of m;
  if heir.group_id is null then
    delete from app.groups g where g.id = group_succeed.group_id;
    return;
  end if;
  update app.group_members m set role = 'owner' where (m.group_id, m.app_user_id) = (heir.group_id, heir.app_user_id);
  -- the heir is not locked, and the group is: users are locked before groups, so a worker emits the event
  perform internal.enqueue('groups__notify', heir.group_id || ' ' || heir.app_user_id, jsonb_build_object(
    'group_id', heir.group_id, 'user_id', heir.app_user_id, 'previous_role', heir.role));
end $$;
comment on function internal.group_succeed is
  'Gives a group without an owner to its oldest admin, else to its oldest member, viewers last and banned users after
   all others, who is told by the task groups__notify; deletes a group without members. Granted to nobody.';

create or replace function api.group_inherited(group_id uuid, user_id uuid, previous_role text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'heirs are told by workers');
  if internal.lock_users(array[group_inherited.user_id]) is not null then
    perform internal.emit(group_inherited.user_id, 'svc.group.role_changed', jsonb_build_object(
      'group_id', group_inherited.group_id, 'role', 'owner', 'previous_role', group_inherited.previous_role,
        'inherited', true));
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.group_inherited is
  'For the worker: emits svc.group.role_changed with inherited for the user whom a group without an owner went to.
   Nothing when the user is gone. Locks the user.';

create or replace function internal.tg_group_members__succeed() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  left_alone uuid;
begin
  for left_alone in
    select distinct o.group_id
      from gone o
      join app.groups g on g.id = o.group_id
     order by o.group_id
  loop
    perform internal.group_succeed(left_alone);
  end loop;
  return null;
end $$;
comment on function internal.tg_group_members__succeed is
  'After memberships end: gives each of their groups that has no owner a new one.';

create or replace trigger tg_group_members__succeed
  after delete on app.group_members
  referencing old table as gone
  for each statement execute function internal.tg_group_members__succeed();

create or replace function internal.groups_lock(app_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.groups g
    where g.id in (select m.group_id from app.group_members m where m.app_user_id = groups_lock.app_user_id)
    order by g.id
      for no key update;
end $$;
comment on function internal.groups_lock is
  'Locks the groups of a user before the user''s memberships: the lock order of the succession of owners. Granted to
   nobody.';

create or replace function internal.user_reset__groups(user_id uuid) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.groups_lock(user_reset__groups.user_id);
  return 0;
end $$;
comment on function internal.user_reset__groups is
  'Locks a user''s groups before their memberships are deleted. Part of internal.user_reset. Granted to nobody.';

create or replace function internal.tg_users__groups() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.groups_lock(old.id);
  return old;
end $$;
comment on function internal.tg_users__groups is
  'Before a user is deleted: locks the user''s groups before their members, so that concurrent deletions of an owner and
   the successor are serialised.';

create or replace trigger tg_users__groups
  before delete on app.users
  for each row execute function internal.tg_users__groups();
