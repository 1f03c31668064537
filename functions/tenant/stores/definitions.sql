-- Stores as administrators define them. Their offers are rows of their own, in offers.sql.
comment on constraint stores_key_unique on app.stores is '409 CONFLICT key: A store with this key exists.';
comment on constraint stores_end_after_start on app.stores is
  '400 VALIDATION_ERROR ends_at: must be after starts_at.';

create or replace function internal.store_json(s app.stores) returns json
language sql stable as $$
  select json_build_object(
    'id', (store_json.s).id, 'key', (store_json.s).key, 'name', (store_json.s).name,
    'description', (store_json.s).description, 'segment_id', (store_json.s).segment_id,
    'starts_at', internal.iso((store_json.s).starts_at), 'ends_at', internal.iso((store_json.s).ends_at),
    'is_active', (store_json.s).is_active, 'sort_order', (store_json.s).sort_order,
    -- as internal.store_offer_json, which would start a query of its own for each offer
    'offers', coalesce((
      select json_agg(internal.store_offer_row_json(o, i.key, coalesce(p.prices, '[]'), coalesce(a.units, 0))
                      order by o.sort_order, o.key)
        from app.store_offers o
        join app.catalog_items i on i.id = o.catalog_item_id
        left join lateral (
          select json_agg(json_build_object('currency_code', q.currency_code, 'price', q.price,
                                            'original_price', q.original_price) order by q.currency_code) as prices
            from app.store_offer_prices q where q.offer_id = o.id) p on true
        left join lateral (
          select sum(l.units)::bigint as units from app.store_offer_sales l where l.offer_id = o.id) a on true
       where o.store_id = (store_json.s).id), '[]'),
    'created_at', internal.iso((store_json.s).created_at), 'updated_at', internal.iso((store_json.s).updated_at))
$$;
comment on function internal.store_json is 'A store with its offers as administrators see it.';

create or replace function internal.store_check(requested app.stores, was app.stores, sent jsonb) returns app.stores
language plpgsql volatile as $$
begin
  perform internal.store_times_check(store_check.sent);
  perform internal.store_segment_check((store_check.requested).segment_id, (store_check.was).segment_id);
  return store_check.requested;
end $$;
comment on function internal.store_check is
  'Refuses 400 VALIDATION_ERROR for a segment that does not exist, and for times that no response could show.';

create or replace function internal.store_times_check(sent jsonb) returns void
language plpgsql stable as $$
declare
  field text;
begin
  -- a document of promotion may hold what Postgres reads as a time and JSON cannot show: infinity, years before Christ
  foreach field in array array['starts_at', 'ends_at'] loop
    if store_times_check.sent ->> field is not null and internal.as_time(store_times_check.sent ->> field) is null then
      perform internal.invalid(field, 'must be an ISO 8601 time');
    end if;
  end loop;
end $$;
comment on function internal.store_times_check is
  'Refuses 400 VALIDATION_ERROR for starts_at and ends_at of a store or an offer that are no ISO 8601 times.';

create or replace function internal.store_segment_check(segment_id uuid, was uuid) returns void
language plpgsql volatile as $$
begin
  if store_segment_check.segment_id is distinct from store_segment_check.was
     and store_segment_check.segment_id is not null
     and not internal.segment_lock_shared(store_segment_check.segment_id) then
    perform internal.invalid('segment_id', 'must be the id of a segment');
  end if;
end $$;
comment on function internal.store_segment_check is
  'Refuses 400 VALIDATION_ERROR for a new segment_id of no segment, and holds the segment until the transaction ends.';

create or replace function internal.store_before_delete(doomed app.stores) returns void
language plpgsql volatile as $$
begin
  -- a purchase that is under way holds the row until it ends
  perform from app.stores s where s.id = (store_before_delete.doomed).id for update;
  if exists (select from app.purchases p where p.store_id = (store_before_delete.doomed).id) then
    perform internal.fail(409, 'STORE_IN_USE', 'Users have bought in this store. Set is_active to false instead.');
  end if;
end $$;
comment on function internal.store_before_delete is
  'Refuses 409 STORE_IN_USE for a store with purchases. Locks it.';

create or replace function internal.store_after_write(stored app.stores, was app.stores, sent jsonb) returns void
language plpgsql volatile as $$
begin
  -- requests have no offers: promotion creates a store with them
  if (store_after_write.was).id is null and store_after_write.sent ? 'offers' then
    perform internal.store_offers_set((store_after_write.stored).id, store_after_write.sent -> 'offers');
  end if;
end $$;
comment on function internal.store_after_write is 'Creates the offers of a store that promotion copies.';

create or replace function internal.segment_used__stores(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'store ' || s.key from app.stores s where s.segment_id = segment_used__stores.segment_id
                union all
               select 'offer ' || s.key || '/' || o.key
                 from app.store_offers o join app.stores s on s.id = o.store_id
                where o.segment_id = segment_used__stores.segment_id
                order by 1)
$$;
comment on function internal.segment_used__stores is 'The stores and offers that only members of a segment see.';

select internal.audit_declare('app.stores', 'stores');
