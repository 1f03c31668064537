alter table app.monetization_definitions enable row level security;
alter table app.monetization_applied_objects enable row level security;

create policy "administrators read definitions" on app.monetization_definitions for select to app_admin using (true);
create policy "administrators declare" on app.monetization_definitions for insert to app_admin with check (true);
create policy "administrators change declarations" on app.monetization_definitions for update to app_admin using (true)
  with check (true);
create policy "administrators withdraw declarations" on app.monetization_definitions for delete to app_admin
  using (true);
create policy "workers read definitions" on app.monetization_definitions for select to app_worker using (true);
create policy "workers adopt" on app.monetization_definitions for insert to app_worker with check (true);
create policy "workers adopt changes" on app.monetization_definitions for update to app_worker using (true)
  with check (true);
create policy "workers adopt removals" on app.monetization_definitions for delete to app_worker using (true);

create policy "administrators read what was applied" on app.monetization_applied_objects for select to app_admin
  using (true);
create policy "workers read what was applied" on app.monetization_applied_objects for select to app_worker using (true);
create policy "workers forget what is gone" on app.monetization_applied_objects for delete to app_worker using (true);

grant select, insert, delete, update (definition, updated_at) on app.monetization_definitions to app_admin, app_worker;
grant select on app.monetization_applied_objects to app_admin, app_worker;
grant delete on app.monetization_applied_objects to app_worker;

grant execute on function internal.monetization_hash, internal.monetization_list, internal.monetization_sorted,
  internal.monetization_packages, internal.monetization_objects, internal.monetization_filled,
  internal.monetization_product_keys, internal.monetization_config, internal.monetization_paywalls,
  internal.monetization_declared, internal.monetization_applied_json, internal.monetization_compared,
  internal.monetization_sides, internal.monetization_pairs, internal.monetization_pushes,
  internal.monetization_validation, internal.monetization_store_floor, internal.monetization_ops,
  internal.monetization_drift, internal.monetization_human_floor, internal.monetization_plan,
  internal.monetization_step, internal.monetization_decide, internal.monetization_rows, internal.monetization_write,
  internal.monetization_closure, internal.monetization_remember, internal.monetization_adopt,
  internal.monetization_current, internal.monetization_is_resolved, internal.monetization_is_held,
  internal.monetization_in_use, api.monetization_decide to app_admin, app_worker;
grant execute on function internal.monetization_invalid, internal.monetization_check, api.monetization_definitions_get,
  api.monetization_definitions_put, api.monetization_adopt, api.monetization_plan, api.monetization_drift,
  api.monetization_export to app_admin;
grant execute on function api.monetization_connection, api.monetization_adopt_drift,
  api.monetization_record to app_worker;

select internal.graphql_declare('app.monetization_definitions');
