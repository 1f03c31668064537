grant execute on function api.collection_export to app_admin;
