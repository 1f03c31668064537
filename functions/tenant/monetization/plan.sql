-- The planner: pure functions of what is declared, what is live and what was last applied. Nothing here reads a table.
-- An object is managed when it is declared, or was applied before and still lives. Everything else that lives is left
-- alone.
create or replace function internal.monetization_compared(declared jsonb, live jsonb, applied jsonb) returns jsonb
language sql immutable parallel safe as $$
  select coalesce(jsonb_agg(jsonb_build_object(
           'object_type', k.object_type, 'identifier', k.identifier, 'declared', d.document, 'wanted', w.wanted,
             'wanted_more', d.more,
           'is_declared', d.identifier is not null, 'held', l.document, 'held_more', l.more,
           'is_live', l.identifier is not null,
           'live_hash', internal.monetization_hash(l.document), 'last_hash', a.hash, 'last_more', a.more,
           'is_pushed', coalesce(a.is_pushed, false),
           -- nobody has changed the declaration since it was applied, so the provider's side has changed
           'status', case when internal.monetization_filled(d.document, a.document) = a.document then 'drift'
                          else 'pending' end,
           'shown_as', case k.object_type when 'paywall' then coalesce(d.more ->> 'key', a.more ->> 'key', k.identifier)
                            else k.identifier end)), '[]')
    from internal.monetization_objects(monetization_compared.declared) d
    full join internal.monetization_objects(monetization_compared.live) l on (l.object_type,
                                        l.identifier) = (d.object_type, d.identifier)
    full join jsonb_to_recordset(monetization_compared.applied)
           as a (object_type text, identifier text, document jsonb, more jsonb, hash text, is_pushed boolean)
      on (a.object_type, a.identifier) = (coalesce(d.object_type, l.object_type), coalesce(d.identifier, l.identifier))
   cross join lateral (select coalesce(d.object_type, l.object_type, a.object_type) as object_type,
                              coalesce(d.identifier, l.identifier, a.identifier) as identifier) k
   cross join lateral (select internal.monetization_filled(d.document, coalesce(l.document, '{}')) as wanted) w
$$;
comment on function internal.monetization_compared is
  'Every object that is declared, live or was applied, each with what is known of it, for internal.monetization_pairs.
   Everything a plan says follows from this list, which is made once for it.';

create or replace function internal.monetization_sides(compared jsonb)
returns table (object_type text, identifier text, declared jsonb, wanted jsonb, wanted_more jsonb, is_declared boolean,
               held jsonb, held_more jsonb,
               is_live boolean, live_hash text, last_hash text, last_more jsonb, is_pushed boolean, status text,
               shown_as text)
language sql immutable parallel safe as $$
  select s.*
    from jsonb_to_recordset(monetization_sides.compared)
           as s (object_type text, identifier text, declared jsonb, wanted jsonb, wanted_more jsonb,
                 is_declared boolean, held jsonb, held_more jsonb,
                 is_live boolean, live_hash text, last_hash text, last_more jsonb, is_pushed boolean, status text,
                 shown_as text)
$$;
comment on function internal.monetization_sides is 'The rows of internal.monetization_compared.';

create or replace function internal.monetization_pairs(compared jsonb)
returns table (object_type text, identifier text, wanted jsonb, wanted_more jsonb, is_declared boolean, held jsonb,
               held_more jsonb, is_live boolean,
               last_hash text, last_more jsonb, is_pushed boolean, status text, shown_as text)
language sql immutable parallel safe as $$
  select s.object_type, s.identifier, s.wanted, s.wanted_more, s.is_declared, s.held, s.held_more, s.is_live,
         s.last_hash, s.last_more, s.is_pushed,
         s.status, s.shown_as
    from internal.monetization_sides(monetization_pairs.compared) s
   where s.is_declared or s.is_live and s.last_hash is not null
$$;
comment on function internal.monetization_pairs is
  'The managed objects, each with what is wanted and what the provider holds. wanted has the provider''s value where the
   declaration leaves one open.';

create or replace function internal.monetization_pushes(product jsonb, store text) returns boolean
language sql immutable parallel safe
return monetization_pushes.store in ('app_store', 'play_store')
  and monetization_pushes.product -> 'store_metadata' -> 'push_to_store' = 'true';
comment on function internal.monetization_pushes is
  'Whether the declaration of a product asks for its creation in its store.';

create or replace function internal.monetization_validation(compared jsonb)
returns table (code text, object_type text, identifier text, detail text)
language sql immutable parallel safe as $$
  with products as materialized (
    select p.identifier, split_part(p.identifier, ':', 1) as store, p.wanted ->> 'type' as product_type,
           p.wanted_more -> 'store_metadata' as metadata,
           p.is_live, internal.monetization_pushes(p.wanted_more, split_part(p.identifier, ':', 1))
             and not p.is_pushed as is_to_push
      from internal.monetization_pairs(monetization_validation.compared) p
     where p.object_type = 'product' and p.is_declared)
  select 'MULTIPLE_CURRENT_OFFERINGS', 'offering', o.identifier,
         'More than one offering is declared as the current one.'
    from (select c.identifier, count(*) over () as n
            from internal.monetization_pairs(monetization_validation.compared) c
           where c.object_type = 'offering' and c.wanted_more ->> 'is_current' = 'true') o
   where o.n > 1
  union all
  select 'PRODUCT_TYPE_REQUIRED', 'product', p.identifier, 'A product that is created needs a type.'
    from products p where not p.is_live and p.product_type is null
  union all
  select 'PRODUCT_PUSH_INPUT_MISSING', 'product', p.identifier,
         'store_metadata lacks ' || string_agg(m.field, ', ' order by m.n) || '.'
    from products p
   cross join lateral (values
     (1, 'push_to_store (true or false)', not p.is_live
      and jsonb_typeof(p.metadata -> 'push_to_store') is distinct from 'boolean'
                             and (p.store = 'app_store' or p.store = 'play_store'
                                  and p.product_type <> 'subscription')),
     (2, 'duration', p.is_to_push and p.store = 'app_store' and p.product_type = 'subscription'
                     and coalesce(p.metadata ->> 'duration' not in ('ONE_WEEK', 'ONE_MONTH', 'TWO_MONTHS',
                                                                    'THREE_MONTHS', 'SIX_MONTHS', 'ONE_YEAR'), true)),
     (3, 'subscription_group_name', p.is_to_push and p.store = 'app_store' and p.product_type = 'subscription'
                                    and coalesce(jsonb_typeof(p.metadata -> 'subscription_group_name') <> 'string'
                                                 or char_length(p.metadata ->> 'subscription_group_name') not
                                                   between 1 and 255, true)),
     (4, 'play_price_micros (a whole number)',
      p.is_to_push and p.store = 'play_store' and p.product_type <> 'subscription'
                               and coalesce(jsonb_typeof(p.metadata -> 'play_price_micros') <> 'number'
                                            or p.metadata ->> 'play_price_micros' !~ '^[0-9]{1,18}$', true)),
     (5, 'play_currency (an ISO 4217 code)', p.is_to_push and p.store = 'play_store'
      and p.product_type <> 'subscription'
                           and coalesce(p.metadata ->> 'play_currency' !~ '^[A-Z]{3}$', true))) as m (n, field,
                                        is_missing)
   where m.is_missing
   group by p.identifier
$$;
comment on function internal.monetization_validation is
  'What is wrong with the declaration itself: MULTIPLE_CURRENT_OFFERINGS, PRODUCT_TYPE_REQUIRED,
   PRODUCT_PUSH_INPUT_MISSING, each with the object.';

create or replace function internal.monetization_store_floor(compared jsonb, apps jsonb)
returns table (code text, identifier text, title text, detail text)
language sql immutable parallel safe as $$
  select g.code, p.identifier, g.title, g.detail
    from internal.monetization_pairs(monetization_store_floor.compared) p
   cross join lateral (
     select count(*) as n, coalesce(bool_or(a.value ->> 'id' = p.wanted_more -> 'store_metadata' ->> 'app_id'),
                                    false) as is_named
       from jsonb_array_elements(internal.monetization_list(monetization_store_floor.apps)) a
      where a.value ->> 'type' = split_part(p.identifier, ':', 1)) s
   cross join lateral (values
     ('STORE_APP_MISSING', 'No app for this store',
      'The provider''s project has no app of the store ' || split_part(p.identifier, ':', 1) || '.', s.n = 0),
     ('STORE_APP_AMBIGUOUS', 'Several apps for this store', 'Name one of them by its id in store_metadata.app_id.',
      s.n > 1 and not s.is_named),
     ('STORE_NOT_WRITABLE', 'Products of this store are made in the dashboard',
      'The provider''s API does not create products of Web Billing.',
      split_part(p.identifier, ':', 1) = 'rc_billing')) as g (code, title, detail, applies)
   where p.object_type = 'product' and p.is_declared and not p.is_live and g.applies
$$;
comment on function internal.monetization_store_floor is
  'Gaps at the provider that prevent the creation of a declared product: no app of its store, several of them, or a
   store whose products the API does not create.';

create or replace function internal.monetization_ops(compared jsonb)
returns table (rank int, sort_key text, op text, object_type text, identifier text, status text, reason text,
               args jsonb, gate text)
language sql immutable parallel safe as $$
  with pairs as materialized (
    select p.* from internal.monetization_pairs(monetization_ops.compared) p),
  -- the products that an entitlement should have and has
  attached as materialized (
    select coalesce(w.parent, h.parent) as parent, coalesce(w.product, h.product) as product,
           coalesce(w.status, h.status) as status,
           w.product is not null as is_wanted, h.product is not null as is_held
      from (select p.identifier as parent, e.product, p.status from pairs p
             cross join lateral jsonb_array_elements_text(p.wanted -> 'products') e (product)
             where p.object_type = 'entitlement' and p.is_declared) w
      full join (select p.identifier as parent, e.product, p.status from pairs p
                  cross join lateral jsonb_array_elements_text(p.held -> 'products') e (product)
                  where p.object_type = 'entitlement' and p.is_declared) h
        on (h.parent, h.product) = (w.parent, w.product)),
  packages as materialized (
    select p.identifier as offering, p.status, k.key, p.wanted -> 'packages' -> k.key as wanted,
           p.held -> 'packages' -> k.key as held
      from pairs p
     cross join lateral (select jsonb_object_keys(p.wanted -> 'packages') as key
                         union select jsonb_object_keys(coalesce(p.held -> 'packages', '{}'))) k
     where p.object_type = 'offering' and p.is_declared),
  contents as materialized (
    select g.offering, g.key, g.status, e.product, coalesce(g.wanted -> 'products' ? e.product, false) as is_wanted,
           coalesce(g.held -> 'products' ? e.product, false) as is_held
      from packages g
     cross join lateral (select jsonb_array_elements_text(g.wanted -> 'products') as product
                         union select jsonb_array_elements_text(coalesce(g.held -> 'products', '[]'))) e
     where g.wanted is not null),
  -- hashed, as each content of thousands would be held against each
  leaving as materialized (
    select distinct c.offering, c.key, split_part(c.product, ':', 1) as store from contents c
     where c.is_held and not c.is_wanted)

  select 10, p.identifier, 'create', 'product', p.identifier, p.status, 'declared, not at the provider',
         jsonb_build_object('product', p.identifier, 'store', split_part(p.identifier, ':', 1),
                            'store_identifier', substr(p.identifier, strpos(p.identifier, ':') + 1),
                            'type', p.wanted -> 'type',
                            'display_name', p.wanted -> 'display_name',
                            'app_id', p.wanted_more -> 'store_metadata' -> 'app_id'), null
    from pairs p where p.object_type = 'product' and p.is_declared and not p.is_live
  union all
  select 20, p.identifier, 'create', 'entitlement', p.identifier, p.status, 'declared, not at the provider',
         jsonb_build_object('entitlement', p.identifier, 'display_name',
                            coalesce(p.wanted ->> 'display_name', p.identifier)), null
    from pairs p where p.object_type = 'entitlement' and p.is_declared and not p.is_live
  union all
  select 21, p.identifier, 'update', 'entitlement', p.identifier, p.status, 'display_name differs',
         jsonb_build_object('entitlement', p.identifier, 'display_name', p.wanted -> 'display_name'), null
    from pairs p where p.object_type = 'entitlement' and p.is_declared and p.is_live
      and p.wanted -> 'display_name' <> p.held -> 'display_name'
  union all
  select 30, a.parent || '/' || a.product, 'attach', 'entitlement', a.parent || '/' || a.product, a.status,
         'declared, not attached',
         jsonb_build_object('entitlement', a.parent, 'product', a.product), null
    from attached a where a.is_wanted and not a.is_held
  union all
  select 40, p.identifier, 'create', 'offering', p.identifier, p.status, 'declared, not at the provider',
         jsonb_build_object('offering', p.identifier, 'display_name',
                            coalesce(p.wanted ->> 'display_name', p.identifier)), null
    from pairs p where p.object_type = 'offering' and p.is_declared and not p.is_live
  union all
  select 41, p.identifier, 'update', 'offering', p.identifier, p.status, 'display_name differs',
         jsonb_build_object('offering', p.identifier, 'display_name', p.wanted -> 'display_name'), null
    from pairs p where p.object_type = 'offering' and p.is_declared and p.is_live
      and p.wanted -> 'display_name' <> p.held -> 'display_name'
  union all
  -- in the order of their positions, which the provider may assign by itself
  select 50, g.offering || '/' || lpad(coalesce(g.wanted ->> 'position', '999999'), 12, '0') || '/' || g.key, 'create',
         'package', g.offering || '/' || g.key,
         g.status, 'declared, not at the provider',
         jsonb_build_object('offering', g.offering, 'package', g.key, 'display_name', g.key, 'position',
                            g.wanted -> 'position'), null
    from packages g where g.wanted is not null and g.held is null
  union all
  select 51, g.offering || '/' || lpad(coalesce(g.wanted ->> 'position', '999999'), 12, '0') || '/' || g.key, 'update',
         'package', g.offering || '/' || g.key,
         g.status, 'position differs', jsonb_build_object('offering', g.offering, 'package', g.key, 'position',
                                                          g.wanted -> 'position'), null
    from packages g where g.wanted is not null and g.held is not null and g.wanted -> 'position' <> g.held -> 'position'
  union all
  -- a package holds one product of a store: where one is replaced, the old one leaves first, which needs a confirmation
  select case when r.is_replacement then 81 else 52 end, c.offering || '/' || c.key || '/' || c.product, 'attach',
         'package',
         c.offering || '/' || c.key || '/' || c.product, c.status,
         case when r.is_replacement then 'takes the place of a product of the same store'
              else 'declared, not attached' end,
         jsonb_build_object('offering', c.offering, 'package', c.key, 'product', c.product),
         case when r.is_replacement then 'replacement' end
    from contents c
   cross join lateral (
     select (c.offering, c.key, split_part(c.product, ':', 1)) in (select l.offering, l.key, l.store
                                                                     from leaving l) as is_replacement) r
   where c.is_wanted and not c.is_held
  union all
  select 60, p.shown_as, 'create', 'paywall', p.shown_as, p.status, 'declared, not at the provider',
         jsonb_build_object('offering', p.identifier, 'paywall', p.identifier), null
    from pairs p where p.object_type = 'paywall' and p.is_declared and not p.is_live
  union all
  select 65, p.identifier, 'update', 'product', p.identifier, p.status,
         case when p.wanted -> 'type' <> p.held -> 'type' then 'type differs' else 'display_name differs' end,
         jsonb_build_object('product', p.identifier), 'manual'
    from pairs p where p.object_type = 'product' and p.is_declared and p.is_live and p.wanted <> p.held
  union all
  select 66, p.identifier, 'set-current', 'offering', p.identifier,
         case when p.last_more ->> 'is_current' = 'true' then 'drift' else 'pending' end,
         'declared as the current offering', jsonb_build_object('offering', p.identifier), 'manual'
    from pairs p where p.object_type = 'offering' and p.wanted_more ->> 'is_current' = 'true'
      and coalesce(p.held_more ->> 'is_current', 'false') <> 'true'
  union all
  select 70, p.identifier, 'create', 'store_product', p.identifier, 'pending', 'store_metadata.push_to_store is set',
         jsonb_build_object('product', p.identifier, 'store', split_part(p.identifier, ':', 1), 'type',
                            p.wanted -> 'type',
                            'store_metadata', p.wanted_more -> 'store_metadata'), 'store'
    from pairs p
   where p.object_type = 'product' and p.is_declared and not p.is_pushed
     and internal.monetization_pushes(p.wanted_more, split_part(p.identifier, ':', 1))
  union all
  select 80, c.offering || '/' || c.key || '/' || c.product, 'detach', 'package',
         c.offering || '/' || c.key || '/' || c.product, c.status, 'attached, not declared',
         jsonb_build_object('offering', c.offering, 'package', c.key, 'product', c.product), 'destructive'
    from contents c where c.is_held and not c.is_wanted
  union all
  select 82, g.offering || '/' || g.key, 'archive', 'package', g.offering || '/' || g.key, g.status, 'not declared',
         jsonb_build_object('offering', g.offering, 'package', g.key), 'destructive'
    from packages g where g.wanted is null
  union all
  select 83, a.parent || '/' || a.product, 'detach', 'entitlement', a.parent || '/' || a.product, a.status,
         'attached, not declared',
         jsonb_build_object('entitlement', a.parent, 'product', a.product), 'destructive'
    from attached a where a.is_held and not a.is_wanted
  union all
  select case p.object_type when 'paywall' then 84 when 'offering' then 85 when 'entitlement' then 86 else 87 end,
         p.shown_as,
         'archive', p.object_type, p.shown_as, 'pending', 'no longer declared',
         jsonb_build_object(p.object_type, p.identifier) || case
                                                                 when p.object_type =
                                                                   'entitlement' then jsonb_build_object('products',
                                                                     p.held -> 'products') else '{}' end,
         'destructive'
    from pairs p where not p.is_declared and p.is_live
$$;
comment on function internal.monetization_ops is
  'What is to be done at the provider, by rank: first what later steps need, removals last and in the opposite order.
   gate says what holds an op back: null runs by itself, destructive and replacement wait for a confirmation, store
   always waits, manual is never performed. args is what the caller of the provider needs.';

create or replace function internal.monetization_drift(compared jsonb)
returns table (object_type text, identifier text, last_applied_hash text, live_hash text)
language sql immutable parallel safe as $$
  select s.object_type, case s.object_type when 'paywall' then coalesce(s.last_more ->> 'key', s.identifier)
                             else s.identifier end, s.last_hash, s.live_hash
    from internal.monetization_sides(monetization_drift.compared) s
   where s.last_hash is distinct from s.live_hash
     -- gone as declared, or declared and not applied yet
     and case when s.last_hash is null then not s.is_declared else s.is_live or s.is_declared end
$$;
comment on function internal.monetization_drift is
  'Objects that changed at the provider since they were applied, also those that are gone there (live_hash null), and
   live ones that nobody declared or adopted (last_applied_hash null).';

create or replace function internal.monetization_human_floor(compared jsonb)
returns table (code text, identifier text, title text, detail text, location text)
language sql immutable parallel safe as $$
  select f.code, p.identifier, f.title, f.detail, f.location
    from internal.monetization_pairs(monetization_human_floor.compared) p
   cross join lateral (values
     ('app_store', 'APP_STORE_PRODUCT_MISSING', 'Create the product in App Store Connect',
      'It is not pushed to the store, so a product with this identifier must exist there.',
      'https://appstoreconnect.apple.com', not internal.monetization_pushes(p.wanted_more, 'app_store')),
     ('app_store', 'APP_STORE_PRICE', 'Set the price in App Store Connect', 'The provider does not set prices there.',
      'https://appstoreconnect.apple.com', true),
     ('app_store', 'APP_STORE_REVIEW', 'Submit the product for review',
      'A new product needs localised texts, a screenshot and Apple''s review before it is sold.',
      'https://appstoreconnect.apple.com', true),
     ('play_store', 'PLAY_STORE_PRODUCT', 'Create and activate the product in Play Console',
      'The provider only refers to products of the Play store.',
      'https://play.google.com/console', true),
     ('stripe', 'STRIPE_PRODUCT', 'Create the product in Stripe', 'The provider only refers to products of Stripe.',
      'https://dashboard.stripe.com', true)
   ) as f (store, code, title, detail, location, applies)
   where p.object_type = 'product' and p.is_declared and f.store = split_part(p.identifier, ':', 1) and f.applies
     and (not p.is_live or internal.monetization_pushes(p.wanted_more, f.store) and not p.is_pushed)
$$;
comment on function internal.monetization_human_floor is
  'What a person must do in a store for products that are new: informational, it blocks nothing.';

create or replace function internal.monetization_plan(declared jsonb, live jsonb, applied jsonb,
                                                      rc_project_id text default '')
returns jsonb
language sql immutable parallel safe as $$
  with compared as materialized (
    select internal.monetization_compared(monetization_plan.declared, monetization_plan.live,
                                          monetization_plan.applied) as of_all),
  sides as (
    select internal.monetization_hash(jsonb_build_object(
             'project', monetization_plan.rc_project_id, 'declared', h.declared, 'live', h.live,
             'apps', (select jsonb_object_agg(a.value ->> 'id', a.value -> 'type')
                        from jsonb_array_elements(internal.monetization_list(monetization_plan.live -> 'apps')) a),
             'applied', h.applied)) as plan_hash
      from (select jsonb_object_agg(n.name, jsonb_build_array(s.declared,
                                                              s.wanted_more)) filter (where s.is_declared) as declared,
                   jsonb_object_agg(n.name, jsonb_build_array(s.held, s.held_more -> 'is_current',
                                                              s.held_more -> 'is_published'))
                     filter (where s.is_live) as live,
                   jsonb_object_agg(n.name, jsonb_build_array(s.last_hash,
                                                              s.is_pushed)) filter (
                                                                where s.last_hash is not null) as applied
              from compared c
             cross join internal.monetization_sides(c.of_all) s
             cross join lateral (select s.object_type || ' ' || s.identifier as name) n) h),
  keys as materialized (
    select coalesce(jsonb_object_agg((d.value ->> 'store') || ':' || (d.value ->> 'store_identifier'),
                                     d.value -> 'key'), '{}') as by_identifier
      from jsonb_array_elements(internal.monetization_list(monetization_plan.declared -> 'products')) d),
  steps as (
    select coalesce(jsonb_agg(jsonb_build_object('op', o.op, 'object_type', o.object_type, 'identifier', o.identifier,
                                                 'status', o.status, 'reason', o.reason,
                                                 'args', o.args, 'gate', o.gate)
                              order by o.rank, o.sort_key collate "C"), '[]') as ops
      from compared c
     cross join internal.monetization_ops(c.of_all) o)
  select jsonb_build_object(
    'plan_hash', sides.plan_hash, 'ops', steps.ops, 'clean', steps.ops = '[]',
    'store_floor', (
      select coalesce(jsonb_agg(jsonb_build_object('code', f.code, 'product_key', keys.by_identifier -> f.identifier,
                                                   'store', split_part(f.identifier, ':', 1), 'title', f.title,
                                                   'detail', f.detail, 'location', null, 'identifier', f.identifier)
                                                     order by f.identifier collate "C", f.code), '[]')
        from internal.monetization_store_floor(compared.of_all, monetization_plan.live -> 'apps') f),
    'human_floor', (
      select coalesce(jsonb_agg(jsonb_build_object('code', f.code, 'product_key', keys.by_identifier -> f.identifier,
                                                   'store', split_part(f.identifier, ':', 1), 'title', f.title,
                                                   'detail', f.detail, 'location', f.location)
                                                     order by f.identifier collate "C", f.code), '[]')
        from internal.monetization_human_floor(compared.of_all) f),
    'drift', (
      select coalesce(jsonb_agg(jsonb_build_object('object_type', t.object_type, 'identifier', t.identifier,
                                                   'last_applied_hash', t.last_applied_hash,
                                                   'live_hash', t.live_hash) order by t.object_type,
                                                   t.identifier collate "C"), '[]')
        from internal.monetization_drift(compared.of_all) t),
    'validation', (
      select coalesce(jsonb_agg(jsonb_build_object('code', v.code, 'object_type', v.object_type, 'identifier',
                                                   v.identifier, 'detail', v.detail)
                                order by v.code, v.identifier collate "C"), '[]')
        from internal.monetization_validation(compared.of_all) v),
    -- paywalls whose publication is left to a person
    'unpublished', (
      select coalesce(jsonb_agg(p.shown_as order by p.shown_as collate "C"), '[]')
        from internal.monetization_pairs(compared.of_all) p
       where p.object_type = 'paywall' and p.is_declared
         and coalesce(p.held_more ->> 'is_published', 'false') <> 'true'))
    from compared, sides, steps, keys
$$;
comment on function internal.monetization_plan is
  'The plan that takes the provider from live to declared: {plan_hash, clean, ops, store_floor, human_floor, drift,
   validation}. A pure function: the same sides in any order give the same plan. plan_hash changes with either side, and
   with what was last applied.';

create or replace function internal.monetization_step(op jsonb) returns jsonb
language sql immutable parallel safe
return jsonb_build_object('op', monetization_step.op -> 'op', 'object_type', monetization_step.op -> 'object_type',
                          'identifier', monetization_step.op -> 'identifier');
comment on function internal.monetization_step is 'What names an op: {op, object_type, identifier}.';

create or replace function internal.monetization_decide(plan jsonb, live jsonb, in_use jsonb, allow_detach_live boolean,
                                                        reconcile text)
returns jsonb
language sql immutable parallel safe as $$
  with ops as materialized (
    select o.value as op, o.n, o.value -> 'args' as args, o.value ->> 'op' as verb,
           o.value ->> 'object_type' as object_type, o.value ->> 'gate' as gate
      from jsonb_array_elements(monetization_decide.plan -> 'ops') with ordinality as o (value, n)),
  -- products that cannot be created, so that nothing can be attached to them
  blocked as materialized (
    select v.value ->> 'identifier' as product, v.value ->> 'code' as code, v.value ->> 'detail' as detail
      from jsonb_array_elements((monetization_decide.plan -> 'validation')
                                || (monetization_decide.plan -> 'store_floor')) v
     where v.value ->> 'code' <> 'MULTIPLE_CURRENT_OFFERINGS'),
  -- what changed at the provider is adopted into the declaration instead
  left_alone as materialized (
    select o.n from ops o where monetization_decide.reconcile = 'adopt' and o.op ->> 'status' = 'drift'),
  created as materialized (
    select distinct o.args ->> 'product' as product from ops o where o.verb = 'create' and o.object_type = 'product'),
  refusals as materialized (
    select o.n, o.op, 1 as rank, 'MANUAL_STEP' as code,
           'Set this offering as the current one in the provider''s dashboard.' as manual_step
      from ops o where o.verb = 'set-current'
    union all
    select o.n, o.op, 2, 'MANUAL_STEP',
           'Change this product in the provider''s dashboard: the API does not change products.'
      from ops o where o.gate = 'manual' and o.object_type = 'product'
    union all
    select o.n, o.op, 3, b.code, b.detail
      from ops o
      join blocked b on b.product = o.args ->> 'product'
     where o.object_type in ('product', 'store_product')
        or o.verb = 'attach' and b.product in (select c.product from created c)
    union all
    select o.n, o.op, 4, 'MANUAL_STEP',
           'Create this product in Play Console: the provider''s API creates products in the App Store only.'
      from ops o where o.object_type = 'store_product' and o.args ->> 'store' = 'play_store'
    union all
    select o.n, o.op, 5, 'CURRENT_OFFERING', 'Make another offering the current one first.'
      from ops o
     where o.verb = 'archive' and o.object_type = 'offering'
       and exists (select
                     from jsonb_array_elements(internal.monetization_list(monetization_decide.live -> 'offerings')) f
                    where f.value ->> 'key' = o.args ->> 'offering' and f.value ->> 'is_current' = 'true')
    union all
    select o.n, o.op, 6, 'LIVE_CUSTOMERS', 'Customers have access by it. Send allow_detach_live to do it all the same.'
      from ops o
     where not monetization_decide.allow_detach_live and o.verb in ('detach', 'archive')
       and internal.monetization_step(o.op) in (select u.value
                                                  from jsonb_array_elements(monetization_decide.in_use) u)),
  refused as materialized (
    select distinct on (r.n) r.n, r.op, r.code, r.manual_step
      from refusals r
     where r.n not in (select l.n from left_alone l)
     order by r.n, r.rank),
  -- a product that stays in a package keeps the one that should take its place out
  kept as materialized (
    select o.n, o.op, 'PLACE_TAKEN' as code, 'The product of the same store stays in the package.' as manual_step
      from ops o
     where o.gate = 'replacement' and o.n not in (select r.n from refused r)
       and (o.args ->> 'offering', o.args ->> 'package', split_part(o.args ->> 'product', ':', 1)) in (
             select r.op -> 'args' ->> 'offering', r.op -> 'args' ->> 'package',
                    split_part(r.op -> 'args' ->> 'product', ':', 1)
               from refused r where r.op ->> 'op' = 'detach')),
  runs as materialized (
    select o.* from ops o
     -- hashed, which an anti join of so few expected rows is not
     where o.n not in (select r.n from refused r) and o.n not in (select k.n from kept k)
       and o.n not in (select l.n from left_alone l)),
  publications as (
    select jsonb_build_object('op', 'update', 'object_type', 'paywall', 'identifier', w.value) as step
      from jsonb_array_elements(monetization_decide.plan -> 'unpublished') w)
  select jsonb_build_object(
    'additive', (select coalesce(jsonb_agg(r.op order by r.n), '[]') from runs r where r.gate is null),
    'gated', (select coalesce(jsonb_agg(r.op order by r.n), '[]') from runs r where r.gate is not null),
    'always_waits', exists (select from runs r where r.gate = 'store'),
    'refused', (
      select coalesce(jsonb_agg(x.shown order by x.n), '[]')
        from (select r.n, internal.monetization_step(r.op) || jsonb_build_object('code', r.code, 'manual_step',
                                        r.manual_step) as shown
                from (select * from refused union all select * from kept) r
              union all
              select 1000000, p.step || jsonb_build_object('code', 'MANUAL_STEP', 'manual_step',
                                                           'Publish this paywall in the provider''s paywall editor.')
                from publications p) x))
$$;
comment on function internal.monetization_decide is
  'Which ops of a plan run at once (additive), wait for a confirmation (gated) and are not performed (refused, each with
   the manual step). in_use names the ops that would take a product from a customer who has access by it.';
