grant execute on function api.sign_in_settings to control_auth, control_worker;
