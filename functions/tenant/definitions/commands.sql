-- Commands on definitions, the same for every entity: create, change, delete. They run with the rights of the caller,
-- so policies, column grants, constraints (whose comments are the refusals) and triggers (which write the audit trail)
-- apply. An entity adds behaviour of its own in a hook, internal.<kind>_<hook>.
create or replace function internal.definition_patched(was anyelement, sent jsonb, names text[]) returns anyelement
language plpgsql stable as $$
begin
  return jsonb_populate_record(definition_patched.was, (
    select coalesce(jsonb_object_agg(c.key, c.value), '{}') from jsonb_each(definition_patched.sent) c
     where c.key = any (definition_patched.names)));
exception when data_exception then
  perform internal.invalid('body', 'has a value of the wrong type',
                           (internal.definition_of(definition_patched.was)).invalid_code);
end $$;
comment on function internal.definition_patched is
  'The row was, changed by the fields of sent that are in names; others are ignored. An absent field stays as it is,
   null clears it. Refuses 400 with the invalid_code of the kind.';

create or replace function internal.definition_limit_check(shape anyelement) returns void
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_limit_check.shape);
  taken bigint;
begin
  if d.max_count is null then
    return;
  end if;
  -- locked before the count, so that two concurrent creations cannot pass the limit together
  perform pg_advisory_xact_lock(73054420, hashtext(d.kind));
  execute format('select count(*) from %s', d.table_name::regclass) into taken;
  if taken >= d.max_count then
    perform internal.fail(409, 'LIMIT_REACHED', format('A project has at most %s %s.', d.max_count, d.plural),
                          json_build_object('limit', d.max_count));
  end if;
end $$;
comment on function internal.definition_limit_check is
  'Refuses 409 LIMIT_REACHED when a kind has its maximum number of rows. Locks the kind until the transaction ends, so
   that creations are serialised.';

create or replace function api.definition_create(kind text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_create.kind);
  made json;
begin
  execute format('select %s(%s($1))', internal.definition_compiled(d, 'json'),
                 internal.definition_compiled(d, 'insert'))
     into made
    using definition_create.patch;
  return internal.reply(201, made);
end $$;
comment on function api.definition_create is
  'Creates a definition of a kind, 201. Refuses 400 VALIDATION_ERROR or the invalid_code of the kind, 409 CONFLICT (the
   key is taken), LIMIT_REACHED.';

create or replace function api.definition_update(kind text, id_or_key text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_update.kind);
  made json;
begin
  execute format('select %s(%s($1, $2))', internal.definition_compiled(d, 'json'),
                 internal.definition_compiled(d, 'update'))
     into made
    using definition_update.id_or_key, definition_update.patch;
  return internal.reply(200, made);
end $$;
comment on function api.definition_update is
  'Changes a definition. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, or the codes that its kind declares instead. Locks
   the definition.';

create or replace function api.definition_delete(kind text, id_or_key text) returns api.reply
language plpgsql volatile as $$
begin
  execute format('select %s($1)', internal.definition_compiled(internal.definition_of(definition_delete.kind),
                                                               'delete'))
    using definition_delete.id_or_key;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.definition_delete is
  'Deletes a definition. Refuses 404 NOT_FOUND, or the not_found_code of the kind, and as its hook before_delete and
   foreign keys do.';
