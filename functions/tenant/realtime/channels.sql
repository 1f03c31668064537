-- The kinds of channels. Each is a function internal.channel__<kind>(item, params), which says whether the caller may listen: name is the channel as events are published
-- to it, scope is what its server keeps: presence, publish, and for rows of collections whose they must be. An area joins in by adding one, see docs/realtime.md.

create or replace function internal.channel_refused() returns void
language sql volatile
return internal.fail(403, 'FORBIDDEN', 'You may not listen to this channel.');
comment on function internal.channel_refused is 'Refuses 403 FORBIDDEN.';

create or replace function internal.channel__user(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
begin
  if channel__user.item is not null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such channel.');
  end if;
  name := 'user:' || internal.user_id();
  scope := '{}';
end $$;
comment on function internal.channel__user is 'user: everything about the caller.';

create or replace function internal.channel__conversation(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
declare
  conversation_id constant uuid := internal.as_uuid(channel__conversation.item);
begin
  perform internal.check_found(conversation_id is not null, 'conversation', 'CONVERSATION_NOT_FOUND');
  perform internal.conversation_enter(conversation_id);
  name := 'conversation:' || conversation_id;
  scope := '{"presence": true}';
end $$;
comment on function internal.channel__conversation is 'conversation:<id>: its participants, while none of a pair has blocked the other. Refuses as internal.conversation_enter.';

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
comment on function internal.channel__group is 'group:<id>: its members. scope: hidden, actions of its feed that the caller does not want to see, and unseen, members whose entries the caller''s feed is without. Refuses 404 NOT_FOUND for a group that the caller does not see, 403 FORBIDDEN for a public one of others.';

create or replace function internal.role_until() returns json
language sql stable security definer set search_path = ''
return coalesce((select json_build_object('until', internal.iso(min(a.expires_at)))
                   from app.role_assignments a
                  where a.app_user_id = internal.user_id() and a.expires_at > internal.now()
                 having min(a.expires_at) is not null), '{}');
comment on function internal.role_until is
  'until: when the first of the caller''s roles ends by itself. A scope that has it is asked for again then. Granted to nobody.';

create or replace function internal.channel__collection(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
declare
  filter constant jsonb := nullif(channel__collection.params -> 'filter', 'null');
  definition jsonb;
  problem record;
  c app.collections;
  role_key text;
begin
  select k.* into c from app.collections k where k.name = channel__collection.item;
  perform internal.check_found(c.id is not null, 'collection', 'COLLECTION_NOT_FOUND');
  if not c.realtime then
    perform internal.fail(403, 'FORBIDDEN', 'Realtime is switched off for this collection.');
  end if;
  if filter is not null then
    problem := internal.filter_check(filter::json);
    if problem.reason is not null then
      perform internal.invalid(concat_ws('.', 'filter', nullif(problem.path, '')), problem.reason, 'INVALID_BODY');
    end if;
    definition := internal.collection_definition(c.name);
    perform internal.collection_filter_sql(definition, filter, '["filter"]', 't', true, '{"style": "array", "list": []}');
  end if;
  role_key := case when c.read_policy like 'role:%' then substr(c.read_policy, 6) end;
  -- the same question as internal.collection_condition puts into the policy
  scope := json_strip_nulls(case
    when c.read_policy in ('public', 'authenticated') then json_build_object('filter', filter)
    when role_key is not null and c.owner_scope = 'user' then json_build_object('filter', filter)
    when role_key is not null
    then json_build_object('filter', filter, 'groups', array(select internal.my_role_group_ids(role_key)))
    when c.read_policy = 'owner' and c.owner_scope = 'user' then json_build_object('filter', filter, 'is_owner', true)
    when c.read_policy = 'owner'
    then json_build_object('filter', filter, 'is_owner', true, 'groups', array(select internal.my_group_ids('viewer')))
    else json_build_object('filter', filter, 'groups', array(select internal.my_group_ids(coalesce(nullif(split_part(c.read_policy, ':', 2), ''), 'viewer'))))
  end);
  if role_key is not null then
    if c.owner_scope = 'user' and not internal.has_role(role_key) then
      perform internal.channel_refused();
    end if;
    scope := internal.json_merge(scope, internal.role_until());
  end if;
  name := 'collection:' || c.name;
end $$;
comment on function internal.channel__collection is
  'collection:<name>, params {filter}: rows that the read policy shows the caller and that the filter means. scope: is_owner, only the caller''s own rows; groups, only rows of
   these. Refuses 404 COLLECTION_NOT_FOUND, 403 FORBIDDEN, 400 INVALID_BODY, INVALID_COLUMN.';

create or replace function internal.channel__leaderboard(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
begin
  name := 'leaderboard:' || (internal.leaderboard_for_me(channel__leaderboard.item)).key;
  scope := '{"me": true}';
end $$;
comment on function internal.channel__leaderboard is 'leaderboard:<key>: who sees the board. Refuses 404 NOT_FOUND.';

create or replace function internal.channel__config(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
begin
  if channel__config.item is not null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such channel.');
  end if;
  name := 'config';
  scope := '{}';
end $$;
comment on function internal.channel__config is 'config: changes of remote config and of flags, for everybody.';

create or replace function internal.room_rule(room text) returns app.realtime_rooms
language sql stable security definer set search_path = '' as $$
  select r.*
    from app.realtime_rooms r
   where room_rule.room ~ ('^' || replace(replace(r.pattern, '.', '\.'), '*', '.*') || '$')
   order by r.position
   limit 1
$$;
comment on function internal.room_rule is 'The first rule whose pattern fits the name of a room, null when none does.';

create or replace function internal.channel__room(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
declare
  rule app.realtime_rooms;
begin
  if coalesce(channel__room.item, '') !~ '^[A-Za-z0-9_.:-]{1,64}$' then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such room: names have 1 to 64 letters, digits and _.:-');
  end if;
  rule := internal.room_rule(channel__room.item);
  name := 'room:' || channel__room.item;
  -- who publishes is asked at each publication
  scope := json_build_object(
    'presence', coalesce(rule.presence, true),
    'publish', case when rule.publish is null or rule.publish = 'authenticated' then true
                    when rule.publish = 'server' then internal.caller() = 'server_key_user'
                    else internal.has_role(substr(rule.publish, 6)) end);
end $$;
comment on function internal.channel__room is
  'room:<name>: any signed-in user listens; who publishes, and whether there is presence, its rule says. Without a rule everybody who listens may publish. Refuses 404 NOT_FOUND
   for a name that is none.';
