-- Work that outlives a request: rows that triggers write, and that the drain leases, runs and settles.
create or replace function internal.wake(due_at timestamptz) returns void
language sql volatile as $$
  -- compared as text in one fixed form, so that the earliest of a transaction stays
  select set_config('app.due_at',
                    least(nullif(current_setting('app.due_at', true), ''), internal.iso(wake.due_at)), true)
$$;
comment on function internal.wake is 'Tells the server when this tenant next has due work: the earliest of the transaction.';

create or replace function internal.enqueue(task text, key text default null, payload jsonb default '{}',
                                            due_at timestamptz default null, lane text default null)
returns void
language plpgsql volatile as $$
begin
  insert into app.outbox as queued (task, key, lane, payload, due_at)
  values (enqueue.task, enqueue.key, enqueue.lane, enqueue.payload, coalesce(enqueue.due_at, internal.now()))
  on conflict on constraint outbox_one_per_task_and_key do update
     set payload = excluded.payload, due_at = least(queued.due_at, excluded.due_at), failed_at = null,
         revision = queued.revision + 1;
  perform internal.wake(coalesce(enqueue.due_at, internal.now()));
end $$;
comment on function internal.enqueue is
  'Queues a task in this transaction. The same task and key again: one row, the earlier due_at, the newer payload. Granted to nobody.';

create or replace function api.outbox_lease(batch int, seconds int, lane_limit int) returns api.reply
language plpgsql volatile as $$
declare
  leased json;
begin
  with busy as (
    select o.lane, count(*) as running
      from app.outbox o
     where o.lane is not null and o.locked_until > internal.now()
     group by o.lane
  ), candidates as (
    select o.id, o.lane, o.due_at
      from app.outbox o
     where o.failed_at is null and o.due_at <= internal.now()
       and (o.locked_until is null or o.locked_until <= internal.now())
     order by o.due_at
     limit outbox_lease.batch * 4
       for update skip locked
  ), ranked as (
    select c.id, c.due_at,
           c.lane is null
             or coalesce(b.running, 0) + row_number() over (partition by c.lane order by c.due_at) <= outbox_lease.lane_limit as fits
      from candidates c
      left join busy b on b.lane = c.lane
  ), taken as (
    update app.outbox o
       set locked_until = internal.now() + make_interval(secs => outbox_lease.seconds), attempts = o.attempts + 1
     where o.id in (select r.id from ranked r where r.fits order by r.due_at limit outbox_lease.batch)
    returning o.id, o.task, o.key, o.payload, o.attempts, o.due_at, o.revision
  )
  select json_agg(json_build_object('id', t.id, 'task', t.task, 'key', t.key, 'payload', t.payload, 'attempts', t.attempts,
                                    'revision', t.revision)
                  order by t.due_at)
    into leased
    from taken t;
  return internal.reply(200, coalesce(leased, '[]'));
end $$;
comment on function api.outbox_lease is
  'Takes due rows for some seconds: their ids, tasks, keys, payloads. At most lane_limit of one lane run at once. A row whose worker died is due again when its lease ends.';

create or replace function api.outbox_settle(id uuid, revision int, due_at timestamptz default null, error text default null,
                                             gave_up boolean default false)
returns api.reply
language plpgsql volatile as $$
begin
  if outbox_settle.due_at is null and not outbox_settle.gave_up then
    delete from app.outbox o where o.id = outbox_settle.id and o.revision = outbox_settle.revision;
  end if;
  -- queued again while it ran: what is left is that newer wish
  update app.outbox o
     set due_at = case when o.revision = outbox_settle.revision then coalesce(outbox_settle.due_at, o.due_at) else o.due_at end,
         locked_until = null,
         last_error = outbox_settle.error,
         attempts = case when outbox_settle.error is null then 0 else o.attempts end,
         failed_at = case when outbox_settle.gave_up and o.revision = outbox_settle.revision then internal.now() end
   where o.id = outbox_settle.id;
  return internal.reply(200, 'true');
end $$;
comment on function api.outbox_settle is
  'After a task ran: without due_at the row goes; with it, it comes due again; gave_up leaves it for a person to see. revision is the leased one: work queued in between is kept.';

create or replace function api.outbox_next() returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('due_at', internal.iso(min(greatest(o.due_at, o.locked_until)))))
    from app.outbox o
   where o.failed_at is null
$$;
comment on function api.outbox_next is 'When the earliest row is due, a leased one at the end of its lease; null when there is none.';
