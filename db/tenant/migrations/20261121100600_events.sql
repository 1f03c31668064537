-- migrate:up
create table app.engagement_events (
  id             uuid not null,
  app_user_id    uuid not null references app.users on delete cascade,
  event_name     text not null constraint engagement_events_name_1_to_255
                   check (char_length(event_name) between 1 and 255 and event_name = btrim(event_name)),
  properties     jsonb not null default '{}',
  occurred_at    timestamptz not null,
  received_at    timestamptz not null,
  source         text not null constraint engagement_events_source_known
                   check (source in ('client', 'server', 'webhook', 'system')),
  session_id     uuid,
  is_historical  boolean not null default false,
  clock_adjusted boolean not null default false,
  schema_violation boolean not null default false,
  primary key (id, received_at)
) partition by range (received_at);
comment on table app.engagement_events is
  'Everything that happens to a user, partitioned by month of receipt. Areas that an event moves hook in with a statement trigger each.';
-- months are made ahead of time by the workers; an event of a month that is missing waits here, so that no request ever makes a table
create table app.engagement_events_default partition of app.engagement_events default;
alter table app.engagement_events_default enable row level security;
-- serves the lists of one user's events, newest first
create index engagement_events_of_user on app.engagement_events (app_user_id, occurred_at desc, id desc);
-- serves one event name over time
create index engagement_events_of_name on app.engagement_events (event_name, occurred_at desc, id desc);

create table app.event_ids (
  id          uuid primary key,
  app_user_id uuid not null references app.users on delete cascade,
  received_at timestamptz not null
);
comment on table app.event_ids is 'Ids that clients chose, remembered for 90 days: a partitioned table cannot hold a unique id across its partitions.';
create index event_ids_of_user on app.event_ids (app_user_id);
create index event_ids_received on app.event_ids (received_at);

create table app.user_event_counters (
  app_user_id uuid not null references app.users on delete cascade,
  event_name  text not null,
  day         date not null,
  count       bigint not null,
  primary key (app_user_id, event_name, day)
);
comment on table app.user_event_counters is 'How often each user did each thing on each day (UTC, by occurred_at), kept in the event''s own transaction.';

create type internal.judged_event as (
  index int,
  id uuid,
  is_client_id boolean,
  app_user_id uuid,
  event_name text,
  properties jsonb,
  occurred_at timestamptz,
  session_id uuid,
  clock_adjusted boolean,
  problem text
);
comment on type internal.judged_event is 'One item of a request: problem is null (good), or "CODE field: reason" where the code is DUPLICATE or that of its rejection.';

-- migrate:down
drop type internal.judged_event;
drop table app.user_event_counters;
drop table app.event_ids;
drop table app.engagement_events;
