-- migrate:up
create unlogged table app.realtime_readers (
  channel       text not null,
  connection_id uuid not null references app.realtime_connections on delete cascade,
  app_user_id   uuid not null references app.users on delete cascade on update cascade,
  primary key (channel, connection_id)
);
comment on table app.realtime_readers is 'Who listens to which conversation, by which connection: these users see a new message and are not pushed it.';
create index realtime_readers_of_connection on app.realtime_readers (connection_id);
create index realtime_readers_of_user on app.realtime_readers (app_user_id);

-- migrate:down
drop table app.realtime_readers;
