create policy "the edge reads projects" on app.projects for select to control_auth using (true);
create policy "the edge reads signing keys" on app.project_signing_keys for select to control_auth using (true);
create policy "the edge reads keys" on app.api_keys for select to control_auth using (true);
create policy "the edge notes the use of keys" on app.api_keys for update to control_auth using (true) with check (true);
create policy "the edge reads where tenants are" on app.tenants for select to control_auth using (true);

grant select on app.projects, app.project_signing_keys, app.api_keys, app.tenants to control_auth;
grant update (last_used_at) on app.api_keys to control_auth;
grant execute on function internal.effective_tier, internal.edge_json, api.edge_key, api.edge_project to control_auth;
