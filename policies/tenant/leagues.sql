alter table app.leagues enable row level security;
select internal.checks_declare('app.leagues');
alter table app.league_runs enable row level security;
alter table app.league_cohorts enable row level security;
alter table app.league_entries enable row level security;
alter table app.league_tiers enable row level security;

create policy "administrators read leagues" on app.leagues for select to app_admin using (true);
create policy "administrators add leagues" on app.leagues for insert to app_admin with check (true);
create policy "administrators change leagues" on app.leagues for update to app_admin using (true) with check (true);
create policy "administrators delete leagues" on app.leagues for delete to app_admin using (true);
create policy "administrators read runs of leagues" on app.league_runs for select to app_admin
  using (league_id = any ((select internal.league_ids())::uuid[]));
create policy "administrators read cohorts" on app.league_cohorts for select to app_admin
  using (run_id = any ((select internal.league_run_ids())::uuid[]));
create policy "administrators read every entry of leagues" on app.league_entries for select to app_admin
  using (league_id = any ((select internal.league_ids())::uuid[]));
create policy "users read their own entries of leagues" on app.league_entries for select to app_user
  using (app_user_id = (select internal.user_id()) and league_id = any ((select internal.league_ids())::uuid[]));

grant select on app.league_runs, app.league_cohorts to app_admin;
grant select on app.league_entries to app_admin, app_user;

grant execute on function internal.league_ids to app_user, app_admin;
grant execute on function internal.league_run_ids to app_admin;
grant execute on function api.leagues_list, api.league_get, api.league_seen, api.league_history to app_user;
grant execute on function internal.league_points_problem, internal.league_tiers_problem,
  internal.league_rewards_problem, internal.league_check, internal.league_runs_close,
  internal.league_runs_disown, internal.league_runs_page, internal.league_cohorts_page,
  internal.league_close, internal.league_user_put, internal.league_stats, api.league_runs, api.league_cohorts,
  api.league_close, api.league_user_put, api.league_stats to app_admin;
grant execute on function internal.purge__leagues, api.league_turn, api.league_recount to app_worker;

select internal.graphql_declare('app.leagues');
select internal.graphql_declare('app.league_runs', hidden => '{cursor_id,fence}');
select internal.graphql_declare('app.league_cohorts', hidden => '{lane}');
select internal.graphql_declare('app.league_entries');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.league_entries', 'app_user_id', 'leagues',
   array['run_id', 'app_user_id', 'league_id', 'began_at', 'cohort_id', 'tier', 'points', 'reached_at', 'is_hidden',
         'result', 'final_rank', 'is_seen', 'created_at'],
   'leagues', 'the place of the survivor, with the points of both', 'cascade', current_setting('trellis.file')),
  ('app.league_tiers', 'app_user_id', 'league_tiers',
   array['league_id', 'app_user_id', 'ladder', 'created_at'],
   'leagues', 'with app.league_entries', 'cascade', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, fixed_columns, state_columns,
                                  max_count, create_order, declared_in)
values
  ('league', 'app.leagues', 'league', 'leagues', 'key', '{key}', '{watches}', 10, 60,
   current_setting('trellis.file'));
select internal.definition_declare('league');
