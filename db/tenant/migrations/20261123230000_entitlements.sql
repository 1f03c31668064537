-- migrate:up
create table app.entitlement_grants (
  id              uuid primary key default internal.new_id(),
  app_user_id     uuid not null references app.users on delete cascade,
  entitlement_id  text not null constraint entitlement_grants_entitlement_id_1_to_128 check (char_length(entitlement_id) between 1 and 128),
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
  'Why a user has access to something: one row for each source. Access is there while any of them lives; whether one does is worked out on read.';

-- migrate:down
drop table app.entitlement_grants;
