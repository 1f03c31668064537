alter table internal.campaign_channels enable row level security;
alter table app.campaigns enable row level security;
select internal.checks_declare('app.campaigns', but => '{mode,status}');
alter table app.campaign_plans enable row level security;
alter table app.campaign_deliveries enable row level security;
alter table app.campaign_counts enable row level security;
alter table app.campaign_buckets enable row level security;

create policy "administrators read campaigns" on app.campaigns for select to app_admin using (true);
create policy "administrators read deliveries" on app.campaign_deliveries for select to app_admin using (true);
create policy "administrators read counts" on app.campaign_counts for select to app_admin using (true);

select internal.graphql_declare('app.campaigns');
select internal.graphql_declare('app.campaign_counts');
select internal.graphql_declare('app.campaign_deliveries');

grant select on app.campaigns, app.campaign_deliveries, app.campaign_counts to app_admin;

grant execute on function internal.campaign_days, api.campaign_daily to app_admin;
grant execute on function internal.campaign_hook, internal.campaign_filter_check, internal.campaign_content,
  internal.campaign_has_clicks, internal.campaign_counts_json, internal.campaign_json, internal.campaign_create,
  internal.campaign_found, internal.campaign_is_listed, internal.campaigns_page, internal.campaign_delivery_json,
  internal.campaign_deliveries_page, internal.campaign_stats_json, internal.campaign_rates_json, api.campaign_create,
  api.campaign_update, api.campaign_schedule, api.campaign_move, api.campaign_duplicate, api.campaign_delete,
  api.campaign_preview, api.campaign_test, api.campaigns, api.campaign_get, api.campaign_deliveries,
  api.campaign_stats to app_admin;
grant execute on function internal.purge__campaigns, api.campaign_plan_step, api.campaign_claim to app_worker;

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.campaign_deliveries', 'app_user_id', 'push_deliveries',
   array['id', 'channel', 'campaign_id', 'automation_id', 'app_user_id', 'variant', 'message', 'is_test', 'status',
         'reason', 'code', 'due_at', 'sent_at',
         'received_at', 'opened_at', 'clicked_at', 'converted_at', 'created_at'],
   array['queue_id', 'context', 'inbox', 'tries', 'attempt_id', 'attempts'],
   'push', 'one for each campaign', 'cascade', current_setting('trellis.file'));
