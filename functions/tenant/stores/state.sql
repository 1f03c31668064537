-- What stores and offers are to a user now, and why something cannot be bought: pure functions of rows and the clock.
create or replace function internal.store_segments_of(store_id uuid, app_user_id uuid) returns uuid[]
language plpgsql volatile security definer set search_path = '' as $$
declare
  asked constant uuid[] := array(
    select s.segment_id from app.stores s
     where s.segment_id is not null
       and (store_segments_of.store_id is null or s.id = store_segments_of.store_id)
     union
    select o.segment_id from app.store_offers o
     where o.segment_id is not null and o.store_id = store_segments_of.store_id);
begin
  if cardinality(asked) = 0 then
    return '{}';
  end if;
  return internal.segments_holding(asked, store_segments_of.app_user_id);
end $$;
comment on function internal.store_segments_of is
  'Of the segments that a store and its offers name, or all stores for null: those that a user is in now. Granted to
   nobody.';

create or replace function internal.store_reason(s app.stores, segments uuid[]) returns text
language sql stable as $$
  select case
    when not (store_reason.s).is_active then 'inactive'
    when (store_reason.s).starts_at > internal.now() then 'not_started'
    when (store_reason.s).ends_at <= internal.now() then 'ended'
    -- of an empty list also null would differ
    when (store_reason.s).segment_id is not null
         and (store_reason.s).segment_id <> all (store_reason.segments) then 'segment' end
$$;
comment on function internal.store_reason is
  'Why a user who is in these segments does not see a store: inactive, not_started, ended or segment; null for one that
   is visible.';

create or replace function internal.store_contents(item app.catalog_items, wanted bigint)
returns table (part app.catalog_items, quantity bigint)
language plpgsql stable as $$
begin
  if (store_contents.item).item_type <> 'bundle' then
    return query select store_contents.item, store_contents.wanted;
    return;
  end if;
  return query
    with recursive opened as (
      select b.content_item_id as id, b.quantity::bigint as quantity, array[b.position] as place
        from app.bundle_contents b
       where b.bundle_id = (store_contents.item).id
       union all
      select b.content_item_id, o.quantity * b.quantity, o.place || b.position
        from opened o
        join app.bundle_contents b on b.bundle_id = o.id
       -- the catalog nests bundles at most three levels
       where cardinality(o.place) <= 3
    )
    -- cut off above what JSON holds exactly, which is more than anybody may own
    select i, least(sum(o.quantity) * store_contents.wanted, 9007199254740992)::bigint
      from opened o
      join app.catalog_items i on i.id = o.id and i.item_type <> 'bundle'
     group by i.id, i.*
     order by min(o.place);
end $$;
comment on function internal.store_contents is
  'What some of an item give: the item itself, or of a bundle its contents, unpacked, each item once.';

create or replace function internal.store_pack_credits(pack app.catalog_items) returns jsonb
language plpgsql stable as $$
declare
  effect constant jsonb := coalesce((store_pack_credits.pack).use_effect -> 'currencies', '[]');
  credits jsonb;
begin
  if jsonb_typeof(effect) <> 'array' then
    return null;
  end if;
  select case when coalesce(bool_and(g.is_whole and c.code is not null), true)
              then coalesce(jsonb_object_agg(g.code, g.amount) filter (where g.code is not null), '{}') end
    into credits
    from (select a.code, sum(a.amount) as amount, bool_and(a.amount is not null) as is_whole
            from (select e.value ->> 'currency_code' as code,
                         case when jsonb_typeof(e.value -> 'amount') = 'number'
                                   and e.value ->> 'amount' ~ '^[1-9][0-9]{0,9}$'
                              then (e.value ->> 'amount')::bigint end as amount
                    from jsonb_array_elements(effect) e) a
           group by a.code) g
    left join app.currencies c on c.code = g.code and c.is_active;
  return credits;
end $$;
comment on function internal.store_pack_credits is
  'What a pack of currency credits, {CODE: amount}; null when not all of it can be credited.';

create or replace function internal.store_offers_state(offers app.store_offers[], app_user_id uuid, segments uuid[],
                                                       units int default 1)
returns table (offer app.store_offers, item app.catalog_items, is_visible boolean, reason text, prices jsonb,
               remaining_for_user bigint, remaining_stock bigint, full_item app.catalog_items)
language plpgsql stable set plan_cache_mode = 'force_generic_plan' as $$
begin
  -- a store has 200 offers: one query for all of them, whose plan serves a single one too
  return query
  with recursive asked as materialized (
    select o, i, (o).id as offer_id, i.id as item_id
      from unnest(store_offers_state.offers) o
      join app.catalog_items i on i.id = (o).catalog_item_id
  ), opened as (
    select r.id as root, b.content_item_id as id, b.quantity::bigint as quantity, array[b.position] as place
      from (select distinct a.item_id as id from asked a where (a.i).item_type = 'bundle') r
      join app.bundle_contents b on b.bundle_id = r.id
     union all
    select p.root, b.content_item_id, p.quantity * b.quantity, p.place || b.position
      from opened p
      join app.bundle_contents b on b.bundle_id = p.id
     -- the catalog nests bundles at most three levels
     where cardinality(p.place) <= 3
  ), parts as materialized (
    select p.root, k, p.quantity, p.place,
           case when k.item_type = 'currency_pack' then internal.store_pack_credits(k) end as credits,
           -- as internal.inventory_quantity, which would start a query of its own
           (select coalesce(sum(s.quantity), 0) from app.inventory_stacks s
             where s.app_user_id = store_offers_state.app_user_id and s.catalog_item_id = k.id
               and (s.expires_at is null or s.expires_at > internal.now())) as held
      from (select p.root, p.id, sum(p.quantity) as quantity, min(p.place) as place
              from opened p group by p.root, p.id
             union all
            select distinct a.item_id, a.item_id, 1::numeric, array[0] from asked a
             where (a.i).item_type <> 'bundle') p
      join app.catalog_items k on k.id = p.id and k.item_type <> 'bundle'
  ), contents as (
    select p.root,
           bool_or((p.k).item_type = 'currency_pack' and p.credits is null) as is_refused,
           bool_and((p.k).item_type = 'currency_pack' and p.credits = '{}'
                    and coalesce((p.k).use_effect - '{items,currencies}'::text[], '{}') = '{}') as is_nothing
      from parts p
     group by p.root
  ), filled as (
    select distinct on (a.offer_id) a.offer_id, p.k
      from asked a
      join parts p on p.root = a.item_id and (p.k).item_type <> 'currency_pack'
     where p.held + p.quantity * (a.o).quantity * store_offers_state.units
           -- nobody has more of an item than JSON holds exactly
           > coalesce((p.k).max_owned, 9007199254740991)
     order by a.offer_id, p.place
  ), own as (
    select p.offer_id,
           jsonb_agg(jsonb_build_object('currency_code', p.currency_code, 'price', p.price,
                                        'original_price', p.original_price) order by p.currency_code)
             filter (where c.is_active) as prices
      from asked a
      join app.store_offer_prices p on p.offer_id = a.offer_id
      join app.currencies c on c.code = p.currency_code
     group by p.offer_id
  ), known as (
    select a.o, a.i, f.k,
           case
             when not (a.o).is_active then 'inactive'
             when not (a.i).is_active or coalesce(n.is_refused or n.is_nothing, true) then 'item_inactive'
             when (a.o).ends_at <= internal.now() then 'ended'
             when (a.o).segment_id is not null
                  and (a.o).segment_id <> all (store_offers_state.segments) then 'segment' end as hidden_for,
           coalesce(case when w.offer_id is not null then w.prices else (
             select jsonb_agg(jsonb_build_object('currency_code', p.currency_code, 'price', p.price * (a.o).quantity,
                                                 'original_price', null) order by p.currency_code)
               from app.catalog_item_prices p
               join app.currencies c on c.code = p.currency_code and c.is_active
              where p.catalog_item_id = a.item_id) end, '[]') as prices,
           case when (a.o).limit_per_user is not null then greatest((a.o).limit_per_user - (
             select coalesce(sum(b.quantity), 0)
               from app.purchases b
              where b.app_user_id = store_offers_state.app_user_id and b.offer_id = a.offer_id
                and b.status = 'completed'
                and b.created_at >= case (a.o).limit_period
                                    when 'total' then '-infinity'::timestamptz
                                    -- periods are those of UTC; weeks begin on Mondays
                                    else date_trunc((a.o).limit_period, internal.now() at time zone 'UTC')
                                         at time zone 'UTC' end), 0)::bigint end as for_user,
           case when (a.o).stock_total is not null then greatest((a.o).stock_total - (
             select coalesce(sum(s.units), 0) from app.store_offer_sales s
              where s.offer_id = a.offer_id), 0)::bigint end as stock
      from asked a
      left join contents n on n.root = a.item_id
      left join filled f on f.offer_id = a.offer_id
      left join own w on w.offer_id = a.offer_id
  )
  select k.o, k.i, k.hidden_for is null,
         coalesce(k.hidden_for, case
           when (k.o).starts_at > internal.now() then 'not_started'
           when k.prices = '[]' then 'no_price'
           when k.for_user = 0 then 'limit_reached'
           when k.stock = 0 then 'out_of_stock' end),
         k.prices, k.for_user, k.stock, k.k
    from known k;
end $$;
comment on function internal.store_offers_state is
  'What offers are to a user who is in these segments. reason is the first that holds: inactive, item_inactive (or an
   item that would give nothing, or not all), ended, segment (a list does not show these), not_started, no_price,
   limit_reached, out_of_stock. prices are those of a unit in active currencies: the offer''s own, else those of its
   item times its quantity. full_item is the first item of which so many units would be more than the user may own.';
