-- Stores as apps show them, and as administrators see what a user sees.
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
           case when store_offers_shown.is_preview
                then internal.json_merge(x.json, json_build_object('visible', x.is_visible)) else x.json end
           order by (x.offer).sort_order, (x.offer).key)
    into shown
    from (
      select f.offer, f.is_visible, json_build_object(
               'id', (f.offer).id, 'key', (f.offer).key,
               'item', json_build_object('id', (f.item).id, 'key', (f.item).key, 'name', (f.item).name,
                                         'item_type', (f.item).item_type, 'icon_url', (f.item).icon_url),
               'quantity', (f.offer).quantity, 'prices', f.prices, 'badge', (f.offer).badge,
               'available', f.reason is null, 'reason', f.reason,
               'remaining_for_user', f.remaining_for_user, 'remaining_stock', f.remaining_stock,
               'can_afford', exists (select from jsonb_array_elements(f.prices) p
                                      where (p.value ->> 'price')::bigint
                                            <= (balances ->> (p.value ->> 'currency_code'))::bigint),
               'starts_at', internal.iso((f.offer).starts_at),
               'ends_at', internal.iso(least((f.offer).ends_at, (store_offers_shown.s).ends_at))) as json
        from (
          select t.offer, t.item, t.is_visible, t.prices, t.remaining_for_user, t.remaining_stock,
                 coalesce(t.reason, case when (t.full_item).id is not null then 'max_owned' end) as reason
            from internal.store_offers_state(
                   array(select o from app.store_offers o where o.store_id = (store_offers_shown.s).id),
                   store_offers_shown.app_user_id, store_offers_shown.segments) t
           where store_offers_shown.is_preview or t.is_visible
          offset 0) f
    ) x;
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
