alter table internal.definitions enable row level security;

create policy "administrators read the registry of definitions" on internal.definitions for select to app_admin
  using (true);

grant select on internal.definitions to app_admin;

alter table internal.composed_definitions enable row level security;

create policy "administrators read the registry of composed definitions" on internal.composed_definitions
  for select to app_admin using (true);

grant select on internal.composed_definitions to app_admin;
grant execute on function
  internal.definition_of(text), internal.definition_of(anyelement), internal.definition_columns,
    internal.definition_compiled,
  internal.definition_find, internal.definition_patched, internal.definition_limit_check, internal.reference_depths,
  api.definition_create, api.definition_list, api.definition_get, api.definition_update, api.definition_delete
  to app_admin;
grant execute on function internal.is_id_or_key to app_user, app_admin;
