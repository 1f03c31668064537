-- Opens and clicks of messages with track: what the server calls when a picture is fetched or a link followed. Both are
-- claims of a mail client: proxies fetch pictures that nobody looks at, and scanners follow links.
create or replace function api.email_track(message_id uuid, url text default null) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_click constant boolean := email_track.url is not null;
  m app.email_messages;
  d app.campaign_deliveries;
  is_new_link boolean;
begin
  perform internal.check_caller('worker', 'opens and clicks are recorded by the server');
  select e.* into m from app.email_messages e where e.id = email_track.message_id and e.track;
  -- most calls repeat what is known: they write nothing and wait for nobody
  if m.id is null or m.opened_at is not null and not is_click then
    return internal.reply(200, to_json(m.id is not null));
  end if;
  perform internal.lock_users(array[m.app_user_id]) where m.app_user_id is not null;
  select e.* into m from app.email_messages e where e.id = m.id for update;
  if m.id is null then
    return internal.reply(200, 'false');
  end if;
  is_new_link := is_click
    and (select count(*) from jsonb_array_elements(m.events) e where e.value ->> 'type' = 'clicked') < 20
    and not exists (select from jsonb_array_elements(m.events) e
                     where e.value ->> 'type' = 'clicked' and e.value ->> 'detail' = left(email_track.url, 500));
  if m.opened_at is not null and not is_new_link and (not is_click or m.clicked_at is not null) then
    return internal.reply(200, 'true');
  end if;
  update app.email_messages e
     set opened_at = coalesce(e.opened_at, internal.now()),
         clicked_at = case when is_click then coalesce(e.clicked_at, internal.now()) end,
         -- an outcome that was unknown is known now
         status = case when m.status = 'failed' then 'sent' else e.status end,
         sent_at = case when m.status = 'failed' then coalesce(e.sent_at, internal.now()) else e.sent_at end,
         events = e.events || case when m.opened_at is null then internal.email_event('opened') else '[]' end
                  || case when is_new_link then internal.email_event('clicked', email_track.url) else '[]' end,
         updated_at = internal.now()
   where e.id = m.id;
  d := internal.campaign_delivery_opened(m.delivery_id, m.opened_at is null, is_click and m.clicked_at is null);
  if m.opened_at is null then
    perform internal.emit(m.app_user_id, 'svc.email.opened',
                          jsonb_build_object('message_id', m.id, 'campaign_id', d.campaign_id, 'variant', d.variant))
      where m.app_user_id is not null;
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.email_track is
  'For the server, which has read the link: notes that a message was opened or, with url, that a link of it was
   followed, which opens it too; the first time of each counts, and the first opening emits svc.email.opened. Up to 20
   links are kept in its events. False for a message that is gone or is not tracked. Locks the user, the message, the
   delivery.';
