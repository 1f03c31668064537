-- migrate:up
create table app.developer_identities (
  provider     text not null constraint developer_identities_provider_known check (provider in ('github')),
  provider_id  text not null constraint developer_identities_provider_id_1_to_100
    check (char_length(provider_id) between 1 and 100),
  developer_id uuid not null references app.developers on delete cascade,
  created_at   timestamptz not null default internal.now(),
  primary key (provider, provider_id)
);
comment on table app.developer_identities is
  'Accounts at other services that sign a developer in. The provider''s own id counts: names and addresses there change
   hands.';
create index developer_identities_of_developer on app.developer_identities (developer_id);

create table app.github_starts (
  state_hash   text primary key,
  redirect_uri text not null constraint github_starts_redirect_uri_at_most_2048
    check (char_length(redirect_uri) <= 2048),
  expires_at   timestamptz not null
);
comment on table app.github_starts is
  'Sign-ins with GitHub that have begun: SHA-256 of the state, which works once. The PKCE verifier derives from the
   state under SECRETS_KEY.';
create index github_starts_expired on app.github_starts (expires_at);

-- migrate:down
drop table app.github_starts;
drop table app.developer_identities;
