-- migrate:up
-- no foreign key: sessions are deleted a month after their end, and a registration without a session is one that never ends
alter table app.push_tokens add column session_id uuid;
comment on column app.push_tokens.session_id is
  'The sign-in session that registered the device: nothing is pushed after its end. Null for a server key on behalf of the user, and for registrations of before.';
create index push_tokens_of_session on app.push_tokens (session_id) where session_id is not null;

-- migrate:down
drop index app.push_tokens_of_session;
alter table app.push_tokens drop column session_id;
