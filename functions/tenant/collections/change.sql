-- Changes of a collection and its columns. The new definition is parsed as a whole, and compared with the stored one.

create or replace function internal.collection_lock(name text) returns app.collections
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.collections;
begin
  perform internal.collection_may_define();
  perform set_config('lock_timeout', '5s', true);
  -- "no key update", which does not conflict with foreign keys: an insert with an Idempotency-Key has locked the table,
  -- and would deadlock with this
  select k.* into c from app.collections k where k.name = collection_lock.name for no key update;
  perform internal.check_found(c.id is not null, 'collection', 'COLLECTION_NOT_FOUND');
  return c;
end $$;
comment on function internal.collection_lock is
  'A collection, locked so that changes of its definition are serialised. Refuses 404 COLLECTION_NOT_FOUND; 503 when the
   lock is not available in time.';

create or replace function internal.collection_failing(collection text, col text, condition text,
                                                       statuses text default 'all')
returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  failing bigint;
  sample json;
begin
  execute format('select count(*) from collections.%I where %s', collection_failing.collection,
                 collection_failing.condition) into failing;
  if failing = 0 then
    return null;
  end if;
  execute format('select json_agg(json_build_object(''id'', s.id, ''value'', s.%2$I)) from (select t.id, t.%2$I from '
                 'collections.%1$I t where %3$s limit 5) as s',
                 collection_failing.collection, collection_failing.col, collection_failing.condition) into sample;
  return json_build_object('failing_rows', failing, 'sample', sample);
end $$;
comment on function internal.collection_failing is
  'How many rows meet a condition, with five of them; null when none. Granted to nobody.';

create or replace function internal.collection_update(name text, patch json, dry_run boolean) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  before constant app.collections := internal.collection_lock(collection_update.name);
  c app.collections := before;
  statements text[] := '{}';
begin
  if collection_update.patch -> 'owner_scope' is not null and collection_update.patch ->> 'owner_scope' is distinct
    from c.owner_scope then
    perform internal.fail(409, 'OWNER_SCOPE_IMMUTABLE',
                          'The owner_scope of a collection cannot be changed: create another collection.');
  end if;
  c.description := case when collection_update.patch -> 'description' is not null
                          then collection_update.patch ->> 'description' else c.description end;
  c.read_policy := coalesce(collection_update.patch ->> 'read_policy', c.read_policy);
  c.write_policy := coalesce(collection_update.patch ->> 'write_policy', c.write_policy);
  c.sync := internal.collection_flag(collection_update.patch, 'sync', c.sync, '');
  c.realtime := internal.collection_flag(collection_update.patch, 'realtime', c.realtime, '');
  perform internal.collection_policies_check(c, before);

  if c.description is distinct from before.description then
    statements := array[format('comment on table collections.%I is %L', c.name,
                               coalesce(c.description, 'A collection of the project''s own.'))];
  end if;
  if (c.read_policy, c.write_policy) <> (before.read_policy, before.write_policy) then
    statements := statements || array(select s
                                        from internal.collection_policies_sql(c,
                                          internal.collection_column_names(c.id)) as s);
  end if;
  if c.sync <> before.sync then
    statements := statements || array(select s from internal.collection_sync_sql(c) as s);
  end if;
  if collection_update.dry_run then
    return internal.collection_plan_json(statements, false, internal.collection_rows_estimate(c.name), 5, '{}');
  end if;
  if c = before then
    return internal.collection_json(c);
  end if;
  perform internal.collection_execute(statements);
  update app.collections k
     set description = c.description, read_policy = c.read_policy, write_policy = c.write_policy, sync = c.sync,
       realtime = c.realtime
   where k.id = c.id;
  return internal.collection_json(internal.collection_changed(c.id));
end $$;
comment on function internal.collection_update is
  'Changes description, policies, sync and realtime; policies are created again. With dry_run returns the plan. Refuses
   404 COLLECTION_NOT_FOUND, 409 OWNER_SCOPE_IMMUTABLE, 400 INVALID_POLICY, VALIDATION_ERROR.';

create or replace function api.collection_drop(name text, confirm text default null, dry_run boolean default false)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.collections := internal.collection_lock(collection_drop.name);
  referring json;
  statements constant text[] := array[format('drop table collections.%I', c.name)];
begin
  select json_agg(json_build_object('collection', other.name, 'column', k.name) order by other.name,
                  k.name) into referring
    from app.collection_columns k
    join app.collections other on other.id = k.collection_id
   where k.references_collection_id = c.id and k.collection_id <> c.id;
  if referring is not null then
    perform internal.fail(409, 'COLLECTION_REFERENCED',
                          'Columns of other collections refer to this one: drop these first.',
                          json_build_object('columns', referring));
  end if;
  if collection_drop.dry_run then
    return internal.reply(200, internal.collection_plan_json(statements, false,
                                                             internal.collection_rows_estimate(c.name), 10,
                                                               array['All rows are deleted.']));
  end if;
  perform internal.collection_confirm(collection_drop.confirm, c.name);
  -- imports before the table: their jobs lock them in this order
  perform from app.collection_imports i where i.collection_id = c.id order by i.id for update;
  perform internal.collection_execute(internal.rest_view_drop_sql(c.name) || statements);
  perform internal.rest_reload();
  delete from internal.user_data d where d.table_name in (format('collections.%I', c.name), 'collections.' || c.name)
    and d.declared_in = 'collections';
  -- references of the collection to itself first, because they would prevent the deletion
  delete from app.collection_columns k where k.collection_id = c.id;
  delete from app.collections k where k.id = c.id;
  perform internal.changed('collection:' || coalesce(internal.project_id()::text, '') || '/' || c.name);
  return internal.reply(200, json_build_object('name', c.name, 'deleted', true));
end $$;
comment on function api.collection_drop is
  'Drops a collection with its rows. Refuses 404 COLLECTION_NOT_FOUND, 409 COLLECTION_REFERENCED, CONFLICT, 400
   CONFIRMATION_REQUIRED. Locks its imports, then the table, and briefly app.users and the tables that it refers to.';

create or replace function internal.collection_confirm(sent text, wanted text) returns void
language plpgsql volatile as $$
begin
  if collection_confirm.sent is distinct from collection_confirm.wanted then
    perform internal.fail(400, 'CONFIRMATION_REQUIRED',
                          'This cannot be undone: repeat the name as ?confirm=' || collection_confirm.wanted || '.',
                          json_build_object('confirm', collection_confirm.wanted));
  end if;
end $$;
comment on function internal.collection_confirm is
  'Refuses 400 CONFIRMATION_REQUIRED unless the request repeats the name.';

create or replace function internal.collection_reference_names(collection_id uuid, less text default null)
returns text[]
language sql stable as $$
  select coalesce(array_agg(k.name order by k.position), '{}') from app.collection_columns k
   where k.collection_id = collection_reference_names.collection_id and k.references_collection_id is not null
     and k.name is distinct from collection_reference_names.less
$$;
comment on function internal.collection_reference_names is
  'The columns of a collection that are references, except a column that is dropped.';

create or replace function internal.collection_column_add(name text, definition json, dry_run boolean) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.collections := internal.collection_lock(collection_column_add.name);
  k app.collection_columns;
  rows constant bigint := internal.collection_rows_estimate(c.name);
  target text;
  fills text;
  is_filled boolean;
  is_there boolean;
  statements text[];
  is_volatile boolean;
begin
  k := internal.collection_column_read(collection_column_add.definition, '', c, coalesce((
         select max(o.position) from app.collection_columns o where o.collection_id = c.id), 0) + 1);
  if exists (select from app.collection_columns o where o.collection_id = c.id and o.name = k.name)
     or exists (select from pg_catalog.pg_attribute a
                 where a.attrelid = to_regclass(format('collections.%I', c.name)) and a.attname = k.name
                   and not a.attisdropped) then
    perform internal.fail(409, 'CONFLICT', 'A column with this name exists: choose another name.', '{"field": "name"}');
  end if;
  perform internal.check_limit((select count(*) from app.collection_columns o where o.collection_id = c.id), 100,
                               'A collection has at most 100 columns.', 'COLUMN_LIMIT_REACHED');
  if k.is_unique then
    perform internal.collection_index_limit_check(c.id);
  end if;

  -- the value that existing rows get
  fills := coalesce(internal.collection_column_default(k), 'null');
  if k.default_value ->> '$fn' is not distinct from 'user_id' and json_typeof(k.default_value) = 'object' then
    fills := 'null';
  end if;
  execute format('select exists (select from collections.%I)', c.name) into is_filled;
  if is_filled and not k.nullable and fills = 'null' then
    perform internal.fail(409, 'DEFAULT_REQUIRED',
                          'The collection has rows: a column that is not nullable needs a default.',
                            '{"field": "default"}');
  end if;
  is_volatile := fills like '%internal.new_id()%';
  if k.is_unique and fills <> 'null' and not is_volatile then
    execute format('select count(*) > 1 from (select from collections.%I t where t.deleted_at is null limit 2) as live',
                   c.name) into is_there;
    if is_there then
      perform internal.fail(409, 'CONFLICT',
                            'All existing rows would get the same value in a unique column: leave out its default.',
                            json_build_object('duplicates', json_build_array(
        json_build_object('values', json_build_array(k.default_value), 'count', rows))));
    end if;
  end if;
  if k.references_collection_id is not null then
    target := (select o.name from app.collections o where o.id = k.references_collection_id);
    if fills <> 'null' and is_filled then
      execute format('select exists (select from collections.%I t where t.id = %s and t.deleted_at is null)', target,
                     fills) into is_there;
      if not is_there then
        perform internal.invalid('default', 'must be the id of a row of ' || target);
      end if;
    end if;
  end if;

  statements := array[format('alter table collections.%I add column %s', c.name,
                             internal.collection_column_definition(c.name, k))]
    || array(select s from internal.collection_rule_comments(c.name, k) as s)
    || case when k.is_unique then array(select s from internal.collection_unique_sql(c.name, k.name) as s) else '{}' end
    || case when target is not null
            then array(select s from internal.collection_reference_sql(c.name, k, target) as s)
                 || array(select s from internal.collection_trigger_sql(c.name,
                                                                        internal.collection_reference_names(c.id)
                                                                          || k.name) as s)
            else '{}' end
    || case when k.is_moderated then array[internal.collection_moderation_sql(c.name, true)] else '{}' end
    || case when internal.collection_is_bounded(k.type) then array(select s
                                                                     from internal.collection_size_sql(c.name,
                                                                       internal.collection_columns_whole(c.id)
                                                                         || k) as s)
            else '{}' end
    || array[format('grant insert (%1$I), update (%1$I) on collections.%2$I to app_user', k.name, c.name)];
  if collection_column_add.dry_run then
    return internal.collection_plan_json(statements, is_volatile, rows,
                                         10 + rows / case when is_volatile then 200 else 2000 end,
      case when is_volatile and rows > 100000 then array['The table is rewritten, and locked until this ends.']
           else '{}' end);
  end if;
  perform internal.collection_execute(statements);
  insert into app.collection_columns select k.*;
  perform internal.collection_changed(c.id);
  return internal.collection_column_json(k);
end $$;
comment on function internal.collection_column_add is
  'Adds a column; existing rows get its default. With dry_run returns the plan. Refuses 404 COLLECTION_NOT_FOUND, 400
   VALIDATION_ERROR, RESERVED_NAME, 409 CONFLICT, DEFAULT_REQUIRED, COLUMN_LIMIT_REACHED, INDEX_LIMIT_REACHED. Locks the
   table briefly.';

create or replace function internal.collection_column_find(c app.collections, col text) returns app.collection_columns
language plpgsql stable security definer set search_path = '' as $$
declare
  k app.collection_columns;
begin
  select o.* into k from app.collection_columns o
   where o.collection_id = (collection_column_find.c).id and o.name = collection_column_find.col;
  perform internal.check_found(k.id is not null, 'column');
  return k;
end $$;
comment on function internal.collection_column_find is
  'A column by its name. Refuses 404 NOT_FOUND. Granted to nobody.';

create or replace function api.collection_column_drop(name text, "column" text, confirm text default null,
                                                      dry_run boolean default false)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.collections := internal.collection_lock(collection_column_drop.name);
  k constant app.collection_columns := internal.collection_column_find(c, collection_column_drop."column");
  lost constant uuid[] := array(select i.id from app.collection_indexes i
                                 where i.collection_id = c.id
                                   and (k.name = any (i.columns) or internal.filter_names_column(i.where_filter,
                                        k.name)) order by i.created_at);
  rows constant bigint := internal.collection_rows_estimate(c.name);
  statements text[];
begin
  -- triggers that refer to the column would prevent its drop
  statements := case when k.references_collection_id is not null
                     then array(select s from internal.collection_trigger_drop_sql(c.name) as s) else '{}' end
    || case when internal.collection_is_bounded(k.type) then array(select s
                                                                     from internal.collection_size_drop_sql(
                                                                       c.name) as s) else '{}' end
    || array[format('alter table collections.%I drop column %I', c.name, k.name)]
    || case when internal.collection_is_bounded(k.type) then array(select s
                                                                     from internal.collection_size_sql(c.name,
                                                                       internal.collection_columns_whole(c.id,
                                                                         k.name)) as s)
            else '{}' end
    || case when k.references_collection_id is not null
            then array(select s from internal.collection_trigger_sql(c.name,
                                                                     internal.collection_reference_names(c.id,
                                                                       k.name)) as s) else '{}' end;
  if collection_column_drop.dry_run then
    return internal.reply(200, internal.collection_plan_json(statements, false, rows, 10,
                                                             array['The values of all rows are deleted.']
                          || array(select 'The index ' || i.name || ' goes with it.' from app.collection_indexes i
                                    where i.id = any (lost) order by i.created_at)));
  end if;
  perform internal.collection_confirm(collection_column_drop.confirm, k.name);
  perform internal.collection_execute(internal.rest_view_drop_sql(c.name) || statements);
  delete from app.collection_indexes i where i.id = any (lost);
  delete from app.collection_columns o where o.id = k.id;
  perform internal.collection_changed(c.id);
  return internal.reply(200, json_build_object('name', k.name, 'deleted', true));
end $$;
comment on function api.collection_column_drop is
  'Drops a column, its values and the indexes that use it. With dry_run returns the plan. Refuses 404
   COLLECTION_NOT_FOUND, NOT_FOUND, 400 CONFIRMATION_REQUIRED, 409 CONFLICT. Locks the table briefly.';

create or replace function internal.filter_names_column(filter json, col text) returns boolean
language sql immutable as $$
  select coalesce(jsonb_path_exists(filter_names_column.filter::jsonb, '$.** ? (@.column == $name)',
                                    jsonb_build_object('name', filter_names_column.col)), false)
$$;
comment on function internal.filter_names_column is 'Whether a filter refers to a column; false for no filter.';

create or replace function internal.filter_with_renamed(filter jsonb, col text, new_name text) returns jsonb
language sql immutable as $$
  select case jsonb_typeof(filter_with_renamed.filter)
    when 'array' then (select jsonb_agg(internal.filter_with_renamed(e.element, filter_with_renamed.col,
                                                                     filter_with_renamed.new_name) order by e.n)
                         from jsonb_array_elements(filter_with_renamed.filter) with ordinality as e (element, n))
    when 'object' then (
      select jsonb_object_agg(f.key, case
               when f.key = 'column'
                 and f.value = to_jsonb(filter_with_renamed.col) then to_jsonb(filter_with_renamed.new_name)
               when f.key in ('and', 'or', 'not') then internal.filter_with_renamed(f.value, filter_with_renamed.col,
                                        filter_with_renamed.new_name)
               else f.value end)
        from jsonb_each(filter_with_renamed.filter) as f)
    else filter_with_renamed.filter
  end
$$;
comment on function internal.filter_with_renamed is 'A filter with a renamed column under its new name.';
