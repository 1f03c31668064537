-- What administrators do with realtime: broadcast, figures, rules for rooms.

create or replace function api.realtime_broadcast(channel text, event text, payload json, server_id uuid)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  target constant text := realtime_broadcast.channel;
begin
  if target !~ '^(config|(user|conversation|group|leaderboard|room):[A-Za-z0-9_.:-]{1,100}|collection:[a-z][a-z0-9_]{0,62})$'
  then
    perform internal.invalid('channel', 'must be the name of a channel, of a user as user:<id>');
  end if;
  perform internal.publish(target, realtime_broadcast.event, realtime_broadcast.payload);
  perform internal.audit_act('realtime.broadcast', 'realtime', null,
                             json_build_object('channel', json_build_array(null, target)), 202);
  return internal.reply(202, json_build_object('others', (select coalesce(sum((s.listeners ->> target)::int), 0)
                                                            from app.realtime_servers s
                                                           where s.expires_at > internal.now()
                                                             and s.id <> realtime_broadcast.server_id)));
end $$;
comment on function api.realtime_broadcast is
  'Publishes any event to any channel; {others}: how many connections listen to it on other servers than the one that
   asks. Refuses 400 VALIDATION_ERROR for what cannot be a channel.';

create or replace function internal.realtime_rooms_json() returns json
language sql stable security definer set search_path = ''
return (select json_build_object('rules', coalesce(json_agg(json_strip_nulls(json_build_object('pattern', r.pattern,
                                        'publish', r.publish, 'presence', r.presence, 'listen', r.listen))
                                          order by r.position), '[]'))
          from app.realtime_rooms r);
comment on function internal.realtime_rooms_json is 'The rules for rooms, in their order.';

create or replace function api.realtime_rooms_put(rules jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was constant jsonb := internal.realtime_rooms_json();
begin
  lock table app.realtime_rooms in exclusive mode;
  delete from app.realtime_rooms;
  insert into app.realtime_rooms (position, pattern, publish, presence, listen)
  select e.n, e.value ->> 'pattern', e.value ->> 'publish', (e.value ->> 'presence')::boolean, e.value ->> 'listen'
    from jsonb_array_elements(realtime_rooms_put.rules) with ordinality as e (value, n);
  perform internal.audit_act('realtime.update', 'realtime', null,
                             json_build_object('rules', json_build_array(was -> 'rules',
                                                                         internal.realtime_rooms_json() -> 'rules')),
                                                                           200);
  -- rooms that somebody listens to are under other rules now
  if internal.has_subscribers() then
    perform internal.notify_servers(array(select c.channel from app.realtime_channels c where c.channel like 'room:%'),
                                    '~check');
  end if;
  return internal.reply(200, internal.realtime_rooms_json());
end $$;
comment on function api.realtime_rooms_put is 'Replaces the rules for rooms, at most 100. Locks them.';

comment on constraint realtime_rooms_pattern_form on app.realtime_rooms is
  '400 VALIDATION_ERROR pattern: must have 1 to 64 letters, digits and _.:-, and * for any characters.';
comment on constraint realtime_rooms_publish_known on app.realtime_rooms is
  '400 VALIDATION_ERROR publish: must be authenticated, server or role:<key>.';
comment on constraint realtime_rooms_listen_known on app.realtime_rooms is
  '400 VALIDATION_ERROR listen: must be authenticated or role:<key>.';

create or replace function api.realtime_stats() returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  since constant timestamptz := internal.now() - interval '60 seconds';
begin
  return internal.reply(200, json_build_object(
    'connections', (select count(*) from app.realtime_connections c join app.realtime_servers s on s.id = c.server_id
                     where s.expires_at > internal.now()),
    'users', (select count(distinct c.app_user_id) from app.realtime_connections c
                join app.realtime_servers s on s.id = c.server_id
               where s.expires_at > internal.now()),
    'channels', (select count(*) from app.realtime_channels c
                  where c.subscribed_until > internal.now() and c.channel not like '~%'),
    -- of the index by time, whose newest rows are at its end
    'messages_per_second', (select round(count(*) / 60.0, 2) from app.realtime_events e
                             where e.seq is not null and e.at > since)));
end $$;
comment on function api.realtime_stats is
  '{connections, users, channels, messages_per_second}: open connections on all servers, channels listened to within
   minutes, events of the last minute.';
