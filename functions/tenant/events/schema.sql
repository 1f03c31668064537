-- JSON Schema in SQL: the part of draft 2020-12 that docs/events.md lists. Other keywords are refused by name when a
-- schema is stored, so that every rule of a stored schema is checked.

create or replace function internal.schema_problem(schema jsonb, place text default '', depth int default 1,
                                                   out path text, out reason text)
language plpgsql immutable parallel safe as $$
declare
  entry record;
  kind text;
begin
  path := schema_problem.place;
  if jsonb_typeof(schema_problem.schema) = 'boolean' then
    path := null;
    return;
  elsif coalesce(jsonb_typeof(schema_problem.schema), 'null') <> 'object' then
    reason := 'must be a schema: an object, or true or false';
    return;
  elsif schema_problem.depth > 16 then
    reason := 'nests too deeply, at most 16 levels are allowed';
    return;
  end if;

  for entry in select e.key, e.value from jsonb_each(schema_problem.schema) e order by e.key loop
    path := concat_ws('.', nullif(schema_problem.place, ''), entry.key);
    kind := jsonb_typeof(entry.value);
    reason := case
      when entry.key in ('title', 'description', '$comment', '$schema', '$id') then case
                                        when kind <> 'string' then 'must be a string' end
      when entry.key in ('default', 'examples', 'deprecated', 'const') then null
      when entry.key = 'enum' then case when kind <> 'array' then 'must be a list' end
      when entry.key = 'type' then case
        when exists (select from jsonb_array_elements(case when kind = 'array' then entry.value
                                                           else jsonb_build_array(entry.value) end) t
                      where t.value not in ('"null"', '"boolean"', '"object"', '"array"', '"number"', '"integer"',
                                            '"string"'))
          or entry.value = '[]'
          then 'must be null, boolean, object, array, number, integer or string, or a list of these' end
      when entry.key in ('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum') then case
                                        when kind <> 'number' then 'must be a number' end
      when entry.key in ('minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties') then case
        when kind <> 'number' or entry.value #>> '{}' !~ '^\d{1,9}$' then 'must be a whole number from 0' end
      when entry.key = 'uniqueItems' then case when kind <> 'boolean' then 'must be true or false' end
      when entry.key = 'required' then case
        when kind <> 'array' or exists (select from jsonb_array_elements(entry.value) r
                                         where jsonb_typeof(r.value) <> 'string')
          then 'must be a list of names' end
      when entry.key = 'properties' then case when kind <> 'object' then 'must be an object of schemas' end
      when entry.key in ('items', 'additionalProperties', 'not') then null
      when entry.key in ('allOf', 'anyOf', 'oneOf') then case when kind <> 'array'
                                                              or entry.value = '[]' then 'must be a list of schemas' end
      else 'is a keyword that is not evaluated here'
    end;
    if reason is not null then
      return;
    end if;
    if entry.key in ('items', 'additionalProperties', 'not') then
      select p.path, p.reason into path, reason
        from internal.schema_problem(entry.value, path, schema_problem.depth + 1) p;
    elsif entry.key = 'properties' then
      select p.path, p.reason into path, reason
        from jsonb_each(entry.value) e
       cross join lateral internal.schema_problem(e.value,
                                                  concat_ws('.', nullif(schema_problem.place, ''), 'properties', e.key),
                                                  schema_problem.depth + 1) p
       where p.reason is not null
       order by e.key
       limit 1;
    elsif entry.key in ('allOf', 'anyOf', 'oneOf') then
      select p.path, p.reason into path, reason
        from jsonb_array_elements(entry.value) with ordinality as e (value, n)
       cross join lateral internal.schema_problem(e.value,
                                                  concat_ws('.', nullif(schema_problem.place, ''),
                                                            entry.key || '[' || e.n - 1 || ']'),
                                                  schema_problem.depth + 1) p
       where p.reason is not null
       order by e.n
       limit 1;
    end if;
    if reason is not null then
      return;
    end if;
  end loop;
  path := null;
end $$;
comment on function internal.schema_problem is
  'The first thing that is wrong with a schema, and where: a keyword that is not evaluated, by its name, or one with a
   value that it cannot have. Nulls when nothing is.';

create or replace function internal.schema_type_is(type jsonb, value jsonb) returns boolean
language sql immutable parallel safe as $$
  select case
    when jsonb_typeof(schema_type_is.type) = 'array'
      then exists (select from jsonb_array_elements(schema_type_is.type) t
                    where internal.schema_type_is(t.value, schema_type_is.value))
    -- 1.0 is an integer too
    when schema_type_is.type = '"integer"' then jsonb_typeof(schema_type_is.value) = 'number'
                                                and trunc((schema_type_is.value #>> '{}')::numeric) =
                                                  (schema_type_is.value #>> '{}')::numeric
    else jsonb_typeof(schema_type_is.value) = schema_type_is.type #>> '{}'
  end
$$;
comment on function internal.schema_type_is is
  'Whether a value is of a type of JSON Schema, or of one of a list of these.';

create or replace function internal.schema_accepts(schema jsonb, value jsonb) returns boolean
language plpgsql immutable parallel safe as $$
declare
  s constant jsonb := schema_accepts.schema;
  v constant jsonb := schema_accepts.value;
  part record;
  number numeric;
  size int;
begin
  if jsonb_typeof(s) = 'boolean' then
    return s = 'true';
  end if;
  if s ? 'type' and not internal.schema_type_is(s -> 'type', v)
     or s ? 'const' and s -> 'const' <> v
     or s ? 'enum' and not exists (select from jsonb_array_elements(s -> 'enum') e where e.value = v) then
    return false;
  end if;

  -- each keyword looks at values of its own type, and lets the others pass
  case jsonb_typeof(v)
    when 'number' then
      number := (v #>> '{}')::numeric;
      if number < (s ->> 'minimum')::numeric or number > (s ->> 'maximum')::numeric
         or number <= (s ->> 'exclusiveMinimum')::numeric or number >= (s ->> 'exclusiveMaximum')::numeric then
        return false;
      end if;
    when 'string' then
      size := char_length(v #>> '{}');
      if size < (s ->> 'minLength')::int or size > (s ->> 'maxLength')::int then
        return false;
      end if;
    when 'array' then
      size := jsonb_array_length(v);
      if size < (s ->> 'minItems')::int or size > (s ->> 'maxItems')::int
         or s -> 'uniqueItems' = 'true' and (select count(distinct e.value) from jsonb_array_elements(v) e) < size then
        return false;
      end if;
      if s ? 'items' then
        for part in select e.value from jsonb_array_elements(v) e loop
          if not internal.schema_accepts(s -> 'items', part.value) then
            return false;
          end if;
        end loop;
      end if;
    when 'object' then
      if s ? 'minProperties' or s ? 'maxProperties' then
        size := (select count(*) from jsonb_object_keys(v));
        if size < (s ->> 'minProperties')::int or size > (s ->> 'maxProperties')::int then
          return false;
        end if;
      end if;
      if s ? 'required' and exists (select from jsonb_array_elements_text(s -> 'required') r where not v ? r.value) then
        return false;
      end if;
      if s ? 'properties' or s ? 'additionalProperties' then
        for part in
          select e.value, coalesce(s -> 'properties' -> e.key, s -> 'additionalProperties') as schema
            from jsonb_each(v) e
        loop
          if part.schema is not null and not internal.schema_accepts(part.schema, part.value) then
            return false;
          end if;
        end loop;
      end if;
    else null;
  end case;

  for part in select e.value from jsonb_array_elements(s -> 'allOf') e loop
    if not internal.schema_accepts(part.value, v) then
      return false;
    end if;
  end loop;
  if s ? 'anyOf' and not exists (select from jsonb_array_elements(s -> 'anyOf') e
                                  where internal.schema_accepts(e.value, v))
     or s ? 'oneOf' and (select count(*) from jsonb_array_elements(s -> 'oneOf') e
                          where internal.schema_accepts(e.value, v)) <> 1
     or s ? 'not' and internal.schema_accepts(s -> 'not', v) then
    return false;
  end if;
  return true;
end $$;
comment on function internal.schema_accepts is
  'Whether a value is valid against a schema that internal.schema_problem accepts.';
