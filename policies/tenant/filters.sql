grant execute on function internal.is_storable_json, internal.json_size, internal.json_gain, internal.filter_compare,
  internal.filter_is_listed, internal.filter_is_like, internal.filter_truth, internal.filter_matches,
  internal.filter_leaf_problem, internal.json_elements_exceed, internal.filter_node_problem, internal.filter_check,
  internal.filter_problem, internal.filter_compare_sql, internal.json_items, internal.json_texts,
  internal.json_singletons to app_user, app_server, app_admin, app_auth, app_worker;
grant execute on function internal.is_storable_json, internal.json_size, internal.json_gain to app_anon;
