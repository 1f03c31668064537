-- Goals: an event of a user converts what campaigns have sent the user.
create or replace function internal.on_events__88_campaigns(events app.engagement_events[]) returns void
language plpgsql volatile as $$
declare
  goal record;
begin
  if not internal.event_hooks_may_run() or internal.is_history() then
    return;
  end if;
  for goal in
    with converted as (
      update app.campaign_deliveries d
         set status = 'converted', converted_at = internal.now()
        from unnest(on_events__88_campaigns.events) i
        join app.campaigns c on c.goal_event = i.event_name
       where d.campaign_id = c.id and d.app_user_id = i.app_user_id and d.status in ('sent', 'opened')
         and d.sent_at > internal.now() - interval '24 hours'
      returning d.campaign_id, d.variant
    )
    select v.campaign_id, v.variant, count(*) as n from converted v group by 1, 2 order by 1, 2
  loop
    perform internal.campaign_count(goal.campaign_id, goal.variant, converted => goal.n);
  end loop;
end $$;
comment on function internal.on_events__88_campaigns is
  'The goal event of a campaign converts what was sent to the user within 24 hours.';

create or replace function internal.event_plan__campaigns() returns table (event_name text, plan boolean)
language sql stable as $$
  select c.goal_event, true from app.campaigns c
   where c.goal_event is not null and not c.is_deleted and c.status in ('scheduled', 'sending', 'paused', 'sent')
     and coalesce(c.finished_at, 'infinity') > internal.now() - interval '25 hours'
$$;
comment on function internal.event_plan__campaigns is
  'The goals of campaigns that are sent or were lately. Granted to nobody.';

create or replace function internal.tg_campaigns__event_plans() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.event_plans_refresh();
  return null;
end $$;
comment on function internal.tg_campaigns__event_plans is
  'Refreshes the plans of events when a campaign with a goal changes its state.';

create or replace trigger tg_campaigns__event_plans
  after update of status, goal_event, is_deleted on app.campaigns
  for each row when (new.goal_event is not null
                     and (old.status, old.is_deleted, old.goal_event) is distinct
                       from (new.status, new.is_deleted, new.goal_event))
  execute function internal.tg_campaigns__event_plans();
create or replace trigger tg_campaigns__event_plans_of_new
  after insert on app.campaigns
  for each row when (new.goal_event is not null and new.status <> 'draft')
  execute function internal.tg_campaigns__event_plans();
