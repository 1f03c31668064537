alter table app.audit_events enable row level security;

create policy "administrators read the audit trail" on app.audit_events for select to app_admin using (true);

grant select on app.audit_events to app_admin;
