-- Compiling FindOptions: pages by offset or by keyset, search, and reads by id.

create or replace function internal.collection_search_sql(definition jsonb, search jsonb, alias text,
                                                          inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  is_fuzzy constant boolean := coalesce((collection_search_sql.search ->> 'fuzzy')::boolean, false);
  col jsonb;
  q text;
  threshold text;
  parts text[] := '{}';
  n int := 0;
begin
  if jsonb_array_length(collection_search_sql.search -> 'columns') not between 1 and 20 then
    perform internal.collection_refuse('search.columns', 'must have 1 to 20 columns');
  end if;
  select p.params, p.sql into params, q
    from internal.collection_param(collection_search_sql.params, '["search", "q"]', 'text', '{}') p;
  if is_fuzzy then
    select p.params, p.sql into params, threshold
      from internal.collection_param(params, '["search", "threshold"]', 'text', '{}') p;
  end if;
  for col in
    select internal.collection_column(collection_search_sql.definition, e.value, format('search.columns[%s]', e.n - 1))
      from jsonb_array_elements_text(collection_search_sql.search -> 'columns') with ordinality as e (value, n)
  loop
    if col ->> 'type' <> 'text' then
      perform internal.fail(400, 'INVALID_COLUMN', format('%s is not text: it cannot be searched.', col ->> 'name'),
                            json_build_object('column', col ->> 'name', 'path', format('search.columns[%s]', n)));
    end if;
    parts := parts || case
      when is_fuzzy then format('%s operator(extensions.<%%) %s.%I', q, collection_search_sql.alias, col ->> 'name')
      else format('%s.%I ilike internal.like_contains(%s)', collection_search_sql.alias, col ->> 'name', q)
    end;
    n := n + 1;
  end loop;
  sql := '(' || array_to_string(parts, ' or ') || ')';
  if is_fuzzy then
    -- an index serves the operator, whose threshold comes from a setting: set once, before the first row
    sql := format('(select pg_catalog.set_config(''pg_trgm.word_similarity_threshold'', %s, true)) is not null and %s',
                  threshold, sql);
  end if;
end $$;
comment on function internal.collection_search_sql is
  'Search in text columns: a substring, ignoring case, or words that are similar enough. Refuses 400 INVALID_COLUMN,
   INVALID_BODY.';

create or replace function internal.collection_conditions_sql(definition jsonb, request jsonb, filter json, alias text,
                                                              inout params jsonb, out sql text, out status text)
language plpgsql stable as $$
declare
  gate text;
  wanted text;
  searched text;
  in_group text;
  shown text := format('%s.deleted_at is null', collection_conditions_sql.alias);
begin
  if coalesce((collection_conditions_sql.request ->> 'include_deleted')::boolean, false) then
    shown := format('(%s.deleted_at is null or (%s))', collection_conditions_sql.alias,
                    internal.collection_write_condition_of(collection_conditions_sql.definition));
  end if;
  select g.params, g.sql into params, gate
    from internal.collection_group_sql(collection_conditions_sql.definition, collection_conditions_sql.request, false,
                                       collection_conditions_sql.params) g;
  if gate is not null then
    select p.params, format('%s.group_id = %s', collection_conditions_sql.alias, p.sql) into params, in_group
      from internal.collection_param(params, '["group"]', 'uuid', '{}') p;
  end if;
  select w.params, w.sql into params, wanted
    from internal.collection_where_sql(collection_conditions_sql.definition, collection_conditions_sql.filter,
                                       '["filter"]',
                                       collection_conditions_sql.alias, params) w;
  if jsonb_typeof(collection_conditions_sql.request -> 'search') = 'object' then
    select s.params, s.sql into params, searched
      from internal.collection_search_sql(collection_conditions_sql.definition,
                                          collection_conditions_sql.request -> 'search',
                                          collection_conditions_sql.alias, params) s;
  end if;
  sql := concat_ws(' and ', in_group, shown, wanted, searched);
  -- in the select list, because a condition on rows is not evaluated when there are none
  status := case when gate is null then '200' else format('case when %s then 200 end', gate) end;
end $$;
comment on function internal.collection_conditions_sql is
  'The rows that a request selects: those of its group, not deleted, that match its filter and its search; policies
   restrict them to the rows that the caller may see. status is the status of the response, and refuses a caller who may
   not use the group.';

create or replace function internal.collection_order(definition jsonb, request jsonb) returns jsonb
language plpgsql stable as $$
declare
  orders constant jsonb := coalesce(nullif(collection_order.request -> 'order', 'null'), '[]');
  col jsonb;
  found_order jsonb := '[]';
begin
  if jsonb_array_length(orders) = 0 then
    return jsonb_build_array((collection_order.definition -> 'columns' -> 'created_at') || '{"direction": "desc"}');
  end if;
  if jsonb_array_length(orders) > 10 then
    perform internal.collection_refuse('order', 'must have at most 10 columns');
  end if;
  for n in 0 .. jsonb_array_length(orders) - 1 loop
    col := internal.collection_column(collection_order.definition, orders -> n ->> 'column',
                                      format('order[%s].column', n));
    if not (select t.is_ordered from internal.collection_type(col ->> 'type') t) then
      perform internal.fail(400, 'INVALID_COLUMN',
                            format('%s is of type %s, which has no order.', col ->> 'name', col ->> 'type'),
                            json_build_object('column', col ->> 'name', 'path', format('order[%s].column', n)));
    end if;
    found_order := found_order || jsonb_build_array(col || jsonb_build_object('direction',
                                        coalesce(orders -> n ->> 'direction', 'asc')));
  end loop;
  return found_order;
end $$;
comment on function internal.collection_order is
  'The columns to order by, each with its direction; newest first by default. Refuses 400 INVALID_COLUMN.';

create or replace function internal.collection_page_sql(definition jsonb, request jsonb, conditions text,
                                                        fetch_limit text, inout params jsonb, out sql text,
                                                        out cursor_key text)
language plpgsql stable as $$
declare
  d constant jsonb := collection_page_sql.definition;
  request constant jsonb := collection_page_sql.request;
  orders constant jsonb := internal.collection_order(d, request);
  first constant jsonb := orders -> 0;
  name constant text := first ->> 'name';
  direction constant text := first ->> 'direction';
  beyond constant text := case direction when 'asc' then '>' else '<' end;
  key constant text := format('t.%I', name) || (first ->> 'collate');
  is_keyset constant boolean := jsonb_array_length(orders) = 1 and request -> 'offset' is null;
  after_key text;
  after_id text;
  arm text;
begin
  if request -> 'after' is not null then
    select p.params, p.sql into params, after_id
      from internal.collection_param(collection_page_sql.params, '["after", "id"]', 'uuid', '{}') p;
    if request -> 'after' ->> 'key' is not null then
      select p.params, p.sql into params, after_key
        from internal.collection_param(params, '["after", "key"]',
                                       case first ->> 'type' when 'double' then 'double precision'
                                            else first ->> 'type' end, '{}') p;
    end if;
  end if;
  if not is_keyset then
    sql := format('from collections.%I t where %s order by %s, t.id %s limit %s', d ->> 'name',
                  collection_page_sql.conditions,
                  (select string_agg(format('t.%I%s %s%s', o.value ->> 'name', o.value ->> 'collate',
                                            o.value ->> 'direction',
                                            case when (o.value ->> 'not_null')::boolean then '' else ' nulls last' end),
                                            ', ' order by o.n)
                     from jsonb_array_elements(orders) with ordinality as o (value, n)),
                  direction, collection_page_sql.fetch_limit);
    sql := case
      when internal.collection_is_far((request ->> 'offset')::numeric)
      -- offset 0 makes Postgres fetch the rows of the page one by one by their ids, however many rows it estimates
      then format('select t.* from (select o.id, row_number() over () as n from (select t.id %s) o) o cross join '
                  'lateral (select t.* from collections.%I t where t.id = o.id offset 0) t order by o.n',
                  sql, d ->> 'name')
      else 'select t.* ' || sql
    end;
    return;
  end if;

  cursor_key := format('t.%I', name);
  if (first ->> 'not_null')::boolean then
    arm := format('select t.* from collections.%I t where %s%s%s order by %s %s, t.id %s limit %s', d ->> 'name', '%s',
                  collection_page_sql.conditions,
                  case when after_id is not null then format(' and (%s, t.id) %s (%s, %s)', key, beyond, after_key,
                                                             after_id) else '' end,
                  key, direction, direction, collection_page_sql.fetch_limit);
    sql := case
      -- no policy can use an index of groups and times for all groups at once, so each group is scanned separately
      when internal.collection_reads_by_group(d, request) and name in ('created_at', 'id')
      then format('select t.* from internal.my_group_ids(%L) as g (id) cross join lateral (%s) t order by %s %s, t.id '
                  '%s limit %s',
                  coalesce(nullif(split_part(d ->> 'read', ':', 2), ''), 'viewer'),
                  replace(arm, 'where %s', 'where t.group_id = g.id and '), key, direction, direction,
                  collection_page_sql.fetch_limit)
      else replace(arm, 'where %s', 'where ')
    end;
    return;
  end if;
  -- first the rows with a value, in its order, then those without: an index can serve each part, but seldom "nulls
  -- last"
  sql := concat_ws(' union all ',
    case when after_id is null or after_key is not null
         then format('(select 0 as "$arm", t.* from collections.%I t where %s and t.%I is not null%s order by %s %s, '
                     't.id %s limit %s)', d ->> 'name',
                     collection_page_sql.conditions, name,
                     case when after_key is not null then format(' and (%s, t.id) %s (%s, %s)', key, beyond, after_key,
                                                                 after_id) else '' end,
                     key, direction, direction, collection_page_sql.fetch_limit) end,
    format('(select 1 as "$arm", t.* from collections.%I t where %s and t.%I is null%s order by t.id %s limit %s)',
           d ->> 'name',
           collection_page_sql.conditions, name,
           case when after_id is not null and after_key is null then format(' and t.id %s %s', beyond, after_id)
                else '' end,
           direction, collection_page_sql.fetch_limit));
  sql := format('select t.* from (%s) t order by t."$arm", %s %s, t.id %s limit %s', sql, key, direction, direction,
                collection_page_sql.fetch_limit);
end $$;
comment on function internal.collection_page_sql is
  'The rows of one page, in order. cursor_key is the column of the keyset cursor, null when there is none.';

create or replace function internal.collection_reads_by_group(definition jsonb, request jsonb) returns boolean
language sql stable as $$
  select collection_reads_by_group.definition ->> 'scope' = 'group'
     and collection_reads_by_group.definition ->> 'read' ~ '^member(:|$)'
     and collection_reads_by_group.request ->> 'group' is null
     and current_setting('role') = 'app_user'
$$;
comment on function internal.collection_reads_by_group is 'Whether a list spans all of the caller''s groups.';

create or replace function internal.collection_page_size(n bigint) returns int
language sql immutable parallel safe
return case when collection_page_size.n <= 10 then 10 when collection_page_size.n <= 50 then 50
            when collection_page_size.n <= 200 then 200 else 1000 end;
comment on function internal.collection_page_size is
  'Rounds a page size up to one of a few planned sizes. A plan must know how few rows are wanted, and a statement for
   each size would be a thousand.';

create or replace function internal.collection_is_far(n numeric) returns boolean
language sql immutable parallel safe
return collection_is_far.n >= 1000;
comment on function internal.collection_is_far is
  'Whether an offset skips so many rows that they are sorted without their other columns, and only the rows of the page
   are read whole: a sort of whole rows writes them to temporary files.';

create or replace function internal.collection_key_of(col jsonb, out form text, out sql text)
language sql immutable parallel safe as $$
  select case when k.type = 'timestamptz' then k.type else 'text' end,
         case when k.type in ('timestamptz', 'text', 'uuid', 'integer', 'bigint') then format('t.%I::%s', k.name,
                                        k.type)
              -- as a response shows it, whatever the settings of this server
              else format('to_json(t.%I) #>> ''{}''', k.name) end
    from (select collection_key_of.col ->> 'name' as name, collection_key_of.col ->> 'type' as type) as k
$$;
comment on function internal.collection_key_of is
  'The cursor value of a row, for the server: its text, or a time in binary form.';

create or replace function internal.collection_find_sql(definition jsonb, request jsonb, filter json,
                                                        inout params jsonb, out sql text, out pages boolean)
language plpgsql stable as $$
declare
  d constant jsonb := collection_find_sql.definition;
  request constant jsonb := collection_find_sql.request;
  conditions text;
  status text;
  page text;
  cursor_key text;
  wanted text;
  skipped text;
  size constant int := internal.collection_page_size((request ->> 'limit')::bigint);
  chosen constant jsonb := nullif(request -> 'select', 'null');
  tree jsonb;
  key record;
begin
  perform internal.collection_select_check(d, coalesce(chosen, '[]'));
  tree := internal.collection_include_tree(coalesce(nullif(request -> 'include', 'null'), '[]'));
  select c.params, c.sql, c.status into params, conditions, status
    from internal.collection_conditions_sql(d, request, collection_find_sql.filter, 't', collection_find_sql.params) c;
  select p.params, p.sql into params, wanted from internal.collection_param(params, '["limit"]', 'bigint', '{}') p;
  if request -> 'offset' is not null then
    select p.params, p.sql into params, skipped from internal.collection_param(params, '["offset"]', 'bigint', '{}') p;
  end if;
  select g.params, g.sql, g.cursor_key into params, page, cursor_key
    from internal.collection_page_sql(d, request, conditions, case when skipped is null then (size + 1)::text
                                                                   else format('%s offset %s', wanted, skipped) end,
                                                                     params) g;
  pages := cursor_key is not null;
  if params ->> 'style' = 'raw' then
    select k.form, k.sql into key from internal.collection_key_of(internal.collection_order(d, request) -> 0) k;
    select r.sql, params || jsonb_build_object('raw',
                                               jsonb_build_object('columns', r.columns, 'key',
                                                                  case when pages then key.form end))
      into sql, params
      from internal.collection_raw_sql(d, status, case when pages then key.sql else 'null' end, chosen, tree,
                                       format('(%s) t limit %s%s', page, wanted,
                                              case when pages then ' + 1' else '' end)) r;
    return;
  end if;
  if not pages then
    page := format('select t.* from (%s) t limit %s', page, wanted);
    sql := internal.collection_statement_sql(
      d, status, '''{"data":'' || coalesce(json_agg(p.j)::text, ''[]'') || ''}''', 'null',
      format('(select row_to_json("_row") as j from (%s) t cross join lateral (select %s) "_row") p', page,
             internal.collection_outputs_sql(d, 't', chosen, tree)));
    return;
  end if;
  sql := internal.collection_statement_sql(
    d, status, format('''{"data":'' || coalesce((json_agg(p.j) filter (where p.n <= %s))::text, ''[]'') || ''}''',
                      wanted), 'null',
    format('(select row_to_json("_row") as j, row_number() over () as n, %s as k, t.id as i from (select t.* from '
           '(%s) t limit %s + 1) t cross join lateral (select %s) "_row") p',
           cursor_key, page, wanted, internal.collection_outputs_sql(d, 't', chosen, tree)),
    format('case when count(*) > %1$s then json_build_array((array_agg(p.k) filter (where p.n = %1$s))[1], '
           '(array_agg(p.i) filter (where p.n = %1$s))[1])::text end',
           wanted));
end $$;
comment on function internal.collection_find_sql is
  'FindOptions as one statement. pages is whether it returns the cursor of the next page; in style raw, params.raw
   describes how the server reads its rows. Refuses 400 INVALID_BODY, INVALID_COLUMN, and as
   internal.collection_group.';

create or replace function internal.collection_count_sql(definition jsonb, request jsonb, filter json,
                                                         inout params jsonb, out sql text)
language plpgsql stable as $$
declare
  conditions text;
  status text;
begin
  select c.params, c.sql, c.status into params, conditions, status
    from internal.collection_conditions_sql(collection_count_sql.definition, collection_count_sql.request,
                                            collection_count_sql.filter, 't',
                                            collection_count_sql.params) c;
  sql := internal.collection_statement_sql(collection_count_sql.definition, status,
                                           '''{"data":{"count":'' || count(*) || ''}}''', 'null',
                                           format('collections.%I t where %s',
                                                  collection_count_sql.definition ->> 'name', conditions));
end $$;
comment on function internal.collection_count_sql is 'The exact number of rows that a request selects.';

create or replace function internal.collection_row_sql(definition jsonb, request jsonb, inout params jsonb,
                                                       out sql text)
language plpgsql stable as $$
declare
  missing constant text := '{"error":{"code":"NOT_FOUND","message":"There is no such row."}}';
  conditions text;
  status text;
  id text;
begin
  select c.params, c.sql, c.status into params, conditions, status
    from internal.collection_conditions_sql(collection_row_sql.definition, collection_row_sql.request, null, 't',
                                            collection_row_sql.params) c;
  select p.params, p.sql into params, id from internal.collection_param(params, '["id"]', 'uuid', '{}') p;
  if params ->> 'style' = 'raw' then
    select r.sql, params || jsonb_build_object('raw',
                                               jsonb_build_object('columns', r.columns, 'key', 'timestamptz', 'missing',
                                                                  missing))
      into sql, params
      from internal.collection_raw_sql(collection_row_sql.definition,
                                       format('case when r."$id" is null then 404 * %s / 200 else 200 end', status),
                                       't.updated_at::timestamptz', null, null,
                                       format('collections.%I t where t.id = %s and %s',
                                              collection_row_sql.definition ->> 'name', id, conditions)) r;
    return;
  end if;
  sql := internal.collection_statement_sql(
    collection_row_sql.definition, format('coalesce(case when r.body is null then 404 * %s / 200 end, 200)', status),
    format('coalesce(r.body, %L)', missing), 'r.headers',
    format('(select 1) one left join lateral (select ''{"data":'' || row_to_json("_row")::text || ''}'' as body, '
           'json_build_object(''ETag'', internal.etag(t.updated_at))::text as headers from collections.%I t cross join '
           'lateral (select %s) "_row" where t.id = %s and %s) r on true',
           collection_row_sql.definition ->> 'name',
           internal.collection_outputs_sql(collection_row_sql.definition, 't', null, null), id, conditions));
end $$;
comment on function internal.collection_row_sql is
  'One row by its id, with its ETag; 404 NOT_FOUND is returned, not raised.';
