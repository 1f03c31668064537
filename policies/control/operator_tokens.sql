alter table app.operator_tokens enable row level security;
select internal.checks_declare('app.operator_tokens');

grant execute on function api.operator_token_check to control_auth;
grant execute on function internal.operator_token_status, internal.operator_token_json, internal.operator_token_make,
  api.operator_token_create, api.operator_token_list, api.operator_token_revoke, api.operator_token_introspect
  to control_developer;
