alter table app.collections enable row level security;
alter table app.collection_columns enable row level security;
alter table app.collection_indexes enable row level security;

-- definitions are readable by all callers of the project: requests are compiled against them
create policy "users read definitions" on app.collections for select to app_user using (true);
create policy "users read columns" on app.collection_columns for select to app_user using (true);
create policy "users read indexes" on app.collection_indexes for select to app_user using (true);
create policy "server keys read definitions" on app.collections for select to app_server using (true);
create policy "server keys read columns" on app.collection_columns for select to app_server using (true);
create policy "server keys read indexes" on app.collection_indexes for select to app_server using (true);
create policy "administrators read definitions" on app.collections for select to app_admin using (true);
create policy "administrators read columns" on app.collection_columns for select to app_admin using (true);
create policy "administrators read indexes" on app.collection_indexes for select to app_admin using (true);
create policy "workers read definitions" on app.collections for select to app_worker using (true);
create policy "workers read columns" on app.collection_columns for select to app_worker using (true);
create policy "workers read indexes" on app.collection_indexes for select to app_worker using (true);

grant select on app.collections, app.collection_columns,
  app.collection_indexes to app_user, app_server, app_admin, app_worker;

grant execute on function internal.collection_find, internal.collection_columns_of, internal.collection_column_names
  to app_user, app_server, app_admin, app_worker;
grant execute on function internal.collection_create, internal.collection_json, internal.collections_page,
  internal.collection_column_json, internal.collection_index_json, internal.collection_rows_estimate,
  internal.json_number, internal.collection_plan_json, internal.collection_update, internal.collection_column_add,
  internal.collection_index_add, api.collections_list, api.collection_get, api.collection_column_get,
  api.collection_create, api.collection_update, api.collection_drop, api.collection_column_add,
  api.collection_column_change, api.collection_column_drop, api.collection_index_add, api.collection_index_drop,
  api.collection_index_begin, internal.collection_type_schema, internal.collection_type_text, internal.collection_types,
  api.collections_types to app_admin;
grant execute on function api.collection_index_end to app_worker;

grant execute on function internal.collection_without_nulls, internal.promotion_rows__collection,
  internal.promotion_parts__collection, internal.collection_parts_merged, internal.promotion_merged__collection,
  internal.promotion_refusal__collection, internal.promotion_write__collection, internal.promotion_lock__collection,
  internal.promotion_rehearse__collection, internal.promotion_index_check, internal.collection_part_completed,
  internal.collection_completed, internal.collection_index_named to app_admin;
select internal.graphql_declare('app.collection_columns');
select internal.graphql_declare('app.collection_indexes');
select internal.graphql_declare('app.collections');

insert into internal.composed_definitions (kind, promoted_as, singular, plural, fields, fixed_columns, max_count,
                                           create_order, refs, is_additive, is_confirmed, declared_in)
values
  ('collection', 'collections', 'collection', 'collections',
   '{"description": ["string"], "owner_scope": ["string"], "read_policy": ["string"], "write_policy": ["string"], '
   '"sync": ["boolean"], "realtime": ["boolean"],
     "columns": ["array"], "indexes": ["array"]}',
   '{owner_scope}', 200, 80, '[{"path": "$.columns[*].references.collection", "kind": "collection", "by": "key"}]',
   true, true, current_setting('trellis.file'));
