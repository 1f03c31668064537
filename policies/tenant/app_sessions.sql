alter table app.app_sessions enable row level security;

create policy "users read their own app sessions" on app.app_sessions for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every app session" on app.app_sessions for select to app_admin using (true);

grant select on app.app_sessions to app_user, app_admin;
grant execute on function internal.app_session_json, internal.user_app_sessions_page, api.user_app_sessions
  to app_admin;
grant execute on function internal.app_session_end, internal.app_session_seconds to app_user, app_admin;
grant execute on function api.app_session_start, api.app_session_heartbeat, api.app_session_finish to app_user;
grant execute on function internal.app_sessions_figures, internal.app_session_line_json, internal.app_sessions_page,
  api.app_sessions_stats, api.app_sessions_list to app_admin;
grant execute on function api.app_sessions_timeout to app_worker;

select internal.graphql_declare('app.app_sessions');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.app_sessions', 'app_user_id', 'app_sessions',
   array['id', 'app_user_id', 'started_at', 'last_seen_at', 'ended_at', 'end_reason', 'platform', 'app_version',
         'os_version',
         'device_model', 'locale'],
   'sessions', 'move', 'cascade', current_setting('trellis.file'));
