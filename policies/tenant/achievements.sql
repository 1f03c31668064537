alter table app.achievements enable row level security;
select internal.checks_declare('app.achievements');
alter table app.user_achievements enable row level security;
alter table app.achievement_backfills enable row level security;

create policy "users read achievements" on app.achievements for select to app_user using (true);
create policy "administrators read achievements" on app.achievements for select to app_admin using (true);
create policy "administrators add achievements" on app.achievements for insert to app_admin with check (true);
create policy "administrators change achievements" on app.achievements for update to app_admin using (true)
  with check (true);
create policy "administrators delete achievements" on app.achievements for delete to app_admin using (true);
create policy "users read their own unlocks" on app.user_achievements for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every unlock" on app.user_achievements for select to app_admin using (true);

grant select on app.achievements, app.user_achievements to app_user, app_admin;

grant execute on function internal.achievement_days, api.achievements_daily to app_admin;
grant execute on function internal.achievement_rarity to app_user, app_admin;
grant execute on function internal.achievement_of_user, internal.achievements_shown,
  api.achievements_list, api.achievement_get, api.achievements_unseen, api.achievements_seen, api.user_achievements
  to app_user;
grant execute on function internal.achievement_find, internal.achievement_check, internal.achievement_criteria_check,
  internal.achievement_criteria, internal.user_achievement_json, internal.achievement_adjust,
  internal.achievement_dry_run, api.achievement_grant, api.achievement_revoke, api.achievement_backfill_check,
  api.achievement_dry_run, internal.achievement_holder_json, internal.is_achievement_held,
  internal.achievement_users_page, api.achievement_users, api.achievement_stats to app_admin;
grant execute on function internal.users_number, api.achievements_backfill_step, api.achievements_users_total,
  api.achievements_count to app_worker;

select internal.graphql_declare('app.achievements');
select internal.graphql_declare('app.user_achievements');

insert into internal.user_data
  (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, declared_in)
values
  ('app.user_achievements', 'app_user_id', 'achievements',
   array['app_user_id', 'achievement_id', 'unlocked_at', 'source', 'seen_at', 'revoked_at'],
   'achievements', 'union, the earlier unlocked_at', 'cascade', current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, order_by, is_descending,
                                  fixed_columns, state_columns, max_count,
                                  create_order, refs, declared_in)
values
  ('achievement', 'app.achievements', 'achievement', 'achievements', 'key', 'id', '{sort_order,id}', false, '{key}',
   '{unlocks,users,counted_at}', 500, 30,
   '[{"path": "$.criteria.streak_definition_id", "kind": "streak_definition", "by": "id"}]',
   current_setting('trellis.file'));
select internal.definition_declare('achievement');

insert into internal.feed_events (action, event_name, target_property, group_property, shown, declared_in)
values ('achievement.unlocked', 'svc.achievement.unlocked', 'achievement_id', null, '{key,name,icon_url}',
        current_setting('trellis.file'));
