-- Compiling changes of one row: a map of values, and operators under $ names, which no column can begin with.

create or replace function internal.collection_patch_sql(definition jsonb, request jsonb, inout params jsonb,
                                                         out sql text, out patterns jsonb)
language plpgsql stable as $$
declare
  d constant jsonb := collection_patch_sql.definition;
  data constant jsonb := collection_patch_sql.request -> 'data';
  plain constant jsonb := data - array['$if', '$inc', '$append', '$remove', '$unset'];
  columns jsonb;
  stray text;
  sets text[] := '{}';
  operators jsonb;
  asked text;
  conditions text;
  id text;
  body text;
begin
  select k.key into stray from jsonb_object_keys(plain) as k (key) where k.key like '$%' limit 1;
  if stray is not null then
    perform internal.collection_refuse(stray, 'must be $if, $inc, $append, $remove or $unset');
  end if;
  columns := internal.collection_data_columns(d,
                                              plain - 'idempotency_key' || case
                                                when d -> 'columns' ? 'idempotency_key' and plain ? 'idempotency_key'
                                                                                then jsonb_build_object(
                                                                                  'idempotency_key', plain ->
                                                                                    'idempotency_key')
                                                                                else '{}' end, '');
  columns := coalesce((select jsonb_agg(c.value) from jsonb_array_elements(columns) as c (value)
                        where not (c.value ->> 'managed')::boolean), '[]');
  sets := array(select format('%1$I = r.%1$I', c.value ->> 'name') from jsonb_array_elements(columns) as c (value));
  select o.params, o.sets into params, operators
    from internal.collection_operators_sql(d, data,
                                           array(select c.value ->> 'name'
                                                   from jsonb_array_elements(columns) as c (value)),
                                           collection_patch_sql.params) o;
  sets := sets || array(select jsonb_array_elements_text(operators));
  select f.params, f.sql into params, asked from internal.collection_if_sql(d, collection_patch_sql.request, params) f;
  select c.params, c.sql into params, conditions
    from internal.collection_target_sql(d, collection_patch_sql.request, params) c;
  select p.params, p.sql into params, id from internal.collection_param(params, '["id"]', 'uuid', '{}') p;
  if (collection_patch_sql.request ->> 'put')::boolean then
    -- a push of sync sets all columns, and brings back a deleted row
    sets := sets || array(select format('%I = default', c.name)
                            from jsonb_each(d -> 'columns') as c (name, value)
                           where not (c.value ->> 'managed')::boolean
                             and not columns @> jsonb_build_array(jsonb_build_object('name', c.name)));
    sets := sets || 'deleted_at = null'::text;
  elsif (collection_patch_sql.request ->> 'touch')::boolean and cardinality(sets) = 0 then
    sets := array['deleted_at = t.deleted_at'];
  end if;
  conditions := concat_ws(' and ', format('t.id = %s', id),
                          case when (collection_patch_sql.request ->> 'put')::boolean is not true
                                 then 't.deleted_at is null' end,
                          asked, conditions);
  patterns := jsonb_build_object('at', 'data', 'columns', internal.collection_patterns(columns));

  if cardinality(sets) = 0 then
    -- also reject updates of rows that the caller may only read
    sql := internal.collection_answer_sql(d, format('made as (select t.* from collections.%I t where %s and (%s))',
                                                    d ->> 'name', conditions,
                                                    internal.collection_write_condition_of(d)), '200', '');
    return;
  end if;
  if jsonb_array_length(columns) > 0 then
    select p.params, p.sql into params, body from internal.collection_param(params, '["data"]', 'json', '{}') p;
    conditions := conditions || coalesce(internal.collection_readable_sql(
      columns, format('json_to_record(%s) as q (%s)', body, internal.collection_record_sql(columns))), '');
    body := format(' from json_to_record(%s) as r (%s)', body, internal.collection_record_sql(columns));
  end if;
  sql := internal.collection_answer_sql(d, format('made as (update collections.%I t set %s%s where %s returning t.*)',
                                                  d ->> 'name',
                                                  array_to_string(sets, ', '), coalesce(body, ''), conditions), '200',
                                                  '');
end $$;
comment on function internal.collection_patch_sql is
  'A change of one row, atomic with its $if and If-Match (optimistic locking). Refuses 400 INVALID_COLUMN,
   INVALID_BODY.';

create or replace function internal.collection_operators_sql(definition jsonb, data jsonb, taken text[],
                                                             inout params jsonb, out sets jsonb)
language plpgsql stable as $$
declare
  op text;
  key text;
  col jsonb;
  part text;
  used text[] := collection_operators_sql.taken;
begin
  sets := '[]';
  foreach op in array array['$inc', '$append', '$remove', '$unset'] loop
    continue when collection_operators_sql.data -> op is null;
    if jsonb_typeof(collection_operators_sql.data -> op) <> (case op when '$unset' then 'array' else 'object' end) then
      perform internal.collection_refuse(op, case op when '$unset' then 'must be an array of columns'
                                                  else 'must be an object' end);
    end if;
    for key in
      select k.key
        from jsonb_array_elements(case when op = '$unset' then collection_operators_sql.data -> op
                                       else (select coalesce(jsonb_agg(o.key), '[]')
                                               from jsonb_object_keys(collection_operators_sql.data -> op) as o (
                                                 key)) end) as e (value)
       cross join lateral (select e.value #>> '{}' as key) k
    loop
      col := internal.collection_column(collection_operators_sql.definition, coalesce(key, ''),
                                        concat_ws('.', op, key));
      continue when (col ->> 'managed')::boolean;
      if key = any (used) then
        perform internal.collection_refuse_column(key, 'is changed more than once');
      end if;
      used := used || key;
      if op = '$unset' then
        sets := sets || to_jsonb(format('%I = null', key));
        continue;
      end if;
      select o.params, o.sql into params, part
        from internal.collection_operator_sql(col, op, collection_operators_sql.data -> op -> key, params) o;
      sets := sets || to_jsonb(part);
    end loop;
  end loop;
end $$;
comment on function internal.collection_operators_sql is
  'The assignments of $inc, $append, $remove and $unset. Refuses 400 INVALID_COLUMN, INVALID_BODY with details.column.';

create or replace function internal.collection_operator_sql(col jsonb, op text, value jsonb, inout params jsonb,
                                                            out sql text)
language plpgsql stable as $$
declare
  name constant text := collection_operator_sql.col ->> 'name';
  type constant text := collection_operator_sql.col ->> 'type';
  known record;
  problem text;
  given text;
begin
  select t.* into known from internal.collection_type(rtrim(type, '[]')) t;
  if collection_operator_sql.op = '$inc' and (type like '%[]' or not known.is_number)
     or collection_operator_sql.op <> '$inc' and type not like '%[]' then
    perform internal.collection_refuse_column(name,
                                              format('is of type %s, which has no %s', type,
                                                     collection_operator_sql.op));
  end if;
  problem := internal.collection_value_problem(type, collection_operator_sql.value);
  if problem is not null then
    perform internal.collection_refuse_column(name, collection_operator_sql.op || ' ' || problem);
  end if;
  select p.params, p.sql into params, given
    from internal.collection_param(collection_operator_sql.params,
                                   jsonb_build_array('data', collection_operator_sql.op, name),
                                   case type when 'double' then 'double precision' else type end,
                                   jsonb_build_object('column_type', type, 'column', name, 'is_array', type like '%[]',
                                                      'pattern', known.pattern)) p;
  sql := case collection_operator_sql.op
    when '$inc' then format('%1$I = coalesce(t.%1$I, 0) + %2$s', name, given)
    when '$append' then format('%1$I = coalesce(t.%1$I, ''{}'') || %2$s', name, given)
    else format('%1$I = case when t.%1$I is not null then array(select e.value from unnest(t.%1$I) with ordinality as '
                'e (value, n) where not exists (select from unnest(%2$s) as g (value) where g.value is not distinct '
                'from e.value) order by e.n) end',
                name, given)
  end;
end $$;
comment on function internal.collection_operator_sql is
  'One column''s $inc, $append or $remove. Null counts as 0, or as an empty array.';

create or replace function internal.collection_match_sql(inout params jsonb, out sql text)
language sql stable as $$
  -- a list of tags with commas between them; an empty one matches no version
  select p.params, format('internal.etag(t.updated_at) = any (string_to_array(%s, %L))', p.sql, ',')
    from internal.collection_param(collection_match_sql.params, '["if_match"]', 'text', '{}') p
$$;
comment on function internal.collection_match_sql is
  'The condition of If-Match: the row is one of the versions that the request names.';

create or replace function internal.collection_if_sql(definition jsonb, request jsonb, inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  expected constant jsonb := collection_if_sql.request -> 'data' -> '$if';
  key text;
  part text;
  parts text[] := '{}';
begin
  if expected is not null and jsonb_typeof(expected) <> 'object' then
    perform internal.collection_refuse('$if', 'must be an object');
  end if;
  for key in select k.key from jsonb_object_keys(coalesce(expected, '{}')) as k (key) loop
    perform internal.collection_column(collection_if_sql.definition, key, '$if.' || key);
    if expected -> key = 'null' then
      parts := parts || format('t.%I is null', key);
      continue;
    end if;
    if internal.collection_value_problem(collection_if_sql.definition -> 'columns' -> key ->> 'type',
                                         expected -> key) is not null then
      perform internal.collection_refuse_column(key, internal.collection_value_problem(
        collection_if_sql.definition -> 'columns' -> key ->> 'type', expected -> key));
    end if;
    if collection_if_sql.definition -> 'columns' -> key ->> 'type' = 'jsonb' then
      select p.params, format('t.%I = %s', key, p.sql) into params, part
        from internal.collection_param(params, jsonb_build_array('data', '$if', key), 'jsonb',
                                       '{"column_type": "jsonb"}') p;
    elsif collection_if_sql.definition -> 'columns' -> key ->> 'type' = 'vector' then
      perform internal.collection_refuse_column(key, 'is a vector, which $if cannot compare');
    else
      select f.params, f.sql into params, part
        from internal.collection_compare_sql(collection_if_sql.definition -> 'columns' -> key, format('t.%I', key),
                                             'eq',
                                             jsonb_build_array('data', '$if', key), params) f;
    end if;
    parts := parts || part;
  end loop;
  if collection_if_sql.request ->> 'if_match' is not null then
    select m.params, m.sql into params, part from internal.collection_match_sql(params) m;
    parts := parts || part;
  end if;
  sql := nullif(array_to_string(parts, ' and '), '');
end $$;
comment on function internal.collection_if_sql is 'The conditions of $if and If-Match, all of which must hold.';
