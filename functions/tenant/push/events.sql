-- The part of push in the event pipeline: automations, and what cancels their messages.
create or replace function internal.push_trigger_event(trigger jsonb) returns text
language sql immutable parallel safe
return case when push_trigger_event.trigger ? 'segment_id' then 'svc.segment.' || (push_trigger_event.trigger ->> 'on')
            else push_trigger_event.trigger ->> 'event_name' end;
comment on function internal.push_trigger_event is 'The name of the event that triggers an automation.';

create or replace function internal.on_events__88_push(events app.engagement_events[]) returns void
language plpgsql volatile as $$
begin
  -- what is imported is sent to nobody
  if not internal.event_hooks_may_run() or internal.is_history() then
    return;
  end if;
  update app.campaign_deliveries d
     set status = case when d.sent_at is null then 'skipped' else 'sent' end,
       reason = case when d.sent_at is null then 'cancelled' end
    from unnest(on_events__88_push.events) i
    join app.push_automations a on a.cancel_if_event = i.event_name
   where d.automation_id = a.id and d.app_user_id = i.app_user_id and d.status = 'pending';
  insert into app.campaign_deliveries (queue_id, channel, automation_id, app_user_id, context, inbox, due_at)
  select '00000000-0000-0000-0000-000000000000', 'push', a.id, i.app_user_id, i.properties, a.inbox,
         internal.now() + make_interval(secs => a.delay_seconds)
    from unnest(on_events__88_push.events) i
    join app.push_automations a on a.is_active and internal.push_trigger_event(a.trigger) = i.event_name
   where (not a.trigger ? 'segment_id' or i.properties ->> 'segment_id' = a.trigger ->> 'segment_id')
     and (coalesce(a.trigger -> 'filter', 'null') = 'null'
          or internal.filter_truth(a.trigger -> 'filter', i.properties))
   order by i.app_user_id, a.id;
  if found then
    perform internal.enqueue('push__direct', due_at => d.due_at)
       from (select distinct internal.now() + make_interval(secs => a.delay_seconds) as due_at
               from unnest(on_events__88_push.events) i
               join app.push_automations a on a.is_active and internal.push_trigger_event(a.trigger) = i.event_name) d;
  end if;
end $$;
comment on function internal.on_events__88_push is
  'Automations send their messages, after their delay; an event that cancels them skips what is pending.';

create or replace function internal.event_plan__push() returns table (event_name text, plan boolean)
language sql stable as $$
  select internal.push_trigger_event(a.trigger), true from app.push_automations a where a.is_active
  union
  select a.cancel_if_event, true from app.push_automations a where a.cancel_if_event is not null
$$;
comment on function internal.event_plan__push is 'Events that trigger or cancel automations. Granted to nobody.';

create or replace trigger tg_push_automations__event_plans
  after insert or delete or update of trigger, cancel_if_event, is_active on app.push_automations
  for each statement execute function internal.tg_event_plans();
