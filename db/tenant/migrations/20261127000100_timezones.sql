-- migrate:up
create table app.timezones (
  name text primary key
);
comment on table app.timezones is
  'IANA zones that this Postgres knows; reading the system view costs tens of milliseconds each time.';

-- migrate:down
drop table app.timezones;
