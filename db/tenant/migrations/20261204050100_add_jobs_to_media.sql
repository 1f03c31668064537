-- migrate:up
create table app.media_jobs (
  id              uuid primary key default internal.new_id(),
  asset_id        uuid not null references app.media_assets on delete cascade,
  version         text not null,
  operations      jsonb not null constraint media_jobs_1_to_10_operations
                  check (jsonb_typeof(operations) = 'array' and jsonb_array_length(operations) between 1 and 10),
  is_thumbnail    boolean not null default false,
  status          text not null default 'queued' constraint media_jobs_status_known check (status in ('queued', 'running', 'succeeded', 'failed')),
  attempts        int not null default 0 constraint media_jobs_attempts_not_negative check (attempts >= 0),
  error_code      text,
  error_message   text,
  result_asset_id uuid references app.media_assets on delete set null,
  created_at      timestamptz not null default internal.now(),
  started_at      timestamptz,
  finished_at     timestamptz
);
comment on table app.media_jobs is 'Work on images. A thumbnail belongs to the asset; any other result is an asset of its own.';
comment on column app.media_jobs.version is 'The bytes that the job reads: those that the asset had when it was made.';
-- serve the list, newest first, all and of one asset
create index media_jobs_newest on app.media_jobs (created_at desc, id desc);
create index media_jobs_of_asset on app.media_jobs (asset_id, created_at desc, id desc);
create index media_jobs_results on app.media_jobs (result_asset_id) where result_asset_id is not null;
create unique index media_jobs_one_thumbnail on app.media_jobs (asset_id, version) where is_thumbnail;
-- serves the daily purge
create index media_jobs_finished on app.media_jobs (finished_at) where finished_at is not null;

-- migrate:down
drop table app.media_jobs;
