-- migrate:up
create table app.push_tokens (
  id          uuid primary key default internal.new_id(),
  app_user_id uuid not null references app.users on delete cascade,
  token       text not null constraint push_tokens_token_1_to_2048
    check (token ~ '^[!-~]+$' and char_length(token) <= 2048),
  platform    text not null constraint push_tokens_platform_known check (platform in ('ios', 'android')),
  provider    text not null generated always as (case platform when 'ios' then 'apns' else 'fcm' end) stored,
  is_active   boolean not null default true,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  -- no foreign key: sessions are deleted a month after their end, and a registration without a session is one that
  -- never ends
  session_id  uuid,
  constraint push_tokens_token_unique unique (token)
);
comment on table app.push_tokens is 'Devices that can be pushed to. A token belongs to whoever registered it last.';
comment on column app.push_tokens.session_id is
  'The sign-in session that registered the device: nothing is pushed after its end. Null for a server key on behalf of
   the user, and for registrations of before.';
create index push_tokens_of_user on app.push_tokens (app_user_id, id);
create index push_tokens_of_session on app.push_tokens (session_id) where session_id is not null;

-- migrate:down
drop table app.push_tokens;
