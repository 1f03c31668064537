-- Pushes: each mutation alone, or with those of the same tx, in a savepoint of its own. A mutation is the write that
-- the routes of rows make, compiled as theirs and refused with their codes.

create or replace function internal.sync_check_length(bytes bigint) returns void
language plpgsql stable as $$
begin
  if sync_check_length.bytes > internal.page_bytes() then
    perform internal.fail(400, 'BATCH_TOO_LARGE', 'The rows of the results have more than 8 MB: push fewer at once.');
  end if;
end $$;
comment on function internal.sync_check_length is
  'Refuses 400 BATCH_TOO_LARGE where the rows of results are longer than a page: short mutations may have long rows.';

create or replace function internal.sync_push_begin(client_id uuid, ids uuid[], out client bigint, out known jsonb)
language plpgsql volatile security definer set search_path = '' as $$
declare
  caller constant uuid := internal.user_id();
  bytes bigint;
  is_known boolean;
begin
  -- pushes of one client come one after the other: what an equal one has applied is seen
  client := (internal.sync_client(sync_push_begin.client_id)).id;
  select sum(octet_length(m.row_json::text) * cardinality(array_positions(sync_push_begin.ids, m.id))), count(*) > 0
    into bytes, is_known
    from app.sync_mutations m
   where m.app_user_id = caller and m.client_id = sync_push_begin.client_id and m.id = any (sync_push_begin.ids);
  perform internal.sync_check_length(bytes);
  select coalesce(jsonb_object_agg(m.id, jsonb_build_object(
           'status', m.status, 'row', m.row_json::text, 'code', m.code, 'message', m.message)), '{}')
    into known
    from app.sync_mutations m
   where is_known and m.app_user_id = caller and m.client_id = sync_push_begin.client_id
     and m.id = any (sync_push_begin.ids);
  -- not before a pull that this push has waited for: the next one goes the whole way, and reaches its hint
  update app.sync_checkpoints c
     set last_push_at = greatest(internal.now(), c.last_pull_at), used_at = internal.now()
   where c.id = client;
end $$;
comment on function internal.sync_push_begin is
  'Begins a push of the caller''s client: its number in the log, and the results of mutations that were pushed before.
   Refuses 404 USER_NOT_FOUND, 400 BATCH_TOO_LARGE. Locks the client.';

create or replace function internal.sync_push_end(client_id uuid, ids uuid[], statuses text[], codes text[],
                                                  messages text[], shown json[], is_new boolean[]) returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.sync_mutations (app_user_id, client_id, id, status, code, message, row_json, at)
  select (select internal.user_id()), sync_push_end.client_id, r.id, r.status, r.code, r.message, r.shown,
         (select internal.now())
    from unnest(sync_push_end.ids, sync_push_end.statuses, sync_push_end.codes, sync_push_end.messages,
                sync_push_end.shown, sync_push_end.is_new) as r (id, status, code, message, shown, is_new)
   where r.is_new and r.id is not null
  on conflict on constraint sync_mutations_pkey do nothing
$$;
comment on function internal.sync_push_end is 'Remembers results of mutations, those that are new and have an id.';

create or replace function internal.sync_statement(kind text, collection text, version bigint, request json)
returns jsonb
language plpgsql volatile as $$
declare
  shape constant text := concat_ws(' ', sync_statement.kind, sync_statement.collection, sync_statement.version,
    sync_statement.request ->> 'put', sync_statement.request -> 'group' is not null,
    -- as JSON: a key may hold what separates keys
    (select json_agg(k order by n) from json_object_keys(sync_statement.request -> 'data')
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
    if shape !~ '"[$]' and char_length(cache::text) < 100000
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

create or replace function internal.sync_lock(mutations json, names text[], row_ids uuid[], group_context text)
returns uuid[]
language plpgsql volatile as $$
declare
  synced text[];
  operations json;
  target record;
  held uuid[] := '{}';
begin
  select array_agg(distinct c.name) into synced
    from unnest(sync_lock.names) as m (name)
    join app.collections c on c.name = m.name and c.sync
  having count(*) > 1;
  if exists (select from app.collections c
              where c.name = any (synced)
                and (exists (select from app.collection_columns k where k.collection_id = c.id and k.is_unique)
                     or exists (select from app.collection_indexes i
                                 where i.collection_id = c.id and i.is_unique))) then
    select coalesce(json_agg(json_build_object('op', 'upsert', 'collection', m.collection, 'data', m.data)), '[]')
      into operations
      from json_to_recordset(sync_lock.mutations) as m (op text, collection text, data json, problem text)
     where m.problem is null and m.op = 'put' and m.collection = any (synced);
    perform internal.collection_lock_values(operations, sync_lock.group_context);
  end if;
  for target in
    select c.name, array_agg(m.row_id) as ids
      from unnest(sync_lock.names, sync_lock.row_ids) as m (name, row_id)
      join app.collections c on c.name = m.name and c.sync
     group by c.name
     order by c.name
  loop
    held := held || internal.collection_lock_ids(target.name, target.ids);
  end loop;
  return held;
end $$;
comment on function internal.sync_lock is
  'Locks the unique values that a push writes and then its rows, each in one order, as a transaction of rows does.
   Returns the ids of the rows that are there.';

create or replace function api.sync_push(client_id uuid, mutations json, group_id text default null) returns api.reply
language plpgsql volatile as $$
declare
  -- one element for each mutation
  list json[];
  sent json[];
  ids uuid[];
  names text[];
  row_ids uuid[];
  data json[];
  txs text[];
  -- puts with the same are inserted by one statement; null for what is none of these
  keys text[];
  -- no repetition, of this push or of an earlier one
  is_new boolean[];
  statuses text[];
  shown json[];
  codes text[];
  messages text[];
  begun record;
  held uuid[];
  members int[];
  tried int := 0;
  put record;
  outcome json[];
  results json;
  bytes bigint := 0;
begin
  -- puts of one shape, which the server tells, have the same keys and the same group
  select array_agg(m.id order by m.n), array_agg(m.known_id order by m.n), array_agg(m.collection order by m.n),
         array_agg(m.row_id order by m.n), array_agg(m.data order by m.n), array_agg(m.tx order by m.n),
         array_agg(case when m.tx is null and m.base_updated_at is null then m.collection || ' ' || m.shape end
                   order by m.n),
         array_agg(m.known_id is null or m.repeated = 1 order by m.n)
    into sent, ids, names, row_ids, data, txs, keys, is_new
    from (select u.*, row_number() over (partition by u.known_id order by u.n) as repeated
            from rows from (json_to_recordset(sync_push.mutations) as (
                   id json, known_id uuid, collection text, row_id uuid, tx text, base_updated_at text, data json,
                   shape text)) with ordinality
                 as u (id, known_id, collection, row_id, tx, base_updated_at, data, shape, n)) m;
  statuses := array_fill(null::text, array[cardinality(keys)]);
  shown := array_fill(null::json, array[cardinality(keys)]);
  codes := statuses;
  messages := statuses;
  select * into begun from internal.sync_push_begin(sync_push.client_id, ids);
  perform set_config('app.sync_origin', begun.client::text, true);
  if begun.known <> '{}' then
    is_new := array(select u.is_new and not coalesce(begun.known ? u.id::text, false)
                      from unnest(is_new, ids) with ordinality as u (is_new, id, n) order by u.n);
  end if;
  held := internal.sync_lock(sync_push.mutations, names, row_ids, sync_push.group_id);
  for i in 1 .. cardinality(keys) loop
    continue when not is_new[i] or statuses[i] is not null;
    -- puts of new rows that follow each other, without those that failed together
    if i > tried and keys[i + 1] = keys[i] then
      tried := i;
      while keys[tried + 1] = keys[i] and is_new[tried + 1] loop
        tried := tried + 1;
      end loop;
      if not held && row_ids[i:tried] then
        select * into put
          from internal.sync_put_many(names[i], row_ids[i:tried],
                                      internal.sync_rows_text(row_ids[i:tried], data[i:tried]), data[i],
                                      sync_push.group_id, null);
        if put.shown is not null then
          for n in i .. tried loop
            statuses[n] := 'applied';
            shown[n] := put.shown[n - i + 1];
          end loop;
          bytes := bytes + put.bytes;
          perform internal.sync_check_length(bytes);
          continue;
        end if;
      end if;
    end if;
    members := array(
      select n from generate_series(i, case when txs[i] is null then i else cardinality(keys) end) n
       where n = i or txs[n] = txs[i] and is_new[n]
       order by n);
    list := coalesce(list, array(select m.value from json_array_elements(sync_push.mutations)
                                                      with ordinality as m (value, n) order by m.n));
    outcome := internal.sync_attempt(array(select list[n] from unnest(members) n order by n), sync_push.group_id);
    for k in 1 .. cardinality(members) loop
      statuses[members[k]] := outcome[k] ->> 'status';
      codes[members[k]] := outcome[k] ->> 'code';
      messages[members[k]] := outcome[k] ->> 'message';
      shown[members[k]] := case when statuses[members[k]] = 'applied' then (outcome[k] ->> 'row')::json
        else internal.sync_row(names[members[k]], row_ids[members[k]]) end;
      bytes := bytes + coalesce(octet_length(shown[members[k]]::text), 0);
    end loop;
    perform internal.sync_check_length(bytes);
  end loop;
  -- those that stand twice in this push
  perform internal.sync_check_length(bytes + (
    select sum(octet_length(shown[array_position(ids, i.id)]::text))
      from unnest(ids, is_new) as i (id, is_new) where not i.is_new and not begun.known ? i.id::text));
  perform internal.sync_push_end(sync_push.client_id, ids, statuses, codes, messages, shown, is_new);
  select json_agg(case when m.new
           then internal.sync_result(m.id, m.status, m.row, m.code, m.message)
           else internal.sync_duplicate(m.id, coalesce(begun.known -> ids[m.n]::text, (
             select jsonb_build_object('status', statuses[f.n], 'row', shown[f.n]::text, 'code', codes[f.n],
                                       'message', messages[f.n])
               from (select array_position(ids, ids[m.n]) as n) f))) end order by m.n)
    into results
    from unnest(sent, statuses, shown, codes, messages, is_new) with ordinality
         as m (id, status, row, code, message, "new", n);
  return internal.reply(200, json_build_object('results', results));
end $$;
comment on function api.sync_push is
  'Applies mutations of the caller''s client in their order; the results say what became of each. Refuses 404
   USER_NOT_FOUND, 400 BATCH_TOO_LARGE. Locks the client, the unique values and the rows.';

create or replace function internal.sync_result(id json, status text, shown json, code text, message text) returns json
language sql stable
return case when sync_result.code is null
            then json_build_object('id', coalesce(sync_result.id, 'null'), 'status', sync_result.status,
                                   'row', sync_result.shown)
            else json_build_object('id', coalesce(sync_result.id, 'null'), 'status', sync_result.status,
                                   'row', sync_result.shown, 'code', sync_result.code,
                                   'message', sync_result.message) end;
comment on function internal.sync_result is 'The result of a mutation.';

create or replace function internal.sync_duplicate(id json, first jsonb) returns json
language sql stable
return internal.json_merge(
  internal.sync_result(sync_duplicate.id, 'duplicate', (sync_duplicate.first ->> 'row')::json,
                       sync_duplicate.first ->> 'code', sync_duplicate.first ->> 'message'),
  json_build_object('first_status', sync_duplicate.first ->> 'status'));
comment on function internal.sync_duplicate is
  'The result of a mutation that was pushed before: what the first one''s was. first has the row as text.';
