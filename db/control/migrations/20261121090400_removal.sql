-- migrate:up
-- serves the sweep's look for deletions that were broken off
create index projects_deleted on app.projects (deleted_at) where deleted_at is not null;

-- migrate:down
drop index app.projects_deleted;
