-- migrate:up
create table app.reward_grants (
  id          uuid primary key default internal.new_id(),
  app_user_id uuid not null references app.users on delete cascade,
  source_type text not null,
  source_id   text not null,
  reward      jsonb not null,
  outcome     jsonb not null default '{}',
  granted_at  timestamptz not null default internal.now(),
  constraint reward_grants_once_per_source unique (app_user_id, source_type, source_id)
);
comment on table app.reward_grants is
  'Every reward ever given, once per user and source. outcome says per part what was given, or why it could not be.';

-- migrate:down
drop table app.reward_grants;
