-- migrate:up
create table app.moderation_rules (
  id         uuid primary key default internal.new_id(),
  name       text not null constraint moderation_rules_name_1_to_200 check (char_length(name) between 1 and 200),
  rule_type  text not null
               constraint moderation_rules_type_known
               check (rule_type in ('keyword', 'regex', 'report_threshold', 'rate', 'link', 'new_account')),
  config     jsonb not null default '{}' constraint moderation_rules_config_is_object
    check (jsonb_typeof(config) = 'object'),
  is_active  boolean not null default true,
  applies_to text[] not null default '{}',
  action     text not null default 'queue' constraint moderation_rules_action_known
    check (action in ('queue', 'hide', 'block')),
  words      text[],
  expression text,
  created_at timestamptz not null default internal.now(),
  updated_at timestamptz not null default internal.now(),
  constraint moderation_rules_name_is_one_line check (internal.is_line(name))
);
comment on table app.moderation_rules is
  'Rules of moderation, at most 50. applies_to, action, words (normalised) and expression (a regular expression of
   Postgres) are compiled from config.';
-- serves the list; newest first
create index moderation_rules_newest on app.moderation_rules (created_at desc, id desc);

create table app.moderation_items (
  id              uuid primary key default internal.new_id(),
  subject_type    text not null,
  subject_id      uuid not null,
  subject_user_id uuid references app.users on delete cascade,
  snapshot        jsonb not null default '{}',
  source          text not null constraint moderation_items_source_known check (source in ('report', 'rule')),
  rule_id         uuid references app.moderation_rules on delete set null,
  reasons         jsonb not null default '{}',
  report_count    int not null default 0,
  priority        int not null default 0,
  status          text not null default 'pending'
                    constraint moderation_items_status_known
                      check (status in ('pending', 'approved', 'rejected', 'escalated')),
  is_hidden       boolean not null default false,
  kept            jsonb,
  moderator_id    text,
  resolved_at     timestamptz,
  note            text constraint moderation_items_note_at_most_2000 check (char_length(note) <= 2000),
  created_at      timestamptz not null default internal.now(),
  constraint moderation_items_subject_type_known
    check (subject_type in ('user', 'message', 'review', 'media', 'feed_entry', 'group', 'collection_row', 'content',
                            'ai_invocation'))
);
comment on table app.moderation_items is
  'The queue of moderation. is_hidden: the content is hidden now; kept: what the hook of the subject needs to show it
   again.';
create unique index moderation_items_one_open on app.moderation_items (subject_type, subject_id)
  where status in ('pending', 'escalated');
-- serve the queue of a status, newest first; the hidden state of a subject; the foreign keys
create index moderation_items_queue on app.moderation_items (status, created_at desc, id desc);
create index moderation_items_hidden on app.moderation_items (subject_type, subject_id) where is_hidden;
create index moderation_items_of_user on app.moderation_items (subject_user_id);
create index moderation_items_of_rule on app.moderation_items (rule_id);

create table app.moderation_reports (
  id           uuid primary key default internal.new_id(),
  reporter_id  uuid not null references app.users on delete cascade,
  item_id      uuid not null references app.moderation_items on delete cascade,
  subject_type text not null,
  subject_id   uuid not null,
  reason       text not null
                 constraint moderation_reports_reason_known
                 check (reason in ('spam', 'abuse', 'sexual', 'violence', 'self_harm', 'copyright', 'other')),
  details      text constraint moderation_reports_details_at_most_1000 check (char_length(details) <= 1000),
  status       text not null default 'received'
                 constraint moderation_reports_status_known check (status in ('received', 'action_taken', 'no_action')),
  created_at   timestamptz not null default internal.now(),
  constraint moderation_reports_once unique (reporter_id, subject_type, subject_id)
);
comment on table app.moderation_reports is 'Reports of users, one for each reporter and subject.';
-- serve a user's own reports, newest first; the reports of an item within a window
create index moderation_reports_of_user on app.moderation_reports (reporter_id, created_at desc, id desc);
create index moderation_reports_of_item on app.moderation_reports (item_id, created_at);

create table app.moderation_trust_levels (
  app_user_id  uuid primary key references app.users on delete cascade,
  trust_level  text not null default 'new'
                 constraint moderation_trust_levels_level_known check (trust_level in ('new', 'trusted', 'moderator')),
  auto_approve boolean not null default false,
  created_at   timestamptz not null default internal.now(),
  updated_at   timestamptz not null default internal.now()
);
comment on table app.moderation_trust_levels is 'Trust levels, stored and listed; the queue does not read them.';
create index moderation_trust_levels_newest on app.moderation_trust_levels (created_at desc, app_user_id desc);

create table internal.moderated_texts (
  kind           text primary key,
  subject_type   text not null,
  table_name     text,
  text_columns   text[],
  id_column      text,
  user_column    text,
  at_column      text,
  texts_function text,
  declared_in    text not null,
  constraint moderated_texts_one_source check ((table_name is null) = (texts_function is not null))
);
comment on table internal.moderated_texts is
  'The registry of texts that rules of moderation read: columns of a table, or a function (since timestamptz, most
   bigint) that lists them; filled beside the policies of each area.';

-- migrate:down
drop table internal.moderated_texts;
drop table app.moderation_trust_levels;
drop table app.moderation_reports;
drop table app.moderation_items;
drop table app.moderation_rules;
