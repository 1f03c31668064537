-- Merges of users, and retention.
create or replace function internal.push_delivery_rank(status text) returns int
language sql immutable parallel safe
return coalesce(array_position('{pending,sending,sent,opened,converted}', push_delivery_rank.status), 0);
comment on function internal.push_delivery_rank is 'How far a delivery has come: 0 for one that was skipped or has failed. Granted to nobody.';

create or replace function internal.merge__push_deliveries(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  doomed uuid[];
  ended record;
  moved int;
begin
  -- of a campaign that both get, the delivery that has come further stays, of two alike one whose mail is on its way, else the survivor's: nobody gets it a
  -- second time
  doomed := array(
    select case when (internal.push_delivery_rank(o.status), internal.email_is_attempted(o.id))
                     > (internal.push_delivery_rank(s.status), internal.email_is_attempted(s.id)) then s.id else o.id end
      from app.push_deliveries o
      join app.push_deliveries s on s.campaign_id = o.campaign_id and s.app_user_id = merge__push_deliveries.survivor
     where o.app_user_id = merge__push_deliveries.other);
  perform internal.email_deliveries_drop(doomed);
  -- what was not over ends here, so that the outcomes of a campaign add up to its audience
  for ended in
    with gone as (
      delete from app.push_deliveries d where d.id = any (doomed) returning d.campaign_id, d.variant, d.status, d.sent_at
    )
    select g.campaign_id, g.variant, count(*) filter (where g.sent_at is not null) as sent,
           count(*) filter (where g.sent_at is null and g.status = 'pending') as skipped,
           count(*) filter (where g.sent_at is null and g.status = 'sending') as failed
      from gone g
     where g.status in ('pending', 'sending')
     group by 1, 2
     order by 1, 2
  loop
    perform internal.push_count(ended.campaign_id, ended.variant, sent => ended.sent, skipped => ended.skipped, failed => ended.failed);
  end loop;
  update app.push_deliveries d set app_user_id = merge__push_deliveries.survivor where d.app_user_id = merge__push_deliveries.other;
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__push_deliveries is 'Gives the deliveries of one user to another, one for each campaign; a message of mail that waits for one that goes is cancelled. One that goes before it is over counts
   as skipped, or as failed where its outcome is not known. Granted to nobody.';

create or replace function internal.merge__push_inbox_items(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
begin
  update app.push_inbox_items i set app_user_id = merge__push_inbox_items.survivor where i.app_user_id = merge__push_inbox_items.other;
  get diagnostics moved = row_count;
  delete from app.push_inbox_items i
   where i.id in (select x.id from app.push_inbox_items x where x.app_user_id = merge__push_inbox_items.survivor
                   order by x.created_at desc, x.id desc offset 500);
  return moved;
end $$;
comment on function internal.merge__push_inbox_items is 'Unites two inboxes; the newest 500 items stay. Granted to nobody.';

create or replace function internal.purge__push(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select greatest(
    internal.purge_rows('app.push_deliveries',
                        't.created_at < internal.now() - interval ''90 days'' and t.status not in (''pending'', ''sending'')', purge__push.most),
    internal.purge_rows('app.push_inbox_items', 't.expires_at < internal.now()', purge__push.most))
$$;
comment on function internal.purge__push is 'Daily: deliveries that are over after 90 days, and items of inboxes that have expired.';
