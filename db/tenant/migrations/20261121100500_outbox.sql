-- migrate:up
create table app.outbox (
  id           uuid primary key default internal.new_id(),
  task         text not null,
  key          text,
  lane         text,
  payload      jsonb not null default '{}',
  due_at       timestamptz not null default internal.now(),
  locked_until timestamptz,
  attempts     int not null default 0,
  revision     int not null default 0,
  last_error   text,
  failed_at    timestamptz,
  created_at   timestamptz not null default internal.now(),
  constraint outbox_one_per_task_and_key unique (task, key)
);
comment on table app.outbox is
  'Work that a change caused, inserted in its transaction. A worker leases due rows, runs the task that each names, and deletes it or sets its next due_at. failed_at: given up, for a person to see and replay.';
create index outbox_due on app.outbox (due_at) where failed_at is null;
create index outbox_lanes on app.outbox (lane, locked_until) where lane is not null and locked_until is not null;

-- migrate:down
drop table app.outbox;
