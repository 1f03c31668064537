-- Creating, showing and dropping collections. A change is planned as statements first, which are then returned
-- (dry_run) or executed.

create or replace function internal.json_number(value numeric) returns json
language sql immutable parallel safe as $$
  select case when json_number.value is null then null
              when json_number.value = trunc(json_number.value)
                and abs(json_number.value) > 9007199254740992 then to_json(json_number.value::text)
              else to_json(json_number.value) end
$$;
comment on function internal.json_number is 'A number as JSON; an integer beyond 2^53 as a string.';

create or replace function internal.collection_column_json(k app.collection_columns) returns json
language sql stable as $$
  select json_build_object(
    'name', (collection_column_json.k).name, 'type', (collection_column_json.k).type,
      'nullable', (collection_column_json.k).nullable,
    'default', (collection_column_json.k).default_value, 'unique', (collection_column_json.k).is_unique,
    'max_length', (collection_column_json.k).max_length, 'min', internal.json_number((collection_column_json.k).min),
    'max', internal.json_number((collection_column_json.k).max), 'enum', (collection_column_json.k).enum,
    'references', case when (collection_column_json.k).references_collection_id is not null then json_build_object(
       'collection', (select c.name from app.collections c
                       where c.id = (collection_column_json.k).references_collection_id),
       'on_delete', (collection_column_json.k).on_delete) end,
    'dimensions', (collection_column_json.k).dimensions, 'moderated', (collection_column_json.k).is_moderated,
    'graphql_name', internal.graphql_name((collection_column_json.k).collection_id, (collection_column_json.k).id))
$$;
comment on function internal.collection_column_json is 'A column as its definition shows it.';

select internal.row_declare('collection_index_json', null::app.collection_indexes,
                            '{name,columns,unique:is_unique,method,where:where_filter,is_ready}');
comment on function internal.collection_index_json is 'An index as its definition shows it.';

create or replace function internal.collection_rows_estimate(name text) returns bigint
language plpgsql stable security definer set search_path = '' as $$
declare
  relation constant regclass := to_regclass(format('collections.%I', collection_rows_estimate.name));
  counted bigint;
begin
  -- small tables are counted; for large ones the estimate comes from the statistics, scaled by the growth of the table
  -- since then
  if pg_relation_size(relation) < 2000000 then
    execute format('select count(*) from collections.%I', collection_rows_estimate.name) into counted;
    return counted;
  end if;
  return coalesce((select greatest(case when r.reltuples <= 0 or r.relpages = 0 then pg_stat_get_live_tuples(r.oid)
                                        else r.reltuples::numeric * (
                                          pg_relation_size(relation) / 8192) / r.relpages end, 0)::bigint
                     from pg_catalog.pg_class r where r.oid = relation), 0);
exception when undefined_table then
  return 0;
end $$;
comment on function internal.collection_rows_estimate is
  'The approximate number of rows of a collection, including deleted ones; 0 when it was dropped just now.';

create or replace function internal.collection_json(c app.collections) returns json
language sql stable as $$
  select json_build_object(
    'name', (collection_json.c).name, 'description', (collection_json.c).description,
    'columns', coalesce((select json_agg(internal.collection_column_json(k) order by k.position)
                           from app.collection_columns k where k.collection_id = (collection_json.c).id), '[]'),
    'indexes', coalesce((select json_agg(internal.collection_index_json(i) order by i.created_at, i.id)
                           from app.collection_indexes i where i.collection_id = (collection_json.c).id), '[]'),
    'owner_scope', (collection_json.c).owner_scope, 'read_policy', (collection_json.c).read_policy,
    'write_policy', (collection_json.c).write_policy, 'sync', (collection_json.c).sync,
    'realtime', (collection_json.c).realtime,
    'row_count_estimate', internal.collection_rows_estimate((collection_json.c).name),
    'schema_version', (collection_json.c).schema_version,
    'graphql_name', internal.graphql_name((collection_json.c).id, null),
    'created_at', internal.iso((collection_json.c).created_at),
    'updated_at', internal.iso((collection_json.c).updated_at))
$$;
comment on function internal.collection_json is 'A collection''s definition, as responses show it.';

create or replace function internal.collection_may_define() returns void
language plpgsql volatile as $$
begin
  if internal.developer_id() is null or internal.caller() <> 'developer' then
    raise exception 'collections are defined by administrators only';
  end if;
end $$;
comment on function internal.collection_may_define is
  'Raises unless the caller may change definitions. Every definer function that does so calls it first.';

create or replace function internal.collection_changed(collection_id uuid) returns app.collections
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.collections;
begin
  update app.collections k
     set schema_version = k.schema_version + 1, updated_at = internal.now()
   where k.id = collection_changed.collection_id
  returning k.* into c;
  perform internal.collection_register(c);
  perform internal.rest_view_follow(c.id);
  perform internal.changed('collection:' || coalesce(internal.project_id()::text, '') || '/' || c.name);
  return c;
end $$;
comment on function internal.collection_changed is
  'After every change of a definition: increments schema_version, updates the registry of users'' data, and invalidates
   the servers'' caches. Granted to nobody.';

create or replace function internal.collection_register(c app.collections) returns void
language sql volatile security definer set search_path = '' as $$
  insert into internal.user_data as known
    (table_name, user_column, section, export_columns, reset_section, on_merge, on_delete, exempt_reason, declared_in)
  select to_regclass(format('collections.%I', (collection_register.c).name))::text, 'user_id', 'collections',
         array['id', 'user_id'] || case (collection_register.c).owner_scope when 'group' then array['group_id']
                                        else '{}' end
           || array['created_at', 'updated_at', 'deleted_at']
             || internal.collection_column_names((collection_register.c).id),
         -- rows of a group belong to the group: they outlive a reset and the deletion of their author
         case (collection_register.c).owner_scope when 'user' then 'collections' end,
         'move', case (collection_register.c).owner_scope when 'group' then 'set null' else 'cascade' end, null,
         'collections'
  on conflict (table_name, user_column) do update set export_columns = excluded.export_columns
$$;
comment on function internal.collection_register is
  'Registers how export, reset, merge and delete treat a collection''s rows. Granted to nobody.';

create or replace function internal.collection_execute(statements text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  statement text;
  patience constant text := current_setting('lock_timeout');
begin
  for attempt in 1..20 loop
    begin
      -- a transaction that waits for a table lock blocks all later ones: a short timeout, and a retry
      perform set_config('lock_timeout', '100ms', true);
      foreach statement in array collection_execute.statements loop
        execute statement;
      end loop;
      perform set_config('lock_timeout', patience, true);
      return;
    exception
      when lock_not_available or deadlock_detected then
        if attempt = 20 then
          perform internal.fail(503, 'TENANT_UNAVAILABLE', 'The collection is busy: try again in a moment.', null,
                                '{"Retry-After": "2"}');
        end if;
      when unique_violation then
        perform internal.fail(409, 'CONFLICT', 'Rows with the same values exist: the values must be unique.');
      when undefined_table then
        perform internal.fail(409, 'CONFLICT', 'A collection that this refers to was dropped just now.');
      when check_violation or not_null_violation or foreign_key_violation then
        perform internal.fail(409, 'UNSAFE_TYPE_CHANGE',
                              'Rows that the new definition does not allow were written meanwhile: try again.');
      when feature_not_supported or dependent_objects_still_exist or datatype_mismatch or undefined_function
        or invalid_object_definition then
        perform internal.fail(409, 'CONFLICT',
                              'An object that was added to the table by hand, such as a view, a policy or a '
                              'function, prevents the change.');
    end;
    perform pg_sleep(0.05 + random() * 0.1);
  end loop;
end $$;
comment on function internal.collection_execute is
  'Executes the statements of a change, all or none. Waits 100 ms for a lock and retries, at last with 503
   TENANT_UNAVAILABLE. Refuses 409 UNSAFE_TYPE_CHANGE when rows were written meanwhile that the new definition does not
   allow, 409 CONFLICT when a DBA''s own objects, rows written meanwhile or collections dropped meanwhile prevent the
   change. Granted to nobody.';

create or replace function internal.collection_plan_create(c app.collections, columns app.collection_columns[],
                                                           indexes app.collection_indexes[])
returns text[]
language plpgsql volatile security definer set search_path = '' as $$
declare
  statements text[];
  k app.collection_columns;
  i app.collection_indexes;
begin
  statements := array(select s from internal.collection_table_sql(collection_plan_create.c,
                                                                  collection_plan_create.columns) as s);
  foreach k in array collection_plan_create.columns loop
    if k.references_collection_id is not null then
      statements := statements || array(
        select s from internal.collection_reference_sql((collection_plan_create.c).name, k, case
          when k.references_collection_id = (collection_plan_create.c).id then (collection_plan_create.c).name
          else (select t.name from app.collections t where t.id = k.references_collection_id) end) as s);
    end if;
  end loop;
  statements := statements || array(
    select s from internal.collection_trigger_sql((collection_plan_create.c).name, array(
      select r.name from unnest(collection_plan_create.columns) as r where r.references_collection_id is not null
       order by r.position)) as s);
  if exists (select from unnest(collection_plan_create.columns) m where m.is_moderated) then
    statements := statements || internal.collection_moderation_sql((collection_plan_create.c).name, true);
  end if;
  foreach i in array collection_plan_create.indexes loop
    statements := statements || array(
      select s from internal.collection_index_sql(i, collection_plan_create.c, collection_plan_create.columns) as s);
  end loop;
  if (collection_plan_create.c).sync then
    statements := statements || array(select s from internal.collection_sync_sql(collection_plan_create.c) as s);
  end if;
  return statements || array(
    select s from internal.collection_policies_sql(collection_plan_create.c, array(
      select n.name from unnest(collection_plan_create.columns) as n order by n.position)) as s);
end $$;
comment on function internal.collection_plan_create is 'All statements that create a collection.';

create or replace function internal.collection_create(definition json, dry_run boolean) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.collections;
  sent json;
  columns app.collection_columns[] := '{}';
  indexes app.collection_indexes[] := '{}';
  k app.collection_columns;
  i app.collection_indexes;
  statements text[];
begin
  perform internal.collection_may_define();
  -- creations are serialised: free names of indexes are looked up before they are used, and collections are counted
  perform internal.advisory_lock('collections');
  c.id := internal.new_id();
  c.name := collection_create.definition ->> 'name';
  perform internal.collection_name_check(c.name, 'name');
  if c.name = 'transaction' then
    perform internal.fail(400, 'RESERVED_NAME', 'The name transaction is reserved.',
                          '{"field": "name", "name": "transaction"}');
  end if;
  c.description := collection_create.definition ->> 'description';
  c.owner_scope := coalesce(collection_create.definition ->> 'owner_scope', 'user');
  c.read_policy := coalesce(collection_create.definition ->> 'read_policy', 'owner');
  c.write_policy := coalesce(collection_create.definition ->> 'write_policy', 'owner');
  c.sync := internal.collection_flag(collection_create.definition, 'sync', false, '');
  c.realtime := internal.collection_flag(collection_create.definition, 'realtime', true, '');
  c.schema_version := 1;
  c.generator := internal.collection_generator();
  c.created_at := internal.now();
  c.updated_at := c.created_at;
  perform internal.collection_policies_check(c);

  if json_typeof(collection_create.definition -> 'columns') not in ('array', 'null') then
    perform internal.invalid('columns', 'must be a list of columns');
  elsif json_typeof(collection_create.definition -> 'columns') = 'array' then
    if json_array_length(collection_create.definition -> 'columns') > 100 then
      perform internal.invalid('columns', 'must be at most 100');
    end if;
    for place in 0 .. json_array_length(collection_create.definition -> 'columns') - 1 loop
      sent := collection_create.definition -> 'columns' -> place;
      k := internal.collection_column_read(sent, 'columns.' || place || '.', c, place + 1);
      if exists (select from unnest(columns) as other where other.name = k.name) then
        perform internal.invalid('columns.' || place || '.name', 'is used twice');
      end if;
      columns := columns || k;
    end loop;
  end if;

  if json_typeof(collection_create.definition -> 'indexes') not in ('array', 'null') then
    perform internal.invalid('indexes', 'must be a list of indexes');
  elsif json_typeof(collection_create.definition -> 'indexes') = 'array' then
    if json_array_length(collection_create.definition -> 'indexes') > 20 then
      perform internal.invalid('indexes', 'must be at most 20');
    end if;
    for place in 0 .. json_array_length(collection_create.definition -> 'indexes') - 1 loop
      i := internal.collection_index_read(collection_create.definition -> 'indexes' -> place,
                                          'indexes.' || place || '.', c, columns);
      if exists (select from unnest(indexes) as other where other.name = i.name) then
        perform internal.invalid('indexes.' || place || '.name', 'is used twice');
      end if;
      -- created at the same time, listed in the order of the request
      i.created_at := i.created_at + place * interval '1 microsecond';
      i.index_name := internal.collection_index_name(c.name, null, i.name);
      indexes := indexes || i;
    end loop;
  end if;

  if exists (select from app.collections other where other.name = c.name)
     or (select r.relkind not in ('i', 'I') from pg_catalog.pg_class r
          where r.oid = to_regclass(format('collections.%I', c.name))) then
    perform internal.fail(409, 'CONFLICT',
                          'A collection with this name exists: choose another name.', '{"field": "name"}');
  end if;
  perform internal.check_limit((select count(*) from app.collections), 200, 'A project has at most 200 collections.',
                               'COLLECTION_LIMIT_REACHED');

  statements := internal.collection_index_aside(c.name) || internal.collection_plan_create(c, columns, indexes);
  if collection_create.dry_run then
    return internal.collection_plan_json(statements, false, 0, 10 + 2 * cardinality(statements), '{}');
  end if;
  perform internal.collection_execute(statements);
  update app.collection_indexes x
     set index_name = internal.collection_hashed_name(c.name, 'aside', x.index_name)
   where x.index_name = c.name;
  insert into app.collections select c.*;
  insert into app.collection_columns select n.* from unnest(columns) as n;
  insert into app.collection_indexes select n.* from unnest(indexes) as n;
  perform internal.collection_register(c);
  perform internal.rest_view_follow(c.id);
  perform internal.changed('collection:' || coalesce(internal.project_id()::text, '') || '/' || c.name);
  return internal.collection_json(c);
end $$;
comment on function internal.collection_create is
  'Creates a collection: its table with constraints, indexes, policies, grants and triggers, and its catalog rows. With
   dry_run returns the plan and changes nothing. Refuses 400 VALIDATION_ERROR, RESERVED_NAME, INVALID_POLICY, 409
   CONFLICT, COLLECTION_LIMIT_REACHED. Serialised.';

create or replace function internal.collection_index_aside(name text) returns text[]
language sql stable security definer set search_path = '' as $$
  select coalesce((
    select array[format('alter index collections.%I rename to %I', r.relname,
                        internal.collection_hashed_name(collection_index_aside.name, 'aside', r.relname))]
      from pg_catalog.pg_class r
     where r.oid = to_regclass(format('collections.%I', collection_index_aside.name)) and r.relkind in ('i', 'I')),
       '{}')
$$;
comment on function internal.collection_index_aside is
  'If an index has the name of the new table: the statement that renames the index.';

create or replace function internal.collection_plan_json(statements text[], rewrites_table boolean, rows bigint,
                                                         estimated_ms bigint, warnings text[])
returns json
language sql immutable as $$
  select json_build_object('sql', collection_plan_json.statements,
                           'rewrites_table', collection_plan_json.rewrites_table,
                           'rows', collection_plan_json.rows, 'estimated_ms', collection_plan_json.estimated_ms,
                           'warnings', collection_plan_json.warnings)
$$;
comment on function internal.collection_plan_json is 'The response of a dry run.';
