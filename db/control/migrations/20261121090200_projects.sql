-- migrate:up
create table app.projects (
  id                     uuid primary key default internal.new_id(),
  developer_id           uuid not null references app.developers on delete restrict,
  name                   text not null constraint projects_name_1_to_200 check (char_length(name) between 1 and 200),
  bundle_id              text constraint projects_bundle_id_at_most_255 check (char_length(bundle_id) <= 255),
  google_oauth_client_id text constraint projects_google_oauth_client_id_at_most_255 check (char_length(google_oauth_client_id) <= 255),
  platform               text not null default 'all' constraint projects_platform_known check (platform in ('ios', 'android', 'all')),
  environment            text not null default 'production'
                           constraint projects_environment_known check (environment in ('development', 'production')),
  tier                   text not null default 'free' constraint projects_tier_known check (tier in ('free', 'pro', 'enterprise')),
  comped                 boolean not null default false,
  default_from_email     text,
  default_from_name      text constraint projects_default_from_name_at_most_80 check (char_length(default_from_name) <= 80),
  default_reply_to       text,
  magic_link_redirect_url text,
  auth_email_brand_name  text,
  deleted_at             timestamptz,
  created_at             timestamptz not null default internal.now(),
  updated_at             timestamptz not null default internal.now()
);
-- serves the developer's list: newest first
create index projects_of_developer on app.projects (developer_id, created_at desc, id desc);

create table app.project_signing_keys (
  project_id uuid primary key references app.projects on delete cascade,
  key_id     text not null,
  public_jwk json not null,
  sealed     text not null,
  created_at timestamptz not null default internal.now()
);
comment on table app.project_signing_keys is 'ES256 key pair that signs the project''s session tokens; the private half is encrypted by the server.';

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
  constraint api_keys_hash_unique unique (key_hash)
);
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
                     constraint tenants_migration_status_known check (migration_status in ('current', 'pending', 'failed')),
  migration_error  text,
  last_written_at  timestamptz not null default internal.now()
);
comment on table app.tenants is 'Where each project''s database is, how far its making has come, and which program it runs.';
create index tenants_of_cluster on app.tenants (cluster_id);
create index tenants_written on app.tenants (last_written_at) where status = 'ready';
create index tenants_behind on app.tenants (content_hash);

-- migrate:down
drop table app.tenants;
drop table app.api_keys;
drop table app.project_signing_keys;
drop table app.projects;
