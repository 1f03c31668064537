-- migrate:up
create type internal.streak_plan as (
  ids          uuid[],
  has_filters  boolean
);
comment on type internal.streak_plan is 'The streaks that an event feeds; has_filters: some look at its properties.';
create type internal.xp_plan as (
  ids          uuid[],
  is_fixed     boolean,
  keys         text[],
  amounts      bigint[],
  wished       bigint[],
  clips        text[]
);
comment on type internal.xp_plan is
  'The rules of an event. is_fixed: whatever the event, they give these amounts, in the order of their keys, for none has a condition, a cap or a boost.';
create type internal.achievement_plan as (
  counted      uuid[],
  targets      numeric[],
  others       uuid[]
);
comment on type internal.achievement_plan is 'The achievements that an event may reach: those that count all events of its name, with their targets, and others.';

create table app.event_plans (
  event_name   text primary key,
  streaks      internal.streak_plan,
  xp           internal.xp_plan,
  challenges   boolean,
  achievements internal.achievement_plan,
  leaderboards uuid[],
  referrals    boolean,
  segments     uuid[],
  flags        uuid[],
  webhooks     uuid[]
) with (toast_tuple_target = 8160);
comment on table app.event_plans is
  'What each area has to do for an event of this name, computed from its definitions: one row is read for an event, and a name without a row moves nothing. A column is
   named after its area; null is nothing. Times and conditions of definitions are checked for each event.';
-- serves the challenges that an event counts for, however many of that name are over
create index challenges_counting on app.challenges (event_name, end_at) where is_active and goal_type = 'event_count';

-- migrate:down
drop index app.challenges_counting;
drop table app.event_plans;
drop type internal.achievement_plan;
drop type internal.xp_plan;
drop type internal.streak_plan;
