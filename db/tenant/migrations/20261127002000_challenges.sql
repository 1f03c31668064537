-- migrate:up
create table app.challenges (
  id                    uuid primary key default internal.new_id(),
  name                  text not null constraint challenges_name_1_to_200 check (char_length(name) between 1 and 200),
  description           text constraint challenges_description_at_most_2000 check (char_length(description) <= 2000),
  start_at              timestamptz not null,
  end_at                timestamptz not null,
  goal_type             text not null constraint challenges_goal_type_known
    check (goal_type in ('event_count', 'xp_earned', 'streak_maintained')),
  goal_value            bigint not null constraint challenges_goal_value_1_to_1000000000000
    check (goal_value between 1 and 1000000000000),
  event_name            text constraint challenges_event_name_form
                          check (char_length(event_name) between 1 and 255 and event_name !~ '^\s|\s$'),
  reward_xp             bigint not null default 0 constraint challenges_reward_xp_0_to_1000000000
    check (reward_xp between 0 and 1000000000),
  reward_achievement_id uuid references app.achievements on delete set null,
  reward                jsonb,
  segment_id            uuid,
  recurrence            text not null default 'none' constraint challenges_recurrence_known
    check (recurrence in ('none', 'daily', 'weekly', 'monthly')),
  parent_id             uuid references app.challenges on delete set null,
  is_active             boolean not null default true,
  created_at            timestamptz not null default internal.now(),
  updated_at            timestamptz not null default internal.now(),
  team_mode             text not null default 'none' constraint challenges_team_mode_known
    check (team_mode in ('none', 'group')),
  first_start_at        timestamptz,
  first_end_at          timestamptz,
  turn                  int,
  constraint challenges_end_after_start check (end_at > start_at),
  constraint challenges_event_name_with_event_count check (event_name is null or goal_type = 'event_count'),
  -- one instance for each turn, however often it is made
  constraint challenges_one_per_turn unique (parent_id, start_at),
  constraint challenges_name_is_one_line check (internal.is_line(name))
);
comment on column app.challenges.event_name is 'Null on legacy challenges of event_count, which never complete.';
comment on column app.challenges.first_start_at is
  'Of a turn of a monthly challenge: the beginning of the window that the turns are counted from, which is turn 0. A
   short month may move a turn to another day.';
comment on column app.challenges.first_end_at is 'As first_start_at, the end.';
create index challenges_newest on app.challenges (start_at desc, id desc);
-- serves the look-up at every batch of events
create index challenges_watching on app.challenges (end_at) where is_active;
create index challenges_reward_achievement on app.challenges (reward_achievement_id);
-- serves the challenges that an event counts for, however many of that name are over
create index challenges_counting on app.challenges (event_name, end_at) where is_active and goal_type = 'event_count';

create table app.challenge_participants (
  challenge_id uuid not null references app.challenges on delete cascade,
  app_user_id  uuid not null references app.users on delete cascade,
  joined_at    timestamptz not null default internal.now(),
  progress     bigint not null default 0,
  reached_at   timestamptz not null default internal.now(),
  status       text not null default 'in_progress',
  completed_at timestamptz,
  -- no foreign keys: a group that goes must not wait for, nor write, rows of users whom nobody locked; the end of a
  -- challenge keeps its teams
  group_id     uuid,
  primary key (app_user_id, challenge_id)
);
comment on column app.challenge_participants.reached_at is 'When progress came to what it is: who was first is ahead.';
comment on column app.challenge_participants.group_id is
  'The team, in a challenge of teams: a group that the user is in, or was in when the challenge ended. Null: none yet.';
-- serves participants by progress, and ranks
create index challenge_participants_by_progress on app.challenge_participants (challenge_id, progress desc, reached_at,
                                        app_user_id);
-- serves the sum of a team, and whom of it to reward
create index challenge_participants_of_team on app.challenge_participants (challenge_id, group_id) include (app_user_id,
                                        progress, status)
  where group_id is not null;
-- serve the counts of days
create index challenge_participants_joined on app.challenge_participants using brin (joined_at)
  with (pages_per_range = 32, autosummarize = on);
create index challenge_participants_completed on app.challenge_participants using brin (completed_at)
  with (pages_per_range = 32, autosummarize = on);

create table app.challenge_recounts (
  operation_id uuid primary key,
  challenge_id uuid not null references app.challenges on delete cascade,
  cursor_id    uuid,
  done         bigint not null default 0,
  changed      bigint not null default 0,
  is_over      boolean not null default false,
  created_at   timestamptz not null default internal.now()
);
comment on table app.challenge_recounts is 'How far a recount is, noted in the transaction of each step.';
create index challenge_recounts_of_challenge on app.challenge_recounts (challenge_id);

create table app.challenge_teams (
  challenge_id uuid not null references app.challenges on delete cascade,
  group_id     uuid not null,
  reached_at   timestamptz not null default internal.now(),
  primary key (challenge_id, group_id)
);
comment on table app.challenge_teams is
  'Which teams came to the goal of a challenge, for good: their members are completed and rewarded by and by.';

-- migrate:down
drop table app.challenge_teams;
drop table app.challenge_recounts;
drop table app.challenge_participants;
drop table app.challenges;
