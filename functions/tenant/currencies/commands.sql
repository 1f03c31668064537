-- Commands of callers on balances. app_user and app_admin cannot insert into or update these tables: they call
-- functions that check the caller and the owner of the balance.
create or replace function internal.ledger_lock_user(app_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.lock_users(array[ledger_lock_user.app_user_id]) is null then
    if ledger_lock_user.app_user_id = internal.user_id() then
      perform internal.fail(401, 'UNAUTHORIZED', 'There is no such user any more.');
    end if;
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
end $$;
comment on function internal.ledger_lock_user is
  'Locks the user whose balances or items are about to change. Refuses 404 NOT_FOUND, or 401 UNAUTHORIZED for a caller
   who was deleted or merged meanwhile. Granted to nobody.';

create or replace function internal.currency_transact(code text, amount bigint, reason text, metadata jsonb,
                                                      expires_at timestamptz, idempotency_key text, body_hash text)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  is_credit constant boolean := currency_transact.amount > 0;
  source_type constant text := case when is_credit then 'admin' else 'spend' end;
  route constant text := 'POST currencies/' || currency_transact.code || case when is_credit then '/credit'
                                        else '/spend' end;
  c app.currencies;
  answer api.reply;
  written app.currency_transactions;
begin
  if internal.caller() not in ('user', 'server_key_user') or me is null then
    raise exception 'balances of users are changed here by them or for them, not by %', internal.caller();
  elsif is_credit and internal.caller() <> 'server_key_user' then
    perform internal.fail(403, 'SERVER_KEY_REQUIRED', 'Only a server key may credit users.');
  end if;
  perform internal.currency_amount(abs(currency_transact.amount));
  perform internal.ledger_lock_user(me);
  -- checked before every condition that may have changed since: a repeated request gets the response to the first
  answer := internal.ledger_stored_reply(me, route, currency_transact.idempotency_key, currency_transact.body_hash);
  if answer is not null then
    return answer;
  end if;
  c := internal.currency_find(currency_transact.code, true);
  if not is_credit and not c.client_spendable and internal.caller() <> 'server_key_user' then
    perform internal.fail(403, 'SPEND_NOT_ALLOWED', 'Apps may not spend this currency: spend it with a server key.');
  end if;
  perform internal.ledger_expiry_check(currency_transact.expires_at);
  written := internal.currency_apply(me, c, currency_transact.amount, currency_transact.reason, source_type,
                                     internal.new_id()::text, currency_transact.metadata,
                                     case when is_credit then internal.currency_expiry(c, source_type,
                                        currency_transact.expires_at) end,
                                     currency_transact.idempotency_key);
  return internal.ledger_store_reply(me, route, currency_transact.idempotency_key, currency_transact.body_hash,
                                     internal.reply(201, json_build_object(
    'transaction', internal.currency_transaction_json(written), 'balance', written.balance_after)));
end $$;
comment on function internal.currency_transact is
  'The caller''s own spend (a negative amount), or a server''s credit or spend for them. Refuses 403
   SERVER_KEY_REQUIRED, SPEND_NOT_ALLOWED, 404 NOT_FOUND, 409 as internal.currency_apply. Locks the user.';

create or replace function internal.currency_amount(amount bigint, field text default 'amount') returns void
language plpgsql stable as $$
begin
  if coalesce(currency_amount.amount not between 1 and 2000000000, true) then
    perform internal.invalid(currency_amount.field, 'must be a whole number of 1 to 2000000000');
  end if;
end $$;
comment on function internal.currency_amount is
  'Refuses 400 VALIDATION_ERROR for an amount that is not 1 to two billion.';

create or replace function internal.currency_expires(value text) returns timestamptz
language plpgsql stable as $$
declare
  at constant timestamptz := internal.as_time(currency_expires.value);
begin
  if currency_expires.value is not null and coalesce(at = 'infinity', true) then
    perform internal.invalid('expires_at', 'must be a time to come');
  end if;
  return at;
end $$;
comment on function internal.currency_expires is
  'The expiry of a credit in the request. Refuses 400 VALIDATION_ERROR for an invalid time; internal.ledger_expiry_check
   refuses a time in the past.';

create or replace function internal.ledger_expiry_check(expires_at timestamptz) returns void
language plpgsql stable as $$
begin
  if ledger_expiry_check.expires_at <= internal.now() then
    perform internal.invalid('expires_at', 'must be a time to come');
  end if;
end $$;
comment on function internal.ledger_expiry_check is
  'Refuses 400 VALIDATION_ERROR for an expiry in the past. Called after internal.ledger_stored_reply, because a request
   may be repeated after the expiry. Granted to nobody.';

create or replace function api.currency_spend(code text, amount bigint, reason text, metadata jsonb default '{}',
                                              idempotency_key text default null, body_hash text default null)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.currency_amount(currency_spend.amount);
  return internal.currency_transact(currency_spend.code, -currency_spend.amount, currency_spend.reason,
                                    currency_spend.metadata, null,
                                    currency_spend.idempotency_key, currency_spend.body_hash);
end $$;
comment on function api.currency_spend is
  'Spends the caller''s currency: 201 {transaction, balance}, 200 when it is replayed. Refuses 404 NOT_FOUND, 400
   VALIDATION_ERROR, 403 SPEND_NOT_ALLOWED, 409 INSUFFICIENT_FUNDS, IDEMPOTENCY_CONFLICT.';

create or replace function api.currency_credit(code text, amount bigint, reason text, metadata jsonb default '{}',
                                               expires_at text default null, idempotency_key text default null,
                                               body_hash text default null)
returns api.reply
language plpgsql volatile as $$
begin
  if internal.caller() <> 'server_key_user' then
    perform internal.fail(403, 'SERVER_KEY_REQUIRED', 'Only a server key may credit users.');
  end if;
  perform internal.currency_amount(currency_credit.amount);
  return internal.currency_transact(currency_credit.code, currency_credit.amount, currency_credit.reason,
                                    currency_credit.metadata,
                                    internal.currency_expires(currency_credit.expires_at),
                                    currency_credit.idempotency_key, currency_credit.body_hash);
end $$;
comment on function api.currency_credit is
  'A server credits a user: 201 {transaction, balance}, 200 when it is replayed. Refuses 403 SERVER_KEY_REQUIRED, 404
   NOT_FOUND, 400 VALIDATION_ERROR, 409 BALANCE_LIMIT_EXCEEDED, IDEMPOTENCY_CONFLICT.';

create or replace function internal.currency_adjust(app_user_id uuid, adjustments jsonb, reason text, metadata jsonb,
                                                    expires_at timestamptz, idempotency_key text, body_hash text)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  route constant text := 'POST currencies/transactions';
  answer api.reply;
  moved json;
begin
  perform internal.check_caller('developer', 'balances are adjusted by administrators');
  perform internal.ledger_lock_user(currency_adjust.app_user_id);
  answer := internal.ledger_stored_reply(currency_adjust.app_user_id, route, currency_adjust.idempotency_key,
                                         currency_adjust.body_hash);
  if answer is not null then
    return answer;
  end if;
  perform internal.ledger_expiry_check(currency_adjust.expires_at);
  moved := internal.currency_transact_many(currency_adjust.app_user_id, currency_adjust.adjustments,
                                           currency_adjust.reason, 'admin', internal.new_id()::text,
                                           currency_adjust.metadata, currency_adjust.expires_at,
                                           currency_adjust.idempotency_key);
  perform internal.audit('currencies.adjust', 'users', currency_adjust.app_user_id::text, json_build_object(
    'adjustments', json_build_array(null, currency_adjust.adjustments),
      'reason', json_build_array(null, currency_adjust.reason)), 201);
  return internal.ledger_store_reply(currency_adjust.app_user_id, route, currency_adjust.idempotency_key,
                                     currency_adjust.body_hash, internal.reply(201, moved));
end $$;
comment on function internal.currency_adjust is
  'Makes an administrator''s adjustments, all or none, audited as currencies.adjust. Locks the user.';

create or replace function api.currencies_adjust(app_user_id uuid, adjustments jsonb, reason text,
                                                 metadata jsonb default '{}', expires_at text default null,
                                                 idempotency_key text default null, body_hash text default null)
returns api.reply
language plpgsql volatile as $$
declare
  item record;
begin
  for item in select a.value, a.n - 1 as place
    from jsonb_array_elements(currencies_adjust.adjustments) with ordinality as a (value, n) loop
    perform internal.currency_amount(abs((item.value ->> 'amount')::bigint), 'adjustments.' || item.place || '.amount');
  end loop;
  return internal.currency_adjust(currencies_adjust.app_user_id, currencies_adjust.adjustments,
                                  currencies_adjust.reason, currencies_adjust.metadata,
                                  internal.currency_expires(currencies_adjust.expires_at),
                                  currencies_adjust.idempotency_key, currencies_adjust.body_hash);
end $$;
comment on function api.currencies_adjust is
  'Changes up to ten balances of a user at once, amounts signed: 201 {transactions, balances}, in the order of codes,
   200 when it is replayed. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, 409 INSUFFICIENT_FUNDS, BALANCE_LIMIT_EXCEEDED,
   IDEMPOTENCY_CONFLICT.';

create or replace function internal.currency_undo(undone app.currency_transactions, idempotency_key text default null)
returns app.currency_transactions
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.currencies;
  written app.currency_transactions;
  lot record;
begin
  select k.* into c from app.currencies k where k.code = (currency_undo.undone).currency_code;
  written := internal.currency_apply((currency_undo.undone).app_user_id, c, -(currency_undo.undone).amount, 'reversal',
                                     'refund', (currency_undo.undone).id::text,
                                     jsonb_build_object('reversed_reason', (currency_undo.undone).reason),
                                     idempotency_key => currency_undo.idempotency_key,
                                     first_of => (currency_undo.undone).id);
  -- a credit that expires is restored with the lifetime that it had left
  for lot in
    select (l.value ->> 'expires_at')::timestamptz + (internal.now() - (currency_undo.undone).created_at) as expires_at,
           (l.value ->> 'amount')::bigint as amount
      from jsonb_array_elements(coalesce((currency_undo.undone).spent_lots, '[]')) l
  loop
    insert into app.currency_lots (app_user_id, currency_code, transaction_id, expires_at, remaining)
    values ((currency_undo.undone).app_user_id, (currency_undo.undone).currency_code, written.id, lot.expires_at,
            lot.amount);
  end loop;
  return written;
end $$;
comment on function internal.currency_undo is
  'Reverses a row of the ledger by another row. Refuses 409 INSUFFICIENT_FUNDS, BALANCE_LIMIT_EXCEEDED. The user must be
   locked, and the row not reversed yet. Granted to nobody.';

create or replace function api.currency_transaction_reverse(transaction_id uuid, idempotency_key text default null,
                                                            body_hash text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  route constant text := 'POST currencies/transactions/' || currency_transaction_reverse.transaction_id || '/reverse';
  undone app.currency_transactions;
  written app.currency_transactions;
  answer api.reply;
begin
  perform internal.check_caller('developer', 'transactions are reversed by administrators');
  select t.* into undone from app.currency_transactions t where t.id = currency_transaction_reverse.transaction_id;
  perform internal.check_found(found, 'transaction');
  perform internal.ledger_lock_user(undone.app_user_id);
  answer := internal.ledger_stored_reply(undone.app_user_id, route, currency_transaction_reverse.idempotency_key,
                                         currency_transaction_reverse.body_hash);
  if answer is not null then
    return answer;
  end if;
  if exists (select from app.currency_transactions t
              where (t.app_user_id, t.source_type, t.source_id, t.currency_code)
                      = (undone.app_user_id, 'refund', undone.id::text, undone.currency_code)) then
    perform internal.fail(409, 'ALREADY_REVERSED', 'This transaction has been reversed already.');
  elsif undone.source_type in ('regen', 'expiry', 'merge', 'refund') then
    perform internal.fail(409, 'CONFLICT',
                          'Rows of regeneration, expiry, a merge or a reversal cannot be reversed: adjust the balance '
                          'instead.',
                          json_build_object('source_type', undone.source_type));
  end if;
  written := internal.currency_undo(undone, currency_transaction_reverse.idempotency_key);
  perform internal.audit('currencies.reverse', 'users', undone.app_user_id::text, json_build_object(
    'transaction_id', json_build_array(null, undone.id), 'currency_code', json_build_array(null, undone.currency_code),
    'amount', json_build_array(null, written.amount)), 201);
  return internal.ledger_store_reply(undone.app_user_id, route, currency_transaction_reverse.idempotency_key,
                                     currency_transaction_reverse.body_hash, internal.reply(201,
    json_build_object('transaction', internal.currency_transaction_json(written), 'balance', written.balance_after)));
end $$;
comment on function api.currency_transaction_reverse is
  'Reverses a row of the ledger by another row, once; audited as currencies.reverse. Refuses 404 NOT_FOUND, 409
   IDEMPOTENCY_CONFLICT, ALREADY_REVERSED, CONFLICT, INSUFFICIENT_FUNDS, BALANCE_LIMIT_EXCEEDED. Locks the user.';
