alter table app.streak_definitions enable row level security;
select internal.checks_declare('app.streak_definitions');
alter table app.user_streaks enable row level security;
alter table app.streak_periods enable row level security;
alter table app.streak_pauses enable row level security;
alter table app.streak_freezes enable row level security;
alter table app.streak_milestones enable row level security;
alter table app.streak_timezones enable row level security;

create policy "users read definitions in use" on app.streak_definitions for select to app_user using (is_active);
create policy "administrators read definitions" on app.streak_definitions for select to app_admin using (true);
create policy "administrators add definitions" on app.streak_definitions for insert to app_admin with check (true);
create policy "administrators change definitions" on app.streak_definitions for update to app_admin using (true)
  with check (true);
create policy "administrators delete definitions" on app.streak_definitions for delete to app_admin using (true);

create policy "users read their own streaks" on app.user_streaks for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "users read their own periods" on app.streak_periods for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "users read their own pauses" on app.streak_pauses for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "users read their own gifts of freezes" on app.streak_freezes for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "users read their own moves" on app.streak_timezones for select to app_user
  using (app_user_id = (select internal.user_id()));

create policy "administrators read every streak" on app.user_streaks for select to app_admin using (true);
create policy "administrators read every period" on app.streak_periods for select to app_admin using (true);
create policy "administrators read every pause" on app.streak_pauses for select to app_admin using (true);
create policy "administrators read every gift of freezes" on app.streak_freezes for select to app_admin using (true);
create policy "administrators read every milestone" on app.streak_milestones for select to app_admin using (true);
create policy "administrators read every move" on app.streak_timezones for select to app_admin using (true);

grant select on app.streak_definitions, app.user_streaks, app.streak_periods, app.streak_pauses, app.streak_freezes,
  app.streak_timezones to app_user, app_admin;
grant select on app.streak_milestones to app_admin;

grant execute on function internal.streak_days_kept, internal.streak_days_broken, api.streak_daily to app_admin;
grant execute on function internal.period_number, internal.period_date, internal.period_key, internal.period_of_key,
  internal.local_midnight, internal.date_is_skipped, internal.zone_at, internal.recent_zone_changes,
  internal.streak_zone_of, internal.streak_zone_changes, internal.streak_deadline, internal.streak_place,
  internal.streak_period_at, internal.paused_periods, internal.streak_extent, internal.streak_fold,
  internal.streak_status, internal.streak_has_open_period, internal.streak_at_risk_hours, internal.streak_now,
  internal.streak_json, internal.streak_unstarted, internal.streak_today, internal.streak_history, internal.streak_find,
  internal.streak_not_found, internal.json_with, internal.streak_pause_set to app_user, app_admin;
grant execute on function internal.streak_qualify_now, internal.streak_pause_clear, api.streaks_list, api.streak_get,
  api.streak_qualify, api.streak_pause, api.streak_resume to app_user;
grant execute on function internal.streak_definition_json, internal.streak_rules_check, internal.streak_definition_with,
  internal.streak_definition_find, internal.streak_definition_check, internal.streak_definition_before_update,
  internal.streak_definition_after_write, internal.streak_definition_before_delete, internal.streak_statuses,
  internal.streak_users_of_status, internal.streak_figures, internal.streak_simulation, internal.count_within,
  internal.streak_of_user, internal.streak_replay, internal.streak_gift, internal.streak_restore,
  internal.streak_qualify_for, internal.user_streaks_json, internal.streak_definition_apply_time,
  internal.streak_users_lock, api.streak_users, api.streak_stats, api.streak_simulate, api.streak_user_freezes,
  api.streak_user_pause, api.streak_user_restore, api.streak_user_qualify to app_admin;
grant execute on function api.streaks_tick to app_worker;

select internal.graphql_declare('app.streak_definitions');
select internal.graphql_declare('app.streak_freezes');
select internal.graphql_declare('app.streak_milestones');
select internal.graphql_declare('app.streak_pauses');
select internal.graphql_declare('app.streak_periods');
select internal.graphql_declare('app.streak_timezones');
select internal.graphql_declare('app.user_streaks');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, exempt_reason, declared_in)
values
  ('app.user_streaks', 'app_user_id', 'streaks',
   array['app_user_id', 'streak_definition_id', 'freezes_initial', 'current_count', 'longest_count', 'started_on',
         'last_period',
         'covered_through', 'freezes', 'lapsed_count', 'lapsed_through', 'first_qualified_at', 'last_qualified_at',
         'created_at', 'updated_at',
         'next_check_at', 'risk_notified_through', 'lapse_notified_through'],
   'streaks', 'keep longer', 'cascade', null, current_setting('trellis.file')),
  ('app.streak_periods', 'app_user_id', 'streak_periods',
   array['app_user_id', 'streak_definition_id', 'starts_on', 'source', 'count', 'open_1', 'open_2', 'open_3', 'taken',
         'needed',
         'earn_every', 'freezes_max', 'qualified_at'],
   'streaks', 'with app.user_streaks', 'cascade', null, current_setting('trellis.file')),
  ('app.streak_pauses', 'app_user_id', 'streak_pauses',
   array['app_user_id', 'streak_definition_id', 'starts_on', 'ends_on', 'created_at'],
   'streaks', 'with app.user_streaks', 'cascade', null, current_setting('trellis.file')),
  ('app.streak_freezes', 'app_user_id', 'streak_freezes',
   array['id', 'app_user_id', 'streak_definition_id', 'applies_from', 'amount', 'freezes_max', 'source_type',
         'source_id', 'granted_at'],
   'streaks', 'with app.user_streaks', 'cascade', null, current_setting('trellis.file')),
  ('app.streak_milestones', 'app_user_id', 'streak_milestones',
   array['id', 'app_user_id', 'streak_definition_id', 'count', 'reached_on', 'reached_at'],
   'streaks', 'with app.user_streaks', 'cascade', null, current_setting('trellis.file')),
  ('app.streak_timezones', 'app_user_id', 'streak_timezones',
   array['app_user_id', 'moved_at', 'from_zone', 'to_zone'],
   'streaks', 'keep survivor', 'cascade', null, current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, not_found_code, fixed_columns,
                                  max_count, create_order, promoted_as, declared_in)
values ('streak_definition', 'app.streak_definitions', 'streak', 'streaks', 'key', 'STREAK_NOT_FOUND', '{key}', 50, 20,
        'streaks', current_setting('trellis.file'));
select internal.definition_declare('streak_definition');

insert into internal.feed_events (action, event_name, target_property, group_property, shown, declared_in)
values ('streak.milestone', 'svc.streak.milestone', 'streak_definition_id', null, '{key,name,count}',
        current_setting('trellis.file'));
