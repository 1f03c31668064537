alter table app.projects enable row level security;
select internal.checks_declare('app.projects', 'INVALID_INPUT', but => '{tier}');
alter table app.project_signing_keys enable row level security;
alter table app.api_keys enable row level security;
alter table app.tenants enable row level security;

create policy "members read the projects of their organizations" on app.projects for select to control_developer
  using (organization_id = any ((select internal.organization_ids())::uuid[]));
create policy "admins create projects in their organizations" on app.projects for insert to control_developer
  with check (developer_id = (select internal.developer_id())
              and organization_id = any ((select internal.organization_ids('admin'))::uuid[]));
create policy "developers change the projects of their organizations" on app.projects for update to control_developer
  using (organization_id = any ((select internal.organization_ids('developer'))::uuid[]))
  with check (organization_id = any ((select internal.organization_ids('developer'))::uuid[]));
create policy "admins store signing keys of their projects" on app.project_signing_keys for insert to control_developer
  with check (project_id in (select p.id from app.projects p
                              where p.organization_id = any ((select internal.organization_ids('admin'))::uuid[])));
create policy "members read keys of their projects" on app.api_keys for select to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids())::uuid[])));
create policy "admins create keys of their projects" on app.api_keys for insert to control_developer
  with check (project_id in (select p.id from app.projects p
                              where p.organization_id = any ((select internal.organization_ids('admin'))::uuid[])));
create policy "admins deactivate keys of their projects" on app.api_keys for update to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids('admin'))::uuid[])))
  with check (project_id in (select p.id from app.projects p
                              where p.organization_id = any ((select internal.organization_ids('admin'))::uuid[])));
create policy "members read the tenants of their projects" on app.tenants for select to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids())::uuid[])));

grant select on app.projects, app.api_keys, app.tenants to control_developer;
grant insert (id, developer_id, organization_id, name, bundle_id, google_oauth_client_id, platform, environment),
      update (name, bundle_id, google_oauth_client_id, platform, environment, default_from_email, default_from_name,
              default_reply_to,
              magic_link_redirect_url, auth_email_brand_name, user_search_enabled, graphql_enabled, rest_enabled,
              anonymous_reads, updated_at)
   on app.projects to control_developer;
grant insert on app.project_signing_keys to control_developer;
grant insert (project_id, key_prefix, key_hash, key_type, environment),
  update (is_active, expires_at) on app.api_keys to control_developer;
grant execute on function internal.effective_tier, internal.project_json, internal.own_project,
  internal.own_project_lock, internal.project_guard_check, internal.project_place_check, internal.api_key_json,
  internal.provisioning_json, internal.provisioning_absent_json, internal.provisioning_steps,
  internal.provisioning_start, internal.provisioning_restart, api.project_create, api.project_list, api.project_get,
  api.project_patch, api.api_key_create, api.api_key_deactivate,
  internal.api_key_rotatable, api.api_key_to_rotate, api.api_key_rotate, api.provisioning_status,
  api.reprovision to control_developer;
grant execute on function api.api_keys_expire to control_worker;
