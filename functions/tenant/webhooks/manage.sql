-- Outbound webhooks of a project: administration of subscriptions. fan_out.sql creates deliveries, replay.sql sends a
-- range of them again; attempts, retries and the circuit breaker are in functions/shared/webhooks. The worker contains
-- no logic: it leases a delivery, sends the request and reports the outcome.

select internal.row_declare('webhook_json', null::app.webhooks,
                            '{id,event_name,target_url,description,filter,include_user,status,created_at,updated_at}');
comment on function internal.webhook_json is
  'A subscription as every response shows it. Its secret is shown once, by the server that generated it.';

create or replace function internal.webhook_filter_check(filter json) returns void
language plpgsql volatile as $$
declare
  problem constant text := case when webhook_filter_check.filter is not null
                                  then internal.filter_problem(webhook_filter_check.filter) end;
begin
  if problem is not null then
    perform internal.invalid('filter', problem);
  end if;
end $$;
comment on function internal.webhook_filter_check is
  'Refuses an invalid filter: 400 VALIDATION_ERROR. Null means no filter.';

create or replace function internal.webhook_check(requested app.webhooks, was app.webhooks, sent jsonb)
returns app.webhooks
language plpgsql stable as $$
begin
  perform internal.webhook_filter_check((webhook_check.requested).filter::json);
  return webhook_check.requested;
end $$;
comment on function internal.webhook_check is
  'Validates what check constraints of app.webhooks cannot express: the filter. Refuses 400 VALIDATION_ERROR.';

create or replace function api.webhook_create(event_name text, target_url text, secret_sealed text,
                                              description text default null, filter json default null,
                                              include_user boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  made app.webhooks;
begin
  perform internal.webhook_filter_check(webhook_create.filter);
  perform internal.definition_limit_check(null::app.webhooks);
  insert into app.webhooks (event_name, target_url, description, filter, include_user, secret_id)
  values (webhook_create.event_name, webhook_create.target_url, webhook_create.description,
          webhook_create.filter::jsonb,
          webhook_create.include_user, internal.new_id())
  returning * into made;
  insert into app.webhook_secrets (id, webhook_id, secret_sealed)
    values (made.secret_id, made.id, webhook_create.secret_sealed);
  return internal.reply(201, internal.webhook_json(made));
end $$;
comment on function api.webhook_create is
  'Creates a subscription; the server adds the secret to this response only. Refuses 400 VALIDATION_ERROR, 409
   LIMIT_REACHED (50).';

create or replace function internal.webhook_stats_json(webhook_id uuid) returns json
language sql stable as $$
  with day as (
    -- an index-only scan of webhook_deliveries_settled
    select count(*) filter (where d.status = 'delivered') as delivered,
           count(*) filter (where d.status in ('failed', 'dlq')) as failed
      from app.webhook_deliveries d
     where d.webhook_id = webhook_stats_json.webhook_id and d.settled_at > internal.now() - interval '24 hours'
  ), durations as (
    -- an index-only scan of webhook_attempts_recent; the newest thousand attempts are a sufficient sample, at a
    -- constant cost
    select a.duration_ms
      from app.webhook_attempts a
     where a.webhook_id = webhook_stats_json.webhook_id and a.at > internal.now() - interval '24 hours'
     order by a.at desc
     limit 1000
  )
  select json_build_object(
    'delivered_24h', y.delivered, 'failed_24h', y.failed,
    'p95_ms', (select percentile_disc(0.95) within group (order by t.duration_ms) from durations t),
    'pending', (select count(*) from app.webhook_deliveries d
                 where d.webhook_id = webhook_stats_json.webhook_id and d.status = 'pending'))
    from day y
$$;
comment on function internal.webhook_stats_json is
  'Statistics of a subscription: deliveries that were finished within 24 hours, by their current status; p95_ms of its
   newest attempts within 24 hours, at most 1,000, null when there is none; the number of pending deliveries, from the
   index webhook_deliveries_by_status.';

create or replace function api.webhook_get(webhook_id uuid) returns api.reply
language plpgsql stable as $$
declare
  hook constant app.webhooks := internal.definition_find(null::app.webhooks, webhook_get.webhook_id::text);
begin
  return internal.reply(200, internal.json_merge(internal.webhook_json(hook),
                                                 json_build_object('stats', internal.webhook_stats_json(hook.id))));
end $$;
comment on function api.webhook_get is 'A subscription with its stats. Refuses 404 NOT_FOUND.';

select internal.audit_declare('app.webhooks', 'webhooks', 'secret_id');

create or replace function internal.webhook_watched(w app.webhooks) returns text
language sql stable as $$
  select (webhook_watched.w).event_name
$$;
comment on function internal.webhook_watched is 'What a subscription watches, for the notification of its owner.';

-- served by webhook_deliveries_created, or webhook_deliveries_unusual, whose condition only the plan of a value meets
select internal.list_declare('webhook_deliveries_page', null::app.webhook_deliveries, 'webhook_delivery_line_json',
                             '{created_at,id}', filters => '{status}', by_cursor => true, has_since => true,
                             is_skewed => true);

create or replace function api.webhook_deliveries_list(status text default null, since text default null,
                                                       cursor text default null, page_limit int default 50)
returns api.reply
language plpgsql stable as $$
begin
  return internal.webhook_deliveries_page(webhook_deliveries_list.status,
                                          internal.time_parameter('since', webhook_deliveries_list.since),
                                          webhook_deliveries_list.cursor, webhook_deliveries_list.page_limit);
end $$;
comment on function api.webhook_deliveries_list is
  'Deliveries of all subscriptions, newest first, by cursor; since compares the time at which they were queued. Refuses
   400 INVALID_INPUT.';
