grant execute on function api.mail_sender to control_worker;
grant execute on function api.mail_from_check to control_developer;
