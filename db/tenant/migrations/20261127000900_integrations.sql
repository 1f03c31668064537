-- migrate:up
create table app.integrations (
  id            uuid primary key default internal.new_id(),
  provider      text not null,
  is_active     boolean not null default true,
  config_sealed text not null,
  key_id        text not null,
  webhook_path  text,
  created_at    timestamptz not null default internal.now(),
  updated_at    timestamptz not null default internal.now(),
  constraint integrations_one_per_provider unique (provider)
);
comment on table app.integrations is
  'Connected providers. config_sealed is the whole config, encrypted by the server under the key that key_id names; it
   is never returned.';

create table app.inbound_events (
  id           uuid primary key default internal.new_id(),
  provider     text not null constraint inbound_events_provider_known check (provider in ('revenuecat', 'superwall')),
  event_key    text not null constraint inbound_events_event_key_at_most_300 check (char_length(event_key) <= 300),
  body         text not null constraint inbound_events_body_at_most_1_mb check (octet_length(body) <= 1048576),
  outcome      text constraint inbound_events_outcome_at_most_64 check (char_length(outcome) <= 64),
  received_at  timestamptz not null default internal.now(),
  processed_at timestamptz,
  constraint inbound_events_once unique (provider, event_key)
);
comment on table app.inbound_events is
  'Webhooks of providers as they were received, each event once, stored before the response. outcome is null until the
   worker has processed the event.';
-- serves the list, newest first
create index inbound_events_newest on app.inbound_events (provider, received_at desc, id desc);
-- serves the daily purge
create index inbound_events_received on app.inbound_events (received_at);

-- migrate:down
drop table app.inbound_events;
drop table app.integrations;
