-- Balances and ledgers as apps and administrators see them. Balances are those of this moment; reading writes nothing.
create or replace function internal.currency_balance_json(c app.currencies, app_user_id uuid) returns json
language plpgsql stable as $$
declare
  state constant internal.currency_state := internal.currency_now(currency_balance_json.c, currency_balance_json.app_user_id);
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
   where l.app_user_id = currency_balance_json.app_user_id and l.currency_code = (currency_balance_json.c).code and l.expires_at > internal.now()
   group by l.expires_at
   order by l.expires_at
   limit 1;
  if soonest.amount is not null then
    shown := internal.json_merge(shown, json_build_object('expiring', json_build_object('amount', soonest.amount, 'at', internal.iso(soonest.expires_at))));
  end if;
  return shown;
end $$;
comment on function internal.currency_balance_json is
  'What a user has of a currency now, when the next regeneration comes where one is under way, and what expires soonest where something does.';

create or replace function api.currencies_list() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(internal.currency_balance_json(c, internal.user_id()) order by c.code), '[]'))
    from app.currencies c
   where c.is_active
$$;
comment on function api.currencies_list is 'The caller''s balances of all active currencies, by code. Supplement E1.';

create or replace function api.user_balances(user_id uuid) returns api.reply
language plpgsql stable as $$
begin
  if not exists (select from app.users u where u.id = user_balances.user_id) then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  return internal.reply(200, coalesce(
    (select json_object_agg(c.code, (internal.currency_now(c, user_balances.user_id)).balance order by c.code) from app.currencies c), '{}'));
end $$;
comment on function api.user_balances is 'A user''s balances of all currencies, {CODE: n}. Refuses 404 NOT_FOUND.';

create or replace function internal.ledger_cursor(id uuid) returns text
language sql immutable as $$
  select translate(encode(uuid_send(ledger_cursor.id), 'base64'), e'+/=\n', '-_')
$$;
comment on function internal.ledger_cursor is 'Where a list by id goes on, as an opaque word.';

create or replace function internal.ledger_place(cursor text) returns uuid
language plpgsql immutable as $$
declare
  place text;
begin
  if ledger_place.cursor is null then
    return 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  end if;
  begin
    place := encode(decode(translate(ledger_place.cursor, '-_', '+/') || '==', 'base64'), 'hex');
  exception when data_exception then
    null;
  end;
  if length(place) is distinct from 32 then
    perform internal.invalid('cursor', 'must be a next_cursor of this list', 'INVALID_INPUT');
  end if;
  return place::uuid;
end $$;
comment on function internal.ledger_place is 'The place that internal.ledger_cursor wrote down; before all for null. Refuses 400 INVALID_INPUT for anything else.';

create or replace function internal.currency_ledger(app_user_id uuid, currency_code text, reason text, cursor text, page_limit int) returns api.reply
language plpgsql stable as $$
declare
  before constant uuid := internal.ledger_place(currency_ledger.cursor);
  -- only the conditions there are, so that each list finds the index that serves it
  conditions constant text := concat_ws(' and ', 't.id < $1', case when currency_ledger.app_user_id is not null then 't.app_user_id = $2' end,
                                        case when currency_ledger.currency_code is not null then 't.currency_code = $3' end,
                                        case when currency_ledger.reason is not null then 't.reason = $4' end);
  rows app.currency_transactions[];
  shown json;
begin
  execute 'select array_agg(p order by p.id desc) from (select t.* from app.currency_transactions t where ' || conditions || ' order by t.id desc limit $5) p'
     into rows
    using before, currency_ledger.app_user_id, currency_ledger.currency_code, currency_ledger.reason, currency_ledger.page_limit + 1;
  select json_agg(internal.currency_transaction_json(t) order by t.id desc) into shown from unnest(rows[:currency_ledger.page_limit]) t;
  return internal.reply_cursor(shown, case when cardinality(rows) > currency_ledger.page_limit
                                           then internal.ledger_cursor(rows[currency_ledger.page_limit].id) end);
end $$;
comment on function internal.currency_ledger is 'A page of the ledger, newest first. Refuses 400 INVALID_INPUT for a cursor that is none.';

create or replace function api.currency_transactions(code text, cursor text default null, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.currency_ledger(internal.user_id(), (internal.currency_find(currency_transactions.code, true)).code, null,
                                  currency_transactions.cursor, currency_transactions.page_limit)
$$;
comment on function api.currency_transactions is 'The caller''s ledger of a currency, newest first. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';

create or replace function api.currency_transactions_all(user_id uuid default null, currency_code text default null, reason text default null,
                                                         cursor text default null, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.currency_ledger(currency_transactions_all.user_id, currency_transactions_all.currency_code, currency_transactions_all.reason,
                                  currency_transactions_all.cursor, currency_transactions_all.page_limit)
$$;
comment on function api.currency_transactions_all is 'The ledger of all users, newest first. Refuses 400 INVALID_INPUT.';
