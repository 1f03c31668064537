-- migrate:up
create table internal.feed_events (
  action          text primary key,
  event_name      text not null constraint feed_events_event_name_unique unique,
  target_property text,
  group_property  text,
  shown           text[] not null default '{}',
  declared_in     text not null
);
comment on table internal.feed_events is
  'The registry of system events that make feed entries: each area declares its own in its policy file. target_property
   and group_property name the properties of the event that become target_id and group_id, shown those that become the
   metadata of the entry.';

create table app.feed_entries (
  id         uuid primary key default internal.new_id(),
  actor_id   uuid references app.users on delete cascade,
  action     text not null constraint feed_entries_action_form check (action ~ '^[a-z][a-z0-9_.]{0,63}$'),
  target_id  text constraint feed_entries_target_id_1_to_255 check (char_length(target_id) between 1 and 255),
  group_id   uuid references app.groups on delete cascade,
  is_home    boolean not null default true,
  metadata   jsonb not null default '{}' constraint feed_entries_metadata_is_object
    check (jsonb_typeof(metadata) = 'object'),
  created_at timestamptz not null default internal.now()
);
comment on table app.feed_entries is
  'What users did, as feeds show it. An entry belongs to its actor, and to a group where it was posted to one.';
comment on column app.feed_entries.actor_id is 'Null for an entry of the system, which all users see.';
comment on column app.feed_entries.is_home is
  'False for what was posted to a group while the group was private: such an entry appears in the feed of its group
   only.';
-- the newest entries of an actor, without a look at the table: home feeds merge them; the foreign key
create index feed_entries_of_actor on app.feed_entries (actor_id, is_home, created_at desc, id desc) include (action,
                                        group_id);
-- the feed of a group, and the foreign key
create index feed_entries_of_group on app.feed_entries (group_id, created_at desc, id desc) where group_id is not null;
-- the administrators' list
create index feed_entries_newest on app.feed_entries (created_at desc, id desc);
-- serves the list of administrators by an action
create index feed_entries_of_action on app.feed_entries (action, created_at desc, id desc);

create table app.feed_counts (
  actor_key uuid not null,
  is_home   boolean not null,
  group_key uuid not null,
  action    text not null,
  entries   bigint not null,
  last_at   timestamptz not null,
  primary key (actor_key, is_home, group_key, action)
);
comment on table app.feed_counts is
  'How many entries an actor has of each action and group (zeros for the system and for no group), and when the newest
   was made: the totals of feeds, and which actors a page of a home feed can show. Kept by a trigger on
   app.feed_entries; writers of different actors share no row.';
-- the total of a group's feed
create index feed_counts_of_group on app.feed_counts (group_key)
  where group_key <> '00000000-0000-0000-0000-000000000000';

create table app.feed_totals (
  actor_key  uuid primary key,
  entries    bigint not null,
  last_at    timestamptz,
  has_groups boolean not null
);
comment on table app.feed_totals is
  'What app.feed_counts says about a user in one row, so that the total of a home feed reads one narrow row for each
   friend. Kept by the triggers that keep app.feed_counts; a user without a row is read there. The system has none: its
   writers would share it.';
comment on column app.feed_totals.entries is 'Entries that home feeds show and that were posted to no group.';
comment on column app.feed_totals.last_at is 'When the newest of these was made.';
comment on column app.feed_totals.has_groups is
  'Whether home feeds show entries that were posted to groups, while these are public.';

-- migrate:down
drop table app.feed_totals;
drop table app.feed_counts;
drop table app.feed_entries;
drop table internal.feed_events;
