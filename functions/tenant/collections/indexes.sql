-- Indexes that the developer declares. Those of large tables are built in the background, without a lock, by
-- workers/tasks/collections__index.ts.

create or replace function internal.collection_index_limit_check(collection_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_limit(
    (select count(*) from app.collection_indexes i where i.collection_id = collection_index_limit_check.collection_id)
    + (select count(*) from app.collection_columns k
        where k.collection_id = collection_index_limit_check.collection_id and k.is_unique),
    20, 'A collection has at most 20 indexes, unique columns included.', 'INDEX_LIMIT_REACHED');
end $$;
comment on function internal.collection_index_limit_check is 'Refuses 409 INDEX_LIMIT_REACHED. Granted to nobody.';

create or replace function internal.collection_duplicates(c app.collections, i app.collection_indexes,
                                                          columns app.collection_columns[])
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  found_ones json;
  list constant text := (select string_agg(quote_ident(n.name), ', ' order by n.n)
                           from unnest((collection_duplicates.i).columns) with ordinality as n (name, n));
begin
  execute format(
    'select json_agg(json_build_object(''values'', d.entries, ''count'', d.n))
       from (select json_build_array(%1$s) as entries, count(*) as n from collections.%2$I
              where deleted_at is null and num_nulls(%1$s) = 0%3$s group by %1$s having count(*) > 1
              order by count(*) desc limit 10) as d',
    list, (collection_duplicates.c).name,
    case when (collection_duplicates.i).where_filter is not null
         then ' and ' || internal.collection_index_condition(collection_duplicates.i, collection_duplicates.c,
                                                             collection_duplicates.columns, 'where') end)
    into found_ones;
  return found_ones;
end $$;
comment on function internal.collection_duplicates is
  'Up to ten values that several live rows have, which prevent a unique index; null when there are none. Granted to
   nobody.';

create or replace function internal.collection_index_add(name text, definition json, dry_run boolean,
                                                         operation_id uuid default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.collections := internal.collection_lock(collection_index_add.name);
  columns constant app.collection_columns[] := internal.collection_columns_of(c.id);
  i app.collection_indexes := internal.collection_index_read(collection_index_add.definition, '', c, columns);
  rows constant bigint := internal.collection_rows_estimate(c.name);
  duplicates json;
  statements text[];
  known app.collection_indexes;
begin
  -- a job that runs again continues with the index that it has registered
  select o.* into known from app.collection_indexes o where o.id = collection_index_add.operation_id;
  if known.id is not null then
    return internal.reply(200, json_build_object('id', known.id, 'index_name', known.index_name,
      'sql', array(select s from internal.collection_index_sql(known, c, columns, true) as s)));
  end if;
  if exists (select from app.collection_indexes o where o.collection_id = c.id and o.name = i.name) then
    perform internal.fail(409, 'CONFLICT', 'An index with this name exists: choose another name.', '{"field": "name"}');
  end if;
  perform internal.collection_index_limit_check(c.id);
  duplicates := case when i.is_unique then internal.collection_duplicates(c, i, columns) end;
  if duplicates is not null then
    perform internal.fail(409, 'CONFLICT', 'Rows have equal values, which a unique index forbids.',
                          json_build_object('duplicates', duplicates));
  end if;
  i.index_name := internal.collection_index_name(c.name, null, i.name);
  statements := array(select s from internal.collection_index_sql(i, c, columns, rows > 100000
                                                                  or collection_index_add.operation_id is
                                                                    not null) as s);
  if collection_index_add.dry_run then
    return internal.reply(200, internal.collection_plan_json(statements, false, rows,
                                                             10 + rows / case i.method when 'btree' then 500
                                                               else 50 end,
      case when rows > 100000 then array['The index is built in the background.'] else '{}' end));
  end if;
  if rows > 100000 and collection_index_add.operation_id is null then
    -- nothing is stored here: the operation begins with the same check
    return internal.reply(202, json_build_object('name', i.name));
  end if;
  i.is_ready := collection_index_add.operation_id is null;
  i.id := coalesce(collection_index_add.operation_id, i.id);
  if i.is_ready then
    perform internal.collection_execute(statements);
  end if;
  insert into app.collection_indexes select i.*;
  perform internal.collection_changed(c.id);
  return internal.reply(201, case when not i.is_ready
    then json_build_object('id', i.id, 'index_name', i.index_name,
                           'sql', statements) else internal.collection_index_json(i) end);
end $$;
comment on function internal.collection_index_add is
  'Adds an index: 201; 202, with nothing done, when the collection has over 100000 rows and a job must build it. With
   dry_run returns the plan. Refuses 404 COLLECTION_NOT_FOUND, 400 VALIDATION_ERROR, 409 CONFLICT, INDEX_LIMIT_REACHED.
   Locks the table against writers while it builds.';

create or replace function api.collection_index_drop(name text, index text, dry_run boolean default false)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.collections := internal.collection_lock(collection_index_drop.name);
  i app.collection_indexes;
  statements text[];
begin
  select o.* into i from app.collection_indexes o where o.collection_id = c.id and o.name = collection_index_drop.index;
  if i.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such index.');
  elsif not i.is_ready then
    perform internal.fail(409, 'CONFLICT', 'The index is still being built: try again later.');
  end if;
  -- a DBA may have dropped it already
  statements := array[format('drop index if exists collections.%I', i.index_name)];
  if collection_index_drop.dry_run then
    return internal.reply(200, internal.collection_plan_json(statements, false,
                                                             internal.collection_rows_estimate(c.name), 10, '{}'));
  end if;
  perform internal.collection_execute(statements);
  delete from app.collection_indexes o where o.id = i.id;
  perform internal.collection_changed(c.id);
  return internal.reply(200, json_build_object('name', i.name, 'deleted', true));
end $$;
comment on function api.collection_index_drop is
  'Drops a declared index. With dry_run returns the plan. Refuses 404 COLLECTION_NOT_FOUND, NOT_FOUND, 409 CONFLICT.
   Locks the table briefly.';

create or replace function api.collection_index_end(index_id uuid, is_built boolean) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  i app.collection_indexes;
begin
  if collection_index_end.is_built then
    update app.collection_indexes o set is_ready = true where o.id = collection_index_end.index_id returning o.* into i;
  else
    delete from app.collection_indexes o where o.id = collection_index_end.index_id and not o.is_ready
      returning o.* into i;
  end if;
  if i.id is not null then
    perform internal.collection_changed(i.collection_id);
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.collection_index_end is
  'For the worker, after it has built an index, or failed to: marks it as ready, or drops it.';
