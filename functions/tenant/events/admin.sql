-- Administrators' queries of events: the log, one event with its effects, and the names of events. The log is
-- unbounded, so each query reads a bounded number of rows.

create or replace function internal.event_full_json(event app.engagement_events) returns json
language sql stable as $$
  select internal.json_merge(internal.event_json(event_full_json.event), json_build_object(
    'received_at', internal.iso((event_full_json.event).received_at),
      'is_historical', (event_full_json.event).is_historical,
    'clock_adjusted', (event_full_json.event).clock_adjusted,
    'schema_violation', (event_full_json.event).schema_violation))
$$;
comment on function internal.event_full_json is 'An event as administrators see it.';

create or replace function internal.events_newest(event_name text, app_user_id uuid, since timestamptz,
                                                  until timestamptz, before_at timestamptz, before_id uuid, most int)
returns refcursor
language plpgsql stable as $$
declare
  events refcursor;
begin
  -- one statement for each index; before is a place in the order, until a time
  if events_newest.app_user_id is not null then
    open events for
      select e.* from app.engagement_events e
       where e.app_user_id = events_newest.app_user_id
         and (events_newest.event_name is null or e.event_name = events_newest.event_name)
         and e.occurred_at >= events_newest.since and e.occurred_at < events_newest.until
         and (e.occurred_at, e.id) < (events_newest.before_at, events_newest.before_id)
       order by e.occurred_at desc, e.id desc limit events_newest.most;
  elsif events_newest.event_name is not null then
    open events for
      select e.* from app.engagement_events e
       where e.event_name = events_newest.event_name
         and e.occurred_at >= events_newest.since and e.occurred_at < events_newest.until
         and (e.occurred_at, e.id) < (events_newest.before_at, events_newest.before_id)
       order by e.occurred_at desc, e.id desc limit events_newest.most;
  else
    open events for
      select e.* from app.engagement_events e
       where e.occurred_at >= events_newest.since and e.occurred_at < events_newest.until
         and (e.occurred_at, e.id) < (events_newest.before_at, events_newest.before_id)
       order by e.occurred_at desc, e.id desc limit events_newest.most;
  end if;
  return events;
end $$;
comment on function internal.events_newest is
  'A cursor over events, newest first, at most so many, by the index that serves the request.';

create or replace function api.events_list(event_name text default null, user_id uuid default null,
                                           since text default null, until text default null, source text default null,
                                           "where" text default null, include_system boolean default false,
                                           cursor text default null, page_limit int default 50,
  include text default null)
returns api.reply
language plpgsql stable as $$
declare
  -- a filter without matches must not read the whole log: a page reads a limited number of events, and the cursor
  -- continues after them
  most constant int := 10000;
  since_at constant timestamptz := coalesce(internal.time_parameter('since', events_list.since), '-infinity');
  until_at constant timestamptz := coalesce(internal.time_parameter('until', events_list.until), 'infinity');
  with_system constant boolean := coalesce(events_list.include_system or events_list.source = 'system'
                                           or events_list.event_name like 'svc.%', false);
  filter jsonb;
  problem text;
  keys constant text[] := internal.cursor_read(events_list.cursor, 'occurred_at,id', '{timestamptz,uuid}');
  events refcursor;
  event app.engagement_events;
  last_shown app.engagement_events;
  shown json[] := '{}';
  seen int := 0;
  bytes bigint := 0;
  line json;
  next_cursor text;
begin
  if events_list."where" is not null then
    begin
      problem := internal.filter_problem(events_list."where"::json);
      filter := case when problem is null then events_list."where"::jsonb end;
    exception when data_exception or program_limit_exceeded then
      problem := 'must be JSON';
    end;
    if problem is not null then
      perform internal.invalid('where', problem, 'INVALID_INPUT');
    end if;
  end if;
  events := internal.events_newest(events_list.event_name, events_list.user_id, since_at, until_at,
                                   coalesce(internal.cursor_moment(keys[1]), 'infinity'),
                                   coalesce(keys[2], 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid, most);
  loop
    fetch events into event;
    exit when not found;
    seen := seen + 1;
    if (with_system or event.source <> 'system')
       and (events_list.source is null or event.source = events_list.source)
       and (filter is null or internal.filter_truth(filter, event.properties)) then
      line := internal.event_full_json(event);
      bytes := bytes + octet_length(line::text);
      if cardinality(shown) = events_list.page_limit or bytes > internal.page_bytes() and cardinality(shown) > 0 then
        next_cursor := internal.cursor_write('occurred_at,id', internal.cursor_time(last_shown.occurred_at),
                                             last_shown.id::text);
        exit;
      end if;
      shown := shown || line;
      last_shown := event;
    end if;
    if seen = most then
      next_cursor := internal.cursor_write('occurred_at,id', internal.cursor_time(event.occurred_at), event.id::text);
    end if;
  end loop;
  close events;
  return internal.reply_with_users(internal.reply_cursor(array_to_json(shown), next_cursor), events_list.include);
end $$;
comment on function api.events_list is
  'Events, newest first by occurred_at and id, from since and before until. System events only with include_system, or
   when they are asked for by name or source. A page reads at most 10,000 events and has at most 8 MB: it may be short,
   with a filter even empty, and still have a cursor. Refuses 400 INVALID_INPUT.';

create or replace function internal.event_caused(event app.engagement_events) returns json
language plpgsql stable as $$
declare
  part text;
  caused json;
  parts json := '{}';
begin
  -- an area reports its effects of an event in a function internal.event_caused__<part>, which is found by its name
  for part in
    select substr(p.proname, length('event_caused__') + 1)
      from pg_catalog.pg_proc p
     where p.pronamespace = 'internal'::regnamespace and p.proname like 'event\_caused\_\_%'
     order by p.proname
  loop
    execute format('select internal.%I($1)', 'event_caused__' || part) into caused using event_caused.event;
    if json_array_length(caused) > 0 then
      parts := internal.json_merge(parts, json_build_object(part, caused));
    end if;
  end loop;
  return parts;
end $$;
comment on function internal.event_caused is 'What an event caused, a list of links for each part that has any.';

create or replace function internal.event_caused__events(event app.engagement_events) returns json
language sql stable as $$
  -- events that hooks emit have the time and the transaction of the event that caused them
  select json_agg(json_build_object('id', e.id, 'event_name', e.event_name, 'properties', e.properties) order by e.id)
    from app.engagement_events e
   where (event_caused__events.event).source <> 'system'
     and e.app_user_id = (event_caused__events.event).app_user_id
     and e.occurred_at = (event_caused__events.event).received_at
     and e.received_at = (event_caused__events.event).received_at
     and e.transaction_id = (event_caused__events.event).transaction_id
     and e.source = 'system'
$$;
comment on function internal.event_caused__events is
  'System events that the transaction of an event made for its user; a batch of several events of one user shares
   them.';

create or replace function internal.event_caused__webhook_deliveries(event app.engagement_events) returns json
language sql stable security definer set search_path = '' as $$
  select json_agg(json_build_object('id', d.id, 'webhook_id', d.webhook_id, 'status', d.status) order by d.id)
    from app.webhooks w
    join app.webhook_deliveries d on (d.webhook_id, d.event_id) = (w.id, (event_caused__webhook_deliveries.event).id)
$$;
comment on function internal.event_caused__webhook_deliveries is
  'Deliveries of an event to subscriptions, while they are kept.';

create or replace function api.event_get(event_id uuid) returns api.reply
language plpgsql stable as $$
declare
  event app.engagement_events;
begin
  -- a client-chosen id may be used again after its period of deduplication
  select e.* into event from app.engagement_events e where e.id = event_get.event_id order by e.received_at desc
   limit 1;
  perform internal.check_found(found, 'event');
  return internal.reply(200, internal.json_merge(internal.event_full_json(event),
                                                 json_build_object('effects', internal.event_caused(event))));
end $$;
comment on function api.event_get is
  'An event with links to its effects. Refuses 404 NOT_FOUND. Uses the primary keys of the partitions, which begin with
   the id.';

create or replace function api.events_daily("from" date default null, "to" date default null,
                                            event_name text default null) returns api.reply
language plpgsql stable as $$
declare
  last constant date := coalesce(events_daily."to", (internal.now() at time zone 'UTC')::date);
  first constant date := coalesce(events_daily."from", last - 29);
  series json;
begin
  perform internal.days_check(first, last);
  with counted as materialized (
    select u.day, sum(u.count) as events, count(*) as users
      from (select c.day, sum(c.count) as count
              from app.user_event_counters c
             where c.day between first and last
               and case when events_daily.event_name is null then c.event_name not like 'svc.%'
                        else c.event_name = events_daily.event_name end
             group by c.day, c.app_user_id) u
     group by u.day
  )
  select json_build_object(
           'events', json_agg(json_build_object('date', d.day, 'value', coalesce(c.events, 0)) order by d.day),
           'active_users', json_agg(json_build_object('date', d.day, 'value', coalesce(c.users, 0)) order by d.day))
    into series
    from (select g::date as day from generate_series(first::timestamp, last::timestamp, interval '1 day') g) d
    left join counted c on c.day = d.day;
  return internal.reply(200, json_build_object('from', first, 'to', last, 'series', series));
end $$;
comment on function api.events_daily is
  'Events, and users who had one, for each day (UTC) on which they occurred, both ends included; without system events,
   unless one is named. Reads the counters of these days: a row for each user, name and day. Refuses 400
   INVALID_INPUT.';
