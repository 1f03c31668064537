-- The part of push in the event pipeline: automations, what cancels their messages, and goals of campaigns.
create or replace function internal.push_trigger_event(trigger jsonb) returns text
language sql immutable parallel safe
return case when push_trigger_event.trigger ? 'segment_id' then 'svc.segment.' || (push_trigger_event.trigger ->> 'on')
            else push_trigger_event.trigger ->> 'event_name' end;
comment on function internal.push_trigger_event is 'The name of the event that triggers an automation.';

create or replace function internal.on_events__88_push(events app.engagement_events[]) returns void
language plpgsql volatile as $$
declare
  goal record;
begin
  -- what is imported is sent to nobody
  if not internal.event_hooks_may_run() or internal.is_history() then
    return;
  end if;
  update app.push_deliveries d
     set status = case when d.sent_at is null then 'skipped' else 'sent' end, reason = case when d.sent_at is null then 'cancelled' end
    from unnest(on_events__88_push.events) i
    join app.push_automations a on a.cancel_if_event = i.event_name
   where d.automation_id = a.id and d.app_user_id = i.app_user_id and d.status = 'pending';
  insert into app.push_deliveries (queue_id, automation_id, app_user_id, context, inbox, due_at)
  select '00000000-0000-0000-0000-000000000000', a.id, i.app_user_id, i.properties, a.inbox, internal.now() + make_interval(secs => a.delay_seconds)
    from unnest(on_events__88_push.events) i
    join app.push_automations a on a.is_active and internal.push_trigger_event(a.trigger) = i.event_name
   where (not a.trigger ? 'segment_id' or i.properties ->> 'segment_id' = a.trigger ->> 'segment_id')
     and (coalesce(a.trigger -> 'filter', 'null') = 'null' or internal.filter_truth(a.trigger -> 'filter', i.properties))
   order by i.app_user_id, a.id;
  if found then
    perform internal.enqueue('push__direct', due_at => d.due_at)
       from (select distinct internal.now() + make_interval(secs => a.delay_seconds) as due_at
               from unnest(on_events__88_push.events) i
               join app.push_automations a on a.is_active and internal.push_trigger_event(a.trigger) = i.event_name) d;
  end if;
  for goal in
    with converted as (
      update app.push_deliveries d
         set status = 'converted', converted_at = internal.now()
        from unnest(on_events__88_push.events) i
        join app.push_campaigns c on c.goal_event = i.event_name
       where d.campaign_id = c.id and d.app_user_id = i.app_user_id and d.status in ('sent', 'opened')
         and d.sent_at > internal.now() - interval '24 hours'
      returning d.campaign_id, d.variant
    )
    select v.campaign_id, v.variant, count(*) as n from converted v group by 1, 2 order by 1, 2
  loop
    perform internal.push_count(goal.campaign_id, goal.variant, converted => goal.n);
  end loop;
end $$;
comment on function internal.on_events__88_push is
  'Automations send their messages, after their delay; an event that cancels them skips what is pending; the goal event of a campaign converts what was sent
   to the user within 24 hours.';

create or replace function internal.event_plan__push() returns table (event_name text, plan boolean)
language sql stable as $$
  select internal.push_trigger_event(a.trigger), true from app.push_automations a where a.is_active
  union
  select a.cancel_if_event, true from app.push_automations a where a.cancel_if_event is not null
  union
  select c.goal_event, true from app.push_campaigns c
   where c.goal_event is not null and not c.is_deleted and c.status in ('scheduled', 'sending', 'paused', 'sent')
     and coalesce(c.finished_at, 'infinity') > internal.now() - interval '25 hours'
$$;
comment on function internal.event_plan__push is 'Events that trigger or cancel automations, and the goals of campaigns that are sent or were lately. Granted to nobody.';

create or replace trigger tg_push_automations__event_plans
  after insert or delete or update of trigger, cancel_if_event, is_active on app.push_automations
  for each statement execute function internal.tg_event_plans();

create or replace function internal.tg_push_campaigns__event_plans() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.event_plans_refresh();
  return null;
end $$;
comment on function internal.tg_push_campaigns__event_plans is 'Refreshes the plans of events when a campaign with a goal changes its state.';

create or replace trigger tg_push_campaigns__event_plans
  after update of status, goal_event, is_deleted on app.push_campaigns
  for each row when (new.goal_event is not null
                     and (old.status, old.is_deleted, old.goal_event) is distinct from (new.status, new.is_deleted, new.goal_event))
  execute function internal.tg_push_campaigns__event_plans();
create or replace trigger tg_push_campaigns__event_plans_of_new
  after insert on app.push_campaigns
  for each row when (new.goal_event is not null and new.status <> 'draft')
  execute function internal.tg_push_campaigns__event_plans();
