-- migrate:up
create table app.inventory_stacks (
  id              uuid primary key default internal.new_id(),
  app_user_id     uuid not null references app.users on delete cascade,
  catalog_item_id uuid not null references app.catalog_items on delete restrict,
  quantity        bigint not null constraint inventory_stacks_never_negative check (quantity >= 0),
  expires_at      timestamptz,
  metadata        jsonb not null default '{}',
  source_type     text not null,
  source_id       text not null,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  expired_at      timestamptz,
  constraint inventory_stacks_one_per_end unique nulls not distinct (app_user_id, catalog_item_id, expires_at)
);
comment on table app.inventory_stacks is
  'What users have of an item: one stack for each end. Expired and empty ones stay as a record and are hidden. At most
   10,000 a user.';
comment on column app.inventory_stacks.expired_at is
  'When it was told that what was left of the stack expired; null until then. That it has expired says expires_at
   alone.';
create index inventory_stacks_of_item on app.inventory_stacks (catalog_item_id, created_at desc, id desc);
create index inventory_stacks_of_user on app.inventory_stacks (app_user_id, created_at desc, id desc);
create index inventory_stacks_newest on app.inventory_stacks (created_at desc, id desc);
-- serves the telling of what expires next
create index inventory_stacks_expiring on app.inventory_stacks (expires_at, id)
  where expires_at is not null and expired_at is null and quantity > 0;

create table app.inventory_ledger_rows (
  id              uuid primary key default internal.new_id(),
  app_user_id     uuid not null references app.users on delete cascade,
  stack_id        uuid not null references app.inventory_stacks on delete cascade,
  catalog_item_id uuid not null references app.catalog_items on delete restrict,
  change          bigint not null constraint inventory_ledger_rows_change_not_zero check (change <> 0),
  quantity_after  bigint not null constraint inventory_ledger_rows_never_negative check (quantity_after >= 0),
  kind            text not null constraint inventory_ledger_rows_kind_known
    check (kind in ('granted', 'consumed', 'revoked', 'merged')),
  reason          text not null constraint inventory_ledger_rows_reason_1_to_200
    check (char_length(reason) between 1 and 200),
  source_type     text not null,
  source_id       text not null,
  created_at      timestamptz not null default internal.now()
);
comment on table app.inventory_ledger_rows is
  'Every movement of every stack, never changed. Ids are made while the user is locked.';
create index inventory_ledger_rows_of_user on app.inventory_ledger_rows (app_user_id, id desc);
create index inventory_ledger_rows_of_stack on app.inventory_ledger_rows (stack_id);
create index inventory_ledger_rows_of_item on app.inventory_ledger_rows (catalog_item_id);

-- migrate:down
drop table app.inventory_ledger_rows;
drop table app.inventory_stacks;
