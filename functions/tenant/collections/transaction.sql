-- Transactions of several writes. Each is compiled and run inside one call; the first failure rolls all back, with its
-- own error code.

create or replace function internal.collection_resolve(value json, results jsonb) returns json
language plpgsql stable as $$
declare
  reference text;
  parts text[];
begin
  if json_typeof(collection_resolve.value) = 'object' then
    reference := collection_resolve.value ->> '$ref';
    if reference is not null and (select count(*) = 1 from json_object_keys(collection_resolve.value)) then
      parts := string_to_array(reference, '.');
      if cardinality(parts) <> 2 or collection_resolve.results -> parts[1] -> parts[2] is null then
        perform internal.collection_refuse('$ref',
                                           format('%s names no result of an earlier operation', left(reference, 200)));
      end if;
      return (collection_resolve.results -> parts[1] -> parts[2])::json;
    end if;
    return coalesce((select json_object_agg(f.key, internal.collection_resolve(f.value, collection_resolve.results))
                       from json_each(collection_resolve.value) as f (key, value)), '{}');
  end if;
  if json_typeof(collection_resolve.value) = 'array' then
    return coalesce((select json_agg(internal.collection_resolve(e.value, collection_resolve.results) order by e.n)
                       from json_array_elements(collection_resolve.value) with ordinality as e (value, n)), '[]');
  end if;
  return collection_resolve.value;
end $$;
comment on function internal.collection_resolve is
  'A value with each {"$ref": "name.column"} replaced by the value from an earlier operation''s result. Refuses 400
   INVALID_BODY.';

create or replace function internal.collection_operation(operation json, group_id text) returns json
language plpgsql volatile as $$
declare
  op constant text := collection_operation.operation ->> 'op';
  kind constant text := case op when 'insert' then 'insert' when 'upsert' then 'insert' when 'update' then 'patch'
                             else 'delete' end;
  collection constant text := collection_operation.operation ->> 'collection';
  data json := coalesce(collection_operation.operation -> 'data', '{}');
  request json;
  status int;
  body text;
  version bigint;
  explained api.reply;
  state text;
  broken text;
  col text;
  message text;
begin
  if kind in ('patch', 'delete') and internal.as_uuid(collection_operation.operation ->> 'id') is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such row.');
  end if;
  if collection_operation.operation -> '$if' is not null then
    if kind = 'insert' then
      perform internal.collection_refuse('$if', 'is for update and delete');
    elsif kind = 'delete' then
      -- the row was locked at the beginning, or was written by this transaction: the check holds until the deletion
      perform internal.collection_operation(json_build_object(
        'op', 'update', 'collection', collection, 'id', collection_operation.operation ->> 'id',
          '$if', collection_operation.operation -> '$if'), collection_operation.group_id);
    end if;
  end if;
  if kind = 'patch' and json_typeof(collection_operation.operation -> '$if') = 'object' then
    data := internal.json_merge(data, json_build_object('$if', collection_operation.operation -> '$if'));
  end if;
  request := json_strip_nulls(json_build_object(
    'id', collection_operation.operation ->> 'id', 'group', collection_operation.group_id,
    'on_conflict', case op when 'upsert' then 'update' end,
    'conflict_target', case op when 'upsert' then collection_operation.operation -> 'conflict_target' end));
  -- nulls are not stripped: a null in the data is a value
  request := internal.json_merge(request, json_build_object('data', data));
  for attempt in 1 .. 3 loop
    begin
      version := (internal.collection_definition(collection) ->> 'version')::bigint;
      select r.status, r.body into status, body from internal.collection_run(kind, collection, request) r;
      explained := null;
      if status > 0 then
        return body::json -> 'data';
      end if;
    exception
      when sqlstate 'TR000' or query_canceled or deadlock_detected or serialization_failure or lock_not_available then
        raise;
      when others then
        get stacked diagnostics state = returned_sqlstate, broken = constraint_name, col = column_name,
          message = message_text;
        status := -1;
    end;
    explained := internal.collection_explain(kind, collection, request, version, case when status = -1 then
      json_build_object('code', state, 'constraint', nullif(broken, ''), 'column', nullif(col, '')) end);
    -- the row that an idempotency_key in the data created before
    if explained.status > 0 then
      return explained.body -> 'data';
    end if;
    exit when explained is null;
  end loop;
  if state is null then
    perform internal.fail(503, 'TENANT_UNAVAILABLE', 'The collection is changing: try again in a moment.', null,
                          '{"Retry-After": "2"}');
  end if;
  raise exception 'a write in a transaction failed: % %', state, message;
end $$;
comment on function internal.collection_operation is
  'One operation of a transaction; returns its data. Refuses as the operation alone does.';

create or replace function internal.collection_lock_owners(operations json) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.users u
    where u.id in (select coalesce(internal.user_id(), internal.as_uuid(o.value -> 'data' ->> 'user_id'))
                     from json_array_elements(collection_lock_owners.operations) as o (value)
                    where o.value ->> 'op' in ('insert', 'upsert'))
    order by u.id
      for key share;
end $$;
comment on function internal.collection_lock_owners is
  'Locks the users whose rows a transaction adds, against deletion and before any row, because a deletion also locks the
   user first.';

create or replace function internal.collection_lock_ids(collection text, ids uuid[]) returns uuid[]
language plpgsql volatile as $$
declare
  locked uuid[];
begin
  -- one look-up by the key for each: of many ids at once the planner may walk another index that has the id
  execute format('select array(select t.id from (select distinct u.id from unnest($1) as u (id) order by u.id) i '
                 'cross join lateral (select k.id from collections.%I k where k.id = i.id for update) t)',
                 collection_lock_ids.collection) into locked using collection_lock_ids.ids;
  return locked;
exception when undefined_table then
  -- dropped while this waited: the operation will refuse it
  return '{}';
end $$;
comment on function internal.collection_lock_ids is
  'Locks rows in the order of their ids, and returns the ids of those that are there; none of a collection that is
   dropped meanwhile.';

create or replace function internal.collection_lock_rows(operations json) returns void
language plpgsql volatile as $$
declare
  target record;
begin
  -- in one order, whatever the order of the operations, so that crossing transactions wait instead of deadlocking
  for target in
    select c.name, array_agg(internal.as_uuid(o.value ->> 'id')) as ids
      from json_array_elements(collection_lock_rows.operations) as o (value)
      join app.collections c on c.name = o.value ->> 'collection'
     where json_typeof(o.value -> 'id') = 'string'
     group by c.name
     order by c.name
  loop
    perform internal.collection_lock_ids(target.name, target.ids);
  end loop;
end $$;
comment on function internal.collection_lock_rows is
  'Locks the rows that a transaction names by their ids, ordered by collection and id; none of a collection that is
   dropped meanwhile.';

create or replace function internal.collection_lock_values(operations json, group_id text) returns void
language plpgsql volatile as $$
declare
  key bigint;
begin
  for key in
    select distinct hashtextextended(c.id || v.vals::text, 0) as key
      from json_array_elements(collection_lock_values.operations) as o (value)
      join app.collections c on c.name = o.value ->> 'collection'
     cross join lateral (select array[k.name] from app.collection_columns k where k.collection_id = c.id and k.is_unique
                         union all
                         select i.columns from app.collection_indexes i
                          where i.collection_id = c.id and i.is_unique) as u (columns)
     cross join lateral (
       select jsonb_object_agg(n.name, case n.name
                                            when 'user_id' then coalesce(internal.user_id()::text,
                                                                         o.value -> 'data' ->> n.name)
                                                   when 'group_id' then coalesce(collection_lock_values.group_id,
                                                     o.value -> 'data' ->> n.name)
                                                   else o.value -> 'data' ->> n.name end) as vals
         from unnest(u.columns) as n (name)) as v
     where o.value ->> 'op' in ('insert', 'upsert')
       -- nulls are distinct
       and not exists (select from jsonb_each(v.vals) as e where e.value = 'null')
     order by key
  loop
    perform internal.advisory_lock_value(key);
  end loop;
end $$;
comment on function internal.collection_lock_values is
  'Locks the unique values that a transaction is about to write, in one order, because there may be no row yet to lock.
   Transactions that write the same values in crossing orders wait instead of deadlocking.';

create or replace function api.collection_transaction(operations json, group_id text default null) returns api.reply
language plpgsql volatile as $$
declare
  operation json;
  n int;
  result json;
  results json[] := '{}';
  named jsonb := '{}';
  message text;
  detail json;
begin
  if json_array_length(collection_transaction.operations) > 1 then
    perform internal.collection_lock_owners(collection_transaction.operations);
    perform internal.collection_lock_values(collection_transaction.operations, collection_transaction.group_id);
  end if;
  perform internal.collection_lock_rows(collection_transaction.operations);
  for operation, n in select e.value, e.n - 1
    from json_array_elements(collection_transaction.operations) with ordinality as e (value, n) loop
    begin
      result := internal.collection_operation(internal.collection_resolve(operation, named),
                                              collection_transaction.group_id);
    exception when sqlstate 'TR000' then
      get stacked diagnostics message = message_text, detail = pg_exception_detail;
      perform internal.fail((detail ->> 'status')::int, detail ->> 'code', message,
                            (coalesce(nullif((detail -> 'details')::jsonb, 'null'), '{}') || jsonb_build_object('index',
                                        n))::json);
    end;
    results := results || result;
    if operation ->> 'as' is not null then
      named := named || jsonb_build_object(operation ->> 'as', result::jsonb);
    end if;
  end loop;
  return internal.reply(200, coalesce(array_to_json(results), '[]'));
end $$;
comment on function api.collection_transaction is
  'Writes several rows and collections, all or none; returns the results in order. Refuses as the first operation that
   fails, with details.index. Lock order: the users whose rows it adds, the unique values that it writes, the rows that
   it names, each in one order.';
