-- migrate:up
create table app.content_types (
  id         uuid primary key default internal.new_id(),
  type       text not null constraint content_types_type_form check (type ~ '^[A-Za-z0-9_.-]{1,64}$'),
  fields     jsonb not null default '[]' constraint content_types_fields_at_most_100
    check (jsonb_typeof(fields) = 'array' and jsonb_array_length(fields) <= 100),
  created_at timestamptz not null default internal.now(),
  updated_at timestamptz not null default internal.now(),
  constraint content_types_type_unique unique (type)
);
comment on table app.content_types is
  'Schemas of content types, [{name, type, required, localized}]: saves of a type are checked against its own. A type
   without a row, or with an empty list, takes any fields.';

create table app.content_entries (
  id             uuid primary key default internal.new_id(),
  key            text not null constraint content_entries_key_form check (key ~ '^[A-Za-z0-9_.-]{1,64}$'),
  content_type   text not null constraint content_entries_content_type_form
    check (content_type ~ '^[A-Za-z0-9_.-]{1,64}$'),
  default_locale text not null,
  tags           text[] not null default '{}' constraint content_entries_tags_at_most_50
    check (cardinality(tags) <= 50),
  segment_id     uuid references app.segments on delete restrict,
  starts_at      timestamptz,
  ends_at        timestamptz,
  sort_order     int not null default 0,
  version        int not null default 1,
  created_at     timestamptz not null default internal.now(),
  updated_at     timestamptz not null default internal.now(),
  constraint content_entries_key_unique unique (key),
  constraint content_entries_end_after_start check (ends_at > starts_at)
);
comment on column app.content_entries.version is 'Counts the changes of the entry and of its locales.';
-- serves the lists
create index content_entries_in_order on app.content_entries (sort_order, created_at desc, id desc);
create index content_entries_of_type on app.content_entries (content_type, sort_order, created_at desc, id desc);
create index content_entries_of_segment on app.content_entries (segment_id) where segment_id is not null;

create table app.content_locales (
  entry_id          uuid not null references app.content_entries on delete cascade,
  locale            text not null,
  version           int not null default 1,
  published_version int,
  published_at      timestamptz,
  scheduled_version int,
  publish_at        timestamptz,
  primary key (entry_id, locale),
  constraint content_locales_published_whole check ((published_version is null) = (published_at is null)),
  constraint content_locales_scheduled_whole check ((scheduled_version is null) = (publish_at is null))
);
-- serves the settling of schedules
create index content_locales_scheduled on app.content_locales (publish_at) where publish_at is not null;
comment on table app.content_locales is
  'The languages of an entry. version numbers the saves and is that of the newest. A schedule that is due counts as
   published, whether its row says so yet or not: internal.content_state computes it.';

create table app.content_versions (
  entry_id   uuid not null,
  locale     text not null,
  version    int not null,
  fields     jsonb not null constraint content_versions_fields_is_object check (jsonb_typeof(fields) = 'object'),
  author     jsonb not null,
  created_at timestamptz not null default internal.now(),
  primary key (entry_id, locale, version),
  constraint content_versions_of_locale foreign key (entry_id, locale) references app.content_locales on delete cascade
);
comment on table app.content_versions is 'What each save of a language said. A row never changes.';

create table app.content_texts (
  entry_id uuid not null,
  locale   text not null,
  text     text not null,
  primary key (entry_id, locale),
  constraint content_texts_of_locale foreign key (entry_id, locale) references app.content_locales on delete cascade
);
comment on table app.content_texts is
  'What a search of administrators looks at: the texts of the newest version of each language, in lower case.';

create table app.content_failures (
  entry_id uuid primary key references app.content_entries on delete cascade,
  attempts int not null default 1,
  retry_at timestamptz not null,
  reason   text not null constraint content_failures_reason_at_most_1000 check (char_length(reason) <= 1000)
);
comment on table app.content_failures is
  'Entries whose schedules could not be settled, with the error and the time of the next attempt.';

create table app.content_previews (
  digest     bytea primary key,
  entry_id   uuid not null references app.content_entries on delete cascade,
  expires_at timestamptz not null
);
comment on table app.content_previews is 'Tokens that show the newest versions of one entry, as their SHA-256.';
create index content_previews_of_entry on app.content_previews (entry_id);
create index content_previews_expired on app.content_previews (expires_at);

-- migrate:down
drop table app.content_previews;
drop table app.content_failures;
drop table app.content_texts;
drop table app.content_versions;
drop table app.content_locales;
drop table app.content_entries;
drop table app.content_types;
