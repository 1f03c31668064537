-- Compiling writes: inserts of one row and of many, upserts, changes, soft deletion and restoring. Policies decide who
-- may write; a statement that wrote nothing returns status 0, and internal.collection_explain finds the reason.

create or replace function internal.collection_data_columns(definition jsonb, data jsonb, place text) returns jsonb
language plpgsql stable as $$
declare
  columns jsonb := '[]';
  key text;
  col jsonb;
  problem text;
begin
  for key in select k.key from jsonb_object_keys(collection_data_columns.data) as k (key) loop
    if key = 'idempotency_key' and not collection_data_columns.definition -> 'columns' ? key then
      continue;
    end if;
    col := internal.collection_column(collection_data_columns.definition, key,
                                      concat_ws('.', nullif(collection_data_columns.place, ''), key));
    if (col ->> 'managed')::boolean and not (key in ('user_id', 'group_id')
                                             and current_setting('role') in ('app_server', 'app_admin')) then
      continue;
    end if;
    if collection_data_columns.data -> key <> 'null' then
      problem := internal.collection_value_problem(col ->> 'type', collection_data_columns.data -> key);
      if problem is not null then
        perform internal.collection_refuse_column(key, problem, collection_data_columns.place);
      end if;
    end if;
    columns := columns || jsonb_build_array(col);
  end loop;
  return columns;
end $$;
comment on function internal.collection_data_columns is
  'The columns that a map of values writes: server-managed ones are ignored, except those that a server key may set.
   Refuses 400 INVALID_COLUMN, INVALID_BODY with details.column.';

create or replace function internal.collection_refuse_column(name text, reason text, place text default '') returns void
language sql volatile
return internal.fail(400, 'INVALID_BODY', collection_refuse_column.name || ': ' || collection_refuse_column.reason,
                     json_strip_nulls(json_build_object('column', collection_refuse_column.name,
                                                        'reason', collection_refuse_column.reason,
                                                        'row', nullif(collection_refuse_column.place, ''))));
comment on function internal.collection_refuse_column is
  'Refuses a value: 400 INVALID_BODY with details {column, reason}, and the index of the row in a batch.';

create or replace function internal.collection_record_sql(columns jsonb) returns text
language sql immutable parallel safe as $$
  select string_agg(format('%I %s', c.value ->> 'name', c.value ->> 'sql'), ', ' order by c.n)
    from jsonb_array_elements(collection_record_sql.columns) with ordinality as c (value, n)
$$;
comment on function internal.collection_record_sql is 'Columns with their types, as json_to_record takes them.';

create or replace function internal.collection_patterns(columns jsonb) returns jsonb
language sql stable as $$
  select coalesce(jsonb_object_agg(c.value ->> 'name', jsonb_build_object('pattern', t.pattern)), '{}')
    from jsonb_array_elements(collection_patterns.columns) as c (value)
   cross join lateral internal.collection_type(rtrim(c.value ->> 'type', '[]')) t
   where t.pattern is not null
$$;
comment on function internal.collection_patterns is
  'The patterns that the server checks values against before it sends them; a value that does not match is explained
   instead.';

create or replace function internal.collection_gate_sql(definition jsonb, request jsonb, inout params jsonb,
                                                        out sql text)
language plpgsql stable as $$
declare
  in_group text;
begin
  select g.params, g.sql into params, in_group
    from internal.collection_group_sql(collection_gate_sql.definition, collection_gate_sql.request, true,
                                       collection_gate_sql.params) g;
  sql := concat_ws(' and ', format('%s = %s', internal.collection_version_sql(collection_gate_sql.definition),
                                   collection_gate_sql.definition ->> 'version'),
                   in_group);
end $$;
comment on function internal.collection_gate_sql is
  'The precondition of every write: the definition is still the compiled one, and the group may be used.';

create or replace function internal.collection_readable_sql(columns jsonb, records text) returns text
language sql immutable parallel safe as $$
  -- evaluated once, before the first row: a writer cannot refer to rows that they may not read
  select string_agg(format(' and not exists (select from %1$s where q.%2$I is not null and not exists (select from '
                           'collections.%3$I x where x.id = q.%2$I and x.deleted_at is null))',
                           collection_readable_sql.records, c.value ->> 'name', c.value ->> 'references'), '')
    from jsonb_array_elements(collection_readable_sql.columns) as c (value)
   where c.value ->> 'references' is not null
$$;
comment on function internal.collection_readable_sql is
  'The condition that the writer can read every row that the written rows refer to. records returns the written values
   as q.';

create or replace function internal.collection_answer_sql(definition jsonb, source text, status text, kept text)
returns text
language sql stable as $$
  select format('with %s, answer as (select * from made)%s ', collection_answer_sql.source, collection_answer_sql.kept)
      || internal.collection_statement_sql(
           collection_answer_sql.definition, 'coalesce(r.status, 0)', 'coalesce(r.body, ''{}'')', 'r.headers',
           format('(select 1) one left join lateral (select %s as status, ''{"data":'' || row_to_json("_row")::text '
                  '|| ''}'' as body, json_build_object(''ETag'', internal.etag(t.updated_at))::text as headers from '
                  'answer t cross join lateral (select %s) "_row") r on true',
                  collection_answer_sql.status, internal.collection_outputs_sql(collection_answer_sql.definition, 't',
                                        null, null)),
           writes => true)
$$;
comment on function internal.collection_answer_sql is
  'A statement whose CTE made writes one row, and that returns the row with its ETag; status 0 when none was written.';

create or replace function internal.collection_key_sql(definition jsonb, request jsonb, inout params jsonb,
                                                       out sql text)
language plpgsql stable as $$
declare
  path jsonb;
  key text;
begin
  path := case
    when collection_key_sql.request ->> 'key' is not null then '["key"]'
    when collection_key_sql.request -> 'data' -> 'idempotency_key' is not null
      and not collection_key_sql.definition -> 'columns' ? 'idempotency_key'
    then '["data", "idempotency_key"]'
  end;
  sql := '';
  if path is null then
    return;
  end if;
  if jsonb_typeof(collection_key_sql.request #> array(select jsonb_array_elements_text(path))) <> 'string'
     or collection_key_sql.request #>> array(select jsonb_array_elements_text(path)) !~ '^[ -~]{1,255}$' then
    perform internal.fail(400, 'INVALID_BODY', 'idempotency_key: must be 1 to 255 printable ASCII characters',
                          '{"path": "idempotency_key", "reason": "must be 1 to 255 printable ASCII characters"}');
  end if;
  select p.params, p.sql into params, key
    from internal.collection_param(collection_key_sql.params, path, 'text',
                                   '{"pattern": "^[ -~]{1,255}$", "column": "idempotency_key"}') p;
  sql := format(', kept as (insert into app.collection_keys (collection_id, caller, key, row_id) select %L::uuid, '
                '(select internal.idempotency_caller()), %s, t.id from answer t)',
                collection_key_sql.definition ->> 'id', key);
end $$;
comment on function internal.collection_key_sql is
  'Stores the row''s id under the Idempotency-Key: a key that was used before violates its primary key, and nothing is
   written.';

create or replace function internal.collection_owner_sql(definition jsonb, request jsonb, data_columns jsonb,
                                                         inout params jsonb, out names text, out vals text)
language plpgsql stable as $$
declare
  is_user constant boolean := current_setting('role') not in ('app_server', 'app_admin');
  owning text;
begin
  if collection_owner_sql.definition ->> 'scope' = 'group' then
    if collection_owner_sql.data_columns @> '[{"name": "group_id"}]' then
      return;
    end if;
    if collection_owner_sql.request ->> 'group' is null then
      perform internal.fail(400, 'GROUP_CONTEXT_REQUIRED',
                            'Send the header X-Group-Context with the group that the row belongs to.');
    end if;
    select p.params, p.sql into params, owning
      from internal.collection_param(collection_owner_sql.params, '["group"]', 'uuid', '{}') p;
    names := 'group_id';
    vals := owning;
  elsif not is_user and not collection_owner_sql.data_columns @> '[{"name": "user_id"}]' then
    perform internal.collection_refuse_column('user_id', 'is required: say whose the row is');
  end if;
end $$;
comment on function internal.collection_owner_sql is
  'The owner of a new row: the user by default, the group of X-Group-Context, or the owner that a server key sets.
   Refuses 400 GROUP_CONTEXT_REQUIRED.';

create or replace function internal.collection_insert_sql(definition jsonb, request jsonb, inout params jsonb,
                                                          out sql text, out patterns jsonb)
language plpgsql stable as $$
declare
  d constant jsonb := collection_insert_sql.definition;
  data constant jsonb := collection_insert_sql.request -> 'data';
  conflict constant text := coalesce(collection_insert_sql.request ->> 'on_conflict', 'error');
  columns jsonb;
  gate text;
  owner_name text;
  owner_value text;
  body text;
  record text := '(select 1) r';
  met text := '%s';
  kept text;
  conflict_sql jsonb;
begin
  columns := internal.collection_data_columns(d, data, '');
  select o.params, o.names, o.vals into params, owner_name, owner_value
    from internal.collection_owner_sql(d, collection_insert_sql.request, columns, collection_insert_sql.params) o;
  select g.params, g.sql into params, gate from internal.collection_gate_sql(d, collection_insert_sql.request,
                                        params) g;
  select k.params, k.sql into params, kept from internal.collection_key_sql(d, collection_insert_sql.request, params) k;
  conflict_sql := internal.collection_conflict_sql(d, collection_insert_sql.request, columns, owner_value);
  patterns := jsonb_build_object('at', 'data', 'columns', internal.collection_patterns(columns));
  if collection_insert_sql.request ->> 'row_id' is not null then
    -- a push of sync names the row that it makes
    select p.params, p.sql into params, body from internal.collection_param(params, '["row_id"]', 'uuid', '{}') p;
    owner_name := concat_ws(', ', owner_name, 'id');
    owner_value := concat_ws(', ', owner_value, body);
  end if;

  if jsonb_array_length(columns) > 0 then
    select p.params, p.sql into params, body from internal.collection_param(params, '["data"]', 'json', '{}') p;
    body := format('json_to_record(%s)', body);
    record := format('%s as r (%s)', body, internal.collection_record_sql(columns));
  end if;
  if jsonb_array_length(columns) = 0 and owner_name is null then
    if current_setting('role') = 'app_user'
       and not exists (select from jsonb_each(d -> 'columns') as c (name, value)
                        where not (c.value ->> 'managed')::boolean) then
      -- users may write only the developer's columns, and there are none
      perform internal.collection_refuse('data', 'cannot be inserted into a collection without columns');
    end if;
    -- an insert without columns cannot have a condition: if the version is stale, the statement is undone instead
    sql := format('insert into collections.%I as t default values', d ->> 'name');
    met := format('case when internal.collection_expect(%s, %s) then %%s end', internal.collection_version_sql(d),
                  d ->> 'version');
  else
    sql := format('insert into collections.%I as t (%s) select %s from %s where %s',
                  d ->> 'name',
                  concat_ws(', ', owner_name, (select string_agg(quote_ident(c.value ->> 'name'), ', ' order by c.n)
                                                 from jsonb_array_elements(columns) with ordinality as c (value, n))),
                  concat_ws(', ', owner_value, (select string_agg(format('r.%I', c.value ->> 'name'), ', ' order by c.n)
                                                  from jsonb_array_elements(columns) with ordinality as c (value, n))),
                  record,
                  gate || coalesce(internal.collection_readable_sql(
                    columns, format('%s as q (%s)', body, internal.collection_record_sql(columns))), ''));
  end if;
  if conflict = 'error' then
    sql := internal.collection_answer_sql(d, format('made as (%s returning t.*)', sql), format(met, '201'), kept);
  elsif conflict = 'update' then
    sql := internal.collection_answer_sql(
      d, format('made as (%s on conflict %s do update set %s where %s returning t.*, t.xmax = 0 as "$new")', sql,
                conflict_sql ->> 'target',
                conflict_sql ->> 'set', conflict_sql ->> 'mine'),
      format(met, 'case when t."$new" then 201 else 200 end'), kept);
  else
    sql := internal.collection_answer_sql(
      d, format('inserted as (%1$s on conflict %2$s do nothing returning t.*), made as (select i.*, true as "$new" '
                'from inserted i union all select t.*, false from %3$s t, %4$s where not exists (select from inserted) '
                'and %5$s)',
                sql, conflict_sql ->> 'target', conflict_sql ->> 'rows', record, conflict_sql ->> 'same'),
      format(met, 'case when t."$new" then 201 else 200 end'), kept);
  end if;
end $$;
comment on function internal.collection_insert_sql is
  'Inserts one row. Refuses 400 INVALID_COLUMN, INVALID_BODY, INVALID_CONFLICT_TARGET, GROUP_CONTEXT_REQUIRED; and as
   the constraints of the table.';

create or replace function internal.collection_expect(met bigint, compiled bigint) returns boolean
language plpgsql volatile as $$
begin
  if collection_expect.met is distinct from collection_expect.compiled then
    raise exception using errcode = 'TR001', message = 'the collection has changed';
  end if;
  return true;
end $$;
comment on function internal.collection_expect is
  'Raises, which undoes a statement that was compiled for another version of the definition.';

create or replace function internal.collection_unique_index(collection text, columns text[]) returns text
language sql stable security definer set search_path = '' as $$
  select coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), 'true')
    from pg_catalog.pg_index i
   where i.indrelid = to_regclass(format('collections.%I', collection_unique_index.collection))
     and i.indisunique and i.indisvalid and i.indexprs is null
     and (select array_agg(a.attname::text order by a.attname)
            from pg_catalog.pg_attribute a
           where a.attrelid = i.indrelid and a.attnum = any (i.indkey::int2[])) = collection_unique_index.columns
   -- an index that covers more rows is preferred
   order by length(coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), ''))
   limit 1
$$;
comment on function internal.collection_unique_index is
  'The condition of the unique index on exactly these columns, sorted by name; null when there is none.';

create or replace function internal.collection_conflict_sql(definition jsonb, request jsonb, data_columns jsonb,
                                                            owning text)
returns jsonb
language plpgsql stable as $$
declare
  d constant jsonb := collection_conflict_sql.definition;
  is_user constant boolean := current_setting('role') not in ('app_server', 'app_admin');
  target constant jsonb := coalesce(nullif(collection_conflict_sql.request -> 'conflict_target', 'null'), '[]');
  col text;
  columns text[];
  predicate text;
begin
  if coalesce(collection_conflict_sql.request ->> 'on_conflict', 'error') = 'error' then
    return null;
  end if;
  if jsonb_array_length(target) = 0 then
    perform internal.fail(400, 'INVALID_CONFLICT_TARGET', 'conflict_target is required with on_conflict.',
                          '{"path": "conflict_target"}');
  end if;
  for col in select e.value from jsonb_array_elements_text(target) as e (value) loop
    if not (collection_conflict_sql.data_columns @> jsonb_build_array(jsonb_build_object('name', col))
            or col = 'user_id' and is_user or col = 'group_id' and d ->> 'scope' = 'group') then
      perform internal.fail(400, 'INVALID_CONFLICT_TARGET',
                            format('conflict_target: %s is not in the row.', left(col, 100)),
                            json_build_object('path', 'conflict_target', 'column', col));
    end if;
  end loop;
  columns := array(select distinct e.value from jsonb_array_elements_text(target) as e (value) order by e.value);
  predicate := internal.collection_unique_index(d ->> 'name', columns);
  if predicate is null then
    perform internal.fail(400, 'INVALID_CONFLICT_TARGET', 'conflict_target: no unique index has exactly these columns.',
                          json_build_object('path', 'conflict_target', 'columns', columns));
  end if;
  return jsonb_build_object(
    'target', format('(%s) where %s', (select string_agg(quote_ident(c.name), ', ') from unnest(columns) as c (name)),
                     predicate),
    -- never a row of another user, whatever the write policy says
    'mine', concat_ws(' and ', case when is_user then 't.user_id = (select internal.user_id())'
                                    else 't.user_id is not distinct from excluded.user_id' end,
                      case when d ->> 'scope' = 'group' then 't.group_id = excluded.group_id' end),
    'set', coalesce((select string_agg(format('%1$I = excluded.%1$I', c.value ->> 'name'), ', ')
                       from jsonb_array_elements(collection_conflict_sql.data_columns) as c (value)
                      where not (c.value ->> 'managed')::boolean),
                    'deleted_at = t.deleted_at'),
    -- the one row that mine allows an update of
    'same', concat_ws(' and ', 't.deleted_at is null',
                      case when is_user then 't.user_id = (select internal.user_id())'
                           when collection_conflict_sql.data_columns @> '[{"name": "user_id"}]' then
                             't.user_id is not distinct from r.user_id'
                           else 't.user_id is null' end,
                      case when d ->> 'scope' = 'group' then 't.group_id = ' || coalesce(collection_conflict_sql.owning,
                                        'r.group_id') end,
                      (select string_agg(format('t.%1$I = r.%1$I', c.name), ' and ')
                         from unnest(columns) as c (name) where c.name not in ('user_id', 'group_id'))),
    -- among the rows that the index covers; its columns are unqualified
    'rows', format('(select * from collections.%I where %s)', d ->> 'name', predicate));
end $$;
comment on function internal.collection_conflict_sql is
  'The clauses of an upsert: the index of its conflict target, its assignments, and the owner of the row that it may
   update. owning is the group of X-Group-Context as SQL, null when the row names its group. Refuses 400
   INVALID_CONFLICT_TARGET.';

create or replace function internal.collection_batch_sql(definition jsonb, request jsonb, inout params jsonb,
                                                         out sql text, out patterns jsonb)
language plpgsql stable as $$
declare
  d constant jsonb := collection_batch_sql.definition;
  rows constant jsonb := collection_batch_sql.request -> 'rows';
  is_user constant boolean := current_setting('role') not in ('app_server', 'app_admin');
  columns jsonb := '[]';
  gate text;
  owner_name text;
  owner_value text;
  body text;
begin
  if jsonb_array_length(rows) = 0 and collection_batch_sql.request ->> 'group' is null then
    -- no rows need no owner
    params := collection_batch_sql.params;
    sql := internal.collection_statement_sql(d, '201', '''{"data":[]}''', 'null', '(select 1) one');
    return;
  end if;
  for n in 0 .. jsonb_array_length(rows) - 1 loop
    if jsonb_typeof(rows -> n) <> 'object' then
      perform internal.collection_refuse(format('rows[%s]', n), 'must be an object');
    end if;
    perform internal.collection_data_columns(d, rows -> n, format('rows[%s]', n));
  end loop;
  -- all columns: a value that a row omits is null, even if the column has a default
  select coalesce(jsonb_agg(d -> 'columns' -> o.name order by o.n), '[]') into columns
    from jsonb_array_elements_text(d -> 'order') with ordinality as o (name, n)
   where case when (collection_batch_sql.request ->> 'keyed')::boolean
              -- a push of sync: rows with the same keys, whose other columns get their defaults, under their own ids
              then o.name = 'id' or rows -> 0 ? o.name and not (d -> 'columns' -> o.name ->> 'managed')::boolean
              else not (d -> 'columns' -> o.name ->> 'managed')::boolean end
      or not is_user and (o.name = 'user_id' or o.name = 'group_id'
                          and collection_batch_sql.request ->> 'group' is null);
  if is_user or not columns @> '[{"name": "group_id"}]' then
    select o.params, o.names, o.vals into params, owner_name, owner_value
      from internal.collection_owner_sql(d, collection_batch_sql.request, columns, collection_batch_sql.params) o;
  end if;
  select g.params, g.sql into params, gate from internal.collection_gate_sql(d, collection_batch_sql.request, params) g;
  patterns := jsonb_build_object('at', 'rows', 'columns', internal.collection_patterns(columns));
  select p.params, p.sql into params, body from internal.collection_param(params, '["rows"]', 'json', '{}') p;
  if jsonb_array_length(columns) = 0 and owner_name is null then
    perform internal.collection_refuse('rows', 'cannot be inserted many at once into a collection without columns');
  end if;
  sql := format('with made as (insert into collections.%I as t (%s) select %s from %s where %s returning t.*) ',
                d ->> 'name',
                concat_ws(', ', owner_name, (select string_agg(quote_ident(c.value ->> 'name'), ', ' order by c.n)
                                               from jsonb_array_elements(columns) with ordinality as c (value, n))),
                concat_ws(', ', owner_value, (select string_agg(format('r.%I', c.value ->> 'name'), ', ' order by c.n)
                                                from jsonb_array_elements(columns) with ordinality as c (value, n))),
                case when jsonb_array_length(columns) = 0 then format('json_array_elements(%s) r', body)
                     else format('json_to_recordset(%s) as r (%s)', body, internal.collection_record_sql(columns)) end,
                gate || coalesce(internal.collection_readable_sql(
                  columns, format('json_to_recordset(%s) as q (%s)', body, internal.collection_record_sql(columns))),
                    ''))
      || internal.collection_statement_sql(
           d, format('case when count(*) = json_array_length(%s) then 201 else 0 end', body),
           case when (collection_batch_sql.request ->> 'keyed')::boolean then 'array_agg(p.j)'
                else '''{"data":'' || coalesce(json_agg(p.j)::text, ''[]'') || ''}''' end, 'null',
           format('(select row_to_json("_row") as j from made t cross join lateral (select %s) "_row") p',
                  internal.collection_outputs_sql(d, 't', null, null)), writes => true);
end $$;
comment on function internal.collection_batch_sql is
  'Inserts many rows, all or none, in one statement whatever their number and shape. keyed is for a push of sync: rows
   of the same columns under ids of their own, and the second result is the rows as json[]. Refuses as
   internal.collection_insert_sql.';

create or replace function internal.collection_delete_sql(definition jsonb, request jsonb, inout params jsonb,
                                                          out sql text)
language plpgsql stable as $$
declare
  d constant jsonb := collection_delete_sql.definition;
  is_hard constant boolean := coalesce((collection_delete_sql.request ->> 'hard')::boolean, false);
  wanted_version constant text := collection_delete_sql.request ->> 'if_match';
  conditions text;
  id text;
begin
  select c.params, c.sql into params, conditions
    from internal.collection_target_sql(d, collection_delete_sql.request, collection_delete_sql.params) c;
  select p.params, p.sql into params, id from internal.collection_param(params, '["id"]', 'uuid', '{}') p;
  if wanted_version is not null then
    select m.params, concat_ws(' and ', conditions, m.sql) into params, conditions
      from internal.collection_match_sql(params) m;
  end if;
  sql := format(
    case when is_hard
           then 'with made as (delete from collections.%1$I t where t.id = %2$s and %3$s and (select '
                'internal.collection_row_may_go(%1$L, %2$s)) returning t.id) '
         else 'with made as (update collections.%I t set deleted_at = internal.now() where t.id = %s and t.deleted_at '
              'is null and %s returning t.id) ' end,
    d ->> 'name', id, conditions)
    || internal.collection_statement_sql(d, 'case when m.id is null then 0 else 200 end',
                                         'coalesce(''{"data":{"id":"'' || m.id || ''","deleted":true}}'', ''{}'')',
                                         'null',
                                         '(select 1) one left join made m on true', writes => true);
end $$;
comment on function internal.collection_delete_sql is
  'Soft-deletes a row, if it has the version that If-Match names, or with hard, for administrators only, deletes it,
   unless a restrict reference prevents it.';

create or replace function internal.collection_restore_sql(definition jsonb, request jsonb, inout params jsonb,
                                                           out sql text)
language plpgsql stable as $$
declare
  d constant jsonb := collection_restore_sql.definition;
  conditions text;
  id text;
begin
  select c.params, c.sql into params, conditions
    from internal.collection_target_sql(d, collection_restore_sql.request, collection_restore_sql.params) c;
  select p.params, p.sql into params, id from internal.collection_param(params, '["id"]', 'uuid', '{}') p;
  sql := internal.collection_answer_sql(
    d, format('restored as (update collections.%1$I t set deleted_at = null where t.id = %2$s and t.deleted_at > '
              'internal.now() - interval ''30 days'' and %3$s returning t.*), made as (select t.* from restored t '
              'union all select t.* from collections.%1$I t where t.id = %2$s and t.deleted_at is null and %3$s and '
              '(%4$s))',
              d ->> 'name', id, conditions, internal.collection_write_condition_of(d)), '200', '');
end $$;
comment on function internal.collection_restore_sql is
  'Undoes a soft deletion of the last 30 days; a row that is not deleted is returned unchanged.';

create or replace function internal.collection_target_sql(definition jsonb, request jsonb, inout params jsonb,
                                                          out sql text)
language plpgsql stable as $$
declare
  gate text;
  in_group text;
begin
  select g.params, g.sql into params, gate
    from internal.collection_group_sql(collection_target_sql.definition, collection_target_sql.request, false,
                                       collection_target_sql.params) g;
  if gate is not null then
    select p.params, format('t.group_id = %s', p.sql) into params, in_group
      from internal.collection_param(params, '["group"]', 'uuid', '{}') p;
  end if;
  sql := concat_ws(' and ', format('%s = %s', internal.collection_version_sql(collection_target_sql.definition),
                                   collection_target_sql.definition ->> 'version'),
                   gate, in_group);
end $$;
comment on function internal.collection_target_sql is
  'The condition on a row that is written by its id, in addition to its policies.';
