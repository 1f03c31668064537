-- What only a project's database has: the developer's own tables, and trigram search.
create schema if not exists collections;
create schema if not exists extensions;
create extension if not exists pg_trgm with schema extensions;
grant usage on schema collections, extensions to app_anon, app_user, app_server, app_admin, app_dashboard, app_worker,
  app_auth;
create extension if not exists pgcrypto with schema extensions;
