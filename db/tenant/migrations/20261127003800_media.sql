-- migrate:up
create table app.media_folders (
  id         uuid primary key default internal.new_id(),
  name       text not null constraint media_folders_name_1_to_200 check (char_length(name) between 1 and 200),
  created_at timestamptz not null default internal.now(),
  updated_at timestamptz not null default internal.now(),
  constraint media_folders_name_is_one_line check (internal.is_line(name))
);
comment on table app.media_folders is
  'Folders in which administrators sort assets. They are not part of the key of an asset.';
-- serves the list of administrators, newest first
create index media_folders_newest on app.media_folders (created_at desc, id desc);

create table app.media_buckets (
  name               text primary key constraint media_buckets_name_form
    check (name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'),
  is_public          boolean not null default false,
  file_size_limit    bigint constraint media_buckets_limit_1_to_50_mb check (file_size_limit between 1 and 52428800),
  allowed_mime_types text[] constraint media_buckets_at_most_100_types
    check (cardinality(allowed_mime_types) between 1 and 100),
  created_at         timestamptz not null default internal.now(),
  updated_at         timestamptz not null default internal.now()
);
comment on table app.media_buckets is
  'Buckets of files. Those of media have keys that say whose they are; those of another bucket have the key
   bucket/<name of the bucket>/<path>.';
comment on column app.media_buckets.is_public is 'Whether anybody reads its committed files, without a key.';
comment on column app.media_buckets.allowed_mime_types is 'Types, or image/* and the like; null: all that are stored.';
insert into app.media_buckets (name) values ('media');

create table app.media_assets (
  id                uuid primary key default internal.new_id(),
  key               text not null constraint media_assets_key_1_to_1024_bytes
    check (octet_length(key) between 1 and 1024),
  filename          text not null constraint media_assets_filename_1_to_255
    check (char_length(filename) between 1 and 255),
  mime_type         text not null constraint media_assets_mime_type_at_most_127
    check (octet_length(mime_type) between 3 and 127),
  status            text not null default 'pending' constraint media_assets_status_known
    check (status in ('pending', 'committed', 'deleted')),
  source            text not null constraint media_assets_source_known check (source in ('upload', 'presign', 'job')),
  size_bytes        bigint constraint media_assets_size_1_to_50_mb check (size_bytes between 1 and 52428800),
  object_version    text not null,
  thumbnail_of      text,
  upload_version    text,
  upload_mime_type  text,
  upload_size_bytes bigint constraint media_assets_upload_size_1_to_50_mb
    check (upload_size_bytes between 1 and 52428800),
  upload_expires_at timestamptz,
  alt_text          text constraint media_assets_alt_text_at_most_2000 check (char_length(alt_text) <= 2000),
  metadata          jsonb not null default '{}' constraint media_assets_metadata_is_object
    check (jsonb_typeof(metadata) = 'object'),
  folder_id         uuid references app.media_folders on delete restrict,
  bucket            text references app.media_buckets on delete restrict,
  uploaded_by       uuid references app.users on delete cascade,
  committed_at      timestamptz,
  deleted_at        timestamptz,
  created_at        timestamptz not null default internal.now(),
  updated_at        timestamptz not null default internal.now(),
  blocked_at        timestamptz,
  is_public         boolean not null default false,
  constraint media_assets_committed_with_size check (status <> 'committed' or size_bytes is not null),
  constraint media_assets_pending_with_upload check (status <> 'pending' or upload_version is not null)
);
comment on table app.media_assets is
  'Files of end users and of the project. The bytes are in the storage of the installation, under the ids of project and
   asset and a version, never under a name that a caller chose.';
comment on column app.media_assets.key is
  'The path that callers see, without the id of the project: user/<user id>/<name>, project/<name>,
   bucket/<bucket>/<path>.';
comment on column app.media_assets.bucket is
  'The bucket of its own that a file is in; null for files of media, and for those that are deleted.';
comment on column app.media_assets.object_version is
  'Names the stored bytes. Each upload that replaces them has a new version, so a version never changes.';
comment on column app.media_assets.thumbnail_of is 'The version that there is a thumbnail of.';
comment on column app.media_assets.upload_version is
  'The version that an open upload becomes when it is committed; null when there is none.';
comment on column app.media_assets.upload_size_bytes is
  'The exact size of the open upload of a key, where it was said: it counts against the budget from then on.';
comment on column app.media_assets.upload_expires_at is 'Until when a signed upload URL may be used.';
comment on column app.media_assets.blocked_at is
  'Since when moderation hides the asset from its owner and from catalogs.';
comment on column app.media_assets.is_public is
  'Whether anybody reads the committed file at its public address, without a signature.';
-- one live asset for one key, however many presign it at once
create unique index media_assets_one_per_key on app.media_assets (key collate "C") where status <> 'deleted';
-- serve the lists, newest first, and deletions of users and folders
create index media_assets_of_user on app.media_assets (uploaded_by, status, created_at desc, id desc);
create index media_assets_in_folder on app.media_assets (folder_id, status, created_at desc, id desc)
  where folder_id is not null;
create index media_assets_of_type on app.media_assets (mime_type, status, created_at desc, id desc);
create index media_assets_newest on app.media_assets (status, created_at desc, id desc);
-- serves the question whether a bucket is empty, and its emptying
create index media_assets_in_bucket on app.media_assets (bucket, id) where bucket is not null;
-- serves the search by name
create index media_assets_names on app.media_assets using gin (filename extensions.gin_trgm_ops)
  where status = 'committed';
-- serves the count of the uploads that a user has begun, and the daily end of those of files that are to be replaced
create index media_assets_begun on app.media_assets (uploaded_by, upload_expires_at)
  where upload_size_bytes is not null;
-- serves the daily purge of records
create index media_assets_deleted on app.media_assets (deleted_at) where status = 'deleted';

create table app.media_totals (
  slot             bigint generated always as identity primary key,
  registered_bytes bigint not null,
  stored_bytes     bigint not null,
  objects          bigint not null
);
comment on table app.media_totals is
  'Sums over app.media_assets, kept by triggers: registered bytes of pending and committed assets, bytes and number of
   committed ones. The sum is that of all slots, so that writers do not wait for each other, as in app.row_counts.';

create table app.media_removals (
  asset_id     uuid primary key,
  requested_at timestamptz not null default internal.now()
);
comment on table app.media_removals is
  'Assets whose bytes are to be removed. The row of the asset may be gone: its user was deleted.';
create index media_removals_oldest on app.media_removals (requested_at, asset_id);

create table app.media_catalogs (
  id         uuid primary key default internal.new_id(),
  slug       text not null constraint media_catalogs_slug_form check (slug ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name       text not null constraint media_catalogs_name_1_to_200 check (char_length(name) between 1 and 200),
  is_public  boolean not null default true,
  asset_ids  uuid[] not null default '{}' constraint media_catalogs_at_most_500_assets
    check (cardinality(asset_ids) <= 500),
  created_at timestamptz not null default internal.now(),
  updated_at timestamptz not null default internal.now(),
  constraint media_catalogs_slug_unique unique (slug),
  constraint media_catalogs_name_is_one_line check (internal.is_line(name))
);
comment on table app.media_catalogs is 'Ordered selections of assets that apps read without a session.';
-- serves the list of administrators, and the question whether an asset is in a catalog
create index media_catalogs_newest on app.media_catalogs (created_at desc, id desc);
create index media_catalogs_assets on app.media_catalogs using gin (asset_ids);

create table app.media_jobs (
  id              uuid primary key default internal.new_id(),
  asset_id        uuid not null references app.media_assets on delete cascade,
  version         text not null,
  operations      jsonb not null constraint media_jobs_1_to_10_operations
                  check (jsonb_typeof(operations) = 'array' and jsonb_array_length(operations) between 1 and 10),
  is_thumbnail    boolean not null default false,
  status          text not null default 'queued' constraint media_jobs_status_known
    check (status in ('queued', 'running', 'succeeded', 'failed')),
  attempts        int not null default 0 constraint media_jobs_attempts_not_negative check (attempts >= 0),
  error_code      text,
  error_message   text,
  result_asset_id uuid references app.media_assets on delete set null,
  created_at      timestamptz not null default internal.now(),
  started_at      timestamptz,
  finished_at     timestamptz
);
comment on table app.media_jobs is
  'Work on images. A thumbnail belongs to the asset; any other result is an asset of its own.';
comment on column app.media_jobs.version is 'The bytes that the job reads: those that the asset had when it was made.';
-- serve the list, newest first, all and of one asset
create index media_jobs_newest on app.media_jobs (created_at desc, id desc);
create index media_jobs_of_asset on app.media_jobs (asset_id, created_at desc, id desc);
create index media_jobs_results on app.media_jobs (result_asset_id) where result_asset_id is not null;
create unique index media_jobs_one_thumbnail on app.media_jobs (asset_id, version) where is_thumbnail;
-- serves the daily purge
create index media_jobs_finished on app.media_jobs (finished_at) where finished_at is not null;
-- serves the list of jobs by status
create index media_jobs_of_status on app.media_jobs (status, created_at desc, id desc);

-- migrate:down
drop table app.media_jobs;
drop table app.media_catalogs;
drop table app.media_removals;
drop table app.media_totals;
drop table app.media_assets;
drop table app.media_buckets;
drop table app.media_folders;
