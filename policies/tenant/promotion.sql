grant execute on function
  internal.promoted_as, internal.promotion_references, internal.promotion_key_column, internal.challenge_promoted,
    internal.catalog_item_promoted,
  internal.promotion_rows, internal.promotion_names, internal.promotion_named, internal.promotion_steps,
  internal.promotion_kinds,
  internal.promotion_definitions, internal.promotion_fitting, internal.promotion_kinds_named, internal.promotion_diff,
  internal.promotion_selection_check, internal.promotion_rehearse,
  internal.promotion_differences, internal.promotion_compared, internal.promotion_document_check,
  internal.promotion_hash, internal.promotion_plan,
  internal.promotion_id, internal.promotion_resolved, internal.promotion_function, internal.promotion_call,
  internal.promotion_write,
  internal.promotion_stored, internal.catalog_item_promote, internal.promotion_lock, internal.promotion_blocked,
  internal.promotion_refused, internal.promotion_step, internal.promotion_plans_hold, internal.promotion_plans_release,
  internal.promotion_run, internal.promotion_hook, internal.promotion_try,
  internal.promotion_composed, internal.promotion_composed_rows, internal.promotion_parts, internal.promotion_merged,
  internal.promotion_refusal, internal.promotion_composed_write,
  internal.promotion_composed_lock, internal.promotion_apply, internal.definition_hook, api.promotion_export,
  api.promotion_plan, api.promotion_apply, api.promotion_import
  to app_admin;
