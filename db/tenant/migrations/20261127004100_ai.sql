-- migrate:up
create table app.ai_providers (
  id              uuid primary key default internal.new_id(),
  name            text not null constraint ai_providers_name_known
    check (name in ('anthropic', 'openai', 'google', 'mistral')),
  api_key_sealed  text not null,
  key_id          text not null,
  api_key_preview text not null,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint ai_providers_name_unique unique (name)
);
comment on table app.ai_providers is
  'Registered AI providers. api_key_sealed is the API key, encrypted by the server under the key that key_id names; it
   is never returned.';

create table app.ai_prices (
  provider      text not null,
  model         text not null,
  input_usd     numeric not null constraint ai_prices_input_usd_not_negative check (input_usd >= 0),
  output_usd    numeric not null constraint ai_prices_output_usd_not_negative check (output_usd >= 0),
  is_multimodal boolean not null,
  as_of         date not null,
  primary key (provider, model)
);
comment on table app.ai_prices is
  'List prices of models in USD per million tokens, as the providers published them on as_of. Filled by
   sql/seeds/tenant/ai_prices.sql.';

create table app.ai_prompts (
  id               uuid primary key default internal.new_id(),
  name             text not null constraint ai_prompts_name_form check (name ~ '^[a-z][a-z0-9_-]{0,127}$'),
  version          int not null default 1,
  provider         text not null,
  model            text not null,
  system_prompt    text,
  max_tokens       int not null default 4096 constraint ai_prompts_max_tokens_1_to_200000
    check (max_tokens between 1 and 200000),
  rate_limit       jsonb,
  client_invokable boolean not null default false,
  description      text,
  log_payloads     boolean not null default false,
  cost             jsonb,
  budget_usd       numeric constraint ai_prompts_budget_usd_not_negative check (budget_usd >= 0),
  budget_period    text not null default 'monthly'
                   constraint ai_prompts_budget_period_known check (budget_period in ('daily', 'monthly', 'total')),
  created_at       timestamptz not null default internal.now(),
  updated_at       timestamptz not null default internal.now(),
  constraint ai_prompts_name_unique unique (name),
  constraint ai_prompts_model_names_one check (char_length(model) <= 200
                                               and regexp_replace(model, '^models/', '') ~ '[^/.]'),
  constraint ai_prompts_system_prompt_at_most_100000 check (char_length(system_prompt) <= 100000),
  constraint ai_prompts_description_at_most_2000 check (char_length(description) <= 2000),
  constraint ai_prompts_rate_limit_has_bounds check (
    rate_limit is null
    or rate_limit - '{window,max,key}'::text[] = '{}'
    and coalesce(rate_limit ->> 'window' ~ '^[0-9]{1,5}$' and (rate_limit ->> 'window')::int between 1 and 86400, false)
    and coalesce(rate_limit ->> 'max' ~ '^[0-9]{1,7}$' and (rate_limit ->> 'max')::int between 1 and 1000000, false)
    and coalesce(rate_limit ->> 'key' in ('user', 'ip', 'project'), false)),
  constraint ai_prompts_cost_has_amount check (
    cost is null
    or cost - '{currency_code,amount}'::text[] = '{}'
    and coalesce(char_length(cost ->> 'currency_code') between 1 and 128, false)
    and coalesce(cost ->> 'amount' ~ '^[0-9]{1,10}$' and (cost ->> 'amount')::bigint between 1 and 2000000000, false))
);
comment on table app.ai_prompts is 'Prompts of the project with their budgets. At most 500.';
-- serves the question whether a provider has prompts
create index ai_prompts_of_provider on app.ai_prompts (provider);

create table app.ai_prompt_versions (
  prompt_id  uuid not null references app.ai_prompts on delete cascade,
  version    int not null,
  config     jsonb not null,
  created_at timestamptz not null default internal.now(),
  primary key (prompt_id, version)
);
comment on table app.ai_prompt_versions is 'The configuration of each version of a prompt: the newest 1000.';

create table app.ai_prompt_days (
  prompt_id uuid not null references app.ai_prompts on delete cascade,
  day       date not null,
  spend_usd numeric not null default 0,
  calls     bigint not null default 0,
  primary key (prompt_id, day)
);
comment on table app.ai_prompt_days is 'What a prompt has cost on a day (UTC), and how many calls that were.';

create table app.ai_invocations (
  id               uuid primary key default internal.new_id(),
  kind             text not null constraint ai_invocations_kind_known
    check (kind in ('invoke', 'evaluate', 'messages', 'embeddings')),
  prompt_id        uuid,
  prompt           text,
  version          int,
  provider         text not null,
  model            text not null,
  app_user_id      uuid references app.users on delete cascade,
  status           text not null default 'running'
                   constraint ai_invocations_status_known
                     check (status in ('running', 'succeeded', 'rejected', 'failed', 'cancelled')),
  error_code       text,
  input_usd        numeric not null,
  output_usd       numeric not null,
  reserved_usd     numeric not null default 0,
  input_tokens     bigint,
  output_tokens    bigint,
  is_estimated     boolean not null default false,
  cost_usd         numeric,
  finish_reason    text,
  charge_id        uuid,
  moderates_output boolean not null default false,
  payload          jsonb,
  created_at       timestamptz not null default internal.now(),
  -- when a running invocation counts as abandoned, and its reservation as released
  expires_at       timestamptz not null,
  finished_at      timestamptz,
  is_streamed      boolean not null default false
);
comment on table app.ai_invocations is
  'Calls of providers. A running invocation holds reserved_usd of the budget of its prompt until it is finished or
   expires_at has passed. Kept for 90 days.';
comment on column app.ai_invocations.is_streamed is
  'Whether the answer is passed on piece by piece, so that its user may have it before its end is recorded.';
-- serve the list, newest first, by its filters; the usage of a user; the foreign key
create index ai_invocations_newest on app.ai_invocations (created_at desc, id desc);
create index ai_invocations_of_prompt on app.ai_invocations (prompt, created_at desc, id desc);
create index ai_invocations_of_user on app.ai_invocations (app_user_id, created_at desc, id desc);
create index ai_invocations_by_status on app.ai_invocations (status, created_at desc, id desc);
-- serves the sum of the reservations of a prompt
create index ai_invocations_running on app.ai_invocations (prompt_id) where status = 'running';

-- migrate:down
drop table app.ai_invocations;
drop table app.ai_prompt_days;
drop table app.ai_prompt_versions;
drop table app.ai_prompts;
drop table app.ai_prices;
drop table app.ai_providers;
