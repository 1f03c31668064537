-- Column types of collections as queries see them: the JSON form of each type, and the description of a collection from
-- the catalog. The compiler, the validation of values and the server, which tests patterns, all use this file.

create or replace function internal.collection_type(name text)
returns table (kinds text[], pattern text, element text, is_number boolean, is_ordered boolean, what text)
language sql immutable parallel safe as $$
  select t.kinds, t.pattern, t.element, t.is_number, t.is_ordered, t.what
    from (values
      ('text', array['string'], null, null, false, true, 'a string'),
      ('integer', array['number'], '^-?[0-9]{1,10}$', null, true, true, 'a whole number'),
      ('bigint', array['number', 'string'], '^-?[0-9]{1,19}$', null, true, true, 'a whole number, or a string of one'),
      -- at most 1,000 characters: a longer number cannot be indexed, and sums of such numbers could exceed numeric
      ('numeric', array['number', 'string'], '^(?!.{250}.{250}.{250}.{251})-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,3})?$',
       null, true, true, 'a number of at most 1000 characters, or a string of one'),
      ('double', array['number'], '^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]{1,6})?$', null, true, true, 'a number'),
      ('boolean', array['boolean'], '^(true|false)$', null, false, true, 'true or false'),
      ('uuid', array['string'], '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$', null, false, true, 'a uuid'),
      ('date', array['string'], '^[0-9]{4}-[0-9]{2}-[0-9]{2}$', null, false, true, 'a date such as 2026-10-03'),
      -- in some time zones the first and last day fall into a year that four digits cannot write
      ('timestamptz', array['string'],
       '^(?!(0001-01-01|9999-12-31).+[+-][0-9]{2}(:?[0-9]{2})?$)[0-9]{4}-[0-9]{2}-[0-9]{2}([T '
       '][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$', null, false, true,
       'a time such as 2026-10-03T10:00:00.000Z'),
      ('jsonb', array['string', 'number', 'boolean', 'array', 'object'], null, null, false, false, 'JSON'),
      ('vector', array['array'], null, 'double', false, false, 'an array of numbers'),
      ('text[]', array['array'], null, 'text', false, false, 'an array of strings'),
      ('integer[]', array['array'], null, 'integer', false, false, 'an array of whole numbers'),
      ('bigint[]', array['array'], null, 'bigint', false, false, 'an array of whole numbers'),
      ('numeric[]', array['array'], null, 'numeric', false, false, 'an array of numbers'),
      ('boolean[]', array['array'], null, 'boolean', false, false, 'an array of true and false'),
      ('uuid[]', array['array'], null, 'uuid', false, false, 'an array of uuids')
    ) as t (name, kinds, pattern, element, is_number, is_ordered, what)
   where t.name = collection_type.name
$$;
comment on function internal.collection_type is
  'The properties of a column type: accepted kinds of JSON, the pattern of their text, the element type of an array;
   whether it is numeric and whether it has an order. what completes the sentence "must be ...".';

create or replace function internal.collection_value_problem(type text, value jsonb, is_text boolean default false)
returns text
language plpgsql stable parallel safe as $$
declare
  kind constant text := jsonb_typeof(collection_value_problem.value);
  known record;
  item jsonb;
begin
  select t.* into known from internal.collection_type(collection_value_problem.type) t;
  if kind is null or kind <> all (known.kinds)
    and not (collection_value_problem.is_text and kind = 'string' and known.pattern is not null) then
    return 'must be ' || known.what;
  end if;
  if known.element is not null then
    for item in select e.value from jsonb_array_elements(collection_value_problem.value) as e (value) loop
      if jsonb_typeof(item) = 'null' and collection_value_problem.type <> 'vector' then
        continue;
      end if;
      if internal.collection_value_problem(known.element, item, collection_value_problem.is_text) is not null then
        return 'must be ' || known.what;
      end if;
    end loop;
    return null;
  end if;
  if known.pattern is not null and (collection_value_problem.value #>> '{}') !~ known.pattern then
    return 'must be ' || known.what;
  end if;
  return null;
end $$;
comment on function internal.collection_value_problem is
  'Why a JSON value is not of this type, to follow a field''s name in a message, or null. The range is checked only by a
   cast. With is_text, as in a query string, every value is a string.';

-- Stable, as to_json and extract are: Postgres does not inline an immutable function that calls a stable one, which
-- costs ten times as much.
create or replace function internal.bigint_json(value bigint) returns json
language sql stable parallel safe
return case
  when bigint_json.value between -9007199254740991 and 9007199254740991 then to_json(bigint_json.value)
  else to_json(bigint_json.value::text)
end;
comment on function internal.bigint_json is 'A JSON number if a double holds it exactly, otherwise a string.';

create or replace function internal.numeric_json(value numeric) returns json
language sql stable parallel safe as $$
  select case
    when numeric_json.value is null then null
    when abs(numeric_json.value) >= 1e300 or (numeric_json.value <> 0
                                              and abs(numeric_json.value) <=
                                                1e-290) then to_json(numeric_json.value::text)
    -- not float8 to numeric: that cast keeps 15 digits
    when numeric_json.value = numeric_json.value::float8::text::numeric then to_json(numeric_json.value)
    else to_json(numeric_json.value::text)
  end
$$;
comment on function internal.numeric_json is 'A JSON number if a double holds it exactly, otherwise a string.';

create or replace function internal.double_json(value numeric) returns json
language sql stable parallel safe
return case
  when double_json.value = 0
    or abs(double_json.value) between 5e-324 and 1.7976931348623157e308 then to_json(double_json.value::float8)
  else to_json(double_json.value::text)
end;
comment on function internal.double_json is
  'A JSON number, rounded to a double; a string if it is out of the range of a double.';

create or replace function internal.average_json(value numeric) returns json
language sql stable parallel safe
return case
  when abs(average_json.value) <= 9007199254740991 then internal.double_json(average_json.value)
  else internal.numeric_json(average_json.value)
end;
comment on function internal.average_json is
  'An average: its fraction is rounded to a double. Beyond 2^53 - 1 it is as internal.numeric_json, a string if a double
   does not hold it exactly.';

create or replace function internal.bigints_json(list bigint[]) returns json
language sql stable parallel safe
return case when bigints_json.list is null then null
            else coalesce((select json_agg(internal.bigint_json(e.value) order by e.n)
                             from unnest(bigints_json.list) with ordinality as e (value, n)), '[]') end;
comment on function internal.bigints_json is 'An array of whole numbers, each as internal.bigint_json.';

create or replace function internal.numerics_json(list numeric[]) returns json
language sql stable parallel safe
return case when numerics_json.list is null then null
            else coalesce((select json_agg(internal.numeric_json(e.value) order by e.n)
                             from unnest(numerics_json.list) with ordinality as e (value, n)), '[]') end;
comment on function internal.numerics_json is 'An array of numbers, each as internal.numeric_json.';

create or replace function internal.like_pattern(pattern text) returns text
language sql immutable parallel safe
return case
  when (length(like_pattern.pattern) - length(rtrim(like_pattern.pattern, '\'))) % 2 = 1 then like_pattern.pattern
    || '\'
  else like_pattern.pattern
end;
comment on function internal.like_pattern is
  'A pattern that like accepts: a backslash at its end, which escapes nothing, is a literal backslash.';

create or replace function internal.like_contains(part text) returns text
language sql immutable parallel safe
return '%' || replace(replace(replace(like_contains.part, '\', '\\'), '%', '\%'), '_', '\_') || '%';
comment on function internal.like_contains is 'The like pattern for texts that contain this text literally.';

create or replace function internal.etag(at timestamptz) returns text
language sql stable parallel safe
return '"' || to_hex((extract(epoch from etag.at) * 1000000)::bigint) || '"';
comment on function internal.etag is 'The ETag of a row: its updated_at, which increases with every change.';

create or replace function internal.collection_definition(collection text) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare
  found_collection app.collections;
  definition jsonb;
begin
  select c.* into found_collection from app.collections c where c.name = collection_definition.collection;
  perform internal.check_found(found_collection.id is not null, 'collection', 'COLLECTION_NOT_FOUND');
  with columns as (
    select m.name, m.type, m.nullable, true as managed, m.n as position, null::text as referenced,
           null::int as dimensions, m.sql_type
      from (values ('id', 'uuid', false, -6, 'uuid'), ('user_id', 'uuid', true, -5, 'uuid'),
            ('group_id', 'uuid', true, -4, 'uuid'),
                   ('created_at', 'timestamptz', false, -3, 'timestamptz'),
                   ('updated_at', 'timestamptz', false, -2, 'timestamptz'),
                   ('deleted_at', 'timestamptz', true, -1, 'timestamptz')) as m (name, type, nullable, n, sql_type)
     where m.name <> 'group_id' or found_collection.owner_scope = 'group'
    union all
    select k.name, k.type, k.nullable, false, k.position, r.name, k.dimensions, k.sql_type
      from app.collection_columns k
      left join app.collections r on r.id = k.references_collection_id
     where k.collection_id = found_collection.id
  )
  select jsonb_build_object(
           'id', found_collection.id, 'name', found_collection.name, 'scope', found_collection.owner_scope,
           'read', found_collection.read_policy, 'write', found_collection.write_policy,
           'version', found_collection.schema_version,
           'order', jsonb_agg(k.name order by k.position),
           'columns', jsonb_object_agg(k.name, jsonb_build_object(
             'name', k.name, 'type', k.type, 'managed', k.managed, 'references', k.referenced,
               'dimensions', k.dimensions, 'sql', k.sql_type,
             -- read from the table itself: a plan may be made between the commits of the catalog's row and the table
             'not_null', coalesce(a.attnotnull, false),
             'gin', k.type = 'jsonb' and exists (select from pg_catalog.pg_index i
                                                   join pg_catalog.pg_class c on c.oid = i.indexrelid
                                                   join pg_catalog.pg_am m on m.oid = c.relam and m.amname = 'gin'
                                                  where i.indrelid = a.attrelid and a.attnum = any (i.indkey)
                                                    and i.indisvalid),
             'collate', case when k.type = 'text' and not internal.is_code_point_order(a.attcollation)
                               then ' collate pg_catalog."C"' else '' end)),
           'children', coalesce((
             select jsonb_agg(jsonb_build_object('collection', c.name, 'column', r.name) order by c.name, r.position)
               from app.collection_columns r
               join app.collections c on c.id = r.collection_id
              where r.references_collection_id = found_collection.id), '[]'))
    into definition
    from columns k
    left join pg_catalog.pg_attribute a
      on a.attrelid = to_regclass(format('collections.%I', found_collection.name)) and a.attname = k.name
     and not a.attisdropped;
  return definition;
end $$;
comment on function internal.collection_definition is
  'The compiler''s description of a collection: its id, policies, schema_version, columns in their order, and the
   collections that refer to it. Refuses 404 COLLECTION_NOT_FOUND.';

create or replace function internal.is_code_point_order(collation_id oid) returns boolean
language sql stable security definer set search_path = '' as $$
  select coalesce((
    select case
             when c.collprovider = 'd' then
               (select d.datcollate in ('C', 'POSIX') or d.datcollate ~* '^C[.]UTF-?8$'
                    or to_jsonb(d) ->> 'datlocprovider' = 'b'
                  from pg_catalog.pg_database d where d.datname = current_database())
             else c.collname in ('C', 'POSIX', 'ucs_basic', 'pg_c_utf8')
           end
      from pg_catalog.pg_collation c
     where c.oid = is_code_point_order.collation_id), false)
$$;
comment on function internal.is_code_point_order is
  'Whether a collation sorts by code points, as filters compare text everywhere. Otherwise the compiler adds collate
   "C".';

create or replace function internal.collection_column(definition jsonb, name text, place text) returns jsonb
language plpgsql stable as $$
declare
  col constant jsonb := collection_column.definition -> 'columns' -> collection_column.name;
begin
  if col is null then
    perform internal.fail(400, 'INVALID_COLUMN',
                          format('%s has no column %s.', collection_column.definition ->> 'name',
                                 left(collection_column.name, 100)),
                          json_build_object('column', collection_column.name, 'path', collection_column.place));
  end if;
  return col;
end $$;
comment on function internal.collection_column is
  'A column of a definition. Refuses 400 INVALID_COLUMN with details {column, path}.';

create or replace function internal.collection_refuse(place text, reason text) returns void
language sql volatile
return internal.fail(400, 'INVALID_BODY', concat_ws(': ', nullif(collection_refuse.place, ''),
                                                    collection_refuse.reason),
                     json_build_object('path', collection_refuse.place, 'reason', collection_refuse.reason));
comment on function internal.collection_refuse is
  'Refuses a part of a query: 400 INVALID_BODY with details {path, reason}.';

create or replace function internal.collection_place(path jsonb) returns text
language sql immutable parallel safe as $$
  select coalesce(ltrim(string_agg(case when jsonb_typeof(p.part) = 'number' then '[' || (p.part #>> '{}') || ']'
                                        else '.' || (p.part #>> '{}') end, '' order by p.n), '.'), '')
    from jsonb_array_elements(collection_place.path) with ordinality as p (part, n)
   -- paths inside a filter are relative to the filter
   where p.n > 1 or p.part #>> '{}' <> 'filter'
$$;
comment on function internal.collection_place is 'A path of keys and numbers in readable form: and[1].value.';

create or replace function internal.collection_param(inout params jsonb, path jsonb, type text, more jsonb,
                                                     out sql text)
language plpgsql immutable as $$
declare
  n constant int := jsonb_array_length(collection_param.params -> 'list') + 1;
begin
  sql := case collection_param.params ->> 'style'
    -- inside plpgsql all values are one array
    when 'array' then format('($1[%s])::%s', n, collection_param.type)
    else format('$%s::%s', n, collection_param.type)
  end;
  params := jsonb_set(collection_param.params, array['list', (n - 1)::text],
                      jsonb_build_object('path', collection_param.path, 'type',
                                         collection_param.type) || collection_param.more);
end $$;
comment on function internal.collection_param is
  'Adds a parameter: the path of its value in the request, and its type in SQL. sql is its name in the statement. more
   may have column_type (the JSON it accepts), is_array (a list is sent as one array) and pattern.';
