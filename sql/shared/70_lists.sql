-- Lists of rows, by offset or by cursor: a file of functions declares one, internal.list_declare compiles it. Compiled
-- lists are static SQL, so their plans are kept in a session. For each set of optional filters that a request may have
-- there is one statement with those conditions alone: a condition "the argument is null or" would keep Postgres from
-- the index. Identifiers come from the catalog and the declaration, through %I. A list is compiled when the file that
-- declares it is applied: a change of internal.list_declare reaches a database with those files only.
create or replace function internal.list_branches(name text, statements text, filters text[]) returns text
language sql immutable parallel safe
return (
  select string_agg(format('  %s %s then%s', case when s.n = 0 then 'if' else 'elsif' end, s.asked,
                           replace(list_branches.statements, '{filters}', s.conditions)), e'\n'
                             order by s.n) || e'\n  end if;'
    from (select n.n, coalesce(string_agg(format('%I.%I is %s', list_branches.name, f.name,
                                                 case when n.n & (1 << f.n::int - 1) = 0 then 'null'
                                                      else 'not null' end),
                                          ' and ' order by f.n) filter (where f.name is not null), 'true') as asked,
                 coalesce(string_agg(format(' and t.%2$I = %1$I.%2$I', list_branches.name, f.name), '' order by f.n)
                            filter (where f.name is not null and n.n & (1 << f.n::int - 1) <> 0), '') as conditions
            from generate_series(0, (1 << cardinality(list_branches.filters)) - 1) n (n)
            left join lateral unnest(list_branches.filters) with ordinality f (name, n) on true
           group by n.n) s);
comment on function internal.list_branches is
  'An if with a branch for each set of filters that are asked; {filters} in the statements are their conditions.';

create or replace function internal.list_columns(source regclass, names text[])
returns table (name text, kind text, n bigint)
language plpgsql stable as $$
begin
  return query
  select a.attname::text, format_type(a.atttypid, null), o.n
    from unnest(list_columns.names) with ordinality o (name, n)
    join pg_catalog.pg_attribute a on a.attrelid = list_columns.source and a.attname = o.name and a.attnum > 0
      and not a.attisdropped
   order by o.n;
  if (select count(*) from pg_catalog.pg_attribute a
       where a.attrelid = list_columns.source and a.attname = any (list_columns.names) and a.attnum > 0
         and not a.attisdropped)
     <> cardinality(list_columns.names) then
    raise exception '% has not all of the columns %', list_columns.source, list_columns.names;
  end if;
end $$;
comment on function internal.list_columns is
  'Columns of a table by their names, each with its type. Raises where there is none of a name.';

create or replace function internal.list_key(name text, columns json, key text) returns text
language sql immutable parallel safe
return (
  select coalesce(max(case c ->> 'kind' when 'uuid' then format(', %I.%I', list_key.name, list_key.key)
                           else format(', internal.count_key(%I.%I)', list_key.name, list_key.key) end), '')
    from json_array_elements(list_key.columns) c
   where c ->> 'name' = list_key.key);
comment on function internal.list_key is
  'The key of a counter as an argument in a compiled list, of an argument of this; empty where key is null.';

create or replace function internal.list_declare(name text, shape anyelement, shown text, order_by text[],
                                                 required text[] default '{}', filters text[] default '{}',
                                                 condition text default null, by_cursor boolean default false,
                                                 has_since boolean default false, direction text default 'desc',
                                                 is_skewed boolean default false, is_counted boolean default false,
                                                 condition_reads text[] default '{}',
                                                 counted_filters text[] default '{}', bulk text default null)
returns void
language plpgsql volatile as $$
declare
  source constant regclass := (select y.typrelid from pg_catalog.pg_type y where y.oid = pg_typeof(list_declare.shape));
  columns constant json := (select json_agg(c order by c.n)
                              from internal.list_columns(source, list_declare.required || list_declare.filters) c);
  keys constant json := (select json_agg(c order by c.n) from internal.list_columns(source, list_declare.order_by) c);
  conditions constant text := (
    select coalesce(string_agg(format('t.%2$I = %1$I.%2$I', list_declare.name, r), ' and '), 'true')
      from unnest(list_declare.required) r)
    || '{filters}' || case when list_declare.condition is null then ''
                           else format(' and internal.%I(t)', list_declare.condition) end;
  order_of text;
  opposite_of text;
  places text;
  arguments text;
  statements text;
  body text;
  counts constant text := e'rows_total := internal.list_counted(%L, %L%s);\n    ';
begin
  if list_declare.direction not in ('asc', 'desc') or list_declare.by_cursor and list_declare.direction = 'asc' then
    raise exception 'a list is in descending order, one by offset also in ascending order';
  end if;
  if list_declare.bulk is not null then
    if not list_declare.by_cursor then
      raise exception 'a list whose pages are bounded by bytes is by cursor';
    end if;
    perform internal.list_columns(source, array[list_declare.bulk]);
  end if;
  if list_declare.is_counted and (list_declare.by_cursor or cardinality(list_declare.required) > 1) then
    raise exception 'a counted list is by offset, with at most one required column';
  elsif not list_declare.filters @> list_declare.counted_filters
    or cardinality(list_declare.counted_filters) > 0
    and (not list_declare.is_counted or list_declare.required <> '{}') then
    raise exception 'counted filters are filters of a counted list without required columns';
  end if;
  select string_agg(format('%%1$s.%I %s', k ->> 'name', list_declare.direction), ', ' order by (k ->> 'n')::int),
         string_agg(format('%%1$s.%I %s', k ->> 'name',
                           case list_declare.direction when 'desc' then 'asc' else 'desc' end), ', '
                             order by (k ->> 'n')::int)
    into order_of, opposite_of from json_array_elements(keys) k;
  select string_agg(format('%I %s, ', c ->> 'name', c ->> 'kind'), '' order by (c ->> 'n')::int) into arguments
    from json_array_elements(columns) c;
  arguments := concat(arguments, case when list_declare.has_since then 'since timestamptz, ' end,
                      case when list_declare.by_cursor then 'cursor text, page_limit bigint'
                           else 'page_offset bigint, page_limit bigint' end);
  if list_declare.by_cursor then
    select format(' and (%s) < (%s)', string_agg(format('t.%I', k ->> 'name'), ', ' order by n.n),
                  string_agg('place_' || n.n, ', ' order by n.n))
           || case when list_declare.has_since then format(' and t.%I >= coalesce(%I.since, ''-infinity'')',
                                                           list_declare.order_by[1], list_declare.name) else '' end
      into places
      from json_array_elements(keys) with ordinality n (k, n);
    -- one row more than the page shows says whether there is another page
    statements := format($sql$
    with found as materialized (select t.* from %2$s t where %3$s order by %4$s limit %1$I.page_limit + 1)%10$s
    select (select json_agg(internal.%5$I(p) order by %6$s) from (select l.* from found l order by %7$s limit %11$s) p),
           (select internal.cursor_write(%8$L, %9$s) from found l
             where (select count(*) from found) > %11$s order by %7$s limit 1 offset %11$s - 1)
      into rows_json, next_cursor;$sql$,
      list_declare.name, source, conditions || places, format(order_of, 't'), list_declare.shown, format(order_of, 'p'),
      format(order_of, 'l'),
      array_to_string(list_declare.order_by, ','),
      (select string_agg(format(case k ->> 'kind' when 'timestamp with time zone' then 'internal.cursor_time(l.%I)'
                                     else 'l.%I::text' end, k ->> 'name'),
                         ', ' order by n.n) from json_array_elements(keys) with ordinality n (k, n)),
      -- rows until their bulk fills the page
      case when list_declare.bulk is not null then format($sql$, fitting as materialized (
      select greatest(count(*), 1) as n
        from (select row_number() over ranked as n,
              sum(octet_length(l.%3$I::text)) over (ranked rows unbounded preceding) as bytes
                from found l window ranked as (order by %2$s)) m
       where m.n <= %1$I.page_limit and coalesce(m.bytes, 0) <= internal.page_bytes())$sql$, list_declare.name,
         format(order_of, 'l'), list_declare.bulk) else '' end,
      case when list_declare.bulk is not null then '(select f.n from fitting f)'
           else format('%I.page_limit', list_declare.name) end);
    body := format($sql$
declare
  keys constant text[] := internal.cursor_read(%I.cursor, %L, %L);
%s  rows_json json;
  next_cursor text;
begin
%s
  return internal.reply_cursor(rows_json, next_cursor);
end$sql$, list_declare.name, array_to_string(list_declare.order_by, ','),
      (select array_agg(case k ->> 'kind' when 'timestamp with time zone' then 'timestamptz' when 'bigint' then 'int8'
                             else k ->> 'kind' end order by n.n)
         from json_array_elements(keys) with ordinality n (k, n)),
      (select string_agg(format(case k ->> 'kind'
                when 'timestamp with time zone' then e'  place_%1$s constant timestamptz := '
                                                      'coalesce(internal.cursor_moment(keys[%1$s]), ''infinity'');\n'
                when 'uuid' then e'  place_%1$s constant uuid := coalesce(keys[%1$s], '
                                  '''ffffffff-ffff-ffff-ffff-ffffffffffff'')::uuid;\n'
                when 'bigint' then e'  place_%1$s constant bigint := coalesce(keys[%1$s], '
                                    '''9223372036854775807'')::bigint;\n'
              end, n.n), '' order by n.n) from json_array_elements(keys) with ordinality n (k, n)),
      internal.list_branches(list_declare.name, statements, list_declare.filters));
  else
    if list_declare.is_counted then
      perform internal.count_declare(list_declare.name, source, list_declare.required[1], list_declare.condition,
                                     list_declare.condition_reads);
      perform internal.count_declare(list_declare.name || '_by_' || f, source, f, list_declare.condition,
                                     list_declare.condition_reads)
         from unnest(list_declare.counted_filters) f;
    end if;
    -- the JSON is made of the rows of the page only. Far from the beginning the page is found in the index alone, from
    -- the end that is nearer, and then its rows are read
    statements := format($sql$
    {counted}if rows_total is null then
      select count(*) into rows_total from %2$s t where %3$s;
    end if;
    if %1$I.page_offset < 1000 then
      select json_agg(internal.%5$I(p) order by %6$s) into rows_json
        from (select t.* from %2$s t where %3$s order by %4$s limit %1$I.page_limit offset %1$I.page_offset) p;
    elsif %1$I.page_offset < rows_total / 2 then
      with place as materialized (select %7$s from %2$s t where %3$s order by %4$s limit %1$I.page_limit
                                  offset %1$I.page_offset)
      select json_agg(internal.%5$I(p) order by %6$s) into rows_json
        from place k cross join lateral (select t.* from %2$s t where %8$s limit 1) p;
    else
      with place as materialized (
        select %7$s from %2$s t where %3$s order by %9$s
         limit greatest(least(%1$I.page_limit, rows_total - %1$I.page_offset), 0)
           offset greatest(rows_total - %1$I.page_offset - %1$I.page_limit, 0))
      select json_agg(internal.%5$I(p) order by %6$s) into rows_json
        from place k cross join lateral (select t.* from %2$s t where %8$s limit 1) p;
    end if;$sql$,
      list_declare.name, source, conditions, format(order_of, 't'), list_declare.shown, format(order_of, 'p'),
      -- columns that are required are those of the index too
      (select string_agg(format('t.%I', c), ', ') from unnest(list_declare.order_by) c),
      (select string_agg(format('t.%1$I = k.%1$I', c), ' and ') from unnest(list_declare.order_by) c)
        || coalesce((select string_agg(format(' and t.%2$I = %1$I.%2$I', list_declare.name, c), '')
                       from unnest(list_declare.required) c), ''),
      format(opposite_of, 't'));
    -- the n-th branch has the filters that are the bits of n: none, or one that is counted
    select string_agg(p.part || case when not list_declare.is_counted or p.n = cardinality(b.parts) then ''
                                     when p.n = 1 then format(counts, list_declare.name, source,
                                                              internal.list_key(list_declare.name, columns,
                                                                list_declare.required[1]))
                                     else coalesce((select format(counts, list_declare.name || '_by_' || f.name, source,
                                                                  internal.list_key(list_declare.name, columns, f.name))
                                                      from unnest(list_declare.filters) with ordinality f (name, n)
                                                     where f.name = any (list_declare.counted_filters)
                                                       and p.n - 1 = 1 << f.n::int - 1), '') end, '' order by p.n)
      into body
      from (select string_to_array(internal.list_branches(list_declare.name, statements, list_declare.filters),
                                   '{counted}') as parts) b
     cross join lateral unnest(b.parts) with ordinality p (part, n);
    body := format($sql$
declare
  rows_json json;
  rows_total bigint;
begin
%1$s
  return internal.reply_page(rows_json, rows_total, %2$I.page_offset, %2$I.page_limit);
end$sql$, body, list_declare.name);
  end if;
  execute format('create or replace function internal.%I(%s) returns api.reply language plpgsql stable %s as %L',
                 list_declare.name, arguments,
                 case when list_declare.is_skewed then 'set plan_cache_mode = ''force_custom_plan''' else '' end, body);
  execute format('comment on function internal.%I(%s) is %L', list_declare.name, arguments,
                 format('A page of %s by %s, as internal.%s shows a row. Made by internal.list_declare.', source,
                        array_to_string(list_declare.order_by, ', '), list_declare.shown)
                 || case when list_declare.by_cursor then ' Refuses 400 INVALID_INPUT for a cursor of another list.'
                         else '' end);
end $$;
comment on function internal.list_declare is
  'For files of functions: compiles internal.<name>(required.., filters.., [since], page_offset, page_limit), or
   by_cursor with cursor and page_limit, of the table whose row type shape has (null::app.groups). Its data are
   internal.<shown>(row) in the order of columns, which are together unique and never null; for a cursor they are
   timestamptz, uuid or bigint. required columns equal their argument; filters do, unless that is null. condition is
   internal.<condition>(row), an SQL function of one expression, whose text Postgres puts in the place of the call.
   has_since: rows from a time on, by the first column of the order. is_counted: how many rows the list has without
   filters is counted as rows are written, see internal.count_declare, and not when a page is asked for; a condition
   then names the columns that it reads, condition_reads. counted_filters: how many rows the list has with one of these
   filters alone is counted too. is_skewed: some values of a filter are much more frequent than others, so each call is
   planned for its values. bulk: a column that makes rows large; a page has fewer rows than page_limit, at least one,
   when it passes internal.page_bytes(). The caller''s rights hold; policy files grant what it makes. Granted to
   nobody.';
