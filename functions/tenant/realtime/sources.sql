-- System events that are published to their users: areas declare them by internal.event_source_declare.

create or replace function internal.event_plan__realtime() returns table (event_name text, plan boolean)
language plpgsql stable as $$
declare
  declared record;
  verb text;
begin
  plan := true;
  for declared in
    select p.proname as name, substr(p.proname, length('event_plan__realtime__') + 1) as subject
      from pg_catalog.pg_proc p
     where p.pronamespace = 'internal'::regnamespace and starts_with(p.proname, 'event_plan__realtime__')
     order by p.proname
  loop
    for verb in execute format('select unnest(internal.%I())', declared.name) loop
      event_name := format('svc.%s.%s', declared.subject, verb);
      return next;
    end loop;
  end loop;
end $$;
comment on function internal.event_plan__realtime is
  'The system events that areas publish: nothing else in the log concerns realtime. Granted to nobody.';

create or replace function internal.on_events__92_realtime(events app.engagement_events[]) returns void
language plpgsql volatile as $$
declare
  event app.engagement_events;
begin
  if not internal.has_subscribers() then
    return;
  end if;
  for event in
    select e.* from unnest(on_events__92_realtime.events) e
     where not e.is_historical and e.event_name in (select p.event_name from internal.event_plan__realtime() p)
     order by e.app_user_id, e.occurred_at, e.id
  loop
    perform internal.on_event__92_realtime(event, true);
  end loop;
end $$;
comment on function internal.on_events__92_realtime is
  'Publishes the system events that areas declare to their users. Granted to nobody.';

create or replace function internal.on_event__92_realtime(event app.engagement_events, plan boolean) returns void
language plpgsql volatile as $$
declare
  e constant app.engagement_events := on_event__92_realtime.event;
  shown json;
begin
  if not internal.has_subscribers()
     or not exists (select from app.realtime_channels c
                     where c.channel = 'user:' || e.app_user_id and c.subscribed_until > internal.now()) then
    return;
  end if;
  execute format('select internal.%I($1)', 'published_event__' || split_part(e.event_name, '.', 2)) into shown using e;
  perform internal.publish('user:' || e.app_user_id, substr(e.event_name, 5), shown);
end $$;
comment on function internal.on_event__92_realtime is
  'Publishes a system event to its user, with the payload that its area declares. Granted to nobody.';
