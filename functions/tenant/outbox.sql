-- The transactional outbox: triggers write background tasks as rows in the transaction that causes them; a drain
-- (workers/drain.ts) leases the rows, runs their tasks and finishes them.
create or replace function internal.wake(due_at timestamptz) returns void
language sql volatile as $$
  select internal.return_setting('app.due_at',
                                 internal.iso(least(nullif(current_setting('app.due_at', true), '')::timestamptz,
                                                    wake.due_at)))
$$;
comment on function internal.wake is
  'Returns to the server when this tenant next has due work: the earliest time of the transaction.';

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
         -- while the row is leased, due_at belongs to the current run and requested_at holds the due time that was
         -- requested since, also when the lease has expired: its holder may merely be late
         requested_at = case when queued.locked_until is not null then least(queued.requested_at, excluded.due_at)
                          else queued.requested_at end,
         due_at = case when queued.locked_until is not null then queued.due_at
                       when queued.failed_at is not null then excluded.due_at
                       else least(queued.due_at, excluded.due_at) end,
         attempts = case when queued.failed_at is null then queued.attempts else 0 end,
         failed_at = null;
  perform internal.wake(due);
end $$;
comment on function internal.enqueue is
  'Queues a task in this transaction, with deduplication by task and key: one row with the earlier due_at and the newer
   payload. A row that had failed gets new attempts; a row whose task is running runs once more afterwards. Granted to
   nobody.';

create or replace function internal.outbox_groups(lane_limit int, rules json)
returns table (task text, lane text, rank int, task_places int, lane_places int, is_attended boolean)
language sql stable as $$
  with recursive waiting as (
    (select o.task, coalesce(o.lane, '') as lane
       from app.outbox o
      where o.failed_at is null
      order by o.task, coalesce(o.lane, '')
      limit 1)
    union all
    select n.task, n.lane
      from waiting w
     cross join lateral (
       select o.task, coalesce(o.lane, '') as lane
         from app.outbox o
        where o.failed_at is null and (o.task, coalesce(o.lane, '')) > (w.task, w.lane)
        order by o.task, coalesce(o.lane, '')
        limit 1) n
  ), running as materialized (
    select r.task, r.lane from app.outbox r where r.locked_until > internal.now()
  ), counted as (
    select w.task, nullif(w.lane, '') as lane, r.rank, r.at_once,
           (select count(*) from running n where n.task = w.task)::int as of_task,
           (select count(*) from running n where n.lane = w.lane)::int as of_lane
      from waiting w
      left join json_to_recordset(outbox_groups.rules) as r (task text, rank int, at_once int) on r.task = w.task
  )
  select c.task, c.lane, coalesce(c.rank, 1), c.at_once - c.of_task,
         case when c.lane is not null then outbox_groups.lane_limit - c.of_lane end,
         (c.at_once is not null and c.of_task > 0) or (c.lane is not null and c.of_lane > 0)
    from counted c
$$;
comment on function internal.outbox_groups is
  'Each task and lane in the outbox with its rank and its free places: null where concurrency is unlimited. rules is
   [{task, rank, at_once}], as the tasks declare it; rank 0 goes first, and a task without a rule has rank 1.
   is_attended: a task that occupies a limited place is running, and the drain that runs it leases the next row of that
   task or lane.';

create or replace function internal.outbox_begun(task text, keys text[]) returns table (key text, begun json)
language plpgsql stable as $$
declare
  hook constant text := 'outbox_begun__' || outbox_begun.task;
begin
  if to_regprocedure(format('internal.%I(text[])', hook)) is not null then
    return query execute format('select b.key, b.begun from internal.%I($1) b', hook) using outbox_begun.keys;
  end if;
end $$;
comment on function internal.outbox_begun is
  'The data that rows of a task begin with, returned with the lease to spare a round trip: by
   internal.outbox_begun__<task>(keys text[]) of its area, where there is one; no row where the task fetches it itself.
   Only reads, so that leasing waits for no lock.';

create or replace function api.outbox_lease(batch int, seconds int, lane_limit int, rules json default null,
                                            places int[] default null)
returns api.reply
language plpgsql volatile as $$
declare
  leased json;
begin
  -- leases are serialised: otherwise two drains could count the same free places and both take them
  perform internal.advisory_lock('outbox lease');
  with candidates as (
    select c.id, c.due_at, g.rank, g.task_places, g.lane_places,
           row_number() over (partition by g.task order by c.due_at, c.id) as in_task,
           row_number() over (partition by g.lane order by c.due_at, c.id) as in_lane
      from internal.outbox_groups(outbox_lease.lane_limit, outbox_lease.rules) g
     cross join lateral (
       select o.id, o.due_at
         from app.outbox o
        where o.task = g.task and coalesce(o.lane, '') = coalesce(g.lane, '') and o.failed_at is null
          and o.due_at <= internal.now() and (o.locked_until is null or o.locked_until <= internal.now())
        order by o.due_at
        limit greatest(least(outbox_lease.batch, g.task_places, g.lane_places), 0)) c
  ), fitting as (
    select c.id, c.rank, c.due_at, row_number() over (partition by c.rank order by c.due_at, c.id) as in_rank
      from candidates c
     where (c.task_places is null or c.in_task <= c.task_places)
       and (c.lane_places is null or c.in_lane <= c.lane_places)
  ), picked as (
    -- rows are locked one by one until the batch is full; a row that is locked by a transaction which queues it again
    -- is skipped until the next lease
    select o.id, f.rank
      from fitting f
      join app.outbox o on o.id = f.id
     where (outbox_lease.places is null or f.in_rank <= outbox_lease.places[f.rank + 1])
       and o.failed_at is null and o.due_at <= internal.now()
       and (o.locked_until is null or o.locked_until <= internal.now())
     order by f.rank, f.due_at, f.id
     limit outbox_lease.batch
       for update of o skip locked
  ), taken as (
    update app.outbox o
       set locked_until = internal.now() + make_interval(secs => outbox_lease.seconds),
           lease = o.lease + 1,
           attempts = o.attempts + 1,
           -- this run covers everything that was requested up to now
           requested_at = case when o.requested_at > internal.now() then o.requested_at end
      from picked p
     where o.id = p.id
    returning o.id, o.task, o.key, o.payload, o.attempts, o.due_at, o.lease, p.rank
  ), repeated as (
    -- each transaction inserts a row of its own for a task without a key, so that none waits for another; one run
    -- serves all rows that are due
    delete from app.outbox o
     where o.id in (
       select d.id
         from (select distinct t.task from taken t where t.key is null) t
        cross join lateral (
          select r.id
            from app.outbox r
           where r.task = t.task and r.key is null and r.failed_at is null and r.due_at <= internal.now()
             and (r.locked_until is null or r.locked_until <= internal.now())
             and not exists (select from taken x where x.id = r.id)
           order by r.due_at
           limit 1000
             for update skip locked) d)
  )
  select json_agg(json_build_object('id', t.id, 'task', t.task, 'key', t.key, 'payload', t.payload,
                                    'attempts', t.attempts,
                                    'lease', t.lease, 'begun', b.begun)
                  order by t.rank, t.due_at)
    into leased
    from taken t
    left join (select k.task, f.key, f.begun
                 from (select w.task, array_agg(w.key) as keys from taken w where w.key is not null group by 1) k
                cross join lateral internal.outbox_begun(k.task, k.keys) f) b on (b.task, b.key) = (t.task, t.key);
  -- is_unsealed comes with the rows, so that a drain learns without another round trip that the audit trail needs
  -- sealing
  return row(200, json_build_object('data', coalesce(leased, '[]'), 'is_unsealed', internal.audit_waiting()),
             null)::api.reply;
end $$;
comment on function api.outbox_lease is
  'Leases due rows for the given number of seconds: their ids, tasks, keys, payloads and the data to begin with, lowest
   rank first, then longest due. At most lane_limit rows of a lane run at once, and of a task as many as its rule
   allows, counted over all drains; places limits how many rows of each rank this caller takes. Rows of a task without a
   key are deduplicated: leasing one deletes the others that are due. A row whose worker died is due again when its
   lease expires. is_unsealed beside data: rows of the audit trail wait for their seal. Serialises its callers.';

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
  'Renews the leases [{id, lease}] of running tasks; answers how many were renewed. An expired lease is not renewed:
   another worker may hold the row.';

create or replace function internal.outbox_finish(id uuid, lease int, due_at timestamptz default null,
                                                  error text default null, gave_up boolean default false)
returns void
language plpgsql volatile as $$
begin
  if outbox_finish.due_at is null and not outbox_finish.gave_up then
    delete from app.outbox o where o.id = outbox_finish.id and o.lease = outbox_finish.lease and o.requested_at is null;
    if found then
      return;
    end if;
  end if;
  -- for a task without a key only the earliest row is kept: the task computes its next due time when it runs
  if outbox_finish.due_at is not null and outbox_finish.error is null then
    delete from app.outbox o
     using app.outbox other
     where o.id = outbox_finish.id and o.lease = outbox_finish.lease and o.key is null
       and other.task = o.task and other.key is null and other.id <> o.id and other.failed_at is null
       and other.locked_until is null
       and other.due_at <= outbox_finish.due_at;
    if found then
      return;
    end if;
    delete from app.outbox other
     using app.outbox o
     where o.id = outbox_finish.id and o.lease = outbox_finish.lease and o.key is null
       and other.task = o.task and other.key is null and other.id <> o.id and other.failed_at is null
       and other.locked_until is null
       and other.due_at > outbox_finish.due_at;
  end if;
  -- the comparison of lease ignores a worker whose lease expired and was taken over; a row that was queued again during
  -- the run stays, with new attempts
  update app.outbox o
     set due_at = coalesce(least(outbox_finish.due_at, o.requested_at), o.due_at),
         requested_at = null,
         locked_until = null,
         last_error = outbox_finish.error,
         attempts = case when outbox_finish.error is null or o.requested_at is not null then 0 else o.attempts end,
         failed_at = case when outbox_finish.gave_up and o.requested_at is null then internal.now() end
   where o.id = outbox_finish.id and o.lease = outbox_finish.lease
     -- an error changes nothing when the row is finished already: the result was stored although its response was lost
     and (outbox_finish.error is null or o.locked_until is not null);
end $$;
comment on function internal.outbox_finish is
  'Finishes a row after its task ran: without due_at the row is deleted; with due_at it is due again at that time; with
   gave_up it stays as failed, for inspection. lease is the number from outbox_lease. A request that was queued during
   the run is kept. Locks the row.';

create or replace function api.outbox_finish(id uuid, lease int, due_at timestamptz default null,
                                             error text default null, gave_up boolean default false)
returns api.reply
language plpgsql volatile as $$
begin
  perform internal.outbox_finish(outbox_finish.id, outbox_finish.lease, outbox_finish.due_at, outbox_finish.error,
                                 outbox_finish.gave_up);
  return internal.reply(200, 'true');
end $$;
comment on function api.outbox_finish is 'internal.outbox_finish for a task whose own functions do not finish its row.';

create or replace function api.outbox_release(held json) returns api.reply
language sql volatile as $$
  with released as (
    update app.outbox o
       set due_at = least(o.due_at, o.requested_at),
           requested_at = null,
           locked_until = null,
           attempts = greatest(o.attempts - 1, 0)
      from json_to_recordset(outbox_release.held) as h (id uuid, lease int)
     where o.id = h.id and o.lease = h.lease and o.locked_until is not null
    returning o.id
  )
  select internal.reply(200, to_json((select count(*) from released)))
$$;
comment on function api.outbox_release is
  'Releases the leases [{id, lease}] of tasks that a stop of the server interrupted: the rows are due at once, and the
   attempt is not counted. Answers how many were released.';

create or replace function internal.outbox_next(rules json) returns timestamptz
language sql stable as $$
  select least(
    (select min(o.due_at) from app.outbox o where o.failed_at is null and o.due_at > internal.now()),
    (select min(o.locked_until) from app.outbox o where o.locked_until > internal.now()),
    (select min(c.due_at)
       from internal.outbox_groups(1, outbox_next.rules) g
      cross join lateral (
        select o.due_at
          from app.outbox o
         where o.task = g.task and coalesce(o.lane, '') = coalesce(g.lane, '') and o.failed_at is null
           and o.due_at <= internal.now() and (o.locked_until is null or o.locked_until <= internal.now())
         order by o.due_at
         limit 1) c
      where not g.is_attended),
    -- rows that a sealer at work, or one that failed, has left; delayed, because sealing may keep failing
    case when internal.audit_waiting() then internal.now() + interval '5 seconds' end)
$$;
comment on function internal.outbox_next is
  'When to lease again: the earliest due_at, or the earliest expiry of a lease, whose holder may have died; null when
   there is neither. Rows that wait for a limited place count only when no task occupies it; rules as for outbox_lease.
   Unsealed rows of the audit trail count as due in 5 seconds.';

create or replace function api.outbox_next(rules json default null) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('due_at', internal.iso(internal.outbox_next(outbox_next.rules))))
$$;
comment on function api.outbox_next is '{due_at} as of internal.outbox_next, for the end of a drain and for the sweep.';

create or replace function api.outbox_due(most int) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
           'rows', count(*), 'oldest_seconds', coalesce(extract(epoch from internal.now() - min(d.due_at)), 0)))
    from (select o.due_at
            from app.outbox o
           where o.failed_at is null and o.due_at <= internal.now()
             and (o.locked_until is null or o.locked_until <= internal.now())
           order by o.due_at
           limit outbox_due.most) d
$$;
comment on function api.outbox_due is
  'The due rows that no task holds, for metrics: {rows, oldest_seconds}; counted up to the given number.';
