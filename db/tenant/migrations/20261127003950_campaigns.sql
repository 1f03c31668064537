-- migrate:up
create table internal.campaign_channels (
  channel          text primary key constraint campaign_channels_channel_form
    check (channel ~ '^[a-z][a-z0-9_]{0,31}$'),
  skip_reasons     text[] not null,
  sends_per_second int not null constraint campaign_channels_sends_per_second_positive check (sends_per_second > 0),
  most_waiting     int constraint campaign_channels_most_waiting_positive check (most_waiting > 0),
  lease            interval,
  has_clicks       boolean not null default false,
  is_estimated     boolean not null default false,
  send_task        text not null default 'campaigns__send',
  declared_in      text not null
);
comment on table internal.campaign_channels is
  'The registry of channels, filled beside the policies of each area: their own reasons to skip a user, how many
   messages a second a project sends, how many of a campaign may wait for their outcome, for how long a worker holds
   what it has claimed, and the task that sends. docs/campaigns.md has the functions that go with a row.';

create table app.campaigns (
  id                  uuid primary key default internal.new_id(),
  channel             text not null,
  workflow_id         text,
  name                text not null,
  message             jsonb not null,
  audience            jsonb not null,
  exclude_segment_id  uuid,
  send_at             timestamptz,
  mode                text not null default 'absolute' constraint campaigns_mode_known
    check (mode in ('absolute', 'user_local')),
  local_time          text,
  weekdays            int[],
  throttle_per_minute int,
  quiet_hours         jsonb,
  frequency_cap       jsonb,
  variants            jsonb not null default '[]',
  goal_event          text,
  inbox               boolean not null default true,
  status              text not null default 'draft'
                      constraint campaigns_status_known check (status in ('draft', 'scheduled', 'sending', 'paused',
                                                                          'sent', 'cancelled', 'failed')),
  failure             text,
  is_deleted          boolean not null default false,
  created_at          timestamptz not null default internal.now(),
  updated_at          timestamptz not null default internal.now(),
  scheduled_at        timestamptz,
  started_at          timestamptz,
  finished_at         timestamptz,
  constraint campaigns_workflow_id_unique unique (channel, workflow_id),
  constraint campaigns_name_is_one_line check (internal.is_line(name))
);
-- @name is the name in GraphQL
comment on table app.campaigns is
  e'@name push_campaigns\nOne message to many users, once, by a channel. A deleted campaign keeps its row until its '
   'deliveries are deleted.';
comment on column app.campaigns.message is
  'What is sent: its keys are those of the channel. Each variant has one in its message, with the keys that differ.';
create index campaigns_with_goal on app.campaigns (goal_event) where goal_event is not null;
-- serve the lists of a channel, newest first: all, and those of a status
create index campaigns_of_channel on app.campaigns (channel, created_at desc, id desc);
create index campaigns_by_status on app.campaigns (channel, status, created_at desc, id desc);

create table app.campaign_plans (
  campaign_id uuid primary key references app.campaigns on delete cascade,
  query       text not null,
  parameters  jsonb not null,
  user_ids    uuid[],
  cursor_id   uuid not null default '00000000-0000-0000-0000-000000000000',
  planned_at  timestamptz
);
comment on table app.campaign_plans is
  'How far a campaign''s audience has become deliveries: users up to cursor_id. The audience is compiled once, when the
   campaign starts.';

create table app.campaign_deliveries (
  id            uuid primary key default internal.new_id(),
  -- the campaign, or the nil uuid for direct sends and automations of push
  queue_id      uuid not null,
  channel       text not null,
  campaign_id   uuid references app.campaigns on delete cascade,
  automation_id uuid references app.push_automations on delete cascade,
  app_user_id   uuid not null references app.users on delete cascade,
  variant       text,
  -- the message of a direct send; the properties of the event that caused it
  message       jsonb,
  context       jsonb,
  is_test       boolean not null default false,
  inbox         boolean not null default true,
  status        text not null default 'pending'
                constraint campaign_deliveries_status_known
                  check (status in ('pending', 'sending', 'sent', 'opened', 'converted', 'skipped', 'failed')),
  reason        text,
  code          text,
  tries         smallint not null default 0,
  -- of a pending delivery when it is to be sent, of one that is being sent when its worker counts as dead
  due_at        timestamptz not null,
  attempt_id    uuid,
  attempts      jsonb not null default '[]',
  sent_at       timestamptz,
  received_at   timestamptz,
  opened_at     timestamptz,
  clicked_at    timestamptz,
  converted_at  timestamptz,
  created_at    timestamptz not null default internal.now(),
  constraint campaign_deliveries_once_per_campaign unique (campaign_id, app_user_id)
);
comment on table app.campaign_deliveries is
  e'@name push_deliveries\nOne message to one user: pending, sending (queued, or marked before a provider is called), '
   'then sent, skipped or failed. Kept for 90 days.';
-- serve the claims of senders; a campaign''s list by status; a user''s list and caps; the foreign key, and what an
-- event cancels
create index campaign_deliveries_due on app.campaign_deliveries (queue_id, due_at, id)
  where status in ('pending', 'sending');
create index campaign_deliveries_by_status on app.campaign_deliveries (campaign_id, status, app_user_id)
  where campaign_id is not null;
create index campaign_deliveries_of_user on app.campaign_deliveries (app_user_id, id);
create index campaign_deliveries_of_automation on app.campaign_deliveries (automation_id, app_user_id)
  where automation_id is not null;
-- serves the purge
create index campaign_deliveries_created on app.campaign_deliveries using brin (created_at);

create table app.campaign_counts (
  slot      bigint generated always as identity primary key,
  source_id uuid not null,
  -- -infinity holds the sums
  hour      timestamptz not null,
  variant   text not null,
  targeted  bigint not null default 0,
  sent      bigint not null default 0,
  failed    bigint not null default 0,
  skipped   bigint not null default 0,
  opened    bigint not null default 0,
  converted bigint not null default 0,
  clicked   bigint not null default 0
);
comment on table app.campaign_counts is
  e'@name push_counts\nCounts of the deliveries of a campaign or an automation, by variant and hour. Each is the sum '
   'of its slots, of which concurrent writers take
   different ones.';
create index campaign_counts_of_source on app.campaign_counts (source_id, hour, variant);

create table app.campaign_buckets (
  name      text primary key,
  tokens    numeric not null,
  filled_at timestamptz not null
);
comment on table app.campaign_buckets is
  'Token buckets: "channel push" and the like for all that a channel sends, and the id of each campaign with a throttle.
   "campaigns" is a lock.';

-- migrate:down
drop table app.campaign_buckets;
drop table app.campaign_counts;
drop table app.campaign_deliveries;
drop table app.campaign_plans;
drop table app.campaigns;
drop table internal.campaign_channels;
