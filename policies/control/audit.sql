alter table app.audit_events enable row level security;

create policy "developers read their own changes" on app.audit_events for select to control_developer
  using (actor ->> 'id' = (select internal.developer_id())::text);

grant select on app.audit_events to control_developer;
