-- The schema of the control database, to be read: tables, columns, constraints, indexes, policies. Made from the catalog by npm run docs.
-- Migrations are in db/control/migrations, functions and triggers in functions/control, the sources of policies in policies/control.

create table app.api_keys (
  id uuid not null default internal.new_id(),
  project_id uuid not null,
  key_prefix text not null,
  key_hash text not null,
  key_type text not null,
  environment text not null,
  is_active boolean not null default true,
  last_used_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  -- Until when a key that was rotated is accepted; null: until it is deactivated.
  expires_at timestamp with time zone,
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_hash_unique UNIQUE (key_hash),
  constraint api_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint api_keys_environment_known CHECK ((environment = ANY (ARRAY['development'::text, 'production'::text]))),
  constraint api_keys_type_known CHECK ((key_type = ANY (ARRAY['client'::text, 'server'::text])))
);
CREATE INDEX api_keys_expiring ON app.api_keys USING btree (expires_at) WHERE (is_active AND (expires_at IS NOT NULL));
CREATE INDEX api_keys_of_project ON app.api_keys USING btree (project_id, created_at DESC, id DESC);
alter table app.api_keys enable row level security;
create policy "admins create keys of their projects" on app.api_keys for insert to control_developer
  with check ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids('admin'::text) AS organization_ids)::uuid[])))));
create policy "admins deactivate keys of their projects" on app.api_keys for update to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids('admin'::text) AS organization_ids)::uuid[])))))
  with check ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids('admin'::text) AS organization_ids)::uuid[])))));
create policy "members read keys of their projects" on app.api_keys for select to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])))));
create policy "the project cache reads keys" on app.api_keys for select to control_auth
  using (true);
create policy "the project cache records the use of keys" on app.api_keys for update to control_auth
  using (true)
  with check (true);

-- Rows of the trail that wait for their seal: the SHA-256 of each, written in the same transaction. A row that is
-- changed, removed or put in before it is sealed differs from this.
create table app.audit_digests (
  "position" bigint not null,
  event_id uuid not null,
  scope uuid not null,
  occurred_at timestamp with time zone not null,
  digest bytea not null,
  constraint audit_digests_pkey PRIMARY KEY ("position")
);
alter table app.audit_digests enable row level security;
create policy "developers read digests of their trails" on app.audit_digests for select to control_developer
  using (((scope = ( SELECT internal.developer_id() AS developer_id)) OR (scope = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])) OR (scope IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[]))))));

-- Who changed what: one row for each change that an administrator makes, in the change's own transaction. Append-only;
-- numbered and hashed by app.audit_seals. Partitioned by month, kept 400 days.
create table app.audit_events (
  id uuid not null,
  -- Whose trail this is: in control a project, or a developer's own account; a project's database has one, the nil
  -- uuid.
  scope uuid not null,
  -- Orders rows of one time: a value of app.audit_positions.
  "position" bigint not null,
  occurred_at timestamp with time zone not null,
  actor json not null,
  action text not null,
  target_type text not null,
  target_id text,
  changes json not null default '{}'::json,
  ip text,
  user_agent text,
  request_id text,
  status integer not null,
  constraint audit_events_pkey PRIMARY KEY (id, occurred_at),
  constraint audit_events_one_at_each_position UNIQUE (scope, "position", occurred_at)
) partition by range (occurred_at);
CREATE INDEX audit_events_newest ON ONLY app.audit_events USING btree (scope, occurred_at DESC, "position" DESC);
CREATE INDEX audit_events_of_actor ON ONLY app.audit_events USING btree (scope, ((actor ->> 'id'::text)), occurred_at DESC, "position" DESC);
CREATE INDEX audit_events_of_target ON ONLY app.audit_events USING btree (scope, target_id, occurred_at DESC, "position" DESC);
alter table app.audit_events enable row level security;
create policy "developers read the trails of their projects, their organizatio" on app.audit_events for select to control_developer
  using (((scope = ( SELECT internal.developer_id() AS developer_id)) OR (scope = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])) OR (scope IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[]))))));

-- Where each month of a chain of seals begins and ends: opening_hash is the last one of the month before, so that what
-- is left can be verified when that is dropped.
create table app.audit_heads (
  scope uuid not null,
  month date not null,
  opening_hash bytea not null,
  opening_position bigint not null,
  last_hash bytea not null,
  last_position bigint not null,
  last_at timestamp with time zone not null,
  constraint audit_heads_pkey PRIMARY KEY (scope, month)
);
alter table app.audit_heads enable row level security;
create policy "developers read where their seals begin and end" on app.audit_heads for select to control_developer
  using (((scope = ( SELECT internal.developer_id() AS developer_id)) OR (scope = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])) OR (scope IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[]))))));

-- The hash chain of each scope: hash is sha256(hash of the seal before || this seal). position counts without gaps.
-- Partitioned by month, kept 400 days.
create table app.audit_seals (
  scope uuid not null,
  "position" bigint not null,
  event_id uuid not null,
  occurred_at timestamp with time zone not null,
  -- The SHA-256 of the row of app.audit_events as it was written.
  digest bytea not null,
  -- Never before the seal in front of it, nor before the row occurred: a month of seals is one piece of the chain.
  sealed_at timestamp with time zone not null,
  hash bytea not null,
  constraint audit_seals_one_at_each_position PRIMARY KEY (scope, "position", sealed_at),
  constraint audit_seals_one_of_each_event UNIQUE (event_id, sealed_at)
) partition by range (sealed_at);
alter table app.audit_seals enable row level security;
create policy "developers read seals of their trails" on app.audit_seals for select to control_developer
  using (((scope = ( SELECT internal.developer_id() AS developer_id)) OR (scope = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])) OR (scope IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[]))))));

-- Ids of the events that the billing provider reported, kept 90 days: a repeated one changes nothing.
create table app.billing_events (
  provider text not null,
  event_key text not null,
  received_at timestamp with time zone not null default internal.now(),
  constraint billing_events_pkey PRIMARY KEY (provider, event_key),
  constraint billing_events_key_1_to_255 CHECK (((char_length(event_key) >= 1) AND (char_length(event_key) <= 255))),
  constraint billing_events_provider_1_to_100 CHECK (((char_length(provider) >= 1) AND (char_length(provider) <= 100)))
);
CREATE INDEX billing_events_received ON app.billing_events USING btree (received_at);
alter table app.billing_events enable row level security;

-- Postgres servers that hold tenants. dsn_sealed is encrypted by the server; null is the server of the control database
-- itself.
create table app.clusters (
  id uuid not null default internal.new_id(),
  name text not null,
  dsn_sealed text,
  capacity integer not null default 500,
  is_open boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  constraint clusters_pkey PRIMARY KEY (id),
  constraint clusters_name_unique UNIQUE (name),
  constraint clusters_capacity_positive CHECK ((capacity > 0))
);
alter table app.clusters enable row level security;
create policy "workers add clusters" on app.clusters for insert to control_worker
  with check (true);
create policy "workers read clusters" on app.clusters for select to control_worker
  using (true);

-- The one live sign-in code of each mailbox, whether or not it has an account: so a request does the same for both. The
-- code itself derives from id under SECRETS_KEY and is stored nowhere; code_mac is its HMAC.
create table app.developer_codes (
  mailbox text not null,
  id uuid not null,
  code_mac text not null,
  wrong integer not null default 0,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint developer_codes_pkey PRIMARY KEY (mailbox),
  constraint developer_codes_id_unique UNIQUE (id),
  constraint developer_codes_wrong_at_most_5 CHECK (((wrong >= 0) AND (wrong <= 5)))
);
CREATE INDEX developer_codes_expired ON app.developer_codes USING btree (expires_at);
alter table app.developer_codes enable row level security;
create policy "sign-in consumes codes" on app.developer_codes for delete to control_auth
  using (true);
create policy "sign-in counts wrong codes" on app.developer_codes for update to control_auth
  using (true)
  with check (true);
create policy "sign-in reads codes" on app.developer_codes for select to control_auth
  using (true);
create policy "workers read the recipients of codes" on app.developer_codes for select to control_worker
  using (true);

-- Accounts at other services that sign a developer in. The provider's own id counts: names and addresses there change
-- hands.
create table app.developer_identities (
  provider text not null,
  provider_id text not null,
  developer_id uuid not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint developer_identities_pkey PRIMARY KEY (provider, provider_id),
  constraint developer_identities_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES app.developers(id) ON DELETE CASCADE,
  constraint developer_identities_provider_id_1_to_100 CHECK (((char_length(provider_id) >= 1) AND (char_length(provider_id) <= 100))),
  constraint developer_identities_provider_known CHECK ((provider = 'github'::text))
);
CREATE INDEX developer_identities_of_developer ON app.developer_identities USING btree (developer_id);
alter table app.developer_identities enable row level security;
create policy "sign-in adds identities" on app.developer_identities for insert to control_auth
  with check (true);
create policy "sign-in reads identities" on app.developer_identities for select to control_auth
  using (true);

-- Sign-ins of developers (sid of their tokens). refresh_hash is the SHA-256 of the one current refresh token; another
-- that carries this sid was replaced: former_hash at replaced_at.
create table app.developer_sessions (
  id uuid not null default internal.new_id(),
  developer_id uuid not null,
  refresh_hash text not null,
  created_at timestamp with time zone not null default internal.now(),
  last_used_at timestamp with time zone not null default internal.now(),
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  end_reason text,
  ip text,
  user_agent text,
  former_hash text,
  replaced_at timestamp with time zone,
  constraint developer_sessions_pkey PRIMARY KEY (id),
  constraint developer_sessions_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES app.developers(id) ON DELETE CASCADE
);
CREATE INDEX developer_sessions_of_developer ON app.developer_sessions USING btree (developer_id, created_at DESC);
alter table app.developer_sessions enable row level security;
create policy "developers end their own sign-ins" on app.developer_sessions for update to control_developer
  using ((developer_id = ( SELECT internal.developer_id() AS developer_id)))
  with check ((developer_id = ( SELECT internal.developer_id() AS developer_id)));
create policy "developers read their own sign-ins" on app.developer_sessions for select to control_developer
  using ((developer_id = ( SELECT internal.developer_id() AS developer_id)));
create policy "sign-in reads sessions" on app.developer_sessions for select to control_auth
  using (true);
create policy "sign-in renews and ends sessions" on app.developer_sessions for update to control_auth
  using (true)
  with check (true);
create policy "sign-in starts sessions" on app.developer_sessions for insert to control_auth
  with check (true);
create policy "workers delete old sign-ins" on app.developer_sessions for delete to control_worker
  using (true);
create policy "workers find old sign-ins" on app.developer_sessions for select to control_worker
  using (true);

-- SHA-256 of the texts that open a token: the current one (ends_at null), and those it replaced, for an hour each.
create table app.developer_token_secrets (
  token_hash text not null,
  token_id uuid not null,
  ends_at timestamp with time zone,
  constraint developer_token_secrets_pkey PRIMARY KEY (token_hash),
  constraint developer_token_secrets_token_id_fkey FOREIGN KEY (token_id) REFERENCES app.developer_tokens(id) ON DELETE CASCADE
);
CREATE INDEX developer_token_secrets_of_token ON app.developer_token_secrets USING btree (token_id);
alter table app.developer_token_secrets enable row level security;
create policy "developers end texts of their own tokens" on app.developer_token_secrets for update to control_developer
  using ((token_id IN ( SELECT t.id
   FROM app.developer_tokens t
  WHERE (t.developer_id = ( SELECT internal.developer_id() AS developer_id)))))
  with check ((token_id IN ( SELECT t.id
   FROM app.developer_tokens t
  WHERE (t.developer_id = ( SELECT internal.developer_id() AS developer_id)))));
create policy "developers read the expiry of texts of their own tokens" on app.developer_token_secrets for select to control_developer
  using ((token_id IN ( SELECT t.id
   FROM app.developer_tokens t
  WHERE (t.developer_id = ( SELECT internal.developer_id() AS developer_id)))));
create policy "developers store texts of their own tokens" on app.developer_token_secrets for insert to control_developer
  with check ((token_id IN ( SELECT t.id
   FROM app.developer_tokens t
  WHERE (t.developer_id = ( SELECT internal.developer_id() AS developer_id)))));
create policy "the server looks up texts" on app.developer_token_secrets for select to control_auth
  using (true);

-- Personal access tokens. project_ids null means every project; ids of projects that are gone stay, so that a token
-- never widens.
create table app.developer_tokens (
  id uuid not null default internal.new_id(),
  developer_id uuid not null,
  name text not null,
  token_prefix text not null,
  scopes text[] not null,
  project_ids uuid[],
  lifetime_days integer,
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint developer_tokens_pkey PRIMARY KEY (id),
  constraint developer_tokens_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES app.developers(id) ON DELETE CASCADE,
  -- 400 VALIDATION_ERROR lifetime_days: must be 1 to 365.
  constraint developer_tokens_lifetime_1_to_365 CHECK (((lifetime_days >= 1) AND (lifetime_days <= 365))),
  -- 400 VALIDATION_ERROR name: must have 1 to 80 characters.
  constraint developer_tokens_name_1_to_80 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 80))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint developer_tokens_name_is_one_line CHECK (internal.is_line(name)),
  constraint developer_tokens_project_ids_some CHECK ((cardinality(project_ids) > 0)),
  constraint developer_tokens_scopes_some CHECK ((cardinality(scopes) > 0))
);
CREATE INDEX developer_tokens_of_developer ON app.developer_tokens USING btree (developer_id, created_at DESC, id DESC);
alter table app.developer_tokens enable row level security;
create policy "developers change their own tokens" on app.developer_tokens for update to control_developer
  using ((developer_id = ( SELECT internal.developer_id() AS developer_id)))
  with check ((developer_id = ( SELECT internal.developer_id() AS developer_id)));
create policy "developers create tokens of their own" on app.developer_tokens for insert to control_developer
  with check ((developer_id = ( SELECT internal.developer_id() AS developer_id)));
create policy "developers read their own tokens" on app.developer_tokens for select to control_developer
  using ((developer_id = ( SELECT internal.developer_id() AS developer_id)));
create policy "the server reads tokens" on app.developer_tokens for select to control_auth
  using (true);
create policy "the server records the use of tokens" on app.developer_tokens for update to control_auth
  using (true)
  with check (true);

-- Accounts of developers. mailbox is the address without aliases: one account each.
create table app.developers (
  id uuid not null default internal.new_id(),
  email text not null,
  mailbox text not null,
  name text,
  password_hash text,
  email_verified boolean not null default false,
  account_state text not null default 'sandbox'::text,
  provisioning text not null default 'on'::text,
  oauth_providers text[] not null default '{}'::text[],
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint developers_pkey PRIMARY KEY (id),
  constraint developers_account_state_known CHECK ((account_state = ANY (ARRAY['sandbox'::text, 'verified_free'::text, 'paid'::text]))),
  constraint developers_mailbox_is_one CHECK ((mailbox = internal.email_mailbox(email))),
  -- 400 INVALID_INPUT name: must have at most 200 characters.
  constraint developers_name_at_most_200 CHECK ((char_length(name) <= 200)),
  -- 400 INVALID_INPUT name: must be one line of text.
  constraint developers_name_is_one_line CHECK (internal.is_line(name)),
  constraint developers_provisioning_known CHECK ((provisioning = ANY (ARRAY['on'::text, 'off'::text, 'revoked'::text])))
);
-- 409 EMAIL_EXISTS email: An account with this mailbox exists.
CREATE UNIQUE INDEX developers_mailbox_unique ON app.developers USING btree (mailbox);
alter table app.developers enable row level security;
create policy "developers change their own account" on app.developers for update to control_developer
  using ((id = ( SELECT internal.developer_id() AS developer_id)))
  with check ((id = ( SELECT internal.developer_id() AS developer_id)));
create policy "developers read their own account" on app.developers for select to control_developer
  using ((id = ( SELECT internal.developer_id() AS developer_id)));
create policy "sign-in changes accounts" on app.developers for update to control_auth
  using (true)
  with check (true);
create policy "sign-in creates accounts" on app.developers for insert to control_auth
  with check (true);
create policy "sign-in reads every account" on app.developers for select to control_auth
  using (true);
create policy "workers read addresses of accounts" on app.developers for select to control_worker
  using (true);

-- Sign-ins of tools that a developer approves in a browser (RFC 8628). device_hash is the SHA-256 of the device code,
-- user_code_mac an HMAC of the user code under SECRETS_KEY; a grant that was used is deleted.
create table app.device_grants (
  id uuid not null default internal.new_id(),
  device_hash text not null,
  user_code_mac text not null,
  client_name text not null,
  ip text,
  status text not null default 'pending'::text,
  developer_id uuid,
  interval_seconds integer not null default 5,
  polled_at timestamp with time zone,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint device_grants_pkey PRIMARY KEY (id),
  constraint device_grants_device_unique UNIQUE (device_hash),
  constraint device_grants_user_code_unique UNIQUE (user_code_mac),
  constraint device_grants_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES app.developers(id) ON DELETE CASCADE,
  constraint device_grants_approved_by_somebody CHECK (((status = 'approved'::text) = (developer_id IS NOT NULL))),
  -- 400 VALIDATION_ERROR client_name: must have 1 to 80 characters.
  constraint device_grants_client_name_1_to_80 CHECK (((char_length(client_name) >= 1) AND (char_length(client_name) <= 80))),
  -- 400 VALIDATION_ERROR client_name: must be one line of text.
  constraint device_grants_client_name_is_one_line CHECK (internal.is_line(client_name)),
  constraint device_grants_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text])))
);
CREATE INDEX device_grants_expired ON app.device_grants USING btree (expires_at);
CREATE INDEX device_grants_of_developer ON app.device_grants USING btree (developer_id);
alter table app.device_grants enable row level security;
create policy "sign-in ends grants of devices" on app.device_grants for delete to control_auth
  using (true);
create policy "sign-in reads grants of devices" on app.device_grants for select to control_auth
  using (true);
create policy "sign-in records polls of devices" on app.device_grants for update to control_auth
  using (true)
  with check (true);
create policy "sign-in stores grants of devices" on app.device_grants for insert to control_auth
  with check ((status = 'pending'::text));

-- Mail domains of throw-away inboxes; they and what is under them are refused at sign-up.
create table app.disposable_domains (
  domain text not null,
  constraint disposable_domains_pkey PRIMARY KEY (domain)
);
alter table app.disposable_domains enable row level security;
create policy "sign-in reads disposable domains" on app.disposable_domains for select to control_auth
  using (true);

-- Domains of projects: those that mail is sent from, and those that sites and functions answer under.
create table app.domains (
  id uuid not null default internal.new_id(),
  project_id uuid not null,
  domain text not null,
  kind text not null,
  status text not null default 'pending'::text,
  verified_at timestamp with time zone,
  last_checked_at timestamp with time zone,
  error text,
  created_at timestamp with time zone not null default internal.now(),
  -- What the TXT record must say that proves ownership: random, of this row alone.
  token text not null default replace((gen_random_uuid())::text, '-'::text, ''::text),
  -- The DNS records of the domain, [{type, name, value, purpose, verified}], as the last check found them.
  records jsonb not null default '[]'::jsonb,
  dkim_public text,
  -- The private key of DKIM, encrypted by the server; it is never returned.
  dkim_sealed text,
  -- Daily checks in a row that did not find the records.
  failed_checks smallint not null default 0,
  -- When a developer last asked for a check: at most one in ten seconds.
  verify_at timestamp with time zone,
  next_check_at timestamp with time zone not null default (internal.now() + '1 day'::interval),
  constraint domains_pkey PRIMARY KEY (id),
  -- 409 CONFLICT domain: The project has this domain already.
  constraint domains_one_of_a_kind UNIQUE (project_id, kind, domain),
  constraint domains_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint domains_dkim_has_both_keys CHECK (((dkim_public IS NULL) = (dkim_sealed IS NULL))),
  constraint domains_domain_lower_case CHECK (((domain = lower(domain)) AND ((char_length(domain) >= 3) AND (char_length(domain) <= 253)))),
  constraint domains_kind_known CHECK ((kind = ANY (ARRAY['email'::text, 'site'::text, 'function'::text]))),
  constraint domains_records_is_list CHECK ((jsonb_typeof(records) = 'array'::text)),
  constraint domains_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'verified'::text, 'failed'::text]))),
  constraint domains_token_form CHECK ((token ~ '^[0-9a-f]{32}$'::text))
);
CREATE INDEX domains_due ON app.domains USING btree (next_check_at) WHERE (status <> 'failed'::text);
-- 409 DOMAIN_TAKEN domain: Another project has proved that it owns this domain.
CREATE UNIQUE INDEX domains_verified_once ON app.domains USING btree (kind, domain) WHERE (status = 'verified'::text);
alter table app.domains enable row level security;
create policy "developers ask for checks of their domains" on app.domains for update to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids('developer'::text) AS organization_ids)::uuid[])))))
  with check ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids('developer'::text) AS organization_ids)::uuid[])))));
create policy "developers attach domains to their projects" on app.domains for insert to control_developer
  with check ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids('developer'::text) AS organization_ids)::uuid[])))));
create policy "developers detach domains from their projects" on app.domains for delete to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids('developer'::text) AS organization_ids)::uuid[])))));
create policy "members read domains of their projects" on app.domains for select to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])))));
create policy "workers read domains" on app.domains for select to control_worker
  using (true);
create policy "workers take domains that are due" on app.domains for update to control_worker
  using (true)
  with check (true);

-- Locations of deleted projects' files: purged, with back-off, and looked at once more six hours later; then the row
-- goes.
create table app.file_purges (
  id uuid not null default internal.new_id(),
  project_id uuid not null,
  location json not null,
  attempts integer not null default 0,
  purged_at timestamp with time zone,
  due_at timestamp with time zone not null default internal.now(),
  error text,
  created_at timestamp with time zone not null default internal.now(),
  constraint file_purges_pkey PRIMARY KEY (id)
);
CREATE INDEX file_purges_due ON app.file_purges USING btree (due_at);
alter table app.file_purges enable row level security;
create policy "workers delete finished purges of files" on app.file_purges for delete to control_worker
  using (true);
create policy "workers read purges of files" on app.file_purges for select to control_worker
  using (true);
create policy "workers record purges of files" on app.file_purges for update to control_worker
  using (true)
  with check (true);

-- Sign-ins with GitHub that have begun: SHA-256 of the state, which works once. The PKCE verifier derives from the
-- state under SECRETS_KEY.
create table app.github_starts (
  state_hash text not null,
  redirect_uri text not null,
  expires_at timestamp with time zone not null,
  constraint github_starts_pkey PRIMARY KEY (state_hash),
  constraint github_starts_redirect_uri_at_most_2048 CHECK ((char_length(redirect_uri) <= 2048))
);
CREATE INDEX github_starts_expired ON app.github_starts USING btree (expires_at);
alter table app.github_starts enable row level security;
create policy "sign-in begins" on app.github_starts for insert to control_auth
  with check (true);
create policy "sign-in ends what began" on app.github_starts for delete to control_auth
  using (true);
create policy "sign-in reads what began" on app.github_starts for select to control_auth
  using (true);

-- A value that only the right SECRETS_KEY makes, so that a wrong one is refused at start.
create table app.installation (
  only_one boolean not null default true,
  key_check text not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint installation_pkey PRIMARY KEY (only_one),
  constraint installation_one_row CHECK (only_one)
);
alter table app.installation enable row level security;
create policy "workers read the key check" on app.installation for select to control_worker
  using (true);
create policy "workers store the key check" on app.installation for insert to control_worker
  with check (true);

-- Codes that let one developer in, each once. code_hash is the SHA-256 of the code in its normal form, code_hint its
-- first group.
create table app.invites (
  id uuid not null default internal.new_id(),
  code_hash text not null,
  code_hint text not null,
  note text,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  used_at timestamp with time zone,
  used_by uuid,
  created_at timestamp with time zone not null default internal.now(),
  constraint invites_pkey PRIMARY KEY (id),
  constraint invites_code_hash_unique UNIQUE (code_hash),
  constraint invites_used_by_fkey FOREIGN KEY (used_by) REFERENCES app.developers(id) ON DELETE SET NULL,
  constraint invites_note_at_most_200 CHECK ((char_length(note) <= 200))
);
CREATE INDEX invites_newest ON app.invites USING btree (created_at DESC, id DESC);
CREATE INDEX invites_of_developer ON app.invites USING btree (used_by);
alter table app.invites enable row level security;
create policy "sign-up looks codes up" on app.invites for select to control_auth
  using (true);
create policy "sign-up redeems codes" on app.invites for update to control_auth
  using (true)
  with check (true);

-- The steps of an apply operation and how far they are: position counts the steps that are done, begun is the step
-- whose call may have been made. The first `additive` steps run at once, the others after a confirmation. run counts
-- the workers that have taken it: only the newest may record a step. waiting_hash is the plan of what remained when the
-- operation began to wait.
create table app.monetization_applies (
  operation_id uuid not null,
  steps jsonb not null,
  additive integer not null,
  reconcile text not null,
  is_checked boolean not null default false,
  is_confirmed boolean not null,
  confirm_sent_at timestamp with time zone,
  "position" integer not null default 0,
  begun integer,
  run integer not null default 0,
  waiting_hash text,
  waiting_since timestamp with time zone,
  expired_at timestamp with time zone,
  is_expiry_known boolean not null default false,
  constraint monetization_applies_pkey PRIMARY KEY (operation_id),
  constraint monetization_applies_operation_id_fkey FOREIGN KEY (operation_id) REFERENCES app.operations(id) ON DELETE CASCADE,
  constraint monetization_applies_position_in_steps CHECK ((("position" >= 0) AND ("position" <= jsonb_array_length(steps)))),
  constraint monetization_applies_reconcile_known CHECK ((reconcile = ANY (ARRAY['service'::text, 'adopt'::text])))
);
alter table app.monetization_applies enable row level security;
create policy "workers read applies" on app.monetization_applies for select to control_worker
  using (true);
create policy "workers record the steps of applies" on app.monetization_applies for update to control_worker
  using (true)
  with check (true);

-- Asynchronous work that a developer may poll. Kept 90 days.
create table app.operations (
  id uuid not null default internal.new_id(),
  project_id uuid not null,
  type text not null,
  status text not null default 'queued'::text,
  done bigint,
  total bigint,
  confirm_required boolean not null default false,
  plan_hash text,
  input jsonb not null default '{}'::jsonb,
  result json,
  failed_reason text,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint operations_pkey PRIMARY KEY (id),
  constraint operations_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint operations_status_known CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'waiting'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE INDEX operations_of_project ON app.operations USING btree (project_id, created_at DESC, id DESC);
-- 409 ALREADY_RUNNING: An apply of this project runs, or waits for its confirmation. Poll, confirm or cancel its operation.
CREATE UNIQUE INDEX operations_one_monetization_apply ON app.operations USING btree (project_id) WHERE ((type = 'monetization.apply'::text) AND (status = ANY (ARRAY['queued'::text, 'running'::text, 'waiting'::text])));
alter table app.operations enable row level security;
create policy "members read operations of their projects" on app.operations for select to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])))));
create policy "workers delete old operations" on app.operations for delete to control_worker
  using (true);
create policy "workers read operations" on app.operations for select to control_worker
  using (true);
create policy "workers update operations" on app.operations for update to control_worker
  using (true)
  with check (true);

-- Short-lived tokens for the projects of an organization, or for one of them. What they may do is decided at each use:
-- by their scopes, and by what their maker, a service account or a developer, may then do.
create table app.operator_tokens (
  id uuid not null default internal.new_id(),
  organization_id uuid not null,
  project_id uuid,
  service_account_id uuid,
  developer_id uuid,
  scopes text[] not null,
  label text,
  acts_for text,
  token_hash text not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  constraint operator_tokens_pkey PRIMARY KEY (id),
  constraint operator_tokens_token_unique UNIQUE (token_hash),
  constraint operator_tokens_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES app.developers(id) ON DELETE CASCADE,
  constraint operator_tokens_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE CASCADE,
  constraint operator_tokens_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint operator_tokens_service_account_id_fkey FOREIGN KEY (service_account_id) REFERENCES app.service_accounts(id) ON DELETE CASCADE,
  -- 400 VALIDATION_ERROR actor: must have at most 200 characters.
  constraint operator_tokens_actor_at_most_200 CHECK ((char_length(acts_for) <= 200)),
  -- 400 VALIDATION_ERROR label: must have at most 200 characters.
  constraint operator_tokens_label_at_most_200 CHECK ((char_length(label) <= 200)),
  -- 400 VALIDATION_ERROR label: must be one line of text.
  constraint operator_tokens_label_is_one_line CHECK (internal.is_line(label)),
  constraint operator_tokens_one_maker CHECK ((num_nonnulls(service_account_id, developer_id) = 1)),
  constraint operator_tokens_scopes_some CHECK ((cardinality(scopes) > 0))
);
CREATE INDEX operator_tokens_ended ON app.operator_tokens USING btree (expires_at);
CREATE INDEX operator_tokens_of_developer ON app.operator_tokens USING btree (developer_id, created_at DESC, id DESC) WHERE (developer_id IS NOT NULL);
CREATE INDEX operator_tokens_of_organization ON app.operator_tokens USING btree (organization_id);
CREATE INDEX operator_tokens_of_project ON app.operator_tokens USING btree (project_id);
CREATE INDEX operator_tokens_of_service_account ON app.operator_tokens USING btree (service_account_id, created_at DESC, id DESC) WHERE (service_account_id IS NOT NULL);
alter table app.operator_tokens enable row level security;

-- Invites of a mailbox into an organization. token_hash is the SHA-256 of the token in the mail, which derives from the
-- id and SECRETS_KEY and is stored nowhere.
create table app.organization_invites (
  id uuid not null default internal.new_id(),
  organization_id uuid not null,
  email text not null,
  mailbox text not null,
  role text not null,
  token_hash text not null,
  invited_by uuid,
  accepted_by uuid,
  expires_at timestamp with time zone not null,
  accepted_at timestamp with time zone,
  revoked_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  constraint organization_invites_pkey PRIMARY KEY (id),
  constraint organization_invites_token_unique UNIQUE (token_hash),
  constraint organization_invites_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES app.developers(id) ON DELETE SET NULL,
  constraint organization_invites_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES app.developers(id) ON DELETE SET NULL,
  constraint organization_invites_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE CASCADE,
  constraint organization_invites_role_known CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text])))
);
CREATE INDEX organization_invites_accepted_by ON app.organization_invites USING btree (accepted_by);
CREATE INDEX organization_invites_by ON app.organization_invites USING btree (invited_by);
CREATE INDEX organization_invites_of_organization ON app.organization_invites USING btree (organization_id, created_at DESC, id DESC);
CREATE INDEX organization_invites_open ON app.organization_invites USING btree (organization_id, mailbox) WHERE ((accepted_at IS NULL) AND (revoked_at IS NULL));
alter table app.organization_invites enable row level security;

-- The role of each developer in an organization, and with it in all of its projects.
create table app.organization_members (
  organization_id uuid not null,
  developer_id uuid not null,
  role text not null,
  joined_at timestamp with time zone not null default internal.now(),
  constraint organization_members_pkey PRIMARY KEY (organization_id, developer_id),
  constraint organization_members_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES app.developers(id) ON DELETE CASCADE,
  constraint organization_members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE CASCADE,
  constraint organization_members_role_known CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text])))
);
CREATE INDEX organization_members_of_developer ON app.organization_members USING btree (developer_id, organization_id) INCLUDE (role);
alter table app.organization_members enable row level security;

-- Who owns projects. developer_id is set for a personal organization: each developer has one.
create table app.organizations (
  id uuid not null default internal.new_id(),
  name text not null,
  slug text not null,
  developer_id uuid,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint organizations_pkey PRIMARY KEY (id),
  constraint organizations_one_personal UNIQUE (developer_id),
  constraint organizations_slug_unique UNIQUE (slug),
  constraint organizations_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES app.developers(id) ON DELETE CASCADE,
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint organizations_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint organizations_name_is_one_line CHECK (internal.is_line(name)),
  constraint organizations_slug_form CHECK (((slug ~ '^[a-z0-9](-?[a-z0-9])*$'::text) AND (char_length(slug) <= 64)))
);
alter table app.organizations enable row level security;
create policy "members read their organizations" on app.organizations for select to control_developer
  using ((id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])));

-- ES256 key pairs that sign a project's session tokens: the newest whose use_from is reached signs, and those before
-- it are accepted until what they signed has expired. The private half is encrypted by the server.
create table app.project_signing_keys (
  project_id uuid not null,
  key_id text not null,
  public_jwk json not null,
  sealed text not null,
  created_at timestamp with time zone not null default internal.now(),
  use_from timestamp with time zone not null default internal.now(),
  constraint project_signing_keys_pkey PRIMARY KEY (key_id),
  constraint project_signing_keys_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX project_signing_keys_of_project ON app.project_signing_keys USING btree (project_id, use_from DESC);
alter table app.project_signing_keys enable row level security;
create policy "admins store signing keys of their projects" on app.project_signing_keys for insert to control_developer
  with check ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids('admin'::text) AS organization_ids)::uuid[])))));
create policy "the project cache reads signing keys" on app.project_signing_keys for select to control_auth
  using (true);

-- What a project pays for, as its billing provider said last. ends_at is the end of the paid period; event_at the time
-- of the event that says so.
create table app.project_subscriptions (
  project_id uuid not null,
  provider text not null,
  customer_ref text,
  tier text not null,
  status text not null,
  ends_at timestamp with time zone,
  cancel_at_period_end boolean not null default false,
  event_at timestamp with time zone not null,
  updated_at timestamp with time zone not null default internal.now(),
  constraint project_subscriptions_pkey PRIMARY KEY (project_id),
  constraint project_subscriptions_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint project_subscriptions_customer_at_most_255 CHECK ((char_length(customer_ref) <= 255)),
  constraint project_subscriptions_provider_1_to_100 CHECK (((char_length(provider) >= 1) AND (char_length(provider) <= 100))),
  constraint project_subscriptions_status_known CHECK ((status = ANY (ARRAY['trialing'::text, 'active'::text, 'past_due'::text, 'ended'::text]))),
  constraint project_subscriptions_tier_known CHECK ((tier = ANY (ARRAY['pro'::text, 'enterprise'::text])))
);
alter table app.project_subscriptions enable row level security;
create policy "members read the subscriptions of their projects" on app.project_subscriptions for select to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])))));

create table app.projects (
  id uuid not null default internal.new_id(),
  developer_id uuid not null,
  name text not null,
  bundle_id text,
  google_oauth_client_id text,
  platform text not null default 'all'::text,
  environment text not null default 'production'::text,
  tier text not null default 'free'::text,
  comped boolean not null default false,
  default_from_email text,
  default_from_name text,
  default_reply_to text,
  magic_link_redirect_url text,
  auth_email_brand_name text,
  deleted_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  -- Whether the project's users may search for each other by name.
  user_search_enabled boolean not null default false,
  -- Whether {root_url}/rest/v1 serves the project's collections as PostgREST does.
  rest_enabled boolean not null default false,
  -- Whether a client key without a session reads public collections and files there.
  anonymous_reads boolean not null default false,
  -- Whether the project's developers may query its database with GraphQL.
  graphql_enabled boolean not null default false,
  organization_id uuid,
  -- Since when the project has the environment development, without a break; null outside of it. Sessions for tests that
  -- began before it have ended.
  development_since timestamp with time zone,
  constraint projects_pkey PRIMARY KEY (id),
  constraint projects_developer_id_fkey FOREIGN KEY (developer_id) REFERENCES app.developers(id) ON DELETE RESTRICT,
  constraint projects_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE SET NULL,
  -- 400 INVALID_INPUT auth_email_brand_name: must be one line of text.
  constraint projects_auth_email_brand_name_is_one_line CHECK (internal.is_line(auth_email_brand_name)),
  -- 400 INVALID_INPUT bundle_id: must have at most 255 characters.
  constraint projects_bundle_id_at_most_255 CHECK ((char_length(bundle_id) <= 255)),
  -- 400 INVALID_INPUT default_from_name: must have at most 80 characters.
  constraint projects_default_from_name_at_most_80 CHECK ((char_length(default_from_name) <= 80)),
  -- 400 INVALID_INPUT default_from_name: must be one line of text.
  constraint projects_default_from_name_is_one_line CHECK (internal.is_line(default_from_name)),
  -- 400 INVALID_INPUT environment: must be development or production.
  constraint projects_environment_known CHECK ((environment = ANY (ARRAY['development'::text, 'production'::text]))),
  -- 400 INVALID_INPUT google_oauth_client_id: must have at most 255 characters.
  constraint projects_google_oauth_client_id_at_most_255 CHECK ((char_length(google_oauth_client_id) <= 255)),
  constraint projects_in_an_organization CHECK (((organization_id IS NOT NULL) OR (deleted_at IS NOT NULL))),
  -- 400 INVALID_INPUT name: must have 1 to 200 characters.
  constraint projects_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 INVALID_INPUT name: must be one line of text.
  constraint projects_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 INVALID_INPUT platform: must be ios, android or all.
  constraint projects_platform_known CHECK ((platform = ANY (ARRAY['ios'::text, 'android'::text, 'all'::text]))),
  constraint projects_tier_known CHECK ((tier = ANY (ARRAY['free'::text, 'pro'::text, 'enterprise'::text])))
);
CREATE INDEX projects_deleted ON app.projects USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX projects_of_developer ON app.projects USING btree (developer_id, created_at DESC, id DESC);
CREATE INDEX projects_of_organization ON app.projects USING btree (organization_id, created_at DESC, id DESC);
alter table app.projects enable row level security;
create policy "a token that is limited to projects reaches no others" on app.projects as restrictive for all to control_developer
  using (((( SELECT internal.token_project_ids() AS token_project_ids) IS NULL) OR (id = ANY (( SELECT internal.token_project_ids() AS token_project_ids)::uuid[]))))
  with check (((( SELECT internal.token_project_ids() AS token_project_ids) IS NULL) OR (id = ANY (( SELECT internal.token_project_ids() AS token_project_ids)::uuid[]))));
create policy "admins create projects in their organizations" on app.projects for insert to control_developer
  with check (((developer_id = ( SELECT internal.developer_id() AS developer_id)) AND (organization_id = ANY (( SELECT internal.organization_ids('admin'::text) AS organization_ids)::uuid[]))));
create policy "developers change the projects of their organizations" on app.projects for update to control_developer
  using ((organization_id = ANY (( SELECT internal.organization_ids('developer'::text) AS organization_ids)::uuid[])))
  with check ((organization_id = ANY (( SELECT internal.organization_ids('developer'::text) AS organization_ids)::uuid[])));
create policy "members read the projects of their organizations" on app.projects for select to control_developer
  using ((organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])));
create policy "the project cache reads projects" on app.projects for select to control_auth
  using (true);
create policy "workers delete the rows of deleted projects" on app.projects for delete to control_worker
  using ((deleted_at IS NOT NULL));
create policy "workers read projects" on app.projects for select to control_worker
  using (true);

-- Plans of promotion that may be applied: what their hashes mean. The newest 100 of a project, for a day.
create table app.promotion_plans (
  id uuid not null default internal.new_id(),
  project_id uuid not null,
  plan_hash text not null,
  target_project_id uuid not null,
  options jsonb not null,
  planned_at timestamp with time zone not null default internal.now(),
  constraint promotion_plans_pkey PRIMARY KEY (id),
  constraint promotion_plans_one_per_hash UNIQUE (project_id, plan_hash),
  constraint promotion_plans_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint promotion_plans_target_project_id_fkey FOREIGN KEY (target_project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint promotion_plans_plan_hash_at_most_64 CHECK ((length(plan_hash) <= 64))
);
CREATE INDEX promotion_plans_of_target ON app.promotion_plans USING btree (target_project_id);
alter table app.promotion_plans enable row level security;
create policy "members read plans of their projects" on app.promotion_plans for select to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])))));

-- Fixed windows of the named limits: a window begins at its first counted attempt.
create table app.rate_limits (
  key text not null,
  started_at timestamp with time zone not null,
  count integer not null,
  constraint rate_limits_pkey PRIMARY KEY (key)
);
CREATE INDEX rate_limits_started ON app.rate_limits USING btree (started_at);
alter table app.rate_limits enable row level security;
create policy "the sign-in role adds to windows" on app.rate_limits for update to control_auth
  using (true)
  with check (true);
create policy "the sign-in role counts attempts" on app.rate_limits for select to control_auth
  using (true);
create policy "the sign-in role starts windows" on app.rate_limits for insert to control_auth
  with check (true);
create policy "workers delete old windows" on app.rate_limits for delete to control_worker
  using (true);
create policy "workers read old windows" on app.rate_limits for select to control_worker
  using (true);

-- The keys of SECRETS_KEY that are or were current, each with a value that only that key makes. unused_at: nothing is
-- encrypted under it any more. forgotten_at: an operator gave up the tokens that it signed.
create table app.secret_keys (
  id text not null,
  key_check text not null,
  is_current boolean not null,
  current_since timestamp with time zone not null default internal.now(),
  replaced_at timestamp with time zone,
  unused_at timestamp with time zone,
  forgotten_at timestamp with time zone,
  constraint secret_keys_pkey PRIMARY KEY (id),
  constraint secret_keys_current_is_used CHECK (((NOT is_current) OR ((unused_at IS NULL) AND (forgotten_at IS NULL)))),
  constraint secret_keys_id_form CHECK ((id ~ '^[0-9a-f]{8}$'::text)),
  constraint secret_keys_replaced_unless_current CHECK ((is_current = (replaced_at IS NULL)))
);
CREATE UNIQUE INDEX secret_keys_one_current ON app.secret_keys USING btree (is_current) WHERE is_current;
alter table app.secret_keys enable row level security;

-- Of each database: what was encrypted again under key_id, and what was still under another key when the last pass had
-- gone through it. error: why a pass could not.
create table app.secret_reseals (
  database_name text not null,
  key_id text not null,
  resealed integer not null default 0,
  remaining integer not null,
  error text,
  began_at timestamp with time zone not null,
  checked_at timestamp with time zone not null,
  constraint secret_reseals_pkey PRIMARY KEY (database_name)
);
alter table app.secret_reseals enable row level security;

-- Machines that make operator tokens. scopes and project_ids are the ceiling of their tokens, now and later;
-- project_ids null means every project of the organization.
create table app.service_accounts (
  id uuid not null default internal.new_id(),
  organization_id uuid not null,
  name text not null,
  scopes text[] not null,
  project_ids uuid[],
  is_active boolean not null default true,
  key_hash text not null,
  last_used_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint service_accounts_pkey PRIMARY KEY (id),
  constraint service_accounts_key_unique UNIQUE (key_hash),
  constraint service_accounts_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE CASCADE,
  -- 400 VALIDATION_ERROR name: must have 1 to 80 characters.
  constraint service_accounts_name_1_to_80 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 80))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint service_accounts_name_is_one_line CHECK (internal.is_line(name)),
  constraint service_accounts_project_ids_some CHECK ((cardinality(project_ids) > 0)),
  constraint service_accounts_scopes_some CHECK ((cardinality(scopes) > 0))
);
CREATE INDEX service_accounts_of_organization ON app.service_accounts USING btree (organization_id, created_at DESC, id DESC);
alter table app.service_accounts enable row level security;
create policy "the server reads service accounts" on app.service_accounts for select to control_auth
  using (true);
create policy "the server records the use of service accounts" on app.service_accounts for update to control_auth
  using (true)
  with check (true);

-- What the template database of each cluster holds; it is closed to connections and cannot be asked.
create table app.templates (
  cluster_id uuid not null,
  schema_version text not null,
  content_hash text not null,
  built_at timestamp with time zone not null default internal.now(),
  constraint templates_pkey PRIMARY KEY (cluster_id),
  constraint templates_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES app.clusters(id) ON DELETE CASCADE
);
alter table app.templates enable row level security;
create policy "workers read templates" on app.templates for select to control_worker
  using (true);
create policy "workers record templates" on app.templates for insert to control_worker
  with check (true);
create policy "workers renew templates" on app.templates for update to control_worker
  using (true)
  with check (true);

-- Projects that move to another server. following: the rows are there and changes follow; switched: the project is
-- served there, and what it left behind goes.
create table app.tenant_moves (
  project_id uuid not null,
  from_cluster_id uuid not null,
  to_cluster_id uuid not null,
  state text not null default 'copying'::text,
  started_at timestamp with time zone not null default internal.now(),
  constraint tenant_moves_pkey PRIMARY KEY (project_id),
  constraint tenant_moves_from_cluster_id_fkey FOREIGN KEY (from_cluster_id) REFERENCES app.clusters(id) ON DELETE RESTRICT,
  constraint tenant_moves_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint tenant_moves_to_cluster_id_fkey FOREIGN KEY (to_cluster_id) REFERENCES app.clusters(id) ON DELETE RESTRICT,
  constraint tenant_moves_state_known CHECK ((state = ANY (ARRAY['copying'::text, 'following'::text, 'switched'::text])))
);
CREATE INDEX tenant_moves_from ON app.tenant_moves USING btree (from_cluster_id);
CREATE INDEX tenant_moves_to ON app.tenant_moves USING btree (to_cluster_id);
alter table app.tenant_moves enable row level security;

-- Where each project's database is, how far its making has come, and which program it runs.
create table app.tenants (
  project_id uuid not null,
  cluster_id uuid not null,
  database_name text not null,
  status text not null default 'provisioning'::text,
  workflow_id text not null,
  attempt integer not null default 1,
  steps jsonb not null default '[]'::jsonb,
  error jsonb,
  started_at timestamp with time zone not null default internal.now(),
  moved_at timestamp with time zone not null default internal.now(),
  completed_at timestamp with time zone,
  schema_version text not null default ''::text,
  content_hash text not null default ''::text,
  migration_status text not null default 'current'::text,
  migration_error text,
  last_written_at timestamp with time zone not null default internal.now(),
  swept_at timestamp with time zone,
  -- When an empty database was last begun in place of one that was gone, or null.
  data_lost_at timestamp with time zone,
  -- Why the project is not served although its database is there: an operator has paused it, or it is moving to another
  -- server. Null: it is served.
  hold text,
  hold_note text,
  held_since timestamp with time zone,
  -- Connections that one server process may hold to the database at most; null: DATABASE_CONNECTIONS_PER_TENANT.
  most_connections integer,
  constraint tenants_pkey PRIMARY KEY (project_id),
  constraint tenants_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES app.clusters(id) ON DELETE RESTRICT,
  constraint tenants_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE,
  constraint tenants_hold_known CHECK ((hold = ANY (ARRAY['paused'::text, 'moving'::text]))),
  constraint tenants_hold_note_at_most_200 CHECK ((char_length(hold_note) <= 200)),
  constraint tenants_migration_status_known CHECK ((migration_status = ANY (ARRAY['current'::text, 'pending'::text, 'failed'::text]))),
  constraint tenants_most_connections_2_to_1000 CHECK (((most_connections >= 2) AND (most_connections <= 1000))),
  constraint tenants_status_known CHECK ((status = ANY (ARRAY['provisioning'::text, 'ready'::text, 'failed'::text])))
);
CREATE INDEX tenants_behind ON app.tenants USING btree (content_hash);
CREATE INDEX tenants_failed ON app.tenants USING btree (project_id) WHERE (status = 'failed'::text);
CREATE INDEX tenants_of_cluster ON app.tenants USING btree (cluster_id);
CREATE INDEX tenants_written ON app.tenants USING btree (last_written_at) WHERE (status = 'ready'::text);
alter table app.tenants enable row level security;
create policy "members read the tenants of their projects" on app.tenants for select to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])))));
create policy "the project cache reads tenants" on app.tenants for select to control_auth
  using (true);
create policy "workers delete the tenants of deleted projects" on app.tenants for delete to control_worker
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.deleted_at IS NOT NULL))));
create policy "workers read tenants" on app.tenants for select to control_worker
  using (true);
create policy "workers update tenants" on app.tenants for update to control_worker
  using (true)
  with check (true);

-- Requests that apps made on each day (UTC), and the bytes that were sent for them. A server process has a row of its
-- own, and writes what it has counted since the beginning of the day: a report that is repeated changes nothing, and
-- processes never wait for each other. The rows of a day that is over are joined under the nil uuid.
create table app.traffic_reports (
  project_id uuid not null,
  day date not null,
  reporter uuid not null,
  api_requests bigint not null,
  egress_bytes bigint not null,
  -- Those of api_requests that were answered with a status of 400 or more.
  failed_requests bigint not null default 0,
  constraint traffic_reports_pkey PRIMARY KEY (project_id, day, reporter),
  constraint traffic_reports_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE
);
CREATE INDEX traffic_reports_of_day ON app.traffic_reports USING btree (day);
alter table app.traffic_reports enable row level security;
create policy "members read the traffic of their projects" on app.traffic_reports for select to control_developer
  using ((project_id IN ( SELECT p.id
   FROM app.projects p
  WHERE (p.organization_id = ANY (( SELECT internal.organization_ids() AS organization_ids)::uuid[])))));

-- Who asked for access: at most 10,000 mailboxes, each with the note of its first request.
create table app.waitlist_entries (
  id uuid not null default internal.new_id(),
  email text not null,
  mailbox text not null,
  note text,
  created_at timestamp with time zone not null default internal.now(),
  constraint waitlist_entries_pkey PRIMARY KEY (id),
  constraint waitlist_entries_mailbox_unique UNIQUE (mailbox),
  constraint waitlist_entries_mailbox_is_one CHECK ((mailbox = internal.email_mailbox(email))),
  constraint waitlist_entries_note_at_most_500 CHECK ((char_length(note) <= 500))
);
CREATE INDEX waitlist_entries_oldest ON app.waitlist_entries USING btree (created_at, id);
alter table app.waitlist_entries enable row level security;
create policy "anybody joins the waitlist" on app.waitlist_entries for insert to control_auth
  with check (true);
create policy "sign-up counts the waitlist" on app.waitlist_entries for select to control_auth
  using (true);

-- The attempt log of each delivery, from 1.
create table app.webhook_attempts (
  delivery_id uuid not null,
  webhook_id uuid,
  n integer not null,
  at timestamp with time zone not null,
  status_code integer,
  error text,
  duration_ms integer not null,
  response_excerpt text,
  constraint webhook_attempts_pkey PRIMARY KEY (delivery_id, n),
  constraint webhook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES app.webhook_deliveries(id) ON DELETE CASCADE
);
alter table app.webhook_attempts enable row level security;
create policy "workers log attempts" on app.webhook_attempts for insert to control_worker
  with check (true);
create policy "workers read attempts" on app.webhook_attempts for select to control_worker
  using (true);

-- How far the trail in a project's own database has been reported: the position of a seal. A project that nobody
-- watches has no row.
create table app.webhook_audit_cursors (
  project_id uuid not null,
  "position" bigint not null,
  constraint webhook_audit_cursors_pkey PRIMARY KEY (project_id),
  constraint webhook_audit_cursors_project_id_fkey FOREIGN KEY (project_id) REFERENCES app.projects(id) ON DELETE CASCADE
);
alter table app.webhook_audit_cursors enable row level security;

-- How badly a webhook fares: deliveries that ended in dlq and attempts that failed, each since the last that was
-- delivered.
create table app.webhook_breakers (
  webhook_id uuid not null,
  dlq_in_row integer not null default 0,
  failed_in_row integer not null default 0,
  failing_since timestamp with time zone,
  degraded_at timestamp with time zone,
  probed_at timestamp with time zone,
  constraint webhook_breakers_pkey PRIMARY KEY (webhook_id),
  constraint webhook_breakers_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES app.webhooks(id) ON DELETE CASCADE
);
alter table app.webhook_breakers enable row level security;
create policy "workers begin to count" on app.webhook_breakers for insert to control_worker
  with check (true);
create policy "workers count" on app.webhook_breakers for update to control_worker
  using (true)
  with check (true);
create policy "workers read breakers" on app.webhook_breakers for select to control_worker
  using (true);

-- One per webhook and event; event_name is the type. payload is the body, built once: retries and replays are the same
-- to the byte. Those of a deleted webhook are removed by a worker.
create table app.webhook_deliveries (
  id uuid not null,
  webhook_id uuid not null,
  secret_id uuid not null,
  event_id uuid not null,
  event_name text not null,
  payload text not null,
  status text not null default 'pending'::text,
  failed_reason text,
  attempts integer not null default 0,
  series_attempts integer not null default 0,
  next_attempt_at timestamp with time zone,
  held_until timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  settled_at timestamp with time zone,
  constraint webhook_deliveries_pkey PRIMARY KEY (id),
  constraint webhook_deliveries_once_per_event UNIQUE (webhook_id, event_id),
  constraint webhook_deliveries_failed_reason_known CHECK ((failed_reason = ANY (ARRAY['attempts_exhausted'::text, 'held_too_long'::text, 'gone'::text, 'target_not_allowed'::text, 'subscription_disabled'::text]))),
  constraint webhook_deliveries_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'dlq'::text])))
);
CREATE INDEX webhook_deliveries_by_status ON app.webhook_deliveries USING btree (webhook_id, status, created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_created ON app.webhook_deliveries USING btree (created_at);
CREATE INDEX webhook_deliveries_held ON app.webhook_deliveries USING btree (webhook_id, held_until) WHERE (held_until IS NOT NULL);
CREATE INDEX webhook_deliveries_newest ON app.webhook_deliveries USING btree (webhook_id, created_at DESC, id DESC);
alter table app.webhook_deliveries enable row level security;
create policy "workers forget deliveries" on app.webhook_deliveries for delete to control_worker
  using (true);
create policy "workers read deliveries" on app.webhook_deliveries for select to control_worker
  using (true);
create policy "workers settle deliveries" on app.webhook_deliveries for update to control_worker
  using (true)
  with check (true);

-- Signing secrets, encrypted by the server. A delivery keeps the one that it was queued with.
create table app.webhook_secrets (
  id uuid not null,
  webhook_id uuid not null,
  secret_sealed text not null,
  created_at timestamp with time zone not null default internal.now(),
  replaced_at timestamp with time zone,
  constraint webhook_secrets_pkey PRIMARY KEY (id),
  constraint webhook_secrets_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES app.webhooks(id) ON DELETE CASCADE
);
CREATE INDEX webhook_secrets_of_webhook ON app.webhook_secrets USING btree (webhook_id);
alter table app.webhook_secrets enable row level security;
create policy "workers read signing secrets" on app.webhook_secrets for select to control_worker
  using (true);

-- Webhooks of the control plane: what happens to the projects of an organization. event_types {*} is every type but
-- audit.event.
create table app.webhooks (
  id uuid not null default internal.new_id(),
  organization_id uuid not null,
  event_types text[] not null,
  target_url text not null,
  status text not null default 'active'::text,
  secret_id uuid not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  -- Since when it watches audit.event, which projects report after a while; null while it does not.
  audit_since timestamp with time zone,
  constraint webhooks_pkey PRIMARY KEY (id),
  constraint webhooks_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES app.organizations(id) ON DELETE CASCADE,
  constraint webhooks_event_types_some CHECK ((cardinality(event_types) > 0)),
  constraint webhooks_status_known CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text, 'degraded'::text])))
);
CREATE INDEX webhooks_of_organization ON app.webhooks USING btree (organization_id, created_at DESC, id DESC);
alter table app.webhooks enable row level security;
create policy "workers read webhooks" on app.webhooks for select to control_worker
  using (true);
create policy "workers switch webhooks off" on app.webhooks for update to control_worker
  using (true)
  with check ((status <> 'active'::text));

-- Heartbeats. graphile-worker holds a dead worker's jobs for four hours; the sweep frees those of workers that are
-- silent here.
create table app.workers (
  id text not null,
  started_at timestamp with time zone not null default internal.now(),
  heartbeat_at timestamp with time zone not null default internal.now(),
  constraint workers_pkey PRIMARY KEY (id)
);
CREATE INDEX workers_heartbeat ON app.workers USING btree (heartbeat_at);
alter table app.workers enable row level security;
create policy "workers delete dead workers" on app.workers for delete to control_worker
  using (true);
create policy "workers read heartbeats" on app.workers for select to control_worker
  using (true);
create policy "workers send first heartbeats" on app.workers for insert to control_worker
  with check (true);
create policy "workers send heartbeats" on app.workers for update to control_worker
  using (true)
  with check (true);

-- Files of sql/, functions/, policies/ and seeds applied here, by content hash.
create table ops.files (
  path text not null,
  hash text not null,
  applied_at timestamp with time zone not null default now(),
  constraint files_pkey PRIMARY KEY (path)
);

-- Grants that a policy file gave, so that those it no longer says are revoked. A DBA's own are not here.
create table ops.grants (
  path text not null,
  kind text not null,
  identity text not null,
  columns text not null default ''::text,
  grantee text not null,
  privilege text not null,
  constraint grants_path_fkey FOREIGN KEY (path) REFERENCES ops.files(path) ON DELETE CASCADE
);

-- One row: the fingerprint of what the loader left here, the checksum that it had then (sql/cluster/checksum.sql), and
-- in a template the fingerprint of the template before. While the checksum is the same, nobody has changed what the
-- loader manages. Numbers of a fixed size, so that there is no TOAST table.
create table ops.loaded (
  fingerprint uuid not null,
  checksum uuid not null,
  former uuid
);

-- Functions (as regprocedure) and triggers ("name on schema.table") that a file made: what it no longer says is
-- dropped.
create table ops.objects (
  path text not null,
  kind text not null,
  identity text not null,
  constraint objects_path_fkey FOREIGN KEY (path) REFERENCES ops.files(path) ON DELETE CASCADE,
  constraint objects_kind_known CHECK ((kind = ANY (ARRAY['function'::text, 'trigger'::text])))
);

create table ops.schema_migrations (
  version character varying(128) not null,
  constraint schema_migrations_pkey PRIMARY KEY (version)
);
