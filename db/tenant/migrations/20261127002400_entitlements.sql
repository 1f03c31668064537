-- migrate:up
create table app.entitlement_grants (
  id              uuid primary key default internal.new_id(),
  app_user_id     uuid not null references app.users on delete cascade,
  entitlement_id  text not null constraint entitlement_grants_entitlement_id_1_to_128
    check (char_length(entitlement_id) between 1 and 128),
  source          text not null constraint entitlement_grants_source_known
                    check (source in ('subscription_provider', 'promotional', 'reward', 'referral', 'purchase')),
  source_ref      text not null,
  product_id      text constraint entitlement_grants_product_id_at_most_255 check (char_length(product_id) <= 255),
  store           text not null,
  period_type     text not null,
  purchase_date   timestamptz not null,
  expiration_date timestamptz,
  grace_until     timestamptz,
  cancelled_at    timestamptz,
  refunded_at     timestamptz,
  reason          text constraint entitlement_grants_reason_at_most_500 check (char_length(reason) <= 500),
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint entitlement_grants_once_per_source unique (app_user_id, entitlement_id, source, source_ref)
);
comment on table app.entitlement_grants is
  'Why a user has access to something: one row for each source. Access is there while any of them lives; whether one
   does is worked out on read.';
-- serves a subscription's grants
create index entitlement_grants_of_source on app.entitlement_grants (source_ref) where source = 'subscription_provider';
-- serve the questions whether a customer has access by a product, with or without its base plan, and whether one has an
-- entitlement
create index entitlement_grants_of_store_product on app.entitlement_grants (split_part(product_id, ':', 1))
  where product_id is not null;
create index entitlement_grants_of_entitlement on app.entitlement_grants (entitlement_id);

create table app.subscriptions (
  id                 uuid primary key default internal.new_id(),
  app_user_id        uuid not null references app.users on delete cascade,
  source_ref         text not null,
  product_id         text,
  store              text not null,
  environment        text not null constraint subscriptions_environment_known
    check (environment in ('production', 'sandbox')),
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
  'What stores sold, one row for each original transaction: the fold of its events. Its status is worked out from these
   times when it is read.';
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
  received_at timestamptz not null default internal.now(),
  -- the names by which an event knows its user
  names       text[] not null default '{}'
);
comment on table app.subscription_events is
  'What the subscription provider told, each event once, as it came. outcome says what became of it: applied; older than
   what was applied before it came; waiting for the purchase; of a user who is not known here; of a kind that changes
   nothing.';
-- serves the fold, in the events'' own order
create index subscription_events_of_source on app.subscription_events (source_ref, event_at, received_at, id);
create index subscription_events_of_user on app.subscription_events (app_user_id, event_at);
-- serves events that wait for a user, and purchases that a transfer moves each search of a GIN index reads its whole
-- list of pending entries: 20 ms after a busy hour, also for each new user with an external_id
create index subscription_events_of_name on app.subscription_events using gin (names) with (fastupdate = off);
-- serves the transfers of a purchase
create index subscription_events_transfers on app.subscription_events
  using gin ((payload -> 'transferred_from')) with (fastupdate = off) where type = 'TRANSFER';
-- serves the purge of events whose user never appeared
create index subscription_events_nobodys on app.subscription_events (received_at) where app_user_id is null;
-- serves the search for a restored purchase by its transaction
create index subscription_events_of_transaction on app.subscription_events (left(payload ->> 'transaction_id', 255))
  where source_ref is not null;
-- serve the search for a subscription that was restored before, by the provider's id and by a transaction
create index subscription_events_of_restored on app.subscription_events (left(payload ->> 'provider_id', 255))
  where type = 'RESTORE';
create index subscription_events_of_restored_ref on app.subscription_events (left(payload ->> 'ref', 255))
  where type = 'RESTORE';

create table app.merged_names (
  name        text primary key constraint merged_names_name_1_to_255 check (char_length(name) between 1 and 255),
  app_user_id uuid not null references app.users on delete cascade,
  created_at  timestamptz not null default internal.now()
);
comment on table app.merged_names is
  'Ids and external_ids of users who were merged into another: providers go on to report purchases and events under
   them.';
-- serves the names of a user, newest first; the foreign key
create index merged_names_of_user on app.merged_names (app_user_id, created_at desc);

-- migrate:down
drop table app.merged_names;
drop table app.subscription_events;
drop table app.subscriptions;
drop table app.entitlement_grants;
