-- migrate:up
alter table app.projects add column development_since timestamptz;
comment on column app.projects.development_since is
  'Since when the project has the environment development, without a break; null outside of it. Sessions for tests that began before it have ended.';
update app.projects set development_since = created_at where environment = 'development';

-- migrate:down
alter table app.projects drop column development_since;
