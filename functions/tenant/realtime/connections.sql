-- Connections, tickets, subscriptions and presence, as their server asks for them.

create or replace function api.realtime_open(server_id uuid, connection_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
begin
  -- one after the other, so that two at once cannot pass the limit together
  if internal.lock_users(array[me]) is null then
    perform internal.fail(401, 'UNAUTHORIZED', 'There is no such user any more.');
  end if;
  if (select count(*)
        from app.realtime_connections c
        join app.realtime_servers s on s.id = c.server_id
       where c.app_user_id = me and s.expires_at > internal.now()) >= 5 then
    perform internal.fail(429, 'RATE_LIMITED', 'A user has at most 5 connections.', '{"limit": 5}',
                          '{"Retry-After": "30"}');
  end if;
  insert into app.realtime_connections (id, server_id, app_user_id)
    values (realtime_open.connection_id, realtime_open.server_id, me);
  return internal.reply(200, json_build_object('is_new', internal.realtime_listen('~' || me, false)
                                               or internal.realtime_is_new('~' || me)));
end $$;
comment on function api.realtime_open is
  'Registers a connection of the caller. {is_new}: notices to the caller''s servers begin with it. Refuses 429
   RATE_LIMITED for a sixth connection, 401 UNAUTHORIZED when the user is gone. Locks the user.';

create or replace function internal.realtime_close(connection_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  left_one record;
begin
  for left_one in
    delete from app.realtime_presences p where p.connection_id = any (realtime_close.connection_ids)
    returning p.channel, p.app_user_id
  loop
    perform internal.presence_left(left_one.channel, left_one.app_user_id);
  end loop;
  delete from app.realtime_connections c where c.id = any (realtime_close.connection_ids);
end $$;
comment on function internal.realtime_close is
  'Forgets connections; who was present by them leaves. Granted to the worker alone.';

create or replace function api.realtime_close(connection_ids jsonb) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.realtime_close(array(select k::uuid
                                          from jsonb_array_elements_text(realtime_close.connection_ids) k));
  return internal.reply(200, 'true');
end $$;
comment on function api.realtime_close is 'For servers: these connections are closed.';

create or replace function internal.realtime_listen(channel text, keeps_rows boolean) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  begins constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  known app.realtime_channels;
begin
  perform internal.realtime_note_subscribed();
  select c.* into known from app.realtime_channels c where c.channel = realtime_listen.channel;
  if known.subscribed_until > internal.now() + interval '11 minutes'
    and known.keeps_rows >= realtime_listen.keeps_rows then
    return false;
  end if;
  insert into app.realtime_channels as c (channel, seq, floor_seq, subscribed_until, keeps_rows, subscribed_from)
  values (realtime_listen.channel, begins, begins, internal.now() + interval '12 minutes', realtime_listen.keeps_rows,
          clock_timestamp())
  on conflict on constraint realtime_channels_pkey do update
     set subscribed_until = greatest(c.subscribed_until, excluded.subscribed_until),
         keeps_rows = c.keeps_rows or excluded.keeps_rows,
         subscribed_from = case when c.subscribed_until <= internal.now()
                                  or excluded.keeps_rows and not c.keeps_rows then excluded.subscribed_from
                           else c.subscribed_from end,
         -- what was published while nobody listened was not written: earlier places are not known any more
         floor_seq = case when c.subscribed_until <= internal.now() then c.seq + 1 else c.floor_seq end,
         seq = case when c.subscribed_until <= internal.now() then c.seq + 1 else c.seq end;
  return known.channel is null or known.subscribed_until <= internal.now()
    or known.keeps_rows < realtime_listen.keeps_rows;
end $$;
comment on function internal.realtime_listen is
  'From the commit on, what is published to this channel is written, for twelve minutes; true when it was not before.
   Granted to nobody.';

create or replace function internal.realtime_is_new(channel text) returns boolean
language sql volatile security definer set search_path = ''
return coalesce((select c.subscribed_from > clock_timestamp() - interval '10 seconds' from app.realtime_channels c
                  where c.channel = realtime_is_new.channel), false);
comment on function internal.realtime_is_new is
  'Whether transactions that began before anybody listened to the channel may still run: as long as the first subscriber
   may wait for them, others do too. Granted to nobody.';

create or replace function internal.realtime_authorize(channel text, params jsonb, out name text, out scope json)
language plpgsql volatile security definer set search_path = '' as $$
declare
  kind constant text := split_part(realtime_authorize.channel, ':', 1);
  item constant text := nullif(substr(realtime_authorize.channel, length(kind) + 2), '');
begin
  if kind !~ '^[a-z][a-z_]{0,31}$' or char_length(realtime_authorize.channel) > 128
     or not exists (select from pg_catalog.pg_proc p
                     where p.pronamespace = 'internal'::regnamespace and p.proname = 'channel__' || kind) then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such channel.');
  end if;
  execute format('select c.name, c.scope from internal.%I($1, $2) c', 'channel__' || kind) into name, scope using item,
    realtime_authorize.params;
end $$;
comment on function internal.realtime_authorize is
  'Whether the caller may listen to a channel, kind or kind:item, by the function internal.channel__<kind>(item,
   params): name is the channel as it is published to, scope what its server keeps of the answer. Refuses what that
   function refuses, and 404 NOT_FOUND for an unknown kind.';

create or replace function api.realtime_subscribe(channel text, params jsonb default '{}', since bigint default null,
                                                  connection_id uuid default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  allowed record;
  is_first boolean;
  c app.realtime_channels;
  missed json;
  is_lost boolean;
  is_noted boolean;
begin
  allowed := internal.realtime_authorize(realtime_subscribe.channel, realtime_subscribe.params);
  is_noted := allowed.name like any (array['conversation:%', 'leaderboard:%']);
  is_first := internal.realtime_listen(allowed.name, allowed.scope -> 'filter' is not null);
  -- names of rooms are the clients' own: without a limit, one who changes rooms all the time would make rows without
  -- end
  if is_first and allowed.name like 'room:%' then
    perform internal.check_rate('realtime rooms ' || internal.user_id(), 1000, 600,
                                'A user opens at most 1000 rooms in ten minutes that nobody listens to.');
  end if;
  if is_noted then
    insert into app.realtime_readers (channel, connection_id, app_user_id)
    select allowed.name, k.id, k.app_user_id
      from app.realtime_connections k
     where (k.id, k.app_user_id) = (realtime_subscribe.connection_id, internal.user_id())
    on conflict on constraint realtime_readers_pkey do nothing;
  end if;
  if allowed.name like 'leaderboard:%' then
    perform internal.realtime_board_begin(substr(allowed.name, char_length('leaderboard:') + 1),
                                          realtime_subscribe.connection_id);
  end if;
  select k.* into c from app.realtime_channels k where k.channel = allowed.name;
  is_lost := realtime_subscribe.since is not null and realtime_subscribe.since not between c.floor_seq and c.seq;
  if realtime_subscribe.since between c.floor_seq and c.seq - 1 then
    -- more than two megabytes at once, and a client that reads them slowly would be cut off again and again
    select sum(octet_length(e.payload) + coalesce(octet_length(e.meta), 0)) > 2097152,
           json_agg(json_build_array(e.channel, e.seq, e.event, e.payload, e.meta, internal.iso(e.at)) order by e.seq)
      into is_lost, missed
      from app.realtime_events e
     where e.channel = allowed.name and e.seq > realtime_subscribe.since and e.seq <= c.seq;
    is_lost := coalesce(is_lost, false);
  end if;
  return internal.reply(200, json_build_object(
    'name', allowed.name, 'scope', allowed.scope, 'seq', c.seq, 'is_new', is_first
      or internal.realtime_is_new(allowed.name), 'missed', case when is_lost then '[]' else coalesce(missed, '[]') end,
    'is_lost', is_lost, 'is_noted', is_noted,
    'present', case when (allowed.scope ->> 'presence')::boolean then internal.presence_state(allowed.name) end));
end $$;
comment on function api.realtime_subscribe is
  'Authorizes a subscription and begins it: {name, scope, seq, is_new, missed, is_lost, is_noted, present}. missed are
   the events after since; is_lost: they are not all there any more, or have more than 2 MB. Who listens to a
   conversation or a leaderboard by a connection is noted. Refuses as internal.realtime_authorize. Whoever opens more
   than 1000 rooms in ten minutes that nobody else listens to gets 429 RATE_LIMITED.';

create or replace function api.realtime_leave(connection_id uuid, channel text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.realtime_readers r
   where (r.channel, r.connection_id, r.app_user_id) = (realtime_leave.channel, realtime_leave.connection_id,
                                                        internal.user_id());
  return internal.reply(200, 'true');
end $$;
comment on function api.realtime_leave is
  'Notes that the caller does not listen to a conversation or a leaderboard any more by a connection that stays open.';

create or replace function internal.listeners_of(channel text) returns setof app.realtime_readers
language sql stable security definer set search_path = '' as $$
  select r.*
    from app.realtime_readers r
    join app.realtime_connections c on c.id = r.connection_id
    join app.realtime_servers s on s.id = c.server_id
   where r.channel = listeners_of.channel and s.expires_at > internal.now()
$$;
comment on function internal.listeners_of is
  'Who listens to a conversation or a leaderboard now, by which connection, on any server. Granted to nobody.';

create or replace function internal.readers_of(channel text) returns setof uuid
language sql stable security definer set search_path = '' as $$
  select distinct l.app_user_id from internal.listeners_of(readers_of.channel) l
$$;
comment on function internal.readers_of is 'Who listens to a conversation now, on any server. Granted to nobody.';

create or replace function api.realtime_check(channels jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  one jsonb;
  allowed record;
  checked json[] := '{}';
begin
  for one in select e.value from jsonb_array_elements(realtime_check.channels) with ordinality as e (value, n)
    order by e.n loop
    begin
      allowed := internal.realtime_authorize(one ->> 0, coalesce(one -> 1, '{}'));
      checked := checked || allowed.scope;
    exception when sqlstate 'TR000' then
      checked := checked || 'null'::json;
    end;
  end loop;
  return internal.reply(200, to_json(checked));
end $$;
comment on function api.realtime_check is
  'For servers: authorizes subscriptions of a user again, [[channel, params]]: the scope of each, null where the caller
   may not listen any more.';

create or replace function api.realtime_matches(filters jsonb, items jsonb) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  return internal.reply(200, (
    select json_agg((select json_agg(coalesce(internal.filter_truth(f.value, r.value), false) order by f.n)
                       from jsonb_array_elements(realtime_matches.filters) with ordinality as f (value, n))
                         order by r.n)
      from jsonb_array_elements(realtime_matches.items) with ordinality as r (value, n)));
end $$;
comment on function api.realtime_matches is
  'For servers: for each row of collections whether it is what each filter of a subscriber means: a filter is asked once
   for a row, however many subscribers have it.';

create or replace function api.realtime_publish(channel text, event text, payload json, sender uuid default null,
                                                params jsonb default '{}')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  allowed record;
begin
  allowed := internal.realtime_authorize(realtime_publish.channel, realtime_publish.params);
  if (allowed.scope ->> 'publish')::boolean is not true then
    perform internal.fail(403, 'FORBIDDEN', 'You may not publish to this channel.');
  end if;
  perform internal.check_may_write();
  if realtime_publish.sender is null then
    perform internal.publish(allowed.name, realtime_publish.event, realtime_publish.payload);
  else
    perform internal.publish_many(array[allowed.name], realtime_publish.event, realtime_publish.payload,
                                  json_build_object('sender', realtime_publish.sender));
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.realtime_publish is
  'The caller publishes to a channel whose scope says so: a room, by its rule. sender is for the servers: by it a client
   knows what it sent itself. Refuses as internal.realtime_authorize, and 403 FORBIDDEN, USER_MUTED.';

create or replace function api.realtime_send(messages jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  sent jsonb;
begin
  for sent in select m from jsonb_array_elements(realtime_send.messages) m loop
    if internal.caller() = 'server_key' then
      perform internal.publish(sent ->> 'channel', sent ->> 'event', (sent -> 'payload')::json);
    else
      perform api.realtime_publish(sent ->> 'channel', sent ->> 'event', (sent -> 'payload')::json, null,
                                   jsonb_build_object('private', sent -> 'private'));
    end if;
  end loop;
  return internal.reply(202, 'true');
end $$;
comment on function api.realtime_send is
  'Publishes to rooms without a connection, all messages or none: {channel, event, payload, private}. Users as
   api.realtime_publish lets them, a server key to every room. Refuses as that function does.';

create or replace function internal.presence_entry(app_user_id uuid, state jsonb) returns json
language sql stable
return json_build_object('user_id', presence_entry.app_user_id, 'state', presence_entry.state);
comment on function internal.presence_entry is 'One who is present, as frames show it. Granted to nobody.';

create or replace function internal.presence_state(channel text) returns json
language sql stable security definer set search_path = ''
return (select coalesce(json_agg(internal.presence_entry(p.app_user_id, p.state) order by p.joined_at, p.app_user_id),
                        '[]')
          from (select distinct on (q.app_user_id) q.app_user_id, q.state, q.joined_at
                  from app.realtime_presences q
                  join app.realtime_connections c on c.id = q.connection_id
                  join app.realtime_servers s on s.id = c.server_id
                 where q.channel = presence_state.channel and s.expires_at > internal.now()
                 order by q.app_user_id, q.joined_at desc) p);
comment on function internal.presence_state is
  'Who is present in a channel, each user once with the newest state. Granted to nobody.';

create or replace function internal.presence_left(channel text, app_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- with another connection the user is still there
  if not exists (select from app.realtime_presences p
                  where (p.channel, p.app_user_id) = (presence_left.channel, presence_left.app_user_id)) then
    perform internal.notify_servers(array[presence_left.channel], 'presence',
                                    json_build_object('joins', '[]'::json,
                                                      'leaves', json_build_array(
                                                        internal.presence_entry(presence_left.app_user_id, null))));
  end if;
end $$;
comment on function internal.presence_left is
  'Tells a channel that a user has left, by the last connection. Granted to nobody.';

create or replace function api.presence_set(connection_id uuid, channel text, state jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  allowed record;
begin
  -- leaving needs no right: it is also the end of whoever may not listen any more
  if presence_set.state = 'null' then
    delete from app.realtime_presences p where (p.channel, p.connection_id) = (presence_set.channel,
                                        presence_set.connection_id) and p.app_user_id = me;
    if found then
      perform internal.presence_left(presence_set.channel, me);
    end if;
    return internal.reply(200, json_build_object('name', presence_set.channel));
  end if;
  allowed := internal.realtime_authorize(presence_set.channel, '{}');
  if (allowed.scope ->> 'presence')::boolean is not true then
    perform internal.fail(403, 'FORBIDDEN', 'This channel has no presence.');
  end if;
  -- a state is text that others read
  perform internal.check_may_write();
  -- exact without a lock: a server sends what one connection asks for one after the other
  if (select count(*) from app.realtime_presences p
       where p.connection_id = presence_set.connection_id and p.channel <> allowed.name) >= 100 then
    perform internal.fail(409, 'LIMIT_REACHED', 'A connection is present in at most 100 channels.', '{"limit": 100}');
  end if;
  insert into app.realtime_presences as p (channel, connection_id, app_user_id, state)
  select allowed.name, c.id, me, presence_set.state
    from app.realtime_connections c
   where (c.id, c.app_user_id) = (presence_set.connection_id, me)
  on conflict on constraint realtime_presences_pkey do update set state = excluded.state, joined_at = internal.now()
    where p.state <> excluded.state;
  if found then
    perform internal.notify_servers(array[allowed.name], 'presence',
                                    json_build_object('joins', json_build_array(internal.presence_entry(me,
                                        presence_set.state)), 'leaves', '[]'::json));
  end if;
  return internal.reply(200, json_build_object('name', allowed.name));
end $$;
comment on function api.presence_set is
  'The caller is present in a channel by one of their connections, or with JSON null is not any more, then by the
   channel''s name: {name}, the channel as it is published to. Refuses as internal.realtime_authorize, 403 FORBIDDEN
   where the channel has no presence, USER_MUTED, and 409 LIMIT_REACHED in the 101st channel of a connection.';

create or replace function internal.online_ids(app_user_ids uuid[]) returns setof uuid
language sql stable security definer set search_path = '' as $$
  select distinct c.app_user_id
    from app.realtime_connections c
    join app.realtime_servers s on s.id = c.server_id
   where c.app_user_id = any (online_ids.app_user_ids) and s.expires_at > internal.now()
$$;
comment on function internal.online_ids is
  'Which of these users have a connection now, on any server. Granted to nobody.';

create or replace function api.realtime_ticket_add(hash text, credential jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a client that asks for tickets and opens nothing keeps the newest alone; two that forget at once do not wait for
  -- each other
  delete from app.realtime_tickets t
   where t.hash in (select o.hash from app.realtime_tickets o where o.app_user_id = internal.user_id()
                     order by o.expires_at desc, o.hash offset 19 for update skip locked);
  insert into app.realtime_tickets (hash, app_user_id, credential, expires_at)
  values (realtime_ticket_add.hash, internal.user_id(), realtime_ticket_add.credential,
          internal.now() + interval '60 seconds');
  return internal.reply(201, 'true');
end $$;
comment on function api.realtime_ticket_add is
  'Keeps a ticket of the caller for a minute, by its hash: the newest 20 of a user.';

create or replace function api.realtime_ticket_take(hash text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  taken app.realtime_tickets;
begin
  delete from app.realtime_tickets t where t.hash = realtime_ticket_take.hash returning t.* into taken;
  return internal.reply(200, case when taken.expires_at > internal.now() then taken.credential::json end);
end $$;
comment on function api.realtime_ticket_take is
  'For servers: takes a ticket, which is then used up: its credential, or null when there is none, it was used or is
   older than a minute.';
