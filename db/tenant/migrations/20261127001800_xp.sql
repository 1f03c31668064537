-- migrate:up
create table app.xp_rules (
  id               uuid primary key default internal.new_id(),
  key              text not null constraint xp_rules_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name             text not null constraint xp_rules_name_1_to_200 check (char_length(name) between 1 and 200),
  event_name       text not null constraint xp_rules_event_name_form
                     check (char_length(event_name) between 1 and 255 and event_name !~ '^\s|\s$'),
  event_filter     jsonb,
  amount           bigint constraint xp_rules_amount_1_to_1000000000 check (amount between 1 and 1000000000),
  amount_property  text constraint xp_rules_amount_property_1_to_255
    check (char_length(amount_property) between 1 and 255),
  multiplier       numeric not null default 1 constraint xp_rules_multiplier_above_0
    check (multiplier > 0 and multiplier <= 1000000),
  max_per_event    bigint constraint xp_rules_max_per_event_1_to_1000000000
    check (max_per_event between 1 and 1000000000),
  max_per_day      bigint constraint xp_rules_max_per_day_1_to_1000000000 check (max_per_day between 1 and 1000000000),
  cooldown_seconds int constraint xp_rules_cooldown_seconds_0_to_31536000
    check (cooldown_seconds between 0 and 31536000),
  max_total        bigint constraint xp_rules_max_total_1_to_1000000000000
    check (max_total between 1 and 1000000000000),
  starts_at        timestamptz,
  ends_at          timestamptz,
  is_active        boolean not null default true,
  created_at       timestamptz not null default internal.now(),
  updated_at       timestamptz not null default internal.now(),
  constraint xp_rules_key_unique unique (key),
  constraint xp_rules_one_amount check ((amount is null) <> (amount_property is null)),
  constraint xp_rules_end_after_start check (ends_at > starts_at),
  -- it would feed itself
  constraint xp_rules_not_of_xp check (event_name <> 'svc.xp.awarded'),
  constraint xp_rules_name_is_one_line check (internal.is_line(name))
);
comment on table app.xp_rules is
  'Which events give XP, and how much. Times and caps go by the clock that internal.xp_counted_at says.';
-- serves the look-up at every batch of events
create index xp_rules_watching on app.xp_rules (event_name) where is_active;

create table app.xp_boosts (
  id         uuid primary key default internal.new_id(),
  name       text not null constraint xp_boosts_name_1_to_200 check (char_length(name) between 1 and 200),
  multiplier numeric not null constraint xp_boosts_multiplier_from_a_tenth_to_100
    check (multiplier between 0.1 and 100),
  starts_at  timestamptz not null default internal.now(),
  ends_at    timestamptz,
  segment_id uuid,
  rule_keys  text[],
  is_active  boolean not null default true,
  created_at timestamptz not null default internal.now(),
  updated_at timestamptz not null default internal.now(),
  constraint xp_boosts_name_unique unique (name),
  constraint xp_boosts_end_after_start check (ends_at > starts_at),
  constraint xp_boosts_name_is_one_line check (internal.is_line(name))
);
comment on table app.xp_boosts is
  'What multiplies the XP of rules for a time: of all of them, or of those named. All that match multiply.';

create table app.xp_levels (
  level       int primary key constraint xp_levels_level_1_to_1000 check (level between 1 and 1000),
  xp_required bigint not null constraint xp_levels_xp_required_0_or_more check (xp_required >= 0),
  name        text,
  icon_url    text,
  reward      jsonb,
  constraint xp_levels_xp_required_unique unique (xp_required),
  constraint xp_levels_first_needs_nothing check ((level = 1) = (xp_required = 0)),
  constraint xp_levels_name_1_to_200 check (char_length(name) between 1 and 200),
  constraint xp_levels_icon_url_at_most_2000 check (char_length(icon_url) <= 2000),
  constraint xp_levels_reward_is_object check (jsonb_typeof(reward) = 'object'),
  constraint xp_levels_name_is_one_line check (internal.is_line(name))
);
comment on table app.xp_levels is 'The one table of levels, replaced whole.';
insert into app.xp_levels (level, xp_required) values (1, 0);

-- No index of total: the distribution of levels reads every total anyway, and so a total is updated in place (HOT).
create table app.xp_totals (
  app_user_id     uuid primary key references app.users on delete cascade,
  total           bigint not null default 0,
  highest_level   int not null default 1,
  announced_level int not null default 1,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now()
) with (fillfactor = 85);
comment on column app.xp_totals.highest_level is
  'The highest level ever held: it is kept when the table of levels changes. The table of today may add to it.';
comment on column app.xp_totals.announced_level is 'The highest level that was rewarded and told.';

-- Of each event every rule writes a row here: what one index can do, two do not. The statistics of a week find their
-- rows by id, which begins with the time. No foreign key: whoever writes here has locked the users, and a trigger on
-- app.users takes these rows with them.
create table app.xp_transactions (
  id          uuid primary key default internal.new_id(),
  app_user_id uuid not null,
  amount      bigint not null,
  total_after bigint not null,
  source      text not null,
  source_id   text not null,
  rule_key    text,
  reason      text,
  requested      bigint not null,
  clipped_by  text,
  occurred_at timestamptz not null,
  counted_at  timestamptz not null,
  created_at  timestamptz not null default internal.now(),
  constraint xp_transactions_once_per_source unique nulls not distinct (app_user_id, source, source_id, rule_key)
);
comment on table app.xp_transactions is
  'The ledger of XP: amount is what took effect, requested what was to be given before clipped_by cut it.';
comment on column app.xp_transactions.occurred_at is
  'When it was earned, by the event''s own time: what challenges sum.';
comment on column app.xp_transactions.counted_at is 'The time that caps and cooldowns go by.';
-- read backwards it serves the history as well, and grows at the end of each user's part: downwards its pages would be
-- split again and again. Sums over a time and cooldowns go by it too: internal.xp_first_id
create index xp_transactions_of_user on app.xp_transactions (app_user_id, id);
-- serves the sums of days
create index xp_transactions_occurred on app.xp_transactions using brin (occurred_at)
  with (pages_per_range = 32, autosummarize = on);

create table app.xp_rule_days (
  app_user_id uuid not null,
  rule_key    text not null,
  day         date not null,
  amount      bigint not null,
  primary key (app_user_id, rule_key, day)
) with (fillfactor = 85);
comment on table app.xp_rule_days is 'What each rule gave each user on each UTC day, for its caps.';

create type internal.xp_act as (
  app_user_id uuid,
  rule_id     uuid,
  rule_key    text,
  event_id    uuid,
  occurred_at timestamptz,
  counted_at  timestamptz,
  requested      bigint,
  amount      bigint,
  clipped_by  text
);
comment on type internal.xp_act is 'An event under a rule: how much it is worth, and how much of that the caps leave.';

create type internal.xp_move as (
  app_user_id uuid,
  amount      bigint,
  source      text,
  source_id   text,
  rule_key    text,
  reason      text,
  requested      bigint,
  clipped_by  text,
  occurred_at timestamptz,
  counted_at  timestamptz
);
comment on type internal.xp_move is 'A row of the ledger that is to be.';

-- migrate:down
drop type internal.xp_move;
drop type internal.xp_act;
drop table app.xp_rule_days;
drop table app.xp_transactions;
drop table app.xp_totals;
drop table app.xp_levels;
drop table app.xp_boosts;
drop table app.xp_rules;
