-- migrate:up
create table app.streak_definitions (
  id                   uuid primary key default internal.new_id(),
  key                  text not null constraint streak_definitions_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name                 text not null constraint streak_definitions_name_1_to_200
    check (char_length(name) between 1 and 200),
  description          text constraint streak_definitions_description_at_most_2000
    check (char_length(description) <= 2000),
  qualifying_event     text not null constraint streak_definitions_qualifying_event_form
                         check (char_length(qualifying_event) between 1 and 255 and qualifying_event !~ '^\s|\s$'),
  event_filter         jsonb,
  period               text not null default 'day' constraint streak_definitions_period_known
    check (period in ('day', 'week', 'month')),
  min_count            int not null default 1 constraint streak_definitions_min_count_1_to_10000
    check (min_count between 1 and 10000),
  week_starts_on       int not null default 1 constraint streak_definitions_week_starts_on_0_to_7
    check (week_starts_on between 0 and 7),
  timezone_mode        text not null default 'user' constraint streak_definitions_timezone_mode_known
    check (timezone_mode in ('user', 'fixed')),
  timezone             text,
  grace_hours          int not null default 0 constraint streak_definitions_grace_hours_0_to_48
    check (grace_hours between 0 and 48),
  freezes_initial      int not null default 0 constraint streak_definitions_freezes_initial_0_to_100
    check (freezes_initial between 0 and 100),
  freezes_max          int not null default 2 constraint streak_definitions_freezes_max_0_to_100
    check (freezes_max between 0 and 100),
  freeze_earn_every    int not null default 0 constraint streak_definitions_freeze_earn_every_0_to_1000
    check (freeze_earn_every between 0 and 1000),
  at_risk_hours        int constraint streak_definitions_at_risk_hours_0_to_1000
    check (at_risk_hours between 0 and 1000),
  restore_window_hours int not null default 48 constraint streak_definitions_restore_window_hours_0_to_8760
                         check (restore_window_hours between 0 and 8760),
  milestones           jsonb not null default '[]',
  allow_client_qualify boolean not null default true,
  is_active            boolean not null default true,
  created_at           timestamptz not null default internal.now(),
  updated_at           timestamptz not null default internal.now(),
  constraint streak_definitions_key_unique unique (key),
  constraint streak_definitions_timezone_when_fixed check ((timezone_mode = 'fixed') = (timezone is not null)),
  constraint streak_definitions_initial_within_max check (freezes_initial <= freezes_max),
  constraint streak_definitions_name_is_one_line check (internal.is_line(name))
);
comment on table app.streak_definitions is
  'The rules of each streak. at_risk_hours null means the usual of its period: 6, 24 or 72.';
-- serves the look-up at every batch of events
create index streak_definitions_watching on app.streak_definitions (qualifying_event) where is_active;

create table app.user_streaks (
  app_user_id            uuid not null references app.users on delete cascade on update cascade,
  streak_definition_id   uuid not null references app.streak_definitions on delete cascade,
  freezes_initial        int not null,
  current_count          int not null default 0,
  longest_count          int not null default 0,
  started_on             date,
  last_period            date,
  covered_through        date,
  freezes                int not null,
  lapsed_count           int,
  lapsed_through         date,
  first_qualified_at     timestamptz,
  last_qualified_at      timestamptz,
  created_at             timestamptz not null default internal.now(),
  updated_at             timestamptz not null default internal.now(),
  next_check_at          timestamptz,
  risk_notified_through  date,
  lapse_notified_through date,
  primary key (app_user_id, streak_definition_id)
);
comment on table app.user_streaks is
  'What the fold over a user''s periods comes to, as it stands after the newest qualified period, without the clock:
   status, and what the clock takes away, are worked out on read. Dates are first days of periods.';
comment on column app.user_streaks.last_period is 'The newest qualified period.';
comment on column app.user_streaks.covered_through is
  'The last period that the chain survives with its freezes and pauses, if nothing more happens.';
comment on column app.user_streaks.freezes is 'Freezes in hand right after last_period.';
comment on column app.user_streaks.lapsed_through is
  'The last covered period of the chain before this one, which counted lapsed_count.';
comment on column app.user_streaks.next_check_at is
  'When the clock next has something to tell of this streak, if nothing happens to it before: it is at risk, used a
   freeze, is broken. Null: nothing.';
comment on column app.user_streaks.risk_notified_through is
  'The newest period for which svc.streak.at_risk was emitted, or need not be.';
comment on column app.user_streaks.lapse_notified_through is
  'The newest period whose lapse was emitted (svc.streak.frozen, svc.streak.broken), or need not be.';
-- serves the list of a streak's users; newest first
create index user_streaks_of_definition on app.user_streaks (streak_definition_id, created_at desc, app_user_id desc);
-- serves the clock: which streaks are due
create index user_streaks_next_check on app.user_streaks (next_check_at) where next_check_at is not null;
-- serves the users of a streak by status: those who are broken are the few, or the many, whose streak was last covered
-- before a date. A first qualification of a period changes it, as it does the index of the next check; further ones of
-- the same period stay heap-only updates
create index user_streaks_covered on app.user_streaks (streak_definition_id, covered_through)
  where first_qualified_at is not null;

create table app.streak_periods (
  app_user_id          uuid not null,
  streak_definition_id uuid not null,
  starts_on            date not null,
  source               text,
  count                int not null default 0,
  open_1               int not null default 0,
  open_2               int not null default 0,
  open_3               int not null default 0,
  taken                int not null default 0,
  needed               int not null,
  earn_every           int not null,
  freezes_max          int not null,
  qualified_at         timestamptz,
  primary key (app_user_id, streak_definition_id, starts_on),
  foreign key (app_user_id, streak_definition_id) references app.user_streaks on delete cascade on update cascade
) with (fillfactor = 85);
comment on table app.streak_periods is
  'The truth about a streak: per local period how often it was fed, and what covers it. The fold reads nothing else but
   pauses and gifts of freezes.';
comment on column app.streak_periods.source is 'What covers the period; null when it was fed too seldom.';
comment on column app.streak_periods.open_1 is
  'How many of count came while the period before (open_2: two before, open_3: three before) could still be saved.';
comment on column app.streak_periods.taken is 'How many of count the fold gave to periods before, in their grace.';
comment on column app.streak_periods.needed is
  'min_count, freeze_earn_every and freezes_max in force when it was fed: changed rules do not rewrite the past.';
-- serves the figures of a streak: freezes are few among many periods
create index streak_periods_frozen on app.streak_periods (streak_definition_id, starts_on) where source = 'freeze';
-- serves the counts of days
create index streak_periods_qualified on app.streak_periods using brin (qualified_at)
  with (pages_per_range = 32, autosummarize = on);

create table app.streak_pauses (
  app_user_id          uuid not null,
  streak_definition_id uuid not null,
  starts_on            date not null,
  ends_on              date not null,
  created_at           timestamptz not null default internal.now(),
  primary key (app_user_id, streak_definition_id, starts_on),
  foreign key (app_user_id, streak_definition_id) references app.user_streaks on delete cascade on update cascade,
  constraint streak_pauses_end_after_start check (ends_on >= starts_on)
);
comment on table app.streak_pauses is 'Dates, both included, on which a user need not feed a streak.';

create table app.streak_freezes (
  id                   uuid primary key default internal.new_id(),
  app_user_id          uuid not null,
  streak_definition_id uuid not null,
  applies_from         date not null,
  amount               int not null,
  freezes_max          int not null,
  source_type          text not null,
  source_id            text,
  granted_at           timestamptz not null default internal.now(),
  foreign key (app_user_id, streak_definition_id) references app.user_streaks on delete cascade on update cascade
);
comment on table app.streak_freezes is
  'Freezes given, not earned: the amount that took effect, and the first period that it can cover, the oldest one still
   open when it was given.';
create index streak_freezes_of_streak on app.streak_freezes (app_user_id, streak_definition_id, applies_from);

create table app.streak_milestones (
  id                   uuid primary key default internal.new_id(),
  app_user_id          uuid not null,
  streak_definition_id uuid not null,
  count                int not null,
  reached_on           date not null,
  reached_at           timestamptz not null default internal.now(),
  constraint streak_milestones_once_per_period unique (app_user_id, streak_definition_id, count, reached_on),
  foreign key (app_user_id, streak_definition_id) references app.user_streaks on delete cascade on update cascade
);
comment on table app.streak_milestones is
  'Milestones reached. One lying within a chain is not reached again by it, however the chain is folded anew.';

create table app.streak_timezones (
  app_user_id uuid not null references app.users on delete cascade on update cascade,
  moved_at    timestamptz not null,
  from_zone   text not null,
  to_zone     text not null,
  primary key (app_user_id, moved_at)
);
comment on table app.streak_timezones is
  'When users with streaks changed their time zone: which local date an event fell on, and how long a period stayed
   open. The newest fifty of each.';

create type internal.streak_chain as (
  current_count   int,
  longest_count   int,
  started_on      int,
  last_period     int,
  covered_through int,
  freezes         int,
  lapsed_count    int,
  lapsed_through  int
);
comment on type internal.streak_chain is
  'The outcome of a fold. Periods are numbers, each one more than the one before.';

create type internal.streak_act as (
  app_user_id          uuid,
  streak_definition_id uuid,
  occurred_at          timestamptz,
  is_historical        boolean
);
comment on type internal.streak_act is 'Something that feeds a streak once.';

create type internal.streak_fed as (
  app_user_id          uuid,
  streak_definition_id uuid,
  starts_on            date,
  source               text,
  count                int,
  count_before         int,
  open_1               int,
  open_2               int,
  open_3               int,
  taken                int,
  needed               int,
  earn_every           int,
  freezes_max          int,
  qualified_at         timestamptz,
  is_under_way         boolean
);
comment on type internal.streak_fed is
  'A row of app.streak_periods right after acts were counted into it, and what it was before.';

create type internal.streak_state as (
  status            text,
  current           int,
  previous          int,
  passed            int,
  starts_at         timestamptz,
  ends_at           timestamptz,
  deadline          timestamptz,
  is_qualified      boolean,
  freezes_remaining int,
  frozen            int[],
  paused            int[]
);
comment on type internal.streak_state is
  'What the clock makes of a streak: frozen are the periods since the newest qualified one that used a freeze, paused
   those that pauses cover.';

-- migrate:down
drop type internal.streak_state;
drop type internal.streak_fed;
drop type internal.streak_act;
drop type internal.streak_chain;
drop table app.streak_timezones;
drop table app.streak_milestones;
drop table app.streak_freezes;
drop table app.streak_pauses;
drop table app.streak_periods;
drop table app.user_streaks;
drop table app.streak_definitions;
