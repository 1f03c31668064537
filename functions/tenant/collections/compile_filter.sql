-- Compiling filters to SQL. internal.filter_truth evaluates the same filter on one row as JSON;
-- test/collections/filters.test.ts compares the two on random trees.

create or replace function internal.collection_filter_sql(definition jsonb, filter jsonb, path jsonb, alias text,
                                                          is_positive boolean, inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  node text;
  parts text[] := '{}';
  part text;
begin
  if collection_filter_sql.filter ? 'not' then
    select f.params, format('not (%s)', f.sql) into params, sql
      from internal.collection_filter_sql(collection_filter_sql.definition, collection_filter_sql.filter -> 'not',
                                          collection_filter_sql.path || '"not"', collection_filter_sql.alias,
                                          not collection_filter_sql.is_positive, collection_filter_sql.params) f;
    return;
  end if;
  node := case when collection_filter_sql.filter ? 'and' then 'and'
               when collection_filter_sql.filter ? 'or' then 'or' end;
  if node is null then
    select f.params, f.sql into params, sql
      from internal.collection_leaf_sql(collection_filter_sql.definition, collection_filter_sql.filter,
                                        collection_filter_sql.path,
                                        collection_filter_sql.alias, collection_filter_sql.is_positive,
                                        collection_filter_sql.params) f;
    return;
  end if;
  for i in 0 .. jsonb_array_length(collection_filter_sql.filter -> node) - 1 loop
    select f.params, f.sql into params, part
      from internal.collection_filter_sql(collection_filter_sql.definition, collection_filter_sql.filter -> node -> i,
                                          collection_filter_sql.path || to_jsonb(node) || to_jsonb(i),
                                          collection_filter_sql.alias,
                                          collection_filter_sql.is_positive, params) f;
    parts := parts || part;
  end loop;
  -- an empty and is true, an empty or is false
  sql := case when cardinality(parts) = 0 then (node = 'and')::text
              else '(' || array_to_string(parts, format(' %s ', node)) || ')' end;
end $$;
comment on function internal.collection_filter_sql is
  'A valid filter as a condition on columns of alias, with its values as parameters. Three-valued as
   internal.filter_truth; with is_positive, unknown may also be false, which an index needs. Refuses 400 INVALID_COLUMN,
   INVALID_BODY with details.path.';

create or replace function internal.collection_leaf_sql(definition jsonb, leaf jsonb, path jsonb, alias text,
                                                        is_positive boolean, inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  name constant text := collection_leaf_sql.leaf ->> 'column';
  op text := collection_leaf_sql.leaf ->> 'op';
  value constant jsonb := coalesce(collection_leaf_sql.leaf -> 'value', 'null');
  place constant text := internal.collection_place(collection_leaf_sql.path);
  at_value constant text := concat_ws('.', nullif(place, ''), 'value');
  col jsonb := collection_leaf_sql.definition -> 'columns' -> name;
  type text;
  expr text;
  plain text;
begin
  if col is null and strpos(name, '.') > 1 and collection_leaf_sql.definition -> 'columns' -> split_part(name, '.',
                                        1) ->> 'type' = 'jsonb' then
    -- inside JSON, dots are levels of the path
    expr := format('(%s.%I #> %L::text[])', collection_leaf_sql.alias, split_part(name, '.', 1),
                   (string_to_array(name, '.'))[2:]);
    select f.params, f.sql into params, sql
      from internal.collection_json_leaf_sql(expr, op, value, true, collection_leaf_sql.path,
                                             collection_leaf_sql.is_positive, params) f;
    return;
  end if;
  col := internal.collection_column(collection_leaf_sql.definition, name, concat_ws('.', nullif(place, ''), 'column'));
  type := col ->> 'type';
  expr := coalesce(col ->> 'expr', format('%s.%I', collection_leaf_sql.alias, name));
  op := case op when 'containedBy' then 'contained_by' else op end;

  if op in ('is_null', 'is_not_null') or op in ('eq', 'ne') and value = 'null' then
    sql := format('%s %s', expr, case when op in ('is_null', 'eq') then 'is null' else 'is not null' end);
    return;
  end if;
  if type = 'jsonb' then
    select f.params, f.sql into params, sql
      from internal.collection_json_leaf_sql(expr, op, value, false, collection_leaf_sql.path,
                                             collection_leaf_sql.is_positive, params) f;
    if op = 'contains' and collection_leaf_sql.is_positive and (col ->> 'gin')::boolean then
      -- row-level security hides the column's statistics from an operator that is not leakproof, so Postgres estimates
      -- one row in a hundred and would rather scan a million rows in order than use the index. With the condition
      -- repeated, it estimates one in ten thousand.
      sql := format('(%1$s and %1$s)', sql);
    end if;
    return;
  end if;
  if not internal.collection_op_suits(type, op) then
    perform internal.collection_refuse(concat_ws('.', nullif(place, ''), 'op'),
                                       format('cannot be applied to %s, which is of type %s', name, type));
  end if;

  plain := internal.collection_leaf_problem(type, op, value,
                                            coalesce((collection_leaf_sql.definition ->> 'is_text')::boolean, false));
  if plain is not null then
    perform internal.collection_refuse(at_value, plain);
  end if;
  select f.params, f.sql into params, sql
    from internal.collection_compare_sql(col, expr, op, collection_leaf_sql.path || '"value"', params) f;
end $$;
comment on function internal.collection_leaf_sql is
  'One {column, op, value} as SQL, its value typed by the column. Refuses 400 INVALID_COLUMN and INVALID_BODY.';

create or replace function internal.collection_op_suits(type text, op text) returns boolean
language sql immutable parallel safe as $$
  select case
    when collection_op_suits.op in ('contains', 'contained_by', 'overlaps') then collection_op_suits.type like '%[]'
    when collection_op_suits.type = 'vector' then false
    when collection_op_suits.op in ('like', 'ilike') then collection_op_suits.type = 'text'
    when collection_op_suits.op in ('gt', 'gte', 'lt', 'lte') then collection_op_suits.type <> 'boolean'
      and collection_op_suits.type not like '%[]'
    when collection_op_suits.op in ('in', 'not_in') then collection_op_suits.type not like '%[]'
    else true
  end
$$;
comment on function internal.collection_op_suits is
  'Whether an operator applies to a column of this type; tests of null apply to all, and jsonb accepts any operator.';

create or replace function internal.collection_leaf_problem(type text, op text, value jsonb,
                                                            is_text boolean default false)
returns text
language plpgsql stable as $$
declare
  item jsonb;
  problem text;
begin
  if collection_leaf_problem.op in ('in', 'not_in') then
    for item in select e.value from jsonb_array_elements(collection_leaf_problem.value) as e (value)
      where e.value <> 'null' loop
      problem := internal.collection_value_problem(collection_leaf_problem.type, item, collection_leaf_problem.is_text);
      if problem is not null then
        return 'each ' || problem;
      end if;
    end loop;
    return null;
  end if;
  if collection_leaf_problem.op = 'contains' and jsonb_typeof(collection_leaf_problem.value) <> 'array' then
    -- one element
    problem := internal.collection_value_problem(rtrim(collection_leaf_problem.type, '[]'),
                                                 collection_leaf_problem.value,
                                                 collection_leaf_problem.is_text);
    return problem || ', or an array of these';
  end if;
  return internal.collection_value_problem(collection_leaf_problem.type, collection_leaf_problem.value,
                                           collection_leaf_problem.is_text);
end $$;
comment on function internal.collection_leaf_problem is
  'Why this operator cannot compare a column of this type with a value, or null.';

create or replace function internal.collection_compare_sql(col jsonb, expr text, op text, path jsonb,
                                                           inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  type constant text := collection_compare_sql.col ->> 'type';
  sql_type constant text := case type when 'double' then 'double precision' else type end;
  is_list constant boolean := collection_compare_sql.op in ('in', 'not_in', 'contains', 'contained_by', 'overlaps')
    or type like '%[]';
  collated constant text := collection_compare_sql.expr || coalesce(collection_compare_sql.col ->> 'collate', '');
  value text;
begin
  select p.params, p.sql into params, value
    from internal.collection_param(
      collection_compare_sql.params, collection_compare_sql.path,
      case when is_list then rtrim(sql_type, '[]') || '[]' else sql_type end,
      jsonb_build_object('column_type', type, 'op', collection_compare_sql.op, 'is_array', is_list,
                         'pattern', (select t.pattern from internal.collection_type(rtrim(type, '[]')) t))) p;
  sql := case
    -- responses show times in milliseconds, so times are compared in milliseconds
    when type = 'timestamptz' then case collection_compare_sql.op
      when 'eq' then format('(%1$s >= %2$s and %1$s < %3$s)', collection_compare_sql.expr,
                            internal.millisecond_sql(value, 0), internal.millisecond_sql(value, 1))
      when 'ne' then format('(%1$s < %2$s or %1$s >= %3$s)', collection_compare_sql.expr,
                            internal.millisecond_sql(value, 0), internal.millisecond_sql(value, 1))
      when 'gt' then format('%s >= %s', collection_compare_sql.expr, internal.millisecond_sql(value, 1))
      when 'gte' then format('%s >= %s', collection_compare_sql.expr, internal.millisecond_sql(value, 0))
      when 'lt' then format('%s < %s', collection_compare_sql.expr, internal.millisecond_sql(value, 0))
      when 'lte' then format('%s < %s', collection_compare_sql.expr, internal.millisecond_sql(value, 1))
      when 'in' then format('date_trunc(''milliseconds'', %s) = any (%s)', collection_compare_sql.expr, value)
      else format('date_trunc(''milliseconds'', %s) <> all (%s)', collection_compare_sql.expr, value)
    end
    else case collection_compare_sql.op
      when 'eq' then format('%s = %s', collection_compare_sql.expr, value)
      when 'ne' then format('%s <> %s', collection_compare_sql.expr, value)
      when 'gt' then format('%s > %s', collated, value)
      when 'gte' then format('%s >= %s', collated, value)
      when 'lt' then format('%s < %s', collated, value)
      when 'lte' then format('%s <= %s', collated, value)
      when 'in' then format('%s = any (%s)', collection_compare_sql.expr, value)
      when 'not_in' then format('%s <> all (%s)', collection_compare_sql.expr, value)
      when 'like' then format('%s like internal.like_pattern(%s)', collection_compare_sql.expr, value)
      when 'ilike' then format('%s ilike internal.like_pattern(%s)', collection_compare_sql.expr, value)
      when 'contains' then format('%s @> %s', collection_compare_sql.expr, value)
      when 'contained_by' then format('%s <@ %s', collection_compare_sql.expr, value)
      when 'overlaps' then format('%s && %s', collection_compare_sql.expr, value)
    end
  end;
end $$;
comment on function internal.collection_compare_sql is
  'The comparison of a column with the parameter at path, by an operator that its type allows.';

create or replace function internal.millisecond_sql(value text, later int) returns text
language sql immutable parallel safe
return case when millisecond_sql.later = 0 then format('date_trunc(''milliseconds'', %s)', millisecond_sql.value)
            else format('(date_trunc(''milliseconds'', %s) + interval ''1 millisecond'')', millisecond_sql.value) end;
comment on function internal.millisecond_sql is 'The millisecond of a time, or the one after it, as SQL.';

create or replace function internal.collection_json_leaf_sql(expr text, op text, value jsonb, is_path boolean,
                                                             path jsonb, is_positive boolean, inout params jsonb,
                                                             out sql text)
language plpgsql stable as $$
declare
  place text;
  plain text;
begin
  if collection_json_leaf_sql.op in ('is_null', 'is_not_null') or collection_json_leaf_sql.value = 'null' then
    -- a null inside JSON counts as missing too
    sql := internal.filter_compare_sql(collection_json_leaf_sql.expr, 'jsonb', collection_json_leaf_sql.op,
                                       collection_json_leaf_sql.value, '''null''::jsonb');
    return;
  end if;
  select p.params, p.sql into params, plain
    from internal.collection_param(collection_json_leaf_sql.params, collection_json_leaf_sql.path || '"value"', 'jsonb',
                                   '{"column_type": "jsonb", "is_array": false}') p;
  if collection_json_leaf_sql.op in ('in', 'not_in') and jsonb_typeof(collection_json_leaf_sql.value) = 'array'
     and collection_json_leaf_sql.value <> '[]' then
    -- equal to internal.filter_is_listed, by a hash table that is built once instead of a thousand comparisons for each
    -- row. Inside case, so that it remains a condition and does not become a join, which could not scan an index in the
    -- order of the page
    sql := format('case when coalesce(jsonb_typeof(%1$s), ''null'') <> ''null'' then %1$s %2$s (select '
                  'nullif(listed.value, ''null'') from jsonb_array_elements(%3$s) as listed) end',
                  collection_json_leaf_sql.expr, case collection_json_leaf_sql.op when 'in' then 'in' else 'not in' end,
                  plain);
    return;
  end if;
  place := internal.filter_compare_sql(collection_json_leaf_sql.expr, 'jsonb', collection_json_leaf_sql.op,
                                       collection_json_leaf_sql.value, plain);
  sql := case
    -- containment alone can use an index; the exact comparison follows
    when collection_json_leaf_sql.op = 'contains' and collection_json_leaf_sql.is_positive
      and not collection_json_leaf_sql.is_path
    then case
      -- an object is contained only in an object, an array only in an array; null in an array equals nothing, and a
      -- scalar can be contained directly
      when jsonb_typeof(collection_json_leaf_sql.value) = 'object'
           or jsonb_typeof(collection_json_leaf_sql.value) = 'array' and not collection_json_leaf_sql.value @> 'null'
      then format('%s @> %s', collection_json_leaf_sql.expr, plain)
      else format('(%s @> %s and %s)', collection_json_leaf_sql.expr, plain, place)
    end
    when collection_json_leaf_sql.op = 'eq' and collection_json_leaf_sql.is_positive
      and not collection_json_leaf_sql.is_path
    then format('%s = %s', collection_json_leaf_sql.expr, plain)
    else place
  end;
end $$;
comment on function internal.collection_json_leaf_sql is
  'One condition on JSON: any operator with any value, compared by internal.filter_compare_sql.';

create or replace function internal.collection_where_sql(definition jsonb, filter json, path jsonb, alias text,
                                                         inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  problem record;
begin
  if collection_where_sql.filter is null or json_typeof(collection_where_sql.filter) = 'null' then
    sql := null;
    return;
  end if;
  select c.path, c.reason into problem from internal.filter_check(collection_where_sql.filter) c;
  if problem.reason is not null then
    perform internal.collection_refuse(
      concat_ws('.', nullif(internal.collection_place(collection_where_sql.path), ''), nullif(problem.path, '')),
        problem.reason);
  end if;
  select f.params, f.sql into params, sql
    from internal.collection_filter_sql(collection_where_sql.definition, collection_where_sql.filter::jsonb,
                                        collection_where_sql.path,
                                        collection_where_sql.alias, true, params) f;
end $$;
comment on function internal.collection_where_sql is
  'A filter from a request, validated and as SQL; null when there is none. Refuses 400 INVALID_BODY with details.path,
   INVALID_COLUMN.';
