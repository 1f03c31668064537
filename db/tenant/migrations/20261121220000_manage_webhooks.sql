-- migrate:up
alter table app.webhook_secrets add column replaced_at timestamptz;
comment on column app.webhook_secrets.replaced_at is 'When another took its place. It is kept as long as deliveries that were queued with it.';

-- deleting a subscription must not wait for a million deliveries, with every event that it watches waiting behind: they outlive it for a
-- moment, and nobody sees them. A secret outlives what was queued with it.
alter table app.webhook_deliveries drop constraint webhook_deliveries_webhook_id_fkey;
alter table app.webhook_deliveries drop constraint webhook_deliveries_secret_id_fkey;
drop index app.webhook_deliveries_secret;
comment on table app.webhook_deliveries is
  'One per subscription and event. payload is the body, built once: retries and replays are the same to the byte. attempts counts all; series_attempts those since the last replay. Those of a deleted subscription are removed by a worker.';

alter table app.webhook_deliveries add column held_until timestamptz;
alter table app.webhook_deliveries add column failed_reason text
  constraint webhook_deliveries_failed_reason_known
  check (failed_reason in ('attempts_exhausted', 'held_too_long', 'gone', 'target_not_allowed', 'subscription_disabled'));
comment on column app.webhook_deliveries.held_until is
  'Set while it waits for a degraded subscription to be switched on again; then it has no next_attempt_at, and no work in the outbox.';
-- serves lists by status, what is pending, the oldest of it, and what a replay of a range takes
create index webhook_deliveries_by_status on app.webhook_deliveries (webhook_id, status, created_at desc, id desc);
-- serves the figures of a day
create index webhook_deliveries_settled on app.webhook_deliveries (webhook_id, settled_at) include (status) where settled_at is not null;
-- serves the release of what is held, and its end
create index webhook_deliveries_held on app.webhook_deliveries (webhook_id, held_until) where held_until is not null;

alter table app.webhook_attempts add column webhook_id uuid;
update app.webhook_attempts a set webhook_id = d.webhook_id from app.webhook_deliveries d where d.id = a.delivery_id;
comment on column app.webhook_attempts.webhook_id is 'As its delivery says; here so that the newest attempts of a subscription are found. They go with their delivery.';
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
  'How badly a subscription fares: deliveries that ended in dlq and attempts that failed, each since the last that was delivered. A table of its own, so that counting leaves the rows that every event looks at alone.';
comment on column app.webhook_breakers.probed_at is 'When it was last tried while degraded; at first when it degraded.';

-- migrate:down
drop table app.webhook_breakers;
delete from app.webhook_deliveries d
 where not exists (select from app.webhooks w where w.id = d.webhook_id)
    or not exists (select from app.webhook_secrets s where s.id = d.secret_id);
create index webhook_deliveries_secret on app.webhook_deliveries (secret_id);
alter table app.webhook_deliveries add foreign key (webhook_id) references app.webhooks on delete cascade;
alter table app.webhook_deliveries add foreign key (secret_id) references app.webhook_secrets on delete cascade;
drop index app.webhook_attempts_recent;
alter table app.webhook_attempts drop column webhook_id;
drop index app.webhook_deliveries_held;
drop index app.webhook_deliveries_settled;
drop index app.webhook_deliveries_by_status;
alter table app.webhook_deliveries drop column failed_reason;
alter table app.webhook_deliveries drop column held_until;
alter table app.webhook_secrets drop column replaced_at;
