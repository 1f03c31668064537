-- migrate:up
create table app.subscriptions (
  id                 uuid primary key default internal.new_id(),
  app_user_id        uuid not null references app.users on delete cascade,
  source_ref         text not null,
  product_id         text,
  store              text not null,
  environment        text not null constraint subscriptions_environment_known check (environment in ('production', 'sandbox')),
  period_type        text not null,
  entitlement_ids    text[] not null default '{}',
  purchase_date      timestamptz not null,
  expiration_date    timestamptz,
  grace_until        timestamptz,
  billing_issue_at   timestamptz,
  cancelled_at       timestamptz,
  paused_at          timestamptz,
  refunded_at        timestamptz,
  trial_started_at   timestamptz,
  trial_converted_at timestamptz,
  last_event_at      timestamptz not null,
  created_at         timestamptz not null default internal.now(),
  updated_at         timestamptz not null default internal.now(),
  constraint subscriptions_one_per_source_ref unique (source_ref)
);
comment on table app.subscriptions is
  'What stores sold, one row for each original transaction: the fold of its events. Its status is worked out from these times when it is read.';
-- serves the list, newest first
create index subscriptions_newest on app.subscriptions (created_at desc, id desc);
create index subscriptions_of_user on app.subscriptions (app_user_id, created_at desc, id desc);
-- serves expiring_before
create index subscriptions_expiring on app.subscriptions (expiration_date);
-- serve the figures of a month
create index subscriptions_trials on app.subscriptions (trial_started_at) where trial_started_at is not null;
create index subscriptions_conversions on app.subscriptions (trial_converted_at) where trial_converted_at is not null;

create table app.subscription_events (
  id          text primary key constraint subscription_events_id_1_to_255 check (char_length(id) between 1 and 255),
  source_ref  text,
  app_user_id uuid references app.users on delete cascade,
  type        text not null,
  event_at    timestamptz not null,
  payload     jsonb not null,
  outcome     text not null constraint subscription_events_outcome_known
                check (outcome in ('applied', 'older', 'waiting', 'unknown_user', 'without_effect')),
  received_at timestamptz not null default internal.now()
);
comment on table app.subscription_events is
  'What the subscription provider told, each event once, as it came. outcome says what became of it: applied; older than what was applied before it came; waiting for
   the purchase; of a user who is not known here; of a kind that changes nothing.';
-- serves the fold, in the events'' own order
create index subscription_events_of_source on app.subscription_events (source_ref, event_at, received_at, id);
create index subscription_events_of_user on app.subscription_events (app_user_id, event_at);

-- serves a subscription's grants
create index entitlement_grants_of_source on app.entitlement_grants (source_ref) where source = 'subscription_provider';

-- migrate:down
drop index app.entitlement_grants_of_source;
drop table app.subscription_events;
drop table app.subscriptions;
