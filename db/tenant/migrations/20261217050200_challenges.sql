-- migrate:up
alter table app.challenges add column first_start_at timestamptz, add column first_end_at timestamptz, add column turn int;
comment on column app.challenges.first_start_at is
  'Of a turn of a monthly challenge: the beginning of the window that the turns are counted from, which is turn 0. A short month may move a turn to another day.';
comment on column app.challenges.first_end_at is 'As first_start_at, the end.';

-- migrate:down
alter table app.challenges drop column turn, drop column first_end_at, drop column first_start_at;
