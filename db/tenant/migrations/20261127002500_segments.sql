-- migrate:up
create table app.segments (
  id          uuid primary key default internal.new_id(),
  key         text not null constraint segments_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name        text not null constraint segments_name_1_to_200 check (char_length(name) between 1 and 200),
  description text constraint segments_description_at_most_2000 check (char_length(description) <= 2000),
  kind        text not null constraint segments_kind_known check (kind in ('dynamic', 'static')),
  rules       jsonb,
  is_active   boolean not null default true,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  constraint segments_key_unique unique (key),
  constraint segments_rules_when_dynamic check ((kind = 'dynamic') = (rules is not null)),
  constraint segments_name_is_one_line check (internal.is_line(name))
);
comment on table app.segments is 'Groups of users: by rules (dynamic), or by hand (static).';
-- serves the list: newest first
create index segments_newest on app.segments (created_at desc, id desc);

create table app.segment_states (
  segment_id        uuid primary key references app.segments on delete cascade,
  condition         text not null,
  parameters        jsonb not null,
  event_names       text[] not null default '{}',
  uses              uuid[] not null default '{}',
  member_count      bigint not null default 0,
  last_evaluated_at timestamptz,
  query             text,
  cursor_id         uuid,
  template          text,
  sets              jsonb
);
comment on table app.segment_states is
  'What is worked out of a segment, apart from what its administrator wrote: its rules as SQL and the parameter of that,
   the events that its rules ask for, also through other segments, the segments that it names itself, and its members
   when they were last counted.';
comment on column app.segment_states.query is
  'The rules as a query of all users in a range of ids; null until they are compiled.';
comment on column app.segment_states.cursor_id is
  'How far the evaluation that is under way came: users up to this id are done. Null: none is under way.';
comment on column app.segment_states.template is
  'The compiled condition with its marks for sets, as it becomes part of the segments that name this one; null until it
   is compiled by this version.';
comment on column app.segment_states.sets is 'The sets of the template: [{members, missing}].';
-- serves the look-up at every batch of events
create index segment_states_watching on app.segment_states using gin (event_names);

-- No foreign keys: each member would cost as much again to check as to write. Whoever writes these rows has locked
-- their users and the segment, and triggers on app.users and app.segments take the rows with them.
create table app.segment_members (
  segment_id  uuid not null,
  app_user_id uuid not null,
  entered_at  timestamptz not null default internal.now(),
  primary key (segment_id, app_user_id)
);
comment on table app.segment_members is 'Members of static segments; of dynamic ones, those of the last evaluation.';
-- serves the segments of a user, and the deletion of users
create index segment_members_of_user on app.segment_members (app_user_id);
-- serves the list of members: newest first
create index segment_members_newest on app.segment_members (segment_id, entered_at desc, app_user_id desc);

create table app.segment_counts (
  segment_id   uuid not null references app.segments on delete cascade,
  day          date not null,
  member_count bigint not null,
  primary key (segment_id, day)
);
comment on table app.segment_counts is
  'How many members a segment had at the end of each UTC day, or has had until now today.';

-- what a leaf of a segment's rules compares: see internal.segment_operand
create type internal.segment_operand as (kind text, expression text, members text, missing text, condition text,
                                         positive text);

-- migrate:down
drop type internal.segment_operand;
drop table app.segment_counts;
drop table app.segment_members;
drop table app.segment_states;
drop table app.segments;
