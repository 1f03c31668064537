alter table app.audit_events enable row level security;
alter table app.audit_chains enable row level security;

create policy "administrators read the audit trail" on app.audit_events for select to app_admin using (true);
create policy "administrators read where months begin and end" on app.audit_chains for select to app_admin using (true);

grant select on app.audit_events, app.audit_chains to app_admin;
grant execute on function internal.audit_act, internal.audit_hash, internal.audit_json, internal.audit_key, internal.audit_oldest_month,
  api.audit_rows, api.audit_row, api.audit_verify
  to app_admin;
grant execute on function api.audit_maintain, internal.make_audit_partition, internal.forget_audit to app_worker;
