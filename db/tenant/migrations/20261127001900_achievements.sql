-- migrate:up
create table app.achievements (
  id          uuid primary key default internal.new_id(),
  key         text not null constraint achievements_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name        text not null constraint achievements_name_1_to_200 check (char_length(name) between 1 and 200),
  description text constraint achievements_description_at_most_2000 check (char_length(description) <= 2000),
  icon_url    text constraint achievements_icon_url_at_most_2000 check (char_length(icon_url) <= 2000),
  xp_reward   bigint not null default 0 constraint achievements_xp_reward_0_to_1000000000
    check (xp_reward between 0 and 1000000000),
  criteria    jsonb not null,
  is_hidden   boolean not null default false,
  sort_order  int not null default 0,
  is_active   boolean not null default true,
  unlocks     bigint not null default 0,
  users       bigint not null default 0,
  counted_at  timestamptz,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  constraint achievements_key_unique unique (key),
  constraint achievements_name_is_one_line check (internal.is_line(name))
);
comment on column app.achievements.unlocks is
  'How many of so many users had it when it was last counted: its rarity. At most an hour old.';
-- serves the lists
create index achievements_in_order on app.achievements (sort_order, id);
-- serves the look-up at every batch of events: what moves a value
create index achievements_watching on app.achievements ((criteria ->> 'type'), (criteria ->> 'event_name'))
  where is_active;

create table app.user_achievements (
  app_user_id    uuid not null references app.users on delete cascade,
  achievement_id uuid not null references app.achievements on delete cascade,
  unlocked_at    timestamptz not null default internal.now(),
  source         text not null constraint user_achievements_source_known
    check (source in ('criteria', 'grant', 'backfill', 'reward')),
  seen_at        timestamptz,
  revoked_at     timestamptz,
  primary key (app_user_id, achievement_id)
);
comment on table app.user_achievements is
  'Unlocks. A revoked one stays as a row, so that what it paid is not paid again.';
-- serves the users of an achievement, newest first
create index user_achievements_of_achievement on app.user_achievements (achievement_id, unlocked_at desc,
                                                                        app_user_id desc) where revoked_at is null;
create index user_achievements_achievement on app.user_achievements (achievement_id);
-- serves the counts of days
create index user_achievements_unlocked on app.user_achievements using brin (unlocked_at)
  with (pages_per_range = 32, autosummarize = on);

create table app.achievement_backfills (
  operation_id   uuid primary key,
  achievement_id uuid not null references app.achievements on delete cascade,
  cursor_id      uuid,
  done           bigint not null default 0,
  unlocked       bigint not null default 0,
  is_over        boolean not null default false,
  created_at     timestamptz not null default internal.now()
);
comment on table app.achievement_backfills is 'How far a backfill is, noted in the transaction of each step.';
create index achievement_backfills_of_achievement on app.achievement_backfills (achievement_id);

-- migrate:down
drop table app.achievement_backfills;
drop table app.user_achievements;
drop table app.achievements;
