grant execute on function api.challenges_recompute_start, internal.challenges_operation to control_developer;
