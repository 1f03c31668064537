-- Changes of inventories by callers: users consume their own items, servers and administrators grant and revoke.
create or replace function internal.inventory_item(key text) returns app.catalog_items
language plpgsql stable as $$
declare
  item constant app.catalog_items := internal.catalog_find(inventory_item.key);
begin
  perform internal.check_found(item.id is not null, 'item', 'ITEM_NOT_FOUND');
  return item;
end $$;
comment on function internal.inventory_item is
  'An item by id or key, active or not, since users keep items that were deactivated. Refuses 404 ITEM_NOT_FOUND.';

create or replace function internal.inventory_transact(app_user_id uuid, verb text, item_key text, quantity int,
                                                       expires_at timestamptz, reason text, idempotency_key text,
                                                       body_hash text)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  route constant text := case inventory_transact.verb
                              when 'consume' then 'POST inventory/' || inventory_transact.item_key || '/consume'
                                else 'POST inventory/' || inventory_transact.verb end;
  act_id constant text := internal.new_id()::text;
  item app.catalog_items;
  answer api.reply;
  effect jsonb;
  stacks app.inventory_stacks[];
begin
  case internal.caller()
    when 'developer' then
      if inventory_transact.verb not in ('grant', 'revoke') then
        raise exception 'only its owner uses an item up';
      end if;
    when 'server_key_user', 'user' then
      if inventory_transact.app_user_id is distinct from internal.user_id()
        or inventory_transact.verb not in ('grant', 'consume') then
        raise exception 'users act on their own items alone';
      elsif inventory_transact.verb = 'grant' and internal.caller() = 'user' then
        perform internal.fail(403, 'SERVER_KEY_REQUIRED', 'Only a server key may grant items.');
      end if;
    else
      raise exception 'items are not moved by %', internal.caller();
  end case;
  if coalesce(inventory_transact.quantity not between 1 and 10000, true)
    or inventory_transact.verb = 'consume' and inventory_transact.quantity > 100 then
    perform internal.invalid('quantity', 'must be a whole number of 1 to ' || case inventory_transact.verb
                                        when 'consume' then '100' else '10000' end);
  end if;
  perform internal.ledger_lock_user(inventory_transact.app_user_id);
  answer := internal.ledger_stored_reply(inventory_transact.app_user_id, route, inventory_transact.idempotency_key,
                                         inventory_transact.body_hash);
  if answer is not null then
    return answer;
  end if;
  perform internal.ledger_expiry_check(inventory_transact.expires_at);
  item := internal.inventory_item(inventory_transact.item_key);
  if inventory_transact.verb = 'grant' then
    stacks := internal.inventory_give(inventory_transact.app_user_id, item, inventory_transact.quantity,
                                      inventory_transact.expires_at, inventory_transact.reason, 'admin', act_id);
    answer := internal.reply(201, coalesce((
      -- read again: a bundle may add to one stack twice
      select json_agg(internal.inventory_json(s) order by s.id) from app.inventory_stacks s
       where s.id in (select given.id from unnest(stacks) given)), '[]'));
  elsif inventory_transact.verb = 'revoke' then
    perform internal.inventory_remove(inventory_transact.app_user_id, item, inventory_transact.quantity, 'revoked',
                                      inventory_transact.reason, 'admin', act_id);
    answer := internal.reply(200, json_build_object('catalog_item_key', item.key,
                                                    'quantity', internal.inventory_quantity(
                                                      inventory_transact.app_user_id, item.id)));
  else
    if item.item_type <> 'consumable' then
      perform internal.fail(409, 'NOT_CONSUMABLE', 'Only items of type consumable can be consumed.',
                            json_build_object('item_type', item.item_type));
    end if;
    perform internal.inventory_remove(inventory_transact.app_user_id, item, inventory_transact.quantity, 'consumed',
                                      'consume', 'consume', act_id);
    for n in 1 .. case when item.use_effect is null then 0 else inventory_transact.quantity end loop
      perform internal.grant_reward(inventory_transact.app_user_id, item.use_effect, 'consume', act_id || ':' || n);
    end loop;
    perform internal.emit(inventory_transact.app_user_id, 'svc.inventory.consumed',
                          jsonb_build_object('catalog_item_key', item.key, 'quantity', inventory_transact.quantity));
    answer := internal.reply(200, json_build_object('item', internal.inventory_item_json(item),
                                                    'quantity', internal.inventory_quantity(
                                                      inventory_transact.app_user_id, item.id), 'effect',
                                                        item.use_effect));
  end if;
  if internal.caller() = 'developer' then
    perform internal.audit('inventory.' || inventory_transact.verb, 'users', inventory_transact.app_user_id::text,
                           json_build_object(
      'catalog_item_key', json_build_array(null, item.key),
        'quantity', json_build_array(null, inventory_transact.quantity),
      'reason', json_build_array(null, inventory_transact.reason)), (answer).status);
  end if;
  return internal.ledger_store_reply(inventory_transact.app_user_id, route, inventory_transact.idempotency_key,
                                     inventory_transact.body_hash, answer);
end $$;
comment on function internal.inventory_transact is
  'Grants, revokes or consumes items, after checking the caller. Refuses 403 SERVER_KEY_REQUIRED, 404 NOT_FOUND,
   ITEM_NOT_FOUND, 400 VALIDATION_ERROR, 409 MAX_OWNED_REACHED, LIMIT_REACHED, INSUFFICIENT_QUANTITY, NOT_CONSUMABLE,
   IDEMPOTENCY_CONFLICT. Locks the user.';

create or replace function api.inventory_grant(catalog_item_key text, app_user_id uuid default null,
                                               quantity int default 1, expires_at text default null,
                                               reason text default 'grant', idempotency_key text default null,
                                               body_hash text default null)
returns api.reply
language sql volatile as $$
  select internal.inventory_transact(coalesce(internal.user_id(), inventory_grant.app_user_id), 'grant',
                                     inventory_grant.catalog_item_key, inventory_grant.quantity,
                                     internal.currency_expires(inventory_grant.expires_at), inventory_grant.reason,
                                     inventory_grant.idempotency_key,
                                     inventory_grant.body_hash)
$$;
comment on function api.inventory_grant is
  'Grants items to a user: 201 with their stacks, 200 when it is replayed. Refuses as internal.inventory_transact.';

create or replace function api.inventory_revoke(app_user_id uuid, catalog_item_key text, quantity int default 1,
                                                reason text default 'revoke', idempotency_key text default null,
                                                body_hash text default null)
returns api.reply
language sql volatile as $$
  select internal.inventory_transact(inventory_revoke.app_user_id, 'revoke', inventory_revoke.catalog_item_key,
                                     inventory_revoke.quantity, null,
                                     inventory_revoke.reason, inventory_revoke.idempotency_key,
                                     inventory_revoke.body_hash)
$$;
comment on function api.inventory_revoke is
  'Revokes items of a user: {catalog_item_key, quantity}, the remaining quantity. Refuses as
   internal.inventory_transact.';

create or replace function api.inventory_consume(id_or_key text, quantity int default 1,
                                                 idempotency_key text default null, body_hash text default null)
returns api.reply
language sql volatile as $$
  select internal.inventory_transact(internal.user_id(), 'consume', internal.inventory_key(inventory_consume.id_or_key),
                                     inventory_consume.quantity, null, null,
                                     inventory_consume.idempotency_key, inventory_consume.body_hash)
$$;
comment on function api.inventory_consume is
  'Consumes some of the caller''s items, the soonest to expire first, and applies their use_effect once for each: {item,
   remaining quantity, effect}. Refuses as internal.inventory_transact.';

create or replace function internal.inventory_key(id_or_key text) returns text
language sql stable as $$
  -- an id may be that of a stack or of an item
  select coalesce((select s.catalog_item_id::text from app.inventory_stacks s
                    where s.id = internal.as_uuid(inventory_key.id_or_key) and s.app_user_id = internal.user_id()),
                      inventory_key.id_or_key)
$$;
comment on function internal.inventory_key is
  'The item that a path of the caller''s inventory names: by its key or id, or by the id of a stack of theirs.';

create or replace function internal.inventory_set_metadata(stack_id uuid, marks jsonb) returns app.inventory_stacks
language plpgsql volatile security definer set search_path = '' as $$
declare
  stack app.inventory_stacks;
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'users mark their own items, not %', internal.caller();
  end if;
  update app.inventory_stacks s
     set metadata = s.metadata || jsonb_build_object('user', (
           -- a null at a deeper level is stored like any other value
           select coalesce(jsonb_object_agg(m.key, m.value), '{}')
             from jsonb_each(coalesce(s.metadata -> 'user', '{}') || inventory_set_metadata.marks) m
            where m.value <> 'null')),
         updated_at = internal.now()
   where s.id = inventory_set_metadata.stack_id and s.app_user_id = internal.user_id() and s.quantity > 0
     and (s.expires_at is null or s.expires_at > internal.now())
  returning s.* into stack;
  if stack.id is null then
    perform internal.fail(404, 'ITEM_NOT_FOUND', 'The user has no such item.');
  elsif length((stack.metadata -> 'user')::text) > 4096 then
    perform internal.invalid('metadata', 'must have at most 4096 characters as JSON');
  end if;
  return stack;
end $$;
comment on function internal.inventory_set_metadata is
  'Merges keys into metadata.user of a stack of the caller; null removes a key. Refuses 404 ITEM_NOT_FOUND, 400
   VALIDATION_ERROR.';

create or replace function api.inventory_patch(id_or_key text, metadata jsonb default '{}') returns api.reply
language plpgsql volatile as $$
begin
  return internal.reply(200,
                        internal.inventory_json(internal.inventory_set_metadata(
                          (internal.inventory_own_stack(inventory_patch.id_or_key)).id,
                                                                                coalesce(inventory_patch.metadata
                                                                                  -> 'user', '{}'))));
end $$;
comment on function api.inventory_patch is
  'Changes the caller''s own metadata of a stack, metadata.user only. Refuses 404 ITEM_NOT_FOUND, 400
   VALIDATION_ERROR.';
