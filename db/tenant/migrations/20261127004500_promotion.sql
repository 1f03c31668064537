-- migrate:up
create table internal.composed_definitions (
  kind          text primary key constraint composed_definitions_kind_form check (kind ~ '^[a-z][a-z_]*$'),
  promoted_as   text not null constraint composed_definitions_promoted_as_unique unique,
  singular      text not null,
  plural        text not null,
  fields        jsonb not null constraint composed_definitions_fields_is_object check (jsonb_typeof(fields) = 'object'),
  fixed_columns text[] not null default '{}',
  max_count     int,
  create_order  int not null,
  refs          jsonb not null default '[]' constraint composed_definitions_refs_is_list
    check (jsonb_typeof(refs) = 'array'),
  is_additive   boolean not null default false,
  is_confirmed  boolean not null default false,
  declared_in   text not null
);
comment on table internal.composed_definitions is
  'The registry of what promotion copies and what is not one row of one table: collections with their columns, the table
   of levels, prompts with their versions. An area declares its own in its policy file, beside the functions
   internal.promotion_rows__<kind>() and internal.promotion_write__<kind>(op, key, wanted), and where they are wanted
   internal.promotion_merged__<kind>(was, wanted), internal.promotion_refusal__<kind>(op, wanted, was) and
   internal.promotion_lock__<kind>(keys).';
comment on column internal.composed_definitions.fields is
  'The fields of its copied form with the JSON types that each may have: {"columns": ["array"]}.';
comment on column internal.composed_definitions.fixed_columns is
  'Fields that are set when it is created, and never changed.';
comment on column internal.composed_definitions.create_order is
  'As in internal.definitions: lower numbers are created first.';
comment on column internal.composed_definitions.is_additive is 'Promotion never deletes it.';
comment on column internal.composed_definitions.is_confirmed is 'Every change of it by promotion needs a confirmation.';

-- migrate:down
drop table internal.composed_definitions;
