-- migrate:up
create table app.event_definitions (
  event_name  text primary key
                constraint event_definitions_name_1_to_255
                check (char_length(event_name) between 1 and 255 and event_name !~ '^\s|\s$'),
  description text constraint event_definitions_description_at_most_2000 check (char_length(description) <= 2000),
  status      text not null default 'active'
                constraint event_definitions_status_known check (status in ('active', 'blocked', 'deprecated')),
  schema      jsonb,
  sample_rate numeric not null default 1 constraint event_definitions_sample_rate_0_to_1 check (sample_rate between 0 and 1),
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  -- the trail of audits names a row by its id
  id          uuid not null default internal.new_id()
);
comment on table app.event_definitions is
  'What a project says of its own events. A name needs none: without a definition an event is stored as it comes.';
comment on column app.event_definitions.sample_rate is
  'Share of the events that stay in app.engagement_events. Every one of them is counted and moves what it moves; the rest leave the log again.';

create table app.event_replays (
  operation_id uuid not null,
  target       text not null,
  is_dry_run   boolean not null,
  cursor_id    uuid,
  done         bigint not null default 0,
  users        bigint not null default 0,
  changes      bigint not null default 0,
  differences  jsonb not null default '[]',
  is_over      boolean not null default false,
  created_at   timestamptz not null default internal.now(),
  primary key (operation_id, target)
);
comment on table app.event_replays is
  'How far a replay has come, written in the transaction of each of its steps, so that one which is taken over by another worker goes on where it was. Kept 90 days, as operations are.';

-- which events one transaction wrote: what an event caused
alter table app.engagement_events add column transaction_id xid8;
alter table app.engagement_events alter column transaction_id set default pg_current_xact_id();
-- serves the list of all events, newest first
create index engagement_events_newest on app.engagement_events (occurred_at desc, id desc);

-- migrate:down
drop index app.engagement_events_newest;
alter table app.engagement_events drop column transaction_id;
drop table app.event_replays;
drop table app.event_definitions;
