-- Reads of inventories by users and administrators.
select internal.row_declare('inventory_item_json', null::app.catalog_items, '{key,name,item_type,icon_url}');
comment on function internal.inventory_item_json is 'The item of a stack, abbreviated.';

create or replace function internal.inventory_json(s app.inventory_stacks) returns json
language sql stable as $$
  select json_build_object(
    'id', (inventory_json.s).id, 'app_user_id', (inventory_json.s).app_user_id,
      'catalog_item_id', (inventory_json.s).catalog_item_id,
    'item', (select internal.inventory_item_json(i) from app.catalog_items i
              where i.id = (inventory_json.s).catalog_item_id),
    'quantity', (inventory_json.s).quantity, 'expires_at', internal.iso((inventory_json.s).expires_at),
    'metadata', (inventory_json.s).metadata,
    'source_type', (inventory_json.s).source_type, 'source_id', (inventory_json.s).source_id,
    'created_at', internal.iso((inventory_json.s).created_at),
    'updated_at', internal.iso((inventory_json.s).updated_at))
$$;
comment on function internal.inventory_json is 'A stack as every response shows it.';

create or replace function api.inventory_list(item_type text default null, category text default null,
                                              page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  total bigint;
  shown json;
begin
  with hits as materialized (
    select s from app.inventory_stacks s join app.catalog_items i on i.id = s.catalog_item_id
     where s.app_user_id = internal.user_id() and s.quantity > 0
       and (s.expires_at is null or s.expires_at > internal.now())
       and (inventory_list.item_type is null or i.item_type = inventory_list.item_type)
       and (inventory_list.category is null or i.category = inventory_list.category)
  )
  select (select count(*) from hits),
         (select json_agg(internal.inventory_json(p.s) order by (p.s).created_at desc, (p.s).id desc)
            from (select h.s from hits h order by (h.s).created_at desc, (h.s).id desc limit inventory_list.page_limit
                  offset inventory_list.page_offset) p)
    into total, shown;
  return internal.reply_page(shown, total, inventory_list.page_offset, inventory_list.page_limit);
end $$;
comment on function api.inventory_list is 'The caller''s stacks, newest first; expired and empty ones are hidden.';

create or replace function internal.inventory_own_stack(id_or_key text) returns app.inventory_stacks
language plpgsql stable as $$
declare
  stack app.inventory_stacks;
begin
  select s.* into stack
    from app.inventory_stacks s
    join app.catalog_items i on i.id = s.catalog_item_id
   where s.app_user_id = internal.user_id() and s.quantity > 0
     and (s.expires_at is null or s.expires_at > internal.now())
     and (internal.as_uuid(inventory_own_stack.id_or_key) in (s.id, i.id) or i.key = inventory_own_stack.id_or_key)
   order by s.expires_at nulls last, s.id
   limit 1;
  if stack.id is null then
    perform internal.fail(404, 'ITEM_NOT_FOUND', 'The user has no such item.');
  end if;
  return stack;
end $$;
comment on function internal.inventory_own_stack is
  'A stack of the caller, by its id, or an item''s stack that expires soonest. Refuses 404 ITEM_NOT_FOUND.';

create or replace function api.inventory_get(id_or_key text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.inventory_json(internal.inventory_own_stack(inventory_get.id_or_key)))
$$;
comment on function api.inventory_get is 'One of the caller''s stacks. Refuses 404 ITEM_NOT_FOUND.';

select internal.list_declare('inventory_page', null::app.inventory_stacks, 'inventory_json', '{created_at,id}',
                             filters => '{app_user_id,catalog_item_id}',
                             is_skewed => true, is_counted => true);

create or replace function api.inventory_all(user_id uuid default null, item_key text default null,
                                             page_offset int default 0, page_limit int default 50,
                                             include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(internal.inventory_page(
    inventory_all.user_id,
    -- an item that does not exist has no stacks
    case when inventory_all.item_key is not null
         then coalesce((internal.catalog_find(inventory_all.item_key)).id, '00000000-0000-0000-0000-000000000000') end,
    inventory_all.page_offset, inventory_all.page_limit), inventory_all.include)
$$;
comment on function api.inventory_all is 'Stacks of all users, newest first, including empty and expired ones.';

create or replace function internal.inventory_movement_json(l app.inventory_ledger_rows) returns json
language sql stable as $$
  select json_build_object(
    'id', (inventory_movement_json.l).id, 'app_user_id', (inventory_movement_json.l).app_user_id,
      'stack_id', (inventory_movement_json.l).stack_id,
    'catalog_item_id', (inventory_movement_json.l).catalog_item_id,
    'catalog_item_key', (select i.key from app.catalog_items i
                          where i.id = (inventory_movement_json.l).catalog_item_id),
    'change', (inventory_movement_json.l).change, 'quantity_after', (inventory_movement_json.l).quantity_after,
    'kind', (inventory_movement_json.l).kind,
    'reason', (inventory_movement_json.l).reason, 'source_type', (inventory_movement_json.l).source_type,
    'source_id', (inventory_movement_json.l).source_id,
    'created_at', internal.iso((inventory_movement_json.l).created_at))
$$;
comment on function internal.inventory_movement_json is 'A row of the ledger as responses show it.';

select internal.list_declare('inventory_movements', null::app.inventory_ledger_rows, 'inventory_movement_json', '{id}',
                             filters => '{app_user_id}',
                             by_cursor => true);

create or replace function api.inventory_ledger(user_id uuid default null, cursor text default null,
                                                page_limit int default 50, include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.inventory_movements(inventory_ledger.user_id, inventory_ledger.cursor, inventory_ledger.page_limit),
    inventory_ledger.include)
$$;
comment on function api.inventory_ledger is 'Movements of items, newest first. Refuses 400 INVALID_INPUT.';
