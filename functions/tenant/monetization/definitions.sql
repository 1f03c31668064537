-- Declaring and adopting: what the plan takes the provider to. Definitions are replaced whole; adopting writes what the provider holds into them.
create or replace trigger tg_monetization_definitions__audit
  after insert or update or delete on app.monetization_definitions
  for each row execute function internal.tg_audit('monetization');

create or replace function internal.monetization_invalid(field text, reason text) returns void
language sql volatile
return internal.invalid(monetization_invalid.field, monetization_invalid.reason, 'INVALID_BODY');
comment on function internal.monetization_invalid is 'Refuses 400 INVALID_BODY for a field of the declaration.';

create or replace function internal.monetization_check(config jsonb) returns void
language plpgsql volatile as $$
declare
  problem record;
begin
  select c.field, c.reason into problem
    from (
      select s.kind || '[' || (e.n - 1) || '].key' as field, 'is used twice' as reason, e.n
        from (values ('entitlements'), ('products'), ('offerings'), ('paywalls')) as s (kind)
       cross join lateral jsonb_array_elements(monetization_check.config -> s.kind) with ordinality as e (value, n)
       where exists (select from jsonb_array_elements(monetization_check.config -> s.kind) with ordinality as o (value, n)
                      where o.n < e.n and o.value -> 'key' = e.value -> 'key')
      union all
      select 'products[' || (e.n - 1) || '].store_identifier', 'is declared twice for this store', e.n
        from jsonb_array_elements(monetization_check.config -> 'products') with ordinality as e (value, n)
       where exists (select from jsonb_array_elements(monetization_check.config -> 'products') with ordinality as o (value, n)
                      where o.n < e.n and (o.value -> 'store', o.value -> 'store_identifier') = (e.value -> 'store', e.value -> 'store_identifier'))
      union all
      select 'entitlements[' || (e.n - 1) || '].product_keys[' || (k.n - 1) || ']', 'is no declared product', e.n
        from jsonb_array_elements(monetization_check.config -> 'entitlements') with ordinality as e (value, n)
       cross join lateral jsonb_array_elements(e.value -> 'product_keys') with ordinality as k (value, n)
       where not exists (select from jsonb_array_elements(monetization_check.config -> 'products') p where p.value -> 'key' = k.value)
      union all
      select 'offerings[' || (e.n - 1) || '].packages[' || (g.n - 1) || ']' || r.field, r.reason, e.n
        from jsonb_array_elements(monetization_check.config -> 'offerings') with ordinality as e (value, n)
       cross join lateral jsonb_array_elements(e.value -> 'packages') with ordinality as g (value, n)
       cross join lateral (values
         ('.offering_key', 'must be the key of its offering', g.value -> 'offering_key' <> e.value -> 'key'),
         ('.product_key', 'is no declared product', g.value ->> 'product_key' is not null
            and not exists (select from jsonb_array_elements(monetization_check.config -> 'products') p where p.value -> 'key' = g.value -> 'product_key')),
         ('.position', 'must be the same in all rows of a package',
            exists (select from jsonb_array_elements(e.value -> 'packages') o where o.value -> 'key' = g.value -> 'key' and o.value -> 'position' <> g.value -> 'position')),
         ('.product_key', 'is in this package twice', exists (
            select from jsonb_array_elements(e.value -> 'packages') with ordinality as o (value, n)
             where o.n < g.n and (o.value -> 'key', o.value -> 'product_key') = (g.value -> 'key', g.value -> 'product_key'))),
         ('.product_key', 'a package has one product of a store', exists (
            select from jsonb_array_elements(e.value -> 'packages') with ordinality as o (value, n)
              join jsonb_array_elements(monetization_check.config -> 'products') a on a.value -> 'key' = o.value -> 'product_key'
              join jsonb_array_elements(monetization_check.config -> 'products') b on b.value -> 'key' = g.value -> 'product_key'
             where o.n < g.n and o.value -> 'key' = g.value -> 'key' and a.value -> 'store' = b.value -> 'store' and a.value -> 'key' <> b.value -> 'key'))
         ) as r (field, reason, applies)
       where r.applies
      union all
      select 'paywalls[' || (e.n - 1) || '].offering_key', r.reason, e.n
        from jsonb_array_elements(monetization_check.config -> 'paywalls') with ordinality as e (value, n)
       cross join lateral (values
         ('is no declared offering', not exists (select from jsonb_array_elements(monetization_check.config -> 'offerings') o
                                                  where o.value -> 'key' = e.value -> 'offering_key')),
         ('has another paywall', exists (select from jsonb_array_elements(monetization_check.config -> 'paywalls') with ordinality as o (value, n)
                                          where o.n < e.n and o.value -> 'offering_key' = e.value -> 'offering_key'))) as r (reason, applies)
       where r.applies) c
   order by c.field
   limit 1;
  if found then
    perform internal.monetization_invalid('monetization.' || problem.field, problem.reason);
  end if;
end $$;
comment on function internal.monetization_check is
  'Refuses 400 INVALID_BODY for a declaration that contradicts itself: keys used twice, references to what is not declared, two products of one store in a package.';

create or replace function internal.monetization_rows(config jsonb) returns table (object_type text, identifier text, definition jsonb)
language sql immutable parallel safe as $$
  select 'product', (p.value ->> 'store') || ':' || (p.value ->> 'store_identifier'), p.value
    from jsonb_array_elements(monetization_rows.config -> 'products') p
  union all
  select k.object_type, e.value ->> 'key', e.value
    from (values ('entitlement', 'entitlements'), ('offering', 'offerings'), ('paywall', 'paywalls')) as k (object_type, list)
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
  select internal.reply(200, json_build_object('monetization', internal.monetization_config(s.declared, s.declared)))
    from (select internal.monetization_declared() as declared) s
$$;
comment on function api.monetization_definitions_get is 'What is declared: {monetization: {entitlements, products, offerings, paywalls}}.';

create or replace function api.monetization_definitions_put(monetization jsonb) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.monetization_check(monetization_definitions_put.monetization);
  perform internal.advisory_lock('monetization');
  delete from app.monetization_definitions d
   where not exists (select from internal.monetization_rows(monetization_definitions_put.monetization) r
                      where (r.object_type, r.identifier) = (d.object_type, d.identifier));
  perform internal.monetization_write(monetization_definitions_put.monetization);
  return api.monetization_definitions_get();
end $$;
comment on function api.monetization_definitions_put is
  'Replaces what is declared and returns it. Touches no provider. Refuses 400 INVALID_BODY. Two at once come one after the other.';

create or replace function internal.monetization_closure(config jsonb, objects jsonb) returns table (object_type text, identifier text)
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
  'Objects and what they refer to: the products of an entitlement, the products in the packages of an offering, the offering of a paywall.';

create or replace function internal.monetization_remember(objects jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() not in ('developer', 'worker') then
    raise exception 'what was applied is remembered for administrators and workers, not for %', internal.caller();
  end if;
  insert into app.monetization_applied_objects as a (object_type, identifier, document, more, hash, is_pushed)
  select o.object_type, o.identifier, o.document, o.more, internal.monetization_hash(o.document), o.is_pushed
    from jsonb_to_recordset(monetization_remember.objects) as o (object_type text, identifier text, document jsonb, more jsonb, is_pushed boolean)
  on conflict (object_type, identifier) do update
     set document = excluded.document, more = excluded.more, hash = excluded.hash, is_pushed = a.is_pushed or excluded.is_pushed, applied_at = internal.now()
   where (a.hash, a.more, a.is_pushed) is distinct from (excluded.hash, excluded.more, a.is_pushed or excluded.is_pushed);
end $$;
comment on function internal.monetization_remember is
  'Stores live objects [{object_type, identifier, document, more, is_pushed}] as applied. A product that is in its store stays so. The caller holds the lock.';

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
                              when 'product' then jsonb_build_object('store_metadata', coalesce(d.definition -> 'store_metadata', '{}'))
                              when 'entitlement' then jsonb_build_object('description', coalesce(d.definition -> 'description', 'null'))
                              when 'paywall' then jsonb_build_object('template', coalesce(d.definition -> 'template', r.definition -> 'template'),
                                                                     'display', coalesce(d.definition -> 'display', r.definition -> 'display'))
                              else '{}' end)
             from internal.monetization_rows(config) r
             join internal.monetization_closure(config, monetization_adopt.objects) c on (c.object_type, c.identifier) = (r.object_type, r.identifier)
             left join app.monetization_definitions d on (d.object_type, d.identifier) = (r.object_type, r.identifier)
            where r.object_type = k.object_type), '[]'))
    into chosen
    from (values ('product', 'products'), ('entitlement', 'entitlements'), ('offering', 'offerings'), ('paywall', 'paywalls')) as k (object_type, list);
  perform internal.monetization_write(chosen);
  perform internal.monetization_remember((
    select jsonb_agg(jsonb_build_object(
             'object_type', l.object_type, 'identifier', l.identifier, 'document', l.document,
             'more', l.more || case l.object_type when 'paywall' then jsonb_build_object('key', w.key) else '{}' end, 'is_pushed', l.object_type = 'product'))
      from internal.monetization_objects(monetization_adopt.live) l
      left join internal.monetization_paywalls(monetization_adopt.live, declared) w on l.object_type = 'paywall' and w.offering = l.identifier
     where exists (select from internal.monetization_rows(chosen) r
                    where (r.object_type, r.identifier) = (l.object_type, case l.object_type when 'paywall' then w.key else l.identifier end))));
  return (
    select json_build_object('adopted', n.entitlements + n.products + n.offerings + n.packages + n.paywalls, 'entitlements', n.entitlements,
                             'products', n.products, 'offerings', n.offerings, 'packages', n.packages, 'paywalls', n.paywalls)
      from (select jsonb_array_length(chosen -> 'entitlements') as entitlements, jsonb_array_length(chosen -> 'products') as products,
                   jsonb_array_length(chosen -> 'offerings') as offerings, jsonb_array_length(chosen -> 'paywalls') as paywalls,
                   (select count(distinct (f.value ->> 'key', g.value ->> 'key'))
                      from jsonb_array_elements(chosen -> 'offerings') f
                     cross join lateral jsonb_array_elements(f.value -> 'packages') g) as packages) n);
end $$;
comment on function internal.monetization_adopt is
  'Declares live objects, with what they refer to, as the provider holds them, and remembers them as applied. Returns the counts. The caller holds the lock.';

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
    select coalesce(jsonb_agg(jsonb_build_object('object_type', r.object_type, 'identifier', r.identifier)), '[]') into asked
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
  'Adopts all live objects, or those that are named, with what they refer to: {adopted, entitlements, products, offerings, packages, paywalls}. A repetition
   writes nothing and returns the same. Refuses 400 INVALID_BODY for an object that is not at the provider.';
