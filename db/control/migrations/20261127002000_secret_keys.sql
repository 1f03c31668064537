-- migrate:up
create table app.secret_keys (
  id            text primary key constraint secret_keys_id_form check (id ~ '^[0-9a-f]{8}$'),
  key_check     text not null,
  is_current    boolean not null,
  current_since timestamptz not null default internal.now(),
  replaced_at   timestamptz,
  unused_at     timestamptz,
  forgotten_at  timestamptz,
  constraint secret_keys_replaced_unless_current check (is_current = (replaced_at is null)),
  constraint secret_keys_current_is_used check (not is_current or (unused_at is null and forgotten_at is null))
);
comment on table app.secret_keys is
  'The keys of SECRETS_KEY that are or were current, each with a value that only that key makes. unused_at: nothing is
   encrypted under it any more. forgotten_at: an operator gave up the tokens that it signed.';
create unique index secret_keys_one_current on app.secret_keys (is_current) where is_current;

create table app.secret_reseals (
  database_name text primary key,
  key_id        text not null,
  resealed      int not null default 0,
  remaining     int not null,
  error         text,
  began_at      timestamptz not null,
  checked_at    timestamptz not null
);
comment on table app.secret_reseals is
  'Of each database: what was encrypted again under key_id, and what was still under another key when the last pass had
   gone through it. error: why a pass could not.';

-- migrate:down
drop table app.secret_reseals;
drop table app.secret_keys;
