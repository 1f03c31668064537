-- All changes of balances are made here: the user is locked, expiry and regeneration are booked, and the ledger row and
-- the balance are written together.
create or replace function internal.currency_write(app_user_id uuid, c app.currencies, amount bigint,
                                                   balance_after bigint, reason text, source_type text, source_id text,
                                                   metadata jsonb default '{}', expires_at timestamptz default null,
                                                   idempotency_key text default null, spent_lots jsonb default null)
returns app.currency_transactions
language plpgsql volatile security definer set search_path = '' as $$
declare
  written app.currency_transactions;
begin
  insert into app.currency_transactions as t
    (app_user_id, currency_code, amount, balance_after, reason, source_type, source_id, idempotency_key, expires_at,
     spent_lots, metadata)
  values (currency_write.app_user_id, (currency_write.c).code, currency_write.amount, currency_write.balance_after,
          currency_write.reason,
          currency_write.source_type, currency_write.source_id, currency_write.idempotency_key,
          currency_write.expires_at,
          currency_write.spent_lots, coalesce(currency_write.metadata, '{}'))
  returning t.* into written;
  return written;
end $$;
comment on function internal.currency_write is 'Writes one row of the ledger. Granted to nobody.';

create or replace function internal.currency_balance_locked(app_user_id uuid, c app.currencies)
returns app.currency_balances
language plpgsql volatile security definer set search_path = '' as $$
declare
  held app.currency_balances;
  state internal.currency_state;
  start_balance bigint;
begin
  state := internal.currency_current(currency_balance_locked.c, currency_balance_locked.app_user_id);
  if state.is_new then
    -- the currency has been deleted concurrently
    perform from app.currencies k where k.id = (currency_balance_locked.c).id for key share;
    if not found then
      perform internal.fail(404, 'NOT_FOUND', 'There is no such currency.');
    end if;
    insert into app.currency_balances (app_user_id, currency_code, balance, balance_at, regen_at)
    values (currency_balance_locked.app_user_id, (currency_balance_locked.c).code, state.balance, internal.now(),
            state.regen_at)
    returning * into held;
    start_balance := (currency_balance_locked.c).initial_grant;
    if start_balance > 0 then
      perform internal.currency_write(held.app_user_id, currency_balance_locked.c, start_balance, start_balance,
                                      'initial_grant', 'reward', 'initial_grant');
    end if;
  else
    select b.* into held
      from app.currency_balances b
     where b.app_user_id = currency_balance_locked.app_user_id and b.currency_code = (currency_balance_locked.c).code
       for no key update;
    start_balance := held.balance;
  end if;
  if state.expired > 0 then
    delete from app.currency_lots l
     where l.app_user_id = held.app_user_id and l.currency_code = held.currency_code and l.expires_at <= internal.now();
    perform internal.currency_write(held.app_user_id, currency_balance_locked.c, -state.expired,
                                    start_balance - state.expired, 'expiry', 'expiry',
                                    internal.new_id()::text);
  end if;
  if state.regenerated > 0 then
    perform internal.currency_write(held.app_user_id, currency_balance_locked.c, state.regenerated, state.balance,
                                    'regen', 'regen', internal.new_id()::text);
  end if;
  held.balance := state.balance;
  held.regen_at := state.regen_at;
  update app.currency_balances b
     set balance = held.balance, balance_at = internal.now(), regen_at = held.regen_at
   where b.app_user_id = held.app_user_id and b.currency_code = held.currency_code;
  return held;
end $$;
comment on function internal.currency_balance_locked is
  'A user''s balance after all time-based changes are booked: the initial grant, expiry and regeneration, one ledger row
   each. The user must be locked. Granted to nobody.';

create or replace function internal.currency_debit_lots(app_user_id uuid, code text, amount bigint,
                                                        first_of uuid default null)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  lot app.currency_lots;
  due bigint := currency_debit_lots.amount;
  part bigint;
  taken jsonb := '[]';
begin
  for lot in
    select l.* from app.currency_lots l
     where l.app_user_id = currency_debit_lots.app_user_id and l.currency_code = currency_debit_lots.code
     order by (l.transaction_id = currency_debit_lots.first_of) is true desc, l.expires_at, l.id
  loop
    exit when due = 0;
    part := least(due, lot.remaining);
    if part = lot.remaining then
      delete from app.currency_lots l where l.id = lot.id;
    else
      update app.currency_lots l set remaining = l.remaining - part where l.id = lot.id;
    end if;
    due := due - part;
    taken := taken || jsonb_build_object('expires_at', internal.iso(lot.expires_at), 'amount', part);
  end loop;
  return nullif(taken, '[]');
end $$;
comment on function internal.currency_debit_lots is
  'Takes an amount from credits that expire (lots), soonest expiry first, and the remainder from the rest of the
   balance. Returns what it took from which lot, or null. Granted to nobody.';

create or replace function internal.currency_apply(app_user_id uuid, c app.currencies, amount bigint, reason text,
                                                   source_type text, source_id text, metadata jsonb default '{}',
                                                   expires_at timestamptz default null,
                                                   idempotency_key text default null, first_of uuid default null,
                                                   is_notified boolean default true)
returns app.currency_transactions
language plpgsql volatile security definer set search_path = '' as $$
declare
  held app.currency_balances := internal.currency_balance_locked(currency_apply.app_user_id, currency_apply.c);
  after constant bigint := held.balance + currency_apply.amount;
  written app.currency_transactions;
  told bigint;
begin
  if after < 0 then
    perform internal.fail(409, 'INSUFFICIENT_FUNDS', 'There is not enough ' || held.currency_code || '.',
                          json_build_object(
      'currency_code', held.currency_code, 'balance', held.balance, 'required', -currency_apply.amount));
  elsif currency_apply.amount > 0 and after > (currency_apply.c).max_balance then
    perform internal.fail(409, 'BALANCE_LIMIT_EXCEEDED',
                          'A balance holds at most ' || (currency_apply.c).max_balance || ' ' || held.currency_code
                            || '.',
      json_build_object('currency_code', held.currency_code, 'balance', held.balance,
                        'max_balance', (currency_apply.c).max_balance));
  end if;
  update app.currency_balances b
     set balance = after,
         regen_at = case when (currency_apply.c).regen_amount is not null and after < (currency_apply.c).regen_cap
                         then coalesce(held.regen_at, internal.now()) end
   where b.app_user_id = held.app_user_id and b.currency_code = held.currency_code;
  written := internal.currency_write(
    held.app_user_id, currency_apply.c, currency_apply.amount, after, currency_apply.reason, currency_apply.source_type,
      currency_apply.source_id,
    currency_apply.metadata, case when currency_apply.amount > 0 then currency_apply.expires_at end,
    currency_apply.idempotency_key,
    case when currency_apply.amount < 0
         then internal.currency_debit_lots(held.app_user_id, held.currency_code, -currency_apply.amount,
                                           currency_apply.first_of) end);
  if currency_apply.amount > 0 and currency_apply.expires_at is not null then
    insert into app.currency_lots (app_user_id, currency_code, transaction_id, expires_at, remaining)
    values (held.app_user_id, held.currency_code, written.id, currency_apply.expires_at, currency_apply.amount);
  end if;
  if currency_apply.is_notified then
    -- several changes within one event are one entry with their sum
    select (e.effect ->> 'amount')::bigint into told
      from jsonb_array_elements(internal.effects_noted()) with ordinality as l (line, n)
     cross join lateral jsonb_array_elements(l.line -> 'effects') as e (effect)
     where l.line ->> 'part' = 'currencies' and e.effect ->> 'code' = held.currency_code
       and e.effect ->> 'app_user_id' = held.app_user_id::text
     order by l.n desc
     limit 1;
    perform internal.add_effect('currencies',
                                json_build_object('app_user_id', held.app_user_id, 'code', held.currency_code,
                                                  'amount', coalesce(told, 0) + currency_apply.amount,
                                                  'balance', after));
    perform internal.emit(held.app_user_id, case when currency_apply.amount > 0 then 'svc.currency.credited'
                                                 else 'svc.currency.debited' end,
      jsonb_build_object('transaction_id', written.id, 'currency_code', written.currency_code, 'amount',
                         abs(written.amount),
                         'balance', after, 'reason', written.reason, 'source_type', written.source_type,
                         'source_id', written.source_id));
  end if;
  return written;
end $$;
comment on function internal.currency_apply is
  'Adds to a balance or subtracts from it, all or nothing, and emits svc.currency.credited or svc.currency.debited.
   Refuses 409 INSUFFICIENT_FUNDS, 409 BALANCE_LIMIT_EXCEEDED. The user must be locked. Granted to nobody.';

create or replace function internal.currency_expiry(c app.currencies, source_type text, expires_at timestamptz)
returns timestamptz
language sql stable as $$
  -- purchased currency never expires: the app stores require it
  select case when currency_expiry.source_type <> 'purchase'
              then coalesce(currency_expiry.expires_at,
                            internal.now() + make_interval(days => (currency_expiry.c).expiry_days)) end
$$;
comment on function internal.currency_expiry is
  'When a new credit expires: at its own expiry, else after the currency''s expiry_days, else never.';

create or replace function internal.currency_transact_many(app_user_id uuid, adjustments jsonb, reason text,
                                                           source_type text, source_id text,
                                                           metadata jsonb default '{}',
                                                           expires_at timestamptz default null,
                                                           idempotency_key text default null)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  item record;
  written app.currency_transactions;
  transactions json[] := '{}';
  balances jsonb := '{}';
begin
  if internal.lock_users(array[currency_transact_many.app_user_id]) is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  for item in
    select a.value ->> 'currency_code' as code, (a.value ->> 'amount')::bigint as amount, a.n - 1 as place, c
      from jsonb_array_elements(currency_transact_many.adjustments) with ordinality as a (value, n)
      left join app.currencies c on c.code = a.value ->> 'currency_code' and c.is_active
     order by a.value ->> 'currency_code' collate "C", a.n
  loop
    if item.c is null then
      perform internal.invalid('adjustments.' || item.place || '.currency_code', 'is not a currency of this project');
    end if;
    if balances ? item.code then
      perform internal.invalid('adjustments', 'must name each currency once');
    end if;
    written := internal.currency_apply(
      currency_transact_many.app_user_id, item.c, item.amount, currency_transact_many.reason,
        currency_transact_many.source_type, currency_transact_many.source_id,
      currency_transact_many.metadata, case when item.amount > 0 then internal.currency_expiry(item.c,
                                        currency_transact_many.source_type, currency_transact_many.expires_at) end,
      currency_transact_many.idempotency_key);
    transactions := transactions || internal.currency_transaction_json(written);
    balances := balances || jsonb_build_object(item.code, written.balance_after);
  end loop;
  return json_build_object('transactions', array_to_json(transactions), 'balances', balances);
end $$;
comment on function internal.currency_transact_many is
  'Changes several balances of a user, [{currency_code, amount}], all or none, in the order of their codes:
   {transactions, balances}. Areas that give or take currency call this. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR,
   409 INSUFFICIENT_FUNDS, BALANCE_LIMIT_EXCEEDED. Locks the user. Granted to nobody.';

create or replace function internal.currency_transaction_json(t app.currency_transactions) returns json
language sql stable as $$
  select json_build_object(
    'id', (currency_transaction_json.t).id, 'app_user_id', (currency_transaction_json.t).app_user_id,
    'currency_code', (currency_transaction_json.t).currency_code, 'amount', (currency_transaction_json.t).amount,
    'balance_after', (currency_transaction_json.t).balance_after,
    -- a generated column is null in a trigger, and in a row variable that was not read back
    'kind', case when (currency_transaction_json.t).amount > 0 then 'credit' else 'debit' end,
    'reason', (currency_transaction_json.t).reason, 'source_type', (currency_transaction_json.t).source_type,
    'source_id', (currency_transaction_json.t).source_id,
    'idempotency_key', (currency_transaction_json.t).idempotency_key,
    'expires_at', internal.iso((currency_transaction_json.t).expires_at),
    'metadata', (currency_transaction_json.t).metadata,
    'created_at', internal.iso((currency_transaction_json.t).created_at))
$$;
comment on function internal.currency_transaction_json is 'A row of the ledger as every response shows it.';

create or replace function internal.tg_currency_transactions__frozen() returns trigger
language plpgsql volatile as $$
begin
  raise exception 'the ledger of currencies is only ever added to';
end $$;
comment on function internal.tg_currency_transactions__frozen is
  'Makes the ledger append-only for every role: refuses updates of its rows.';

create or replace trigger tg_currency_transactions__frozen
  before update on app.currency_transactions
  for each row execute function internal.tg_currency_transactions__frozen();

create or replace function internal.reward__currencies(app_user_id uuid, part jsonb, source_type text, source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  item record;
  place text;
  given json;
  outcome jsonb := '[]';
begin
  for item in
    select p.value ->> 'currency_code' as code, p.value -> 'amount' as amount,
           row_number() over (partition by p.value ->> 'currency_code' order by p.n) as nth
      from jsonb_array_elements(reward__currencies.part) with ordinality as p (value, n)
     order by p.value ->> 'currency_code' collate "C", p.n
  loop
    begin
      if not coalesce(jsonb_typeof(item.amount) = 'number' and item.amount #>> '{}' ~ '^[1-9][0-9]{0,9}$'
                      and (item.amount)::bigint <= 2000000000, false) then
        raise exception 'the amount must be a whole number of 1 to 2000000000';
      end if;
      place := reward__currencies.source_type || ':' || reward__currencies.source_id || case
                                        when item.nth > 1 then ':' || item.nth else '' end;
      -- reward_grants enforces that a reward is given once: after a reset the user earns it again, and the earlier
      -- ledger row stays
      if exists (select from app.currency_transactions t
                  where (t.app_user_id, t.source_type, t.source_id, t.currency_code) = (reward__currencies.app_user_id,
                                        'reward', place, item.code)) then
        place := place || ' again ' || internal.new_id();
      end if;
      given := internal.currency_transact_many(
        reward__currencies.app_user_id, jsonb_build_array(jsonb_build_object('currency_code', item.code, 'amount',
                                        item.amount)),
        left(reward__currencies.source_type, 200), 'reward', place);
      outcome := outcome || jsonb_build_object('currency_code', item.code, 'given', item.amount, 'balance',
                                               given -> 'balances' -> item.code);
    exception when others then
      if internal.is_passing(sqlstate) then
        raise;
      end if;
      outcome := outcome || jsonb_build_object('currency_code', item.code, 'given', 0, 'reason', sqlerrm);
    end;
  end loop;
  return jsonb_build_object('given', jsonb_path_exists(outcome, '$[*] ? (@.given > 0)'), 'currencies', outcome);
end $$;
comment on function internal.reward__currencies is
  'Grants the currencies of a reward, [{currency_code, amount}], independently of each other: an unknown currency, or
   one that would exceed max_balance, is recorded with the reason. Granted to nobody.';

create or replace function internal.merge__currency_balances(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.currencies;
  theirs app.currency_balances;
  mine app.currency_balances;
  lot app.currency_lots;
  start_amount bigint;
  twice bigint;
  earned bigint;
  part bigint;
  rest bigint;
  written app.currency_transactions;
  moved int := 0;
begin
  for c in
    select k.* from app.currencies k join app.currency_balances b on b.currency_code = k.code
     where b.app_user_id = merge__currency_balances.other
     order by k.code collate "C"
  loop
    theirs := internal.currency_balance_locked(merge__currency_balances.other, c);
    mine := internal.currency_balance_locked(merge__currency_balances.survivor, c);
    -- the initial grant and regenerated amounts are not earned: the merged account has them once
    select coalesce(sum(t.amount), 0) into start_amount
      from app.currency_transactions t
     where t.app_user_id = merge__currency_balances.other and t.currency_code = c.code
       and (t.source_type = 'regen' or (t.source_type, t.source_id) = ('reward', 'initial_grant'));
    -- rewards that both accounts have from one source count once, unless they have expired
    select coalesce(sum((part.value ->> 'given')::bigint), 0) into twice
      from internal.rewards_in_both(merge__currency_balances.survivor, merge__currency_balances.other) g
     cross join jsonb_array_elements(g.outcome #> '{currencies,currencies}') as part (value)
     where part.value ->> 'currency_code' = c.code
       and (c.expiry_days is null or g.granted_at + make_interval(days => c.expiry_days) > internal.now());
    -- this includes rewards in the form of items that have been used up since
    twice := twice + coalesce((
      select sum((part.value -> 'amount')::bigint * e.times)
        from internal.effects_in_both(merge__currency_balances.survivor, merge__currency_balances.other) e
       cross join jsonb_array_elements(case when jsonb_typeof(e.effect -> 'currencies') = 'array'
                                              then e.effect -> 'currencies' else '[]' end) as part (value)
       where part.value ->> 'currency_code' = c.code and jsonb_typeof(part.value -> 'amount') = 'number'), 0);
    -- but not amounts that an administrator has reversed already
    twice := greatest(0, twice + coalesce((
      select sum(r.amount)
        from app.currency_transactions r
        join app.currency_transactions t on t.id = internal.as_uuid(r.source_id)
       where r.app_user_id = merge__currency_balances.other and r.currency_code = c.code and r.source_type = 'refund'
         and t.source_type = 'reward' and t.source_id <> 'initial_grant'), 0));
    earned := theirs.balance - start_amount - twice;
    if earned < 0 and c.regen_amount is not null then
      earned := 0;
    end if;
    earned := greatest(least(earned, c.max_balance - mine.balance), -mine.balance);
    continue when earned = 0;
    written := internal.currency_apply(merge__currency_balances.survivor, c, earned, 'merge', 'merge',
                                       merge__currency_balances.other::text,
                                       is_notified => false);
    rest := earned;
    for lot in
      select l.* from app.currency_lots l
       where l.app_user_id = merge__currency_balances.other and l.currency_code = c.code
       order by l.expires_at, l.id
    loop
      exit when rest <= 0;
      part := least(rest, lot.remaining);
      insert into app.currency_lots (app_user_id, currency_code, transaction_id, expires_at, remaining)
      values (merge__currency_balances.survivor, c.code, written.id, lot.expires_at, part);
      rest := rest - part;
    end loop;
    moved := moved + 1;
  end loop;
  return moved;
end $$;
comment on function internal.merge__currency_balances is
  'Adds the earned balances of one user to another''s, as ledger rows of source merge: the balance without the initial
   grant, regenerated amounts, and rewards that both users have, which count once. The spent part of these is deducted
   from the survivor, up to their balance. Expiring credits keep their expiry. Granted to nobody.';
