-- migrate:up
create table app.feed_totals (
  actor_key  uuid primary key,
  entries    bigint not null,
  last_at    timestamptz,
  has_groups boolean not null
);
comment on table app.feed_totals is
  'What app.feed_counts says about a user in one row, so that the total of a home feed reads one narrow row for each friend. Kept by the triggers that keep app.feed_counts; a
   user without a row is read there. The system has none: its writers would share it.';
comment on column app.feed_totals.entries is 'Entries that home feeds show and that were posted to no group.';
comment on column app.feed_totals.last_at is 'When the newest of these was made.';
comment on column app.feed_totals.has_groups is 'Whether home feeds show entries that were posted to groups, while these are public.';

-- who of many friends is banned, without a look at their rows
create index users_banned on app.users (id) where is_banned;

-- migrate:down
drop index app.users_banned;
drop table app.feed_totals;
