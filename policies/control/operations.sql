alter table app.operations enable row level security;

create policy "members read operations of their projects" on app.operations for select to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids())::uuid[])));
create policy "workers read operations" on app.operations for select to control_worker using (true);
create policy "workers update operations" on app.operations for update to control_worker using (true) with check (true);
create policy "workers delete old operations" on app.operations for delete to control_worker using (true);

grant select on app.operations to control_developer;
grant select, delete, update (status, done, total, result, failed_reason,
                              updated_at) on app.operations to control_worker;
grant execute on function internal.operation_json, internal.operation_request, api.operation_request,
  internal.operation_cancel, api.operation_get, internal.operations_page, api.operation_list,
  api.operation_cancel to control_developer;
grant execute on function api.operation_begin, api.operation_progress, api.operation_end to control_worker;
