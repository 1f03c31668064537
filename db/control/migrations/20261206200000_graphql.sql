-- migrate:up
alter table app.projects add column graphql_enabled boolean not null default false;
comment on column app.projects.graphql_enabled is 'Whether the project''s developers may query its database with GraphQL.';

-- migrate:down
alter table app.projects drop column graphql_enabled;
