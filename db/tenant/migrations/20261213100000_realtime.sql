-- migrate:up
alter table app.realtime_channels add column heard_from timestamptz;
comment on column app.realtime_channels.heard_from is
  'By the clock of Postgres, when the channel began to be listened to, or to keep rows: transactions that were running then may have published nothing. Null when long ago.';
comment on table app.realtime_readers is
  'Who listens to which conversation or leaderboard, by which connection: users who see a new message are not pushed it, and a place that nobody of theirs watches is forgotten.';

-- migrate:down
alter table app.realtime_channels drop column heard_from;
