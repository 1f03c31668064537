-- migrate:up
create table app.developer_tokens (
  id            uuid primary key default internal.new_id(),
  developer_id  uuid not null references app.developers on delete cascade,
  name          text not null constraint developer_tokens_name_1_to_80 check (char_length(name) between 1 and 80),
  token_prefix  text not null,
  scopes        text[] not null constraint developer_tokens_scopes_some check (cardinality(scopes) > 0),
  project_ids   uuid[] constraint developer_tokens_project_ids_some check (cardinality(project_ids) > 0),
  lifetime_days int constraint developer_tokens_lifetime_1_to_365 check (lifetime_days between 1 and 365),
  expires_at    timestamptz,
  last_used_at  timestamptz,
  revoked_at    timestamptz,
  created_at    timestamptz not null default internal.now(),
  updated_at    timestamptz not null default internal.now(),
  constraint developer_tokens_name_is_one_line check (internal.is_line(name))
);
comment on table app.developer_tokens is
  'Personal access tokens. project_ids null means every project; ids of projects that are gone stay, so that a token
   never widens.';
create index developer_tokens_of_developer on app.developer_tokens (developer_id, created_at desc, id desc);

create table app.developer_token_secrets (
  token_hash text primary key,
  token_id   uuid not null references app.developer_tokens on delete cascade,
  ends_at    timestamptz
);
comment on table app.developer_token_secrets is
  'SHA-256 of the texts that open a token: the current one (ends_at null), and those it replaced, for an hour each.';
create index developer_token_secrets_of_token on app.developer_token_secrets (token_id);

-- migrate:down
drop table app.developer_token_secrets;
drop table app.developer_tokens;
