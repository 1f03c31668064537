-- Numbering, reading and forgetting of events. As with the audit trail, rows are written without a number and numbered
-- after their commit, by one session at a time, so a channel that everybody writes to has no row that writers wait for.

create or replace function internal.realtime_number(most int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  numbered int;
begin
  -- by the index, which skips dead rows
  if not exists (select from app.realtime_publications i order by i.id limit 1) then
    return 0;
  end if;
  -- waits for the session that numbers now; the next statement sees what that session left. Until the commit, so that
  -- positions are in the order of commits
  perform internal.advisory_lock('realtime');
  with taken as (
    -- whatever is visible: a row that commits later gets a later number, whenever its transaction began
    delete from app.realtime_publications i
     where i.id in (select w.id from app.realtime_publications w order by w.id limit realtime_number.most)
    returning i.*
  ), counted as (
    select t.channel, count(*) as n from taken t where t.is_numbered group by t.channel
  ), moved as (
    update app.realtime_channels c
       set seq = c.seq + k.n, floor_seq = greatest(c.floor_seq, c.seq + k.n - 1000)
      from counted k
     where c.channel = k.channel
    returning c.channel, c.seq - k.n as before
  ), made as (
    insert into app.realtime_events (channel, seq, event, payload, meta, at)
    select t.channel, case when t.is_numbered then m.before + row_number() over (partition by t.channel,
                                        t.is_numbered order by t.id) end,
           t.event, t.payload, t.meta, t.at
      from taken t
      left join moved m on m.channel = t.channel
     -- the channel was forgotten meanwhile: nobody listens
     where m.channel is not null or not t.is_numbered
     order by t.id
  )
  select count(*) into numbered from taken;
  return numbered;
end $$;
comment on function internal.realtime_number is
  'Gives committed events the next numbers of their channels, and all of them positions; returns how many it took. A
   channel keeps its last 1000. One session at a time numbers events in a database. Granted to nobody.';

create or replace function api.realtime_tail(server_id uuid, after bigint default null) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  last bigint;
  events json;
  numbered int;
begin
  -- a bounded part of what one large transaction has published: the rest is for the next call, which comes at once
  for part in 1 .. 5 loop
    numbered := internal.realtime_number(2000);
    exit when numbered < 2000;
  end loop;
  if realtime_tail.after is null then
    select coalesce(max(e.position), 0) into last from app.realtime_events e;
  else
    -- a page of at most 1 MB: what a client that reads gets of one page is far less than what it may leave unread
    select max(p.position), json_agg(json_build_array(p.channel, p.seq, p.event, p.payload, p.meta,
                                                      internal.iso(p.at)) order by p.position)
      into last, events
      from (select e.*, sum(octet_length(e.payload) + coalesce(octet_length(e.meta),
                                                               0)) over (order by e.position) as bytes,
                                                                 row_number() over (order by e.position) as n
              from (select f.* from app.realtime_events f where f.position > realtime_tail.after order by f.position
                     limit 500) e) p
     where p.n = 1 or p.bytes <= 1048576;
  end if;
  return internal.reply(200, json_build_object(
    'position', coalesce(last, realtime_tail.after), 'events', coalesce(events, '[]'),
    'is_over', numbered < 2000 and (last is null
                                    or not exists (select from app.realtime_events f where f.position > last)),
    'is_known', exists (select from app.realtime_servers s where s.id = realtime_tail.server_id)));
end $$;
comment on function api.realtime_tail is
  'For servers: numbers at most 10,000 events that wait and returns the events after a position: {position, events:
   [[channel, seq, event, payload, meta, at]], is_over, is_known}; without a position, where to begin. is_known is false
   when Postgres has crashed, which empties the tables: then the server begins anew and tells its clients to fetch
   again.';

create or replace function internal.realtime_note_subscribed() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- of the database's own clock, which the conditions of triggers read, or of a passed one that is ahead of it
  at constant bigint := extract(epoch from greatest(internal.now(), clock_timestamp()));
begin
  -- seen at once, also by transactions that run
  if coalesce(pg_catalog.pg_sequence_last_value('app.realtime_subscribed'), 0) < at + 660 then
    perform pg_catalog.setval('app.realtime_subscribed', at + 720);
  end if;
end $$;
comment on function internal.realtime_note_subscribed is
  'Writers write events for the next eleven minutes: longer than events are kept. Granted to nobody.';

create or replace function api.realtime_heartbeat(server_id uuid, listeners jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_known constant boolean := exists (select from app.realtime_servers s where s.id = realtime_heartbeat.server_id);
begin
  -- also the rows of channels change in one order only: by who holds this
  perform internal.advisory_lock('realtime');
  insert into app.realtime_servers as s (id, expires_at, listeners)
  values (realtime_heartbeat.server_id, internal.now() + interval '30 seconds', realtime_heartbeat.listeners)
  on conflict on constraint realtime_servers_pkey do update set expires_at = excluded.expires_at,
    listeners = excluded.listeners;
  perform internal.realtime_note_subscribed();
  update app.realtime_channels c
     set subscribed_until = internal.now() + interval '12 minutes'
   where c.channel in (select k from jsonb_object_keys(realtime_heartbeat.listeners) k)
     and c.subscribed_until < internal.now() + interval '11 minutes';
  perform internal.realtime_close(array(select k.id from app.realtime_connections k
                                         join app.realtime_servers s on s.id = k.server_id
                                        where s.expires_at <= internal.now()));
  delete from app.realtime_servers s where s.expires_at <= internal.now();
  perform internal.realtime_forget(5000);
  return internal.reply(200, json_build_object('is_known', is_known));
end $$;
comment on function api.realtime_heartbeat is
  'For servers: renews the lease of a server and the interest in its channels, closes the connections of servers that
   are gone, and forgets old events.';

create or replace function internal.realtime_forget(most int) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
declare
  gone bigint;
begin
  with old as (
    delete from app.realtime_events e
     where e.position in (select f.position from app.realtime_events f
                           where f.at < internal.now() - interval '10 minutes'
                           order by f.position limit realtime_forget.most)
    returning e.channel, e.seq
  ), last as (
    select o.channel, max(o.seq) as seq from old o where o.seq is not null group by o.channel
  ), raised as (
    update app.realtime_channels c
       set floor_seq = greatest(c.floor_seq, l.seq)
      from last l
     where c.channel = l.channel
  )
  select count(*) into gone from old;
  -- beyond the thousand that a channel keeps
  delete from app.realtime_events e
   where e.position in (select f.position from app.realtime_channels c
                          join lateral (select g.position from app.realtime_events g
                                         where g.channel = c.channel and g.seq <= c.floor_seq
                                         order by g.seq limit realtime_forget.most) f on true
                         limit realtime_forget.most);
  -- numbers begin at the time in microseconds, so that a channel which is made again goes on above what it was
  delete from app.realtime_channels c where c.subscribed_until < internal.now();
  delete from app.realtime_tickets t where t.expires_at < internal.now();
  return gone;
end $$;
comment on function internal.realtime_forget is
  'Deletes events after ten minutes and beyond the last thousand of their channel, channels that nobody has listened to
   for eleven minutes, and tickets after theirs. The caller holds the lock of numbering. Granted to nobody.';

create or replace function internal.purge__realtime(most int default 5000) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.advisory_lock('realtime');
  -- what was written in the minutes after the last listener had gone
  delete from app.realtime_publications i
   where i.id in (select w.id from app.realtime_publications w where w.at < internal.now() - interval '10 minutes'
                   order by w.id limit purge__realtime.most);
  return internal.realtime_forget(purge__realtime.most);
end $$;
comment on function internal.purge__realtime is
  'Daily: what realtime has kept for longer than ten minutes, where no server has looked since. Granted to nobody.';

create or replace function internal.writing_transactions() returns setof xid
language sql volatile set search_path = '' as $$
  -- any role sees which transaction a session has
  select a.backend_xid
    from pg_catalog.pg_stat_activity a
   where a.datid = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
     and a.backend_xid is not null
     -- autovacuum has no user
     and a.usesysid is not null and a.pid <> pg_backend_pid()
  union all
  select p.transaction from pg_catalog.pg_prepared_xacts p where p.database = current_database()
$$;
comment on function internal.writing_transactions is
  'The transactions of others that have written in this database and have not ended. Snapshots have those of the whole
   cluster: whoever waits for them waits for other tenants.';

create or replace function api.realtime_running(before jsonb default null) returns api.reply
language sql volatile
return internal.reply(200, coalesce(
  (select json_agg(w.id::text) from internal.writing_transactions() as w (id) where realtime_running.before is null
       or realtime_running.before ? w.id::text), '[]'));
comment on function api.realtime_running is
  'For servers: the transactions that write in this database now, or those of a list that still do. A transaction that
   began before a channel was listened to may not have published: its end is awaited before the subscription is
   acknowledged.';
