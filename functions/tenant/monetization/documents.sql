-- Documents of monetization. A state is what a side holds: `declared` from the definitions, `live` as the server read
-- it from the provider:
-- {"apps": [{id, type}], "products": [{store, store_identifier, type, display_name}], "entitlements": [{key,
-- display_name, products}],
-- "offerings": [{key, display_name, is_current, packages: [{key, position, products}]}], "paywalls": [{key, offering,
-- ...}]} where `products` are identifiers "store:store_identifier". A live state has the provider's ids too, a declared
-- one store_metadata and the keys of products.
create or replace function internal.monetization_hash(document jsonb) returns text
language sql immutable parallel safe
-- the text of jsonb is canonical: keys are sorted and unique
return encode(sha256(convert_to(monetization_hash.document::text, 'UTF8')), 'hex');
comment on function internal.monetization_hash is
  'The SHA-256 of a document in hex. Equal documents have equal hashes, whatever the order of their keys.';

create or replace function internal.monetization_list(items jsonb) returns jsonb
language sql immutable parallel safe
return case when jsonb_typeof(monetization_list.items) = 'array' then monetization_list.items else '[]' end;
comment on function internal.monetization_list is 'A list, empty for anything else.';

create or replace function internal.monetization_sorted(items jsonb) returns jsonb
language sql immutable parallel safe as $$
  select coalesce(jsonb_agg(distinct e.value), '[]')
    from jsonb_array_elements(internal.monetization_list(monetization_sorted.items)) e
$$;
comment on function internal.monetization_sorted is 'The distinct items of a list, sorted.';

create or replace function internal.monetization_packages(packages jsonb) returns jsonb
language sql immutable parallel safe as $$
  select coalesce(jsonb_object_agg(p.value ->> 'key', jsonb_build_object('position', p.value -> 'position',
                                                                         'products', internal.monetization_sorted(
                                                                           p.value -> 'products'))), '{}')
    from jsonb_array_elements(internal.monetization_list(monetization_packages.packages)) p
$$;
comment on function internal.monetization_packages is 'The packages of an offering by key: {position, products}.';

create or replace function internal.monetization_objects(state jsonb)
returns table (object_type text, identifier text, document jsonb, more jsonb)
language sql immutable parallel safe as $$
  -- a store identifier that two apps of one store share is one product: the first by id
  select distinct on (o.object_type, o.identifier) o.object_type, o.identifier, o.document, o.more
    from (
      select 'product' as object_type, (p.value ->> 'store') || ':' || (p.value ->> 'store_identifier') as identifier,
             p.value ->> 'id' as sorted_by,
             jsonb_build_object('type', p.value -> 'type', 'display_name', p.value -> 'display_name') as document,
             jsonb_build_object('key', p.value -> 'key', 'store_metadata',
                                coalesce(p.value -> 'store_metadata', '{}')) as more
        from jsonb_array_elements(internal.monetization_list(monetization_objects.state -> 'products')) p
      union all
      select 'entitlement', e.value ->> 'key', e.value ->> 'id',
             jsonb_build_object('display_name', e.value -> 'display_name', 'products',
                                internal.monetization_sorted(e.value -> 'products')), '{}'
        from jsonb_array_elements(internal.monetization_list(monetization_objects.state -> 'entitlements')) e
      union all
      select 'offering', f.value ->> 'key', f.value ->> 'id',
             jsonb_build_object('display_name', f.value -> 'display_name', 'packages',
                                internal.monetization_packages(f.value -> 'packages')),
             jsonb_build_object('is_current', coalesce((f.value ->> 'is_current')::boolean, false))
        from jsonb_array_elements(internal.monetization_list(monetization_objects.state -> 'offerings')) f
      union all
      -- the provider has one paywall for an offering, which is therefore its identity; its template and display cannot
      -- be written by the API
      select 'paywall', w.value ->> 'offering', w.value ->> 'id', '{}',
             jsonb_build_object('key', w.value -> 'key', 'is_published', w.value -> 'is_published')
        from jsonb_array_elements(internal.monetization_list(monetization_objects.state -> 'paywalls')) w
    ) o
   order by o.object_type, o.identifier, o.sorted_by
$$;
comment on function internal.monetization_objects is
  'The objects of a state. document is what both sides have and what is compared and hashed; more is what only one side
   has, or what an apply never writes.';

create or replace function internal.monetization_filled(document jsonb, base jsonb) returns jsonb
language sql immutable parallel safe as $$
  -- three levels: an object, its packages, a package
  select coalesce(jsonb_object_agg(f.key, case
           when f.value = 'null' then coalesce(monetization_filled.base -> f.key, 'null')
           when f.key = 'packages' then (
             select coalesce(jsonb_object_agg(p.key, p.value || jsonb_build_object('position', case
                      when p.value -> 'position' = 'null' then coalesce(
                        monetization_filled.base -> 'packages' -> p.key -> 'position', 'null')
                      else p.value -> 'position' end)), '{}')
               from jsonb_each(f.value) p)
           else f.value end), '{}')
    from jsonb_each(monetization_filled.document) f
$$;
comment on function internal.monetization_filled is
  'A declared document in which what is left open (null) is as in another document.';

create or replace function internal.monetization_product_keys(state jsonb, declared jsonb) returns jsonb
language sql immutable parallel safe as $$
  with named as (
    select l.identifier, d.more ->> 'key' as declared_key,
           regexp_replace(split_part(l.identifier, ':', 1) || '_' || substr(l.identifier,
                                        strpos(l.identifier, ':') + 1), '[^A-Za-z0-9_.:-]', '_', 'g') as made_key
      from internal.monetization_objects(monetization_product_keys.state) l
      left join internal.monetization_objects(monetization_product_keys.declared) d on (d.object_type,
                                        d.identifier) = ('product', l.identifier)
     where l.object_type = 'product'),
  counted as (
    select n.identifier, n.declared_key, left(n.made_key, 190) as made_key,
           count(*) over (partition by left(n.made_key, 190)) as n,
           -- hashed: of thousands of products each would be compared with each
           left(n.made_key, 190) in (select d.value ->> 'key'
                                       from jsonb_array_elements(internal.monetization_list(
                                         monetization_product_keys.declared -> 'products')) d) as is_taken
      from named n)
  select coalesce(jsonb_object_agg(c.identifier,
                                   coalesce(c.declared_key, case when c.n = 1 and not c.is_taken then c.made_key
                                                                 else c.made_key || '.' ||
                                                                   left(md5(c.identifier), 8) end)), '{}')
    from counted c
$$;
comment on function internal.monetization_product_keys is
  'The keys of the products of a live state by identifier: the declared key, else one made of store and store
   identifier. The provider has no keys of products.';

create or replace function internal.monetization_config(state jsonb, declared jsonb) returns jsonb
language sql stable as $$
  with keys as materialized (select internal.monetization_product_keys(monetization_config.state,
                                                                       monetization_config.declared) as by_identifier)
  select jsonb_build_object(
    'entitlements', (
      select coalesce(jsonb_agg(jsonb_build_object(
               'key', e.value -> 'key', 'display_name', e.value -> 'display_name',
                 'description', e.value -> 'description',
               'product_keys', (select coalesce(jsonb_agg(k.key order by k.key collate "C"), '[]')
                                  from jsonb_array_elements_text(e.value -> 'products') p (identifier)
                                 cross join lateral (select keys.by_identifier ->> p.identifier as key) k))
                                   order by e.value ->> 'key' collate "C"), '[]')
        from jsonb_array_elements(internal.monetization_list(monetization_config.state -> 'entitlements')) e),
    'products', (
      select coalesce(jsonb_agg(p.shown order by p.shown ->> 'key' collate "C"), '[]')
        from (select distinct on (q.identifier)
                     jsonb_build_object('key', keys.by_identifier -> q.identifier, 'store', q.value -> 'store',
                                        'store_identifier', q.value -> 'store_identifier',
                                        'type', q.value -> 'type', 'display_name', q.value -> 'display_name',
                                        'store_metadata', coalesce(q.value -> 'store_metadata', '{}')) as shown
                from (select r.value, (r.value ->> 'store') || ':' || (r.value ->> 'store_identifier') as identifier
                        from jsonb_array_elements(internal.monetization_list(
                          monetization_config.state -> 'products')) r) q
               order by q.identifier, q.value ->> 'id') p),
    'offerings', (
      select coalesce(jsonb_agg(jsonb_build_object(
               'key', f.value -> 'key', 'display_name', f.value -> 'display_name',
                 'is_current', coalesce((f.value ->> 'is_current')::boolean, false),
               'packages', (
                 -- a row for each product of a package: one package holds a product of every store
                 select coalesce(jsonb_agg(jsonb_build_object('offering_key', f.value -> 'key', 'key', p.value -> 'key',
                                                              'product_key', keys.by_identifier -> i.identifier,
                                                              'position', p.value -> 'position')
                                           order by (p.value ->> 'position')::numeric nulls last,
                                             p.value ->> 'key' collate "C",
                                                    keys.by_identifier ->> i.identifier collate "C"), '[]')
                   from jsonb_array_elements(internal.monetization_list(f.value -> 'packages')) p
                   left join lateral jsonb_array_elements_text(p.value -> 'products') i (identifier) on true))
                     order by f.value ->> 'key' collate "C"), '[]')
        from jsonb_array_elements(internal.monetization_list(monetization_config.state -> 'offerings')) f),
    'paywalls', (
      select coalesce(jsonb_agg(jsonb_build_object('key', w.key, 'offering_key', w.offering, 'template', w.template,
                                                   'display', w.display)
                                order by w.key collate "C"), '[]')
        from internal.monetization_paywalls(monetization_config.state, monetization_config.declared) w))
    from keys
$$;
comment on function internal.monetization_config is
  'A state in the shape of the API: {entitlements, products, offerings, paywalls}, all sorted by key. Products that are
   declared have their declared keys.';

create or replace function internal.monetization_paywalls(state jsonb, declared jsonb)
returns table (key text, offering text, template jsonb, display jsonb)
language sql immutable parallel safe as $$
  select distinct on (w.value ->> 'offering')
         coalesce(w.value ->> 'key', d.value ->> 'key', w.value ->> 'offering'), w.value ->> 'offering',
         coalesce(w.value -> 'template', 'null'), coalesce(w.value -> 'display', '{}')
    from jsonb_array_elements(internal.monetization_list(monetization_paywalls.state -> 'paywalls')) w
    left join jsonb_array_elements(internal.monetization_list(monetization_paywalls.declared -> 'paywalls')) d
      on d.value ->> 'offering' = w.value ->> 'offering'
   where w.value ->> 'offering' is not null
   order by w.value ->> 'offering', w.value ->> 'id'
$$;
comment on function internal.monetization_paywalls is
  'The paywalls of a state, one for each offering. A live one has the key that is declared for its offering, else the
   key of the offering.';

create or replace function internal.monetization_declared() returns jsonb
language sql stable as $$
  with products as materialized (
    select d.definition, d.identifier, d.definition ->> 'key' as product_key from app.monetization_definitions d
     where d.object_type = 'product'),
  keys as materialized (select coalesce(jsonb_object_agg(p.product_key, p.identifier), '{}') as identifiers
                          from products p)
  select jsonb_build_object(
    'products', (select coalesce(jsonb_agg(p.definition order by p.identifier), '[]') from products p),
    'entitlements', (
      select coalesce(jsonb_agg((d.definition - 'product_keys') || jsonb_build_object(
               'products', (select coalesce(jsonb_agg(keys.identifiers -> k.product_key), '[]')
                              from jsonb_array_elements_text(d.definition -> 'product_keys') k (product_key)
                             where keys.identifiers ? k.product_key)) order by d.identifier), '[]')
        from app.monetization_definitions d where d.object_type = 'entitlement'),
    'offerings', (
      select coalesce(jsonb_agg(d.definition || jsonb_build_object(
               'packages', (
                 select coalesce(jsonb_agg(jsonb_build_object('key', p.package_key, 'position', p.position, 'products',
                                                              p.products)), '[]')
                   from (select g.value ->> 'key' as package_key, max((g.value ->> 'position')::int) as position,
                                coalesce(jsonb_agg(keys.identifiers -> (g.value ->> 'product_key')) filter (
                                  where keys.identifiers ? (g.value ->> 'product_key')), '[]') as products
                           from jsonb_array_elements(d.definition -> 'packages') g
                          group by g.value ->> 'key') p)) order by d.identifier), '[]')
        from app.monetization_definitions d where d.object_type = 'offering'),
    'paywalls', (
      select coalesce(jsonb_agg((d.definition - 'offering_key') || jsonb_build_object('offering',
                                        d.definition -> 'offering_key') order by d.identifier), '[]')
        from app.monetization_definitions d where d.object_type = 'paywall'))
    from keys
$$;
comment on function internal.monetization_declared is
  'The declared state: the definitions, with the keys of products replaced by their identifiers.';

create or replace function internal.monetization_applied_json() returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(jsonb_build_object('object_type', a.object_type, 'identifier', a.identifier, 'document',
                                               a.document, 'more', a.more,
                                               'hash', a.hash, 'is_pushed', a.is_pushed) order by a.object_type,
                                               a.identifier), '[]')
    from app.monetization_applied_objects a
$$;
comment on function internal.monetization_applied_json is
  'What was last applied: [{object_type, identifier, document, more, hash, is_pushed}].';
