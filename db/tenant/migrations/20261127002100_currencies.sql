-- migrate:up
create table app.currencies (
  id                  uuid primary key default internal.new_id(),
  code                text not null constraint currencies_code_form check (code ~ '^[A-Z][A-Z0-9_]{1,15}$'),
  name                text not null constraint currencies_name_1_to_200 check (char_length(name) between 1 and 200),
  icon_url            text constraint currencies_icon_url_at_most_2000 check (char_length(icon_url) <= 2000),
  initial_grant       bigint not null default 0 constraint currencies_initial_grant_0_to_2000000000
    check (initial_grant between 0 and 2000000000),
  max_balance         bigint not null default 2000000000
                        constraint currencies_max_balance_exact_in_json
                          check (max_balance between 1 and 9007199254740991),
  client_spendable    boolean not null default false,
  regen_amount        bigint constraint currencies_regen_amount_1_to_2000000000
    check (regen_amount between 1 and 2000000000),
  regen_every_seconds int constraint currencies_regen_every_1_second_to_a_year
    check (regen_every_seconds between 1 and 31536000),
  regen_cap           bigint constraint currencies_regen_cap_at_least_1 check (regen_cap >= 1),
  regen_since         timestamptz,
  expiry_days         int constraint currencies_expiry_days_1_to_3650 check (expiry_days between 1 and 3650),
  is_active           boolean not null default true,
  created_at          timestamptz not null default internal.now(),
  updated_at          timestamptz not null default internal.now(),
  constraint currencies_code_unique unique (code),
  constraint currencies_initial_grant_within_max check (initial_grant <= max_balance),
  constraint currencies_regen_cap_within_max check (regen_cap <= max_balance),
  constraint currencies_regen_whole check (num_nulls(regen_amount, regen_every_seconds, regen_cap, regen_since) in (0,
                                        4)),
  constraint currencies_name_is_one_line check (internal.is_line(name))
);
comment on table app.currencies is 'What a project counts for its users: coins, gems, energy. At most 100.';
comment on column app.currencies.regen_since is 'When regeneration was switched on: nothing grew before.';

create table app.currency_balances (
  app_user_id   uuid not null references app.users on delete cascade,
  currency_code text not null references app.currencies (code) on delete restrict,
  balance       bigint not null default 0 constraint currency_balances_never_negative check (balance >= 0),
  balance_at    timestamptz not null default internal.now(),
  regen_at      timestamptz,
  created_at    timestamptz not null default internal.now(),
  primary key (app_user_id, currency_code)
);
comment on table app.currency_balances is
  'What a user had of a currency at the last write, balance_at: the sum of the ledger. What the clock did since then is
   worked out on read.';
comment on column app.currency_balances.regen_at is
  'Since when the next regeneration is under way; null while the balance is at the cap or over it.';
-- the largest holders of a currency, also where all have as much
create index currency_balances_by_size on app.currency_balances (currency_code, balance desc, app_user_id);

create table app.currency_transactions (
  id              uuid primary key default internal.new_id(),
  app_user_id     uuid not null references app.users on delete cascade,
  currency_code   text not null,
  amount          bigint not null constraint currency_transactions_amount_not_zero check (amount <> 0),
  balance_after   bigint not null constraint currency_transactions_balance_never_negative check (balance_after >= 0),
  kind            text not null generated always as (case when amount > 0 then 'credit' else 'debit' end) stored,
  reason          text not null constraint currency_transactions_reason_1_to_200
    check (char_length(reason) between 1 and 200),
  source_type     text not null constraint currency_transactions_source_type_known
                    check (source_type in ('admin', 'reward', 'store', 'purchase', 'spend', 'regen', 'expiry', 'refund',
                                           'merge', 'transfer')),
  source_id       text not null,
  idempotency_key text,
  expires_at      timestamptz,
  spent_lots      jsonb,
  metadata        jsonb not null default '{}',
  created_at      timestamptz not null default internal.now(),
  constraint currency_transactions_once_per_source unique (app_user_id, source_type, source_id, currency_code),
  foreign key (app_user_id, currency_code) references app.currency_balances on delete cascade
);
comment on table app.currency_transactions is
  'The ledger: every change of every balance, one row each, never changed. Ids are made while the user is locked, so
   their order is the order of a user''s changes.';
comment on column app.currency_transactions.spent_lots is
  'Of a debit: what it took from credits that expire, [{expires_at, amount}], so that a reversal can give it back.';
-- serves a user's ledger
create index currency_transactions_of_user on app.currency_transactions (app_user_id, currency_code, id desc);
-- serve the administrators' lists by currency and by reason
create index currency_transactions_of_currency on app.currency_transactions (currency_code, id desc);
create index currency_transactions_of_reason on app.currency_transactions (reason, id desc);
-- serves the sums of days
create index currency_transactions_made on app.currency_transactions using brin (created_at)
  with (pages_per_range = 32, autosummarize = on);

create table app.currency_lots (
  id             uuid primary key default internal.new_id(),
  app_user_id    uuid not null references app.users on delete cascade,
  currency_code  text not null,
  transaction_id uuid not null references app.currency_transactions on delete cascade,
  expires_at     timestamptz not null,
  remaining      bigint not null constraint currency_lots_something_remains check (remaining > 0),
  foreign key (app_user_id, currency_code) references app.currency_balances on delete cascade
);
comment on table app.currency_lots is 'What is left of credits that expire. The rest of a balance never does.';
create index currency_lots_soonest on app.currency_lots (app_user_id, currency_code, expires_at, id);
create index currency_lots_of_transaction on app.currency_lots (transaction_id);

create table app.ledger_requests (
  app_user_id uuid not null references app.users on delete cascade,
  route       text not null,
  key         text not null constraint ledger_requests_key_printable check (key ~ '^[ -~]{1,255}$'),
  body_hash   text not null,
  answer      json not null,
  created_at  timestamptz not null default internal.now(),
  primary key (app_user_id, route, key)
);
comment on table app.ledger_requests is
  'Answers of requests that moved value under an Idempotency-Key, by user and route, kept for ever.';

create table app.currency_checks (
  id          uuid primary key default internal.new_id(),
  checked_at  timestamptz not null default internal.now(),
  finished_at timestamptz,
  reached     uuid,
  balances    bigint not null default 0,
  mismatched  bigint not null default 0,
  mismatches  jsonb not null default '[]'
);
comment on table app.currency_checks is
  'Proofs that every balance is the sum of its ledger: one a night, taken user by user; the first hundred mismatches are
   written out.';
create index currency_checks_newest on app.currency_checks (checked_at desc, id desc);

create type internal.currency_state as (
  balance     bigint,
  regenerated bigint,
  expired     bigint,
  regen_at    timestamptz,
  is_new      boolean
);
comment on type internal.currency_state is
  'What the clock makes of a balance: regenerated and expired since the last write, and since when the next regeneration
   is under way.';

-- migrate:down
drop type internal.currency_state;
drop table app.currency_checks;
drop table app.ledger_requests;
drop table app.currency_lots;
drop table app.currency_transactions;
drop table app.currency_balances;
drop table app.currencies;
