alter table app.leaderboards enable row level security;
select internal.checks_declare('app.leaderboards');
alter table app.leaderboard_runs enable row level security;
alter table app.leaderboard_entries enable row level security;
alter table app.leaderboard_buckets enable row level security;
alter table app.leaderboard_bucket_groups enable row level security;
alter table app.leaderboard_changes enable row level security;
alter table app.leaderboard_folds enable row level security;

create policy "administrators read boards" on app.leaderboards for select to app_admin using (true);
create policy "administrators add boards" on app.leaderboards for insert to app_admin with check (true);
create policy "administrators change boards" on app.leaderboards for update to app_admin using (true) with check (true);
create policy "administrators delete boards" on app.leaderboards for delete to app_admin using (true);
create policy "administrators read runs" on app.leaderboard_runs for select to app_admin using (true);
create policy "administrators read every entry" on app.leaderboard_entries for select to app_admin using (true);
create policy "users read their own entries" on app.leaderboard_entries for select to app_user
  using (app_user_id = (select internal.user_id()));

grant select on app.leaderboard_runs to app_admin;
grant select on app.leaderboard_entries to app_admin, app_user;

grant execute on function internal.leaderboard_days, api.leaderboard_daily to app_admin;
grant execute on function api.leaderboard_get, api.leaderboard_me, api.leaderboards_list,
  api.leaderboard_submit to app_user;
grant execute on function internal.leaderboard_source_problem, internal.leaderboard_check,
  internal.leaderboard_before_delete, internal.leaderboard_runs_drop, internal.leaderboard_runs_close,
  internal.leaderboard_lock, internal.leaderboard_entry_put, internal.leaderboard_entry_delete,
  internal.leaderboard_import, internal.leaderboard_entries_page, internal.leaderboard_runs_page,
  internal.leaderboard_close, internal.leaderboard_anomalies, internal.leaderboard_is_open, internal.leaderboard_run_at,
  internal.leaderboard_period, api.leaderboard_entries, api.leaderboard_entry_put, api.leaderboard_entry_delete,
  api.leaderboard_import, api.leaderboard_runs, api.leaderboard_close, api.leaderboard_anomalies,
  api.leaderboard_rebuild_check to app_admin;
grant execute on function internal.leaderboard_fold,
  api.leaderboard_fold, internal.purge__leaderboards,
  api.leaderboard_rollover, api.leaderboard_notify, api.leaderboard_rebuild_step
  to app_worker;

select internal.graphql_declare('app.leaderboard_entries');
select internal.graphql_declare('app.leaderboard_runs',
  hidden => '{cursor_at,cursor_id,cursor_place,fence,operation_id,shadow_id}');
select internal.graphql_declare('app.leaderboards');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.leaderboard_entries', 'app_user_id', 'leaderboards',
   array['run_id', 'app_user_id', 'score', 'place', 'reached_at', 'submissions', 'metadata', 'is_hidden',
         'biggest_step', 'final_rank',
         'window_started_at', 'window_count', 'created_at'],
   'leaderboards', 'by the scoring of the board', 'cascade', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, fixed_columns, state_columns,
                                  max_count, create_order, refs, declared_in)
values
  ('leaderboard', 'app.leaderboards', 'leaderboard', 'leaderboards', 'key', '{key}', '{watches}', 100, 60,
   '[{"path": "$.segment_id", "kind": "segment", "by": "id"},
     {"path": "$.source.currency_code", "kind": "currency", "by": "key"},
     {"path": "$.source.streak_key", "kind": "streak_definition", "by": "key"}]',
   current_setting('trellis.file'));
select internal.definition_declare('leaderboard');
