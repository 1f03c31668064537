grant execute on function api.achievements_backfill_start, internal.achievements_operation to control_developer;
