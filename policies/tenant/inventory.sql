alter table app.inventory_stacks enable row level security;
alter table app.inventory_ledger_rows enable row level security;

create policy "users read their own stacks" on app.inventory_stacks for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every stack" on app.inventory_stacks for select to app_admin using (true);
create policy "administrators read every movement of items" on app.inventory_ledger_rows for select to app_admin
  using (true);

-- only definer functions write these tables
grant select on app.inventory_stacks to app_user, app_admin;
grant select on app.inventory_ledger_rows to app_admin;
grant execute on function internal.inventory_item_json, internal.inventory_json, internal.inventory_transact,
  api.inventory_grant to app_user, app_admin;
grant execute on function internal.inventory_key, internal.inventory_set_metadata, internal.inventory_own_stack,
  api.inventory_list, api.inventory_get, api.inventory_consume, api.inventory_patch to app_user;
grant execute on function api.inventory_revoke, internal.inventory_page, api.inventory_all,
  internal.inventory_movement_json, internal.inventory_movements, api.inventory_ledger to app_admin;
grant execute on function api.inventory_expire to app_worker;

select internal.graphql_declare('app.inventory_ledger_rows');
select internal.graphql_declare('app.inventory_stacks');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.inventory_stacks', 'app_user_id', 'inventory',
   array['id', 'app_user_id', 'catalog_item_id', 'quantity', 'expires_at', 'metadata', 'source_type', 'source_id',
         'created_at', 'updated_at', 'expired_at'],
   'inventory', 'add', 'cascade', current_setting('trellis.file')),
  ('app.inventory_ledger_rows', 'app_user_id', 'inventory_ledger',
   array['id', 'app_user_id', 'stack_id', 'catalog_item_id', 'change', 'quantity_after', 'kind', 'reason',
         'source_type', 'source_id', 'created_at'],
   'inventory', 'with app.inventory_stacks', 'cascade', current_setting('trellis.file'));
