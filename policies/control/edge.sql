create policy "the project cache reads projects" on app.projects for select to control_auth using (true);
create policy "the project cache reads signing keys" on app.project_signing_keys for select to control_auth
  using (true);
create policy "the project cache reads keys" on app.api_keys for select to control_auth using (true);
create policy "the project cache records the use of keys" on app.api_keys for update to control_auth using (true)
  with check (true);
create policy "the project cache reads tenants" on app.tenants for select to control_auth using (true);

grant select on app.projects, app.project_signing_keys, app.api_keys, app.tenants to control_auth;
grant update (last_used_at) on app.api_keys to control_auth;
grant execute on function internal.effective_tier, internal.signing_keys, internal.edge_json, internal.template_hash,
  internal.project_is_sandbox, api.edge_key, api.edge_project to control_auth;
