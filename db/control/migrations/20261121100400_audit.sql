-- migrate:up
create table app.audit_events (
  id           uuid not null default internal.new_id(),
  position     bigint generated always as identity,
  occurred_at  timestamptz not null default internal.now(),
  actor        json not null,
  action       text not null,
  target_type  text not null,
  target_id    text,
  changes      json not null default '{}',
  ip           text,
  user_agent   text,
  request_id   text,
  hash         text not null,
  primary key (id)
);
comment on table app.audit_events is
  'Who changed what: one row for each change that an administrator makes, in the change''s own transaction. Append-only; hash is sha256(previous hash || row).';
create index audit_events_newest on app.audit_events (occurred_at desc, id desc);
create unique index audit_events_position on app.audit_events (position);

-- migrate:down
drop table app.audit_events;
