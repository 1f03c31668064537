-- Suppressed addresses, and what providers report of messages.
comment on constraint email_suppressions_category_is_of_unsubscribe on app.email_suppressions is
  '400 VALIDATION_ERROR category: goes with the reason unsubscribe only.';

select internal.audit_declare('app.email_suppressions', 'email');

select internal.row_declare('email_suppression_json', null::app.email_suppressions,
                            '{id,address,reason,category,created_at}');
comment on function internal.email_suppression_json is 'A suppression as responses show it.';

create or replace function internal.email_is_suppressed(address text, category text, app_user_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
           select from app.email_suppressions s
            where s.address = internal.email_normal(email_is_suppressed.address)
              and (s.reason <> 'unsubscribe'
                   or email_is_suppressed.category <> 'transactional'
                   and (s.category is null or s.category = email_is_suppressed.category)))
      or email_is_suppressed.category <> 'transactional' and exists (
           select from app.email_preferences p
            where p.app_user_id = email_is_suppressed.app_user_id
              and (p.unsubscribed_all or (p.categories -> email_is_suppressed.category) = 'false'))
$$;
comment on function internal.email_is_suppressed is
  'Whether an address gets no mail of a category: after a bounce, a complaint or by hand none at all; after an
   unsubscription, or by the user''s own preferences, none of that category. Transactional mail ignores the latter
   two.';

create or replace function api.email_suppression_put(address text, reason text default 'manual',
                                                     category text default null)
returns api.reply
language plpgsql volatile as $$
declare
  normal constant text := internal.email_normal(email_suppression_put.address);
  stored app.email_suppressions;
  is_new boolean;
begin
  if email_suppression_put.category = 'transactional' then
    perform internal.invalid('category', 'must not be transactional, which nobody can unsubscribe from');
  end if;
  insert into app.email_suppressions (address, reason, category)
  values (normal, email_suppression_put.reason, email_suppression_put.category)
  on conflict on constraint email_suppressions_once do nothing
  returning * into stored;
  is_new := stored.id is not null;
  if not is_new then
    select s.* into stored
      from app.email_suppressions s
     where s.address = normal and s.reason = email_suppression_put.reason and s.category is not distinct
       from email_suppression_put.category;
    perform internal.check_found(stored.id is not null, 'suppression');
  end if;
  return internal.reply(case when is_new then 201 else 200 end, internal.email_suppression_json(stored));
end $$;
comment on function api.email_suppression_put is
  'Suppresses an address: 201, or 200 where it is suppressed so already. Refuses 400 VALIDATION_ERROR, and 404 NOT_FOUND
   where it was deleted at the same time.';

select internal.list_declare('email_suppressions_page', null::app.email_suppressions, 'email_suppression_json',
                             '{created_at,id}', filters => '{address,reason}',
                             is_counted => true, counted_filters => '{reason}');

create or replace function api.email_suppressions(address text default null, reason text default null,
                                                  page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.email_suppressions_page(internal.email_normal(email_suppressions.address), email_suppressions.reason,
                                          email_suppressions.page_offset,
                                          email_suppressions.page_limit)
$$;
comment on function api.email_suppressions is 'Suppressions, newest first, by address and reason.';

create or replace function api.email_suppression_delete(address text) returns api.reply
language plpgsql volatile as $$
begin
  delete from app.email_suppressions s where s.address = internal.email_normal(email_suppression_delete.address);
  perform internal.check_found(found, 'suppression');
  return internal.reply_deleted();
end $$;
comment on function api.email_suppression_delete is
  'Deletes all suppressions of an address; the preferences of its user stay. Refuses 404 NOT_FOUND.';

create or replace function api.email_unsubscribe(address text, category text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  them uuid;
begin
  perform internal.check_caller('worker', 'addresses are unsubscribed by their links');
  select u.id into them from app.users u where u.email = internal.email_normal(email_unsubscribe.address);
  perform internal.lock_users(array[them]) where them is not null;
  insert into app.email_suppressions (address, reason, category)
  values (internal.email_normal(email_unsubscribe.address), 'unsubscribe', email_unsubscribe.category)
  on conflict on constraint email_suppressions_once do nothing;
  if not found then
    return internal.reply(200, 'false');
  end if;
  perform internal.emit(u.id, 'svc.email.unsubscribed', jsonb_build_object('category', email_unsubscribe.category))
    from app.users u where u.id = them;
  return internal.reply(200, 'true');
end $$;
comment on function api.email_unsubscribe is
  'For the server: unsubscribes an address from a category; false where it was. Emits svc.email.unsubscribed for the
   user whose address it is. Locks the user.';

create or replace function api.email_webhook_secret() returns api.reply
language sql stable as $$
  select internal.reply(200, (select json_build_object('config_sealed', i.config_sealed) from app.integrations i
                               where i.provider = 'smtp' and i.is_active))
$$;
comment on function api.email_webhook_secret is
  'The sealed config of the project''s mail server, with the secret of its webhook, or null.';

create or replace function api.email_provider_event(event jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  kind constant text := email_provider_event.event ->> 'type';
  is_hard constant boolean := kind = 'complaint'
    or kind = 'bounce' and coalesce(email_provider_event.event ->> 'bounce_type', 'hard') in ('hard', 'permanent');
  named constant uuid := internal.as_uuid(substring(email_provider_event.event ->> 'message_id'
                                                    from '^<?([0-9A-Fa-f-]{36})(?:@[^>]*)?>?$'));
  m app.email_messages;
  address text;
  them uuid;
begin
  perform internal.check_caller('worker', 'events of mail are recorded by the server');
  perform internal.check_rate('email webhook', 100, 1, 'A project takes at most 100 webhooks a second.');
  insert into app.email_provider_events (id)
    values (email_provider_event.event ->> 'id') on conflict on constraint email_provider_events_pkey do nothing;
  if not found then
    return internal.reply(200, json_build_object('received', true, 'is_new', false));
  end if;
  select e.* into m from app.email_messages e where e.id = named;
  -- the address of our own message, whatever the provider calls it
  address := internal.email_normal(coalesce(m.to_address, email_provider_event.event ->> 'address'));
  them := coalesce(m.app_user_id, (select u.id from app.users u where u.email = address));
  -- the user before the message, as a deletion of the user locks them
  perform internal.lock_users(array[them]) where them is not null;
  update app.email_messages e
     set status = case kind when 'delivered' then 'delivered' when 'complaint' then 'complained'
                       when 'bounce' then 'bounced' else e.status end,
         updated_at = internal.now(),
         events = e.events || internal.email_event(case kind when 'complaint' then 'complained'
                                                        when 'bounce' then 'bounced' else kind end,
                                                   email_provider_event.event ->> 'bounce_type')
   where e.id = m.id
     and (kind = 'delivered' and e.status = 'sent' or kind = 'complaint' and e.status in ('sent', 'delivered')
          or kind = 'bounce' and is_hard and e.status in ('sent', 'delivered'));
  -- what came back was not sent; what was opened before has come
  if found and kind = 'bounce' and m.delivery_id is not null then
    perform internal.campaign_delivery_failed(m.delivery_id, 'BOUNCED');
  end if;
  if is_hard and address is not null then
    insert into app.email_suppressions (address, reason)
    values (address, case kind when 'complaint' then 'complaint' else 'bounce' end)
    on conflict on constraint email_suppressions_once do nothing;
  end if;
  if kind = 'bounce' then
    perform internal.emit(u.id, 'svc.email.bounced',
                          jsonb_build_object('bounce_type',
                                             coalesce(email_provider_event.event ->> 'bounce_type', 'hard'),
                                             'message_id', m.id))
       from app.users u where u.id = them;
  end if;
  return internal.reply(200, json_build_object('received', true, 'is_new', true));
end $$;
comment on function api.email_provider_event is
  'For the server, which has checked the signature: what a mail provider reports, once for each id, {received, is_new}:
   delivered, bounce (hard unless bounce_type says otherwise) and complaint move the message, and the latter two
   suppress the address at once; a soft bounce changes no status. A delivery of a campaign has failed when its message
   bounces, with BOUNCED. Emits svc.email.bounced. More than 100 a second are 429 RATE_LIMITED. Locks the user, the
   message, the delivery.';
