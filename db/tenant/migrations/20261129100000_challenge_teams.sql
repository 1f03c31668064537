-- migrate:up
alter table app.challenges
  add column team_mode text not null default 'none' constraint challenges_team_mode_known check (team_mode in ('none', 'group'));

-- no foreign keys: a group that goes must not wait for, nor write, rows of users whom nobody locked; the end of a challenge keeps its teams
alter table app.challenge_participants add column group_id uuid;
comment on column app.challenge_participants.group_id is
  'The team, in a challenge of teams: a group that the user is in, or was in when the challenge ended. Null: none yet.';
-- serves the sum of a team, and whom of it to reward
create index challenge_participants_of_team on app.challenge_participants (challenge_id, group_id) include (app_user_id, progress, status)
  where group_id is not null;

create table app.challenge_teams (
  challenge_id uuid not null references app.challenges on delete cascade,
  group_id     uuid not null,
  reached_at   timestamptz not null default internal.now(),
  primary key (challenge_id, group_id)
);
comment on table app.challenge_teams is 'Which teams came to the goal of a challenge, for good: their members are completed and rewarded by and by.';

-- migrate:down
drop table app.challenge_teams;
drop index app.challenge_participants_of_team;
alter table app.challenge_participants drop column group_id;
alter table app.challenges drop column team_mode;
