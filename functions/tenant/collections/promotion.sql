-- Collections, as promotion copies them: the definition without rows. What is added to the source is added to the
-- target; nothing is taken away from it, and a column that differs is not changed, because rows could be lost.
create or replace function internal.collection_without_nulls(value json) returns jsonb
language sql immutable as $$
  select coalesce(jsonb_object_agg(f.key, f.value), '{}') from jsonb_each(collection_without_nulls.value::jsonb) f
   where f.value <> 'null'
$$;
comment on function internal.collection_without_nulls is
  'An object without its fields that are null; what is inside of them stays.';

create or replace function internal.promotion_rows__collection() returns table (key text, configuration jsonb)
language sql stable as $$
  select c.name, jsonb_build_object(
           'description', c.description, 'owner_scope', c.owner_scope, 'read_policy', c.read_policy,
             'write_policy', c.write_policy,
           'sync', c.sync, 'realtime', c.realtime,
           'columns', coalesce((select jsonb_agg(internal.collection_without_nulls(internal.collection_column_json(k))
                                                 - 'graphql_name' order by k.position)
                                  from app.collection_columns k where k.collection_id = c.id), '[]'),
           'indexes', coalesce((select jsonb_agg(internal.collection_without_nulls(internal.collection_index_json(i))
                                                 - 'is_ready' order by i.created_at, i.id)
                                  from app.collection_indexes i where i.collection_id = c.id), '[]'))
    from app.collections c
$$;
comment on function internal.promotion_rows__collection is 'Collections as they are copied.';

create or replace function internal.promotion_parts__collection() returns jsonb
language sql immutable
return '{"columns": ["name", "type", "nullable", "default", "unique", "max_length", "min", "max", "enum", '
       '"references", "dimensions", "moderated"],
         "indexes": ["name", "columns", "unique", "method", "where"]}'::jsonb;
comment on function internal.promotion_parts__collection is 'The fields of columns and indexes, as they are copied.';

create or replace function internal.collection_part_completed(part jsonb, kind text) returns jsonb
language sql stable as $$
  select case
           when jsonb_typeof(collection_part_completed.part) <> 'object' then collection_part_completed.part
           when collection_part_completed.kind = 'columns' then
             '{"nullable": true, "unique": false, "moderated": false}' || n.part
             -- numbers as a definition shows them
             || coalesce((select jsonb_object_agg(b.key, internal.json_number((b.value #>> '{}')::numeric))
                            from jsonb_each(n.part) b where b.key in ('min', 'max')
                              and jsonb_typeof(b.value) = 'number'), '{}')
             || case when jsonb_typeof(n.part -> 'references') = 'object'
                     then jsonb_build_object('references',
                                             '{"on_delete": "set_null"}'
                                               || internal.collection_without_nulls((n.part -> 'references')::json))
                                                 else '{}' end
           else '{"unique": false, "method": "btree"}' || n.part
             || case when not n.part ? 'name' and jsonb_typeof(n.part -> 'columns') = 'array'
                     then jsonb_build_object('name', internal.collection_index_named(
                            array(select c.name
                                    from jsonb_array_elements_text(n.part -> 'columns') with ordinality c (name, i)
                                      order by c.i),
                            n.part ->> 'method', n.part -> 'unique' = 'true')) else '{}' end end
    from (select case jsonb_typeof(collection_part_completed.part)
                      when 'object' then internal.collection_without_nulls(
                        collection_part_completed.part::json) end) n (part)
$$;
comment on function internal.collection_part_completed is
  'A column or an index of a document with the fields that it leaves out, as a definition shows them, so that one
   written by hand equals what it made.';

create or replace function internal.collection_completed(collection jsonb) returns jsonb
language sql stable as $$
  select collection_completed.collection || coalesce(jsonb_object_agg(p.name, (
           select coalesce(jsonb_agg(internal.collection_part_completed(e.value, p.name) order by e.n), '[]')
             from jsonb_array_elements(collection_completed.collection -> p.name) with ordinality e (value, n))), '{}')
    from unnest('{columns,indexes}'::text[]) p (name)
   where jsonb_typeof(collection_completed.collection -> p.name) = 'array'
$$;
comment on function internal.collection_completed is
  'A collection of a document whose columns and indexes have the fields that they leave out.';

create or replace function internal.collection_parts_merged(was jsonb, wanted jsonb) returns jsonb
language sql immutable as $$
  select coalesce(jsonb_agg(p.value order by p.is_new, p.n), '[]')
    from (select coalesce(w.value, o.value) as value, false as is_new, o.n
            from jsonb_array_elements(collection_parts_merged.was) with ordinality o (value, n)
            left join (select distinct on (e.value ->> 'name') e.value
                         from jsonb_array_elements(collection_parts_merged.wanted) e order by e.value ->> 'name') w
              on w.value ->> 'name' = o.value ->> 'name'
           union all
          select w.value, true, w.n
            from jsonb_array_elements(collection_parts_merged.wanted) with ordinality w (value, n)
           where not exists (select from jsonb_array_elements(collection_parts_merged.was) o
                              where o.value ->> 'name' = w.value ->> 'name')) p
$$;
comment on function internal.collection_parts_merged is
  'Columns or indexes by their names: those that are there, as the wanted ones say, and behind them those that are
   new.';

create or replace function internal.promotion_merged__collection(was jsonb, wanted jsonb) returns jsonb
language sql stable as $$
  select promotion_merged__collection.was || w.wanted || (
    select coalesce(jsonb_object_agg(p.name,
                                     internal.collection_parts_merged(promotion_merged__collection.was -> p.name,
                                                                      w.wanted -> p.name)), '{}')
      from unnest('{columns,indexes}'::text[]) p (name)
     where jsonb_typeof(w.wanted -> p.name) = 'array')
    from (select internal.collection_completed(promotion_merged__collection.wanted)) w (wanted)
$$;
comment on function internal.promotion_merged__collection is
  'A collection as it is to be: what the target has beyond the document stays.';

create or replace function internal.promotion_refusal__collection(op text, wanted jsonb, was jsonb) returns text[]
language sql stable as $$
  select array['CHANGE_NOT_ADDITIVE', format('The target has this collection, and its %s %s differs: change it there.',
                                             p.singular, left(o.value ->> 'name', 100))]
    from (values ('columns', 'column'), ('indexes', 'index')) p (name, singular)
   cross join lateral jsonb_array_elements(promotion_refusal__collection.was -> p.name) with ordinality o (value, n)
    join lateral (
      select internal.collection_part_completed(e.value, p.name)
        from jsonb_array_elements(case jsonb_typeof(promotion_refusal__collection.wanted -> p.name)
                                       when 'array' then promotion_refusal__collection.wanted -> p.name
                                         else '[]' end) e) w (value)
      on w.value ->> 'name' = o.value ->> 'name' and w.value <> o.value
   where promotion_refusal__collection.op = 'update'
   order by p.name, o.n
   limit 1
$$;
comment on function internal.promotion_refusal__collection is
  'Blocks a change of a column or an index that the target has.';

create or replace function internal.promotion_write__collection(op text, key text, wanted jsonb) returns void
language plpgsql volatile as $$
declare
  part jsonb;
  was jsonb;
begin
  if promotion_write__collection.op = 'create' then
    perform internal.collection_create((promotion_write__collection.wanted || jsonb_build_object('name',
                                        promotion_write__collection.key))::json, false);
    return;
  end if;
  select r.configuration into was from internal.promotion_rows__collection() r
   where r.key = promotion_write__collection.key;
  for part in
    select n.value from jsonb_array_elements(promotion_write__collection.wanted -> 'columns') with ordinality n (value,
                                        n)
     where not exists (select from jsonb_array_elements(was -> 'columns') o
                        where o.value ->> 'name' = n.value ->> 'name')
     order by n.n
  loop
    perform internal.collection_column_add(promotion_write__collection.key, part::json, false);
  end loop;
  for part in
    select n.value from jsonb_array_elements(promotion_write__collection.wanted -> 'indexes') with ordinality n (value,
                                        n)
     where not exists (select from jsonb_array_elements(was -> 'indexes') o
                        where o.value ->> 'name' = n.value ->> 'name')
     order by n.n
  loop
    perform internal.promotion_index_check(promotion_write__collection.key, part ->> 'name');
    perform internal.collection_index_add(promotion_write__collection.key, part::json, false);
  end loop;
  perform internal.collection_update(promotion_write__collection.key,
                                     (promotion_write__collection.wanted - '{columns,indexes}'::text[])::json, false);
end $$;
comment on function internal.promotion_write__collection is
  'Creates a collection, or adds what it lacks and changes its description, policies and switches. Refuses as the routes
   of collections do, and 409 LIMIT_REACHED for an index that a job would have to build.';

create or replace function internal.promotion_rehearse__collection(op text, key text, wanted jsonb, was jsonb)
returns void
language plpgsql volatile as $$
declare
  -- what the plan itself creates is not there: columns that refer to it, and indexes of new columns, are not looked at
  known constant text[] := array(select c.name from app.collections c) || promotion_rehearse__collection.key;
  columns jsonb := (
    select jsonb_agg(case when jsonb_typeof(n.value #> '{references,collection}') = 'string'
                          and n.value #>> '{references,collection}' <> all (known)
                          then n.value - 'references' else n.value end order by n.n)
      from jsonb_array_elements(case jsonb_typeof(promotion_rehearse__collection.wanted -> 'columns')
                                     when 'array' then promotion_rehearse__collection.wanted -> 'columns' else '[]' end)
           with ordinality n (value, n));
  part jsonb;
begin
  if promotion_rehearse__collection.op = 'create' then
    perform internal.collection_create((promotion_rehearse__collection.wanted || jsonb_build_object('name',
                                        promotion_rehearse__collection.key)
                                        || case when columns is null then '{}'
                                                else jsonb_build_object('columns', columns) end)::json, true);
    return;
  end if;
  for part in
    select n.value from jsonb_array_elements(columns) with ordinality n (value, n)
     where not exists (select from jsonb_array_elements(promotion_rehearse__collection.was -> 'columns') o
                        where o.value ->> 'name' = n.value ->> 'name')
     order by n.n
  loop
    perform internal.collection_column_add(promotion_rehearse__collection.key, part::json, true);
  end loop;
  for part in
    select n.value from jsonb_array_elements(promotion_rehearse__collection.wanted -> 'indexes') with ordinality n (
      value, n)
     where not exists (select from jsonb_array_elements(promotion_rehearse__collection.was -> 'indexes') o
                        where o.value ->> 'name' = n.value ->> 'name')
       and not exists (select from jsonb_array_elements(columns) c
                        where n.value -> 'columns' ? (c.value ->> 'name')
                          and not exists (select
                                            from jsonb_array_elements(promotion_rehearse__collection.was -> 'columns') o
                                              where o.value ->> 'name' = c.value ->> 'name'))
     order by n.n
  loop
    perform internal.promotion_index_check(promotion_rehearse__collection.key, part ->> 'name');
    perform internal.collection_index_add(promotion_rehearse__collection.key, part::json, true);
  end loop;
  perform internal.collection_update(promotion_rehearse__collection.key,
                                     (promotion_rehearse__collection.wanted - '{columns,indexes}'::text[])::json, true);
end $$;
comment on function internal.promotion_rehearse__collection is
  'Asks the functions of collections, as dry runs, for what they would refuse of a change: to execute it would lock
   tables. Refuses as they do.';

create or replace function internal.promotion_index_check(collection text, index text) returns void
language plpgsql volatile as $$
begin
  if internal.collection_rows_estimate(promotion_index_check.collection) > 100000 then
    perform internal.fail(409, 'LIMIT_REACHED',
                          format('%s has more than 100000 rows: add the index %s there, by its own route.',
                                 promotion_index_check.collection,
                                 promotion_index_check.index));
  end if;
end $$;
comment on function internal.promotion_index_check is
  'Refuses 409 LIMIT_REACHED for an index that a job would have to build.';

create or replace function internal.promotion_lock__collection(keys text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  name text;
begin
  perform internal.advisory_lock('collections');
  for name in select c.name from app.collections c where c.name = any (promotion_lock__collection.keys)
    order by c.id loop
    perform internal.collection_lock(name);
  end loop;
end $$;
comment on function internal.promotion_lock__collection is
  'Takes the lock "collections", and locks the definitions. For administrators alone, as internal.collection_lock is.';
