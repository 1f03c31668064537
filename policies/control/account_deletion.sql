grant execute on function api.account_delete to control_developer;
