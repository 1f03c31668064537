-- Creating and updating catalog items, individually or by an import.
comment on constraint catalog_items_key_unique on app.catalog_items is
  '409 CONFLICT key: An item with this key exists.';
comment on constraint catalog_items_durable_once on app.catalog_items is
  '400 VALIDATION_ERROR max_owned: must be 1 for a durable.';
comment on constraint bundle_contents_content_item_id_fkey on app.bundle_contents is
  '409 ITEM_IN_USE: A bundle contains this item. Set is_active to false instead.';
comment on constraint catalog_item_prices_currency_code_fkey on app.catalog_item_prices is
  '409 CURRENCY_IN_USE: Items have a price in this currency. Set is_active to false instead.';

create or replace function internal.catalog_lock() returns void
language sql volatile as $$
  -- one writer of the catalog at a time: two changes that are each valid could together form a cycle or pass the limit
  select internal.advisory_lock('catalog')
$$;
comment on function internal.catalog_lock is
  'Locks the catalog until the transaction ends, so that one administrator writes it at a time.';

create or replace function internal.catalog_currencies_hold(prices jsonb) returns void
language sql volatile as $$
  select from app.currencies c
   where c.code in (select p.value ->> 'currency_code' from jsonb_array_elements(catalog_currencies_hold.prices) p)
   order by c.code
     for key share
$$;
comment on function internal.catalog_currencies_hold is
  'Locks the currencies of prices against deletion, in the order of their codes.';

create or replace function internal.catalog_item_before_write(sent jsonb) returns void
language plpgsql volatile as $$
begin
  perform internal.catalog_lock();
  perform internal.catalog_currencies_hold(coalesce(catalog_item_before_write.sent -> 'prices', '[]'));
end $$;
comment on function internal.catalog_item_before_write is
  'Locks the catalog and the currencies of a new item''s prices.';

create or replace function internal.catalog_item_check(requested app.catalog_items, was app.catalog_items, sent jsonb)
returns app.catalog_items
language plpgsql stable as $$
declare
  item app.catalog_items := catalog_item_check.requested;
begin
  if (catalog_item_check.was).id is null and item.item_type = 'durable' then
    item.max_owned := coalesce(item.max_owned, 1);
  end if;
  return item;
end $$;
comment on function internal.catalog_item_check is
  'Sets max_owned of a new durable to 1, unless the request has max_owned.';

create or replace function internal.catalog_item_after_write(stored app.catalog_items, was app.catalog_items,
                                                             sent jsonb)
returns void
language plpgsql volatile as $$
begin
  if (catalog_item_after_write.was).id is null then
    perform internal.catalog_prices_set(catalog_item_after_write.stored,
                                        coalesce(catalog_item_after_write.sent -> 'prices', '[]'));
    perform internal.catalog_contents_set(catalog_item_after_write.stored,
                                          coalesce(catalog_item_after_write.sent -> 'bundle_contents', '[]'));
  end if;
end $$;
comment on function internal.catalog_item_after_write is
  'Stores the prices and the contents of a new item. Refuses 400 VALIDATION_ERROR, BUNDLE_CYCLE.';

create or replace function internal.catalog_prices_set(item app.catalog_items, prices jsonb) returns void
language plpgsql volatile as $$
declare
  part record;
begin
  perform internal.catalog_currencies_hold(catalog_prices_set.prices);
  for part in
    select p.value ->> 'currency_code' as code, p.n - 1 as place,
           count(*) over (partition by p.value ->> 'currency_code') as times
      from jsonb_array_elements(catalog_prices_set.prices) with ordinality as p (value, n)
     order by p.n
  loop
    if not exists (select from app.currencies c where c.code = part.code) then
      perform internal.invalid('prices.' || part.place || '.currency_code', 'is not a currency of this project');
    elsif part.times > 1 then
      perform internal.invalid('prices', 'must name each currency once');
    end if;
  end loop;
  delete from app.catalog_item_prices p
   where p.catalog_item_id = (catalog_prices_set.item).id
     and not exists (select from jsonb_array_elements(catalog_prices_set.prices) w
                      where w.value ->> 'currency_code' = p.currency_code);
  insert into app.catalog_item_prices as p (catalog_item_id, currency_code, price)
  select (catalog_prices_set.item).id, w.value ->> 'currency_code', (w.value ->> 'price')::bigint
    from jsonb_array_elements(catalog_prices_set.prices) w
  on conflict on constraint catalog_item_prices_pkey do update set price = excluded.price
    where p.price <> excluded.price;
end $$;
comment on function internal.catalog_prices_set is
  'Replaces an item''s prices. Refuses 400 VALIDATION_ERROR for an unknown or duplicate currency.';

create or replace function internal.catalog_contents_set(item app.catalog_items, contents jsonb) returns void
language plpgsql volatile as $$
declare
  part record;
  depth int;
begin
  if (catalog_contents_set.item).item_type <> 'bundle' and jsonb_array_length(catalog_contents_set.contents) > 0 then
    perform internal.invalid('bundle_contents', 'must be empty unless item_type is bundle');
  end if;
  for part in
    select p.n - 1 as place, i.id, count(*) over (partition by p.value ->> 'content_item_key') as times
      from jsonb_array_elements(catalog_contents_set.contents) with ordinality as p (value, n)
      left join app.catalog_items i on i.key = p.value ->> 'content_item_key'
     order by p.n
  loop
    if part.id is null then
      perform internal.invalid('bundle_contents.' || part.place || '.content_item_key',
                               'is not an item of this catalog');
    elsif part.times > 1 then
      perform internal.invalid('bundle_contents', 'must name each item once');
    end if;
  end loop;
  delete from app.bundle_contents b
   where b.bundle_id = (catalog_contents_set.item).id
     and not exists (select from jsonb_array_elements(catalog_contents_set.contents) w
                       join app.catalog_items i on i.key = w.value ->> 'content_item_key'
                      where i.id = b.content_item_id);
  insert into app.bundle_contents as b (bundle_id, content_item_id, quantity, position)
  select (catalog_contents_set.item).id, i.id, (w.value ->> 'quantity')::int, w.n
    from jsonb_array_elements(catalog_contents_set.contents) with ordinality as w (value, n)
    join app.catalog_items i on i.key = w.value ->> 'content_item_key'
  on conflict on constraint bundle_contents_pkey do update set quantity = excluded.quantity,
    position = excluded.position
   where (b.quantity, b.position) <> (excluded.quantity, excluded.position);

  -- the depth of the bundles above and below this one, which is counted once; the limit also ends the recursion of a
  -- cycle
  with recursive above as (
    select (catalog_contents_set.item).id as id, 1 as depth
    union
    select b.bundle_id, a.depth + 1 from above a join app.bundle_contents b on b.content_item_id = a.id
     where a.depth <= 4
  ), below as (
    select (catalog_contents_set.item).id as id, 1 as depth
    union
    select b.content_item_id, l.depth + 1
      from below l
      join app.bundle_contents b on b.bundle_id = l.id
      join app.catalog_items c on c.id = b.content_item_id and c.item_type = 'bundle'
     where l.depth <= 4
  )
  select (select max(a.depth) from above a) + (select max(l.depth) from below l) - 1 into depth;
  if depth > 3 then
    perform internal.fail(400, 'BUNDLE_CYCLE', 'Bundles nest at most three levels, and may not contain themselves.',
                          json_build_object('field', 'bundle_contents',
                                            'reason', 'must nest bundles at most three levels deep, without a cycle'));
  end if;
end $$;
comment on function internal.catalog_contents_set is
  'Replaces the contents of a bundle, in the order of the list. Refuses 400 VALIDATION_ERROR, BUNDLE_CYCLE. The caller
   must hold the catalog''s lock.';

create or replace function internal.catalog_item_touch(item app.catalog_items) returns app.catalog_items
language plpgsql volatile as $$
declare
  touched app.catalog_items;
begin
  update app.catalog_items i set updated_at = internal.now() where i.id = (catalog_item_touch.item).id
    returning i.* into touched;
  return touched;
end $$;
comment on function internal.catalog_item_touch is 'Sets updated_at of an item whose prices or contents have changed.';

create or replace function api.catalog_prices_put(id_or_key text, prices jsonb) returns api.reply
language plpgsql volatile as $$
declare
  item app.catalog_items;
begin
  perform internal.catalog_lock();
  item := internal.definition_find(null::app.catalog_items, catalog_prices_put.id_or_key);
  perform internal.catalog_prices_set(item, catalog_prices_put.prices);
  return internal.reply(200, internal.catalog_item_json(internal.catalog_item_touch(item)));
end $$;
comment on function api.catalog_prices_put is
  'Replaces an item''s prices. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR.';

create or replace function api.catalog_contents_put(id_or_key text, bundle_contents jsonb) returns api.reply
language plpgsql volatile as $$
declare
  item app.catalog_items;
begin
  perform internal.catalog_lock();
  item := internal.definition_find(null::app.catalog_items, catalog_contents_put.id_or_key);
  perform internal.catalog_contents_set(item, catalog_contents_put.bundle_contents);
  return internal.reply(200, internal.catalog_item_json(internal.catalog_item_touch(item)));
end $$;
comment on function api.catalog_contents_put is
  'Replaces the contents of a bundle. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, BUNDLE_CYCLE.';

create or replace function internal.catalog_import_part(part text, item jsonb) returns text
language plpgsql volatile as $$
declare
  found_item app.catalog_items;
  before jsonb;
  after jsonb;
begin
  select i.* into found_item from app.catalog_items i where i.key = catalog_import_part.item ->> 'key';
  before := case when found_item.id is not null then internal.catalog_item_json(found_item)::jsonb - 'updated_at' end;
  if catalog_import_part.part = 'item' then
    if found_item.id is not null and catalog_import_part.item ->> 'item_type' <> found_item.item_type then
      perform internal.invalid('item_type', 'cannot change');
    end if;
    if found_item.id is null then
      found_item := internal.catalog_item__insert(catalog_import_part.item - 'bundle_contents');
    else
      found_item := internal.catalog_item__update(found_item.id::text, catalog_import_part.item);
      if catalog_import_part.item ? 'prices' then
        perform internal.catalog_prices_set(found_item, catalog_import_part.item -> 'prices');
      end if;
    end if;
  elsif catalog_import_part.item ? 'bundle_contents' then
    perform internal.catalog_contents_set(found_item, catalog_import_part.item -> 'bundle_contents');
  end if;
  after := internal.catalog_item_json(found_item)::jsonb - 'updated_at';
  return case when before is null then 'created' when before <> after then 'updated' else 'unchanged' end;
end $$;
comment on function internal.catalog_import_part is
  'Imports one item, or its contents: created, updated or unchanged. The caller must hold the catalog''s lock.';

create or replace function api.catalog_import(items jsonb, problems jsonb default '{}', dry_run boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  step record;
  came text;
  refusal text;
  violated text;
  violated_table text;
  outcomes jsonb := '{}';
  -- the errors that the HTTP layer has found, by index
  errors jsonb := catalog_import.problems;
begin
  perform internal.catalog_lock();
  perform internal.catalog_currencies_hold(jsonb_path_query_array(catalog_import.items, '$[*].item.prices[*]'));
  begin
    -- items first, then the contents of bundles, which may be items of the same file
    for step in
      select i.value ->> 'index' as index, i.value -> 'item' as item, p.part
        from jsonb_array_elements(catalog_import.items) with ordinality as i (value, n),
          (values (1, 'item'), (2, 'contents')) as p (round, part)
       order by p.round, i.n
    loop
      continue when errors ? step.index;
      begin
        came := internal.catalog_import_part(step.part, step.item);
        outcomes := outcomes || jsonb_build_object(step.index,
                                                   case when outcomes ->> step.index is null
                                                        or came = 'updated' and outcomes ->> step.index = 'unchanged'
                                                        then came else outcomes ->> step.index end);
      exception when sqlstate 'TR000' or integrity_constraint_violation or data_exception then
        get stacked diagnostics violated = constraint_name, violated_table = table_name;
        refusal := coalesce(regexp_replace(internal.constraint_refusal('app', violated_table, violated),
                                           '^\d+ [A-Z_]+ ?', ''), sqlerrm);
        outcomes := outcomes - step.index;
        errors := errors || jsonb_build_object(step.index,
                                               jsonb_build_object('index', step.index::int, 'key', step.item ->> 'key',
                                                                  'message', refusal));
      end;
    end loop;
    -- the errors of all items are reported, and nothing is written
    if catalog_import.dry_run or errors <> '{}' then
      raise exception 'undone' using errcode = 'TR003';
    end if;
  exception when sqlstate 'TR003' then
    null;
  end;
  return internal.reply(200, json_build_object(
    'created', (select count(*) from jsonb_each_text(outcomes) o where o.value = 'created'),
    'updated', (select count(*) from jsonb_each_text(outcomes) o where o.value = 'updated'),
    'unchanged', (select count(*) from jsonb_each_text(outcomes) o where o.value = 'unchanged'),
    'errors', coalesce((select json_agg(e.value order by e.key::int) from jsonb_each(errors) e), '[]')));
end $$;
comment on function api.catalog_import is
  'Creates or updates items by key, all or none: {created, updated, unchanged, errors}. With dry_run, or with an error,
   nothing is written.';

select internal.audit_declare('app.catalog_items', 'catalog');
select internal.audit_declare('app.catalog_item_prices', 'catalog');
select internal.audit_declare('app.bundle_contents', 'catalog');
