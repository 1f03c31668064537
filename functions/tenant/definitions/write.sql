-- Definitions as administrators write them: one way for every entity. The caller's own rights hold: policies, column grants, constraints whose
-- comments are the refusals, and triggers, which write the audit trail. What an entity adds is a hook, internal.<kind>_<hook>.
create or replace function internal.definition_patched(was anyelement, sent jsonb, names text[]) returns anyelement
language plpgsql stable as $$
begin
  return jsonb_populate_record(definition_patched.was, (
    select coalesce(jsonb_object_agg(c.key, c.value), '{}') from jsonb_each(definition_patched.sent) c where c.key = any (definition_patched.names)));
exception when data_exception then
  perform internal.invalid('body', 'has a value of the wrong type', (internal.definition_of(definition_patched.was)).invalid_code);
end $$;
comment on function internal.definition_patched is
  'A row with those of the fields sent that are among names; others are ignored. Absent leaves a field as it is, null clears it. Refuses 400 with the
   invalid_code of the kind.';

create or replace function internal.definition_new(shape anyelement, sent jsonb) returns anyelement
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_new.shape);
  made shape%type;
begin
  execute format('select n.* from %s() n', internal.definition_compiled(d, 'new')) into made;
  return internal.definition_patched(made, definition_new.sent, array(select c.name from internal.definition_columns(d) c where c.is_settable));
end $$;
comment on function internal.definition_new is 'A row as it would be created of the fields sent, with the defaults of the table for the rest. Refuses 400.';

create or replace function internal.definition_missing(wished anyelement, sent jsonb) returns void
language plpgsql stable as $$
declare
  d constant internal.definitions := internal.definition_of(definition_missing.wished);
  as_json constant jsonb := to_jsonb(definition_missing.wished);
  missing text;
begin
  select c.name into missing
    from internal.definition_columns(d) c
   where c.is_required
     and case when definition_missing.sent is null then as_json -> c.name = 'null' else definition_missing.sent -> c.name = 'null' end
   order by c.position
   limit 1;
  if missing is not null then
    perform internal.invalid(missing, case when definition_missing.sent is null then 'is required' else 'must not be null' end, d.invalid_code);
  end if;
end $$;
comment on function internal.definition_missing is
  'Refuses 400 for a required field that was sent as null; where sent is null, for one that is null in the row.';

create or replace function internal.definition_checked(wished anyelement, was anyelement, sent jsonb) returns anyelement
language plpgsql volatile as $$
declare
  own constant text := internal.definition_hook(internal.definition_of(definition_checked.wished), 'check');
  checked wished%type := definition_checked.wished;
begin
  perform internal.definition_missing(checked, definition_checked.sent);
  if own is not null then
    execute format('select c.* from %s($1, $2, $3) c', own)
       into checked
      using definition_checked.wished, definition_checked.was, definition_checked.sent;
  end if;
  perform internal.definition_missing(checked, null);
  return checked;
end $$;
comment on function internal.definition_checked is
  'A row as it would be stored, with what internal.<kind>_check(wished, was, sent) makes of it; was is null where it is created. Refuses 400.';

create or replace function internal.definition_room(shape anyelement) returns void
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_room.shape);
  taken bigint;
begin
  if d.max_count is null then
    return;
  end if;
  -- taken before the count, so that two at once cannot pass the limit together
  perform pg_advisory_xact_lock(73054420, hashtext(d.kind));
  execute format('select count(*) from %s', d.table_name::regclass) into taken;
  if taken >= d.max_count then
    perform internal.fail(409, 'LIMIT_REACHED', format('A project has at most %s %s.', d.max_count, d.plural), json_build_object('limit', d.max_count));
  end if;
end $$;
comment on function internal.definition_room is
  'Refuses 409 LIMIT_REACHED when there are as many rows of a kind as may be. Creations of one kind come one after the other from here on.';

create or replace function internal.definition_before_write(d internal.definitions, sent jsonb) returns void
language plpgsql volatile as $$
declare
  own constant text := internal.definition_hook(definition_before_write.d, 'before_write');
begin
  if own is not null then
    execute format('select %s($1)', own) using definition_before_write.sent;
  end if;
end $$;
comment on function internal.definition_before_write is
  'internal.<kind>_before_write(sent), where the entity has that: locks that come before everything else. sent is null for a deletion.';

create or replace function internal.definition_after_write(stored anyelement, was anyelement, sent jsonb) returns void
language plpgsql volatile as $$
declare
  own constant text := internal.definition_hook(internal.definition_of(definition_after_write.stored), 'after_write');
begin
  if own is not null then
    execute format('select %s($1, $2, $3)', own) using definition_after_write.stored, definition_after_write.was, definition_after_write.sent;
  end if;
end $$;
comment on function internal.definition_after_write is
  'internal.<kind>_after_write(stored, was, sent), where the entity has that, after a row was created (was is null) or changed.';

create or replace function internal.definition_insert(shape anyelement, sent jsonb) returns anyelement
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_insert.shape);
  stored shape%type;
begin
  perform internal.definition_before_write(d, definition_insert.sent);
  stored := internal.definition_checked(internal.definition_new(definition_insert.shape, definition_insert.sent), definition_insert.shape,
                                        definition_insert.sent);
  perform internal.definition_room(definition_insert.shape);
  execute (select format('insert into %s as t (%s) values (%s) returning t.*', d.table_name::regclass,
                         string_agg(format('%I', c.name), ', ' order by c.position),
                         string_agg(format('($1).%I', c.name), ', ' order by c.position))
             from internal.definition_columns(d) c
            where c.is_written)
     into stored
    using stored;
  perform internal.definition_after_write(stored, definition_insert.shape, definition_insert.sent);
  return stored;
end $$;
comment on function internal.definition_insert is
  'Creates a definition of the fields sent; shape is a null of its row type. Refuses 400 with the invalid_code of the kind, what its constraints
   refuse, 409 LIMIT_REACHED.';

create or replace function internal.definition_deleted_meanwhile(d internal.definitions) returns void
language sql volatile
return internal.fail(404, (definition_deleted_meanwhile.d).not_found_code, 'The ' || (definition_deleted_meanwhile.d).singular || ' was deleted just now.');
comment on function internal.definition_deleted_meanwhile is 'Refuses 404: the row was found, and was gone when it was to be locked.';

create or replace function internal.definition_update(shape anyelement, id_or_key text, sent jsonb) returns anyelement
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_update.shape);
  own constant text := internal.definition_hook(d, 'before_update');
  fields constant text[] := array(select c.name from internal.definition_columns(d) c where c.is_field order by c.position);
  was shape%type;
  wished shape%type;
begin
  perform internal.definition_before_write(d, definition_update.sent);
  was := internal.definition_find(definition_update.shape, definition_update.id_or_key);
  if own is not null then
    execute format('select %s($1, $2)', own) using was, definition_update.sent;
  end if;
  execute format('select t.* from %s t where t.id = $1 for no key update', d.table_name::regclass) into was using was.id;
  if was.id is null then
    perform internal.definition_deleted_meanwhile(d);
  end if;
  wished := internal.definition_checked(internal.definition_patched(was, definition_update.sent, fields), was, definition_update.sent);
  if wished is distinct from was then
    execute format('update %s t set %s, updated_at = internal.now() where t.id = ($1).id returning t.*', d.table_name::regclass,
                   (select string_agg(format('%1$I = ($1).%1$I', f.name), ', ' order by f.n) from unnest(fields) with ordinality f (name, n)))
       into wished
      using wished;
    perform internal.definition_after_write(wished, was, definition_update.sent);
  end if;
  return wished;
end $$;
comment on function internal.definition_update is
  'Changes a definition: absent fields stay, null clears. Refuses 404 with the not_found_code of the kind, 400, what its constraints refuse.
   internal.<kind>_before_update(was, sent) locks what must be locked before the row; then the row is locked, read again and checked.';

create or replace function internal.definition_delete(shape anyelement, id_or_key text) returns void
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_delete.shape);
  own constant text := internal.definition_hook(d, 'before_delete');
  doomed shape%type;
begin
  perform internal.definition_before_write(d, null);
  doomed := internal.definition_find(definition_delete.shape, definition_delete.id_or_key);
  if own is not null then
    execute format('select %s($1)', own) using doomed;
  end if;
  execute format('delete from %s t where t.id = $1 returning t.*', d.table_name::regclass) into doomed using doomed.id;
  if doomed.id is null then
    perform internal.definition_deleted_meanwhile(d);
  end if;
end $$;
comment on function internal.definition_delete is
  'Deletes a definition. Refuses 404 with the not_found_code of the kind, what foreign keys refuse, and what internal.<kind>_before_delete(row)
   does; that function locks what must be locked before the row.';

create or replace function api.definition_create(kind text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  made json;
begin
  execute format('select internal.definition_json(internal.definition_insert(null::%s, $1))',
                 (internal.definition_of(definition_create.kind)).table_name::regclass)
     into made
    using definition_create.patch;
  return internal.reply(201, made);
end $$;
comment on function api.definition_create is
  'A new definition of a kind, 201. Refuses 400 VALIDATION_ERROR or the invalid_code of the kind, 409 CONFLICT (the key is taken), LIMIT_REACHED.';

create or replace function api.definition_update(kind text, id_or_key text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  made json;
begin
  execute format('select internal.definition_json(internal.definition_update(null::%s, $1, $2))',
                 (internal.definition_of(definition_update.kind)).table_name::regclass)
     into made
    using definition_update.id_or_key, definition_update.patch;
  return internal.reply(200, made);
end $$;
comment on function api.definition_update is
  'Changes a definition. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, or the codes that its kind declares instead. Locks it.';

create or replace function api.definition_delete(kind text, id_or_key text) returns api.reply
language plpgsql volatile as $$
begin
  execute format('select internal.definition_delete(null::%s, $1)', (internal.definition_of(definition_delete.kind)).table_name::regclass)
    using definition_delete.id_or_key;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.definition_delete is 'Deletes a definition. Refuses 404 NOT_FOUND, or the not_found_code of the kind, and what else refuses.';
