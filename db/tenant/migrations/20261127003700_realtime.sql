-- migrate:up
-- What realtime keeps is lost with a crash of Postgres and worth nothing after minutes: unlogged, so that it costs no
-- WAL. A client whose place is not there any more is told to fetch again.
create unlogged sequence app.realtime_subscribed minvalue 0 start 0;
comment on sequence app.realtime_subscribed is
  'Until when somebody listens in this project, in Unix seconds. A sequence, because its value is read without a
   snapshot and seen at once: triggers ask it of each row.';

create unlogged table app.realtime_servers (
  id         uuid primary key,
  expires_at timestamptz not null,
  listeners  jsonb not null default '{}'
);
comment on table app.realtime_servers is
  'Server processes with connections of this project, each with a lease of 30 seconds. listeners: how many connections
   listen to each channel, at most ten seconds old.';

create unlogged table app.realtime_connections (
  id          uuid primary key,
  server_id   uuid not null references app.realtime_servers on delete cascade,
  app_user_id uuid not null references app.users on delete cascade on update cascade,
  opened_at   timestamptz not null default internal.now()
);
comment on table app.realtime_connections is 'Open connections. One whose server has lost its lease is closed.';
create index realtime_connections_of_server on app.realtime_connections (server_id);
create index realtime_connections_of_user on app.realtime_connections (app_user_id);

create unlogged table app.realtime_channels (
  channel     text primary key,
  seq         bigint not null,
  floor_seq   bigint not null,
  subscribed_until timestamptz not null,
  keeps_rows  boolean not null default false,
  subscribed_from  timestamptz
);
comment on table app.realtime_channels is
  'Channels that somebody listens to, or did a few minutes ago: only what is published there is written. Every event
   with a number above floor_seq is kept.';
comment on column app.realtime_channels.keeps_rows is
  'Collections: a subscriber has a filter, which is asked of the rows as they are and as they were.';
comment on column app.realtime_channels.subscribed_from is
  'By the clock of Postgres, when the channel began to be listened to, or to keep rows: transactions that were running
   then may have published nothing. Null when long ago.';
create index realtime_channels_subscribed on app.realtime_channels (subscribed_until);

create unlogged table app.realtime_publications (
  id          bigint generated always as identity primary key,
  channel     text not null,
  event       text not null,
  payload     text not null,
  meta        text,
  is_numbered boolean not null default true,
  at          timestamptz not null default internal.now()
);
comment on table app.realtime_publications is
  'Published and without a number yet. No index besides the key and no row that writers share: they never wait for each
   other.';

create unlogged table app.realtime_events (
  position bigint generated always as identity primary key,
  channel  text not null,
  seq      bigint,
  event    text not null,
  payload  text not null,
  meta     text,
  at       timestamptz not null,
  constraint realtime_events_in_order unique (channel, seq)
);
comment on table app.realtime_events is
  'Events in the order in which they became visible, for ten minutes. position is the order of all, by which servers
   read; seq the number within the channel, null for what is not replayed: presence, and notices for servers.';
create index realtime_events_by_time on app.realtime_events using brin (at);

create unlogged table app.realtime_presences (
  channel       text not null,
  connection_id uuid not null references app.realtime_connections on delete cascade,
  app_user_id   uuid not null references app.users on delete cascade on update cascade,
  state         jsonb not null,
  joined_at     timestamptz not null default internal.now(),
  primary key (channel, connection_id)
);
comment on table app.realtime_presences is 'Who is present in which channel, by which connection.';
create index realtime_presences_of_connection on app.realtime_presences (connection_id);
create index realtime_presences_of_user on app.realtime_presences (app_user_id);

create unlogged table app.realtime_tickets (
  hash        text primary key,
  app_user_id uuid not null references app.users on delete cascade on update cascade,
  credential  jsonb not null,
  expires_at  timestamptz not null
);
comment on table app.realtime_tickets is
  'Tickets for a connection: each once, within a minute. hash is the SHA-256 of the ticket, credential what its
   connection runs under.';
create index realtime_tickets_of_user on app.realtime_tickets (app_user_id);
create index realtime_tickets_by_time on app.realtime_tickets (expires_at);

create unlogged table app.realtime_boards (
  leaderboard_id uuid primary key references app.leaderboards on delete cascade,
  looked_at      timestamptz not null,
  top            text not null
);
comment on table app.realtime_boards is 'The first ten entries that subscribers of a leaderboard were told last.';

create unlogged table app.realtime_places (
  leaderboard_id uuid not null references app.leaderboards on delete cascade,
  app_user_id    uuid not null references app.users on delete cascade on update cascade,
  run_key        text not null,
  score          numeric,
  rank           bigint,
  primary key (leaderboard_id, app_user_id)
);
comment on table app.realtime_places is
  'The score and rank that a subscriber of a leaderboard was told last; null without an entry.';
create index realtime_places_of_user on app.realtime_places (app_user_id);

create table app.realtime_rooms (
  position int primary key,
  pattern  text not null constraint realtime_rooms_pattern_form check (pattern ~ '^[A-Za-z0-9_.:*-]{1,64}$'),
  publish  text not null constraint realtime_rooms_publish_known
    check (publish ~ '^(authenticated|server|role:[a-z][a-z0-9_-]{0,127})$'),
  presence boolean not null,
  listen   text constraint realtime_rooms_listen_known
    check (listen ~ '^(authenticated|role:[a-z][a-z0-9_-]{0,127})$')
);
comment on table app.realtime_rooms is
  'Rules for rooms, in their order: the first whose pattern fits the name of a room holds for it.';

create unlogged table app.realtime_readers (
  channel       text not null,
  connection_id uuid not null references app.realtime_connections on delete cascade,
  app_user_id   uuid not null references app.users on delete cascade on update cascade,
  primary key (channel, connection_id)
);
comment on table app.realtime_readers is
  'Who listens to which conversation or leaderboard, by which connection: users who see a new message are not pushed it,
   and a place that nobody of theirs watches is forgotten.';
create index realtime_readers_of_connection on app.realtime_readers (connection_id);
create index realtime_readers_of_user on app.realtime_readers (app_user_id);

-- migrate:down
drop table app.realtime_readers;
drop table app.realtime_rooms;
drop table app.realtime_places;
drop table app.realtime_boards;
drop table app.realtime_tickets;
drop table app.realtime_presences;
drop table app.realtime_events;
drop table app.realtime_publications;
drop table app.realtime_channels;
drop table app.realtime_connections;
drop table app.realtime_servers;
drop sequence app.realtime_subscribed;
