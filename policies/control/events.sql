grant execute on function api.events_operation_start, internal.events_operation to control_developer;
