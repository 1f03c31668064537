-- Currencies, as administrators define them.
comment on constraint currencies_code_unique on app.currencies is '409 CONFLICT code: A currency with this code exists.';
comment on constraint currencies_code_form on app.currencies is '400 VALIDATION_ERROR code: must match ^[A-Z][A-Z0-9_]{1,15}$.';
comment on constraint currencies_name_1_to_200 on app.currencies is '400 VALIDATION_ERROR name: must have 1 to 200 characters.';
comment on constraint currencies_icon_url_at_most_2000 on app.currencies is '400 VALIDATION_ERROR icon_url: must have at most 2000 characters.';
comment on constraint currencies_initial_grant_0_to_2000000000 on app.currencies is '400 VALIDATION_ERROR initial_grant: must be 0 to 2000000000.';
comment on constraint currencies_initial_grant_within_max on app.currencies is '400 VALIDATION_ERROR initial_grant: must be at most max_balance.';
comment on constraint currencies_max_balance_exact_in_json on app.currencies is '400 VALIDATION_ERROR max_balance: must be 1 to 9007199254740991.';
comment on constraint currencies_regen_amount_1_to_2000000000 on app.currencies is '400 VALIDATION_ERROR regen: must have an amount of 1 to 2000000000.';
comment on constraint currencies_regen_every_1_second_to_a_year on app.currencies is '400 VALIDATION_ERROR regen: must have every_seconds of 1 to 31536000.';
comment on constraint currencies_regen_cap_at_least_1 on app.currencies is '400 VALIDATION_ERROR regen: must have a cap of at least 1.';
comment on constraint currencies_regen_cap_within_max on app.currencies is '400 VALIDATION_ERROR regen: must have a cap of at most max_balance.';
comment on constraint currencies_regen_whole on app.currencies is '400 VALIDATION_ERROR regen: must have amount, every_seconds and cap.';
comment on constraint currencies_expiry_days_1_to_3650 on app.currencies is '400 VALIDATION_ERROR expiry_days: must be 1 to 3650.';
comment on constraint currency_balances_currency_code_fkey on app.currency_balances is
  '409 CURRENCY_IN_USE: Users have balances of this currency. Set is_active to false instead.';

create or replace function internal.currency_json(c app.currencies) returns json
language sql stable as $$
  select json_build_object(
    'id', (currency_json.c).id, 'code', (currency_json.c).code, 'name', (currency_json.c).name, 'icon_url', (currency_json.c).icon_url,
    'initial_grant', (currency_json.c).initial_grant, 'max_balance', (currency_json.c).max_balance,
    'client_spendable', (currency_json.c).client_spendable,
    'regen', case when (currency_json.c).regen_amount is not null then json_build_object(
               'amount', (currency_json.c).regen_amount, 'every_seconds', (currency_json.c).regen_every_seconds, 'cap', (currency_json.c).regen_cap) end,
    'expiry_days', (currency_json.c).expiry_days, 'is_active', (currency_json.c).is_active,
    'created_at', internal.iso((currency_json.c).created_at), 'updated_at', internal.iso((currency_json.c).updated_at))
$$;
comment on function internal.currency_json is 'A currency as administrators see it.';

create or replace function internal.currency_find(code text, active_only boolean default false) returns app.currencies
language plpgsql stable as $$
declare
  found_currency app.currencies;
begin
  select c.* into found_currency from app.currencies c where c.code = currency_find.code and (c.is_active or not currency_find.active_only);
  if found_currency.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such currency.');
  end if;
  return found_currency;
end $$;
comment on function internal.currency_find is 'A currency by its code. Refuses 404 NOT_FOUND.';

create or replace function internal.currency_with(c app.currencies, changes jsonb) returns app.currencies
language plpgsql stable as $$
declare
  changed app.currencies;
  missing text;
  regen constant jsonb := currency_with.changes -> 'regen';
begin
  select f.key into missing
    from jsonb_each(currency_with.changes) f
   where f.key in ('name', 'initial_grant', 'max_balance', 'client_spendable', 'is_active') and f.value = 'null'
   limit 1;
  if missing is not null then
    perform internal.invalid(missing, 'must not be null');
  end if;
  begin
    changed := jsonb_populate_record(currency_with.c, (
      select coalesce(jsonb_object_agg(f.key, f.value), '{}')
        from jsonb_each(currency_with.changes) f
       where f.key in ('name', 'icon_url', 'initial_grant', 'max_balance', 'client_spendable', 'expiry_days', 'is_active')));
    if jsonb_typeof(regen) = 'object' then
      changed.regen_amount := regen ->> 'amount';
      changed.regen_every_seconds := regen ->> 'every_seconds';
      changed.regen_cap := regen ->> 'cap';
      changed.regen_since := coalesce((currency_with.c).regen_since, internal.now());
    elsif regen = 'null' then
      changed.regen_amount := null;
      changed.regen_every_seconds := null;
      changed.regen_cap := null;
      changed.regen_since := null;
    elsif regen is not null then
      perform internal.invalid('regen', 'must be an object {amount, every_seconds, cap}, or null');
    end if;
  exception when data_exception then
    perform internal.invalid('body', 'has a value of the wrong type');
  end;
  return changed;
end $$;
comment on function internal.currency_with is 'A currency with some fields changed; others are ignored. Refuses 400 VALIDATION_ERROR.';

create or replace function api.currency_define(patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  made app.currencies;
begin
  made.id := internal.new_id();
  made.code := currency_define.patch ->> 'code';
  made.initial_grant := 0;
  made.max_balance := 2000000000;
  made.client_spendable := false;
  made.is_active := true;
  made.created_at := internal.now();
  made.updated_at := internal.now();
  made := internal.currency_with(made, currency_define.patch);
  -- taken before the count, so that two at once cannot pass the limit together
  perform pg_advisory_xact_lock(7305441021);
  if (select count(*) from app.currencies) >= 100 then
    perform internal.fail(409, 'LIMIT_REACHED', 'A project has at most 100 currencies.', '{"limit": 100}');
  end if;
  insert into app.currencies select made.*;
  return internal.reply(201, internal.currency_json(made));
end $$;
comment on function api.currency_define is
  'A new currency, 201. Refuses 400 VALIDATION_ERROR, 409 CONFLICT (the code is taken), 409 LIMIT_REACHED (100). Supplement E1.';

create or replace function api.currencies_defined(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.reply_page(
    (select json_agg(internal.currency_json(c) order by c.created_at desc, c.id desc)
       from (select l.* from app.currencies l order by l.created_at desc, l.id desc
             limit currencies_defined.page_limit offset currencies_defined.page_offset) c),
    (select count(*) from app.currencies), currencies_defined.page_offset, currencies_defined.page_limit)
$$;
comment on function api.currencies_defined is 'Currencies, newest first. At most 100 exist, so the list needs no index.';

create or replace function api.currency_get(code text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.currency_json(internal.currency_find(currency_get.code)))
$$;
comment on function api.currency_get is 'A currency. Refuses 404 NOT_FOUND.';

create or replace function api.currency_update(code text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  was app.currencies := internal.currency_find(currency_update.code);
  wished app.currencies;
begin
  select c.* into was from app.currencies c where c.id = was.id for no key update;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The currency was deleted just now.');
  end if;
  wished := internal.currency_with(was, currency_update.patch);
  if wished is distinct from was then
    update app.currencies c
       set name = wished.name, icon_url = wished.icon_url, initial_grant = wished.initial_grant, max_balance = wished.max_balance,
           client_spendable = wished.client_spendable, regen_amount = wished.regen_amount, regen_every_seconds = wished.regen_every_seconds,
           regen_cap = wished.regen_cap, regen_since = wished.regen_since, expiry_days = wished.expiry_days, is_active = wished.is_active,
           updated_at = internal.now()
     where c.id = was.id
    returning c.* into wished;
  end if;
  return internal.reply(200, internal.currency_json(wished));
end $$;
comment on function api.currency_update is
  'Changes a currency; what regenerates is counted by the new rule from each user''s last write on. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR. Locks the currency.';

create or replace function api.currency_delete(code text) returns api.reply
language plpgsql volatile as $$
declare
  doomed constant app.currencies := internal.currency_find(currency_delete.code);
begin
  delete from app.currencies c where c.id = doomed.id;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The currency was deleted just now.');
  end if;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.currency_delete is 'Deletes a currency that nobody ever had. Refuses 404 NOT_FOUND, 409 CURRENCY_IN_USE.';

create or replace trigger tg_currencies__audit
  after insert or update or delete on app.currencies
  for each row execute function internal.tg_audit('currencies');
