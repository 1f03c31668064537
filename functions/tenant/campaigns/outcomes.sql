-- What becomes of deliveries: channels call these functions, which keep the counts of campaigns. Each expects that its
-- caller has locked the user of a delivery.
create or replace function internal.campaign_move_deliveries(ids uuid[], statuses text[], details text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  ended record;
begin
  for ended in
    with moved as (
      update app.campaign_deliveries d
         set status = o.status, tries = d.tries + 1,
             reason = case o.status when 'skipped' then o.detail end,
             code = case o.status when 'failed' then o.detail end,
             sent_at = case o.status when 'sent' then internal.now() else d.sent_at end
        from unnest(campaign_move_deliveries.ids, campaign_move_deliveries.statuses,
                    campaign_move_deliveries.details) o (id, status, detail)
       where d.id = o.id
      returning d.campaign_id, d.variant, d.status
    )
    select m.campaign_id, m.variant, count(*) filter (where m.status = 'sent') as sent,
           count(*) filter (where m.status = 'skipped') as skipped,
           count(*) filter (where m.status = 'failed') as failed
      from moved m
     where m.campaign_id is not null and m.status <> 'sending'
     group by 1, 2
     order by 1, 2
  loop
    perform internal.campaign_count(ended.campaign_id, ended.variant, sent => ended.sent, skipped => ended.skipped,
                                    failed => ended.failed);
  end loop;
end $$;
comment on function internal.campaign_move_deliveries is
  'Writes what has become of deliveries, and counts it: sent, sending (the channel will say), skipped with a reason, or
   failed with a code. Granted to nobody.';

create or replace function internal.campaign_is_over(delivery_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select from app.campaign_deliveries d join app.campaigns c on c.id = d.campaign_id
     where d.id = campaign_is_over.delivery_id and (c.is_deleted or c.status in ('cancelled', 'failed')))
$$;
comment on function internal.campaign_is_over is
  'Whether the campaign of a delivery was cancelled or deleted, or has failed: then its message is not tried again.
   Granted to nobody.';

create or replace function internal.campaign_delivery_ended(delivery_id uuid, status text, detail text,
                                                            sent_at timestamptz)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  next_status constant text := campaign_delivery_ended.status;
  d app.campaign_deliveries;
begin
  update app.campaign_deliveries e
     set status = case when next_status = 'sent' and e.converted_at is not null then 'converted'
                       when next_status = 'sent' and e.opened_at is not null then 'opened' else next_status end,
         reason = case when next_status = 'skipped' then campaign_delivery_ended.detail end,
         code = case when next_status = 'failed' then campaign_delivery_ended.detail end,
         sent_at = coalesce(e.sent_at, campaign_delivery_ended.sent_at)
   where e.id = campaign_delivery_ended.delivery_id and e.status = 'sending'
  returning e.* into d;
  if d.campaign_id is null then
    return;
  end if;
  perform internal.campaign_count(d.campaign_id, d.variant, sent => (next_status = 'sent')::int,
                                  failed => (next_status = 'failed')::int,
                                  skipped => (next_status = 'skipped')::int);
  -- the last one ends the campaign. Where two are the last at the same time, the campaign looks for itself within ten
  -- seconds
  if not exists (select from app.campaign_deliveries o
                  where o.queue_id = d.queue_id and o.status in ('pending', 'sending')) then
    perform internal.campaign_wake(c) from app.campaigns c where c.id = d.campaign_id;
  end if;
end $$;
comment on function internal.campaign_delivery_ended is
  'For channels that write outcomes later: what has become of a delivery that was sending. The last one queues the end
   of the campaign. The caller has locked the user. Granted to nobody.';

create or replace function internal.campaign_delivery_opened(delivery_id uuid, opens boolean default true,
                                                             clicks boolean default false)
returns app.campaign_deliveries
language plpgsql volatile security definer set search_path = '' as $$
declare
  had_failed boolean;
  d app.campaign_deliveries;
begin
  select e.status = 'failed' into had_failed from app.campaign_deliveries e
   where e.id = campaign_delivery_opened.delivery_id for no key update;
  if not found then
    return null;
  end if;
  update app.campaign_deliveries e
     set opened_at = coalesce(e.opened_at, internal.now()),
         clicked_at = case when campaign_delivery_opened.clicks then coalesce(e.clicked_at, internal.now())
                           else e.clicked_at end,
         -- an outcome that was unknown is known now
         sent_at = case when had_failed then coalesce(e.sent_at, internal.now()) else e.sent_at end,
         code = case when had_failed then null else e.code end,
         status = case when e.status in ('sent', 'failed') then 'opened' else e.status end
   where e.id = campaign_delivery_opened.delivery_id
  returning e.* into d;
  perform internal.campaign_count(coalesce(d.campaign_id, d.automation_id), d.variant,
                                  opened => campaign_delivery_opened.opens::int,
                                  clicked => campaign_delivery_opened.clicks::int, sent => had_failed::int,
                                  failed => -had_failed::int);
  return d;
end $$;
comment on function internal.campaign_delivery_opened is
  'A user has opened a message, or followed a link of it: the delivery as it is then, null where there is none. opens
   and clicks say what is counted, which is the first of each. Granted to nobody.';

create or replace function internal.campaign_delivery_failed(delivery_id uuid, code text) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  d app.campaign_deliveries;
begin
  update app.campaign_deliveries e
     set status = 'failed', code = campaign_delivery_failed.code
   where e.id = campaign_delivery_failed.delivery_id and e.status = 'sent'
  returning e.* into d;
  perform internal.campaign_count(d.campaign_id, d.variant, sent => -1, failed => 1);
end $$;
comment on function internal.campaign_delivery_failed is
  'A message that was sent has come back: its delivery has failed, unless it was opened before. Granted to nobody.';
