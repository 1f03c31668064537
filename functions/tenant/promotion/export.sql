-- The definitions of a project as one document that another project, or a repository, can be compared with: by keys,
-- without ids and without the times of rows. Which entities there are, and what of them is configuration, is read from
-- internal.definitions and the catalog: an entity that is added later is copied without a change here, unless its row
-- says why it is kept back.
create or replace function internal.promoted_as(d internal.definitions) returns text
language sql immutable
return coalesce((promoted_as.d).promoted_as, (promoted_as.d).kind || 's');
comment on function internal.promoted_as is 'The name of a kind in documents and plans.';

create or replace function internal.promotion_references(d internal.definitions) returns jsonb
language sql immutable
return coalesce((promotion_references.d).promoted_refs, (promotion_references.d).refs);
comment on function internal.promotion_references is 'The references of a kind along paths of its copied form.';

create or replace function internal.promotion_key_column(d internal.definitions) returns text
language sql immutable
return coalesce((promotion_key_column.d).key_column, 'name');
comment on function internal.promotion_key_column is
  'The column by which a row is found in another project: the key, or the name where there is none.';

create or replace function internal.challenge_promoted(c app.challenges, configuration jsonb) returns jsonb
language sql stable
return case when (challenge_promoted.c).parent_id is null then challenge_promoted.configuration end;
comment on function internal.challenge_promoted is
  'A challenge as it is copied; null for a later turn of a recurring one, which the first turn makes.';

create or replace function internal.catalog_item_promoted(i app.catalog_items, configuration jsonb) returns jsonb
language sql stable as $$
  select catalog_item_promoted.configuration || jsonb_build_object(
    'prices', coalesce((select jsonb_agg(jsonb_build_object('currency_code', p.currency_code, 'price',
                                                            p.price) order by p.currency_code)
                          from app.catalog_item_prices p where p.catalog_item_id = (catalog_item_promoted.i).id), '[]'),
    'bundle_contents', coalesce((select jsonb_agg(jsonb_build_object('content_item_key', c.key, 'quantity',
                                                                     b.quantity) order by b.position)
                                   from app.bundle_contents b
                                   join app.catalog_items c on c.id = b.content_item_id
                                  where b.bundle_id = (catalog_item_promoted.i).id), '[]'))
$$;
comment on function internal.catalog_item_promoted is
  'An item as it is copied: with its prices and contents, in the form in which it is created.';

create or replace function internal.promotion_rows(kind text, only_key text default null)
returns table (key text, configuration jsonb)
language plpgsql stable as $$
declare
  d constant internal.definitions := internal.definition_of(promotion_rows.kind);
  hook constant regprocedure := to_regprocedure(format('internal.%I(%s,jsonb)', d.kind || '_promoted', d.table_name));
  pairs text;
begin
  select string_agg(format('%L, %s', c.name, c.shown), ', ' order by c.name)
    into pairs
    from internal.definition_columns(d) c
   where c.is_settable and c.name <> internal.promotion_key_column(d);
  return query execute format(
    'select k.key, k.configuration from (select r.%1$I as key, %2$s as configuration from %3$s r%4$s) k where '
    'k.configuration is not null',
    internal.promotion_key_column(d),
    format(case when hook is null then 'jsonb_build_object(%2$s)' else '%1$s(r, jsonb_build_object(%2$s))' end,
           hook::regproc, pairs),
    d.table_name::regclass,
    case when promotion_rows.only_key is not null then format(' where r.%I = %L', internal.promotion_key_column(d),
                                                              promotion_rows.only_key) else '' end);
end $$;
comment on function internal.promotion_rows is
  'The rows of a kind: what of each is configuration, as the hook internal.<kind>_promoted(row, jsonb) changes it; a row
   for which that is null is left out. only_key: that row alone.';

create or replace function internal.promotion_names(kind text) returns jsonb
language plpgsql stable as $$
declare
  d internal.definitions;
  names jsonb;
begin
  if exists (select from internal.composed_definitions c where c.kind = promotion_names.kind) then
    return (select coalesce(jsonb_object_agg(r.key, r.key), '{}')
              from internal.promotion_composed_rows(promotion_names.kind) r);
  end if;
  d := internal.definition_of(promotion_names.kind);
  execute format('select jsonb_object_agg(r.id, r.%I) from %s r', internal.promotion_key_column(d),
                 d.table_name::regclass) into names;
  return coalesce(names, '{}');
end $$;
comment on function internal.promotion_names is
  'The keys of a kind by ids; of a composed kind, which has none, by themselves.';

create or replace function internal.promotion_named(value jsonb, steps text[], names jsonb) returns jsonb
language plpgsql immutable as $$
begin
  if promotion_named.value is null or promotion_named.value = 'null' then
    return promotion_named.value;
  elsif cardinality(promotion_named.steps) = 0 then
    return coalesce(promotion_named.names -> (promotion_named.value #>> '{}'), promotion_named.value);
  elsif jsonb_typeof(promotion_named.value) = 'array' and promotion_named.steps[1] in ('[*]', '**') then
    return (select coalesce(jsonb_agg(internal.promotion_named(e.value,
                                                               promotion_named.steps[case promotion_named.steps[1]
                                                                 when '**' then 1 else 2 end:],
                                                               promotion_named.names) order by e.n), '[]')
              from jsonb_array_elements(promotion_named.value) with ordinality e (value, n));
  elsif jsonb_typeof(promotion_named.value) <> 'object' then
    return promotion_named.value;
  elsif promotion_named.steps[1] = '**' then
    return (select coalesce(jsonb_object_agg(e.key, internal.promotion_named(
                     e.value, promotion_named.steps[case when e.key = promotion_named.steps[2] then 3 else 1 end:],
                       promotion_named.names)), '{}')
              from jsonb_each(promotion_named.value) e);
  elsif promotion_named.value ? promotion_named.steps[1] then
    return promotion_named.value || jsonb_build_object(promotion_named.steps[1], internal.promotion_named(
             promotion_named.value -> promotion_named.steps[1], promotion_named.steps[2:], promotion_named.names));
  end if;
  return promotion_named.value;
end $$;
comment on function internal.promotion_named is
  'A value whose ids at the end of a path are replaced by keys. The steps of the path are fields, [*] (every element)
   and ** (every depth).';

create or replace function internal.promotion_steps(path text) returns text[]
language sql immutable
return string_to_array(substr(replace(promotion_steps.path, '[*]', '.[*]'), 3), '.');
comment on function internal.promotion_steps is 'The steps of a path of a reference, for promotion_named.';

create or replace function internal.promotion_kinds(kinds text[]) returns setof internal.definitions
language plpgsql stable as $$
declare
  unknown text;
begin
  select k.name into unknown
    from unnest(promotion_kinds.kinds) k (name)
   where not exists (select from internal.definitions d where d.kept_back is null and internal.promoted_as(d) = k.name)
     and not exists (select from internal.composed_definitions c where c.promoted_as = k.name)
   order by k.name
   limit 1;
  if found then
    perform internal.invalid('kinds', format('%s is not a kind that is copied', unknown), 'INVALID_BODY');
  end if;
  return query
    select d.*
      from internal.definitions d
     where d.kept_back is null and (promotion_kinds.kinds is null
                                    or internal.promoted_as(d) = any (promotion_kinds.kinds))
     order by d.create_order, d.kind;
end $$;
comment on function internal.promotion_kinds is
  'The kinds that are rows of a table and copied, all or those named, in the order in which they are created. Refuses
   400 INVALID_BODY.';

create or replace function internal.promotion_definitions(kinds text[])
returns table (kind text, key text, configuration jsonb, code text, reason text)
language plpgsql stable as $$
declare
  d internal.definitions;
  composed internal.composed_definitions;
  reference record;
  names jsonb;
begin
  for d in select k.* from internal.promotion_kinds(promotion_definitions.kinds) k
  loop
    names := (select coalesce(jsonb_object_agg(n.kind, internal.promotion_names(n.kind)), '{}')
                from (select distinct r.value ->> 'kind' as kind
                        from jsonb_array_elements(internal.promotion_references(d)) r where r.value ->> 'by' = 'id') n);
    for promotion_definitions.key, promotion_definitions.configuration, promotion_definitions.code in
      select r.key, r.configuration, case when count(*) over (partition by r.key) > 1 then 'AMBIGUOUS_NAME' end
        from internal.promotion_rows(d.kind) r
       order by r.key collate "C"
    loop
      promotion_definitions.kind := internal.promoted_as(d);
      promotion_definitions.reason := case when promotion_definitions.code is not null
                                             then format('Two %s have this name.', d.plural) end;
      for reference in
        select r.value ->> 'path' as path, internal.promotion_steps(r.value ->> 'path') as steps,
               names -> (r.value ->> 'kind') as names, o.singular
          from jsonb_array_elements(internal.promotion_references(d)) r
          join internal.definitions o on o.kind = r.value ->> 'kind'
         where r.value ->> 'by' = 'id'
      loop
        if promotion_definitions.code is null
           and exists (select from jsonb_path_query(promotion_definitions.configuration,
                                                    reference.path::jsonpath) f (value)
                        where f.value <> 'null' and not reference.names ? (f.value #>> '{}')) then
          promotion_definitions.code := 'REFERENCE_MISSING';
          promotion_definitions.reason := format('It refers to a %s that was deleted.', reference.singular);
        end if;
        promotion_definitions.configuration := internal.promotion_named(
          promotion_definitions.configuration, reference.steps, reference.names);
      end loop;
      return next;
    end loop;
  end loop;
  promotion_definitions.code := null;
  promotion_definitions.reason := null;
  for composed in
    select c.* from internal.composed_definitions c
     where promotion_definitions.kinds is null or c.promoted_as = any (promotion_definitions.kinds)
     order by c.create_order, c.kind
  loop
    promotion_definitions.kind := composed.promoted_as;
    for promotion_definitions.key, promotion_definitions.configuration in
      select r.key, r.configuration from internal.promotion_composed_rows(composed.kind) r order by r.key collate "C"
    loop
      return next;
    end loop;
  end loop;
end $$;
comment on function internal.promotion_definitions is
  'The definitions of the project, references by id replaced by keys. code and reason are set for one that cannot be
   copied: AMBIGUOUS_NAME, REFERENCE_MISSING. Refuses 400 INVALID_BODY.';

create or replace function internal.promotion_fitting(document json) returns json
language plpgsql stable as $$
begin
  if octet_length(promotion_fitting.document::text) > internal.page_bytes() then
    perform internal.fail(409, 'LIMIT_REACHED', 'The definitions have more than 8 MB: name fewer kinds.',
                          json_build_object('limit', internal.page_bytes()));
  end if;
  return promotion_fitting.document;
end $$;
comment on function internal.promotion_fitting is
  'The document, if it has at most internal.page_bytes() bytes. Refuses 409 LIMIT_REACHED.';

create or replace function internal.promotion_kinds_named(kinds jsonb) returns text[]
language sql immutable as $$
  select array_agg(k.name) from jsonb_array_elements_text(promotion_kinds_named.kinds) k (name)
$$;
comment on function internal.promotion_kinds_named is 'The names of a list of kinds; null for null, which means all.';

create or replace function api.promotion_export(kinds jsonb default null) returns api.reply
language sql stable as $$
  with found as materialized (
    select f.* from internal.promotion_definitions(internal.promotion_kinds_named(promotion_export.kinds)) f
  ), of_kinds as (
    select f.kind, json_object_agg(f.key, f.configuration order by f.key collate "C") as rows from found f
     where f.code is null group by f.kind
  )
  select internal.reply(200, internal.promotion_fitting(json_build_object(
    'version', 1,
    'definitions', (select coalesce(json_object_agg(k.kind, k.rows order by k.kind collate "C"), '{}') from of_kinds k),
    'left_out', (select coalesce(json_agg(l order by l.kind collate "C", l.key collate "C"), '[]')
                   from (select distinct f.kind, f.key, f.code, f.reason from found f where f.code is not null) l))))
$$;
comment on function api.promotion_export is
  'The definitions as one document {version, definitions {kind: {key: {field: value}}}, left_out[{kind, key, code,
   reason}]}: sorted, without ids, times of rows and secrets, so that equal configurations give equal documents. Refuses
   409 LIMIT_REACHED (8 MB).';
