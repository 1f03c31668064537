-- migrate:up
create table app.monetization_definitions (
  id          uuid primary key default internal.new_id(),
  object_type text not null constraint monetization_definitions_object_type_known
                check (object_type in ('product', 'entitlement', 'offering', 'paywall')),
  identifier  text not null constraint monetization_definitions_identifier_1_to_300
    check (char_length(identifier) between 1 and 300),
  definition  jsonb not null,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  constraint monetization_definitions_once unique (object_type, identifier)
);
comment on table app.monetization_definitions is
  'What a project sells, as declared: one row for each object, in the shape of the API. Products are identified by store
   and store identifier, the rest by key.';

create table app.monetization_applied_objects (
  object_type text not null constraint monetization_applied_objects_object_type_known
                check (object_type in ('product', 'entitlement', 'offering', 'paywall')),
  identifier  text not null constraint monetization_applied_objects_identifier_1_to_300
    check (char_length(identifier) between 1 and 300),
  document    jsonb not null,
  more        jsonb not null,
  hash        text not null,
  is_pushed   boolean not null default false,
  applied_at  timestamptz not null default internal.now(),
  primary key (object_type, identifier)
);
comment on table app.monetization_applied_objects is
  'How the subscription provider held each managed object when it was last applied or adopted. A live object with
   another hash has drifted. is_pushed: the product is in its store, so that an apply never creates it there again.';

-- migrate:down
drop table app.monetization_applied_objects;
drop table app.monetization_definitions;
