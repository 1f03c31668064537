-- What groups publish, and the channel of each.

create or replace function internal.channel__group(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
declare
  group_id constant uuid := internal.as_uuid(channel__group.item);
  g app.groups;
begin
  select k.* into g from app.groups k where k.id = group_id;
  if g.id is null or not internal.group_is_visible(g, array(select internal.my_group_ids())) then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such group.');
  end if;
  if g.id not in (select internal.my_group_ids()) then
    perform internal.channel_refused();
  end if;
  name := 'group:' || g.id;
  scope := internal.json_merge('{"presence": true}', internal.feed_scope(g.id));
end $$;
comment on function internal.channel__group is
  'group:<id>: its members. scope: hidden, actions of its feed that the caller does not want to see, and unseen, members
   whose entries the caller''s feed is without. Refuses 404 NOT_FOUND for a group that the caller does not see, 403
   FORBIDDEN for a public one of others.';

select internal.source_declare(null::app.group_members,
  'member.joined, member.role_changed (the member) and member.left {user_id}, to the group. A former member gets '
  'nothing later.',
  ops => 'insert or delete', changes => '{role}', also => 'perform internal.recheck_users(array[r.app_user_id]);',
  publishes => $q$
    select 'group:' || r.group_id,
           case op when 'INSERT' then 'member.joined' when 'UPDATE' then 'member.role_changed' else 'member.left' end,
           case op when 'DELETE' then json_build_object('user_id', r.app_user_id)
                   else (select internal.group_member_json(r, u) from app.users u where u.id = r.app_user_id) end$q$);
