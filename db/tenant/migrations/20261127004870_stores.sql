-- migrate:up
create table app.stores (
  id          uuid primary key default internal.new_id(),
  key         text not null constraint stores_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name        text not null constraint stores_name_1_to_200 check (char_length(name) between 1 and 200)
                            constraint stores_name_is_one_line check (internal.is_line(name)),
  description text constraint stores_description_at_most_2000 check (char_length(description) <= 2000),
  segment_id  uuid references app.segments on delete restrict,
  starts_at   timestamptz,
  ends_at     timestamptz,
  is_active   boolean not null default true,
  sort_order  int not null default 0,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  constraint stores_key_unique unique (key),
  constraint stores_end_after_start check (ends_at > starts_at)
);
comment on table app.stores is 'What a project sells, and to whom: a store has offers. At most 50.';
-- serves the lists
create index stores_in_order on app.stores (sort_order, key);
create index stores_of_segment on app.stores (segment_id) where segment_id is not null;

create table app.store_offers (
  id              uuid primary key default internal.new_id(),
  store_id        uuid not null references app.stores on delete cascade,
  key             text not null constraint store_offers_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  catalog_item_id uuid not null references app.catalog_items on delete restrict,
  quantity        int not null default 1 constraint store_offers_quantity_1_to_10000
    check (quantity between 1 and 10000),
  limit_per_user  int constraint store_offers_limit_per_user_1_to_1000000000
    check (limit_per_user between 1 and 1000000000),
  limit_period    text not null default 'total' constraint store_offers_limit_period_known
    check (limit_period in ('total', 'day', 'week', 'month')),
  stock_total     int constraint store_offers_stock_total_0_to_1000000000 check (stock_total between 0 and 1000000000),
  starts_at       timestamptz,
  ends_at         timestamptz,
  segment_id      uuid references app.segments on delete restrict,
  badge           text constraint store_offers_badge_at_most_64 check (char_length(badge) <= 64),
  sort_order      int not null default 0,
  is_active       boolean not null default true,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint store_offers_key_unique unique (store_id, key),
  constraint store_offers_end_after_start check (ends_at > starts_at)
);
comment on table app.store_offers is
  'An item of the catalog in a store: how many of it a unit gives, how often a user and all users may buy it. At most
   200 a store.';
create index store_offers_of_item on app.store_offers (catalog_item_id);
create index store_offers_of_segment on app.store_offers (segment_id) where segment_id is not null;

create table app.store_offer_prices (
  offer_id       uuid not null references app.store_offers on delete cascade,
  currency_code  text not null references app.currencies (code) on delete restrict,
  price          bigint not null constraint store_offer_prices_price_0_to_2000000000
    check (price between 0 and 2000000000),
  original_price bigint constraint store_offer_prices_original_price_at_most_2000000000
    check (original_price <= 2000000000),
  primary key (offer_id, currency_code),
  constraint store_offer_prices_original_over_price check (original_price > price)
);
comment on table app.store_offer_prices is
  'What a unit of an offer costs, in each currency that buys it: one of them is paid. An offer without rows has the
   prices of its item.';
create index store_offer_prices_of_currency on app.store_offer_prices (currency_code);

create table app.store_offer_sales (
  offer_id uuid not null references app.store_offers on delete cascade,
  slot     smallint not null,
  units    bigint not null,
  primary key (offer_id, slot)
) with (fillfactor = 50);
comment on table app.store_offer_sales is
  'The units of an offer that are sold, without refunded ones: the sum over slots, so that buyers of an offer without a
   limit do not wait for one another. It outlives the purchases of deleted users.';

create table app.purchases (
  id            uuid primary key default internal.new_id(),
  app_user_id   uuid not null references app.users on delete cascade,
  store_id      uuid not null,
  offer_id      uuid not null references app.store_offers on delete restrict,
  quantity      int not null constraint purchases_quantity_1_to_99 check (quantity between 1 and 99),
  currency_code text not null,
  total_price   bigint not null constraint purchases_total_price_never_negative check (total_price >= 0),
  status        text not null default 'completed' constraint purchases_status_known
    check (status in ('completed', 'refunded')),
  granted       jsonb not null,
  receipt       jsonb not null,
  created_at    timestamptz not null default internal.now(),
  refunded_at   timestamptz,
  constraint purchases_refunded_has_time check ((status = 'refunded') = (refunded_at is not null))
);
comment on table app.purchases is
  'What users bought. Ids are made while the user is locked, so their order is the order of a user''s purchases.';
comment on column app.purchases.store_id is 'That of the offer, which never changes.';
comment on column app.purchases.granted is 'What was given, bundles unpacked: [{catalog_item_id, key, quantity}].';
comment on column app.purchases.receipt is
  'What a refund takes back, and from where: {stacks: {catalog_item_id: stack}, credits: {CODE: amount}}.';
-- serve the lists, newest first
create index purchases_of_user on app.purchases (app_user_id, id desc);
create index purchases_of_store on app.purchases (store_id, id desc);
create index purchases_of_offer on app.purchases (offer_id, id desc);
create index purchases_refunded on app.purchases (id desc) where status = 'refunded';
-- serves the limit of a user
create index purchases_of_user_and_offer on app.purchases (app_user_id, offer_id, created_at);

-- migrate:down
drop table app.purchases;
drop table app.store_offer_sales;
drop table app.store_offer_prices;
drop table app.store_offers;
drop table app.stores;
