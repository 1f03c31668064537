-- migrate:up
create table app.integrations (
  id               uuid primary key default internal.new_id(),
  provider         text not null,
  is_active        boolean not null default true,
  config_sealed    text not null,
  key_id           text not null,
  webhook_path     text,
  created_at       timestamptz not null default internal.now(),
  updated_at       timestamptz not null default internal.now(),
  constraint integrations_one_per_provider unique (provider)
);
comment on table app.integrations is
  'Connected providers. config_sealed is the whole config, encrypted by the server under the key that key_id names; it is never returned.';

-- migrate:down
drop table app.integrations;
