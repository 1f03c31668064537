-- Reads of groups. Definer functions read names of other users and search results for the caller: users cannot read
-- each other's rows, and a policy on membership would prevent the use of the trigram index.

select internal.row_declare('group_json', null::app.groups,
                            '{id,name,description,avatar_url,is_public,max_members,metadata,member_count,created_at,
                             updated_at}');
comment on function internal.group_json is 'A group as responses show it.';

create or replace function internal.group_member_json(m app.group_members, u app.users) returns json
language sql stable as $$
  select json_build_object(
    'group_id', (group_member_json.m).group_id, 'app_user_id', (group_member_json.m).app_user_id,
      'role', (group_member_json.m).role,
    'metadata', (group_member_json.m).metadata, 'joined_at', internal.iso((group_member_json.m).joined_at),
    'app_users', json_build_object('id', (group_member_json.u).id, 'display_name', (group_member_json.u).display_name,
                                   'avatar_url', (group_member_json.u).avatar_url))
$$;
comment on function internal.group_member_json is 'A member with the public part of the user''s profile.';

create or replace function internal.group_not_found() returns void
language sql volatile
return internal.fail(404, 'NOT_FOUND', 'There is no such group.');
comment on function internal.group_not_found is
  'Refuses 404 NOT_FOUND: for a group that does not exist, or a private group of others.';

create or replace function api.group_get(group_id uuid) returns api.reply
language plpgsql stable as $$
declare
  g app.groups;
begin
  select k.* into g from app.groups k where k.id = group_get.group_id;
  if g.id is null then
    perform internal.group_not_found();
  end if;
  return internal.reply(200, internal.group_led_json(g));
end $$;
comment on function api.group_get is
  'A public group, or one of the caller''s, with my_role (null when the caller is not a member). Refuses 404
   NOT_FOUND.';

create or replace function api.groups_mine() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce((
    select json_agg(json_build_object('role', m.role, 'groups', internal.group_json(g)) order by m.joined_at desc,
                    m.group_id desc)
      from app.group_members m
      join app.groups g on g.id = m.group_id
     where m.app_user_id = internal.user_id()), '[]'))
$$;
comment on function api.groups_mine is 'The caller''s groups, newest membership first, each with the caller''s role.';

create or replace function internal.is_group_public(g app.groups) returns boolean
language sql stable as $$
  select (is_group_public.g).is_public
$$;
comment on function internal.is_group_public is 'Whether a group is public.';

select internal.list_declare('groups_page', null::app.groups, 'group_json', '{created_at,id}',
                             condition => 'is_group_public');

create or replace function api.groups_search(q text default '', page_limit int default 20, page_offset int default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  pattern constant text := '%' || replace(replace(replace(groups_search.q, '\', '\\'), '%', '\%'), '_', '\_') || '%';
begin
  if groups_search.q = '' then
    return internal.groups_page(groups_search.page_offset, groups_search.page_limit);
  end if;
  if char_length(groups_search.q) < 3 then
    -- trigrams cannot find so short a text: the whole index of names would be read, and then the groups
    return internal.reply_page(
      (select json_agg(internal.group_json(f) order by f.created_at desc, f.id desc)
         from (select g.* from app.groups g where g.is_public and (g.name || '') ilike pattern
                order by g.created_at desc, g.id desc limit groups_search.page_limit
                  offset groups_search.page_offset) as f),
      (select count(*) from app.groups g where g.is_public and (g.name || '') ilike pattern), groups_search.page_offset,
      groups_search.page_limit);
  end if;
  return internal.reply_page(
    (select json_agg(internal.group_json(f) order by f.created_at desc, f.id desc)
       from (select g.* from app.groups g where g.is_public and g.name ilike pattern
              order by g.created_at desc, g.id desc limit groups_search.page_limit
                offset groups_search.page_offset) as f),
    (select count(*) from app.groups g where g.is_public and g.name ilike pattern), groups_search.page_offset,
    groups_search.page_limit);
end $$;
comment on function api.groups_search is
  'A page of the public groups whose name contains a text, ignoring case, newest first, with the total. % and _ are
   literal.';

create or replace function internal.group_members_json(group_id uuid, page_limit bigint, page_offset bigint)
returns json
language sql stable as $$
  select json_agg(internal.group_member_json(m, u) order by m.joined_at, m.app_user_id)
    from (select k.* from app.group_members k where k.group_id = group_members_json.group_id
           order by k.joined_at, k.app_user_id limit group_members_json.page_limit
             offset group_members_json.page_offset) as k
    join app.group_members m on (m.group_id, m.app_user_id) = (k.group_id, k.app_user_id)
    join app.users u on u.id = m.app_user_id
$$;
comment on function internal.group_members_json is
  'Some members of a group, longest membership first. Runs with the caller''s rights.';

create or replace function api.group_members(group_id uuid, page_limit int default 100, page_offset int default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  mine constant uuid[] := array(select internal.my_group_ids());
  g app.groups;
begin
  select k.* into g from app.groups k where k.id = group_members.group_id;
  if g.id is null or not internal.group_is_visible(g, mine) then
    perform internal.group_not_found();
  end if;
  return internal.reply_page(internal.group_members_json(g.id, group_members.page_limit, group_members.page_offset),
                             g.member_count,
                             group_members.page_offset, group_members.page_limit);
end $$;
comment on function api.group_members is
  'A page of a group''s members, longest membership first. Only members see a private group. Refuses 404 NOT_FOUND.';
