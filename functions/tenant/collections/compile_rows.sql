-- Rows of collections as JSON, with their includes: the select lists of all compiled statements.

create or replace function internal.collection_output_sql(col jsonb, expr text) returns text
language sql immutable parallel safe as $$
  select case coalesce(collection_output_sql.col ->> 'output', collection_output_sql.col ->> 'type')
    when 'average' then format('internal.average_json(%s)', collection_output_sql.expr)
    when 'double sum' then format('internal.double_json(%s)', collection_output_sql.expr)
    when 'timestamptz' then format('internal.iso(%s)', collection_output_sql.expr)
    when 'bigint' then format('internal.bigint_json(%s)', collection_output_sql.expr)
    when 'numeric' then format('internal.numeric_json(%s)', collection_output_sql.expr)
    when 'bigint[]' then format('internal.bigints_json(%s)', collection_output_sql.expr)
    when 'numeric[]' then format('internal.numerics_json(%s)', collection_output_sql.expr)
    -- pgvector writes [1,2,3]
    when 'vector' then case when collection_output_sql.col ->> 'sql' = 'real[]' then collection_output_sql.expr
                            else format('(%s)::text::json', collection_output_sql.expr) end
    else collection_output_sql.expr
  end
$$;
comment on function internal.collection_output_sql is 'The SQL of a value in JSON responses.';

create or replace function internal.collection_select_check(definition jsonb, chosen jsonb) returns void
language plpgsql stable as $$
declare
  col text;
  n int := 0;
begin
  for col in select e.value from jsonb_array_elements_text(collection_select_check.chosen) as e (value) loop
    perform internal.collection_column(collection_select_check.definition, col, format('select[%s]', n));
    n := n + 1;
  end loop;
end $$;
comment on function internal.collection_select_check is 'Refuses 400 INVALID_COLUMN for a column that does not exist.';

create or replace function internal.collection_include_tree(include jsonb) returns jsonb
language plpgsql stable as $$
declare
  tree jsonb := '{}';
  wanted text;
  parts text[];
  n int := 0;
begin
  if jsonb_array_length(collection_include_tree.include) > 20 then
    perform internal.collection_refuse('include', 'must have at most 20 names');
  end if;
  for wanted in select e.value from jsonb_array_elements_text(collection_include_tree.include) as e (value) loop
    parts := case wanted when '' then array[''] else string_to_array(wanted, '.') end;
    if cardinality(parts) > 3 then
      perform internal.collection_refuse(format('include[%s]', n), 'must have at most 3 levels');
    end if;
    for depth in 1 .. cardinality(parts) loop
      if tree #> parts[1:depth] is null then
        tree := jsonb_set(tree, parts[1:depth], '{}');
      end if;
    end loop;
    n := n + 1;
  end loop;
  return tree;
end $$;
comment on function internal.collection_include_tree is
  '["author", "comments.author"] as {author: {}, comments: {author: {}}}. Refuses 400 INVALID_BODY for more than 20
   names or 3 levels.';

create or replace function internal.collection_raw_output(col jsonb, expr text, out form text, out sql text)
language sql immutable parallel safe as $$
  select case when t.is_plain then t.type else 'json' end,
         case
           -- casts to the expected type, which matter only after somebody alters the table by hand: the server reads
           -- the binary form of these types
           when t.is_plain then format('%s::%s', collection_raw_output.expr, t.type)
           when t.type in ('integer', 'jsonb') then collection_raw_output.expr
           else format('to_json(%s)', internal.collection_output_sql(collection_raw_output.col,
                                                                     collection_raw_output.expr))
         end
    from (select c.type, c.type in ('uuid', 'timestamptz', 'text', 'boolean', 'bigint', 'text[]') as is_plain
            from (select collection_raw_output.col ->> 'type' as type) as c) as t
$$;
comment on function internal.collection_raw_output is
  'A value as Postgres sends it to the server, which writes the JSON (server/collections/row_encoder.ts): form is how to
   decode the bytes: a type''s name, or json when the text is JSON already.';

create or replace function internal.collection_outputs(definition jsonb, alias text, chosen jsonb, tree jsonb)
returns table (n int, name text, form text, raw text, sql text)
language plpgsql stable as $$
declare
  key text;
begin
  return query
    select o.n::int, o.name, r.form, r.sql, internal.collection_output_sql(c.col, c.expr)
      from jsonb_array_elements_text(collection_outputs.definition -> 'order') with ordinality as o (name, n)
     cross join lateral (select collection_outputs.definition -> 'columns' -> o.name as col,
                         format('%s.%I', collection_outputs.alias, o.name) as expr) c
     cross join lateral internal.collection_raw_output(c.col, c.expr) r
     where (collection_outputs.chosen is null or jsonb_array_length(collection_outputs.chosen) = 0
            or collection_outputs.chosen ? o.name)
       -- an include with a column's name replaces the column
       and not coalesce(collection_outputs.tree ? o.name, false)
     order by o.n;
  n := jsonb_array_length(collection_outputs.definition -> 'order');
  for key in select k.key from jsonb_object_keys(coalesce(collection_outputs.tree, '{}')) as k (key) order by k.key loop
    n := n + 1;
    name := key;
    form := 'json';
    sql := internal.collection_include_sql(collection_outputs.definition, collection_outputs.alias, key,
                                           collection_outputs.tree -> key,
                                           collection_outputs.alias || '_'
                                             || (n - jsonb_array_length(collection_outputs.definition -> 'order')));
    raw := sql;
    return next;
  end loop;
end $$;
comment on function internal.collection_outputs is
  'The fields of a row, in their order: all columns or the selected ones, and the includes; sql makes a value for JSON,
   raw one for the server.';

create or replace function internal.collection_outputs_sql(definition jsonb, alias text, chosen jsonb, tree jsonb)
returns text
language sql stable as $$
  select string_agg(format('%s as %I', o.sql, o.name), ', ' order by o.n)
    from internal.collection_outputs(collection_outputs_sql.definition, collection_outputs_sql.alias,
                                     collection_outputs_sql.chosen,
                                     collection_outputs_sql.tree) o
$$;
comment on function internal.collection_outputs_sql is 'The select list of a row as JSON.';

create or replace function internal.collection_raw_sql(definition jsonb, status text, key text, chosen jsonb,
                                                       tree jsonb, source text, answered jsonb default null,
                                                       distance text default null, out sql text, out columns jsonb)
language sql stable as $$
  select format('select %s, %s, r.* from (select 1) one left join (select %s as "$id", %s as "$key", %s from %s) r on '
                'true',
                collection_raw_sql.status, internal.collection_version_sql(collection_raw_sql.definition),
                -- a group has no id; any value marks that there is a row
                case when collection_raw_sql.answered is null then 't.id::uuid'
                     else '''00000000-0000-0000-0000-000000000000''::uuid' end,
                collection_raw_sql.key, string_agg(o.raw, ', ' order by o.n), collection_raw_sql.source),
         jsonb_agg(jsonb_build_object('name', o.name, 'form', o.form) order by o.n)
    from (select c.n, c.name, c.form, c.raw
            from internal.collection_outputs(coalesce(collection_raw_sql.answered, collection_raw_sql.definition), 't',
                                             collection_raw_sql.chosen,
                                             collection_raw_sql.tree) c
          union all
          select 10000, '_distance', 'json', format('to_json(%s)', collection_raw_sql.distance)
           where collection_raw_sql.distance is not null) o
$$;
comment on function internal.collection_raw_sql is
  'A read statement for the server: each row has status, the version met, id, key, and the columns unencoded; one row of
   nulls after the version when there is none. Building JSON costs Postgres three times as much as sending the columns.
   answered describes the result rows when they are groups instead of the collection''s rows; distance adds a column
   _distance.';

create or replace function internal.collection_include_refused() returns json
language plpgsql volatile as $$
begin
  perform internal.collection_refuse('include', 'brings a list of more than 4 MB to one row');
  return null;
end $$;
comment on function internal.collection_include_refused is
  'Refuses an included list that is too large: 400 INVALID_BODY.';

create or replace function internal.collection_include_sql(definition jsonb, alias text, name text, tree jsonb,
                                                           inner_alias text)
returns text
language plpgsql stable as $$
declare
  d constant jsonb := collection_include_sql.definition;
  col jsonb;
  children jsonb;
  other jsonb;
begin
  select c.value into col
    from jsonb_each(d -> 'columns') as c (key, value)
   where c.value ->> 'references' is not null
     and regexp_replace(c.key, '(.)_id$', '\1') = collection_include_sql.name;
  if col is not null then
    if d -> 'columns' ? collection_include_sql.name and col ->> 'name' <> collection_include_sql.name then
      perform internal.collection_refuse('include', format('%s is also a column', collection_include_sql.name));
    end if;
    other := internal.collection_definition(col ->> 'references');
    return format('(select row_to_json("_%1$s") from collections.%2$I %1$s cross join lateral (select %3$s) "_%1$s" '
                  'where %1$s.id = %4$s.%5$I and %1$s.deleted_at is null)',
                  collection_include_sql.inner_alias, other ->> 'name',
                  internal.collection_outputs_sql(other, collection_include_sql.inner_alias, null,
                                                  collection_include_sql.tree),
                  collection_include_sql.alias, col ->> 'name');
  end if;

  select jsonb_agg(c.value) into children
    from jsonb_array_elements(d -> 'children') as c (value)
   where c.value ->> 'collection' = collection_include_sql.name;
  if children is null then
    perform internal.fail(400, 'INVALID_COLUMN',
                          format('%s has no reference and no children called %s.', d ->> 'name',
                                 left(collection_include_sql.name, 100)),
                          json_build_object('column', collection_include_sql.name, 'path', 'include'));
  end if;
  if d -> 'columns' ? collection_include_sql.name then
    perform internal.collection_refuse('include', format('%s is also a column', collection_include_sql.name));
  end if;
  if jsonb_array_length(children) > 1 then
    perform internal.collection_refuse('include',
                                       format('%s refers to %s by several columns', collection_include_sql.name,
                                              d ->> 'name'));
  end if;
  other := internal.collection_definition(collection_include_sql.name);
  return format(
    -- a running sum, so that a list that is too large is refused at the row that exceeds the limit; offset 0, so that
    -- each row is encoded once
    '(select coalesce(json_agg(case when l.bytes > internal.page_bytes() / 2 then '
    'internal.collection_include_refused() else l.j end), ''[]'') from (select j.j, sum(octet_length(j.j::text)) over '
    '(rows unbounded preceding) as bytes from (select row_to_json("_%1$s") as j from (select * from collections.%2$I '
    '%1$s where %1$s.%4$I = %5$s.id and %1$s.deleted_at is null order by %1$s.created_at desc, %1$s.id desc limit 100) '
    '%1$s cross join lateral (select %3$s) "_%1$s" offset 0) j) l)',
    collection_include_sql.inner_alias, other ->> 'name',
    internal.collection_outputs_sql(other, collection_include_sql.inner_alias, null, collection_include_sql.tree),
    children -> 0 ->> 'column', collection_include_sql.alias);
end $$;
comment on function internal.collection_include_sql is
  'One include: the row that a column refers to (author of author_id), or the newest 100 rows of a collection that
   refers to this one. Its own policies apply. Refuses 400 INVALID_COLUMN, INVALID_BODY.';

create or replace function internal.collection_included_ids(definition jsonb, tree jsonb) returns uuid[]
language plpgsql stable as $$
declare
  d constant jsonb := collection_included_ids.definition;
  wanted text;
  name text;
  other jsonb;
  ids uuid[] := '{}';
begin
  for wanted in select k.key from jsonb_object_keys(collection_included_ids.tree) as k (key) loop
    name := coalesce((select c.value ->> 'references' from jsonb_each(d -> 'columns') as c (key, value)
                       where c.value ->> 'references' is not null and regexp_replace(c.key, '(.)_id$', '\1') = wanted
                         limit 1),
                     (select c.value ->> 'collection' from jsonb_array_elements(d -> 'children') as c (value)
                       where c.value ->> 'collection' = wanted limit 1));
    -- an unknown include is refused where it is compiled
    continue when name is null;
    other := internal.collection_definition(name);
    ids := ids || (other ->> 'id')::uuid || internal.collection_included_ids(other,
                                        collection_included_ids.tree -> wanted);
  end loop;
  return ids;
end $$;
comment on function internal.collection_included_ids is
  'The collections in an include tree, each as often as the tree names it.';

create or replace function internal.collection_with_included(definition jsonb, include jsonb) returns jsonb
language plpgsql stable as $$
declare
  ids uuid[];
begin
  if jsonb_array_length(coalesce(nullif(collection_with_included.include, 'null'), '[]')) = 0 then
    return collection_with_included.definition;
  end if;
  ids := array(select distinct i.id
                 from unnest(internal.collection_included_ids(collection_with_included.definition,
                                                              internal.collection_include_tree(
                                                                collection_with_included.include))
                             || (collection_with_included.definition ->> 'id')::uuid) as i (id));
  return collection_with_included.definition || jsonb_build_object(
    'read_ids', ids, 'version', (select sum(c.schema_version) from app.collections c where c.id = any (ids)));
end $$;
comment on function internal.collection_with_included is
  'A definition whose version also changes with those of all included collections: the statement contains their columns.
   Refuses 400 INVALID_BODY for an include that is not a tree.';

create or replace function internal.collection_version_sql(definition jsonb) returns text
language sql immutable parallel safe as $$
  select case
    when collection_version_sql.definition ? 'read_ids'
    then format('(select case when count(*) = %s then sum(c.schema_version)::bigint end from app.collections c where '
                'c.id in (%s))',
                jsonb_array_length(collection_version_sql.definition -> 'read_ids'),
                (select string_agg(quote_literal(e.value), ', ' order by e.value)
                   from jsonb_array_elements_text(collection_version_sql.definition -> 'read_ids') as e (value)))
    else format('(select c.schema_version from app.collections c where c.id = %L)',
                collection_version_sql.definition ->> 'id')
  end
$$;
comment on function internal.collection_version_sql is
  'The version of the definition at run time, read in the same snapshot as the table, after its locks. If it differs
   from the compiled one, the result is stale.';

create or replace function internal.collection_statement_sql(definition jsonb, status text, body text, headers text,
                                                             source text, next text default 'null',
                                                             writes boolean default false)
returns text
language sql immutable parallel safe
return format('select %s, %s, %s, %s, pg_catalog.current_setting(''app.changed'', true), %s, %s from %s',
              collection_statement_sql.status, collection_statement_sql.body, collection_statement_sql.headers,
              -- after triggers run when this result has been read: internal.return_setting then sends its values as
              -- notices
              case when collection_statement_sql.writes
                   then 'coalesce(nullif(pg_catalog.set_config(''app.is_answered'', ''on'', true), ''on''), '
                        'pg_catalog.current_setting(''app.due_at'', true))'
                   else 'pg_catalog.current_setting(''app.due_at'', true)' end,
              internal.collection_version_sql(collection_statement_sql.definition), collection_statement_sql.next,
              collection_statement_sql.source);
comment on function internal.collection_statement_sql is
  'The result columns of every compiled statement: status, envelope, headers, due time, changed credentials, the version
   met, and the cursor of the next page. They never depend on the table, so that no change of the table can break a
   prepared statement.';

create or replace function internal.collection_write_condition_of(definition jsonb) returns text
language sql stable security definer set search_path = '' as $$
  select case when current_setting('role') in ('app_server', 'app_admin') then 'true'
              else internal.collection_write_condition(c) end
    from app.collections c
   where c.id = (collection_write_condition_of.definition ->> 'id')::uuid
$$;
comment on function internal.collection_write_condition_of is
  'The condition of the write policy on a row, for the caller''s role; its columns are unqualified.';

create or replace function internal.collection_group(group_id text, least_role text, is_insert boolean) returns boolean
language plpgsql stable security definer set search_path = '' as $$
declare
  wanted constant uuid := internal.as_uuid(collection_group.group_id);
  mine int;
  is_open boolean;
begin
  select g.is_public, internal.group_rank(m.role) into is_open, mine
    from app.groups g
    left join app.group_members m on m.group_id = g.id and m.app_user_id = internal.user_id()
   where g.id = wanted;
  -- server keys and administrators may use every group that exists
  if not found or internal.user_id() is not null and coalesce(mine, 0) = 0 then
    perform internal.fail(403, 'NOT_A_GROUP_MEMBER', 'The caller is not a member of this group.');
  end if;
  if collection_group.is_insert and is_open then
    perform internal.fail(400, 'GROUP_NOT_PRIVATE',
                          'Only a private group may own rows: send the id of a private group.');
  end if;
  if internal.user_id() is not null
     and (case when collection_group.least_role like 'role:%'
                 then wanted not in (select internal.my_role_group_ids(substr(collection_group.least_role, 6)))
               else mine < internal.group_rank(collection_group.least_role) end) then
    perform internal.fail(403, 'GROUP_ROLE_FORBIDDEN', 'The caller''s role in this group does not allow this.');
  end if;
  return true;
end $$;
comment on function internal.collection_group is
  'Whether the caller may use the group of X-Group-Context in this way: true, or refuses 403 NOT_A_GROUP_MEMBER, 400
   GROUP_NOT_PRIVATE, 403 GROUP_ROLE_FORBIDDEN, in this order.';

create or replace function internal.collection_group_role(definition jsonb, is_insert boolean) returns text
language sql immutable parallel safe as $$
  select case
    when p.policy like 'member:%' then split_part(p.policy, ':', 2)
    when p.policy like 'role:%' then p.policy
    when collection_group_role.is_insert then 'member'
    else 'viewer'
  end
    from (select collection_group_role.definition ->> case when collection_group_role.is_insert then 'write'
                                                           else 'read' end as policy) as p
$$;
comment on function internal.collection_group_role is
  'The lowest role in a group that may read its rows, or add some; or role:<key>, the role of the project that may.';

create or replace function internal.collection_group_sql(definition jsonb, request jsonb, is_insert boolean,
                                                         inout params jsonb, out sql text)
language plpgsql stable as $$
begin
  if collection_group_sql.definition ->> 'scope' <> 'group' or collection_group_sql.request ->> 'group' is null then
    sql := null;
    return;
  end if;
  select p.params,
         format('(select internal.collection_group(%s, %L, %s))', p.sql,
                internal.collection_group_role(collection_group_sql.definition, collection_group_sql.is_insert),
                collection_group_sql.is_insert::text)
    into params, sql
    from internal.collection_param(collection_group_sql.params, '["group"]', 'text', '{}') p;
end $$;
comment on function internal.collection_group_sql is
  'The condition that refuses a caller who may not use the group of X-Group-Context; null when no group was sent, or
   rows belong to users.';
