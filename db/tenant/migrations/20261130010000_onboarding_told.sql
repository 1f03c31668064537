-- migrate:up
alter table app.onboarding_progress add column told text[] not null default '{}';
comment on column app.onboarding_progress.told is 'Which of started, completed and skipped were told as events: each once, so that a flow gone through again earns nothing again.';
update app.onboarding_progress set told = case status when 'in_progress' then array['started'] else array['started', status] end;

-- migrate:down
alter table app.onboarding_progress drop column told;
