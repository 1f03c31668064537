-- Planning: a campaign's audience becomes deliveries, 20,000 users in a step. A step is one transaction and stores how
-- far it came, so the successor of a killed worker goes on there; a delivery is unique for a campaign and a user.
create or replace function internal.campaign_wake(c app.campaigns) returns void
language sql volatile security definer set search_path = '' as $$
  select internal.enqueue((internal.campaign_channel((campaign_wake.c).channel)).send_task, (campaign_wake.c).id::text)
$$;
comment on function internal.campaign_wake is
  'Queues the task that sends what is due of a campaign. Granted to nobody.';

create or replace function internal.campaign_fail(campaign_id uuid, code text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.campaigns c
     set status = 'failed', failure = campaign_fail.code, finished_at = internal.now()
   where c.id = campaign_fail.campaign_id and c.status in ('sending', 'paused');
  perform internal.enqueue('campaigns__plan', campaign_fail.campaign_id::text);
end $$;
comment on function internal.campaign_fail is
  'A channel cannot send a campaign, for a reason that all its messages share: what is left of it is ended. Granted to
   nobody.';

select internal.slots_declare('campaign_counts_add', 'app.campaign_counts', '{source_id,hour,variant}',
                              '{targeted,sent,failed,skipped,opened,converted,clicked}');

create or replace function internal.campaign_count(source_id uuid, variant text, targeted bigint default 0,
                                                   sent bigint default 0, failed bigint default 0,
                                                   skipped bigint default 0, opened bigint default 0,
                                                   converted bigint default 0, clicked bigint default 0)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if campaign_count.source_id is null then
    return;
  end if;
  perform internal.campaign_counts_add(campaign_count.source_id, h.hour, coalesce(campaign_count.variant, ''),
                                       campaign_count.targeted, campaign_count.sent,
                                   campaign_count.failed, campaign_count.skipped, campaign_count.opened,
                                   campaign_count.converted, campaign_count.clicked)
     from unnest(array['-infinity', date_trunc('hour', internal.now())]) h (hour);
end $$;
comment on function internal.campaign_count is
  'Adds to the counts of a campaign or an automation, of this hour and in all. Nothing for a null source. Waits for
   nobody. Granted to nobody.';

create or replace function internal.campaign_variant(campaign_id uuid, variants jsonb, app_user_id uuid) returns text
language sql immutable parallel safe as $$
  select v.key
    from (select e.value ->> 'key' as key, sum((e.value ->> 'weight')::int) over (order by e.n) as upto
            from jsonb_array_elements(campaign_variant.variants) with ordinality as e (value, n)) v
   where internal.bucket(campaign_variant.campaign_id || ':', campaign_variant.app_user_id) < v.upto * 100
   order by v.upto
   limit 1
$$;
comment on function internal.campaign_variant is
  'The variant of a user, by the bucket of flags; null for those beyond the weights of all variants, who are held out.';

create or replace function internal.campaign_local_due(at timestamptz, zone text, local_time time, weekdays int[])
returns timestamptz
language plpgsql stable parallel safe as $$
declare
  day date := (campaign_local_due.at at time zone campaign_local_due.zone)::date;
  candidate timestamptz;
begin
  for n in 0 .. 8 loop
    candidate := ((day + n) + campaign_local_due.local_time) at time zone campaign_local_due.zone;
    if candidate >= campaign_local_due.at
       and (campaign_local_due.weekdays is null
            or extract(isodow from day + n)::int = any (campaign_local_due.weekdays)) then
      return candidate;
    end if;
  end loop;
  return campaign_local_due.at;
end $$;
comment on function internal.campaign_local_due is
  'The next time at which clocks of a zone show local_time, from a time on, on one of these days of the week (1 is
   Monday), or on any.';

create or replace function internal.campaign_plan_range(campaign app.campaigns, plan app.campaign_plans, last_id uuid)
returns int
language plpgsql volatile security definer set search_path = ''
-- as for segments: sets are hashed or merged, by indexes over the range of users
set enable_nestloop = off set random_page_cost = 1.1 set max_parallel_workers_per_gather = 0 set jit = off as $$
declare
  c constant app.campaigns := campaign_plan_range.campaign;
  p constant app.campaign_plans := campaign_plan_range.plan;
  variant record;
  made int := 0;
begin
  for variant in execute format($query$
    with audience as materialized (%s
    ), chosen as materialized (
      select a.id, coalesce(z.name, 'UTC') as zone,
             case when $7 then internal.campaign_variant($5, $8, a.id) end as variant
        from audience a
        join app.users u on u.id = a.id
        left join app.timezones z on z.name = u.timezone
       -- as the foreign key would lock them, but those that are just deleted are left out and do not fail the step
       order by u.id
         for key share of u
    ), waves as materialized (
      select w.zone, case when $9 is null then $6 else internal.campaign_local_due($6, w.zone, $9, $10) end as due_at
        from (select distinct h.zone from chosen h) w
    ), planned as (
      insert into app.campaign_deliveries (queue_id, channel, campaign_id, app_user_id, variant, inbox, status, reason,
                                           due_at, created_at)
      select $5, $12, $5, h.id, h.variant, $11, case when $7 and h.variant is null then 'skipped' else 'pending' end,
             case when $7 and h.variant is null then 'holdout' end, w.due_at, $6
        from chosen h
        join waves w on w.zone = h.zone
       order by h.id
      on conflict on constraint campaign_deliveries_once_per_campaign do nothing
      returning variant, reason
    )
    select d.variant, count(*) as targeted, count(d.reason) as held_out from planned d group by 1
  $query$, p.query)
     using internal.segment_bind(p.parameters), p.cursor_id, campaign_plan_range.last_id, p.user_ids, c.id,
       internal.now(),
           jsonb_array_length(c.variants) > 0, c.variants, case when c.mode = 'user_local' then c.local_time::time end,
           c.weekdays, c.inbox, c.channel
  loop
    perform internal.campaign_count(c.id, variant.variant, targeted => variant.targeted, skipped => variant.held_out);
    made := made + variant.targeted;
  end loop;
  return made;
end $$;
comment on function internal.campaign_plan_range is
  'Makes the deliveries of the users after the plan''s cursor, up to an id. Returns how many. Granted to nobody.';

create or replace function internal.campaign_plan_cancel(campaign_id uuid, batch int, lease interval) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  skipped record;
  found_any boolean := false;
begin
  for skipped in
    with ended as (
      update app.campaign_deliveries d
         set status = case when d.status = 'pending' and d.sent_at is null then 'skipped'
                           when d.sent_at is not null then 'sent' else 'failed' end,
             reason = case when d.status = 'pending' and d.sent_at is null then 'cancelled' end,
             code = case when d.status = 'sending' and d.sent_at is null then 'OUTCOME_UNKNOWN' end,
             due_at = case when d.status = 'sending' then d.due_at - campaign_plan_cancel.lease else d.due_at end
       where d.id in (select e.id from app.campaign_deliveries e
                       where e.queue_id = campaign_plan_cancel.campaign_id and e.status in ('pending', 'sending')
                         -- without a lease the outcome comes from the channel
                         and (e.status = 'pending' or campaign_plan_cancel.lease is not null
                              and e.due_at <= internal.now())
                       order by e.due_at limit campaign_plan_cancel.batch for update skip locked)
      returning d.variant, d.status
    )
    select e.variant, count(*) filter (where e.status = 'skipped') as skipped,
           count(*) filter (where e.status = 'failed') as failed,
           count(*) filter (where e.status = 'sent') as sent
      from ended e group by 1
  loop
    found_any := true;
    perform internal.campaign_count(campaign_plan_cancel.campaign_id, skipped.variant, sent => skipped.sent,
                                    failed => skipped.failed, skipped => skipped.skipped);
  end loop;
  return json_build_object('is_over', not found_any, 'next_at', (
    select case when count(*) > 0 then internal.iso(greatest(min(d.due_at), internal.now() + interval '1 second')) end
      from app.campaign_deliveries d
     where d.queue_id = campaign_plan_cancel.campaign_id and d.status in ('pending', 'sending')
       and campaign_plan_cancel.lease is not null and not found_any));
end $$;
comment on function internal.campaign_plan_cancel is
  'Ends deliveries that a cancelled campaign has left: those that were never sent are skipped, those whose lease has
   ended failed. Granted to nobody.';

create or replace function internal.campaign_plan_delete(campaign_id uuid, batch int) returns json
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.campaign_deliveries d
   where d.id in (select e.id from app.campaign_deliveries e where e.campaign_id = campaign_plan_delete.campaign_id
                   limit campaign_plan_delete.batch);
  if found then
    return '{"is_over": false}';
  end if;
  delete from app.campaign_counts n where n.source_id = campaign_plan_delete.campaign_id;
  delete from app.campaign_buckets b where b.name = campaign_plan_delete.campaign_id::text;
  delete from app.campaigns c where c.id = campaign_plan_delete.campaign_id;
  return '{"is_over": true}';
end $$;
comment on function internal.campaign_plan_delete is
  'One step of the deletion of a campaign: its deliveries, then the campaign. Granted to nobody.';

create or replace function api.campaign_plan_step(campaign_id uuid, batch int default 20000) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.campaigns;
  plan app.campaign_plans;
  last_id uuid;
  moved bigint;
  channel internal.campaign_channels;
  withdraw text;
  withdrawn int;
begin
  perform internal.check_caller('worker', 'campaigns are planned by workers');
  select k.* into c from app.campaigns k where k.id = campaign_plan_step.campaign_id for no key update;
  if not found then
    return internal.reply(200, '{"is_over": true}');
  end if;
  channel := internal.campaign_channel(c.channel);
  if c.is_deleted or c.status in ('cancelled', 'failed') then
    withdraw := internal.campaign_hook('cancelled', c.channel);
    if withdraw is not null then
      execute format('select internal.%I($1, $2)', withdraw) into withdrawn using c.id, 500;
      if withdrawn > 0 then
        return internal.reply(200, '{"is_over": false}');
      end if;
    end if;
  end if;
  if c.is_deleted then
    return internal.reply(200, internal.campaign_plan_delete(c.id, campaign_plan_step.batch));
  elsif c.status in ('cancelled', 'failed') then
    return internal.reply(200, internal.campaign_plan_cancel(c.id, campaign_plan_step.batch, channel.lease));
  elsif c.status = 'scheduled' then
    if c.scheduled_at > internal.now() then
      return internal.reply(200, json_build_object('is_over', true, 'next_at', internal.iso(c.scheduled_at)));
    end if;
    update app.campaigns k set status = 'sending', started_at = internal.now() where k.id = c.id returning k.* into c;
    insert into app.campaign_plans (campaign_id, query, parameters, user_ids)
    select c.id, a.ranged, a.parameters, internal.campaign_audience_user_ids(c.audience)
      from internal.campaign_audience_compile(c.audience, c.exclude_segment_id) a;
  elsif c.status not in ('sending', 'paused') then
    return internal.reply(200, '{"is_over": true}');
  end if;
  select p.* into plan from app.campaign_plans p where p.campaign_id = c.id;
  if plan.planned_at is not null then
    return internal.reply(200, '{"is_over": true}');
  end if;
  select u.id into last_id from app.users u where u.id > plan.cursor_id order by u.id
  offset campaign_plan_step.batch - 1 limit 1;
  moved := internal.campaign_plan_range(c, plan, coalesce(last_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff'));
  update app.campaign_plans p
     set cursor_id = coalesce(last_id, p.cursor_id), planned_at = case when last_id is null then internal.now() end
   where p.campaign_id = c.id;
  if c.status = 'sending' then
    perform internal.campaign_wake(c);
  end if;
  return internal.reply(200, json_build_object('is_over', last_id is null, 'planned', moved));
end $$;
comment on function api.campaign_plan_step is
  'For the worker: one step of a campaign''s plan, {is_over, next_at}: starts it when its time has come and makes the
   deliveries of the next users, or skips those left of a cancelled campaign, or deletes a deleted one. Locks the
   campaign.';
