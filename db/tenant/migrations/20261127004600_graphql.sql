-- migrate:up
-- beside the definitions, and not in them: a name that is made changes no definition
create table app.graphql_names (
  collection_id uuid not null references app.collections on delete cascade,
  column_id     uuid references app.collection_columns on delete cascade,
  name          text not null,
  constraint graphql_names_one_each unique nulls not distinct (collection_id, column_id)
);
comment on table app.graphql_names is
  'The names of collections (column_id null) and of their columns in GraphQL. They are made of the names of the
   definitions, and of two that would be the same the later one gets another; a name that was told once stays.';
create index graphql_names_of_column on app.graphql_names (column_id);

-- migrate:down
drop table app.graphql_names;
