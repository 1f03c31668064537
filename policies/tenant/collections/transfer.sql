alter table app.collection_imports enable row level security;
alter table app.collection_import_parts enable row level security;

grant execute on function internal.collection_import_next_part, internal.collection_import_rows,
  internal.collection_import_finish_part, api.collection_export, api.collection_import_begin, api.collection_import_add,
  api.collection_import_drop, api.collection_import_part to app_admin;
