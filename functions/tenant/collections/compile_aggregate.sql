-- Compiling aggregates: groups, time buckets, having and order by the names that the request gives.

create or replace function internal.collection_group_by_sql(definition jsonb, item jsonb, place text) returns jsonb
language plpgsql stable as $$
declare
  is_plain constant boolean := jsonb_typeof(collection_group_by_sql.item) = 'string';
  name constant text := case when is_plain then collection_group_by_sql.item #>> '{}'
                             else collection_group_by_sql.item ->> 'column' end;
  bucket constant text := case when not is_plain then collection_group_by_sql.item ->> 'bucket' end;
  zone constant text := case when not is_plain then coalesce(collection_group_by_sql.item ->> 'timezone', 'UTC') end;
  col constant jsonb := internal.collection_column(collection_group_by_sql.definition, name,
                                                   collection_group_by_sql.place);
  type constant text := col ->> 'type';
begin
  if type = 'vector' then
    perform internal.fail(400, 'INVALID_COLUMN', format('%s is a vector: it cannot be grouped by.', name),
                          json_build_object('column', name, 'path', collection_group_by_sql.place));
  end if;
  if bucket is null then
    return col || jsonb_build_object('inner', format('t.%I', name));
  end if;
  if type not in ('timestamptz', 'date') then
    perform internal.collection_refuse(collection_group_by_sql.place || '.bucket',
                                       format('requires a time or date, but %s is of type %s', name, type));
  end if;
  if not internal.is_timezone(zone) then
    perform internal.collection_refuse(collection_group_by_sql.place || '.timezone',
                                       'must be an IANA time zone such as Europe/Berlin');
  end if;
  if type = 'date' then
    if bucket = 'hour' then
      perform internal.collection_refuse(collection_group_by_sql.place || '.bucket',
                                         'must be day, week, month or year for a date');
    end if;
    return col || jsonb_build_object('inner', format('date_trunc(%L, t.%I::timestamp)::date', bucket, name));
  end if;
  return col || jsonb_build_object('inner', format('date_trunc(%L, t.%I, %L)', bucket, name, zone));
end $$;
comment on function internal.collection_group_by_sql is
  'A column to group by, or its time bucket in a time zone: the column, with its expression under inner. Refuses 400
   INVALID_COLUMN, INVALID_BODY.';

create or replace function internal.double_sum_sql(expr text) returns text
language sql immutable parallel safe
-- sum() of doubles raises at 1.8e308; casts by text keep all digits, which float8 to numeric does not
return format('(coalesce((sum(%1$s) filter (where abs(%1$s) < 1e290))::text::numeric + '
              'coalesce(sum(%1$s::text::numeric) filter (where abs(%1$s) >= 1e290), 0), '
              'sum(%1$s::text::numeric) filter (where abs(%1$s) >= 1e290)))', double_sum_sql.expr);
comment on function internal.double_sum_sql is 'The sum of doubles as numeric, which does not overflow.';

create or replace function internal.collection_aggregate_column(definition jsonb, item jsonb, place text) returns jsonb
language plpgsql stable as $$
declare
  fn constant text := collection_aggregate_column.item ->> 'fn';
  name constant text := collection_aggregate_column.item ->> 'column';
  col jsonb;
  expr text;
  type text;
begin
  if name is null then
    if fn <> 'count' then
      perform internal.collection_refuse(collection_aggregate_column.place || '.column',
                                         format('is required for %s', fn));
    end if;
    return '{"type": "bigint", "inner": "count(*)"}';
  end if;
  col := internal.collection_column(collection_aggregate_column.definition, name,
                                    collection_aggregate_column.place || '.column');
  expr := format('t.%I', name);
  type := col ->> 'type';
  if fn in ('sum', 'avg') and not (select t.is_number from internal.collection_type(type) t)
     or fn in ('min', 'max') and (type in ('boolean', 'uuid')
                                  or not (select t.is_ordered from internal.collection_type(type) t))
     or fn = 'count_distinct' and type = 'vector' then
    perform internal.fail(400, 'INVALID_COLUMN', format('%s is of type %s, which has no %s.', name, type, fn),
                          json_build_object('column', name, 'path', collection_aggregate_column.place || '.column'));
  end if;
  return case fn
    when 'count' then jsonb_build_object('type', 'bigint', 'inner', format('count(%s)', expr))
    when 'count_distinct' then jsonb_build_object('type', 'bigint', 'inner', format('count(distinct %s)', expr))
    when 'sum' then case type
      when 'integer' then jsonb_build_object('type', 'bigint', 'inner', format('sum(%s)', expr))
      when 'double' then jsonb_build_object('type', 'numeric', 'output', 'double sum', 'inner',
                                            internal.double_sum_sql(expr))
      else jsonb_build_object('type', 'numeric', 'inner', format('sum(%s)', expr)) end
    -- compared as numeric: values stored by other writers may be out of the range of double
    when 'avg' then case type
      when 'double' then jsonb_build_object('type', 'numeric', 'output', 'double sum',
                                            'inner', format('%s / nullif(count(%s), 0)', internal.double_sum_sql(expr),
                                                            expr))
      else jsonb_build_object('type', 'numeric', 'output', 'average', 'inner', format('avg(%s)', expr)) end
    else jsonb_build_object('type', type, 'sql', col ->> 'sql', 'collate', col ->> 'collate', 'inner',
                            format('%s(%s%s)', fn, expr, col ->> 'collate'))
  end;
end $$;
comment on function internal.collection_aggregate_column is
  'One {fn, column, as}: its result type, and its expression under inner. Refuses 400 INVALID_COLUMN, INVALID_BODY.';

create or replace function internal.collection_aggregate_columns(definition jsonb, request jsonb) returns jsonb
language plpgsql stable as $$
declare
  columns jsonb := '{}';
  names jsonb := '[]';
  item jsonb;
  col jsonb;
  name text;
  place text;
begin
  for n in 0 .. coalesce(jsonb_array_length(nullif(collection_aggregate_columns.request -> 'group_by', 'null')),
                         0) - 1 loop
    place := format('group_by[%s]', n);
    item := collection_aggregate_columns.request -> 'group_by' -> n;
    col := internal.collection_group_by_sql(collection_aggregate_columns.definition, item,
                                            place) || '{"is_group": true}';
    name := col ->> 'name';
    if columns ? name then
      perform internal.collection_refuse(place, format('%s is used twice', name));
    end if;
    columns := columns || jsonb_build_object(name, col || jsonb_build_object('expr', format('t.%I', name)));
    names := names || to_jsonb(name);
  end loop;
  for n in 0 .. jsonb_array_length(collection_aggregate_columns.request -> 'aggregates') - 1 loop
    place := format('aggregates[%s]', n);
    item := collection_aggregate_columns.request -> 'aggregates' -> n;
    col := internal.collection_aggregate_column(collection_aggregate_columns.definition, item, place);
    name := item ->> 'as';
    if columns ? name then
      perform internal.collection_refuse(place || '.as', format('%s is used twice', name));
    end if;
    columns := columns || jsonb_build_object(name,
                                             col || jsonb_build_object('name', name, 'expr', format('t.%I', name)));
    names := names || to_jsonb(name);
  end loop;
  return jsonb_build_object('name', collection_aggregate_columns.definition ->> 'name', 'columns', columns, 'order',
                            names);
end $$;
comment on function internal.collection_aggregate_columns is
  'The result columns of an aggregate, in the form of a definition: its groups, then its aggregates. Refuses 400
   INVALID_COLUMN, INVALID_BODY.';

create or replace function internal.collection_aggregate_sql(definition jsonb, request jsonb, filter json,
                                                             groups_filter json, inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  answered constant jsonb := internal.collection_aggregate_columns(collection_aggregate_sql.definition,
                                                                   collection_aggregate_sql.request);
  orders constant jsonb := coalesce(nullif(collection_aggregate_sql.request -> 'order', 'null'), '[]');
  conditions text;
  status text;
  kept text;
  wanted text;
  col jsonb;
  sorting text[] := '{}';
  rows text;
begin
  select c.params, c.sql, c.status into params, conditions, status
    from internal.collection_conditions_sql(collection_aggregate_sql.definition, collection_aggregate_sql.request,
                                            collection_aggregate_sql.filter, 't',
                                            collection_aggregate_sql.params) c;
  select w.params, w.sql into params, kept
    from internal.collection_where_sql(answered, collection_aggregate_sql.groups_filter, '["having"]', 't', params) w;
  select p.params, p.sql into params, wanted from internal.collection_param(params, '["limit"]', 'bigint', '{}') p;
  for n in 0 .. jsonb_array_length(orders) - 1 loop
    col := internal.collection_column(answered, orders -> n ->> 'column', format('order[%s].column', n));
    if col ->> 'type' in ('jsonb') or col ->> 'type' like '%[]' then
      perform internal.fail(400, 'INVALID_COLUMN',
                            format('%s is of type %s, which has no order.', col ->> 'name', col ->> 'type'),
                            json_build_object('column', col ->> 'name', 'path', format('order[%s].column', n)));
    end if;
    sorting := sorting || format('t.%I%s %s nulls last', col ->> 'name', col ->> 'collate',
                                 coalesce(orders -> n ->> 'direction', 'asc'));
  end loop;
  -- a default order of groups, so that equal requests get equal responses
  sorting := sorting || array(
    select format('t.%I%s', c.value ->> 'name', c.value ->> 'collate')
      from jsonb_array_elements_text(answered -> 'order') with ordinality as o (name, n)
      join lateral (select answered -> 'columns' -> o.name as value) as c on (c.value ->> 'is_group')::boolean
     order by o.n);
  rows := format('(select t.* from (select %s from collections.%I t where %s%s) t where %s%s limit %s) t',
           (select string_agg(format('%s as %I', answered -> 'columns' -> o.name ->> 'inner', o.name),
                              ', ' order by o.n)
              from jsonb_array_elements_text(answered -> 'order') with ordinality as o (name, n)),
           collection_aggregate_sql.definition ->> 'name', conditions,
           (select ' group by ' || string_agg(o.n::text, ', ' order by o.n)
              from jsonb_array_elements_text(answered -> 'order') with ordinality as o (name, n)
             where answered -> 'columns' -> o.name ? 'is_group'),
           coalesce(kept, 'true'), (select ' order by ' || string_agg(s.part, ', ' order by s.n)
                                      from unnest(sorting) with ordinality as s (part, n)),
           wanted);
  if params ->> 'style' = 'raw' then
    select r.sql, params || jsonb_build_object('raw', jsonb_build_object('columns', r.columns, 'key', null)) into sql,
           params
      from internal.collection_raw_sql(collection_aggregate_sql.definition, status, 'null', null, null, rows,
                                       answered) r;
    return;
  end if;
  sql := internal.collection_statement_sql(
    collection_aggregate_sql.definition, status, '''{"data":'' || coalesce(json_agg(p.j)::text, ''[]'') || ''}''',
      'null',
    format('(select row_to_json("_row") as j from %s cross join lateral (select %s) "_row") p', rows,
           internal.collection_outputs_sql(answered, 't', null, null)));
end $$;
comment on function internal.collection_aggregate_sql is
  'Counts, sums, averages and extremes by group, as one statement. Refuses 400 INVALID_BODY with details.path,
   INVALID_COLUMN.';
