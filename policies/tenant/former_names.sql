grant execute on function api.catalog_define, api.catalog_update, api.catalog_items, api.config_set, api.config_list, api.config_update, api.event_define,
  api.onboarding_flows
  to app_admin;
grant execute on function api.outbox_settle, api.leaderboard_turn, api.leaderboard_tell, api.tenant_forget to app_worker;
