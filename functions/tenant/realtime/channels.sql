-- The kinds of channels. Each is a function internal.channel__<kind>(item, params), which says whether the caller may
-- listen: name is the channel as events are published to it, scope is what its server keeps: presence, publish, and for
-- rows of collections whose they must be. An area joins in by adding one, see docs/realtime.md.

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
  if rule.pattern is null and channel__room.params -> 'private' = 'true' then
    perform internal.fail(403, 'FORBIDDEN', 'No rule names this room: a private channel needs one.');
  elsif rule.listen like 'role:%' and not internal.has_role(substr(rule.listen, 6)) then
    perform internal.channel_refused();
  end if;
  name := 'room:' || channel__room.item;
  -- who publishes is asked at each publication
  scope := json_build_object(
    'presence', coalesce(rule.presence, true),
    'publish', case when rule.publish is null or rule.publish = 'authenticated' then true
                    when rule.publish = 'server' then internal.caller() = 'server_key_user'
                    else internal.has_role(substr(rule.publish, 6)) end);
  if rule.listen like 'role:%' then
    scope := internal.json_merge(scope, internal.role_until());
  end if;
end $$;
comment on function internal.channel__room is
  'room:<name>, params {private}: who listens and publishes, and whether there is presence, its rule says. Without a
   rule any signed-in user listens and may publish, but not where params say private. Refuses 404 NOT_FOUND for a name
   that is none, 403 FORBIDDEN.';
