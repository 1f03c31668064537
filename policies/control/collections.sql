grant execute on function api.collection_operation to control_developer;
