-- migrate:up
create table app.flags (
  id            uuid primary key default internal.new_id(),
  key           text not null constraint flags_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name          text not null constraint flags_name_1_to_200 check (char_length(name) between 1 and 200),
  description   text constraint flags_description_at_most_2000 check (char_length(description) <= 2000),
  value_type    text not null constraint flags_value_type_known check (value_type in ('boolean', 'string', 'number', 'json')),
  is_enabled    boolean not null default true,
  off_value     jsonb not null,
  default_value jsonb not null,
  rules         jsonb not null default '[]' constraint flags_rules_at_most_50 check (jsonb_typeof(rules) = 'array' and jsonb_array_length(rules) <= 50),
  schedule      jsonb not null default '[]'
                constraint flags_schedule_at_most_100 check (jsonb_typeof(schedule) = 'array' and jsonb_array_length(schedule) <= 100),
  next_at       timestamptz,
  ramp          jsonb,
  tags          text[] not null default '{}' constraint flags_tags_at_most_20 check (cardinality(tags) <= 20),
  owner         text constraint flags_owner_1_to_200 check (char_length(owner) between 1 and 200),
  version       int not null default 1,
  created_at    timestamptz not null default internal.now(),
  updated_at    timestamptz not null default internal.now(),
  constraint flags_key_unique unique (key)
);
comment on column app.flags.next_at is 'When the first step of the schedule is due, by trigger.';
comment on column app.flags.ramp is 'The last ramp: {rule_index, from, to, step, every_hours, guardrail, started_at, ends_at, stopped_at, rate}.';
-- serves the list: newest first
create index flags_newest on app.flags (created_at desc, id desc);
-- serves the steps that are due, and the look at every batch of events
create index flags_due on app.flags (next_at) where next_at is not null;
create index flags_guarded on app.flags ((ramp #>> '{guardrail,event_name}')) where ramp -> 'guardrail' is not null;

create table app.flag_versions (
  flag_id    uuid not null references app.flags on delete cascade,
  version    int not null,
  snapshot   jsonb not null,
  actor      jsonb not null,
  changed_at timestamptz not null default internal.now(),
  primary key (flag_id, version)
);
comment on table app.flag_versions is 'A flag as each of its versions was.';

create table app.flag_sets (
  is_only      boolean primary key default true constraint flag_sets_one_row check (is_only),
  version_hash text not null,
  changed_at   timestamptz not null default internal.now()
);
comment on table app.flag_sets is 'The hash of the project''s flags: one row, new at every change of a flag or an override.';
insert into app.flag_sets (version_hash) values ('0');

create table app.flag_overrides (
  flag_id     uuid not null references app.flags on delete cascade,
  app_user_id uuid not null references app.users on delete cascade,
  value       jsonb not null,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  primary key (flag_id, app_user_id)
);
-- serves the overrides of a user, and the deletion of users
create index flag_overrides_of_user on app.flag_overrides (app_user_id);

create table app.flag_evaluations (
  id           bigint generated always as identity primary key,
  app_user_id  uuid references app.users on delete cascade,
  evaluated_at timestamptz not null default internal.now(),
  notes        jsonb not null
);
comment on table app.flag_evaluations is
  'What apps were answered and is not counted yet: one row a request, notes are [flag id, value, rule index, weight]. A row of a user''s own, so that no two requests wait for each other.';
create index flag_evaluations_of_user on app.flag_evaluations (app_user_id);

create table app.flag_values (
  flag_id   uuid not null references app.flags on delete cascade,
  value_key text not null,
  value     jsonb not null,
  primary key (flag_id, value_key)
);
comment on table app.flag_values is 'Each value that a flag ever gave; value_key is its MD5.';

create table app.flag_counts (
  flag_id     uuid not null,
  value_key   text not null,
  day         date not null,
  evaluations bigint not null default 0,
  users       bigint not null default 0,
  primary key (flag_id, day, value_key),
  constraint flag_counts_value_is_known foreign key (flag_id, value_key) references app.flag_values on delete cascade
);
comment on table app.flag_counts is 'How often a flag gave a value on a UTC day, and to how many users.';
create index flag_counts_of_value on app.flag_counts (flag_id, value_key);

create table app.flag_users (
  flag_id     uuid not null,
  value_key   text not null,
  app_user_id uuid not null references app.users on delete cascade,
  last_day    date not null,
  primary key (flag_id, value_key, app_user_id),
  constraint flag_users_value_is_known foreign key (flag_id, value_key) references app.flag_values on delete cascade
);
comment on table app.flag_users is 'When a user last got a value of a flag, by UTC day.';
create index flag_users_of_user on app.flag_users (app_user_id);
-- serves the users of the last days, and forgetting
create index flag_users_lately on app.flag_users (flag_id, last_day);

create table app.flag_exposures (
  flag_id     uuid not null references app.flags on delete cascade,
  app_user_id uuid not null references app.users on delete cascade,
  first_at    timestamptz not null,
  primary key (flag_id, app_user_id)
);
comment on table app.flag_exposures is 'Who got the value of the rule that a guarded ramp raises, since it began, and when first.';
create index flag_exposures_of_user on app.flag_exposures (app_user_id);

create table app.flag_states (
  flag_id           uuid primary key references app.flags on delete cascade,
  last_evaluated_at timestamptz,
  sampled_on        date
);
comment on table app.flag_states is 'What counting knows of a flag: when an app last asked, and the day on which one in a hundred requests is counted.';

-- migrate:down
drop table app.flag_states;
drop table app.flag_exposures;
drop table app.flag_users;
drop table app.flag_counts;
drop table app.flag_values;
drop table app.flag_evaluations;
drop table app.flag_overrides;
drop table app.flag_sets;
drop table app.flag_versions;
drop table app.flags;
