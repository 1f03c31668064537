-- migrate:up
alter table app.users
  add column if not exists is_banned boolean not null default false,
  add column if not exists muted_until timestamptz;

-- serves the administrator's search: a part of an address, of an external id or of a name
create index users_searched on app.users using gin
  (email extensions.gin_trgm_ops, external_id extensions.gin_trgm_ops, display_name extensions.gin_trgm_ops);
-- serves the search of users for each other: beginnings of names, in their order
create index users_named on app.users (lower(display_name) text_pattern_ops, id);
-- serves the export, oldest first
create index users_created on app.users (created_at, id);

alter table internal.user_data add column export_order text[];
comment on column internal.user_data.export_order is
  'Columns by which a bundle reads the user''s rows, batch after batch; unique for each user. Null is the primary key.';

-- migrate:down
alter table internal.user_data drop column export_order;
drop index app.users_created;
drop index app.users_named;
drop index app.users_searched;
alter table app.users drop column muted_until;
