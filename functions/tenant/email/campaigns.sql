-- Mail as a channel of campaigns: docs/campaigns.md says what each function is. A claim turns due deliveries into
-- messages, each in the transaction that moves its delivery to sending; the message then takes the path of every other,
-- and its outcome ends the delivery. Locks: users, messages, deliveries.
create or replace function internal.campaign_content__email(c app.campaigns) returns json
language sql immutable as $$
  select json_build_object(
    'template_key', m ->> 'template_key', 'category', m ->> 'category', 'variables', coalesce(m -> 'variables', '{}'),
      'from', m ->> 'from',
    'reply_to', m ->> 'reply_to', 'track', coalesce((m ->> 'track')::boolean, false),
    'variants', (select coalesce(json_agg(json_build_object('key', v.value -> 'key', 'weight', v.value -> 'weight',
                                                            'template_key', v.value -> 'message' -> 'template_key')
                                                              order by v.n), '[]')
                   from jsonb_array_elements((campaign_content__email.c).variants) with ordinality v (value, n)))
    from (select (campaign_content__email.c).message) m (m)
$$;
comment on function internal.campaign_content__email is 'What a campaign of mail sends, as responses show it.';

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
    perform internal.invalid(email_campaign_template.field,
                             'must be a template of a category that users can unsubscribe from');
  end if;
  return jsonb_build_object('template_key', email_campaign_template.key, 'category', picked);
end $$;
comment on function internal.email_campaign_template is
  'A template as campaigns name it: {template_key, category}. Refuses 400 VALIDATION_ERROR for one that is not there,
   and for a transactional one. Locks the template against deletion. Granted to nobody.';

create or replace function internal.campaign_patched__email(c app.campaigns, patch jsonb) returns app.campaigns
language plpgsql volatile security definer set search_path = '' as $$
declare
  p constant jsonb := campaign_patched__email.patch;
begin
  c.message := jsonb_strip_nulls(
    coalesce(c.message, '{"track": false}')
    || (select coalesce(jsonb_object_agg(e.key, e.value), '{}') from jsonb_each(p) e
         where e.key in ('template_key', 'variables', 'from', 'reply_to', 'track')));
  c.message := c.message || internal.email_campaign_template('template_key', c.message ->> 'template_key');
  c.variants := (
    select coalesce(jsonb_agg(jsonb_build_object('key', v.value -> 'key', 'weight', v.value -> 'weight', 'message',
                      internal.email_campaign_template(format('variants.%s.template_key', v.n - 1),
                        coalesce(v.value ->> 'template_key', v.value -> 'message' ->> 'template_key'))) order by v.n),
                        '[]')
      from jsonb_array_elements(coalesce(p -> 'variants', c.variants, '[]')) with ordinality v (value, n));
  c.inbox := false;
  return c;
end $$;
comment on function internal.campaign_patched__email is
  'A campaign of mail with the content of a request, and its templates'' categories as they are now. Refuses 400
   VALIDATION_ERROR. Locks the templates against deletion. Granted to nobody.';

create or replace function internal.email_template_before_delete(doomed app.email_templates) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a campaign that is just naming it waits for this lock, and then does not find it
  perform from app.email_templates t where t.id = (email_template_before_delete.doomed).id for update;
  if exists (select from app.campaigns c
              where c.channel = 'email' and c.status in ('draft', 'scheduled', 'sending', 'paused') and not c.is_deleted
                and (c.message ->> 'template_key' = (email_template_before_delete.doomed).key
                     or c.variants @> jsonb_build_array(jsonb_build_object('message',
                                        jsonb_build_object('template_key',
                                                           (email_template_before_delete.doomed).key))))) then
    perform internal.fail(409, 'CONFLICT', 'A campaign that is not over names this template.', '{"field": "key"}');
  end if;
end $$;
comment on function internal.email_template_before_delete is
  'Refuses 409 CONFLICT while a campaign that is not over names the template. Locks the template.';

create or replace function internal.email_campaign_variables(properties jsonb, display_name text, variables jsonb)
returns jsonb
language sql immutable parallel safe
-- users write their own properties: what the campaign says wins
return jsonb_build_object('display_name', email_campaign_variables.display_name)
  || coalesce(email_campaign_variables.properties, '{}')
       || coalesce(email_campaign_variables.variables, '{}');
comment on function internal.email_campaign_variables is
  'The variables of a campaign''s message to a user: those of the campaign, else properties of the user, else
   display_name.';

create or replace function internal.email_campaign_queue(content jsonb, u app.users, delivery_id uuid)
returns app.email_messages
language sql volatile security definer set search_path = '' as $$
  select internal.email_queue(
    jsonb_strip_nulls(jsonb_build_object(
      'user_id', (email_campaign_queue.u).id, 'template_key', m ->> 'template_key', 'category', m ->> 'category',
        'from', m ->> 'from', 'reply_to', m ->> 'reply_to',
      'track', m -> 'track',
      'variables', internal.email_campaign_variables((email_campaign_queue.u).properties,
                                                     (email_campaign_queue.u).display_name, m -> 'variables'))),
    '{}', '', email_campaign_queue.delivery_id)
    from (select email_campaign_queue.content) c (m)
$$;
comment on function internal.email_campaign_queue is
  'Queues a campaign''s message to a user. Refuses as internal.email_queue. Granted to nobody.';

create or replace function internal.email_skip_reason(address text, category text, app_user_id uuid) returns text
language sql stable security definer set search_path = '' as $$
  select case when email_skip_reason.address is null then 'no_address'
              when internal.email_is_suppressed(email_skip_reason.address, 'transactional',
                                                email_skip_reason.app_user_id) then 'suppressed'
              when internal.email_is_suppressed(email_skip_reason.address, email_skip_reason.category,
                                                email_skip_reason.app_user_id) then 'opted_out' end
$$;
comment on function internal.email_skip_reason is
  'Why a user gets no mail of a category: no_address, suppressed (a bounce, a complaint, or by hand), opted_out; null
   where nothing speaks against it. Granted to nobody.';

create or replace function internal.campaign_reached__email(content jsonb, user_ids uuid[])
returns table (app_user_id uuid, refused text, own_quiet_hours jsonb, unreachable text)
language sql stable as $$
  select u.id, internal.email_skip_reason(u.email, campaign_reached__email.content ->> 'category', u.id), null::jsonb,
         null::text
    from app.users u
   where u.id = any (campaign_reached__email.user_ids)
$$;
comment on function internal.campaign_reached__email is
  'Who gets no mail of the category of a message: no_address, suppressed, opted_out. Granted to nobody.';

create or replace function internal.campaign_send__email(c app.campaigns, content jsonb, delivery_ids uuid[])
returns table (delivery_id uuid, status text, detail text)
language plpgsql volatile security definer set search_path = '' as $$
declare
  due record;
  queued app.email_messages;
begin
  for due in
    select d.id, u as them
      from app.campaign_deliveries d
      join app.users u on u.id = d.app_user_id
     where d.id = any (campaign_send__email.delivery_ids)
     order by d.due_at, d.id
  loop
    delivery_id := due.id;
    detail := null;
    begin
      queued := internal.email_campaign_queue(campaign_send__email.content, due.them, due.id);
      status := case queued.status when 'queued' then 'sending' else 'skipped' end;
      detail := case when status = 'skipped' then 'suppressed' end;
    exception when sqlstate 'TR000' then
      -- a template that cannot be rendered for this user fails this message, not the campaign
      get stacked diagnostics detail = pg_exception_detail;
      status := 'failed';
      detail := detail::json ->> 'code';
    end;
    return next;
  end loop;
end $$;
comment on function internal.campaign_send__email is
  'Queues the messages of some deliveries; a template that lacks a variable for a user fails the delivery, with the code
   of the refusal. Granted to nobody.';

create or replace function internal.tg_email_messages__delivery() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.campaign_delivery_ended(
    new.delivery_id, case new.status when 'sent' then 'sent' when 'failed' then 'failed' else 'skipped' end,
    case when new.status <> 'failed' then new.status when new.last_error like 'OUTCOME_UNKNOWN%' then 'OUTCOME_UNKNOWN'
         else 'NOT_ACCEPTED' end, new.sent_at);
  return null;
end $$;
comment on function internal.tg_email_messages__delivery is
  'The outcome of a campaign''s message is that of its delivery: sent, failed (OUTCOME_UNKNOWN, NOT_ACCEPTED), or
   skipped (suppressed, cancelled).';
create or replace trigger tg_email_messages__delivery
  after update of status on app.email_messages
  for each row when (new.delivery_id is not null and old.status = 'queued' and new.status <> 'queued')
  execute function internal.tg_email_messages__delivery();

create or replace function internal.campaign_cancelled__email(campaign_id uuid, most int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  ids constant uuid[] := array(
    select m.id
      from app.campaign_deliveries d
      join app.email_messages m on m.delivery_id = d.id
     where d.campaign_id = campaign_cancelled__email.campaign_id and d.status = 'sending' and m.status = 'queued'
       and coalesce(m.attempting_at, '-infinity') < internal.now() - interval '5 minutes'
     limit campaign_cancelled__email.most);
  doomed uuid;
  n int := 0;
begin
  perform internal.lock_users(array(select m.app_user_id from app.email_messages m where m.id = any (ids)));
  for doomed in
    select m.id from app.email_messages m
     where m.id = any (ids) and m.status = 'queued'
       and coalesce(m.attempting_at, '-infinity') < internal.now() - interval '5 minutes'
     order by m.id
       for update skip locked
  loop
    perform internal.email_message_end(doomed, 'cancelled');
    n := n + 1;
  end loop;
  return n;
end $$;
comment on function internal.campaign_cancelled__email is
  'Cancels messages of a campaign that no worker is sending; returns how many. What is being sent at this moment ends by
   itself. Locks users, messages, deliveries. Granted to nobody.';

create or replace function internal.campaign_in_hand__email(delivery_ids uuid[]) returns uuid[]
language sql stable security definer set search_path = '' as $$
  select array(
    select m.delivery_id from app.email_messages m
     where m.delivery_id = any (campaign_in_hand__email.delivery_ids) and m.status = 'queued'
       and m.attempting_at is not null)
$$;
comment on function internal.campaign_in_hand__email is
  'Those of some deliveries whose message a worker is sending at this moment. Granted to nobody.';

create or replace function internal.campaign_dropped__email(delivery_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  waiting uuid;
begin
  for waiting in
    select m.id from app.email_messages m
     where m.delivery_id = any (campaign_dropped__email.delivery_ids) and m.status = 'queued'
       and m.attempting_at is null
     order by m.id
       for update
  loop
    perform internal.email_message_end(waiting, 'cancelled');
  end loop;
end $$;
comment on function internal.campaign_dropped__email is
  'Cancels the messages of deliveries that are about to go, except one that a worker sends at this moment. The caller
   has locked their users. Granted to nobody.';

create or replace function internal.campaign_figures__email(user_ids uuid[], scale numeric) returns json
language sql stable as $$
  select json_build_object('addresses', round(campaign_figures__email.scale * count(u.email)))
    from app.users u where u.id = any (campaign_figures__email.user_ids)
$$;
comment on function internal.campaign_figures__email is
  'How many users have an address, for a preview: {addresses}. Granted to nobody.';

create or replace function internal.campaign_rendered__email(c app.campaigns, shown app.users) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  m constant jsonb := (campaign_rendered__email.c).message;
  reader constant app.users := campaign_rendered__email.shown;
  given constant jsonb := internal.email_campaign_variables(reader.properties, reader.display_name, m -> 'variables')
                          || jsonb_build_object('unsubscribe_url', internal.email_sample_url());
  picked record;
  subject record;
  html record;
  body record;
begin
  select * into picked from internal.email_template_pick(m ->> 'template_key', array[reader.properties ->> 'locale']);
  subject := internal.email_render(picked.subject, given, 'header');
  html := internal.email_render(picked.html, given, 'html');
  body := internal.email_render(picked.text, given, 'text');
  return json_build_object(
    'subject', subject.rendered, 'html', html.rendered, 'text', body.rendered, 'locale', picked.locale,
    'missing', array(select distinct n from unnest(subject.missing || html.missing || body.missing) n order by n));
end $$;
comment on function internal.campaign_rendered__email is
  'The message of a campaign for a user, or for one without properties, with the names of the variables that are
   missing. Refuses 400 VALIDATION_ERROR. Granted to nobody.';

create or replace function internal.campaign_test__email(c app.campaigns, user_ids uuid[], is_production boolean)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  wanted uuid;
  them app.users;
  tested uuid;
  queued app.email_messages;
  made uuid[] := '{}';
begin
  perform internal.email_rate_check();
  perform internal.lock_users(campaign_test__email.user_ids);
  for wanted in select i.id from unnest(campaign_test__email.user_ids) with ordinality i (id, n) group by i.id
    order by min(i.n) loop
    select u.* into them from app.users u where u.id = wanted;
    perform internal.check_found(found, 'user', 'USER_NOT_FOUND');
    -- a queue of its own: no worker claims it
    insert into app.campaign_deliveries (queue_id, channel, app_user_id, is_test, inbox, status, tries, due_at)
    values (internal.new_id(), 'email', them.id, true, false, 'sending', 1, internal.now())
    returning id into tested;
    queued := internal.email_campaign_queue((campaign_test__email.c).message, them, tested);
    if queued.status = 'suppressed' then
      perform internal.fail(409, 'SUPPRESSED', 'This address gets no mail of this category.');
    end if;
    made := made || tested;
  end loop;
  perform internal.email_audit(queued.id, cardinality(made));
  return json_build_object('delivery_ids', made);
end $$;
comment on function internal.campaign_test__email is
  'Queues the message of a campaign to some users now, all or none: {delivery_ids}. Refuses 404 USER_NOT_FOUND, 400
   TEMPLATE_VARIABLE_MISSING, VALIDATION_ERROR (a user without an address), 409 SUPPRESSED, 429 RATE_LIMITED. Locks the
   users. Granted to nobody.';

create or replace function internal.email_delivery_json(d app.campaign_deliveries) returns json
language sql stable as $$
  select json_build_object(
    'id', (email_delivery_json.d).id, 'campaign_id', (email_delivery_json.d).campaign_id,
      'app_user_id', (email_delivery_json.d).app_user_id,
    'message_id', (select m.id from app.email_messages m where m.delivery_id = (email_delivery_json.d).id),
    'variant', (email_delivery_json.d).variant, 'status', (email_delivery_json.d).status,
    'reason', (email_delivery_json.d).reason,
    'code', (email_delivery_json.d).code, 'due_at', internal.iso((email_delivery_json.d).due_at),
    'sent_at', internal.iso((email_delivery_json.d).sent_at),
    'opened_at', internal.iso((email_delivery_json.d).opened_at),
    'clicked_at', internal.iso((email_delivery_json.d).clicked_at),
    'converted_at', internal.iso((email_delivery_json.d).converted_at),
    'created_at', internal.iso((email_delivery_json.d).created_at))
$$;
comment on function internal.email_delivery_json is
  'A delivery of mail as administrators see it, with the id of its message.';

-- served by campaign_deliveries_once_per_campaign, or campaign_deliveries_by_status
select internal.list_declare('email_deliveries_page', null::app.campaign_deliveries, 'email_delivery_json',
                             '{app_user_id}', required => '{campaign_id}',
                             filters => '{status}', by_cursor => true);

create or replace function internal.campaign_deliveries__email(campaign_id uuid, status text, cursor text,
                                                               page_limit bigint)
returns api.reply
language sql stable as $$
  select internal.email_deliveries_page(campaign_deliveries__email.campaign_id, campaign_deliveries__email.status,
                                        campaign_deliveries__email.cursor,
                                       campaign_deliveries__email.page_limit)
$$;
comment on function internal.campaign_deliveries__email is
  'A page of the deliveries of a campaign, as the channel shows them. Refuses 400 INVALID_INPUT.';
