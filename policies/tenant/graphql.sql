-- What GraphQL shows of a project's database: the role app_dashboard reads every row of the tables below, without the columns that are hidden. Tables
-- that are not named stay closed to it. Generated tables of collections get theirs from internal.collection_policies_sql.
-- applied again after every migration
do $$
declare
  -- tables that administrators read, without machinery, seals of the audit trail, device tokens, and webhooks as they came in
  shown constant text[] := '{
    achievements, ai_invocations, ai_prompt_days, ai_prompt_versions, ai_prompts, ai_providers, app_sessions, audit_events, blocks, bundle_contents,
    catalog_item_prices, catalog_items, challenge_participants, challenges, collection_columns, collection_indexes, collections, config_keys,
    conversation_participants, conversations, currencies, currency_balances, currency_checks, currency_lots, currency_transactions, email_messages,
    email_suppressions, email_templates, engagement_events, entitlement_grants, event_definitions, feed_entries, flag_counts, flag_overrides,
    flag_users, flag_values, flag_versions, flags, friendships, group_members, groups, integrations, inventory_ledger_rows, inventory_stacks,
    leaderboard_entries, leaderboard_runs, leaderboards, media_assets, media_catalogs, media_folders, media_jobs, message_reactions, messages,
    moderation_items, moderation_rules, moderation_trust_levels, monetization_definitions, onboarding_flows, onboarding_progress, push_automations,
    push_campaigns, push_counts, push_deliveries, push_templates, referral_claims, referral_codes, reward_grants, role_assignments, roles,
    segment_counts, segment_members, segments, streak_definitions, streak_freezes, streak_milestones, streak_pauses, streak_periods,
    streak_timezones, subscription_events, subscriptions, user_achievements, user_event_counters, user_identities, user_streaks, users,
    webhook_attempts, webhook_deliveries, webhooks, xp_boosts, xp_levels, xp_rules, xp_totals, xp_transactions}';
  -- secrets, what leads to one, and what only the machinery reads
  hidden constant text[] := '{
    ai_providers.api_key_sealed, ai_providers.api_key_preview, ai_providers.key_id, audit_events.hash, conversations.direct_key,
    email_messages.delivery_id, email_messages.headers, engagement_events.transaction_id, friendships.metadata_a, friendships.metadata_b,
    integrations.config_sealed, integrations.key_id,
    integrations.webhook_path, leaderboard_runs.cursor_at, leaderboard_runs.cursor_id, leaderboard_runs.cursor_place, leaderboard_runs.fence,
    leaderboard_runs.operation_id, leaderboard_runs.shadow_id, media_assets.object_version, media_assets.thumbnail_of, media_assets.upload_version,
    subscription_events.payload, webhook_attempts.response_excerpt, webhook_deliveries.secret_id, webhooks.secret_id, webhooks.target_url}';
  -- named like secrets, and none: counts of words of a language model
  plain constant text[] := '{ai_invocations.input_tokens, ai_invocations.output_tokens, ai_prompts.max_tokens}';
  suspect constant text := 'secret|password|token|hash|seal|digest|credential|private|signature|nonce|salt|verifier';
  problem text;
  statement text;
begin
  select string_agg(p.problem, '; ') into problem
    from (
      select format('there is no table app.%s', s.name) as problem from unnest(shown) s (name) where to_regclass(format('app.%I', s.name)) is null
      union all
      select format('there is no column app.%s of a table that is shown', c.name)
        from unnest(hidden || plain) c (name)
       where split_part(c.name, '.', 1) <> all (shown)
          or not exists (select from pg_catalog.pg_attribute a
                          where a.attrelid = to_regclass(format('app.%I', split_part(c.name, '.', 1))) and a.attname = split_part(c.name, '.', 2)
                            and not a.attisdropped)
      union all
      select format('app.%s.%s looks like a secret: it belongs into "hidden", or into "plain"', s.name, a.attname)
        from unnest(shown) s (name)
        join pg_catalog.pg_attribute a on a.attrelid = to_regclass(format('app.%I', s.name)) and a.attnum > 0 and not a.attisdropped
       where (a.attname ~ suspect or a.atttypid = 'bytea'::regtype) and s.name || '.' || a.attname <> all (hidden || plain)) p;
  if problem is not null then
    raise exception 'policies/tenant/graphql.sql: %', problem;
  end if;
  for statement in
    select format('create policy "dashboards read every row" on app.%I for select to app_dashboard using (true)', s.name)
      from unnest(shown) s (name)
    union all
    -- by column only where one is hidden, so that a grant is one row of the catalog
    select format('grant select%s on app.%I to app_dashboard',
                  case when bool_or(c.is_hidden) then ' (' || string_agg(quote_ident(c.name), ', ' order by c.n) filter (where not c.is_hidden) || ')' end,
                  c.of_table)
      from (select s.name as of_table, a.attname::text as name, a.attnum as n, s.name || '.' || a.attname = any (hidden) as is_hidden
              from unnest(shown) s (name)
              join pg_catalog.pg_attribute a on a.attrelid = to_regclass(format('app.%I', s.name)) and a.attnum > 0 and not a.attisdropped) c
     group by c.of_table
  loop
    execute statement;
  end loop;
end $$;

-- names are the server's: it makes them with the rules of the generator
alter table app.graphql_names enable row level security;
grant execute on function internal.graphql_tables to app_dashboard, app_worker;
grant execute on function internal.graphql_name to app_admin;
grant execute on function api.graphql_tables, api.graphql_names_keep to app_worker;
