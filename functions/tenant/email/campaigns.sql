-- Campaigns of mail: what they have of their own. States, plans, waves, throttles, variants and goals are those of functions/tenant/push, for rows with the
-- channel email. A claim turns due deliveries into messages, each in the transaction that moves its delivery to sending; the message then takes the path of
-- every other, and its outcome ends the delivery. Locks: the bucket "email", users, messages, deliveries.
create or replace function internal.email_campaign_content(message jsonb, variants jsonb) returns json
language sql immutable as $$
  select json_build_object(
    'template_key', m ->> 'template_key', 'category', m ->> 'category', 'variables', coalesce(m -> 'variables', '{}'), 'from', m ->> 'from',
    'reply_to', m ->> 'reply_to', 'track', coalesce((m ->> 'track')::boolean, false),
    'variants', (select coalesce(json_agg(json_build_object('key', v.value -> 'key', 'weight', v.value -> 'weight',
                                                            'template_key', v.value -> 'message' -> 'template_key') order by v.n), '[]')
                   from jsonb_array_elements(email_campaign_content.variants) with ordinality v (value, n)))
    from (select email_campaign_content.message) c (m)
$$;
comment on function internal.email_campaign_content is 'What a campaign of mail sends, as responses show it.';

create or replace function internal.email_campaign_template(field text, key text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  picked text;
begin
  -- a template that is just deleted is waited for, and then not found
  select t.category into picked from app.email_templates t where t.key = email_campaign_template.key for key share;
  if not found then
    perform internal.invalid(email_campaign_template.field, 'must be the key of a template of the project');
  elsif picked = 'transactional' then
    perform internal.invalid(email_campaign_template.field, 'must be a template of a category that users can unsubscribe from');
  end if;
  return jsonb_build_object('template_key', email_campaign_template.key, 'category', picked);
end $$;
comment on function internal.email_campaign_template is
  'A template as campaigns name it: {template_key, category}. Refuses 400 VALIDATION_ERROR for one that is not there, and for a transactional one. Locks
   the template against deletion. Granted to nobody.';

create or replace function internal.email_campaign_patched(c app.push_campaigns, patch jsonb) returns app.push_campaigns
language plpgsql volatile security definer set search_path = '' as $$
declare
  p constant jsonb := email_campaign_patched.patch;
begin
  c.message := jsonb_strip_nulls(
    coalesce(c.message, '{"track": false}')
    || (select coalesce(jsonb_object_agg(e.key, e.value), '{}') from jsonb_each(p) e
         where e.key in ('template_key', 'variables', 'from', 'reply_to', 'track')));
  c.message := c.message || internal.email_campaign_template('template_key', c.message ->> 'template_key');
  c.variants := (
    select coalesce(jsonb_agg(jsonb_build_object('key', v.value -> 'key', 'weight', v.value -> 'weight', 'message',
                      internal.email_campaign_template(format('variants.%s.template_key', v.n - 1),
                        coalesce(v.value ->> 'template_key', v.value -> 'message' ->> 'template_key'))) order by v.n), '[]')
      from jsonb_array_elements(coalesce(p -> 'variants', c.variants, '[]')) with ordinality v (value, n));
  c.inbox := false;
  return c;
end $$;
comment on function internal.email_campaign_patched is
  'A campaign of mail with the content of a request, and its templates'' categories as they are now. Refuses 400 VALIDATION_ERROR. Locks the templates against
   deletion. Granted to nobody.';

create or replace function internal.email_template_before_delete(doomed app.email_templates) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a campaign that is just naming it waits for this lock, and then does not find it
  perform from app.email_templates t where t.id = (email_template_before_delete.doomed).id for update;
  if exists (select from app.push_campaigns c
              where c.channel = 'email' and c.status in ('draft', 'scheduled', 'sending', 'paused') and not c.is_deleted
                and (c.message ->> 'template_key' = (email_template_before_delete.doomed).key
                     or c.variants @> jsonb_build_array(jsonb_build_object('message', jsonb_build_object('template_key', (email_template_before_delete.doomed).key))))) then
    perform internal.fail(409, 'CONFLICT', 'A campaign that is not over names this template.', '{"field": "key"}');
  end if;
end $$;
comment on function internal.email_template_before_delete is 'Refuses 409 CONFLICT while a campaign that is not over names the template. Locks the template.';

create or replace function internal.email_campaign_variables(properties jsonb, display_name text, variables jsonb) returns jsonb
language sql immutable parallel safe
-- users write their own properties: what the campaign says wins
return jsonb_build_object('display_name', email_campaign_variables.display_name) || coalesce(email_campaign_variables.properties, '{}')
       || coalesce(email_campaign_variables.variables, '{}');
comment on function internal.email_campaign_variables is 'The variables of a campaign''s message to a user: those of the campaign, else properties of the user, else display_name.';

create or replace function internal.email_campaign_queue(content jsonb, u app.users, delivery_id uuid) returns app.email_messages
language sql volatile security definer set search_path = '' as $$
  select internal.email_queue(
    jsonb_strip_nulls(jsonb_build_object(
      'user_id', (email_campaign_queue.u).id, 'template_key', m ->> 'template_key', 'category', m ->> 'category', 'from', m ->> 'from', 'reply_to', m ->> 'reply_to',
      'track', m -> 'track',
      'variables', internal.email_campaign_variables((email_campaign_queue.u).properties, (email_campaign_queue.u).display_name, m -> 'variables'))),
    '{}', '', email_campaign_queue.delivery_id)
    from (select email_campaign_queue.content) c (m)
$$;
comment on function internal.email_campaign_queue is 'Queues a campaign''s message to a user. Refuses as internal.email_queue. Granted to nobody.';

create or replace function internal.email_skip_reason(address text, category text, app_user_id uuid) returns text
language sql stable security definer set search_path = '' as $$
  select case when email_skip_reason.address is null then 'no_address'
              when internal.email_is_suppressed(email_skip_reason.address, 'transactional', email_skip_reason.app_user_id) then 'suppressed'
              when internal.email_is_suppressed(email_skip_reason.address, email_skip_reason.category, email_skip_reason.app_user_id) then 'opted_out' end
$$;
comment on function internal.email_skip_reason is
  'Why a user gets no mail of a category: no_address, suppressed (a bounce, a complaint, or by hand), opted_out; null where nothing speaks against it. Granted to nobody.';

create or replace function internal.email_claim_rows(c app.push_campaigns, allowed int) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  at constant timestamptz := internal.now();
  -- what waits for the mail server: with a thousand messages nothing more is rendered
  waiting constant int := (select count(*) from (select from app.push_deliveries d where d.campaign_id = c.id and d.status = 'sending' limit 1000) w);
  places constant int := least(email_claim_rows.allowed, 1000 - waiting);
  ids uuid[];
  due record;
  queued app.email_messages;
  next_status text;
  why text;
  taken int := 0;
  ended jsonb[] := '{}';
begin
  if places <= 0 then
    return '{"deliveries": [], "picked": 0, "taken": 0}';
  end if;
  -- users are locked as merges lock them: one that is just merged or deleted is passed over
  ids := array(
    select d.id
      from app.push_deliveries d
      join app.users u on u.id = d.app_user_id
     where d.queue_id = c.id and d.status = 'pending' and d.channel = 'email' and d.due_at <= at
     order by d.due_at, d.id
     limit 200
       for update of d skip locked for no key update of u skip locked);
  for due in
    select d.id, d.variant, u as them, k.content,
           case when u.is_banned then 'opted_out'
                else coalesce(internal.email_skip_reason(u.email, k.content ->> 'category', u.id),
                  case when internal.push_is_quiet(c.quiet_hours, (at at time zone coalesce(z.name, 'UTC'))::time) then 'quiet_hours'
                       when c.frequency_cap is not null
                            and (select count(*) from app.push_deliveries o
                                  where o.app_user_id = u.id and o.id <> d.id and o.channel = 'email'
                                    and (o.sent_at > at - make_interval(hours => (c.frequency_cap ->> 'hours')::int) or o.status = 'sending'))
                                >= (c.frequency_cap ->> 'max')::int
                       then 'capped' end) end as reason
      from app.push_deliveries d
      join app.users u on u.id = d.app_user_id
      left join app.timezones z on z.name = u.timezone
     cross join lateral (
       select c.message || coalesce((select e.value -> 'message' from jsonb_array_elements(c.variants) e where e.value ->> 'key' = d.variant), '{}') as content) k
     where d.id = any (ids)
     order by d.due_at, d.id
  loop
    exit when due.reason is null and taken >= places;
    next_status := 'skipped';
    why := null;
    if due.reason is null then
      begin
        queued := internal.email_campaign_queue(due.content, due.them, due.id);
        next_status := case queued.status when 'queued' then 'sending' else 'skipped' end;
      exception when sqlstate 'TR000' then
        -- a template that cannot be rendered for this user fails this message, not the campaign
        get stacked diagnostics why = pg_exception_detail;
        next_status := 'failed';
      end;
      taken := taken + 1;
    end if;
    update app.push_deliveries d
       set status = next_status, tries = d.tries + 1,
           reason = case next_status when 'skipped' then coalesce(due.reason, 'suppressed') end,
           code = case next_status when 'failed' then why::json ->> 'code' end
     where d.id = due.id;
    ended := ended || jsonb_build_object('variant', due.variant, 'status', next_status);
  end loop;
  perform internal.push_count(c.id, g.variant, skipped => g.skipped, failed => g.failed)
     from (select e ->> 'variant' as variant, count(*) filter (where e ->> 'status' = 'skipped') as skipped,
                  count(*) filter (where e ->> 'status' = 'failed') as failed
             from unnest(ended) e group by 1) g
    where g.skipped + g.failed > 0;
  return json_build_object('deliveries', '[]'::json, 'picked', cardinality(ended), 'taken', taken);
end $$;
comment on function internal.email_claim_rows is
  'Turns up to so many due deliveries of a campaign into queued messages, and skips those that must not be sent, 200 of both at most: {deliveries, picked, taken},
   deliveries being empty. A template that lacks a variable for a user fails the delivery with the code of the refusal. Granted to nobody.';

create or replace function internal.email_next_at(campaign_id uuid) returns timestamptz
language sql stable security definer set search_path = '' as $$
  select case when w.waiting >= 1000 or p.due_at is null and w.waiting > 0 then greatest(p.due_at, internal.now() + interval '10 seconds') else p.due_at end
    from (select count(*) as waiting
            from (select from app.push_deliveries d where d.campaign_id = email_next_at.campaign_id and d.status = 'sending' limit 1000) s) w
    left join lateral (
      select d.due_at from app.push_deliveries d
       where d.queue_id = email_next_at.campaign_id and d.status = 'pending' and d.channel = 'email'
       order by d.due_at limit 1) p on true
$$;
comment on function internal.email_next_at is
  'When a campaign has more to do: when the next delivery is due, or in ten seconds while messages wait for the mail server; null when nothing is left. Granted to nobody.';

create or replace function internal.tg_email_messages__delivery() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  next_status constant text := case new.status when 'sent' then 'sent' when 'failed' then 'failed' else 'skipped' end;
  d app.push_deliveries;
begin
  update app.push_deliveries e
     set status = case when next_status = 'sent' and e.converted_at is not null then 'converted'
                       when next_status = 'sent' and e.opened_at is not null then 'opened' else next_status end,
         reason = case when next_status = 'skipped' then new.status end,
         code = case when next_status = 'failed' then case when new.last_error like 'OUTCOME_UNKNOWN%' then 'OUTCOME_UNKNOWN' else 'NOT_ACCEPTED' end end,
         sent_at = coalesce(e.sent_at, new.sent_at)
   where e.id = new.delivery_id and e.status = 'sending'
  returning e.* into d;
  perform internal.push_count(d.campaign_id, d.variant, sent => (next_status = 'sent')::int, failed => (next_status = 'failed')::int,
                              skipped => (next_status = 'skipped')::int)
    where d.id is not null;
  -- the last one ends the campaign. Where two are the last at the same time, the campaign looks for itself within ten seconds
  if d.campaign_id is not null
     and not exists (select from app.push_deliveries o where o.queue_id = d.queue_id and o.status in ('pending', 'sending')) then
    perform internal.enqueue('push__send', d.campaign_id::text);
  end if;
  return null;
end $$;
comment on function internal.tg_email_messages__delivery is
  'The outcome of a campaign''s message is that of its delivery: sent, failed (OUTCOME_UNKNOWN, NOT_ACCEPTED), or skipped (suppressed, cancelled). The last one
   queues the end of the campaign.';
create or replace trigger tg_email_messages__delivery
  after update of status on app.email_messages
  for each row when (new.delivery_id is not null and old.status = 'queued' and new.status <> 'queued')
  execute function internal.tg_email_messages__delivery();

create or replace function internal.email_campaign_cancel(campaign_id uuid, most int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  ids constant uuid[] := array(
    select m.id
      from app.push_deliveries d
      join app.email_messages m on m.delivery_id = d.id
     where d.campaign_id = email_campaign_cancel.campaign_id and d.status = 'sending' and m.status = 'queued'
       and coalesce(m.attempting_at, '-infinity') < internal.now() - interval '5 minutes'
     limit email_campaign_cancel.most);
  doomed uuid;
  n int := 0;
begin
  perform internal.lock_users(array(select m.app_user_id from app.email_messages m where m.id = any (ids)));
  for doomed in
    select m.id from app.email_messages m
     where m.id = any (ids) and m.status = 'queued' and coalesce(m.attempting_at, '-infinity') < internal.now() - interval '5 minutes'
     order by m.id
       for update skip locked
  loop
    perform internal.email_message_end(doomed, 'cancelled');
    n := n + 1;
  end loop;
  return n;
end $$;
comment on function internal.email_campaign_cancel is
  'Cancels messages of a campaign that no worker is sending; returns how many. What is being sent at this moment ends by itself. Locks users, messages,
   deliveries. Granted to nobody.';

create or replace function internal.email_is_attempted(delivery_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select from app.email_messages m
     where m.delivery_id = email_is_attempted.delivery_id and m.status = 'queued' and m.attempting_at is not null)
$$;
comment on function internal.email_is_attempted is 'Whether a worker is sending the message of a delivery at this moment. Granted to nobody.';

create or replace function internal.email_deliveries_drop(delivery_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  waiting uuid;
begin
  for waiting in
    select m.id from app.email_messages m
     where m.delivery_id = any (email_deliveries_drop.delivery_ids) and m.status = 'queued' and m.attempting_at is null
     order by m.id
       for update
  loop
    perform internal.email_message_end(waiting, 'cancelled');
  end loop;
end $$;
comment on function internal.email_deliveries_drop is
  'Cancels the messages of deliveries that are about to go, except one that a worker sends at this moment. The caller has locked their users. Granted to nobody.';

create or replace function internal.email_campaign_is_over(delivery_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select from app.push_deliveries d join app.push_campaigns c on c.id = d.campaign_id
     where d.id = email_campaign_is_over.delivery_id and (c.is_deleted or c.status in ('cancelled', 'failed')))
$$;
comment on function internal.email_campaign_is_over is 'Whether the campaign of a delivery was cancelled or deleted: then its message is not tried again. Granted to nobody.';

create or replace function internal.email_preview(c app.push_campaigns, user_id uuid) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign constant app.push_campaigns := email_preview.c;
  compiled record;
  counted json;
  shown app.users;
  picked record;
  subject record;
  html record;
  body record;
  given jsonb;
begin
  select a.* into compiled from internal.push_audience_compile(campaign.audience, campaign.exclude_segment_id) a;
  execute format($query$
    with audience as materialized (%s
    ), known as (
      select i.id, u.email, coalesce(u.properties ->> 'locale', 'default') as locale,
             coalesce(internal.email_skip_reason(u.email, $6, u.id),
               case when internal.push_is_quiet($7, ($5 at time zone coalesce(z.name, 'UTC'))::time) then 'quiet'
                    when $8 is not null and (select count(*) from app.push_deliveries o
                                              where o.app_user_id = i.id and o.channel = 'email'
                                                and o.sent_at > $5 - make_interval(hours => ($8 ->> 'hours')::int)) >= ($8 ->> 'max')::int
                    then 'capped' end) as reason
        from audience i
        join app.users u on u.id = i.id
        left join app.timezones z on z.name = u.timezone
    )
    select json_build_object(
      'audience_count', count(*), 'addresses', count(k.email),
      'by_locale', (select coalesce(json_object_agg(l.locale, l.n), '{}')
                      from (select left(g.locale, 35) as locale, count(*) as n from known g group by 1 order by 2 desc, 1 limit 50) l),
      'skipped', json_build_object('no_address', count(*) filter (where k.reason = 'no_address'), 'suppressed', count(*) filter (where k.reason = 'suppressed'),
                                   'opted_out', count(*) filter (where k.reason = 'opted_out'), 'quiet', count(*) filter (where k.reason = 'quiet'),
                                   'capped', count(*) filter (where k.reason = 'capped')))
      from known k
  $query$, compiled.query)
     into counted
    using internal.segment_bind(compiled.parameters), null::uuid, null::uuid, internal.push_audience_user_ids(campaign.audience), internal.now(),
          campaign.message ->> 'category', campaign.quiet_hours, campaign.frequency_cap;
  if email_preview.user_id is not null then
    select u.* into shown from app.users u where u.id = email_preview.user_id;
    perform internal.check_found(found, 'user', 'USER_NOT_FOUND');
  end if;
  select * into picked from internal.email_template_pick(campaign.message ->> 'template_key', array[shown.properties ->> 'locale']);
  given := internal.email_campaign_variables(shown.properties, shown.display_name, campaign.message -> 'variables')
           || jsonb_build_object('unsubscribe_url', internal.email_sample_url());
  subject := internal.email_render(picked.subject, given, 'header');
  html := internal.email_render(picked.html, given, 'html');
  body := internal.email_render(picked.text, given, 'text');
  return internal.json_merge(counted, json_build_object('rendered', json_build_object(
    'subject', subject.rendered, 'html', html.rendered, 'text', body.rendered, 'locale', picked.locale,
    'missing', array(select distinct m from unnest(subject.missing || html.missing || body.missing) m order by m))));
end $$;
comment on function internal.email_preview is
  'Whom a campaign of mail would reach now: {audience_count, addresses, by_locale (50), skipped, rendered}. rendered is the message for a user, or for one without
   properties, with the names of the variables that are missing. Refuses 404 USER_NOT_FOUND, 400 VALIDATION_ERROR. Granted to nobody.';

create or replace function internal.email_campaign_test(c app.push_campaigns, user_ids uuid[]) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  wanted uuid;
  them app.users;
  tested uuid;
  queued app.email_messages;
  made uuid[] := '{}';
begin
  perform internal.push_developer_check();
  perform internal.email_rate_check();
  perform internal.lock_users(email_campaign_test.user_ids);
  for wanted in select i.id from unnest(email_campaign_test.user_ids) with ordinality i (id, n) group by i.id order by min(i.n) loop
    select u.* into them from app.users u where u.id = wanted;
    perform internal.check_found(found, 'user', 'USER_NOT_FOUND');
    -- a queue of its own: no worker claims it
    insert into app.push_deliveries (queue_id, channel, app_user_id, is_test, inbox, status, tries, due_at)
    values (internal.new_id(), 'email', them.id, true, false, 'sending', 1, internal.now())
    returning id into tested;
    queued := internal.email_campaign_queue((email_campaign_test.c).message, them, tested);
    if queued.status = 'suppressed' then
      perform internal.fail(409, 'SUPPRESSED', 'This address gets no mail of this category.');
    end if;
    made := made || tested;
  end loop;
  perform internal.email_audit(queued.id, cardinality(made));
  return json_build_object('delivery_ids', made);
end $$;
comment on function internal.email_campaign_test is
  'Queues the message of a campaign to some users now, all or none: {delivery_ids}. Refuses 404 USER_NOT_FOUND, 400 TEMPLATE_VARIABLE_MISSING, VALIDATION_ERROR (a
   user without an address), 409 SUPPRESSED, 429 RATE_LIMITED. Locks the users. Granted to nobody.';

create or replace function internal.email_delivery_json(d app.push_deliveries) returns json
language sql stable as $$
  select json_build_object(
    'id', (email_delivery_json.d).id, 'campaign_id', (email_delivery_json.d).campaign_id, 'app_user_id', (email_delivery_json.d).app_user_id,
    'message_id', (select m.id from app.email_messages m where m.delivery_id = (email_delivery_json.d).id),
    'variant', (email_delivery_json.d).variant, 'status', (email_delivery_json.d).status, 'reason', (email_delivery_json.d).reason,
    'code', (email_delivery_json.d).code, 'due_at', internal.iso((email_delivery_json.d).due_at), 'sent_at', internal.iso((email_delivery_json.d).sent_at),
    'opened_at', internal.iso((email_delivery_json.d).opened_at), 'clicked_at', internal.iso((email_delivery_json.d).clicked_at),
    'converted_at', internal.iso((email_delivery_json.d).converted_at), 'created_at', internal.iso((email_delivery_json.d).created_at))
$$;
comment on function internal.email_delivery_json is 'A delivery of mail as administrators see it, with the id of its message.';

-- served by push_deliveries_once_per_campaign, or push_deliveries_by_status
select internal.list_declare('email_deliveries_page', null::app.push_deliveries, 'email_delivery_json', '{app_user_id}', required => '{campaign_id}',
                             filters => '{status}', by_cursor => true);

create or replace function api.email_campaign_deliveries(campaign_id uuid, status text default null, cursor text default null, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.email_deliveries_page((internal.push_campaign_found(email_campaign_deliveries.campaign_id, 'email')).id, email_campaign_deliveries.status,
                                        email_campaign_deliveries.cursor, email_campaign_deliveries.page_limit)
$$;
comment on function api.email_campaign_deliveries is
  'Deliveries of a campaign of mail in the order of their users, the newest user first, by cursor and status. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';
