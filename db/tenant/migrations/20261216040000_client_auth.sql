-- migrate:up
alter table app.user_sessions add column is_test boolean not null default false;
comment on column app.user_sessions.is_test is 'Started by an administrator for tests. It ends when its project leaves the environment development.';

-- migrate:down
alter table app.user_sessions drop column is_test;
