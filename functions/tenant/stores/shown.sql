-- What a user sees of stores and offers now, and why something cannot be bought: pure functions of rows and the clock.
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
    -- at most what JSON holds exactly: more than anybody may own
    select i, least(sum(o.quantity) * store_contents.wanted, 9007199254740991)::bigint
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

create or replace function internal.store_gives_nothing(item app.catalog_items) returns boolean
language plpgsql stable as $$
declare
  credits jsonb;
begin
  case (store_gives_nothing.item).item_type
    when 'bundle' then
      return not exists (select from app.bundle_contents b where b.bundle_id = (store_gives_nothing.item).id);
    when 'currency_pack' then
      credits := internal.store_pack_credits(store_gives_nothing.item);
      return credits is null or credits = '{}'
             and coalesce((store_gives_nothing.item).use_effect - '{items,currencies}'::text[], '{}') = '{}';
    else
      return false;
  end case;
end $$;
comment on function internal.store_gives_nothing is
  'Whether buyers would get nothing, or not all: of an empty bundle, or a pack whose currencies cannot be credited.';

create or replace function internal.store_full_item(item app.catalog_items, quantity bigint, app_user_id uuid)
returns app.catalog_items
language plpgsql stable as $$
declare
  full_item app.catalog_items;
begin
  if (store_full_item.item).item_type = 'bundle' then
    select (c.part).* into full_item
      from internal.store_contents(store_full_item.item, store_full_item.quantity) c
     where internal.inventory_quantity(store_full_item.app_user_id, (c.part).id) + c.quantity > (c.part).max_owned
     limit 1;
  elsif (store_full_item.item).max_owned is not null
    and internal.inventory_quantity(store_full_item.app_user_id, (store_full_item.item).id)
        + store_full_item.quantity > (store_full_item.item).max_owned then
    full_item := store_full_item.item;
  end if;
  return full_item;
end $$;
comment on function internal.store_full_item is
  'The first item of which a user would have more than its max_owned, of the item itself or what a bundle gives; null
   when there is room.';

create or replace function internal.store_offer_prices_of(o app.store_offers) returns jsonb
language plpgsql stable as $$
declare
  prices jsonb;
begin
  if exists (select from app.store_offer_prices p where p.offer_id = (store_offer_prices_of.o).id) then
    select jsonb_agg(jsonb_build_object('currency_code', p.currency_code, 'price', p.price,
                                        'original_price', p.original_price) order by p.currency_code)
      into prices
      from app.store_offer_prices p
      join app.currencies c on c.code = p.currency_code and c.is_active
     where p.offer_id = (store_offer_prices_of.o).id;
  else
    select jsonb_agg(jsonb_build_object('currency_code', p.currency_code,
                                        'price', p.price * (store_offer_prices_of.o).quantity,
                                        'original_price', null) order by p.currency_code)
      into prices
      from app.catalog_item_prices p
      join app.currencies c on c.code = p.currency_code and c.is_active
     where p.catalog_item_id = (store_offer_prices_of.o).catalog_item_id;
  end if;
  return coalesce(prices, '[]');
end $$;
comment on function internal.store_offer_prices_of is
  'What one unit of an offer costs, in the active currencies: its own prices, else those of its item times its
   quantity.';

create or replace function internal.store_offer_taken(o app.store_offers, app_user_id uuid) returns bigint
language sql stable as $$
  select coalesce(sum(p.quantity), 0)::bigint
    from app.purchases p
   where p.app_user_id = store_offer_taken.app_user_id and p.offer_id = (store_offer_taken.o).id
     and p.status = 'completed'
     and p.created_at >= case (store_offer_taken.o).limit_period
                         when 'total' then '-infinity'::timestamptz
                         -- periods are those of UTC; weeks begin on Mondays
                         else date_trunc((store_offer_taken.o).limit_period, internal.now() at time zone 'UTC')
                              at time zone 'UTC' end
$$;
comment on function internal.store_offer_taken is
  'The units of an offer that a user has bought in the present period of its limit, without refunded ones.';

create or replace function internal.store_offer_state(o app.store_offers, item app.catalog_items, app_user_id uuid,
                                                      segments uuid[])
returns internal.store_offer_state
language plpgsql stable as $$
declare
  state internal.store_offer_state;
begin
  state.reason := case
    when not (store_offer_state.o).is_active then 'inactive'
    when not (store_offer_state.item).is_active or internal.store_gives_nothing(store_offer_state.item)
      then 'item_inactive'
    when (store_offer_state.o).ends_at <= internal.now() then 'ended'
    when (store_offer_state.o).segment_id is not null
         and (store_offer_state.o).segment_id <> all (store_offer_state.segments) then 'segment' end;
  state.is_visible := state.reason is null;
  state.prices := internal.store_offer_prices_of(store_offer_state.o);
  if (store_offer_state.o).limit_per_user is not null then
    state.remaining_for_user := greatest((store_offer_state.o).limit_per_user
      - internal.store_offer_taken(store_offer_state.o, store_offer_state.app_user_id), 0);
  end if;
  if (store_offer_state.o).stock_total is not null then
    state.remaining_stock := greatest((store_offer_state.o).stock_total
      - internal.store_offer_sold((store_offer_state.o).id), 0);
  end if;
  state.reason := coalesce(state.reason, case
    when (store_offer_state.o).starts_at > internal.now() then 'not_started'
    when state.prices = '[]' then 'no_price'
    when state.remaining_for_user = 0 then 'limit_reached'
    when state.remaining_stock = 0 then 'out_of_stock' end);
  return state;
end $$;
comment on function internal.store_offer_state is
  'What an offer is to a user who is in these segments. reason is the first that holds: inactive, item_inactive, ended,
   segment (a list does not show it), not_started, no_price, limit_reached, out_of_stock; max_owned is for the caller to
   find, because its cost depends on the quantity.';

create or replace function internal.store_offers_shown(s app.stores, app_user_id uuid, segments uuid[],
                                                       is_preview boolean)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  balances constant jsonb := (
    select coalesce(jsonb_object_agg(c.code, (internal.currency_current(c, store_offers_shown.app_user_id)).balance),
                    '{}')
      from app.currencies c where c.is_active);
  shown json;
begin
  select json_agg(
           case when store_offers_shown.is_preview then internal.json_merge(e.offer, json_build_object(
                       'visible', (e.state).is_visible)) else e.offer end order by (e.o).sort_order, (e.o).key)
    into shown
    from (
      select f.o, f.state, json_build_object(
               'id', (f.o).id, 'key', (f.o).key,
               'item', json_build_object('id', (f.item).id, 'key', (f.item).key, 'name', (f.item).name,
                                         'item_type', (f.item).item_type, 'icon_url', (f.item).icon_url),
               'quantity', (f.o).quantity, 'prices', (f.state).prices, 'badge', (f.o).badge,
               'available', f.reason is null, 'reason', f.reason,
               'remaining_for_user', (f.state).remaining_for_user, 'remaining_stock', (f.state).remaining_stock,
               'can_afford', exists (select from jsonb_array_elements((f.state).prices) p
                                      where (p.value ->> 'price')::bigint
                                            <= (balances ->> (p.value ->> 'currency_code'))::bigint),
               'starts_at', internal.iso((f.o).starts_at),
               'ends_at', internal.iso(least((f.o).ends_at, (store_offers_shown.s).ends_at))) as offer
        from (
          select x.o, x.item, x.state, coalesce((x.state).reason, case when (internal.store_full_item(
                   x.item, (x.o).quantity, store_offers_shown.app_user_id)).id is not null then 'max_owned' end)
                   as reason
            from (
              select o, i as item, internal.store_offer_state(o, i, store_offers_shown.app_user_id,
                                                              store_offers_shown.segments) as state
                from app.store_offers o
                join app.catalog_items i on i.id = o.catalog_item_id
               where o.store_id = (store_offers_shown.s).id
              offset 0) x
           where store_offers_shown.is_preview or (x.state).is_visible
          offset 0) f
    ) e;
  return coalesce(shown, '[]');
end $$;
comment on function internal.store_offers_shown is
  'The offers of a store as a user sees them, by sort_order, then key: those that the list shows, or in a preview all,
   with visible. Granted to nobody.';

create or replace function internal.store_shown_json(s app.stores) returns json
language sql stable as $$
  select json_build_object(
    'id', (store_shown_json.s).id, 'key', (store_shown_json.s).key, 'name', (store_shown_json.s).name,
    'description', (store_shown_json.s).description, 'starts_at', internal.iso((store_shown_json.s).starts_at),
    'ends_at', internal.iso((store_shown_json.s).ends_at), 'sort_order', (store_shown_json.s).sort_order)
$$;
comment on function internal.store_shown_json is 'A store as apps list it.';

create or replace function api.stores_list(page_offset int default 0, page_limit int default 50) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  segments constant uuid[] := internal.store_segments_of(null, internal.user_id());
  total bigint;
  shown json;
begin
  -- at most 50 exist
  select count(*), json_agg(internal.store_shown_json(v.s) order by v.n)
           filter (where v.n > stores_list.page_offset and v.n <= stores_list.page_offset + stores_list.page_limit)
    into total, shown
    from (select s, row_number() over (order by s.sort_order, s.key) as n
            from app.stores s
           where internal.store_reason(s, segments) is null) v;
  return internal.reply_page(shown, total, stores_list.page_offset, stores_list.page_limit);
end $$;
comment on function api.stores_list is 'The stores that the caller sees, by sort_order, then key.';

create or replace function internal.store_visible(id_or_key text, segments uuid[]) returns app.stores
language plpgsql volatile as $$
declare
  store app.stores;
begin
  select s.* into store from app.stores s where internal.is_id_or_key(s.id, s.key, store_visible.id_or_key);
  if store.id is null or internal.store_reason(store, store_visible.segments) is not null then
    perform internal.fail(404, 'STORE_NOT_FOUND', 'There is no such store.');
  end if;
  return store;
end $$;
comment on function internal.store_visible is
  'A store that a user in these segments sees, by id or key. Refuses 404 STORE_NOT_FOUND. Granted to nobody.';

create or replace function api.store_get(id_or_key text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  segments constant uuid[] := internal.store_segments_of(
    (select s.id from app.stores s where internal.is_id_or_key(s.id, s.key, store_get.id_or_key)), me);
  store constant app.stores := internal.store_visible(store_get.id_or_key, segments);
begin
  return internal.reply(200, internal.json_merge(internal.store_shown_json(store), json_build_object(
    'offers', internal.store_offers_shown(store, me, segments, false))));
end $$;
comment on function api.store_get is
  'A store with its offers as the caller sees them. Refuses 404 STORE_NOT_FOUND.';

create or replace function internal.store_previewed(store app.stores, app_user_id uuid) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  segments uuid[];
  reason text;
begin
  perform internal.check_caller('developer', 'stores are previewed by administrators');
  segments := internal.store_segments_of((store_previewed.store).id, store_previewed.app_user_id);
  reason := internal.store_reason(store_previewed.store, segments);
  return json_build_object('visible', reason is null, 'reason', reason, 'offers', internal.store_offers_shown(
    store_previewed.store, store_previewed.app_user_id, segments, true));
end $$;
comment on function internal.store_previewed is 'What a user sees of a store and why, for administrators.';

create or replace function api.store_preview(id_or_key text, user_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  store constant app.stores := internal.definition_find(null::app.stores, store_preview.id_or_key);
begin
  perform internal.check_found(exists (select from app.users u where u.id = store_preview.user_id), 'user');
  return internal.reply(200, internal.store_previewed(store, store_preview.user_id));
end $$;
comment on function api.store_preview is
  'What a user sees of a store and why: {visible, reason, offers}, with all offers. Refuses 404 NOT_FOUND.';
