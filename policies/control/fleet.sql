alter table app.clusters enable row level security;
alter table app.templates enable row level security;
alter table app.installation enable row level security;
alter table app.workers enable row level security;
-- operators' commands alone, as the owner
alter table app.tenant_moves enable row level security;

create policy "workers read projects" on app.projects for select to control_worker using (true);
create policy "workers read tenants" on app.tenants for select to control_worker using (true);
create policy "workers update tenants" on app.tenants for update to control_worker using (true) with check (true);
create policy "workers read clusters" on app.clusters for select to control_worker using (true);
create policy "workers add clusters" on app.clusters for insert to control_worker with check (true);
create policy "workers read templates" on app.templates for select to control_worker using (true);
create policy "workers record templates" on app.templates for insert to control_worker with check (true);
create policy "workers renew templates" on app.templates for update to control_worker using (true) with check (true);
create policy "workers read the key check" on app.installation for select to control_worker using (true);
create policy "workers store the key check" on app.installation for insert to control_worker with check (true);
create policy "workers read heartbeats" on app.workers for select to control_worker using (true);
create policy "workers send first heartbeats" on app.workers for insert to control_worker with check (true);
create policy "workers send heartbeats" on app.workers for update to control_worker using (true) with check (true);
create policy "workers delete dead workers" on app.workers for delete to control_worker using (true);

grant select on app.projects, app.tenants, app.clusters, app.templates, app.installation, app.workers to control_worker;
grant update (status, steps, error, moved_at, completed_at, schema_version, content_hash, migration_status,
              migration_error, last_written_at,
  swept_at)
  on app.tenants to control_worker;
grant insert (name) on app.clusters to control_worker;
grant insert, update on app.templates to control_worker;
grant insert (key_check) on app.installation to control_worker;
grant insert, update, delete on app.workers to control_worker;
create policy "workers find old sign-ins" on app.developer_sessions for select to control_worker using (true);
create policy "workers delete old sign-ins" on app.developer_sessions for delete to control_worker using (true);
grant select (id, ended_at, expires_at), delete on app.developer_sessions to control_worker;
-- in the file that gave it in the former version too, so that it stays granted when that version is started again
grant execute on function internal.database_is_gone, internal.is_attempt, api.fleet_moved, api.tenant_seen,
  api.tenants_restored, api.health, api.tenant_get, api.provision_step, api.provision_end, api.cluster_list,
  api.cluster_ensure, api.template_built, api.key_check, api.fleet_behind, api.fleet_migrated, api.fleet_status,
  api.fleet_to_sweep, api.fleet_page, api.sweep_take, api.tenants_written, api.provision_stalled, api.workers_beat,
  api.workers_stopped, api.workers_gone, api.control_maintain to control_worker;
