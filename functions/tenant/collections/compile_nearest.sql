-- Compiling nearest-neighbour searches: by pgvector if it is installed, otherwise exactly, on arrays of reals.

create or replace function internal.vector_distance(a real[], b real[], metric text) returns double precision
language sql immutable parallel safe as $$
  select case vector_distance.metric
           when 'l2' then sqrt(sum((u.a - u.b) ^ 2))
           when 'inner_product' then 0 - sum(u.a * u.b)
           -- a zero vector has no direction
           else 1 - sum(u.a * u.b) / nullif(sqrt(sum(u.a * u.a)) * sqrt(sum(u.b * u.b)), 0)
         end
    from (select v.a::float8 as a, v.b::float8 as b
            from rows from (unnest(vector_distance.a), unnest(vector_distance.b)) as v (a, b)) as u
$$;
comment on function internal.vector_distance is
  'Distance of two vectors as pgvector defines it: cosine, l2, or the negative inner product. Null for the cosine of a
   zero vector.';

create or replace function internal.collection_vector_order_sql(definition jsonb, has_filter boolean, page_limit int)
returns jsonb
language sql stable as $$
  -- An approximate nearest-neighbour index reads a few dozen rows, which policies and filters reduce afterwards: a
  -- caller who sees few rows would get none. So it is used only if nearly every row is visible to everybody, with an
  -- iterative scan that continues until enough are found.
  select case
    when (collection_vector_order_sql.definition ->> 'read' = 'public'
          or current_setting('role') in ('app_server', 'app_admin'))
         and x.version >= array[0, 8]
    then jsonb_build_object('by_index', true, 'gate', format(
      '(select pg_catalog.set_config(''hnsw.iterative_scan'', ''strict_order'', true) || '
      'pg_catalog.set_config(''hnsw.ef_search'', %L, true)) is not null',
      greatest(40, least(1000, collection_vector_order_sql.page_limit * case
                                        when collection_vector_order_sql.has_filter then 4 else 2 end))))
    when x.version is not null then '{"by_index": false}'
  end
    from (select (select string_to_array(regexp_replace(e.extversion, '[^0-9.].*$', ''), '.')::int[]
                    from pg_catalog.pg_extension e
                   where e.extname = 'vector') as version) as x
$$;
comment on function internal.collection_vector_order_sql is
  'The order by distance with pgvector: through the approximate index with an iterative scan, or exactly among the rows
   that the caller may see. Null when it is not installed.';

create or replace function internal.collection_nearest_sql(definition jsonb, request jsonb, filter json,
                                                           inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  d constant jsonb := collection_nearest_sql.definition;
  request constant jsonb := collection_nearest_sql.request;
  metric constant text := coalesce(request ->> 'metric', 'cosine');
  col constant jsonb := internal.collection_column(d, request ->> 'column', 'column');
  expr constant text := format('t.%I', col ->> 'name');
  is_extension constant boolean := col ->> 'sql' <> 'real[]';
  how constant jsonb := internal.collection_vector_order_sql(d, collection_nearest_sql.filter is not null,
                                                             internal.collection_page_size(
                                                               (request ->> 'limit')::bigint));
  conditions text;
  status text;
  wanted text;
  farthest text;
  vector text;
  distance text;
  rows text;
begin
  if col ->> 'type' <> 'vector' then
    perform internal.fail(400, 'INVALID_COLUMN', format('%s is not a vector.', col ->> 'name'),
                          json_build_object('column', col ->> 'name', 'path', 'column'));
  end if;
  if jsonb_array_length(request -> 'vector') <> (col ->> 'dimensions')::int then
    perform internal.fail(400, 'INVALID_VECTOR', format('%s has %s dimensions.', col ->> 'name', col ->> 'dimensions'),
                          json_build_object('expected', (col ->> 'dimensions')::int,
                                            'got', jsonb_array_length(request -> 'vector')));
  end if;
  if internal.collection_value_problem('vector', request -> 'vector') is not null then
    perform internal.collection_refuse('vector', 'must be an array of numbers');
  end if;
  perform internal.collection_select_check(d, coalesce(nullif(request -> 'select', 'null'), '[]'));
  select c.params, c.sql, c.status into params, conditions, status
    from internal.collection_conditions_sql(d, request, collection_nearest_sql.filter, 't',
                                            collection_nearest_sql.params) c;
  select p.params, p.sql into params, wanted from internal.collection_param(params, '["limit"]', 'bigint', '{}') p;
  select p.params, p.sql into params, vector
    from internal.collection_param(params, '["vector"]', case when is_extension then col ->> 'sql' else 'real[]' end,
                                   jsonb_build_object('column_type', 'vector', 'is_array', not is_extension)) p;
  distance := case when is_extension
    then format('(%s operator(extensions.%s) %s)', expr,
                case metric when 'l2' then '<->' when 'inner_product' then '<#>' else '<=>' end, vector)
    else format('internal.vector_distance(%s, %s, %L)', expr, vector, metric) end;
  if request ->> 'max_distance' is not null then
    select p.params, p.sql into params, farthest
      from internal.collection_param(params, '["max_distance"]', 'double precision', '{}') p;
  end if;
  rows := format('(select t.* from (select t.*, %s as "_distance" from collections.%I t where %s and %s is not null '
                 'order by %s limit %s) t where t."_distance" <> ''NaN''%s limit %s) t',
           distance, d ->> 'name', concat_ws(' and ', how ->> 'gate', conditions), expr,
           -- an approximate index can order only by a bare distance
           case when coalesce((how ->> 'by_index')::boolean, false) then distance
                else format('%s + 0, t.id', distance) end,
           internal.collection_page_size((request ->> 'limit')::bigint),
           case when farthest is not null then format(' and t."_distance" <= %s', farthest) else '' end, wanted);
  -- adding 0 turns the -0 that an inner product of pgvector may be into 0
  if params ->> 'style' = 'raw' then
    select r.sql, params || jsonb_build_object('raw', jsonb_build_object('columns', r.columns, 'key', null)) into sql,
           params
      from internal.collection_raw_sql(d, status, 'null', nullif(request -> 'select', 'null'), null, rows,
                                       distance => 't."_distance" + 0') r;
    return;
  end if;
  sql := internal.collection_statement_sql(
    d, status, '''{"data":'' || coalesce(json_agg(p.j)::text, ''[]'') || ''}''', 'null',
    format('(select row_to_json("_row") as j from %s cross join lateral (select %s, t."_distance" + 0 as "_distance") '
           '"_row") p', rows,
           internal.collection_outputs_sql(d, 't', nullif(request -> 'select', 'null'), null)));
end $$;
comment on function internal.collection_nearest_sql is
  'The rows nearest to a vector, with _distance. Refuses 400 INVALID_COLUMN, INVALID_VECTOR {expected, got},
   INVALID_BODY.';
