-- migrate:up
alter table app.tenants
  add column hold text constraint tenants_hold_known check (hold in ('paused', 'moving')),
  add column hold_note text constraint tenants_hold_note_at_most_200 check (char_length(hold_note) <= 200),
  add column held_since timestamptz,
  add column most_connections int constraint tenants_most_connections_2_to_1000 check (most_connections between 2 and 1000);
comment on column app.tenants.hold is
  'Why the project is not served although its database is there: an operator has paused it, or it is moving to another server. Null: it is served.';
comment on column app.tenants.most_connections is 'Connections that one server process may hold to the database at most; null: DATABASE_CONNECTIONS_PER_TENANT.';

-- migrate:down
alter table app.tenants drop column hold, drop column hold_note, drop column held_since, drop column most_connections;
