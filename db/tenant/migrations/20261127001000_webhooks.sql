-- migrate:up
create table app.webhooks (
  id           uuid primary key default internal.new_id(),
  event_name   text not null constraint webhooks_event_name_form check (event_name ~ '^[a-z][a-z0-9_.-]{0,127}$'),
  target_url   text not null,
  description  text,
  filter       jsonb,
  include_user boolean not null default true,
  status       text not null default 'active' constraint webhooks_status_known
    check (status in ('active', 'disabled', 'degraded')),
  secret_id    uuid not null,
  created_at   timestamptz not null default internal.now(),
  updated_at   timestamptz not null default internal.now()
);
comment on table app.webhooks is 'Outbound subscriptions: one event name each.';
-- serves the lookup at every event
create index webhooks_watching on app.webhooks (event_name) where status <> 'disabled';

create table app.webhook_secrets (
  id            uuid primary key,
  webhook_id    uuid not null references app.webhooks on delete cascade,
  secret_sealed text not null,
  created_at    timestamptz not null default internal.now(),
  replaced_at   timestamptz
);
comment on table app.webhook_secrets is
  'Signing secrets, encrypted by the server. A delivery keeps the one that it was queued with.';
comment on column app.webhook_secrets.replaced_at is
  'When another took its place. It is kept as long as deliveries that were queued with it.';
create index webhook_secrets_of_webhook on app.webhook_secrets (webhook_id);

-- No foreign keys of webhook_id and secret_id: deleting a subscription must not wait for a million deliveries, with
-- every event that it watches waiting behind. They outlive it for a moment, and nobody sees them; a secret outlives
-- what was queued with it.
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
  attempts        int not null default 0,
  series_attempts int not null default 0,
  next_attempt_at timestamptz,
  created_at      timestamptz not null default internal.now(),
  settled_at      timestamptz,
  held_until      timestamptz,
  failed_reason   text
                    constraint webhook_deliveries_failed_reason_known
                    check (failed_reason in ('attempts_exhausted', 'held_too_long', 'gone', 'target_not_allowed',
                                             'subscription_disabled')),
  app_user_id     uuid,
  constraint webhook_deliveries_once_per_event unique (webhook_id, event_id)
);
comment on table app.webhook_deliveries is
  'One per subscription and event. payload is the body, built once: retries and replays are the same to the byte.
   attempts counts all; series_attempts those since the last replay. Those of a deleted subscription are removed by a
   worker.';
comment on column app.webhook_deliveries.held_until is
  'Set while it waits for a degraded subscription to be switched on again; then it has no next_attempt_at, and no work
   in the outbox.';
comment on column app.webhook_deliveries.app_user_id is
  'Whose event it tells of: the body has what the user did, and their profile, so it goes when they do. No foreign key:
   the event has one already.';
create index webhook_deliveries_newest on app.webhook_deliveries (webhook_id, created_at desc, id desc);
-- serves the list of the deliveries of all subscriptions, newest first, and the purge
create index webhook_deliveries_created on app.webhook_deliveries (created_at desc, id desc);
-- serves that list by a status: most are delivered, and of these the list itself is full
create index webhook_deliveries_unusual on app.webhook_deliveries (status, created_at desc, id desc)
  where status <> 'delivered';
-- serves lists by status, what is pending, the oldest of it, and what a replay of a range takes
create index webhook_deliveries_by_status on app.webhook_deliveries (webhook_id, status, created_at desc, id desc);
-- serves the figures of a day
create index webhook_deliveries_settled on app.webhook_deliveries (webhook_id, settled_at) include (status)
  where settled_at is not null;
-- serves the release of what is held, and its end
create index webhook_deliveries_held on app.webhook_deliveries (webhook_id, held_until) where held_until is not null;
-- serves the deletion of a user
create index webhook_deliveries_of_user on app.webhook_deliveries (app_user_id);

create table app.webhook_attempts (
  delivery_id      uuid not null references app.webhook_deliveries on delete cascade,
  n                int not null,
  at               timestamptz not null,
  status_code      int,
  error            text,
  duration_ms      int not null,
  response_excerpt text,
  webhook_id       uuid,
  primary key (delivery_id, n)
);
comment on table app.webhook_attempts is 'The attempt log of each delivery, from 1.';
comment on column app.webhook_attempts.webhook_id is
  'As its delivery says; here so that the newest attempts of a subscription are found. They go with their delivery.';
-- serves the durations of a day
create index webhook_attempts_recent on app.webhook_attempts (webhook_id, at desc) include (duration_ms);

create table app.webhook_breakers (
  webhook_id    uuid primary key references app.webhooks on delete cascade,
  dlq_in_row    int not null default 0,
  failed_in_row int not null default 0,
  failing_since timestamptz,
  degraded_at   timestamptz,
  probed_at     timestamptz
);
comment on table app.webhook_breakers is
  'How badly a subscription fares: deliveries that ended in dlq and attempts that failed, each since the last that was
   delivered. A table of its own, so that counting leaves the rows that every event looks at alone.';
comment on column app.webhook_breakers.probed_at is 'When it was last tried while degraded; at first when it degraded.';

-- migrate:down
drop table app.webhook_breakers;
drop table app.webhook_attempts;
drop table app.webhook_deliveries;
drop table app.webhook_secrets;
drop table app.webhooks;
