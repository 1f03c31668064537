alter table app.audit_events enable row level security;
alter table app.audit_chains enable row level security;

create policy "developers read the trails of their projects and of their account" on app.audit_events for select to control_developer
  using (scope = (select internal.developer_id())
         or scope in (select p.id from app.projects p where p.developer_id = (select internal.developer_id())));
create policy "developers read where months of their trails begin and end" on app.audit_chains for select to control_developer
  using (scope = (select internal.developer_id())
         or scope in (select p.id from app.projects p where p.developer_id = (select internal.developer_id())));

grant select on app.audit_events, app.audit_chains to control_developer;
grant execute on function internal.audit_hash, internal.audit_json, internal.audit_key, internal.audit_oldest_month,
  api.audit_rows, api.audit_row, api.audit_verify
  to control_developer;
grant execute on function api.audit_maintain, internal.make_audit_partition, internal.forget_audit to control_worker;
