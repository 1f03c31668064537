grant execute on function api.tenant_purge, api.tenant_purge_step, internal.purges,
  internal.purge__requests to app_worker;
