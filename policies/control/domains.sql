alter table app.domains enable row level security;

create policy "members read domains of their projects" on app.domains for select to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids())::uuid[])));
create policy "developers attach domains to their projects" on app.domains for insert to control_developer
  with check (project_id in (select p.id from app.projects p
                              where p.organization_id = any ((select internal.organization_ids('developer'))::uuid[])));
create policy "developers ask for checks of their domains" on app.domains for update to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids('developer'))::uuid[])))
  with check (project_id in (select p.id from app.projects p
                              where p.organization_id = any ((select internal.organization_ids('developer'))::uuid[])));
create policy "developers detach domains from their projects" on app.domains for delete to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids('developer'))::uuid[])));
create policy "workers read domains" on app.domains for select to control_worker using (true);
create policy "workers take domains that are due" on app.domains for update to control_worker using (true)
  with check (true);

-- not status, which only a check changes
grant select, delete, insert (project_id, domain, kind, token, records, dkim_public, dkim_sealed),
  update (verify_at) on app.domains to control_developer;
grant select, update (next_check_at) on app.domains to control_worker;
grant execute on function internal.domain_sends to control_developer, control_auth, control_worker;
grant execute on function internal.has_function_domains to control_developer;
grant execute on function internal.domain_json, internal.domains_page, internal.own_domain,
  internal.domain_project_lock, internal.domain_is_taken, internal.domain_check_json, internal.domain_checked,
  api.domain_create, api.domain_list, api.domain_get, api.domain_delete, api.domain_check_begin,
  api.domain_check_end to control_developer;
grant execute on function internal.domain_check_json, internal.domain_checked, internal.domain_is_taken,
  api.domains_due, api.domain_daily_check to control_worker;
grant execute on function internal.domain_serves, api.tls_ask to control_auth;
