grant execute on function api.tenant_forget to app_worker;
