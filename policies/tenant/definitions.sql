alter table internal.definitions enable row level security;

create policy "administrators read the registry of definitions" on internal.definitions for select to app_admin using (true);

grant select on internal.definitions to app_admin;
grant execute on function
  internal.definition_of(text), internal.definition_of(anyelement), internal.definition_columns, internal.definition_hook,
  internal.definition_compiled, internal.definition_json, internal.definition_find, internal.definition_page,
  internal.definition_patched, internal.definition_new, internal.definition_missing, internal.definition_checked, internal.definition_room,
  internal.definition_before_write, internal.definition_after_write, internal.definition_insert, internal.definition_deleted_meanwhile,
  internal.definition_update, internal.definition_delete,
  api.definition_create, api.definition_list, api.definition_get, api.definition_update, api.definition_delete
  to app_admin;
