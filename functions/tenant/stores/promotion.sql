-- How promotion copies stores: with their offers, matched by key, and without what was sold.
create or replace function internal.store_promoted(s app.stores, configuration jsonb) returns jsonb
language sql stable as $$
  select store_promoted.configuration || jsonb_build_object('offers', coalesce((
    select jsonb_agg(jsonb_build_object(
             'key', o.key, 'catalog_item_key', i.key, 'quantity', o.quantity,
             'prices', internal.store_offer_own_prices(o.id)::jsonb, 'limit_per_user', o.limit_per_user,
             'limit_period', o.limit_period, 'stock_total', o.stock_total, 'starts_at', internal.iso(o.starts_at),
             'ends_at', internal.iso(o.ends_at), 'segment_id', o.segment_id, 'badge', o.badge,
             'sort_order', o.sort_order, 'is_active', o.is_active) order by o.key)
      from app.store_offers o
      join app.catalog_items i on i.id = o.catalog_item_id
     where o.store_id = (store_promoted.s).id), '[]'))
$$;
comment on function internal.store_promoted is
  'A store as it is copied: with its offers, whose items are named by key.';

create or replace function internal.store_offers_set(store_id uuid, offers jsonb) returns void
language plpgsql volatile as $$
declare
  sent record;
  offer app.store_offers;
begin
  if coalesce(jsonb_typeof(store_offers_set.offers) <> 'array', true) then
    perform internal.invalid('offers', 'must be a list');
  end if;
  -- what was sold stays as a record: it is switched off
  update app.store_offers o set is_active = false, updated_at = internal.now()
   where o.store_id = store_offers_set.store_id and o.is_active
     and not store_offers_set.offers @> jsonb_build_array(jsonb_build_object('key', o.key))
     and exists (select from app.purchases p where p.offer_id = o.id);
  delete from app.store_offers o
   where o.store_id = store_offers_set.store_id
     and not store_offers_set.offers @> jsonb_build_array(jsonb_build_object('key', o.key))
     and not exists (select from app.purchases p where p.offer_id = o.id);
  for sent in
    select e.value, e.n - 1 as place, count(*) over (partition by e.value ->> 'key') as times
      from jsonb_array_elements(store_offers_set.offers) with ordinality e (value, n)
     order by e.n
  loop
    if coalesce(sent.value ->> 'key' !~ '^[a-z][a-z0-9_-]{0,127}$', true) or sent.times > 1 then
      perform internal.invalid('offers.' || sent.place || '.key', 'must be a key, and each once');
    end if;
    select o.* into offer from app.store_offers o
     where o.store_id = store_offers_set.store_id and o.key = sent.value ->> 'key'
       for no key update;
    if offer.id is null then
      perform internal.store_offers_limit_check(store_offers_set.store_id);
      offer.store_id := store_offers_set.store_id;
    elsif (select i.key from app.catalog_items i where i.id = offer.catalog_item_id)
          is distinct from coalesce(sent.value ->> 'catalog_item_key', '') then
      perform internal.invalid('offers.' || sent.place || '.catalog_item_key', 'cannot change');
    end if;
    perform internal.store_offer_write(offer, sent.value);
  end loop;
end $$;
comment on function internal.store_offers_set is
  'Makes the offers of a store those of a document, matched by key: others are deleted, or switched off where they were
   bought. Refuses 400 VALIDATION_ERROR, 409 LIMIT_REACHED.';

create or replace function internal.store_promote(store_id uuid, changed jsonb) returns void
language plpgsql volatile as $$
begin
  if store_promote.changed ? 'offers' then
    perform internal.store_offers_set(store_promote.store_id, store_promote.changed -> 'offers');
  end if;
end $$;
comment on function internal.store_promote is
  'Stores the offers of a store that a plan changes. Refuses as internal.store_offers_set.';
