-- migrate:up
create table app.project_subscriptions (
  project_id           uuid primary key references app.projects on delete cascade,
  provider             text not null constraint project_subscriptions_provider_1_to_100
    check (char_length(provider) between 1 and 100),
  customer_ref         text constraint project_subscriptions_customer_at_most_255
    check (char_length(customer_ref) <= 255),
  tier                 text not null constraint project_subscriptions_tier_known check (tier in ('pro', 'enterprise')),
  status               text not null constraint project_subscriptions_status_known
    check (status in ('trialing', 'active', 'past_due', 'ended')),
  ends_at              timestamptz,
  cancel_at_period_end boolean not null default false,
  event_at             timestamptz not null,
  updated_at           timestamptz not null default internal.now()
);
comment on table app.project_subscriptions is
  'What a project pays for, as its billing provider said last. ends_at is the end of the paid period; event_at the time
   of the event that says so.';

create table app.billing_events (
  provider    text not null constraint billing_events_provider_1_to_100 check (char_length(provider) between 1 and 100),
  event_key   text not null constraint billing_events_key_1_to_255 check (char_length(event_key) between 1 and 255),
  received_at timestamptz not null default internal.now(),
  primary key (provider, event_key)
);
comment on table app.billing_events is
  'Ids of the events that the billing provider reported, kept 90 days: a repeated one changes nothing.';
create index billing_events_received on app.billing_events (received_at);

create table app.traffic_reports (
  project_id      uuid not null references app.projects on delete cascade,
  day             date not null,
  reporter        uuid not null,
  api_requests    bigint not null,
  egress_bytes    bigint not null,
  failed_requests bigint not null default 0,
  primary key (project_id, day, reporter)
);
comment on table app.traffic_reports is
  'Requests that apps made on each day (UTC), and the bytes that were sent for them. A server process has a row of its
   own, and writes what it has counted since the beginning of the day: a report that is repeated changes nothing, and
   processes never wait for each other. The rows of a day that is over are joined under the nil uuid.';
comment on column app.traffic_reports.failed_requests is
  'Those of api_requests that were answered with a status of 400 or more.';
create index traffic_reports_of_day on app.traffic_reports (day);

-- migrate:down
drop table app.traffic_reports;
drop table app.billing_events;
drop table app.project_subscriptions;
