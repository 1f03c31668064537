-- All changes of quantities go through these functions, with the user locked.
comment on constraint inventory_stacks_catalog_item_id_fkey on app.inventory_stacks is
  '409 ITEM_IN_USE: Users have this item. Set is_active to false instead.';
comment on constraint inventory_ledger_rows_catalog_item_id_fkey on app.inventory_ledger_rows is
  '409 ITEM_IN_USE: Users had this item. Set is_active to false instead.';

create or replace function internal.inventory_quantity(app_user_id uuid, catalog_item_id uuid) returns bigint
language sql stable as $$
  select coalesce(sum(s.quantity), 0)
    from app.inventory_stacks s
   where s.app_user_id = inventory_quantity.app_user_id and s.catalog_item_id = inventory_quantity.catalog_item_id
     and (s.expires_at is null or s.expires_at > internal.now())
$$;
comment on function internal.inventory_quantity is
  'A user''s present quantity of an item, over all stacks that have not expired.';

create or replace function internal.inventory_log(stack app.inventory_stacks, change bigint, kind text, reason text,
                                                  source_type text, source_id text)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.inventory_ledger_rows (app_user_id, stack_id, catalog_item_id, change, quantity_after, kind, reason,
                                         source_type, source_id)
  values ((inventory_log.stack).app_user_id, (inventory_log.stack).id, (inventory_log.stack).catalog_item_id,
          inventory_log.change,
          (inventory_log.stack).quantity, inventory_log.kind, inventory_log.reason, inventory_log.source_type,
          inventory_log.source_id);
end $$;
comment on function internal.inventory_log is 'Appends one row to the ledger of items. Granted to nobody.';

create or replace function internal.inventory_add(app_user_id uuid, item app.catalog_items, quantity bigint,
                                                  expires_at timestamptz, kind text, reason text, source_type text,
                                                  source_id text)
returns app.inventory_stacks
language plpgsql volatile security definer set search_path = '' as $$
declare
  stack app.inventory_stacks;
begin
  if internal.inventory_quantity(inventory_add.app_user_id,
                                 (inventory_add.item).id) + inventory_add.quantity > (inventory_add.item).max_owned then
    perform internal.fail(409, 'MAX_OWNED_REACHED',
                          'A user has at most ' || (inventory_add.item).max_owned || ' of ' || (inventory_add.item).key
                            || '.',
                          json_build_object('catalog_item_key', (inventory_add.item).key,
                                            'max_owned', (inventory_add.item).max_owned));
  end if;
  if not exists (select from app.inventory_stacks s
                  where (s.app_user_id, s.catalog_item_id) = (inventory_add.app_user_id, (inventory_add.item).id)) then
    -- an item that is being deleted is waited for, and then not found
    perform from app.catalog_items i where i.id = (inventory_add.item).id for key share;
    if not found then
      perform internal.fail(404, 'ITEM_NOT_FOUND', 'There is no such item.');
    end if;
  end if;
  insert into app.inventory_stacks as s (app_user_id, catalog_item_id, quantity, expires_at, source_type, source_id)
  values (inventory_add.app_user_id, (inventory_add.item).id, inventory_add.quantity, inventory_add.expires_at,
          inventory_add.source_type,
          inventory_add.source_id)
  on conflict on constraint inventory_stacks_one_per_end do update set quantity = s.quantity + excluded.quantity,
    updated_at = internal.now()
  returning s.* into stack;
  if stack.quantity = inventory_add.quantity then
    perform internal.check_limit((select count(*) - 1 from app.inventory_stacks s
                                   where s.app_user_id = inventory_add.app_user_id), 10000,
                                 'A user has at most 10,000 stacks.');
  end if;
  perform internal.inventory_log(stack, inventory_add.quantity, inventory_add.kind, inventory_add.reason,
                                 inventory_add.source_type, inventory_add.source_id);
  return stack;
end $$;
comment on function internal.inventory_add is
  'Adds to the stack with this end. Refuses 409 MAX_OWNED_REACHED, LIMIT_REACHED, 404 ITEM_NOT_FOUND. The user must be
   locked. Granted to nobody.';

create or replace function internal.inventory_give(app_user_id uuid, item app.catalog_items, quantity bigint,
                                                   expires_at timestamptz, reason text, source_type text,
                                                   source_id text)
returns app.inventory_stacks[]
language plpgsql volatile security definer set search_path = '' as $$
declare
  part record;
  stacks app.inventory_stacks[] := '{}';
  stack app.inventory_stacks;
begin
  if (inventory_give.item).item_type = 'bundle' then
    -- a bundle is unpacked: no stack ever holds one
    for part in
      select c, b.quantity from app.bundle_contents b join app.catalog_items c on c.id = b.content_item_id
       where b.bundle_id = (inventory_give.item).id order by b.position
    loop
      stacks := stacks || internal.inventory_give(inventory_give.app_user_id, part.c,
                                                  inventory_give.quantity * part.quantity, inventory_give.expires_at,
                                                  inventory_give.reason, inventory_give.source_type,
                                                  inventory_give.source_id);
    end loop;
  elsif (inventory_give.item).item_type = 'currency_pack' then
    if inventory_give.quantity > 100 then
      perform internal.invalid('quantity', 'must be at most 100 for a pack of currency');
    end if;
    for n in 1 .. inventory_give.quantity loop
      -- a pack of currency never enters the inventory, so that no pack can contain itself
      perform internal.grant_reward(inventory_give.app_user_id, (inventory_give.item).use_effect - 'items',
                                    'currency_pack',
                                    inventory_give.source_type || ':' || inventory_give.source_id || ':'
                                      || (inventory_give.item).key || ':' || n);
    end loop;
  else
    stack := internal.inventory_add(
      inventory_give.app_user_id, inventory_give.item, inventory_give.quantity,
      coalesce(inventory_give.expires_at,
               internal.now() + make_interval(secs => (inventory_give.item).duration_seconds)), 'granted',
      inventory_give.reason, inventory_give.source_type, inventory_give.source_id);
    perform internal.emit(inventory_give.app_user_id, 'svc.inventory.granted', jsonb_build_object(
      'catalog_item_key', (inventory_give.item).key, 'quantity', inventory_give.quantity,
        'reason', inventory_give.reason,
      'source_type', inventory_give.source_type, 'source_id', inventory_give.source_id));
    stacks := stacks || stack;
  end if;
  return stacks;
end $$;
comment on function internal.inventory_give is
  'Grants an item: a bundle as its contents, a pack of currency as its effect, any other item as a stack, which ends at
   the given time or after the item''s duration. Emits svc.inventory.granted. Refuses 409 MAX_OWNED_REACHED,
   LIMIT_REACHED. The user must be locked. Granted to nobody.';

create or replace function internal.inventory_remove(app_user_id uuid, item app.catalog_items, quantity bigint,
                                                     kind text, reason text, source_type text, source_id text,
                                                     first_of uuid default null)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  stack app.inventory_stacks;
  due bigint := inventory_remove.quantity;
  part bigint;
  held constant bigint := internal.inventory_quantity(inventory_remove.app_user_id, (inventory_remove.item).id);
begin
  if held < due then
    perform internal.fail(409, 'INSUFFICIENT_QUANTITY', 'There is not enough of ' || (inventory_remove.item).key || '.',
                          json_build_object(
      'catalog_item_key', (inventory_remove.item).key, 'quantity', held, 'required', due));
  end if;
  for stack in
    select s.* from app.inventory_stacks s
     where s.app_user_id = inventory_remove.app_user_id and s.catalog_item_id = (inventory_remove.item).id
       and s.quantity > 0
       and (s.expires_at is null or s.expires_at > internal.now())
     order by (s.id = inventory_remove.first_of) is true desc, s.expires_at nulls last, s.id
  loop
    exit when due = 0;
    part := least(due, stack.quantity);
    update app.inventory_stacks s set quantity = s.quantity - part, updated_at = internal.now() where s.id = stack.id
      returning s.* into stack;
    perform internal.inventory_log(stack, -part, inventory_remove.kind, inventory_remove.reason,
                                   inventory_remove.source_type, inventory_remove.source_id);
    due := due - part;
  end loop;
end $$;
comment on function internal.inventory_remove is
  'Removes from the stack first_of, and then from those that expire soonest. Refuses 409 INSUFFICIENT_QUANTITY. The user
   must be locked. Granted to nobody.';

create or replace function internal.reward__items(app_user_id uuid, part jsonb, source_type text, source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  wanted record;
  outcome jsonb := '[]';
begin
  perform internal.lock_users(array[reward__items.app_user_id]);
  for wanted in
    select p.value ->> 'catalog_item_key' as key, coalesce(p.value -> 'quantity', '1') as quantity, i as item
      from jsonb_array_elements(reward__items.part) with ordinality as p (value, n)
      left join app.catalog_items i on i.key = p.value ->> 'catalog_item_key'
     order by p.value ->> 'catalog_item_key' collate "C", p.n
  loop
    begin
      if wanted.item is null then
        raise exception 'there is no such item';
      elsif not coalesce(jsonb_typeof(wanted.quantity) = 'number' and wanted.quantity #>> '{}' ~ '^[1-9][0-9]{0,4}$'
                         and (wanted.quantity)::int <= 10000, false) then
        raise exception 'the quantity must be a whole number of 1 to 10000';
      end if;
      perform internal.inventory_give(reward__items.app_user_id, wanted.item, (wanted.quantity)::bigint, null,
                                      left(reward__items.source_type, 200), 'reward',
                                      reward__items.source_type || ':' || reward__items.source_id);
      outcome := outcome || jsonb_build_object('catalog_item_key', wanted.key, 'given', wanted.quantity);
    exception when others then
      if internal.is_passing(sqlstate) then
        raise;
      end if;
      outcome := outcome || jsonb_build_object('catalog_item_key', wanted.key, 'given', 0, 'reason', sqlerrm);
    end;
  end loop;
  return jsonb_build_object('given', jsonb_path_exists(outcome, '$[*] ? (@.given > 0)'), 'items', outcome);
end $$;
comment on function internal.reward__items is
  'Grants the items of a reward, [{catalog_item_key, quantity}], independently; an item that cannot be granted is
   recorded with the reason. Granted to nobody.';

create or replace function internal.inventory_in_both(survivor uuid, other uuid)
returns table (catalog_item_id uuid, quantity numeric)
language sql stable security definer set search_path = '' as $$
  with recursive given as (
    select i.id, (part.value ->> 'given')::numeric as quantity, g.granted_at, 1 as depth
      from internal.rewards_in_both(inventory_in_both.survivor, inventory_in_both.other) g
     cross join jsonb_array_elements(g.outcome #> '{items,items}') as part (value)
      join app.catalog_items i on i.key = part.value ->> 'catalog_item_key'
    union all
    select b.content_item_id, g.quantity * b.quantity, g.granted_at, g.depth + 1
      from given g
      join app.bundle_contents b on b.bundle_id = g.id
     where g.depth <= 3
  )
  select g.id, sum(g.quantity)
    from given g
    join app.catalog_items i on i.id = g.id
   -- expired stacks do not count
   where i.duration_seconds is null or g.granted_at + make_interval(secs => i.duration_seconds) > internal.now()
   group by g.id
$$;
comment on function internal.inventory_in_both is
  'For a merge: how many of each item both users received as a reward from the same source, with bundles unpacked.
   Granted to nobody.';

create or replace function internal.effects_in_both(survivor uuid, other uuid)
returns table (effect jsonb, times numeric)
language sql stable security definer set search_path = '' as $$
  select i.use_effect, t.quantity - internal.inventory_quantity(effects_in_both.other, i.id)
    from internal.inventory_in_both(effects_in_both.survivor, effects_in_both.other) t
    join app.catalog_items i on i.id = t.catalog_item_id and i.item_type = 'consumable'
      and jsonb_typeof(i.use_effect) = 'object'
   where t.quantity > internal.inventory_quantity(effects_in_both.other, i.id)
$$;
comment on function internal.effects_in_both is
  'For a merge: the effects of such items that the other user has consumed already, and how often, so that these are not
   doubled either. Granted to nobody.';

create or replace function internal.merge__inventory(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  theirs record;
  room bigint;
  moved int := 0;
begin
  for theirs in
    with held as (
      select s.id, s.quantity, s.expires_at, i as item,
             coalesce(sum(s.quantity) over (partition by i.id
                                            order by s.id rows between unbounded preceding and 1 preceding),
                                              0) as before,
             coalesce(t.quantity, 0) as twice
        from app.inventory_stacks s
        join app.catalog_items i on i.id = s.catalog_item_id
        left join internal.inventory_in_both(merge__inventory.survivor,
                                             merge__inventory.other) t on t.catalog_item_id = i.id
       where s.app_user_id = merge__inventory.other and s.quantity > 0
         and (s.expires_at is null or s.expires_at > internal.now())
    )
    -- a reward that both received from one source counts once
    select h.expires_at, h.item, least(h.quantity, h.before + h.quantity - h.twice)::bigint as quantity from held h
     order by h.id
  loop
    room := least(theirs.quantity,
                  coalesce((theirs.item).max_owned - internal.inventory_quantity(merge__inventory.survivor,
                                        (theirs.item).id), theirs.quantity));
    continue when room <= 0;
    perform internal.inventory_add(merge__inventory.survivor, theirs.item, room, theirs.expires_at, 'merged', 'merge',
                                   'merge', merge__inventory.other::text);
    moved := moved + 1;
  end loop;
  return moved;
end $$;
comment on function internal.merge__inventory is
  'Adds one user''s stacks to another''s, without rewards that both received, and only up to max_owned. Granted to
   nobody.';

create or replace function internal.tg_inventory_ledger_rows__frozen() returns trigger
language plpgsql volatile as $$
begin
  raise exception 'the ledger of items is only ever added to';
end $$;
comment on function internal.tg_inventory_ledger_rows__frozen is
  'Makes the ledger append-only: no role can change a row.';

create or replace trigger tg_inventory_ledger_rows__frozen
  before update on app.inventory_ledger_rows
  for each row execute function internal.tg_inventory_ledger_rows__frozen();
