-- migrate:up
create table app.device_grants (
  id               uuid primary key default internal.new_id(),
  device_hash      text not null constraint device_grants_device_unique unique,
  user_code_mac    text not null constraint device_grants_user_code_unique unique,
  client_name      text not null constraint device_grants_client_name_1_to_80
    check (char_length(client_name) between 1 and 80),
  ip               text,
  status           text not null default 'pending' constraint device_grants_status_known
    check (status in ('pending', 'approved', 'denied')),
  developer_id     uuid references app.developers on delete cascade,
  interval_seconds int not null default 5,
  polled_at        timestamptz,
  expires_at       timestamptz not null,
  created_at       timestamptz not null default internal.now(),
  constraint device_grants_approved_by_somebody check ((status = 'approved') = (developer_id is not null)),
  constraint device_grants_client_name_is_one_line check (internal.is_line(client_name))
);
comment on table app.device_grants is
  'Sign-ins of tools that a developer approves in a browser (RFC 8628). device_hash is the SHA-256 of the device code,
   user_code_mac an HMAC of the user code under SECRETS_KEY; a grant that was used is deleted.';
create index device_grants_expired on app.device_grants (expires_at);
create index device_grants_of_developer on app.device_grants (developer_id);

-- migrate:down
drop table app.device_grants;
