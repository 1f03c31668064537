alter table app.segments enable row level security;
alter table app.segment_states enable row level security;
alter table app.segment_members enable row level security;
alter table app.segment_counts enable row level security;

create policy "administrators read segments" on app.segments for select to app_admin using (true);

grant select on app.segments to app_admin;
grant execute on function internal.segment_hold to app_admin;
grant execute on function internal.segment_may_ask, internal.segment_member, internal.segment_ids_of
  to app_user, app_server, app_admin, app_worker;

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, exempt_reason, declared_in)
values
  ('app.segment_members', 'app_user_id', 'segments', array['segment_id', 'app_user_id', 'entered_at'],
   null, 'move', 'cascade', null, current_setting('trellis.file'));
