-- The compiler of collections: a request becomes one parameterised statement. Identifiers come from the catalog through
-- %I, values are parameters. Two requests of the same shape give the same text, so that the server caches it and sends
-- only values. A keyword that changes the text must be part of the shape too (server/collections/statement_shapes.ts).

create or replace function internal.collection_compile(kind text, collection text, request json,
                                                       style text default 'array')
returns jsonb
language plpgsql stable as $$
declare
  request constant jsonb := collection_compile.request::jsonb;
  d constant jsonb := internal.collection_with_included(internal.collection_definition(collection_compile.collection),
                                                        request -> 'include')
                      || jsonb_build_object('is_text', coalesce((request ->> 'is_text')::boolean, false));
  filter constant json := collection_compile.request -> 'filter';
  params jsonb := jsonb_build_object('style', collection_compile.style, 'list', '[]'::jsonb);
  sql text;
  pages boolean := false;
  patterns jsonb;
begin
  if request ->> 'group' is not null and d ->> 'scope' = 'group' and internal.as_uuid(request ->> 'group') is null then
    perform internal.fail(403, 'NOT_A_GROUP_MEMBER', 'The caller is not a member of this group.');
  end if;
  case collection_compile.kind
    when 'find' then
      select f.params, f.sql, f.pages into params, sql, pages
        from internal.collection_find_sql(d, request, filter, params) f;
    when 'count' then
      select f.params, f.sql into params, sql from internal.collection_count_sql(d, request, filter, params) f;
    when 'aggregate' then
      select f.params, f.sql into params, sql
        from internal.collection_aggregate_sql(d, request, filter, collection_compile.request -> 'having', params) f;
    when 'nearest' then
      select f.params, f.sql into params, sql from internal.collection_nearest_sql(d, request, filter, params) f;
    when 'get' then
      select f.params, f.sql into params, sql from internal.collection_row_sql(d, request, params) f;
    when 'insert' then
      select f.params, f.sql, f.patterns into params, sql, patterns
        from internal.collection_insert_sql(d, request, params) f;
    when 'batch' then
      select f.params, f.sql, f.patterns into params, sql, patterns
        from internal.collection_batch_sql(d, request, params) f;
    when 'patch' then
      select f.params, f.sql, f.patterns into params, sql, patterns
        from internal.collection_patch_sql(d, request, params) f;
    when 'delete' then
      select f.params, f.sql into params, sql from internal.collection_delete_sql(d, request, params) f;
    when 'restore' then
      select f.params, f.sql into params, sql from internal.collection_restore_sql(d, request, params) f;
  end case;
  return jsonb_build_object('text', sql, 'params', params -> 'list', 'version', d ->> 'version', 'pages', pages,
                            'patterns', patterns,
                            'raw', params -> 'raw');
end $$;
comment on function internal.collection_compile is
  'Compiles a request to {text, params, version, pages, patterns, raw}. kind is find, count, aggregate, nearest, get,
   insert, batch, patch, delete or restore; style is wire (each value a parameter $n), raw (as wire, and statements that
   only read return rows unencoded, as raw describes) or array (all values one text[], for internal.collection_run).
   Compiled for the caller''s role. Refuses errors of the request''s shape, and of its values as far as their syntax
   goes.';

create or replace function api.collection_statement(kind text, collection text, request json) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.collection_compile(collection_statement.kind, collection_statement.collection,
                                                         collection_statement.request,
                                                         'raw')::json)
$$;
comment on function api.collection_statement is
  'For the server: the statement of a request that is not in its cache. Refuses 404 COLLECTION_NOT_FOUND, and as
   internal.collection_compile.';

create or replace function internal.collection_values(params jsonb, request json) returns text[]
language sql stable as $$
  select coalesce(array_agg(
           case
             when json_typeof(g.given) = 'null' then null
             when p.value ->> 'type' in ('json', 'jsonb') then g.given::text
             when coalesce((p.value ->> 'is_array')::boolean, false) then
               case json_typeof(g.given) when 'array' then array(select e.value
                                                                   from json_array_elements_text(
                                                                     g.given) with ordinality as e (value, n)
                                                                       order by e.n)::text
                                         else array[g.given #>> '{}']::text end
             else g.given #>> '{}'
           end order by p.n), '{}')
    from jsonb_array_elements(collection_values.params) with ordinality as p (value, n)
   cross join lateral (select collection_values.request #> array(
     select jsonb_array_elements_text(p.value -> 'path')) as given) g
$$;
comment on function internal.collection_values is 'The values of a statement, as text, in the order of its parameters.';

create or replace function internal.collection_run(kind text, collection text, request json, out status int,
                                                   out body text, out headers text, out next text)
language plpgsql volatile as $$
declare
  compiled constant jsonb := internal.collection_compile(collection_run.kind, collection_run.collection,
                                                         collection_run.request);
  version bigint;
  due_at text;
  changed text;
begin
  execute compiled ->> 'text' into status, body, headers, due_at, changed, version, next
    using internal.collection_values(compiled -> 'params', collection_run.request);
end $$;
comment on function internal.collection_run is
  'Compiles and runs a request inside SQL, planned each time: for transactions, and where speed does not matter. status
   0: nothing was written.';
