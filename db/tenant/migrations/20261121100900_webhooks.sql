-- migrate:up
create table app.webhooks (
  id            uuid primary key default internal.new_id(),
  event_name    text not null constraint webhooks_event_name_form check (event_name ~ '^[a-z][a-z0-9_.-]{0,127}$'),
  target_url    text not null,
  description   text,
  filter        jsonb,
  include_user  boolean not null default true,
  status        text not null default 'active' constraint webhooks_status_known check (status in ('active', 'disabled', 'degraded')),
  secret_id     uuid not null,
  created_at    timestamptz not null default internal.now(),
  updated_at    timestamptz not null default internal.now()
);
comment on table app.webhooks is 'Outbound subscriptions: one event name each.';
-- serves the lookup at every event
create index webhooks_watching on app.webhooks (event_name) where status <> 'disabled';

create table app.webhook_secrets (
  id            uuid primary key,
  webhook_id    uuid not null references app.webhooks on delete cascade,
  secret_sealed text not null,
  created_at    timestamptz not null default internal.now()
);
comment on table app.webhook_secrets is 'Signing secrets, encrypted by the server. A delivery keeps the one that it was queued with.';
create index webhook_secrets_of_webhook on app.webhook_secrets (webhook_id);

create table app.webhook_deliveries (
  id              uuid primary key,
  webhook_id      uuid not null references app.webhooks on delete cascade,
  secret_id       uuid not null references app.webhook_secrets on delete cascade,
  event_id        uuid not null,
  event_name      text not null,
  payload         text not null,
  status          text not null default 'pending'
                    constraint webhook_deliveries_status_known check (status in ('pending', 'delivered', 'failed', 'dlq')),
  attempts        int not null default 0,
  series_attempts int not null default 0,
  next_attempt_at timestamptz,
  created_at      timestamptz not null default internal.now(),
  settled_at      timestamptz,
  constraint webhook_deliveries_once_per_event unique (webhook_id, event_id)
);
comment on table app.webhook_deliveries is
  'One per subscription and event. payload is the body, built once: retries and replays are the same to the byte. attempts counts all; series_attempts those since the last replay.';
create index webhook_deliveries_newest on app.webhook_deliveries (webhook_id, created_at desc, id desc);
create index webhook_deliveries_secret on app.webhook_deliveries (secret_id);
create index webhook_deliveries_created on app.webhook_deliveries (created_at);

create table app.webhook_attempts (
  delivery_id      uuid not null references app.webhook_deliveries on delete cascade,
  n                int not null,
  at               timestamptz not null,
  status_code      int,
  error            text,
  duration_ms      int not null,
  response_excerpt text,
  primary key (delivery_id, n)
);
comment on table app.webhook_attempts is 'The attempt log of each delivery, from 1.';

-- migrate:down
drop table app.webhook_attempts;
drop table app.webhook_deliveries;
drop table app.webhook_secrets;
drop table app.webhooks;
