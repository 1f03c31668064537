grant execute on function api.tenant_purge to app_worker;
