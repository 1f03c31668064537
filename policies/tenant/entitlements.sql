alter table app.entitlement_grants enable row level security;
select internal.checks_declare('app.entitlement_grants', 'INVALID_BODY', but => '{source}');
alter table app.subscriptions enable row level security;
alter table app.subscription_events enable row level security;
alter table app.merged_names enable row level security;

create policy "users read their own grants" on app.entitlement_grants for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every grant" on app.entitlement_grants for select to app_admin using (true);
create policy "administrators read every subscription" on app.subscriptions for select to app_admin using (true);
create policy "administrators read every event of the provider" on app.subscription_events for select to app_admin
  using (true);

-- only definer functions write grants
grant select on app.entitlement_grants to app_user, app_admin;
grant select on app.subscriptions, app.subscription_events to app_admin;
grant execute on function internal.grant_end, internal.entitlement_json, internal.best_grants to app_user, app_admin;
grant execute on function api.entitlements_list, api.entitlement_get to app_user;
grant execute on function internal.grant_json, internal.entitlements_with_grants, internal.user_section__entitlements,
  internal.entitled_user, internal.entitlement_grant, internal.entitlement_withdraw, api.user_entitlements,
  api.user_entitlement_grant, api.user_entitlement_delete, internal.ms_time, internal.number_in, internal.text_in,
  internal.subscription_end, internal.subscription_status, internal.subscription_json, internal.subscriptions_page,
  internal.subscription_with_grants, internal.subscription_find, internal.subscription_replay, api.subscriptions_list,
  api.subscription_get, api.subscriptions_summary, api.subscription_replay, internal.subscription_rank to app_admin;
grant execute on function api.subscription_resume, api.restore_begin, api.subscriptions_restore,
  internal.subscription_names, internal.purge__subscription_events
  to app_worker;

select internal.graphql_declare('app.entitlement_grants');
select internal.graphql_declare('app.subscription_events', hidden => '{payload}');
select internal.graphql_declare('app.subscriptions');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.entitlement_grants', 'app_user_id', 'entitlement_grants',
   array['id', 'app_user_id', 'entitlement_id', 'source', 'source_ref', 'product_id', 'store', 'period_type',
         'purchase_date', 'expiration_date',
         'grace_until', 'cancelled_at', 'refunded_at', 'reason', 'created_at', 'updated_at'],
   'entitlements', 'union by source', 'cascade', current_setting('trellis.file')),
  ('app.subscriptions', 'app_user_id', 'subscriptions',
   array['id', 'app_user_id', 'source_ref', 'product_id', 'store', 'environment', 'period_type', 'entitlement_ids',
         'purchase_date', 'expiration_date',
         'grace_until', 'billing_issue_at', 'cancelled_at', 'paused_at', 'refunded_at', 'trial_started_at',
         'trial_converted_at', 'last_event_at',
         'created_at', 'updated_at'],
   'entitlements', 'move', 'cascade', current_setting('trellis.file')),
  ('app.subscription_events', 'app_user_id', 'subscription_events',
   array['id', 'source_ref', 'app_user_id', 'type', 'event_at', 'payload', 'outcome', 'received_at', 'names'],
   'entitlements', 'move', 'cascade', current_setting('trellis.file')),
  ('app.merged_names', 'app_user_id', 'merged_names', array['name', 'app_user_id', 'created_at'], null, 'names of both',
   'cascade',
   current_setting('trellis.file'));
