-- Administration of groups: all of them, including private ones, whatever the administrator's own membership.

create or replace function internal.group_owner(group_id uuid) returns uuid
language sql stable security definer set search_path = '' as $$
  select m.app_user_id from app.group_members m where m.group_id = group_owner.group_id and m.role = 'owner'
$$;
comment on function internal.group_owner is 'The owner of a group. Granted to nobody.';

create or replace function internal.group_administered(group_id uuid, app_user_id uuid default null) returns app.groups
language plpgsql volatile security definer set search_path = '' as $$
declare
  g app.groups;
  owner_id uuid;
begin
  perform internal.check_caller('developer', 'groups are administered by administrators');
  loop
    -- the owner is locked too, because ownership may change
    owner_id := internal.group_owner(group_administered.group_id);
    begin
      perform internal.lock_users(array[group_administered.app_user_id, owner_id]);
      select k.* into g from app.groups k where k.id = group_administered.group_id for no key update;
      exit when internal.group_owner(group_administered.group_id) is not distinct from owner_id;
      -- ownership changed while this waited. Users must be locked before their groups, so the locks are released and
      -- taken again in order
      raise exception 'the owner of the group has changed' using errcode = 'serialization_failure';
    exception when serialization_failure then
      null;
    end;
  end loop;
  if g.id is null then
    perform internal.group_not_found();
  end if;
  return g;
end $$;
comment on function internal.group_administered is
  'A group for an administrator. Refuses 404 NOT_FOUND. Locks its owner and another user, then the group. Granted to
   nobody.';

select internal.list_declare('groups_all_page', null::app.groups, 'group_json', '{created_at,id}', is_counted => true);

create or replace function api.groups_list(search text default null, page_offset bigint default 0,
                                           page_limit bigint default 50)
returns api.reply
language plpgsql stable as $$
declare
  pattern constant text := '%' || replace(replace(replace(groups_list.search, '\', '\\'), '%', '\%'), '_', '\_') || '%';
begin
  if coalesce(groups_list.search, '') = '' then
    return internal.groups_all_page(groups_list.page_offset, groups_list.page_limit);
  end if;
  return internal.reply_page(
    (select json_agg(internal.group_json(f) order by f.created_at desc, f.id desc)
       from (select g.* from app.groups g where g.name ilike pattern
              order by g.created_at desc, g.id desc limit groups_list.page_limit offset groups_list.page_offset) as f),
    (select count(*) from app.groups g where g.name ilike pattern), groups_list.page_offset, groups_list.page_limit);
end $$;
comment on function api.groups_list is 'All groups, or those whose name contains a text, ignoring case; newest first.';

create or replace function api.group_show(group_id uuid) returns api.reply
language plpgsql stable as $$
declare
  g app.groups;
begin
  select k.* into g from app.groups k where k.id = group_show.group_id;
  if g.id is null then
    perform internal.group_not_found();
  end if;
  return internal.reply(200, internal.group_json(g));
end $$;
comment on function api.group_show is 'A group. Refuses 404 NOT_FOUND.';

create or replace function api.group_update_any(group_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was constant app.groups := internal.group_administered(group_update_any.group_id);
  is_now constant app.groups := internal.group_change(was, group_update_any.patch);
begin
  perform internal.audit(a.action, 'groups', a.target_id, a.changes, a.status, a.scope)
     from internal.audit_change('groups', '{}', to_jsonb(was), to_jsonb(is_now)) a;
  return internal.reply(200, internal.group_json(is_now));
end $$;
comment on function api.group_update_any is
  'An administrator changes a group. Refuses 404 NOT_FOUND, 409 GROUP_FULL, GROUP_OWNS_ROWS. Locks the owner and the
   group. Audited as groups.update.';

create or replace function api.group_delete_any(group_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was constant app.groups := internal.group_administered(group_delete_any.group_id);
begin
  perform internal.group_end(was.id);
  perform internal.audit(a.action, 'groups', a.target_id, a.changes, a.status, a.scope)
     from internal.audit_change('groups', '{}', to_jsonb(was), '{}') a;
  return internal.reply_deleted();
end $$;
comment on function api.group_delete_any is
  'An administrator deletes a group. Refuses 404 NOT_FOUND. Locks the owner and the group. Audited as groups.delete.';

create or replace function api.group_members_any(group_id uuid, page_offset bigint default 0,
                                                 page_limit bigint default 50)
returns api.reply
language plpgsql stable as $$
declare
  g app.groups;
begin
  select k.* into g from app.groups k where k.id = group_members_any.group_id;
  if g.id is null then
    perform internal.group_not_found();
  end if;
  return internal.reply_page(internal.group_members_json(g.id, group_members_any.page_limit,
                                                         group_members_any.page_offset), g.member_count,
                             group_members_any.page_offset, group_members_any.page_limit);
end $$;
comment on function api.group_members_any is 'The members of a group, longest membership first. Refuses 404 NOT_FOUND.';

create or replace function api.group_member_update_any(group_id uuid, user_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  g constant app.groups := internal.group_administered(group_member_update_any.group_id,
                                                       group_member_update_any.user_id);
  was constant app.group_members := internal.group_member_found(g.id, group_member_update_any.user_id);
  is_now app.group_members;
  shown json;
begin
  if was.role = 'owner' and group_member_update_any.patch ->> 'role' <> 'owner' then
    perform internal.fail(409, 'CONFLICT', 'A group has an owner: make another member the owner.', '{"field": "role"}');
  elsif was.role <> 'owner' and group_member_update_any.patch ->> 'role' = 'owner' then
    perform internal.group_member_change(internal.group_member_found(g.id, internal.group_owner(g.id)),
                                         '{"role": "admin"}');
  end if;
  shown := internal.group_member_change(was, group_member_update_any.patch);
  is_now := internal.group_member_found(g.id, was.app_user_id);
  if is_now is distinct from was then
    perform internal.audit('groups.member_update', 'groups', g.id::text, json_build_object(
      'app_user_id', json_build_array(was.app_user_id, was.app_user_id),
        'role', json_build_array(was.role, is_now.role),
      'metadata', json_build_array(was.metadata, is_now.metadata)));
  end if;
  return internal.reply(200, shown);
end $$;
comment on function api.group_member_update_any is
  'An administrator changes a member; a new owner makes the former owner an admin. Refuses 404 NOT_FOUND, 409 CONFLICT
   (the owner''s role). Locks the user, the owner and the group. Audited as groups.member_update.';

create or replace function api.group_member_remove(group_id uuid, user_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  g constant app.groups := internal.group_administered(group_member_remove.group_id, group_member_remove.user_id);
  member constant app.group_members := internal.group_member_found(g.id, group_member_remove.user_id);
begin
  perform internal.group_exit(member);
  perform internal.audit('groups.member_remove', 'groups', g.id::text, json_build_object(
    'app_user_id', json_build_array(member.app_user_id, null), 'role', json_build_array(member.role, null)));
  return internal.reply_deleted();
end $$;
comment on function api.group_member_remove is
  'An administrator removes a member. After the owner''s removal the oldest admin becomes the owner, else the oldest
   member; a group without members is deleted. Refuses 404 NOT_FOUND. Locks the user, the owner and the group. Audited
   as groups.member_remove.';
