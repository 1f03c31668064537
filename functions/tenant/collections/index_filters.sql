-- The filter of a partial index, as an SQL condition: values as literals of their column's type, because an index has
-- no parameters.

create or replace function internal.collection_index_leaf(leaf json, type text, sql_type text, field text) returns text
language plpgsql volatile as $$
declare
  col constant text := quote_ident(collection_index_leaf.leaf ->> 'column');
  op constant text := collection_index_leaf.leaf ->> 'op';
  value constant json := collection_index_leaf.leaf -> 'value';
  element_type text := collection_index_leaf.type;
  literal text;
  refuses constant text := 'must be a value of type ' || collection_index_leaf.type;
begin
  if op in ('is_null', 'is_not_null') or op in ('eq', 'ne') and json_typeof(value) = 'null' then
    return col || case when op in ('is_null', 'eq') then ' is null' else ' is not null' end;
  end if;
  if collection_index_leaf.type in ('vector', 'jsonb')
     or op in ('contains', 'contained_by', 'containedBy', 'overlaps') <> (collection_index_leaf.type like '%[]')
     or op in ('like', 'ilike') and collection_index_leaf.type <> 'text' then
    perform internal.invalid(collection_index_leaf.field || '.op',
                             'does not suit a column of type ' || collection_index_leaf.type);
  end if;
  if op in ('in', 'not_in') then
    if exists (select from json_array_elements(value) as e (element)
                where json_typeof(e.element) = 'null'
                   or internal.collection_literal(e.element, element_type, collection_index_leaf.sql_type) is null) then
      perform internal.invalid(collection_index_leaf.field || '.value', refuses);
    end if;
    if json_array_length(value) = 0 then
      return case op when 'in' then 'false' else 'true' end;
    end if;
    return format('%s %s (%s)', col, case op when 'in' then 'in' else 'not in' end, (
      select string_agg(internal.collection_literal(e.element, element_type, collection_index_leaf.sql_type),
                        ', ' order by e.n)
        from json_array_elements(value) with ordinality as e (element, n)));
  end if;
  if op in ('like', 'ilike') and (length(value #>> '{}') - length(rtrim(value #>> '{}', '\'))) % 2 = 1 then
    -- a backslash that escapes nothing is taken literally, as in internal.filter_is_like; otherwise it would make every
    -- write fail
    return format('%s %s %L', col, op, (value #>> '{}') || '\');
  end if;
  literal := case when op = 'contains' and json_typeof(value) <> 'array'
                  then internal.collection_literal(json_build_array(value), collection_index_leaf.type,
                                                   collection_index_leaf.sql_type)
                  else internal.collection_literal(value, collection_index_leaf.type,
                                                   collection_index_leaf.sql_type) end;
  if literal is null then
    perform internal.invalid(collection_index_leaf.field || '.value', refuses);
  end if;
  return format('%s %s %s', col, case op
    when 'eq' then '=' when 'ne' then '<>' when 'gt' then '>' when 'gte' then '>=' when 'lt' then '<'
      when 'lte' then '<='
    when 'like' then 'like' when 'ilike' then 'ilike' when 'contains' then '@>' when 'overlaps' then '&&' else '<@' end,
      literal);
end $$;
comment on function internal.collection_index_leaf is
  'One leaf of an index''s filter as SQL. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.collection_index_node(node json, columns app.collection_columns[], owner_scope text,
                                                          field text)
returns text
language plpgsql volatile as $$
declare
  shape text;
  parts text[] := '{}';
  k app.collection_columns;
  managed text;
begin
  if collection_index_node.node -> 'column' is not null then
    select c.* into k from unnest(collection_index_node.columns) as c
     where c.name = collection_index_node.node ->> 'column';
    managed := case when collection_index_node.node ->> 'column' in ('id', 'user_id') then 'uuid'
                    when collection_index_node.node ->> 'column' = 'group_id'
                      and collection_index_node.owner_scope = 'group' then 'uuid'
                    when collection_index_node.node ->> 'column' in ('created_at', 'updated_at',
                                                                     'deleted_at') then 'timestamptz' end;
    if k.id is null and managed is null then
      perform internal.invalid(collection_index_node.field || '.column', 'must be a column of the collection');
    end if;
    return internal.collection_index_leaf(collection_index_node.node, coalesce(k.type, managed),
                                          coalesce(k.sql_type, internal.collection_sql_type(managed)),
                                          collection_index_node.field);
  end if;
  if collection_index_node.node -> 'not' is not null then
    return format('not (%s)', internal.collection_index_node(collection_index_node.node -> 'not',
                                                             collection_index_node.columns,
                                                             collection_index_node.owner_scope,
                                                             collection_index_node.field || '.not'));
  end if;
  shape := case when collection_index_node.node -> 'and' is not null then 'and' else 'or' end;
  for place in 0 .. json_array_length(collection_index_node.node -> shape) - 1 loop
    parts := parts || format('(%s)', internal.collection_index_node(
      collection_index_node.node -> shape -> place, collection_index_node.columns, collection_index_node.owner_scope,
      collection_index_node.field || '.' || shape || '[' || place || ']'));
  end loop;
  return case when cardinality(parts) = 0 then case shape when 'and' then 'true' else 'false' end
              else array_to_string(parts, ' ' || shape || ' ') end;
end $$;
comment on function internal.collection_index_node is
  'A node of an index''s filter, validated by internal.filter_check, as SQL.';

create or replace function internal.collection_index_condition(i app.collection_indexes, owner app.collections,
                                                               columns app.collection_columns[], field text)
returns text
language plpgsql volatile as $$
declare
  problem record;
begin
  select p.path, p.reason into problem from internal.filter_check((collection_index_condition.i).where_filter) p;
  if problem.reason is not null then
    perform internal.invalid(concat_ws('.', collection_index_condition.field, nullif(problem.path, '')),
                             problem.reason);
  end if;
  return '(' || internal.collection_index_node((collection_index_condition.i).where_filter,
                                               collection_index_condition.columns,
                                               (collection_index_condition.owner).owner_scope,
                                               collection_index_condition.field) || ')';
end $$;
comment on function internal.collection_index_condition is
  'The condition of a partial index as SQL. Refuses 400 VALIDATION_ERROR.';
