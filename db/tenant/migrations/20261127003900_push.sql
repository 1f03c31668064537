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

create table app.push_automations (
  id              uuid primary key default internal.new_id(),
  key             text not null constraint push_automations_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  trigger         jsonb not null constraint push_automations_trigger_is_object check (jsonb_typeof(trigger) = 'object'),
  delay_seconds   int not null default 0 constraint push_automations_delay_0_to_30_days
    check (delay_seconds between 0 and 2592000),
  cancel_if_event text constraint push_automations_cancel_if_event_1_to_255
    check (char_length(cancel_if_event) between 1 and 255),
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

create table app.push_breakers (
  provider   text primary key,
  failures   int not null default 0,
  open_until timestamptz
);
comment on table app.push_breakers is
  'The circuit breaker of each provider: how many requests in a row it has failed, and until when none is made.';

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
drop table app.push_breakers;
drop table app.push_automations;
drop table app.push_templates;
