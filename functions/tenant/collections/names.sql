-- Names and literals of generated SQL. Identifiers go through %I, values through %L after a cast to the column's type:
-- no part of a developer's request enters a statement unquoted.

create or replace function internal.collection_object_name(collection text, part text, rule text) returns text
language sql immutable parallel safe as $$
  -- names are ASCII, so that characters are bytes
  select case
    when length(concat_ws('_', collection_object_name.collection, collection_object_name.part,
                          collection_object_name.rule)) <= 63
    then concat_ws('_', collection_object_name.collection, collection_object_name.part, collection_object_name.rule)
    else internal.collection_hashed_name(collection_object_name.collection, collection_object_name.part,
                                         collection_object_name.rule)
  end
$$;
comment on function internal.collection_object_name is
  'The name of a constraint: posts_title_max_length. A name beyond Postgres''s 63 bytes ends in a hash instead.';

create or replace function internal.collection_hashed_name(collection text, part text, rule text) returns text
language sql immutable parallel safe as $$
  select left(collection_hashed_name.collection, 40) || '_' || left(collection_hashed_name.rule, 10) || '_'
         || left(md5(concat_ws('.', collection_hashed_name.collection, collection_hashed_name.part,
                               collection_hashed_name.rule)), 10)
$$;
comment on function internal.collection_hashed_name is 'The substitute when the plain name is too long, or taken.';

create or replace function internal.collection_index_name(collection text, part text, rule text) returns text
language sql stable as $$
  select case
    when to_regclass(format('collections.%I', n.plain)) is null then n.plain
    else internal.collection_hashed_name(collection_index_name.collection, collection_index_name.part,
                                         collection_index_name.rule)
  end
    from (select internal.collection_object_name(collection_index_name.collection, collection_index_name.part,
                                                 collection_index_name.rule) as plain) as n
$$;
comment on function internal.collection_index_name is
  'The name of a new index. Indexes and tables share a namespace: if the plain name is taken, the name ends in a hash.';

create or replace function internal.collection_reserved_name(name text) returns boolean
language sql stable parallel safe as $$
  select collection_reserved_name.name in ('id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at',
                                           -- columns that every table of Postgres has
                                           'tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid')
      or exists (select from pg_get_keywords() k
                  where k.word = collection_reserved_name.name and k.catcode in ('R', 'T'))
$$;
comment on function internal.collection_reserved_name is 'Server-managed names and SQL''s reserved keywords.';

create or replace function internal.collection_name_check(name text, field text) returns void
language plpgsql volatile as $$
begin
  if collection_name_check.name is null or collection_name_check.name !~ '^[a-z][a-z0-9_]{0,62}$' then
    perform internal.invalid(collection_name_check.field, 'must match ^[a-z][a-z0-9_]{0,62}$');
  end if;
  if internal.collection_reserved_name(collection_name_check.name) then
    perform internal.fail(400, 'RESERVED_NAME', 'The name ' || collection_name_check.name || ' is reserved.',
                          json_build_object('field', collection_name_check.field, 'name', collection_name_check.name));
  end if;
end $$;
comment on function internal.collection_name_check is 'Refuses 400 VALIDATION_ERROR (form) and RESERVED_NAME.';

create or replace function internal.collection_sql_type(type text, dimensions int default null) returns text
language sql stable as $$
  select case collection_sql_type.type
    when 'double' then 'double precision'
    when 'timestamptz' then 'timestamp with time zone'
    when 'vector' then case when to_regtype('extensions.vector') is null then 'real[]'
                            else format('extensions.vector(%s)', collection_sql_type.dimensions) end
    else collection_sql_type.type
  end
$$;
comment on function internal.collection_sql_type is
  'The Postgres type of a column; for a vector pgvector''s, or real[] when it is not installed.';

create or replace function internal.collection_literal(value json, type text, sql_type text) returns text
language plpgsql stable as $$
declare
  kind constant text := json_typeof(collection_literal.value);
  plain text;
  is_null boolean;
begin
  if kind is null or kind = 'null' then
    return 'null';
  end if;
  if not internal.is_storable_json(collection_literal.value) then
    return null;
  end if;
  -- the kind of JSON for each type; a bigint or a numeric may be a string, because JSON's numbers are doubles
  if not (case
       when collection_literal.type in ('integer', 'double') then kind = 'number'
       when collection_literal.type in ('bigint', 'numeric') then kind in ('number', 'string')
       when collection_literal.type = 'boolean' then kind = 'boolean'
       when collection_literal.type = 'jsonb' then true
       when collection_literal.type = 'vector' or collection_literal.type like '%[]' then kind = 'array'
       else kind = 'string'
     end) then
    return null;
  end if;
  if collection_literal.type = 'jsonb' then
    plain := collection_literal.value::jsonb::text;
  elsif collection_literal.type like '%[]' then
    if exists (
      select from json_array_elements(collection_literal.value) as e (element)
       where json_typeof(e.element) <> 'null'
         and internal.collection_literal(e.element, rtrim(collection_literal.type, '[]'),
                                         rtrim(collection_literal.sql_type, '[]')) is null
    ) then
      return null;
    end if;
    plain := (select array_agg(e.element order by e.n)
                from json_array_elements_text(collection_literal.value) with ordinality as e (element, n))::text;
    plain := coalesce(plain, '{}');
  elsif collection_literal.type = 'vector' then
    if exists (select from json_array_elements(collection_literal.value) as e (element)
                where json_typeof(e.element) <> 'number') then
      return null;
    end if;
    plain := case when collection_literal.sql_type = 'real[]'
                  then translate(collection_literal.value::text, '[]', '{}') else collection_literal.value::text end;
  else
    plain := collection_literal.value #>> '{}';
  end if;
  if collection_literal.type = 'date' and plain !~ '^\d{4}-\d{2}-\d{2}$'
     or collection_literal.type = 'uuid' and internal.as_uuid(plain) is null
     or collection_literal.type = 'timestamptz'
     and plain !~ '^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?$'
     or collection_literal.type in ('bigint', 'numeric') and plain !~ '^-?\d+(\.\d+)?([eE][+-]?\d{1,4})?$' then
    return null;
  end if;
  if collection_literal.type = 'timestamptz' and plain !~ '(Z|[+-][0-9:]+)$'
    or length(plain) = 10 and collection_literal.type = 'timestamptz' then
    -- a time without a zone is UTC, whatever the session's zone is
    plain := plain || case when length(plain) = 10 then ' 00:00Z' else 'Z' end;
  end if;
  -- the cast decides
  execute format('select %L::%s is null', plain, collection_literal.sql_type) into is_null;
  return format('%L::%s', plain, collection_literal.sql_type);
exception when data_exception or program_limit_exceeded then
  return null;
end $$;
comment on function internal.collection_literal is
  'A JSON value as an SQL literal of a column''s type; null when the value is not of that type. sql_type comes from
   internal.collection_sql_type, never from a caller.';
