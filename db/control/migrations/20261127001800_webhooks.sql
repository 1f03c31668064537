-- migrate:up
-- Tables of the same names and columns as those of a project: functions/shared/webhooks is loaded over both.
create table app.webhooks (
  id              uuid primary key default internal.new_id(),
  organization_id uuid not null references app.organizations on delete cascade,
  event_types     text[] not null constraint webhooks_event_types_some check (cardinality(event_types) > 0),
  target_url      text not null,
  status          text not null default 'active' constraint webhooks_status_known
    check (status in ('active', 'disabled', 'degraded')),
  secret_id       uuid not null,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  audit_since     timestamptz
);
comment on table app.webhooks is
  'Webhooks of the control plane: what happens to the projects of an organization. event_types {*} is every type but
   audit.event.';
comment on column app.webhooks.audit_since is
  'Since when it watches audit.event, which projects report after a while; null while it does not.';
create index webhooks_of_organization on app.webhooks (organization_id, created_at desc, id desc);

create table app.webhook_secrets (
  id            uuid primary key,
  webhook_id    uuid not null references app.webhooks on delete cascade,
  secret_sealed text not null,
  created_at    timestamptz not null default internal.now(),
  replaced_at   timestamptz
);
comment on table app.webhook_secrets is
  'Signing secrets, encrypted by the server. A delivery keeps the one that it was queued with.';
create index webhook_secrets_of_webhook on app.webhook_secrets (webhook_id);

create table app.webhook_deliveries (
  id              uuid primary key,
  webhook_id      uuid not null,
  secret_id       uuid not null,
  event_id        uuid not null,
  event_name      text not null,
  payload         text not null,
  status          text not null default 'pending'
                    constraint webhook_deliveries_status_known
                      check (status in ('pending', 'delivered', 'failed', 'dlq')),
  failed_reason   text constraint webhook_deliveries_failed_reason_known
                    check (failed_reason in ('attempts_exhausted', 'held_too_long', 'gone', 'target_not_allowed',
                                             'subscription_disabled')),
  attempts        int not null default 0,
  series_attempts int not null default 0,
  next_attempt_at timestamptz,
  held_until      timestamptz,
  created_at      timestamptz not null default internal.now(),
  settled_at      timestamptz,
  constraint webhook_deliveries_once_per_event unique (webhook_id, event_id)
);
comment on table app.webhook_deliveries is
  'One per webhook and event; event_name is the type. payload is the body, built once: retries and replays are the same
   to the byte. Those of a deleted webhook are removed by a worker.';
create index webhook_deliveries_newest on app.webhook_deliveries (webhook_id, created_at desc, id desc);
create index webhook_deliveries_by_status on app.webhook_deliveries (webhook_id, status, created_at desc, id desc);
create index webhook_deliveries_held on app.webhook_deliveries (webhook_id, held_until) where held_until is not null;
create index webhook_deliveries_created on app.webhook_deliveries (created_at);

create table app.webhook_attempts (
  delivery_id      uuid not null references app.webhook_deliveries on delete cascade,
  webhook_id       uuid,
  n                int not null,
  at               timestamptz not null,
  status_code      int,
  error            text,
  duration_ms      int not null,
  response_excerpt text,
  primary key (delivery_id, n)
);
comment on table app.webhook_attempts is 'The attempt log of each delivery, from 1.';

create table app.webhook_breakers (
  webhook_id    uuid primary key references app.webhooks on delete cascade,
  dlq_in_row    int not null default 0,
  failed_in_row int not null default 0,
  failing_since timestamptz,
  degraded_at   timestamptz,
  probed_at     timestamptz
);
comment on table app.webhook_breakers is
  'How badly a webhook fares: deliveries that ended in dlq and attempts that failed, each since the last that was
   delivered.';

create table app.webhook_audit_cursors (
  project_id uuid primary key references app.projects on delete cascade,
  position   bigint not null
);
comment on table app.webhook_audit_cursors is
  'How far the trail in a project''s own database has been reported: the position of a seal. A project that nobody
   watches has no row.';

-- migrate:down
drop table app.webhook_audit_cursors;
drop table app.webhook_breakers;
drop table app.webhook_attempts;
drop table app.webhook_deliveries;
drop table app.webhook_secrets;
drop table app.webhooks;
