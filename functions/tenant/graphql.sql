-- What names in GraphQL are made of (server/graphql/naming.ts), and the names that were made.

create or replace function internal.graphql_tables() returns json
language sql stable security definer set search_path = '' as $$
  with tables as (
    -- a table of ours may show another name: the smart tag in its comment
    select c.oid, coalesce(case when c.relnamespace = 'app'::regnamespace then substring(obj_description(c.oid,
                                        'pg_class') from '^@name (\w+)') end, c.relname) as name,
           c.relnamespace = 'app'::regnamespace as is_ours, d.id, d.created_at
      from pg_catalog.pg_class c
      left join app.collections d on d.name = c.relname and c.relnamespace = 'collections'::regnamespace
     where c.relnamespace in ('app'::regnamespace, 'collections'::regnamespace)
       and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition)
  select coalesce(json_agg(json_build_object(
           'name', t.name, 'ours', t.is_ours,
           'keys', (select coalesce(json_agg(a.attname order by a.attnum), '[]')
                      from pg_catalog.pg_constraint k
                      join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
                     where k.conrelid = t.oid and k.contype = 'u' and cardinality(k.conkey) = 1
                       and has_column_privilege('app_dashboard', t.oid, a.attnum, 'select')),
           'graphql_name', (select n.name from app.graphql_names n
                             where n.collection_id = t.id and n.column_id is null),
           'is_unnamed', t.id is not null
             and (not exists (select from app.graphql_names n where n.collection_id = t.id and n.column_id is null)
                  or exists (select from app.collection_columns k
                              where k.collection_id = t.id and not exists (select from app.graphql_names n
                                        where n.column_id = k.id))),
           'columns', case when t.is_ours then '[]' else
             (select coalesce(json_agg(json_build_object('name', a.attname, 'graphql_name', n.name) order by a.attnum),
                              '[]')
                from pg_catalog.pg_attribute a
                left join app.collection_columns k on k.collection_id = t.id and k.name = a.attname
                left join app.graphql_names n on n.collection_id = t.id and n.column_id = k.id
               where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped) end)
         -- a restored database has the order of its definitions, and other oids
         order by t.is_ours desc, t.created_at nulls last, t.name), '[]')
    from tables t
$$;
comment on function internal.graphql_tables is
  'The tables of app and of collections with what their names in GraphQL are made of, in the order in which they take
   them: ours, collections by their age, then tables that were made by hand.';

create or replace function api.graphql_tables() returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('tables', t.tables, 'basis', md5(t.tables::text)))
    from (select internal.graphql_tables() as tables) t
$$;
comment on function api.graphql_tables is 'internal.graphql_tables, and a hash of it.';

create or replace function api.graphql_names_keep(names json, basis text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'names are kept by the server');
  -- whoever else keeps names waits here and then finds another basis, also while a collection is made: the lock
  -- conflicts with its row
  lock table app.graphql_names in share row exclusive mode;
  if md5(internal.graphql_tables()::text) <> graphql_names_keep.basis then
    return internal.reply(200, 'false');
  end if;
  delete from app.graphql_names;
  insert into app.graphql_names (collection_id, column_id, name)
  select c.id, null, n.value ->> 'name'
    from json_each(graphql_names_keep.names) n
    join app.collections c on c.name = n.key
  union all
  select c.id, k.id, m.value
    from json_each(graphql_names_keep.names) n
    join app.collections c on c.name = n.key
    cross join lateral json_each_text(n.value -> 'columns') m
    join app.collection_columns k on k.collection_id = c.id and k.name = m.key;
  return internal.reply(200, 'true');
end $$;
comment on function api.graphql_names_keep is
  'For the server: keeps the names that were made of the tables with that hash. Returns false when the tables are others
   by now: then names are made again. Locks the table of names.';

create or replace function internal.graphql_name(collection_id uuid, column_id uuid) returns text
language sql stable security definer set search_path = '' as $$
  select n.name from app.graphql_names n
   where n.collection_id = graphql_name.collection_id and n.column_id is not distinct from graphql_name.column_id
$$;
comment on function internal.graphql_name is
  'The name of a collection (column_id null) or of a column in GraphQL; null as long as nobody has asked for it.';
