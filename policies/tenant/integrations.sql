alter table app.integrations enable row level security;

create policy "administrators read integrations" on app.integrations for select to app_admin using (true);
create policy "administrators connect providers" on app.integrations for insert to app_admin with check (true);
create policy "administrators replace configs" on app.integrations for update to app_admin using (true) with check (true);
create policy "workers read integrations" on app.integrations for select to app_worker using (true);

grant select, insert, update on app.integrations to app_admin;
grant select on app.integrations to app_worker;
grant execute on function internal.integration_json, api.integration_put, api.integration_list to app_admin;
