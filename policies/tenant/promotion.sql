grant execute on function
  internal.promotion_kept_back, internal.promotion_references, internal.promotion_key_column, internal.challenge_promoted, internal.catalog_item_promoted,
  internal.promotion_rows, internal.promotion_names, internal.promotion_named, internal.promotion_kinds, internal.promotion_definitions,
  internal.promotion_fitting, internal.promotion_kinds_named, internal.promotion_diff, internal.promotion_compared, api.promotion_export, api.promotion_plan
  to app_admin;
