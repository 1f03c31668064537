-- migrate:up
create table app.operator_tokens (
  id                 uuid primary key default internal.new_id(),
  organization_id    uuid not null references app.organizations on delete cascade,
  project_id         uuid references app.projects on delete cascade,
  service_account_id uuid references app.service_accounts on delete cascade,
  developer_id       uuid references app.developers on delete cascade,
  scopes             text[] not null constraint operator_tokens_scopes_some check (cardinality(scopes) > 0),
  label              text constraint operator_tokens_label_at_most_200 check (char_length(label) <= 200),
  acts_for           text constraint operator_tokens_actor_at_most_200 check (char_length(acts_for) <= 200),
  token_hash         text not null constraint operator_tokens_token_unique unique,
  expires_at         timestamptz not null,
  revoked_at         timestamptz,
  last_used_at       timestamptz,
  created_at         timestamptz not null default internal.now(),
  constraint operator_tokens_one_maker check (num_nonnulls(service_account_id, developer_id) = 1),
  constraint operator_tokens_label_is_one_line check (internal.is_line(label))
);
comment on table app.operator_tokens is
  'Short-lived tokens for the projects of an organization, or for one of them. What they may do is decided at each use:
   by their scopes, and by what their maker, a service account or a developer, may then do.';
create index operator_tokens_of_service_account on app.operator_tokens (service_account_id, created_at desc, id desc)
  where service_account_id is not null;
create index operator_tokens_of_developer on app.operator_tokens (developer_id, created_at desc, id desc)
  where developer_id is not null;
create index operator_tokens_of_organization on app.operator_tokens (organization_id);
create index operator_tokens_of_project on app.operator_tokens (project_id);
-- serves the daily deletion
create index operator_tokens_ended on app.operator_tokens (expires_at);

-- migrate:down
drop table app.operator_tokens;
