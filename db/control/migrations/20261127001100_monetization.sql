-- migrate:up
create table app.monetization_applies (
  operation_id    uuid primary key references app.operations on delete cascade,
  steps           jsonb not null,
  additive        int not null,
  reconcile       text not null constraint monetization_applies_reconcile_known
    check (reconcile in ('service', 'adopt')),
  is_checked      boolean not null default false,
  is_confirmed    boolean not null,
  confirm_sent_at timestamptz,
  position        int not null default 0 constraint monetization_applies_position_in_steps
    check (position between 0 and jsonb_array_length(steps)),
  begun           int,
  run             int not null default 0,
  waiting_hash    text,
  waiting_since   timestamptz,
  expired_at      timestamptz,
  is_expiry_known boolean not null default false
);
comment on table app.monetization_applies is
  'The steps of an apply operation and how far they are: position counts the steps that are done, begun is the step
   whose call may have been made. The first `additive` steps run at once, the others after a confirmation. run counts
   the workers that have taken it: only the newest may record a step. waiting_hash is the plan of what remained when the
   operation began to wait.';

-- migrate:down
drop table app.monetization_applies;
