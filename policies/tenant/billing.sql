alter table app.usage_days enable row level security;
alter table app.usage_closings enable row level security;

grant execute on function internal.spend_ceiling, internal.usage_by_day, internal.usage_value,
  internal.registered_bytes, api.spend_ceiling_put, api.usage_series, api.usage_month to app_admin;
grant execute on function internal.spend_check to app_admin, app_worker;
grant execute on function internal.purge__billing to app_worker;
