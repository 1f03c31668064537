-- Planning: a campaign's audience becomes deliveries, 20,000 users in a step. A step is one transaction and stores how far it came, so the successor of a
-- killed worker goes on there; a delivery is unique for a campaign and a user.
select internal.slots_declare('push_counts_add', 'app.push_counts', '{source_id,hour,variant}',
                              '{targeted,sent,failed,skipped,opened,converted,clicked}');

create or replace function internal.push_count(source_id uuid, variant text, targeted bigint default 0, sent bigint default 0, failed bigint default 0,
                                               skipped bigint default 0, opened bigint default 0, converted bigint default 0,
                                               clicked bigint default 0)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if push_count.source_id is null then
    return;
  end if;
  perform internal.push_counts_add(push_count.source_id, h.hour, coalesce(push_count.variant, ''), push_count.targeted, push_count.sent,
                                   push_count.failed, push_count.skipped, push_count.opened, push_count.converted, push_count.clicked)
     from unnest(array['-infinity', date_trunc('hour', internal.now())]) h (hour);
end $$;
comment on function internal.push_count is
  'Adds to the counts of a campaign or an automation, of this hour and in all. Nothing for a null source. Waits for nobody. Granted to nobody.';

create or replace function internal.push_variant(campaign_id uuid, variants jsonb, app_user_id uuid) returns text
language sql immutable parallel safe as $$
  select v.key
    from (select e.value ->> 'key' as key, sum((e.value ->> 'weight')::int) over (order by e.n) as upto
            from jsonb_array_elements(push_variant.variants) with ordinality as e (value, n)) v
   where internal.bucket(push_variant.campaign_id || ':', push_variant.app_user_id) < v.upto * 100
   order by v.upto
   limit 1
$$;
comment on function internal.push_variant is
  'The variant of a user, by the bucket of flags; null for those beyond the weights of all variants, who are held out.';

create or replace function internal.push_plan_range(campaign app.push_campaigns, plan app.push_plans, last_id uuid) returns int
language plpgsql volatile security definer set search_path = ''
-- as for segments: sets are hashed or merged, by indexes over the range of users
set enable_nestloop = off set random_page_cost = 1.1 set max_parallel_workers_per_gather = 0 set jit = off as $$
declare
  c constant app.push_campaigns := push_plan_range.campaign;
  p constant app.push_plans := push_plan_range.plan;
  variant record;
  made int := 0;
begin
  for variant in execute format($query$
    with audience as materialized (%s
    ), chosen as materialized (
      select a.id, coalesce(z.name, 'UTC') as zone, case when $7 then internal.push_variant($5, $8, a.id) end as variant
        from audience a
        join app.users u on u.id = a.id
        left join app.timezones z on z.name = u.timezone
       -- as the foreign key would lock them, but those that are just deleted are left out and do not fail the step
       order by u.id
         for key share of u
    ), waves as materialized (
      select w.zone, case when $9 is null then $6 else internal.push_local_due($6, w.zone, $9, $10) end as due_at
        from (select distinct h.zone from chosen h) w
    ), planned as (
      insert into app.push_deliveries (queue_id, channel, campaign_id, app_user_id, variant, inbox, status, reason, due_at, created_at)
      select $5, $12, $5, h.id, h.variant, $11, case when $7 and h.variant is null then 'skipped' else 'pending' end,
             case when $7 and h.variant is null then 'holdout' end, w.due_at, $6
        from chosen h
        join waves w on w.zone = h.zone
       order by h.id
      on conflict on constraint push_deliveries_once_per_campaign do nothing
      returning variant, reason
    )
    select d.variant, count(*) as targeted, count(d.reason) as held_out from planned d group by 1
  $query$, p.query)
     using internal.segment_bind(p.parameters), p.cursor_id, push_plan_range.last_id, p.user_ids, c.id, internal.now(),
           jsonb_array_length(c.variants) > 0, c.variants, case when c.mode = 'user_local' then c.local_time::time end, c.weekdays, c.inbox, c.channel
  loop
    perform internal.push_count(c.id, variant.variant, targeted => variant.targeted, skipped => variant.held_out);
    made := made + variant.targeted;
  end loop;
  return made;
end $$;
comment on function internal.push_plan_range is 'Makes the deliveries of the users after the plan''s cursor, up to an id. Returns how many. Granted to nobody.';

create or replace function internal.push_plan_cancel(campaign_id uuid, batch int) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  skipped record;
  found_any boolean := false;
begin
  for skipped in
    with ended as (
      update app.push_deliveries d
         set status = case when d.status = 'pending' and d.sent_at is null then 'skipped' when d.sent_at is not null then 'sent' else 'failed' end,
             reason = case when d.status = 'pending' and d.sent_at is null then 'cancelled' end,
             code = case when d.status = 'sending' and d.sent_at is null then 'OUTCOME_UNKNOWN' end,
             due_at = case when d.status = 'sending' then d.due_at - internal.push_lease() else d.due_at end
       where d.id in (select e.id from app.push_deliveries e
                       where e.queue_id = push_plan_cancel.campaign_id and e.status in ('pending', 'sending')
                         -- what is being sent as mail ends with its message
                         and (e.status = 'pending' or e.channel = 'push' and e.due_at <= internal.now())
                       order by e.due_at limit push_plan_cancel.batch for update skip locked)
      returning d.variant, d.status
    )
    select e.variant, count(*) filter (where e.status = 'skipped') as skipped, count(*) filter (where e.status = 'failed') as failed,
           count(*) filter (where e.status = 'sent') as sent
      from ended e group by 1
  loop
    found_any := true;
    perform internal.push_count(push_plan_cancel.campaign_id, skipped.variant, sent => skipped.sent, failed => skipped.failed, skipped => skipped.skipped);
  end loop;
  return json_build_object('is_over', not found_any, 'next_at', (
    select case when count(*) > 0 then internal.iso(greatest(min(d.due_at), internal.now() + interval '1 second')) end
      from app.push_deliveries d
     where d.queue_id = push_plan_cancel.campaign_id and d.status in ('pending', 'sending') and d.channel = 'push' and not found_any));
end $$;
comment on function internal.push_plan_cancel is
  'Ends deliveries that a cancelled campaign has left: those that were never sent are skipped, those of a dead worker failed. Granted to nobody.';

create or replace function internal.push_plan_delete(campaign_id uuid, batch int) returns json
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.push_deliveries d
   where d.id in (select e.id from app.push_deliveries e where e.campaign_id = push_plan_delete.campaign_id limit push_plan_delete.batch);
  if found then
    return '{"is_over": false}';
  end if;
  delete from app.push_counts n where n.source_id = push_plan_delete.campaign_id;
  delete from app.push_buckets b where b.name = push_plan_delete.campaign_id::text;
  delete from app.push_campaigns c where c.id = push_plan_delete.campaign_id;
  return '{"is_over": true}';
end $$;
comment on function internal.push_plan_delete is 'One step of the deletion of a campaign: its deliveries, then the campaign. Granted to nobody.';

create or replace function api.push_plan_step(campaign_id uuid, batch int default 20000) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.push_campaigns;
  plan app.push_plans;
  last_id uuid;
  moved bigint;
begin
  perform internal.check_caller('worker', 'campaigns are planned by workers');
  select k.* into c from app.push_campaigns k where k.id = push_plan_step.campaign_id for no key update;
  if not found then
    return internal.reply(200, '{"is_over": true}');
  elsif (c.is_deleted or c.status in ('cancelled', 'failed')) and c.channel = 'email' and internal.email_campaign_cancel(c.id, 500) > 0 then
    return internal.reply(200, '{"is_over": false}');
  elsif c.is_deleted then
    return internal.reply(200, internal.push_plan_delete(c.id, push_plan_step.batch));
  elsif c.status in ('cancelled', 'failed') then
    return internal.reply(200, internal.push_plan_cancel(c.id, push_plan_step.batch));
  elsif c.status = 'scheduled' then
    if c.scheduled_at > internal.now() then
      return internal.reply(200, json_build_object('is_over', true, 'next_at', internal.iso(c.scheduled_at)));
    end if;
    update app.push_campaigns k set status = 'sending', started_at = internal.now() where k.id = c.id returning k.* into c;
    insert into app.push_plans (campaign_id, query, parameters, user_ids)
    select c.id, a.ranged, a.parameters, internal.push_audience_user_ids(c.audience)
      from internal.push_audience_compile(c.audience, c.exclude_segment_id) a;
  elsif c.status not in ('sending', 'paused') then
    return internal.reply(200, '{"is_over": true}');
  end if;
  select p.* into plan from app.push_plans p where p.campaign_id = c.id;
  if plan.planned_at is not null then
    return internal.reply(200, '{"is_over": true}');
  end if;
  select u.id into last_id from app.users u where u.id > plan.cursor_id order by u.id offset push_plan_step.batch - 1 limit 1;
  moved := internal.push_plan_range(c, plan, coalesce(last_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff'));
  update app.push_plans p
     set cursor_id = coalesce(last_id, p.cursor_id), planned_at = case when last_id is null then internal.now() end
   where p.campaign_id = c.id;
  if c.status = 'sending' then
    perform internal.enqueue('push__send', c.id::text);
  end if;
  return internal.reply(200, json_build_object('is_over', last_id is null, 'planned', moved));
end $$;
comment on function api.push_plan_step is
  'For the worker: one step of a campaign''s plan, {is_over, next_at}: starts it when its time has come and makes the deliveries of the next users,
   or skips those left of a cancelled campaign, or deletes a deleted one. Locks the campaign.';
