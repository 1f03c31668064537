alter table app.catalog_items enable row level security;
select internal.checks_declare('app.catalog_items');
alter table app.catalog_item_prices enable row level security;
alter table app.bundle_contents enable row level security;

create policy "users read items" on app.catalog_items for select to app_user using (true);
create policy "administrators read items" on app.catalog_items for select to app_admin using (true);
create policy "administrators add items" on app.catalog_items for insert to app_admin with check (true);
create policy "administrators change items" on app.catalog_items for update to app_admin using (true) with check (true);
create policy "administrators delete items" on app.catalog_items for delete to app_admin using (true);

create policy "users read prices" on app.catalog_item_prices for select to app_user using (true);
create policy "administrators read prices" on app.catalog_item_prices for select to app_admin using (true);
create policy "administrators add prices" on app.catalog_item_prices for insert to app_admin with check (true);
create policy "administrators change prices" on app.catalog_item_prices for update to app_admin using (true)
  with check (true);
create policy "administrators delete prices" on app.catalog_item_prices for delete to app_admin using (true);

create policy "users read contents of bundles" on app.bundle_contents for select to app_user using (true);
create policy "administrators read contents of bundles" on app.bundle_contents for select to app_admin using (true);
create policy "administrators add contents of bundles" on app.bundle_contents for insert to app_admin with check (true);
create policy "administrators change contents of bundles" on app.bundle_contents for update to app_admin using (true)
  with check (true);
create policy "administrators delete contents of bundles" on app.bundle_contents for delete to app_admin using (true);

grant select on app.catalog_items, app.catalog_item_prices, app.bundle_contents to app_user, app_admin;
grant insert, delete, update (price) on app.catalog_item_prices to app_admin;
grant insert, delete, update (quantity, position) on app.bundle_contents to app_admin;

grant execute on function internal.catalog_item_json, internal.catalog_find,
  internal.catalog_page to app_user, app_admin;
grant execute on function api.catalog_list, api.catalog_get to app_user;
grant execute on function internal.catalog_item_before_write, internal.catalog_item_check,
  internal.catalog_item_after_write, internal.catalog_lock, internal.catalog_currencies_hold,
  internal.catalog_prices_set, internal.catalog_contents_set, internal.catalog_item_touch, internal.catalog_import_part,
  api.catalog_item_list, api.catalog_prices_put, api.catalog_contents_put, api.catalog_import to app_admin;

select internal.graphql_declare('app.bundle_contents');
select internal.graphql_declare('app.catalog_item_prices');
select internal.graphql_declare('app.catalog_items');

insert into internal.definitions (kind, table_name, singular, plural, key_column, fixed_columns, max_count,
                                  create_order, promoted_as, refs, promoted_refs, declared_in)
values ('catalog_item', 'app.catalog_items', 'item', 'items', 'key', '{key,item_type}', 5000, 40, 'catalog',
   '[{"path": "$.catalog_item_prices[*].currency_code", "kind": "currency", "by": "key"},
     {"path": "$.bundle_contents[*].catalog_items.key", "kind": "catalog_item", "by": "key"}]',
   -- an item is copied in the form in which it is created
   '[{"path": "$.prices[*].currency_code", "kind": "currency", "by": "key"},
     {"path": "$.bundle_contents[*].content_item_key", "kind": "catalog_item", "by": "key"}]',
   current_setting('trellis.file'));
select internal.definition_declare('catalog_item');
