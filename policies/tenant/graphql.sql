-- names are the server's: it makes them with the rules of the generator
alter table app.graphql_names enable row level security;
grant execute on function internal.graphql_tables to app_dashboard, app_worker;
grant execute on function internal.graphql_name to app_admin;
grant execute on function api.graphql_tables, api.graphql_names_keep to app_worker;
