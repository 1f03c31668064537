-- Monthly partitions: created ahead of time, and dropped when all their days are older than 400 days.
create or replace function internal.audit_oldest_month() returns date
language sql stable as $$
  select date_trunc('month', (internal.now() - interval '400 days') at time zone 'UTC')::date
$$;
comment on function internal.audit_oldest_month is
  'The oldest month with a day within the last 400; older months are dropped.';

create or replace function internal.audit_oldest_time() returns timestamptz
language sql stable as $$
  select internal.audit_oldest_month()::timestamp at time zone 'UTC'
$$;
comment on function internal.audit_oldest_time is 'Rows of the trail from before this time are dropped.';

create or replace function internal.make_audit_month(parent text, time_column text, month date) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  first constant timestamptz := date_trunc('month', make_audit_month.month)::timestamp at time zone 'UTC';
  next constant timestamptz := (date_trunc('month', make_audit_month.month) + interval '1 month') at time zone 'UTC';
  partition constant text := make_audit_month.parent || '_' || to_char(make_audit_month.month, 'YYYYMM');
  rest constant text := make_audit_month.parent || '_default';
begin
  if to_regclass('app.' || partition) is not null then
    return;
  end if;
  -- gives up before Postgres checks for deadlocks (after a second), so that no request is cancelled as the victim of a
  -- deadlock
  perform set_config('lock_timeout', '500ms', true);
  execute format('lock table app.%I in share update exclusive mode', make_audit_month.parent);
  execute format('lock table app.%I in access exclusive mode', rest);
  -- a concurrent transaction may have created it during the wait
  if to_regclass('app.' || partition) is not null then
    return;
  end if;
  execute format('create table app.%I (like app.%I including all)', partition, make_audit_month.parent);
  execute format('alter table app.%I enable row level security', partition);
  execute format('with moved as (delete from app.%1$I e where e.%2$I >= $1 and e.%2$I < $2 returning e.*)
                  insert into app.%3$I select m.* from moved m',
                 rest, make_audit_month.time_column, partition) using first, next;
  execute format('alter table app.%I attach partition app.%I for values from (%L) to (%L)', make_audit_month.parent,
                 partition, first, next);
end $$;
comment on function internal.make_audit_month is
  'Creates the partition of a month in one table, and moves rows of that month that were written earlier into it. Locks
   the table against writers for a moment. Granted to nobody.';

create or replace function internal.make_audit_partition(month date) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.make_audit_month('audit_events', 'occurred_at', make_audit_partition.month);
  perform internal.make_audit_month('audit_seals', 'sealed_at', make_audit_partition.month);
end $$;
comment on function internal.make_audit_partition is
  'Creates the partitions of a month: of the audit rows, and of their seals.';

create or replace function internal.purge_audit() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  oldest constant date := internal.audit_oldest_month();
  partition text;
begin
  perform set_config('lock_timeout', '500ms', true);
  for partition in
    select c.relname
      from pg_catalog.pg_inherits i
      join pg_catalog.pg_class c on c.oid = i.inhrelid
     where i.inhparent in ('app.audit_events'::regclass, 'app.audit_seals'::regclass)
       and c.relname ~ '^audit_(events|seals)_\d{6}$'
       and to_date(right(c.relname, 6), 'YYYYMM') < oldest
     order by c.relname
  loop
    execute format('drop table app.%I', partition);
  end loop;
  delete from app.audit_events_default e where e.occurred_at < internal.audit_oldest_time();
  -- a seal is never older than its row, so that no row is left without its seal
  delete from app.audit_seals_default s where s.sealed_at < internal.audit_oldest_time();
  delete from app.audit_digests d where d.occurred_at < internal.audit_oldest_time();
  -- the newest seal of each chain is kept, however old: the next seal contains its hash
  delete from app.audit_heads h
   where h.month < oldest
     and exists (select from app.audit_heads later where later.scope = h.scope and later.month > h.month);
end $$;
comment on function internal.purge_audit is 'Drops the months whose days are all older than 400 days.';

create or replace function api.audit_maintain() returns api.reply
language plpgsql volatile as $$
begin
  for months in 0..2 loop
    perform internal.make_audit_partition((date_trunc('month',
                                                      internal.now() at time zone 'UTC')
                                                        + make_interval(months => months))::date);
  end loop;
  perform internal.purge_audit();
  return internal.reply(200, 'true');
end $$;
comment on function api.audit_maintain is
  'Daily, and when a project is created: creates the partitions of this month and the next two; drops those that are
   older than 400 days.';
