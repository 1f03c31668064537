-- migrate:up
create table app.sync_collections (
  collection_id   uuid primary key,
  name            text not null constraint sync_collections_name_is_one_line check (internal.is_line(name)),
  epoch           int not null default 1,
  dropped_at      timestamptz,
  outputs_version bigint,
  outputs         text
);
comment on table app.sync_collections is
  'Collections that are or were synced, for a month also those that were dropped. epoch goes up whenever sync is
   switched on: what happened while it was off is in no log, as what an earlier collection of the name had is not, so
   that who holds rows of before begins anew. outputs is the compiled select list of its rows, of that schema_version.';

create table app.sync_pending_changes (
  id            bigint generated always as identity primary key,
  collection_id uuid not null,
  row_id        uuid not null,
  audience      uuid,
  author        uuid,
  was_live      boolean not null,
  is_live       boolean not null,
  origin        bigint,
  at            timestamptz not null
);
comment on table app.sync_pending_changes is
  'Changes of rows without a place in the log yet. No index besides the key and no row that writers share: they never
   wait for each other.';

create table app.sync_changes (
  place         bigint not null,
  id            bigint not null,
  collection_id uuid not null,
  row_id        uuid not null,
  audience      uuid,
  author        uuid,
  was_live      boolean not null,
  is_live       boolean not null,
  origin        bigint,
  at            timestamptz not null
);
comment on table app.sync_changes is
  'The log of changes for a month, in the order of commits: place is the number of the session that numbered them after
   their commit, id the order of the changes of one row. audience is the user or the group whose row it is, author the
   user in a group. was_live and is_live say whether the row was there before and after, for this audience; a row that
   changes its audience has two entries. origin is the client that pushed the change.';
create index sync_changes_of_audience on app.sync_changes (audience, place);
create index sync_changes_of_collection on app.sync_changes (collection_id, place);
-- serves pulls after a push into a group that was joined and left since the pull before; nothing else is in it
create index sync_changes_of_origin on app.sync_changes (origin, place) where origin is not null;
-- serves the purge
create index sync_changes_by_place on app.sync_changes using brin (place) with (autosummarize = on);

create table app.sync_positions (
  is_only       boolean primary key default true constraint sync_positions_are_one_row check (is_only),
  place         bigint not null default 1,
  floor         bigint not null default 0,
  pending_after bigint not null default 0
);
comment on table app.sync_positions is
  'place: the last place of the log, which changes with what has it. floor: everything above it is in the log.
   pending_after: no pending change has an id up to it, nor will one: what was deleted is not looked through again.';
insert into app.sync_positions default values;

create table app.sync_times (
  place bigint primary key,
  at    timestamptz not null
);
comment on table app.sync_times is 'When places were given, one a minute at most: how old a checkpoint is.';

create table app.sync_checkpoints (
  id               bigint generated always as identity primary key,
  app_user_id      uuid not null references app.users on delete cascade on update cascade,
  client_id        uuid not null,
  seed             bigint not null default hashtextextended(gen_random_uuid()::text, 0),
  first_checkpoint bigint,
  checkpoint       bigint,
  stamp            bigint,
  last_pull_at     timestamptz,
  last_push_at     timestamptz,
  used_at          timestamptz not null default internal.now(),
  created_at       timestamptz not null default internal.now(),
  constraint sync_checkpoints_one_per_client unique (app_user_id, client_id)
);
comment on table app.sync_checkpoints is
  'Clients of users that sync. A checkpoint is ten thousand times its place, and a number below 5000 that follows from
   the place and the seed: so the digits of another client are hardly ever taken for those of this one. The others are
   in app.sync_steps. stamp is that of internal.sync_present when the last pull began, null where that pull has not
   ended or its checkpoint does not tell its place.';
-- serves the list of administrators
create index sync_checkpoints_used on app.sync_checkpoints (used_at desc, id desc);

create table app.sync_views (
  checkpoint_id  bigint not null references app.sync_checkpoints on delete cascade,
  since          bigint not null,
  at             timestamptz not null,
  collection_ids uuid[] not null,
  accesses       text[] not null,
  group_ids      uuid[] not null,
  ranks          smallint[] not null,
  primary key (checkpoint_id, since)
);
comment on table app.sync_views is
  'What decided which rows a client was shown, from the checkpoint since on: for each collection the epoch, the policy
   and what follows from it for the user (functions/tenant/sync/views.sql), and the groups of the user with their ranks.
   Never ids of rows.';

create table app.sync_steps (
  checkpoint_id bigint not null references app.sync_checkpoints on delete cascade,
  number        bigint not null,
  base          bigint,
  base_number   bigint,
  target        bigint not null,
  after         jsonb,
  at            timestamptz not null,
  missed        uuid[],
  primary key (checkpoint_id, number)
);
comment on table app.sync_steps is
  'Checkpoints that do not follow from their place: pages of a pull, which goes from the place base (null: from nothing)
   to target and has come as far as after, and the end of a pull (after is null) that found nothing new in the log, or
   missed rows: they were there at target, and had gone when the pull came to them, so that the client lacks them.';
-- serves the purge
create index sync_steps_by_time on app.sync_steps using brin (at) with (autosummarize = on);

create table app.sync_mutations (
  app_user_id uuid not null,
  client_id   uuid not null,
  id          uuid not null,
  status      text not null constraint sync_mutations_status_known
    check (status in ('applied', 'conflict', 'rejected')),
  code        text,
  message     text,
  row_json    json,
  at          timestamptz not null,
  primary key (app_user_id, client_id, id)
);
comment on table app.sync_mutations is
  'The results of mutations, for 30 days: a repeated one is answered from here. No foreign key: its check of each row
   was a third of what a push pays to remember; whoever deletes a user deletes these.';
-- serves the statistics and the purge
create index sync_mutations_by_time on app.sync_mutations using brin (at) with (autosummarize = on);

create type internal.sync_item as (
  collection_id uuid,
  list          text,
  id            uuid,
  shown         json,
  phase         int,
  last_id       bigint,
  group_id      uuid,
  created_at    timestamptz
);
comment on type internal.sync_item is 'An entry of an answer to a pull, and where the pull goes on after it.';

-- migrate:down
drop type internal.sync_item;
drop table app.sync_mutations;
drop table app.sync_steps;
drop table app.sync_views;
drop table app.sync_checkpoints;
drop table app.sync_times;
drop table app.sync_positions;
drop table app.sync_changes;
drop table app.sync_pending_changes;
drop table app.sync_collections;
