-- Work that outlives a request: rows that triggers write, and that the drain leases, runs and settles.
create or replace function internal.wake(due_at timestamptz) returns void
language sql volatile as $$
  select internal.tell('app.due_at', internal.iso(least(nullif(current_setting('app.due_at', true), '')::timestamptz, wake.due_at)))
$$;
comment on function internal.wake is 'Tells the server when this tenant next has due work: the earliest of the transaction.';

create or replace function internal.enqueue(task text, key text default null, payload jsonb default '{}',
                                            due_at timestamptz default null, lane text default null)
returns void
language plpgsql volatile as $$
declare
  due constant timestamptz := coalesce(enqueue.due_at, internal.now());
begin
  insert into app.outbox as queued (task, key, lane, payload, due_at)
  values (enqueue.task, enqueue.key, enqueue.lane, enqueue.payload, due)
  on conflict on constraint outbox_one_per_task_and_key do update
     set payload = excluded.payload,
         -- while it runs, due_at belongs to that run, and the newer wish stands beside it; a lease that ended may have a holder who is only late
         wished_at = case when queued.locked_until is not null then least(queued.wished_at, excluded.due_at) else queued.wished_at end,
         due_at = case when queued.locked_until is not null then queued.due_at
                       when queued.failed_at is not null then excluded.due_at
                       else least(queued.due_at, excluded.due_at) end,
         attempts = case when queued.failed_at is null then queued.attempts else 0 end,
         failed_at = null;
  perform internal.wake(due);
end $$;
comment on function internal.enqueue is
  'Queues a task in this transaction. The same task and key again: one row, the earlier due_at, the newer payload; what was given up gets new
   attempts, and what runs at this moment runs once more. Granted to nobody.';

create or replace function api.outbox_lease(batch int, seconds int, lane_limit int) returns api.reply
language plpgsql volatile as $$
declare
  leased json;
begin
  -- one lease at a time, or two drains would count a lane's free places and both take them
  perform pg_advisory_xact_lock(7305441006);
  with recursive lanes as (
    select min(o.lane) as lane from app.outbox o where o.failed_at is null
    union all
    select (select min(o.lane) from app.outbox o where o.failed_at is null and o.lane > l.lane) from lanes l where l.lane is not null
  ), places as (
    select l.lane,
           outbox_lease.lane_limit
             - (select count(*) from app.outbox r where r.lane = l.lane and r.locked_until > internal.now()) as free
      from lanes l
     where l.lane is not null
  ), candidates as (
    select o.id, o.due_at
      from places p
     cross join lateral (
       select c.id, c.due_at
         from app.outbox c
        where c.lane = p.lane and c.failed_at is null and c.due_at <= internal.now()
          and (c.locked_until is null or c.locked_until <= internal.now())
        order by c.due_at
        limit greatest(p.free, 0)
          for update skip locked) o
    union all
    select o.id, o.due_at
      from (select c.id, c.due_at
              from app.outbox c
             where c.lane is null and c.failed_at is null and c.due_at <= internal.now()
               and (c.locked_until is null or c.locked_until <= internal.now())
             order by c.due_at
             limit outbox_lease.batch
               for update skip locked) o
  ), taken as (
    update app.outbox o
       set locked_until = internal.now() + make_interval(secs => outbox_lease.seconds),
           lease = o.lease + 1,
           attempts = o.attempts + 1,
           -- this run does what was wished for until now
           wished_at = case when o.wished_at > internal.now() then o.wished_at end
     where o.id in (select c.id from candidates c order by c.due_at limit outbox_lease.batch)
    returning o.id, o.task, o.key, o.payload, o.attempts, o.due_at, o.lease
  )
  select json_agg(json_build_object('id', t.id, 'task', t.task, 'key', t.key, 'payload', t.payload, 'attempts', t.attempts,
                                    'lease', t.lease)
                  order by t.due_at)
    into leased
    from taken t;
  -- beside the rows, so that a drain seals the audit trail without asking whether there is something to seal
  return row(200, json_build_object('data', coalesce(leased, '[]'), 'is_unsealed', internal.audit_waiting()), null)::api.reply;
end $$;
comment on function api.outbox_lease is
  'Takes due rows for some seconds: their ids, tasks, keys, payloads. At most lane_limit of one lane run at once, however many lease. A row whose
   worker died is due again when its lease ends. is_unsealed beside data: rows of the audit trail wait for their seal. Serialises its callers.';

create or replace function api.outbox_renew(held json, seconds int) returns api.reply
language sql volatile as $$
  with renewed as (
    update app.outbox o
       set locked_until = internal.now() + make_interval(secs => outbox_renew.seconds)
      from json_to_recordset(outbox_renew.held) as h (id uuid, lease int)
     where o.id = h.id and o.lease = h.lease and o.locked_until > internal.now()
    returning o.id
  )
  select internal.reply(200, to_json((select count(*) from renewed)))
$$;
comment on function api.outbox_renew is
  'Prolongs leases, [{id, lease}], whose work still runs; answers how many. One that has ended is not taken back: somebody else may hold it.';

create or replace function api.outbox_settle(id uuid, lease int, due_at timestamptz default null, error text default null,
                                             gave_up boolean default false)
returns api.reply
language plpgsql volatile as $$
begin
  if outbox_settle.due_at is null and not outbox_settle.gave_up then
    delete from app.outbox o where o.id = outbox_settle.id and o.lease = outbox_settle.lease and o.wished_at is null;
    if found then
      return internal.reply(200, 'true');
    end if;
  end if;
  -- a lease that ended, and was taken by another, settles nothing; what was queued again meanwhile stays, with new attempts
  update app.outbox o
     set due_at = coalesce(least(outbox_settle.due_at, o.wished_at), o.due_at),
         wished_at = null,
         locked_until = null,
         last_error = outbox_settle.error,
         attempts = case when outbox_settle.error is null or o.wished_at is not null then 0 else o.attempts end,
         failed_at = case when outbox_settle.gave_up and o.wished_at is null then internal.now() end
   where o.id = outbox_settle.id and o.lease = outbox_settle.lease;
  return internal.reply(200, 'true');
end $$;
comment on function api.outbox_settle is
  'After a task ran: without due_at the row goes; with it, it comes due again; gave_up leaves it for a person to see. lease is the number that
   outbox_lease gave. What was queued while it ran is kept.';

create or replace function api.outbox_next() returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('due_at', internal.iso(least(
    (select min(o.due_at) from app.outbox o where o.failed_at is null and o.due_at > internal.now()),
    (select min(o.locked_until) from app.outbox o where o.locked_until > internal.now()),
    -- where others of its lane run, whoever runs them takes the next
    (select min(o.due_at)
       from app.outbox o
      where o.failed_at is null and o.due_at <= internal.now() and (o.locked_until is null or o.locked_until <= internal.now())
        and not exists (select from app.outbox r where r.lane = o.lane and r.locked_until > internal.now()))))))
$$;
comment on function api.outbox_next is
  'When to look again: the earliest row that is due, or the end of a lease, for its holder may have died; null when there is neither.';
