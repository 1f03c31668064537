-- SHA-1, of which the idempotency keys of webhook deliveries are made.
create schema if not exists extensions;
grant usage on schema extensions to control_developer, control_worker;
create extension if not exists pgcrypto with schema extensions;
