-- Pushes: each mutation alone, or with those of the same tx, in a savepoint of its own. A mutation is the write that
-- the routes of rows make, compiled as theirs and refused with their codes.

create or replace function internal.sync_push_begin(client_id uuid, ids uuid[], out client bigint, out known jsonb)
language plpgsql volatile security definer set search_path = '' as $$
declare
  caller constant uuid := internal.user_id();
begin
  -- pushes of one client come one after the other: what an equal one has applied is seen
  client := (internal.sync_client(sync_push_begin.client_id)).id;
  select coalesce(jsonb_object_agg(m.id, jsonb_build_object(
           'status', m.status, 'row', m.row_json::text, 'code', m.code, 'message', m.message)), '{}')
    into known
    from app.sync_mutations m
   where m.app_user_id = caller and m.client_id = sync_push_begin.client_id and m.id = any (sync_push_begin.ids);
  update app.sync_checkpoints c set last_push_at = internal.now(), used_at = internal.now() where c.id = client;
end $$;
comment on function internal.sync_push_begin is
  'Begins a push of the caller''s client: its number in the log, and the results of mutations that were pushed before.
   Refuses 404 USER_NOT_FOUND. Locks the client.';

create or replace function internal.sync_push_end(client_id uuid, results json) returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.sync_mutations (app_user_id, client_id, id, status, code, message, row_json, at)
  select internal.user_id(), sync_push_end.client_id, (r.value ->> 'id')::uuid, r.value ->> 'status',
         r.value ->> 'code', r.value ->> 'message',
         case when json_typeof(r.value -> 'row') <> 'null' then r.value -> 'row' end, internal.now()
    from json_array_elements(sync_push_end.results) r
  on conflict on constraint sync_mutations_pkey do nothing
$$;
comment on function internal.sync_push_end is 'Remembers results of mutations.';

create or replace function internal.sync_statement(kind text, collection text, version bigint, request json)
returns jsonb
language plpgsql volatile as $$
declare
  shape constant text := concat_ws(' ', sync_statement.kind, sync_statement.collection, sync_statement.version,
    sync_statement.request ->> 'put', sync_statement.request -> 'group' is not null,
    (select string_agg(k, ' ' order by n) from json_object_keys(sync_statement.request -> 'data')
                                                 with ordinality as f (k, n)));
  cache constant jsonb := coalesce(nullif(current_setting('app.sync_statements', true), ''), '{}');
  compiled jsonb := cache -> shape;
begin
  if compiled is null or exists (
    select from json_each(sync_statement.request -> 'data') f
     where json_typeof(f.value) <> 'null'
       and internal.collection_value_problem(compiled -> 'types' ->> f.key, f.value::jsonb) is not null) then
    compiled := internal.collection_compile(sync_statement.kind, sync_statement.collection, sync_statement.request);
    -- operators put values into the statement
    if shape !~ ' [$]' and char_length(cache::text) < 100000
       and (compiled ->> 'version')::bigint = sync_statement.version then
      perform set_config('app.sync_statements', (cache || jsonb_build_object(shape, compiled || jsonb_build_object(
        'types', (select coalesce(jsonb_object_agg(k.name, k.type), '{}') from app.collection_columns k
                    join app.collections c on c.id = k.collection_id
                   where c.name = sync_statement.collection))))::text, true);
    end if;
  end if;
  return compiled;
end $$;
comment on function internal.sync_statement is
  'The compiled statement of a write. Writes of one shape in a push are compiled once: the values of the others are
   checked. Refuses as internal.collection_compile.';

create or replace function internal.sync_write(kind text, collection text, request json) returns json
language plpgsql volatile as $$
declare
  status int;
  body text;
  version bigint;
  explained api.reply;
  state text;
  broken text;
  col text;
  message text;
  compiled jsonb;
begin
  for attempt in 1 .. 3 loop
    begin
      select c.schema_version into version from app.collections c where c.name = sync_write.collection;
      compiled := internal.sync_statement(sync_write.kind, sync_write.collection, version, sync_write.request);
      execute compiled ->> 'text' into status, body
        using internal.collection_values(compiled -> 'params', sync_write.request);
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
    explained := internal.collection_explain(sync_write.kind, sync_write.collection, sync_write.request, version,
      case when status = -1 then json_build_object('code', state, 'constraint', nullif(broken, ''),
                                                   'column', nullif(col, '')) end);
    exit when explained is null;
  end loop;
  if state is null then
    perform internal.fail(503, 'TENANT_UNAVAILABLE', 'The collection is changing: try again in a moment.', null,
                          '{"Retry-After": "2"}');
  end if;
  raise exception 'a write of a push failed: % %', state, message;
end $$;
comment on function internal.sync_write is
  'One write of rows, compiled and run; returns its data. Refuses as the route of that write does.';

create or replace function internal.sync_row(collection text, id uuid) returns json
language plpgsql volatile as $$
declare
  c constant app.collections := (select k from app.collections k where k.name = sync_row.collection and k.sync);
  shown json;
begin
  if c.id is not null then
    select r.shown into shown from internal.sync_rows(c.name, 'true', array[sync_row.id], null, null, null) r;
  end if;
  return shown;
end $$;
comment on function internal.sync_row is 'A row as the caller reads it, or null.';

create or replace function internal.sync_apply(mutation json, group_context text, out status text, out shown json)
language plpgsql volatile as $$
declare
  name constant text := sync_apply.mutation ->> 'collection';
  op constant text := sync_apply.mutation ->> 'op';
  id constant uuid := sync_apply.mutation ->> 'row_id';
  base constant timestamptz := sync_apply.mutation ->> 'base_updated_at';
  data json := sync_apply.mutation -> 'data';
  c app.collections;
  held record;
begin
  select k.* into c from app.collections k where k.name = sync_apply.mutation ->> 'collection' and k.sync;
  perform internal.check_found(c.id is not null, 'collection', 'COLLECTION_NOT_FOUND');
  if op <> 'delete' and data -> 'idempotency_key' is not null
     and not exists (select from app.collection_columns k where k.collection_id = c.id
                        and k.name = 'idempotency_key') then
    -- a key of a request, which the id of the mutation takes the place of
    select coalesce(json_object_agg(f.key, f.value), '{}') into data from json_each(data) f
     where f.key <> 'idempotency_key';
  end if;
  execute format('select t.updated_at, t.deleted_at, (%s) as may_write from collections.%I t where t.id = $1',
                 internal.collection_write_condition_of(jsonb_build_object('id', c.id)), name)
    into held using id;
  if op = 'put' and held.deleted_at <= internal.now() - interval '30 days' then
    held.updated_at := null;
  end if;
  if base is not null and (held.deleted_at is null and held.updated_at is not null
                           and date_trunc('milliseconds', held.updated_at) <> date_trunc('milliseconds', base)
                           or op = 'put' and (held.updated_at is null or held.deleted_at is not null)) then
    status := 'conflict';
    return;
  end if;
  status := 'applied';
  if op = 'put' and (held.updated_at is null
                     or held.deleted_at is not null and not coalesce(held.may_write, false)) then
    shown := internal.sync_write('insert', name, internal.json_merge(
      json_strip_nulls(json_build_object('row_id', id, 'group', case when c.owner_scope = 'group'
        then coalesce(case when json_typeof(data -> 'group_id') <> 'null' then data ->> 'group_id' end,
                      sync_apply.group_context) end)),
      json_build_object('data', data)));
  elsif op = 'delete' then
    perform internal.sync_write('delete', name, json_build_object('id', id));
  else
    shown := internal.sync_write('patch', name, internal.json_merge(
      json_build_object('id', id, 'touch', true, 'put', op = 'put'), json_build_object('data', data)));
  end if;
end $$;
comment on function internal.sync_apply is
  'Applies one mutation for the caller, or says conflict and applies nothing: status and the row afterwards. Refuses 404
   COLLECTION_NOT_FOUND, and as the routes of rows do.';

create or replace function internal.sync_attempt(mutations json[], group_context text) returns json[]
language plpgsql volatile as $$
declare
  results json[] := '{}';
  applied record;
  n int := 0;
  status text;
  code text;
  message text;
  detail text;
begin
  begin
    while n < cardinality(sync_attempt.mutations) loop
      n := n + 1;
      status := 'rejected';
      if sync_attempt.mutations[n] ->> 'problem' is not null then
        perform internal.fail(400, 'VALIDATION_ERROR', sync_attempt.mutations[n] ->> 'problem');
      end if;
      select * into applied from internal.sync_apply(sync_attempt.mutations[n], sync_attempt.group_context);
      if applied.status = 'conflict' then
        status := 'conflict';
        perform internal.fail(409, 'CONFLICT', 'The row has changed since base_updated_at.');
      end if;
      results := results || json_build_object('status', 'applied', 'row', applied.shown);
    end loop;
    return results;
  exception
    when sqlstate 'TR000' then
      get stacked diagnostics message = message_text, detail = pg_exception_detail;
      code := detail::json ->> 'code';
      if (detail::json ->> 'status')::int >= 500 then
        raise;
      end if;
    when query_canceled or deadlock_detected or serialization_failure or lock_not_available then
      raise;
    when others then
      -- one bad change, such as one that a trigger of the project fails at, never holds up those behind it
      raise log 'a mutation of a push failed: %', sqlstate;
      code := case sync_attempt.mutations[n] ->> 'op' when 'put' then 'CREATE_FAILED' when 'patch' then 'UPDATE_FAILED'
                   else 'DELETE_FAILED' end;
      message := 'The mutation failed in the database of the project.';
  end;
  results := '{}';
  for i in 1 .. cardinality(sync_attempt.mutations) loop
    results := results || case
      when i = n and status = 'conflict' then json_build_object('status', status)
      when i = n then json_build_object('status', status, 'code', code, 'message', message)
      else json_build_object('status', 'rejected', 'code', 'TRANSACTION_ROLLED_BACK',
                             'message', 'Another mutation of this tx was not applied.') end;
  end loop;
  return results;
end $$;
comment on function internal.sync_attempt is
  'Applies mutations together, or none of them, and says for each {status, row, code, message}; where they were not
   applied, without the rows.';

create or replace function internal.sync_keys(mutation json) returns text
language sql immutable as $$
  select concat_ws(' ', sync_keys.mutation ->> 'collection',
                   coalesce(sync_keys.mutation -> 'data' ->> 'group_id', '-'),
                   (select string_agg(k, ' ' order by k) from json_object_keys(sync_keys.mutation -> 'data') k
                     where k not in ('id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at')))
   where sync_keys.mutation ->> 'op' = 'put' and sync_keys.mutation ->> 'problem' is null
     and sync_keys.mutation ->> 'tx' is null and sync_keys.mutation ->> 'base_updated_at' is null
$$;
comment on function internal.sync_keys is
  'Puts with the same are inserted by one statement; null for what is none of these. Granted to app_user.';

create or replace function internal.sync_put_many(mutations json[], group_context text) returns json[]
language plpgsql volatile as $$
declare
  name constant text := sync_put_many.mutations[1] ->> 'collection';
  definition jsonb;
  ids constant uuid[] := array(select (m ->> 'row_id')::uuid from unnest(sync_put_many.mutations) with ordinality
                                                                    as u (m, n) order by n);
  written record;
  is_held boolean;
  results json[];
begin
  if not exists (select from app.collections c where c.name = sync_put_many.mutations[1] ->> 'collection' and c.sync)
     or cardinality(ids) > (select count(distinct i) from unnest(ids) i) then
    return null;
  end if;
  definition := internal.collection_definition(name);
  execute format('select exists (select from collections.%I t where t.id = any ($1))', name) into is_held using ids;
  if is_held then
    return null;
  end if;
  begin
    select r.status, r.body into written from internal.collection_run('batch', name, json_build_object(
      'keyed', true,
      'group', case when definition ->> 'scope' = 'group'
        then coalesce(sync_put_many.mutations[1] -> 'data' ->> 'group_id', sync_put_many.group_context) end,
      'rows', array(select internal.json_merge(json_build_object('id', m -> 'row_id'), (
                             select coalesce(json_object_agg(f.key, f.value), '{}') from json_each(m -> 'data') f
                              where f.key not in ('id', 'user_id', 'group_id', 'created_at', 'updated_at',
                                                  'deleted_at')))
                      from unnest(sync_put_many.mutations) with ordinality as u (m, n) order by n))) r;
    if written.status <> 201 then
      raise exception using errcode = 'TR001', message = 'not all were written';
    end if;
    select array_agg(json_build_object('status', 'applied', 'row', r.value) order by array_position(
             ids, (r.value ->> 'id')::uuid))
      into results from json_array_elements(written.body::json -> 'data') r;
    return results;
  exception
    when query_canceled or deadlock_detected or serialization_failure or lock_not_available then
      raise;
    when others then
      -- which of them it is, and why, is found one by one
      return null;
  end;
end $$;
comment on function internal.sync_put_many is
  'Inserts the rows of puts with the same keys by one statement: their results, or null and nothing is written, where
   one of them is there already or cannot be written.';

create or replace function internal.sync_lock(mutations json, group_context text) returns void
language plpgsql volatile as $$
declare
  operations json;
begin
  select coalesce(json_agg(json_build_object('op', case m.value ->> 'op' when 'put' then 'upsert' else 'update' end,
                                             'collection', m.value -> 'collection', 'id', m.value -> 'row_id',
                                             'data', m.value -> 'data')), '[]')
    into operations
    from json_array_elements(sync_lock.mutations) m
   where m.value ->> 'problem' is null
     and exists (select from app.collections c where c.name = m.value ->> 'collection' and c.sync);
  if json_array_length(operations) > 1 then
    perform internal.collection_lock_values(operations, sync_lock.group_context);
  end if;
  perform internal.collection_lock_rows(operations);
end $$;
comment on function internal.sync_lock is
  'Locks the unique values that a push writes and then its rows, each in one order, as a transaction of rows does.';

create or replace function api.sync_push(client_id uuid, mutations json, group_id text default null) returns api.reply
language plpgsql volatile as $$
declare
  list constant json[] := array(select m.value from json_array_elements(sync_push.mutations)
                                                      with ordinality as m (value, n) order by m.n);
  ids constant uuid[] := array(select internal.as_uuid(m ->> 'known_id') from unnest(list) with ordinality as u (m, n)
                                order by n);
  begun record;
  results json[] := array_fill(null::json, array[cardinality(list)]);
  remembered json[] := '{}';
  members int[];
  tried int := 0;
  keys constant text[] := array(select internal.sync_keys(m) from unnest(list) with ordinality as u (m, n) order by n);
  txs constant text[] := array(select m ->> 'tx' from unnest(list) with ordinality as u (m, n) order by n);
  outcome json[];
  row_shown json;
begin
  select * into begun from internal.sync_push_begin(sync_push.client_id, ids);
  perform set_config('app.sync_origin', begun.client::text, true);
  perform internal.sync_lock(sync_push.mutations, sync_push.group_id);
  for i in 1 .. cardinality(list) loop
    continue when results[i] is not null;
    if begun.known ? ids[i]::text then
      results[i] := internal.sync_duplicate(list[i] -> 'id', begun.known -> ids[i]::text);
      continue;
    end if;
    -- of a tx those that are no repetitions: the first of an id counts
    members := array(
      select n from generate_series(i, case when txs[i] is null then i else cardinality(list) end) n
       where (n = i or txs[n] = txs[i] and results[n] is null)
         and (ids[n] is null or not begun.known ? ids[n]::text and array_position(ids, ids[n]) = n)
       order by n);
    if i = any (members) then
      outcome := null;
      -- puts of new rows that follow each other, without those that failed together
      if i > tried and keys[i] is not null and keys[i + 1] = keys[i] then
        tried := i;
        while keys[tried + 1] = keys[i] and not begun.known ? ids[tried + 1]::text
              and array_position(ids, ids[tried + 1]) = tried + 1 loop
          tried := tried + 1;
        end loop;
        outcome := internal.sync_put_many(list[i:tried], sync_push.group_id);
        if outcome is not null then
          members := array(select generate_series(i, tried));
        end if;
      end if;
      outcome := coalesce(outcome, internal.sync_attempt(array(select list[n] from unnest(members) n order by n),
                                                         sync_push.group_id));
      for k in 1 .. cardinality(members) loop
        row_shown := outcome[k] -> 'row';
        if outcome[k] ->> 'status' <> 'applied' and list[members[k]] ->> 'collection' is not null
           and internal.as_uuid(list[members[k]] ->> 'row_id') is not null then
          row_shown := internal.sync_row(list[members[k]] ->> 'collection', (list[members[k]] ->> 'row_id')::uuid);
        end if;
        results[members[k]] := internal.sync_result(list[members[k]] -> 'id', outcome[k] ->> 'status', row_shown,
                                                    outcome[k] ->> 'code', outcome[k] ->> 'message');
        if ids[members[k]] is not null then
          remembered := remembered || results[members[k]];
        end if;
      end loop;
    end if;
  end loop;
  for i in 1 .. cardinality(list) loop
    if results[i] is null then
      results[i] := internal.sync_duplicate(list[i] -> 'id', results[array_position(ids, ids[i])]::jsonb
        || jsonb_build_object('row', nullif((results[array_position(ids, ids[i])] -> 'row')::text, 'null')));
    end if;
  end loop;
  perform internal.sync_push_end(sync_push.client_id, array_to_json(remembered));
  return internal.reply(200, json_build_object('results', array_to_json(results)));
end $$;
comment on function api.sync_push is
  'Applies mutations of the caller''s client in their order; the results say what became of each. Refuses 404
   USER_NOT_FOUND. Locks the client, the unique values and the rows.';

create or replace function internal.sync_result(id json, status text, shown json, code text, message text) returns json
language sql stable
return internal.json_merge(
  json_build_object('id', coalesce(sync_result.id, 'null'), 'status', sync_result.status, 'row', sync_result.shown),
  case when sync_result.code is null then '{}'
       else json_build_object('code', sync_result.code, 'message', sync_result.message) end);
comment on function internal.sync_result is 'The result of a mutation.';

create or replace function internal.sync_duplicate(id json, first jsonb) returns json
language sql stable
return internal.json_merge(
  internal.sync_result(sync_duplicate.id, 'duplicate', (sync_duplicate.first ->> 'row')::json,
                       sync_duplicate.first ->> 'code', sync_duplicate.first ->> 'message'),
  json_build_object('first_status', sync_duplicate.first ->> 'status'));
comment on function internal.sync_duplicate is
  'The result of a mutation that was pushed before: what the first one''s was. first has the row as text.';
