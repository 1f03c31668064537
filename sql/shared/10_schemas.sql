-- Schemas of every Trellis database, control and tenant alike, and what nobody may do by default.
create schema if not exists app;
create schema if not exists api;
create schema if not exists internal;
create schema if not exists ops;

revoke all on schema public from public;
-- without "in schema": with it, this statement has no effect
alter default privileges revoke execute on functions from public;

do $$
begin
  if not exists (select from pg_type where typnamespace = 'api'::regnamespace and typname = 'reply') then
    create type api.reply as (status int, body json, headers json);
  end if;
end $$;
comment on type api.reply is
  'What a route answers: the HTTP status, the whole JSON envelope as it is sent, and extra headers ({"Retry-After":
   "5"}) or null.';
