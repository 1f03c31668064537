-- New rows of a push that one statement can insert, as most of them are: all together, or none and then one by one.

create or replace function internal.sync_values_fit_sql(collection text, keys text[]) returns text
language sql stable as $$
  with types as (
    select format('r.%I', k.name) as value, t.kinds, t.pattern, e.kinds as element_kinds, e.pattern as element_pattern,
           (k.type = 'vector')::text as is_vector, k.name
      from app.collections c
      join app.collection_columns k on k.collection_id = c.id and k.name = any (sync_values_fit_sql.keys)
     cross join lateral internal.collection_type(k.type) t
      left join lateral internal.collection_type(t.element) e on true
     where c.name = sync_values_fit_sql.collection
  )
  select format(
    'select coalesce(bool_and(%s), true) from json_to_recordset($1::json) as r (%s)',
    string_agg(format('(%1$s is null or case when json_typeof(%1$s) = any (%2$L) then %3$s else false end)', t.value,
      t.kinds, case
        when t.pattern is not null then format('(%s%s #>> ''{}'') ~ %L', t.value,
                                               case when 'number' = any (t.kinds) then '::jsonb' end, t.pattern)
        when t.element_kinds is null then 'true'
        else format('not exists (select from json_array_elements(%s) i where case when json_typeof(i.value) = ''null'' '
                    'then %s else json_typeof(i.value) <> all (%L)%s end)', t.value, t.is_vector, t.element_kinds,
                    ' or (i.value::jsonb #>> ''{}'') !~ ' || quote_literal(t.element_pattern)) end), ' and '),
    string_agg(format('%I json', t.name), ', '))
    from types t
$$;
comment on function internal.sync_values_fit_sql is
  'A query whether all values of rows ($1) are ones of their columns, as internal.collection_value_problem tells of one:
   the values of a push are checked at once. Casts still check the ranges. Null where no key is a column.';

create or replace function internal.sync_put_many(collection text, row_ids uuid[], rows text, first json,
                                                  group_context text, checked bigint, out shown json[],
                                                  out bytes bigint)
language plpgsql volatile as $$
declare
  c app.collections;
  keys text[];
  request json;
  compiled jsonb;
  params text[];
  fits boolean;
  status int;
  are_theirs boolean;
begin
  select k.* into c from app.collections k where k.name = sync_put_many.collection and k.sync;
  if c.id is null then
    return;
  end if;
  -- all have the keys of the first
  keys := array(select k from json_object_keys(sync_put_many.first) k
                 where k not in ('id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at'));
  request := json_build_object('keyed', true, 'group', case when c.owner_scope = 'group'
    then coalesce(sync_put_many.first ->> 'group_id', sync_put_many.group_context) end, 'rows', json_build_array((
      select coalesce(json_object_agg(f.key, f.value), '{}')
        from json_each(sync_put_many.first) f where f.key = any (keys))));
  begin
    compiled := internal.collection_compile('batch', sync_put_many.collection, request);
    if (compiled ->> 'version')::bigint is distinct from sync_put_many.checked then
      execute coalesce(internal.sync_values_fit_sql(sync_put_many.collection, keys), 'select true') into fits
        using sync_put_many.rows;
      if not fits then
        return;
      end if;
    end if;
    params := internal.collection_values(compiled -> 'params', request);
    for n in 1 .. cardinality(params) loop
      if compiled -> 'params' -> (n - 1) -> 'path' = '["rows"]' then
        params[n] := sync_put_many.rows;
      end if;
    end loop;
    execute compiled ->> 'text' into status, shown using params;
    select sum(octet_length(r.shown::text)), bool_and(starts_with(r.shown::text, '{"id":"' || r.id || '"'))
      into bytes, are_theirs
      from unnest(shown, sync_put_many.row_ids) as r (shown, id);
    if status <> 201 or are_theirs is not true then
      raise exception using errcode = 'TR001', message = 'not all were written';
    end if;
  exception
    when query_canceled or deadlock_detected or serialization_failure or lock_not_available then
      raise;
    when others then
      -- which of them it is, and why, is found one by one
      shown := null;
      bytes := null;
  end;
end $$;
comment on function internal.sync_put_many is
  'Inserts the rows of puts by one statement, all with the keys and the group of the first, and each with its id: the
   rows as the caller reads them and their length, or null and nothing is written, where one of them is there already or
   cannot be written. checked is the version of the collection whose columns the server has found the values to fit.';

create or replace function internal.sync_rows_text(row_ids uuid[], data json[]) returns text
language sql stable as $$
  -- texts, as the server has written them: of two fields called id the last one counts
  select '[' || string_agg(left(u.data::text, -1) || case when u.data::text = '{}' then '' else ',' end
                           || '"id":"' || u.id || '"}', ',' order by u.n) || ']'
    from unnest(sync_rows_text.row_ids, sync_rows_text.data) with ordinality as u (id, data, n)
$$;
comment on function internal.sync_rows_text is 'The rows of puts with their ids, as internal.sync_put_many takes them.';

create or replace function internal.sync_put_end(client_id uuid, ids uuid[], shown json[]) returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.sync_mutations (app_user_id, client_id, id, status, row_json, at)
  select (select internal.user_id()), sync_put_end.client_id, r.id, 'applied', r.shown, (select internal.now())
    from unnest(sync_put_end.ids, sync_put_end.shown) as r (id, shown)
$$;
comment on function internal.sync_put_end is
  'Remembers mutations that were applied. Raises unique_violation where one of them was pushed before.';

create or replace function api.sync_put(client_id uuid, collection text, ids uuid[], row_ids uuid[], rows text,
                                        first json, group_id text default null, checked bigint default null)
returns api.reply
language plpgsql volatile as $$
declare
  put record;
  results text;
begin
  -- no id is looked up: one that was pushed before is found when it is remembered
  perform set_config('app.sync_origin', b.client::text, true)
     from internal.sync_push_begin(sync_put.client_id, '{}') b;
  begin
    put := internal.sync_put_many(sync_put.collection, sync_put.row_ids, sync_put.rows, sync_put.first,
                                  sync_put.group_id, sync_put.checked);
    if put.shown is null then
      return row(0, '{}', null)::api.reply;
    end if;
    perform internal.sync_check_length(put.bytes);
    perform internal.sync_put_end(sync_put.client_id, sync_put.ids, put.shown);
  exception
    when unique_violation then
      return row(0, '{}', null)::api.reply;
  end;
  -- as text, which is a third quicker than as objects
  select string_agg(concat('{"id":"', r.id, '","status":"applied","row":', r.shown, '}'), ',' order by r.n)
    into results
    from unnest(sync_put.ids, put.shown) with ordinality as r (id, shown, n);
  return row(200, '{"data":{"results":[' || results || ']}}', null)::api.reply;
end $$;
comment on function api.sync_put is
  'For the server: a push of nothing but puts of new rows of one collection, with the same keys and group, under ids
   that differ. Status 0, and nothing is written: api.sync_push is to find out which of them is not so, and why. checked
   is as internal.sync_put_many has it. Refuses 404 USER_NOT_FOUND, 400 BATCH_TOO_LARGE. Locks the client.';
