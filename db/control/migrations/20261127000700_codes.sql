-- migrate:up
create table app.developer_codes (
  mailbox    text primary key,
  id         uuid not null,
  code_mac   text not null,
  wrong      int not null default 0 constraint developer_codes_wrong_at_most_5 check (wrong between 0 and 5),
  expires_at timestamptz not null,
  created_at timestamptz not null default internal.now(),
  constraint developer_codes_id_unique unique (id)
);
comment on table app.developer_codes is
  'The one live sign-in code of each mailbox, whether or not it has an account: so a request does the same for both. The
   code itself derives from id under SECRETS_KEY and is stored nowhere; code_mac is its HMAC.';
create index developer_codes_expired on app.developer_codes (expires_at);

-- migrate:down
drop table app.developer_codes;
