-- migrate:up
create table app.collection_keys (
  collection_id uuid not null references app.collections on delete cascade,
  caller        text not null,
  key           text not null constraint collection_keys_printable check (key ~ '^[ -~]{1,255}$'),
  row_id        uuid not null,
  created_at    timestamptz not null default internal.now(),
  primary key (collection_id, caller, key)
);
comment on table app.collection_keys is
  'Which row an Idempotency-Key made, per collection and caller, for 30 days: as long as a deleted row can be restored.';
-- serves the daily forgetting
create index collection_keys_created on app.collection_keys (created_at);

-- migrate:down
drop table app.collection_keys;
