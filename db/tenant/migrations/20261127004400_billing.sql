-- migrate:up
create table app.usage_days (
  slot   bigint generated always as identity primary key,
  day    date not null,
  meter  text not null constraint usage_days_meter_known
           check (meter in ('mau', 'events', 'storage_bytes', 'push_sent', 'emails_sent', 'ai_spend_usd',
                            'function_ms')),
  amount numeric not null
) with (fillfactor = 50);
comment on table app.usage_days is
  'What a project used on each day (UTC), the sum of the slots of a meter and day, so that writers do not wait for each
   other, as in app.row_counts. events and storage_bytes are written when the day is closed.';
create index usage_days_of_meter on app.usage_days (meter, day);

create table app.usage_closings (
  only_row     boolean primary key default true constraint usage_closings_one_row check (only_row),
  closed_until date not null
);
comment on table app.usage_closings is
  'The last day whose events and stored bytes are in app.usage_days. Of later days they are counted when somebody asks.
   A transaction that deletes events shares the lock of the row, so that none of them is counted twice.';
-- the first month is counted from its beginning
insert into app.usage_closings (closed_until)
  values ((date_trunc('month', internal.now() at time zone 'UTC') - interval '1 day')::date);

-- migrate:down
drop table app.usage_closings;
drop table app.usage_days;
