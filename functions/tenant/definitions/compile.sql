-- Compiles the statements that create, find, list, change and delete a definition, from the registry
-- internal.definitions and the catalog. All dynamic SQL about definitions is in this folder: identifiers come from the
-- registry and the catalog, through %I or as regclass, values are always parameters. Functions that take a row or a
-- null of a row type (null::app.xp_rules) identify the entity by that type. See docs/definitions.md.
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
comment on function internal.definition_of(text) is
  'The declaration of a kind. Raises an exception when there is none.';

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
comment on function internal.definition_of(anyelement) is
  'The declaration of the entity whose rows have this type. Raises an exception when there is none.';

create or replace function internal.definition_columns(d internal.definitions)
returns table (name text, "position" int, is_field boolean, is_settable boolean, is_required boolean, is_shown boolean,
               is_written boolean, is_jsonb boolean,
               shown text, initial text)
language sql stable as $$
  select a.attname::text, a.attnum::int,
         k.is_configuration and not k.is_fixed, k.is_configuration, k.is_configuration and a.attnotnull,
         k.is_shown, k.is_shown and a.attgenerated = '', a.atttypid = 'jsonb'::regtype,
         format(case a.atttypid when 'timestamptz'::regtype then 'internal.iso(r.%I)'
                     when 'numeric'::regtype then 'internal.numeric_json(r.%I)'
                else 'r.%I' end, a.attname),
         case when a.attgenerated = '' then pg_get_expr(f.adbin, f.adrelid) end
    from pg_catalog.pg_attribute a
   cross join lateral (
     select a.attname <> all (array['id', 'created_at', 'updated_at'] || (definition_columns.d).state_columns)
        and a.attgenerated = '' as is_configuration,
            a.attname <> all ((definition_columns.d).state_columns) as is_shown,
            a.attname = any ((definition_columns.d).fixed_columns) as is_fixed) k
    left join pg_catalog.pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
   where a.attrelid = to_regclass((definition_columns.d).table_name) and a.attnum > 0 and not a.attisdropped
   order by a.attnum
$$;
comment on function internal.definition_columns is
  'The columns of an entity in their order: is_settable ones are configuration, is_field ones can also be changed later,
   is_shown ones are in the common JSON, is_written ones are written when a row is created; shown is the SQL of the
   value in JSON, of a row r, and initial that of the default, null where there is none.';

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
  'The function internal.<kind>_<hook> of an entity with the signature of this hook, or null. docs/definitions.md lists
   the hooks.';

create or replace function internal.definition_compiled(d internal.definitions, part text) returns text
language sql immutable
return format('internal.%I', (definition_compiled.d).kind || '__' || definition_compiled.part);
comment on function internal.definition_compiled is
  'The name of a function that internal.definition_compile creates: part is new, json, find, page, insert, update or
   delete.';

create or replace function internal.definition_function(d internal.definitions, part text, arguments text,
                                                        returned text, volatility text, declared text, body text,
                                                        described text)
returns void
language plpgsql volatile as $$
declare
  name constant text := internal.definition_compiled(definition_function.d, definition_function.part);
begin
  -- plpgsql, because it caches the plans of its statements in the session
  execute format('create or replace function %s(%s) returns %s language plpgsql %s as %L', name,
                 definition_function.arguments,
                 definition_function.returned, definition_function.volatility,
                 concat_ws(E'\n', E'declare\n' || definition_function.declared, 'begin', definition_function.body,
                           'end'));
  execute format('comment on function %s is %L', name,
                 definition_function.described || ' Made by internal.definition_compile.');
  execute format('grant execute on function %s to app_admin', name);
end $$;
comment on function internal.definition_function is
  'Creates a compiled function of an entity and grants it to administrators. Granted to nobody.';

create or replace function internal.definition_call(d internal.definitions, hook text, call text) returns text
language sql stable as $$
  select format(definition_call.call, h.name)
    from internal.definition_hook(definition_call.d, definition_call.hook) h (name)
   where h.name is not null
$$;
comment on function internal.definition_call is
  'The line of a compiled function that calls a hook; %s in call stands for the hook''s name. Null when the entity does
   not have the hook.';

create or replace function internal.definition_wish(d internal.definitions, base text, sent text, was text, kept text[])
returns text
language sql stable as $$
  select concat_ws(E'\n',
  format('  begin
    requested := jsonb_populate_record(%s, %s - %L::text[]);
  exception when data_exception then
    perform internal.invalid(''body'', ''has a value of the wrong type'', %L);
  end;', definition_wish.base, definition_wish.sent, definition_wish.kept, (definition_wish.d).invalid_code),
  (select format('  missing := case %s end;
  if missing is not null then
    perform internal.invalid(missing, ''must not be null'', %L);
  end if;', string_agg(format('when %s -> %2$L = ''null'' then %2$L', definition_wish.sent, c.name), ' '
                         order by c.position), (definition_wish.d).invalid_code)
     from internal.definition_columns(definition_wish.d) c
    where c.is_required
   having count(*) > 0),
  internal.definition_call(definition_wish.d, 'check',
                           format('  requested := %%s(requested, %s, %s);', definition_wish.was, definition_wish.sent)),
  (select format('  missing := case %s end;
  if missing is not null then
    perform internal.invalid(missing, ''is required'', %L);
  end if;', string_agg(format('when requested.%1$I is null%3$s then %2$L', c.name, c.name,
                              case when c.is_jsonb then format(' or requested.%I = ''null''', c.name) end), ' '
                                order by c.position),
            (definition_wish.d).invalid_code)
     from internal.definition_columns(definition_wish.d) c
    where c.is_required
   having count(*) > 0))
$$;
comment on function internal.definition_wish is
  'The lines of a compiled function that compute the requested row: the fields of sent applied to the row base, except
   for the columns in kept; then the checks of required fields and the hook check. base, sent and was are SQL
   expressions: a row, the request, the stored row.';

create or replace function internal.definition_compile_writes(d internal.definitions) returns void
language plpgsql volatile as $$
declare
  d constant internal.definitions := definition_compile_writes.d;
  row_type constant text := d.table_name::regclass::text;
  name constant text := d.kind || '__';
  gone constant text := format('perform internal.fail(404, %L, %L);', d.not_found_code,
                               'The ' || d.singular || ' was deleted just now.');
  c record;
begin
  select string_agg(format('%I', k.name), ', ' order by k.position) filter (where k.is_written) as written,
         string_agg(format('requested.%I', k.name), ', ' order by k.position) filter (where k.is_written) as requested,
         string_agg(format('%1$I = requested.%1$I, ', k.name),
                    '' order by k.position) filter (where k.is_field) as changes,
         array_agg(k.name order by k.position) filter (where not k.is_settable) as kept_new,
         array_agg(k.name order by k.position) filter (where not k.is_field) as kept
    into c
    from internal.definition_columns(d) k;

  perform internal.definition_function(d, 'insert', 'sent jsonb', row_type, 'volatile',
    format(E'  requested %s;\n  missing text;', row_type),
    concat_ws(E'\n',
      internal.definition_call(d, 'before_write', format('  perform %%s(%I.sent);', name || 'insert')),
      internal.definition_wish(d, internal.definition_compiled(d, 'new') || '()', format('%I.sent', name || 'insert'),
                               'null', c.kept_new),
      format('  perform internal.definition_limit_check(null::%s);', row_type),
      format('  insert into %s as t (%s) values (%s) returning t.* into requested;', row_type, c.written, c.requested),
      internal.definition_call(d, 'after_write', format('  perform %%s(requested, null, %I.sent);', name || 'insert')),
      '  return requested;'),
    'Creates a definition of the fields sent. Refuses 400, what constraints refuse, 409 LIMIT_REACHED.');

  perform internal.definition_function(d, 'update', 'id_or_key text, sent jsonb', row_type, 'volatile',
    format(E'  was %1$s;\n  requested %1$s;\n  missing text;', row_type),
    concat_ws(E'\n',
      internal.definition_call(d, 'before_write', format('  perform %%s(%I.sent);', name || 'update')),
      format('  was := %s(%I.id_or_key);', internal.definition_compiled(d, 'find'), name || 'update'),
      internal.definition_call(d, 'before_update', format('  perform %%s(was, %I.sent);', name || 'update')),
      format('  select t.* into was from %s t where t.id = was.id for no key update;
  if not found then
    %s
  end if;', row_type, gone),
      internal.definition_wish(d, 'was', format('%I.sent', name || 'update'), 'was', c.kept),
      format('  if requested is distinct from was then
    update %s t set %supdated_at = internal.now() where t.id = was.id returning t.* into requested;',
                       row_type, c.changes),
      internal.definition_call(d, 'after_write', format('    perform %%s(requested, was, %I.sent);', name || 'update')),
      E'  end if;\n  return requested;'),
    'Changes a definition: absent fields stay, null clears. Refuses 404, 400, what constraints refuse. Locks the row.');

  perform internal.definition_function(d, 'delete', 'id_or_key text', 'void', 'volatile',
    format('  doomed %s;', row_type),
    concat_ws(E'\n',
      internal.definition_call(d, 'before_write', '  perform %s(null);'),
      format('  doomed := %s(%I.id_or_key);', internal.definition_compiled(d, 'find'), name || 'delete'),
      internal.definition_call(d, 'before_delete', '  perform %s(doomed);'),
      format('  delete from %s t where t.id = doomed.id;
  if not found then
    %s
  end if;', row_type, gone)),
    'Deletes a definition. Refuses 404, and what foreign keys and the hook before_delete refuse.');
end $$;
comment on function internal.definition_compile_writes is
  'Compiles internal.<kind>__insert(sent), __update(id_or_key, sent) and __delete(id_or_key), with the hooks that the
   entity has at this time. Granted to nobody.';

create or replace function internal.definition_compile_reads(d internal.definitions) returns void
language plpgsql volatile as $$
declare
  d constant internal.definitions := definition_compile_reads.d;
  row_type constant text := d.table_name::regclass::text;
  direction constant text := case when d.is_descending then ' desc' else '' end;
  own_json constant text := internal.definition_hook(d, 'json');
  own_find constant text := internal.definition_hook(d, 'find');
  id_or_key constant text := format('%I.id_or_key', d.kind || '__find');
  by_id constant text := format('select t.* into found_one from %s t where t.id = internal.as_uuid(%s);', row_type,
                                id_or_key);
  by_key constant text := case when d.key_column is not null
                               then format('select t.* into found_one from %s t where t.%I = %s;', row_type,
                                           d.key_column, id_or_key) end;
  page constant text := d.kind || '__page';
  accepted constant text := internal.definition_call(d, 'listed', format('where %%s(t, %I.filter)', page));
  pairs text;
  defaults text;
begin
  select string_agg(format('%L, %s', c.name, c.shown), ', ' order by c.position) filter (where c.is_shown),
         string_agg(format('  made.%I := %s;', c.name, c.initial),
                    E'\n' order by c.position) filter (where c.initial is not null)
    into pairs, defaults
    from internal.definition_columns(d) c;

  -- columns are assigned one by one, so that the function stays valid when a migration adds a column, until the entity
  -- is compiled again
  perform internal.definition_function(d, 'new', '', row_type, 'volatile', format('  made %s;', row_type),
    concat_ws(E'\n', defaults, '  return made;'), format('A row of %s with its defaults.', row_type));

  -- volatile, so that it sees rows which the insert in its argument has written to other tables and which the hook may
  -- read
  perform internal.definition_function(d, 'json', format('r %s', row_type), 'json',
                                       case when own_json is null then 'stable' else 'volatile' end, null,
    format('  return %s;', coalesce(own_json || '(r)', format('json_build_object(%s)', pairs))),
    format('A row of %s as responses show it.', row_type));

  perform internal.definition_function(d, 'find', 'id_or_key text', row_type, 'stable',
                                       format('  found_one %s;', row_type),
    concat_ws(E'\n',
      case
        when own_find is not null then format('  found_one := %s(%s);', own_find, id_or_key)
        when d.found_by = 'id' then '  ' || by_id
        when d.found_by = 'key' then '  ' || by_key
        else format('  if internal.as_uuid(%s) is not null then
    %s
  else
    %s
  end if;', id_or_key, by_id, by_key)
      end,
      format('  if found_one.id is null then
    perform internal.fail(404, %L, %L);
  end if;
  return found_one;', d.not_found_code, 'There is no such ' || d.singular || '.')),
    'A definition by its id or key, as declared. Refuses 404.');

  -- the rows of the page are chosen before their JSON is made
  perform internal.definition_function(d, 'page', 'filter jsonb, page_offset bigint, page_limit bigint', 'api.reply',
                                       'stable', null,
    format('  return internal.reply_page(
    (select json_agg(%1$s order by %2$s)
       from (select %3$s from %4$s t %5$s order by %6$s limit %7$I.page_limit offset %7$I.page_offset) r),
    (select count(*) from %4$s t %5$s), %7$I.page_offset, %7$I.page_limit);',
           coalesce(own_json || '(r.listed)', format('json_build_object(%s)', pairs)),
           (select string_agg(format(case when own_json is null then 'r.%I%s' else '(r.listed).%I%s' end, o.name,
                                     direction), ', ' order by o.n)
              from unnest(d.order_by) with ordinality o (name, n)),
           case when own_json is null then 't.*' else 't as listed' end, row_type, accepted,
           (select string_agg(format('t.%I%s', o.name, direction), ', ' order by o.n)
              from unnest(d.order_by) with ordinality o (name, n)), page),
    'A page of definitions in the declared order; of those that the hook listed accepts, where the entity has it.');
end $$;
comment on function internal.definition_compile_reads is
  'Compiles internal.<kind>__new(), __json(row), __find(id_or_key) and __page(filter, page_offset, page_limit). Granted
   to nobody.';

create or replace function internal.definition_compile(kind text) returns void
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_compile.kind);
begin
  perform internal.definition_compile_reads(d);
  perform internal.definition_compile_writes(d);
end $$;
comment on function internal.definition_compile is
  'Compiles the functions internal.<kind>__<part> of an entity. Granted to nobody.';

create or replace function internal.definition_declare(kind text) returns void
language plpgsql volatile as $$
declare
  d constant internal.definitions := internal.definition_of(definition_declare.kind);
  columns record;
begin
  select string_agg(format('%I', c.name), ', ' order by c.position) filter (where c.is_written) as written,
         string_agg(format('%I, ', c.name), '' order by c.position) filter (where c.is_field) as fields
    into columns
    from internal.definition_columns(d) c;
  execute format('grant select, insert (%s), update (%supdated_at), delete on %s to app_admin', columns.written,
                 columns.fields, d.table_name::regclass);
  perform internal.definition_compile(d.kind);
end $$;
comment on function internal.definition_declare is
  'For policy files, after the row in internal.definitions: grants administrators the right to read, create and delete
   rows of a kind and to change its fields, and compiles its functions. The loader reapplies a policy file when its area
   gains or loses a function, so that new hooks are found. Granted to nobody.';

-- whenever this file changes, all declared entities are compiled again
select internal.definition_compile(d.kind) from internal.definitions d;
