-- Providers of AI and the prices of their models.

select internal.audit_declare('app.ai_providers', 'ai_providers', 'api_key_sealed', 'api_key_preview');

create or replace function internal.ai_provider_json(p app.ai_providers) returns json
language sql stable as $$
  select json_build_object('name', (ai_provider_json.p).name, 'configured', true,
                           'api_key_preview', (ai_provider_json.p).api_key_preview)
$$;
comment on function internal.ai_provider_json is 'A provider as responses show it, without its key.';

create or replace function api.ai_provider_put(name text, api_key_sealed text, key_id text, api_key_preview text)
returns api.reply
language plpgsql volatile as $$
declare
  provider_id uuid;
  is_new boolean;
begin
  insert into app.ai_providers as p (name, api_key_sealed, key_id, api_key_preview)
  values (ai_provider_put.name, ai_provider_put.api_key_sealed, ai_provider_put.key_id, ai_provider_put.api_key_preview)
  on conflict on constraint ai_providers_name_unique do update
     set api_key_sealed = excluded.api_key_sealed, key_id = excluded.key_id, api_key_preview = excluded.api_key_preview,
       updated_at = internal.now()
  returning p.id, p.xmax = 0 into provider_id, is_new;
  return (select internal.reply(case when is_new then 201 else 200 end, internal.ai_provider_json(p))
            from app.ai_providers p where p.id = provider_id);
end $$;
comment on function api.ai_provider_put is
  'Registers a provider: 201, or 200 when it replaces the key. Refuses 400 INVALID_INPUT.';

create or replace function api.ai_provider_list() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(internal.ai_provider_json(p) order by p.name), '[]'))
    from app.ai_providers p
$$;
comment on function api.ai_provider_list is 'The registered providers, without their keys.';

create or replace function api.ai_provider_delete(name text) returns api.reply
language plpgsql volatile as $$
declare
  users constant text := 'Prompts use this provider: delete them, or register them again with another one.';
begin
  -- a prompt that is written at the same time holds a share lock on the provider: it is counted, or finds no provider
  perform from app.ai_providers p where p.name = ai_provider_delete.name for update;
  perform internal.check_found(found, 'provider');
  if exists (select from app.ai_prompts a where a.provider = ai_provider_delete.name) then
    perform internal.fail(409, 'PROVIDER_HAS_PROMPTS', users, json_build_object(
      'prompts', (select json_agg(a.name order by a.name)
                    from (select o.name from app.ai_prompts o where o.provider = ai_provider_delete.name order by o.name
                           limit 20) a)));
  end if;
  delete from app.ai_providers p where p.name = ai_provider_delete.name;
  return internal.reply_deleted();
end $$;
comment on function api.ai_provider_delete is
  'Forgets a provider and its key. Refuses 404 NOT_FOUND, 409 PROVIDER_HAS_PROMPTS with details {prompts}. Locks the
   provider.';

create or replace function internal.ai_provider_check(provider text, allows_echo boolean) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if ai_provider_check.provider = 'echo' and ai_provider_check.allows_echo then
    return;
  end if;
  perform from app.ai_providers p where p.name = ai_provider_check.provider for key share;
  if not found then
    perform internal.fail(409, 'PROVIDER_NOT_REGISTERED',
                          format('Register the provider %s first.', left(ai_provider_check.provider, 100)),
                          json_build_object('provider', left(ai_provider_check.provider, 100)));
  end if;
end $$;
comment on function internal.ai_provider_check is
  'Refuses 409 PROVIDER_NOT_REGISTERED. echo needs no registration, in projects of environment development. Locks the
   provider against its deletion.';

create or replace function internal.ai_price(provider text, model text, overrides jsonb, out input_usd numeric,
                                             out output_usd numeric, out is_multimodal boolean)
language plpgsql stable security definer set search_path = '' as $$
declare
  wanted constant text := lower(ai_price.model);
begin
  if ai_price.provider = 'echo' then
    input_usd := 0;
    output_usd := 0;
    return;
  end if;
  select k.input_usd, k.output_usd, k.is_multimodal into input_usd, output_usd, is_multimodal
    from (select lower(o.key) as name, (o.value ->> 'input_usd')::numeric as input_usd,
          (o.value ->> 'output_usd')::numeric as output_usd,
                 (o.value ->> 'is_multimodal')::boolean as is_multimodal, true as is_override
            from jsonb_each(coalesce(ai_price.overrides -> ai_price.provider, '{}')) o
          union all
          select p.model, p.input_usd, p.output_usd, p.is_multimodal, false from app.ai_prices p
           where p.provider = ai_price.provider) k
   where wanted = k.name or (starts_with(wanted, k.name) and substr(wanted, length(k.name) + 1, 1) in ('-', '@', ':'))
   order by length(k.name) desc, k.is_override desc
   limit 1;
  if not found then
    -- an unknown model is taken for the most expensive one, so that a budget is never exceeded for want of a price
    select max(p.input_usd), max(p.output_usd) into input_usd, output_usd from app.ai_prices p
     where p.provider = ai_price.provider;
  end if;
end $$;
comment on function internal.ai_price is
  'The price of a model in USD per million tokens: that of the longest name it equals or begins with, among overrides,
   {provider: {model: {input_usd, output_usd, is_multimodal}}}, and app.ai_prices. An unknown model has the highest
   prices of its provider, and is_multimodal null.';
