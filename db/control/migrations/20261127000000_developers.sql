-- migrate:up
create table app.developers (
  id              uuid primary key default internal.new_id(),
  email           text not null,
  mailbox         text not null,
  name            text constraint developers_name_at_most_200 check (char_length(name) <= 200),
  password_hash   text,
  email_verified  boolean not null default false,
  account_state   text not null default 'sandbox'
                    constraint developers_account_state_known
                      check (account_state in ('sandbox', 'verified_free', 'paid')),
  provisioning    text not null default 'on'
                    constraint developers_provisioning_known check (provisioning in ('on', 'off', 'revoked')),
  oauth_providers text[] not null default '{}',
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint developers_mailbox_is_one check (mailbox = internal.email_mailbox(email)),
  constraint developers_name_is_one_line check (internal.is_line(name))
);
comment on table app.developers is 'Accounts of developers. mailbox is the address without aliases: one account each.';
create unique index developers_mailbox_unique on app.developers (mailbox);

create table app.developer_sessions (
  id           uuid primary key default internal.new_id(),
  developer_id uuid not null references app.developers on delete cascade,
  refresh_hash text not null,
  created_at   timestamptz not null default internal.now(),
  last_used_at timestamptz not null default internal.now(),
  expires_at   timestamptz not null,
  ended_at     timestamptz,
  end_reason   text,
  ip           text,
  user_agent   text,
  former_hash  text,
  replaced_at  timestamptz
);
comment on table app.developer_sessions is
  'Sign-ins of developers (sid of their tokens). refresh_hash is the SHA-256 of the one current refresh token; another
   that carries this sid was replaced: former_hash at replaced_at.';
create index developer_sessions_of_developer on app.developer_sessions (developer_id, created_at desc);

create table app.disposable_domains (
  domain text primary key
);
comment on table app.disposable_domains is
  'Mail domains of throw-away inboxes; they and what is under them are refused at sign-up.';

-- migrate:down
drop table app.disposable_domains;
drop table app.developer_sessions;
drop table app.developers;
