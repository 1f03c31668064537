-- migrate:up
create table internal.definitions (
  kind           text primary key constraint definitions_kind_form check (kind ~ '^[a-z][a-z_]*$'),
  table_name     text not null constraint definitions_table_name_form check (table_name ~ '^app\.[a-z][a-z_]*$'),
  singular       text not null,
  plural         text not null,
  key_column     text,
  found_by       text not null default 'id or key' constraint definitions_found_by_known
    check (found_by in ('id', 'key', 'id or key')),
  not_found_code text not null default 'NOT_FOUND',
  invalid_code   text not null default 'VALIDATION_ERROR',
  order_by       text[] not null default '{created_at,id}',
  is_descending  boolean not null default true,
  max_count      int,
  fixed_columns  text[] not null default '{}',
  state_columns  text[] not null default '{}',
  create_order   int not null,
  refs           jsonb not null default '[]' constraint definitions_refs_is_list check (jsonb_typeof(refs) = 'array'),
  declared_in    text not null,
  promoted_as    text constraint definitions_promoted_as_form check (promoted_as ~ '^[a-z][a-z_]*$'),
  kept_back      text,
  promoted_refs  jsonb constraint definitions_promoted_refs_is_list check (jsonb_typeof(promoted_refs) = 'array'),
  constraint definitions_table_name_unique unique (table_name),
  constraint definitions_key_where_found_by_key check (found_by = 'id' or key_column is not null)
);
comment on table internal.definitions is
  'The registry of entities that developers define, such as rules and boards: one row beside the policies of each
   entity. What is in none of fixed_columns and state_columns, and is not id, created_at or updated_at, can be
   changed.';
comment on column internal.definitions.key_column is
  'The name that developers give a row, by which its copy in another project is found; null where there is none.';
comment on column internal.definitions.fixed_columns is
  'Configuration that is set when a row is created, and never changes.';
comment on column internal.definitions.state_columns is
  'Columns that are no configuration: counters, caches, schedules. They are not copied, and the common JSON leaves them
   out.';
comment on column internal.definitions.create_order is
  'Kinds with a lower number are created first: a row may refer to rows of lower or equal numbers.';
comment on column internal.definitions.refs is
  'References to other definitions, [{"path": "$.segment_id", "kind": "segment", "by": "id"}]: path is an SQL/JSON path
   into the JSON of a row, by is id or key.';
comment on column internal.definitions.promoted_as is
  'The name of the kind in a document of promotion; null means the kind followed by s.';
comment on column internal.definitions.kept_back is
  'Why rows of this kind stay in their project; null for a kind that is copied.';
comment on column internal.definitions.promoted_refs is
  'The references of a row in its copied form, where a hook internal.<kind>_promoted gives it another form than its
   JSON; null means refs.';

-- migrate:down
drop table internal.definitions;
