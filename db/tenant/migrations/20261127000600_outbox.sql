-- migrate:up
create table app.outbox (
  id           uuid primary key default internal.new_id(),
  task         text not null,
  key          text,
  lane         text,
  payload      jsonb not null default '{}',
  due_at       timestamptz not null default internal.now(),
  requested_at    timestamptz,
  locked_until timestamptz,
  lease        int not null default 0,
  attempts     int not null default 0,
  last_error   text,
  failed_at    timestamptz,
  created_at   timestamptz not null default internal.now(),
  constraint outbox_one_per_task_and_key unique (task, key)
);
comment on table app.outbox is
  'Work that a change caused, inserted in its transaction. A worker leases due rows, runs the task that each names, and
   deletes it or sets its next due_at. lease is the number of the newest lease: only its holder settles the row.
   requested_at: queued again while it ran, for then. At most so many rows of one lane run at once. failed_at: given up,
   for a person to see and replay.';
-- serves the timer: what is due next
create index outbox_due on app.outbox (due_at) where failed_at is null;
-- the few rows that run
create index outbox_leases on app.outbox (locked_until, lane) where locked_until is not null;
-- serves the lease: from each task and lane in turn what is due longest, so that a long backlog of one holds up no
-- other
create index outbox_groups on app.outbox (task, (coalesce(lane, '')), due_at) where failed_at is null;

-- migrate:down
drop table app.outbox;
