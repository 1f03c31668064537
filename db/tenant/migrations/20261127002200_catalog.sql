-- migrate:up
create table app.catalog_items (
  id               uuid primary key default internal.new_id(),
  key              text not null constraint catalog_items_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name             text not null constraint catalog_items_name_1_to_200 check (char_length(name) between 1 and 200),
  item_type        text not null constraint catalog_items_item_type_known
    check (item_type in ('consumable', 'durable', 'bundle', 'currency_pack')),
  description      text constraint catalog_items_description_at_most_2000 check (char_length(description) <= 2000),
  icon_url         text constraint catalog_items_icon_url_at_most_2000 check (char_length(icon_url) <= 2000),
  category         text constraint catalog_items_category_1_to_100 check (char_length(category) between 1 and 100),
  tags             text[] not null default '{}' constraint catalog_items_tags_at_most_50
    check (cardinality(tags) <= 50),
  metadata         jsonb not null default '{}',
  max_owned        int constraint catalog_items_max_owned_at_least_1 check (max_owned >= 1),
  duration_seconds int constraint catalog_items_duration_seconds_at_least_1 check (duration_seconds >= 1),
  use_effect       jsonb constraint catalog_items_use_effect_is_object check (jsonb_typeof(use_effect) = 'object'),
  is_active        boolean not null default true,
  created_at       timestamptz not null default internal.now(),
  updated_at       timestamptz not null default internal.now(),
  constraint catalog_items_key_unique unique (key),
  constraint catalog_items_durable_once check (item_type <> 'durable' or max_owned = 1),
  constraint catalog_items_name_is_one_line check (internal.is_line(name))
);
comment on table app.catalog_items is
  'What users can have: consumables, durables, bundles of others, packs of currency. At most 5,000.';
-- serve the lists: newest first, of one category, of one tag
create index catalog_items_newest on app.catalog_items (created_at desc, id desc);
create index catalog_items_of_category on app.catalog_items (category, created_at desc, id desc);
create index catalog_items_tagged on app.catalog_items using gin (tags);

create table app.catalog_item_prices (
  catalog_item_id uuid not null references app.catalog_items on delete cascade,
  currency_code   text not null references app.currencies (code) on delete restrict,
  price           bigint not null constraint catalog_item_prices_price_0_to_2000000000
    check (price between 0 and 2000000000),
  primary key (catalog_item_id, currency_code)
);
comment on table app.catalog_item_prices is 'What an item costs, in each currency that buys it: one of them is paid.';
create index catalog_item_prices_of_currency on app.catalog_item_prices (currency_code);

create table app.bundle_contents (
  bundle_id       uuid not null references app.catalog_items on delete cascade,
  content_item_id uuid not null references app.catalog_items on delete restrict,
  quantity        int not null constraint bundle_contents_quantity_1_to_10000 check (quantity between 1 and 10000),
  position        int not null,
  primary key (bundle_id, content_item_id)
);
comment on table app.bundle_contents is
  'What a bundle holds, in its order. Bundles in bundles, three deep at most, never in a circle.';
create index bundle_contents_of_item on app.bundle_contents (content_item_id);

-- migrate:down
drop table app.bundle_contents;
drop table app.catalog_item_prices;
drop table app.catalog_items;
