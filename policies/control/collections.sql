grant execute on function internal.collection_operation, api.collection_operation to control_developer;
