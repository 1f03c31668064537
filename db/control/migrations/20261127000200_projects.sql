-- migrate:up
create table app.projects (
  id                      uuid primary key default internal.new_id(),
  developer_id            uuid not null references app.developers on delete restrict,
  name                    text not null constraint projects_name_1_to_200 check (char_length(name) between 1 and 200),
  bundle_id               text constraint projects_bundle_id_at_most_255 check (char_length(bundle_id) <= 255),
  google_oauth_client_id  text constraint projects_google_oauth_client_id_at_most_255
    check (char_length(google_oauth_client_id) <= 255),
  platform                text not null default 'all' constraint projects_platform_known
    check (platform in ('ios', 'android', 'all')),
  environment             text not null default 'production'
                            constraint projects_environment_known check (environment in ('development', 'production')),
  tier                    text not null default 'free' constraint projects_tier_known
    check (tier in ('free', 'pro', 'enterprise')),
  comped                  boolean not null default false,
  default_from_email      text,
  default_from_name       text constraint projects_default_from_name_at_most_80
    check (char_length(default_from_name) <= 80),
  default_reply_to        text,
  magic_link_redirect_url text,
  auth_email_brand_name   text,
  deleted_at              timestamptz,
  created_at              timestamptz not null default internal.now(),
  updated_at              timestamptz not null default internal.now(),
  user_search_enabled     boolean not null default false,
  rest_enabled            boolean not null default false,
  anonymous_reads         boolean not null default false,
  graphql_enabled         boolean not null default false,
  organization_id         uuid,
  development_since       timestamptz,
  -- the row of a deleted project may outlive its organization while its files are removed
  constraint projects_in_an_organization check (organization_id is not null or deleted_at is not null),
  constraint projects_name_is_one_line check (internal.is_line(name)),
  constraint projects_default_from_name_is_one_line check (internal.is_line(default_from_name)),
  constraint projects_auth_email_brand_name_is_one_line check (internal.is_line(auth_email_brand_name))
);
comment on column app.projects.user_search_enabled is 'Whether the project''s users may search for each other by name.';
comment on column app.projects.rest_enabled is
  'Whether {root_url}/rest/v1 serves the project''s collections as PostgREST does.';
comment on column app.projects.anonymous_reads is
  'Whether a client key without a session reads public collections and files there.';
comment on column app.projects.graphql_enabled is
  'Whether the project''s developers may query its database with GraphQL.';
comment on column app.projects.development_since is
  'Since when the project has the environment development, without a break; null outside of it. Sessions for tests that
   began before it have ended.';
-- serves the developer's list: newest first
create index projects_of_developer on app.projects (developer_id, created_at desc, id desc);
-- serves the sweep's look for deletions that were broken off
create index projects_deleted on app.projects (deleted_at) where deleted_at is not null;
-- serves the lists of projects: newest first
create index projects_of_organization on app.projects (organization_id, created_at desc, id desc);

create table app.project_signing_keys (
  project_id uuid not null references app.projects on delete cascade,
  key_id     text primary key,
  public_jwk json not null,
  sealed     text not null,
  created_at timestamptz not null default internal.now(),
  use_from   timestamptz not null default internal.now()
);
comment on table app.project_signing_keys is
  'ES256 key pairs that sign a project''s session tokens: the newest whose use_from is reached signs, and those before
   it are accepted until what they signed has expired. The private half is encrypted by the server.';
-- serves the look-up of a project's keys, newest first
create unique index project_signing_keys_of_project on app.project_signing_keys (project_id, use_from desc);

create table app.api_keys (
  id           uuid primary key default internal.new_id(),
  project_id   uuid not null references app.projects on delete cascade,
  key_prefix   text not null,
  key_hash     text not null,
  key_type     text not null constraint api_keys_type_known check (key_type in ('client', 'server')),
  environment  text not null constraint api_keys_environment_known check (environment in ('development', 'production')),
  is_active    boolean not null default true,
  last_used_at timestamptz,
  created_at   timestamptz not null default internal.now(),
  expires_at   timestamptz,
  constraint api_keys_hash_unique unique (key_hash)
);
comment on column app.api_keys.expires_at is
  'Until when a key that was rotated is accepted; null: until it is deactivated.';
-- serves the sweep that deactivates rotated keys
create index api_keys_expiring on app.api_keys (expires_at) where is_active and expires_at is not null;
create index api_keys_of_project on app.api_keys (project_id, created_at desc, id desc);

create table app.tenants (
  project_id       uuid primary key references app.projects on delete cascade,
  cluster_id       uuid not null references app.clusters on delete restrict,
  database_name    text not null,
  status           text not null default 'provisioning'
                     constraint tenants_status_known check (status in ('provisioning', 'ready', 'failed')),
  workflow_id      text not null,
  attempt          int not null default 1,
  steps            jsonb not null default '[]',
  error            jsonb,
  started_at       timestamptz not null default internal.now(),
  moved_at         timestamptz not null default internal.now(),
  completed_at     timestamptz,
  schema_version   text not null default '',
  content_hash     text not null default '',
  migration_status text not null default 'current'
                     constraint tenants_migration_status_known
                       check (migration_status in ('current', 'pending', 'failed')),
  migration_error  text,
  last_written_at  timestamptz not null default internal.now(),
  -- when the sweep last looked into this tenant's outbox; without an index, so that noting it stays cheap
  swept_at         timestamptz,
  data_lost_at     timestamptz,
  hold             text constraint tenants_hold_known check (hold in ('paused', 'moving')),
  hold_note        text constraint tenants_hold_note_at_most_200 check (char_length(hold_note) <= 200),
  held_since       timestamptz,
  most_connections int constraint tenants_most_connections_2_to_1000 check (most_connections between 2 and 1000)
);
comment on table app.tenants is
  'Where each project''s database is, how far its making has come, and which program it runs.';
comment on column app.tenants.data_lost_at is
  'When an empty database was last begun in place of one that was gone, or null.';
comment on column app.tenants.hold is
  'Why the project is not served although its database is there: an operator has paused it, or it is moving to another
   server. Null: it is served.';
comment on column app.tenants.most_connections is
  'Connections that one server process may hold to the database at most; null: DATABASE_CONNECTIONS_PER_TENANT.';
create index tenants_of_cluster on app.tenants (cluster_id);
create index tenants_written on app.tenants (last_written_at) where status = 'ready';
create index tenants_behind on app.tenants (content_hash);
create index tenants_failed on app.tenants (project_id) where status = 'failed';

-- migrate:down
drop table app.tenants;
drop table app.api_keys;
drop table app.project_signing_keys;
drop table app.projects;
