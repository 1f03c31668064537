-- Entries that system events make, and which of them a project wants.
create or replace function internal.feed_silent_actions() returns text[]
language sql stable as $$
  select array(select jsonb_array_elements_text(coalesce(internal.setting('feeds.silent_actions'), '[]')))
$$;
comment on function internal.feed_silent_actions is
  'The actions of system events that make no entries in this project.';

create or replace function api.feed_settings_put(events json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  events_given constant text[] := array(select json_array_elements_text(feed_settings_put.events));
  unknown constant text := (select e from unnest(events_given) e
                             where not exists (select from internal.feed_events f where f.action = e) limit 1);
  silent jsonb;
begin
  perform internal.check_caller('developer', 'settings are changed by administrators');
  if unknown is not null then
    perform internal.invalid('events', format('has an unknown action: %s', left(unknown, 64)));
  end if;
  -- what is switched off is stored: an event that a later version adds makes entries
  silent := to_jsonb(array(select f.action from internal.feed_events f where f.action <> all (events_given)
                            order by f.action));
  if silent is distinct from coalesce(internal.setting('feeds.silent_actions'), '[]') then
    perform internal.audit('feeds.settings', 'settings', 'feeds', json_build_object('silent_actions', json_build_array(
      coalesce(internal.setting('feeds.silent_actions'), '[]'), silent)));
    perform internal.set_setting('feeds.silent_actions', silent);
    perform internal.event_plans_refresh();
  end if;
  return internal.reply(200, json_build_object('events', array(select f.action from internal.feed_events f
                                                                where f.action = any (events_given)
                                                                  order by f.action)));
end $$;
comment on function api.feed_settings_put is
  'Sets which system events make entries, by their actions; answers {events}. An action that no event makes is 400
   VALIDATION_ERROR.';

create or replace function internal.on_events__70_feeds(events app.engagement_events[]) returns void
language plpgsql volatile as $$
begin
  -- imported history makes no entries
  if not internal.event_hooks_may_run() or internal.is_history() then
    return;
  end if;
  insert into app.feed_entries (actor_id, action, target_id, group_id, is_home, metadata)
  select i.app_user_id, f.action, i.properties ->> f.target_property, g.id, coalesce(g.is_public, true),
         coalesce((select jsonb_object_agg(k, i.properties -> k) from unnest(f.shown) k where i.properties ? k), '{}')
    from unnest(on_events__70_feeds.events) i
    join internal.feed_events f on f.event_name = i.event_name and f.action <> all (internal.feed_silent_actions())
    left join app.groups g on g.id = internal.as_uuid(i.properties ->> f.group_property);
end $$;
comment on function internal.on_events__70_feeds is
  'System events that internal.feed_events names make entries of their users.';

create or replace function internal.event_plan__feeds() returns table (event_name text, plan boolean)
language sql stable as $$
  select f.event_name, true from internal.feed_events f where f.action <> all (internal.feed_silent_actions())
$$;
comment on function internal.event_plan__feeds is
  'The system events that make entries in this project. Granted to nobody.';

create or replace function internal.tg_feed_events__plans() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- while a new database is loaded there is no dispatcher yet, and the loader refreshes the plans at the end
  if to_regprocedure('internal.event_plans_compute()') is not null then
    perform internal.event_plans_refresh();
  end if;
  return null;
end $$;
comment on function internal.tg_feed_events__plans is 'Updates the plans of events when an area declares its events.';

create or replace trigger tg_feed_events__plans
  after insert or update or delete on internal.feed_events
  for each statement execute function internal.tg_feed_events__plans();
