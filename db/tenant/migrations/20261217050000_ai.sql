-- migrate:up
alter table app.ai_invocations add column is_streamed boolean not null default false;
comment on column app.ai_invocations.is_streamed is
  'Whether the answer is passed on piece by piece, so that its user may have it before its end is recorded.';

-- migrate:down
alter table app.ai_invocations drop column is_streamed;
