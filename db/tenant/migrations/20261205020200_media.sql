-- migrate:up
-- serves the list of jobs by status
create index media_jobs_of_status on app.media_jobs (status, created_at desc, id desc);

-- migrate:down
drop index app.media_jobs_of_status;
