-- The DDL of a collection's table, an ordinary table that is readable in psql. Each part is generated separately from
-- the catalog row, so that a later change generates only that part again.

create or replace function internal.collection_column_rules(collection text, c app.collection_columns,
                                                            operand text default null, out rule text,
                                                            out constraint_name text, out expression text,
                                                            out refusal text)
returns setof record
language sql stable as $$
  select r.rule, internal.collection_object_name(collection_column_rules.collection, (collection_column_rules.c).name,
                                                 r.rule),
         r.expression, format('400 INVALID_BODY %s: %s.', (collection_column_rules.c).name, r.refusal)
    from (
      select coalesce(collection_column_rules.operand, quote_ident((collection_column_rules.c).name)) as col,
             (collection_column_rules.c).type as type,
             (collection_column_rules.c).sql_type as sql_type
    ) as k
   cross join lateral (
      select 'max_length', format('char_length(%s) <= %s', k.col, (collection_column_rules.c).max_length),
             format('must have at most %s characters', (collection_column_rules.c).max_length)
       where (collection_column_rules.c).max_length is not null
      union all
      select 'min', format('%s >= %L::%s', k.col, (collection_column_rules.c).min, k.sql_type),
             format('must be at least %s', (collection_column_rules.c).min)
       where (collection_column_rules.c).min is not null
      union all
      select 'max', format('%s <= %L::%s', k.col, (collection_column_rules.c).max, k.sql_type),
             format('must be at most %s', (collection_column_rules.c).max)
       where (collection_column_rules.c).max is not null
      union all
      select 'enum',
             format('%s in (%s)', k.col, (select string_agg(internal.collection_literal(e.element, k.type, k.sql_type),
                                                            ', ' order by e.n)
                                            from json_array_elements((collection_column_rules.c).enum) with ordinality
                                              as e (element, n))),
             'must be one of the values of its enum'
       where (collection_column_rules.c).enum is not null
      union all
      -- JSON has no NaN and no infinity, so neither is stored
      select 'finite', format('%s not in (''NaN'', ''Infinity'', ''-Infinity'')', k.col), 'must be a finite number'
       where k.type in ('numeric', 'double')
      union all
      select 'finite', format('isfinite(%s)', k.col), 'must be a finite date'
       where k.type in ('date', 'timestamptz')
      union all
      select 'finite', format('not %s && ''{NaN,Infinity,-Infinity}''::numeric[]', k.col), 'must be finite numbers'
       where k.type = 'numeric[]'
      union all
      select 'flat', format('array_ndims(%s) = 1', k.col), 'must be a list without lists in it'
       where k.type like '%[]'
      union all
      select 'dimensions',
             format('cardinality(%1$s) = %2$s and array_ndims(%1$s) = 1 and array_position(%1$s, null) is null '
                    'and not %1$s && ''{NaN,Infinity,-Infinity}''::real[]', k.col,
                      (collection_column_rules.c).dimensions),
             format('must have %s numbers', (collection_column_rules.c).dimensions)
       where k.sql_type = 'real[]'
   ) as r (rule, expression, refusal)
$$;
comment on function internal.collection_column_rules is
  'The named checks of a column: the rule, the name in the table, the expression on the column (or another operand), and
   the refusal that becomes its comment.';

create or replace function internal.collection_column_default(c app.collection_columns) returns text
language sql stable as $$
  select case
    when (collection_column_default.c).default_value is null then null
    when json_typeof((collection_column_default.c).default_value) = 'object'
      and (collection_column_default.c).default_value ->> '$fn' is not null
    then case (collection_column_default.c).default_value ->> '$fn'
           when 'now' then case (collection_column_default.c).type
                             when 'date' then '((internal.now() at time zone ''UTC'')::date)' else 'internal.now()' end
           when 'uuid' then case (collection_column_default.c).type when 'text' then '(internal.new_id()::text)'
                                 else 'internal.new_id()' end
           when 'user_id' then case (collection_column_default.c).type when 'text' then '(internal.user_id()::text)'
                                    else 'internal.user_id()' end
         end
    else internal.collection_literal((collection_column_default.c).default_value, (collection_column_default.c).type,
                                     (collection_column_default.c).sql_type)
  end
$$;
comment on function internal.collection_column_default is 'The default of a column as SQL, or null when it has none.';

create or replace function internal.collection_column_definition(collection text, c app.collection_columns) returns text
language sql stable as $$
  select format('%I %s%s%s%s', (collection_column_definition.c).name, (collection_column_definition.c).sql_type,
                ' default ' || nullif(internal.collection_column_default(collection_column_definition.c), 'null'),
                case when not (collection_column_definition.c).nullable then ' not null' end,
                (select string_agg(format(' constraint %I check (%s)', r.constraint_name, r.expression), '')
                   from internal.collection_column_rules(collection_column_definition.collection,
                                                         collection_column_definition.c) r))
$$;
comment on function internal.collection_column_definition is
  'A column in the syntax of create table and add column, with its checks.';

create or replace function internal.collection_rule_comments(collection text, c app.collection_columns)
returns setof text
language sql stable as $$
  select format('comment on constraint %I on collections.%I is %L', r.constraint_name,
                collection_rule_comments.collection, r.refusal)
    from internal.collection_column_rules(collection_rule_comments.collection, collection_rule_comments.c) r
$$;
comment on function internal.collection_rule_comments is
  'The refusal of each check of a column, as the comment that the server reads.';

create or replace function internal.collection_unique_sql(collection text, col text) returns setof text
language sql stable as $$
  select s.statement
    from internal.collection_index_name(collection_unique_sql.collection, collection_unique_sql.col, 'key') as name
   cross join lateral (values
     -- a deleted row frees its unique values
     (1, format('create unique index %I on collections.%I (%I) where deleted_at is null', name,
                collection_unique_sql.collection, collection_unique_sql.col)),
     (2, format('comment on index collections.%I is %L', name,
                format('409 CONFLICT %s: A row with this value exists.', collection_unique_sql.col)))
   ) as s (n, statement)
   order by s.n
$$;
comment on function internal.collection_unique_sql is 'The statement that makes a column unique among the live rows.';

create or replace function internal.collection_reference_sql(collection text, c app.collection_columns, target text)
returns setof text
language sql stable as $$
  select s.statement
    from internal.collection_object_name(collection_reference_sql.collection, (collection_reference_sql.c).name,
                                         'fkey') as fkey
   cross join internal.collection_index_name(collection_reference_sql.collection, (collection_reference_sql.c).name,
                                             'ref') as index
   cross join lateral (values
     (1, format('create index %I on collections.%I (%I)', index, collection_reference_sql.collection,
                (collection_reference_sql.c).name)),
     (2, format('alter table collections.%I add constraint %I foreign key (%I) references collections.%I on delete %s',
                collection_reference_sql.collection, fkey, (collection_reference_sql.c).name,
                collection_reference_sql.target,
                -- internal.tg_collection_rows__deleted enforces restrict for live rows; it never prevents a hard
                -- deletion, such as that of a deleted user's rows
                case when (collection_reference_sql.c).on_delete = 'cascade'
                       or (collection_reference_sql.c).on_delete = 'restrict'
                       and not (collection_reference_sql.c).nullable
                     then 'cascade' else 'set null' end)),
     (3, format('comment on constraint %I on collections.%I is %L', fkey, collection_reference_sql.collection,
                format('400 INVALID_BODY %s: must be the id of a row of %s.', (collection_reference_sql.c).name,
                       collection_reference_sql.target)))
   ) as s (n, statement)
   order by s.n
$$;
comment on function internal.collection_reference_sql is
  'The statements of a reference: its index, and its foreign key.';

create or replace function internal.collection_trigger_sql(collection text, reference_columns text[]) returns setof text
language sql stable as $$
  select format('create or replace trigger collection_references_in after insert on collections.%I referencing new '
                'table as inserted '
                'for each statement execute function internal.tg_collection_rows__references()',
                  collection_trigger_sql.collection)
   where cardinality(collection_trigger_sql.reference_columns) > 0
  union all
  -- server keys and administrators read every row
  select format('create or replace trigger collection_references_read after insert on collections.%I referencing new '
                'table as inserted '
                'for each statement when (current_user in (''app_user'', ''app_rest'')) execute function '
                'internal.tg_collection_rows__references_read()',
                collection_trigger_sql.collection)
   where cardinality(collection_trigger_sql.reference_columns) > 0
  union all
  select format(t.statement, collection_trigger_sql.collection,
                (select string_agg(format('old.%1$I is distinct from new.%1$I', c), ' or ')
                   from unnest(collection_trigger_sql.reference_columns) as c))
    from (values ('create or replace trigger collection_references_moved after update on collections.%I for each row '
                  'when (%s) '
                  'execute function internal.tg_collection_rows__reference_moved()'),
                 ('create or replace trigger collection_references_read_moved after update on collections.%I for each '
                  'row '
                  'when (current_user in (''app_user'', ''app_rest'') and (%s)) execute function '
                  'internal.tg_collection_rows__reference_read_moved()'))
         as t (statement)
   where cardinality(collection_trigger_sql.reference_columns) > 0
$$;
comment on function internal.collection_trigger_sql is
  'The triggers that restrict references to live rows that the writer may read; none for a collection without
   references.';

create or replace function internal.collection_trigger_drop_sql(collection text) returns setof text
language sql immutable parallel safe as $$
  select format('drop trigger if exists %I on collections.%I', t.name, collection_trigger_drop_sql.collection)
    from unnest(array['collection_references_moved', 'collection_references_in', 'collection_references_read_moved',
                      'collection_references_read']) as t (name)
$$;
comment on function internal.collection_trigger_drop_sql is
  'Drops the triggers of references: a column in their conditions could not be dropped.';

create or replace function internal.collection_columns_whole(collection_id uuid, less text default null)
returns app.collection_columns[]
language sql stable as $$
  select coalesce(array_agg(k order by k.position), '{}') from app.collection_columns k
   where k.collection_id = collection_columns_whole.collection_id and k.name is distinct
     from collection_columns_whole.less
$$;
comment on function internal.collection_columns_whole is
  'The developer''s columns of a collection, in their order, except a column that is dropped.';

create or replace function internal.collection_is_bounded(type text) returns boolean
language sql immutable parallel safe
return collection_is_bounded.type in ('numeric', 'numeric[]', 'jsonb');
comment on function internal.collection_is_bounded is
  'Whether values of a type may be far longer written out than stored, so that internal.collection_size_sql names their
   columns.';

create or replace function internal.collection_size_sql(collection text, columns app.collection_columns[])
returns setof text
language sql immutable parallel safe as $$
  -- Most rows are never encoded to be measured. A row below 2,000 bytes cannot exceed the limit, however well its
  -- values are compressed, unless Postgres writes its numbers out: twelve bytes of a numeric may be 131,072 digits.
  -- Where a column may hold such numbers, these conditions are true of every row that could have one (a text of 1,000
  -- characters has no number of 1,001 digits), and none of them writes many long numbers out. An update of other
  -- columns, such as a deletion, writes none out.
  select format('create or replace trigger %s on collections.%I for each row when (%s) execute function '
                'internal.tg_collection_rows__size(%s)',
                t.what, collection_size_sql.collection,
                concat_ws(' or ', 'pg_catalog.pg_column_size(new.*) > 2000',
                  (select string_agg(format('(' || t.condition || '%2$s)', k.name, c.condition),
                                     ' or ' order by k.position)
                     from unnest(collection_size_sql.columns) as k
                    cross join lateral (select format(case k.type
                       when 'numeric' then 'abs(new.%1$I) >= 1e1000 or scale(new.%1$I) > 1000'
                       when 'numeric[]' then 'cardinality(new.%1$I) > 20 or 1e1000 <= any (new.%1$I) or -1e1000 >= '
                                             'any (new.%1$I) '
                                             'or octet_length(new.%1$I::text) > 1000'
                       else 'octet_length(new.%1$I::text) > 1000 or pg_catalog.jsonb_path_exists(new.%1$I, %2$L)' end,
                       k.name, 'strict $.**{200} ? (@.type() == "object" || @.type() == "array")')) as w (widens)
                    cross join lateral (select '(' || w.widens || ')') as c (condition)
                    where internal.collection_is_bounded(k.type))),
                (select quote_literal('lists') where exists (select from unnest(collection_size_sql.columns) as k
                                                              where k.type = 'numeric[]')))
    from (values ('collection_size after insert', ''),
                 ('collection_size_changed after update', 'old.%1$I is distinct from new.%1$I and ')) as t (what,
                                        condition)
$$;
comment on function internal.collection_size_sql is
  'The triggers that bound rows: at most 1 MB, numbers of at most 1,000 digits before and after their point, nesting of
   at most 200. Their conditions name columns: they are dropped before one of these is dropped or gets another type.';

create or replace function internal.collection_size_drop_sql(collection text) returns setof text
language sql immutable parallel safe as $$
  select format('drop trigger if exists %I on collections.%I', t.name, collection_size_drop_sql.collection)
    from unnest(array['collection_size', 'collection_size_changed']) as t (name)
$$;
comment on function internal.collection_size_drop_sql is
  'Drops the triggers of internal.collection_size_sql: a column in their conditions could not be changed.';

create or replace function internal.collection_table_sql(c app.collections, columns app.collection_columns[])
returns setof text
language sql stable as $$
  select format(e'create table collections.%I (\n  %s\n)', (collection_table_sql.c).name,
                array_to_string(
                  array['id uuid primary key default internal.new_id()']
                  || case (collection_table_sql.c).owner_scope
                       when 'user' then array['user_id uuid not null default internal.user_id() references app.users '
                                              'on delete cascade on update cascade']
                       else array['user_id uuid default internal.user_id() references app.users on delete set null on '
                                  'update cascade',
                                  'group_id uuid not null references app.groups on delete cascade']
                     end
                  || array['created_at timestamp with time zone not null default internal.now()',
                           'updated_at timestamp with time zone not null default internal.now()',
                           'deleted_at timestamp with time zone']
                  || array(select internal.collection_column_definition((collection_table_sql.c).name, col)
                             from unnest(collection_table_sql.columns) as col order by col.position),
                  e',\n  '))
  union all
  select format('comment on table collections.%I is %L', (collection_table_sql.c).name,
                coalesce((collection_table_sql.c).description, 'A collection of the project''s own.'))
  union all
  select comments.statement
    from unnest(collection_table_sql.columns) as col
   cross join lateral internal.collection_rule_comments((collection_table_sql.c).name, col) as comments (statement)
  union all
  select format('create index %I on collections.%I (%s)',
                internal.collection_index_name((collection_table_sql.c).name, i.part, 'idx'),
                (collection_table_sql.c).name, i.keys)
    from (values ('of_user', 'user_id, created_at desc, id desc'),
                 ('of_group', 'group_id, created_at desc, id desc'),
                 ('newest', 'created_at desc, id desc'),
                 ('changes', 'updated_at, id')) as i (part, keys)
   where i.part <> 'of_group' or (collection_table_sql.c).owner_scope = 'group'
  union all
  select s.statement
    from unnest(collection_table_sql.columns) as col
   cross join lateral internal.collection_unique_sql((collection_table_sql.c).name, col.name) as s (statement)
   where col.is_unique
  union all
  select format('alter table collections.%I enable row level security', (collection_table_sql.c).name)
  union all
  select format('create trigger collection_stamp before update on collections.%I for each row execute function '
                'internal.tg_collection_rows__stamp()',
                (collection_table_sql.c).name)
  union all
  select format('create trigger collection_deleted after update on collections.%I for each row '
                'when (old.deleted_at is null and new.deleted_at is not null) execute function '
                'internal.tg_collection_rows__deleted()',
                (collection_table_sql.c).name)
  union all
  select s.statement from internal.collection_size_sql((collection_table_sql.c).name,
                                                       collection_table_sql.columns) as s (statement)
  union all
  select internal.collection_publish_sql((collection_table_sql.c).name)
  union all
  select format('create trigger collection_group_is_private after insert on collections.%I referencing new table as '
                'inserted '
                'for each statement execute function internal.tg_collection_rows__group_is_private()',
                  (collection_table_sql.c).name)
   where (collection_table_sql.c).owner_scope = 'group'
  union all
  select format('create trigger collection_group_moved after update of group_id on collections.%I for each row '
                'when (old.group_id is distinct from new.group_id) execute function '
                'internal.tg_collection_rows__group_moved()',
                (collection_table_sql.c).name)
   where (collection_table_sql.c).owner_scope = 'group'
$$;
comment on function internal.collection_table_sql is
  'The statements that create a collection''s table, its standard indexes, its row-level security (without policies yet)
   and its triggers.';
