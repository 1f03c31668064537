-- Only api.rest_prepare and what follows collections read this table.
alter table app.rest_access enable row level security;

-- app_rest has what app_user has by membership: see sql/cluster/roles.sql
grant usage on schema rest to app_rest, app_server, app_anon;
grant usage on schema rest_answers to app_rest, app_server, app_anon;
grant execute on all functions in schema rest_answers to app_rest, app_server, app_anon;
grant execute on function internal.rest_begin to app_rest, app_server, app_anon;
grant execute on function api.rest_prepare, api.rest_reference to app_worker;
