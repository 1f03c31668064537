alter table app.stores enable row level security;
select internal.checks_declare('app.stores');
alter table app.store_offers enable row level security;
select internal.checks_declare('app.store_offers');
alter table app.store_offer_prices enable row level security;
alter table app.store_offer_sales enable row level security;
alter table app.purchases enable row level security;

create policy "administrators read stores" on app.stores for select to app_admin using (true);
create policy "administrators add stores" on app.stores for insert to app_admin with check (true);
create policy "administrators change stores" on app.stores for update to app_admin using (true) with check (true);
create policy "administrators delete stores" on app.stores for delete to app_admin using (true);

create policy "administrators read offers" on app.store_offers for select to app_admin using (true);
create policy "administrators add offers" on app.store_offers for insert to app_admin with check (true);
create policy "administrators change offers" on app.store_offers for update to app_admin using (true)
  with check (true);
create policy "administrators delete offers" on app.store_offers for delete to app_admin using (true);

create policy "administrators read prices of offers" on app.store_offer_prices for select to app_admin using (true);
create policy "administrators add prices of offers" on app.store_offer_prices for insert to app_admin
  with check (true);
create policy "administrators change prices of offers" on app.store_offer_prices for update to app_admin using (true)
  with check (true);
create policy "administrators delete prices of offers" on app.store_offer_prices for delete to app_admin using (true);

create policy "administrators read what is sold" on app.store_offer_sales for select to app_admin using (true);
create policy "administrators read every purchase" on app.purchases for select to app_admin using (true);
create policy "users read their own purchases" on app.purchases for select to app_user
  using (app_user_id = (select internal.user_id()));

-- what users see of stores depends on segments and the clock: definer functions answer it, and alone write purchases
grant select on app.store_offers, app.store_offer_prices, app.store_offer_sales to app_admin;
grant select on app.purchases to app_user, app_admin;
grant insert (store_id, key, catalog_item_id, quantity, limit_per_user, limit_period, stock_total, starts_at, ends_at,
              segment_id, badge, sort_order, is_active),
      update (quantity, limit_per_user, limit_period, stock_total, starts_at, ends_at, segment_id, badge, sort_order,
              is_active, updated_at), delete on app.store_offers to app_admin;
grant insert, delete, update (price, original_price) on app.store_offer_prices to app_admin;

grant execute on function internal.purchase_json to app_user, app_admin;
grant execute on function internal.purchases_of_user, api.stores_list, api.store_get, api.store_purchase,
  api.purchases_list, api.purchase_get to app_user;
grant execute on function internal.store_json, internal.store_check, internal.store_times_check,
  internal.store_is_amount, internal.store_segment_check, internal.store_before_delete, internal.store_after_write,
  internal.store_offer_sold, internal.store_offer_own_prices, internal.store_offer_row_json,
  internal.store_offer_json, internal.store_offer_item, internal.store_offer_prices_set, internal.store_offer_write,
  internal.store_offers_limit_check, internal.store_promoted, internal.store_offers_set, internal.store_promote,
  internal.store_previewed, internal.store_figures, internal.purchases_page, api.store_offer_create,
  api.store_offer_update, api.store_offer_delete, api.store_preview, api.store_stats, api.purchases_all,
  api.purchase_refund to app_admin;

select internal.graphql_declare('app.stores');
select internal.graphql_declare('app.store_offers');
select internal.graphql_declare('app.store_offer_prices');
select internal.graphql_declare('app.purchases');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.purchases', 'app_user_id', 'purchases',
   array['id', 'app_user_id', 'store_id', 'offer_id', 'quantity', 'currency_code', 'total_price', 'status', 'granted',
         'receipt', 'created_at', 'refunded_at'],
   null, 'move', 'cascade', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, order_by, is_descending,
                                  fixed_columns, max_count, create_order, refs, promoted_refs, declared_in)
values ('store', 'app.stores', 'store', 'stores', 'key', '{sort_order,key}', false, '{key}', 50, 70,
   '[{"path": "$.segment_id", "kind": "segment", "by": "id"},
     {"path": "$.offers[*].segment_id", "kind": "segment", "by": "id"},
     {"path": "$.offers[*].catalog_item_key", "kind": "catalog_item", "by": "key"},
     {"path": "$.offers[*].prices[*].currency_code", "kind": "currency", "by": "key"}]',
   null, current_setting('trellis.file'));
select internal.definition_declare('store');
