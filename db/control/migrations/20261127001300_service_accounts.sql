-- migrate:up
create table app.service_accounts (
  id              uuid primary key default internal.new_id(),
  organization_id uuid not null references app.organizations on delete cascade,
  name            text not null constraint service_accounts_name_1_to_80 check (char_length(name) between 1 and 80),
  scopes          text[] not null constraint service_accounts_scopes_some check (cardinality(scopes) > 0),
  project_ids     uuid[] constraint service_accounts_project_ids_some check (cardinality(project_ids) > 0),
  is_active       boolean not null default true,
  key_hash        text not null constraint service_accounts_key_unique unique,
  last_used_at    timestamptz,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint service_accounts_name_is_one_line check (internal.is_line(name))
);
comment on table app.service_accounts is
  'Machines that make operator tokens. scopes and project_ids are the ceiling of their tokens, now and later;
   project_ids null means every project of the organization.';
create index service_accounts_of_organization on app.service_accounts (organization_id, created_at desc, id desc);

-- migrate:down
drop table app.service_accounts;
