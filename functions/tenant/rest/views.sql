-- Schema rest: a view of each collection, for PostgREST. They belong to the tenant, like the tables: no policy file
-- contains them. A project that has never used the REST access has none, and pays nothing for it.

create or replace function internal.rest_generator() returns int
language sql immutable parallel safe
return 2;
comment on function internal.rest_generator is
  'The version of internal.rest_view_sql. If you change its output, increase it here.';

create or replace function internal.rest_view_drop_sql(collection text) returns text[]
language sql stable security definer set search_path = '' as $$
  select coalesce((
    select array[format('drop view rest.%I', r.relname)]
      from pg_catalog.pg_class r
     where r.oid = to_regclass(format('rest.%I', rest_view_drop_sql.collection)) and r.relkind = 'v'), '{}')
$$;
comment on function internal.rest_view_drop_sql is
  'The statement that drops the view of a collection, or none: a view would prevent changes of the columns that it
   shows. Granted to nobody.';

create or replace function internal.rest_view_columns(c app.collections) returns text[]
language sql stable as $$
  select array['id', 'user_id']
         || case (rest_view_columns.c).owner_scope when 'group' then array['group_id'] else '{}' end
         || array['created_at', 'updated_at'] || internal.collection_column_names((rest_view_columns.c).id)
$$;
comment on function internal.rest_view_columns is 'The columns of a collection''s view, in their order.';

create or replace function internal.rest_view_sql(c app.collections) returns setof text
language sql stable as $$
  -- a column that is added stands last: the view stays, and with it what a DBA has made for it. Columns that a view has
  -- in another order are those of an older program
  select unnest(internal.rest_view_drop_sql((rest_view_sql.c).name))
    from (select array_agg(a.attname::text order by a.attnum) as names
            from pg_catalog.pg_attribute a
           where a.attrelid = to_regclass(format('rest.%I', (rest_view_sql.c).name)) and a.attnum > 0) as former
   where former.names <> (internal.rest_view_columns(rest_view_sql.c))[1:cardinality(former.names)]
  union all
  -- it has its reader's privileges and policies; deleted rows are neither shown nor reached by an upsert
  select format('create or replace view rest.%1$I with (security_invoker = true, check_option = local) as select %2$s '
                'from collections.%1$I t where t.deleted_at is null',
                (rest_view_sql.c).name,
                (select string_agg(format('t.%I', k.name), ', ' order by k.n)
                   from unnest(internal.rest_view_columns(rest_view_sql.c)) with ordinality as k (name, n)))
  union all
  -- PostgREST reads the defaults of the view where a request asks for them (Prefer: missing=default)
  select format('alter view rest.%I alter column %I %s', (rest_view_sql.c).name, k.name,
                coalesce('set default ' || internal.collection_column_default(k), 'drop default'))
    from app.collection_columns k
   where k.collection_id = (rest_view_sql.c).id
  union all
  select format('comment on view rest.%I is %L', (rest_view_sql.c).name,
                coalesce((rest_view_sql.c).description, 'A collection of the project''s own.'))
  union all
  select format('create or replace trigger rest_delete instead of delete on rest.%I for each row execute function '
                'internal.tg_rest_rows__delete()', (rest_view_sql.c).name)
  union all
  select format('grant select, insert, update, delete on rest.%I to app_rest, app_server', (rest_view_sql.c).name)
  union all
  -- callers without a session read what everybody may
  select format(case (rest_view_sql.c).read_policy when 'public' then 'grant select on rest.%I to app_anon'
                     else 'revoke select on rest.%I from app_anon' end, (rest_view_sql.c).name)
  union all
  -- PostgREST names id in an upsert by id; whose row it is, the insert policies decide
  select format('grant insert (id, user_id), update (id) on collections.%I to app_rest', (rest_view_sql.c).name)
  union all
  select format('create or replace trigger rest_id_stays before update of id on collections.%I for each row when '
                '(old.id is distinct from new.id) '
                'execute function internal.tg_rest_rows__id_stays()', (rest_view_sql.c).name)
$$;
comment on function internal.rest_view_sql is
  'The statements that make the view of a collection, its privileges and its triggers. Granted to nobody.';

create or replace function internal.rest_view_follow(collection_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.collections;
  statement text;
begin
  if not exists (select from app.rest_access) then
    return;
  end if;
  select k.* into c from app.collections k where k.id = rest_view_follow.collection_id;
  for statement in select s from internal.rest_view_sql(c) as s loop
    execute statement;
  end loop;
  perform internal.rest_reload();
end $$;
comment on function internal.rest_view_follow is
  'After a collection was created or changed: makes its view again, if this project uses the REST access, and has
   PostgREST read the schema. Granted to nobody.';

create or replace function internal.rest_reload() returns void
language sql volatile security definer set search_path = '' as $$
  select pg_catalog.pg_notify('pgrst', 'reload schema') from app.rest_access
$$;
comment on function internal.rest_reload is
  'Has PostgREST read the schema again when this transaction commits, if this project uses the REST access. Granted to
   nobody.';

create or replace function api.rest_prepare() returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  current constant int := internal.rest_generator();
  former int;
  c app.collections;
  statement text;
  made int := 0;
begin
  -- before the row: a creation of a collection that began earlier ends first, and a later one sees the row
  perform internal.advisory_lock('collections');
  -- a change that began earlier ends first, and its columns are read below
  perform from app.collections k order by k.name for no key update;
  select d.generator into former from app.rest_access d for update;
  for c in select k.* from app.collections k order by k.name loop
    continue when former = current and to_regclass(format('rest.%I', c.name)) is not null;
    for statement in select s from internal.rest_view_sql(c) as s loop
      execute statement;
    end loop;
    made := made + 1;
  end loop;
  if former is distinct from current then
    insert into app.rest_access as d (generator) values (current)
    on conflict (id) do update set generator = excluded.generator, prepared_at = internal.now();
  end if;
  if made > 0 then
    perform internal.rest_reload();
  end if;
  return internal.reply(200, json_build_object('views', made));
end $$;
comment on function api.rest_prepare is
  'Before a process of PostgREST starts: makes the views of schema rest that are missing, or all of them when an older
   program made them: {views}, how many. Serialised with creations of collections.';
