alter table app.ai_providers enable row level security;
select internal.checks_declare('app.ai_providers', 'INVALID_INPUT');
alter table app.ai_prices enable row level security;
alter table app.ai_prompts enable row level security;
select internal.checks_declare('app.ai_prompts', 'INVALID_INPUT');
alter table app.ai_prompt_versions enable row level security;
alter table app.ai_prompt_days enable row level security;
alter table app.ai_invocations enable row level security;

create policy "administrators read providers" on app.ai_providers for select to app_admin using (true);
create policy "administrators register providers" on app.ai_providers for insert to app_admin with check (true);
create policy "administrators rotate keys" on app.ai_providers for update to app_admin using (true) with check (true);
create policy "administrators revoke providers" on app.ai_providers for delete to app_admin using (true);
create policy "the server reads sealed keys" on app.ai_providers for select to app_worker using (true);
create policy "administrators read prompts" on app.ai_prompts for select to app_admin using (true);
create policy "administrators set budgets" on app.ai_prompts for update to app_admin using (true) with check (true);
create policy "administrators delete prompts" on app.ai_prompts for delete to app_admin using (true);
create policy "administrators read versions" on app.ai_prompt_versions for select to app_admin using (true);
create policy "administrators read spend" on app.ai_prompt_days for select to app_admin using (true);
create policy "administrators read invocations" on app.ai_invocations for select to app_admin using (true);
create policy "users read their own invocations" on app.ai_invocations for select to app_user
  using (app_user_id = (select internal.user_id()));

grant select, insert, update, delete on app.ai_providers to app_admin;
grant select on app.ai_providers to app_worker;
grant select, delete, update (budget_usd, budget_period, updated_at) on app.ai_prompts to app_admin;
grant select on app.ai_prompt_versions, app.ai_prompt_days, app.ai_invocations to app_admin;
grant select (app_user_id, kind, input_tokens, output_tokens, created_at) on app.ai_invocations to app_user;

grant execute on function internal.ai_provider_json, internal.ai_config_json, internal.ai_prompt_json,
  internal.ai_prompt_written, internal.ai_prompt_found, internal.ai_prompt_write, internal.ai_prompts_page,
  internal.ai_version_json, internal.ai_versions_page, internal.ai_period_start, internal.ai_period_spend,
  internal.ai_number, internal.ai_budget_reply, internal.ai_invocation_json, internal.ai_invocations_page,
  api.ai_provider_put, api.ai_provider_list, api.ai_provider_delete, api.ai_prompt_put, api.ai_prompts,
  api.ai_prompt_get, api.ai_prompt_delete, api.ai_prompt_versions, api.ai_prompt_rollback, api.ai_budget_get,
  api.ai_budget_put, api.ai_spend, api.ai_invocations, api.ai_evaluation_check, api.ai_evaluated to app_admin;
grant execute on function internal.ai_client_prompts, api.ai_client_prompts, api.ai_usage to app_user;
grant execute on function internal.ai_provider_check, internal.purge__ai,
  api.ai_begin, api.ai_finish, api.ai_reserve, api.ai_release, api.ai_embedding_target
  to app_worker;

select internal.graphql_declare('app.ai_invocations', plain => '{input_tokens,output_tokens}');
select internal.graphql_declare('app.ai_prompt_days');
select internal.graphql_declare('app.ai_prompt_versions');
select internal.graphql_declare('app.ai_prompts', plain => '{max_tokens}');
select internal.graphql_declare('app.ai_providers', hidden => '{api_key_sealed,api_key_preview,key_id}');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.ai_invocations', 'app_user_id', 'ai_invocations',
   array['id', 'kind', 'prompt', 'version', 'provider', 'model', 'app_user_id', 'status', 'error_code', 'input_tokens',
         'output_tokens', 'finish_reason',
         'payload', 'created_at', 'finished_at'],
   array['prompt_id', 'input_usd', 'output_usd', 'reserved_usd', 'is_estimated', 'cost_usd', 'charge_id',
         'moderates_output',
         'is_streamed', 'expires_at'],
   null, 'move', 'cascade', current_setting('trellis.file'));

grant execute on function internal.promotion_rows__prompt, internal.promotion_refusal__prompt,
  internal.promotion_write__prompt, internal.promotion_lock__prompt to app_admin;
insert into internal.composed_definitions (kind, promoted_as, singular, plural, fields, max_count, create_order, refs,
                                           declared_in)
values
  ('prompt', 'prompts', 'prompt', 'prompts',
   '{"provider": ["string"], "model": ["string"], "system_prompt": ["string"], "max_tokens": ["number"], '
   '"rate_limit": ["object"], "client_invokable": ["boolean"],
     "description": ["string"], "log_payloads": ["boolean"], "cost": ["object"]}',
   500, 70, '[{"path": "$.cost.currency_code", "kind": "currency", "by": "key"}]', current_setting('trellis.file'));
