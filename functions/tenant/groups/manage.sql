-- Commands of owners and admins: changing a group, its members, its owner. A member can change only members of a lower
-- rank. Lock order: users, the group, its members.

create or replace function internal.group_rank_refusal() returns void
language sql volatile
return internal.fail(403, 'GROUP_ROLE_FORBIDDEN', 'The caller''s role in this group does not allow this.');
comment on function internal.group_rank_refusal is 'Refuses 403 GROUP_ROLE_FORBIDDEN.';

create or replace function internal.group_rank_check(group_id uuid, min_role text) returns int
language plpgsql stable security definer set search_path = '' as $$
declare
  is_open boolean;
  rank int;
begin
  if internal.caller() not in ('user', 'server_key_user') or internal.user_id() is null then
    raise exception 'groups are led by users, not by %', internal.caller();
  end if;
  select g.is_public, internal.group_rank(m.role) into is_open, rank
    from app.groups g
    left join app.group_members m on (m.group_id, m.app_user_id) = (g.id, internal.user_id())
   where g.id = group_rank_check.group_id;
  if not found or not is_open and rank is null then
    perform internal.group_not_found();
  elsif coalesce(rank, 0) < internal.group_rank(group_rank_check.min_role) then
    perform internal.group_rank_refusal();
  end if;
  return rank;
end $$;
comment on function internal.group_rank_check is
  'The caller''s rank in a group, which must be at least that of a role. Refuses 404 NOT_FOUND (also for a private group
   of others), 403 GROUP_ROLE_FORBIDDEN. Granted to nobody.';

create or replace function internal.group_led(group_id uuid, min_role text, app_user_id uuid default null,
                                              out g app.groups, out my_rank int)
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.lock_users(array[internal.user_id(), group_led.app_user_id]);
  select k.* into g from app.groups k where k.id = group_led.group_id for no key update;
  my_rank := internal.group_rank_check(group_led.group_id, group_led.min_role);
end $$;
comment on function internal.group_led is
  'A group in which the caller has at least this role, and the caller''s rank. Refuses as internal.group_rank_check.
   Locks the caller and another user, then the group. Granted to nobody.';

create or replace function internal.group_change(g app.groups, patch jsonb) returns app.groups
language plpgsql volatile security definer set search_path = '' as $$
declare
  changed app.groups;
begin
  update app.groups k
     set name = case when group_change.patch ? 'name' then group_change.patch ->> 'name' else k.name end,
         description = case when group_change.patch ? 'description' then group_change.patch ->> 'description'
                            else k.description end,
         avatar_url = case when group_change.patch ? 'avatar_url' then group_change.patch ->> 'avatar_url'
                           else k.avatar_url end,
         is_public = case when group_change.patch ? 'is_public' then (group_change.patch ->> 'is_public')::boolean
                          else k.is_public end,
         max_members = case when group_change.patch ? 'max_members' then (group_change.patch ->> 'max_members')::int
                            else k.max_members end,
         metadata = case when group_change.patch ? 'metadata' then group_change.patch -> 'metadata' else k.metadata end,
         updated_at = internal.now()
   where k.id = (group_change.g).id and group_change.patch ?|
     '{name,description,avatar_url,is_public,max_members,metadata}'
  returning k.* into changed;
  if changed.id is null then
    return group_change.g;
  end if;
  -- RETURNING has read it before moderation, which may have hidden the name
  return (select k from app.groups k where k.id = changed.id);
end $$;
comment on function internal.group_change is
  'Changes the given fields of a locked group. groups_within_max_members refuses 409 GROUP_FULL below the number of
   members, tg_groups__own_rows 409 GROUP_OWNS_ROWS. Granted to nobody.';

create or replace function internal.group_led_json(g app.groups) returns json
language sql stable as $$
  select internal.json_merge(internal.group_json(group_led_json.g), json_build_object('my_role', (
    select m.role from app.group_members m where (m.group_id, m.app_user_id) = ((group_led_json.g).id,
                                        internal.user_id()))))
$$;
comment on function internal.group_led_json is 'A group with the caller''s role, null when the caller is not a member.';

create or replace function api.group_update(group_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  return internal.reply(200,
                        internal.group_led_json(internal.group_change((internal.group_led(group_update.group_id,
                                        'admin')).g, group_update.patch)));
end $$;
comment on function api.group_update is
  'The caller, at least admin, changes a group. Refuses 404 NOT_FOUND, 403 GROUP_ROLE_FORBIDDEN, 409 GROUP_FULL,
   GROUP_OWNS_ROWS, 400 CONTENT_REJECTED, 403 USER_MUTED. Locks the caller and the group.';

create or replace function internal.group_end(group_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  owner_id uuid;
  members int;
begin
  select m.app_user_id, g.member_count into owner_id, members
    from app.groups g
    left join app.group_members m on m.group_id = g.id and m.role = 'owner'
   where g.id = group_end.group_id;
  delete from app.groups g where g.id = group_end.group_id;
  if owner_id is not null then
    perform internal.emit(owner_id, 'svc.group.deleted',
                          jsonb_build_object('group_id', group_end.group_id, 'member_count', members));
  end if;
end $$;
comment on function internal.group_end is
  'Deletes a group with its memberships, invites and rows. The owner and the group are locked. Emits svc.group.deleted
   for the owner. Granted to nobody.';

create or replace function api.group_delete(group_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.group_led(group_delete.group_id, 'owner');
  perform internal.group_end(group_delete.group_id);
  return internal.reply_deleted();
end $$;
comment on function api.group_delete is
  'The owner deletes a group. Refuses 404 NOT_FOUND, 403 GROUP_ROLE_FORBIDDEN. Locks the caller and the group.';

create or replace function internal.group_member_found(group_id uuid, app_user_id uuid) returns app.group_members
language plpgsql volatile security definer set search_path = '' as $$
declare
  member app.group_members;
begin
  select m.* into member
    from app.group_members m
   where (m.group_id, m.app_user_id) = (group_member_found.group_id, group_member_found.app_user_id)
     for no key update;
  perform internal.check_found(member.group_id is not null, 'member');
  return member;
end $$;
comment on function internal.group_member_found is
  'A member, with the row locked. Refuses 404 NOT_FOUND. Granted to nobody.';

create or replace function internal.group_member_change(m app.group_members, patch jsonb) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  was constant text := (group_member_change.m).role;
  becomes constant text := coalesce(group_member_change.patch ->> 'role', was);
begin
  update app.group_members k
     set role = becomes,
       metadata = case when group_member_change.patch ? 'metadata' then group_member_change.patch -> 'metadata'
                       else k.metadata end
   where (k.group_id, k.app_user_id) = ((group_member_change.m).group_id, (group_member_change.m).app_user_id);
  if becomes <> was then
    perform internal.emit((group_member_change.m).app_user_id, 'svc.group.role_changed', jsonb_build_object(
      'group_id', (group_member_change.m).group_id, 'role', becomes, 'previous_role', was));
  end if;
  return internal.group_member((group_member_change.m).group_id, (group_member_change.m).app_user_id);
end $$;
comment on function internal.group_member_change is
  'Changes role and metadata of a locked member; returns the member. Emits svc.group.role_changed for a new role.
   Granted to nobody.';

create or replace function api.group_member_update(group_id uuid, user_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  rank constant int := (internal.group_led(group_member_update.group_id, 'admin', group_member_update.user_id)).my_rank;
  member constant app.group_members := internal.group_member_found(group_member_update.group_id,
                                                                   group_member_update.user_id);
  is_own_metadata constant boolean := member.app_user_id = internal.user_id()
    and not group_member_update.patch ? 'role';
begin
  if not is_own_metadata and (internal.group_rank(member.role) >= rank
                              or internal.group_rank(group_member_update.patch ->> 'role') >= rank) then
    perform internal.group_rank_refusal();
  end if;
  return internal.reply(200, internal.group_member_change(member, group_member_update.patch));
end $$;
comment on function api.group_member_update is
  'The caller, at least admin, changes a member of a lower rank: to another role below the caller''s, or metadata; also
   the caller''s own metadata. Refuses 404 NOT_FOUND, 403 GROUP_ROLE_FORBIDDEN. Locks both users and the group.';

create or replace function internal.group_exit(m app.group_members) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.group_members k where (k.group_id, k.app_user_id) = ((group_exit.m).group_id,
                                                                       (group_exit.m).app_user_id);
  perform internal.emit((group_exit.m).app_user_id, 'svc.group.left', jsonb_build_object(
    'group_id', (group_exit.m).group_id, 'role', (group_exit.m).role, 'kicked', true));
end $$;
comment on function internal.group_exit is
  'Removes a locked member from a group. Emits svc.group.left with kicked. Granted to nobody.';

create or replace function api.group_member_kick(group_id uuid, user_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  rank constant int := (internal.group_led(group_member_kick.group_id, 'admin', group_member_kick.user_id)).my_rank;
  member constant app.group_members := internal.group_member_found(group_member_kick.group_id,
                                                                   group_member_kick.user_id);
begin
  if internal.group_rank(member.role) >= rank then
    perform internal.group_rank_refusal();
  end if;
  perform internal.group_exit(member);
  return internal.reply_deleted();
end $$;
comment on function api.group_member_kick is
  'The caller, at least admin, removes a member of a lower rank. Refuses 404 NOT_FOUND, 403 GROUP_ROLE_FORBIDDEN. Locks
   both users and the group.';

create or replace function internal.group_hand_over(owner app.group_members, heir app.group_members) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if (group_hand_over.owner).app_user_id = (group_hand_over.heir).app_user_id then
    return;
  end if;
  -- the former owner first, because a group has one owner
  perform internal.group_member_change(group_hand_over.owner, '{"role": "admin"}');
  perform internal.group_member_change(group_hand_over.heir, '{"role": "owner"}');
end $$;
comment on function internal.group_hand_over is
  'Makes a member the owner, and the owner an admin. Both are locked. Granted to nobody.';

create or replace function api.group_transfer(group_id uuid, user_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  g constant app.groups := (internal.group_led(group_transfer.group_id, 'owner', group_transfer.user_id)).g;
begin
  perform internal.group_hand_over(internal.group_member_found(g.id, internal.user_id()),
                                   internal.group_member_found(g.id, group_transfer.user_id));
  return internal.reply(200, internal.group_led_json(g));
end $$;
comment on function api.group_transfer is
  'The owner transfers a group to another member and becomes an admin. Refuses 404 NOT_FOUND, 403 GROUP_ROLE_FORBIDDEN.
   Locks both users and the group.';
