-- migrate:up
create table app.user_codes (
  id          uuid primary key,
  app_user_id uuid references app.users on delete cascade,
  kind        text not null constraint user_codes_kind_known check (kind in ('code', 'magic_link')),
  channel     text not null constraint user_codes_channel_known check (channel in ('email', 'phone')),
  address     text not null,
  purpose     text not null constraint user_codes_purpose_known check (purpose in ('sign_in', 'link', 'delete')),
  secret_hash text not null,
  sealed      text,
  attempts    smallint not null default 0,
  created_at  timestamptz not null default internal.now(),
  expires_at  timestamptz not null,
  sent_at     timestamptz,
  used_at     timestamptz,
  locales     text[],
  constraint user_codes_of_a_session_name_its_user check (purpose = 'sign_in' or app_user_id is not null)
);
comment on table app.user_codes is
  'One-time codes and magic links. secret_hash is the HMAC of a code under SECRETS_KEY, or the SHA-256 of a link''s
   token; sealed is what is to be sent, encrypted by the server, until it is sent. app_user_id: whose session asked for
   it, or who signed in with it.';
comment on column app.user_codes.locales is
  'The languages that the request asked for, most wanted first: the message comes in the first that there is.';
-- a new request replaces the code that is out
create unique index user_codes_one_open on app.user_codes (channel, address, purpose, app_user_id) nulls not distinct
  where kind = 'code' and used_at is null;
create unique index user_codes_magic_link on app.user_codes (secret_hash) where kind = 'magic_link';
create index user_codes_of_user on app.user_codes (app_user_id, created_at desc);
-- serves what closes everything that is open for an address
create index user_codes_of_address on app.user_codes (channel, address);
create index user_codes_expire on app.user_codes (expires_at);

-- migrate:down
drop table app.user_codes;
