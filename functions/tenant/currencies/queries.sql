-- Reads of balances and ledgers. Balances are computed for the current time; reads write nothing.
create or replace function internal.currency_balance_json(c app.currencies, app_user_id uuid) returns json
language plpgsql stable as $$
declare
  state constant internal.currency_state := internal.currency_current(currency_balance_json.c,
                                                                      currency_balance_json.app_user_id);
  shown json := json_build_object('code', (currency_balance_json.c).code, 'name', (currency_balance_json.c).name,
                                  'icon_url', (currency_balance_json.c).icon_url, 'balance', state.balance);
  soonest record;
begin
  if state.regen_at is not null then
    shown := internal.json_merge(shown, json_build_object('next_regen_at', internal.iso(
      state.regen_at + make_interval(secs => (currency_balance_json.c).regen_every_seconds))));
  end if;
  select l.expires_at, sum(l.remaining) as amount into soonest
    from app.currency_lots l
   where l.app_user_id = currency_balance_json.app_user_id and l.currency_code = (currency_balance_json.c).code
     and l.expires_at > internal.now()
   group by l.expires_at
   order by l.expires_at
   limit 1;
  if soonest.amount is not null then
    shown := internal.json_merge(shown, json_build_object('expiring', json_build_object('amount', soonest.amount,
                                        'at', internal.iso(soonest.expires_at))));
  end if;
  return shown;
end $$;
comment on function internal.currency_balance_json is
  'A user''s current balance of a currency, the time of the next regeneration, if any, and the next expiry, if any.';

create or replace function api.currencies_list() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(internal.currency_balance_json(c, internal.user_id()) order by c.code),
                                      '[]'))
    from app.currencies c
   where c.is_active
$$;
comment on function api.currencies_list is 'The caller''s balances of all active currencies, by code.';

create or replace function api.user_balances(user_id uuid) returns api.reply
language plpgsql stable as $$
begin
  perform internal.check_found(exists (select from app.users u where u.id = user_balances.user_id), 'user');
  return internal.reply(200, coalesce(
    (select json_object_agg(c.code, (internal.currency_current(c, user_balances.user_id)).balance order by c.code)
       from app.currencies c), '{}'));
end $$;
comment on function api.user_balances is 'A user''s balances of all currencies, {CODE: n}. Refuses 404 NOT_FOUND.';

select internal.list_declare('currency_ledger', null::app.currency_transactions, 'currency_transaction_json', '{id}',
                             filters => '{app_user_id,currency_code,reason}', by_cursor => true, is_skewed => true);

create or replace function api.currency_transactions(code text, cursor text default null, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.currency_ledger(internal.user_id(), (internal.currency_find(currency_transactions.code, true)).code,
                                  null,
                                  currency_transactions.cursor, currency_transactions.page_limit)
$$;
comment on function api.currency_transactions is
  'The caller''s ledger of a currency, newest first. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';

create or replace function api.currency_transactions_all(user_id uuid default null, currency_code text default null,
                                                         reason text default null, cursor text default null,
                                                         page_limit int default 50, include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.currency_ledger(currency_transactions_all.user_id, currency_transactions_all.currency_code,
                             currency_transactions_all.reason, currency_transactions_all.cursor,
                             currency_transactions_all.page_limit), currency_transactions_all.include)
$$;
comment on function api.currency_transactions_all is
  'The ledger of all users, newest first. Refuses 400 INVALID_INPUT.';
