-- migrate:up
-- Each statement parses and compiles the checks of its table anew, some 40 us each. These tables are written by definer functions alone, which take
-- the words from literals and the figures within bounds; names of events are checked where they come in.
alter table app.engagement_events drop constraint engagement_events_name_1_to_255;
alter table app.engagement_events drop constraint engagement_events_source_known;
alter table app.xp_transactions drop constraint xp_transactions_source_known;
alter table app.xp_totals drop constraint xp_totals_total_within_bounds;
alter table app.streak_periods drop constraint streak_periods_source_known;
alter table app.challenge_participants drop constraint challenge_participants_status_known;
-- users are locked by whoever writes here, and a trigger on app.users takes these rows with them
alter table app.engagement_events drop constraint engagement_events_app_user_id_fkey;
-- serves no route: the distribution of levels reads every total anyway. Without it a total is updated in place (HOT)
drop index app.xp_totals_total;
-- nobody asks for a change by its id
alter table app.leaderboard_changes drop constraint leaderboard_changes_pkey;
-- room for updates in place
alter table app.user_event_counters set (fillfactor = 85);
alter table app.xp_totals set (fillfactor = 85);
alter table app.xp_rule_days set (fillfactor = 85);
alter table app.streak_periods set (fillfactor = 85);

-- migrate:down
alter table app.streak_periods reset (fillfactor);
alter table app.xp_rule_days reset (fillfactor);
alter table app.xp_totals reset (fillfactor);
alter table app.user_event_counters reset (fillfactor);
alter table app.leaderboard_changes add primary key (id);
create index xp_totals_total on app.xp_totals (total);
alter table app.engagement_events add constraint engagement_events_app_user_id_fkey foreign key (app_user_id) references app.users on delete cascade;
alter table app.challenge_participants
  add constraint challenge_participants_status_known check (status in ('in_progress', 'completed', 'left'));
alter table app.streak_periods
  add constraint streak_periods_source_known check (source in ('event', 'freeze', 'pause', 'manual', 'restore'));
alter table app.xp_totals add constraint xp_totals_total_within_bounds check (total between 0 and 1000000000000000);
alter table app.xp_transactions add constraint xp_transactions_source_known
  check (source in ('event', 'achievement', 'challenge', 'league', 'reward', 'admin', 'merge'));
alter table app.engagement_events add constraint engagement_events_source_known check (source in ('client', 'server', 'webhook', 'system'));
alter table app.engagement_events add constraint engagement_events_name_1_to_255
  check (char_length(event_name) between 1 and 255 and event_name = btrim(event_name));
