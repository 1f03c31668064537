-- migrate:up
create table app.leagues (
  id                 uuid primary key default internal.new_id(),
  key                text not null constraint leagues_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name               text not null constraint leagues_name_1_to_200 check (char_length(name) between 1 and 200)
                       constraint leagues_name_is_one_line check (internal.is_line(name)),
  tiers              jsonb not null constraint leagues_tiers_is_list check (jsonb_typeof(tiers) = 'array'),
  cohort_size        int not null default 30 constraint leagues_cohort_size_5_to_100
                       check (cohort_size between 5 and 100),
  period             text not null default 'weekly' constraint leagues_period_known
                       check (period in ('daily', 'weekly', 'monthly')),
  timezone           text not null default 'UTC',
  points             jsonb not null default '{"type": "xp"}' constraint leagues_points_is_object
                       check (jsonb_typeof(points) = 'object'),
  min_points_to_join int not null default 1 constraint leagues_min_points_to_join_1_to_1000000
                       check (min_points_to_join between 1 and 1000000),
  inactive_relegates boolean not null default true,
  rewards            jsonb not null default '[]' constraint leagues_rewards_is_list
                       check (jsonb_typeof(rewards) = 'array'),
  watches            text[] not null default '{}',
  is_active          boolean not null default true,
  created_at         timestamptz not null default internal.now(),
  updated_at         timestamptz not null default internal.now(),
  constraint leagues_key_unique unique (key)
);
comment on table app.leagues is
  'Ladders of tiers: who plays is in a cohort of a tier for a run, and moves by a tier at its end. At most 10.';
comment on column app.leagues.watches is
  'Names of the events that give points, by the definition and by runs that are not settled; an empty text is XP.';

create table app.league_runs (
  id                 uuid primary key default internal.new_id(),
  league_id          uuid not null,
  run_key            text not null,
  period_key         text not null,
  starts_at          timestamptz not null,
  ends_at            timestamptz not null,
  takes_from         timestamptz not null,
  tiers              jsonb not null,
  cohort_size        int not null,
  points             jsonb not null,
  min_points_to_join int not null,
  inactive_relegates boolean not null,
  rewards            jsonb not null,
  closed_at          timestamptz,
  fence              xid8,
  is_warned          boolean not null default false,
  is_settled         boolean not null default false,
  cursor_id          uuid,
  created_at         timestamptz not null default internal.now(),
  constraint league_runs_key_unique unique (league_id, run_key),
  constraint league_runs_end_not_before_start check (ends_at >= starts_at)
);
comment on table app.league_runs is
  'One period of a league, or a part of it, with the rules that it began with. Made by the first points in it.';
comment on column app.league_runs.league_id is
  'No foreign key: when a league is deleted, its runs and results go by steps of a job.';
comment on column app.league_runs.takes_from is
  'From when on events count: a minute before the start of a run that closing another by hand began.';
comment on column app.league_runs.closed_at is 'When it was closed by hand: then it takes nothing afterwards.';
comment on column app.league_runs.fence is
  'A transaction that began after the run had ended: when all older ones have ended, every writer has seen it.';
comment on column app.league_runs.cursor_id is
  'The last cohort that was visited: by the announcement of the end, then by closing.';
-- serves the run of a time, and the list of runs
create index league_runs_newest on app.league_runs (league_id, starts_at desc, id desc);

create table app.league_cohorts (
  id         uuid primary key default internal.new_id(),
  run_id     uuid not null references app.league_runs on delete cascade,
  tier       smallint not null,
  lane       smallint not null,
  size       smallint not null,
  members    smallint not null default 0,
  is_full    boolean generated always as (members >= size) stored,
  settled_at timestamptz,
  created_at timestamptz not null default internal.now(),
  constraint league_cohorts_of_run unique (run_id, id),
  constraint league_cohorts_within_size check (members between 0 and size)
);
comment on table app.league_cohorts is 'Those who play against each other in one run, at most size of them.';
comment on column app.league_cohorts.tier is 'The place of the tier in those of the run, 0 for the lowest.';
comment on column app.league_cohorts.lane is
  'One of eight: who puts a user into a cohort holds the lock of its lane, so that users who join at once do not wait
   for each other, and few cohorts are begun.';
-- serves the list of cohorts
create index league_cohorts_by_tier on app.league_cohorts (run_id, tier, id);
-- serves joining
create index league_cohorts_with_room on app.league_cohorts (run_id, tier, id desc) where not is_full;

create table app.league_entries (
  run_id      uuid not null references app.league_runs on delete cascade,
  app_user_id uuid not null references app.users on delete cascade,
  league_id   uuid not null,
  began_at    timestamptz not null,
  cohort_id   uuid,
  tier        smallint,
  points      numeric not null,
  reached_at  timestamptz not null,
  is_hidden   boolean not null default false,
  result      text not null default 'pending' constraint league_entries_result_known
                check (result in ('pending', 'promoted', 'stayed', 'relegated')),
  final_rank  smallint,
  is_seen     boolean not null default false,
  created_at  timestamptz not null default internal.now(),
  primary key (app_user_id, run_id),
  constraint league_entries_cohort_of_run foreign key (run_id, cohort_id)
    references app.league_cohorts (run_id, id) on delete cascade
) with (fillfactor = 85);
comment on table app.league_entries is
  'A user''s points in a run. Without a cohort they are not enough to be a member yet.';
comment on column app.league_entries.began_at is 'The start of the run, for the order of a user''s runs.';
comment on column app.league_entries.is_hidden is 'The user is banned: has no rank, and stays.';
-- serves ladders. Points are in no index: an event updates the row in place
create index league_entries_of_cohort on app.league_entries (run_id, cohort_id);
-- serves a user's last run and history, and segments by tier
create index league_entries_of_user on app.league_entries (league_id, app_user_id, began_at desc, run_id desc)
  where cohort_id is not null;

create table app.league_tiers (
  league_id   uuid not null,
  app_user_id uuid not null references app.users on delete cascade,
  ladder      text[] not null,
  created_at  timestamptz not null default internal.now(),
  primary key (app_user_id, league_id)
);
comment on table app.league_tiers is
  'The tier that an administrator gave a user, until the user enters a run: the last of the ladder, whose others are the
   tiers below it.';
create index league_tiers_of_league on app.league_tiers (league_id);

create type internal.league_fact as (
  league_id   uuid,
  app_user_id uuid,
  event_name  text,
  properties  jsonb,
  value       numeric,
  place_at    timestamptz,
  reached_at  timestamptz
);
comment on type internal.league_fact is
  'What an event, or with an empty name a row of the ledger of XP, may give: place_at says in which run.';

-- migrate:down
drop type internal.league_fact;
drop table app.league_tiers;
drop table app.league_entries;
drop table app.league_cohorts;
drop table app.league_runs;
drop table app.leagues;
