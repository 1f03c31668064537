-- Functions under the names that workers of the former version call while both versions run during an upgrade. Remove with the next version.
create or replace function api.outbox_settle(id uuid, lease int, due_at timestamptz default null, error text default null,
                                             gave_up boolean default false)
returns api.reply
language sql volatile as $$
  select api.outbox_finish(outbox_settle.id, outbox_settle.lease, outbox_settle.due_at, outbox_settle.error, outbox_settle.gave_up)
$$;
comment on function api.outbox_settle is
  'As api.outbox_finish, for workers of the former version: without it a task that they have run would run again.';
