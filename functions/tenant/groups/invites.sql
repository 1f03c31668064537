-- Invites: codes by which a limited number of users may join a group, public or private. An invite ends with the
-- membership of its creator, and when the creator's role no longer allows it.

create or replace function internal.group_invite_is_open(i app.group_invites) returns boolean
language sql stable as $$
  select (group_invite_is_open.i).uses < (group_invite_is_open.i).max_uses
     and (group_invite_is_open.i).expires_at > internal.now()
$$;
comment on function internal.group_invite_is_open is 'Whether an invite can still be used.';

create or replace function internal.group_invite_json(i app.group_invites) returns json
language sql stable as $$
  select json_build_object(
    'id', (group_invite_json.i).id, 'group_id', (group_invite_json.i).group_id, 'code', (group_invite_json.i).code,
      'url', null,
    'role', (group_invite_json.i).role, 'max_uses', (group_invite_json.i).max_uses, 'uses', (group_invite_json.i).uses,
    'created_by', (group_invite_json.i).created_by, 'expires_at', internal.iso((group_invite_json.i).expires_at),
    'created_at', internal.iso((group_invite_json.i).created_at))
$$;
comment on function internal.group_invite_json is
  'An invite as the group''s admins see it. url is null: Trellis has no page that accepts a code.';

create or replace function api.group_invite_create(group_id uuid, max_uses int default 1,
                                                   expires_in_hours int default 168, role text default 'member')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  rank constant int := (internal.group_led(group_invite_create.group_id, 'admin')).my_rank;
  made app.group_invites;
begin
  if internal.group_rank(group_invite_create.role) >= rank then
    perform internal.group_rank_refusal();
  end if;
  -- the group is locked, so that of concurrent requests one deletes
  delete from app.group_invites i where i.group_id = group_invite_create.group_id
    and not internal.group_invite_is_open(i);
  perform internal.check_limit((select count(*) from app.group_invites i
                                 where i.group_id = group_invite_create.group_id), 100,
                               'A group has at most 100 open invites.');
  insert into app.group_invites as i (group_id, code, role, max_uses, created_by, expires_at)
  values (group_invite_create.group_id, internal.random_code(12), group_invite_create.role,
          group_invite_create.max_uses, internal.user_id(),
          internal.now() + make_interval(hours => group_invite_create.expires_in_hours))
  returning i.* into made;
  return internal.reply(201, internal.group_invite_json(made));
end $$;
comment on function api.group_invite_create is
  'The caller, at least admin, creates an invite to a group with a role below the caller''s. Refuses 404 NOT_FOUND, 403
   GROUP_ROLE_FORBIDDEN, 409 LIMIT_REACHED (100 open invites). Locks the caller and the group.';

create or replace function api.group_invites_list(group_id uuid, page_offset bigint default 0,
                                                  page_limit bigint default 50)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  rank constant int := internal.group_rank_check(group_invites_list.group_id, 'admin');
begin
  return internal.reply_page(
    (select json_agg(internal.group_invite_json(p.listed) order by (p.listed).created_at desc, (p.listed).id desc)
       from (select i as listed from app.group_invites i
              where i.group_id = group_invites_list.group_id and internal.group_invite_is_open(i)
                and internal.group_rank(i.role) < rank
              order by i.created_at desc, i.id desc limit group_invites_list.page_limit
                offset group_invites_list.page_offset) p),
    (select count(*) from app.group_invites i
      where i.group_id = group_invites_list.group_id and internal.group_invite_is_open(i)
        and internal.group_rank(i.role) < rank),
    group_invites_list.page_offset, group_invites_list.page_limit);
end $$;
comment on function api.group_invites_list is
  'The open invites of a group, newest first; an admin does not see invites for the role admin. Refuses 404 NOT_FOUND,
   403 GROUP_ROLE_FORBIDDEN.';

create or replace function api.group_invite_delete(group_id uuid, invite_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  rank constant int := (internal.group_led(group_invite_delete.group_id, 'admin')).my_rank;
begin
  delete from app.group_invites i
   where (i.group_id, i.id) = (group_invite_delete.group_id, group_invite_delete.invite_id)
     and internal.group_invite_is_open(i)
     and internal.group_rank(i.role) < rank;
  perform internal.check_found(found, 'invite');
  return internal.reply_deleted();
end $$;
comment on function api.group_invite_delete is
  'The caller, at least admin, deletes an invite that they can see. Refuses 404 NOT_FOUND, 403 GROUP_ROLE_FORBIDDEN.
   Locks the caller and the group.';

create or replace function api.group_join_by_code(code text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  invite app.group_invites;
  known json;
begin
  select i.* into invite from app.group_invites i where i.code = internal.code_normal(group_join_by_code.code);
  perform internal.lock_users(array[me]);
  perform from app.groups g where g.id = invite.group_id for no key update;
  -- read again under the lock of the group, which every use of an invite takes first
  select i.* into invite from app.group_invites i where i.id = invite.id;
  perform internal.check_found(invite.expires_at > internal.now(), 'invite');
  known := internal.group_member(invite.group_id, me);
  if known is not null then
    return internal.reply(200, known);
  end if;
  perform internal.check_found(internal.group_invite_is_open(invite), 'invite');
  perform internal.group_limit_check(me);
  update app.group_invites i set uses = i.uses + 1 where i.id = invite.id;
  return internal.reply(201, internal.group_enter(invite.group_id, me, invite.role));
end $$;
comment on function api.group_join_by_code is
  'The caller joins a group by an invite: 201 with the member, or 200 for a member, which does not count as a use.
   Refuses 404 NOT_FOUND (unknown, expired, used up), 409 GROUP_FULL, GROUP_LIMIT_REACHED. Locks the caller and the
   group.';

create or replace function internal.tg_group_members__invites() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.group_invites i
   where (i.group_id, i.created_by) = (new.group_id, new.app_user_id)
     and (internal.group_rank(new.role) < 3 or internal.group_rank(i.role) >= internal.group_rank(new.role));
  return null;
end $$;
comment on function internal.tg_group_members__invites is
  'Deletes the invites of a member whose new role would not allow creating them.';

create or replace trigger tg_group_members__invites
  after update of role on app.group_members
  for each row when (new.role is distinct from old.role)
  execute function internal.tg_group_members__invites();
