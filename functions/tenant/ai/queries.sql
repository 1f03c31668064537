-- Invocations as administrators see them, what apps may invoke, and the evaluation of outputs.
create or replace function internal.ai_invocation_json(i app.ai_invocations) returns json
language sql stable as $$
  select json_build_object(
    'id', (ai_invocation_json.i).id, 'kind', (ai_invocation_json.i).kind, 'prompt', (ai_invocation_json.i).prompt,
      'version', (ai_invocation_json.i).version,
    'provider', (ai_invocation_json.i).provider, 'model', (ai_invocation_json.i).model,
    'user_id', (ai_invocation_json.i).app_user_id,
    'status', (ai_invocation_json.i).status, 'error_code', (ai_invocation_json.i).error_code,
    'input_tokens', (ai_invocation_json.i).input_tokens,
    'output_tokens', (ai_invocation_json.i).output_tokens, 'is_estimated', (ai_invocation_json.i).is_estimated,
    'cost_usd', internal.ai_number((ai_invocation_json.i).cost_usd),
    'finish_reason', (ai_invocation_json.i).finish_reason,
    'payload', (ai_invocation_json.i).payload, 'created_at', internal.iso((ai_invocation_json.i).created_at),
    'finished_at', internal.iso((ai_invocation_json.i).finished_at))
$$;
comment on function internal.ai_invocation_json is 'An invocation as administrators see it.';

select internal.list_declare('ai_invocations_page', null::app.ai_invocations, 'ai_invocation_json', '{created_at,id}',
                             filters => '{prompt,app_user_id,status}', by_cursor => true, bulk => 'payload');

create or replace function api.ai_invocations(prompt text default null, user_id uuid default null,
                                              status text default null, cursor text default null,
                                              page_limit int default 50, include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.ai_invocations_page(ai_invocations.prompt, ai_invocations.user_id, ai_invocations.status,
                                 ai_invocations.cursor, ai_invocations.page_limit),
    ai_invocations.include, 'user_id')
$$;
comment on function api.ai_invocations is
  'Invocations, newest first, by cursor, prompt, user and status; a page of large payloads ends early. Refuses 400
   INVALID_INPUT.';

create or replace function internal.ai_prompt_variables(system_prompt text) returns json
language sql stable as $$
  select coalesce(json_agg(v.name order by v.n), '[]')
    from (select m.groups[1] as name, min(m.n) as n
            from regexp_matches(coalesce(ai_prompt_variables.system_prompt, ''), internal.ai_placeholder_form(),
                                'g') with ordinality as m (groups, n)
           where m.groups[1] <> 'user' and m.groups[1] not like 'user.%'
           group by m.groups[1]) v
$$;
comment on function internal.ai_prompt_variables is
  'The paths of context that a system prompt reads, in its order. Those of the user are filled in by the server.';

create or replace function internal.ai_client_prompts() returns json
language sql stable security definer set search_path = '' as $$
  select coalesce(json_agg(json_build_object('name', p.name, 'description', p.description,
                                             'variables', internal.ai_prompt_variables(p.system_prompt),
                                             'cost', p.cost) order by p.name), '[]')
    from app.ai_prompts p
   where p.client_invokable
$$;
comment on function internal.ai_client_prompts is 'The prompts that apps may invoke, without their texts.';

create or replace function api.ai_client_prompts() returns api.reply
language sql stable as $$
  select internal.reply(200, internal.ai_client_prompts())
$$;
comment on function api.ai_client_prompts is
  'The prompts that apps may invoke: name, description, input variables and price.';

create or replace function api.ai_usage() returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
    'date', to_char(internal.now() at time zone 'UTC', 'YYYY-MM-DD'), 'calls', count(*),
      'input_tokens', coalesce(sum(i.input_tokens), 0),
    'output_tokens', coalesce(sum(i.output_tokens), 0)))
    from app.ai_invocations i
   where i.app_user_id = internal.user_id() and i.created_at >= date_trunc('day', internal.now(), 'UTC')
     and i.kind = 'invoke'
$$;
comment on function api.ai_usage is 'The caller''s own calls and tokens since midnight (UTC).';

create or replace function api.ai_evaluation_check(name text, expectations jsonb) returns api.reply
language plpgsql stable as $$
declare
  item record;
  problem record;
begin
  perform internal.ai_prompt_found(ai_evaluation_check.name);
  for item in select e.value as expect, e.n - 1 as place
    from jsonb_array_elements(ai_evaluation_check.expectations) with ordinality as e (value, n) loop
    begin
      perform '' ~ (item.expect ->> 'regex');
    exception when invalid_regular_expression then
      perform internal.invalid(format('cases.%s.expect.regex', item.place), 'must be a regular expression of Postgres');
    end;
    if item.expect ? 'json_schema' then
      problem := internal.schema_problem(item.expect -> 'json_schema');
      if problem.reason is not null then
        perform internal.invalid(concat_ws('.', format('cases.%s.expect.json_schema', item.place),
                                           nullif(problem.path, '')), problem.reason);
      end if;
    end if;
  end loop;
  return internal.reply(200, 'true');
end $$;
comment on function api.ai_evaluation_check is
  'Refuses 404 NOT_FOUND for an unknown prompt, 400 VALIDATION_ERROR for an expectation that cannot be evaluated.';

create or replace function api.ai_evaluated(expect jsonb, output text) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  object jsonb;
begin
  if ai_evaluated.expect ? 'contains' and position(ai_evaluated.expect ->> 'contains' in ai_evaluated.output) = 0
     or ai_evaluated.expect ? 'regex' and ai_evaluated.output !~ (ai_evaluated.expect ->> 'regex') then
    return internal.reply(200, json_build_object('passed', false));
  elsif ai_evaluated.expect ? 'json_schema' then
    begin
      object := regexp_replace(ai_evaluated.output, '^\s*```(?:json)?\s*|\s*```\s*$', '', 'g')::jsonb;
    exception when data_exception or program_limit_exceeded then
      return internal.reply(200, json_build_object('passed', false));
    end;
    return internal.reply(200, json_build_object('passed', internal.schema_accepts(ai_evaluated.expect -> 'json_schema',
                                        object)));
  end if;
  return internal.reply(200, json_build_object('passed', true));
end $$;
comment on function api.ai_evaluated is
  'Whether an output has what a case of an evaluation expects: contains, regex and json_schema, all that are there.
   Within the time limit of a statement: a regular expression may be slow.';

create or replace function api.ai_embedding_target(collection text, column_name text) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply(200, json_build_object(
    'is_configured', exists (select from app.ai_providers p where p.name = 'openai'),
    'dimensions', (select k.dimensions
                     from app.collections c
                     join app.collection_columns k on k.collection_id = c.id
                    where c.name = ai_embedding_target.collection and k.name = ai_embedding_target.column_name)))
$$;
comment on function api.ai_embedding_target is
  'For the server, which makes a vector of a text: whether there is a provider of embeddings, and the dimensions of a
   vector column, null where there is none.';
