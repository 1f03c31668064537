-- The schema of a project's database, to be read: tables, columns, constraints, indexes, policies. Made from the catalog by npm run docs.
-- Migrations are in db/tenant/migrations, functions and triggers in functions/tenant, the sources of policies in policies/tenant.

-- How far a backfill is, noted in the transaction of each step.
create table app.achievement_backfills (
  operation_id uuid not null,
  achievement_id uuid not null,
  cursor_id uuid,
  done bigint not null default 0,
  unlocked bigint not null default 0,
  is_over boolean not null default false,
  created_at timestamp with time zone not null default internal.now(),
  constraint achievement_backfills_pkey PRIMARY KEY (operation_id),
  constraint achievement_backfills_achievement_id_fkey FOREIGN KEY (achievement_id) REFERENCES app.achievements(id) ON DELETE CASCADE
);
CREATE INDEX achievement_backfills_of_achievement ON app.achievement_backfills USING btree (achievement_id);
alter table app.achievement_backfills enable row level security;

create table app.achievements (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  description text,
  icon_url text,
  xp_reward bigint not null default 0,
  criteria jsonb not null,
  is_hidden boolean not null default false,
  sort_order integer not null default 0,
  is_active boolean not null default true,
  -- How many of so many users had it when it was last counted: its rarity. At most an hour old.
  unlocks bigint not null default 0,
  users bigint not null default 0,
  counted_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint achievements_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: An achievement with this key exists.
  constraint achievements_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint achievements_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR icon_url: must have at most 2000 characters.
  constraint achievements_icon_url_at_most_2000 CHECK ((char_length(icon_url) <= 2000)),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint achievements_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint achievements_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint achievements_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR xp_reward: must be 0 to 1000000000.
  constraint achievements_xp_reward_0_to_1000000000 CHECK (((xp_reward >= 0) AND (xp_reward <= 1000000000)))
);
CREATE INDEX achievements_in_order ON app.achievements USING btree (sort_order, id);
CREATE INDEX achievements_watching ON app.achievements USING btree (((criteria ->> 'type'::text)), ((criteria ->> 'event_name'::text))) WHERE is_active;
alter table app.achievements enable row level security;
create policy "administrators add achievements" on app.achievements for insert to app_admin
  with check (true);
create policy "administrators change achievements" on app.achievements for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete achievements" on app.achievements for delete to app_admin
  using (true);
create policy "administrators read achievements" on app.achievements for select to app_admin
  using (true);
create policy "dashboards read every row" on app.achievements for select to app_dashboard
  using (true);
create policy "users read achievements" on app.achievements for select to app_user
  using (true);

-- Calls of providers. A running invocation holds reserved_usd of the budget of its prompt until it is finished or
-- expires_at has passed. Kept for 90 days.
create table app.ai_invocations (
  id uuid not null default internal.new_id(),
  kind text not null,
  prompt_id uuid,
  prompt text,
  version integer,
  provider text not null,
  model text not null,
  app_user_id uuid,
  status text not null default 'running'::text,
  error_code text,
  input_usd numeric not null,
  output_usd numeric not null,
  reserved_usd numeric not null default 0,
  input_tokens bigint,
  output_tokens bigint,
  is_estimated boolean not null default false,
  cost_usd numeric,
  finish_reason text,
  charge_id uuid,
  moderates_output boolean not null default false,
  payload jsonb,
  created_at timestamp with time zone not null default internal.now(),
  expires_at timestamp with time zone not null,
  finished_at timestamp with time zone,
  -- Whether the answer is passed on piece by piece, so that its user may have it before its end is recorded.
  is_streamed boolean not null default false,
  constraint ai_invocations_pkey PRIMARY KEY (id),
  constraint ai_invocations_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint ai_invocations_kind_known CHECK ((kind = ANY (ARRAY['invoke'::text, 'evaluate'::text, 'messages'::text, 'embeddings'::text]))),
  constraint ai_invocations_status_known CHECK ((status = ANY (ARRAY['running'::text, 'succeeded'::text, 'rejected'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE INDEX ai_invocations_by_status ON app.ai_invocations USING btree (status, created_at DESC, id DESC);
CREATE INDEX ai_invocations_newest ON app.ai_invocations USING btree (created_at DESC, id DESC);
CREATE INDEX ai_invocations_of_prompt ON app.ai_invocations USING btree (prompt, created_at DESC, id DESC);
CREATE INDEX ai_invocations_of_user ON app.ai_invocations USING btree (app_user_id, created_at DESC, id DESC);
CREATE INDEX ai_invocations_running ON app.ai_invocations USING btree (prompt_id) WHERE (status = 'running'::text);
alter table app.ai_invocations enable row level security;
create policy "administrators read invocations" on app.ai_invocations for select to app_admin
  using (true);
create policy "dashboards read every row" on app.ai_invocations for select to app_dashboard
  using (true);
create policy "users read their own invocations" on app.ai_invocations for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- List prices of models in USD per million tokens, as the providers published them on as_of. Filled by
-- sql/seeds/tenant/ai_prices.sql.
create table app.ai_prices (
  provider text not null,
  model text not null,
  input_usd numeric not null,
  output_usd numeric not null,
  is_multimodal boolean not null,
  as_of date not null,
  constraint ai_prices_pkey PRIMARY KEY (provider, model),
  constraint ai_prices_input_usd_not_negative CHECK ((input_usd >= (0)::numeric)),
  constraint ai_prices_output_usd_not_negative CHECK ((output_usd >= (0)::numeric))
);
alter table app.ai_prices enable row level security;

-- What a prompt has cost on a day (UTC), and how many calls that were.
create table app.ai_prompt_days (
  prompt_id uuid not null,
  day date not null,
  spend_usd numeric not null default 0,
  calls bigint not null default 0,
  constraint ai_prompt_days_pkey PRIMARY KEY (prompt_id, day),
  constraint ai_prompt_days_prompt_id_fkey FOREIGN KEY (prompt_id) REFERENCES app.ai_prompts(id) ON DELETE CASCADE
);
alter table app.ai_prompt_days enable row level security;
create policy "administrators read spend" on app.ai_prompt_days for select to app_admin
  using (true);
create policy "dashboards read every row" on app.ai_prompt_days for select to app_dashboard
  using (true);

-- The configuration of each version of a prompt: the newest 1000.
create table app.ai_prompt_versions (
  prompt_id uuid not null,
  version integer not null,
  config jsonb not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint ai_prompt_versions_pkey PRIMARY KEY (prompt_id, version),
  constraint ai_prompt_versions_prompt_id_fkey FOREIGN KEY (prompt_id) REFERENCES app.ai_prompts(id) ON DELETE CASCADE
);
alter table app.ai_prompt_versions enable row level security;
create policy "administrators read versions" on app.ai_prompt_versions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.ai_prompt_versions for select to app_dashboard
  using (true);

-- Prompts of the project with their budgets. At most 500.
create table app.ai_prompts (
  id uuid not null default internal.new_id(),
  name text not null,
  version integer not null default 1,
  provider text not null,
  model text not null,
  system_prompt text,
  max_tokens integer not null default 4096,
  rate_limit jsonb,
  client_invokable boolean not null default false,
  description text,
  log_payloads boolean not null default false,
  cost jsonb,
  budget_usd numeric,
  budget_period text not null default 'monthly'::text,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint ai_prompts_pkey PRIMARY KEY (id),
  constraint ai_prompts_name_unique UNIQUE (name),
  -- 400 INVALID_INPUT budget_period: must be daily, monthly or total.
  constraint ai_prompts_budget_period_known CHECK ((budget_period = ANY (ARRAY['daily'::text, 'monthly'::text, 'total'::text]))),
  -- 400 INVALID_INPUT budget_usd: must be a number from 0.
  constraint ai_prompts_budget_usd_not_negative CHECK ((budget_usd >= (0)::numeric)),
  -- 400 INVALID_INPUT cost: must be {currency_code, amount 1 to 2000000000}.
  constraint ai_prompts_cost_has_amount CHECK (((cost IS NULL) OR (((cost - '{currency_code,amount}'::text[]) = '{}'::jsonb) AND COALESCE(((char_length((cost ->> 'currency_code'::text)) >= 1) AND (char_length((cost ->> 'currency_code'::text)) <= 128)), false) AND COALESCE((((cost ->> 'amount'::text) ~ '^[0-9]{1,10}$'::text) AND ((((cost ->> 'amount'::text))::bigint >= 1) AND (((cost ->> 'amount'::text))::bigint <= 2000000000))), false)))),
  -- 400 INVALID_INPUT description: must have at most 2000 characters.
  constraint ai_prompts_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 INVALID_INPUT max_tokens: must be a whole number of 1 to 200000.
  constraint ai_prompts_max_tokens_1_to_200000 CHECK (((max_tokens >= 1) AND (max_tokens <= 200000))),
  -- 400 INVALID_INPUT model: must name a model, in at most 200 characters.
  constraint ai_prompts_model_names_one CHECK (((char_length(model) <= 200) AND (regexp_replace(model, '^models/'::text, ''::text) ~ '[^/.]'::text))),
  -- 400 INVALID_INPUT name: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint ai_prompts_name_form CHECK ((name ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 INVALID_INPUT rate_limit: must be {window 1 to 86400, max 1 to 1000000, key user, ip or project}.
  constraint ai_prompts_rate_limit_has_bounds CHECK (((rate_limit IS NULL) OR (((rate_limit - '{window,max,key}'::text[]) = '{}'::jsonb) AND COALESCE((((rate_limit ->> 'window'::text) ~ '^[0-9]{1,5}$'::text) AND ((((rate_limit ->> 'window'::text))::integer >= 1) AND (((rate_limit ->> 'window'::text))::integer <= 86400))), false) AND COALESCE((((rate_limit ->> 'max'::text) ~ '^[0-9]{1,7}$'::text) AND ((((rate_limit ->> 'max'::text))::integer >= 1) AND (((rate_limit ->> 'max'::text))::integer <= 1000000))), false) AND COALESCE(((rate_limit ->> 'key'::text) = ANY (ARRAY['user'::text, 'ip'::text, 'project'::text])), false)))),
  -- 400 INVALID_INPUT system_prompt: must have at most 100000 characters.
  constraint ai_prompts_system_prompt_at_most_100000 CHECK ((char_length(system_prompt) <= 100000))
);
CREATE INDEX ai_prompts_of_provider ON app.ai_prompts USING btree (provider);
alter table app.ai_prompts enable row level security;
create policy "administrators delete prompts" on app.ai_prompts for delete to app_admin
  using (true);
create policy "administrators read prompts" on app.ai_prompts for select to app_admin
  using (true);
create policy "administrators set budgets" on app.ai_prompts for update to app_admin
  using (true)
  with check (true);
create policy "dashboards read every row" on app.ai_prompts for select to app_dashboard
  using (true);

-- Registered AI providers. api_key_sealed is the API key, encrypted by the server under the key that key_id names; it
-- is never returned.
create table app.ai_providers (
  id uuid not null default internal.new_id(),
  name text not null,
  api_key_sealed text not null,
  key_id text not null,
  api_key_preview text not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint ai_providers_pkey PRIMARY KEY (id),
  constraint ai_providers_name_unique UNIQUE (name),
  -- 400 INVALID_INPUT name: must be anthropic, openai, google or mistral.
  constraint ai_providers_name_known CHECK ((name = ANY (ARRAY['anthropic'::text, 'openai'::text, 'google'::text, 'mistral'::text])))
);
alter table app.ai_providers enable row level security;
create policy "administrators read providers" on app.ai_providers for select to app_admin
  using (true);
create policy "administrators register providers" on app.ai_providers for insert to app_admin
  with check (true);
create policy "administrators revoke providers" on app.ai_providers for delete to app_admin
  using (true);
create policy "administrators rotate keys" on app.ai_providers for update to app_admin
  using (true)
  with check (true);
create policy "dashboards read every row" on app.ai_providers for select to app_dashboard
  using (true);
create policy "the server reads sealed keys" on app.ai_providers for select to app_worker
  using (true);

-- Times that apps were in use, for analytics: not sign-in sessions. A row without an end whose last_seen_at is 30
-- minutes old has ended then.
create table app.app_sessions (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  started_at timestamp with time zone not null,
  last_seen_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  end_reason text,
  platform text,
  app_version text,
  os_version text,
  device_model text,
  locale text,
  constraint app_sessions_pkey PRIMARY KEY (id),
  constraint app_sessions_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint app_sessions_end_after_start CHECK ((ended_at >= started_at)),
  constraint app_sessions_end_reason_known CHECK ((end_reason = ANY (ARRAY['client'::text, 'timeout'::text, 'replaced'::text]))),
  constraint app_sessions_ended_for_a_reason CHECK (((ended_at IS NULL) = (end_reason IS NULL))),
  constraint app_sessions_seen_after_start CHECK ((last_seen_at >= started_at))
);
CREATE INDEX app_sessions_newest ON app.app_sessions USING btree (started_at DESC, id DESC);
CREATE INDEX app_sessions_of_user ON app.app_sessions USING btree (app_user_id, started_at DESC);
CREATE INDEX app_sessions_open ON app.app_sessions USING btree (app_user_id) WHERE (ended_at IS NULL);
alter table app.app_sessions enable row level security;
create policy "administrators read every app session" on app.app_sessions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.app_sessions for select to app_dashboard
  using (true);
create policy "users read their own app sessions" on app.app_sessions for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

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
create policy "administrators read digests that wait" on app.audit_digests for select to app_admin
  using (true);

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
create policy "administrators read the audit trail" on app.audit_events for select to app_admin
  using (true);
create policy "dashboards read every row" on app.audit_events for select to app_dashboard
  using (true);

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
create policy "administrators read where seals begin and end" on app.audit_heads for select to app_admin
  using (true);

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
create policy "administrators read seals" on app.audit_seals for select to app_admin
  using (true);

-- Who wants nothing to do with whom. It stands apart from friendships, and holds both ways.
create table app.blocks (
  blocker uuid not null,
  blocked uuid not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint blocks_pkey PRIMARY KEY (blocker, blocked),
  constraint blocks_blocked_fkey FOREIGN KEY (blocked) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint blocks_blocker_fkey FOREIGN KEY (blocker) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint blocks_never_of_oneself CHECK ((blocker <> blocked))
);
CREATE INDEX blocks_newest ON app.blocks USING btree (blocker, created_at DESC, blocked DESC);
CREATE INDEX blocks_of_blocked ON app.blocks USING btree (blocked, blocker);
alter table app.blocks enable row level security;
create policy "administrators read every block" on app.blocks for select to app_admin
  using (true);
create policy "dashboards read every row" on app.blocks for select to app_dashboard
  using (true);
create policy "users read whom they blocked" on app.blocks for select to app_user
  using ((blocker = ( SELECT internal.user_id() AS user_id)));

-- What a bundle holds, in its order. Bundles in bundles, three deep at most, never in a circle.
create table app.bundle_contents (
  bundle_id uuid not null,
  content_item_id uuid not null,
  quantity integer not null,
  "position" integer not null,
  constraint bundle_contents_pkey PRIMARY KEY (bundle_id, content_item_id),
  constraint bundle_contents_bundle_id_fkey FOREIGN KEY (bundle_id) REFERENCES app.catalog_items(id) ON DELETE CASCADE,
  -- 409 ITEM_IN_USE: A bundle contains this item. Set is_active to false instead.
  constraint bundle_contents_content_item_id_fkey FOREIGN KEY (content_item_id) REFERENCES app.catalog_items(id) ON DELETE RESTRICT,
  constraint bundle_contents_quantity_1_to_10000 CHECK (((quantity >= 1) AND (quantity <= 10000)))
);
CREATE INDEX bundle_contents_of_item ON app.bundle_contents USING btree (content_item_id);
alter table app.bundle_contents enable row level security;
create policy "administrators add contents of bundles" on app.bundle_contents for insert to app_admin
  with check (true);
create policy "administrators change contents of bundles" on app.bundle_contents for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete contents of bundles" on app.bundle_contents for delete to app_admin
  using (true);
create policy "administrators read contents of bundles" on app.bundle_contents for select to app_admin
  using (true);
create policy "dashboards read every row" on app.bundle_contents for select to app_dashboard
  using (true);
create policy "users read contents of bundles" on app.bundle_contents for select to app_user
  using (true);

-- Token buckets: "channel push" and the like for all that a channel sends, and the id of each campaign with a throttle.
-- "campaigns" is a lock.
create table app.campaign_buckets (
  name text not null,
  tokens numeric not null,
  filled_at timestamp with time zone not null,
  constraint campaign_buckets_pkey PRIMARY KEY (name)
);
alter table app.campaign_buckets enable row level security;

-- @name push_counts
-- Counts of the deliveries of a campaign or an automation, by variant and hour. Each is the sum of its slots, of which concurrent writers take
-- different ones.
create table app.campaign_counts (
  slot bigint not null generated always as identity,
  source_id uuid not null,
  hour timestamp with time zone not null,
  variant text not null,
  targeted bigint not null default 0,
  sent bigint not null default 0,
  failed bigint not null default 0,
  skipped bigint not null default 0,
  opened bigint not null default 0,
  converted bigint not null default 0,
  clicked bigint not null default 0,
  constraint campaign_counts_pkey PRIMARY KEY (slot)
);
CREATE INDEX campaign_counts_of_source ON app.campaign_counts USING btree (source_id, hour, variant);
alter table app.campaign_counts enable row level security;
create policy "administrators read counts" on app.campaign_counts for select to app_admin
  using (true);
create policy "dashboards read every row" on app.campaign_counts for select to app_dashboard
  using (true);

-- @name push_deliveries
-- One message to one user: pending, sending (queued, or marked before a provider is called), then sent, skipped or failed. Kept for 90 days.
create table app.campaign_deliveries (
  id uuid not null default internal.new_id(),
  queue_id uuid not null,
  channel text not null,
  campaign_id uuid,
  automation_id uuid,
  app_user_id uuid not null,
  variant text,
  message jsonb,
  context jsonb,
  is_test boolean not null default false,
  inbox boolean not null default true,
  status text not null default 'pending'::text,
  reason text,
  code text,
  tries smallint not null default 0,
  due_at timestamp with time zone not null,
  attempt_id uuid,
  attempts jsonb not null default '[]'::jsonb,
  sent_at timestamp with time zone,
  received_at timestamp with time zone,
  opened_at timestamp with time zone,
  clicked_at timestamp with time zone,
  converted_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  constraint campaign_deliveries_pkey PRIMARY KEY (id),
  constraint campaign_deliveries_once_per_campaign UNIQUE (campaign_id, app_user_id),
  constraint campaign_deliveries_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint campaign_deliveries_automation_id_fkey FOREIGN KEY (automation_id) REFERENCES app.push_automations(id) ON DELETE CASCADE,
  constraint campaign_deliveries_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES app.campaigns(id) ON DELETE CASCADE,
  constraint campaign_deliveries_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'sending'::text, 'sent'::text, 'opened'::text, 'converted'::text, 'skipped'::text, 'failed'::text])))
);
CREATE INDEX campaign_deliveries_by_status ON app.campaign_deliveries USING btree (campaign_id, status, app_user_id) WHERE (campaign_id IS NOT NULL);
CREATE INDEX campaign_deliveries_created ON app.campaign_deliveries USING brin (created_at);
CREATE INDEX campaign_deliveries_due ON app.campaign_deliveries USING btree (queue_id, due_at, id) WHERE (status = ANY (ARRAY['pending'::text, 'sending'::text]));
CREATE INDEX campaign_deliveries_of_automation ON app.campaign_deliveries USING btree (automation_id, app_user_id) WHERE (automation_id IS NOT NULL);
CREATE INDEX campaign_deliveries_of_user ON app.campaign_deliveries USING btree (app_user_id, id);
alter table app.campaign_deliveries enable row level security;
create policy "administrators read deliveries" on app.campaign_deliveries for select to app_admin
  using (true);
create policy "dashboards read every row" on app.campaign_deliveries for select to app_dashboard
  using (true);

-- How far a campaign's audience has become deliveries: users up to cursor_id. The audience is compiled once, when the
-- campaign starts.
create table app.campaign_plans (
  campaign_id uuid not null,
  query text not null,
  parameters jsonb not null,
  user_ids uuid[],
  cursor_id uuid not null default '00000000-0000-0000-0000-000000000000'::uuid,
  planned_at timestamp with time zone,
  constraint campaign_plans_pkey PRIMARY KEY (campaign_id),
  constraint campaign_plans_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES app.campaigns(id) ON DELETE CASCADE
);
alter table app.campaign_plans enable row level security;

-- @name push_campaigns
-- One message to many users, once, by a channel. A deleted campaign keeps its row until its deliveries are deleted.
create table app.campaigns (
  id uuid not null default internal.new_id(),
  channel text not null,
  workflow_id text,
  name text not null,
  -- What is sent: its keys are those of the channel. Each variant has one in its message, with the keys that differ.
  message jsonb not null,
  audience jsonb not null,
  exclude_segment_id uuid,
  send_at timestamp with time zone,
  mode text not null default 'absolute'::text,
  local_time text,
  weekdays integer[],
  throttle_per_minute integer,
  quiet_hours jsonb,
  frequency_cap jsonb,
  variants jsonb not null default '[]'::jsonb,
  goal_event text,
  inbox boolean not null default true,
  status text not null default 'draft'::text,
  failure text,
  is_deleted boolean not null default false,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  scheduled_at timestamp with time zone,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  constraint campaigns_pkey PRIMARY KEY (id),
  -- 409 ALREADY_SCHEDULED workflow_id: A campaign with this workflow id exists.
  constraint campaigns_workflow_id_unique UNIQUE (channel, workflow_id),
  constraint campaigns_mode_known CHECK ((mode = ANY (ARRAY['absolute'::text, 'user_local'::text]))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint campaigns_name_is_one_line CHECK (internal.is_line(name)),
  constraint campaigns_status_known CHECK ((status = ANY (ARRAY['draft'::text, 'scheduled'::text, 'sending'::text, 'paused'::text, 'sent'::text, 'cancelled'::text, 'failed'::text])))
);
CREATE INDEX campaigns_by_status ON app.campaigns USING btree (channel, status, created_at DESC, id DESC);
CREATE INDEX campaigns_of_channel ON app.campaigns USING btree (channel, created_at DESC, id DESC);
CREATE INDEX campaigns_with_goal ON app.campaigns USING btree (goal_event) WHERE (goal_event IS NOT NULL);
alter table app.campaigns enable row level security;
create policy "administrators read campaigns" on app.campaigns for select to app_admin
  using (true);
create policy "dashboards read every row" on app.campaigns for select to app_dashboard
  using (true);

-- What an item costs, in each currency that buys it: one of them is paid.
create table app.catalog_item_prices (
  catalog_item_id uuid not null,
  currency_code text not null,
  price bigint not null,
  constraint catalog_item_prices_pkey PRIMARY KEY (catalog_item_id, currency_code),
  constraint catalog_item_prices_catalog_item_id_fkey FOREIGN KEY (catalog_item_id) REFERENCES app.catalog_items(id) ON DELETE CASCADE,
  -- 409 CURRENCY_IN_USE: Items have a price in this currency. Set is_active to false instead.
  constraint catalog_item_prices_currency_code_fkey FOREIGN KEY (currency_code) REFERENCES app.currencies(code) ON DELETE RESTRICT,
  constraint catalog_item_prices_price_0_to_2000000000 CHECK (((price >= 0) AND (price <= 2000000000)))
);
CREATE INDEX catalog_item_prices_of_currency ON app.catalog_item_prices USING btree (currency_code);
alter table app.catalog_item_prices enable row level security;
create policy "administrators add prices" on app.catalog_item_prices for insert to app_admin
  with check (true);
create policy "administrators change prices" on app.catalog_item_prices for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete prices" on app.catalog_item_prices for delete to app_admin
  using (true);
create policy "administrators read prices" on app.catalog_item_prices for select to app_admin
  using (true);
create policy "dashboards read every row" on app.catalog_item_prices for select to app_dashboard
  using (true);
create policy "users read prices" on app.catalog_item_prices for select to app_user
  using (true);

-- What users can have: consumables, durables, bundles of others, packs of currency. At most 5,000.
create table app.catalog_items (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  item_type text not null,
  description text,
  icon_url text,
  category text,
  tags text[] not null default '{}'::text[],
  metadata jsonb not null default '{}'::jsonb,
  max_owned integer,
  duration_seconds integer,
  use_effect jsonb,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint catalog_items_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: An item with this key exists.
  constraint catalog_items_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR category: must have 1 to 100 characters.
  constraint catalog_items_category_1_to_100 CHECK (((char_length(category) >= 1) AND (char_length(category) <= 100))),
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint catalog_items_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR max_owned: must be 1 for a durable.
  constraint catalog_items_durable_once CHECK (((item_type <> 'durable'::text) OR (max_owned = 1))),
  constraint catalog_items_duration_seconds_at_least_1 CHECK ((duration_seconds >= 1)),
  -- 400 VALIDATION_ERROR icon_url: must have at most 2000 characters.
  constraint catalog_items_icon_url_at_most_2000 CHECK ((char_length(icon_url) <= 2000)),
  -- 400 VALIDATION_ERROR item_type: must be consumable, durable, bundle or currency_pack.
  constraint catalog_items_item_type_known CHECK ((item_type = ANY (ARRAY['consumable'::text, 'durable'::text, 'bundle'::text, 'currency_pack'::text]))),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint catalog_items_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  constraint catalog_items_max_owned_at_least_1 CHECK ((max_owned >= 1)),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint catalog_items_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint catalog_items_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR tags: must have at most 50 items.
  constraint catalog_items_tags_at_most_50 CHECK ((cardinality(tags) <= 50)),
  -- 400 VALIDATION_ERROR use_effect: must be an object.
  constraint catalog_items_use_effect_is_object CHECK ((jsonb_typeof(use_effect) = 'object'::text))
);
CREATE INDEX catalog_items_newest ON app.catalog_items USING btree (created_at DESC, id DESC);
CREATE INDEX catalog_items_of_category ON app.catalog_items USING btree (category, created_at DESC, id DESC);
CREATE INDEX catalog_items_tagged ON app.catalog_items USING gin (tags);
alter table app.catalog_items enable row level security;
create policy "administrators add items" on app.catalog_items for insert to app_admin
  with check (true);
create policy "administrators change items" on app.catalog_items for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete items" on app.catalog_items for delete to app_admin
  using (true);
create policy "administrators read items" on app.catalog_items for select to app_admin
  using (true);
create policy "dashboards read every row" on app.catalog_items for select to app_dashboard
  using (true);
create policy "users read items" on app.catalog_items for select to app_user
  using (true);

create table app.challenge_participants (
  challenge_id uuid not null,
  app_user_id uuid not null,
  joined_at timestamp with time zone not null default internal.now(),
  progress bigint not null default 0,
  -- When progress came to what it is: who was first is ahead.
  reached_at timestamp with time zone not null default internal.now(),
  status text not null default 'in_progress'::text,
  completed_at timestamp with time zone,
  -- The team, in a challenge of teams: a group that the user is in, or was in when the challenge ended. Null: none yet.
  group_id uuid,
  constraint challenge_participants_pkey PRIMARY KEY (app_user_id, challenge_id),
  constraint challenge_participants_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint challenge_participants_challenge_id_fkey FOREIGN KEY (challenge_id) REFERENCES app.challenges(id) ON DELETE CASCADE
);
CREATE INDEX challenge_participants_by_progress ON app.challenge_participants USING btree (challenge_id, progress DESC, reached_at, app_user_id);
CREATE INDEX challenge_participants_completed ON app.challenge_participants USING brin (completed_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX challenge_participants_joined ON app.challenge_participants USING brin (joined_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX challenge_participants_of_team ON app.challenge_participants USING btree (challenge_id, group_id) INCLUDE (app_user_id, progress, status) WHERE (group_id IS NOT NULL);
alter table app.challenge_participants enable row level security;
create policy "administrators read every participant" on app.challenge_participants for select to app_admin
  using (true);
create policy "dashboards read every row" on app.challenge_participants for select to app_dashboard
  using (true);
create policy "users read their own participation" on app.challenge_participants for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- How far a recount is, noted in the transaction of each step.
create table app.challenge_recounts (
  operation_id uuid not null,
  challenge_id uuid not null,
  cursor_id uuid,
  done bigint not null default 0,
  changed bigint not null default 0,
  is_over boolean not null default false,
  created_at timestamp with time zone not null default internal.now(),
  constraint challenge_recounts_pkey PRIMARY KEY (operation_id),
  constraint challenge_recounts_challenge_id_fkey FOREIGN KEY (challenge_id) REFERENCES app.challenges(id) ON DELETE CASCADE
);
CREATE INDEX challenge_recounts_of_challenge ON app.challenge_recounts USING btree (challenge_id);
alter table app.challenge_recounts enable row level security;

-- Which teams came to the goal of a challenge, for good: their members are completed and rewarded by and by.
create table app.challenge_teams (
  challenge_id uuid not null,
  group_id uuid not null,
  reached_at timestamp with time zone not null default internal.now(),
  constraint challenge_teams_pkey PRIMARY KEY (challenge_id, group_id),
  constraint challenge_teams_challenge_id_fkey FOREIGN KEY (challenge_id) REFERENCES app.challenges(id) ON DELETE CASCADE
);
alter table app.challenge_teams enable row level security;

create table app.challenges (
  id uuid not null default internal.new_id(),
  name text not null,
  description text,
  start_at timestamp with time zone not null,
  end_at timestamp with time zone not null,
  goal_type text not null,
  goal_value bigint not null,
  -- Null on legacy challenges of event_count, which never complete.
  event_name text,
  reward_xp bigint not null default 0,
  reward_achievement_id uuid,
  reward jsonb,
  segment_id uuid,
  recurrence text not null default 'none'::text,
  parent_id uuid,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  team_mode text not null default 'none'::text,
  -- Of a turn of a monthly challenge: the beginning of the window that the turns are counted from, which is turn 0. A
  -- short month may move a turn to another day.
  first_start_at timestamp with time zone,
  -- As first_start_at, the end.
  first_end_at timestamp with time zone,
  turn integer,
  constraint challenges_pkey PRIMARY KEY (id),
  -- 400 VALIDATION_ERROR start_at: another turn of this challenge starts then.
  constraint challenges_one_per_turn UNIQUE (parent_id, start_at),
  constraint challenges_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES app.challenges(id) ON DELETE SET NULL,
  constraint challenges_reward_achievement_id_fkey FOREIGN KEY (reward_achievement_id) REFERENCES app.achievements(id) ON DELETE SET NULL,
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint challenges_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR end_at: must be after start_at.
  constraint challenges_end_after_start CHECK ((end_at > start_at)),
  -- 400 VALIDATION_ERROR event_name: must have 1 to 255 characters, no white space at either end.
  constraint challenges_event_name_form CHECK ((((char_length(event_name) >= 1) AND (char_length(event_name) <= 255)) AND (event_name !~ '^\s|\s$'::text))),
  constraint challenges_event_name_with_event_count CHECK (((event_name IS NULL) OR (goal_type = 'event_count'::text))),
  -- 400 VALIDATION_ERROR goal_type: must be event_count, xp_earned or streak_maintained.
  constraint challenges_goal_type_known CHECK ((goal_type = ANY (ARRAY['event_count'::text, 'xp_earned'::text, 'streak_maintained'::text]))),
  -- 400 VALIDATION_ERROR goal_value: must be 1 to 1000000000000.
  constraint challenges_goal_value_1_to_1000000000000 CHECK (((goal_value >= 1) AND (goal_value <= '1000000000000'::bigint))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint challenges_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint challenges_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR recurrence: must be none, daily, weekly or monthly.
  constraint challenges_recurrence_known CHECK ((recurrence = ANY (ARRAY['none'::text, 'daily'::text, 'weekly'::text, 'monthly'::text]))),
  -- 400 VALIDATION_ERROR reward_xp: must be 0 to 1000000000.
  constraint challenges_reward_xp_0_to_1000000000 CHECK (((reward_xp >= 0) AND (reward_xp <= 1000000000))),
  -- 400 VALIDATION_ERROR team_mode: must be none or group.
  constraint challenges_team_mode_known CHECK ((team_mode = ANY (ARRAY['none'::text, 'group'::text])))
);
CREATE INDEX challenges_counting ON app.challenges USING btree (event_name, end_at) WHERE (is_active AND (goal_type = 'event_count'::text));
CREATE INDEX challenges_newest ON app.challenges USING btree (start_at DESC, id DESC);
CREATE INDEX challenges_reward_achievement ON app.challenges USING btree (reward_achievement_id);
CREATE INDEX challenges_watching ON app.challenges USING btree (end_at) WHERE is_active;
alter table app.challenges enable row level security;
create policy "administrators add challenges" on app.challenges for insert to app_admin
  with check (true);
create policy "administrators change challenges" on app.challenges for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete challenges" on app.challenges for delete to app_admin
  using (true);
create policy "administrators read challenges" on app.challenges for select to app_admin
  using (true);
create policy "dashboards read every row" on app.challenges for select to app_dashboard
  using (true);

-- The developer's columns of each collection, without the server-managed ones. sql_type is the type in the table: of a
-- vector it is extensions.vector(n), or real[] where pgvector was not there.
create table app.collection_columns (
  id uuid not null default internal.new_id(),
  collection_id uuid not null,
  name text not null,
  "position" integer not null,
  type text not null,
  sql_type text not null,
  nullable boolean not null default true,
  default_value json,
  is_unique boolean not null default false,
  max_length integer,
  min numeric,
  max numeric,
  enum json,
  references_collection_id uuid,
  on_delete text,
  dimensions integer,
  created_at timestamp with time zone not null default internal.now(),
  -- Whether rules of moderation read the texts of the column.
  is_moderated boolean not null default false,
  constraint collection_columns_pkey PRIMARY KEY (id),
  constraint collection_columns_name_unique UNIQUE (collection_id, name) DEFERRABLE,
  constraint collection_columns_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES app.collections(id) ON DELETE CASCADE,
  constraint collection_columns_references_collection_id_fkey FOREIGN KEY (references_collection_id) REFERENCES app.collections(id) ON DELETE RESTRICT,
  constraint collection_columns_dimensions_of_vectors CHECK (((type = 'vector'::text) = (dimensions IS NOT NULL))),
  constraint collection_columns_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,62}$'::text)),
  constraint collection_columns_on_delete_known CHECK ((on_delete = ANY (ARRAY['set_null'::text, 'cascade'::text, 'restrict'::text]))),
  constraint collection_columns_reference_whole CHECK (((references_collection_id IS NULL) = (on_delete IS NULL))),
  constraint collection_columns_type_known CHECK ((type = ANY (ARRAY['text'::text, 'integer'::text, 'bigint'::text, 'numeric'::text, 'double'::text, 'boolean'::text, 'uuid'::text, 'date'::text, 'timestamptz'::text, 'jsonb'::text, 'vector'::text, 'text[]'::text, 'integer[]'::text, 'bigint[]'::text, 'numeric[]'::text, 'boolean[]'::text, 'uuid[]'::text])))
);
CREATE INDEX collection_columns_of_collection ON app.collection_columns USING btree (collection_id, "position");
CREATE INDEX collection_columns_references ON app.collection_columns USING btree (references_collection_id);
alter table app.collection_columns enable row level security;
create policy "administrators read columns" on app.collection_columns for select to app_admin
  using (true);
create policy "dashboards read every row" on app.collection_columns for select to app_dashboard
  using (true);
create policy "server keys read columns" on app.collection_columns for select to app_server
  using (true);
create policy "users read columns" on app.collection_columns for select to app_user
  using (true);
create policy "workers read columns" on app.collection_columns for select to app_worker
  using (true);

-- Up to 500 rows [{line, row}] of an import. A part goes in the transaction that inserts its rows.
create table app.collection_import_parts (
  import_id uuid not null,
  "position" integer not null,
  rows json not null,
  constraint collection_import_parts_pkey PRIMARY KEY (import_id, "position"),
  constraint collection_import_parts_import_id_fkey FOREIGN KEY (import_id) REFERENCES app.collection_imports(id) ON DELETE CASCADE
);
alter table app.collection_import_parts enable row level security;

-- Rows on their way into a collection: staged by the request, inserted by a job. errors are of the first hundred that
-- failed.
create table app.collection_imports (
  id uuid not null default internal.new_id(),
  collection_id uuid not null,
  rows bigint not null default 0,
  inserted bigint not null default 0,
  failed bigint not null default 0,
  errors jsonb not null default '[]'::jsonb,
  created_at timestamp with time zone not null default internal.now(),
  constraint collection_imports_pkey PRIMARY KEY (id),
  constraint collection_imports_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES app.collections(id) ON DELETE CASCADE
);
CREATE INDEX collection_imports_age ON app.collection_imports USING btree (created_at);
CREATE INDEX collection_imports_of_collection ON app.collection_imports USING btree (collection_id);
alter table app.collection_imports enable row level security;

-- The developer's indexes. index_name is the name in schema collections, where tables and indexes share one space of
-- names. is_ready is false while an index is being built in the background.
create table app.collection_indexes (
  id uuid not null default internal.new_id(),
  collection_id uuid not null,
  name text not null,
  index_name text not null,
  columns text[] not null,
  is_unique boolean not null default false,
  method text not null default 'btree'::text,
  where_filter json,
  is_ready boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  constraint collection_indexes_pkey PRIMARY KEY (id),
  constraint collection_indexes_index_name_unique UNIQUE (index_name),
  constraint collection_indexes_name_unique UNIQUE (collection_id, name),
  constraint collection_indexes_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES app.collections(id) ON DELETE CASCADE,
  constraint collection_indexes_method_known CHECK ((method = ANY (ARRAY['btree'::text, 'gin'::text, 'trgm'::text, 'hnsw'::text])))
);
alter table app.collection_indexes enable row level security;
create policy "administrators read indexes" on app.collection_indexes for select to app_admin
  using (true);
create policy "dashboards read every row" on app.collection_indexes for select to app_dashboard
  using (true);
create policy "server keys read indexes" on app.collection_indexes for select to app_server
  using (true);
create policy "users read indexes" on app.collection_indexes for select to app_user
  using (true);
create policy "workers read indexes" on app.collection_indexes for select to app_worker
  using (true);

-- Which row an Idempotency-Key made, per collection and caller, for 30 days: as long as a deleted row can be
-- restored.
create table app.collection_keys (
  collection_id uuid not null,
  caller text not null,
  key text not null,
  row_id uuid not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint collection_keys_pkey PRIMARY KEY (collection_id, caller, key),
  constraint collection_keys_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES app.collections(id) ON DELETE CASCADE,
  constraint collection_keys_printable CHECK ((key ~ '^[ -~]{1,255}$'::text))
);
CREATE INDEX collection_keys_created ON app.collection_keys USING btree (created_at);
alter table app.collection_keys enable row level security;
create policy "administrators read their keys" on app.collection_keys for select to app_admin
  using ((caller = ( SELECT internal.idempotency_caller() AS idempotency_caller)));
create policy "administrators store keys" on app.collection_keys for insert to app_admin
  with check ((caller = ( SELECT internal.idempotency_caller() AS idempotency_caller)));
create policy "server keys read their keys" on app.collection_keys for select to app_server
  using ((caller = ( SELECT internal.idempotency_caller() AS idempotency_caller)));
create policy "server keys store keys" on app.collection_keys for insert to app_server
  with check ((caller = ( SELECT internal.idempotency_caller() AS idempotency_caller)));
create policy "users read their own keys" on app.collection_keys for select to app_user
  using ((caller = ( SELECT internal.idempotency_caller() AS idempotency_caller)));
create policy "users store keys of their own" on app.collection_keys for insert to app_user
  with check ((caller = ( SELECT internal.idempotency_caller() AS idempotency_caller)));

-- Each row describes a table of that name in schema collections. What is said here the functions keep true there; what
-- a DBA adds there stays.
create table app.collections (
  id uuid not null default internal.new_id(),
  name text not null,
  description text,
  owner_scope text not null default 'user'::text,
  read_policy text not null default 'owner'::text,
  write_policy text not null default 'owner'::text,
  sync boolean not null default false,
  realtime boolean not null default true,
  -- Goes up with every change of the definition: what was compiled for an older one is stale.
  schema_version bigint not null default 1,
  -- The version of internal.collection_policies_sql that made the policies and grants of the table.
  generator integer not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint collections_pkey PRIMARY KEY (id),
  constraint collections_name_unique UNIQUE (name),
  constraint collections_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  constraint collections_name_form CHECK ((name ~ '^[a-z][a-z0-9_]{0,62}$'::text)),
  constraint collections_owner_scope_known CHECK ((owner_scope = ANY (ARRAY['user'::text, 'group'::text])))
);
alter table app.collections enable row level security;
create policy "administrators read definitions" on app.collections for select to app_admin
  using (true);
create policy "dashboards read every row" on app.collections for select to app_dashboard
  using (true);
create policy "server keys read definitions" on app.collections for select to app_server
  using (true);
create policy "users read definitions" on app.collections for select to app_user
  using (true);
create policy "workers read definitions" on app.collections for select to app_worker
  using (true);

create table app.config_keys (
  id uuid not null default internal.new_id(),
  key text not null,
  value jsonb not null,
  value_type text not null default 'string'::text,
  description text,
  conditions jsonb not null default '[]'::jsonb,
  version integer not null default 1,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint config_keys_pkey PRIMARY KEY (id),
  constraint config_keys_key_unique UNIQUE (key),
  -- 400 INVALID_INPUT conditions: must be a list of at most 100.
  constraint config_keys_conditions_is_list CHECK ((jsonb_typeof(conditions) = 'array'::text)),
  -- 400 INVALID_INPUT description: must have at most 2000 characters.
  constraint config_keys_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 INVALID_INPUT key: must match ^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$.
  constraint config_keys_key_form CHECK ((key ~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$'::text)),
  -- 400 INVALID_INPUT value_type: must be string, number, boolean or json.
  constraint config_keys_value_type_known CHECK ((value_type = ANY (ARRAY['string'::text, 'number'::text, 'boolean'::text, 'json'::text])))
);
alter table app.config_keys enable row level security;
create policy "administrators add keys" on app.config_keys for insert to app_admin
  with check (true);
create policy "administrators change keys" on app.config_keys for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete keys" on app.config_keys for delete to app_admin
  using (true);
create policy "administrators read the configuration" on app.config_keys for select to app_admin
  using (true);
create policy "apps read the configuration" on app.config_keys for select to app_anon
  using (true);
create policy "dashboards read every row" on app.config_keys for select to app_dashboard
  using (true);
create policy "users read the configuration" on app.config_keys for select to app_user
  using (true);

-- The hash of the project's configuration: one row, new at every change of a key.
create table app.config_versions (
  is_only boolean not null default true,
  version_hash text not null,
  changed_at timestamp with time zone not null default internal.now(),
  constraint config_versions_pkey PRIMARY KEY (is_only),
  constraint config_versions_one_row CHECK (is_only)
);
alter table app.config_versions enable row level security;

create table app.content_entries (
  id uuid not null default internal.new_id(),
  key text not null,
  content_type text not null,
  default_locale text not null,
  tags text[] not null default '{}'::text[],
  segment_id uuid,
  starts_at timestamp with time zone,
  ends_at timestamp with time zone,
  sort_order integer not null default 0,
  -- Counts the changes of the entry and of its locales.
  version integer not null default 1,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint content_entries_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: An entry with this key exists.
  constraint content_entries_key_unique UNIQUE (key),
  constraint content_entries_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES app.segments(id) ON DELETE RESTRICT,
  -- 400 VALIDATION_ERROR content_type: must match ^[A-Za-z0-9_.-]{1,64}$.
  constraint content_entries_content_type_form CHECK ((content_type ~ '^[A-Za-z0-9_.-]{1,64}$'::text)),
  -- 400 VALIDATION_ERROR ends_at: must be after starts_at.
  constraint content_entries_end_after_start CHECK ((ends_at > starts_at)),
  -- 400 VALIDATION_ERROR key: must match ^[A-Za-z0-9_.-]{1,64}$.
  constraint content_entries_key_form CHECK ((key ~ '^[A-Za-z0-9_.-]{1,64}$'::text)),
  -- 400 VALIDATION_ERROR tags: must have at most 50 items.
  constraint content_entries_tags_at_most_50 CHECK ((cardinality(tags) <= 50))
);
CREATE INDEX content_entries_in_order ON app.content_entries USING btree (sort_order, created_at DESC, id DESC);
CREATE INDEX content_entries_of_segment ON app.content_entries USING btree (segment_id) WHERE (segment_id IS NOT NULL);
CREATE INDEX content_entries_of_type ON app.content_entries USING btree (content_type, sort_order, created_at DESC, id DESC);
alter table app.content_entries enable row level security;
create policy "administrators read content" on app.content_entries for select to app_admin
  using (true);
create policy "dashboards read every row" on app.content_entries for select to app_dashboard
  using (true);

-- Entries whose schedules could not be settled, with the error and the time of the next attempt.
create table app.content_failures (
  entry_id uuid not null,
  attempts integer not null default 1,
  retry_at timestamp with time zone not null,
  reason text not null,
  constraint content_failures_pkey PRIMARY KEY (entry_id),
  constraint content_failures_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES app.content_entries(id) ON DELETE CASCADE,
  constraint content_failures_reason_at_most_1000 CHECK ((char_length(reason) <= 1000))
);
alter table app.content_failures enable row level security;

-- The languages of an entry. version numbers the saves and is that of the newest. A schedule that is due counts as
-- published, whether its row says so yet or not: internal.content_state computes it.
create table app.content_locales (
  entry_id uuid not null,
  locale text not null,
  version integer not null default 1,
  published_version integer,
  published_at timestamp with time zone,
  scheduled_version integer,
  publish_at timestamp with time zone,
  constraint content_locales_pkey PRIMARY KEY (entry_id, locale),
  constraint content_locales_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES app.content_entries(id) ON DELETE CASCADE,
  constraint content_locales_published_whole CHECK (((published_version IS NULL) = (published_at IS NULL))),
  constraint content_locales_scheduled_whole CHECK (((scheduled_version IS NULL) = (publish_at IS NULL)))
);
CREATE INDEX content_locales_scheduled ON app.content_locales USING btree (publish_at) WHERE (publish_at IS NOT NULL);
alter table app.content_locales enable row level security;
create policy "administrators read languages of content" on app.content_locales for select to app_admin
  using (true);
create policy "dashboards read every row" on app.content_locales for select to app_dashboard
  using (true);

-- Tokens that show the newest versions of one entry, as their SHA-256.
create table app.content_previews (
  digest bytea not null,
  entry_id uuid not null,
  expires_at timestamp with time zone not null,
  constraint content_previews_pkey PRIMARY KEY (digest),
  constraint content_previews_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES app.content_entries(id) ON DELETE CASCADE
);
CREATE INDEX content_previews_expired ON app.content_previews USING btree (expires_at);
CREATE INDEX content_previews_of_entry ON app.content_previews USING btree (entry_id);
alter table app.content_previews enable row level security;

-- What a search of administrators looks at: the texts of the newest version of each language, in lower case.
create table app.content_texts (
  entry_id uuid not null,
  locale text not null,
  text text not null,
  constraint content_texts_pkey PRIMARY KEY (entry_id, locale),
  constraint content_texts_of_locale FOREIGN KEY (entry_id, locale) REFERENCES app.content_locales(entry_id, locale) ON DELETE CASCADE
);
alter table app.content_texts enable row level security;
create policy "administrators search texts of content" on app.content_texts for select to app_admin
  using (true);

-- Schemas of content types, [{name, type, required, localized}]: saves of a type are checked against its own. A type
-- without a row, or with an empty list, takes any fields.
create table app.content_types (
  id uuid not null default internal.new_id(),
  type text not null,
  fields jsonb not null default '[]'::jsonb,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint content_types_pkey PRIMARY KEY (id),
  constraint content_types_type_unique UNIQUE (type),
  constraint content_types_fields_at_most_100 CHECK (((jsonb_typeof(fields) = 'array'::text) AND (jsonb_array_length(fields) <= 100))),
  constraint content_types_type_form CHECK ((type ~ '^[A-Za-z0-9_.-]{1,64}$'::text))
);
alter table app.content_types enable row level security;
create policy "administrators read content types" on app.content_types for select to app_admin
  using (true);
create policy "dashboards read every row" on app.content_types for select to app_dashboard
  using (true);

-- What each save of a language said. A row never changes.
create table app.content_versions (
  entry_id uuid not null,
  locale text not null,
  version integer not null,
  fields jsonb not null,
  author jsonb not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint content_versions_pkey PRIMARY KEY (entry_id, locale, version),
  constraint content_versions_of_locale FOREIGN KEY (entry_id, locale) REFERENCES app.content_locales(entry_id, locale) ON DELETE CASCADE,
  constraint content_versions_fields_is_object CHECK ((jsonb_typeof(fields) = 'object'::text))
);
alter table app.content_versions enable row level security;
create policy "administrators read versions of content" on app.content_versions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.content_versions for select to app_dashboard
  using (true);

-- Who takes part in a conversation. Triggers on app.messages keep unread_count, mention_count and last_activity_at,
-- which lists of one user are read by.
create table app.conversation_participants (
  conversation_id uuid not null,
  app_user_id uuid not null,
  -- The other user of a direct conversation of two: blocks between both hide it. Triggers keep it without a foreign key,
  -- whose index each message would write.
  peer_id uuid,
  -- The creator of a group conversation, or the participant who succeeded the creator.
  is_owner boolean not null default false,
  joined_at timestamp with time zone not null default internal.now(),
  last_read_at timestamp with time zone,
  last_activity_at timestamp with time zone not null,
  unread_count integer not null default 0,
  mention_count integer not null default 0,
  is_archived boolean not null default false,
  muted_until timestamp with time zone,
  constraint conversation_participants_pkey PRIMARY KEY (conversation_id, app_user_id),
  constraint conversation_participants_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint conversation_participants_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES app.conversations(id) ON DELETE CASCADE,
  constraint conversation_participants_mentions_not_negative CHECK ((mention_count >= 0)),
  constraint conversation_participants_unread_not_negative CHECK ((unread_count >= 0))
);
CREATE INDEX conversation_participants_newest ON app.conversation_participants USING btree (app_user_id, is_archived, last_activity_at DESC, conversation_id DESC) INCLUDE (peer_id);
CREATE UNIQUE INDEX conversation_participants_one_owner ON app.conversation_participants USING btree (conversation_id) WHERE is_owner;
CREATE INDEX conversation_participants_unread ON app.conversation_participants USING btree (app_user_id, last_activity_at DESC, conversation_id DESC) INCLUDE (unread_count, mention_count, peer_id) WHERE (unread_count > 0);
alter table app.conversation_participants enable row level security;
create policy "administrators read participants" on app.conversation_participants for select to app_admin
  using (true);
create policy "dashboards read every row" on app.conversation_participants for select to app_dashboard
  using (true);
create policy "users read their own parts" on app.conversation_participants for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Conversations of end users. The counts are kept by triggers on app.messages: message_count of all messages,
-- top_level_count of those that are no replies.
create table app.conversations (
  id uuid not null default internal.new_id(),
  type text not null,
  name text,
  -- Direct conversations: SHA-256 of the sorted ids of the participants. Null where a merge of users left two
  -- conversations with the same participants.
  direct_key bytea,
  message_count integer not null default 0,
  top_level_count integer not null default 0,
  -- The time of the newest message ever, or of the creation. Times of messages are after it, and so never equal.
  last_activity_at timestamp with time zone not null default internal.now(),
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint conversations_pkey PRIMARY KEY (id),
  constraint conversations_one_direct UNIQUE (direct_key),
  constraint conversations_direct_key_of_direct CHECK (((direct_key IS NULL) OR (type = 'direct'::text))),
  constraint conversations_message_count_not_negative CHECK ((message_count >= 0)),
  -- 400 INVALID_PAYLOAD name: must have 1 to 100 characters.
  constraint conversations_name_1_to_100 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  -- 400 INVALID_PAYLOAD name: must be one line of text.
  constraint conversations_name_is_one_line CHECK (internal.is_line(name)),
  constraint conversations_top_level_count_not_negative CHECK ((top_level_count >= 0)),
  -- 400 INVALID_PAYLOAD type: must be direct or group.
  constraint conversations_type_known CHECK ((type = ANY (ARRAY['direct'::text, 'group'::text])))
);
CREATE INDEX conversations_newest ON app.conversations USING btree (created_at DESC, id DESC);
alter table app.conversations enable row level security;
create policy "administrators read conversations" on app.conversations for select to app_admin
  using (true);
create policy "dashboards read every row" on app.conversations for select to app_dashboard
  using (true);
create policy "users read their conversations" on app.conversations for select to app_user
  using ((id IN ( SELECT internal.my_conversation_ids() AS my_conversation_ids)));

-- What a project counts for its users: coins, gems, energy. At most 100.
create table app.currencies (
  id uuid not null default internal.new_id(),
  code text not null,
  name text not null,
  icon_url text,
  initial_grant bigint not null default 0,
  max_balance bigint not null default 2000000000,
  client_spendable boolean not null default false,
  regen_amount bigint,
  regen_every_seconds integer,
  regen_cap bigint,
  -- When regeneration was switched on: nothing grew before.
  regen_since timestamp with time zone,
  expiry_days integer,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint currencies_pkey PRIMARY KEY (id),
  -- 409 CONFLICT code: A currency with this code exists.
  constraint currencies_code_unique UNIQUE (code),
  -- 400 VALIDATION_ERROR code: must match ^[A-Z][A-Z0-9_]{1,15}$.
  constraint currencies_code_form CHECK ((code ~ '^[A-Z][A-Z0-9_]{1,15}$'::text)),
  -- 400 VALIDATION_ERROR expiry_days: must be 1 to 3650.
  constraint currencies_expiry_days_1_to_3650 CHECK (((expiry_days >= 1) AND (expiry_days <= 3650))),
  -- 400 VALIDATION_ERROR icon_url: must have at most 2000 characters.
  constraint currencies_icon_url_at_most_2000 CHECK ((char_length(icon_url) <= 2000)),
  -- 400 VALIDATION_ERROR initial_grant: must be 0 to 2000000000.
  constraint currencies_initial_grant_0_to_2000000000 CHECK (((initial_grant >= 0) AND (initial_grant <= 2000000000))),
  -- 400 VALIDATION_ERROR initial_grant: must be at most max_balance.
  constraint currencies_initial_grant_within_max CHECK ((initial_grant <= max_balance)),
  -- 400 VALIDATION_ERROR max_balance: must be 1 to 9007199254740991.
  constraint currencies_max_balance_exact_in_json CHECK (((max_balance >= 1) AND (max_balance <= '9007199254740991'::bigint))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint currencies_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint currencies_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR regen: must have an amount of 1 to 2000000000.
  constraint currencies_regen_amount_1_to_2000000000 CHECK (((regen_amount >= 1) AND (regen_amount <= 2000000000))),
  -- 400 VALIDATION_ERROR regen: must have a cap of at least 1.
  constraint currencies_regen_cap_at_least_1 CHECK ((regen_cap >= 1)),
  -- 400 VALIDATION_ERROR regen: must have a cap of at most max_balance.
  constraint currencies_regen_cap_within_max CHECK ((regen_cap <= max_balance)),
  -- 400 VALIDATION_ERROR regen: must have every_seconds of 1 to 31536000.
  constraint currencies_regen_every_1_second_to_a_year CHECK (((regen_every_seconds >= 1) AND (regen_every_seconds <= 31536000))),
  -- 400 VALIDATION_ERROR regen: must have amount, every_seconds and cap.
  constraint currencies_regen_whole CHECK ((num_nulls(regen_amount, regen_every_seconds, regen_cap, regen_since) = ANY (ARRAY[0, 4])))
);
alter table app.currencies enable row level security;
create policy "administrators add currencies" on app.currencies for insert to app_admin
  with check (true);
create policy "administrators change currencies" on app.currencies for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete currencies" on app.currencies for delete to app_admin
  using (true);
create policy "administrators read currencies" on app.currencies for select to app_admin
  using (true);
create policy "dashboards read every row" on app.currencies for select to app_dashboard
  using (true);
create policy "users read currencies in use" on app.currencies for select to app_user
  using (is_active);

-- What a user had of a currency at the last write, balance_at: the sum of the ledger. What the clock did since then is
-- worked out on read.
create table app.currency_balances (
  app_user_id uuid not null,
  currency_code text not null,
  balance bigint not null default 0,
  balance_at timestamp with time zone not null default internal.now(),
  -- Since when the next regeneration is under way; null while the balance is at the cap or over it.
  regen_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  constraint currency_balances_pkey PRIMARY KEY (app_user_id, currency_code),
  constraint currency_balances_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  -- 409 CURRENCY_IN_USE: Users have balances of this currency. Set is_active to false instead.
  constraint currency_balances_currency_code_fkey FOREIGN KEY (currency_code) REFERENCES app.currencies(code) ON DELETE RESTRICT,
  constraint currency_balances_never_negative CHECK ((balance >= 0))
);
CREATE INDEX currency_balances_by_size ON app.currency_balances USING btree (currency_code, balance DESC, app_user_id);
alter table app.currency_balances enable row level security;
create policy "administrators read every balance" on app.currency_balances for select to app_admin
  using (true);
create policy "dashboards read every row" on app.currency_balances for select to app_dashboard
  using (true);
create policy "users read their own balances" on app.currency_balances for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Proofs that every balance is the sum of its ledger: one a night, taken user by user; the first hundred mismatches are
-- written out.
create table app.currency_checks (
  id uuid not null default internal.new_id(),
  checked_at timestamp with time zone not null default internal.now(),
  finished_at timestamp with time zone,
  reached uuid,
  balances bigint not null default 0,
  mismatched bigint not null default 0,
  mismatches jsonb not null default '[]'::jsonb,
  constraint currency_checks_pkey PRIMARY KEY (id)
);
CREATE INDEX currency_checks_newest ON app.currency_checks USING btree (checked_at DESC, id DESC);
alter table app.currency_checks enable row level security;
create policy "administrators read proofs" on app.currency_checks for select to app_admin
  using (true);
create policy "dashboards read every row" on app.currency_checks for select to app_dashboard
  using (true);

-- What is left of credits that expire. The rest of a balance never does.
create table app.currency_lots (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  currency_code text not null,
  transaction_id uuid not null,
  expires_at timestamp with time zone not null,
  remaining bigint not null,
  constraint currency_lots_pkey PRIMARY KEY (id),
  constraint currency_lots_app_user_id_currency_code_fkey FOREIGN KEY (app_user_id, currency_code) REFERENCES app.currency_balances(app_user_id, currency_code) ON DELETE CASCADE,
  constraint currency_lots_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint currency_lots_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES app.currency_transactions(id) ON DELETE CASCADE,
  constraint currency_lots_something_remains CHECK ((remaining > 0))
);
CREATE INDEX currency_lots_of_transaction ON app.currency_lots USING btree (transaction_id);
CREATE INDEX currency_lots_soonest ON app.currency_lots USING btree (app_user_id, currency_code, expires_at, id);
alter table app.currency_lots enable row level security;
create policy "administrators read all credits that expire" on app.currency_lots for select to app_admin
  using (true);
create policy "dashboards read every row" on app.currency_lots for select to app_dashboard
  using (true);
create policy "users read their own credits that expire" on app.currency_lots for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- The ledger: every change of every balance, one row each, never changed. Ids are made while the user is locked, so
-- their order is the order of a user's changes.
create table app.currency_transactions (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  currency_code text not null,
  amount bigint not null,
  balance_after bigint not null,
  kind text not null generated always as (
CASE
    WHEN (amount > 0) THEN 'credit'::text
    ELSE 'debit'::text
END) stored,
  reason text not null,
  source_type text not null,
  source_id text not null,
  idempotency_key text,
  expires_at timestamp with time zone,
  -- Of a debit: what it took from credits that expire, [{expires_at, amount}], so that a reversal can give it back.
  spent_lots jsonb,
  metadata jsonb not null default '{}'::jsonb,
  created_at timestamp with time zone not null default internal.now(),
  constraint currency_transactions_pkey PRIMARY KEY (id),
  constraint currency_transactions_once_per_source UNIQUE (app_user_id, source_type, source_id, currency_code),
  constraint currency_transactions_app_user_id_currency_code_fkey FOREIGN KEY (app_user_id, currency_code) REFERENCES app.currency_balances(app_user_id, currency_code) ON DELETE CASCADE,
  constraint currency_transactions_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint currency_transactions_amount_not_zero CHECK ((amount <> 0)),
  constraint currency_transactions_balance_never_negative CHECK ((balance_after >= 0)),
  constraint currency_transactions_reason_1_to_200 CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 200))),
  constraint currency_transactions_source_type_known CHECK ((source_type = ANY (ARRAY['admin'::text, 'reward'::text, 'store'::text, 'purchase'::text, 'spend'::text, 'regen'::text, 'expiry'::text, 'refund'::text, 'merge'::text, 'transfer'::text])))
);
CREATE INDEX currency_transactions_made ON app.currency_transactions USING brin (created_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX currency_transactions_of_currency ON app.currency_transactions USING btree (currency_code, id DESC);
CREATE INDEX currency_transactions_of_reason ON app.currency_transactions USING btree (reason, id DESC);
CREATE INDEX currency_transactions_of_user ON app.currency_transactions USING btree (app_user_id, currency_code, id DESC);
alter table app.currency_transactions enable row level security;
create policy "administrators read every ledger" on app.currency_transactions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.currency_transactions for select to app_dashboard
  using (true);
create policy "users read their own ledger" on app.currency_transactions for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Which users an issue has met, so that users counts each once.
create table app.diagnostic_issue_users (
  issue_id uuid not null,
  app_user_id uuid not null,
  constraint diagnostic_issue_users_pkey PRIMARY KEY (issue_id, app_user_id),
  constraint diagnostic_issue_users_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint diagnostic_issue_users_issue_id_fkey FOREIGN KEY (issue_id) REFERENCES app.diagnostic_issues(id) ON DELETE CASCADE
);
CREATE INDEX diagnostic_issue_users_of_user ON app.diagnostic_issue_users USING btree (app_user_id);
alter table app.diagnostic_issue_users enable row level security;

-- The keys of version_counts, for the filter by a version: an index of the counts would be written by every batch.
create table app.diagnostic_issue_versions (
  app_version text not null,
  issue_id uuid not null,
  constraint diagnostic_issue_versions_pkey PRIMARY KEY (app_version, issue_id),
  constraint diagnostic_issue_versions_issue_id_fkey FOREIGN KEY (issue_id) REFERENCES app.diagnostic_issues(id) ON DELETE CASCADE
);
CREATE INDEX diagnostic_issue_versions_of_issue ON app.diagnostic_issue_versions USING btree (issue_id);
alter table app.diagnostic_issue_versions enable row level security;
create policy "administrators read versions of issues" on app.diagnostic_issue_versions for select to app_admin
  using (true);

-- Reports with one fingerprint. Counts by version and by day are in the row, so that a batch locks one row an issue.
create table app.diagnostic_issues (
  id uuid not null default internal.new_id(),
  fingerprint text not null,
  title text not null,
  level text not null,
  status text not null default 'open'::text,
  first_seen timestamp with time zone not null,
  last_seen timestamp with time zone not null,
  count bigint not null,
  users bigint not null default 0,
  version_counts jsonb not null default '{}'::jsonb,
  day_counts jsonb not null default '{}'::jsonb,
  -- The key of the newest version that it had when it was resolved, null if it had none: only a newer one reopens it.
  resolved_version_key text,
  -- The batch that made it, or opened it again last.
  opened_by uuid,
  created_at timestamp with time zone not null default internal.now(),
  constraint diagnostic_issues_pkey PRIMARY KEY (id),
  constraint diagnostic_issues_fingerprint_unique UNIQUE (fingerprint),
  constraint diagnostic_issues_fingerprint_form CHECK (((char_length(fingerprint) >= 1) AND (char_length(fingerprint) <= 128))),
  constraint diagnostic_issues_level_known CHECK ((level = ANY (ARRAY['debug'::text, 'info'::text, 'warn'::text, 'error'::text, 'fatal'::text]))),
  constraint diagnostic_issues_status_known CHECK ((status = ANY (ARRAY['open'::text, 'resolved'::text, 'ignored'::text]))),
  constraint diagnostic_issues_title_is_one_line CHECK (internal.is_line(title))
);
CREATE INDEX diagnostic_issues_newest ON app.diagnostic_issues USING btree (last_seen DESC, id DESC);
CREATE INDEX diagnostic_issues_of_status ON app.diagnostic_issues USING btree (status, last_seen DESC, id DESC);
alter table app.diagnostic_issues enable row level security;
create policy "administrators read issues" on app.diagnostic_issues for select to app_admin
  using (true);
create policy "dashboards read every row" on app.diagnostic_issues for select to app_dashboard
  using (true);

-- What apps report, for 30 days.
create table app.diagnostic_reports (
  id uuid not null default internal.new_id(),
  issue_id uuid not null,
  app_user_id uuid,
  kind text not null,
  level text not null,
  message text not null,
  stack text,
  context jsonb,
  occurred_at timestamp with time zone not null,
  received_at timestamp with time zone not null,
  app_version text,
  os_version text,
  device_model text,
  constraint diagnostic_reports_pkey PRIMARY KEY (id),
  constraint diagnostic_reports_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE SET NULL,
  constraint diagnostic_reports_issue_id_fkey FOREIGN KEY (issue_id) REFERENCES app.diagnostic_issues(id) ON DELETE CASCADE,
  constraint diagnostic_reports_kind_known CHECK ((kind = ANY (ARRAY['log'::text, 'error'::text, 'crash'::text, 'performance'::text]))),
  constraint diagnostic_reports_level_known CHECK ((level = ANY (ARRAY['debug'::text, 'info'::text, 'warn'::text, 'error'::text, 'fatal'::text])))
);
CREATE INDEX diagnostic_reports_of_issue ON app.diagnostic_reports USING btree (issue_id, occurred_at DESC, id DESC);
CREATE INDEX diagnostic_reports_of_user ON app.diagnostic_reports USING btree (app_user_id) WHERE (app_user_id IS NOT NULL);
CREATE INDEX diagnostic_reports_received ON app.diagnostic_reports USING brin (received_at) WITH (autosummarize='on');
alter table app.diagnostic_reports enable row level security;
create policy "administrators read reports" on app.diagnostic_reports for select to app_admin
  using (true);
create policy "dashboards read every row" on app.diagnostic_reports for select to app_dashboard
  using (true);

-- The content of messages that are not sent yet. It is deleted with the last attempt.
create table app.email_bodies (
  message_id uuid not null,
  html text,
  text text,
  -- What stands in the content where the link to unsubscribe belongs: a random mark, which no value contains. Null:
  -- {{unsubscribe_url}}, as the sender wrote it.
  unsubscribe_mark text,
  constraint email_bodies_pkey PRIMARY KEY (message_id),
  constraint email_bodies_message_id_fkey FOREIGN KEY (message_id) REFERENCES app.email_messages(id) ON DELETE CASCADE
);
alter table app.email_bodies enable row level security;

-- Messages of mail, one to one address. Kept 90 days after their last change.
create table app.email_messages (
  id uuid not null default internal.new_id(),
  app_user_id uuid,
  to_address text not null,
  from_address text,
  reply_to text,
  headers jsonb not null default '{}'::jsonb,
  subject text not null,
  template_key text,
  template_version integer,
  locale text,
  category text not null,
  status text not null,
  attempts smallint not null default 0,
  -- Set before the mail server is called and cleared with its answer: where it is set and no worker holds the message,
  -- the outcome of the attempt is not known.
  attempting_at timestamp with time zone,
  send_at timestamp with time zone,
  next_attempt_at timestamp with time zone,
  last_error text,
  -- What happened, [{type, at, detail?}], oldest first.
  events jsonb not null default '[]'::jsonb,
  sent_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  delivery_id uuid,
  -- Whether the content has a picture that reports opening, and links that report clicks.
  track boolean not null default false,
  opened_at timestamp with time zone,
  clicked_at timestamp with time zone,
  constraint email_messages_pkey PRIMARY KEY (id),
  constraint email_messages_once_per_delivery UNIQUE (delivery_id),
  constraint email_messages_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint email_messages_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES app.campaign_deliveries(id) ON DELETE SET NULL,
  constraint email_messages_category_form CHECK ((category ~ '^[a-z][a-z0-9_-]{0,63}$'::text)),
  constraint email_messages_from_at_most_400 CHECK ((char_length(from_address) <= 400)),
  constraint email_messages_headers_is_object CHECK ((jsonb_typeof(headers) = 'object'::text)),
  constraint email_messages_reply_to_at_most_254 CHECK ((char_length(reply_to) <= 254)),
  constraint email_messages_status_known CHECK ((status = ANY (ARRAY['queued'::text, 'sent'::text, 'delivered'::text, 'bounced'::text, 'complained'::text, 'failed'::text, 'cancelled'::text, 'suppressed'::text]))),
  constraint email_messages_to_at_most_254 CHECK ((char_length(to_address) <= 254))
);
CREATE INDEX email_messages_newest ON app.email_messages USING btree (created_at DESC, id DESC);
CREATE INDEX email_messages_of_status ON app.email_messages USING btree (status, created_at DESC, id DESC);
CREATE INDEX email_messages_of_user ON app.email_messages USING btree (app_user_id, created_at DESC, id DESC);
alter table app.email_messages enable row level security;
create policy "administrators read messages" on app.email_messages for select to app_admin
  using (true);
create policy "dashboards read every row" on app.email_messages for select to app_dashboard
  using (true);

-- What a user chose: categories is {<category>: boolean}. They follow the user, suppressions follow the address.
create table app.email_preferences (
  app_user_id uuid not null,
  unsubscribed_all boolean not null default false,
  categories jsonb not null default '{}'::jsonb,
  updated_at timestamp with time zone not null default internal.now(),
  constraint email_preferences_pkey PRIMARY KEY (app_user_id),
  constraint email_preferences_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint email_preferences_categories_is_object CHECK ((jsonb_typeof(categories) = 'object'::text))
);
alter table app.email_preferences enable row level security;

-- Ids of the events that mail providers reported, kept 30 days: a repeated one changes nothing.
create table app.email_provider_events (
  id text not null,
  received_at timestamp with time zone not null default internal.now(),
  constraint email_provider_events_pkey PRIMARY KEY (id),
  constraint email_provider_events_id_1_to_200 CHECK (((char_length(id) >= 1) AND (char_length(id) <= 200)))
);
CREATE INDEX email_provider_events_received ON app.email_provider_events USING btree (received_at);
alter table app.email_provider_events enable row level security;

-- Addresses that get no mail. unsubscribe stops one category, or all but transactional mail where category is null;
-- every other reason stops everything.
create table app.email_suppressions (
  id uuid not null default internal.new_id(),
  address text not null,
  reason text not null,
  category text,
  created_at timestamp with time zone not null default internal.now(),
  constraint email_suppressions_pkey PRIMARY KEY (id),
  constraint email_suppressions_once UNIQUE NULLS NOT DISTINCT (address, reason, category),
  constraint email_suppressions_address_at_most_254 CHECK ((char_length(address) <= 254)),
  constraint email_suppressions_category_form CHECK ((category ~ '^[a-z][a-z0-9_-]{0,63}$'::text)),
  -- 400 VALIDATION_ERROR category: goes with the reason unsubscribe only.
  constraint email_suppressions_category_is_of_unsubscribe CHECK (((category IS NULL) OR (reason = 'unsubscribe'::text))),
  constraint email_suppressions_reason_known CHECK ((reason = ANY (ARRAY['bounce'::text, 'complaint'::text, 'unsubscribe'::text, 'manual'::text])))
);
CREATE INDEX email_suppressions_newest ON app.email_suppressions USING btree (created_at DESC, id DESC);
CREATE INDEX email_suppressions_of_reason ON app.email_suppressions USING btree (reason, created_at DESC, id DESC);
alter table app.email_suppressions enable row level security;
create policy "administrators delete suppressions" on app.email_suppressions for delete to app_admin
  using (true);
create policy "administrators read suppressions" on app.email_suppressions for select to app_admin
  using (true);
create policy "administrators suppress addresses" on app.email_suppressions for insert to app_admin
  with check (true);
create policy "dashboards read every row" on app.email_suppressions for select to app_dashboard
  using (true);

-- Templates of mail. subject, html and text are the default; locales is {<locale>: {subject?, html?, text?}}. A row
-- with the key of a built-in template replaces it. version counts changes of the content.
create table app.email_templates (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  subject text not null,
  html text,
  text text,
  locales jsonb not null default '{}'::jsonb,
  category text not null default 'transactional'::text,
  version integer not null default 1,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint email_templates_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A template with this key exists.
  constraint email_templates_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR category: must match ^[a-z][a-z0-9_-]{0,63}$.
  constraint email_templates_category_form CHECK ((category ~ '^[a-z][a-z0-9_-]{0,63}$'::text)),
  -- 400 VALIDATION_ERROR html: must have at most 200000 characters.
  constraint email_templates_html_at_most_200000 CHECK ((char_length(html) <= 200000)),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_.-]{0,127}$.
  constraint email_templates_key_form CHECK ((key ~ '^[a-z][a-z0-9_.-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR locales: must be an object.
  constraint email_templates_locales_is_object CHECK ((jsonb_typeof(locales) = 'object'::text)),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint email_templates_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint email_templates_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR subject: must have 1 to 300 characters.
  constraint email_templates_subject_1_to_300 CHECK (((char_length(subject) >= 1) AND (char_length(subject) <= 300))),
  -- 400 VALIDATION_ERROR subject: must be one line of text.
  constraint email_templates_subject_is_one_line CHECK (internal.is_line(subject)),
  -- 400 VALIDATION_ERROR text: must have at most 200000 characters.
  constraint email_templates_text_at_most_200000 CHECK ((char_length(text) <= 200000))
);
alter table app.email_templates enable row level security;
create policy "administrators add templates" on app.email_templates for insert to app_admin
  with check (true);
create policy "administrators change templates" on app.email_templates for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete templates" on app.email_templates for delete to app_admin
  using (true);
create policy "administrators read templates" on app.email_templates for select to app_admin
  using (true);
create policy "dashboards read every row" on app.email_templates for select to app_dashboard
  using (true);

-- Everything that happens to a user, partitioned by month of receipt. Areas that an event moves hook in with a
-- statement trigger each.
create table app.engagement_events (
  id uuid not null,
  app_user_id uuid not null,
  event_name text not null,
  properties jsonb not null default '{}'::jsonb,
  occurred_at timestamp with time zone not null,
  received_at timestamp with time zone not null,
  source text not null,
  session_id uuid,
  is_historical boolean not null default false,
  clock_adjusted boolean not null default false,
  schema_violation boolean not null default false,
  transaction_id xid8 default pg_current_xact_id(),
  constraint engagement_events_pkey PRIMARY KEY (id, received_at)
) partition by range (received_at);
CREATE INDEX engagement_events_newest ON ONLY app.engagement_events USING btree (occurred_at DESC, id DESC);
CREATE INDEX engagement_events_of_name ON ONLY app.engagement_events USING btree (event_name, occurred_at DESC, id DESC);
CREATE INDEX engagement_events_of_user ON ONLY app.engagement_events USING btree (app_user_id, occurred_at DESC, id DESC);
CREATE INDEX engagement_events_received ON ONLY app.engagement_events USING brin (received_at) WITH (pages_per_range='32', autosummarize='on');
alter table app.engagement_events enable row level security;
create policy "administrators read every event" on app.engagement_events for select to app_admin
  using (true);
create policy "dashboards read every row" on app.engagement_events for select to app_dashboard
  using (true);
create policy "server keys read every event" on app.engagement_events for select to app_server
  using (true);
create policy "users read their own events" on app.engagement_events for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Why a user has access to something: one row for each source. Access is there while any of them lives; whether one
-- does is worked out on read.
create table app.entitlement_grants (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  entitlement_id text not null,
  source text not null,
  source_ref text not null,
  product_id text,
  store text not null,
  period_type text not null,
  purchase_date timestamp with time zone not null,
  expiration_date timestamp with time zone,
  grace_until timestamp with time zone,
  cancelled_at timestamp with time zone,
  refunded_at timestamp with time zone,
  reason text,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint entitlement_grants_pkey PRIMARY KEY (id),
  constraint entitlement_grants_once_per_source UNIQUE (app_user_id, entitlement_id, source, source_ref),
  constraint entitlement_grants_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  -- 400 INVALID_BODY entitlement_id: must have 1 to 128 characters.
  constraint entitlement_grants_entitlement_id_1_to_128 CHECK (((char_length(entitlement_id) >= 1) AND (char_length(entitlement_id) <= 128))),
  -- 400 INVALID_BODY product_id: must have at most 255 characters.
  constraint entitlement_grants_product_id_at_most_255 CHECK ((char_length(product_id) <= 255)),
  -- 400 INVALID_BODY reason: must have at most 500 characters.
  constraint entitlement_grants_reason_at_most_500 CHECK ((char_length(reason) <= 500)),
  constraint entitlement_grants_source_known CHECK ((source = ANY (ARRAY['subscription_provider'::text, 'promotional'::text, 'reward'::text, 'referral'::text, 'purchase'::text])))
);
CREATE INDEX entitlement_grants_of_entitlement ON app.entitlement_grants USING btree (entitlement_id);
CREATE INDEX entitlement_grants_of_source ON app.entitlement_grants USING btree (source_ref) WHERE (source = 'subscription_provider'::text);
CREATE INDEX entitlement_grants_of_store_product ON app.entitlement_grants USING btree (split_part(product_id, ':'::text, 1)) WHERE (product_id IS NOT NULL);
alter table app.entitlement_grants enable row level security;
create policy "administrators read every grant" on app.entitlement_grants for select to app_admin
  using (true);
create policy "dashboards read every row" on app.entitlement_grants for select to app_dashboard
  using (true);
create policy "users read their own grants" on app.entitlement_grants for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- What a project says of its own events. A name needs none: without a definition an event is stored as it comes.
create table app.event_definitions (
  event_name text not null,
  description text,
  status text not null default 'active'::text,
  schema jsonb,
  -- Share of the events that stay in app.engagement_events. Every one of them is counted and moves what it moves; the
  -- rest leave the log again.
  sample_rate numeric not null default 1,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  id uuid not null default internal.new_id(),
  constraint event_definitions_pkey PRIMARY KEY (event_name),
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint event_definitions_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR event_name: must have 1 to 255 characters, and no white space at its ends.
  constraint event_definitions_name_1_to_255 CHECK ((((char_length(event_name) >= 1) AND (char_length(event_name) <= 255)) AND (event_name !~ '^\s|\s$'::text))),
  constraint event_definitions_sample_rate_0_to_1 CHECK (((sample_rate >= (0)::numeric) AND (sample_rate <= (1)::numeric))),
  -- 400 VALIDATION_ERROR status: must be active, blocked or deprecated.
  constraint event_definitions_status_known CHECK ((status = ANY (ARRAY['active'::text, 'blocked'::text, 'deprecated'::text])))
);
alter table app.event_definitions enable row level security;
create policy "administrators add definitions of events" on app.event_definitions for insert to app_admin
  with check (true);
create policy "administrators change definitions of events" on app.event_definitions for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete definitions of events" on app.event_definitions for delete to app_admin
  using (true);
create policy "administrators read definitions of events" on app.event_definitions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.event_definitions for select to app_dashboard
  using (true);

-- Ids that clients chose, remembered for 90 days: a partitioned table cannot hold a unique id across its partitions.
create table app.event_ids (
  id uuid not null,
  app_user_id uuid not null,
  received_at timestamp with time zone not null,
  constraint event_ids_pkey PRIMARY KEY (id),
  constraint event_ids_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
CREATE INDEX event_ids_of_user ON app.event_ids USING btree (app_user_id);
CREATE INDEX event_ids_received ON app.event_ids USING btree (received_at);
alter table app.event_ids enable row level security;
create policy "workers find old ids" on app.event_ids for select to app_worker
  using (true);
create policy "workers forget old ids" on app.event_ids for delete to app_worker
  using (true);

-- What each area has to do for an event of this name, computed from its definitions: one row is read for an event, and
-- a name without a row moves nothing. A column is named after its area; null is nothing. Times and conditions of
-- definitions are checked for each event.
create table app.event_plans (
  event_name text not null,
  streaks internal.streak_plan,
  xp internal.xp_plan,
  challenges boolean,
  achievements internal.achievement_plan,
  leaderboards uuid[],
  leagues uuid[],
  referrals boolean,
  segments uuid[],
  flags uuid[],
  webhooks uuid[],
  feeds boolean,
  realtime boolean,
  push boolean,
  campaigns boolean,
  constraint event_plans_pkey PRIMARY KEY (event_name)
);
alter table app.event_plans enable row level security;

-- How far a replay has come, written in the transaction of each of its steps, so that one which is taken over by
-- another worker goes on where it was. Kept 90 days, as operations are.
create table app.event_replays (
  operation_id uuid not null,
  target text not null,
  is_dry_run boolean not null,
  cursor_id uuid,
  done bigint not null default 0,
  users bigint not null default 0,
  changes bigint not null default 0,
  differences jsonb not null default '[]'::jsonb,
  is_over boolean not null default false,
  created_at timestamp with time zone not null default internal.now(),
  constraint event_replays_pkey PRIMARY KEY (operation_id, target)
);
alter table app.event_replays enable row level security;

-- How many entries an actor has of each action and group (zeros for the system and for no group), and when the newest
-- was made: the totals of feeds, and which actors a page of a home feed can show. Kept by a trigger on
-- app.feed_entries; writers of different actors share no row.
create table app.feed_counts (
  actor_key uuid not null,
  is_home boolean not null,
  group_key uuid not null,
  action text not null,
  entries bigint not null,
  last_at timestamp with time zone not null,
  constraint feed_counts_pkey PRIMARY KEY (actor_key, is_home, group_key, action)
);
CREATE INDEX feed_counts_of_group ON app.feed_counts USING btree (group_key) WHERE (group_key <> '00000000-0000-0000-0000-000000000000'::uuid);
alter table app.feed_counts enable row level security;

-- What users did, as feeds show it. An entry belongs to its actor, and to a group where it was posted to one.
create table app.feed_entries (
  id uuid not null default internal.new_id(),
  -- Null for an entry of the system, which all users see.
  actor_id uuid,
  action text not null,
  target_id text,
  group_id uuid,
  -- False for what was posted to a group while the group was private: such an entry appears in the feed of its group
  -- only.
  is_home boolean not null default true,
  metadata jsonb not null default '{}'::jsonb,
  created_at timestamp with time zone not null default internal.now(),
  constraint feed_entries_pkey PRIMARY KEY (id),
  constraint feed_entries_actor_id_fkey FOREIGN KEY (actor_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint feed_entries_group_id_fkey FOREIGN KEY (group_id) REFERENCES app.groups(id) ON DELETE CASCADE,
  -- 400 VALIDATION_ERROR action: must match ^[a-z][a-z0-9_.]{0,63}$.
  constraint feed_entries_action_form CHECK ((action ~ '^[a-z][a-z0-9_.]{0,63}$'::text)),
  -- 400 VALIDATION_ERROR metadata: must be an object.
  constraint feed_entries_metadata_is_object CHECK ((jsonb_typeof(metadata) = 'object'::text)),
  -- 400 VALIDATION_ERROR target_id: must have 1 to 255 characters.
  constraint feed_entries_target_id_1_to_255 CHECK (((char_length(target_id) >= 1) AND (char_length(target_id) <= 255)))
);
CREATE INDEX feed_entries_newest ON app.feed_entries USING btree (created_at DESC, id DESC);
CREATE INDEX feed_entries_of_action ON app.feed_entries USING btree (action, created_at DESC, id DESC);
CREATE INDEX feed_entries_of_actor ON app.feed_entries USING btree (actor_id, is_home, created_at DESC, id DESC) INCLUDE (action, group_id);
CREATE INDEX feed_entries_of_group ON app.feed_entries USING btree (group_id, created_at DESC, id DESC) WHERE (group_id IS NOT NULL);
alter table app.feed_entries enable row level security;
create policy "administrators read entries" on app.feed_entries for select to app_admin
  using (true);
create policy "dashboards read every row" on app.feed_entries for select to app_dashboard
  using (true);

-- What app.feed_counts says about a user in one row, so that the total of a home feed reads one narrow row for each
-- friend. Kept by the triggers that keep app.feed_counts; a user without a row is read there. The system has none: its
-- writers would share it.
create table app.feed_totals (
  actor_key uuid not null,
  -- Entries that home feeds show and that were posted to no group.
  entries bigint not null,
  -- When the newest of these was made.
  last_at timestamp with time zone,
  -- Whether home feeds show entries that were posted to groups, while these are public.
  has_groups boolean not null,
  constraint feed_totals_pkey PRIMARY KEY (actor_key)
);
alter table app.feed_totals enable row level security;

-- How often a flag gave a value on a UTC day, and to how many users.
create table app.flag_counts (
  flag_id uuid not null,
  value_key text not null,
  day date not null,
  evaluations bigint not null default 0,
  users bigint not null default 0,
  constraint flag_counts_pkey PRIMARY KEY (flag_id, day, value_key),
  constraint flag_counts_value_is_known FOREIGN KEY (flag_id, value_key) REFERENCES app.flag_values(flag_id, value_key) ON DELETE CASCADE
);
CREATE INDEX flag_counts_of_value ON app.flag_counts USING btree (flag_id, value_key);
alter table app.flag_counts enable row level security;
create policy "administrators read counts of flags" on app.flag_counts for select to app_admin
  using (true);
create policy "dashboards read every row" on app.flag_counts for select to app_dashboard
  using (true);
create policy "workers delete old counts of flags" on app.flag_counts for delete to app_worker
  using (true);
create policy "workers read old counts of flags" on app.flag_counts for select to app_worker
  using (true);

-- What apps were answered and is not counted yet: one row a request, notes are [flag id, value, rule index, weight]. A
-- row of a user's own, so that no two requests wait for each other.
create table app.flag_evaluations (
  id bigint not null generated by default as identity,
  app_user_id uuid,
  evaluated_at timestamp with time zone not null default internal.now(),
  notes jsonb not null,
  constraint flag_evaluations_pkey PRIMARY KEY (id),
  constraint flag_evaluations_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
CREATE INDEX flag_evaluations_of_user ON app.flag_evaluations USING btree (app_user_id);
alter table app.flag_evaluations enable row level security;

-- Who got the value of the rule that a guarded ramp raises, since it began, and when first.
create table app.flag_exposures (
  flag_id uuid not null,
  app_user_id uuid not null,
  first_at timestamp with time zone not null,
  constraint flag_exposures_pkey PRIMARY KEY (flag_id, app_user_id),
  constraint flag_exposures_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint flag_exposures_flag_id_fkey FOREIGN KEY (flag_id) REFERENCES app.flags(id) ON DELETE CASCADE
);
CREATE INDEX flag_exposures_of_user ON app.flag_exposures USING btree (app_user_id);
alter table app.flag_exposures enable row level security;

create table app.flag_overrides (
  flag_id uuid not null,
  app_user_id uuid not null,
  value jsonb not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint flag_overrides_pkey PRIMARY KEY (flag_id, app_user_id),
  constraint flag_overrides_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint flag_overrides_flag_id_fkey FOREIGN KEY (flag_id) REFERENCES app.flags(id) ON DELETE CASCADE
);
CREATE INDEX flag_overrides_of_user ON app.flag_overrides USING btree (app_user_id);
alter table app.flag_overrides enable row level security;
create policy "administrators read overrides" on app.flag_overrides for select to app_admin
  using (true);
create policy "dashboards read every row" on app.flag_overrides for select to app_dashboard
  using (true);

-- The hash of the project's flags: one row, new at every change of a flag or an override.
create table app.flag_sets (
  is_only boolean not null default true,
  version_hash text not null,
  changed_at timestamp with time zone not null default internal.now(),
  constraint flag_sets_pkey PRIMARY KEY (is_only),
  constraint flag_sets_one_row CHECK (is_only)
);
alter table app.flag_sets enable row level security;

-- What counting knows of a flag: when an app last asked, and the day on which one in a hundred requests is counted.
create table app.flag_states (
  flag_id uuid not null,
  last_evaluated_at timestamp with time zone,
  sampled_on date,
  constraint flag_states_pkey PRIMARY KEY (flag_id),
  constraint flag_states_flag_id_fkey FOREIGN KEY (flag_id) REFERENCES app.flags(id) ON DELETE CASCADE
);
alter table app.flag_states enable row level security;
create policy "administrators read when flags were evaluated" on app.flag_states for select to app_admin
  using (true);

-- When a user last got a value of a flag, by UTC day.
create table app.flag_users (
  flag_id uuid not null,
  value_key text not null,
  app_user_id uuid not null,
  last_day date not null,
  constraint flag_users_pkey PRIMARY KEY (flag_id, value_key, app_user_id),
  constraint flag_users_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint flag_users_value_is_known FOREIGN KEY (flag_id, value_key) REFERENCES app.flag_values(flag_id, value_key) ON DELETE CASCADE
);
CREATE INDEX flag_users_lately ON app.flag_users USING btree (flag_id, last_day);
CREATE INDEX flag_users_of_user ON app.flag_users USING btree (app_user_id);
alter table app.flag_users enable row level security;
create policy "administrators read users of flags" on app.flag_users for select to app_admin
  using (true);
create policy "dashboards read every row" on app.flag_users for select to app_dashboard
  using (true);
create policy "workers delete users of flags" on app.flag_users for delete to app_worker
  using (true);
create policy "workers read users of flags" on app.flag_users for select to app_worker
  using (true);

-- Each value that a flag ever gave; value_key is its MD5.
create table app.flag_values (
  flag_id uuid not null,
  value_key text not null,
  value jsonb not null,
  constraint flag_values_pkey PRIMARY KEY (flag_id, value_key),
  constraint flag_values_flag_id_fkey FOREIGN KEY (flag_id) REFERENCES app.flags(id) ON DELETE CASCADE
);
alter table app.flag_values enable row level security;
create policy "administrators read evaluated values of flags" on app.flag_values for select to app_admin
  using (true);
create policy "dashboards read every row" on app.flag_values for select to app_dashboard
  using (true);

-- A flag as each of its versions was.
create table app.flag_versions (
  flag_id uuid not null,
  version integer not null,
  snapshot jsonb not null,
  actor jsonb not null,
  changed_at timestamp with time zone not null default internal.now(),
  constraint flag_versions_pkey PRIMARY KEY (flag_id, version),
  constraint flag_versions_flag_id_fkey FOREIGN KEY (flag_id) REFERENCES app.flags(id) ON DELETE CASCADE
);
alter table app.flag_versions enable row level security;
create policy "administrators read versions of flags" on app.flag_versions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.flag_versions for select to app_dashboard
  using (true);

create table app.flags (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  description text,
  value_type text not null,
  is_enabled boolean not null default true,
  off_value jsonb not null,
  default_value jsonb not null,
  rules jsonb not null default '[]'::jsonb,
  schedule jsonb not null default '[]'::jsonb,
  -- When the first step of the schedule is due, by trigger.
  next_at timestamp with time zone,
  -- The last ramp: {rule_index, from, to, step, every_hours, guardrail, started_at, ends_at, stopped_at, rate}.
  ramp jsonb,
  tags text[] not null default '{}'::text[],
  owner text,
  version integer not null default 1,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint flags_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A flag with this key exists.
  constraint flags_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint flags_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint flags_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint flags_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint flags_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR owner: must have 1 to 200 characters.
  constraint flags_owner_1_to_200 CHECK (((char_length(owner) >= 1) AND (char_length(owner) <= 200))),
  -- 400 VALIDATION_ERROR rules: must be a list of at most 50.
  constraint flags_rules_at_most_50 CHECK (((jsonb_typeof(rules) = 'array'::text) AND (jsonb_array_length(rules) <= 50))),
  -- 400 VALIDATION_ERROR schedule: must be a list of at most 100.
  constraint flags_schedule_at_most_100 CHECK (((jsonb_typeof(schedule) = 'array'::text) AND (jsonb_array_length(schedule) <= 100))),
  -- 400 VALIDATION_ERROR tags: must be a list of at most 20.
  constraint flags_tags_at_most_20 CHECK ((cardinality(tags) <= 20)),
  -- 400 VALIDATION_ERROR value_type: must be boolean, string, number or json.
  constraint flags_value_type_known CHECK ((value_type = ANY (ARRAY['boolean'::text, 'string'::text, 'number'::text, 'json'::text])))
);
CREATE INDEX flags_due ON app.flags USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX flags_guarded ON app.flags USING btree (((ramp #>> '{guardrail,event_name}'::text[]))) WHERE ((ramp -> 'guardrail'::text) IS NOT NULL);
CREATE INDEX flags_newest ON app.flags USING btree (created_at DESC, id DESC);
alter table app.flags enable row level security;
create policy "administrators add flags" on app.flags for insert to app_admin
  with check (true);
create policy "administrators change flags" on app.flags for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete flags" on app.flags for delete to app_admin
  using (true);
create policy "administrators read flags" on app.flags for select to app_admin
  using (true);
create policy "dashboards read every row" on app.flags for select to app_dashboard
  using (true);
create policy "workers read when flags change" on app.flags for select to app_worker
  using (true);

-- The code of a user, by which others ask to be friends without knowing an id. One each, made at its first use.
create table app.friend_codes (
  app_user_id uuid not null,
  code text not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint friend_codes_pkey PRIMARY KEY (app_user_id),
  constraint friend_codes_code_unique UNIQUE (code),
  constraint friend_codes_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint friend_codes_code_form CHECK ((code ~ '^[A-HJKMNP-Z2-9]{8}$'::text))
);
alter table app.friend_codes enable row level security;
create policy "users read their own code" on app.friend_codes for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- One row per pair of users, the smaller id first. metadata_a and metadata_b are the private notes of each about the
-- other.
create table app.friendships (
  user_a uuid not null,
  user_b uuid not null,
  status text not null,
  requested_by uuid not null,
  requested_at timestamp with time zone not null default internal.now(),
  responded_at timestamp with time zone,
  metadata_a jsonb not null default '{}'::jsonb,
  metadata_b jsonb not null default '{}'::jsonb,
  -- The one of the two who did not ask.
  asked uuid not null generated always as (
CASE
    WHEN (requested_by = user_a) THEN user_b
    ELSE user_a
END) stored,
  constraint friendships_pkey PRIMARY KEY (user_a, user_b),
  constraint friendships_user_a_fkey FOREIGN KEY (user_a) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint friendships_user_b_fkey FOREIGN KEY (user_b) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint friendships_accepted_when_responded CHECK (((status = 'accepted'::text) = (responded_at IS NOT NULL))),
  constraint friendships_metadata_a_is_object CHECK ((jsonb_typeof(metadata_a) = 'object'::text)),
  constraint friendships_metadata_b_is_object CHECK ((jsonb_typeof(metadata_b) = 'object'::text)),
  constraint friendships_one_row_per_pair CHECK ((user_a < user_b)),
  constraint friendships_requested_by_one_of_both CHECK (((requested_by = user_a) OR (requested_by = user_b))),
  constraint friendships_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'accepted'::text])))
);
CREATE INDEX friendships_accepted_of_a ON app.friendships USING btree (user_a, responded_at DESC, user_b DESC) WHERE (status = 'accepted'::text);
CREATE INDEX friendships_accepted_of_b ON app.friendships USING btree (user_b, responded_at DESC, user_a DESC) WHERE (status = 'accepted'::text);
CREATE INDEX friendships_incoming ON app.friendships USING btree (asked, requested_at DESC, requested_by DESC) WHERE (status = 'pending'::text);
CREATE INDEX friendships_of_b ON app.friendships USING btree (user_b, user_a);
CREATE INDEX friendships_outgoing ON app.friendships USING btree (requested_by, requested_at DESC, asked DESC) WHERE (status = 'pending'::text);
alter table app.friendships enable row level security;
create policy "administrators read every friendship" on app.friendships for select to app_admin
  using (true);
create policy "dashboards read every row" on app.friendships for select to app_dashboard
  using (true);
create policy "users read their own friendships" on app.friendships for select to app_user
  using (((user_a = ( SELECT internal.user_id() AS user_id)) OR (user_b = ( SELECT internal.user_id() AS user_id))));

-- The names of collections (column_id null) and of their columns in GraphQL. They are made of the names of the
-- definitions, and of two that would be the same the later one gets another; a name that was told once stays.
create table app.graphql_names (
  collection_id uuid not null,
  column_id uuid,
  name text not null,
  constraint graphql_names_one_each UNIQUE NULLS NOT DISTINCT (collection_id, column_id),
  constraint graphql_names_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES app.collections(id) ON DELETE CASCADE,
  constraint graphql_names_column_id_fkey FOREIGN KEY (column_id) REFERENCES app.collection_columns(id) ON DELETE CASCADE
);
CREATE INDEX graphql_names_of_column ON app.graphql_names USING btree (column_id);
alter table app.graphql_names enable row level security;

-- Codes that let their holders into a group, so many and until a time.
create table app.group_invites (
  id uuid not null default internal.new_id(),
  group_id uuid not null,
  code text not null,
  role text not null default 'member'::text,
  max_uses integer not null default 1,
  uses integer not null default 0,
  created_by uuid not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint group_invites_pkey PRIMARY KEY (id),
  constraint group_invites_code_unique UNIQUE (code),
  constraint group_invites_created_by_member FOREIGN KEY (group_id, created_by) REFERENCES app.group_members(group_id, app_user_id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint group_invites_group_id_fkey FOREIGN KEY (group_id) REFERENCES app.groups(id) ON DELETE CASCADE,
  constraint group_invites_code_form CHECK ((code ~ '^[A-HJKMNP-Z2-9]{12}$'::text)),
  constraint group_invites_max_uses_1_to_10000 CHECK (((max_uses >= 1) AND (max_uses <= 10000))),
  constraint group_invites_role_below_owner CHECK ((role = ANY (ARRAY['admin'::text, 'member'::text, 'viewer'::text]))),
  constraint group_invites_uses_0_to_max_uses CHECK (((uses >= 0) AND (uses <= max_uses)))
);
CREATE INDEX group_invites_newest ON app.group_invites USING btree (group_id, created_at DESC, id DESC);
CREATE INDEX group_invites_of_member ON app.group_invites USING btree (group_id, created_by);
alter table app.group_invites enable row level security;

-- Who is in a group. Rank: owner, admin, member, viewer.
create table app.group_members (
  group_id uuid not null,
  app_user_id uuid not null,
  role text not null default 'member'::text,
  metadata jsonb not null default '{}'::jsonb,
  joined_at timestamp with time zone not null default internal.now(),
  constraint group_members_pkey PRIMARY KEY (group_id, app_user_id),
  constraint group_members_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint group_members_group_id_fkey FOREIGN KEY (group_id) REFERENCES app.groups(id) ON DELETE CASCADE,
  constraint group_members_metadata_is_object CHECK ((jsonb_typeof(metadata) = 'object'::text)),
  constraint group_members_role_known CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text, 'viewer'::text])))
);
CREATE INDEX group_members_of_user ON app.group_members USING btree (app_user_id, joined_at DESC, group_id DESC) INCLUDE (role);
CREATE UNIQUE INDEX group_members_one_owner ON app.group_members USING btree (group_id) WHERE (role = 'owner'::text);
CREATE INDEX group_members_roster ON app.group_members USING btree (group_id, joined_at, app_user_id);
alter table app.group_members enable row level security;
create policy "administrators read members" on app.group_members for select to app_admin
  using (true);
create policy "dashboards read every row" on app.group_members for select to app_dashboard
  using (true);
create policy "server keys read members" on app.group_members for select to app_server
  using (true);
create policy "users read their own memberships and members of visible groups" on app.group_members for select to app_user
  using (((app_user_id = ( SELECT internal.user_id() AS user_id)) OR (EXISTS ( SELECT
   FROM app.groups g
  WHERE (g.id = group_members.group_id)))));

-- Groups of end users. member_count is kept by a trigger on app.group_members.
create table app.groups (
  id uuid not null default internal.new_id(),
  name text not null,
  description text,
  avatar_url text,
  is_public boolean not null default true,
  max_members integer not null default 100,
  metadata jsonb not null default '{}'::jsonb,
  member_count integer not null default 0,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint groups_pkey PRIMARY KEY (id),
  constraint groups_id_and_is_public UNIQUE (id, is_public),
  -- 400 INVALID_INPUT avatar_url: must have at most 2000 characters.
  constraint groups_avatar_url_at_most_2000 CHECK ((char_length(avatar_url) <= 2000)),
  -- 400 INVALID_INPUT description: must have at most 2000 characters.
  constraint groups_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 INVALID_INPUT max_members: must be 1 to 100000.
  constraint groups_max_members_1_to_100000 CHECK (((max_members >= 1) AND (max_members <= 100000))),
  -- 400 INVALID_INPUT metadata: must be an object.
  constraint groups_metadata_is_object CHECK ((jsonb_typeof(metadata) = 'object'::text)),
  -- 400 INVALID_INPUT name: must have 1 to 100 characters.
  constraint groups_name_1_to_100 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  -- 400 INVALID_INPUT name: must be one line of text.
  constraint groups_name_is_one_line CHECK (internal.is_line(name)),
  -- 409 GROUP_FULL: The group has reached its maximum number of members.
  constraint groups_within_max_members CHECK ((member_count <= max_members))
);
CREATE INDEX groups_all_names ON app.groups USING gin (name extensions.gin_trgm_ops);
CREATE INDEX groups_all_newest ON app.groups USING btree (created_at DESC, id DESC);
CREATE INDEX groups_newest ON app.groups USING btree (created_at DESC, id DESC) WHERE is_public;
CREATE INDEX groups_search ON app.groups USING gin (name extensions.gin_trgm_ops) WHERE is_public;
alter table app.groups enable row level security;
create policy "administrators read groups" on app.groups for select to app_admin
  using (true);
create policy "dashboards read every row" on app.groups for select to app_dashboard
  using (true);
create policy "server keys read groups" on app.groups for select to app_server
  using (true);
create policy "users read public groups and their own" on app.groups for select to app_user
  using (internal.group_is_visible(groups.*, ( SELECT ARRAY( SELECT internal.my_group_ids() AS my_group_ids) AS "array")));

-- Answers kept for 24 hours under the Idempotency-Key header, per caller and route.
create table app.idempotency_keys (
  caller text not null,
  route text not null,
  key text not null,
  body_hash text not null,
  status integer,
  body json,
  created_at timestamp with time zone not null default internal.now(),
  constraint idempotency_keys_pkey PRIMARY KEY (caller, route, key),
  constraint idempotency_keys_printable CHECK ((key ~ '^[ -~]{1,255}$'::text))
);
CREATE INDEX idempotency_keys_created ON app.idempotency_keys USING btree (created_at);
alter table app.idempotency_keys enable row level security;
create policy "workers clear old keys" on app.idempotency_keys for delete to app_worker
  using (true);
create policy "workers find old keys" on app.idempotency_keys for select to app_worker
  using (true);

-- Webhooks of providers as they were received, each event once, stored before the response. outcome is null until the
-- worker has processed the event.
create table app.inbound_events (
  id uuid not null default internal.new_id(),
  provider text not null,
  event_key text not null,
  body text not null,
  outcome text,
  received_at timestamp with time zone not null default internal.now(),
  processed_at timestamp with time zone,
  constraint inbound_events_pkey PRIMARY KEY (id),
  constraint inbound_events_once UNIQUE (provider, event_key),
  constraint inbound_events_body_at_most_1_mb CHECK ((octet_length(body) <= 1048576)),
  constraint inbound_events_event_key_at_most_300 CHECK ((char_length(event_key) <= 300)),
  constraint inbound_events_outcome_at_most_64 CHECK ((char_length(outcome) <= 64)),
  constraint inbound_events_provider_known CHECK ((provider = ANY (ARRAY['revenuecat'::text, 'superwall'::text])))
);
CREATE INDEX inbound_events_newest ON app.inbound_events USING btree (provider, received_at DESC, id DESC);
CREATE INDEX inbound_events_received ON app.inbound_events USING btree (received_at);
alter table app.inbound_events enable row level security;
create policy "administrators read received webhooks" on app.inbound_events for select to app_admin
  using (true);

-- Connected providers. config_sealed is the whole config, encrypted by the server under the key that key_id names; it
-- is never returned.
create table app.integrations (
  id uuid not null default internal.new_id(),
  provider text not null,
  is_active boolean not null default true,
  config_sealed text not null,
  key_id text not null,
  webhook_path text,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint integrations_pkey PRIMARY KEY (id),
  constraint integrations_one_per_provider UNIQUE (provider)
);
alter table app.integrations enable row level security;
create policy "administrators connect providers" on app.integrations for insert to app_admin
  with check (true);
create policy "administrators disconnect providers" on app.integrations for delete to app_admin
  using (true);
create policy "administrators read integrations" on app.integrations for select to app_admin
  using (true);
create policy "administrators replace configs" on app.integrations for update to app_admin
  using (true)
  with check (true);
create policy "dashboards read every row" on app.integrations for select to app_dashboard
  using (true);
create policy "workers read integrations" on app.integrations for select to app_worker
  using (true);

-- Every movement of every stack, never changed. Ids are made while the user is locked.
create table app.inventory_ledger_rows (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  stack_id uuid not null,
  catalog_item_id uuid not null,
  change bigint not null,
  quantity_after bigint not null,
  kind text not null,
  reason text not null,
  source_type text not null,
  source_id text not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint inventory_ledger_rows_pkey PRIMARY KEY (id),
  constraint inventory_ledger_rows_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  -- 409 ITEM_IN_USE: Users had this item. Set is_active to false instead.
  constraint inventory_ledger_rows_catalog_item_id_fkey FOREIGN KEY (catalog_item_id) REFERENCES app.catalog_items(id) ON DELETE RESTRICT,
  constraint inventory_ledger_rows_stack_id_fkey FOREIGN KEY (stack_id) REFERENCES app.inventory_stacks(id) ON DELETE CASCADE,
  constraint inventory_ledger_rows_change_not_zero CHECK ((change <> 0)),
  constraint inventory_ledger_rows_kind_known CHECK ((kind = ANY (ARRAY['granted'::text, 'consumed'::text, 'revoked'::text, 'merged'::text]))),
  constraint inventory_ledger_rows_never_negative CHECK ((quantity_after >= 0)),
  constraint inventory_ledger_rows_reason_1_to_200 CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 200)))
);
CREATE INDEX inventory_ledger_rows_of_item ON app.inventory_ledger_rows USING btree (catalog_item_id);
CREATE INDEX inventory_ledger_rows_of_stack ON app.inventory_ledger_rows USING btree (stack_id);
CREATE INDEX inventory_ledger_rows_of_user ON app.inventory_ledger_rows USING btree (app_user_id, id DESC);
alter table app.inventory_ledger_rows enable row level security;
create policy "administrators read every movement of items" on app.inventory_ledger_rows for select to app_admin
  using (true);
create policy "dashboards read every row" on app.inventory_ledger_rows for select to app_dashboard
  using (true);

-- What users have of an item: one stack for each end. Expired and empty ones stay as a record and are hidden. At most
-- 10,000 a user.
create table app.inventory_stacks (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  catalog_item_id uuid not null,
  quantity bigint not null,
  expires_at timestamp with time zone,
  metadata jsonb not null default '{}'::jsonb,
  source_type text not null,
  source_id text not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  -- When it was told that what was left of the stack expired; null until then. That it has expired says expires_at
  -- alone.
  expired_at timestamp with time zone,
  constraint inventory_stacks_pkey PRIMARY KEY (id),
  constraint inventory_stacks_one_per_end UNIQUE NULLS NOT DISTINCT (app_user_id, catalog_item_id, expires_at),
  constraint inventory_stacks_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  -- 409 ITEM_IN_USE: Users have this item. Set is_active to false instead.
  constraint inventory_stacks_catalog_item_id_fkey FOREIGN KEY (catalog_item_id) REFERENCES app.catalog_items(id) ON DELETE RESTRICT,
  constraint inventory_stacks_never_negative CHECK ((quantity >= 0))
);
CREATE INDEX inventory_stacks_expiring ON app.inventory_stacks USING btree (expires_at, id) WHERE ((expires_at IS NOT NULL) AND (expired_at IS NULL) AND (quantity > 0));
CREATE INDEX inventory_stacks_newest ON app.inventory_stacks USING btree (created_at DESC, id DESC);
CREATE INDEX inventory_stacks_of_item ON app.inventory_stacks USING btree (catalog_item_id, created_at DESC, id DESC);
CREATE INDEX inventory_stacks_of_user ON app.inventory_stacks USING btree (app_user_id, created_at DESC, id DESC);
alter table app.inventory_stacks enable row level security;
create policy "administrators read every stack" on app.inventory_stacks for select to app_admin
  using (true);
create policy "dashboards read every row" on app.inventory_stacks for select to app_dashboard
  using (true);
create policy "users read their own stacks" on app.inventory_stacks for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Sums of neighbouring buckets, so that a rank adds up few rows in a run of any size.
create table app.leaderboard_bucket_groups (
  run_id uuid not null,
  from_place numeric not null,
  from_at timestamp with time zone not null,
  from_id uuid not null,
  entries bigint not null,
  buckets integer not null,
  constraint leaderboard_bucket_groups_pkey PRIMARY KEY (run_id, from_place, from_at, from_id)
);
alter table app.leaderboard_bucket_groups enable row level security;

-- How many folded entries lie between this bound and the next. Changed by who holds the run's fold alone.
create table app.leaderboard_buckets (
  run_id uuid not null,
  from_place numeric not null,
  from_at timestamp with time zone not null,
  from_id uuid not null,
  entries bigint not null,
  constraint leaderboard_buckets_pkey PRIMARY KEY (run_id, from_place, from_at, from_id)
);
alter table app.leaderboard_buckets enable row level security;

-- Keys that entries came to (n is 1) or left (-1), and that no bucket counts yet.
create table app.leaderboard_changes (
  id bigint not null generated always as identity,
  run_id uuid not null,
  place numeric not null,
  at timestamp with time zone not null,
  whose uuid not null,
  n smallint not null,
  made xid8 not null default pg_current_xact_id()
);
CREATE INDEX leaderboard_changes_of_run ON app.leaderboard_changes USING btree (run_id, made);
alter table app.leaderboard_changes enable row level security;

create table app.leaderboard_entries (
  run_id uuid not null,
  app_user_id uuid not null,
  score numeric not null,
  -- The score with the sign that makes smaller better, whichever way the board sorts.
  place numeric not null,
  reached_at timestamp with time zone not null,
  submissions bigint not null default 0,
  metadata jsonb not null default '{}'::jsonb,
  -- The user is banned: the entry counts in no rank.
  is_hidden boolean not null default false,
  -- The biggest improvement that one submission brought, for the anomalies.
  biggest_step numeric,
  final_rank bigint,
  window_started_at timestamp with time zone,
  -- Submissions within the minute that began at window_started_at.
  window_count integer not null default 0,
  created_at timestamp with time zone not null default internal.now(),
  constraint leaderboard_entries_pkey PRIMARY KEY (app_user_id, run_id),
  constraint leaderboard_entries_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint leaderboard_entries_run_id_fkey FOREIGN KEY (run_id) REFERENCES app.leaderboard_runs(id) ON DELETE CASCADE,
  constraint leaderboard_entries_metadata_is_object CHECK ((jsonb_typeof(metadata) = 'object'::text))
);
CREATE INDEX leaderboard_entries_made ON app.leaderboard_entries USING brin (created_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX leaderboard_entries_order ON app.leaderboard_entries USING btree (run_id, is_hidden, place, reached_at, app_user_id);
alter table app.leaderboard_entries enable row level security;
create policy "administrators read every entry" on app.leaderboard_entries for select to app_admin
  using (true);
create policy "dashboards read every row" on app.leaderboard_entries for select to app_dashboard
  using (true);
create policy "users read their own entries" on app.leaderboard_entries for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Changes of transactions before folded_to are all folded: whoever reads what waits begins there, and does not step
-- over the remains of the others.
create table app.leaderboard_folds (
  run_id uuid not null,
  folded_to xid8 not null,
  constraint leaderboard_folds_pkey PRIMARY KEY (run_id)
);
alter table app.leaderboard_folds enable row level security;

-- One period of a leaderboard. A shadow is being rebuilt beside its live run; a doomed one waits to be deleted.
create table app.leaderboard_runs (
  id uuid not null default internal.new_id(),
  leaderboard_id uuid not null,
  run_key text not null,
  starts_at timestamp with time zone,
  ends_at timestamp with time zone,
  state text not null default 'live'::text,
  -- The run that is being rebuilt to take its place: writers write both.
  shadow_id uuid,
  operation_id uuid,
  closed_at timestamp with time zone,
  is_frozen boolean not null default false,
  -- A transaction that began after closed_at or shadow_id was committed. When all older ones have ended, every writer has
  -- seen it.
  fence xid8,
  cursor_place numeric,
  cursor_at timestamp with time zone,
  cursor_id uuid,
  -- How many entries have their final rank; the cursor is the last of them, or how far a rebuild is.
  frozen bigint not null default 0,
  created_at timestamp with time zone not null default internal.now(),
  constraint leaderboard_runs_pkey PRIMARY KEY (id),
  constraint leaderboard_runs_leaderboard_id_fkey FOREIGN KEY (leaderboard_id) REFERENCES app.leaderboards(id) ON DELETE CASCADE,
  constraint leaderboard_runs_state_known CHECK ((state = ANY (ARRAY['live'::text, 'shadow'::text, 'doomed'::text])))
);
CREATE UNIQUE INDEX leaderboard_runs_live ON app.leaderboard_runs USING btree (leaderboard_id, run_key) WHERE (state = 'live'::text);
CREATE INDEX leaderboard_runs_newest ON app.leaderboard_runs USING btree (leaderboard_id, starts_at DESC NULLS LAST, id DESC);
CREATE UNIQUE INDEX leaderboard_runs_shadow ON app.leaderboard_runs USING btree (leaderboard_id, run_key) WHERE (state = 'shadow'::text);
alter table app.leaderboard_runs enable row level security;
create policy "administrators read runs" on app.leaderboard_runs for select to app_admin
  using (true);
create policy "dashboards read every row" on app.leaderboard_runs for select to app_dashboard
  using (true);

-- What is ranked, by which scores, over which periods. At most 100, so lists need no index.
create table app.leaderboards (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  description text,
  source jsonb not null default '{"type": "manual"}'::jsonb,
  -- Names of the events that move it, kept by a trigger from the source: the first thing that a batch of events asks.
  watches text[] not null default '{}'::text[],
  scoring text not null default 'best'::text,
  sort text not null default 'desc'::text,
  period text not null default 'all_time'::text,
  timezone text not null default 'UTC'::text,
  starts_at timestamp with time zone,
  ends_at timestamp with time zone,
  segment_id uuid,
  client_writable boolean not null default false,
  min_score numeric,
  max_score numeric,
  max_per_minute integer not null default 30,
  rewards jsonb not null default '[]'::jsonb,
  keep_runs integer not null default 12,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint leaderboards_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A leaderboard with this key exists.
  constraint leaderboards_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint leaderboards_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR ends_at: must be after starts_at.
  constraint leaderboards_end_after_start CHECK ((ends_at > starts_at)),
  -- 400 VALIDATION_ERROR keep_runs: must be 1 to 1000.
  constraint leaderboards_keep_runs_1_to_1000 CHECK (((keep_runs >= 1) AND (keep_runs <= 1000))),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint leaderboards_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR max_score: must not be below min_score.
  constraint leaderboards_max_above_min CHECK ((max_score >= min_score)),
  -- 400 VALIDATION_ERROR max_per_minute: must be 1 to 10000.
  constraint leaderboards_max_per_minute_1_to_10000 CHECK (((max_per_minute >= 1) AND (max_per_minute <= 10000))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint leaderboards_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint leaderboards_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR period: must be all_time, daily, weekly or monthly.
  constraint leaderboards_period_known CHECK ((period = ANY (ARRAY['all_time'::text, 'daily'::text, 'weekly'::text, 'monthly'::text]))),
  constraint leaderboards_rewards_is_list CHECK ((jsonb_typeof(rewards) = 'array'::text)),
  -- 400 VALIDATION_ERROR scoring: must be best, sum, last or count.
  constraint leaderboards_scoring_known CHECK ((scoring = ANY (ARRAY['best'::text, 'sum'::text, 'last'::text, 'count'::text]))),
  -- 400 VALIDATION_ERROR sort: must be desc or asc.
  constraint leaderboards_sort_known CHECK ((sort = ANY (ARRAY['desc'::text, 'asc'::text]))),
  -- 400 VALIDATION_ERROR source: must be an object.
  constraint leaderboards_source_is_object CHECK ((jsonb_typeof(source) = 'object'::text))
);
alter table app.leaderboards enable row level security;
create policy "administrators add boards" on app.leaderboards for insert to app_admin
  with check (true);
create policy "administrators change boards" on app.leaderboards for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete boards" on app.leaderboards for delete to app_admin
  using (true);
create policy "administrators read boards" on app.leaderboards for select to app_admin
  using (true);
create policy "dashboards read every row" on app.leaderboards for select to app_dashboard
  using (true);

-- Those who play against each other in one run, at most size of them.
create table app.league_cohorts (
  id uuid not null default internal.new_id(),
  run_id uuid not null,
  -- The place of the tier in those of the run, 0 for the lowest.
  tier smallint not null,
  -- One of eight: who puts a user into a cohort holds the lock of its lane, so that users who join at once do not wait
  -- for each other, and few cohorts are begun.
  lane smallint not null,
  size smallint not null,
  members smallint not null default 0,
  is_full boolean generated always as ((members >= size)) stored,
  settled_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  constraint league_cohorts_pkey PRIMARY KEY (id),
  constraint league_cohorts_of_run UNIQUE (run_id, id),
  constraint league_cohorts_run_id_fkey FOREIGN KEY (run_id) REFERENCES app.league_runs(id) ON DELETE CASCADE,
  constraint league_cohorts_within_size CHECK (((members >= 0) AND (members <= size)))
);
CREATE INDEX league_cohorts_by_tier ON app.league_cohorts USING btree (run_id, tier, id);
CREATE INDEX league_cohorts_with_room ON app.league_cohorts USING btree (run_id, tier, id DESC) WHERE (NOT is_full);
alter table app.league_cohorts enable row level security;
create policy "administrators read cohorts" on app.league_cohorts for select to app_admin
  using ((run_id = ANY (( SELECT internal.league_run_ids() AS league_run_ids)::uuid[])));
create policy "dashboards read every row" on app.league_cohorts for select to app_dashboard
  using (true);

-- A user's points in a run. Without a cohort they are not enough to be a member yet.
create table app.league_entries (
  run_id uuid not null,
  app_user_id uuid not null,
  league_id uuid not null,
  -- The start of the run, for the order of a user's runs.
  began_at timestamp with time zone not null,
  cohort_id uuid,
  tier smallint,
  points numeric not null,
  reached_at timestamp with time zone not null,
  -- The user is banned: has no rank, and stays.
  is_hidden boolean not null default false,
  result text not null default 'pending'::text,
  final_rank smallint,
  is_seen boolean not null default false,
  created_at timestamp with time zone not null default internal.now(),
  constraint league_entries_pkey PRIMARY KEY (app_user_id, run_id),
  constraint league_entries_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint league_entries_cohort_of_run FOREIGN KEY (run_id, cohort_id) REFERENCES app.league_cohorts(run_id, id) ON DELETE CASCADE,
  constraint league_entries_run_id_fkey FOREIGN KEY (run_id) REFERENCES app.league_runs(id) ON DELETE CASCADE,
  constraint league_entries_result_known CHECK ((result = ANY (ARRAY['pending'::text, 'promoted'::text, 'stayed'::text, 'relegated'::text])))
);
CREATE INDEX league_entries_of_cohort ON app.league_entries USING btree (run_id, cohort_id);
CREATE INDEX league_entries_of_user ON app.league_entries USING btree (league_id, app_user_id, began_at DESC, run_id DESC) WHERE (cohort_id IS NOT NULL);
alter table app.league_entries enable row level security;
create policy "administrators read every entry of leagues" on app.league_entries for select to app_admin
  using ((league_id = ANY (( SELECT internal.league_ids() AS league_ids)::uuid[])));
create policy "dashboards read every row" on app.league_entries for select to app_dashboard
  using (true);
create policy "users read their own entries of leagues" on app.league_entries for select to app_user
  using (((app_user_id = ( SELECT internal.user_id() AS user_id)) AND (league_id = ANY (( SELECT internal.league_ids() AS league_ids)::uuid[]))));

-- One period of a league, or a part of it, with the rules that it began with. Made by the first points in it.
create table app.league_runs (
  id uuid not null default internal.new_id(),
  -- No foreign key: when a league is deleted, its runs and results go by steps of a job.
  league_id uuid not null,
  run_key text not null,
  period_key text not null,
  starts_at timestamp with time zone not null,
  ends_at timestamp with time zone not null,
  -- From when on events count: a minute before the start of a run that closing another by hand began.
  takes_from timestamp with time zone not null,
  tiers jsonb not null,
  cohort_size integer not null,
  points jsonb not null,
  min_points_to_join integer not null,
  inactive_relegates boolean not null,
  rewards jsonb not null,
  -- When it was closed by hand: then it takes nothing afterwards.
  closed_at timestamp with time zone,
  -- A transaction that began after the run had ended: when all older ones have ended, every writer has seen it.
  fence xid8,
  is_warned boolean not null default false,
  is_settled boolean not null default false,
  -- The last cohort that was visited: by the announcement of the end, then by closing.
  cursor_id uuid,
  created_at timestamp with time zone not null default internal.now(),
  constraint league_runs_pkey PRIMARY KEY (id),
  constraint league_runs_key_unique UNIQUE (league_id, run_key),
  constraint league_runs_end_not_before_start CHECK ((ends_at >= starts_at))
);
CREATE INDEX league_runs_newest ON app.league_runs USING btree (league_id, starts_at DESC, id DESC);
alter table app.league_runs enable row level security;
create policy "administrators read runs of leagues" on app.league_runs for select to app_admin
  using ((league_id = ANY (( SELECT internal.league_ids() AS league_ids)::uuid[])));
create policy "dashboards read every row" on app.league_runs for select to app_dashboard
  using (true);

-- The tier that an administrator gave a user, until the user enters a run: the last of the ladder, whose others are the
-- tiers below it.
create table app.league_tiers (
  league_id uuid not null,
  app_user_id uuid not null,
  ladder text[] not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint league_tiers_pkey PRIMARY KEY (app_user_id, league_id),
  constraint league_tiers_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
CREATE INDEX league_tiers_of_league ON app.league_tiers USING btree (league_id);
alter table app.league_tiers enable row level security;

-- Ladders of tiers: who plays is in a cohort of a tier for a run, and moves by a tier at its end. At most 10.
create table app.leagues (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  tiers jsonb not null,
  cohort_size integer not null default 30,
  period text not null default 'weekly'::text,
  timezone text not null default 'UTC'::text,
  points jsonb not null default '{"type": "xp"}'::jsonb,
  min_points_to_join integer not null default 1,
  inactive_relegates boolean not null default true,
  rewards jsonb not null default '[]'::jsonb,
  -- Names of the events that give points, by the definition and by runs that are not settled; an empty text is XP.
  watches text[] not null default '{}'::text[],
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint leagues_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A league with this key exists.
  constraint leagues_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR cohort_size: must be 5 to 100.
  constraint leagues_cohort_size_5_to_100 CHECK (((cohort_size >= 5) AND (cohort_size <= 100))),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint leagues_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR min_points_to_join: must be 1 to 1000000.
  constraint leagues_min_points_to_join_1_to_1000000 CHECK (((min_points_to_join >= 1) AND (min_points_to_join <= 1000000))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint leagues_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint leagues_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR period: must be daily, weekly or monthly.
  constraint leagues_period_known CHECK ((period = ANY (ARRAY['daily'::text, 'weekly'::text, 'monthly'::text]))),
  -- 400 VALIDATION_ERROR points: must be an object.
  constraint leagues_points_is_object CHECK ((jsonb_typeof(points) = 'object'::text)),
  constraint leagues_rewards_is_list CHECK ((jsonb_typeof(rewards) = 'array'::text)),
  constraint leagues_tiers_is_list CHECK ((jsonb_typeof(tiers) = 'array'::text))
);
alter table app.leagues enable row level security;
create policy "administrators add leagues" on app.leagues for insert to app_admin
  with check (true);
create policy "administrators change leagues" on app.leagues for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete leagues" on app.leagues for delete to app_admin
  using (true);
create policy "administrators read leagues" on app.leagues for select to app_admin
  using (true);
create policy "dashboards read every row" on app.leagues for select to app_dashboard
  using (true);

-- Answers of requests that moved value under an Idempotency-Key, by user and route, kept for ever.
create table app.ledger_requests (
  app_user_id uuid not null,
  route text not null,
  key text not null,
  body_hash text not null,
  answer json not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint ledger_requests_pkey PRIMARY KEY (app_user_id, route, key),
  constraint ledger_requests_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint ledger_requests_key_printable CHECK ((key ~ '^[ -~]{1,255}$'::text))
);
alter table app.ledger_requests enable row level security;

-- Files of end users and of the project. The bytes are in the storage of the installation, under the ids of project and
-- asset and a version, never under a name that a caller chose.
create table app.media_assets (
  id uuid not null default internal.new_id(),
  -- The path that callers see, without the id of the project: user/<user id>/<name>, project/<name>,
  -- bucket/<bucket>/<path>.
  key text not null,
  filename text not null,
  mime_type text not null,
  status text not null default 'pending'::text,
  source text not null,
  size_bytes bigint,
  -- Names the stored bytes. Each upload that replaces them has a new version, so a version never changes.
  object_version text not null,
  -- The version that there is a thumbnail of.
  thumbnail_of text,
  -- The version that an open upload becomes when it is committed; null when there is none.
  upload_version text,
  upload_mime_type text,
  -- The exact size of the open upload of a key, where it was said: it counts against the budget from then on.
  upload_size_bytes bigint,
  -- Until when a signed upload URL may be used.
  upload_expires_at timestamp with time zone,
  alt_text text,
  metadata jsonb not null default '{}'::jsonb,
  folder_id uuid,
  -- The bucket of its own that a file is in; null for files of media, and for those that are deleted.
  bucket text,
  uploaded_by uuid,
  committed_at timestamp with time zone,
  deleted_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  -- Since when moderation hides the asset from its owner and from catalogs.
  blocked_at timestamp with time zone,
  -- Whether anybody reads the committed file at its public address, without a signature.
  is_public boolean not null default false,
  constraint media_assets_pkey PRIMARY KEY (id),
  constraint media_assets_bucket_fkey FOREIGN KEY (bucket) REFERENCES app.media_buckets(name) ON DELETE RESTRICT,
  -- 409 FOLDER_NOT_EMPTY: Assets are in this folder. Move them, or delete them.
  constraint media_assets_folder_id_fkey FOREIGN KEY (folder_id) REFERENCES app.media_folders(id) ON DELETE RESTRICT,
  constraint media_assets_uploaded_by_fkey FOREIGN KEY (uploaded_by) REFERENCES app.users(id) ON DELETE CASCADE,
  -- 400 VALIDATION_ERROR alt_text: must have at most 2000 characters.
  constraint media_assets_alt_text_at_most_2000 CHECK ((char_length(alt_text) <= 2000)),
  constraint media_assets_committed_with_size CHECK (((status <> 'committed'::text) OR (size_bytes IS NOT NULL))),
  -- 400 INVALID_INPUT filename: must have 1 to 255 characters.
  constraint media_assets_filename_1_to_255 CHECK (((char_length(filename) >= 1) AND (char_length(filename) <= 255))),
  constraint media_assets_key_1_to_1024_bytes CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 1024))),
  -- 400 VALIDATION_ERROR metadata: must be an object.
  constraint media_assets_metadata_is_object CHECK ((jsonb_typeof(metadata) = 'object'::text)),
  constraint media_assets_mime_type_at_most_127 CHECK (((octet_length(mime_type) >= 3) AND (octet_length(mime_type) <= 127))),
  constraint media_assets_pending_with_upload CHECK (((status <> 'pending'::text) OR (upload_version IS NOT NULL))),
  constraint media_assets_size_1_to_50_mb CHECK (((size_bytes >= 1) AND (size_bytes <= 52428800))),
  constraint media_assets_source_known CHECK ((source = ANY (ARRAY['upload'::text, 'presign'::text, 'job'::text]))),
  constraint media_assets_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'committed'::text, 'deleted'::text]))),
  constraint media_assets_upload_size_1_to_50_mb CHECK (((upload_size_bytes >= 1) AND (upload_size_bytes <= 52428800)))
);
CREATE INDEX media_assets_begun ON app.media_assets USING btree (uploaded_by, upload_expires_at) WHERE (upload_size_bytes IS NOT NULL);
CREATE INDEX media_assets_deleted ON app.media_assets USING btree (deleted_at) WHERE (status = 'deleted'::text);
CREATE INDEX media_assets_in_bucket ON app.media_assets USING btree (bucket, id) WHERE (bucket IS NOT NULL);
CREATE INDEX media_assets_in_folder ON app.media_assets USING btree (folder_id, status, created_at DESC, id DESC) WHERE (folder_id IS NOT NULL);
CREATE INDEX media_assets_names ON app.media_assets USING gin (filename extensions.gin_trgm_ops) WHERE (status = 'committed'::text);
CREATE INDEX media_assets_newest ON app.media_assets USING btree (status, created_at DESC, id DESC);
CREATE INDEX media_assets_of_type ON app.media_assets USING btree (mime_type, status, created_at DESC, id DESC);
CREATE INDEX media_assets_of_user ON app.media_assets USING btree (uploaded_by, status, created_at DESC, id DESC);
CREATE UNIQUE INDEX media_assets_one_per_key ON app.media_assets USING btree (key COLLATE "C") WHERE (status <> 'deleted'::text);
alter table app.media_assets enable row level security;
create policy "administrators read assets" on app.media_assets for select to app_admin
  using (true);
create policy "dashboards read every row" on app.media_assets for select to app_dashboard
  using (true);
create policy "server keys read committed assets" on app.media_assets for select to app_server
  using ((status = 'committed'::text));
create policy "users read their own committed assets" on app.media_assets for select to app_user
  using (((uploaded_by = ( SELECT internal.user_id() AS user_id)) AND (status = 'committed'::text) AND (blocked_at IS NULL)));

-- Buckets of files. Those of media have keys that say whose they are; those of another bucket have the key
-- bucket/<name of the bucket>/<path>.
create table app.media_buckets (
  name text not null,
  -- Whether anybody reads its committed files, without a key.
  is_public boolean not null default false,
  file_size_limit bigint,
  -- Types, or image/* and the like; null: all that are stored.
  allowed_mime_types text[],
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint media_buckets_pkey PRIMARY KEY (name),
  constraint media_buckets_at_most_100_types CHECK (((cardinality(allowed_mime_types) >= 1) AND (cardinality(allowed_mime_types) <= 100))),
  constraint media_buckets_limit_1_to_50_mb CHECK (((file_size_limit >= 1) AND (file_size_limit <= 52428800))),
  constraint media_buckets_name_form CHECK ((name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'::text))
);
alter table app.media_buckets enable row level security;
create policy "administrators see buckets" on app.media_buckets for select to app_admin
  using (true);
create policy "dashboards read every row" on app.media_buckets for select to app_dashboard
  using (true);
create policy "server keys see buckets" on app.media_buckets for select to app_server
  using (true);
create policy "users see public buckets, and the one of apps" on app.media_buckets for select to app_user
  using ((is_public OR (name = 'media'::text)));

-- Ordered selections of assets that apps read without a session.
create table app.media_catalogs (
  id uuid not null default internal.new_id(),
  slug text not null,
  name text not null,
  is_public boolean not null default true,
  asset_ids uuid[] not null default '{}'::uuid[],
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint media_catalogs_pkey PRIMARY KEY (id),
  -- 409 CONFLICT slug: A catalog with this slug exists.
  constraint media_catalogs_slug_unique UNIQUE (slug),
  -- 400 VALIDATION_ERROR asset_ids: must have at most 500 items.
  constraint media_catalogs_at_most_500_assets CHECK ((cardinality(asset_ids) <= 500)),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint media_catalogs_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint media_catalogs_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR slug: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint media_catalogs_slug_form CHECK ((slug ~ '^[a-z][a-z0-9_-]{0,127}$'::text))
);
CREATE INDEX media_catalogs_assets ON app.media_catalogs USING gin (asset_ids);
CREATE INDEX media_catalogs_newest ON app.media_catalogs USING btree (created_at DESC, id DESC);
alter table app.media_catalogs enable row level security;
create policy "administrators add catalogs" on app.media_catalogs for insert to app_admin
  with check (true);
create policy "administrators change catalogs" on app.media_catalogs for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete catalogs" on app.media_catalogs for delete to app_admin
  using (true);
create policy "administrators read catalogs" on app.media_catalogs for select to app_admin
  using (true);
create policy "dashboards read every row" on app.media_catalogs for select to app_dashboard
  using (true);

-- Folders in which administrators sort assets. They are not part of the key of an asset.
create table app.media_folders (
  id uuid not null default internal.new_id(),
  name text not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint media_folders_pkey PRIMARY KEY (id),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint media_folders_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint media_folders_name_is_one_line CHECK (internal.is_line(name))
);
CREATE INDEX media_folders_newest ON app.media_folders USING btree (created_at DESC, id DESC);
alter table app.media_folders enable row level security;
create policy "administrators add folders" on app.media_folders for insert to app_admin
  with check (true);
create policy "administrators change folders" on app.media_folders for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete folders" on app.media_folders for delete to app_admin
  using (true);
create policy "administrators read folders" on app.media_folders for select to app_admin
  using (true);
create policy "dashboards read every row" on app.media_folders for select to app_dashboard
  using (true);

-- Work on images. A thumbnail belongs to the asset; any other result is an asset of its own.
create table app.media_jobs (
  id uuid not null default internal.new_id(),
  asset_id uuid not null,
  -- The bytes that the job reads: those that the asset had when it was made.
  version text not null,
  operations jsonb not null,
  is_thumbnail boolean not null default false,
  status text not null default 'queued'::text,
  attempts integer not null default 0,
  error_code text,
  error_message text,
  result_asset_id uuid,
  created_at timestamp with time zone not null default internal.now(),
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  constraint media_jobs_pkey PRIMARY KEY (id),
  constraint media_jobs_asset_id_fkey FOREIGN KEY (asset_id) REFERENCES app.media_assets(id) ON DELETE CASCADE,
  constraint media_jobs_result_asset_id_fkey FOREIGN KEY (result_asset_id) REFERENCES app.media_assets(id) ON DELETE SET NULL,
  constraint media_jobs_1_to_10_operations CHECK (((jsonb_typeof(operations) = 'array'::text) AND ((jsonb_array_length(operations) >= 1) AND (jsonb_array_length(operations) <= 10)))),
  constraint media_jobs_attempts_not_negative CHECK ((attempts >= 0)),
  constraint media_jobs_status_known CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text])))
);
CREATE INDEX media_jobs_finished ON app.media_jobs USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX media_jobs_newest ON app.media_jobs USING btree (created_at DESC, id DESC);
CREATE INDEX media_jobs_of_asset ON app.media_jobs USING btree (asset_id, created_at DESC, id DESC);
CREATE INDEX media_jobs_of_status ON app.media_jobs USING btree (status, created_at DESC, id DESC);
CREATE UNIQUE INDEX media_jobs_one_thumbnail ON app.media_jobs USING btree (asset_id, version) WHERE is_thumbnail;
CREATE INDEX media_jobs_results ON app.media_jobs USING btree (result_asset_id) WHERE (result_asset_id IS NOT NULL);
alter table app.media_jobs enable row level security;
create policy "administrators read jobs" on app.media_jobs for select to app_admin
  using (true);
create policy "dashboards read every row" on app.media_jobs for select to app_dashboard
  using (true);

-- Assets whose bytes are to be removed. The row of the asset may be gone: its user was deleted.
create table app.media_removals (
  asset_id uuid not null,
  requested_at timestamp with time zone not null default internal.now(),
  constraint media_removals_pkey PRIMARY KEY (asset_id)
);
CREATE INDEX media_removals_oldest ON app.media_removals USING btree (requested_at, asset_id);
alter table app.media_removals enable row level security;

-- Sums over app.media_assets, kept by triggers: registered bytes of pending and committed assets, bytes and number of
-- committed ones. The sum is that of all slots, so that writers do not wait for each other, as in app.row_counts.
create table app.media_totals (
  slot bigint not null generated always as identity,
  registered_bytes bigint not null,
  stored_bytes bigint not null,
  objects bigint not null,
  constraint media_totals_pkey PRIMARY KEY (slot)
);
alter table app.media_totals enable row level security;

-- Ids and external_ids of users who were merged into another: providers go on to report purchases and events under
-- them.
create table app.merged_names (
  name text not null,
  app_user_id uuid not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint merged_names_pkey PRIMARY KEY (name),
  constraint merged_names_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint merged_names_name_1_to_255 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 255)))
);
CREATE INDEX merged_names_of_user ON app.merged_names USING btree (app_user_id, created_at DESC);
alter table app.merged_names enable row level security;

-- Reactions to messages, each emoji once by each user.
create table app.message_reactions (
  message_id uuid not null,
  emoji text not null,
  app_user_id uuid not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint message_reactions_pkey PRIMARY KEY (message_id, emoji, app_user_id),
  constraint message_reactions_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint message_reactions_message_id_fkey FOREIGN KEY (message_id) REFERENCES app.messages(id) ON DELETE CASCADE,
  -- 400 INVALID_PAYLOAD emoji: must have 1 to 64 characters.
  constraint message_reactions_emoji_1_to_64 CHECK (((char_length(emoji) >= 1) AND (char_length(emoji) <= 64)))
);
CREATE INDEX message_reactions_of_user ON app.message_reactions USING btree (app_user_id, message_id);
alter table app.message_reactions enable row level security;
create policy "administrators read reactions" on app.message_reactions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.message_reactions for select to app_dashboard
  using (true);
create policy "users read the reactions to messages that they see" on app.message_reactions for select to app_user
  using ((EXISTS ( SELECT
   FROM app.messages m
  WHERE (m.id = message_reactions.message_id))));

-- Messages of conversations; those of the system have no sender. reply_count is kept by triggers.
create table app.messages (
  id uuid not null default internal.new_id(),
  conversation_id uuid not null,
  sender_id uuid,
  body text not null,
  message_type text not null default 'text'::text,
  metadata jsonb not null default '{}'::jsonb,
  -- The participants that metadata.mentions named when the message was written, without its sender.
  mentions uuid[] not null default '{}'::uuid[],
  attachments jsonb not null default '[]'::jsonb,
  parent_message_id uuid,
  reply_count integer not null default 0,
  -- After every earlier message, entry and reading of its conversation, whatever the clock says.
  created_at timestamp with time zone not null,
  edited_at timestamp with time zone,
  constraint messages_pkey PRIMARY KEY (id),
  constraint messages_in_order UNIQUE (conversation_id, created_at),
  constraint messages_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES app.conversations(id) ON DELETE CASCADE,
  constraint messages_parent_message_id_fkey FOREIGN KEY (parent_message_id) REFERENCES app.messages(id) ON DELETE SET NULL,
  constraint messages_sender_id_fkey FOREIGN KEY (sender_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint messages_attachments_at_most_10 CHECK (((jsonb_typeof(attachments) = 'array'::text) AND (jsonb_array_length(attachments) <= 10))),
  -- 400 INVALID_PAYLOAD body: must have 1 to 10240 bytes.
  constraint messages_body_1_to_10240_bytes CHECK (((octet_length(body) >= 1) AND (octet_length(body) <= 10240))),
  -- 400 INVALID_PAYLOAD message_type: must have 1 to 64 characters.
  constraint messages_message_type_1_to_64 CHECK (((char_length(message_type) >= 1) AND (char_length(message_type) <= 64))),
  -- 400 INVALID_PAYLOAD metadata: must be an object.
  constraint messages_metadata_is_object CHECK ((jsonb_typeof(metadata) = 'object'::text)),
  constraint messages_reply_count_not_negative CHECK ((reply_count >= 0))
);
CREATE INDEX messages_by_parent ON app.messages USING btree (parent_message_id, conversation_id, created_at DESC);
CREATE INDEX messages_by_time ON app.messages USING brin (created_at);
CREATE INDEX messages_of_sender ON app.messages USING btree (sender_id, id);
CREATE INDEX messages_search ON app.messages USING gin (body extensions.gin_trgm_ops);
alter table app.messages enable row level security;
create policy "administrators read messages" on app.messages for select to app_admin
  using (true);
create policy "dashboards read every row" on app.messages for select to app_dashboard
  using (true);
create policy "users read the messages of their conversations" on app.messages for select to app_user
  using ((conversation_id IN ( SELECT internal.my_conversation_ids() AS my_conversation_ids)));

-- The queue of moderation. is_hidden: the content is hidden now; kept: what the hook of the subject needs to show it
-- again.
create table app.moderation_items (
  id uuid not null default internal.new_id(),
  subject_type text not null,
  subject_id uuid not null,
  subject_user_id uuid,
  snapshot jsonb not null default '{}'::jsonb,
  source text not null,
  rule_id uuid,
  reasons jsonb not null default '{}'::jsonb,
  report_count integer not null default 0,
  priority integer not null default 0,
  status text not null default 'pending'::text,
  is_hidden boolean not null default false,
  kept jsonb,
  moderator_id text,
  resolved_at timestamp with time zone,
  note text,
  created_at timestamp with time zone not null default internal.now(),
  constraint moderation_items_pkey PRIMARY KEY (id),
  constraint moderation_items_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES app.moderation_rules(id) ON DELETE SET NULL,
  constraint moderation_items_subject_user_id_fkey FOREIGN KEY (subject_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint moderation_items_note_at_most_2000 CHECK ((char_length(note) <= 2000)),
  constraint moderation_items_source_known CHECK ((source = ANY (ARRAY['report'::text, 'rule'::text]))),
  constraint moderation_items_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text, 'escalated'::text]))),
  constraint moderation_items_subject_type_known CHECK ((subject_type = ANY (ARRAY['user'::text, 'message'::text, 'review'::text, 'media'::text, 'feed_entry'::text, 'group'::text, 'collection_row'::text, 'content'::text, 'ai_invocation'::text])))
);
CREATE INDEX moderation_items_hidden ON app.moderation_items USING btree (subject_type, subject_id) WHERE is_hidden;
CREATE INDEX moderation_items_of_rule ON app.moderation_items USING btree (rule_id);
CREATE INDEX moderation_items_of_user ON app.moderation_items USING btree (subject_user_id);
CREATE UNIQUE INDEX moderation_items_one_open ON app.moderation_items USING btree (subject_type, subject_id) WHERE (status = ANY (ARRAY['pending'::text, 'escalated'::text]));
CREATE INDEX moderation_items_queue ON app.moderation_items USING btree (status, created_at DESC, id DESC);
alter table app.moderation_items enable row level security;
create policy "administrators read the queue" on app.moderation_items for select to app_admin
  using (true);
create policy "dashboards read every row" on app.moderation_items for select to app_dashboard
  using (true);

-- Reports of users, one for each reporter and subject.
create table app.moderation_reports (
  id uuid not null default internal.new_id(),
  reporter_id uuid not null,
  item_id uuid not null,
  subject_type text not null,
  subject_id uuid not null,
  reason text not null,
  details text,
  status text not null default 'received'::text,
  created_at timestamp with time zone not null default internal.now(),
  constraint moderation_reports_pkey PRIMARY KEY (id),
  constraint moderation_reports_once UNIQUE (reporter_id, subject_type, subject_id),
  constraint moderation_reports_item_id_fkey FOREIGN KEY (item_id) REFERENCES app.moderation_items(id) ON DELETE CASCADE,
  constraint moderation_reports_reporter_id_fkey FOREIGN KEY (reporter_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint moderation_reports_details_at_most_1000 CHECK ((char_length(details) <= 1000)),
  constraint moderation_reports_reason_known CHECK ((reason = ANY (ARRAY['spam'::text, 'abuse'::text, 'sexual'::text, 'violence'::text, 'self_harm'::text, 'copyright'::text, 'other'::text]))),
  constraint moderation_reports_status_known CHECK ((status = ANY (ARRAY['received'::text, 'action_taken'::text, 'no_action'::text])))
);
CREATE INDEX moderation_reports_of_item ON app.moderation_reports USING btree (item_id, created_at);
CREATE INDEX moderation_reports_of_user ON app.moderation_reports USING btree (reporter_id, created_at DESC, id DESC);
alter table app.moderation_reports enable row level security;
create policy "users read their own reports" on app.moderation_reports for select to app_user
  using ((reporter_id = ( SELECT internal.user_id() AS user_id)));

-- Rules of moderation, at most 50. applies_to, action, words (normalised) and expression (a regular expression of
-- Postgres) are compiled from config.
create table app.moderation_rules (
  id uuid not null default internal.new_id(),
  name text not null,
  rule_type text not null,
  config jsonb not null default '{}'::jsonb,
  is_active boolean not null default true,
  applies_to text[] not null default '{}'::text[],
  action text not null default 'queue'::text,
  words text[],
  expression text,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint moderation_rules_pkey PRIMARY KEY (id),
  constraint moderation_rules_action_known CHECK ((action = ANY (ARRAY['queue'::text, 'hide'::text, 'block'::text]))),
  -- 400 INVALID_INPUT config: must be an object.
  constraint moderation_rules_config_is_object CHECK ((jsonb_typeof(config) = 'object'::text)),
  -- 400 INVALID_INPUT name: must have 1 to 200 characters.
  constraint moderation_rules_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 INVALID_INPUT name: must be one line of text.
  constraint moderation_rules_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 INVALID_INPUT rule_type: must be keyword, regex, report_threshold, rate, link or new_account.
  constraint moderation_rules_type_known CHECK ((rule_type = ANY (ARRAY['keyword'::text, 'regex'::text, 'report_threshold'::text, 'rate'::text, 'link'::text, 'new_account'::text])))
);
CREATE INDEX moderation_rules_newest ON app.moderation_rules USING btree (created_at DESC, id DESC);
alter table app.moderation_rules enable row level security;
create policy "administrators add rules" on app.moderation_rules for insert to app_admin
  with check (true);
create policy "administrators change rules" on app.moderation_rules for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete rules" on app.moderation_rules for delete to app_admin
  using (true);
create policy "administrators read rules" on app.moderation_rules for select to app_admin
  using (true);
create policy "dashboards read every row" on app.moderation_rules for select to app_dashboard
  using (true);

-- Trust levels, stored and listed; the queue does not read them.
create table app.moderation_trust_levels (
  app_user_id uuid not null,
  trust_level text not null default 'new'::text,
  auto_approve boolean not null default false,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint moderation_trust_levels_pkey PRIMARY KEY (app_user_id),
  constraint moderation_trust_levels_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint moderation_trust_levels_level_known CHECK ((trust_level = ANY (ARRAY['new'::text, 'trusted'::text, 'moderator'::text])))
);
CREATE INDEX moderation_trust_levels_newest ON app.moderation_trust_levels USING btree (created_at DESC, app_user_id DESC);
alter table app.moderation_trust_levels enable row level security;
create policy "administrators read trust levels" on app.moderation_trust_levels for select to app_admin
  using (true);
create policy "dashboards read every row" on app.moderation_trust_levels for select to app_dashboard
  using (true);

-- How the subscription provider held each managed object when it was last applied or adopted. A live object with
-- another hash has drifted. is_pushed: the product is in its store, so that an apply never creates it there again.
create table app.monetization_applied_objects (
  object_type text not null,
  identifier text not null,
  document jsonb not null,
  more jsonb not null,
  hash text not null,
  is_pushed boolean not null default false,
  applied_at timestamp with time zone not null default internal.now(),
  constraint monetization_applied_objects_pkey PRIMARY KEY (object_type, identifier),
  -- 400 INVALID_BODY objects: an object of the provider has no key, or one of more than 300 characters, so that it cannot be declared.
  constraint monetization_applied_objects_identifier_1_to_300 CHECK (((char_length(identifier) >= 1) AND (char_length(identifier) <= 300))),
  constraint monetization_applied_objects_object_type_known CHECK ((object_type = ANY (ARRAY['product'::text, 'entitlement'::text, 'offering'::text, 'paywall'::text])))
);
alter table app.monetization_applied_objects enable row level security;
create policy "administrators read what was applied" on app.monetization_applied_objects for select to app_admin
  using (true);
create policy "workers forget what is gone" on app.monetization_applied_objects for delete to app_worker
  using (true);
create policy "workers read what was applied" on app.monetization_applied_objects for select to app_worker
  using (true);

-- What a project sells, as declared: one row for each object, in the shape of the API. Products are identified by store
-- and store identifier, the rest by key.
create table app.monetization_definitions (
  id uuid not null default internal.new_id(),
  object_type text not null,
  identifier text not null,
  definition jsonb not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint monetization_definitions_pkey PRIMARY KEY (id),
  constraint monetization_definitions_once UNIQUE (object_type, identifier),
  -- 400 INVALID_BODY objects: an object of the provider has no key, or one of more than 300 characters, so that it cannot be declared.
  constraint monetization_definitions_identifier_1_to_300 CHECK (((char_length(identifier) >= 1) AND (char_length(identifier) <= 300))),
  constraint monetization_definitions_object_type_known CHECK ((object_type = ANY (ARRAY['product'::text, 'entitlement'::text, 'offering'::text, 'paywall'::text])))
);
alter table app.monetization_definitions enable row level security;
create policy "administrators change declarations" on app.monetization_definitions for update to app_admin
  using (true)
  with check (true);
create policy "administrators declare" on app.monetization_definitions for insert to app_admin
  with check (true);
create policy "administrators read definitions" on app.monetization_definitions for select to app_admin
  using (true);
create policy "administrators withdraw declarations" on app.monetization_definitions for delete to app_admin
  using (true);
create policy "dashboards read every row" on app.monetization_definitions for select to app_dashboard
  using (true);
create policy "workers adopt" on app.monetization_definitions for insert to app_worker
  with check (true);
create policy "workers adopt changes" on app.monetization_definitions for update to app_worker
  using (true)
  with check (true);
create policy "workers adopt removals" on app.monetization_definitions for delete to app_worker
  using (true);
create policy "workers read definitions" on app.monetization_definitions for select to app_worker
  using (true);

-- Nature-themed words that display names are made of, numbered from 0 within each kind.
create table app.name_words (
  kind text not null,
  "position" integer not null,
  word text not null,
  constraint name_words_pkey PRIMARY KEY (kind, "position"),
  constraint name_words_unique UNIQUE (kind, word),
  constraint name_words_kind_known CHECK ((kind = ANY (ARRAY['adjective'::text, 'noun'::text])))
);
alter table app.name_words enable row level security;
create policy "administrators read name words" on app.name_words for select to app_admin
  using (true);
create policy "sign-in reads name words" on app.name_words for select to app_auth
  using (true);

-- Sign-ins by redirect in progress: ten minutes at the provider, then five until the app exchanges its code. Of state
-- and code the SHA-256 is stored. No account is touched before the exchange.
create table app.oauth_flows (
  id uuid not null default internal.new_id(),
  provider text not null,
  state_hash text not null,
  code_hash text,
  challenge text not null,
  challenge_method text not null,
  redirect_to text not null,
  -- The user whose session began the flow, to link the identity to; null for a sign-in.
  app_user_id uuid,
  session_id uuid,
  provider_id text,
  email text,
  display_name text,
  created_at timestamp with time zone not null default internal.now(),
  -- When the provider's answer was received: only the first one counts.
  taken_at timestamp with time zone,
  expires_at timestamp with time zone not null,
  constraint oauth_flows_pkey PRIMARY KEY (id),
  constraint oauth_flows_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint oauth_flows_challenge_43_to_128 CHECK (((char_length(challenge) >= 43) AND (char_length(challenge) <= 128))),
  constraint oauth_flows_challenge_method_known CHECK ((challenge_method = ANY (ARRAY['plain'::text, 's256'::text]))),
  constraint oauth_flows_code_names_an_identity CHECK (((code_hash IS NULL) OR (provider_id IS NOT NULL))),
  constraint oauth_flows_display_name_is_one_line CHECK (internal.is_line(display_name)),
  constraint oauth_flows_links_by_a_session CHECK (((app_user_id IS NULL) = (session_id IS NULL)))
);
CREATE UNIQUE INDEX oauth_flows_code ON app.oauth_flows USING btree (code_hash) WHERE (code_hash IS NOT NULL);
CREATE INDEX oauth_flows_expire ON app.oauth_flows USING btree (expires_at);
CREATE INDEX oauth_flows_of_user ON app.oauth_flows USING btree (app_user_id) WHERE (app_user_id IS NOT NULL);
CREATE UNIQUE INDEX oauth_flows_state ON app.oauth_flows USING btree (state_hash);
alter table app.oauth_flows enable row level security;
create policy "sign-in advances flows" on app.oauth_flows for update to app_auth
  using (true)
  with check (true);
create policy "sign-in begins flows" on app.oauth_flows for insert to app_auth
  with check (true);
create policy "sign-in ends flows" on app.oauth_flows for delete to app_auth
  using (true);
create policy "sign-in reads flows" on app.oauth_flows for select to app_auth
  using (true);

-- Where users of the app sign in by redirect. secret_sealed is the client secret, or the private key that Apple's
-- secrets are signed with, encrypted by the server under the key that key_id names; it is never returned.
create table app.oauth_providers (
  id uuid not null default internal.new_id(),
  name text not null,
  -- Of a provider with a name of its own; null where the name says it.
  issuer text,
  client_id text not null,
  secret_sealed text,
  key_id text,
  team_id text,
  signing_key_id text,
  scopes text[] not null default '{}'::text[],
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint oauth_providers_pkey PRIMARY KEY (id),
  constraint oauth_providers_name_unique UNIQUE (name),
  -- 400 VALIDATION_ERROR client_id: must have 1 to 500 characters.
  constraint oauth_providers_client_id_1_to_500 CHECK (((char_length(client_id) >= 1) AND (char_length(client_id) <= 500))),
  -- 400 VALIDATION_ERROR issuer: must have at most 500 characters.
  constraint oauth_providers_issuer_at_most_500 CHECK ((char_length(issuer) <= 500)),
  -- 400 VALIDATION_ERROR name: must match ^[a-z][a-z0-9_-]{0,31}$.
  constraint oauth_providers_name_form CHECK ((name ~ '^[a-z][a-z0-9_-]{0,31}$'::text)),
  -- 400 VALIDATION_ERROR scopes: must have at most 20 items.
  constraint oauth_providers_scopes_at_most_20 CHECK ((cardinality(scopes) <= 20)),
  constraint oauth_providers_sealed_under_a_key CHECK (((secret_sealed IS NULL) = (key_id IS NULL))),
  -- 400 VALIDATION_ERROR signing_key_id: must have at most 64 characters.
  constraint oauth_providers_signing_key_id_at_most_64 CHECK ((char_length(signing_key_id) <= 64)),
  -- 400 VALIDATION_ERROR team_id: must have at most 64 characters.
  constraint oauth_providers_team_id_at_most_64 CHECK ((char_length(team_id) <= 64))
);
alter table app.oauth_providers enable row level security;
create policy "administrators change providers" on app.oauth_providers for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete providers" on app.oauth_providers for delete to app_admin
  using (true);
create policy "administrators read providers" on app.oauth_providers for select to app_admin
  using (true);
create policy "administrators set providers" on app.oauth_providers for insert to app_admin
  with check (true);
create policy "sign-in reads providers" on app.oauth_providers for select to app_auth
  using (true);
create policy "the server reads sealed secrets" on app.oauth_providers for select to app_worker
  using (true);

-- Where a sign-in by redirect may return to; the first one is the default.
create table app.oauth_redirects (
  id uuid not null default internal.new_id(),
  address text not null,
  "position" smallint not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint oauth_redirects_pkey PRIMARY KEY (id),
  constraint oauth_redirects_address_unique UNIQUE (address),
  constraint oauth_redirects_address_1_to_500 CHECK (((char_length(address) >= 1) AND (char_length(address) <= 500)))
);
alter table app.oauth_redirects enable row level security;
create policy "administrators add redirect addresses" on app.oauth_redirects for insert to app_admin
  with check (true);
create policy "administrators order redirect addresses" on app.oauth_redirects for update to app_admin
  using (true)
  with check (true);
create policy "administrators read redirect addresses" on app.oauth_redirects for select to app_admin
  using (true);
create policy "administrators remove redirect addresses" on app.oauth_redirects for delete to app_admin
  using (true);
create policy "sign-in reads redirect addresses" on app.oauth_redirects for select to app_auth
  using (true);
create policy "the server counts redirect addresses" on app.oauth_redirects for select to app_worker
  using (true);

create table app.onboarding_flows (
  id uuid not null default internal.new_id(),
  name text not null,
  steps jsonb not null,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint onboarding_flows_pkey PRIMARY KEY (id),
  -- 400 INVALID_INPUT name: must have 1 to 200 characters.
  constraint onboarding_flows_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 INVALID_INPUT name: must be one line of text.
  constraint onboarding_flows_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 INVALID_INPUT steps: must be a list of at most 100.
  constraint onboarding_flows_steps_is_list CHECK ((jsonb_typeof(steps) = 'array'::text))
);
CREATE INDEX onboarding_flows_newest ON app.onboarding_flows USING btree (created_at DESC, id DESC);
alter table app.onboarding_flows enable row level security;
create policy "administrators add flows" on app.onboarding_flows for insert to app_admin
  with check (true);
create policy "administrators change flows" on app.onboarding_flows for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete flows" on app.onboarding_flows for delete to app_admin
  using (true);
create policy "administrators read flows" on app.onboarding_flows for select to app_admin
  using (true);
create policy "dashboards read every row" on app.onboarding_flows for select to app_dashboard
  using (true);
create policy "users read flows in use" on app.onboarding_flows for select to app_user
  using (is_active);

-- How far a user is in a flow. current_step is null once no step is left.
create table app.onboarding_progress (
  app_user_id uuid not null,
  flow_id uuid not null,
  current_step text,
  completed_steps text[] not null default '{}'::text[],
  answers jsonb not null default '{}'::jsonb,
  status text not null,
  started_at timestamp with time zone not null default internal.now(),
  completed_at timestamp with time zone,
  updated_at timestamp with time zone not null default internal.now(),
  -- Which of started, completed and skipped were told as events: each once, so that a flow gone through again earns
  -- nothing again.
  told text[] not null default '{}'::text[],
  constraint onboarding_progress_pkey PRIMARY KEY (app_user_id, flow_id),
  constraint onboarding_progress_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint onboarding_progress_flow_id_fkey FOREIGN KEY (flow_id) REFERENCES app.onboarding_flows(id) ON DELETE CASCADE,
  constraint onboarding_progress_completed_when_over CHECK (((status = 'in_progress'::text) = (completed_at IS NULL))),
  constraint onboarding_progress_status_known CHECK ((status = ANY (ARRAY['in_progress'::text, 'completed'::text, 'skipped'::text])))
);
CREATE INDEX onboarding_progress_of_flow ON app.onboarding_progress USING btree (flow_id, status);
alter table app.onboarding_progress enable row level security;
create policy "administrators read progress" on app.onboarding_progress for select to app_admin
  using (true);
create policy "dashboards read every row" on app.onboarding_progress for select to app_dashboard
  using (true);
create policy "users read their own progress" on app.onboarding_progress for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Work that a change caused, inserted in its transaction. A worker leases due rows, runs the task that each names, and
-- deletes it or sets its next due_at. lease is the number of the newest lease: only its holder settles the row.
-- requested_at: queued again while it ran, for then. At most so many rows of one lane run at once. failed_at: given up,
-- for a person to see and replay.
create table app.outbox (
  id uuid not null default internal.new_id(),
  task text not null,
  key text,
  lane text,
  payload jsonb not null default '{}'::jsonb,
  due_at timestamp with time zone not null default internal.now(),
  requested_at timestamp with time zone,
  locked_until timestamp with time zone,
  lease integer not null default 0,
  attempts integer not null default 0,
  last_error text,
  failed_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  constraint outbox_pkey PRIMARY KEY (id),
  constraint outbox_one_per_task_and_key UNIQUE (task, key)
);
CREATE INDEX outbox_due ON app.outbox USING btree (due_at) WHERE (failed_at IS NULL);
CREATE INDEX outbox_groups ON app.outbox USING btree (task, COALESCE(lane, ''::text), due_at) WHERE (failed_at IS NULL);
CREATE INDEX outbox_leases ON app.outbox USING btree (locked_until, lane) WHERE (locked_until IS NOT NULL);
alter table app.outbox enable row level security;
create policy "workers read queued work" on app.outbox for select to app_worker
  using (true);
create policy "workers remove finished work" on app.outbox for delete to app_worker
  using (true);
create policy "workers settle queued work" on app.outbox for update to app_worker
  using (true)
  with check (true);

-- What users bought. Ids are made while the user is locked, so their order is the order of a user's purchases.
create table app.purchases (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  -- That of the offer, which never changes.
  store_id uuid not null,
  offer_id uuid not null,
  quantity integer not null,
  currency_code text not null,
  total_price bigint not null,
  status text not null default 'completed'::text,
  -- What was given, bundles unpacked: [{catalog_item_id, key, quantity}].
  granted jsonb not null,
  -- What a refund takes back, and from where: {stacks: {catalog_item_id: stack}, credits: {CODE: amount}}.
  receipt jsonb not null,
  created_at timestamp with time zone not null default internal.now(),
  refunded_at timestamp with time zone,
  constraint purchases_pkey PRIMARY KEY (id),
  constraint purchases_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  -- 409 OFFER_IN_USE: Users have bought this offer. Set is_active to false instead.
  constraint purchases_offer_id_fkey FOREIGN KEY (offer_id) REFERENCES app.store_offers(id) ON DELETE RESTRICT,
  constraint purchases_quantity_1_to_99 CHECK (((quantity >= 1) AND (quantity <= 99))),
  constraint purchases_refunded_has_time CHECK (((status = 'refunded'::text) = (refunded_at IS NOT NULL))),
  constraint purchases_status_known CHECK ((status = ANY (ARRAY['completed'::text, 'refunded'::text]))),
  constraint purchases_total_price_never_negative CHECK ((total_price >= 0))
);
CREATE INDEX purchases_of_offer ON app.purchases USING btree (offer_id, id DESC);
CREATE INDEX purchases_of_store ON app.purchases USING btree (store_id, id DESC);
CREATE INDEX purchases_of_user ON app.purchases USING btree (app_user_id, id DESC);
CREATE INDEX purchases_of_user_and_offer ON app.purchases USING btree (app_user_id, offer_id, created_at);
CREATE INDEX purchases_refunded ON app.purchases USING btree (id DESC) WHERE (status = 'refunded'::text);
alter table app.purchases enable row level security;
create policy "administrators read every purchase" on app.purchases for select to app_admin
  using (true);
create policy "dashboards read every row" on app.purchases for select to app_dashboard
  using (true);
create policy "users read their own purchases" on app.purchases for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Messages that events and segments cause. At most 100.
create table app.push_automations (
  id uuid not null default internal.new_id(),
  key text not null,
  trigger jsonb not null,
  delay_seconds integer not null default 0,
  cancel_if_event text,
  message jsonb,
  template_key text,
  frequency_cap jsonb,
  quiet_hours jsonb,
  inbox boolean not null default true,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint push_automations_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: An automation with this key exists.
  constraint push_automations_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR cancel_if_event: must have 1 to 255 characters.
  constraint push_automations_cancel_if_event_1_to_255 CHECK (((char_length(cancel_if_event) >= 1) AND (char_length(cancel_if_event) <= 255))),
  -- 400 VALIDATION_ERROR delay_seconds: must be a whole number of 0 to 2592000.
  constraint push_automations_delay_0_to_30_days CHECK (((delay_seconds >= 0) AND (delay_seconds <= 2592000))),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint push_automations_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR message: must be an object.
  constraint push_automations_message_is_object CHECK ((jsonb_typeof(message) = 'object'::text)),
  -- 400 VALIDATION_ERROR message: send either message or template_key.
  constraint push_automations_message_or_template CHECK (((message IS NULL) <> (template_key IS NULL))),
  -- 400 VALIDATION_ERROR trigger: must be an object.
  constraint push_automations_trigger_is_object CHECK ((jsonb_typeof(trigger) = 'object'::text))
);
alter table app.push_automations enable row level security;
create policy "administrators add automations" on app.push_automations for insert to app_admin
  with check (true);
create policy "administrators change automations" on app.push_automations for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete automations" on app.push_automations for delete to app_admin
  using (true);
create policy "administrators read automations" on app.push_automations for select to app_admin
  using (true);
create policy "dashboards read every row" on app.push_automations for select to app_dashboard
  using (true);

-- The circuit breaker of each provider: how many requests in a row it has failed, and until when none is made.
create table app.push_breakers (
  provider text not null,
  failures integer not null default 0,
  open_until timestamp with time zone,
  constraint push_breakers_pkey PRIMARY KEY (provider)
);
alter table app.push_breakers enable row level security;

-- The categories that messages of the project have used.
create table app.push_categories (
  key text not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint push_categories_pkey PRIMARY KEY (key)
);
alter table app.push_categories enable row level security;

-- Messages that users find in the app: 500 for each user, for 90 days.
create table app.push_inbox_items (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  delivery_id uuid not null,
  title text not null,
  body text not null,
  image_url text,
  deep_link text,
  data jsonb not null default '{}'::jsonb,
  is_read boolean not null default false,
  created_at timestamp with time zone not null default internal.now(),
  read_at timestamp with time zone,
  expires_at timestamp with time zone not null,
  constraint push_inbox_items_pkey PRIMARY KEY (id),
  constraint push_inbox_items_once_per_delivery UNIQUE (delivery_id),
  constraint push_inbox_items_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
CREATE INDEX push_inbox_items_expiry ON app.push_inbox_items USING brin (expires_at);
CREATE INDEX push_inbox_items_newest ON app.push_inbox_items USING btree (app_user_id, created_at DESC, id DESC);
CREATE INDEX push_inbox_items_unread ON app.push_inbox_items USING btree (app_user_id, created_at DESC, id DESC) WHERE (NOT is_read);
alter table app.push_inbox_items enable row level security;
create policy "users read their own inbox" on app.push_inbox_items for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- What users want to be pushed. A user without a row wants everything.
create table app.push_preferences (
  app_user_id uuid not null,
  enabled boolean not null default true,
  categories jsonb not null default '{}'::jsonb,
  quiet_hours jsonb,
  updated_at timestamp with time zone not null default internal.now(),
  constraint push_preferences_pkey PRIMARY KEY (app_user_id),
  constraint push_preferences_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
alter table app.push_preferences enable row level security;

-- Messages that automations name by key. At most 200.
create table app.push_templates (
  id uuid not null default internal.new_id(),
  key text not null,
  name text,
  message jsonb not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint push_templates_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A template with this key exists.
  constraint push_templates_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint push_templates_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR message: must be an object.
  constraint push_templates_message_is_object CHECK ((jsonb_typeof(message) = 'object'::text)),
  -- 400 VALIDATION_ERROR name: must have at most 200 characters.
  constraint push_templates_name_at_most_200 CHECK ((char_length(name) <= 200)),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint push_templates_name_is_one_line CHECK (internal.is_line(name))
);
alter table app.push_templates enable row level security;
create policy "administrators add templates" on app.push_templates for insert to app_admin
  with check (true);
create policy "administrators change templates" on app.push_templates for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete templates" on app.push_templates for delete to app_admin
  using (true);
create policy "administrators read templates" on app.push_templates for select to app_admin
  using (true);
create policy "dashboards read every row" on app.push_templates for select to app_dashboard
  using (true);

-- Devices that can be pushed to. A token belongs to whoever registered it last.
create table app.push_tokens (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  token text not null,
  platform text not null,
  provider text not null generated always as (
CASE platform
    WHEN 'ios'::text THEN 'apns'::text
    ELSE 'fcm'::text
END) stored,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  -- The sign-in session that registered the device: nothing is pushed after its end. Null for a server key on behalf of
  -- the user, and for registrations of before.
  session_id uuid,
  constraint push_tokens_pkey PRIMARY KEY (id),
  constraint push_tokens_token_unique UNIQUE (token),
  constraint push_tokens_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint push_tokens_platform_known CHECK ((platform = ANY (ARRAY['ios'::text, 'android'::text]))),
  constraint push_tokens_token_1_to_2048 CHECK (((token ~ '^[!-~]+$'::text) AND (char_length(token) <= 2048)))
);
CREATE INDEX push_tokens_of_session ON app.push_tokens USING btree (session_id) WHERE (session_id IS NOT NULL);
CREATE INDEX push_tokens_of_user ON app.push_tokens USING btree (app_user_id, id);
alter table app.push_tokens enable row level security;
create policy "administrators read every push token" on app.push_tokens for select to app_admin
  using (true);
create policy "users read their own push tokens" on app.push_tokens for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Fixed windows of the named limits: a window begins at its first counted attempt.
create table app.rate_limits (
  key text not null,
  started_at timestamp with time zone not null,
  count integer not null,
  constraint rate_limits_pkey PRIMARY KEY (key)
);
CREATE INDEX rate_limits_started ON app.rate_limits USING btree (started_at);
alter table app.rate_limits enable row level security;
create policy "the sign-in role adds to windows" on app.rate_limits for update to app_auth
  using (true)
  with check (true);
create policy "the sign-in role counts attempts" on app.rate_limits for select to app_auth
  using (true);
create policy "the sign-in role starts windows" on app.rate_limits for insert to app_auth
  with check (true);
create policy "workers clear old windows" on app.rate_limits for delete to app_worker
  using (true);
create policy "workers see old windows" on app.rate_limits for select to app_worker
  using (true);

-- The first ten entries that subscribers of a leaderboard were told last.
create table app.realtime_boards (
  leaderboard_id uuid not null,
  looked_at timestamp with time zone not null,
  top text not null,
  constraint realtime_boards_pkey PRIMARY KEY (leaderboard_id),
  constraint realtime_boards_leaderboard_id_fkey FOREIGN KEY (leaderboard_id) REFERENCES app.leaderboards(id) ON DELETE CASCADE
);
alter table app.realtime_boards enable row level security;

-- Channels that somebody listens to, or did a few minutes ago: only what is published there is written. Every event
-- with a number above floor_seq is kept.
create table app.realtime_channels (
  channel text not null,
  seq bigint not null,
  floor_seq bigint not null,
  subscribed_until timestamp with time zone not null,
  -- Collections: a subscriber has a filter, which is asked of the rows as they are and as they were.
  keeps_rows boolean not null default false,
  -- By the clock of Postgres, when the channel began to be listened to, or to keep rows: transactions that were running
  -- then may have published nothing. Null when long ago.
  subscribed_from timestamp with time zone,
  constraint realtime_channels_pkey PRIMARY KEY (channel)
);
CREATE INDEX realtime_channels_subscribed ON app.realtime_channels USING btree (subscribed_until);
alter table app.realtime_channels enable row level security;

-- Open connections. One whose server has lost its lease is closed.
create table app.realtime_connections (
  id uuid not null,
  server_id uuid not null,
  app_user_id uuid not null,
  opened_at timestamp with time zone not null default internal.now(),
  constraint realtime_connections_pkey PRIMARY KEY (id),
  constraint realtime_connections_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint realtime_connections_server_id_fkey FOREIGN KEY (server_id) REFERENCES app.realtime_servers(id) ON DELETE CASCADE
);
CREATE INDEX realtime_connections_of_server ON app.realtime_connections USING btree (server_id);
CREATE INDEX realtime_connections_of_user ON app.realtime_connections USING btree (app_user_id);
alter table app.realtime_connections enable row level security;

-- Events in the order in which they became visible, for ten minutes. position is the order of all, by which servers
-- read; seq the number within the channel, null for what is not replayed: presence, and notices for servers.
create table app.realtime_events (
  "position" bigint not null generated always as identity,
  channel text not null,
  seq bigint,
  event text not null,
  payload text not null,
  meta text,
  at timestamp with time zone not null,
  constraint realtime_events_pkey PRIMARY KEY ("position"),
  constraint realtime_events_in_order UNIQUE (channel, seq)
);
CREATE INDEX realtime_events_by_time ON app.realtime_events USING brin (at);
alter table app.realtime_events enable row level security;

-- The score and rank that a subscriber of a leaderboard was told last; null without an entry.
create table app.realtime_places (
  leaderboard_id uuid not null,
  app_user_id uuid not null,
  run_key text not null,
  score numeric,
  rank bigint,
  constraint realtime_places_pkey PRIMARY KEY (leaderboard_id, app_user_id),
  constraint realtime_places_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint realtime_places_leaderboard_id_fkey FOREIGN KEY (leaderboard_id) REFERENCES app.leaderboards(id) ON DELETE CASCADE
);
CREATE INDEX realtime_places_of_user ON app.realtime_places USING btree (app_user_id);
alter table app.realtime_places enable row level security;

-- Who is present in which channel, by which connection.
create table app.realtime_presences (
  channel text not null,
  connection_id uuid not null,
  app_user_id uuid not null,
  state jsonb not null,
  joined_at timestamp with time zone not null default internal.now(),
  constraint realtime_presences_pkey PRIMARY KEY (channel, connection_id),
  constraint realtime_presences_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint realtime_presences_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES app.realtime_connections(id) ON DELETE CASCADE
);
CREATE INDEX realtime_presences_of_connection ON app.realtime_presences USING btree (connection_id);
CREATE INDEX realtime_presences_of_user ON app.realtime_presences USING btree (app_user_id);
alter table app.realtime_presences enable row level security;

-- Published and without a number yet. No index besides the key and no row that writers share: they never wait for each
-- other.
create table app.realtime_publications (
  id bigint not null generated always as identity,
  channel text not null,
  event text not null,
  payload text not null,
  meta text,
  is_numbered boolean not null default true,
  at timestamp with time zone not null default internal.now(),
  constraint realtime_publications_pkey PRIMARY KEY (id)
);
alter table app.realtime_publications enable row level security;

-- Who listens to which conversation or leaderboard, by which connection: users who see a new message are not pushed it,
-- and a place that nobody of theirs watches is forgotten.
create table app.realtime_readers (
  channel text not null,
  connection_id uuid not null,
  app_user_id uuid not null,
  constraint realtime_readers_pkey PRIMARY KEY (channel, connection_id),
  constraint realtime_readers_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint realtime_readers_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES app.realtime_connections(id) ON DELETE CASCADE
);
CREATE INDEX realtime_readers_of_connection ON app.realtime_readers USING btree (connection_id);
CREATE INDEX realtime_readers_of_user ON app.realtime_readers USING btree (app_user_id);
alter table app.realtime_readers enable row level security;

-- Rules for rooms, in their order: the first whose pattern fits the name of a room holds for it.
create table app.realtime_rooms (
  "position" integer not null,
  pattern text not null,
  publish text not null,
  presence boolean not null,
  listen text,
  constraint realtime_rooms_pkey PRIMARY KEY ("position"),
  -- 400 VALIDATION_ERROR listen: must be authenticated or role:<key>.
  constraint realtime_rooms_listen_known CHECK ((listen ~ '^(authenticated|role:[a-z][a-z0-9_-]{0,127})$'::text)),
  -- 400 VALIDATION_ERROR pattern: must have 1 to 64 letters, digits and _.:-, and * for any characters.
  constraint realtime_rooms_pattern_form CHECK ((pattern ~ '^[A-Za-z0-9_.:*-]{1,64}$'::text)),
  -- 400 VALIDATION_ERROR publish: must be authenticated, server or role:<key>.
  constraint realtime_rooms_publish_known CHECK ((publish ~ '^(authenticated|server|role:[a-z][a-z0-9_-]{0,127})$'::text))
);
alter table app.realtime_rooms enable row level security;
create policy "administrators read the rules for rooms" on app.realtime_rooms for select to app_admin
  using (true);

-- Server processes with connections of this project, each with a lease of 30 seconds. listeners: how many connections
-- listen to each channel, at most ten seconds old.
create table app.realtime_servers (
  id uuid not null,
  expires_at timestamp with time zone not null,
  listeners jsonb not null default '{}'::jsonb,
  constraint realtime_servers_pkey PRIMARY KEY (id)
);
alter table app.realtime_servers enable row level security;

-- Tickets for a connection: each once, within a minute. hash is the SHA-256 of the ticket, credential what its
-- connection runs under.
create table app.realtime_tickets (
  hash text not null,
  app_user_id uuid not null,
  credential jsonb not null,
  expires_at timestamp with time zone not null,
  constraint realtime_tickets_pkey PRIMARY KEY (hash),
  constraint realtime_tickets_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX realtime_tickets_by_time ON app.realtime_tickets USING btree (expires_at);
CREATE INDEX realtime_tickets_of_user ON app.realtime_tickets USING btree (app_user_id);
alter table app.realtime_tickets enable row level security;

-- Who used which code. What was promised stands here as it was when the code was claimed, so that it outlives the code.
-- is_personal: the code was a user's.
create table app.referral_claims (
  id uuid not null default internal.new_id(),
  code_id uuid,
  code text not null default ''::text,
  claimer_id uuid not null,
  referrer_id uuid,
  is_personal boolean not null,
  state text not null default 'pending'::text,
  reward_referrer jsonb not null,
  reward_referee jsonb not null,
  qualify_event text,
  qualify_by timestamp with time zone,
  qualified_at timestamp with time zone,
  claimed_at timestamp with time zone not null default internal.now(),
  rewarded_at timestamp with time zone,
  constraint referral_claims_pkey PRIMARY KEY (id),
  constraint referral_claims_once_per_code UNIQUE (claimer_id, code_id),
  constraint referral_claims_claimer_id_fkey FOREIGN KEY (claimer_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint referral_claims_code_id_fkey FOREIGN KEY (code_id) REFERENCES app.referral_codes(id) ON DELETE SET NULL,
  constraint referral_claims_referrer_id_fkey FOREIGN KEY (referrer_id) REFERENCES app.users(id) ON DELETE SET NULL,
  constraint referral_claims_qualify_by_of_an_event CHECK (((qualify_by IS NULL) OR (qualify_event IS NOT NULL))),
  constraint referral_claims_rewarded_has_time CHECK (((state = 'rewarded'::text) = (rewarded_at IS NOT NULL))),
  constraint referral_claims_state_known CHECK ((state = ANY (ARRAY['pending'::text, 'rewarded'::text, 'expired'::text])))
);
CREATE INDEX referral_claims_of_code ON app.referral_claims USING btree (code_id, claimed_at DESC, id DESC);
CREATE INDEX referral_claims_of_referrer ON app.referral_claims USING btree (referrer_id, claimed_at DESC, id DESC);
CREATE UNIQUE INDEX referral_claims_one_personal ON app.referral_claims USING btree (claimer_id) WHERE is_personal;
CREATE INDEX referral_claims_waiting ON app.referral_claims USING btree (claimer_id, qualify_event) WHERE ((state = 'pending'::text) AND (qualified_at IS NULL) AND (qualify_event IS NOT NULL));
alter table app.referral_claims enable row level security;
create policy "administrators read claims" on app.referral_claims for select to app_admin
  using (true);
create policy "dashboards read every row" on app.referral_claims for select to app_dashboard
  using (true);
create policy "users count the claims of their codes" on app.referral_claims for select to app_user
  using ((referrer_id = ( SELECT internal.user_id() AS user_id)));

-- Codes that users share, one each, and promo codes of administrators, which belong to nobody. uses counts claims and
-- is never above max_uses by a claim.
create table app.referral_codes (
  id uuid not null default internal.new_id(),
  code text not null,
  -- What codes are compared by: without case, spaces and dashes.
  lookup text not null generated always as (upper(translate(code, ' -'::text, ''::text))) stored,
  reward_referrer jsonb not null default '{}'::jsonb,
  reward_referee jsonb not null default '{}'::jsonb,
  max_uses integer,
  uses integer not null default 0,
  is_active boolean not null default true,
  app_user_id uuid,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint referral_codes_pkey PRIMARY KEY (id),
  -- 409 CONFLICT code: A code that reads the same exists.
  constraint referral_codes_code_unique UNIQUE (lookup),
  constraint referral_codes_one_per_user UNIQUE (app_user_id),
  constraint referral_codes_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  -- 400 INVALID_INPUT code: must consist of letters, digits and underscores, with spaces and dashes between them.
  constraint referral_codes_code_form CHECK ((code ~ '^[A-Za-z0-9_]([A-Za-z0-9_ -]{0,62}[A-Za-z0-9_])?$'::text)),
  -- 400 INVALID_INPUT code: must have 3 to 32 characters beside spaces and dashes.
  constraint referral_codes_lookup_3_to_32 CHECK (((char_length(lookup) >= 3) AND (char_length(lookup) <= 32))),
  -- 400 INVALID_INPUT max_uses: must be 1 or more, or null.
  constraint referral_codes_max_uses_1_or_more CHECK ((max_uses >= 1)),
  -- 400 INVALID_INPUT reward_referee: must be an object.
  constraint referral_codes_reward_referee_is_object CHECK ((jsonb_typeof(reward_referee) = 'object'::text)),
  -- 400 INVALID_INPUT reward_referrer: must be an object.
  constraint referral_codes_reward_referrer_is_object CHECK ((jsonb_typeof(reward_referrer) = 'object'::text)),
  constraint referral_codes_uses_0_or_more CHECK ((uses >= 0))
);
CREATE INDEX referral_codes_newest ON app.referral_codes USING btree (created_at DESC, id DESC);
alter table app.referral_codes enable row level security;
create policy "administrators add promo codes" on app.referral_codes for insert to app_admin
  with check ((app_user_id IS NULL));
create policy "administrators change codes" on app.referral_codes for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete codes" on app.referral_codes for delete to app_admin
  using (true);
create policy "administrators read codes" on app.referral_codes for select to app_admin
  using (true);
create policy "dashboards read every row" on app.referral_codes for select to app_dashboard
  using (true);

-- What codes of users begin with, and what the reward of a referrer waits for. One row.
create table app.referral_defaults (
  id text not null default 'defaults'::text,
  reward_referrer jsonb not null default '{}'::jsonb,
  reward_referee jsonb not null default '{}'::jsonb,
  max_uses integer,
  qualify_event text,
  qualify_within_days integer,
  share_url text,
  updated_at timestamp with time zone not null default internal.now(),
  constraint referral_defaults_pkey PRIMARY KEY (id),
  -- 400 VALIDATION_ERROR qualify_within_days: requires a qualify_event.
  constraint referral_defaults_days_of_an_event CHECK (((qualify_within_days IS NULL) OR (qualify_event IS NOT NULL))),
  constraint referral_defaults_is_one_row CHECK ((id = 'defaults'::text)),
  constraint referral_defaults_max_uses_1_or_more CHECK ((max_uses >= 1)),
  -- 400 VALIDATION_ERROR qualify_event: must have 1 to 255 characters, no white space at either end.
  constraint referral_defaults_qualify_event_form CHECK ((((char_length(qualify_event) >= 1) AND (char_length(qualify_event) <= 255)) AND (qualify_event !~ '^\s|\s$'::text))),
  constraint referral_defaults_qualify_within_days_1_to_365 CHECK (((qualify_within_days >= 1) AND (qualify_within_days <= 365))),
  constraint referral_defaults_reward_referee_is_object CHECK ((jsonb_typeof(reward_referee) = 'object'::text)),
  constraint referral_defaults_reward_referrer_is_object CHECK ((jsonb_typeof(reward_referrer) = 'object'::text)),
  -- 400 VALIDATION_ERROR share_url: must be an https:// address that contains {code}.
  constraint referral_defaults_share_url_form CHECK (((char_length(share_url) <= 2000) AND (share_url ~ '^https://\S+$'::text) AND (share_url ~~ '%{code}%'::text)))
);
alter table app.referral_defaults enable row level security;
create policy "administrators change the defaults" on app.referral_defaults for update to app_admin
  using (true)
  with check (true);
create policy "administrators read the defaults" on app.referral_defaults for select to app_admin
  using (true);

-- One row once the REST access of this project has been used: from then on the views in schema rest follow the
-- collections. generator is the version of internal.rest_view_sql that made them.
create table app.rest_access (
  id boolean not null default true,
  generator integer not null,
  prepared_at timestamp with time zone not null default internal.now(),
  constraint rest_access_pkey PRIMARY KEY (id),
  constraint rest_access_one_row CHECK (id)
);
alter table app.rest_access enable row level security;

-- When a user was last asked for a review in the app store.
create table app.review_prompts (
  app_user_id uuid not null,
  shown_at timestamp with time zone not null,
  constraint review_prompts_pkey PRIMARY KEY (app_user_id),
  constraint review_prompts_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
alter table app.review_prompts enable row level security;

-- The reviews of a subject, counted: published ones by their rating, others by their status. Triggers of app.reviews
-- keep it in the transaction that changes a review.
create table app.review_sums (
  subject_type text not null,
  subject_id uuid not null,
  stars_1 bigint not null default 0,
  stars_2 bigint not null default 0,
  stars_3 bigint not null default 0,
  stars_4 bigint not null default 0,
  stars_5 bigint not null default 0,
  pending bigint not null default 0,
  rejected bigint not null default 0,
  hidden bigint not null default 0,
  constraint review_sums_pkey PRIMARY KEY (subject_type, subject_id)
);
alter table app.review_sums enable row level security;
create policy "administrators read sums of reviews" on app.review_sums for select to app_admin
  using (true);
create policy "dashboards read every row" on app.review_sums for select to app_dashboard
  using (true);

-- Who found a review helpful.
create table app.review_votes (
  review_id uuid not null,
  app_user_id uuid not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint review_votes_pkey PRIMARY KEY (review_id, app_user_id),
  constraint review_votes_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint review_votes_review_id_fkey FOREIGN KEY (review_id) REFERENCES app.reviews(id) ON DELETE CASCADE
);
CREATE INDEX review_votes_of_user ON app.review_votes USING btree (app_user_id);
alter table app.review_votes enable row level security;

-- What users think of a subject: one review per user and subject.
create table app.reviews (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  subject_type text not null,
  subject_id uuid not null,
  -- The subject where it is a user, so that the reviews of a user go with the user.
  subject_user_id uuid,
  rating smallint not null,
  title text,
  body text,
  status text not null,
  -- The author changed it after moderation had rejected or hidden it: it stays pending until it is published by hand.
  needs_decision boolean not null default false,
  helpful_count integer not null default 0,
  reply_body text,
  reply_at timestamp with time zone,
  locale text,
  app_version text,
  -- When it was first published; svc.review.published was emitted then.
  published_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint reviews_pkey PRIMARY KEY (id),
  constraint reviews_one_per_user_and_subject UNIQUE (app_user_id, subject_type, subject_id),
  constraint reviews_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint reviews_subject_user_id_fkey FOREIGN KEY (subject_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint reviews_app_version_at_most_64 CHECK ((char_length(app_version) <= 64)),
  constraint reviews_body_1_to_4000 CHECK (((char_length(body) >= 1) AND (char_length(body) <= 4000))),
  constraint reviews_helpful_count_never_negative CHECK ((helpful_count >= 0)),
  constraint reviews_locale_at_most_35 CHECK ((char_length(locale) <= 35)),
  constraint reviews_rating_1_to_5 CHECK (((rating >= 1) AND (rating <= 5))),
  constraint reviews_reply_body_1_to_4000 CHECK (((char_length(reply_body) >= 1) AND (char_length(reply_body) <= 4000))),
  constraint reviews_reply_whole CHECK (((reply_body IS NULL) = (reply_at IS NULL))),
  constraint reviews_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'published'::text, 'rejected'::text, 'hidden'::text]))),
  constraint reviews_subject_type_known CHECK ((subject_type ~ '^(catalog_item|content|app|user|collection:[a-z][a-z0-9_]{0,62})$'::text)),
  constraint reviews_subject_user_is_subject CHECK ((subject_user_id = subject_id)),
  constraint reviews_title_1_to_120 CHECK (((char_length(title) >= 1) AND (char_length(title) <= 120))),
  constraint reviews_title_is_one_line CHECK (internal.is_line(title))
);
CREATE INDEX reviews_by_rating ON app.reviews USING btree (rating, created_at DESC, id DESC);
CREATE INDEX reviews_by_status ON app.reviews USING btree (status, created_at DESC, id DESC);
CREATE INDEX reviews_newest ON app.reviews USING btree (created_at DESC, id DESC);
CREATE INDEX reviews_of_any_status ON app.reviews USING btree (subject_type, subject_id, created_at DESC, id DESC);
CREATE INDEX reviews_of_subject_user ON app.reviews USING btree (subject_user_id) WHERE (subject_user_id IS NOT NULL);
CREATE INDEX reviews_of_user ON app.reviews USING btree (app_user_id, created_at DESC, id DESC);
CREATE INDEX reviews_published ON app.reviews USING btree (subject_type, subject_id, created_at DESC, id DESC) WHERE (status = 'published'::text);
CREATE INDEX reviews_published_by_helpful ON app.reviews USING btree (subject_type, subject_id, helpful_count DESC, created_at DESC, id DESC) WHERE (status = 'published'::text);
CREATE INDEX reviews_published_by_rating ON app.reviews USING btree (subject_type, subject_id, rating DESC, created_at DESC, id DESC) WHERE (status = 'published'::text);
CREATE INDEX reviews_published_by_rating_and_helpful ON app.reviews USING btree (subject_type, subject_id, rating, helpful_count DESC, created_at DESC, id DESC) WHERE (status = 'published'::text);
alter table app.reviews enable row level security;
create policy "administrators read every review" on app.reviews for select to app_admin
  using (true);
create policy "dashboards read every row" on app.reviews for select to app_dashboard
  using (true);
create policy "users read their own reviews" on app.reviews for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Every reward ever given, once per user and source. outcome says per part what was given, or why it could not be.
create table app.reward_grants (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  source_type text not null,
  source_id text not null,
  reward jsonb not null,
  outcome jsonb not null default '{}'::jsonb,
  granted_at timestamp with time zone not null default internal.now(),
  constraint reward_grants_pkey PRIMARY KEY (id),
  constraint reward_grants_once_per_source UNIQUE (app_user_id, source_type, source_id),
  constraint reward_grants_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
alter table app.reward_grants enable row level security;
create policy "administrators read every reward" on app.reward_grants for select to app_admin
  using (true);
create policy "dashboards read every row" on app.reward_grants for select to app_dashboard
  using (true);

-- The roles of users, in the whole project or in one group. The default role of all users is not stored.
create table app.role_assignments (
  id uuid not null default internal.new_id(),
  role_id uuid not null,
  app_user_id uuid not null,
  group_id uuid,
  -- The id of the developer, the token or the service account that assigned the role.
  granted_by text,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  constraint role_assignments_pkey PRIMARY KEY (id),
  constraint role_assignments_once UNIQUE NULLS NOT DISTINCT (role_id, app_user_id, group_id),
  constraint role_assignments_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint role_assignments_group_id_fkey FOREIGN KEY (group_id) REFERENCES app.groups(id) ON DELETE CASCADE,
  -- 409 ROLE_IN_USE: Users have this role. Revoke it first, or send force=true.
  constraint role_assignments_role_id_fkey FOREIGN KEY (role_id) REFERENCES app.roles(id) ON DELETE RESTRICT
);
CREATE INDEX role_assignments_newest ON app.role_assignments USING btree (role_id, created_at DESC, id DESC);
CREATE INDEX role_assignments_of_group ON app.role_assignments USING btree (group_id);
CREATE INDEX role_assignments_of_user ON app.role_assignments USING btree (app_user_id, role_id);
alter table app.role_assignments enable row level security;
create policy "administrators read assignments" on app.role_assignments for select to app_admin
  using (true);
create policy "dashboards read every row" on app.role_assignments for select to app_dashboard
  using (true);
create policy "users read their own assignments" on app.role_assignments for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Roles: lists of permissions that administrators give to users. At most 50.
create table app.roles (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  description text,
  permissions text[] not null default '{}'::text[],
  is_default boolean not null default false,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint roles_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A role with this key exists.
  constraint roles_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint roles_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint roles_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint roles_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint roles_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR permissions: must have at most 100 items.
  constraint roles_permissions_at_most_100 CHECK ((cardinality(permissions) <= 100)),
  -- 400 VALIDATION_ERROR permissions: must match ^[a-z0-9_.:-]{1,64}$.
  constraint roles_permissions_form CHECK (((array_to_string(permissions, ' '::text, '*'::text) ~ '^([a-z0-9_.:-]{1,64}( [a-z0-9_.:-]{1,64})*)?$'::text) AND (cardinality(string_to_array(array_to_string(permissions, ' '::text, '*'::text), ' '::text)) = cardinality(permissions))))
);
-- 409 CONFLICT is_default: Another role is the default.
CREATE UNIQUE INDEX roles_one_default ON app.roles USING btree (is_default) WHERE is_default;
alter table app.roles enable row level security;
create policy "administrators add roles" on app.roles for insert to app_admin
  with check (true);
create policy "administrators change roles" on app.roles for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete roles" on app.roles for delete to app_admin
  using (true);
create policy "administrators read roles" on app.roles for select to app_admin
  using (true);
create policy "dashboards read every row" on app.roles for select to app_dashboard
  using (true);
create policy "users read the default role and their own" on app.roles for select to app_user
  using ((is_default OR (id IN ( SELECT a.role_id
   FROM app.role_assignments a
  WHERE (a.app_user_id = ( SELECT internal.user_id() AS user_id))))));

-- Counters whose rows have been counted: what app.row_counts says of them is right.
create table app.row_counters (
  name text not null,
  constraint row_counters_pkey PRIMARY KEY (name)
);
alter table app.row_counters enable row level security;

-- How many rows a table has, by triggers: the sum of the slots of a name and key. key is the value of the column that
-- rows are counted by, else the nil uuid.
create table app.row_counts (
  slot bigint not null generated always as identity,
  name text not null,
  key uuid not null,
  n bigint not null,
  constraint row_counts_pkey PRIMARY KEY (slot)
);
CREATE INDEX row_counts_of_name ON app.row_counts USING btree (name, key);
alter table app.row_counts enable row level security;

-- How many members a segment had at the end of each UTC day, or has had until now today.
create table app.segment_counts (
  segment_id uuid not null,
  day date not null,
  member_count bigint not null,
  constraint segment_counts_pkey PRIMARY KEY (segment_id, day),
  constraint segment_counts_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES app.segments(id) ON DELETE CASCADE
);
alter table app.segment_counts enable row level security;
create policy "administrators read counts" on app.segment_counts for select to app_admin
  using (true);
create policy "dashboards read every row" on app.segment_counts for select to app_dashboard
  using (true);

-- Members of static segments; of dynamic ones, those of the last evaluation.
create table app.segment_members (
  segment_id uuid not null,
  app_user_id uuid not null,
  entered_at timestamp with time zone not null default internal.now(),
  constraint segment_members_pkey PRIMARY KEY (segment_id, app_user_id)
);
CREATE INDEX segment_members_newest ON app.segment_members USING btree (segment_id, entered_at DESC, app_user_id DESC);
CREATE INDEX segment_members_of_user ON app.segment_members USING btree (app_user_id);
alter table app.segment_members enable row level security;
create policy "administrators read members" on app.segment_members for select to app_admin
  using (true);
create policy "dashboards read every row" on app.segment_members for select to app_dashboard
  using (true);

-- What is worked out of a segment, apart from what its administrator wrote: its rules as SQL and the parameter of that,
-- the events that its rules ask for, also through other segments, the segments that it names itself, and its members
-- when they were last counted.
create table app.segment_states (
  segment_id uuid not null,
  condition text not null,
  parameters jsonb not null,
  event_names text[] not null default '{}'::text[],
  uses uuid[] not null default '{}'::uuid[],
  member_count bigint not null default 0,
  last_evaluated_at timestamp with time zone,
  -- The rules as a query of all users in a range of ids; null until they are compiled.
  query text,
  -- How far the evaluation that is under way came: users up to this id are done. Null: none is under way.
  cursor_id uuid,
  -- The compiled condition with its marks for sets, as it becomes part of the segments that name this one; null until it
  -- is compiled by this version.
  template text,
  -- The sets of the template: [{members, missing}].
  sets jsonb,
  constraint segment_states_pkey PRIMARY KEY (segment_id),
  constraint segment_states_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES app.segments(id) ON DELETE CASCADE
);
CREATE INDEX segment_states_watching ON app.segment_states USING gin (event_names);
alter table app.segment_states enable row level security;
create policy "administrators read what is worked out" on app.segment_states for select to app_admin
  using (true);

-- Groups of users: by rules (dynamic), or by hand (static).
create table app.segments (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  description text,
  kind text not null,
  rules jsonb,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint segments_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A segment with this key exists.
  constraint segments_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint segments_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint segments_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR kind: must be dynamic or static.
  constraint segments_kind_known CHECK ((kind = ANY (ARRAY['dynamic'::text, 'static'::text]))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint segments_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint segments_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR rules: are required of a dynamic segment, and must be left out of a static one.
  constraint segments_rules_when_dynamic CHECK (((kind = 'dynamic'::text) = (rules IS NOT NULL)))
);
CREATE INDEX segments_newest ON app.segments USING btree (created_at DESC, id DESC);
alter table app.segments enable row level security;
create policy "administrators add segments" on app.segments for insert to app_admin
  with check (true);
create policy "administrators change segments" on app.segments for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete segments" on app.segments for delete to app_admin
  using (true);
create policy "administrators read segments" on app.segments for select to app_admin
  using (true);
create policy "dashboards read every row" on app.segments for select to app_dashboard
  using (true);
create policy "workers read segments" on app.segments for select to app_worker
  using (true);

-- Settings of the project that its database must know, one row each.
create table app.settings (
  key text not null,
  value jsonb not null,
  updated_at timestamp with time zone not null default internal.now(),
  constraint settings_pkey PRIMARY KEY (key)
);
alter table app.settings enable row level security;
create policy "administrators read the settings" on app.settings for select to app_admin
  using (true);

-- The maps as gzip, apart from their rows so that lists never touch them.
create table app.source_map_contents (
  source_map_id uuid not null,
  content bytea not null,
  constraint source_map_contents_pkey PRIMARY KEY (source_map_id),
  constraint source_map_contents_source_map_id_fkey FOREIGN KEY (source_map_id) REFERENCES app.source_maps(id) ON DELETE CASCADE
);
alter table app.source_map_contents enable row level security;
create policy "administrators read contents of source maps" on app.source_map_contents for select to app_admin
  using (true);

-- Source maps of the bundles of releases, with which frames of stacks are shown.
create table app.source_maps (
  id uuid not null default internal.new_id(),
  release text not null,
  bundle text not null,
  sha256 text not null,
  size integer not null,
  packed_size integer not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint source_maps_pkey PRIMARY KEY (id),
  constraint source_maps_one_of_bundle UNIQUE (release, bundle),
  constraint source_maps_bundle_form CHECK (((bundle ~ '^[^\s\\?#/]+(/[^\s\\?#/]+)*$'::text) AND (char_length(bundle) <= 200))),
  constraint source_maps_release_form CHECK (((char_length(release) >= 1) AND (char_length(release) <= 64)))
);
CREATE INDEX source_maps_newest ON app.source_maps USING btree (updated_at DESC, id DESC);
alter table app.source_maps enable row level security;
create policy "administrators read source maps" on app.source_maps for select to app_admin
  using (true);
create policy "dashboards read every row" on app.source_maps for select to app_dashboard
  using (true);

-- What a unit of an offer costs, in each currency that buys it: one of them is paid. An offer without rows has the
-- prices of its item.
create table app.store_offer_prices (
  offer_id uuid not null,
  currency_code text not null,
  price bigint not null,
  original_price bigint,
  constraint store_offer_prices_pkey PRIMARY KEY (offer_id, currency_code),
  -- 409 CURRENCY_IN_USE: Offers have a price in this currency. Set is_active to false instead.
  constraint store_offer_prices_currency_code_fkey FOREIGN KEY (currency_code) REFERENCES app.currencies(code) ON DELETE RESTRICT,
  constraint store_offer_prices_offer_id_fkey FOREIGN KEY (offer_id) REFERENCES app.store_offers(id) ON DELETE CASCADE,
  -- 400 VALIDATION_ERROR prices: must have an original_price over the price, or none.
  constraint store_offer_prices_original_over_price CHECK ((original_price > price)),
  -- 400 VALIDATION_ERROR prices: must have an original_price of at most 2000000000.
  constraint store_offer_prices_original_price_at_most_2000000000 CHECK ((original_price <= 2000000000)),
  -- 400 VALIDATION_ERROR prices: must have a price of 0 to 2000000000.
  constraint store_offer_prices_price_0_to_2000000000 CHECK (((price >= 0) AND (price <= 2000000000)))
);
CREATE INDEX store_offer_prices_of_currency ON app.store_offer_prices USING btree (currency_code);
alter table app.store_offer_prices enable row level security;
create policy "administrators add prices of offers" on app.store_offer_prices for insert to app_admin
  with check (true);
create policy "administrators change prices of offers" on app.store_offer_prices for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete prices of offers" on app.store_offer_prices for delete to app_admin
  using (true);
create policy "administrators read prices of offers" on app.store_offer_prices for select to app_admin
  using (true);
create policy "dashboards read every row" on app.store_offer_prices for select to app_dashboard
  using (true);

-- The units of an offer that are sold, without refunded ones: the sum over slots, so that buyers of an offer without a
-- limit do not wait for one another. It outlives the purchases of deleted users.
create table app.store_offer_sales (
  offer_id uuid not null,
  slot smallint not null,
  units bigint not null,
  constraint store_offer_sales_pkey PRIMARY KEY (offer_id, slot),
  constraint store_offer_sales_offer_id_fkey FOREIGN KEY (offer_id) REFERENCES app.store_offers(id) ON DELETE CASCADE
);
alter table app.store_offer_sales enable row level security;
create policy "administrators read what is sold" on app.store_offer_sales for select to app_admin
  using (true);

-- An item of the catalog in a store: how many of it a unit gives, how often a user and all users may buy it. At most
-- 200 a store.
create table app.store_offers (
  id uuid not null default internal.new_id(),
  store_id uuid not null,
  key text not null,
  catalog_item_id uuid not null,
  quantity integer not null default 1,
  limit_per_user integer,
  limit_period text not null default 'total'::text,
  stock_total integer,
  starts_at timestamp with time zone,
  ends_at timestamp with time zone,
  segment_id uuid,
  badge text,
  sort_order integer not null default 0,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint store_offers_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: The store has an offer with this key.
  constraint store_offers_key_unique UNIQUE (store_id, key),
  -- 409 ITEM_IN_USE: A store offers this item. Set is_active to false instead.
  constraint store_offers_catalog_item_id_fkey FOREIGN KEY (catalog_item_id) REFERENCES app.catalog_items(id) ON DELETE RESTRICT,
  constraint store_offers_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES app.segments(id) ON DELETE RESTRICT,
  constraint store_offers_store_id_fkey FOREIGN KEY (store_id) REFERENCES app.stores(id) ON DELETE CASCADE,
  -- 400 VALIDATION_ERROR badge: must have at most 64 characters.
  constraint store_offers_badge_at_most_64 CHECK ((char_length(badge) <= 64)),
  -- 400 VALIDATION_ERROR ends_at: must be after starts_at.
  constraint store_offers_end_after_start CHECK ((ends_at > starts_at)),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint store_offers_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR limit_per_user: must be 1 to 1000000000.
  constraint store_offers_limit_per_user_1_to_1000000000 CHECK (((limit_per_user >= 1) AND (limit_per_user <= 1000000000))),
  -- 400 VALIDATION_ERROR limit_period: must be total, day, week or month.
  constraint store_offers_limit_period_known CHECK ((limit_period = ANY (ARRAY['total'::text, 'day'::text, 'week'::text, 'month'::text]))),
  -- 400 VALIDATION_ERROR quantity: must be 1 to 10000.
  constraint store_offers_quantity_1_to_10000 CHECK (((quantity >= 1) AND (quantity <= 10000))),
  -- 400 VALIDATION_ERROR stock_total: must be 0 to 1000000000.
  constraint store_offers_stock_total_0_to_1000000000 CHECK (((stock_total >= 0) AND (stock_total <= 1000000000)))
);
CREATE INDEX store_offers_of_item ON app.store_offers USING btree (catalog_item_id);
CREATE INDEX store_offers_of_segment ON app.store_offers USING btree (segment_id) WHERE (segment_id IS NOT NULL);
alter table app.store_offers enable row level security;
create policy "administrators add offers" on app.store_offers for insert to app_admin
  with check (true);
create policy "administrators change offers" on app.store_offers for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete offers" on app.store_offers for delete to app_admin
  using (true);
create policy "administrators read offers" on app.store_offers for select to app_admin
  using (true);
create policy "dashboards read every row" on app.store_offers for select to app_dashboard
  using (true);

-- What a project sells, and to whom: a store has offers. At most 50.
create table app.stores (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  description text,
  segment_id uuid,
  starts_at timestamp with time zone,
  ends_at timestamp with time zone,
  is_active boolean not null default true,
  sort_order integer not null default 0,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint stores_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A store with this key exists.
  constraint stores_key_unique UNIQUE (key),
  constraint stores_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES app.segments(id) ON DELETE RESTRICT,
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint stores_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR ends_at: must be after starts_at.
  constraint stores_end_after_start CHECK ((ends_at > starts_at)),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint stores_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint stores_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint stores_name_is_one_line CHECK (internal.is_line(name))
);
CREATE INDEX stores_in_order ON app.stores USING btree (sort_order, key);
CREATE INDEX stores_of_segment ON app.stores USING btree (segment_id) WHERE (segment_id IS NOT NULL);
alter table app.stores enable row level security;
create policy "administrators add stores" on app.stores for insert to app_admin
  with check (true);
create policy "administrators change stores" on app.stores for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete stores" on app.stores for delete to app_admin
  using (true);
create policy "administrators read stores" on app.stores for select to app_admin
  using (true);
create policy "dashboards read every row" on app.stores for select to app_dashboard
  using (true);

-- The rules of each streak. at_risk_hours null means the usual of its period: 6, 24 or 72.
create table app.streak_definitions (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  description text,
  qualifying_event text not null,
  event_filter jsonb,
  period text not null default 'day'::text,
  min_count integer not null default 1,
  week_starts_on integer not null default 1,
  timezone_mode text not null default 'user'::text,
  timezone text,
  grace_hours integer not null default 0,
  freezes_initial integer not null default 0,
  freezes_max integer not null default 2,
  freeze_earn_every integer not null default 0,
  at_risk_hours integer,
  restore_window_hours integer not null default 48,
  milestones jsonb not null default '[]'::jsonb,
  allow_client_qualify boolean not null default true,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint streak_definitions_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A streak with this key exists.
  constraint streak_definitions_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR at_risk_hours: must be 0 to 1000.
  constraint streak_definitions_at_risk_hours_0_to_1000 CHECK (((at_risk_hours >= 0) AND (at_risk_hours <= 1000))),
  -- 400 VALIDATION_ERROR description: must have at most 2000 characters.
  constraint streak_definitions_description_at_most_2000 CHECK ((char_length(description) <= 2000)),
  -- 400 VALIDATION_ERROR freeze_earn_every: must be 0 to 1000.
  constraint streak_definitions_freeze_earn_every_0_to_1000 CHECK (((freeze_earn_every >= 0) AND (freeze_earn_every <= 1000))),
  -- 400 VALIDATION_ERROR freezes_initial: must be 0 to 100.
  constraint streak_definitions_freezes_initial_0_to_100 CHECK (((freezes_initial >= 0) AND (freezes_initial <= 100))),
  -- 400 VALIDATION_ERROR freezes_max: must be 0 to 100.
  constraint streak_definitions_freezes_max_0_to_100 CHECK (((freezes_max >= 0) AND (freezes_max <= 100))),
  -- 400 VALIDATION_ERROR grace_hours: must be 0 to 48.
  constraint streak_definitions_grace_hours_0_to_48 CHECK (((grace_hours >= 0) AND (grace_hours <= 48))),
  -- 400 VALIDATION_ERROR freezes_initial: must be at most freezes_max.
  constraint streak_definitions_initial_within_max CHECK ((freezes_initial <= freezes_max)),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint streak_definitions_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR min_count: must be 1 to 10000.
  constraint streak_definitions_min_count_1_to_10000 CHECK (((min_count >= 1) AND (min_count <= 10000))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint streak_definitions_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint streak_definitions_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR period: must be day, week or month.
  constraint streak_definitions_period_known CHECK ((period = ANY (ARRAY['day'::text, 'week'::text, 'month'::text]))),
  -- 400 VALIDATION_ERROR qualifying_event: must have 1 to 255 characters, no white space at either end.
  constraint streak_definitions_qualifying_event_form CHECK ((((char_length(qualifying_event) >= 1) AND (char_length(qualifying_event) <= 255)) AND (qualifying_event !~ '^\s|\s$'::text))),
  -- 400 VALIDATION_ERROR restore_window_hours: must be 0 to 8760.
  constraint streak_definitions_restore_window_hours_0_to_8760 CHECK (((restore_window_hours >= 0) AND (restore_window_hours <= 8760))),
  -- 400 VALIDATION_ERROR timezone_mode: must be user or fixed.
  constraint streak_definitions_timezone_mode_known CHECK ((timezone_mode = ANY (ARRAY['user'::text, 'fixed'::text]))),
  -- 400 VALIDATION_ERROR timezone: is required when timezone_mode is fixed, and must be left out otherwise.
  constraint streak_definitions_timezone_when_fixed CHECK (((timezone_mode = 'fixed'::text) = (timezone IS NOT NULL))),
  -- 400 VALIDATION_ERROR week_starts_on: must be 1 (Monday) to 7 (Sunday); 0 is Sunday too.
  constraint streak_definitions_week_starts_on_0_to_7 CHECK (((week_starts_on >= 0) AND (week_starts_on <= 7)))
);
CREATE INDEX streak_definitions_watching ON app.streak_definitions USING btree (qualifying_event) WHERE is_active;
alter table app.streak_definitions enable row level security;
create policy "administrators add definitions" on app.streak_definitions for insert to app_admin
  with check (true);
create policy "administrators change definitions" on app.streak_definitions for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete definitions" on app.streak_definitions for delete to app_admin
  using (true);
create policy "administrators read definitions" on app.streak_definitions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.streak_definitions for select to app_dashboard
  using (true);
create policy "users read definitions in use" on app.streak_definitions for select to app_user
  using (is_active);

-- Freezes given, not earned: the amount that took effect, and the first period that it can cover, the oldest one still
-- open when it was given.
create table app.streak_freezes (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  streak_definition_id uuid not null,
  applies_from date not null,
  amount integer not null,
  freezes_max integer not null,
  source_type text not null,
  source_id text,
  granted_at timestamp with time zone not null default internal.now(),
  constraint streak_freezes_pkey PRIMARY KEY (id),
  constraint streak_freezes_app_user_id_streak_definition_id_fkey FOREIGN KEY (app_user_id, streak_definition_id) REFERENCES app.user_streaks(app_user_id, streak_definition_id) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX streak_freezes_of_streak ON app.streak_freezes USING btree (app_user_id, streak_definition_id, applies_from);
alter table app.streak_freezes enable row level security;
create policy "administrators read every gift of freezes" on app.streak_freezes for select to app_admin
  using (true);
create policy "dashboards read every row" on app.streak_freezes for select to app_dashboard
  using (true);
create policy "users read their own gifts of freezes" on app.streak_freezes for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- Milestones reached. One lying within a chain is not reached again by it, however the chain is folded anew.
create table app.streak_milestones (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  streak_definition_id uuid not null,
  count integer not null,
  reached_on date not null,
  reached_at timestamp with time zone not null default internal.now(),
  constraint streak_milestones_pkey PRIMARY KEY (id),
  constraint streak_milestones_once_per_period UNIQUE (app_user_id, streak_definition_id, count, reached_on),
  constraint streak_milestones_app_user_id_streak_definition_id_fkey FOREIGN KEY (app_user_id, streak_definition_id) REFERENCES app.user_streaks(app_user_id, streak_definition_id) ON UPDATE CASCADE ON DELETE CASCADE
);
alter table app.streak_milestones enable row level security;
create policy "administrators read every milestone" on app.streak_milestones for select to app_admin
  using (true);
create policy "dashboards read every row" on app.streak_milestones for select to app_dashboard
  using (true);

-- Dates, both included, on which a user need not feed a streak.
create table app.streak_pauses (
  app_user_id uuid not null,
  streak_definition_id uuid not null,
  starts_on date not null,
  ends_on date not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint streak_pauses_pkey PRIMARY KEY (app_user_id, streak_definition_id, starts_on),
  constraint streak_pauses_app_user_id_streak_definition_id_fkey FOREIGN KEY (app_user_id, streak_definition_id) REFERENCES app.user_streaks(app_user_id, streak_definition_id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint streak_pauses_end_after_start CHECK ((ends_on >= starts_on))
);
alter table app.streak_pauses enable row level security;
create policy "administrators read every pause" on app.streak_pauses for select to app_admin
  using (true);
create policy "dashboards read every row" on app.streak_pauses for select to app_dashboard
  using (true);
create policy "users read their own pauses" on app.streak_pauses for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- The truth about a streak: per local period how often it was fed, and what covers it. The fold reads nothing else but
-- pauses and gifts of freezes.
create table app.streak_periods (
  app_user_id uuid not null,
  streak_definition_id uuid not null,
  starts_on date not null,
  -- What covers the period; null when it was fed too seldom.
  source text,
  count integer not null default 0,
  -- How many of count came while the period before (open_2: two before, open_3: three before) could still be saved.
  open_1 integer not null default 0,
  open_2 integer not null default 0,
  open_3 integer not null default 0,
  -- How many of count the fold gave to periods before, in their grace.
  taken integer not null default 0,
  -- min_count, freeze_earn_every and freezes_max in force when it was fed: changed rules do not rewrite the past.
  needed integer not null,
  earn_every integer not null,
  freezes_max integer not null,
  qualified_at timestamp with time zone,
  constraint streak_periods_pkey PRIMARY KEY (app_user_id, streak_definition_id, starts_on),
  constraint streak_periods_app_user_id_streak_definition_id_fkey FOREIGN KEY (app_user_id, streak_definition_id) REFERENCES app.user_streaks(app_user_id, streak_definition_id) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX streak_periods_frozen ON app.streak_periods USING btree (streak_definition_id, starts_on) WHERE (source = 'freeze'::text);
CREATE INDEX streak_periods_qualified ON app.streak_periods USING brin (qualified_at) WITH (pages_per_range='32', autosummarize='on');
alter table app.streak_periods enable row level security;
create policy "administrators read every period" on app.streak_periods for select to app_admin
  using (true);
create policy "dashboards read every row" on app.streak_periods for select to app_dashboard
  using (true);
create policy "users read their own periods" on app.streak_periods for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- When users with streaks changed their time zone: which local date an event fell on, and how long a period stayed
-- open. The newest fifty of each.
create table app.streak_timezones (
  app_user_id uuid not null,
  moved_at timestamp with time zone not null,
  from_zone text not null,
  to_zone text not null,
  constraint streak_timezones_pkey PRIMARY KEY (app_user_id, moved_at),
  constraint streak_timezones_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE
);
alter table app.streak_timezones enable row level security;
create policy "administrators read every move" on app.streak_timezones for select to app_admin
  using (true);
create policy "dashboards read every row" on app.streak_timezones for select to app_dashboard
  using (true);
create policy "users read their own moves" on app.streak_timezones for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- What the subscription provider told, each event once, as it came. outcome says what became of it: applied; older than
-- what was applied before it came; waiting for the purchase; of a user who is not known here; of a kind that changes
-- nothing.
create table app.subscription_events (
  id text not null,
  source_ref text,
  app_user_id uuid,
  type text not null,
  event_at timestamp with time zone not null,
  payload jsonb not null,
  outcome text not null,
  received_at timestamp with time zone not null default internal.now(),
  names text[] not null default '{}'::text[],
  constraint subscription_events_pkey PRIMARY KEY (id),
  constraint subscription_events_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint subscription_events_id_1_to_255 CHECK (((char_length(id) >= 1) AND (char_length(id) <= 255))),
  constraint subscription_events_outcome_known CHECK ((outcome = ANY (ARRAY['applied'::text, 'older'::text, 'waiting'::text, 'unknown_user'::text, 'without_effect'::text])))
);
CREATE INDEX subscription_events_nobodys ON app.subscription_events USING btree (received_at) WHERE (app_user_id IS NULL);
CREATE INDEX subscription_events_of_name ON app.subscription_events USING gin (names) WITH (fastupdate=off);
CREATE INDEX subscription_events_of_restored ON app.subscription_events USING btree ("left"((payload ->> 'provider_id'::text), 255)) WHERE (type = 'RESTORE'::text);
CREATE INDEX subscription_events_of_restored_ref ON app.subscription_events USING btree ("left"((payload ->> 'ref'::text), 255)) WHERE (type = 'RESTORE'::text);
CREATE INDEX subscription_events_of_source ON app.subscription_events USING btree (source_ref, event_at, received_at, id);
CREATE INDEX subscription_events_of_transaction ON app.subscription_events USING btree ("left"((payload ->> 'transaction_id'::text), 255)) WHERE (source_ref IS NOT NULL);
CREATE INDEX subscription_events_of_user ON app.subscription_events USING btree (app_user_id, event_at);
CREATE INDEX subscription_events_transfers ON app.subscription_events USING gin (((payload -> 'transferred_from'::text))) WITH (fastupdate=off) WHERE (type = 'TRANSFER'::text);
alter table app.subscription_events enable row level security;
create policy "administrators read every event of the provider" on app.subscription_events for select to app_admin
  using (true);
create policy "dashboards read every row" on app.subscription_events for select to app_dashboard
  using (true);

-- What stores sold, one row for each original transaction: the fold of its events. Its status is worked out from these
-- times when it is read.
create table app.subscriptions (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  source_ref text not null,
  product_id text,
  store text not null,
  environment text not null,
  period_type text not null,
  entitlement_ids text[] not null default '{}'::text[],
  purchase_date timestamp with time zone not null,
  expiration_date timestamp with time zone,
  grace_until timestamp with time zone,
  billing_issue_at timestamp with time zone,
  cancelled_at timestamp with time zone,
  paused_at timestamp with time zone,
  refunded_at timestamp with time zone,
  trial_started_at timestamp with time zone,
  trial_converted_at timestamp with time zone,
  last_event_at timestamp with time zone not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint subscriptions_pkey PRIMARY KEY (id),
  constraint subscriptions_one_per_source_ref UNIQUE (source_ref),
  constraint subscriptions_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint subscriptions_environment_known CHECK ((environment = ANY (ARRAY['production'::text, 'sandbox'::text])))
);
CREATE INDEX subscriptions_conversions ON app.subscriptions USING btree (trial_converted_at) WHERE (trial_converted_at IS NOT NULL);
CREATE INDEX subscriptions_expiring ON app.subscriptions USING btree (expiration_date);
CREATE INDEX subscriptions_newest ON app.subscriptions USING btree (created_at DESC, id DESC);
CREATE INDEX subscriptions_of_user ON app.subscriptions USING btree (app_user_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_trials ON app.subscriptions USING btree (trial_started_at) WHERE (trial_started_at IS NOT NULL);
alter table app.subscriptions enable row level security;
create policy "administrators read every subscription" on app.subscriptions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.subscriptions for select to app_dashboard
  using (true);

-- The log of changes for a month, in the order of commits: place is the number of the session that numbered them after
-- their commit, id the order of the changes of one row. audience is the user or the group whose row it is, author the
-- user in a group. was_live and is_live say whether the row was there before and after, for this audience; a row that
-- changes its audience has two entries. origin is the client that pushed the change.
create table app.sync_changes (
  place bigint not null,
  id bigint not null,
  collection_id uuid not null,
  row_id uuid not null,
  audience uuid,
  author uuid,
  was_live boolean not null,
  is_live boolean not null,
  origin bigint,
  at timestamp with time zone not null
);
CREATE INDEX sync_changes_by_place ON app.sync_changes USING brin (place) WITH (autosummarize='on');
CREATE INDEX sync_changes_of_audience ON app.sync_changes USING btree (audience, place);
CREATE INDEX sync_changes_of_collection ON app.sync_changes USING btree (collection_id, place);
CREATE INDEX sync_changes_of_origin ON app.sync_changes USING btree (origin, place) WHERE (origin IS NOT NULL);
alter table app.sync_changes enable row level security;

-- Clients of users that sync. A checkpoint is ten thousand times its place, and a number below 5000 that follows from
-- the place and the seed: so the digits of another client are hardly ever taken for those of this one. The others are
-- in app.sync_steps. stamp is that of internal.sync_present when the last pull began, null where that pull has not
-- ended or its checkpoint does not tell its place.
create table app.sync_checkpoints (
  id bigint not null generated always as identity,
  app_user_id uuid not null,
  client_id uuid not null,
  seed bigint not null default hashtextextended((gen_random_uuid())::text, (0)::bigint),
  first_checkpoint bigint,
  checkpoint bigint,
  stamp bigint,
  last_pull_at timestamp with time zone,
  last_push_at timestamp with time zone,
  used_at timestamp with time zone not null default internal.now(),
  created_at timestamp with time zone not null default internal.now(),
  constraint sync_checkpoints_pkey PRIMARY KEY (id),
  constraint sync_checkpoints_one_per_client UNIQUE (app_user_id, client_id),
  constraint sync_checkpoints_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX sync_checkpoints_used ON app.sync_checkpoints USING btree (used_at DESC, id DESC);
alter table app.sync_checkpoints enable row level security;
create policy "administrators read clients" on app.sync_checkpoints for select to app_admin
  using (true);
create policy "dashboards read every row" on app.sync_checkpoints for select to app_dashboard
  using (true);

-- Collections that are or were synced, for a month also those that were dropped. epoch goes up whenever sync is
-- switched on: what happened while it was off is in no log, as what an earlier collection of the name had is not, so
-- that who holds rows of before begins anew. outputs is the compiled select list of its rows, of that schema_version.
create table app.sync_collections (
  collection_id uuid not null,
  name text not null,
  epoch integer not null default 1,
  dropped_at timestamp with time zone,
  outputs_version bigint,
  outputs text,
  constraint sync_collections_pkey PRIMARY KEY (collection_id),
  constraint sync_collections_name_is_one_line CHECK (internal.is_line(name))
);
alter table app.sync_collections enable row level security;

-- The results of mutations, for 30 days: a repeated one is answered from here. No foreign key: its check of each row
-- was a third of what a push pays to remember; whoever deletes a user deletes these.
create table app.sync_mutations (
  app_user_id uuid not null,
  client_id uuid not null,
  id uuid not null,
  status text not null,
  code text,
  message text,
  row_json json,
  at timestamp with time zone not null,
  constraint sync_mutations_pkey PRIMARY KEY (app_user_id, client_id, id),
  constraint sync_mutations_status_known CHECK ((status = ANY (ARRAY['applied'::text, 'conflict'::text, 'rejected'::text])))
);
CREATE INDEX sync_mutations_by_time ON app.sync_mutations USING brin (at) WITH (autosummarize='on');
alter table app.sync_mutations enable row level security;

-- Changes of rows without a place in the log yet. No index besides the key and no row that writers share: they never
-- wait for each other.
create table app.sync_pending_changes (
  id bigint not null generated always as identity,
  collection_id uuid not null,
  row_id uuid not null,
  audience uuid,
  author uuid,
  was_live boolean not null,
  is_live boolean not null,
  origin bigint,
  at timestamp with time zone not null,
  constraint sync_pending_changes_pkey PRIMARY KEY (id)
);
alter table app.sync_pending_changes enable row level security;

-- place: the last place of the log, which changes with what has it. floor: everything above it is in the log.
-- pending_after: no pending change has an id up to it, nor will one: what was deleted is not looked through again.
create table app.sync_positions (
  is_only boolean not null default true,
  place bigint not null default 1,
  floor bigint not null default 0,
  pending_after bigint not null default 0,
  constraint sync_positions_pkey PRIMARY KEY (is_only),
  constraint sync_positions_are_one_row CHECK (is_only)
);
alter table app.sync_positions enable row level security;

-- Checkpoints that do not follow from their place: pages of a pull, which goes from the place base (null: from nothing)
-- to target and has come as far as after, and the end of a pull (after is null) that found nothing new in the log, or
-- missed rows: they were there at target, and had gone when the pull came to them, so that the client lacks them.
create table app.sync_steps (
  checkpoint_id bigint not null,
  number bigint not null,
  base bigint,
  base_number bigint,
  target bigint not null,
  after jsonb,
  at timestamp with time zone not null,
  missed uuid[],
  constraint sync_steps_pkey PRIMARY KEY (checkpoint_id, number),
  constraint sync_steps_checkpoint_id_fkey FOREIGN KEY (checkpoint_id) REFERENCES app.sync_checkpoints(id) ON DELETE CASCADE
);
CREATE INDEX sync_steps_by_time ON app.sync_steps USING brin (at) WITH (autosummarize='on');
alter table app.sync_steps enable row level security;

-- When places were given, one a minute at most: how old a checkpoint is.
create table app.sync_times (
  place bigint not null,
  at timestamp with time zone not null,
  constraint sync_times_pkey PRIMARY KEY (place)
);
alter table app.sync_times enable row level security;

-- What decided which rows a client was shown, from the checkpoint since on: for each collection the epoch, the policy
-- and what follows from it for the user (functions/tenant/sync/views.sql), and the groups of the user with their ranks.
-- Never ids of rows.
create table app.sync_views (
  checkpoint_id bigint not null,
  since bigint not null,
  at timestamp with time zone not null,
  collection_ids uuid[] not null,
  accesses text[] not null,
  group_ids uuid[] not null,
  ranks smallint[] not null,
  constraint sync_views_pkey PRIMARY KEY (checkpoint_id, since),
  constraint sync_views_checkpoint_id_fkey FOREIGN KEY (checkpoint_id) REFERENCES app.sync_checkpoints(id) ON DELETE CASCADE
);
alter table app.sync_views enable row level security;

-- IANA zones that this Postgres knows; reading the system view costs tens of milliseconds each time.
create table app.timezones (
  name text not null,
  constraint timezones_pkey PRIMARY KEY (name)
);
alter table app.timezones enable row level security;
create policy "everybody reads time zones" on app.timezones for select to app_admin, app_anon, app_auth, app_server, app_user, app_worker
  using (true);

-- The last day whose events and stored bytes are in app.usage_days. Of later days they are counted when somebody asks.
-- A transaction that deletes events shares the lock of the row, so that none of them is counted twice.
create table app.usage_closings (
  only_row boolean not null default true,
  closed_until date not null,
  constraint usage_closings_pkey PRIMARY KEY (only_row),
  constraint usage_closings_one_row CHECK (only_row)
);
alter table app.usage_closings enable row level security;

-- What a project used on each day (UTC), the sum of the slots of a meter and day, so that writers do not wait for each
-- other, as in app.row_counts. events and storage_bytes are written when the day is closed.
create table app.usage_days (
  slot bigint not null generated always as identity,
  day date not null,
  meter text not null,
  amount numeric not null,
  constraint usage_days_pkey PRIMARY KEY (slot),
  constraint usage_days_meter_known CHECK ((meter = ANY (ARRAY['mau'::text, 'events'::text, 'storage_bytes'::text, 'push_sent'::text, 'emails_sent'::text, 'ai_spend_usd'::text, 'function_ms'::text])))
);
CREATE INDEX usage_days_of_meter ON app.usage_days USING btree (meter, day);
alter table app.usage_days enable row level security;

-- Unlocks. A revoked one stays as a row, so that what it paid is not paid again.
create table app.user_achievements (
  app_user_id uuid not null,
  achievement_id uuid not null,
  unlocked_at timestamp with time zone not null default internal.now(),
  source text not null,
  seen_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint user_achievements_pkey PRIMARY KEY (app_user_id, achievement_id),
  constraint user_achievements_achievement_id_fkey FOREIGN KEY (achievement_id) REFERENCES app.achievements(id) ON DELETE CASCADE,
  constraint user_achievements_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint user_achievements_source_known CHECK ((source = ANY (ARRAY['criteria'::text, 'grant'::text, 'backfill'::text, 'reward'::text])))
);
CREATE INDEX user_achievements_achievement ON app.user_achievements USING btree (achievement_id);
CREATE INDEX user_achievements_of_achievement ON app.user_achievements USING btree (achievement_id, unlocked_at DESC, app_user_id DESC) WHERE (revoked_at IS NULL);
CREATE INDEX user_achievements_unlocked ON app.user_achievements USING brin (unlocked_at) WITH (pages_per_range='32', autosummarize='on');
alter table app.user_achievements enable row level security;
create policy "administrators read every unlock" on app.user_achievements for select to app_admin
  using (true);
create policy "dashboards read every row" on app.user_achievements for select to app_dashboard
  using (true);
create policy "users read their own unlocks" on app.user_achievements for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- One-time codes and magic links. secret_hash is the HMAC of a code under SECRETS_KEY, or the SHA-256 of a link's
-- token. sealed is the content of the message, encrypted by the server, until it is sent. app_user_id is the user whose
-- session requested the code; null for sign-in.
create table app.user_codes (
  id uuid not null,
  app_user_id uuid,
  kind text not null,
  channel text not null,
  address text not null,
  purpose text not null,
  secret_hash text not null,
  sealed text,
  attempts smallint not null default 0,
  created_at timestamp with time zone not null default internal.now(),
  expires_at timestamp with time zone not null,
  sent_at timestamp with time zone,
  used_at timestamp with time zone,
  -- The languages that the request asked for, most wanted first: the message comes in the first that there is.
  locales text[],
  constraint user_codes_pkey PRIMARY KEY (id),
  constraint user_codes_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint user_codes_channel_known CHECK ((channel = ANY (ARRAY['email'::text, 'phone'::text]))),
  constraint user_codes_kind_known CHECK ((kind = ANY (ARRAY['code'::text, 'magic_link'::text]))),
  constraint user_codes_of_a_session_name_its_user CHECK (((purpose = 'sign_in'::text) OR (app_user_id IS NOT NULL))),
  constraint user_codes_purpose_known CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'link'::text, 'delete'::text])))
);
CREATE INDEX user_codes_expire ON app.user_codes USING btree (expires_at);
CREATE UNIQUE INDEX user_codes_magic_link ON app.user_codes USING btree (secret_hash) WHERE (kind = 'magic_link'::text);
CREATE INDEX user_codes_of_address ON app.user_codes USING btree (channel, address);
CREATE INDEX user_codes_of_user ON app.user_codes USING btree (app_user_id, created_at DESC);
CREATE UNIQUE INDEX user_codes_one_open ON app.user_codes USING btree (channel, address, purpose, app_user_id) NULLS NOT DISTINCT WHERE ((kind = 'code'::text) AND (used_at IS NULL));
alter table app.user_codes enable row level security;
create policy "sign-in creates codes" on app.user_codes for insert to app_auth
  with check (true);
create policy "sign-in reads codes" on app.user_codes for select to app_auth
  using (true);
create policy "sign-in replaces and consumes codes" on app.user_codes for update to app_auth
  using (true)
  with check (true);
create policy "workers delete old codes" on app.user_codes for delete to app_worker
  using (true);
create policy "workers delete the contents of sent messages" on app.user_codes for update to app_worker
  using (true)
  with check (true);
create policy "workers read unsent messages" on app.user_codes for select to app_worker
  using (true);

-- How often each user did each thing on each day (UTC, by occurred_at), kept in the event's own transaction.
create table app.user_event_counters (
  app_user_id uuid not null,
  event_name text not null,
  day date not null,
  count bigint not null,
  constraint user_event_counters_pkey PRIMARY KEY (app_user_id, event_name, day)
);
CREATE INDEX user_event_counters_days ON app.user_event_counters USING brin (day) WITH (pages_per_range='32', autosummarize='on');
alter table app.user_event_counters enable row level security;
create policy "administrators read every counter" on app.user_event_counters for select to app_admin
  using (true);
create policy "dashboards read every row" on app.user_event_counters for select to app_dashboard
  using (true);
create policy "users read their own counters" on app.user_event_counters for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

create table app.user_identities (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  provider text not null,
  provider_id text not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint user_identities_pkey PRIMARY KEY (id),
  constraint user_identities_unique UNIQUE (provider, provider_id),
  constraint user_identities_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
CREATE INDEX user_identities_of_user ON app.user_identities USING btree (app_user_id, created_at);
alter table app.user_identities enable row level security;
create policy "administrators read every identity" on app.user_identities for select to app_admin
  using (true);
create policy "dashboards read every row" on app.user_identities for select to app_dashboard
  using (true);
create policy "server keys read every identity" on app.user_identities for select to app_server
  using (true);
create policy "sign-in links identities" on app.user_identities for insert to app_auth
  with check (true);
create policy "sign-in reads every identity" on app.user_identities for select to app_auth
  using (true);
create policy "users read their own identities" on app.user_identities for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));
create policy "users unlink identities" on app.user_identities for delete to app_auth
  using (true);

-- Argon2id hashes, apart from users so that nothing that reads users can read them.
create table app.user_passwords (
  app_user_id uuid not null,
  password_hash text not null,
  updated_at timestamp with time zone not null default internal.now(),
  constraint user_passwords_pkey PRIMARY KEY (app_user_id),
  constraint user_passwords_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
alter table app.user_passwords enable row level security;
create policy "sign-in reads password hashes" on app.user_passwords for select to app_auth
  using (true);
create policy "sign-in replaces password hashes" on app.user_passwords for update to app_auth
  using (true)
  with check (true);
create policy "sign-in stores password hashes" on app.user_passwords for insert to app_auth
  with check (true);
create policy "users remove their password" on app.user_passwords for delete to app_auth
  using (true);

-- Sign-in sessions (sid of the tokens). refresh_hash is the SHA-256 of the one refresh token that is current; any other
-- that carries this sid was replaced.
create table app.user_sessions (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  refresh_hash text not null,
  original_anonymous_id text,
  signed_in_at timestamp with time zone not null default internal.now(),
  last_used_at timestamp with time zone not null default internal.now(),
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  end_reason text,
  -- As the app named itself when it signed in or last refreshed.
  platform text,
  app_version text,
  ip_country text,
  -- Started by an administrator for tests. It ends when its project leaves the environment development.
  is_test boolean not null default false,
  constraint user_sessions_pkey PRIMARY KEY (id),
  constraint user_sessions_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE,
  constraint user_sessions_app_version_at_most_50 CHECK ((char_length(app_version) <= 50)),
  constraint user_sessions_ip_country_form CHECK ((ip_country ~ '^[A-Z]{2}$'::text)),
  constraint user_sessions_platform_at_most_50 CHECK ((char_length(platform) <= 50))
);
CREATE INDEX user_sessions_of_user ON app.user_sessions USING btree (app_user_id, signed_in_at DESC);
alter table app.user_sessions enable row level security;
create policy "sign-in reads sessions" on app.user_sessions for select to app_auth
  using (true);
create policy "sign-in renews and ends sessions" on app.user_sessions for update to app_auth
  using (true)
  with check (true);
create policy "sign-in starts sessions" on app.user_sessions for insert to app_auth
  with check (true);
create policy "workers delete old sessions" on app.user_sessions for delete to app_worker
  using (true);
create policy "workers read old sessions" on app.user_sessions for select to app_worker
  using (true);

-- What the fold over a user's periods comes to, as it stands after the newest qualified period, without the clock:
-- status, and what the clock takes away, are worked out on read. Dates are first days of periods.
create table app.user_streaks (
  app_user_id uuid not null,
  streak_definition_id uuid not null,
  freezes_initial integer not null,
  current_count integer not null default 0,
  longest_count integer not null default 0,
  started_on date,
  -- The newest qualified period.
  last_period date,
  -- The last period that the chain survives with its freezes and pauses, if nothing more happens.
  covered_through date,
  -- Freezes in hand right after last_period.
  freezes integer not null,
  lapsed_count integer,
  -- The last covered period of the chain before this one, which counted lapsed_count.
  lapsed_through date,
  first_qualified_at timestamp with time zone,
  last_qualified_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  -- When the clock next has something to tell of this streak, if nothing happens to it before: it is at risk, used a
  -- freeze, is broken. Null: nothing.
  next_check_at timestamp with time zone,
  -- The newest period for which svc.streak.at_risk was emitted, or need not be.
  risk_notified_through date,
  -- The newest period whose lapse was emitted (svc.streak.frozen, svc.streak.broken), or need not be.
  lapse_notified_through date,
  constraint user_streaks_pkey PRIMARY KEY (app_user_id, streak_definition_id),
  constraint user_streaks_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint user_streaks_streak_definition_id_fkey FOREIGN KEY (streak_definition_id) REFERENCES app.streak_definitions(id) ON DELETE CASCADE
);
CREATE INDEX user_streaks_covered ON app.user_streaks USING btree (streak_definition_id, covered_through) WHERE (first_qualified_at IS NOT NULL);
CREATE INDEX user_streaks_next_check ON app.user_streaks USING btree (next_check_at) WHERE (next_check_at IS NOT NULL);
CREATE INDEX user_streaks_of_definition ON app.user_streaks USING btree (streak_definition_id, created_at DESC, app_user_id DESC);
alter table app.user_streaks enable row level security;
create policy "administrators read every streak" on app.user_streaks for select to app_admin
  using (true);
create policy "dashboards read every row" on app.user_streaks for select to app_dashboard
  using (true);
create policy "users read their own streaks" on app.user_streaks for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

create table app.users (
  id uuid not null default internal.new_id(),
  email text,
  phone text,
  display_name text not null,
  avatar_url text,
  external_id text,
  anonymous_id text,
  properties jsonb not null default '{}'::jsonb,
  timezone text,
  email_verified boolean not null default false,
  phone_verified boolean not null default false,
  is_banned boolean not null default false,
  first_seen_at timestamp with time zone not null default internal.now(),
  last_seen_at timestamp with time zone not null default internal.now(),
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  muted_until timestamp with time zone,
  constraint users_pkey PRIMARY KEY (id),
  -- 409 USER_ALREADY_EXISTS anonymous_id: A user with this anonymous_id exists.
  constraint users_anonymous_id_unique UNIQUE (anonymous_id),
  -- 409 EMAIL_EXISTS email: This address is in use.
  constraint users_email_unique UNIQUE (email),
  -- 409 USER_ALREADY_EXISTS external_id: A user with this external_id exists.
  constraint users_external_id_unique UNIQUE (external_id),
  constraint users_phone_unique UNIQUE (phone),
  -- 400 INVALID_INPUT display_name: must have 1 to 100 characters.
  constraint users_display_name_at_most_100 CHECK (((char_length(display_name) >= 1) AND (char_length(display_name) <= 100))),
  -- 400 INVALID_INPUT display_name: must be one line of text.
  constraint users_display_name_is_one_line CHECK (internal.is_line(display_name)),
  constraint users_email_is_normal CHECK ((email = internal.email_normal(email))),
  -- 400 INVALID_INPUT properties: must be an object.
  constraint users_properties_is_object CHECK ((jsonb_typeof(properties) = 'object'::text))
);
CREATE INDEX users_banned ON app.users USING btree (id) WHERE is_banned;
CREATE INDEX users_by_beginning_of_email ON app.users USING btree (email text_pattern_ops) WHERE (email IS NOT NULL);
CREATE INDEX users_by_beginning_of_external_id ON app.users USING btree (lower(external_id) text_pattern_ops) WHERE (external_id IS NOT NULL);
CREATE INDEX users_created ON app.users USING btree (created_at, id);
CREATE INDEX users_last_seen ON app.users USING btree (last_seen_at DESC, id DESC);
CREATE INDEX users_named ON app.users USING btree (lower(display_name) text_pattern_ops, id);
CREATE INDEX users_properties ON app.users USING gin (properties jsonb_path_ops);
CREATE INDEX users_searched ON app.users USING gin (email extensions.gin_trgm_ops, external_id extensions.gin_trgm_ops, display_name extensions.gin_trgm_ops);
alter table app.users enable row level security;
create policy "administrators change users" on app.users for update to app_admin
  using (true)
  with check (true);
create policy "administrators create users" on app.users for insert to app_admin
  with check (true);
create policy "administrators read every user" on app.users for select to app_admin
  using (true);
create policy "dashboards read every row" on app.users for select to app_dashboard
  using (true);
create policy "server keys read every user" on app.users for select to app_server
  using (true);
create policy "sign-in changes users" on app.users for update to app_auth
  using (true)
  with check (true);
create policy "sign-in creates users" on app.users for insert to app_auth
  with check (true);
create policy "sign-in reads every user" on app.users for select to app_auth
  using (true);
create policy "users change their own profile" on app.users for update to app_user
  using ((id = ( SELECT internal.user_id() AS user_id)))
  with check ((id = ( SELECT internal.user_id() AS user_id)));
create policy "users read their own profile" on app.users for select to app_user
  using ((id = ( SELECT internal.user_id() AS user_id)));

-- The attempt log of each delivery, from 1.
create table app.webhook_attempts (
  delivery_id uuid not null,
  n integer not null,
  at timestamp with time zone not null,
  status_code integer,
  error text,
  duration_ms integer not null,
  response_excerpt text,
  -- As its delivery says; here so that the newest attempts of a subscription are found. They go with their delivery.
  webhook_id uuid,
  constraint webhook_attempts_pkey PRIMARY KEY (delivery_id, n),
  constraint webhook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES app.webhook_deliveries(id) ON DELETE CASCADE
);
CREATE INDEX webhook_attempts_recent ON app.webhook_attempts USING btree (webhook_id, at DESC) INCLUDE (duration_ms);
alter table app.webhook_attempts enable row level security;
create policy "administrators read attempts" on app.webhook_attempts for select to app_admin
  using (true);
create policy "dashboards read every row" on app.webhook_attempts for select to app_dashboard
  using (true);
create policy "workers log attempts" on app.webhook_attempts for insert to app_worker
  with check (true);
create policy "workers read attempts" on app.webhook_attempts for select to app_worker
  using (true);

-- How badly a subscription fares: deliveries that ended in dlq and attempts that failed, each since the last that was
-- delivered. A table of its own, so that counting leaves the rows that every event looks at alone.
create table app.webhook_breakers (
  webhook_id uuid not null,
  dlq_in_row integer not null default 0,
  failed_in_row integer not null default 0,
  failing_since timestamp with time zone,
  degraded_at timestamp with time zone,
  -- When it was last tried while degraded; at first when it degraded.
  probed_at timestamp with time zone,
  constraint webhook_breakers_pkey PRIMARY KEY (webhook_id),
  constraint webhook_breakers_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES app.webhooks(id) ON DELETE CASCADE
);
alter table app.webhook_breakers enable row level security;
create policy "workers begin to count" on app.webhook_breakers for insert to app_worker
  with check (true);
create policy "workers count" on app.webhook_breakers for update to app_worker
  using (true)
  with check (true);
create policy "workers read breakers" on app.webhook_breakers for select to app_worker
  using (true);

-- One per subscription and event. payload is the body, built once: retries and replays are the same to the byte.
-- attempts counts all; series_attempts those since the last replay. Those of a deleted subscription are removed by a
-- worker.
create table app.webhook_deliveries (
  id uuid not null,
  webhook_id uuid not null,
  secret_id uuid not null,
  event_id uuid not null,
  event_name text not null,
  payload text not null,
  status text not null default 'pending'::text,
  attempts integer not null default 0,
  series_attempts integer not null default 0,
  next_attempt_at timestamp with time zone,
  created_at timestamp with time zone not null default internal.now(),
  settled_at timestamp with time zone,
  -- Set while it waits for a degraded subscription to be switched on again; then it has no next_attempt_at, and no work
  -- in the outbox.
  held_until timestamp with time zone,
  failed_reason text,
  -- Whose event it tells of: the body has what the user did, and their profile, so it goes when they do. No foreign key:
  -- the event has one already.
  app_user_id uuid,
  constraint webhook_deliveries_pkey PRIMARY KEY (id),
  constraint webhook_deliveries_once_per_event UNIQUE (webhook_id, event_id),
  constraint webhook_deliveries_failed_reason_known CHECK ((failed_reason = ANY (ARRAY['attempts_exhausted'::text, 'held_too_long'::text, 'gone'::text, 'target_not_allowed'::text, 'subscription_disabled'::text]))),
  constraint webhook_deliveries_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'dlq'::text])))
);
CREATE INDEX webhook_deliveries_by_status ON app.webhook_deliveries USING btree (webhook_id, status, created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_created ON app.webhook_deliveries USING btree (created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_held ON app.webhook_deliveries USING btree (webhook_id, held_until) WHERE (held_until IS NOT NULL);
CREATE INDEX webhook_deliveries_newest ON app.webhook_deliveries USING btree (webhook_id, created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_of_user ON app.webhook_deliveries USING btree (app_user_id);
CREATE INDEX webhook_deliveries_settled ON app.webhook_deliveries USING btree (webhook_id, settled_at) INCLUDE (status) WHERE (settled_at IS NOT NULL);
CREATE INDEX webhook_deliveries_unusual ON app.webhook_deliveries USING btree (status, created_at DESC, id DESC) WHERE (status <> 'delivered'::text);
alter table app.webhook_deliveries enable row level security;
create policy "administrators read deliveries" on app.webhook_deliveries for select to app_admin
  using (true);
create policy "administrators replay deliveries" on app.webhook_deliveries for update to app_admin
  using (true)
  with check ((status = 'pending'::text));
create policy "dashboards read every row" on app.webhook_deliveries for select to app_dashboard
  using (true);
create policy "workers forget deliveries" on app.webhook_deliveries for delete to app_worker
  using (true);
create policy "workers read deliveries" on app.webhook_deliveries for select to app_worker
  using (true);
create policy "workers settle deliveries" on app.webhook_deliveries for update to app_worker
  using (true)
  with check (true);

-- Signing secrets, encrypted by the server. A delivery keeps the one that it was queued with.
create table app.webhook_secrets (
  id uuid not null,
  webhook_id uuid not null,
  secret_sealed text not null,
  created_at timestamp with time zone not null default internal.now(),
  -- When another took its place. It is kept as long as deliveries that were queued with it.
  replaced_at timestamp with time zone,
  constraint webhook_secrets_pkey PRIMARY KEY (id),
  constraint webhook_secrets_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES app.webhooks(id) ON DELETE CASCADE
);
CREATE INDEX webhook_secrets_of_webhook ON app.webhook_secrets USING btree (webhook_id);
alter table app.webhook_secrets enable row level security;
create policy "administrators store signing secrets" on app.webhook_secrets for insert to app_admin
  with check (true);
create policy "workers forget secrets that are not in use" on app.webhook_secrets for delete to app_worker
  using ((NOT (id IN ( SELECT w.secret_id
   FROM app.webhooks w))));
create policy "workers read signing secrets" on app.webhook_secrets for select to app_worker
  using (true);

-- Outbound subscriptions: one event name each.
create table app.webhooks (
  id uuid not null default internal.new_id(),
  event_name text not null,
  target_url text not null,
  description text,
  filter jsonb,
  include_user boolean not null default true,
  status text not null default 'active'::text,
  secret_id uuid not null,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint webhooks_pkey PRIMARY KEY (id),
  -- 400 VALIDATION_ERROR event_name: must match ^[a-z][a-z0-9_.-]{0,127}$.
  constraint webhooks_event_name_form CHECK ((event_name ~ '^[a-z][a-z0-9_.-]{0,127}$'::text)),
  constraint webhooks_status_known CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text, 'degraded'::text])))
);
CREATE INDEX webhooks_watching ON app.webhooks USING btree (event_name) WHERE (status <> 'disabled'::text);
alter table app.webhooks enable row level security;
create policy "administrators add webhooks" on app.webhooks for insert to app_admin
  with check (true);
create policy "administrators change webhooks" on app.webhooks for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete webhooks" on app.webhooks for delete to app_admin
  using (true);
create policy "administrators read webhooks" on app.webhooks for select to app_admin
  using (true);
create policy "dashboards read every row" on app.webhooks for select to app_dashboard
  using (true);
create policy "workers read webhooks" on app.webhooks for select to app_worker
  using (true);
create policy "workers switch webhooks off" on app.webhooks for update to app_worker
  using (true)
  with check ((status <> 'active'::text));

-- What multiplies the XP of rules for a time: of all of them, or of those named. All that match multiply.
create table app.xp_boosts (
  id uuid not null default internal.new_id(),
  name text not null,
  multiplier numeric not null,
  starts_at timestamp with time zone not null default internal.now(),
  ends_at timestamp with time zone,
  segment_id uuid,
  rule_keys text[],
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint xp_boosts_pkey PRIMARY KEY (id),
  -- 409 CONFLICT name: A boost with this name exists.
  constraint xp_boosts_name_unique UNIQUE (name),
  -- 400 VALIDATION_ERROR ends_at: must be after starts_at.
  constraint xp_boosts_end_after_start CHECK ((ends_at > starts_at)),
  -- 400 VALIDATION_ERROR multiplier: must be 0.1 to 100.
  constraint xp_boosts_multiplier_from_a_tenth_to_100 CHECK (((multiplier >= 0.1) AND (multiplier <= (100)::numeric))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint xp_boosts_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint xp_boosts_name_is_one_line CHECK (internal.is_line(name))
);
alter table app.xp_boosts enable row level security;
create policy "administrators add boosts" on app.xp_boosts for insert to app_admin
  with check (true);
create policy "administrators change boosts" on app.xp_boosts for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete boosts" on app.xp_boosts for delete to app_admin
  using (true);
create policy "administrators read boosts" on app.xp_boosts for select to app_admin
  using (true);
create policy "dashboards read every row" on app.xp_boosts for select to app_dashboard
  using (true);

-- The one table of levels, replaced whole.
create table app.xp_levels (
  level integer not null,
  xp_required bigint not null,
  name text,
  icon_url text,
  reward jsonb,
  constraint xp_levels_pkey PRIMARY KEY (level),
  constraint xp_levels_xp_required_unique UNIQUE (xp_required),
  constraint xp_levels_first_needs_nothing CHECK (((level = 1) = (xp_required = 0))),
  -- 400 VALIDATION_ERROR icon_url: must have at most 2000 characters.
  constraint xp_levels_icon_url_at_most_2000 CHECK ((char_length(icon_url) <= 2000)),
  constraint xp_levels_level_1_to_1000 CHECK (((level >= 1) AND (level <= 1000))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint xp_levels_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint xp_levels_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR reward: must be an object.
  constraint xp_levels_reward_is_object CHECK ((jsonb_typeof(reward) = 'object'::text)),
  constraint xp_levels_xp_required_0_or_more CHECK ((xp_required >= 0))
);
alter table app.xp_levels enable row level security;
create policy "dashboards read every row" on app.xp_levels for select to app_dashboard
  using (true);
create policy "everybody reads levels" on app.xp_levels for select to app_admin, app_user
  using (true);

-- What each rule gave each user on each UTC day, for its caps.
create table app.xp_rule_days (
  app_user_id uuid not null,
  rule_key text not null,
  day date not null,
  amount bigint not null,
  constraint xp_rule_days_pkey PRIMARY KEY (app_user_id, rule_key, day)
);
alter table app.xp_rule_days enable row level security;

-- Which events give XP, and how much. Times and caps go by the clock that internal.xp_counted_at says.
create table app.xp_rules (
  id uuid not null default internal.new_id(),
  key text not null,
  name text not null,
  event_name text not null,
  event_filter jsonb,
  amount bigint,
  amount_property text,
  multiplier numeric not null default 1,
  max_per_event bigint,
  max_per_day bigint,
  cooldown_seconds integer,
  max_total bigint,
  starts_at timestamp with time zone,
  ends_at timestamp with time zone,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint xp_rules_pkey PRIMARY KEY (id),
  -- 409 CONFLICT key: A rule with this key exists.
  constraint xp_rules_key_unique UNIQUE (key),
  -- 400 VALIDATION_ERROR amount: must be 1 to 1000000000.
  constraint xp_rules_amount_1_to_1000000000 CHECK (((amount >= 1) AND (amount <= 1000000000))),
  -- 400 VALIDATION_ERROR amount_property: must have 1 to 255 characters.
  constraint xp_rules_amount_property_1_to_255 CHECK (((char_length(amount_property) >= 1) AND (char_length(amount_property) <= 255))),
  -- 400 VALIDATION_ERROR cooldown_seconds: must be 0 to 31536000.
  constraint xp_rules_cooldown_seconds_0_to_31536000 CHECK (((cooldown_seconds >= 0) AND (cooldown_seconds <= 31536000))),
  -- 400 VALIDATION_ERROR ends_at: must be after starts_at.
  constraint xp_rules_end_after_start CHECK ((ends_at > starts_at)),
  -- 400 VALIDATION_ERROR event_name: must have 1 to 255 characters, no white space at either end.
  constraint xp_rules_event_name_form CHECK ((((char_length(event_name) >= 1) AND (char_length(event_name) <= 255)) AND (event_name !~ '^\s|\s$'::text))),
  -- 400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.
  constraint xp_rules_key_form CHECK ((key ~ '^[a-z][a-z0-9_-]{0,127}$'::text)),
  -- 400 VALIDATION_ERROR max_per_day: must be 1 to 1000000000.
  constraint xp_rules_max_per_day_1_to_1000000000 CHECK (((max_per_day >= 1) AND (max_per_day <= 1000000000))),
  -- 400 VALIDATION_ERROR max_per_event: must be 1 to 1000000000.
  constraint xp_rules_max_per_event_1_to_1000000000 CHECK (((max_per_event >= 1) AND (max_per_event <= 1000000000))),
  -- 400 VALIDATION_ERROR max_total: must be 1 to 1000000000000.
  constraint xp_rules_max_total_1_to_1000000000000 CHECK (((max_total >= 1) AND (max_total <= '1000000000000'::bigint))),
  -- 400 VALIDATION_ERROR multiplier: must be above 0 and at most 1000000.
  constraint xp_rules_multiplier_above_0 CHECK (((multiplier > (0)::numeric) AND (multiplier <= (1000000)::numeric))),
  -- 400 VALIDATION_ERROR name: must have 1 to 200 characters.
  constraint xp_rules_name_1_to_200 CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  -- 400 VALIDATION_ERROR name: must be one line of text.
  constraint xp_rules_name_is_one_line CHECK (internal.is_line(name)),
  -- 400 VALIDATION_ERROR event_name: XP for the award of XP would feed itself.
  constraint xp_rules_not_of_xp CHECK ((event_name <> 'svc.xp.awarded'::text)),
  -- 400 VALIDATION_ERROR amount: give either amount or amount_property.
  constraint xp_rules_one_amount CHECK (((amount IS NULL) <> (amount_property IS NULL)))
);
CREATE INDEX xp_rules_watching ON app.xp_rules USING btree (event_name) WHERE is_active;
alter table app.xp_rules enable row level security;
create policy "administrators add rules" on app.xp_rules for insert to app_admin
  with check (true);
create policy "administrators change rules" on app.xp_rules for update to app_admin
  using (true)
  with check (true);
create policy "administrators delete rules" on app.xp_rules for delete to app_admin
  using (true);
create policy "administrators read rules" on app.xp_rules for select to app_admin
  using (true);
create policy "dashboards read every row" on app.xp_rules for select to app_dashboard
  using (true);

create table app.xp_totals (
  app_user_id uuid not null,
  total bigint not null default 0,
  -- The highest level ever held: it is kept when the table of levels changes. The table of today may add to it.
  highest_level integer not null default 1,
  -- The highest level that was rewarded and told.
  announced_level integer not null default 1,
  created_at timestamp with time zone not null default internal.now(),
  updated_at timestamp with time zone not null default internal.now(),
  constraint xp_totals_pkey PRIMARY KEY (app_user_id),
  constraint xp_totals_app_user_id_fkey FOREIGN KEY (app_user_id) REFERENCES app.users(id) ON DELETE CASCADE
);
alter table app.xp_totals enable row level security;
create policy "administrators read every total" on app.xp_totals for select to app_admin
  using (true);
create policy "dashboards read every row" on app.xp_totals for select to app_dashboard
  using (true);
create policy "users read their own total" on app.xp_totals for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- The ledger of XP: amount is what took effect, requested what was to be given before clipped_by cut it.
create table app.xp_transactions (
  id uuid not null default internal.new_id(),
  app_user_id uuid not null,
  amount bigint not null,
  total_after bigint not null,
  source text not null,
  source_id text not null,
  rule_key text,
  reason text,
  requested bigint not null,
  clipped_by text,
  -- When it was earned, by the event's own time: what challenges sum.
  occurred_at timestamp with time zone not null,
  -- The time that caps and cooldowns go by.
  counted_at timestamp with time zone not null,
  created_at timestamp with time zone not null default internal.now(),
  constraint xp_transactions_pkey PRIMARY KEY (id),
  constraint xp_transactions_once_per_source UNIQUE NULLS NOT DISTINCT (app_user_id, source, source_id, rule_key)
);
CREATE INDEX xp_transactions_occurred ON app.xp_transactions USING brin (occurred_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX xp_transactions_of_user ON app.xp_transactions USING btree (app_user_id, id);
alter table app.xp_transactions enable row level security;
create policy "administrators read every ledger" on app.xp_transactions for select to app_admin
  using (true);
create policy "dashboards read every row" on app.xp_transactions for select to app_dashboard
  using (true);
create policy "users read their own ledger" on app.xp_transactions for select to app_user
  using ((app_user_id = ( SELECT internal.user_id() AS user_id)));

-- The registry of channels, filled beside the policies of each area: their own reasons to skip a user, how many
-- messages a second a project sends, how many of a campaign may wait for their outcome, for how long a worker holds
-- what it has claimed, and the task that sends. docs/campaigns.md has the functions that go with a row.
create table internal.campaign_channels (
  channel text not null,
  skip_reasons text[] not null,
  sends_per_second integer not null,
  most_waiting integer,
  lease interval,
  has_clicks boolean not null default false,
  is_estimated boolean not null default false,
  send_task text not null default 'campaigns__send'::text,
  declared_in text not null,
  constraint campaign_channels_pkey PRIMARY KEY (channel),
  constraint campaign_channels_channel_form CHECK ((channel ~ '^[a-z][a-z0-9_]{0,31}$'::text)),
  constraint campaign_channels_most_waiting_positive CHECK ((most_waiting > 0)),
  constraint campaign_channels_sends_per_second_positive CHECK ((sends_per_second > 0))
);
alter table internal.campaign_channels enable row level security;

-- The registry of what promotion copies and what is not one row of one table: collections with their columns, the table
-- of levels, prompts with their versions. An area declares its own in its policy file, beside the functions
-- internal.promotion_rows__<kind>() and internal.promotion_write__<kind>(op, key, wanted), and where they are wanted
-- internal.promotion_merged__<kind>(was, wanted), internal.promotion_refusal__<kind>(op, wanted, was) and
-- internal.promotion_lock__<kind>(keys).
create table internal.composed_definitions (
  kind text not null,
  promoted_as text not null,
  singular text not null,
  plural text not null,
  -- The fields of its copied form with the JSON types that each may have: {"columns": ["array"]}.
  fields jsonb not null,
  -- Fields that are set when it is created, and never changed.
  fixed_columns text[] not null default '{}'::text[],
  max_count integer,
  -- As in internal.definitions: lower numbers are created first.
  create_order integer not null,
  refs jsonb not null default '[]'::jsonb,
  -- Promotion never deletes it.
  is_additive boolean not null default false,
  -- Every change of it by promotion needs a confirmation.
  is_confirmed boolean not null default false,
  declared_in text not null,
  constraint composed_definitions_pkey PRIMARY KEY (kind),
  constraint composed_definitions_promoted_as_unique UNIQUE (promoted_as),
  constraint composed_definitions_fields_is_object CHECK ((jsonb_typeof(fields) = 'object'::text)),
  constraint composed_definitions_kind_form CHECK ((kind ~ '^[a-z][a-z_]*$'::text)),
  constraint composed_definitions_refs_is_list CHECK ((jsonb_typeof(refs) = 'array'::text))
);
alter table internal.composed_definitions enable row level security;
create policy "administrators read the registry of composed definitions" on internal.composed_definitions for select to app_admin
  using (true);

-- The registry of entities that developers define, such as rules and boards: one row beside the policies of each
-- entity. What is in none of fixed_columns and state_columns, and is not id, created_at or updated_at, can be
-- changed.
create table internal.definitions (
  kind text not null,
  table_name text not null,
  singular text not null,
  plural text not null,
  -- The name that developers give a row, by which its copy in another project is found; null where there is none.
  key_column text,
  found_by text not null default 'id or key'::text,
  not_found_code text not null default 'NOT_FOUND'::text,
  invalid_code text not null default 'VALIDATION_ERROR'::text,
  order_by text[] not null default '{created_at,id}'::text[],
  is_descending boolean not null default true,
  max_count integer,
  -- Configuration that is set when a row is created, and never changes.
  fixed_columns text[] not null default '{}'::text[],
  -- Columns that are no configuration: counters, caches, schedules. They are not copied, and the common JSON leaves them
  -- out.
  state_columns text[] not null default '{}'::text[],
  -- Kinds with a lower number are created first: a row may refer to rows of lower or equal numbers.
  create_order integer not null,
  -- References to other definitions, [{"path": "$.segment_id", "kind": "segment", "by": "id"}]: path is an SQL/JSON path
  -- into the JSON of a row, by is id or key.
  refs jsonb not null default '[]'::jsonb,
  declared_in text not null,
  -- The name of the kind in a document of promotion; null means the kind followed by s.
  promoted_as text,
  -- Why rows of this kind stay in their project; null for a kind that is copied.
  kept_back text,
  -- The references of a row in its copied form, where a hook internal.<kind>_promoted gives it another form than its
  -- JSON; null means refs.
  promoted_refs jsonb,
  constraint definitions_pkey PRIMARY KEY (kind),
  constraint definitions_table_name_unique UNIQUE (table_name),
  constraint definitions_found_by_known CHECK ((found_by = ANY (ARRAY['id'::text, 'key'::text, 'id or key'::text]))),
  constraint definitions_key_where_found_by_key CHECK (((found_by = 'id'::text) OR (key_column IS NOT NULL))),
  constraint definitions_kind_form CHECK ((kind ~ '^[a-z][a-z_]*$'::text)),
  constraint definitions_promoted_as_form CHECK ((promoted_as ~ '^[a-z][a-z_]*$'::text)),
  constraint definitions_promoted_refs_is_list CHECK ((jsonb_typeof(promoted_refs) = 'array'::text)),
  constraint definitions_refs_is_list CHECK ((jsonb_typeof(refs) = 'array'::text)),
  constraint definitions_table_name_form CHECK ((table_name ~ '^app\.[a-z][a-z_]*$'::text))
);
alter table internal.definitions enable row level security;
create policy "administrators read the registry of definitions" on internal.definitions for select to app_admin
  using (true);

-- The registry of system events that make feed entries: each area declares its own in its policy file. target_property
-- and group_property name the properties of the event that become target_id and group_id, shown those that become the
-- metadata of the entry.
create table internal.feed_events (
  action text not null,
  event_name text not null,
  target_property text,
  group_property text,
  shown text[] not null default '{}'::text[],
  declared_in text not null,
  constraint feed_events_pkey PRIMARY KEY (action),
  constraint feed_events_event_name_unique UNIQUE (event_name)
);
alter table internal.feed_events enable row level security;

-- The registry of texts that rules of moderation read: columns of a table, or a function (since timestamptz, most
-- bigint) that lists them; filled beside the policies of each area.
create table internal.moderated_texts (
  kind text not null,
  subject_type text not null,
  table_name text,
  text_columns text[],
  id_column text,
  user_column text,
  at_column text,
  texts_function text,
  declared_in text not null,
  constraint moderated_texts_pkey PRIMARY KEY (kind),
  constraint moderated_texts_one_source CHECK (((table_name IS NULL) = (texts_function IS NOT NULL)))
);
alter table internal.moderated_texts enable row level security;

-- The registry of what export, reset, merge and delete do with each table that names a user; filled beside each
-- table's policies.
create table internal.user_data (
  table_name text not null,
  user_column text not null,
  section text not null,
  export_columns text[],
  secret_columns text[] not null default '{}'::text[],
  reset_section text,
  on_merge text not null,
  on_delete text not null,
  exempt_reason text,
  declared_in text not null,
  -- Columns by which a bundle reads the user's rows, batch after batch; unique for each user. Null is the primary key.
  export_order text[],
  constraint user_data_pkey PRIMARY KEY (table_name, user_column)
);
alter table internal.user_data enable row level security;
create policy "workers read the registry of user data" on internal.user_data for select to app_worker
  using (true);

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
