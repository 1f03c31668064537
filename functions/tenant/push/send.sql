-- Sending. A worker claims due deliveries, which marks them as sending before any provider is called, and records what
-- the provider answered. A delivery whose worker died in between is claimed again when its lease ends: its devices of
-- APNs, which shows a notification with the same collapse id once, and of the log are sent to again; FCM has no such
-- key, so its outcome is unknown and it is never sent to again. A provider that is busy or away is tried again for
-- hours, as long as the message is worth it: until its ttl_seconds after the first attempt, and while the user would
-- still be sent it. Claims of push come one after the other, by the lock of its bucket in
-- functions/tenant/campaigns/claim.sql, so caps are exact. Locks: the bucket, users, deliveries, devices, breakers.
create or replace function internal.push_lease() returns interval
language sql immutable parallel safe
return interval '2 minutes';
comment on function internal.push_lease is 'How long a worker has for the deliveries that it has claimed.';

create or replace function internal.push_is_refused(enabled boolean, categories jsonb, category text) returns boolean
language sql immutable parallel safe
return not coalesce(push_is_refused.enabled, true)
  or jsonb_extract_path(push_is_refused.categories, push_is_refused.category) = 'false';
comment on function internal.push_is_refused is
  'Whether a user has switched push off, or this category; null, as false, where the user has said nothing.';

create or replace function internal.push_retry_at(tries int, retry_after numeric) returns timestamptz
language sql stable
return (select internal.now() + make_interval(secs => greatest(w.seconds,
                                                               least(coalesce(push_retry_at.retry_after, 0),
                                                                     3600))::double precision)
          from unnest('{1,5,25,60,300,900,1800,3600,3600,3600,3600,3600}'::int[]) with ordinality as w (seconds, n)
         where w.n = push_retry_at.tries);
comment on function internal.push_retry_at is
  'When a delivery that was tried so many times is tried again: after 1 second to an hour, or after what the provider
   asks for, an hour at most. Null after 13 attempts, six hours. Granted to nobody.';

create or replace function internal.push_claim_rows(queue uuid, allowed int, uses_log boolean, out deliveries json,
                                                    out picked int, out taken int)
language plpgsql volatile security definer set search_path = ''
-- a batch looks up a few hundred rows by their ids, whatever the planner believes of tables that have just been filled
set enable_seqscan = off set jit = off set plan_cache_mode = 'force_generic_plan' as $$
declare
  at constant timestamptz := internal.now();
  attempt constant uuid := internal.new_id();
  connected constant text[] := array(select i.provider from app.integrations i
                                      where i.provider in ('apns', 'fcm', 'log') and i.is_active);
  logs constant boolean := push_claim_rows.uses_log or 'log' = any (connected);
  ids uuid[];
  ended record;
begin
  -- users are locked as foreign keys lock them: what is deleted or merged at this moment is passed over
  ids := array(
    select d.id
      from app.campaign_deliveries d
      join app.users u on u.id = d.app_user_id
     where d.queue_id = push_claim_rows.queue and d.status in ('pending', 'sending') and d.due_at <= at
     order by d.due_at, d.id
     limit push_claim_rows.allowed
       for update of d skip locked for key share of u skip locked);
  with picked as materialized (
    select d.id, d.app_user_id, d.campaign_id, d.automation_id, d.variant, d.message, d.context, d.is_test, d.inbox,
           d.status, d.tries, d.attempts,
           d.sent_at, d.due_at, u.properties, u.display_name, u.is_banned, u.timezone
      from app.campaign_deliveries d
      join app.users u on u.id = d.app_user_id
     where d.id = any (ids)
  ), one_per_user as materialized (
    -- one message of a user at a time, so that a cap sees the one before
    select distinct on (p.app_user_id) p.* from picked p order by p.app_user_id, p.due_at, p.id
  ), configured as materialized (
    select d.*, coalesce(d.message, v.message, c.message, a.message, t.message) as base,
           coalesce(c.quiet_hours, a.quiet_hours) as quiet,
           coalesce(c.frequency_cap, a.frequency_cap) as cap, p.enabled, p.categories, p.quiet_hours as own_quiet,
           (at at time zone coalesce(z.name, 'UTC'))::time as local_time
      from one_per_user d
      left join app.timezones z on z.name = d.timezone
      left join app.push_preferences p on p.app_user_id = d.app_user_id
      left join app.campaigns c on c.id = d.campaign_id
      left join app.push_automations a on a.id = d.automation_id
      left join app.push_templates t on t.key = a.template_key
      left join lateral (select e.value -> 'message' as message from jsonb_array_elements(c.variants) e
                          where e.value ->> 'key' = d.variant) v on true
  ), checked as materialized (
    select k.*, d.tokens, d.lost, r.shown,
           coalesce((k.attempts -> 0 ->> 'at')::timestamptz,
                    at) + make_interval(secs => coalesce((r.shown ->> 'ttl_seconds')::int, 86400)) as expires_at,
           case when k.status = 'sending' then null
                when k.is_banned then 'opted_out'
                when k.tries > 0 and k.message is not null and k.context ? 'message_id'
                     and not internal.message_push_is_wanted((k.context ->> 'message_id')::uuid,
                                                             k.app_user_id) then 'cancelled'
                when k.is_test then case when k.tries = 0 and d.tokens is null and d.lost is null then 'no_token' end
                when internal.push_is_refused(k.enabled, k.categories, k.base ->> 'category') then 'opted_out'
                else coalesce(h.reason, case when k.tries = 0 and d.tokens is null
                                             and d.lost is null then 'no_token' end) end as reason
      from configured k
     -- a cap counts a message once, however often it is tried
     cross join lateral internal.campaign_held_back('push', k.quiet, k.own_quiet, k.local_time,
                                                    case when k.tries = 0 then k.cap end, k.app_user_id, k.id, at) h
     cross join lateral (select internal.push_rendered(k.base, k.properties, k.display_name, k.context) as shown
                         offset 0) r
     cross join lateral (
       select json_agg(json_build_object('id', n.id, 'token', n.token, 'provider', r.route))
                filter (where r.route is not null and not r.is_unknown) as tokens,
              jsonb_agg(jsonb_build_object('push_token_id', n.id, 'provider', coalesce(r.route, n.provider), 'outcome',
                                           'failed', 'at', internal.iso(at),
                                           'code', case when r.is_unknown then 'OUTCOME_UNKNOWN'
                                                        else 'PUSH_NOT_CONFIGURED' end))
                filter (where r.route is null or r.is_unknown) as lost
         from app.push_tokens n
        cross join lateral (select case when n.provider = any (connected) then n.provider
                                        when logs then 'log' end as route) w
        cross join lateral (select w.route, coalesce(k.status = 'sending' and w.route = 'fcm', false) as is_unknown) r
        where n.app_user_id = k.app_user_id and n.is_active
          -- a registration ends with the session that made it, also where that has expired
          and (n.session_id is null or exists (select from app.user_sessions s
                                                where s.id = n.session_id and s.ended_at is null and s.expires_at > at))
          and (k.attempts = '[]'
               or not exists (select from jsonb_array_elements(k.attempts) e
                               where e.value ->> 'push_token_id' = n.id::text
                                 and e.value ->> 'outcome' in ('sent', 'failed')))) d
  ), decided as materialized (
    select j.*, case when j.reason is null and j.tokens is not null
                     and (j.attempts = '[]' or j.expires_at > at) then 'sending' when j.sent_at is not null then 'sent'
                     when j.reason is not null then 'skipped' else 'failed' end as next_status
      from checked j
  ), moved as (
    update app.campaign_deliveries d
       set status = case when n.next_status = 'sent' and d.opened_at is not null then 'opened' else n.next_status end,
           reason = case when n.next_status = 'skipped' then n.reason end,
           code = case when n.next_status = 'failed' then coalesce(n.lost -> 0 ->> 'code', n.attempts -> -1 ->> 'code',
                                                                   'NO_DEVICE') end,
           attempts = case when n.reason is null and n.lost is not null then d.attempts || n.lost else d.attempts end,
           tries = d.tries + 1,
           attempt_id = attempt,
           due_at = case when n.next_status = 'sending' then at + internal.push_lease() else d.due_at end
      from decided n
     where d.id = n.id and d.id = any (ids)
  ), kept as (
    insert into app.push_inbox_items (app_user_id, delivery_id, title, body, image_url, deep_link, data, created_at,
                                      expires_at)
    select n.app_user_id, n.id, n.shown ->> 'title', n.shown ->> 'body', n.shown ->> 'image_url',
           n.shown ->> 'deep_link',
           coalesce(n.shown -> 'data', '{}'), at, at + interval '90 days'
      from decided n
     where n.inbox and n.tries = 0 and not n.is_banned
       -- a user who switched push off still gets the item in the inbox, but not one of a category that is switched off
       and (n.reason is null or n.reason in ('no_token', 'quiet_hours')
            or n.reason = 'opted_out' and coalesce(n.categories -> (n.base ->> 'category') <> 'false', true))
     order by n.app_user_id
    on conflict on constraint push_inbox_items_once_per_delivery do nothing
  )
  select (select json_agg(json_build_object(
            'id', n.id, 'attempt_id', attempt, 'campaign_id', n.campaign_id, 'message', n.shown, 'tokens', n.tokens,
              'expires_at', internal.iso(n.expires_at),
            'badge', case when n.shown ->> 'badge' = 'increment'
                          then (select count(*) from app.push_inbox_items i
                                 where i.app_user_id = n.app_user_id and not i.is_read and i.expires_at > at
                                   and i.delivery_id <> n.id) + n.inbox::int
                          when jsonb_typeof(n.shown -> 'badge') = 'number' then (n.shown ->> 'badge')::int end))
            from decided n where n.next_status = 'sending') as deliveries,
         (select count(*) from decided n where n.next_status = 'sending') as taken,
         (select array_agg(n.app_user_id) from decided n where n.inbox and n.tries = 0) as readers,
         (select json_agg(g) from (select coalesce(n.campaign_id, n.automation_id) as source_id, n.variant,
                                          count(*) filter (where n.next_status = 'skipped') as skipped,
                                          count(*) filter (where n.next_status = 'failed') as failed,
                                          count(*) filter (where n.next_status = 'sent') as sent
                                     from decided n where n.next_status <> 'sending' group by 1, 2) g) as counts
    into ended;
  -- an inbox holds 500 items
  delete from app.push_inbox_items i
   where i.id = any (array(
     select o.id
       from unnest(ended.readers) r (id)
      cross join lateral (select x.id from app.push_inbox_items x where x.app_user_id = r.id order by x.created_at desc,
                          x.id desc offset 500) o));
  perform internal.campaign_count(g.source_id, g.variant, skipped => g.skipped, failed => g.failed, sent => g.sent)
     from json_to_recordset(ended.counts) as g (source_id uuid, variant text, skipped bigint, failed bigint,
                                                sent bigint);
  deliveries := coalesce(ended.deliveries, '[]');
  picked := cardinality(ids);
  taken := ended.taken;
end $$;
comment on function internal.push_claim_rows is
  'Claims so many due deliveries of a queue: decides which are skipped, writes inboxes, marks the others as sending, and
   answers them with their devices and their messages. picked counts all, taken those. Granted to nobody.';

create or replace function internal.push_breaker_count(provider text, n int, failures int, retry_after numeric)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- most batches have no failure, and no row either
  if push_breaker_count.failures = 0 and not exists (
       select from app.push_breakers b where b.provider = push_breaker_count.provider and b.failures > 0) then
    return;
  end if;
  insert into app.push_breakers as b (provider) values (push_breaker_count.provider) on conflict do nothing;
  update app.push_breakers b
     set failures = case when push_breaker_count.failures < push_breaker_count.n then 0
                         else b.failures + push_breaker_count.failures end,
         open_until = case when push_breaker_count.failures = push_breaker_count.n
                           and b.failures + push_breaker_count.failures >= 50
                           then internal.now() + make_interval(secs => greatest(30,
                                        least(coalesce(push_breaker_count.retry_after, 0), 600))::double precision) end
   where b.provider = push_breaker_count.provider;
end $$;
comment on function internal.push_breaker_count is
  'The circuit breaker of a provider: after 50 requests in a row that it failed, none for 30 seconds, or up to ten
   minutes where it asks for that, then ten at a time until one succeeds. Granted to nobody.';

create or replace function api.push_record(results jsonb) returns api.reply
language plpgsql volatile security definer set search_path = ''
-- a batch looks up a few hundred rows by their ids, whatever the planner believes of tables that have just been filled
set enable_seqscan = off set jit = off set plan_cache_mode = 'force_generic_plan' as $$
declare
  at constant timestamptz := internal.now();
  -- by their ids: of the length of a list the planner knows nothing
  by_id constant jsonb := (select coalesce(jsonb_object_agg(r.value ->> 'id', r.value), '{}')
                             from jsonb_array_elements(push_record.results) r);
  ids constant uuid[] := array(select k::uuid from jsonb_object_keys(by_id) k);
  ended record;
begin
  perform internal.check_caller('worker', 'outcomes are recorded by workers');
  -- first the users, as whoever deletes or merges them does
  perform from app.users u
    where u.id = any (array(select d.app_user_id from app.campaign_deliveries d where d.id = any (ids)))
    order by u.id
      for key share;
  with held as materialized (
    select d.id, d.campaign_id, d.automation_id, d.variant, d.tries, d.sent_at, d.opened_at, d.due_at, d.status,
           by_id -> d.id::text -> 'tokens' as tokens
      from app.campaign_deliveries d
     where d.id = any (ids) and d.attempt_id = (by_id -> d.id::text ->> 'attempt_id')::uuid
     order by d.id
       for update of d
  ), decided as materialized (
    select h.id, h.campaign_id, coalesce(h.campaign_id, h.automation_id) as source_id, h.variant, h.tries, h.due_at,
           h.tokens, s.attempts, s.code, s.is_sent,
           s.is_sent and h.sent_at is null as is_new,
           s.retry_at,
           case when s.retries and s.retry_at < coalesce((by_id -> h.id::text ->> 'expires_at')::timestamptz,
                                                         'infinity') then 'pending'
                when s.is_sent or h.sent_at is not null then 'sent' else 'failed' end as next_status
      from held h
     cross join lateral (
       select bool_or(t.value ->> 'outcome' = 'sent') as is_sent, bool_or(t.value ->> 'outcome' = 'retry') as retries,
              internal.push_retry_at(h.tries, max((t.value ->> 'retry_after')::numeric)) as retry_at,
              jsonb_agg(t.value - 'is_dead' - 'retry_after' || jsonb_build_object('n', h.tries, 'at',
                                        internal.iso(at))) as attempts,
              (array_agg(t.value ->> 'code' order by t.value ->> 'outcome' = 'sent'))[1] as code
         from jsonb_array_elements(h.tokens) t) s
     where h.status = 'sending'
  ), answered as materialized (
    select d.campaign_id, d.due_at, t.value as token, t.value ->> 'provider' as provider,
           t.value ->> 'outcome' as outcome
      from decided d
     cross join lateral jsonb_array_elements(d.tokens) t
  ), moved as (
    update app.campaign_deliveries d
       set status = case when n.next_status = 'sent' and d.converted_at is not null then 'converted'
                         when n.next_status = 'sent' and d.opened_at is not null then 'opened' else n.next_status end,
           attempts = d.attempts || n.attempts,
           code = case when n.next_status = 'failed' then n.code end,
           sent_at = coalesce(d.sent_at, case when n.is_sent then at end),
           -- the lease is over: what stays is when the delivery was claimed
           due_at = case when n.next_status = 'pending' then n.retry_at else d.due_at - internal.push_lease() end
      from decided n
     where d.id = n.id and d.id = any (ids)
  ), dead as (
    update app.push_tokens p
       set is_active = false, updated_at = at
      from (select distinct (a.token ->> 'push_token_id')::uuid as push_token_id,
            a.due_at - internal.push_lease() as claimed_at
              from answered a where (a.token ->> 'is_dead')::boolean) x
     -- a device that registered again meanwhile lives
     where p.id = x.push_token_id and p.is_active and p.updated_at <= x.claimed_at
  )
  select (select json_agg(g) from (select n.source_id, n.variant,
                                   count(*) filter (where n.next_status = 'sent') as sent,
                                          count(*) filter (where n.next_status = 'failed') as failed
                                     from decided n where n.next_status <> 'pending' group by 1, 2) g) as counts,
         (select json_agg(b) from (select a.provider, count(*) as n,
                                   count(*) filter (where a.outcome = 'retry') as failures,
                                          max((a.token ->> 'retry_after')::numeric) filter (
                                            where a.outcome = 'retry') as retry_after
                                     from answered a where a.provider <> 'log' group by 1 order by 1) b) as providers,
         (select jsonb_agg(distinct jsonb_build_object('id', a.campaign_id, 'code', a.token ->> 'code'))
            from answered a where a.outcome = 'refused' and a.campaign_id is not null) as refused,
         (select count(*) from decided n where n.is_new) as sent
    into ended;
  perform internal.campaign_count(g.source_id, g.variant, sent => g.sent, failed => g.failed)
     from json_to_recordset(ended.counts) as g (source_id uuid, variant text, sent bigint, failed bigint);
  if ended.sent > 0 then
    perform internal.usage_add(internal.utc_day(at), 'push_sent', ended.sent);
  end if;
  perform internal.push_breaker_count(b.provider, b.n, b.failures, b.retry_after)
     from json_to_recordset(ended.providers) as b (provider text, n int, failures int, retry_after numeric);
  perform internal.campaign_fail((r.value ->> 'id')::uuid, r.value ->> 'code')
    from jsonb_array_elements(ended.refused) r;
  return internal.reply(200, json_build_object('recorded', (select count(*)
                                                              from jsonb_array_elements(push_record.results))));
end $$;
comment on function api.push_record is
  'For the worker: records what providers answered, [{id, attempt_id, expires_at, tokens: [{push_token_id, provider,
   outcome, code, status, is_dead, retry_after}]}]: sent, failed, retry (by internal.push_retry_at; failed where that is
   never, or not before expires_at), or refused, when the credentials are: then the campaign has failed. Dead devices
   are switched off. Outcomes of an attempt whose lease has ended are ignored. Locks users, deliveries, devices.';

create or replace function api.push_providers() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(json_build_object('provider', i.provider,
                                                                 'config_sealed', i.config_sealed) order by i.provider),
                                                                   '[]'))
    from app.integrations i
   where i.provider in ('apns', 'fcm') and i.is_active
$$;
comment on function api.push_providers is 'For the worker: the connected push providers with their sealed configs.';

create or replace function internal.push_deliver(user_ids uuid[], message jsonb, is_test boolean, keeps_inbox boolean,
                                                 is_production boolean)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  m constant jsonb := push_deliver.message;
  users uuid[];
  made uuid[];
begin
  perform internal.check_caller('developer', 'messages are sent by administrators');
  select array_agg(u.id order by o.n) into users
    from (select distinct on (i.id) i.id, i.n from unnest(push_deliver.user_ids) with ordinality as i (id, n)
           order by i.id, i.n) o
    join app.users u on u.id = o.id;
  if coalesce(cardinality(users), 0) < (select count(distinct i) from unnest(push_deliver.user_ids) i) then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user: ' || (
      select i from unnest(push_deliver.user_ids) i where i <> all (coalesce(users, '{}')) limit 1) || '.');
  end if;
  perform internal.push_configured_check(push_deliver.is_production, array(
    select distinct p.platform from app.push_tokens p where p.app_user_id = any (users) and p.is_active));
  perform internal.push_categories_note(array[m]);
  with sent as (
    insert into app.campaign_deliveries (queue_id, channel, app_user_id, message, is_test, inbox, due_at)
    select '00000000-0000-0000-0000-000000000000', 'push', i.id, m, push_deliver.is_test, push_deliver.keeps_inbox,
           internal.now()
      from unnest(users) with ordinality as i (id, n) order by i.n
    returning id
  )
  select array_agg(s.id order by s.id) into made from sent s;
  perform internal.enqueue('push__direct');
  perform internal.audit('push.send', 'push_deliveries', null,
                         json_build_object('users', json_build_array(null, cardinality(users))), 202);
  return json_build_object('delivery_ids', made);
end $$;
comment on function internal.push_deliver is
  'Sends a message to users now: {delivery_ids}, in the order of the users. Refuses 404 USER_NOT_FOUND, 400
   PUSH_NOT_CONFIGURED. A test ignores what users have switched off.';

create or replace function api.push_send(user_ids json, message jsonb, is_production boolean,
                                         inbox boolean default true, idempotency_key text default null,
                                         body_hash text default null)
returns api.reply
language plpgsql volatile as $$
declare
  answer api.reply := internal.idempotency_begin('push/send', push_send.idempotency_key, push_send.body_hash);
begin
  if answer.status is not null then
    return answer;
  end if;
  answer := internal.reply(202, internal.push_deliver(array(select u::uuid
                                                              from json_array_elements_text(push_send.user_ids) u),
                                                                push_send.message, false, push_send.inbox,
                                                                  push_send.is_production));
  perform internal.idempotency_end('push/send', push_send.idempotency_key, answer);
  return answer;
end $$;
comment on function api.push_send is
  'Sends a message to up to 100 users, 202 {delivery_ids}. Refuses 404 USER_NOT_FOUND, 400 PUSH_NOT_CONFIGURED,
   VALIDATION_ERROR, 409 IDEMPOTENCY_CONFLICT.';
