-- Compiling filters to SQL. A comparison becomes native operators that Postgres can estimate, fold and serve from an
-- index; internal.filter_compare and internal.filter_truth have the same meaning on one row, and test/filters/compile
-- compares the two. No text of a caller becomes part of the SQL:
-- values and names of properties are read from a place, an expression that gives the jsonb of the leaf or of the value,
-- such as $1 -> 3.

create or replace function internal.json_items(list jsonb) returns jsonb[]
language sql immutable parallel safe as $$
  select coalesce(array_agg(nullif(e.value, 'null') order by e.n), '{}')
    from jsonb_array_elements(json_items.list) with ordinality as e (value, n)
$$;
comment on function internal.json_items is 'The elements of a JSON array, null where one is null.';

create or replace function internal.json_texts(list jsonb, kind text) returns text[]
language sql immutable parallel safe as $$
  select coalesce(array_agg(e.value #>> '{}' order by e.n), '{}')
    from jsonb_array_elements(json_texts.list) with ordinality as e (value, n)
   where jsonb_typeof(e.value) in (json_texts.kind, 'null')
$$;
comment on function internal.json_texts is
  'The elements of one type of a JSON array as texts, and a null for each null.';

create or replace function internal.json_singletons(list jsonb) returns jsonb[]
language sql immutable parallel safe as $$
  select coalesce(array_agg(jsonb_build_array(e.value) order by e.n), '{}')
    from jsonb_array_elements(json_singletons.list) with ordinality as e (value, n)
   where e.value <> 'null'
$$;
comment on function internal.json_singletons is 'Each element of a JSON array that is not null as an array of its own.';

create or replace function internal.json_at(path text[], value jsonb) returns jsonb
language plpgsql immutable parallel safe as $$
declare
  made jsonb := json_at.value;
begin
  for i in reverse cardinality(json_at.path) .. 1 loop
    made := jsonb_build_object(json_at.path[i], made);
  end loop;
  return made;
end $$;
comment on function internal.json_at is
  'Wraps a value in objects: {a,b} and 1 give {"a": {"b": 1}}. Immutable, so that a condition on it is a constant to the
   planner.';

create or replace function internal.filter_compare_sql(expression text, kind text, op text, value jsonb, place text)
returns text
language plpgsql immutable as $$
declare
  e constant text := filter_compare_sql.expression;
  place constant text := filter_compare_sql.place;
  value_kind constant text := jsonb_typeof(filter_compare_sql.value);
  is_json constant boolean := filter_compare_sql.kind = 'jsonb';
  -- the JSON type of a typed expression
  json_kind constant text := case filter_compare_sql.kind when 'text' then 'string' when 'numeric' then 'number'
                                  else filter_compare_sql.kind end;
  -- a null inside JSON counts as missing too
  known constant text := case when is_json then format('nullif(%s, ''null'')', e) else e end;
  typed constant text := case when json_kind = 'string' then format('(%s #>> ''{}'')', place)
                              else format('(%s)::%s', place, filter_compare_sql.kind) end;
  comparison constant text := case filter_compare_sql.op
    when 'eq' then '=' when 'ne' then '<>' when 'gt' then '>' when 'gte' then '>=' when 'lt' then '<'
      when 'lte' then '<=' when 'like' then 'like'
    when 'ilike' then 'ilike' end;
  unknown constant text := 'null::boolean';
  list text;
begin
  if filter_compare_sql.op = 'is_null' or filter_compare_sql.op = 'eq' and value_kind = 'null' then
    return format('(%s is null)', known);
  elsif filter_compare_sql.op = 'is_not_null' or filter_compare_sql.op = 'ne' and value_kind = 'null' then
    return format('(%s is not null)', known);
  elsif filter_compare_sql.op in ('in', 'not_in') then
    if coalesce(value_kind, '') <> 'array' then
      return unknown;
    elsif is_json then
      list := format('internal.json_items(%s)', place);
    elsif jsonb_array_length(filter_compare_sql.value) > 0
          and cardinality(internal.json_texts(filter_compare_sql.value, json_kind)) = 0 then
      -- no element of this type in the list: false, but unknown for a missing value
      return format('(case when %s is not null then %s end)', e, (filter_compare_sql.op = 'not_in')::text);
    else
      list := format('internal.json_texts(%s, %L)%s', place, json_kind,
                     case when json_kind <> 'string' then '::' || filter_compare_sql.kind || '[]' else '' end);
    end if;
    return format(case filter_compare_sql.op when 'in' then '(%s = any (%s))' else '(%s <> all (%s))' end, known, list);
  elsif coalesce(value_kind, 'null') = 'null' then
    return unknown;
  elsif filter_compare_sql.op in ('eq', 'ne') then
    return case when is_json then format('(%s %s %s)', known, comparison, place)
                when value_kind = json_kind then format('(%s %s %s)', e, comparison, typed)
                else format('(case when %s is not null then %s end)', e, (filter_compare_sql.op = 'ne')::text) end;
  elsif filter_compare_sql.op in ('gt', 'gte', 'lt', 'lte') and value_kind in ('number', 'string') then
    return case
      when is_json and value_kind = 'number' then format('(case when jsonb_typeof(%1$s) = ''number'' then '
                                                         '(%1$s)::numeric %2$s (%3$s)::numeric end)', e, comparison,
                                                            place)
      -- order by code points, which is the same in every database
      when is_json then format('(case when jsonb_typeof(%1$s) = ''string'' then (%1$s #>> ''{}'') collate "C" %2$s '
                               '(%3$s #>> ''{}'') end)', e, comparison, place)
      when value_kind <> json_kind then unknown
      when value_kind = 'number' then format('(%s %s %s)', e, comparison, typed)
      else format('(%s collate "C" %s %s)', e, comparison, typed) end;
  elsif filter_compare_sql.op in ('like', 'ilike') and value_kind = 'string' and (is_json or json_kind = 'string') then
    -- like recurses at each %, and would exhaust the stack on thousands of them
    return case
      when length(filter_compare_sql.value #>> '{}') - length(replace(filter_compare_sql.value #>> '{}', '%',
                                                                      '')) > 100 then unknown
      when is_json then format('(case when jsonb_typeof(%1$s) = ''string'' then (%1$s #>> ''{}'') %2$s '
                               'internal.like_pattern(%3$s #>> ''{}'') end)', e, comparison, place)
      else format('(%s %s internal.like_pattern(%s))', e, comparison, typed) end;
  elsif not is_json then
    return unknown;
  elsif filter_compare_sql.op = 'contains' then
    -- a null in an array equals nothing, as in SQL's arrays
    return format('(case when jsonb_typeof(%1$s) in (''array'', ''object'') then %2$s end)', e,
                  case when value_kind = 'array' and filter_compare_sql.value @> 'null' then 'false'
                       else format('%s @> %s', e, place) end);
  elsif filter_compare_sql.op in ('contained_by', 'containedBy') and value_kind = 'array' then
    return format('(case when jsonb_typeof(%1$s) = ''array'' then %2$s @> %1$s and not %1$s @> ''null'' end)', e,
                  place);
  elsif filter_compare_sql.op = 'overlaps' and value_kind = 'array' then
    return format('(case when jsonb_typeof(%1$s) = ''array'' then %1$s @> any (internal.json_singletons(%2$s)) end)', e,
                  place);
  end if;
  return unknown;
end $$;
comment on function internal.filter_compare_sql is
  'Compiles one comparison to SQL with three values, as internal.filter_compare. expression is SQL of the type kind:
   jsonb, text, numeric or boolean; value is the operand, and place the SQL that gives the same value at run time: the
   SQL depends on value only by its type, and by whether lists hold nulls and elements of the type of expression.';

create or replace function internal.filter_property_sql("row" text, col text, place text) returns text
language sql immutable parallel safe as $$
  select case
    -- the path of a plain name is that name, except of a number, which Postgres also accepts after a sign or white
    -- space
    when filter_property_sql.col ~ '[.]|^\s*[-+]?[0-9]+$'
      then format('coalesce(%1$s -> (%2$s ->> ''column''), %1$s #> string_to_array(%2$s ->> ''column'', ''.''))',
                  filter_property_sql."row", filter_property_sql.place)
    else format('(%1$s -> (%2$s ->> ''column''))', filter_property_sql."row", filter_property_sql.place) end
$$;
comment on function internal.filter_property_sql is
  'A property of a row as jsonb, by name or path; place gives the leaf whose column names it.';

create or replace function internal.filter_contains_sql("row" text, leaf jsonb, place text) returns text
language plpgsql immutable as $$
declare
  col constant text := filter_contains_sql.leaf ->> 'column';
  value constant jsonb := filter_contains_sql.leaf -> 'value';
  value_kind constant text := jsonb_typeof(value);
  op constant text := filter_contains_sql.leaf ->> 'op';
  is_path constant boolean := col ~ '[.]';
  named text;
begin
  -- a number in a path may select an element of an array, which containment by names cannot; Postgres also accepts one
  -- after a sign or white space
  if col ~ '(^|[.])\s*[-+]?[0-9]+([.]|$)' then
    return null;
  elsif op = 'in' and value_kind = 'array' and jsonb_array_length(value) between 1 and 16
        and not exists (select from jsonb_array_elements(value) as e (element)
                         where jsonb_typeof(e.element) not in ('string', 'number', 'boolean')) then
    return (select '(' || string_agg(internal.filter_contains_sql(
                     filter_contains_sql."row", jsonb_build_object('column', col, 'op', 'eq', 'value', value -> n),
                     -- the element in the place of the list
                     format('jsonb_set(%1$s, ''{value}'', %1$s -> ''value'' -> %2$s)', filter_contains_sql.place, n)),
                     ' or ' order by n) || ')'
              from generate_series(0, jsonb_array_length(value) - 1) as n);
  elsif op = 'eq' and value_kind in ('string', 'number', 'boolean') then
    named := format('%s @> internal.json_at(array[%2$s ->> ''column''], %2$s -> ''value'')', filter_contains_sql."row",
                    filter_contains_sql.place);
    return case when not is_path then format('(%s)', named)
                -- a property whose name contains dots takes precedence over the path
                else format('(%1$s or %2$s @> internal.json_at(string_to_array(%3$s ->> ''column'', ''.''), %3$s -> '
                            '''value'') and not %2$s ? (%3$s ->> ''column''))',
                            named, filter_contains_sql."row", filter_contains_sql.place) end;
  end if;
  return null;
end $$;
comment on function internal.filter_contains_sql is
  'Compiles a leaf to containment in a row that is an object, which a GIN index with jsonb_path_ops serves: true exactly
   when the comparison is true, and false when it is unknown. Null for a leaf that is not an equality with a string, a
   number or a boolean, or with up to 16 of them.';

create or replace function internal.filter_sql(filter jsonb, "row" text, place text, depth int default 1) returns text
language plpgsql immutable as $$
declare
  col constant text := filter_sql.filter ->> 'column';
  node constant text := case when filter_sql.filter ? 'not' then 'not' when filter_sql.filter ? 'and' then 'and'
                             when filter_sql.filter ? 'or' then 'or' end;
  parts constant jsonb := filter_sql.filter -> node;
  conditions text[] := '{}';
begin
  if col <> '' then
    return internal.filter_compare_sql(internal.filter_property_sql(filter_sql."row", col, filter_sql.place), 'jsonb',
                                       filter_sql.filter ->> 'op',
                                       filter_sql.filter -> 'value', format('(%s -> ''value'')', filter_sql.place));
  elsif node is null or filter_sql.depth > 8 or node <> 'not' and jsonb_typeof(parts) is distinct from 'array' then
    return 'null::boolean';
  elsif node = 'not' then
    return format('(not %s)', internal.filter_sql(parts, filter_sql."row", format('(%s -> ''not'')', filter_sql.place),
                                                  filter_sql.depth + 1));
  end if;
  for i in 0 .. jsonb_array_length(parts) - 1 loop
    conditions := conditions || internal.filter_sql(parts -> i, filter_sql."row",
                                                    format('(%s -> %L -> %s)', filter_sql.place, node, i),
                                                      filter_sql.depth + 1);
  end loop;
  -- an empty and is true, an empty or is false
  return case when cardinality(conditions) = 0 then (node = 'and')::text
              else '(' || array_to_string(conditions, format(' %s ', node)) || ')' end;
end $$;
comment on function internal.filter_sql is
  'Compiles a filter on a row that is jsonb to a condition with three values, like internal.filter_truth. row is SQL for
   the row, place SQL that gives the filter at run time. depth is for its own recursion, at most 8 levels.';
