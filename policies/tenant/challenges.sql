alter table app.challenges enable row level security;
select internal.checks_declare('app.challenges');
alter table app.challenge_participants enable row level security;
alter table app.challenge_teams enable row level security;
alter table app.challenge_recounts enable row level security;

create policy "administrators read challenges" on app.challenges for select to app_admin using (true);
create policy "administrators add challenges" on app.challenges for insert to app_admin with check (true);
create policy "administrators change challenges" on app.challenges for update to app_admin using (true)
  with check (true);
create policy "administrators delete challenges" on app.challenges for delete to app_admin using (true);
create policy "administrators read every participant" on app.challenge_participants for select to app_admin
  using (true);
create policy "users read their own participation" on app.challenge_participants for select to app_user
  using (app_user_id = (select internal.user_id()));

grant select on app.challenges, app.challenge_participants to app_admin;
grant select on app.challenge_participants to app_user;

grant execute on function internal.challenge_days_joined, internal.challenge_days_completed, api.challenge_daily
  to app_admin;
grant execute on function internal.challenge_status, internal.challenge_json, internal.participant_json,
  internal.participant_status to app_user, app_admin;
grant execute on function internal.challenge_for_me, internal.challenges_for_me, internal.my_challenge,
  internal.challenge_leaderboard_page, api.challenges_list, api.challenge_get, api.challenge_join, api.challenge_leave,
  api.challenge_leaderboard to app_user;
grant execute on function internal.challenge_find, internal.challenge_check, internal.challenge_listed,
  internal.challenge_limit_check, internal.challenge_simulation, api.challenge_participants,
  api.challenge_simulate to app_admin;
grant execute on function api.challenge_recur, api.challenges_recount_step, api.challenge_team_complete to app_worker;

select internal.graphql_declare('app.challenge_participants');
select internal.graphql_declare('app.challenges');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.challenge_participants', 'app_user_id', 'challenges',
   array['challenge_id', 'app_user_id', 'joined_at', 'progress', 'reached_at', 'status', 'completed_at', 'group_id'],
   'challenges', 'union, completed by one is completed', 'cascade', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, found_by, order_by, state_columns, create_order,
                                  refs, declared_in)
values
  ('challenge', 'app.challenges', 'challenge', 'challenges', 'id', '{start_at,id}', '{parent_id}', 50,
   '[{"path": "$.segment_id", "kind": "segment", "by": "id"}, {"path": "$.reward_achievement_id", "kind": '
   '"achievement", "by": "id"}]', current_setting('trellis.file'));
select internal.definition_declare('challenge');

insert into internal.feed_events (action, event_name, target_property, group_property, shown, declared_in)
values ('challenge.completed', 'svc.challenge.completed', 'challenge_id', null, '{name}',
        current_setting('trellis.file'));
