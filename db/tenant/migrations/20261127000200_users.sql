-- migrate:up
create table app.users (
  id             uuid primary key default internal.new_id(),
  email          text,
  phone          text,
  display_name   text not null constraint users_display_name_at_most_100
    check (char_length(display_name) between 1 and 100),
  avatar_url     text,
  external_id    text,
  anonymous_id   text,
  properties     jsonb not null default '{}' constraint users_properties_is_object
    check (jsonb_typeof(properties) = 'object'),
  timezone       text,
  email_verified boolean not null default false,
  phone_verified boolean not null default false,
  is_banned      boolean not null default false,
  first_seen_at  timestamptz not null default internal.now(),
  last_seen_at   timestamptz not null default internal.now(),
  created_at     timestamptz not null default internal.now(),
  updated_at     timestamptz not null default internal.now(),
  muted_until    timestamptz,
  constraint users_email_is_normal check (email = internal.email_normal(email)),
  constraint users_email_unique unique (email),
  constraint users_phone_unique unique (phone),
  constraint users_external_id_unique unique (external_id),
  constraint users_anonymous_id_unique unique (anonymous_id),
  constraint users_display_name_is_one_line check (internal.is_line(display_name))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
-- serves the administrator's list: newest-active first
create index users_last_seen on app.users (last_seen_at desc, id desc);
-- serves the administrator's search: a part of an address, of an external id or of a name
create index users_searched on app.users using gin
  (email extensions.gin_trgm_ops, external_id extensions.gin_trgm_ops, display_name extensions.gin_trgm_ops);
-- serves the search of users for each other: beginnings of names, in their order
create index users_named on app.users (lower(display_name) text_pattern_ops, id);
-- serves the export, oldest first
create index users_created on app.users (created_at, id);
-- serves rules that compare a property with a value, of which few users have it
create index users_properties on app.users using gin (properties jsonb_path_ops);
-- serve the administrator's search for one or two letters, which trigrams cannot find: beginnings, as users_named
-- serves those of names
create index users_by_beginning_of_email on app.users (email text_pattern_ops) where email is not null;
create index users_by_beginning_of_external_id on app.users (lower(external_id) text_pattern_ops)
  where external_id is not null;
-- who of many friends is banned, without a look at their rows
create index users_banned on app.users (id) where is_banned;

create table app.user_passwords (
  app_user_id   uuid primary key references app.users on delete cascade,
  password_hash text not null,
  updated_at    timestamptz not null default internal.now()
);
comment on table app.user_passwords is
  'Argon2id hashes, apart from users so that nothing that reads users can read them.';

create table app.user_identities (
  id          uuid primary key default internal.new_id(),
  app_user_id uuid not null references app.users on delete cascade,
  provider    text not null,
  provider_id text not null,
  created_at  timestamptz not null default internal.now(),
  constraint user_identities_unique unique (provider, provider_id)
);
create index user_identities_of_user on app.user_identities (app_user_id, created_at);

create table app.user_sessions (
  id                    uuid primary key default internal.new_id(),
  app_user_id           uuid not null references app.users on delete cascade,
  refresh_hash          text not null,
  original_anonymous_id text,
  signed_in_at          timestamptz not null default internal.now(),
  last_used_at          timestamptz not null default internal.now(),
  expires_at            timestamptz not null,
  ended_at              timestamptz,
  end_reason            text,
  platform              text constraint user_sessions_platform_at_most_50 check (char_length(platform) <= 50),
  app_version           text constraint user_sessions_app_version_at_most_50 check (char_length(app_version) <= 50),
  ip_country            text constraint user_sessions_ip_country_form check (ip_country ~ '^[A-Z]{2}$'),
  is_test               boolean not null default false
);
comment on table app.user_sessions is
  'Sign-in sessions (sid of the tokens). refresh_hash is the SHA-256 of the one refresh token that is current; any other
   that carries this sid was replaced.';
comment on column app.user_sessions.platform is 'As the app named itself when it signed in or last refreshed.';
comment on column app.user_sessions.is_test is
  'Started by an administrator for tests. It ends when its project leaves the environment development.';
create index user_sessions_of_user on app.user_sessions (app_user_id, signed_in_at desc);

create table app.name_words (
  kind     text not null constraint name_words_kind_known check (kind in ('adjective', 'noun')),
  position int not null,
  word     text not null,
  primary key (kind, position),
  constraint name_words_unique unique (kind, word)
);
comment on table app.name_words is
  'Nature-themed words that display names are made of, numbered from 0 within each kind.';

create table internal.user_data (
  table_name     text not null,
  user_column    text not null,
  section        text not null,
  export_columns text[],
  secret_columns text[] not null default '{}',
  reset_section  text,
  on_merge       text not null,
  on_delete      text not null,
  exempt_reason  text,
  declared_in    text not null,
  export_order   text[],
  primary key (table_name, user_column)
);
comment on table internal.user_data is
  'The registry of what export, reset, merge and delete do with each table that names a user; filled beside each
   table''s policies.';
comment on column internal.user_data.export_order is
  'Columns by which a bundle reads the user''s rows, batch after batch; unique for each user. Null is the primary key.';

-- what functions of exports return: lines as the client gets them, and the cursor of the next batch, null after the
-- last
create type api.lines as (lines text, next_cursor text);

-- migrate:down
drop type api.lines;
drop table internal.user_data;
drop table app.name_words;
drop table app.user_sessions;
drop table app.user_identities;
drop table app.user_passwords;
drop table app.users;
