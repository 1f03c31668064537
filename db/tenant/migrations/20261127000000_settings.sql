-- migrate:up
create table app.settings (
  key        text primary key,
  value      jsonb not null,
  updated_at timestamptz not null default internal.now()
);
comment on table app.settings is 'Settings of the project that its database must know, one row each.';

-- migrate:down
drop table app.settings;
