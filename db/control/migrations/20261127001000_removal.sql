-- migrate:up
-- no reference to the project: its files may outlive its row
create table app.file_purges (
  id         uuid primary key default internal.new_id(),
  project_id uuid not null,
  location   json not null,
  attempts   int not null default 0,
  purged_at  timestamptz,
  due_at     timestamptz not null default internal.now(),
  error      text,
  created_at timestamptz not null default internal.now()
);
comment on table app.file_purges is
  'Locations of deleted projects'' files: purged, with back-off, and looked at once more six hours later; then the row
   goes.';
-- serves the sweep's look for what is due
create index file_purges_due on app.file_purges (due_at);

-- migrate:down
drop table app.file_purges;
