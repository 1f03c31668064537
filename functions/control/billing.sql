-- Billing: what projects pay for, as the billing provider of the installation reports it, and the traffic that servers
-- count.
create or replace function internal.subscription_json(s app.project_subscriptions) returns json
language sql stable as $$
  select case when (subscription_json.s).project_id is not null then json_build_object(
    'tier', (subscription_json.s).tier, 'status', (subscription_json.s).status,
      'ends_at', internal.iso((subscription_json.s).ends_at),
    'cancel_at_period_end', (subscription_json.s).cancel_at_period_end) end
$$;
comment on function internal.subscription_json is
  'A subscription as responses show it, or null: {tier, status, ends_at, cancel_at_period_end}.';

create or replace function internal.subscription_of(project_id uuid, provider text) returns app.project_subscriptions
language sql stable as $$
  select s.* from app.project_subscriptions s
   where s.project_id = subscription_of.project_id and s.provider = subscription_of.provider
$$;
comment on function internal.subscription_of is
  'The subscription of a project at a billing provider, or nulls. Row-level security leaves those of the caller''s
   projects.';

create or replace function api.billing_get(project_id uuid, provider text) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(billing_get.project_id);
  month constant timestamp := date_trunc('month', internal.now() at time zone 'UTC');
begin
  return internal.reply(200, (
    select json_build_object(
             'tier', project.tier, 'effective_tier', internal.effective_tier(project.tier, project.comped),
               'comped', project.comped,
             'period', json_build_object('start', internal.iso(month at time zone 'UTC'),
                                         'end', internal.iso((month + interval '1 month') at time zone 'UTC')),
             'subscription', internal.subscription_json(internal.subscription_of(project.id, billing_get.provider)),
             'meters', json_build_object('api_requests', coalesce(sum(t.api_requests), 0),
                                         'egress_bytes', coalesce(sum(t.egress_bytes), 0)))
      from app.traffic_reports t
     where t.project_id = project.id and t.day >= month::date and t.day < (month + interval '1 month')::date));
end $$;
comment on function api.billing_get is
  'The tier of a project, its subscription at the installation''s provider, the calendar month (UTC), and the traffic of
   that month. Refuses 404 NOT_FOUND.';

create or replace function api.traffic_series(project_id uuid, first date, last date) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(traffic_series.project_id);
begin
  return internal.reply(200, (
    select json_build_object('api_requests', json_agg(d.api_requests order by d.day),
                             'failed_requests', json_agg(d.failed_requests order by d.day),
                             'egress_bytes', json_agg(d.egress_bytes order by d.day))
      from (select g.day, coalesce(sum(t.api_requests), 0) as api_requests,
            coalesce(sum(t.failed_requests), 0) as failed_requests,
                   coalesce(sum(t.egress_bytes), 0) as egress_bytes
              from (select s::date as day from generate_series(traffic_series.first::timestamp,
                                                               traffic_series.last::timestamp, interval '1 day') s) g
              left join app.traffic_reports t on t.project_id = project.id and t.day = g.day
             group by g.day) d));
end $$;
comment on function api.traffic_series is
  'The requests of apps on each day from first to last, those of them that failed, and the bytes that were sent,
   {api_requests: [], failed_requests: [], egress_bytes: []}. Refuses 404 NOT_FOUND.';

create or replace function internal.billing_act(project_id uuid, action text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not exists (select from app.projects p where p.id = billing_act.project_id
                    and p.organization_id = any (internal.organization_ids('admin'))) then
    raise exception 'billing is for administrators of the project';
  end if;
  perform internal.audit('billing.' || billing_act.action, 'projects', billing_act.project_id::text,
                         scope => billing_act.project_id);
end $$;
comment on function internal.billing_act is
  'Records in the audit trail that an administrator of a project went to its billing provider.';

create or replace function api.billing_begin(project_id uuid, provider text, action text) returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project_lock(billing_begin.project_id);
  held constant app.project_subscriptions := internal.subscription_of(project.id, billing_begin.provider);
  is_live constant boolean := coalesce(held.status <> 'ended', false);
begin
  if billing_begin.action = 'checkout' and is_live then
    perform internal.fail(409, 'ALREADY_SUBSCRIBED',
                          'The project has a subscription: change it in the portal of the billing provider.');
  elsif billing_begin.action = 'cancel' and not is_live
    or billing_begin.action = 'portal' and held.customer_ref is null then
    perform internal.fail(409, 'NO_SUBSCRIPTION', 'The project has no subscription.');
  end if;
  perform internal.billing_act(project.id, billing_begin.action);
  return internal.reply(200, json_build_object('id', project.id, 'tier', project.tier,
                                               'customer_ref', held.customer_ref));
end $$;
comment on function api.billing_begin is
  'Before the billing provider is called for checkout, portal or cancel: {id, tier, customer_ref}, and a row in the
   audit trail. Refuses 404 NOT_FOUND, 409 ALREADY_SUBSCRIBED, NO_SUBSCRIPTION.';

create or replace function api.billing_cancelled(project_id uuid, provider text, ends_at timestamptz) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  held app.project_subscriptions;
begin
  if not exists (select from app.projects p where p.id = billing_cancelled.project_id
                    and p.organization_id = any (internal.organization_ids('admin'))) then
    raise exception 'billing is for administrators of the project';
  end if;
  update app.project_subscriptions s
     set cancel_at_period_end = true, ends_at = billing_cancelled.ends_at, updated_at = internal.now()
   where s.project_id = billing_cancelled.project_id and s.provider = billing_cancelled.provider and s.status <> 'ended'
  returning s.* into held;
  if held.project_id is null then
    -- the provider reported its end in between
    select s.* into held from app.project_subscriptions s
     where s.project_id = billing_cancelled.project_id and s.provider = billing_cancelled.provider;
  end if;
  return internal.reply(200, internal.subscription_json(held));
end $$;
comment on function api.billing_cancelled is
  'For the server: stores that a subscription ends with its period, as the provider has confirmed. Locks the
   subscription.';

create or replace function api.billing_event(provider text, event_key text, event json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  e record;
  before app.projects;
  held app.project_subscriptions;
  paid text;
begin
  perform internal.check_caller('worker',
                                'events of the billing provider are stored by the server, which has checked their '
                                'signature');
  insert into app.billing_events (provider, event_key)
    values (billing_event.provider, billing_event.event_key) on conflict do nothing;
  if not found then
    return internal.reply(200, json_build_object('received', true, 'applied', false));
  end if;
  select * into e
    from json_to_record(billing_event.event) as x (project_id uuid, occurred_at timestamptz, tier text, status text,
                                                   customer_ref text, ends_at timestamptz,
                                                   cancel_at_period_end boolean);
  select p.* into before from app.projects p where p.id = e.project_id and p.deleted_at is null for no key update;
  if before.id is null then
    return internal.reply(200, json_build_object('received', true, 'applied', false));
  end if;
  insert into app.project_subscriptions as s (project_id, provider, customer_ref, tier, status, ends_at,
                                              cancel_at_period_end, event_at)
  values (before.id, billing_event.provider, e.customer_ref, e.tier, e.status, e.ends_at, e.cancel_at_period_end,
          e.occurred_at)
  on conflict (project_id) do update
     set provider = excluded.provider, customer_ref = excluded.customer_ref, tier = excluded.tier,
       status = excluded.status, ends_at = excluded.ends_at,
         cancel_at_period_end = excluded.cancel_at_period_end, event_at = excluded.event_at, updated_at = internal.now()
   -- providers do not keep the order of events
   where s.event_at <= excluded.event_at
  returning s.* into held;
  if held.project_id is null then
    return internal.reply(200, json_build_object('received', true, 'applied', false));
  end if;
  paid := case held.status when 'ended' then 'free' else held.tier end;
  if paid <> before.tier then
    update app.projects p set tier = paid, updated_at = internal.now() where p.id = before.id;
    perform internal.audit('projects.update', 'projects', before.id::text,
                           json_build_object('tier', json_build_array(before.tier, paid)), scope => before.id);
    -- the servers' project cache holds the tier that limits depend on
    perform internal.changed('project:' || before.id);
  end if;
  return internal.reply(200, json_build_object('received', true, 'applied', true));
end $$;
comment on function api.billing_event is
  'For the server: stores what the billing provider says of a subscription, and gives the project the tier that is paid
   for, or free after its end: {received, applied}. applied is false for an event that was stored before, that is older
   than what is stored, or of a project that is gone. Locks the project, then the subscription.';

create or replace function api.traffic_report(reporter uuid, counted json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'traffic is reported by servers');
  insert into app.traffic_reports as t (project_id, day, reporter, api_requests, failed_requests, egress_bytes)
  select c.project_id, c.day, traffic_report.reporter, c.api_requests, c.failed_requests, c.egress_bytes
    from json_to_recordset(traffic_report.counted) as c (project_id uuid, day date, api_requests bigint,
                                                         failed_requests bigint, egress_bytes bigint)
    join app.projects p on p.id = c.project_id
   where p.deleted_at is null
   order by c.project_id, c.day
     for key share of p
  on conflict on constraint traffic_reports_pkey do update
     set api_requests = greatest(t.api_requests, excluded.api_requests),
       failed_requests = greatest(t.failed_requests, excluded.failed_requests),
         egress_bytes = greatest(t.egress_bytes, excluded.egress_bytes);
  return internal.reply(200, 'true');
end $$;
comment on function api.traffic_report is
  'For servers: stores what a server has counted since the beginning of each day, [{project_id, day, api_requests,
   failed_requests, egress_bytes}]. A report may come twice, or late. Locks rows that no other server has.';

create or replace function internal.purge_billing() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  nobody constant uuid := '00000000-0000-0000-0000-000000000000';
  today constant date := (internal.now() at time zone 'UTC')::date;
begin
  perform internal.check_caller('worker', 'forgetting is done by the daily job');
  delete from app.billing_events e where e.received_at < internal.now() - interval '90 days';
  delete from app.traffic_reports t where t.day < today - 400;
  -- servers report a day for two days after it
  with gone as (
    delete from app.traffic_reports t where t.day < today - 3 and t.reporter <> nobody
    returning t.project_id, t.day, t.api_requests, t.failed_requests, t.egress_bytes
  )
  insert into app.traffic_reports as t (project_id, day, reporter, api_requests, failed_requests, egress_bytes)
  select g.project_id, g.day, nobody, sum(g.api_requests), sum(g.failed_requests), sum(g.egress_bytes) from gone g
   group by 1, 2
  on conflict (project_id, day, reporter) do update
     set api_requests = t.api_requests + excluded.api_requests,
       failed_requests = t.failed_requests + excluded.failed_requests,
         egress_bytes = t.egress_bytes + excluded.egress_bytes;
end $$;
comment on function internal.purge_billing is
  'Daily: joins the traffic of days that are over, and forgets it after 400 days, ids of the billing provider''s events
   after 90.';
