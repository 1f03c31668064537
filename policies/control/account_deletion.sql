grant execute on function internal.account_remove, api.account_delete to control_developer;
