-- Purchases: one transaction that checks, debits, grants and records, or leaves nothing. Money and items move by the
-- functions of their own ledgers.
select internal.row_declare('purchase_json', null::app.purchases,
                            '{id,app_user_id,store_id,offer_id,quantity,currency_code,total_price,status,granted,
                              created_at,refunded_at}');
comment on function internal.purchase_json is 'A purchase as every response shows it.';

create or replace function internal.store_refuse(code text, message text, details json default null,
                                                 status int default 409)
returns void
language sql volatile as $$
  select internal.fail(store_refuse.status, store_refuse.code, store_refuse.message, store_refuse.details)
$$;
comment on function internal.store_refuse is 'Refuses a purchase or a refund, 409 unless it says otherwise.';

create or replace function internal.store_offer_bought(store app.stores, offer_id uuid, offer_key text)
returns app.store_offers
language plpgsql volatile security definer set search_path = '' as $$
declare
  offer app.store_offers;
begin
  -- held against deletion until the purchase has its row
  select o.* into offer from app.store_offers o
   where o.store_id = (store_offer_bought.store).id
     and (o.id = store_offer_bought.offer_id or o.key = store_offer_bought.offer_key)
     for key share;
  if offer.id is null then
    perform internal.store_refuse('OFFER_NOT_FOUND', 'The store has no such offer.', null, 404);
  end if;
  return offer;
end $$;
comment on function internal.store_offer_bought is
  'The offer that a purchase names, by id or key, locked against deletion. Refuses 404 OFFER_NOT_FOUND. Granted to
   nobody.';

create or replace function internal.store_units_check(quantity int, remaining_for_user bigint, remaining_stock bigint,
                                                      full_item app.catalog_items)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  item_key constant text := (store_units_check.full_item).key;
  -- what JSON holds exactly, for an item without a limit
  max_owned constant bigint := coalesce((store_units_check.full_item).max_owned, 9007199254740991);
begin
  if store_units_check.remaining_for_user < store_units_check.quantity then
    perform internal.store_refuse('PURCHASE_LIMIT_REACHED', 'The user has bought as many as a user may.',
                                  json_build_object('remaining', store_units_check.remaining_for_user));
  elsif store_units_check.remaining_stock < store_units_check.quantity then
    perform internal.store_refuse('OUT_OF_STOCK', 'There are not as many left.',
                                  json_build_object('remaining', store_units_check.remaining_stock));
  elsif item_key is not null then
    perform internal.store_refuse('MAX_OWNED_REACHED', 'A user has at most ' || max_owned || ' of ' || item_key || '.',
                                  json_build_object('catalog_item_key', item_key, 'max_owned', max_owned));
  end if;
end $$;
comment on function internal.store_units_check is
  'Refuses as many units as exceed the limit of the user, the stock, or what a user may own: 409
   PURCHASE_LIMIT_REACHED, OUT_OF_STOCK, MAX_OWNED_REACHED. Granted to nobody.';

create or replace function internal.store_grant(app_user_id uuid, item app.catalog_items, quantity bigint,
                                                purchase_id uuid, paid_in text, out granted jsonb, out stacks jsonb,
                                                out credits jsonb)
language plpgsql volatile security definer set search_path = '' as $$
declare
  given record;
  credit record;
  stack app.inventory_stacks[];
begin
  granted := '[]';
  stacks := '{}';
  credits := '{}';
  for given in
    select c.part, c.quantity from internal.store_contents(store_grant.item, store_grant.quantity) c
  loop
    granted := granted || jsonb_build_object('catalog_item_id', (given.part).id, 'key', (given.part).key,
                                             'quantity', given.quantity);
    if (given.part).item_type = 'currency_pack' then
      credits := internal.store_pack_opened(store_grant.app_user_id, given.part, given.quantity,
                                            store_grant.purchase_id, credits);
    else
      stack := internal.inventory_give(store_grant.app_user_id, given.part, given.quantity, null, 'purchase',
                                       'purchase', store_grant.purchase_id::text);
      stacks := stacks || jsonb_build_object((given.part).id::text, (stack[1]).id);
    end if;
  end loop;
  for credit in
    select c, e.value::bigint as amount
      from jsonb_each_text(credits) e
      join app.currencies c on c.code = e.key
     order by c.code collate "C"
  loop
    -- what was bought never expires. The debit of the same currency has the purchase's id already
    perform internal.currency_apply(store_grant.app_user_id, credit.c, credit.amount, 'purchase', 'purchase',
                                    store_grant.purchase_id
                                      || case when (credit.c).code = store_grant.paid_in then ':pack' else '' end);
  end loop;
end $$;
comment on function internal.store_grant is
  'Gives what a purchase buys: granted [{catalog_item_id, key, quantity}], stacks {catalog_item_id: stack} and credits
   {CODE: amount}. paid_in is the currency that was debited, or null. Refuses 409 BALANCE_LIMIT_EXCEEDED,
   MAX_OWNED_REACHED, LIMIT_REACHED. The user must be locked. Granted to nobody.';

create or replace function internal.store_pack_opened(app_user_id uuid, pack app.catalog_items, quantity bigint,
                                                      purchase_id uuid, credits jsonb)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  each_credits constant jsonb := internal.store_pack_credits(store_pack_opened.pack);
  others constant jsonb := coalesce((store_pack_opened.pack).use_effect, '{}') - '{items,currencies}'::text[];
begin
  if each_credits is null then
    perform internal.store_refuse('OFFER_NOT_AVAILABLE', 'What it gives cannot be credited.',
                                  json_build_object('reason', 'item_inactive'));
  elsif others <> '{}' then
    if store_pack_opened.quantity > 100 then
      perform internal.invalid('quantity', 'must be at most 100 for a pack of more than currency');
    end if;
    for n in 1 .. store_pack_opened.quantity loop
      perform internal.grant_reward(store_pack_opened.app_user_id, others, 'purchase', concat_ws(
        ':', store_pack_opened.purchase_id, (store_pack_opened.pack).key, n));
    end loop;
  end if;
  return store_pack_opened.credits || coalesce((
    -- cut off where no balance has room, and a number would not hold it
    select jsonb_object_agg(e.key, least(coalesce((store_pack_opened.credits ->> e.key)::numeric, 0)
                                         + e.value::numeric * store_pack_opened.quantity, 9007199254740992))
      from jsonb_each_text(each_credits) e), '{}');
end $$;
comment on function internal.store_pack_opened is
  'Adds what some packs of currency credit to credits, {CODE: amount}, and gives what else they have at once. Refuses
   409 OFFER_NOT_AVAILABLE for currencies that cannot be credited. Granted to nobody.';

create or replace function internal.store_sales_add(offer_id uuid, app_user_id uuid, units int) returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.store_offer_sales as s (offer_id, slot, units)
  values (store_sales_add.offer_id, abs(hashtext(store_sales_add.app_user_id::text) % 16), store_sales_add.units)
  on conflict on constraint store_offer_sales_pkey do update set units = s.units + excluded.units
$$;
comment on function internal.store_sales_add is
  'Counts units of an offer as sold, or with a negative number as given back. Granted to nobody.';

create or replace function internal.store_units_take(offer app.store_offers, app_user_id uuid, quantity int)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  remaining bigint;
begin
  if (store_units_take.offer).stock_total is not null then
    -- the last step of a purchase, so that buyers of one offer wait for one another as short as can be. Who has waited
    -- reads what was sold meanwhile
    select o.stock_total into remaining
      from app.store_offers o where o.id = (store_units_take.offer).id for no key update;
    remaining := remaining - internal.store_offer_sold((store_units_take.offer).id);
    if remaining < store_units_take.quantity then
      perform internal.store_refuse('OUT_OF_STOCK', 'There are not as many left.',
                                    json_build_object('remaining', greatest(remaining, 0)));
    end if;
  end if;
  perform internal.store_sales_add((store_units_take.offer).id, store_units_take.app_user_id,
                                   store_units_take.quantity);
end $$;
comment on function internal.store_units_take is
  'Takes units of an offer from its stock, or refuses 409 OUT_OF_STOCK. Locks an offer with a stock. Granted to
   nobody.';

create or replace function internal.store_told(verb text, p app.purchases, store_key text, offer_key text,
                                               item_key text)
returns void
language sql volatile security definer set search_path = '' as $$
  select internal.emit((store_told.p).app_user_id, 'svc.store.' || store_told.verb, jsonb_build_object(
    'purchase_id', (store_told.p).id, 'store_id', (store_told.p).store_id, 'store_key', store_told.store_key,
    'offer_id', (store_told.p).offer_id, 'offer_key', store_told.offer_key, 'item_key', store_told.item_key,
    'quantity', (store_told.p).quantity, 'currency_code', (store_told.p).currency_code,
    'total_price', (store_told.p).total_price))
$$;
comment on function internal.store_told is
  'Emits svc.store.purchased or svc.store.refunded as an event of the user. Granted to nobody.';

create or replace function internal.store_balances(app_user_id uuid, since uuid) returns json
language sql stable security definer set search_path = '' as $$
  select coalesce(json_object_agg(c.code, (internal.currency_current(c, store_balances.app_user_id)).balance
                                  order by c.code), '{}')
    from app.currencies c
   where exists (select from app.currency_transactions t
                  where t.app_user_id = store_balances.app_user_id and t.currency_code = c.code
                    -- ids of a locked user sort as they were made
                    and t.id > store_balances.since)
$$;
comment on function internal.store_balances is
  'The balances that have moved since an id was made, {CODE: n}. The user must be locked. Granted to nobody.';

create or replace function internal.store_buy(store_id uuid, app_user_id uuid, offer_id uuid, offer_key text,
                                              quantity int, currency_code text, expected_price bigint)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  purchase_id constant uuid := internal.new_id();
  segments constant uuid[] := internal.store_segments_of(store_buy.store_id, store_buy.app_user_id);
  store app.stores;
  offer app.store_offers;
  item app.catalog_items;
  state record;
  total bigint;
  c app.currencies;
  given record;
  bought app.purchases;
  answer api.reply;
begin
  select s.* into store from app.stores s where s.id = store_buy.store_id for key share;
  if store.id is null or internal.store_reason(store, segments) is not null then
    perform internal.store_refuse('STORE_NOT_FOUND', 'There is no such store.', null, 404);
  end if;
  offer := internal.store_offer_bought(store, store_buy.offer_id, store_buy.offer_key);
  select t.* into state
    from internal.store_offers_state(array[offer], store_buy.app_user_id, segments, store_buy.quantity) t;
  item := state.item;
  if state.reason not in ('limit_reached', 'out_of_stock') then
    perform internal.store_refuse('OFFER_NOT_AVAILABLE', 'This offer cannot be bought now.',
                                  json_build_object('reason', state.reason));
  end if;
  select (p.value ->> 'price')::bigint * store_buy.quantity into total
    from jsonb_array_elements(state.prices) p
   where p.value ->> 'currency_code' = store_buy.currency_code;
  if total is null then
    perform internal.fail(400, 'CURRENCY_NOT_ACCEPTED', 'The offer has no price in this currency.',
                          json_build_object('field', 'currency_code', 'reason', 'must be one of the prices'));
  elsif total <> store_buy.expected_price then
    perform internal.store_refuse('PRICE_CHANGED', 'The price is another one now.',
                                  json_build_object('current_price', total));
  end if;
  perform internal.store_units_check(store_buy.quantity, state.remaining_for_user, state.remaining_stock,
                                     state.full_item);
  if total > 0 then
    -- before anything is given, so that nobody pays with what the purchase brings
    select k.* into c from app.currencies k where k.code = store_buy.currency_code;
    perform internal.currency_apply(store_buy.app_user_id, c, -total, 'purchase', 'purchase', purchase_id::text);
  end if;
  given := internal.store_grant(store_buy.app_user_id, item, offer.quantity::bigint * store_buy.quantity, purchase_id,
                                c.code);
  insert into app.purchases (id, app_user_id, store_id, offer_id, quantity, currency_code, total_price, granted,
                             receipt, created_at)
  values (purchase_id, store_buy.app_user_id, store.id, offer.id, store_buy.quantity, store_buy.currency_code, total,
          given.granted, jsonb_build_object('stacks', given.stacks, 'credits', given.credits), internal.now())
  returning * into bought;
  perform internal.store_told('purchased', bought, store.key, offer.key, item.key);
  answer := internal.reply(201, json_build_object(
    'purchase', internal.purchase_json(bought),
    'granted', coalesce((select json_agg(internal.inventory_json(s) order by s.id)
                           from app.inventory_stacks s
                          where s.id in (select g.value::uuid from jsonb_each_text(given.stacks) g)), '[]'),
    'balances', internal.store_balances(store_buy.app_user_id, purchase_id)));
  perform internal.store_units_take(offer, store_buy.app_user_id, store_buy.quantity);
  return answer;
end $$;
comment on function internal.store_buy is
  'Buys some units of an offer for a user, or refuses as api.store_purchase does. The user must be locked. Granted to
   nobody.';

create or replace function api.store_purchase(id_or_key text, currency_code text, expected_price bigint,
                                              offer_id uuid default null, offer_key text default null,
                                              quantity int default 1, idempotency_key text default null,
                                              body_hash text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  store_id uuid;
  route text;
  answer api.reply;
  said text;
  refusal json;
begin
  if internal.caller() not in ('user', 'server_key_user') or me is null then
    raise exception 'users buy for themselves, or servers for them, not %', internal.caller();
  elsif (store_purchase.offer_id is null) = (store_purchase.offer_key is null) then
    perform internal.invalid('offer_id', 'is required, or offer_key, but not both');
  end if;
  perform internal.ledger_lock_user(me);
  select s.id into store_id from app.stores s where internal.is_id_or_key(s.id, s.key, store_purchase.id_or_key);
  route := 'POST stores/' || store_id || '/purchase';
  if route is not null then
    answer := internal.ledger_stored_reply(me, route, store_purchase.idempotency_key, store_purchase.body_hash);
    if answer is not null then
      return answer;
    end if;
  end if;
  answer := internal.rate_refusal('store purchases ' || me, 30, 60, 'A user buys at most 30 times a minute.');
  if answer is not null then
    return answer;
  end if;
  begin
    answer := internal.store_buy(store_id, me, store_purchase.offer_id, store_purchase.offer_key,
                                 store_purchase.quantity, store_purchase.currency_code,
                                 store_purchase.expected_price);
  exception when sqlstate 'TR000' then
    -- a refusal undoes the purchase, and is returned, so that the attempt stays counted
    get stacked diagnostics said = message_text, refusal = pg_exception_detail;
    return internal.refuse((refusal ->> 'status')::int, refusal ->> 'code', said,
                           nullif((refusal -> 'details')::text, 'null')::json);
  end;
  return internal.ledger_store_reply(me, route, store_purchase.idempotency_key, store_purchase.body_hash, answer);
end $$;
comment on function api.store_purchase is
  'Buys some units of an offer for the caller: 201 {purchase, granted, balances}, 200 when it is replayed. Refuses, in
   this order, 404 STORE_NOT_FOUND, OFFER_NOT_FOUND, 409 OFFER_NOT_AVAILABLE, 400 CURRENCY_NOT_ACCEPTED, 409
   PRICE_CHANGED, PURCHASE_LIMIT_REACHED, OUT_OF_STOCK, MAX_OWNED_REACHED, INSUFFICIENT_FUNDS, BALANCE_LIMIT_EXCEEDED,
   LIMIT_REACHED; 409 IDEMPOTENCY_CONFLICT, 429 RATE_LIMITED, 400 VALIDATION_ERROR. Who was deleted meanwhile gets
   401. Locks the user, and an offer with a stock.';
