-- migrate:up
create table app.diagnostic_issues (
  id                   uuid primary key default internal.new_id(),
  fingerprint          text not null constraint diagnostic_issues_fingerprint_form
    check (char_length(fingerprint) between 1 and 128),
  title                text not null constraint diagnostic_issues_title_is_one_line check (internal.is_line(title)),
  level                text not null constraint diagnostic_issues_level_known
    check (level in ('debug', 'info', 'warn', 'error', 'fatal')),
  status               text not null default 'open' constraint diagnostic_issues_status_known
    check (status in ('open', 'resolved', 'ignored')),
  first_seen           timestamptz not null,
  last_seen            timestamptz not null,
  count                bigint not null,
  users                bigint not null default 0,
  version_counts       jsonb not null default '{}',
  day_counts           jsonb not null default '{}',
  resolved_version_key text collate "C",
  opened_by            uuid,
  created_at           timestamptz not null default internal.now(),
  constraint diagnostic_issues_fingerprint_unique unique (fingerprint)
);
comment on table app.diagnostic_issues is
  'Reports with one fingerprint. Counts by version and by day are in the row, so that a batch locks one row an issue.';
comment on column app.diagnostic_issues.resolved_version_key is
  'The key of the newest version that it had when it was resolved, null if it had none: only a newer one reopens it.';
comment on column app.diagnostic_issues.opened_by is 'The batch that made it, or opened it again last.';
-- serve the list
create index diagnostic_issues_newest on app.diagnostic_issues (last_seen desc, id desc);
create index diagnostic_issues_of_status on app.diagnostic_issues (status, last_seen desc, id desc);

create table app.diagnostic_issue_versions (
  app_version text not null,
  issue_id    uuid not null references app.diagnostic_issues on delete cascade,
  primary key (app_version, issue_id)
);
comment on table app.diagnostic_issue_versions is
  'The keys of version_counts, for the filter by a version: an index of the counts would be written by every batch.';
create index diagnostic_issue_versions_of_issue on app.diagnostic_issue_versions (issue_id);

create table app.diagnostic_issue_users (
  issue_id    uuid not null references app.diagnostic_issues on delete cascade,
  app_user_id uuid not null references app.users on delete cascade,
  primary key (issue_id, app_user_id)
);
comment on table app.diagnostic_issue_users is 'Which users an issue has met, so that users counts each once.';
create index diagnostic_issue_users_of_user on app.diagnostic_issue_users (app_user_id);

create table app.diagnostic_reports (
  id           uuid primary key default internal.new_id(),
  issue_id     uuid not null references app.diagnostic_issues on delete cascade,
  app_user_id  uuid references app.users on delete set null,
  kind         text not null constraint diagnostic_reports_kind_known
    check (kind in ('log', 'error', 'crash', 'performance')),
  level        text not null constraint diagnostic_reports_level_known
    check (level in ('debug', 'info', 'warn', 'error', 'fatal')),
  message      text not null,
  stack        text,
  context      jsonb,
  occurred_at  timestamptz not null,
  received_at  timestamptz not null,
  app_version  text,
  os_version   text,
  device_model text
);
comment on table app.diagnostic_reports is 'What apps report, for 30 days.';
-- serves the reports of an issue
create index diagnostic_reports_of_issue on app.diagnostic_reports (issue_id, occurred_at desc, id desc);
create index diagnostic_reports_of_user on app.diagnostic_reports (app_user_id) where app_user_id is not null;
-- serves the purge
create index diagnostic_reports_received on app.diagnostic_reports using brin (received_at) with (autosummarize = on);

create table app.source_maps (
  id          uuid primary key default internal.new_id(),
  release     text not null constraint source_maps_release_form check (char_length(release) between 1 and 64),
  bundle      text not null constraint source_maps_bundle_form check (bundle ~ '^[^\s\\?#/]+(/[^\s\\?#/]+)*$'
                                                                      and char_length(bundle) <= 200),
  sha256      text not null,
  size        int not null,
  packed_size int not null,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  constraint source_maps_one_of_bundle unique (release, bundle)
);
comment on table app.source_maps is 'Source maps of the bundles of releases, with which frames of stacks are shown.';
-- serves the list
create index source_maps_newest on app.source_maps (updated_at desc, id desc);

create table app.source_map_contents (
  source_map_id uuid primary key references app.source_maps on delete cascade,
  content       bytea not null
);
-- it is compressed already
alter table app.source_map_contents alter column content set storage external;
comment on table app.source_map_contents is 'The maps as gzip, apart from their rows so that lists never touch them.';

-- migrate:down
drop table app.source_map_contents;
drop table app.source_maps;
drop table app.diagnostic_reports;
drop table app.diagnostic_issue_users;
drop table app.diagnostic_issue_versions;
drop table app.diagnostic_issues;
