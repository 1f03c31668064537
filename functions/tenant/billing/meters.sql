-- Meters: what a project uses, by UTC day. Each is counted in the transaction of what it counts, so it is exact
-- whatever crashes; requests and bytes sent are counted by the servers, in the control database.
create or replace function internal.utc_day(at timestamptz) returns date
language sql immutable parallel safe
return (utc_day.at at time zone 'UTC')::date;
comment on function internal.utc_day is 'The day of a time, in UTC.';

select internal.slots_declare('usage_add', 'app.usage_days', '{day,meter}', '{amount}');

create or replace function internal.tg_users__mau() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  made record;
begin
  if tg_op = 'UPDATE' then
    perform internal.usage_add(internal.utc_day(new.last_seen_at), 'mau', 1);
  else
    for made in select internal.utc_day(n.last_seen_at) as day, count(*) as users from new_rows n group by 1 loop
      perform internal.usage_add(made.day, 'mau', made.users);
    end loop;
  end if;
  return null;
end $$;
comment on function internal.tg_users__mau is 'Counts a user on the day on which they are first seen in a month.';
create or replace trigger tg_users__mau_of_insert
  after insert on app.users referencing new table as new_rows
  for each statement execute function internal.tg_users__mau();
create or replace trigger tg_users__mau_of_update
  after update of last_seen_at on app.users
  for each row when (date_trunc('month', new.last_seen_at, 'UTC') > date_trunc('month', old.last_seen_at, 'UTC'))
  execute function internal.tg_users__mau();

create or replace function internal.tg_email_messages__usage() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.usage_add(internal.utc_day(new.sent_at), 'emails_sent', 1);
  return null;
end $$;
comment on function internal.tg_email_messages__usage is 'Counts a message that was sent.';
create or replace trigger tg_email_messages__usage
  after update of sent_at on app.email_messages
  for each row when (old.sent_at is null and new.sent_at is not null)
  execute function internal.tg_email_messages__usage();

create or replace function internal.tg_ai_invocations__spend() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- the day on which the call was made: its reservation was one of that day
  if tg_op = 'INSERT' then
    perform internal.usage_add(internal.utc_day(new.created_at), 'ai_spend_usd', new.cost_usd);
  elsif tg_op = 'UPDATE' then
    perform internal.usage_add(internal.utc_day(new.created_at), 'ai_spend_usd',
                               coalesce(new.cost_usd, 0) - coalesce(old.cost_usd, 0));
  else
    perform internal.usage_add(internal.utc_day(old.created_at), 'ai_spend_usd', old.reserved_usd);
  end if;
  return null;
end $$;
comment on function internal.tg_ai_invocations__spend is
  'Counts what a call has cost. Of one whose user is deleted while it runs, what was reserved: the record of its end
   will find no invocation.';
create or replace trigger tg_ai_invocations__spend_of_insert
  after insert on app.ai_invocations
  for each row when (new.cost_usd <> 0) execute function internal.tg_ai_invocations__spend();
create or replace trigger tg_ai_invocations__spend_of_update
  after update of cost_usd on app.ai_invocations
  for each row when (coalesce(new.cost_usd, 0) <> coalesce(old.cost_usd,
                                                           0)) execute function internal.tg_ai_invocations__spend();
create or replace trigger tg_ai_invocations__spend_of_delete
  after delete on app.ai_invocations
  for each row when (old.status = 'running' and old.reserved_usd
                     <> 0) execute function internal.tg_ai_invocations__spend();

create or replace function internal.tg_engagement_events__usage() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  open_from timestamptz;
  gone record;
begin
  -- a shared lock: deletions do not wait for each other, and a day is closed before or after one, not meanwhile
  select (c.closed_until + 1)::timestamp at time zone 'UTC' into open_from from app.usage_closings c for share;
  for gone in
    select internal.utc_day(o.received_at) as day, count(*) as events
      from old_rows o
     where o.received_at >= open_from and o.source <> 'system'
     group by 1
  loop
    perform internal.usage_add(gone.day, 'events', gone.events);
  end loop;
  return null;
end $$;
comment on function internal.tg_engagement_events__usage is
  'Keeps the number of deleted events of a day that is not closed yet.';
create or replace trigger tg_engagement_events__usage
  after delete on app.engagement_events referencing old table as old_rows
  for each statement execute function internal.tg_engagement_events__usage();

create or replace function internal.stored_bytes() returns numeric
language sql stable security definer set search_path = '' as $$
  select coalesce(sum(t.stored_bytes), 0) from app.media_totals t
$$;
comment on function internal.stored_bytes is 'The bytes of the files that the project stores now.';

create or replace function internal.events_received(first date, last date) returns table (day date, events bigint)
language sql stable security definer set search_path = '' as $$
  select internal.utc_day(e.received_at), count(*)
    from app.engagement_events e
   where e.received_at >= events_received.first::timestamp at time zone 'UTC'
     and e.received_at < (events_received.last + 1)::timestamp at time zone 'UTC'
     and e.source <> 'system'
   group by 1
$$;
comment on function internal.events_received is
  'Counts the events that apps, servers and webhooks sent on each of some days, and that are stored. Reads those days.
   Granted to nobody.';

create or replace function internal.usage_close(last date, most int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  next_day date;
  closed int := 0;
begin
  select c.closed_until + 1 into next_day from app.usage_closings c for update;
  while next_day <= usage_close.last and (usage_close.most is null or closed < usage_close.most) loop
    perform internal.usage_add(r.day, 'events', r.events) from internal.events_received(next_day, next_day) r;
    insert into app.usage_days (day, meter, amount) values (next_day, 'storage_bytes', internal.stored_bytes());
    update app.usage_closings set closed_until = next_day;
    next_day := next_day + 1;
    closed := closed + 1;
  end loop;
  return closed;
end $$;
comment on function internal.usage_close is
  'Stores the events and the stored bytes of days that are over, at most so many, and answers of how many. Waits for
   deletions of events. Granted to nobody.';

create or replace function internal.purge__billing(most int default 5000) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- a transaction that began before midnight has ended an hour after it
  over constant date := internal.utc_day(internal.now() - interval '1 hour') - 1;
  -- a step is short: one day of events
  closed constant int := internal.usage_close(over, case when purge__billing.most is not null then 1 end);
begin
  if closed > 0 then
    return purge__billing.most;
  end if;
  -- slots that nobody holds become one: their sum stays what it is, in every snapshot
  with free as materialized (
    select u.slot, u.meter, u.day, u.amount from app.usage_days u where u.day <= over for update skip locked
  ), crowded as (
    select f.meter, f.day, sum(f.amount) as amount, array_agg(f.slot) as slots from free f group by f.meter, f.day
    having count(*) > 1
  ), gone as (
    delete from app.usage_days u using crowded w where u.slot = any (w.slots)
  )
  insert into app.usage_days (meter, day, amount) select w.meter, w.day, w.amount from crowded w;
  return internal.purge_rows('app.usage_days', 't.day < internal.utc_day(internal.now()) - 400', purge__billing.most);
end $$;
comment on function internal.purge__billing is
  'Daily: closes the days that are over, one in a step, makes one slot of the slots of a meter and day, and forgets days
   after 400 days. Part of api.tenant_purge.';
