-- Prompts, their versions and budgets.
comment on constraint ai_prompts_max_tokens_1_to_200000 on app.ai_prompts is
  '400 INVALID_INPUT max_tokens: must be a whole number of 1 to 200000.';
comment on constraint ai_prompts_model_names_one on app.ai_prompts is
  '400 INVALID_INPUT model: must name a model, in at most 200 characters.';
comment on constraint ai_prompts_rate_limit_has_bounds on app.ai_prompts is
  '400 INVALID_INPUT rate_limit: must be {window 1 to 86400, max 1 to 1000000, key user, ip or project}.';
comment on constraint ai_prompts_cost_has_amount on app.ai_prompts is
  '400 INVALID_INPUT cost: must be {currency_code, amount 1 to 2000000000}.';
comment on constraint ai_prompts_budget_usd_not_negative on app.ai_prompts is
  '400 INVALID_INPUT budget_usd: must be a number from 0.';

select internal.audit_declare('app.ai_prompts', 'ai_prompts');

create or replace function internal.ai_config_json(p app.ai_prompts) returns jsonb
language sql stable as $$
  select jsonb_build_object(
    'provider', (ai_config_json.p).provider, 'model', (ai_config_json.p).model,
      'system_prompt', (ai_config_json.p).system_prompt,
    'max_tokens', (ai_config_json.p).max_tokens, 'rate_limit', (ai_config_json.p).rate_limit,
    'client_invokable', (ai_config_json.p).client_invokable,
    'description', (ai_config_json.p).description, 'log_payloads', (ai_config_json.p).log_payloads,
    'cost', (ai_config_json.p).cost)
$$;
comment on function internal.ai_config_json is 'What a version of a prompt fixes.';

select internal.row_declare('ai_prompt_json', null::app.ai_prompts,
                            '{name,version,provider,model,system_prompt,max_tokens,rate_limit,client_invokable,
                             description,log_payloads,cost,created_at,updated_at}');
comment on function internal.ai_prompt_json is 'The full configuration of a prompt.';

create or replace function internal.ai_prompt_written(p app.ai_prompts) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
    'name', (ai_prompt_written.p).name, 'version', (ai_prompt_written.p).version,
      'provider', (ai_prompt_written.p).provider,
    'model', (ai_prompt_written.p).model, 'client_invokable', (ai_prompt_written.p).client_invokable))
$$;
comment on function internal.ai_prompt_written is 'The response to a prompt that was written.';

create or replace function internal.ai_prompt_found(name text) returns app.ai_prompts
language plpgsql stable as $$
declare
  found_one app.ai_prompts;
begin
  select p.* into found_one from app.ai_prompts p where p.name = ai_prompt_found.name;
  perform internal.check_found(found, 'prompt');
  return found_one;
end $$;
comment on function internal.ai_prompt_found is 'A prompt. Refuses 404 NOT_FOUND.';

create or replace function internal.ai_placeholder_form() returns text
language sql immutable parallel safe
return '\{\{\s*([A-Za-z_][A-Za-z0-9_.-]{0,199})\s*(?:\|([^{}]{0,250}))?\}\}';
comment on function internal.ai_placeholder_form is 'The regular expression of {{path|fallback}} in a system prompt.';

create or replace function internal.ai_prompt_write(name text, config jsonb, allows_echo boolean) returns app.ai_prompts
language plpgsql volatile security definer set search_path = '' as $$
declare
  sent app.ai_prompts := jsonb_populate_record(null::app.ai_prompts, ai_prompt_write.config);
  written app.ai_prompts;
begin
  perform internal.check_caller('developer', 'prompts are written by administrators');
  perform internal.ai_provider_check(sent.provider, ai_prompt_write.allows_echo);
  if (select count(*) from regexp_matches(coalesce(sent.system_prompt, ''), internal.ai_placeholder_form(),
                                          'g')) > 100 then
    perform internal.invalid('system_prompt', 'must have at most 100 placeholders', 'INVALID_INPUT');
  end if;
  if jsonb_typeof(sent.cost) = 'object'
     and not exists (select from app.currencies c where c.code = sent.cost ->> 'currency_code' and c.is_active) then
    perform internal.invalid('cost.currency_code', 'is not a currency of this project', 'INVALID_INPUT');
  end if;
  perform internal.advisory_lock('ai prompts');
  if not exists (select from app.ai_prompts p where p.name = ai_prompt_write.name) then
    perform internal.check_limit((select count(*) from app.ai_prompts), 500, 'A project has at most 500 prompts.');
  end if;
  insert into app.ai_prompts as p (name, provider, model, system_prompt, max_tokens, rate_limit, client_invokable,
                                   description, log_payloads, cost)
  values (ai_prompt_write.name, sent.provider, sent.model, sent.system_prompt, coalesce(sent.max_tokens, 4096),
          nullif(sent.rate_limit, 'null'),
          coalesce(sent.client_invokable, false), sent.description, coalesce(sent.log_payloads, false),
          nullif(sent.cost, 'null'))
  on conflict on constraint ai_prompts_name_unique do update
     set version = p.version + 1, provider = excluded.provider, model = excluded.model,
       system_prompt = excluded.system_prompt,
         max_tokens = excluded.max_tokens, rate_limit = excluded.rate_limit,
         client_invokable = excluded.client_invokable,
         description = excluded.description, log_payloads = excluded.log_payloads, cost = excluded.cost,
         updated_at = internal.now()
  returning p.* into written;
  insert into app.ai_prompt_versions (prompt_id, version, config)
    values (written.id, written.version, internal.ai_config_json(written));
  delete from app.ai_prompt_versions v where v.prompt_id = written.id and v.version <= written.version - 1000;
  return written;
end $$;
comment on function internal.ai_prompt_write is
  'Adds a prompt, or a version of it, which replaces the whole configuration and keeps the budget. Refuses 409
   PROVIDER_NOT_REGISTERED, LIMIT_REACHED (500 prompts), 400 INVALID_INPUT. Takes the lock "ai prompts".';

create or replace function api.ai_prompt_put(patch jsonb, allows_echo boolean) returns api.reply
language sql volatile as $$
  select internal.ai_prompt_written(internal.ai_prompt_write(ai_prompt_put.patch ->> 'name', ai_prompt_put.patch,
                                                             ai_prompt_put.allows_echo))
$$;
comment on function api.ai_prompt_put is
  'Registers a prompt by its name; a second registration makes the next version. Refuses 409 PROVIDER_NOT_REGISTERED,
   LIMIT_REACHED, 400 INVALID_INPUT.';

select internal.list_declare('ai_prompts_page', null::app.ai_prompts, 'ai_prompt_json', '{name}', direction => 'asc');

create or replace function api.ai_prompts(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.ai_prompts_page(ai_prompts.page_offset, ai_prompts.page_limit)
$$;
comment on function api.ai_prompts is 'Prompts with their full configuration, by name.';

create or replace function api.ai_prompt_get(name text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.ai_prompt_json(internal.ai_prompt_found(ai_prompt_get.name)))
$$;
comment on function api.ai_prompt_get is 'A prompt with its full configuration. Refuses 404 NOT_FOUND.';

create or replace function api.ai_prompt_delete(name text) returns api.reply
language plpgsql volatile as $$
begin
  delete from app.ai_prompts p where p.name = ai_prompt_delete.name;
  perform internal.check_found(found, 'prompt');
  return internal.reply(200, json_build_object('name', ai_prompt_delete.name));
end $$;
comment on function api.ai_prompt_delete is
  'Deletes a prompt with its versions, budget and spend. Refuses 404 NOT_FOUND.';

create or replace function internal.ai_version_json(v app.ai_prompt_versions) returns json
language sql stable as $$
  select internal.json_merge(json_build_object('version', (ai_version_json.v).version), internal.json_merge(
    (ai_version_json.v).config::json, json_build_object('created_at', internal.iso((ai_version_json.v).created_at))))
$$;
comment on function internal.ai_version_json is 'A version of a prompt as responses show it.';

select internal.list_declare('ai_versions_page', null::app.ai_prompt_versions, 'ai_version_json', '{version}',
                             required => '{prompt_id}');

create or replace function api.ai_prompt_versions(name text, page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.ai_versions_page((internal.ai_prompt_found(ai_prompt_versions.name)).id,
                                   ai_prompt_versions.page_offset, ai_prompt_versions.page_limit)
$$;
comment on function api.ai_prompt_versions is 'Versions of a prompt, newest first. Refuses 404 NOT_FOUND.';

create or replace function api.ai_prompt_rollback(name text, version int, allows_echo boolean) returns api.reply
language plpgsql volatile as $$
declare
  former jsonb;
begin
  select v.config into former
    from app.ai_prompt_versions v
   where v.prompt_id = (internal.ai_prompt_found(ai_prompt_rollback.name)).id
     and v.version = ai_prompt_rollback.version;
  perform internal.check_found(found, 'version');
  return internal.ai_prompt_written(internal.ai_prompt_write(ai_prompt_rollback.name, former,
                                                             ai_prompt_rollback.allows_echo));
end $$;
comment on function api.ai_prompt_rollback is
  'Makes a new version with the configuration of a former one. Refuses 404 NOT_FOUND, 409 PROVIDER_NOT_REGISTERED, 400
   VALIDATION_ERROR.';

create or replace function internal.ai_period_start(period text, made_at timestamptz) returns timestamptz
language sql stable
return case ai_period_start.period
  when 'daily' then date_trunc('day', internal.now(), 'UTC')
  when 'monthly' then date_trunc('month', internal.now(), 'UTC')
  else ai_period_start.made_at end;
comment on function internal.ai_period_start is
  'The beginning of the current day or month (UTC); of the period total, when the prompt was made.';

create or replace function internal.ai_period_spend(prompt_id uuid, period text) returns numeric
language sql stable as $$
  select coalesce(sum(d.spend_usd), 0)
    from app.ai_prompt_days d
   where d.prompt_id = ai_period_spend.prompt_id
     and d.day >= case ai_period_spend.period when 'total' then '-infinity'
                    else (internal.ai_period_start(ai_period_spend.period, null) at time zone 'UTC')::date end
$$;
comment on function internal.ai_period_spend is
  'What a prompt has cost in the current day or month, or in all, in USD.';

create or replace function internal.ai_number(value numeric) returns numeric
language sql immutable parallel safe
return trim_scale(round(ai_number.value, 10));
comment on function internal.ai_number is 'An amount in USD as responses show it.';

create or replace function internal.ai_budget_reply(p app.ai_prompts) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
    'budget_usd', internal.ai_number((ai_budget_reply.p).budget_usd),
      'budget_period', (ai_budget_reply.p).budget_period,
    'period_spend_usd', internal.ai_number(s.spend),
    'remaining_usd', internal.ai_number(case when (ai_budget_reply.p).budget_usd is not null
                                               then greatest((ai_budget_reply.p).budget_usd - s.spend, 0) end),
    'exceeded', coalesce(s.spend >= (ai_budget_reply.p).budget_usd, false)))
    from internal.ai_period_spend((ai_budget_reply.p).id, (ai_budget_reply.p).budget_period) as s (spend)
$$;
comment on function internal.ai_budget_reply is
  'The budget of a prompt with what is left of it; remaining_usd is null without a budget.';

create or replace function api.ai_budget_get(name text) returns api.reply
language sql stable as $$
  select internal.ai_budget_reply(internal.ai_prompt_found(ai_budget_get.name))
$$;
comment on function api.ai_budget_get is 'The budget of a prompt. Refuses 404 NOT_FOUND.';

create or replace function api.ai_budget_put(name text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  written app.ai_prompts;
begin
  update app.ai_prompts p
     set budget_usd = case when ai_budget_put.patch ? 'budget_usd' then (ai_budget_put.patch ->> 'budget_usd')::numeric
                           else p.budget_usd end,
         budget_period = coalesce(ai_budget_put.patch ->> 'budget_period', p.budget_period), updated_at = internal.now()
   where p.name = ai_budget_put.name
  returning p.* into written;
  perform internal.check_found(found, 'prompt');
  return internal.ai_budget_reply(written);
end $$;
comment on function api.ai_budget_put is 'Sets the budget of a prompt, or clears it with null. Refuses 404 NOT_FOUND.';

create or replace function api.ai_spend(name text, period text default null) returns api.reply
language plpgsql stable as $$
declare
  p constant app.ai_prompts := internal.ai_prompt_found(ai_spend.name);
  asked constant text := coalesce(ai_spend.period, p.budget_period);
  spend constant numeric := internal.ai_period_spend(p.id, asked);
begin
  return internal.reply(200, json_build_object(
    'name', p.name, 'period', asked, 'period_start', internal.iso(internal.ai_period_start(asked, p.created_at)),
    'spend_usd', internal.ai_number(spend), 'budget_usd', internal.ai_number(p.budget_usd),
    'exceeded', coalesce(internal.ai_period_spend(p.id, p.budget_period) >= p.budget_usd, false)));
end $$;
comment on function api.ai_spend is
  'What a prompt has cost in the current day or month (UTC), or in all; by default in the period of its budget. exceeded
   is about the budget in its own period. Refuses 404 NOT_FOUND.';
