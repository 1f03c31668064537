-- migrate:up
-- the function's file makes it anew with more parameters; the trigger function beside it must not be dropped with it
drop function if exists internal.audit(text, text, text, json);
-- the trail becomes partitioned by month, so that old months can be dropped, with a chain of hashes for each scope
drop function if exists internal.audit_hash(text, app.audit_events);
alter table app.audit_events rename to audit_events_before;
alter table app.audit_events_before rename constraint audit_events_pkey to audit_events_before_pkey;
drop index app.audit_events_newest, app.audit_events_position;

create table app.audit_events (
  id           uuid not null,
  scope        uuid not null,
  position     bigint not null,
  occurred_at  timestamptz not null,
  actor        json not null,
  action       text not null,
  target_type  text not null,
  target_id    text,
  changes      json not null default '{}',
  ip           text,
  user_agent   text,
  request_id   text,
  status       int not null,
  hash         text not null,
  primary key (id, occurred_at),
  constraint audit_events_one_at_each_position unique (scope, position, occurred_at)
) partition by range (occurred_at);
comment on table app.audit_events is
  'Who changed what: one row for each change that an administrator makes, in the change''s own transaction. Append-only; hash is sha256(previous hash of the scope || row). Partitioned by month, kept 400 days.';
comment on column app.audit_events.scope is
  'Whose trail this is: in control a project, or a developer''s own account; a project''s database has one, the nil uuid.';
-- months are made ahead of time by the workers; a change in a month that is missing waits here, so that no request ever makes a table
create table app.audit_events_default partition of app.audit_events default;
alter table app.audit_events_default enable row level security;
-- serves the list: newest first
create index audit_events_newest on app.audit_events (scope, occurred_at desc, position desc);
-- serves the history of one object, and what one person did
create index audit_events_of_target on app.audit_events (scope, target_id, occurred_at desc, position desc);
create index audit_events_of_actor on app.audit_events (scope, (actor ->> 'id'), occurred_at desc, position desc);

create table app.audit_chains (
  scope            uuid not null,
  month            date not null,
  opening_hash     text not null,
  opening_position bigint not null,
  last_hash        text not null,
  last_position    bigint not null,
  last_at          timestamptz not null,
  primary key (scope, month)
);
comment on table app.audit_chains is
  'Where each month of a trail begins and ends: opening_hash is the last one of the month before, so that what is left can be verified when that is dropped.';

do $$
declare
  event record;
  head app.audit_chains;
  moment timestamptz;
  hash text;
begin
  for event in
    select b.*, '00000000-0000-0000-0000-000000000000'::uuid as scope
      from app.audit_events_before b
     order by b.position
  loop
    select c.* into head from app.audit_chains c where c.scope = event.scope order by c.month desc limit 1;
    moment := greatest(event.occurred_at, head.last_at);
    hash := encode(sha256(convert_to(coalesce(head.last_hash, '') || json_build_array(
      event.id, event.scope, coalesce(head.last_position, 0) + 1, to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
      event.actor, event.action, event.target_type, event.target_id, event.changes, event.ip, event.user_agent, event.request_id,
      200)::text, 'UTF8')), 'hex');
    insert into app.audit_events
    values (event.id, event.scope, coalesce(head.last_position, 0) + 1, moment, event.actor, event.action, event.target_type,
            event.target_id, event.changes, event.ip, event.user_agent, event.request_id, 200, hash);
    insert into app.audit_chains as c
    values (event.scope, date_trunc('month', moment at time zone 'UTC')::date, coalesce(head.last_hash, ''), coalesce(head.last_position, 0),
            hash, coalesce(head.last_position, 0) + 1, moment)
    on conflict on constraint audit_chains_pkey do update
       set last_hash = excluded.last_hash, last_position = excluded.last_position, last_at = excluded.last_at;
  end loop;
end $$;
drop table app.audit_events_before;

-- migrate:down
drop function if exists internal.audit_hash(text, app.audit_events);
drop function if exists internal.audit(text, text, text, json, int, uuid);
drop function if exists internal.audit_json(app.audit_events);
drop function if exists internal.audit_key(app.audit_events);
drop table app.audit_events;
drop table app.audit_chains;
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
create index audit_events_newest on app.audit_events (occurred_at desc, id desc);
create unique index audit_events_position on app.audit_events (position);
