-- Refunds by administrators: the price goes back, and what was given is taken, or nothing happens.
create or replace function internal.purchase_locked(purchase_id uuid) returns app.purchases
language plpgsql volatile security definer set search_path = '' as $$
declare
  bought app.purchases;
begin
  -- again where a merge has moved it while the lock was waited for: the user before is gone then
  loop
    select p.* into bought from app.purchases p where p.id = purchase_locked.purchase_id;
    perform internal.check_found(found, 'purchase');
    perform internal.lock_users(array[bought.app_user_id]);
    select p.* into bought
      from app.purchases p
     where p.id = bought.id and p.app_user_id = bought.app_user_id
       for no key update;
    exit when found;
  end loop;
  return bought;
end $$;
comment on function internal.purchase_locked is
  'A purchase, after its user is locked. Refuses 404 NOT_FOUND. Granted to nobody.';

create or replace function internal.purchase_booked(bought app.purchases, code text, is_debit boolean)
returns app.currency_transactions
language sql stable security definer set search_path = '' as $$
  select t.*
    from app.currency_transactions t
   where t.app_user_id = (purchase_booked.bought).app_user_id and t.source_type = 'purchase'
     and t.source_id in ((purchase_booked.bought).id::text, (purchase_booked.bought).id || ':pack')
     and t.currency_code = purchase_booked.code and (t.amount < 0) = purchase_booked.is_debit
$$;
comment on function internal.purchase_booked is
  'The row of the ledger in which a purchase was debited, or a pack credited; null where a merge has left it behind.
   Granted to nobody.';

create or replace function internal.is_reversed(t app.currency_transactions) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.currency_transactions r
                  where (r.app_user_id, r.source_type, r.source_id, r.currency_code)
                          = ((is_reversed.t).app_user_id, 'refund', (is_reversed.t).id::text,
                             (is_reversed.t).currency_code))
$$;
comment on function internal.is_reversed is 'Whether a row of the ledger has been reversed. Granted to nobody.';

create or replace function internal.purchase_held(bought app.purchases)
returns table (item app.catalog_items, c app.currencies, due bigint, held bigint, stack_id uuid)
language sql stable security definer set search_path = '' as $$
  select i, null::app.currencies, (g.value ->> 'quantity')::bigint,
         internal.inventory_quantity((purchase_held.bought).app_user_id, i.id),
         ((purchase_held.bought).receipt -> 'stacks' ->> i.id::text)::uuid
    from jsonb_array_elements((purchase_held.bought).granted) with ordinality g (value, n)
    join app.catalog_items i on i.id = (g.value ->> 'catalog_item_id')::uuid and i.item_type <> 'currency_pack'
   union all
  select null, k, e.value::bigint,
         (internal.currency_current(k, (purchase_held.bought).app_user_id)).balance, null
    from jsonb_each_text((purchase_held.bought).receipt -> 'credits') e
    join app.currencies k on k.code = e.key
   where internal.is_reversed(internal.purchase_booked(purchase_held.bought, k.code, false)) is not true
$$;
comment on function internal.purchase_held is
  'What a refund takes: items, and the currencies of packs unless an administrator has reversed these; due, and what the
   user has of it now. Granted to nobody.';

create or replace function internal.purchase_revoke(bought app.purchases, is_forced boolean) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  missing json;
  part record;
  taken bigint;
  booked app.currency_transactions;
begin
  select json_agg(json_build_object('key', coalesce((h.item).key, (h.c).code), 'quantity', h.due - h.held))
    into missing
    from internal.purchase_held(purchase_revoke.bought) h
   where h.held < h.due;
  if missing is not null and not purchase_revoke.is_forced then
    perform internal.store_refuse('ITEMS_CONSUMED', 'The user does not have all that the purchase gave.',
                                  json_build_object('missing', missing));
  end if;
  for part in
    select h.* from internal.purchase_held(purchase_revoke.bought) h order by (h.c).code collate "C"
  loop
    taken := least(part.due, part.held);
    continue when taken <= 0;
    if (part.item).id is not null then
      perform internal.inventory_remove((purchase_revoke.bought).app_user_id, part.item, taken, 'revoked', 'refund',
                                        'refund', (purchase_revoke.bought).id::text, part.stack_id);
    else
      booked := internal.purchase_booked(purchase_revoke.bought, (part.c).code, false);
      perform internal.currency_apply((purchase_revoke.bought).app_user_id, part.c, -taken, 'refund', 'refund',
                                      -- that of the row that it reverses, so that nobody reverses it again
                                      coalesce(booked.id::text, (purchase_revoke.bought).id || ':pack'));
    end if;
  end loop;
end $$;
comment on function internal.purchase_revoke is
  'Takes what a purchase gave: from the stack that it went to, then from those of the item that expire soonest; with
   is_forced what is there. Refuses 409 ITEMS_CONSUMED {missing}. Granted to nobody.';

create or replace function internal.purchase_repay(bought app.purchases) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  booked app.currency_transactions;
begin
  if (purchase_repay.bought).total_price = 0 then
    return;
  end if;
  booked := internal.purchase_booked(purchase_repay.bought, (purchase_repay.bought).currency_code, true);
  if booked.id is null then
    -- a merge has left the row behind
    perform internal.currency_apply((purchase_repay.bought).app_user_id, c, (purchase_repay.bought).total_price,
                                    'refund', 'refund', (purchase_repay.bought).id::text)
       from app.currencies c where c.code = (purchase_repay.bought).currency_code;
  elsif not internal.is_reversed(booked) then
    perform internal.currency_undo(booked);
  end if;
end $$;
comment on function internal.purchase_repay is
  'Gives the price of a purchase back, once: not when an administrator has reversed its debit. Credits that expire come
   back with the lifetime that they had left. Refuses 409 BALANCE_LIMIT_EXCEEDED. Granted to nobody.';

create or replace function api.purchase_refund(purchase_id uuid, revoke_items boolean default true,
                                               force boolean default false, reason text default null,
                                               idempotency_key text default null, body_hash text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  route constant text := 'POST purchases/' || purchase_refund.purchase_id || '/refund';
  bought app.purchases;
  since uuid;
  answer api.reply;
begin
  perform internal.check_caller('developer', 'purchases are refunded by administrators');
  bought := internal.purchase_locked(purchase_refund.purchase_id);
  since := internal.new_id();
  answer := internal.ledger_stored_reply(bought.app_user_id, route, purchase_refund.idempotency_key,
                                         purchase_refund.body_hash);
  if answer is not null then
    return answer;
  elsif bought.status = 'refunded' then
    perform internal.store_refuse('ALREADY_REFUNDED', 'The purchase has been refunded already.');
  end if;
  if purchase_refund.revoke_items then
    perform internal.purchase_revoke(bought, purchase_refund.force);
  end if;
  perform internal.purchase_repay(bought);
  update app.purchases p set status = 'refunded', refunded_at = internal.now() where p.id = bought.id
    returning p.* into bought;
  perform internal.store_told('refunded', bought, s.key, o.key, i.key)
     from app.store_offers o
     join app.stores s on s.id = o.store_id
     join app.catalog_items i on i.id = o.catalog_item_id
    where o.id = bought.offer_id;
  perform internal.store_sales_add(bought.offer_id, bought.app_user_id, -bought.quantity);
  perform internal.audit('stores.refund', 'purchases', bought.id::text, json_build_object(
    'status', json_build_array('completed', 'refunded'),
    'app_user_id', json_build_array(null, bought.app_user_id),
    'revoke_items', json_build_array(null, purchase_refund.revoke_items),
    'force', json_build_array(null, purchase_refund.force),
    'reason', json_build_array(null, purchase_refund.reason)));
  return internal.ledger_store_reply(bought.app_user_id, route, purchase_refund.idempotency_key,
                                     purchase_refund.body_hash, internal.reply(200, json_build_object(
    'purchase', internal.purchase_json(bought), 'balances', internal.store_balances(bought.app_user_id, since))));
end $$;
comment on function api.purchase_refund is
  'Refunds a purchase once, audited as stores.refund: {purchase, balances}. Refuses 404 NOT_FOUND, 409 ALREADY_REFUNDED,
   ITEMS_CONSUMED, BALANCE_LIMIT_EXCEEDED, IDEMPOTENCY_CONFLICT. Locks the user.';
