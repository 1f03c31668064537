-- migrate:up
create table app.push_templates (
  id         uuid primary key default internal.new_id(),
  key        text not null constraint push_templates_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name       text constraint push_templates_name_at_most_200 check (char_length(name) <= 200),
  message    jsonb not null constraint push_templates_message_is_object check (jsonb_typeof(message) = 'object'),
  created_at timestamptz not null default internal.now(),
  updated_at timestamptz not null default internal.now(),
  constraint push_templates_key_unique unique (key),
  constraint push_templates_name_is_one_line check (internal.is_line(name))
);
comment on table app.push_templates is 'Messages that automations name by key. At most 200.';

create table app.push_campaigns (
  id                  uuid primary key default internal.new_id(),
  workflow_id         text,
  name                text not null,
  message             jsonb not null,
  audience            jsonb not null,
  exclude_segment_id  uuid,
  send_at             timestamptz,
  mode                text not null default 'absolute' constraint push_campaigns_mode_known check (mode in ('absolute', 'user_local')),
  local_time          text,
  weekdays            int[],
  throttle_per_minute int,
  quiet_hours         jsonb,
  frequency_cap       jsonb,
  variants            jsonb not null default '[]',
  goal_event          text,
  inbox               boolean not null default true,
  status              text not null default 'draft'
                      constraint push_campaigns_status_known check (status in ('draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled', 'failed')),
  failure             text,
  is_deleted          boolean not null default false,
  created_at          timestamptz not null default internal.now(),
  updated_at          timestamptz not null default internal.now(),
  scheduled_at        timestamptz,
  started_at          timestamptz,
  finished_at         timestamptz,
  channel             text not null default 'push' constraint push_campaigns_channel_known check (channel in ('push', 'email')),
  constraint push_campaigns_workflow_id_unique unique (channel, workflow_id),
  constraint push_campaigns_name_is_one_line check (internal.is_line(name))
);
comment on table app.push_campaigns is 'One message to many users, once. A deleted campaign keeps its row until its deliveries are deleted.';
comment on column app.push_campaigns.message is
  'What is sent: of push the message; of mail {template_key, category, variables?, from?, reply_to?, track}. Each variant has one in its message.';
create index push_campaigns_with_goal on app.push_campaigns (goal_event) where goal_event is not null;
-- serve the lists of a channel, newest first: all, and those of a status
create index push_campaigns_of_channel on app.push_campaigns (channel, created_at desc, id desc);
create index push_campaigns_by_status on app.push_campaigns (channel, status, created_at desc, id desc);

create table app.push_plans (
  campaign_id uuid primary key references app.push_campaigns on delete cascade,
  query       text not null,
  parameters  jsonb not null,
  user_ids    uuid[],
  cursor_id   uuid not null default '00000000-0000-0000-0000-000000000000',
  planned_at  timestamptz
);
comment on table app.push_plans is
  'How far a campaign''s audience has become deliveries: users up to cursor_id. The audience is compiled once, when the campaign starts.';

create table app.push_automations (
  id              uuid primary key default internal.new_id(),
  key             text not null constraint push_automations_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  trigger         jsonb not null constraint push_automations_trigger_is_object check (jsonb_typeof(trigger) = 'object'),
  delay_seconds   int not null default 0 constraint push_automations_delay_0_to_30_days check (delay_seconds between 0 and 2592000),
  cancel_if_event text constraint push_automations_cancel_if_event_1_to_255 check (char_length(cancel_if_event) between 1 and 255),
  message         jsonb constraint push_automations_message_is_object check (jsonb_typeof(message) = 'object'),
  template_key    text,
  frequency_cap   jsonb,
  quiet_hours     jsonb,
  inbox           boolean not null default true,
  is_active       boolean not null default true,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint push_automations_key_unique unique (key),
  constraint push_automations_message_or_template check ((message is null) <> (template_key is null))
);
comment on table app.push_automations is 'Messages that events and segments cause. At most 100.';

create table app.push_deliveries (
  id            uuid primary key default internal.new_id(),
  -- the campaign, or the nil uuid for direct sends and automations
  queue_id      uuid not null,
  campaign_id   uuid references app.push_campaigns on delete cascade,
  automation_id uuid references app.push_automations on delete cascade,
  app_user_id   uuid not null references app.users on delete cascade,
  variant       text,
  -- the message of a direct send; the properties of the event that caused it
  message       jsonb,
  context       jsonb,
  is_test       boolean not null default false,
  inbox         boolean not null default true,
  status        text not null default 'pending'
                constraint push_deliveries_status_known check (status in ('pending', 'sending', 'sent', 'opened', 'converted', 'skipped', 'failed')),
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
  converted_at  timestamptz,
  created_at    timestamptz not null default internal.now(),
  channel       text not null default 'push' constraint push_deliveries_channel_known check (channel in ('push', 'email')),
  clicked_at    timestamptz,
  constraint push_deliveries_once_per_campaign unique (campaign_id, app_user_id)
);
comment on table app.push_deliveries is
  'One message to one user: pending, sending (marked before a provider is called), then sent, skipped or failed. Kept for 90 days.';
-- serve the claims of senders; a campaign''s list by status; a user''s list and caps; the foreign key, and what an event cancels
create index push_deliveries_due on app.push_deliveries (queue_id, due_at, id) where status in ('pending', 'sending');
create index push_deliveries_by_status on app.push_deliveries (campaign_id, status, app_user_id) where campaign_id is not null;
create index push_deliveries_of_user on app.push_deliveries (app_user_id, id);
create index push_deliveries_of_automation on app.push_deliveries (automation_id, app_user_id) where automation_id is not null;
-- serves the purge
create index push_deliveries_created on app.push_deliveries using brin (created_at);

create table app.push_counts (
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
comment on table app.push_counts is
  'Counts of the deliveries of a campaign or an automation, by variant and hour. Each is the sum of its slots, of which concurrent writers take
   different ones.';
create index push_counts_of_source on app.push_counts (source_id, hour, variant);

create table app.push_buckets (
  name       text primary key,
  tokens     numeric not null,
  filled_at  timestamptz not null,
  failures   int not null default 0,
  open_until timestamptz
);
comment on table app.push_buckets is
  'Token buckets of throttles: "project", and the id of each campaign with a throttle; and the circuit breaker of each provider: "provider apns".';

create table app.push_preferences (
  app_user_id uuid primary key references app.users on delete cascade,
  enabled     boolean not null default true,
  categories  jsonb not null default '{}',
  quiet_hours jsonb,
  updated_at  timestamptz not null default internal.now()
);
comment on table app.push_preferences is 'What users want to be pushed. A user without a row wants everything.';

create table app.push_categories (
  key        text primary key,
  created_at timestamptz not null default internal.now()
);
comment on table app.push_categories is 'The categories that messages of the project have used.';

create table app.push_inbox_items (
  id          uuid primary key default internal.new_id(),
  app_user_id uuid not null references app.users on delete cascade,
  delivery_id uuid not null,
  title       text not null,
  body        text not null,
  image_url   text,
  deep_link   text,
  data        jsonb not null default '{}',
  is_read     boolean not null default false,
  created_at  timestamptz not null default internal.now(),
  read_at     timestamptz,
  expires_at  timestamptz not null,
  constraint push_inbox_items_once_per_delivery unique (delivery_id)
);
comment on table app.push_inbox_items is 'Messages that users find in the app: 500 for each user, for 90 days.';
-- serve the list, newest first; the list and the number of what is unread; the purge
create index push_inbox_items_newest on app.push_inbox_items (app_user_id, created_at desc, id desc);
create index push_inbox_items_unread on app.push_inbox_items (app_user_id, created_at desc, id desc) where not is_read;
create index push_inbox_items_expiry on app.push_inbox_items using brin (expires_at);

-- migrate:down
drop table app.push_inbox_items;
drop table app.push_categories;
drop table app.push_preferences;
drop table app.push_buckets;
drop table app.push_counts;
drop table app.push_deliveries;
drop table app.push_automations;
drop table app.push_plans;
drop table app.push_campaigns;
drop table app.push_templates;
