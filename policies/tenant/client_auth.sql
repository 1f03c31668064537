grant execute on function internal.has_identity, internal.sign_in, api.auth_anonymous, api.auth_email_signup,
  api.auth_email_password, api.auth_email_login, api.auth_refresh, api.auth_logout, api.auth_session
  to app_auth;
