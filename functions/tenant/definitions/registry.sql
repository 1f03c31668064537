-- What the registry internal.definitions and the catalog say of an entity that developers define. All dynamic SQL about definitions is in this
-- folder: identifiers come from the registry and the catalog, through %I or as regclass, values are always parameters. Functions that take a row
-- or a null of a row type (null::app.xp_rules) know the entity by that type. See docs/definitions.md.
create or replace function internal.definition_of(kind text) returns internal.definitions
language plpgsql stable as $$
declare
  declared internal.definitions;
begin
  select d.* into declared from internal.definitions d where d.kind = definition_of.kind;
  if declared.kind is null then
    raise exception 'no definition is declared as %', definition_of.kind;
  end if;
  return declared;
end $$;
comment on function internal.definition_of(text) is 'The declaration of a kind. Raises where there is none.';

create or replace function internal.definition_of(shape anyelement) returns internal.definitions
language plpgsql stable set search_path = '' as $$
declare
  row_type constant text := pg_typeof(definition_of.shape)::text;
  declared internal.definitions;
begin
  select d.* into declared from internal.definitions d where d.table_name = row_type;
  if declared.kind is null then
    raise exception 'no definition is declared for %', row_type;
  end if;
  return declared;
end $$;
comment on function internal.definition_of(anyelement) is 'The declaration of the entity whose rows have this type. Raises where there is none.';

create or replace function internal.definition_columns(d internal.definitions)
returns table (name text, "position" int, is_field boolean, is_settable boolean, is_required boolean, is_shown boolean, is_written boolean, shown text,
               initial text)
language sql stable as $$
  select a.attname::text, a.attnum::int,
         k.is_configuration and not k.is_fixed, k.is_configuration, k.is_configuration and a.attnotnull,
         k.is_shown, k.is_shown and a.attgenerated = '',
         format(case a.atttypid when 'timestamptz'::regtype then 'internal.iso((r).%I)' when 'numeric'::regtype then 'internal.numeric_json((r).%I)'
                else '(r).%I' end, a.attname),
         coalesce(case when a.attgenerated = '' then pg_get_expr(f.adbin, f.adrelid) end, 'null')
    from pg_catalog.pg_attribute a
   cross join lateral (
     select a.attname <> all (array['id', 'created_at', 'updated_at'] || (definition_columns.d).state_columns) and a.attgenerated = '' as is_configuration,
            a.attname <> all ((definition_columns.d).state_columns) as is_shown, a.attname = any ((definition_columns.d).fixed_columns) as is_fixed) k
    left join pg_catalog.pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
   where a.attrelid = to_regclass((definition_columns.d).table_name) and a.attnum > 0 and not a.attisdropped
   order by a.attnum
$$;
comment on function internal.definition_columns is
  'The columns of an entity in their order: is_settable ones are configuration, is_field ones can also be changed later, is_shown ones are in the
   common JSON, is_written ones are written when a row is created; shown is the SQL of the value in JSON, of a row r, and initial that of the default.';

create or replace function internal.definition_hook(d internal.definitions, hook text) returns text
language sql stable as $$
  select format('internal.%I', h.name)
    from (select (definition_hook.d).kind || '_' || definition_hook.hook as name) h
   where to_regprocedure(format(
           'internal.%I(%s)', h.name,
           replace(case definition_hook.hook
                     when 'find' then 'text'
                     when 'json' then 'row'
                     when 'listed' then 'row,jsonb'
                     when 'before_write' then 'jsonb'
                     when 'before_update' then 'row,jsonb'
                     when 'before_delete' then 'row'
                     when 'check' then 'row,row,jsonb'
                     when 'after_write' then 'row,row,jsonb'
                   end, 'row', (definition_hook.d).table_name))) is not null
$$;
comment on function internal.definition_hook is
  'The function internal.<kind>_<hook> that an entity has of its own, under the signature of this hook, or null. docs/definitions.md lists the hooks.';

create or replace function internal.definition_compiled(d internal.definitions, part text) returns text
language sql immutable
return format('internal.%I', (definition_compiled.d).kind || '__' || definition_compiled.part);
comment on function internal.definition_compiled is 'The name of a function that internal.definition_declare made: part is json or new.';

create or replace function internal.definition_declare(kind text) returns void
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_declare.kind);
  row_type constant regclass := d.table_name::regclass;
  json_name constant text := internal.definition_compiled(d, 'json');
  new_name constant text := internal.definition_compiled(d, 'new');
  parts record;
begin
  select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.is_written) as written,
         string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.is_field) as fields,
         string_agg(format('%L, %s', c.name, c.shown), ', ' order by c.position)
           filter (where c.is_shown) as pairs,
         string_agg(c.initial, ', ' order by c.position) as defaults
    into parts
    from internal.definition_columns(d) c;
  execute format('grant select, insert (%s), update (%s, updated_at), delete on %s to app_admin', parts.written, parts.fields, row_type);
  -- plpgsql, because its plans are kept in a session: an inlined function would be planned at each call
  execute format('create or replace function %s() returns %s language plpgsql volatile as %L', new_name, row_type,
                 format('begin return row(%s)::%s; end', parts.defaults, row_type));
  execute format('comment on function %s is %L', new_name, format('A row of %s with its defaults. Made by internal.definition_declare.', row_type));
  execute format('grant execute on function %s to app_admin', new_name);
  if internal.definition_hook(d, 'json') is not null then
    execute format('drop function if exists %s(%s)', json_name, row_type);
    return;
  end if;
  execute format('create or replace function %s(r %s) returns json language plpgsql stable as %L', json_name, row_type,
                 format('begin return json_build_object(%s); end', parts.pairs));
  execute format('comment on function %s is %L', json_name,
                 format('A row of %s as answers show it: every column that is no state. Made by internal.definition_declare.', row_type));
  execute format('grant execute on function %s to app_admin', json_name);
end $$;
comment on function internal.definition_declare is
  'For policy files, behind the row in internal.definitions: lets administrators read, create and delete rows of a kind and change its fields, and
   compiles internal.<kind>__new() and, unless internal.<kind>_json is there, internal.<kind>__json(row). Granted to nobody.';
