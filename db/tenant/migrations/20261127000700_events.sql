-- migrate:up
-- No checks: each statement would parse and compile them anew, some 40 us each. Definer functions alone write here,
-- with words from literals and figures within bounds; names of events are checked where they come in. No foreign key:
-- whoever writes here has locked the users, and a trigger on app.users takes these rows with them.
create table app.engagement_events (
  id               uuid not null,
  app_user_id      uuid not null,
  event_name       text not null,
  properties       jsonb not null default '{}',
  occurred_at      timestamptz not null,
  received_at      timestamptz not null,
  source           text not null,
  session_id       uuid,
  is_historical    boolean not null default false,
  clock_adjusted   boolean not null default false,
  schema_violation boolean not null default false,
  -- which events one transaction wrote: what an event caused
  transaction_id   xid8 default pg_current_xact_id(),
  primary key (id, received_at)
) partition by range (received_at);
comment on table app.engagement_events is
  'Everything that happens to a user, partitioned by month of receipt. Areas that an event moves hook in with a
   statement trigger each.';
-- serves the lists of one user's events, newest first
create index engagement_events_of_user on app.engagement_events (app_user_id, occurred_at desc, id desc);
-- serves one event name over time
create index engagement_events_of_name on app.engagement_events (event_name, occurred_at desc, id desc);
-- serves the list of all events, newest first
create index engagement_events_newest on app.engagement_events (occurred_at desc, id desc);
-- serves the count of the events of a day
create index engagement_events_received on app.engagement_events using brin (received_at) with (pages_per_range = 32,
                                        autosummarize = on);

-- months are made ahead of time by the workers; an event of a month that is missing waits here, so that no request ever
-- makes a table
create table app.engagement_events_default partition of app.engagement_events default;
alter table app.engagement_events_default enable row level security;

create table app.event_ids (
  id          uuid primary key,
  app_user_id uuid not null references app.users on delete cascade,
  received_at timestamptz not null
);
comment on table app.event_ids is
  'Ids that clients chose, remembered for 90 days: a partitioned table cannot hold a unique id across its partitions.';
create index event_ids_of_user on app.event_ids (app_user_id);
create index event_ids_received on app.event_ids (received_at);

create table app.user_event_counters (
  app_user_id uuid not null,
  event_name  text not null,
  day         date not null,
  count       bigint not null,
  primary key (app_user_id, event_name, day)
) with (fillfactor = 85);
comment on table app.user_event_counters is
  'How often each user did each thing on each day (UTC, by occurred_at), kept in the event''s own transaction.';

-- serves the counts of days: rows of a day were written at about the same time
create index user_event_counters_days on app.user_event_counters using brin (day)
  with (pages_per_range = 32, autosummarize = on);

create table app.event_definitions (
  event_name  text primary key
                constraint event_definitions_name_1_to_255
                check (char_length(event_name) between 1 and 255 and event_name !~ '^\s|\s$'),
  description text constraint event_definitions_description_at_most_2000 check (char_length(description) <= 2000),
  status      text not null default 'active'
                constraint event_definitions_status_known check (status in ('active', 'blocked', 'deprecated')),
  schema      jsonb,
  sample_rate numeric not null default 1 constraint event_definitions_sample_rate_0_to_1
    check (sample_rate between 0 and 1),
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  -- the trail of audits names a row by its id
  id          uuid not null default internal.new_id()
);
comment on table app.event_definitions is
  'What a project says of its own events. A name needs none: without a definition an event is stored as it comes.';
comment on column app.event_definitions.sample_rate is
  'Share of the events that stay in app.engagement_events. Every one of them is counted and moves what it moves; the
   rest leave the log again.';

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
  'How far a replay has come, written in the transaction of each of its steps, so that one which is taken over by
   another worker goes on where it was. Kept 90 days, as operations are.';

create type internal.streak_plan as (
  ids          uuid[],
  has_filters  boolean
);
comment on type internal.streak_plan is 'The streaks that an event feeds; has_filters: some look at its properties.';

create type internal.xp_plan as (
  ids          uuid[],
  is_fixed     boolean,
  keys         text[],
  amounts      bigint[],
  requested       bigint[],
  clips        text[]
);
comment on type internal.xp_plan is
  'The rules of an event. is_fixed: whatever the event, they give these amounts, in the order of their keys, for none
   has a condition, a cap or a boost.';

create type internal.achievement_plan as (
  counted      uuid[],
  targets      numeric[],
  others       uuid[]
);
comment on type internal.achievement_plan is
  'The achievements that an event may reach: those that count all events of its name, with their targets, and others.';

create table app.event_plans (
  event_name   text primary key,
  streaks      internal.streak_plan,
  xp           internal.xp_plan,
  challenges   boolean,
  achievements internal.achievement_plan,
  leaderboards uuid[],
  leagues      uuid[],
  referrals    boolean,
  segments     uuid[],
  flags        uuid[],
  webhooks     uuid[],
  feeds        boolean,
  realtime     boolean,
  push         boolean,
  campaigns    boolean
) with (toast_tuple_target = 8160);
comment on table app.event_plans is
  'What each area has to do for an event of this name, computed from its definitions: one row is read for an event, and
   a name without a row moves nothing. A column is named after its area; null is nothing. Times and conditions of
   definitions are checked for each event.';

create type internal.event_problem as (
  code    text,
  field   text,
  reason  text
);
comment on type internal.event_problem is
  'Why an item of a request is not stored: DUPLICATE, or the code of its rejection; the field; what is wrong with it. No
   code: nothing.';

create type internal.validated_event as (
  index          int,
  id             uuid,
  is_client_id   boolean,
  app_user_id    uuid,
  event_name     text,
  properties     jsonb,
  occurred_at    timestamptz,
  session_id     uuid,
  clock_adjusted boolean,
  problem        internal.event_problem
);
comment on type internal.validated_event is 'One item of a request, and what prevents that it is stored.';

-- migrate:down
drop type internal.validated_event;
drop type internal.event_problem;
drop table app.event_plans;
drop type internal.achievement_plan;
drop type internal.xp_plan;
drop type internal.streak_plan;
drop table app.event_replays;
drop table app.event_definitions;
drop table app.user_event_counters;
drop table app.event_ids;
drop table app.engagement_events;
