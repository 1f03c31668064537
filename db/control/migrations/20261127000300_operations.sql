-- migrate:up
create table app.operations (
  id               uuid primary key default internal.new_id(),
  project_id       uuid not null references app.projects on delete cascade,
  type             text not null,
  status           text not null default 'queued'
                     constraint operations_status_known check (status in ('queued', 'running', 'waiting', 'succeeded',
                                                                          'failed', 'cancelled')),
  done             bigint,
  total            bigint,
  confirm_required boolean not null default false,
  plan_hash        text,
  input            jsonb not null default '{}',
  result           json,
  failed_reason    text,
  created_at       timestamptz not null default internal.now(),
  updated_at       timestamptz not null default internal.now()
);
comment on table app.operations is 'Asynchronous work that a developer may poll. Kept 90 days.';
create index operations_of_project on app.operations (project_id, created_at desc, id desc);
-- one at a time: of two that start at once, one is refused
create unique index operations_one_monetization_apply on app.operations (project_id)
  where type = 'monetization.apply' and status in ('queued', 'running', 'waiting');

-- migrate:down
drop table app.operations;
