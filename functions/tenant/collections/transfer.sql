-- Export of whole collections, in batches that the server streams; import of rows, in parts.

create or replace function api.collection_export(name text, after uuid default null,
                                                 include_deleted boolean default false)
returns api.reply
-- volatile: each statement takes its snapshot after it has its locks, not before it waited for them
language plpgsql volatile as $$
declare
  d jsonb;
  lines text[];
  bytes bigint;
  next_cursor uuid;
  version bigint;
  read record;
begin
  for attempt in 1 .. 5 loop
    d := internal.collection_definition(collection_export.name);
    lines := '{}';
    bytes := 0;
    next_cursor := null;
    version := null;
    begin
      -- aliases that no column can have: a column's name takes precedence over a table's
      for read in execute format(
        'select %s as version, p.id, p.line
           from (select 1) as one
           left join (select "_t".id, (select row_to_json("_row")::text from (select %s) as "_row") as line
                        from collections.%I as "_t"
                       where ($1 is null or "_t".id > $1) and ($2 or "_t".deleted_at is null)
                       order by "_t".id limit 500) p on true
          order by p.id',
        internal.collection_version_sql(d), internal.collection_outputs_sql(d, '"_t"', null, null),
        collection_export.name)
        using collection_export.after, collection_export.include_deleted
      loop
        version := read.version;
        exit when read.id is null;
        lines := lines || read.line;
        bytes := bytes + octet_length(read.line);
        if cardinality(lines) = 500 or bytes >= internal.page_bytes() then
          next_cursor := read.id;
          exit;
        end if;
      end loop;
    exception when undefined_table or undefined_column then
      -- the table changed while this waited: compiled again, or found to be dropped
      version := null;
    end;
    if version = (d ->> 'version')::bigint then
      return internal.reply(200, json_build_object('rows', lines, 'next_cursor', next_cursor, 'columns', d -> 'order',
        'types', (select coalesce(json_object_agg(k.key, k.value ->> 'type'), '{}') from jsonb_each(d -> 'columns') as k
                   where not (k.value ->> 'managed')::boolean)));
    end if;
  end loop;
  perform internal.fail(503, 'TENANT_UNAVAILABLE', 'The collection is changing: try again in a moment.', null,
                        '{"Retry-After": "2"}');
end $$;
comment on function api.collection_export is
  'The next rows in the order of their ids, which is that of their creation, as JSON texts: at most 500 and 8 MB.
   next_cursor is null after the last. columns are their names in order, types those of the developer''s columns.
   Refuses 404 COLLECTION_NOT_FOUND.';

create or replace function api.collection_import_begin(name text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.collections := internal.collection_find(collection_import_begin.name);
  import_id uuid;
begin
  perform internal.collection_may_define();
  perform from app.collections k where k.id = c.id for key share;
  if not found then
    -- dropped meanwhile: refused like an unknown collection
    perform internal.collection_find(collection_import_begin.name);
  end if;
  insert into app.collection_imports as i (collection_id) values (c.id) returning i.id into import_id;
  return internal.reply(200, json_build_object('import_id', import_id, 'columns', (
    select coalesce(json_object_agg(k.name, k.type), '{}') from app.collection_columns k
     where k.collection_id = c.id)));
end $$;
comment on function api.collection_import_begin is
  'Begins an import: its id, and the types of the columns. Refuses 404 COLLECTION_NOT_FOUND.';

create or replace function api.collection_import_add(import_id uuid, place int, rows json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.collection_may_define();
  update app.collection_imports i set rows = i.rows + json_array_length(collection_import_add.rows)
    where i.id = collection_import_add.import_id;
  if not found then
    perform internal.fail(404, 'COLLECTION_NOT_FOUND', 'The collection was dropped during the import.');
  end if;
  insert into app.collection_import_parts (import_id, position, rows)
  values (collection_import_add.import_id, collection_import_add.place, collection_import_add.rows);
  return internal.reply(200, 'true');
end $$;
comment on function api.collection_import_add is
  'Stages a part of an import; 404 COLLECTION_NOT_FOUND when the import was deleted with its collection. Locks the
   import.';

create or replace function api.collection_import_drop(import_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.collection_may_define();
  delete from app.collection_imports i where i.id = collection_import_drop.import_id;
  return internal.reply(200, 'true');
end $$;
comment on function api.collection_import_drop is 'Deletes an import with its staged rows.';

create or replace function internal.collection_import_next_part(import_id uuid, out collection app.collections,
                                                                out rows json)
language plpgsql volatile security definer set search_path = '' as $$
declare
  i app.collection_imports;
begin
  perform internal.collection_may_define();
  select k.* into i from app.collection_imports k where k.id = collection_import_next_part.import_id for update;
  if i.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'The import was deleted with its collection, or has expired after 7 days.');
  end if;
  select k.* into collection from app.collections k where k.id = i.collection_id;
  delete from app.collection_import_parts p
   where (p.import_id, p.position) = (
     select f.import_id, f.position from app.collection_import_parts f where f.import_id = i.id order by f.position
      limit 1)
  returning p.rows into rows;
end $$;
comment on function internal.collection_import_next_part is
  'Removes the next part from an import and returns it, null after the last. Refuses 404 NOT_FOUND. Locks the import.';

create or replace function internal.collection_import_finish_part(import_id uuid, inserted int, errors jsonb)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  i app.collection_imports;
begin
  perform internal.collection_may_define();
  update app.collection_imports k
     set inserted = k.inserted + collection_import_finish_part.inserted,
         failed = k.failed + jsonb_array_length(collection_import_finish_part.errors),
         errors = case when jsonb_array_length(k.errors) < 100
                       then (select coalesce(jsonb_agg(e.value order by e.n), '[]')
                               from jsonb_array_elements(k.errors
                                                         || collection_import_finish_part.errors) with ordinality as e (
                                                           value, n)
                              where e.n <= 100)
                       else k.errors end
   where k.id = collection_import_finish_part.import_id
  returning k.* into i;
  return json_build_object('rows', i.rows, 'inserted', i.inserted, 'failed', i.failed, 'errors', i.errors);
end $$;
comment on function internal.collection_import_finish_part is
  'Adds the results of a part to the import; returns the state of the import.';

create or replace function internal.collection_import_rows(c app.collections, rows json, out inserted int,
                                                           out errors jsonb)
language plpgsql volatile as $$
declare
  status int;
  item json;
  message text;
  detail json;
begin
  errors := '[]';
  -- in one statement, unless a row omits a column that has a default
  if not exists (
    select from app.collection_columns k, json_array_elements(collection_import_rows.rows) as e (item)
     where k.collection_id = (collection_import_rows.c).id and k.default_value is not null
       and e.item -> 'row' -> k.name is null
  ) then
    begin
      select r.status into status
        from internal.collection_run('batch', (collection_import_rows.c).name, json_build_object('rows', (
          select json_agg(e.item -> 'row' order by e.n)
            from json_array_elements(collection_import_rows.rows) with ordinality as e (item, n)))) r;
      if status = 201 then
        inserted := json_array_length(collection_import_rows.rows);
        return;
      end if;
    exception when sqlstate 'TR000' or integrity_constraint_violation or data_exception or program_limit_exceeded then
      -- at least one is invalid: insert one by one to find it
      null;
    end;
  end if;

  inserted := 0;
  for item in select e.item from json_array_elements(collection_import_rows.rows) with ordinality as e (item, n)
    order by e.n loop
    begin
      perform internal.collection_operation(json_build_object('op', 'insert',
                                                              'collection', (collection_import_rows.c).name,
                                                                'data', item -> 'row'), null);
      inserted := inserted + 1;
    exception when sqlstate 'TR000' then
      get stacked diagnostics message = message_text, detail = pg_exception_detail;
      errors := errors || jsonb_build_object('line', (item ->> 'line')::bigint, 'code', detail ->> 'code', 'message',
                                             message);
    end;
  end loop;
end $$;
comment on function internal.collection_import_rows is
  'Inserts rows [{line, row}] that are valid: all in one statement, or one by one if any is invalid. Returns how many,
   and the errors of the others.';

create or replace function api.collection_import_part(import_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  part record;
  inserted int := 0;
  errors jsonb := '[]';
begin
  select p.* into part from internal.collection_import_next_part(collection_import_part.import_id) p;
  if part.rows is not null then
    select r.inserted, r.errors into inserted, errors
      from internal.collection_import_rows(part.collection, part.rows) r;
  end if;
  return internal.reply(200, internal.json_merge(
    json_build_object('is_over', part.rows is null),
    internal.collection_import_finish_part(collection_import_part.import_id, inserted, errors)));
end $$;
comment on function api.collection_import_part is
  'For the job of an import: inserts the next part and removes it, in one transaction, so that the job is idempotent.
   Refuses 404 NOT_FOUND. Locks the import.';
