create policy "workers forget deleted projects" on app.projects for delete to control_worker using (deleted_at is not null);
create policy "workers forget tenants of deleted projects" on app.tenants for delete to control_worker
  using (project_id in (select p.id from app.projects p where p.deleted_at is not null));

grant delete on app.projects, app.tenants to control_worker;
grant execute on function api.removal_begin, api.removal_end, api.removals_left to control_worker;
