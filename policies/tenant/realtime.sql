-- Users reach all of this through functions alone.
alter table app.realtime_servers enable row level security;
alter table app.realtime_connections enable row level security;
alter table app.realtime_channels enable row level security;
alter table app.realtime_publications enable row level security;
alter table app.realtime_events enable row level security;
alter table app.realtime_presences enable row level security;
alter table app.realtime_readers enable row level security;
alter table app.realtime_tickets enable row level security;
alter table app.realtime_boards enable row level security;
alter table app.realtime_places enable row level security;
alter table app.realtime_rooms enable row level security;

create policy "administrators read the rules for rooms" on app.realtime_rooms for select to app_admin using (true);
grant select on app.realtime_rooms to app_admin;

-- conditions of triggers run as whoever writes
grant select on sequence app.realtime_subscribed to app_anon, app_user, app_server, app_admin, app_auth, app_worker;
grant execute on function internal.has_subscribers to app_anon, app_user, app_server, app_admin, app_auth, app_worker;

grant execute on function internal.realtime_authorize, api.realtime_open, api.realtime_subscribe, api.realtime_leave,
  api.realtime_check, api.realtime_publish, api.presence_set, api.realtime_ticket_add to app_user;
grant execute on function api.realtime_send to app_user, app_server;
grant execute on function api.realtime_ticket_take to app_auth;
grant execute on function internal.realtime_rooms_json, api.realtime_broadcast, api.realtime_rooms_put,
  api.realtime_stats to app_admin;
grant execute on function internal.realtime_close, internal.purge__realtime, internal.writing_transactions,
  api.realtime_tail, api.realtime_heartbeat, api.realtime_close, api.realtime_running, api.realtime_boards,
  api.realtime_matches to app_worker;

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.realtime_connections', 'app_user_id', 'realtime_connections', null,
   array['id', 'server_id', 'app_user_id', 'opened_at'],
   null, 'end', 'cascade', 'which connections are open at this moment', current_setting('trellis.file')),
  ('app.realtime_presences', 'app_user_id', 'realtime_presences', null,
   array['channel', 'connection_id', 'app_user_id', 'state', 'joined_at'],
   null, 'end', 'cascade', 'what an open connection says of itself at this moment', current_setting('trellis.file')),
  ('app.realtime_readers', 'app_user_id', 'realtime_readers', null, array['channel', 'connection_id', 'app_user_id'],
   null, 'end', 'cascade', 'what an open connection listens to at this moment', current_setting('trellis.file')),
  ('app.realtime_places', 'app_user_id', 'realtime_places', null,
   array['leaderboard_id', 'app_user_id', 'run_key', 'score', 'rank'],
   null, 'end', 'cascade', 'what a subscriber was told last of an entry, which is exported itself',
   current_setting('trellis.file')),
  ('app.realtime_tickets', 'app_user_id', 'realtime_tickets', null,
   array['hash', 'app_user_id', 'credential', 'expires_at'],
   null, 'end', 'cascade', 'a credential of one minute', current_setting('trellis.file'));
