-- Changes of one column: its name, nullability, default, type and bounds; each is applied only if all rows satisfy it.

create or replace function internal.collection_type_change(k app.collection_columns, type text) returns text
language sql immutable as $$
  select case
    when collection_type_change.type = 'text' then case (collection_type_change.k).type
      when 'timestamptz' then format('to_char(%I at time zone ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"'')',
                                     (collection_type_change.k).name)
      when 'date' then format('to_char(%I, ''YYYY-MM-DD'')', (collection_type_change.k).name)
      when 'vector' then case (collection_type_change.k).sql_type
                              when 'real[]' then format('array_to_json(%I)::text', (collection_type_change.k).name)
                                                                  else format('%I::text',
                                                                    (collection_type_change.k).name) end
      else case when (collection_type_change.k).type like '%[]' then format('array_to_json(%I)::text',
                                        (collection_type_change.k).name)
                else format('%I::text', (collection_type_change.k).name) end
    end
    when (collection_type_change.k).type || '>' || collection_type_change.type
         in ('integer>bigint', 'integer>numeric', 'bigint>numeric', 'integer>double')
    then format('%I::%s', (collection_type_change.k).name,
                case collection_type_change.type when 'double' then 'double precision'
                     else collection_type_change.type end)
    when (collection_type_change.k).type = 'date' and collection_type_change.type = 'timestamptz'
    then format('%I::timestamp at time zone ''UTC''', (collection_type_change.k).name)
  end
$$;
comment on function internal.collection_type_change is
  'The expression that converts a column''s values to another type without loss; null when there is none.';

create or replace function internal.collection_column_after(c app.collections, k app.collection_columns, patch json)
returns app.collection_columns
language plpgsql volatile as $$
declare
  sent jsonb;
  whole jsonb;
  made app.collection_columns;
begin
  select coalesce(jsonb_object_agg(p.key, p.value), '{}') into sent
    from jsonb_each(collection_column_after.patch::jsonb) as p
   where p.key in ('name', 'nullable', 'default', 'type', 'max_length', 'enum', 'min', 'max', 'moderated');
  if sent ->> 'type' <> (collection_column_after.k).type
    and exists (select from internal.collection_type(sent ->> 'type')) then
    -- before other properties of the column are found not to suit the new type
    perform internal.collection_type_may_change(collection_column_after.c, collection_column_after.k, sent ->> 'type',
                                                internal.collection_type_change(collection_column_after.k,
                                                  sent ->> 'type'));
  end if;
  whole := internal.collection_column_json(collection_column_after.k)::jsonb - 'graphql_name';
  if sent ->> 'type' <> 'vector' then
    whole := whole || '{"dimensions": null}';
  end if;
  if sent ->> 'type' = 'text' and (collection_column_after.k).type <> 'text' then
    -- bounds of numbers have no meaning for text; values are written as the rows' values are converted
    whole := whole || '{"min": null, "max": null}'
      || jsonb_build_object('enum', (select jsonb_agg(to_jsonb(e.element #>> '{}'))
                                       from jsonb_array_elements(nullif(whole -> 'enum', 'null')) as e (element)))
      || case when jsonb_typeof(whole -> 'default') in ('number', 'boolean') then jsonb_build_object('default',
                                        whole ->> 'default') else '{}' end;
  end if;
  made := internal.collection_column_read((whole || sent)::json, '', collection_column_after.c,
                                          (collection_column_after.k).position);
  if made.type = (collection_column_after.k).type then
    made.sql_type := (collection_column_after.k).sql_type;
  end if;
  made.id := (collection_column_after.k).id;
  made.created_at := (collection_column_after.k).created_at;
  return made;
end $$;
comment on function internal.collection_column_after is
  'The definition of a column after a patch. Refuses 400 VALIDATION_ERROR, RESERVED_NAME, 409 UNSAFE_TYPE_CHANGE,
   CONFLICT.';

create or replace function internal.collection_column_rename_sql(collection text, k app.collection_columns,
                                                                 new_name text)
returns setof text
language sql stable security definer set search_path = '' as $$
  select format('alter table collections.%I rename column %I to %I', collection_column_rename_sql.collection,
                (collection_column_rename_sql.k).name, collection_column_rename_sql.new_name)
  union all
  select s.statement
    from (values ('max_length'), ('min'), ('max'), ('enum'), ('finite'), ('flat'), ('dimensions'), ('fkey')) as r (rule)
   cross join lateral (select internal.collection_object_name(collection_column_rename_sql.collection,
                                                              (collection_column_rename_sql.k).name, r.rule) as old,
                              internal.collection_object_name(collection_column_rename_sql.collection,
                                                              collection_column_rename_sql.new_name,
                                                                r.rule) as new) as n
    join pg_catalog.pg_constraint x
      on x.conrelid = to_regclass(format('collections.%I', collection_column_rename_sql.collection))
     and x.conname = n.old
   cross join lateral (values
     (1, format('alter table collections.%I rename constraint %I to %I', collection_column_rename_sql.collection, n.old,
                n.new)),
     (2, format('comment on constraint %I on collections.%I is %L', n.new, collection_column_rename_sql.collection,
                regexp_replace(obj_description(x.oid, 'pg_constraint'), '^(\d+ [A-Z_]+) [a-z0-9_]+:',
                               '\1 ' || collection_column_rename_sql.new_name || ':')))
   ) as s (n, statement)
  union all
  select s.statement
    from (values ('key'), ('ref')) as r (rule)
    join pg_catalog.pg_index i on i.indrelid = to_regclass(format('collections.%I',
                                                                  collection_column_rename_sql.collection))
    join pg_catalog.pg_class x on x.oid = i.indexrelid
     and x.relname in (internal.collection_object_name(collection_column_rename_sql.collection,
                                                       (collection_column_rename_sql.k).name, r.rule),
                       internal.collection_hashed_name(collection_column_rename_sql.collection,
                                                       (collection_column_rename_sql.k).name, r.rule))
   cross join lateral (select internal.collection_index_name(collection_column_rename_sql.collection,
                                                             collection_column_rename_sql.new_name, r.rule) as new) as n
   cross join lateral (values
     (1, format('alter index collections.%I rename to %I', x.relname, n.new)),
     (2, format('comment on index collections.%I is %L', n.new,
                regexp_replace(obj_description(x.oid, 'pg_class'), '^(\d+ [A-Z_]+) [a-z0-9_]+:',
                               '\1 ' || collection_column_rename_sql.new_name || ':')))
   ) as s (n, statement)
   where s.statement is not null
$$;
comment on function internal.collection_column_rename_sql is
  'Renames a column, and the constraints and indexes that contain its name. No rows are rewritten. Granted to nobody.';

create or replace function internal.collection_rules_added(before app.collection_columns, after app.collection_columns)
returns text[]
language sql stable as $$
  select coalesce(array_agg(n.rule), '{}')
    from internal.collection_column_rules('', collection_rules_added.after, '*') n
   where not exists (select from internal.collection_column_rules('', collection_rules_added.before, '*') o
                      where (o.rule, o.expression) = (n.rule, n.expression))
$$;
comment on function internal.collection_rules_added is
  'The rules of a column that differ from its former rules; with the arguments swapped, those that were removed.';

create or replace function internal.collection_rules_fit(c app.collections, before app.collection_columns,
                                                         after app.collection_columns, changes text)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  rule record;
  failing json;
begin
  for rule in
    select r.rule, r.expression
      from internal.collection_column_rules((collection_rules_fit.c).name, collection_rules_fit.after,
                                            format('(%s)', collection_rules_fit.changes)) r
     where r.rule = any (internal.collection_rules_added(collection_rules_fit.before, collection_rules_fit.after))
  loop
    failing := internal.collection_failing((collection_rules_fit.c).name, (collection_rules_fit.before).name,
                                           format('not (%s)', rule.expression));
    if failing is not null then
      perform internal.fail(409, 'UNSAFE_TYPE_CHANGE', 'Rows do not fit ' || rule.rule || '.', failing);
    end if;
  end loop;
end $$;
comment on function internal.collection_rules_fit is
  'Refuses 409 UNSAFE_TYPE_CHANGE when rows violate a new check. Granted to nobody.';

create or replace function internal.collection_type_may_change(c app.collections, k app.collection_columns, type text,
                                                               changes text)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  held text;
begin
  if collection_type_may_change.changes is null then
    perform internal.fail(409, 'UNSAFE_TYPE_CHANGE',
                          format('A column of type %s cannot become %s without loss.',
                                 (collection_type_may_change.k).type,
                                 collection_type_may_change.type),
      coalesce(internal.collection_failing((collection_type_may_change.c).name, (collection_type_may_change.k).name,
                                           format('%I is not null', (collection_type_may_change.k).name)),
               '{"failing_rows": 0, "sample": []}'));
  end if;
  if (collection_type_may_change.k).references_collection_id is not null then
    perform internal.invalid('type', 'must stay uuid for a column with references');
  end if;
  -- indexes that support only the present type
  select i.name into held
    from app.collection_indexes i
   where i.collection_id = (collection_type_may_change.c).id
     and (i.method <> 'btree' and (collection_type_may_change.k).name = any (i.columns)
          or internal.filter_names_column(i.where_filter, (collection_type_may_change.k).name))
   order by i.name limit 1;
  if held is not null then
    perform internal.fail(409, 'CONFLICT', 'The index ' || held
                          || ' is made for the type that the column has: drop it first.',
                          json_build_object('index', held));
  end if;
end $$;
comment on function internal.collection_type_may_change is
  'Refuses 409 UNSAFE_TYPE_CHANGE for a change that could lose data, 409 CONFLICT when an index prevents it. Granted to
   nobody.';

create or replace function api.collection_column_change(name text, "column" text, patch json,
                                                        dry_run boolean default false)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c constant app.collections := internal.collection_lock(collection_column_change.name);
  before constant app.collection_columns := internal.collection_column_find(c, collection_column_change."column");
  after constant app.collection_columns := internal.collection_column_after(c, before, collection_column_change.patch);
  plan record;
begin
  select p.* into plan from internal.collection_column_plan(c, before, after) p;
  if collection_column_change.dry_run then
    return internal.reply(200, internal.collection_plan_json(plan.statements, plan.rewrites_table, plan.rows,
                                                             plan.estimated_ms, plan.warnings));
  end if;
  if to_jsonb(after) = to_jsonb(before) then
    return internal.reply(200, internal.collection_column_json(before));
  end if;
  perform internal.collection_execute(
    -- a view keeps the names and the types of its columns
    case when (after.name, after.sql_type) is distinct from (before.name, before.sql_type)
         then internal.rest_view_drop_sql(c.name) else '{}' end || plan.statements);
  update app.collection_columns k
     set name = after.name, type = after.type, sql_type = after.sql_type, nullable = after.nullable,
       default_value = after.default_value,
         max_length = after.max_length, min = after.min, max = after.max, enum = after.enum,
         dimensions = after.dimensions, is_moderated = after.is_moderated
   where k.id = before.id;
  if after.name <> before.name then
    delete from app.graphql_names n where n.column_id = before.id;
    update app.collection_indexes i
       set columns = array_replace(i.columns, before.name, after.name),
           where_filter = internal.filter_with_renamed(i.where_filter::jsonb, before.name, after.name)::json
     where i.collection_id = c.id;
  end if;
  perform internal.collection_changed(c.id);
  return internal.reply(200, internal.collection_column_json(after));
end $$;
comment on function api.collection_column_change is
  'Changes a column in place, without loss. With dry_run returns the plan. Refuses 404 COLLECTION_NOT_FOUND, NOT_FOUND,
   400 VALIDATION_ERROR, RESERVED_NAME, 409 CONFLICT, DEFAULT_REQUIRED, UNSAFE_TYPE_CHANGE. Locks the table, for the
   duration of a rewrite if a new type needs one.';

create or replace function internal.collection_column_plan(c app.collections, before app.collection_columns,
                                                           after app.collection_columns, out statements text[],
                                                           out rewrites_table boolean, out rows bigint,
                                                           out estimated_ms bigint, out warnings text[])
language plpgsql volatile security definer set search_path = '' as $$
declare
  tab constant text := format('collections.%I', (collection_column_plan.c).name);
  old_name constant text := (collection_column_plan.before).name;
  new_name constant text := (collection_column_plan.after).name;
  is_typed constant boolean := (collection_column_plan.after).type <> (collection_column_plan.before).type;
  changes constant text := case when is_typed then internal.collection_type_change(collection_column_plan.before,
                                        (collection_column_plan.after).type)
                                else quote_ident((collection_column_plan.before).name) end;
  is_bounded constant boolean := is_typed and (internal.collection_is_bounded((collection_column_plan.before).type)
                                               or internal.collection_is_bounded((collection_column_plan.after).type));
  default_before constant text := internal.collection_column_default(collection_column_plan.before);
  default_after constant text := internal.collection_column_default(collection_column_plan.after);
  renamed app.collection_columns := collection_column_plan.before;
  failing json;
  gone text[];
  added text[];
begin
  renamed.name := new_name;
  rows := internal.collection_rows_estimate((collection_column_plan.c).name);
  warnings := '{}';
  statements := '{}';
  rewrites_table := is_typed;
  if new_name <> old_name and exists (select from pg_catalog.pg_attribute a
                                       where a.attrelid = to_regclass(tab) and a.attname = new_name
                                         and not a.attisdropped) then
    perform internal.fail(409, 'CONFLICT', 'A column with this name exists: choose another name.', '{"field": "name"}');
  end if;
  if is_typed then
    perform internal.collection_type_may_change(collection_column_plan.c, collection_column_plan.before,
                                                (collection_column_plan.after).type, changes);
  end if;
  perform internal.collection_rules_fit(collection_column_plan.c, collection_column_plan.before,
                                        collection_column_plan.after, changes);

  if new_name <> old_name then
    statements := array(select s from internal.collection_column_rename_sql((collection_column_plan.c).name,
                                        collection_column_plan.before, new_name) as s);
  end if;
  -- checks whose expression changes: dropped before the change of type, and added after it
  gone := internal.collection_rules_added(collection_column_plan.after, collection_column_plan.before);
  added := internal.collection_rules_added(collection_column_plan.before, collection_column_plan.after);
  statements := statements || array(
    select format('alter table %s drop constraint if exists %I', tab,
                  internal.collection_object_name((collection_column_plan.c).name, new_name, g.rule))
      from unnest(gone) as g (rule));
  if is_typed or default_after is distinct from default_before then
    statements := statements || case when default_before is not null
                                       then array[format('alter table %s alter column %I drop default', tab, new_name)]
                                         else '{}' end;
  end if;
  if is_bounded then
    statements := statements || array(select s
                                        from internal.collection_size_drop_sql((collection_column_plan.c).name) as s);
  end if;
  if is_typed then
    statements := statements || format('alter table %s alter column %I type %s using %s', tab, new_name,
                                       (collection_column_plan.after).sql_type,
                                       internal.collection_type_change(renamed, (collection_column_plan.after).type));
  end if;
  if default_after is not null and default_after <> 'null'
    and (is_typed or default_after is distinct from default_before) then
    statements := statements || format('alter table %s alter column %I set default %s', tab, new_name, default_after);
  end if;
  statements := statements
    || array(select format('alter table %s add constraint %I check (%s)', tab, r.constraint_name, r.expression)
               from internal.collection_column_rules((collection_column_plan.c).name, collection_column_plan.after) r
                 where r.rule = any (added))
    || array(select format('comment on constraint %I on %s is %L', r.constraint_name, tab, r.refusal)
               from internal.collection_column_rules((collection_column_plan.c).name, collection_column_plan.after) r
                 where r.rule = any (added));

  if (collection_column_plan.before).nullable and not (collection_column_plan.after).nullable then
    failing := internal.collection_failing((collection_column_plan.c).name, old_name, format('%I is null', old_name));
    if failing is not null then
      if coalesce(default_after, 'null') = 'null'
        or (collection_column_plan.after).default_value::text like '%user_id%' then
        perform internal.fail(409, 'DEFAULT_REQUIRED',
                              'Some rows have no value: the column needs a default to become not nullable.', failing);
      end if;
      statements := statements || format('update %s set %I = %s where %2$I is null', tab, new_name, default_after);
      warnings := warnings || format('%s rows without a value get the default.', failing ->> 'failing_rows');
    end if;
    statements := statements || format('alter table %s alter column %I set not null', tab, new_name);
  elsif not (collection_column_plan.before).nullable and (collection_column_plan.after).nullable then
    statements := statements || format('alter table %s alter column %I drop not null', tab, new_name);
  end if;
  if (collection_column_plan.before).nullable <> (collection_column_plan.after).nullable
    and (collection_column_plan.after).on_delete = 'restrict' then
    -- the action on the row when the deletion of a user deletes the row that it refers to
    statements := statements || format('alter table %s drop constraint if exists %I', tab,
                                       internal.collection_object_name((collection_column_plan.c).name, new_name,
                                                                       'fkey'))
      || array(select r.statement
                 from internal.collection_reference_sql((collection_column_plan.c).name, collection_column_plan.after,
                        (select o.name from app.collections o
                          where o.id = (collection_column_plan.after).references_collection_id))
                      with ordinality as r (statement, n)
                -- its index is kept
                where r.n > 1 order by r.n);
  end if;

  if is_bounded then
    statements := statements || array(
      select s from internal.collection_size_sql((collection_column_plan.c).name,
        internal.collection_columns_whole((collection_column_plan.c).id,
                                          old_name) || collection_column_plan.after) as s);
  end if;
  if (collection_column_plan.after).is_moderated <> (collection_column_plan.before).is_moderated then
    statements := statements || internal.collection_moderation_sql((collection_column_plan.c).name,
                                                                   (collection_column_plan.after).is_moderated
      or exists (select from app.collection_columns o
                  where o.collection_id = (collection_column_plan.c).id and o.id <> (collection_column_plan.before).id
                    and o.is_moderated));
  end if;

  estimated_ms := 10 + rows / case when rewrites_table then 200 when cardinality(added) > 0 then 2000 else 1000000 end;
  if rewrites_table and rows > 100000 then
    warnings := warnings || 'The table is rewritten, and locked until this ends.'::text;
  end if;
end $$;
comment on function internal.collection_column_plan is
  'The statements of a column''s change, and their cost. Granted to nobody.';
