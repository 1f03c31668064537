-- Stacks expire by the clock, without a write. The task emits the event of each expiry exactly once, dated at the
-- expiry, whenever it runs.
create or replace function api.inventory_expire(batch int) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  locked_users uuid[];
  news record;
begin
  perform internal.check_caller('worker', 'what expires is told by workers');
  locked_users := internal.lock_users(array(
    select distinct d.app_user_id
      from (select s.app_user_id from app.inventory_stacks s
             where s.expires_at <= internal.now() and s.expired_at is null and s.quantity > 0
             order by s.expires_at, s.id limit inventory_expire.batch) d));
  -- read again: the transaction that held the user's lock may have emitted it, or consumed the stack, meanwhile
  with told as (
    update app.inventory_stacks s
       set expired_at = internal.now()
      from app.catalog_items i
     where i.id = s.catalog_item_id and s.app_user_id = any (locked_users)
       and s.expires_at <= internal.now() and s.expired_at is null and s.quantity > 0
    returning s.id, s.app_user_id, s.expires_at, s.quantity, i.key
  )
  select array_agg(t.app_user_id order by t.expires_at, t.id) as users,
         array_agg('svc.inventory.expired'::text) as names,
         array_agg(jsonb_build_object('catalog_item_key', t.key, 'quantity', t.quantity, 'expires_at',
                                      internal.iso(t.expires_at)) order by t.expires_at, t.id)
           as properties,
         array_agg(t.expires_at order by t.expires_at, t.id) as times
    into news
    from told t;
  perform internal.emit_many(news.users, news.names, news.properties, news.times);
  return internal.reply(200, json_build_object(
    'is_over', not exists (select from app.inventory_stacks s
                            where s.expires_at <= internal.now() and s.expired_at is null and s.quantity > 0),
    'next_at', internal.iso((select min(s.expires_at) from app.inventory_stacks s
                              where s.expires_at is not null and s.expired_at is null and s.quantity > 0))));
end $$;
comment on function api.inventory_expire is
  'For the task inventory__expire: emits svc.inventory.expired for expired stacks of some users, each once, dated at its
   expiry. Returns whether all were done, and when the next stack expires. Locks the users.';

create or replace function internal.tg_inventory_stacks__expire() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.enqueue('inventory__expire', due_at => new.expires_at);
  return null;
end $$;
comment on function internal.tg_inventory_stacks__expire is
  'Queues the expiry event of a stack that has an end and a remaining quantity.';

create or replace trigger tg_inventory_stacks__expire
  after insert or update of quantity, expires_at on app.inventory_stacks
  for each row when (new.expires_at is not null and new.expired_at is null and new.quantity > 0)
  execute function internal.tg_inventory_stacks__expire();
