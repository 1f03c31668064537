grant execute on function api.mail_sender, api.mail_take to control_worker;
grant execute on function api.mail_from_check, internal.project_is_sandbox, internal.mail_to_members,
  api.mail_to_check to control_developer;
