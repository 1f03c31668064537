alter table app.diagnostic_issues enable row level security;
alter table app.diagnostic_issue_versions enable row level security;
alter table app.diagnostic_issue_users enable row level security;
alter table app.diagnostic_reports enable row level security;
alter table app.source_maps enable row level security;
alter table app.source_map_contents enable row level security;

create policy "administrators read issues" on app.diagnostic_issues for select to app_admin using (true);
create policy "administrators read versions of issues" on app.diagnostic_issue_versions for select to app_admin
  using (true);
create policy "administrators read reports" on app.diagnostic_reports for select to app_admin using (true);
create policy "administrators read source maps" on app.source_maps for select to app_admin using (true);
create policy "administrators read contents of source maps" on app.source_map_contents for select to app_admin
  using (true);
grant select on app.diagnostic_issues, app.diagnostic_issue_versions, app.diagnostic_reports, app.source_maps,
  app.source_map_contents to app_admin;

-- writes are functions with the owner's rights
grant execute on function api.diagnostics_ping, api.diagnostics_report to app_anon, app_user;
grant execute on function internal.diagnostics_version_key, internal.diagnostics_recent,
  internal.diagnostics_issue_json, internal.diagnostics_report_json, internal.diagnostics_reports_page,
  api.diagnostics_issues, api.diagnostics_issue, api.diagnostics_issue_update, api.diagnostics_issue_reports,
  api.diagnostics_health, api.diagnostics_issue_report, internal.source_map_json, internal.source_maps_page,
  internal.source_map_room, api.source_map_begin,
  api.source_maps, api.source_maps_of, api.source_map_content, api.source_map_put, api.source_map_delete,
  api.source_maps_delete to app_admin;
grant execute on function internal.purge__diagnostics to app_worker;

select internal.graphql_declare('app.diagnostic_issues', hidden => '{resolved_version_key,opened_by}');
select internal.graphql_declare('app.diagnostic_reports');
select internal.graphql_declare('app.source_maps');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.diagnostic_reports', 'app_user_id', 'diagnostic_reports',
   array['id', 'issue_id', 'app_user_id', 'kind', 'level', 'message', 'stack', 'context', 'occurred_at', 'received_at',
         'app_version', 'os_version', 'device_model'],
   '{}', null, 'move', 'set null', null, current_setting('trellis.file')),
  ('app.diagnostic_issue_users', 'app_user_id', 'diagnostic_issue_users', null, '{}', null, 'merge', 'cascade',
   'which issues the reports section names', current_setting('trellis.file'));
