-- Reads of the catalog, in one JSON shape for apps and administrators.
create or replace function internal.catalog_item_json(i app.catalog_items) returns json
language sql stable as $$
  select json_build_object(
    'id', (catalog_item_json.i).id, 'key', (catalog_item_json.i).key, 'name', (catalog_item_json.i).name,
    'item_type', (catalog_item_json.i).item_type, 'tags', (catalog_item_json.i).tags,
    'category', (catalog_item_json.i).category,
    'description', (catalog_item_json.i).description, 'icon_url', (catalog_item_json.i).icon_url,
    'metadata', (catalog_item_json.i).metadata,
    'is_active', (catalog_item_json.i).is_active, 'max_owned', (catalog_item_json.i).max_owned,
    'duration_seconds', (catalog_item_json.i).duration_seconds, 'use_effect', (catalog_item_json.i).use_effect,
    'catalog_item_prices', coalesce((
      select json_agg(json_build_object('currency_code', p.currency_code, 'price', p.price) order by p.currency_code)
        from app.catalog_item_prices p
       where p.catalog_item_id = (catalog_item_json.i).id), '[]'),
    'bundle_contents', coalesce((
      select json_agg(json_build_object('content_item_id', b.content_item_id, 'quantity', b.quantity,
                                        'catalog_items', json_build_object('key', c.key, 'name', c.name,
                                          'icon_url', c.icon_url)) order by b.position)
        from app.bundle_contents b
        join app.catalog_items c on c.id = b.content_item_id
       where b.bundle_id = (catalog_item_json.i).id), '[]'),
    'created_at', internal.iso((catalog_item_json.i).created_at),
    'updated_at', internal.iso((catalog_item_json.i).updated_at))
$$;
comment on function internal.catalog_item_json is 'An item with its prices and, for a bundle, its contents.';

create or replace function internal.catalog_find(id_or_key text) returns app.catalog_items
language sql stable as $$
  select i.* from app.catalog_items i where internal.is_id_or_key(i.id, i.key, catalog_find.id_or_key)
$$;
comment on function internal.catalog_find is 'The item with this id or key, or no row.';

create or replace function internal.catalog_page(category text, tag text, item_type text, search text,
                                                 include_inactive boolean, page_offset int, page_limit int)
returns api.reply
language plpgsql stable as $$
declare
  pattern constant text := '%' || regexp_replace(lower(catalog_page.search), '([%_\\])', '\\\1', 'g') || '%';
  total bigint;
  shown json;
begin
  with hits as materialized (
    select i.id, i.created_at
      from app.catalog_items i
     where (i.is_active or catalog_page.include_inactive)
       and (catalog_page.category is null or i.category = catalog_page.category)
       and (catalog_page.tag is null or i.tags @> array[catalog_page.tag])
       and (catalog_page.item_type is null or i.item_type = catalog_page.item_type)
       and (pattern is null or lower(i.name) like pattern or i.key like pattern)
  ), places as (
    select h.id, h.created_at from hits h order by h.created_at desc, h.id desc limit catalog_page.page_limit
    offset catalog_page.page_offset
  )
  select (select count(*) from hits),
         (select json_agg(internal.catalog_item_json(i) order by i.created_at desc, i.id desc) from places p
            join app.catalog_items i on i.id = p.id)
    into total, shown;
  return internal.reply_page(shown, total, catalog_page.page_offset, catalog_page.page_limit);
end $$;
comment on function internal.catalog_page is 'A page of items, newest first. At most 5,000 exist.';

create or replace function api.catalog_list(category text default null, tag text default null,
                                            page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.catalog_page(catalog_list.category, catalog_list.tag, null, null, false, catalog_list.page_offset,
                               catalog_list.page_limit)
$$;
comment on function api.catalog_list is 'Active items, newest first, of one category or tag.';

create or replace function api.catalog_get(item_id text) returns api.reply
language plpgsql stable as $$
declare
  item constant app.catalog_items := internal.catalog_find(catalog_get.item_id);
begin
  if not coalesce(item.is_active, false) then
    perform internal.fail(404, 'FETCH_FAILED', 'There is no such item.');
  end if;
  return internal.reply(200, internal.catalog_item_json(item));
end $$;
comment on function api.catalog_get is 'An active item by id or key. Refuses 404 FETCH_FAILED.';

create or replace function api.catalog_item_list(category text default null, tag text default null,
                                                 item_type text default null, search text default null,
                                                 include_inactive boolean default false, page_offset int default 0,
                                                 page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.catalog_page(catalog_item_list.category, catalog_item_list.tag, catalog_item_list.item_type,
                               catalog_item_list.search,
                               catalog_item_list.include_inactive, catalog_item_list.page_offset,
                               catalog_item_list.page_limit)
$$;
comment on function api.catalog_item_list is
  'Items, newest first; search matches a part of key or name, case-insensitively.';

