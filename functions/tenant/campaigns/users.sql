-- Merges of users, and retention.
create or replace function internal.campaign_delivery_rank(status text) returns int
language sql immutable parallel safe
return coalesce(array_position('{pending,sending,sent,opened,converted}', campaign_delivery_rank.status), 0);
comment on function internal.campaign_delivery_rank is
  'How far a delivery has come: 0 for one that was skipped or has failed. Granted to nobody.';

create or replace function internal.merge__push_deliveries(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  hook record;
  in_hand uuid[] := '{}';
  pairs uuid[];
  doomed uuid[];
  ended record;
  moved int;
begin
  pairs := array(
    select d.id
      from app.campaign_deliveries o
      join app.campaign_deliveries s on s.campaign_id = o.campaign_id
        and s.app_user_id = merge__push_deliveries.survivor
     cross join lateral unnest(array[o.id, s.id]) d (id)
     where o.app_user_id = merge__push_deliveries.other);
  for hook in select h.name from internal.campaign_hooks('in_hand') h where pairs <> '{}' loop
    execute format('select $1 || internal.%I($2)', hook.name) into in_hand using in_hand, pairs;
  end loop;
  -- of a campaign that both get, the delivery that has come further stays, of two alike one that its channel is
  -- sending, else the survivor's: nobody gets it a second time
  doomed := array(
    select case when (internal.campaign_delivery_rank(o.status), o.id = any (in_hand))
                     > (internal.campaign_delivery_rank(s.status), s.id = any (in_hand)) then s.id else o.id end
      from app.campaign_deliveries o
      join app.campaign_deliveries s on s.campaign_id = o.campaign_id
        and s.app_user_id = merge__push_deliveries.survivor
     where o.app_user_id = merge__push_deliveries.other);
  for hook in select h.name from internal.campaign_hooks('dropped') h where doomed <> '{}' loop
    execute format('select internal.%I($1)', hook.name) using doomed;
  end loop;
  -- what was not over ends here, so that the outcomes of a campaign add up to its audience
  for ended in
    with gone as (
      delete from app.campaign_deliveries d where d.id = any (doomed) returning d.campaign_id, d.variant, d.status,
        d.sent_at
    )
    select g.campaign_id, g.variant, count(*) filter (where g.sent_at is not null) as sent,
           count(*) filter (where g.sent_at is null and g.status = 'pending') as skipped,
           count(*) filter (where g.sent_at is null and g.status = 'sending') as failed
      from gone g
     where g.status in ('pending', 'sending')
     group by 1, 2
     order by 1, 2
  loop
    perform internal.campaign_count(ended.campaign_id, ended.variant, sent => ended.sent, skipped => ended.skipped,
                                    failed => ended.failed);
  end loop;
  update app.campaign_deliveries d set app_user_id = merge__push_deliveries.survivor
    where d.app_user_id = merge__push_deliveries.other;
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__push_deliveries is
  'Gives the deliveries of one user to another, one for each campaign; the channels learn of those that go. One that
   goes before it is over counts as skipped, or as failed where its outcome is not known. Granted to nobody.';

create or replace function internal.purge__campaigns(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.campaign_deliveries',
                             't.created_at < internal.now() - interval ''90 days'' and t.status not in (''pending'', '
                             '''sending'')', purge__campaigns.most)
$$;
comment on function internal.purge__campaigns is 'Daily: deliveries that are over, after 90 days.';
