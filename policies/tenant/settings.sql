alter table app.settings enable row level security;

create policy "administrators read the settings" on app.settings for select to app_admin using (true);

grant select on app.settings to app_admin;
grant execute on function internal.setting to app_anon, app_user, app_server, app_admin, app_auth, app_worker;
