-- Definitions as administrators read them: the JSON of a row, one by its id or key, and pages.
create or replace function internal.definition_json(stored anyelement) returns json
language plpgsql stable as $$
declare
  d constant internal.definitions := internal.definition_of(definition_json.stored);
  made json;
begin
  execute format('select %s($1)', coalesce(internal.definition_hook(d, 'json'), internal.definition_compiled(d, 'json'))) into made using definition_json.stored;
  return made;
end $$;
comment on function internal.definition_json is
  'A definition as every answer shows it: by internal.<kind>_json where the entity has that, else every column that is no state, in the order of the table.';

create or replace function internal.definition_find(shape anyelement, id_or_key text) returns anyelement
language plpgsql stable as $$
declare
  d constant internal.definitions := internal.definition_of(definition_find.shape);
  own constant text := internal.definition_hook(d, 'find');
  as_id constant uuid := internal.as_uuid(definition_find.id_or_key);
  found_one shape%type;
begin
  if own is not null then
    execute format('select f.* from %s($1) f', own) into found_one using definition_find.id_or_key;
  elsif d.found_by = 'id' or d.found_by = 'id or key' and as_id is not null then
    execute format('select t.* from %s t where t.id = $1', d.table_name::regclass) into found_one using as_id;
  else
    execute format('select t.* from %s t where t.%I = $1', d.table_name::regclass, d.key_column) into found_one using definition_find.id_or_key;
  end if;
  if found_one.id is null then
    perform internal.fail(404, d.not_found_code, 'There is no such ' || d.singular || '.');
  end if;
  return found_one;
end $$;
comment on function internal.definition_find is
  'A definition by its id, when the value looks like a uuid, else by its key, as its declaration says; or as internal.<kind>_find finds it.
   Refuses 404 with the not_found_code of its declaration.';

create or replace function internal.definition_page(shape anyelement, filter jsonb, page_offset bigint, page_limit bigint) returns api.reply
language plpgsql stable as $$
declare
  d constant internal.definitions := internal.definition_of(definition_page.shape);
  direction constant text := case when d.is_descending then ' desc' else '' end;
  listed constant text := internal.definition_hook(d, 'listed');
  condition constant text := case when listed is null then '' else format('where %s(t, $3)', listed) end;
  rows_json json;
  total bigint;
begin
  -- rows are passed over as short ones: the JSON is made of those of the page only
  execute format('select (select json_agg(%s(p.listed) order by %s) from (select t as listed from %s t %s order by %s limit $1 offset $2) p),
                         (select count(*) from %s t %s)',
                 coalesce(internal.definition_hook(d, 'json'), internal.definition_compiled(d, 'json')),
                 (select string_agg(format('(p.listed).%I%s', o.name, direction), ', ' order by o.n) from unnest(d.order_by) with ordinality o (name, n)),
                 d.table_name::regclass, condition,
                 (select string_agg(format('t.%I%s', o.name, direction), ', ' order by o.n) from unnest(d.order_by) with ordinality o (name, n)),
                 d.table_name::regclass, condition)
     into rows_json, total
    using definition_page.page_limit, definition_page.page_offset, definition_page.filter;
  return internal.reply_page(rows_json, total, definition_page.page_offset, definition_page.page_limit);
end $$;
comment on function internal.definition_page is
  'A page of definitions in the order of their declaration; of those that internal.<kind>_listed(row, filter) accepts, where the entity has that.';

create or replace function api.definition_list(kind text, page_offset bigint default 0, page_limit bigint default 50, filter jsonb default '{}')
returns api.reply
language plpgsql stable as $$
declare
  answer api.reply;
begin
  execute format('select r.* from internal.definition_page(null::%s, $1, $2, $3) r', (internal.definition_of(definition_list.kind)).table_name::regclass)
     into answer
    using definition_list.filter, definition_list.page_offset, definition_list.page_limit;
  return answer;
end $$;
comment on function api.definition_list is 'A page of the definitions of a kind.';

create or replace function api.definition_get(kind text, id_or_key text) returns api.reply
language plpgsql stable as $$
declare
  made json;
begin
  execute format('select internal.definition_json(internal.definition_find(null::%s, $1))',
                 (internal.definition_of(definition_get.kind)).table_name::regclass)
     into made
    using definition_get.id_or_key;
  return internal.reply(200, made);
end $$;
comment on function api.definition_get is 'A definition. Refuses 404 NOT_FOUND, or the not_found_code of the kind.';
