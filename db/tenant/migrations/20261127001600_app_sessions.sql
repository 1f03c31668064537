-- migrate:up
create table app.app_sessions (
  id           uuid primary key default internal.new_id(),
  app_user_id  uuid not null references app.users on delete cascade,
  started_at   timestamptz not null,
  last_seen_at timestamptz not null,
  ended_at     timestamptz,
  end_reason   text constraint app_sessions_end_reason_known check (end_reason in ('client', 'timeout', 'replaced')),
  platform     text,
  app_version  text,
  os_version   text,
  device_model text,
  locale       text,
  constraint app_sessions_seen_after_start check (last_seen_at >= started_at),
  constraint app_sessions_end_after_start check (ended_at >= started_at),
  constraint app_sessions_ended_for_a_reason check ((ended_at is null) = (end_reason is null))
);
comment on table app.app_sessions is
  'Times that apps were in use, for analytics: not sign-in sessions. A row without an end whose last_seen_at is 30
   minutes old has ended then.';
-- serves the list, newest first, and the analytics of a period
create index app_sessions_newest on app.app_sessions (started_at desc, id desc);
-- serves one user's sessions, and with it the look for open ones
create index app_sessions_of_user on app.app_sessions (app_user_id, started_at desc);
create index app_sessions_open on app.app_sessions (app_user_id) where ended_at is null;

-- migrate:down
drop table app.app_sessions;
