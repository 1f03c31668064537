alter table app.entitlement_grants enable row level security;

create policy "users read their own grants" on app.entitlement_grants for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every grant" on app.entitlement_grants for select to app_admin using (true);

-- written by definer functions alone
grant select on app.entitlement_grants to app_user, app_admin;
grant execute on function internal.grant_end, internal.entitlement_json, internal.best_grants to app_user, app_admin;
grant execute on function internal.has_subscription_provider, api.entitlements_list, api.entitlement_get, api.entitlements_restore to app_user;
grant execute on function internal.grant_json, internal.entitlements_with_grants, internal.user_section__entitlements, internal.entitled_user,
  internal.entitlement_grant, internal.entitlement_withdraw, api.user_entitlements, api.user_entitlement_grant, api.user_entitlement_delete
  to app_admin;

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.entitlement_grants', 'app_user_id', 'entitlement_grants',
   array['id', 'app_user_id', 'entitlement_id', 'source', 'source_ref', 'product_id', 'store', 'period_type', 'purchase_date', 'expiration_date',
         'grace_until', 'cancelled_at', 'refunded_at', 'reason', 'created_at', 'updated_at'],
   'entitlements', 'union by source', 'cascade', current_setting('trellis.file'));
