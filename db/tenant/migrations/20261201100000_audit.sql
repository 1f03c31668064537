-- migrate:up
-- Rows are written without a hash; a sealer numbers and hashes them after their commit, so that no transaction waits for another.
-- Rows of the former chain keep their position and hash, and are verified as before.
create sequence app.audit_positions as bigint;
comment on sequence app.audit_positions is 'The order in which rows were written, over all trails of this database. Gaps are rows of undone transactions.';
-- a former program may still append to its chain while this is applied: the two ranges must not meet
select setval('app.audit_positions', m.last_position + 1000000) from (select max(c.last_position) as last_position from app.audit_chains c) m
 where m.last_position is not null;

alter table app.audit_events alter column hash drop not null;
comment on column app.audit_events.position is 'Orders rows of one time: a value of app.audit_positions; in rows of the former chain, the place in it.';
comment on column app.audit_events.hash is
  'Null: the seal is in app.audit_seals. In rows of the former chain, sha256(hash of the row before || row).';
comment on table app.audit_events is
  'Who changed what: one row for each change that an administrator makes, in the change''s own transaction. Append-only; numbered and hashed by app.audit_seals. Partitioned by month, kept 400 days.';
comment on table app.audit_chains is 'Where each month of the former chain began and ended; its rows have a hash in app.audit_events.';

create table app.audit_digests (
  position    bigint primary key,
  event_id    uuid not null,
  scope       uuid not null,
  occurred_at timestamptz not null,
  digest      bytea not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
alter table app.audit_digests enable row level security;
comment on table app.audit_digests is
  'Rows of the trail that wait for their seal: the SHA-256 of each, written in the same transaction. A row that is changed, removed or put in before it is sealed differs from this.';

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
  'The hash chain of each scope: hash is sha256(hash of the seal before || this seal). position counts without gaps. Partitioned by month, kept 400 days.';
comment on column app.audit_seals.digest is 'The SHA-256 of the row of app.audit_events as it was written.';
comment on column app.audit_seals.sealed_at is 'Never before the seal in front of it, nor before the row occurred: a month of seals is one piece of the chain.';
create table app.audit_seals_default partition of app.audit_seals default;
alter table app.audit_seals enable row level security;
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
alter table app.audit_heads enable row level security;
comment on table app.audit_heads is
  'Where each month of a chain of seals begins and ends: opening_hash is the last one of the month before, so that what is left can be verified when that is dropped.';

-- migrate:down
drop function if exists internal.audit_seal_hash(bytea, app.audit_seals);
drop table app.audit_heads;
drop table app.audit_seals;
drop table app.audit_digests;
drop sequence app.audit_positions;
