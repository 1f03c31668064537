-- Merges of users, and retention.
create or replace function internal.merge__push_inbox_items(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
begin
  update app.push_inbox_items i set app_user_id = merge__push_inbox_items.survivor
    where i.app_user_id = merge__push_inbox_items.other;
  get diagnostics moved = row_count;
  delete from app.push_inbox_items i
   where i.id in (select x.id from app.push_inbox_items x where x.app_user_id = merge__push_inbox_items.survivor
                   order by x.created_at desc, x.id desc offset 500);
  return moved;
end $$;
comment on function internal.merge__push_inbox_items is
  'Unites two inboxes; the newest 500 items stay. Granted to nobody.';

create or replace function internal.purge__push(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.push_inbox_items', 't.expires_at < internal.now()', purge__push.most)
$$;
comment on function internal.purge__push is 'Daily: items of inboxes that have expired.';
