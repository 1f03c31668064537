alter table app.project_subscriptions enable row level security;
alter table app.billing_events enable row level security;
alter table app.traffic_reports enable row level security;

create policy "members read the subscriptions of their projects" on app.project_subscriptions
  for select to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids())::uuid[])));
create policy "members read the traffic of their projects" on app.traffic_reports for select to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids())::uuid[])));

grant select on app.project_subscriptions, app.traffic_reports to control_developer;
grant execute on function internal.subscription_json, internal.subscription_of, internal.billing_act,
  api.billing_get, api.traffic_series, api.billing_begin, api.billing_cancelled
  to control_developer;
grant execute on function internal.purge_billing, api.billing_event, api.traffic_report to control_worker;
