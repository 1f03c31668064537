-- Webhooks of providers: stored as they came before they are answered, and processed by a worker.
create or replace function api.inbound_config(provider text) returns api.reply
language sql stable as $$
  select internal.reply(200, (select json_build_object('config_sealed', i.config_sealed)
                                from app.integrations i
                               where i.provider = inbound_config.provider and i.is_active))
$$;
comment on function api.inbound_config is
  'The sealed config of an active provider, with the secret of its webhook, or null. Read for each webhook: a new secret
   counts at once.';

create or replace function api.inbound_receive(provider text, event_key text, body text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  stored_id uuid;
begin
  perform internal.check_caller('worker', 'webhooks are received by the server');
  perform internal.check_rate('inbound webhooks', 100, 1, 'A project takes at most 100 webhooks a second.');
  insert into app.inbound_events as e (provider, event_key, body)
  values (inbound_receive.provider, inbound_receive.event_key, inbound_receive.body)
  on conflict on constraint inbound_events_once do nothing
  returning e.id into stored_id;
  if stored_id is not null then
    perform internal.enqueue('integrations__process', stored_id::text);
  end if;
  return internal.reply(200, json_build_object('received', true));
end $$;
comment on function api.inbound_receive is
  'Stores a verified webhook and queues it; a key that is known changes nothing. For the server. Refuses 429
   RATE_LIMITED over 100 a second.';

create or replace function internal.paywall_event(inbound_id uuid, body jsonb, received_at timestamptz) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  details constant jsonb := case when jsonb_typeof(paywall_event.body -> 'data') = 'object'
                                   then paywall_event.body -> 'data' else '{}' end;
  name constant text := coalesce(case when jsonb_typeof(paywall_event.body -> 'event') = 'string'
                                        then paywall_event.body ->> 'event' end,
                                 case when jsonb_typeof(paywall_event.body -> 'type') = 'string'
                                        then paywall_event.body ->> 'type' end);
  named constant text := coalesce(paywall_event.body ->> 'user_id', details ->> 'originalAppUserId');
  them constant uuid := internal.subscription_user_named(array[named]);
  sent_at constant timestamptz := coalesce(internal.ms_time(paywall_event.body -> 'timestamp'),
                                           internal.ms_time(details -> 'ts'),
                                           internal.as_time(paywall_event.body ->> 'timestamp'),
                                           paywall_event.received_at);
  posted record;
begin
  if name is null or named is null then
    return 'without_effect';
  elsif them is null then
    return 'unknown_user';
  end if;
  -- the event has the id of the webhook, so that processing it twice records it once
  posted := internal.ingest_event(
    json_build_object('id', paywall_event.inbound_id, 'event_name', 'paywall.' || name, 'app_user_id', them,
                      'occurred_at', internal.iso(sent_at),
                      'properties', paywall_event.body - '{event,user_id}'::text[]), false, 'webhook');
  return case coalesce((posted.validated).problem.code, '')
           when '' then 'applied' when 'DUPLICATE' then 'duplicate' when 'USER_NOT_FOUND' then 'unknown_user'
             else 'malformed' end;
end $$;
comment on function internal.paywall_event is
  'One engagement event of what the paywall provider reports, paywall.<event>, which streaks, XP and segments count as
   any: applied, duplicate, unknown_user, without_effect (it has no event or names no user) or malformed (the event
   would be refused from an app as well). Granted to nobody.';

create or replace function api.inbound_process(inbound_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  e app.inbound_events;
  parsed jsonb;
  result text;
begin
  perform internal.check_caller('worker', 'webhooks are processed by workers');
  select k.* into e from app.inbound_events k where k.id = inbound_process.inbound_id for update;
  if e.id is null or e.outcome is not null then
    return internal.reply(200, to_json(e.outcome));
  end if;
  begin
    parsed := e.body::jsonb;
  exception when data_exception or program_limit_exceeded then
    -- JSON that Postgres cannot hold: a NUL character or a number that is too long
    result := 'malformed';
  end;
  if result is null then
    result := case e.provider when 'revenuecat' then internal.subscription_ingest(parsed -> 'event')
                              when 'superwall' then internal.paywall_event(e.id, parsed, e.received_at) end;
  end if;
  update app.inbound_events k set outcome = result, processed_at = internal.now() where k.id = e.id;
  return internal.reply(200, to_json(result));
end $$;
comment on function api.inbound_process is
  'For the task integrations__process: processes a stored webhook once, and records the outcome: that of
   internal.subscription_ingest or internal.paywall_event. For workers. Locks the row, then the users.';

select internal.row_declare('inbound_event_json', null::app.inbound_events,
                            '{id,provider,event_key,outcome,body,received_at,processed_at}');
comment on function internal.inbound_event_json is
  'A received webhook as administrators see it, with its body as text.';

select internal.list_declare('inbound_events_page', null::app.inbound_events, 'inbound_event_json', '{received_at,id}',
                             required => '{provider}',
                             filters => '{outcome}', by_cursor => true, bulk => 'body');

create or replace function api.inbound_events(provider text, outcome text default null, cursor text default null,
                                              page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.inbound_events_page(inbound_events.provider, inbound_events.outcome, inbound_events.cursor,
                                      inbound_events.page_limit)
$$;
comment on function api.inbound_events is 'Received webhooks of a provider, newest first.';

create or replace function internal.inbound_replay(provider text, inbound_id uuid) returns app.inbound_events
language plpgsql volatile security definer set search_path = '' as $$
declare
  e app.inbound_events;
begin
  perform internal.check_caller('developer', 'webhooks are replayed by administrators');
  update app.inbound_events k set outcome = null, processed_at = null
   where k.id = inbound_replay.inbound_id and k.provider = inbound_replay.provider
  returning k.* into e;
  perform internal.check_found(e.id is not null, 'webhook');
  perform internal.enqueue('integrations__process', e.id::text);
  perform internal.audit_act('integrations.replay', 'inbound_events', e.id::text,
                             json_build_object('provider', json_build_array(null, e.provider)), 202);
  return e;
end $$;
comment on function internal.inbound_replay is
  'Queues a received webhook again, audited as integrations.replay. What was applied is not applied twice. For
   administrators. Refuses 404 NOT_FOUND.';

create or replace function api.inbound_replay(provider text, event_id uuid) returns api.reply
language sql volatile as $$
  select internal.reply(202, internal.inbound_event_json(internal.inbound_replay(inbound_replay.provider,
                                        inbound_replay.event_id)))
$$;
comment on function api.inbound_replay is 'Processes a received webhook again: 202. Refuses 404 NOT_FOUND.';

create or replace function internal.purge__inbound(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  -- ids of engagement events are remembered for 90 days: an older webhook could be counted twice
  select internal.purge_rows('app.inbound_events', 't.received_at < internal.now() - interval ''90 days''',
                             purge__inbound.most)
$$;
comment on function internal.purge__inbound is 'Daily: received webhooks after 90 days.';
