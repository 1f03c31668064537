-- migrate:up
alter table app.projects add column rest_enabled boolean not null default false;
comment on column app.projects.rest_enabled is 'Whether {root_url}/rest/v1 serves the project''s collections as PostgREST does.';

-- migrate:down
alter table app.projects drop column rest_enabled;
