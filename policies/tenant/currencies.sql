alter table app.currencies enable row level security;
select internal.checks_declare('app.currencies');
alter table app.currency_balances enable row level security;
alter table app.currency_transactions enable row level security;
alter table app.currency_lots enable row level security;
alter table app.ledger_requests enable row level security;
alter table app.currency_checks enable row level security;

create policy "users read currencies in use" on app.currencies for select to app_user using (is_active);
create policy "administrators read currencies" on app.currencies for select to app_admin using (true);
create policy "administrators add currencies" on app.currencies for insert to app_admin with check (true);
create policy "administrators change currencies" on app.currencies for update to app_admin using (true)
  with check (true);
create policy "administrators delete currencies" on app.currencies for delete to app_admin using (true);

create policy "users read their own balances" on app.currency_balances for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every balance" on app.currency_balances for select to app_admin using (true);
create policy "users read their own ledger" on app.currency_transactions for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every ledger" on app.currency_transactions for select to app_admin using (true);
create policy "users read their own credits that expire" on app.currency_lots for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read all credits that expire" on app.currency_lots for select to app_admin using (true);
create policy "administrators read proofs" on app.currency_checks for select to app_admin using (true);

-- only definer functions write balances and ledgers
grant select on app.currencies, app.currency_balances, app.currency_transactions,
  app.currency_lots to app_user, app_admin;
grant select on app.currency_checks to app_admin;

grant execute on function internal.currency_days, api.currency_daily to app_admin;
grant execute on function internal.currency_find, internal.currency_regenerate, internal.currency_accrue,
  internal.currency_current, internal.currency_transaction_json, internal.currency_amount, internal.currency_expires,
  internal.currency_ledger to app_user, app_admin;
grant execute on function internal.currency_balance_json, internal.currency_transact, api.currencies_list,
  api.currency_transactions, api.currency_spend, api.currency_credit to app_user;
grant execute on function internal.currency_json, internal.currency_check, internal.currency_adjust,
  internal.currency_check_json, internal.currency_figures, api.currencies_adjust, api.currency_transaction_reverse,
  api.currency_transactions_all, api.user_balances, api.currency_stats, api.currencies_integrity to app_admin;
grant execute on function api.currencies_check to app_worker;

select internal.graphql_declare('app.currencies');
select internal.graphql_declare('app.currency_balances');
select internal.graphql_declare('app.currency_checks');
select internal.graphql_declare('app.currency_lots');
select internal.graphql_declare('app.currency_transactions');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.currency_balances', 'app_user_id', 'currency_balances',
   array['app_user_id', 'currency_code', 'balance', 'balance_at', 'regen_at', 'created_at'],
   '{}', 'currencies', 'add what was earned', 'cascade', null, current_setting('trellis.file')),
  ('app.currency_transactions', 'app_user_id', 'currency_transactions',
   array['id', 'app_user_id', 'currency_code', 'amount', 'balance_after', 'kind', 'reason', 'source_type', 'source_id',
         'idempotency_key',
         'expires_at', 'spent_lots', 'metadata', 'created_at'],
   '{}', 'currencies', 'with app.currency_balances', 'cascade', null, current_setting('trellis.file')),
  ('app.currency_lots', 'app_user_id', 'currency_lots',
   array['id', 'app_user_id', 'currency_code', 'transaction_id', 'expires_at', 'remaining'],
   '{}', 'currencies', 'with app.currency_balances', 'cascade', null, current_setting('trellis.file')),
  ('app.ledger_requests', 'app_user_id', 'ledger_requests', null, '{}', null, 'move', 'cascade',
   'answers that the ledgers hold, kept against repetition', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, fixed_columns,
                                  state_columns, max_count, create_order, promoted_as, declared_in)
values ('currency', 'app.currencies', 'currency', 'currencies', 'code', 'key', '{code}', '{regen_since}', 100, 10,
        'currencies', current_setting('trellis.file'));
select internal.definition_declare('currency');
