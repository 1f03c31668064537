-- migrate:up
create table app.idempotency_keys (
  caller     text not null,
  route      text not null,
  key        text not null constraint idempotency_keys_printable check (key ~ '^[ -~]{1,255}$'),
  body_hash  text not null,
  status     int,
  body       json,
  created_at timestamptz not null default internal.now(),
  primary key (caller, route, key)
);
comment on table app.idempotency_keys is
  'Answers kept for 24 hours under the Idempotency-Key header, per caller and route.';
create index idempotency_keys_created on app.idempotency_keys (created_at);

-- migrate:down
drop table app.idempotency_keys;
