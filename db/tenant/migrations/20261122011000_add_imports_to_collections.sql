-- migrate:up
create table app.collection_imports (
  id            uuid primary key default internal.new_id(),
  collection_id uuid not null references app.collections on delete cascade,
  rows          bigint not null default 0,
  inserted      bigint not null default 0,
  failed        bigint not null default 0,
  errors        jsonb not null default '[]',
  created_at    timestamptz not null default internal.now()
);
comment on table app.collection_imports is 'Rows on their way into a collection: staged by the request, inserted by a job. errors are of the first hundred that failed.';
create index collection_imports_of_collection on app.collection_imports (collection_id);
create index collection_imports_age on app.collection_imports (created_at);

create table app.collection_import_parts (
  import_id uuid not null references app.collection_imports on delete cascade,
  position  int not null,
  rows      json not null,
  primary key (import_id, position)
);
comment on table app.collection_import_parts is 'Up to 500 rows [{line, row}] of an import. A part goes in the transaction that inserts its rows.';

-- migrate:down
drop table app.collection_import_parts;
drop table app.collection_imports;
