alter table app.integrations enable row level security;
alter table app.inbound_events enable row level security;

create policy "administrators read integrations" on app.integrations for select to app_admin using (true);
create policy "administrators connect providers" on app.integrations for insert to app_admin with check (true);
create policy "administrators replace configs" on app.integrations for update to app_admin using (true)
  with check (true);
create policy "administrators disconnect providers" on app.integrations for delete to app_admin using (true);
create policy "workers read integrations" on app.integrations for select to app_worker using (true);
create policy "administrators read received webhooks" on app.inbound_events for select to app_admin using (true);

grant select, insert, update, delete on app.integrations to app_admin;
grant select on app.integrations to app_worker;
grant select on app.inbound_events to app_admin;
grant execute on function internal.integration_json, api.integration_put, api.integration_list, api.integration_get,
  api.integration_update, api.integration_delete, internal.inbound_event_json, internal.inbound_events_page,
  internal.inbound_replay, api.inbound_events, api.inbound_replay to app_admin;
grant execute on function internal.integration_found to app_admin, app_worker;
grant execute on function api.integration_sealed, api.inbound_config, api.inbound_receive, api.inbound_process,
  internal.purge__inbound to app_worker;

select internal.graphql_declare('app.integrations', hidden => '{config_sealed,key_id,webhook_path}');
