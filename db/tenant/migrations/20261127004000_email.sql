-- migrate:up
create table app.email_templates (
  id         uuid primary key default internal.new_id(),
  key        text not null constraint email_templates_key_form check (key ~ '^[a-z][a-z0-9_.-]{0,127}$'),
  name       text not null constraint email_templates_name_1_to_200 check (char_length(name) between 1 and 200),
  subject    text not null constraint email_templates_subject_1_to_300 check (char_length(subject) between 1 and 300),
  html       text constraint email_templates_html_at_most_200000 check (char_length(html) <= 200000),
  text       text constraint email_templates_text_at_most_200000 check (char_length(text) <= 200000),
  locales    jsonb not null default '{}' constraint email_templates_locales_is_object
    check (jsonb_typeof(locales) = 'object'),
  category   text not null default 'transactional' constraint email_templates_category_form
    check (category ~ '^[a-z][a-z0-9_-]{0,63}$'),
  version    int not null default 1,
  created_at timestamptz not null default internal.now(),
  updated_at timestamptz not null default internal.now(),
  constraint email_templates_key_unique unique (key),
  constraint email_templates_name_is_one_line check (internal.is_line(name)),
  constraint email_templates_subject_is_one_line check (internal.is_line(subject))
);
comment on table app.email_templates is
  'Templates of mail. subject, html and text are the default; locales is {<locale>: {subject?, html?, text?}}. A row
   with the key of a built-in template replaces it. version counts changes of the content.';

create table app.email_messages (
  id               uuid primary key default internal.new_id(),
  app_user_id      uuid references app.users on delete cascade,
  to_address       text not null constraint email_messages_to_at_most_254 check (char_length(to_address) <= 254),
  from_address     text constraint email_messages_from_at_most_400 check (char_length(from_address) <= 400),
  reply_to         text constraint email_messages_reply_to_at_most_254 check (char_length(reply_to) <= 254),
  headers          jsonb not null default '{}' constraint email_messages_headers_is_object
    check (jsonb_typeof(headers) = 'object'),
  subject          text not null,
  template_key     text,
  template_version int,
  locale           text,
  category         text not null constraint email_messages_category_form check (category ~ '^[a-z][a-z0-9_-]{0,63}$'),
  status           text not null constraint email_messages_status_known
                     check (status in ('queued', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'cancelled',
                                       'suppressed')),
  attempts         smallint not null default 0,
  attempting_at    timestamptz,
  send_at          timestamptz,
  next_attempt_at  timestamptz,
  last_error       text,
  events           jsonb not null default '[]',
  sent_at          timestamptz,
  created_at       timestamptz not null default internal.now(),
  updated_at       timestamptz not null default internal.now(),
  delivery_id      uuid references app.campaign_deliveries on delete set null,
  track            boolean not null default false,
  opened_at        timestamptz,
  clicked_at       timestamptz,
  -- also serves the foreign key: a delivery of a campaign has one message, however often a worker is killed
  constraint email_messages_once_per_delivery unique (delivery_id)
);
comment on table app.email_messages is 'Messages of mail, one to one address. Kept 90 days after their last change.';
comment on column app.email_messages.attempting_at is
  'Set before the mail server is called and cleared with its answer: where it is set and no worker holds the message,
   the outcome of the attempt is not known.';
comment on column app.email_messages.events is 'What happened, [{type, at, detail?}], oldest first.';
comment on column app.email_messages.track is
  'Whether the content has a picture that reports opening, and links that report clicks.';
-- serve the lists, newest first: all, of a status, of a user; and retention
create index email_messages_newest on app.email_messages (created_at desc, id desc);
create index email_messages_of_status on app.email_messages (status, created_at desc, id desc);
create index email_messages_of_user on app.email_messages (app_user_id, created_at desc, id desc);

create table app.email_bodies (
  message_id       uuid primary key references app.email_messages on delete cascade,
  html             text,
  text             text,
  unsubscribe_mark text
);
comment on table app.email_bodies is
  'The content of messages that are not sent yet. It is deleted with the last attempt.';
comment on column app.email_bodies.unsubscribe_mark is
  'What stands in the content where the link to unsubscribe belongs: a random mark, which no value contains. Null:
   {{unsubscribe_url}}, as the sender wrote it.';

create table app.email_suppressions (
  id         uuid primary key default internal.new_id(),
  address    text not null constraint email_suppressions_address_at_most_254 check (char_length(address) <= 254),
  reason     text not null constraint email_suppressions_reason_known
    check (reason in ('bounce', 'complaint', 'unsubscribe', 'manual')),
  category   text constraint email_suppressions_category_form check (category ~ '^[a-z][a-z0-9_-]{0,63}$'),
  created_at timestamptz not null default internal.now(),
  constraint email_suppressions_category_is_of_unsubscribe check (category is null or reason = 'unsubscribe'),
  constraint email_suppressions_once unique nulls not distinct (address, reason, category)
);
comment on table app.email_suppressions is
  'Addresses that get no mail. unsubscribe stops one category, or all but transactional mail where category is null;
   every other reason stops everything.';
create index email_suppressions_newest on app.email_suppressions (created_at desc, id desc);
-- serves the list by reason
create index email_suppressions_of_reason on app.email_suppressions (reason, created_at desc, id desc);

create table app.email_preferences (
  app_user_id      uuid primary key references app.users on delete cascade,
  unsubscribed_all boolean not null default false,
  categories       jsonb not null default '{}' constraint email_preferences_categories_is_object
    check (jsonb_typeof(categories) = 'object'),
  updated_at       timestamptz not null default internal.now()
);
comment on table app.email_preferences is
  'What a user chose: categories is {<category>: boolean}. They follow the user, suppressions follow the address.';

create table app.email_provider_events (
  id          text primary key constraint email_provider_events_id_1_to_200 check (char_length(id) between 1 and 200),
  received_at timestamptz not null default internal.now()
);
comment on table app.email_provider_events is
  'Ids of the events that mail providers reported, kept 30 days: a repeated one changes nothing.';
create index email_provider_events_received on app.email_provider_events (received_at);

-- migrate:down
drop table app.email_provider_events;
drop table app.email_preferences;
drop table app.email_suppressions;
drop table app.email_bodies;
drop table app.email_messages;
drop table app.email_templates;
