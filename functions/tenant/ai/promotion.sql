-- Prompts, as promotion copies them: the current configuration, which becomes the next version. Budgets and spend stay
-- in their project.
create or replace function internal.promotion_rows__prompt() returns table (key text, configuration jsonb)
language sql stable as $$
  select p.name, internal.ai_config_json(p) from app.ai_prompts p
$$;
comment on function internal.promotion_rows__prompt is 'Prompts as they are copied: what their current versions fix.';

create or replace function internal.promotion_refusal__prompt(op text, wanted jsonb, was jsonb) returns text[]
language sql stable as $$
  select array['PROVIDER_NOT_REGISTERED', format('The target has no key for the provider %s.', left(w.provider, 100))]
    from (select coalesce(promotion_refusal__prompt.wanted ->> 'provider',
                          promotion_refusal__prompt.was ->> 'provider') as provider) w
   where w.provider <> 'echo' and not exists (select from app.ai_providers a where a.name = w.provider)
$$;
comment on function internal.promotion_refusal__prompt is
  'Blocks a prompt whose provider has no key here: keys are not copied.';

create or replace function internal.promotion_write__prompt(op text, key text, wanted jsonb) returns void
language plpgsql volatile as $$
begin
  if promotion_write__prompt.op = 'delete' then
    perform api.ai_prompt_delete(promotion_write__prompt.key);
  else
    -- whether echo answers is asked when it is called
    perform internal.ai_prompt_write(promotion_write__prompt.key, promotion_write__prompt.wanted, true);
  end if;
end $$;
comment on function internal.promotion_write__prompt is
  'Adds a prompt, or a version of it; or deletes it. Refuses 409 PROVIDER_NOT_REGISTERED, LIMIT_REACHED, 400
   INVALID_INPUT. Takes the lock "ai prompts".';

create or replace function internal.promotion_lock__prompt(keys text[]) returns void
language sql volatile as $$
  select internal.advisory_lock('ai prompts');
  select from app.ai_prompts p where p.name = any (promotion_lock__prompt.keys) order by p.id for no key update
$$;
comment on function internal.promotion_lock__prompt is 'Takes the lock "ai prompts", and locks the prompts.';
