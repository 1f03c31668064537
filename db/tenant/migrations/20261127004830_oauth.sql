-- migrate:up
create table app.oauth_providers (
  id             uuid primary key default internal.new_id(),
  name           text not null constraint oauth_providers_name_form
    check (name ~ '^[a-z][a-z0-9_-]{0,31}$'),
  issuer         text constraint oauth_providers_issuer_at_most_500 check (char_length(issuer) <= 500),
  client_id      text not null constraint oauth_providers_client_id_1_to_500
    check (char_length(client_id) between 1 and 500),
  secret_sealed  text,
  key_id         text,
  team_id        text constraint oauth_providers_team_id_at_most_64 check (char_length(team_id) <= 64),
  signing_key_id text constraint oauth_providers_signing_key_id_at_most_64 check (char_length(signing_key_id) <= 64),
  scopes         text[] not null default '{}' constraint oauth_providers_scopes_at_most_20
    check (cardinality(scopes) <= 20),
  is_active      boolean not null default true,
  created_at     timestamptz not null default internal.now(),
  updated_at     timestamptz not null default internal.now(),
  constraint oauth_providers_name_unique unique (name),
  constraint oauth_providers_sealed_under_a_key check ((secret_sealed is null) = (key_id is null))
);
comment on table app.oauth_providers is
  'Where users of the app sign in by redirect. secret_sealed is the client secret, or the private key that Apple''s
   secrets are signed with, encrypted by the server under the key that key_id names; it is never returned.';
comment on column app.oauth_providers.issuer is 'Of a provider with a name of its own; null where the name says it.';

create table app.oauth_redirects (
  id         uuid primary key default internal.new_id(),
  address    text not null constraint oauth_redirects_address_1_to_500 check (char_length(address) between 1 and 500),
  position   smallint not null,
  created_at timestamptz not null default internal.now(),
  constraint oauth_redirects_address_unique unique (address)
);
comment on table app.oauth_redirects is 'Where a sign-in by redirect may return to; the first one is the default.';

create table app.oauth_flows (
  id               uuid primary key default internal.new_id(),
  provider         text not null,
  state_hash       text not null,
  code_hash        text,
  challenge        text not null constraint oauth_flows_challenge_43_to_128
    check (char_length(challenge) between 43 and 128),
  challenge_method text not null constraint oauth_flows_challenge_method_known
    check (challenge_method in ('plain', 's256')),
  redirect_to      text not null,
  app_user_id      uuid references app.users on delete cascade on update cascade,
  session_id       uuid,
  provider_id      text,
  email            text,
  display_name     text constraint oauth_flows_display_name_is_one_line check (internal.is_line(display_name)),
  created_at       timestamptz not null default internal.now(),
  taken_at         timestamptz,
  expires_at       timestamptz not null,
  constraint oauth_flows_code_names_an_identity check (code_hash is null or provider_id is not null),
  constraint oauth_flows_links_by_a_session check ((app_user_id is null) = (session_id is null))
);
comment on table app.oauth_flows is
  'Sign-ins by redirect in progress: ten minutes at the provider, then five until the app exchanges its code. Of state
   and code the SHA-256 is stored. No account is touched before the exchange.';
comment on column app.oauth_flows.app_user_id is
  'The user whose session began the flow, to link the identity to; null for a sign-in.';
comment on column app.oauth_flows.taken_at is 'When the provider''s answer was received: only the first one counts.';
create unique index oauth_flows_state on app.oauth_flows (state_hash);
create unique index oauth_flows_code on app.oauth_flows (code_hash) where code_hash is not null;
create index oauth_flows_of_user on app.oauth_flows (app_user_id) where app_user_id is not null;
create index oauth_flows_expire on app.oauth_flows (expires_at);

-- migrate:down
drop table app.oauth_flows;
drop table app.oauth_redirects;
drop table app.oauth_providers;
