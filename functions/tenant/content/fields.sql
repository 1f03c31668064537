-- What the fields of an entry may be: any object of a bounded size, or what the schema of its type says.
create or replace function internal.json_compact_bytes(value jsonb) returns int
language sql immutable as $$
  -- jsonb writes a space after each comma and colon, which are as many bytes themselves: half of its text is the least
  select case when octet_length(t.text) <= 2000 then octet_length(t.text)
              else octet_length(regexp_replace(t.text, '("(?:[^"\\]|\\.)*")|[ ]', '\1', 'g')) end
    from (select json_compact_bytes.value::text as text) t
$$;
comment on function internal.json_compact_bytes is
  'The bytes of a value as JSON text without white space, exactly from 2,000 on.';

create or replace function internal.content_fields(fields json) returns jsonb
language plpgsql volatile as $$
declare
  sent jsonb;
begin
  if json_typeof(content_fields.fields) is distinct from 'object' then
    perform internal.invalid('fields', 'must be an object');
  elsif octet_length(content_fields.fields::text) > 1048576 then
    perform internal.invalid('fields', 'must have at most 262144 bytes as JSON');
  elsif not internal.is_storable_json(content_fields.fields) then
    perform internal.invalid('fields', 'holds a character or a number that cannot be stored, or nests too deeply');
  elsif exists (select from json_object_keys(content_fields.fields) k where char_length(k) not between 1 and 64) then
    perform internal.invalid('fields', 'must have names of 1 to 64 characters');
  end if;
  sent := content_fields.fields::jsonb;
  if octet_length(sent::text) > 262144 and internal.json_compact_bytes(sent) > 262144 then
    perform internal.invalid('fields', 'must have at most 262144 bytes as JSON');
  end if;
  return sent;
end $$;
comment on function internal.content_fields is
  'Validates fields and returns them as they are stored. Refuses 400 VALIDATION_ERROR about fields.';

create or replace function internal.is_iso_moment(value text) returns boolean
language plpgsql immutable as $$
begin
  if is_iso_moment.value !~ ('^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?$') then
    return false;
  end if;
  return is_iso_moment.value::timestamptz is not null;
exception when data_exception then
  return false;
end $$;
comment on function internal.is_iso_moment is 'Whether a text is a date or a time of ISO 8601, with or without a zone.';

create or replace function internal.content_value_problem(type text, value jsonb) returns text
language plpgsql stable as $$
declare
  kind constant text := jsonb_typeof(content_value_problem.value);
  said constant text := content_value_problem.value #>> '{}';
begin
  case content_value_problem.type
    when 'json' then
      return null;
    when 'number', 'boolean' then
      return case when kind <> content_value_problem.type then 'must be a ' || content_value_problem.type end;
    when 'date' then
      return case when kind <> 'string' or not internal.is_iso_moment(said)
                  then 'must be a date or a time of ISO 8601' end;
    when 'media' then
      return case when kind <> 'string' or not exists (
                    select from app.media_assets a where a.id = internal.as_uuid(said) and a.status <> 'deleted')
                  then 'must be the id of an asset of this project' end;
    when 'reference' then
      return case when kind <> 'string' or (internal.content_at(said)).id is null
                  then 'must be the id or the key of an entry of this project' end;
    else
      return case when kind <> 'string' then 'must be a text' end;
  end case;
end $$;
comment on function internal.content_value_problem is
  'Why a value is none of a type of fields; null where it is one.';

create or replace function internal.content_check(entry app.content_entries, locale text, fields jsonb) returns void
language plpgsql volatile as $$
declare
  schema constant jsonb := (select t.fields from app.content_types t where t.type = (content_check.entry).content_type);
  is_home constant boolean := content_check.locale = (content_check.entry).default_locale;
  declared record;
  value jsonb;
  problem text;
begin
  if schema is null or schema = '[]' then
    return;
  end if;
  select k.key into declared
    from jsonb_object_keys(content_check.fields) as k (key)
   where not exists (select from jsonb_array_elements(schema) f where f.value ->> 'name' = k.key)
   order by k.key collate "C"
   limit 1;
  if found then
    perform internal.invalid('fields.' || declared.key, 'is not a field of this type');
  end if;
  for declared in
    select f.name, f.type, f.required, f.localized
      from jsonb_to_recordset(schema) as f (name text, type text, required boolean, localized boolean)
  loop
    value := content_check.fields -> declared.name;
    if coalesce(value, 'null') = 'null' then
      problem := case when declared.required and is_home then 'is required' end;
    elsif not declared.localized and not is_home then
      problem := 'is the same in every language: save it in the default locale';
    else
      problem := internal.content_value_problem(declared.type, value);
    end if;
    if problem is not null then
      perform internal.invalid('fields.' || declared.name, problem);
    end if;
  end loop;
end $$;
comment on function internal.content_check is
  'Checks fields against the schema of the entry''s type, where there is one. Refuses 400 VALIDATION_ERROR about
   fields.<name>.';

select internal.row_declare('content_type_json', null::app.content_types, '{type,fields,created_at,updated_at}');
comment on function internal.content_type_json is 'The schema of a type as responses show it.';

create or replace function internal.content_type_write(type text, fields json) returns app.content_types
language plpgsql volatile as $$
declare
  stored app.content_types;
  twice text;
begin
  if content_type_write.type !~ '^[A-Za-z0-9_.-]{1,64}$' then
    perform internal.invalid('type', 'must match ^[A-Za-z0-9_.-]{1,64}$');
  elsif json_typeof(content_type_write.fields) is distinct from 'array'
    or json_array_length(content_type_write.fields) > 100 then
    perform internal.invalid('fields', 'must be a list of at most 100');
  elsif not internal.is_storable_json(content_type_write.fields)
    or exists (select from json_array_elements(content_type_write.fields) f
                where json_typeof(f.value) <> 'object'
                   or coalesce(f.value ->> 'name', '') !~ '^[A-Za-z][A-Za-z0-9_]{0,63}$'
                   or coalesce(f.value ->> 'type', '') not in ('text', 'markdown', 'number', 'boolean', 'date', 'media',
                                                               'reference', 'json')
                   or coalesce(json_typeof(f.value -> 'required'), 'boolean') <> 'boolean'
                   or coalesce(json_typeof(f.value -> 'localized'), 'boolean') <> 'boolean') then
    perform internal.invalid('fields', 'must be objects {name, type, required?, localized?}');
  end if;
  select f.value ->> 'name' into twice
    from json_array_elements(content_type_write.fields) f
   group by 1
  having count(*) > 1
   limit 1;
  if found then
    perform internal.invalid('fields', format('has the name %s twice', twice));
  end if;
  if not exists (select from app.content_types t where t.type = content_type_write.type) then
    perform internal.advisory_lock('content');
    perform internal.check_limit((select count(*) from app.content_types), 1000,
                                 'A project has at most 1000 content types.');
  end if;
  insert into app.content_types as t (type, fields)
  values (content_type_write.type, (
    select coalesce(jsonb_agg(jsonb_build_object(
             'name', f.value ->> 'name', 'type', f.value ->> 'type',
             'required', coalesce((f.value ->> 'required')::boolean, false),
             'localized', coalesce((f.value ->> 'localized')::boolean, true)) order by f.n), '[]')
      from json_array_elements(content_type_write.fields) with ordinality as f (value, n)))
  on conflict on constraint content_types_type_unique do update
     set fields = excluded.fields, updated_at = internal.now()
  returning t.* into stored;
  return stored;
end $$;
comment on function internal.content_type_write is
  'Stores the schema of a type; an empty list lifts it. Refuses 400 VALIDATION_ERROR, 409 LIMIT_REACHED.';

create or replace function api.content_type_put(type text, fields json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  stored app.content_types;
begin
  stored := internal.content_type_write(content_type_put.type, content_type_put.fields);
  perform internal.audit_act('content.type', 'content_types', stored.type,
                             json_build_object('type', stored.type, 'fields', stored.fields), 200);
  return internal.reply(200, internal.content_type_json(stored));
end $$;
comment on function api.content_type_put is
  'Sets the schema of a content type: later saves are checked against it, what is stored stays. Refuses as
   internal.content_type_write.';

create or replace function api.content_type_get(type text) returns api.reply
language plpgsql stable as $$
declare
  found_type app.content_types;
begin
  select t.* into found_type from app.content_types t where t.type = content_type_get.type;
  perform internal.check_found(found, 'content type');
  return internal.reply(200, internal.content_type_json(found_type));
end $$;
comment on function api.content_type_get is
  'The schema of a content type. Refuses 404 NOT_FOUND for a type that has none, and so takes any fields.';

select internal.list_declare('content_types_page', null::app.content_types, 'content_type_json', '{type}',
                             direction => 'asc');

create or replace function api.content_types(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.content_types_page(content_types.page_offset, content_types.page_limit)
$$;
comment on function api.content_types is 'Content types that have a schema, by name.';
