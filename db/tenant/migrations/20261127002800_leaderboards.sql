-- migrate:up
create table app.leaderboards (
  id              uuid primary key default internal.new_id(),
  key             text not null constraint leaderboards_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name            text not null constraint leaderboards_name_1_to_200 check (char_length(name) between 1 and 200),
  description     text constraint leaderboards_description_at_most_2000 check (char_length(description) <= 2000),
  source          jsonb not null default '{"type": "manual"}' constraint leaderboards_source_is_object
    check (jsonb_typeof(source) = 'object'),
  watches         text[] not null default '{}',
  scoring         text not null default 'best' constraint leaderboards_scoring_known
    check (scoring in ('best', 'sum', 'last', 'count')),
  sort            text not null default 'desc' constraint leaderboards_sort_known check (sort in ('desc', 'asc')),
  period          text not null default 'all_time' constraint leaderboards_period_known
                    check (period in ('all_time', 'daily', 'weekly', 'monthly')),
  timezone        text not null default 'UTC',
  starts_at       timestamptz,
  ends_at         timestamptz,
  segment_id      uuid,
  client_writable boolean not null default false,
  min_score       numeric,
  max_score       numeric,
  max_per_minute  int not null default 30 constraint leaderboards_max_per_minute_1_to_10000
    check (max_per_minute between 1 and 10000),
  rewards         jsonb not null default '[]' constraint leaderboards_rewards_is_list
    check (jsonb_typeof(rewards) = 'array'),
  keep_runs       int not null default 12 constraint leaderboards_keep_runs_1_to_1000
    check (keep_runs between 1 and 1000),
  is_active       boolean not null default true,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint leaderboards_key_unique unique (key),
  constraint leaderboards_end_after_start check (ends_at > starts_at),
  constraint leaderboards_max_above_min check (max_score >= min_score),
  constraint leaderboards_name_is_one_line check (internal.is_line(name))
);
comment on table app.leaderboards is
  'What is ranked, by which scores, over which periods. At most 100, so lists need no index.';
comment on column app.leaderboards.watches is
  'Names of the events that move it, kept by a trigger from the source: the first thing that a batch of events asks.';

create table app.leaderboard_runs (
  id             uuid primary key default internal.new_id(),
  leaderboard_id uuid not null references app.leaderboards on delete cascade,
  run_key        text not null,
  starts_at      timestamptz,
  ends_at        timestamptz,
  state          text not null default 'live' constraint leaderboard_runs_state_known
    check (state in ('live', 'shadow', 'doomed')),
  shadow_id      uuid,
  operation_id   uuid,
  closed_at      timestamptz,
  is_frozen      boolean not null default false,
  fence          xid8,
  cursor_place   numeric,
  cursor_at      timestamptz,
  cursor_id      uuid,
  frozen         bigint not null default 0,
  created_at     timestamptz not null default internal.now()
);
comment on table app.leaderboard_runs is
  'One period of a leaderboard. A shadow is being rebuilt beside its live run; a doomed one waits to be deleted.';
comment on column app.leaderboard_runs.shadow_id is
  'The run that is being rebuilt to take its place: writers write both.';
comment on column app.leaderboard_runs.fence is
  'A transaction that began after closed_at or shadow_id was committed. When all older ones have ended, every writer has
   seen it.';
comment on column app.leaderboard_runs.frozen is
  'How many entries have their final rank; the cursor is the last of them, or how far a rebuild is.';
create unique index leaderboard_runs_live on app.leaderboard_runs (leaderboard_id, run_key) where state = 'live';
create unique index leaderboard_runs_shadow on app.leaderboard_runs (leaderboard_id, run_key) where state = 'shadow';
-- serves the list of runs, and the run of a time
create index leaderboard_runs_newest on app.leaderboard_runs (leaderboard_id, starts_at desc nulls last, id desc);

create table app.leaderboard_entries (
  run_id            uuid not null references app.leaderboard_runs on delete cascade,
  app_user_id       uuid not null references app.users on delete cascade,
  score             numeric not null,
  place             numeric not null,
  reached_at        timestamptz not null,
  submissions       bigint not null default 0,
  metadata          jsonb not null default '{}' constraint leaderboard_entries_metadata_is_object
    check (jsonb_typeof(metadata) = 'object'),
  is_hidden         boolean not null default false,
  biggest_step      numeric,
  final_rank        bigint,
  window_started_at timestamptz,
  window_count      int not null default 0,
  created_at        timestamptz not null default internal.now(),
  primary key (app_user_id, run_id)
);
comment on column app.leaderboard_entries.place is
  'The score with the sign that makes smaller better, whichever way the board sorts.';
comment on column app.leaderboard_entries.is_hidden is 'The user is banned: the entry counts in no rank.';
comment on column app.leaderboard_entries.biggest_step is
  'The biggest improvement that one submission brought, for the anomalies.';
comment on column app.leaderboard_entries.window_count is
  'Submissions within the minute that began at window_started_at.';
-- serves pages, ranks within a bucket, and the key to runs
create index leaderboard_entries_order on app.leaderboard_entries (run_id, is_hidden, place, reached_at, app_user_id);
-- serves the counts of days
create index leaderboard_entries_made on app.leaderboard_entries using brin (created_at)
  with (pages_per_range = 32, autosummarize = on);

-- The counting structure. Keys of entries are (place, reached_at, user). A bucket counts the keys from its bound to the
-- next bucket's, a group those of a stretch of buckets. Writers never touch either: they add a row to the changes, and
-- one of them now and then folds these in.
create table app.leaderboard_buckets (
  run_id     uuid not null,
  from_place numeric not null,
  from_at    timestamptz not null,
  from_id    uuid not null,
  entries    bigint not null,
  primary key (run_id, from_place, from_at, from_id)
) with (fillfactor = 70);
comment on table app.leaderboard_buckets is
  'How many folded entries lie between this bound and the next. Changed by who holds the run''s fold alone.';

create table app.leaderboard_bucket_groups (
  run_id     uuid not null,
  from_place numeric not null,
  from_at    timestamptz not null,
  from_id    uuid not null,
  entries    bigint not null,
  buckets    int not null,
  primary key (run_id, from_place, from_at, from_id)
) with (fillfactor = 70);
comment on table app.leaderboard_bucket_groups is
  'Sums of neighbouring buckets, so that a rank adds up few rows in a run of any size.';

create table app.leaderboard_changes (
  id     bigint generated always as identity,
  run_id uuid not null,
  place  numeric not null,
  at     timestamptz not null,
  whose  uuid not null,
  n      smallint not null,
  made   xid8 not null default pg_current_xact_id()
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
comment on table app.leaderboard_changes is
  'Keys that entries came to (n is 1) or left (-1), and that no bucket counts yet.';
create index leaderboard_changes_of_run on app.leaderboard_changes (run_id, made);

create table app.leaderboard_folds (
  run_id    uuid primary key,
  folded_to xid8 not null
) with (fillfactor = 50);
comment on table app.leaderboard_folds is
  'Changes of transactions before folded_to are all folded: whoever reads what waits begins there, and does not step
   over the remains of the others.';

create type internal.leaderboard_tally as (
  app_user_id uuid,
  submissions bigint,
  best        numeric,
  best_at     timestamptz,
  total       numeric,
  total_at    timestamptz,
  last        numeric,
  last_at     timestamptz,
  metadata    jsonb
);
comment on type internal.leaderboard_tally is
  'What submissions of one user come to: whichever way the board scores, its part is in here.';

create type internal.leaderboard_fact as (
  leaderboard_id uuid,
  app_user_id    uuid,
  value          numeric,
  place_at       timestamptz,
  reached_at     timestamptz,
  source_id      uuid
);
comment on type internal.leaderboard_fact is
  'One submission that an event or the ledger of XP makes: place_at says which run, reached_at who was first.';

create type internal.leaderboard_bound as (
  from_place numeric,
  from_at    timestamptz,
  from_id    uuid
);
comment on type internal.leaderboard_bound is 'Where a bucket begins.';

-- migrate:down
drop type internal.leaderboard_bound;
drop type internal.leaderboard_fact;
drop type internal.leaderboard_tally;
drop table app.leaderboard_folds;
drop table app.leaderboard_changes;
drop table app.leaderboard_bucket_groups;
drop table app.leaderboard_buckets;
drop table app.leaderboard_entries;
drop table app.leaderboard_runs;
drop table app.leaderboards;
