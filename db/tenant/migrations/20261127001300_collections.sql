-- migrate:up
create table app.collections (
  id             uuid primary key default internal.new_id(),
  name           text not null constraint collections_name_form check (name ~ '^[a-z][a-z0-9_]{0,62}$'),
  description    text constraint collections_description_at_most_2000 check (char_length(description) <= 2000),
  owner_scope    text not null default 'user' constraint collections_owner_scope_known
    check (owner_scope in ('user', 'group')),
  read_policy    text not null default 'owner',
  write_policy   text not null default 'owner',
  sync           boolean not null default false,
  realtime       boolean not null default true,
  schema_version bigint not null default 1,
  generator      int not null,
  created_at     timestamptz not null default internal.now(),
  updated_at     timestamptz not null default internal.now(),
  constraint collections_name_unique unique (name)
);
comment on table app.collections is
  'Each row describes a table of that name in schema collections. What is said here the functions keep true there; what
   a DBA adds there stays.';
comment on column app.collections.schema_version is
  'Goes up with every change of the definition: what was compiled for an older one is stale.';
comment on column app.collections.generator is
  'The version of internal.collection_policies_sql that made the policies and grants of the table.';

create table app.collection_columns (
  id                       uuid primary key default internal.new_id(),
  collection_id            uuid not null references app.collections on delete cascade,
  name                     text not null constraint collection_columns_name_form
    check (name ~ '^[a-z][a-z0-9_]{0,62}$'),
  position                 int not null,
  type                     text not null
                             constraint collection_columns_type_known check (type in (
                               'text', 'integer', 'bigint', 'numeric', 'double', 'boolean', 'uuid', 'date',
                                 'timestamptz', 'jsonb', 'vector',
                               'text[]', 'integer[]', 'bigint[]', 'numeric[]', 'boolean[]', 'uuid[]')),
  sql_type                 text not null,
  nullable                 boolean not null default true,
  default_value            json,
  is_unique                boolean not null default false,
  max_length               int,
  min                      numeric,
  max                      numeric,
  enum                     json,
  references_collection_id uuid references app.collections on delete restrict,
  on_delete                text constraint collection_columns_on_delete_known
    check (on_delete in ('set_null', 'cascade', 'restrict')),
  dimensions               int,
  created_at               timestamptz not null default internal.now(),
  is_moderated             boolean not null default false,
  constraint collection_columns_name_unique unique (collection_id, name) deferrable,
  constraint collection_columns_reference_whole check ((references_collection_id is null) = (on_delete is null)),
  constraint collection_columns_dimensions_of_vectors check ((type = 'vector') = (dimensions is not null))
);
comment on table app.collection_columns is
  'The developer''s columns of each collection, without the server-managed ones. sql_type is the type in the table: of a
   vector it is extensions.vector(n), or real[] where pgvector was not there.';
comment on column app.collection_columns.is_moderated is 'Whether rules of moderation read the texts of the column.';
create index collection_columns_of_collection on app.collection_columns (collection_id, position);
create index collection_columns_references on app.collection_columns (references_collection_id);

create table app.collection_indexes (
  id            uuid primary key default internal.new_id(),
  collection_id uuid not null references app.collections on delete cascade,
  name          text not null,
  index_name    text not null,
  columns       text[] not null,
  is_unique     boolean not null default false,
  method        text not null default 'btree'
                  constraint collection_indexes_method_known check (method in ('btree', 'gin', 'trgm', 'hnsw')),
  where_filter  json,
  is_ready      boolean not null default true,
  created_at    timestamptz not null default internal.now(),
  constraint collection_indexes_name_unique unique (collection_id, name),
  constraint collection_indexes_index_name_unique unique (index_name)
);
comment on table app.collection_indexes is
  'The developer''s indexes. index_name is the name in schema collections, where tables and indexes share one space of
   names. is_ready is false while an index is being built in the background.';

create table app.collection_imports (
  id            uuid primary key default internal.new_id(),
  collection_id uuid not null references app.collections on delete cascade,
  rows          bigint not null default 0,
  inserted      bigint not null default 0,
  failed        bigint not null default 0,
  errors        jsonb not null default '[]',
  created_at    timestamptz not null default internal.now()
);
comment on table app.collection_imports is
  'Rows on their way into a collection: staged by the request, inserted by a job. errors are of the first hundred that
   failed.';
create index collection_imports_of_collection on app.collection_imports (collection_id);
create index collection_imports_age on app.collection_imports (created_at);

create table app.collection_import_parts (
  import_id uuid not null references app.collection_imports on delete cascade,
  position  int not null,
  rows      json not null,
  primary key (import_id, position)
);
comment on table app.collection_import_parts is
  'Up to 500 rows [{line, row}] of an import. A part goes in the transaction that inserts its rows.';

create table app.collection_keys (
  collection_id uuid not null references app.collections on delete cascade,
  caller        text not null,
  key           text not null constraint collection_keys_printable check (key ~ '^[ -~]{1,255}$'),
  row_id        uuid not null,
  created_at    timestamptz not null default internal.now(),
  primary key (collection_id, caller, key)
);
comment on table app.collection_keys is
  'Which row an Idempotency-Key made, per collection and caller, for 30 days: as long as a deleted row can be
   restored.';
-- serves the daily forgetting
create index collection_keys_created on app.collection_keys (created_at);

-- migrate:down
drop table app.collection_keys;
drop table app.collection_import_parts;
drop table app.collection_imports;
drop table app.collection_indexes;
drop table app.collection_columns;
drop table app.collections;
