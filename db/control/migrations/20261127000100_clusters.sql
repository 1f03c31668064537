-- migrate:up
create table app.clusters (
  id         uuid primary key default internal.new_id(),
  name       text not null,
  dsn_sealed text,
  capacity   int not null default 500 constraint clusters_capacity_positive check (capacity > 0),
  is_open    boolean not null default true,
  created_at timestamptz not null default internal.now(),
  constraint clusters_name_unique unique (name)
);
comment on table app.clusters is
  'Postgres servers that hold tenants. dsn_sealed is encrypted by the server; null is the server of the control database
   itself.';

create table app.templates (
  cluster_id     uuid primary key references app.clusters on delete cascade,
  schema_version text not null,
  content_hash   text not null,
  built_at       timestamptz not null default internal.now()
);
comment on table app.templates is
  'What the template database of each cluster holds; it is closed to connections and cannot be asked.';

create table app.installation (
  only_one   boolean primary key default true constraint installation_one_row check (only_one),
  key_check  text not null,
  created_at timestamptz not null default internal.now()
);
comment on table app.installation is
  'A value that only the right SECRETS_KEY makes, so that a wrong one is refused at start.';

create table app.workers (
  id           text primary key,
  started_at   timestamptz not null default internal.now(),
  heartbeat_at timestamptz not null default internal.now()
);
comment on table app.workers is
  'Heartbeats. graphile-worker holds a dead worker''s jobs for four hours; the sweep frees those of workers that are
   silent here.';
create index workers_heartbeat on app.workers (heartbeat_at);

-- migrate:down
drop table app.workers;
drop table app.installation;
drop table app.templates;
drop table app.clusters;
