-- Publishing to channels. An event is one row of app.realtime_publications, written in the transaction that causes it,
-- and only where somebody listens.

create or replace function internal.has_subscribers() returns boolean
language sql stable parallel safe
return coalesce(
  pg_catalog.pg_sequence_last_value('app.realtime_subscribed') > extract(epoch from clock_timestamp()), false);
comment on function internal.has_subscribers is
  'Whether this project has a subscriber, or had one within minutes: for functions. The conditions of triggers have the
   same expression and not this function, which would be inlined anew in every statement.';

create or replace function internal.realtime_wake() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- once a transaction, for each project once
  if internal.project_id() is not null
     and strpos(coalesce(current_setting('app.changed', true), ''), 'realtime:') = 0 then
    perform internal.changed('realtime:' || internal.project_id());
  end if;
end $$;
comment on function internal.realtime_wake is
  'Has the servers look for new events after this commit. Granted to nobody.';

create or replace function internal.publish_many(channels text[], event text, payload json, meta json default null)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.realtime_publications (channel, event, payload, meta)
  select c.channel, publish_many.event, publish_many.payload::text, publish_many.meta::text
    from app.realtime_channels c
   where c.channel = any (publish_many.channels) and c.subscribed_until > internal.now()
   order by c.channel;
  if found then
    perform internal.realtime_wake();
  end if;
end $$;
comment on function internal.publish_many is
  'Publishes one event to those of the channels that somebody listens to. meta is for the servers and never sent: whom a
   row of a collection is for. Waits for nobody. Granted to nobody.';

create or replace function internal.publish(channel text, event text, payload json) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if exists (select from app.realtime_channels c
              where c.channel = publish.channel and c.subscribed_until > internal.now()) then
    insert into app.realtime_publications (channel, event, payload)
      values (publish.channel, publish.event, publish.payload::text);
    perform internal.realtime_wake();
  end if;
end $$;
comment on function internal.publish is
  'Publishes an event: publish(''group:'' || id, ''member.joined'', json). Subscribers get it after the commit, and only
   if somebody listens it is written at all. Granted to nobody.';

create or replace function internal.is_hidden_by_its_write() returns boolean
language sql stable
return pg_catalog.pg_trigger_depth() > 1 and coalesce(current_setting('app.is_moderating', true), '') = 'on';
comment on function internal.is_hidden_by_its_write is
  'For triggers that publish: whether moderation changes a row within the statement that has just written it. That is no
   event: what the statement did is published afterwards, with the row as it is then. Granted to nobody.';

create or replace function internal.notify_servers(channels text[], event text, payload json default '{}') returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.realtime_publications (channel, event, payload, is_numbered)
  select c.channel, notify_servers.event, notify_servers.payload::text, false
    from app.realtime_channels c
   where c.channel = any (notify_servers.channels) and c.subscribed_until > internal.now()
   order by c.channel;
  if found then
    perform internal.realtime_wake();
  end if;
end $$;
comment on function internal.notify_servers is
  'A notice for servers in the order of events, without a number and not replayed. To ~<user id> or a channel: ~check
   has the subscriptions of the user, or of the channel, authorised again before they get anything later; ~session has
   the user''s sessions checked. presence is sent on. Granted to nobody.';

create or replace function internal.recheck_users(app_user_ids uuid[]) returns void
language sql volatile
return internal.notify_servers((select array_agg('~' || u) from unnest(recheck_users.app_user_ids) u), '~check');
comment on function internal.recheck_users is
  'The channels that these users may subscribe to have changed: a membership, a role, a block. What is committed later
   reaches them only if they are still authorised. Granted to nobody.';
