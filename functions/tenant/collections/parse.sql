-- Parses definitions from requests into catalog rows; refuses at the first invalid field.

create or replace function internal.collection_find(name text) returns app.collections
language plpgsql stable as $$
declare
  found_one app.collections;
begin
  select c.* into found_one from app.collections c where c.name = collection_find.name;
  perform internal.check_found(found_one.id is not null, 'collection', 'COLLECTION_NOT_FOUND');
  return found_one;
end $$;
comment on function internal.collection_find is 'A collection by its name. Refuses 404 COLLECTION_NOT_FOUND.';

create or replace function internal.collection_columns_of(collection_id uuid) returns app.collection_columns[]
language sql stable as $$
  select coalesce(array_agg(k order by k.position), '{}') from app.collection_columns k
   where k.collection_id = collection_columns_of.collection_id
$$;
comment on function internal.collection_columns_of is 'The developer''s columns of a collection, in their order.';

create or replace function internal.collection_policies_check(c app.collections, before app.collections default null)
returns void
language plpgsql volatile as $$
declare
  pair constant text := (collection_policies_check.c).owner_scope || ' ' || (collection_policies_check.c).read_policy
    || ' '
                        || (collection_policies_check.c).write_policy;
  policy record;
begin
  if (collection_policies_check.c).owner_scope not in ('user', 'group') then
    perform internal.invalid('owner_scope', 'must be user or group');
  end if;
  for policy in
    select p.field, substr(p.value, 6) as role_key
      from (values ('read_policy', (collection_policies_check.c).read_policy,
                    (collection_policies_check.before).read_policy),
                   ('write_policy', (collection_policies_check.c).write_policy,
                    (collection_policies_check.before).write_policy)) p (field, value, was)
     -- an existing policy may name a role that was deleted since
     where p.value like 'role:%' and p.value is distinct from p.was
  loop
    if not exists (select from app.roles r where r.key = policy.role_key) then
      perform internal.invalid(policy.field, 'must name a role of the project after role:');
    end if;
  end loop;
  if pair !~ ('^(user (owner|public|role:[a-z0-9_-]+) (owner|authenticated|role:[a-z0-9_-]+)'
              || '|group (owner|public|member(:(owner|admin|member|viewer))?|role:[a-z0-9_-]+) '
              || '(owner|member:(owner|admin|member|viewer)|role:[a-z0-9_-]+))$') then
    perform internal.fail(400, 'INVALID_POLICY',
                          'This owner_scope does not allow these policies: docs/collections.md has the allowed pairs.',
                          json_build_object(
      'owner_scope', (collection_policies_check.c).owner_scope,
        'read_policy', (collection_policies_check.c).read_policy,
      'write_policy', (collection_policies_check.c).write_policy));
  end if;
end $$;
comment on function internal.collection_policies_check is
  'Refuses 400 INVALID_POLICY for a pair that the scope does not allow, 400 VALIDATION_ERROR for a new policy with a
   role that does not exist.';

create or replace function internal.collection_default_check(k app.collection_columns, field text) returns void
language plpgsql volatile as $$
declare
  fn constant text := case json_typeof((collection_default_check.k).default_value) when 'object'
                        then (collection_default_check.k).default_value ->> '$fn' end;
begin
  if (collection_default_check.k).default_value is null then
    return;
  end if;
  if fn is not null then
    if not (case fn when 'now' then (collection_default_check.k).type in ('timestamptz', 'date')
                   when 'uuid' then (collection_default_check.k).type in ('uuid', 'text')
                   when 'user_id' then (collection_default_check.k).type in ('uuid', 'text')
                   else false end) then
      perform internal.invalid(collection_default_check.field,
                               '$fn must be now (timestamptz, date), uuid or user_id (uuid, text)');
    end if;
    if (collection_default_check.k).references_collection_id is not null then
      perform internal.invalid(collection_default_check.field, 'must be a literal for a column with references');
    end if;
    return;
  end if;
  if internal.collection_literal((collection_default_check.k).default_value, (collection_default_check.k).type,
                                 (collection_default_check.k).sql_type) is null then
    perform internal.invalid(collection_default_check.field,
                             'must be a value of type ' || (collection_default_check.k).type);
  end if;
  if not internal.collection_value_fits((collection_default_check.k).default_value, collection_default_check.k) then
    perform internal.invalid(collection_default_check.field, 'must be within the column''s own bounds');
  end if;
end $$;
comment on function internal.collection_default_check is
  'Refuses a default that is not a value of the column: 400 VALIDATION_ERROR.';

create or replace function internal.collection_value_fits(value json, k app.collection_columns) returns boolean
language plpgsql stable as $$
declare
  rule record;
  fits boolean;
begin
  for rule in select r.expression from internal.collection_column_rules('x', collection_value_fits.k) r loop
    execute format('select %s from (select %s as %I) as one', rule.expression,
                   internal.collection_literal(collection_value_fits.value, (collection_value_fits.k).type,
                                               (collection_value_fits.k).sql_type),
                   (collection_value_fits.k).name)
      into fits;
    if not fits then
      return false;
    end if;
  end loop;
  return true;
exception when data_exception then
  return false;
end $$;
comment on function internal.collection_value_fits is
  'Whether a value of a column''s type satisfies the column''s checks.';

create or replace function internal.collection_bound(definition json, bound text, k app.collection_columns, field text)
returns numeric
language plpgsql volatile as $$
declare
  sent constant json := collection_bound.definition -> collection_bound.bound;
begin
  if sent is null or json_typeof(sent) = 'null' then
    return null;
  end if;
  if (collection_bound.k).type not in ('integer', 'bigint', 'numeric', 'double') then
    perform internal.invalid(collection_bound.field || collection_bound.bound, 'is allowed for numbers only');
  end if;
  if internal.collection_literal(sent, (collection_bound.k).type, (collection_bound.k).sql_type) is null then
    perform internal.invalid(collection_bound.field || collection_bound.bound,
                             'must be a value of type ' || (collection_bound.k).type);
  end if;
  return (sent #>> '{}')::numeric;
end $$;
comment on function internal.collection_bound is 'min or max of a column. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.collection_limits_read(k app.collection_columns, definition json, field text)
returns app.collection_columns
language plpgsql volatile as $$
declare
  made app.collection_columns := collection_limits_read.k;
  sent json := collection_limits_read.definition -> 'max_length';
begin
  made.max_length := null;
  if json_typeof(sent) <> 'null' then
    if made.type <> 'text' then
      perform internal.invalid(collection_limits_read.field || 'max_length', 'is for text only');
    elsif json_typeof(sent) <> 'number' or sent::text !~ '^\d{1,8}$'
      or (sent #>> '{}')::int not between 1 and 10000000 then
      perform internal.invalid(collection_limits_read.field || 'max_length',
                               'must be a whole number from 1 to 10000000');
    end if;
    made.max_length := (sent #>> '{}')::int;
  end if;

  made.min := internal.collection_bound(collection_limits_read.definition, 'min', made, collection_limits_read.field);
  made.max := internal.collection_bound(collection_limits_read.definition, 'max', made, collection_limits_read.field);
  if made.min > made.max then
    perform internal.invalid(collection_limits_read.field || 'max', 'must not be less than min');
  end if;

  sent := collection_limits_read.definition -> 'enum';
  made.enum := null;
  if json_typeof(sent) <> 'null' then
    if made.type not in ('text', 'integer', 'bigint', 'numeric', 'double', 'date') then
      perform internal.invalid(collection_limits_read.field || 'enum', 'is for text, numbers and dates only');
    elsif json_typeof(sent) <> 'array' or json_array_length(sent) not between 1 and 200 then
      perform internal.invalid(collection_limits_read.field || 'enum', 'must be a list of 1 to 200 values');
    elsif exists (select from json_array_elements(sent) as e (element)
                   where json_typeof(e.element) = 'null'
                      or internal.collection_literal(e.element, made.type, made.sql_type) is null) then
      perform internal.invalid(collection_limits_read.field || 'enum',
                               'must contain values of type ' || made.type || ' only');
    end if;
    made.enum := sent;
  end if;
  return made;
end $$;
comment on function internal.collection_limits_read is
  'max_length, min, max and enum of a column. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.collection_flag(definition json, name text, usual boolean, field text)
returns boolean
language plpgsql volatile as $$
declare
  kind constant text := json_typeof(collection_flag.definition -> collection_flag.name);
begin
  if kind is null then
    return collection_flag.usual;
  elsif kind <> 'boolean' then
    perform internal.invalid(collection_flag.field || collection_flag.name, 'must be true or false');
  end if;
  return (collection_flag.definition ->> collection_flag.name)::boolean;
end $$;
comment on function internal.collection_flag is 'A boolean of a definition. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.collection_column_read(definition json, field text, owner app.collections,
                                                           place int)
returns app.collection_columns
language plpgsql volatile as $$
declare
  k app.collection_columns;
  reference constant json := collection_column_read.definition -> 'references';
begin
  if json_typeof(collection_column_read.definition) is distinct from 'object' then
    perform internal.invalid(rtrim(collection_column_read.field, '.'), 'must be an object');
  end if;
  k.id := internal.new_id();
  k.created_at := internal.now();
  k.collection_id := (collection_column_read.owner).id;
  k.position := collection_column_read.place;
  k.name := collection_column_read.definition ->> 'name';
  perform internal.collection_name_check(k.name, collection_column_read.field || 'name');

  k.type := collection_column_read.definition ->> 'type';
  if k.type is null
     or k.type not in ('text', 'integer', 'bigint', 'numeric', 'double', 'boolean', 'uuid', 'date', 'timestamptz',
                       'jsonb', 'vector',
                       'text[]', 'integer[]', 'bigint[]', 'numeric[]', 'boolean[]', 'uuid[]') then
    perform internal.invalid(collection_column_read.field || 'type',
      'must be one of text, integer, bigint, numeric, double, boolean, uuid, date, timestamptz, jsonb, vector, '
      'text[], integer[], bigint[], '
      'numeric[], boolean[], uuid[]');
  end if;
  if k.type = 'vector' then
    if coalesce(collection_column_read.definition ->> 'dimensions', '') !~ '^\d{1,5}$'
       or (collection_column_read.definition ->> 'dimensions')::int not between 1 and 16000 then
      perform internal.invalid(collection_column_read.field || 'dimensions', 'must be a whole number from 1 to 16000');
    end if;
    k.dimensions := (collection_column_read.definition ->> 'dimensions')::int;
    perform internal.vector_install();
  elsif json_typeof(collection_column_read.definition -> 'dimensions') <> 'null' then
    perform internal.invalid(collection_column_read.field || 'dimensions', 'is for vectors only');
  end if;
  k.sql_type := internal.collection_sql_type(k.type, k.dimensions);
  k.nullable := internal.collection_flag(collection_column_read.definition, 'nullable', true,
                                         collection_column_read.field);
  k.is_unique := internal.collection_flag(collection_column_read.definition, 'unique', false,
                                          collection_column_read.field);
  if k.is_unique and (k.type in ('jsonb', 'vector') or k.type like '%[]') then
    perform internal.invalid(collection_column_read.field || 'unique', 'is not for columns of type ' || k.type);
  end if;
  k.is_moderated := internal.collection_flag(collection_column_read.definition, 'moderated', false,
                                             collection_column_read.field);
  if k.is_moderated and k.type <> 'text' then
    perform internal.invalid(collection_column_read.field || 'moderated', 'is for columns of type text only');
  end if;
  k := internal.collection_limits_read(k, collection_column_read.definition, collection_column_read.field);

  if json_typeof(reference) <> 'null' then
    if k.type <> 'uuid' then
      perform internal.invalid(collection_column_read.field || 'references', 'is for columns of type uuid only');
    elsif json_typeof(reference) <> 'object' then
      perform internal.invalid(collection_column_read.field || 'references', 'must be {collection, on_delete}');
    end if;
    k.on_delete := coalesce(reference ->> 'on_delete', 'set_null');
    if k.on_delete not in ('set_null', 'cascade', 'restrict') then
      perform internal.invalid(collection_column_read.field || 'references.on_delete',
                               'must be set_null, cascade or restrict');
    elsif k.on_delete = 'set_null' and not k.nullable then
      perform internal.invalid(collection_column_read.field || 'references.on_delete',
                               'must not be set_null for a column that is not nullable');
    end if;
    k.references_collection_id := case when reference ->> 'collection' = (collection_column_read.owner).name
                                         then (collection_column_read.owner).id
      else (select c.id from app.collections c where c.name = reference ->> 'collection') end;
    if k.references_collection_id is null then
      perform internal.invalid(collection_column_read.field || 'references.collection',
                               'must be the name of a collection');
    end if;
  end if;

  k.default_value := case when json_typeof(collection_column_read.definition -> 'default') <> 'null'
                            then collection_column_read.definition -> 'default' end;
  perform internal.collection_default_check(k, collection_column_read.field || 'default');
  return k;
end $$;
comment on function internal.collection_column_read is
  'A column of a request as a catalog row. field is the prefix of its field names: "columns.0." or nothing. Refuses 400
   VALIDATION_ERROR, RESERVED_NAME. The first vector column of a project installs pgvector if the server has it.';

create or replace function internal.vector_install() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if to_regtype('extensions.vector') is null
    and exists (select from pg_available_extensions e where e.name = 'vector') then
    create extension if not exists vector with schema extensions;
  end if;
exception when insufficient_privilege then
  -- otherwise vectors are real[], with the same results
  null;
end $$;
comment on function internal.vector_install is 'Installs pgvector if the server has it and allows it.';

create or replace function internal.collection_index_named(columns text[], method text, is_unique boolean) returns text
language sql immutable
return left(array_to_string(collection_index_named.columns, '_'), 50)
       || case when collection_index_named.is_unique then '_unique'
               else '_' || coalesce(collection_index_named.method, 'btree') end;
comment on function internal.collection_index_named is 'The name of an index that is given none.';

create or replace function internal.collection_index_read(definition json, field text, owner app.collections,
                                                          columns app.collection_columns[])
returns app.collection_indexes
language plpgsql volatile as $$
declare
  i app.collection_indexes;
  sent constant json := collection_index_read.definition -> 'columns';
  types text[];
begin
  if json_typeof(collection_index_read.definition) is distinct from 'object' then
    perform internal.invalid(rtrim(collection_index_read.field, '.'), 'must be an object');
  end if;
  i.id := internal.new_id();
  i.created_at := internal.now();
  i.collection_id := (collection_index_read.owner).id;
  i.is_ready := true;
  if json_typeof(sent) is distinct from 'array' or json_array_length(sent) not between 1 and 10
     or exists (select from json_array_elements(sent) as e (element) where json_typeof(e.element) <> 'string') then
    perform internal.invalid(collection_index_read.field || 'columns', 'must be a list of 1 to 10 names of columns');
  end if;
  i.columns := array(select e.element from json_array_elements_text(sent) with ordinality as e (element, n)
                      order by e.n);
  if (select count(distinct c) from unnest(i.columns) as c) < cardinality(i.columns) then
    perform internal.invalid(collection_index_read.field || 'columns', 'must name each column once');
  end if;
  types := array(
    select coalesce(
             (select k.type from unnest(collection_index_read.columns) as k where k.name = c.name),
             case when c.name in ('id', 'user_id') or c.name = 'group_id'
                  and (collection_index_read.owner).owner_scope = 'group' then 'uuid'
                  when c.name in ('created_at', 'updated_at', 'deleted_at') then 'timestamptz' end)
      from unnest(i.columns) with ordinality as c (name, n) order by c.n);
  if array_position(types, null) is not null then
    perform internal.invalid(collection_index_read.field || 'columns', 'must name columns of the collection only');
  end if;

  i.method := coalesce(collection_index_read.definition ->> 'method', 'btree');
  i.is_unique := internal.collection_flag(collection_index_read.definition, 'unique', false,
                                          collection_index_read.field);
  if i.method not in ('btree', 'gin', 'trgm', 'hnsw') then
    perform internal.invalid(collection_index_read.field || 'method', 'must be btree, gin, trgm or hnsw');
  elsif i.is_unique and i.method <> 'btree' then
    perform internal.invalid(collection_index_read.field || 'unique', 'is for method btree only');
  elsif i.method = 'btree' and types && array['jsonb', 'vector'] then
    perform internal.invalid(collection_index_read.field || 'columns',
                             'must not hold jsonb or vector columns for method btree');
  elsif i.method = 'gin' and exists (select from unnest(types) as t where t <> 'jsonb' and t not like '%[]') then
    perform internal.invalid(collection_index_read.field || 'columns', 'must be jsonb or array columns for method gin');
  elsif i.method = 'trgm' and exists (select from unnest(types) as t where t <> 'text') then
    perform internal.invalid(collection_index_read.field || 'columns', 'must be text columns for method trgm');
  elsif i.method = 'hnsw' and types <> array['vector'] then
    perform internal.invalid(collection_index_read.field || 'columns', 'must be one vector column for method hnsw');
  elsif i.method = 'hnsw' and (select k.sql_type = 'real[]' or k.dimensions > 2000
                                 from unnest(collection_index_read.columns) as k
                                where k.name = i.columns[1]) then
    perform internal.invalid(collection_index_read.field || 'method',
                             'hnsw needs a server with pgvector, and at most 2000 dimensions');
  end if;

  i.name := coalesce(collection_index_read.definition ->> 'name',
                     internal.collection_index_named(i.columns, i.method, i.is_unique));
  if i.name !~ '^[a-z][a-z0-9_]{0,62}$' then
    perform internal.invalid(collection_index_read.field || 'name', 'must match ^[a-z][a-z0-9_]{0,62}$');
  end if;
  if json_typeof(collection_index_read.definition -> 'where') <> 'null' then
    i.where_filter := collection_index_read.definition -> 'where';
    perform internal.collection_index_condition(i, collection_index_read.owner, collection_index_read.columns,
                                                collection_index_read.field || 'where');
  end if;
  return i;
end $$;
comment on function internal.collection_index_read is
  'An index of a request as a catalog row without its index_name. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.collection_index_sql(i app.collection_indexes, owner app.collections,
                                                         columns app.collection_columns[],
                                                         is_concurrent boolean default false)
returns setof text
language sql volatile as $$
  select format('create %sindex %s%I on collections.%I using %s (%s)%s',
                case when (collection_index_sql.i).is_unique then 'unique ' end,
                case when collection_index_sql.is_concurrent then 'concurrently ' end,
                (collection_index_sql.i).index_name, (collection_index_sql.owner).name,
                case (collection_index_sql.i).method when 'trgm' then 'gin' else (collection_index_sql.i).method end,
                (select string_agg(quote_ident(c.name) || case (collection_index_sql.i).method
                           when 'trgm' then ' extensions.gin_trgm_ops'
                           when 'hnsw' then ' extensions.vector_cosine_ops'
                           when 'gin' then (select case k.type when 'jsonb' then ' jsonb_path_ops' else '' end
                                              from unnest(collection_index_sql.columns) as k where k.name = c.name)
                           else '' end, ', ' order by c.n)
                   from unnest((collection_index_sql.i).columns) with ordinality as c (name, n)),
                ' where ' || nullif(concat_ws(' and ',
                  -- a deleted row frees its unique values
                  case when (collection_index_sql.i).is_unique then 'deleted_at is null' end,
                  case when (collection_index_sql.i).where_filter is not null
                       then internal.collection_index_condition(collection_index_sql.i, collection_index_sql.owner,
                                                                collection_index_sql.columns, 'where')
                  end), ''))
  union all
  select format('comment on index collections.%I is %L', (collection_index_sql.i).index_name,
                format('409 CONFLICT %s: A row with these values exists.', (collection_index_sql.i).columns[1]))
   where (collection_index_sql.i).is_unique
$$;
comment on function internal.collection_index_sql is 'The statement that creates a declared index.';
