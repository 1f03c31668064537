alter table app.xp_rules enable row level security;
select internal.checks_declare('app.xp_rules');
alter table app.xp_boosts enable row level security;
select internal.checks_declare('app.xp_boosts');
alter table app.xp_levels enable row level security;
select internal.checks_declare('app.xp_levels', but => '{level}');
alter table app.xp_totals enable row level security;
alter table app.xp_transactions enable row level security;
alter table app.xp_rule_days enable row level security;

create policy "administrators read rules" on app.xp_rules for select to app_admin using (true);
create policy "administrators add rules" on app.xp_rules for insert to app_admin with check (true);
create policy "administrators change rules" on app.xp_rules for update to app_admin using (true) with check (true);
create policy "administrators delete rules" on app.xp_rules for delete to app_admin using (true);
create policy "administrators read boosts" on app.xp_boosts for select to app_admin using (true);
create policy "administrators add boosts" on app.xp_boosts for insert to app_admin with check (true);
create policy "administrators change boosts" on app.xp_boosts for update to app_admin using (true) with check (true);
create policy "administrators delete boosts" on app.xp_boosts for delete to app_admin using (true);
create policy "everybody reads levels" on app.xp_levels for select to app_user, app_admin using (true);

create policy "users read their own total" on app.xp_totals for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every total" on app.xp_totals for select to app_admin using (true);
create policy "users read their own ledger" on app.xp_transactions for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every ledger" on app.xp_transactions for select to app_admin using (true);

grant select on app.xp_levels, app.xp_totals, app.xp_transactions to app_user, app_admin;

grant execute on function internal.xp_days, api.xp_daily to app_admin;
grant execute on function internal.xp_level_of, internal.xp_levels_json, internal.xp_transaction_json, internal.xp_page,
  api.xp_levels_get to app_user, app_admin;
grant execute on function internal.xp_my_boosts, internal.xp_first_id, internal.first_id_at, api.xp_me, api.xp_history
  to app_user;
grant execute on function internal.xp_adjust, api.xp_award to app_user, app_server;
grant execute on function internal.xp_adjust, internal.xp_rule_check, internal.xp_boost_check,
  internal.xp_levels_requested, internal.xp_levels_replace, internal.xp_simulation, internal.xp_figures,
  internal.first_id_at, internal.event_caused__xp, api.xp_rule_simulate, api.xp_levels_put, api.xp_grant,
  api.xp_transactions, api.xp_stats to app_admin;

select internal.graphql_declare('app.xp_boosts');
select internal.graphql_declare('app.xp_levels');
select internal.graphql_declare('app.xp_rules');
select internal.graphql_declare('app.xp_totals');
select internal.graphql_declare('app.xp_transactions');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.xp_totals', 'app_user_id', 'xp',
   array['app_user_id', 'total', 'highest_level', 'announced_level', 'created_at', 'updated_at'],
   'xp', 'add', 'cascade', current_setting('trellis.file')),
  ('app.xp_transactions', 'app_user_id', 'xp_transactions',
   array['id', 'app_user_id', 'amount', 'total_after', 'source', 'source_id', 'rule_key', 'reason', 'requested',
         'clipped_by', 'occurred_at', 'counted_at',
         'created_at'],
   'xp', 'with app.xp_totals', 'delete', current_setting('trellis.file')),
  ('app.xp_rule_days', 'app_user_id', 'xp_rule_days',
   array['app_user_id', 'rule_key', 'day', 'amount'],
   'xp', 'with app.xp_totals', 'delete', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, fixed_columns, max_count,
                                  create_order, refs, declared_in)
values
  ('xp_rule', 'app.xp_rules', 'rule', 'rules', 'key', '{key}', 200, 40, '[]', current_setting('trellis.file')),
  ('xp_boost', 'app.xp_boosts', 'boost', 'boosts', 'name', '{}', 50, 50,
   '[{"path": "$.segment_id", "kind": "segment", "by": "id"}, {"path": "$.rule_keys[*]", "kind": "xp_rule", "by": '
   '"key"}]',
   current_setting('trellis.file'));
select internal.definition_declare('xp_rule'), internal.definition_declare('xp_boost');

grant execute on function internal.promotion_rows__level, internal.promotion_write__level,
  internal.promotion_lock__level to app_admin;
insert into internal.composed_definitions (kind, promoted_as, singular, plural, fields, max_count, create_order,
                                           is_additive, declared_in)
values ('level', 'levels', 'table of levels', 'tables of levels', '{"levels": ["array"]}', 1, 60, true,
        current_setting('trellis.file'));

insert into internal.feed_events (action, event_name, target_property, group_property, shown, declared_in)
values ('level.reached', 'svc.level.reached', 'level', null, '{level,name}', current_setting('trellis.file'));
