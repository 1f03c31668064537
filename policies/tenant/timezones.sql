alter table app.timezones enable row level security;

create policy "everybody reads time zones" on app.timezones for select
  to app_anon, app_user, app_server, app_admin, app_auth, app_worker using (true);

grant select on app.timezones to app_anon, app_user, app_server, app_admin, app_auth, app_worker;
grant execute on function internal.is_timezone to app_anon, app_user, app_server, app_admin, app_auth, app_worker;
