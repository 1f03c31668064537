-- migrate:up
create schema rest;
comment on schema rest is
  'What PostgREST serves: a view of each collection. Views that a DBA adds here, granted to app_rest or app_server, are served too.';

create table app.rest_doors (
  id          boolean primary key default true constraint rest_doors_one_row check (id),
  generator   int not null,
  prepared_at timestamptz not null default internal.now()
);
comment on table app.rest_doors is
  'One row once the REST door of this project has been used: from then on the views in schema rest follow the collections. generator is the
   version of internal.rest_view_sql that made them.';

-- migrate:down
drop table app.rest_doors;
drop schema rest cascade;
