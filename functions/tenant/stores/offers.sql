-- Offers of stores, and their prices, by administrators.
comment on constraint store_offers_key_unique on app.store_offers is
  '409 CONFLICT key: The store has an offer with this key.';
comment on constraint store_offers_end_after_start on app.store_offers is
  '400 VALIDATION_ERROR ends_at: must be after starts_at.';
comment on constraint store_offers_catalog_item_id_fkey on app.store_offers is
  '409 ITEM_IN_USE: A store offers this item. Set is_active to false instead.';
comment on constraint store_offer_prices_currency_code_fkey on app.store_offer_prices is
  '409 CURRENCY_IN_USE: Offers have a price in this currency. Set is_active to false instead.';
comment on constraint store_offer_prices_price_0_to_2000000000 on app.store_offer_prices is
  '400 VALIDATION_ERROR prices: must have a price of 0 to 2000000000.';
comment on constraint store_offer_prices_original_price_at_most_2000000000 on app.store_offer_prices is
  '400 VALIDATION_ERROR prices: must have an original_price of at most 2000000000.';
comment on constraint store_offer_prices_original_over_price on app.store_offer_prices is
  '400 VALIDATION_ERROR prices: must have an original_price over the price, or none.';
comment on constraint purchases_offer_id_fkey on app.purchases is
  '409 OFFER_IN_USE: Users have bought this offer. Set is_active to false instead.';

create or replace function internal.store_offer_sold(offer_id uuid) returns bigint
language sql stable as $$
  select coalesce(sum(s.units), 0)::bigint from app.store_offer_sales s where s.offer_id = store_offer_sold.offer_id
$$;
comment on function internal.store_offer_sold is 'The units of an offer that are sold, without refunded ones.';

create or replace function internal.store_offer_own_prices(offer_id uuid) returns json
language sql stable as $$
  select coalesce(json_agg(json_build_object('currency_code', p.currency_code, 'price', p.price,
                                             'original_price', p.original_price) order by p.currency_code), '[]')
    from app.store_offer_prices p
   where p.offer_id = store_offer_own_prices.offer_id
$$;
comment on function internal.store_offer_own_prices is 'The prices that an offer itself has; [] for those of its item.';

-- without a subquery, so that Postgres inlines it
create or replace function internal.store_offer_row_json(o app.store_offers, item_key text, prices json,
                                                         stock_sold bigint)
returns json
language sql stable as $$
  select json_build_object(
    'id', (store_offer_row_json.o).id, 'store_id', (store_offer_row_json.o).store_id,
    'key', (store_offer_row_json.o).key,
    'catalog_item_id', (store_offer_row_json.o).catalog_item_id, 'catalog_item_key', store_offer_row_json.item_key,
    'quantity', (store_offer_row_json.o).quantity, 'prices', store_offer_row_json.prices,
    'limit_per_user', (store_offer_row_json.o).limit_per_user, 'limit_period', (store_offer_row_json.o).limit_period,
    'stock_total', (store_offer_row_json.o).stock_total, 'stock_sold', store_offer_row_json.stock_sold,
    'starts_at', internal.iso((store_offer_row_json.o).starts_at),
    'ends_at', internal.iso((store_offer_row_json.o).ends_at),
    'segment_id', (store_offer_row_json.o).segment_id, 'badge', (store_offer_row_json.o).badge,
    'sort_order', (store_offer_row_json.o).sort_order, 'is_active', (store_offer_row_json.o).is_active,
    'created_at', internal.iso((store_offer_row_json.o).created_at),
    'updated_at', internal.iso((store_offer_row_json.o).updated_at))
$$;
comment on function internal.store_offer_row_json is
  'An offer with what other tables say of it, as administrators see it.';

create or replace function internal.store_offer_json(o app.store_offers) returns json
language sql stable as $$
  select internal.store_offer_row_json(
    store_offer_json.o, (select i.key from app.catalog_items i where i.id = (store_offer_json.o).catalog_item_id),
    internal.store_offer_own_prices((store_offer_json.o).id), internal.store_offer_sold((store_offer_json.o).id))
$$;
comment on function internal.store_offer_json is 'An offer as administrators see it.';

create or replace function internal.store_offer_item(sent jsonb) returns uuid
language plpgsql volatile as $$
declare
  by_id constant boolean := store_offer_item.sent ->> 'catalog_item_id' is not null;
  item_id uuid;
begin
  if by_id = (store_offer_item.sent ->> 'catalog_item_key' is not null) then
    perform internal.invalid('catalog_item_id', 'is required, or catalog_item_key, but not both');
  end if;
  -- an item that is being deleted is waited for, and then not found
  select i.id into item_id
    from app.catalog_items i
   where case when by_id then i.id = internal.as_uuid(store_offer_item.sent ->> 'catalog_item_id')
              else i.key = store_offer_item.sent ->> 'catalog_item_key' end
     for key share;
  if item_id is null then
    perform internal.invalid(case when by_id then 'catalog_item_id' else 'catalog_item_key' end,
                             'is not an item of the catalog');
  end if;
  return item_id;
end $$;
comment on function internal.store_offer_item is
  'The item that a new offer names by id or key, held against deletion. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.store_is_amount(value jsonb) returns boolean
language sql immutable parallel safe
return coalesce(jsonb_typeof(store_is_amount.value) = 'number'
                and store_is_amount.value #>> '{}' ~ '^[0-9]{1,10}$', false);
comment on function internal.store_is_amount is 'Whether a value of a document is a whole number that a price can be.';

create or replace function internal.store_offer_prices_set(offer_id uuid, prices jsonb) returns boolean
language plpgsql volatile as $$
declare
  was constant json := internal.store_offer_own_prices(store_offer_prices_set.offer_id);
  part record;
begin
  if coalesce(jsonb_typeof(store_offer_prices_set.prices) <> 'array', true) then
    perform internal.invalid('prices', 'must be a list');
  end if;
  perform internal.catalog_currencies_hold(store_offer_prices_set.prices);
  for part in
    select p.value ->> 'currency_code' as code, p.value -> 'price' as price, p.n - 1 as place,
           nullif(p.value -> 'original_price', 'null') as original_price,
           count(*) over (partition by p.value ->> 'currency_code') as times
      from jsonb_array_elements(store_offer_prices_set.prices) with ordinality as p (value, n)
     order by p.n
  loop
    if not exists (select from app.currencies c where c.code = part.code) then
      perform internal.invalid('prices.' || part.place || '.currency_code', 'is not a currency of this project');
    elsif part.times > 1 then
      perform internal.invalid('prices', 'must name each currency once');
    -- a document of promotion may hold anything
    elsif not internal.store_is_amount(part.price) then
      perform internal.invalid('prices.' || part.place || '.price', 'must be a whole number');
    elsif part.original_price is not null and not internal.store_is_amount(part.original_price) then
      perform internal.invalid('prices.' || part.place || '.original_price', 'must be a whole number');
    end if;
  end loop;
  delete from app.store_offer_prices p
   where p.offer_id = store_offer_prices_set.offer_id
     and not exists (select from jsonb_array_elements(store_offer_prices_set.prices) w
                      where w.value ->> 'currency_code' = p.currency_code);
  insert into app.store_offer_prices as p (offer_id, currency_code, price, original_price)
  select store_offer_prices_set.offer_id, w.value ->> 'currency_code', (w.value ->> 'price')::bigint,
         (w.value ->> 'original_price')::bigint
    from jsonb_array_elements(store_offer_prices_set.prices) w
  on conflict on constraint store_offer_prices_pkey do update
     set price = excluded.price, original_price = excluded.original_price
   where (p.price, p.original_price) is distinct from (excluded.price, excluded.original_price);
  return was::text <> internal.store_offer_own_prices(store_offer_prices_set.offer_id)::text;
end $$;
comment on function internal.store_offer_prices_set is
  'Replaces the prices of an offer and says whether that changed them. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.store_offer_write(was app.store_offers, sent jsonb) returns app.store_offers
language plpgsql volatile as $$
declare
  is_new constant boolean := (store_offer_write.was).id is null;
  wanted app.store_offers;
begin
  perform internal.store_times_check(store_offer_write.sent);
  begin
    wanted := jsonb_populate_record(store_offer_write.was, (
      select coalesce(jsonb_object_agg(f.key, f.value), '{}') from jsonb_each(store_offer_write.sent) f
       where f.key = any ('{quantity,limit_per_user,limit_period,stock_total,starts_at,ends_at,segment_id,badge,
                            sort_order,is_active}')));
  exception when data_exception then
    perform internal.invalid('body', 'has a value of the wrong type');
  end;
  perform internal.store_segment_check(wanted.segment_id, (store_offer_write.was).segment_id);
  if is_new then
    insert into app.store_offers (store_id, key, catalog_item_id, quantity, limit_per_user, limit_period, stock_total,
                                  starts_at, ends_at, segment_id, badge, sort_order, is_active)
    values (wanted.store_id, store_offer_write.sent ->> 'key', internal.store_offer_item(store_offer_write.sent),
            coalesce(wanted.quantity, 1), wanted.limit_per_user, coalesce(wanted.limit_period, 'total'),
            wanted.stock_total, wanted.starts_at, wanted.ends_at, wanted.segment_id, wanted.badge,
            coalesce(wanted.sort_order, 0), coalesce(wanted.is_active, true))
    returning * into wanted;
    perform internal.store_offer_prices_set(wanted.id, coalesce(store_offer_write.sent -> 'prices', '[]'));
  elsif wanted is distinct from store_offer_write.was
        -- a change of the prices alone is a change of the offer
        or store_offer_write.sent ? 'prices'
           and internal.store_offer_prices_set(wanted.id, store_offer_write.sent -> 'prices') then
    update app.store_offers o
       set quantity = wanted.quantity, limit_per_user = wanted.limit_per_user, limit_period = wanted.limit_period,
           stock_total = wanted.stock_total, starts_at = wanted.starts_at, ends_at = wanted.ends_at,
           segment_id = wanted.segment_id, badge = wanted.badge, sort_order = wanted.sort_order,
           is_active = wanted.is_active, updated_at = internal.now()
     where o.id = wanted.id
    returning o.* into wanted;
    if store_offer_write.sent ? 'prices' then
      perform internal.store_offer_prices_set(wanted.id, store_offer_write.sent -> 'prices');
    end if;
  end if;
  return wanted;
end $$;
comment on function internal.store_offer_write is
  'Creates an offer, of a row with store_id alone, or changes one: absent fields stay, null clears. Refuses 400
   VALIDATION_ERROR, 409 CONFLICT.';

create or replace function internal.store_offers_limit_check(store_id uuid) returns void
language plpgsql volatile as $$
begin
  -- locked before the count, so that two at once cannot pass the limit together
  perform from app.stores s where s.id = store_offers_limit_check.store_id for no key update;
  perform internal.check_found(found, 'store');
  perform internal.check_limit((select count(*) from app.store_offers o
                                 where o.store_id = store_offers_limit_check.store_id), 200,
                               'A store has at most 200 offers.');
end $$;
comment on function internal.store_offers_limit_check is
  'Refuses 409 LIMIT_REACHED in a store with 200 offers, 404 NOT_FOUND for one that was deleted. Locks the store.';

create or replace function api.store_offer_create(id_or_key text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  store constant app.stores := internal.definition_find(null::app.stores, store_offer_create.id_or_key);
  offer app.store_offers;
begin
  perform internal.store_offers_limit_check(store.id);
  offer.store_id := store.id;
  offer := internal.store_offer_write(offer, store_offer_create.patch);
  return internal.reply(201, internal.store_offer_json(offer));
end $$;
comment on function api.store_offer_create is
  'Adds an offer to a store. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, 409 CONFLICT, LIMIT_REACHED.';

create or replace function api.store_offer_update(id_or_key text, offer_id uuid, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  store constant app.stores := internal.definition_find(null::app.stores, store_offer_update.id_or_key);
  offer app.store_offers;
begin
  select o.* into offer from app.store_offers o
   where o.id = store_offer_update.offer_id and o.store_id = store.id
     for no key update;
  perform internal.check_found(found, 'offer');
  offer := internal.store_offer_write(offer, store_offer_update.patch);
  return internal.reply(200, internal.store_offer_json(offer));
end $$;
comment on function api.store_offer_update is
  'Changes an offer. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR. Locks the offer.';

create or replace function api.store_offer_delete(id_or_key text, offer_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  store constant app.stores := internal.definition_find(null::app.stores, store_offer_delete.id_or_key);
begin
  delete from app.store_offers o where o.id = store_offer_delete.offer_id and o.store_id = store.id;
  perform internal.check_found(found, 'offer');
  return internal.reply_deleted();
end $$;
comment on function api.store_offer_delete is
  'Deletes an offer that nobody has bought. Refuses 404 NOT_FOUND, 409 OFFER_IN_USE.';

select internal.audit_declare('app.store_offers', 'stores');
select internal.audit_declare('app.store_offer_prices', 'stores');
