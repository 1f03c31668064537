-- migrate:up
create table internal.composed_definitions (
  kind         text primary key constraint composed_definitions_kind_form check (kind ~ '^[a-z][a-z_]*$'),
  promoted_as  text not null constraint composed_definitions_promoted_as_unique unique,
  singular     text not null,
  plural       text not null,
  fields       jsonb not null constraint composed_definitions_fields_is_object check (jsonb_typeof(fields) = 'object'),
  fixed_columns text[] not null default '{}',
  max_count    int,
  create_order int not null,
  refs         jsonb not null default '[]' constraint composed_definitions_refs_is_list check (jsonb_typeof(refs) = 'array'),
  is_additive  boolean not null default false,
  is_confirmed boolean not null default false,
  declared_in  text not null
);
comment on table internal.composed_definitions is
  'The registry of what promotion copies and what is not one row of one table: collections with their columns, the table of levels, prompts with their versions.
   An area declares its own in its policy file, beside the functions internal.promotion_rows__<kind>() and internal.promotion_write__<kind>(op, key, wanted), and
   where they are wanted internal.promotion_merged__<kind>(was, wanted), internal.promotion_refusal__<kind>(op, wanted, was) and internal.promotion_lock__<kind>(keys).';
comment on column internal.composed_definitions.fields is 'The fields of its copied form with the JSON types that each may have: {"columns": ["array"]}.';
comment on column internal.composed_definitions.fixed_columns is 'Fields that are set when it is created, and never changed.';
comment on column internal.composed_definitions.create_order is 'As in internal.definitions: lower numbers are created first.';
comment on column internal.composed_definitions.is_additive is 'Promotion never deletes it.';
comment on column internal.composed_definitions.is_confirmed is 'Every change of it by promotion needs a confirmation.';

-- bounds that requests had alone: a document of promotion passes them by
alter table app.xp_levels
  add constraint xp_levels_name_1_to_200 check (char_length(name) between 1 and 200),
  add constraint xp_levels_icon_url_at_most_2000 check (char_length(icon_url) <= 2000),
  add constraint xp_levels_reward_is_object check (jsonb_typeof(reward) = 'object');
alter table app.ai_prompts
  add constraint ai_prompts_model_names_one check (char_length(model) <= 200 and regexp_replace(model, '^models/', '') ~ '[^/.]'),
  add constraint ai_prompts_system_prompt_at_most_100000 check (char_length(system_prompt) <= 100000),
  add constraint ai_prompts_description_at_most_2000 check (char_length(description) <= 2000),
  add constraint ai_prompts_rate_limit_has_bounds check (
    rate_limit is null
    or rate_limit - '{window,max,key}'::text[] = '{}'
       and coalesce(rate_limit ->> 'window' ~ '^[0-9]{1,5}$' and (rate_limit ->> 'window')::int between 1 and 86400, false)
       and coalesce(rate_limit ->> 'max' ~ '^[0-9]{1,7}$' and (rate_limit ->> 'max')::int between 1 and 1000000, false)
       and coalesce(rate_limit ->> 'key' in ('user', 'ip', 'project'), false)),
  add constraint ai_prompts_cost_has_amount check (
    cost is null
    or cost - '{currency_code,amount}'::text[] = '{}'
       and coalesce(char_length(cost ->> 'currency_code') between 1 and 128, false)
       and coalesce(cost ->> 'amount' ~ '^[0-9]{1,10}$' and (cost ->> 'amount')::bigint between 1 and 2000000000, false));

-- migrate:down
alter table app.ai_prompts
  drop constraint ai_prompts_model_names_one, drop constraint ai_prompts_system_prompt_at_most_100000, drop constraint ai_prompts_description_at_most_2000,
  drop constraint ai_prompts_rate_limit_has_bounds, drop constraint ai_prompts_cost_has_amount;
alter table app.xp_levels
  drop constraint xp_levels_name_1_to_200, drop constraint xp_levels_icon_url_at_most_2000, drop constraint xp_levels_reward_is_object;
drop table internal.composed_definitions;
