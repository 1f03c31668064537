alter table app.onboarding_flows enable row level security;
select internal.checks_declare('app.onboarding_flows', 'INVALID_INPUT');
alter table app.onboarding_progress enable row level security;

create policy "users read flows in use" on app.onboarding_flows for select to app_user using (is_active);
create policy "administrators read flows" on app.onboarding_flows for select to app_admin using (true);
create policy "administrators add flows" on app.onboarding_flows for insert to app_admin with check (true);
create policy "administrators change flows" on app.onboarding_flows for update to app_admin using (true)
  with check (true);
create policy "administrators delete flows" on app.onboarding_flows for delete to app_admin using (true);
create policy "users read their own progress" on app.onboarding_progress for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read progress" on app.onboarding_progress for select to app_admin using (true);

grant select on app.onboarding_flows, app.onboarding_progress to app_user, app_admin;

grant execute on function internal.onboarding_flow_json to app_user, app_admin;
grant execute on function internal.onboarding_progress_json, internal.onboarding_start, internal.onboarding_finish,
  internal.onboarding_advance, api.onboarding_get, api.onboarding_start, api.onboarding_advance, api.onboarding_skip,
  api.onboarding_complete to app_user;
grant execute on function internal.onboarding_config_problem, internal.onboarding_step_check, internal.onboarding_steps,
  internal.onboarding_flow, api.onboarding_flow_create, api.onboarding_flow_list, api.onboarding_flow_update,
  api.onboarding_stats to app_admin;

select internal.graphql_declare('app.onboarding_flows');
select internal.graphql_declare('app.onboarding_progress');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, exempt_reason, declared_in)
values
  ('app.onboarding_progress', 'app_user_id', 'onboarding_progress',
   array['app_user_id', 'flow_id', 'current_step', 'completed_steps', 'answers', 'status', 'started_at', 'completed_at',
         'updated_at', 'told'],
   'onboarding', 'move', 'cascade', null, current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, found_by, invalid_code, create_order, refs,
                                  declared_in)
values ('onboarding_flow', 'app.onboarding_flows', 'flow', 'flows', 'id', 'INVALID_INPUT', 50,
   '[{"path": "$.steps[*].segment_id", "kind": "segment", "by": "id"}]', current_setting('trellis.file'));
select internal.definition_declare('onboarding_flow');
