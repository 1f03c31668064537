-- migrate:up
create table app.row_counters (
  name text primary key
);
comment on table app.row_counters is
  'Counters whose rows have been counted: what app.row_counts says of them is right.';

create table app.row_counts (
  slot bigint generated always as identity primary key,
  name text not null,
  key  uuid not null,
  n    bigint not null
) with (fillfactor = 50);
comment on table app.row_counts is
  'How many rows a table has, by triggers: the sum of the slots of a name and key. key is the value of the column that
   rows are counted by, else the nil uuid.';
create index row_counts_of_name on app.row_counts (name, key);

-- migrate:down
drop table app.row_counts;
drop table app.row_counters;
