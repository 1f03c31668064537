grant execute on function api.leaderboards_rebuild_start, internal.leaderboards_operation to control_developer;
