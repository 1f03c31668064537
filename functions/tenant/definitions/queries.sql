-- Queries of definitions: one definition by its id or key, and, for administrators, pages.
create or replace function internal.is_id_or_key(id uuid, key text, id_or_key text) returns boolean
language sql immutable parallel safe as $$
  select is_id_or_key.id = internal.as_uuid(is_id_or_key.id_or_key)
         or internal.as_uuid(is_id_or_key.id_or_key) is null and is_id_or_key.key = is_id_or_key.id_or_key
$$;
comment on function internal.is_id_or_key is
  'Whether a path means the row with this id, if the path is a uuid, or else with this key. Postgres inlines it, so that
   the indexes of both columns serve it.';

create or replace function internal.definition_find(shape anyelement, id_or_key text) returns anyelement
language plpgsql stable as $$
declare
  found_one shape%type;
begin
  execute format('select f.* from %s($1) f',
                 internal.definition_compiled(internal.definition_of(definition_find.shape), 'find'))
     into found_one
    using definition_find.id_or_key;
  return found_one;
end $$;
comment on function internal.definition_find is
  'A definition by its id if the value is a uuid, else by its key, as far as its declaration allows; or by the hook
   internal.<kind>_find. Refuses 404 with the not_found_code of its declaration.';

create or replace function api.definition_list(kind text, page_offset bigint default 0, page_limit bigint default 50,
                                               filter jsonb default '{}')
returns api.reply
language plpgsql stable as $$
declare
  answer api.reply;
begin
  execute format('select r.* from %s($1, $2, $3) r',
                 internal.definition_compiled(internal.definition_of(definition_list.kind), 'page'))
     into answer
    using definition_list.filter, definition_list.page_offset, definition_list.page_limit;
  return answer;
end $$;
comment on function api.definition_list is 'A page of the definitions of a kind.';

create or replace function api.definition_get(kind text, id_or_key text) returns api.reply
language plpgsql stable as $$
declare
  d constant internal.definitions := internal.definition_of(definition_get.kind);
  made json;
begin
  execute format('select %s(%s($1))', internal.definition_compiled(d, 'json'), internal.definition_compiled(d, 'find'))
     into made
    using definition_get.id_or_key;
  return internal.reply(200, made);
end $$;
comment on function api.definition_get is 'A definition. Refuses 404 NOT_FOUND, or the not_found_code of the kind.';
