alter table app.flags enable row level security;
select internal.checks_declare('app.flags');
alter table app.flag_versions enable row level security;
alter table app.flag_sets enable row level security;
alter table app.flag_overrides enable row level security;
alter table app.flag_evaluations enable row level security;
alter table app.flag_values enable row level security;
alter table app.flag_counts enable row level security;
alter table app.flag_users enable row level security;
alter table app.flag_exposures enable row level security;
alter table app.flag_states enable row level security;

create policy "administrators read flags" on app.flags for select to app_admin using (true);
create policy "administrators add flags" on app.flags for insert to app_admin with check (true);
create policy "administrators change flags" on app.flags for update to app_admin using (true) with check (true);
create policy "administrators delete flags" on app.flags for delete to app_admin using (true);
create policy "administrators read versions of flags" on app.flag_versions for select to app_admin using (true);
create policy "administrators read overrides" on app.flag_overrides for select to app_admin using (true);
create policy "administrators read evaluated values of flags" on app.flag_values for select to app_admin using (true);
create policy "administrators read counts of flags" on app.flag_counts for select to app_admin using (true);
create policy "administrators read users of flags" on app.flag_users for select to app_admin using (true);
create policy "administrators read when flags were evaluated" on app.flag_states for select to app_admin using (true);
create policy "workers read when flags change" on app.flags for select to app_worker using (true);
create policy "workers read old counts of flags" on app.flag_counts for select to app_worker using (true);
create policy "workers delete old counts of flags" on app.flag_counts for delete to app_worker using (true);
create policy "workers read users of flags" on app.flag_users for select to app_worker using (true);
create policy "workers delete users of flags" on app.flag_users for delete to app_worker using (true);

grant select on app.flags, app.flag_versions, app.flag_overrides, app.flag_values, app.flag_counts, app.flag_users,
  app.flag_states to app_admin;
grant select on app.flags to app_worker;
grant select, delete on app.flag_counts, app.flag_users to app_worker;
grant update (ramp) on app.flags to app_admin;

grant execute on function internal.flags_evaluated, internal.flags_tag, internal.flags_reply, internal.flag_attributes,
  api.flags_values, api.flag_value, api.flags_evaluate
  to app_anon, app_user;
grant execute on function internal.flag_value, internal.flag_number, internal.flag_time, internal.flag_rule,
  internal.flag_rules, internal.flag_step, internal.flag_patched, internal.flag_schedule, internal.flag_tags,
  internal.flag_changed, internal.flag_without_ramp, internal.flag_json, internal.flag_find, internal.flag_locked,
  internal.flag_stored, internal.flag_overrides_put, internal.flag_users_lock, internal.flag_snapshot,
  internal.flag_ramp_json, internal.flag_guardrail, internal.flag_ramped_rule, internal.flag_reset_exposures,
  internal.flag_is_stale, internal.flag_explain, internal.flag_attributes, internal.flags_flush_counts, api.flag_create,
  api.flags_list, api.flag_get, api.flag_update, api.flag_toggle, api.flag_overrides_put, internal.flag_version_json,
  internal.flag_versions_page, api.flag_history, api.flag_revert, api.flag_ramp, api.flag_stats,
  api.flag_evaluate to app_admin;
grant execute on function internal.flags_apply_schedule to app_admin, app_worker;
grant execute on function internal.flags_count, internal.purge__flags, api.flags_advance, api.flag_guard,
  api.flags_count to app_worker;

select internal.graphql_declare('app.flag_counts');
select internal.graphql_declare('app.flag_overrides');
select internal.graphql_declare('app.flag_users');
select internal.graphql_declare('app.flag_values');
select internal.graphql_declare('app.flag_versions');
select internal.graphql_declare('app.flags');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.flag_overrides', 'app_user_id', 'flag_overrides',
   array['flag_id', 'app_user_id', 'value', 'created_at', 'updated_at'], '{}',
   null, 'keep survivor', 'cascade', null, current_setting('trellis.file')),
  ('app.flag_evaluations', 'app_user_id', 'flag_evaluations', null, '{}',
   null, 'move', 'cascade', 'answers of the last minutes, until they are counted', current_setting('trellis.file')),
  ('app.flag_users', 'app_user_id', 'flag_users', null, '{}',
   null, 'move', 'cascade', 'when a user last got a value of a flag: statistics of the flag',
   current_setting('trellis.file')),
  ('app.flag_exposures', 'app_user_id', 'flag_exposures', null, '{}',
   null, 'move', 'cascade', 'who takes part in a ramp: statistics of the flag', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, fixed_columns, state_columns,
                                  max_count, create_order, refs, declared_in)
values ('flag', 'app.flags', 'flag', 'flags', 'key', '{key,value_type}', '{next_at,ramp,version}', 500, 60,
   '[{"path": "$.rules[*].segment_id", "kind": "segment", "by": "id"},
     {"path": "$.schedule[*].patch.rules[*].segment_id", "kind": "segment", "by": "id"}]',
   current_setting('trellis.file'));
select internal.definition_declare('flag');
