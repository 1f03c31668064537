-- migrate:up
create table app.audit_events (
  id          uuid not null,
  scope       uuid not null,
  position    bigint not null,
  occurred_at timestamptz not null,
  actor       json not null,
  action      text not null,
  target_type text not null,
  target_id   text,
  changes     json not null default '{}',
  ip          text,
  user_agent  text,
  request_id  text,
  status      int not null,
  primary key (id, occurred_at),
  constraint audit_events_one_at_each_position unique (scope, position, occurred_at)
) partition by range (occurred_at);
comment on table app.audit_events is
  'Who changed what: one row for each change that an administrator makes, in the change''s own transaction. Append-only;
   numbered and hashed by app.audit_seals. Partitioned by month, kept 400 days.';
comment on column app.audit_events.scope is
  'Whose trail this is: in control a project, or a developer''s own account; a project''s database has one, the nil
   uuid.';
comment on column app.audit_events.position is 'Orders rows of one time: a value of app.audit_positions.';
-- serves the list: newest first
create index audit_events_newest on app.audit_events (scope, occurred_at desc, position desc);
-- serves the history of one object, and what one person did
create index audit_events_of_target on app.audit_events (scope, target_id, occurred_at desc, position desc);
create index audit_events_of_actor on app.audit_events (scope, (actor ->> 'id'), occurred_at desc, position desc);

-- months are made ahead of time by the workers; a change in a month that is missing waits here, so that no request ever
-- makes a table
create table app.audit_events_default partition of app.audit_events default;
alter table app.audit_events_default enable row level security;

-- Rows are written without a hash; a sealer numbers and hashes them after their commit, so that no transaction waits
-- for another.
create sequence app.audit_positions as bigint;
comment on sequence app.audit_positions is
  'The order in which rows were written, over all trails of this database. Gaps are rows of undone transactions.';

create table app.audit_digests (
  position    bigint primary key,
  event_id    uuid not null,
  scope       uuid not null,
  occurred_at timestamptz not null,
  digest      bytea not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
comment on table app.audit_digests is
  'Rows of the trail that wait for their seal: the SHA-256 of each, written in the same transaction. A row that is
   changed, removed or put in before it is sealed differs from this.';
alter table app.audit_digests enable row level security;

create table app.audit_seals (
  scope       uuid not null,
  position    bigint not null,
  event_id    uuid not null,
  occurred_at timestamptz not null,
  digest      bytea not null,
  sealed_at   timestamptz not null,
  hash        bytea not null,
  constraint audit_seals_one_at_each_position primary key (scope, position, sealed_at),
  constraint audit_seals_one_of_each_event unique (event_id, sealed_at)
) partition by range (sealed_at);
comment on table app.audit_seals is
  'The hash chain of each scope: hash is sha256(hash of the seal before || this seal). position counts without gaps.
   Partitioned by month, kept 400 days.';
comment on column app.audit_seals.digest is 'The SHA-256 of the row of app.audit_events as it was written.';
comment on column app.audit_seals.sealed_at is
  'Never before the seal in front of it, nor before the row occurred: a month of seals is one piece of the chain.';
alter table app.audit_seals enable row level security;

create table app.audit_seals_default partition of app.audit_seals default;
alter table app.audit_seals_default enable row level security;

create table app.audit_heads (
  scope            uuid not null,
  month            date not null,
  opening_hash     bytea not null,
  opening_position bigint not null,
  last_hash        bytea not null,
  last_position    bigint not null,
  last_at          timestamptz not null,
  primary key (scope, month)
);
comment on table app.audit_heads is
  'Where each month of a chain of seals begins and ends: opening_hash is the last one of the month before, so that what
   is left can be verified when that is dropped.';
alter table app.audit_heads enable row level security;

-- migrate:down
drop table app.audit_heads;
drop table app.audit_seals;
drop table app.audit_digests;
drop sequence app.audit_positions;
drop table app.audit_events;
