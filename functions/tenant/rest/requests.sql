-- What runs in the transactions of PostgREST: the settings that every other call has, and the rules of rows that its
-- statements need.

create or replace function internal.rest_begin() returns int
language sql volatile as $$
  -- every one of them, empty ones too: see server/database/call.ts
  select num_nonnulls(
           set_config('app.caller', c.caller, true), set_config('app.user_id', c.user_id, true),
           set_config('app.session_id', c.session_id, true), set_config('app.developer_id', '', true),
           set_config('app.project_id', c.project_id, true), set_config('app.actor', '', true),
           set_config('app.clock', c.clock, true),
           set_config('app.due_at', '', true), set_config('app.changed', '', true), set_config('app.effects', '', true),
           set_config('statement_timeout', c.timeout_ms, true),
           -- a request could name another one (Prefer: timezone), and times without a zone are UTC
           set_config('timezone', 'UTC', true),
           -- the aggregates that bound an answer come before those of Postgres; Postgres looks for the function of a
           -- computed column by its name alone
           set_config('search_path', 'rest_answers, pg_catalog, rest, pg_temp', true))
    from json_to_record(current_setting('request.jwt.claims')::json)
         as c (caller text, user_id text, session_id text, project_id text, clock text, timeout_ms text)
$$;
comment on function internal.rest_begin is
  'The first statement of each request of PostgREST, after it has taken the role: sets what the server sets in every
   other call, from the claims of the server''s own token.';

create or replace function internal.tg_rest_rows__delete() returns trigger
language plpgsql volatile set search_path = '' as $$
declare
  done uuid;
begin
  execute format('update collections.%I t set deleted_at = internal.now() where t.id = $1 and t.deleted_at is null '
                 'returning t.id', tg_table_name)
    into done using old.id;
  return case when done is not null then old end;
end $$;
comment on function internal.tg_rest_rows__delete is
  'Instead of the deletion of a row through the REST access: marks it deleted, under the policies of the caller. A row
   that the write policy keeps is not counted.';

create or replace function internal.tg_rest_rows__id_stays() returns trigger
language plpgsql volatile set search_path = '' as $$
begin
  perform internal.fail(400, 'VALIDATION_ERROR', 'id: cannot be changed.',
                        '{"field": "id", "reason": "cannot be changed"}');
  return null;
end $$;
comment on function internal.tg_rest_rows__id_stays is
  'Before the id of a row changes: refuses 400 VALIDATION_ERROR. An upsert by id names it without changing it.';

create or replace function api.rest_reference(collection text, constraint_name text) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('column', a.attname, 'collection', target.relname)
      from pg_catalog.pg_constraint c
      join pg_catalog.pg_class r on r.oid = c.conrelid and r.relname = rest_reference.collection
      join pg_catalog.pg_class target on target.oid = c.confrelid and target.relnamespace = 'collections'::regnamespace
      join pg_catalog.pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
     where c.connamespace = 'collections'::regnamespace and c.conname = rest_reference.constraint_name
       and c.contype = 'f'))
$$;
comment on function api.rest_reference is
  'The reference of a collection that a foreign key belongs to, {column, collection}; null when the key is none.
   Postgres finds a missing row before the triggers of references do, and both are refused in the same words.';
