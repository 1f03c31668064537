-- migrate:up
alter table app.projects add column user_search_enabled boolean not null default false;
comment on column app.projects.user_search_enabled is 'Whether the project''s users may search for each other by name. Supplement B2.';

-- migrate:down
alter table app.projects drop column user_search_enabled;
