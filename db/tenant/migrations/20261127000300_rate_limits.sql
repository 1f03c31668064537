-- migrate:up
create table app.rate_limits (
  key        text primary key,
  started_at timestamptz not null,
  count      int not null
);
comment on table app.rate_limits is 'Fixed windows of the named limits: a window begins at its first counted attempt.';
create index rate_limits_started on app.rate_limits (started_at);

-- migrate:down
drop table app.rate_limits;
