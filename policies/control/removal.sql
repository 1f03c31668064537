alter table app.file_purges enable row level security;

create policy "workers delete the rows of deleted projects" on app.projects for delete to control_worker
  using (deleted_at is not null);
create policy "workers delete the tenants of deleted projects" on app.tenants for delete to control_worker
  using (project_id in (select p.id from app.projects p where p.deleted_at is not null));
create policy "workers read purges of files" on app.file_purges for select to control_worker using (true);
create policy "workers record purges of files" on app.file_purges for update to control_worker using (true)
  with check (true);
create policy "workers delete finished purges of files" on app.file_purges for delete to control_worker using (true);

grant delete on app.projects, app.tenants to control_worker;
grant select, delete, update (attempts, purged_at, error, due_at) on app.file_purges to control_worker;
grant execute on function api.removal_begin, api.removal_end, api.removals_left, api.file_purge_begin,
  api.file_purge_end, api.file_purges_due to control_worker;
grant execute on function internal.removal_refusal, api.project_removable, api.project_delete to control_developer;
