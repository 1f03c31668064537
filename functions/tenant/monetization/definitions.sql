-- Declaring and adopting: what the plan takes the provider to. Definitions are replaced whole; adopting writes what the
-- provider holds into them.
comment on constraint monetization_definitions_identifier_1_to_300 on app.monetization_definitions is
  '400 INVALID_BODY objects: an object of the provider has no key, or one of more than 300 characters, so that it '
  'cannot be declared.';
comment on constraint monetization_applied_objects_identifier_1_to_300 on app.monetization_applied_objects is
  '400 INVALID_BODY objects: an object of the provider has no key, or one of more than 300 characters, so that it '
  'cannot be declared.';

-- a declaration of thousands of objects is written by one statement of each kind
create or replace trigger tg_monetization_definitions__audit_insert
  after insert on app.monetization_definitions referencing new table as new_rows for each statement
  execute function internal.tg_statement__audit('monetization');
create or replace trigger tg_monetization_definitions__audit_update
  after update on app.monetization_definitions referencing old table as old_rows new table as new_rows
    for each statement
  execute function internal.tg_statement__audit('monetization');
create or replace trigger tg_monetization_definitions__audit_delete
  after delete on app.monetization_definitions referencing old table as old_rows for each statement
  execute function internal.tg_statement__audit('monetization');

create or replace function internal.monetization_invalid(field text, reason text) returns void
language sql volatile
return internal.invalid(monetization_invalid.field, monetization_invalid.reason, 'INVALID_BODY');
comment on function internal.monetization_invalid is 'Refuses 400 INVALID_BODY for a field of the declaration.';

create or replace function internal.monetization_check(config jsonb) returns void
language plpgsql volatile as $$
declare
  problem record;
begin
  -- maps and hashed subqueries instead of joins, which are planned for a hundred items: the largest declaration has
  -- 100,000 references
  with items as materialized (
    select s.kind, e.value, e.n - 1 as at, e.value ->> 'key' as key
      from (values ('entitlements'), ('products'), ('offerings'), ('paywalls')) as s (kind)
     cross join lateral jsonb_array_elements(monetization_check.config -> s.kind) with ordinality as e (value, n)),
  stores as materialized (
    select coalesce(jsonb_object_agg(i.key, i.value -> 'store'), '{}') as by_key from items i
     where i.kind = 'products'),
  packages as materialized (
    select f.at as offering_at, f.key as offering_key, g.n - 1 as at, g.value ->> 'offering_key' as named_offering,
           g.value ->> 'key' as key,
           g.value ->> 'product_key' as product_key, coalesce(g.value ->> 'position', '') as position,
           stores.by_key ->> (g.value ->> 'product_key') as store
      from stores
     cross join items f
     cross join lateral jsonb_array_elements(f.value -> 'packages') with ordinality as g (value, n)
     where f.kind = 'offerings'),
  rows as materialized (
    select g.*, min(g.position) over same <> max(g.position) over same as has_two_positions,
           row_number() over (partition by g.offering_at, g.key, g.product_key order by g.at) > 1 as is_repeated,
           g.store is not null
             and first_value(g.product_key) over (partition by g.offering_at, g.key,
                                                  g.store order by g.at) <> g.product_key as is_second_of_store
      from packages g
    window same as (partition by g.offering_at, g.key))
  select c.field, c.reason into problem
    from (
      select format('%s[%s].key', k.kind, k.at) as field, 'is used twice' as reason
        from (select i.kind, i.at, row_number() over (partition by i.kind, i.key order by i.at) as n from items i) k
       where k.n > 1
      union all
      select format('products[%s].store_identifier', k.at), 'is declared twice for this store'
        from (select i.at, row_number() over (partition by i.value ->> 'store',
                                              i.value ->> 'store_identifier' order by i.at) as n
                from items i where i.kind = 'products') k
       where k.n > 1
      union all
      select format('entitlements[%s].product_keys[%s]', i.at, k.n - 1), 'is no declared product'
        from items i
       cross join lateral jsonb_array_elements_text(i.value -> 'product_keys') with ordinality as k (key, n)
       where i.kind = 'entitlements' and k.key not in (select p.key from items p where p.kind = 'products')
      union all
      select format('offerings[%s].packages[%s]%s', g.offering_at, g.at, r.field), r.reason
        from rows g
       cross join lateral (values
         ('.offering_key', 'must be the key of its offering', g.named_offering <> g.offering_key),
         ('.product_key', 'is no declared product', g.product_key is not null and g.store is null),
         ('.position', 'must be the same in all rows of a package', g.has_two_positions),
         ('.product_key', 'is in this package twice', g.is_repeated),
         ('.product_key', 'a package has one product of a store', g.is_second_of_store)) as r (field, reason, applies)
       where r.applies
      union all
      select format('paywalls[%s].offering_key', w.at), r.reason
        from (select i.at, i.value ->> 'offering_key' as offering_key,
                     row_number() over (partition by i.value ->> 'offering_key' order by i.at) as n
                from items i where i.kind = 'paywalls') w
        left join items f on f.kind = 'offerings' and f.key = w.offering_key
       cross join lateral (values ('is no declared offering', f.key is null),
                           ('has another paywall', w.n > 1)) as r (reason, applies)
       where r.applies) c
   order by c.field
   limit 1;
  if found then
    perform internal.monetization_invalid('monetization.' || problem.field, problem.reason);
  end if;
end $$;
comment on function internal.monetization_check is
  'Refuses 400 INVALID_BODY for a declaration that contradicts itself: keys used twice, references to what is not
   declared, two products of one store in a package.';

create or replace function internal.monetization_rows(config jsonb)
returns table (object_type text, identifier text, definition jsonb)
language sql immutable parallel safe as $$
  select 'product', (p.value ->> 'store') || ':' || (p.value ->> 'store_identifier'), p.value
    from jsonb_array_elements(monetization_rows.config -> 'products') p
  union all
  select k.object_type, e.value ->> 'key', e.value
    from (values ('entitlement', 'entitlements'), ('offering', 'offerings'), ('paywall', 'paywalls')) as k (object_type,
                                        list)
   cross join lateral jsonb_array_elements(monetization_rows.config -> k.list) e
$$;
comment on function internal.monetization_rows is 'The objects of a config as rows of app.monetization_definitions.';

create or replace function internal.monetization_write(config jsonb) returns void
language sql volatile as $$
  insert into app.monetization_definitions as d (object_type, identifier, definition)
  select r.object_type, r.identifier, r.definition from internal.monetization_rows(monetization_write.config) r
  on conflict on constraint monetization_definitions_once do update
     set definition = excluded.definition, updated_at = internal.now()
   where d.definition <> excluded.definition
$$;
comment on function internal.monetization_write is 'Writes the objects of a config into the definitions; others stay.';

create or replace function api.monetization_definitions_get() returns api.reply
language sql stable as $$
  with s as materialized (select internal.monetization_declared() as declared)
  select internal.reply(200, json_build_object('monetization', internal.monetization_config(s.declared, s.declared)))
    from s
$$;
comment on function api.monetization_definitions_get is
  'What is declared: {monetization: {entitlements, products, offerings, paywalls}}.';

create or replace function api.monetization_definitions_put(monetization jsonb) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.monetization_check(monetization_definitions_put.monetization);
  perform internal.advisory_lock('monetization');
  delete from app.monetization_definitions d
   where (d.object_type, d.identifier) not in (select r.object_type, r.identifier
                                                 from internal.monetization_rows(
                                                   monetization_definitions_put.monetization) r);
  perform internal.monetization_write(monetization_definitions_put.monetization);
  return api.monetization_definitions_get();
end $$;
comment on function api.monetization_definitions_put is
  'Replaces what is declared and returns it. Touches no provider. Refuses 400 INVALID_BODY. Two at once come one after
   the other.';

create or replace function internal.monetization_closure(config jsonb, objects jsonb)
returns table (object_type text, identifier text)
language sql stable as $$
  with recursive identifiers as materialized (
    select p.value ->> 'key' as key, (p.value ->> 'store') || ':' || (p.value ->> 'store_identifier') as identifier
      from jsonb_array_elements(monetization_closure.config -> 'products') p),
  needed (object_type, identifier) as (
    select o.value ->> 'object_type', o.value ->> 'identifier' from jsonb_array_elements(monetization_closure.objects) o
    union
    select w.object_type, w.identifier
      from needed n
     cross join lateral (
       select 'offering' as object_type, w.value ->> 'offering_key' as identifier
         from jsonb_array_elements(monetization_closure.config -> 'paywalls') w
        where n.object_type = 'paywall' and w.value ->> 'key' = n.identifier
       union all
       select 'product', i.identifier
         from jsonb_array_elements(monetization_closure.config -> 'offerings') f
        cross join lateral jsonb_array_elements(f.value -> 'packages') g
         join identifiers i on i.key = g.value ->> 'product_key'
        where n.object_type = 'offering' and f.value ->> 'key' = n.identifier
       union all
       select 'product', i.identifier
         from jsonb_array_elements(monetization_closure.config -> 'entitlements') e
        cross join lateral jsonb_array_elements_text(e.value -> 'product_keys') k (key)
         join identifiers i on i.key = k.key
        where n.object_type = 'entitlement' and e.value ->> 'key' = n.identifier) w)
  select n.object_type, n.identifier from needed n
$$;
comment on function internal.monetization_closure is
  'Objects and what they refer to: the products of an entitlement, the products in the packages of an offering, the
   offering of a paywall.';

create or replace function internal.monetization_remember(objects jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() not in ('developer', 'worker') then
    raise exception 'what was applied is remembered for administrators and workers, not for %', internal.caller();
  end if;
  insert into app.monetization_applied_objects as a (object_type, identifier, document, more, hash, is_pushed)
  select o.object_type, o.identifier, o.document, o.more, internal.monetization_hash(o.document), o.is_pushed
    from jsonb_to_recordset(monetization_remember.objects) as o (object_type text, identifier text, document jsonb,
                                                                 more jsonb, is_pushed boolean)
  on conflict (object_type, identifier) do update
     set document = excluded.document, more = excluded.more, hash = excluded.hash, is_pushed = a.is_pushed
       or excluded.is_pushed, applied_at = internal.now()
   where (a.hash, a.more, a.is_pushed) is distinct
     from (excluded.hash, excluded.more, a.is_pushed or excluded.is_pushed);
end $$;
comment on function internal.monetization_remember is
  'Stores live objects [{object_type, identifier, document, more, is_pushed}] as applied. A product that is in its store
   stays so. The caller holds the lock.';

create or replace function internal.monetization_adopt(live jsonb, objects jsonb) returns json
language plpgsql volatile as $$
declare
  declared constant jsonb := internal.monetization_declared();
  config constant jsonb := internal.monetization_config(monetization_adopt.live, declared);
  chosen jsonb;
begin
  select jsonb_object_agg(k.list, coalesce((
           -- what the provider does not have stays as declared
           select jsonb_agg(r.definition || case r.object_type
                              when 'product' then jsonb_build_object('store_metadata',
                                                                     coalesce(d.definition -> 'store_metadata', '{}'))
                              when 'entitlement' then jsonb_build_object('description',
                                                                         coalesce(d.definition -> 'description',
                                                                           'null'))
                              when 'paywall' then jsonb_build_object('template',
                                                                     coalesce(d.definition -> 'template',
                                                                       r.definition -> 'template'),
                                                                     'display', coalesce(d.definition -> 'display',
                                                                       r.definition -> 'display'))
                              else '{}' end)
             from internal.monetization_rows(config) r
             join internal.monetization_closure(config, monetization_adopt.objects) c on (c.object_type,
                                        c.identifier) = (r.object_type, r.identifier)
             left join app.monetization_definitions d on (d.object_type, d.identifier) = (r.object_type, r.identifier)
            where r.object_type = k.object_type), '[]'))
    into chosen
    from (values ('product', 'products'), ('entitlement', 'entitlements'), ('offering', 'offerings'),
          ('paywall', 'paywalls')) as k (object_type, list);
  perform internal.monetization_write(chosen);
  perform internal.monetization_remember((
    select jsonb_agg(jsonb_build_object(
             'object_type', l.object_type, 'identifier', l.identifier, 'document', l.document,
             'more', l.more || case l.object_type when 'paywall' then jsonb_build_object('key', w.key) else '{}' end,
             'is_pushed', l.object_type = 'product'))
      from internal.monetization_objects(monetization_adopt.live) l
      left join internal.monetization_paywalls(monetization_adopt.live, declared) w on l.object_type = 'paywall'
        and w.offering = l.identifier
     where exists (select from internal.monetization_rows(chosen) r
                    where (r.object_type, r.identifier) = (l.object_type,
                                                           case l.object_type when 'paywall' then w.key
                                                                else l.identifier end))));
  return (
    select json_build_object('adopted', n.entitlements + n.products + n.offerings + n.packages + n.paywalls,
                             'entitlements', n.entitlements,
                             'products', n.products, 'offerings', n.offerings, 'packages', n.packages,
                             'paywalls', n.paywalls)
      from (select jsonb_array_length(chosen -> 'entitlements') as entitlements,
            jsonb_array_length(chosen -> 'products') as products,
                   jsonb_array_length(chosen -> 'offerings') as offerings,
                   jsonb_array_length(chosen -> 'paywalls') as paywalls,
                   (select count(distinct (f.value ->> 'key', g.value ->> 'key'))
                      from jsonb_array_elements(chosen -> 'offerings') f
                     cross join lateral jsonb_array_elements(f.value -> 'packages') g) as packages) n);
end $$;
comment on function internal.monetization_adopt is
  'Declares live objects, with what they refer to, as the provider holds them, and remembers them as applied. Returns
   the counts. The caller holds the lock.';

create or replace function api.monetization_adopt(live jsonb, adopt_all boolean, objects jsonb) returns api.reply
language plpgsql volatile as $$
declare
  config jsonb;
  absent int;
  asked jsonb := monetization_adopt.objects;
begin
  perform internal.advisory_lock('monetization');
  config := internal.monetization_config(monetization_adopt.live, internal.monetization_declared());
  if monetization_adopt.adopt_all then
    select coalesce(jsonb_agg(jsonb_build_object('object_type', r.object_type, 'identifier', r.identifier)),
                    '[]') into asked
      from internal.monetization_rows(config) r;
  else
    select min(o.n) - 1 into absent
      from jsonb_array_elements(asked) with ordinality as o (value, n)
     where not exists (select from internal.monetization_rows(config) r
                        where (r.object_type, r.identifier) = (o.value ->> 'object_type', o.value ->> 'identifier'));
    if absent is not null then
      perform internal.monetization_invalid('objects[' || absent || '].identifier', 'is not at the provider');
    end if;
  end if;
  return internal.reply(200, internal.monetization_adopt(monetization_adopt.live, asked));
end $$;
comment on function api.monetization_adopt is
  'Adopts all live objects, or those that are named, with what they refer to: {adopted, entitlements, products,
   offerings, packages, paywalls}. A repetition writes nothing and returns the same. Refuses 400 INVALID_BODY for an
   object that is not at the provider.';
