-- Who carries a project's mail: its own mail server, or the installation, which has bounds for what it sends in its own
-- name.
create or replace function internal.email_has_own_server() returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.integrations i where i.provider = 'smtp' and i.is_active)
$$;
comment on function internal.email_has_own_server is
  'Whether the project''s messages go through a mail server of its own.';

create or replace function api.email_has_own_server() returns api.reply
language sql stable as $$
  select internal.reply(200, to_json(internal.email_has_own_server()))
$$;
comment on function api.email_has_own_server is 'internal.email_has_own_server, for the server that checks recipients.';
