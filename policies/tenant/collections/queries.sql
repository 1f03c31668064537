alter table app.collection_keys enable row level security;

create policy "users read their own keys" on app.collection_keys for select to app_user
  using (caller = (select internal.idempotency_caller()));
create policy "users store keys of their own" on app.collection_keys for insert to app_user
  with check (caller = (select internal.idempotency_caller()));
create policy "server keys read their keys" on app.collection_keys for select to app_server
  using (caller = (select internal.idempotency_caller()));
create policy "server keys store keys" on app.collection_keys for insert to app_server
  with check (caller = (select internal.idempotency_caller()));
create policy "administrators read their keys" on app.collection_keys for select to app_admin
  using (caller = (select internal.idempotency_caller()));
create policy "administrators store keys" on app.collection_keys for insert to app_admin
  with check (caller = (select internal.idempotency_caller()));

grant select, insert on app.collection_keys to app_user, app_server, app_admin;

grant execute on function internal.collection_type, internal.collection_value_problem, internal.bigint_json,
  internal.numeric_json, internal.double_json, internal.average_json, internal.double_sum_sql, internal.bigints_json,
  internal.numerics_json, internal.like_pattern, internal.like_contains, internal.etag, internal.vector_distance,
  internal.collection_definition, internal.collection_column, internal.collection_refuse,
  internal.collection_refuse_column, internal.collection_place, internal.collection_param,
  internal.collection_filter_sql, internal.collection_leaf_sql, internal.collection_op_suits,
  internal.collection_leaf_problem, internal.collection_compare_sql, internal.millisecond_sql,
  internal.collection_json_leaf_sql, internal.collection_where_sql, internal.collection_output_sql,
  internal.collection_select_check, internal.collection_include_tree, internal.collection_outputs,
  internal.collection_outputs_sql, internal.collection_raw_output, internal.collection_raw_sql,
  internal.collection_key_of, internal.collection_include_sql, internal.collection_include_refused,
  internal.collection_included_ids, internal.collection_with_included, internal.collection_version_sql,
  internal.collection_statement_sql, internal.collection_write_condition_of, internal.collection_group,
  internal.collection_group_sql, internal.collection_group_role, internal.collection_search_sql,
  internal.collection_conditions_sql, internal.collection_order, internal.collection_page_sql,
  internal.collection_reads_by_group, internal.collection_page_size, internal.collection_is_far,
  internal.collection_find_sql, internal.collection_count_sql, internal.collection_row_sql,
  internal.collection_group_by_sql, internal.collection_aggregate_column, internal.collection_aggregate_columns,
  internal.collection_aggregate_sql, internal.collection_vector_order_sql, internal.collection_nearest_sql,
  internal.collection_data_columns, internal.collection_record_sql, internal.collection_patterns,
  internal.collection_gate_sql, internal.collection_answer_sql, internal.collection_key_sql,
  internal.collection_owner_sql, internal.collection_insert_sql, internal.collection_expect,
  internal.collection_unique_index, internal.collection_conflict_sql, internal.collection_batch_sql,
  internal.collection_delete_sql, internal.collection_restore_sql, internal.collection_target_sql,
  internal.collection_patch_sql, internal.collection_operators_sql, internal.collection_operator_sql,
  internal.collection_if_sql, internal.collection_match_sql, internal.collection_compile, internal.collection_values,
  internal.collection_run, internal.collection_readable_sql, internal.collection_unreadable_column,
  internal.collection_cast_problem, internal.collection_check_values, internal.collection_record_problem,
  internal.collection_constraint_refusal, internal.collection_policy_refusal, internal.collection_role_missing,
  internal.collection_trigger_refusal, internal.collection_explain_error, internal.collection_explain_nothing,
  internal.collection_replay, internal.collection_resolve, internal.collection_operation,
  internal.collection_lock_owners, internal.collection_lock_rows, internal.collection_lock_ids,
  internal.collection_lock_values, internal.collection_explain, api.collection_statement, api.collection_explain,
  api.collection_transaction to app_user, app_server, app_admin;
grant execute on function internal.collection_scans, api.collection_plan to app_user, app_admin;
grant execute on function internal.my_group_ids to app_server, app_admin;
-- what the triggers of references call as the writer
grant execute on function internal.collection_references, internal.collection_reference_refusal to app_user;
grant execute on function internal.collection_row_may_go to app_admin;
grant execute on function internal.purge__collections to app_worker;
