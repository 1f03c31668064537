-- Definitions of currencies, by administrators.
comment on constraint currencies_code_unique on app.currencies is
  '409 CONFLICT code: A currency with this code exists.';
comment on constraint currencies_initial_grant_within_max on app.currencies is
  '400 VALIDATION_ERROR initial_grant: must be at most max_balance.';
comment on constraint currencies_regen_amount_1_to_2000000000 on app.currencies is
  '400 VALIDATION_ERROR regen: must have an amount of 1 to 2000000000.';
comment on constraint currencies_regen_every_1_second_to_a_year on app.currencies is
  '400 VALIDATION_ERROR regen: must have every_seconds of 1 to 31536000.';
comment on constraint currencies_regen_cap_at_least_1 on app.currencies is
  '400 VALIDATION_ERROR regen: must have a cap of at least 1.';
comment on constraint currencies_regen_cap_within_max on app.currencies is
  '400 VALIDATION_ERROR regen: must have a cap of at most max_balance.';
comment on constraint currencies_regen_whole on app.currencies is
  '400 VALIDATION_ERROR regen: must have amount, every_seconds and cap.';
comment on constraint currency_balances_currency_code_fkey on app.currency_balances is
  '409 CURRENCY_IN_USE: Users have balances of this currency. Set is_active to false instead.';

create or replace function internal.currency_json(c app.currencies) returns json
language sql stable as $$
  select json_build_object(
    'id', (currency_json.c).id, 'code', (currency_json.c).code, 'name', (currency_json.c).name,
      'icon_url', (currency_json.c).icon_url,
    'initial_grant', (currency_json.c).initial_grant, 'max_balance', (currency_json.c).max_balance,
    'client_spendable', (currency_json.c).client_spendable,
    'regen', case when (currency_json.c).regen_amount is not null then json_build_object(
               'amount', (currency_json.c).regen_amount, 'every_seconds', (currency_json.c).regen_every_seconds,
                 'cap', (currency_json.c).regen_cap) end,
    'expiry_days', (currency_json.c).expiry_days, 'is_active', (currency_json.c).is_active,
    'created_at', internal.iso((currency_json.c).created_at), 'updated_at', internal.iso((currency_json.c).updated_at))
$$;
comment on function internal.currency_json is 'A currency as administrators see it.';

create or replace function internal.currency_find(code text, active_only boolean default false) returns app.currencies
language plpgsql stable as $$
declare
  found_currency app.currencies;
begin
  select c.* into found_currency from app.currencies c
   where c.code = currency_find.code and (c.is_active or not currency_find.active_only);
  perform internal.check_found(found_currency.id is not null, 'currency');
  return found_currency;
end $$;
comment on function internal.currency_find is 'A currency by its code. Refuses 404 NOT_FOUND.';

create or replace function internal.currency_check(requested app.currencies, was app.currencies, sent jsonb)
returns app.currencies
language plpgsql stable as $$
declare
  regen constant jsonb := currency_check.sent -> 'regen';
begin
  if regen is null then
    return currency_check.requested;
  elsif jsonb_typeof(regen) not in ('object', 'null') then
    perform internal.invalid('regen', 'must be an object {amount, every_seconds, cap}, or null');
  end if;
  return internal.definition_patched(
    currency_check.requested,
    jsonb_build_object('regen_amount', regen -> 'amount', 'regen_every_seconds', regen -> 'every_seconds', 'regen_cap',
                       regen -> 'cap'),
    array['regen_amount', 'regen_every_seconds', 'regen_cap']);
end $$;
comment on function internal.currency_check is
  'Sets the columns of regen, which requests send as one object. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.tg_currencies__regen() returns trigger
language plpgsql volatile as $$
begin
  new.regen_since := case when new.regen_amount is not null then coalesce(new.regen_since, internal.now()) end;
  return new;
end $$;
comment on function internal.tg_currencies__regen is 'Sets the time since which a currency regenerates.';

create or replace trigger tg_currencies__regen
  before insert or update of regen_amount on app.currencies
  for each row execute function internal.tg_currencies__regen();

select internal.audit_declare('app.currencies', 'currencies');
