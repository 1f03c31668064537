-- Reading and applying plans. The server reads the provider and passes what it found as live; these functions hold it
-- against the definitions.
create or replace function api.monetization_connection() returns api.reply
language plpgsql stable as $$
declare
  sealed constant text := (select i.config_sealed from app.integrations i
                            where i.provider = 'revenuecat' and i.is_active);
begin
  if sealed is null then
    perform internal.fail(400, 'MONETIZATION_NOT_CONFIGURED',
                          'The integration revenuecat is not connected, or is switched off.');
  end if;
  return internal.reply(200, to_json(sealed));
end $$;
comment on function api.monetization_connection is
  'For the server: the sealed config of the subscription provider. Refuses 400 MONETIZATION_NOT_CONFIGURED.';

create or replace function internal.monetization_current(live jsonb, rc_project_id text) returns jsonb
language sql stable as $$
  select internal.monetization_plan(internal.monetization_declared(), monetization_current.live,
                                    internal.monetization_applied_json(),
                                    monetization_current.rc_project_id)
$$;
comment on function internal.monetization_current is 'The plan from what the provider holds to what is declared now.';

create or replace function api.monetization_plan(live jsonb, rc_project_id text) returns api.reply
language sql stable as $$
  -- materialized: a plan takes long, and a subquery would be evaluated wherever it is referred to
  with p as materialized (select internal.monetization_current(monetization_plan.live,
                                                               monetization_plan.rc_project_id) as plan)
  select internal.reply(200, json_build_object(
           'provider', 'revenuecat', 'rc_project_id', monetization_plan.rc_project_id,
             'plan_hash', p.plan -> 'plan_hash', 'clean', p.plan -> 'clean',
           'ops', (select coalesce(json_agg(json_build_object('op', o.value -> 'op',
                                                              'object_type', o.value -> 'object_type',
                                                                'identifier', o.value -> 'identifier',
                                                              'status', o.value -> 'status',
                                                              'reason', o.value -> 'reason') order by o.n), '[]')
                     from jsonb_array_elements(p.plan -> 'ops') with ordinality as o (value, n)),
           'store_floor', (select coalesce(json_agg(f.value - 'identifier' order by f.n), '[]')
                             from jsonb_array_elements(p.plan -> 'store_floor') with ordinality as f (value, n)),
           'human_floor', p.plan -> 'human_floor', 'drift', p.plan -> 'drift', 'validation', p.plan -> 'validation'))
    from p
$$;
comment on function api.monetization_plan is 'The plan as responses show it. Changes nothing.';

create or replace function api.monetization_drift(live jsonb) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('has_drift', count(*) > 0, 'drift', coalesce(json_agg(json_build_object(
           'object_type', t.object_type, 'identifier', t.identifier, 'last_applied_hash', t.last_applied_hash,
             'live_hash', t.live_hash)
           order by t.object_type, t.identifier collate "C"), '[]')))
    from internal.monetization_drift(internal.monetization_compared(internal.monetization_declared(),
                                                                    monetization_drift.live,
                                                                   internal.monetization_applied_json())) t
$$;
comment on function api.monetization_drift is 'What changed at the provider since it was applied: {has_drift, drift}.';

create or replace function api.monetization_export(live jsonb) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('monetization', internal.monetization_config(monetization_export.live,
                                        internal.monetization_declared())))
$$;
comment on function api.monetization_export is 'What the provider holds, in the shape of the definitions.';

create or replace function internal.monetization_is_resolved(entitlement text, product text, provider_ids text[])
returns boolean
language sql stable security definer set search_path = '' as $$
  -- stores report a base plan with its subscription or without it, and so may be declared; a grant in another store by
  -- the same identifier counts too, to be safe
  select exists (
    select from app.entitlement_grants g
     cross join lateral (select substr(monetization_is_resolved.product,
                                       strpos(monetization_is_resolved.product, ':') + 1) as store_identifier) s
     where (split_part(g.product_id, ':', 1) = split_part(s.store_identifier, ':', 1)
             and (g.product_id = s.store_identifier or strpos(g.product_id, ':') = 0
                  or strpos(s.store_identifier, ':') = 0)
            -- restored before the provider's ids were looked up, or while it did not tell: possibly this product
            or g.product_id = any (monetization_is_resolved.provider_ids)
            or g.product_id is null and g.source = 'subscription_provider')
       and (monetization_is_resolved.entitlement is null or g.entitlement_id = monetization_is_resolved.entitlement)
       and internal.grant_end(g) > internal.now())
$$;
comment on function internal.monetization_is_resolved is
  'Whether a customer has, or may have, access by a product now, to one entitlement or (null) to any; provider_ids are
   the ids of the product at the provider. Returns nothing about who it is.';

create or replace function internal.monetization_is_held(entitlement text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.entitlement_grants g
                  where g.entitlement_id = monetization_is_held.entitlement and internal.grant_end(g) > internal.now())
$$;
comment on function internal.monetization_is_held is
  'Whether a customer has an entitlement now, by whatever product or none: a promotional grant names none. Returns
   nothing about who it is.';

create or replace function internal.monetization_in_use(plan jsonb, live jsonb) returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(internal.monetization_step(o.value)), '[]')
    from jsonb_array_elements(monetization_in_use.plan -> 'ops') o
   cross join lateral (
     select array_agg(l.value ->> 'id') as ids
       from jsonb_array_elements(internal.monetization_list(monetization_in_use.live -> 'products')) l
      where concat(l.value ->> 'store', ':', l.value ->> 'store_identifier') = o.value -> 'args' ->> 'product') k
   where o.value ->> 'op' in ('detach', 'archive')
     and case o.value ->> 'object_type'
           when 'entitlement' then case o.value ->> 'op'
                                        when 'archive' then internal.monetization_is_held(
                                          o.value -> 'args' ->> 'entitlement')
                                     else internal.monetization_is_resolved(o.value -> 'args' ->> 'entitlement',
                                        o.value -> 'args' ->> 'product', k.ids) end
           when 'product' then internal.monetization_is_resolved(null, o.value -> 'args' ->> 'product', k.ids)
           when 'package' then o.value ->> 'op' = 'detach'
             and internal.monetization_is_resolved(null, o.value -> 'args' ->> 'product', k.ids)
           else false end
$$;
comment on function internal.monetization_in_use is
  'The ops of a plan that would detach, or archive, a product by which a customer has access now, or archive an
   entitlement that a customer has.';

create or replace function api.monetization_decide(live jsonb, rc_project_id text, allow_detach_live boolean,
                                                   reconcile text)
returns api.reply
language sql stable as $$
  with p as materialized (select internal.monetization_current(monetization_decide.live,
                                                               monetization_decide.rc_project_id) as plan)
  select internal.reply(200, (internal.monetization_decide(p.plan, monetization_decide.live,
                                                           internal.monetization_in_use(p.plan,
                                                             monetization_decide.live),
                                                               monetization_decide.allow_detach_live,
                                                           monetization_decide.reconcile)
                              || jsonb_build_object('plan_hash', p.plan -> 'plan_hash'))::json)
    from p
$$;
comment on function api.monetization_decide is
  'The plan as an apply performs it: {plan_hash, additive, gated, always_waits, refused}. Changes nothing.';

create or replace function api.monetization_adopt_drift(live jsonb) returns api.reply
language plpgsql volatile as $$
declare
  compared jsonb;
  drifted jsonb;
  gone jsonb;
begin
  perform internal.advisory_lock('monetization');
  compared := internal.monetization_compared(internal.monetization_declared(), monetization_adopt_drift.live,
                                             internal.monetization_applied_json());
  select coalesce(jsonb_agg(jsonb_build_object('object_type', p.object_type, 'identifier',
                                               p.shown_as)) filter (where p.is_live), '[]'),
         coalesce(jsonb_agg(jsonb_build_array(p.object_type, p.shown_as, p.identifier)) filter (where not p.is_live),
                  '[]')
    into drifted, gone
    from internal.monetization_pairs(compared) p
   where p.is_declared and p.status = 'drift' and p.wanted is distinct from p.held;
  -- another offering was made the current one: only that is adopted, whatever else is declared of it and not applied
  -- yet
  update app.monetization_definitions d
     set definition = d.definition || '{"is_current": false}', updated_at = internal.now()
    from internal.monetization_pairs(compared) p
   where d.object_type = 'offering' and (p.object_type, p.identifier) = (d.object_type, d.identifier) and p.is_live
     and p.wanted_more ->> 'is_current' = 'true' and p.last_more ->> 'is_current' = 'true'
     and p.held_more ->> 'is_current' <> 'true';
  delete from app.monetization_definitions d
   where exists (select from jsonb_array_elements(gone) g
                  where (g.value ->> 0, g.value ->> 1) = (d.object_type, d.identifier));
  delete from app.monetization_applied_objects a
   where exists (select from jsonb_array_elements(gone) g
                  where (g.value ->> 0, g.value ->> 2) = (a.object_type, a.identifier));
  return internal.reply(200, internal.monetization_adopt(monetization_adopt_drift.live, drifted));
end $$;
comment on function api.monetization_adopt_drift is
  'For the job of an apply with reconcile=adopt: declares what changed at the provider, and no longer what is gone
   there, where the declaration itself has not changed since it was applied. Returns the counts. Safe to repeat.';

create or replace function api.monetization_record(live jsonb, touched jsonb, pushed jsonb) returns api.reply
language plpgsql volatile as $$
declare
  declared constant jsonb := internal.monetization_declared();
begin
  perform internal.advisory_lock('monetization');
  perform internal.monetization_remember((
    select jsonb_agg(jsonb_build_object(
             'object_type', l.object_type, 'identifier', l.identifier, 'document', l.document,
               'more', l.more || jsonb_build_object('key', d.more -> 'key'),
             'is_pushed', l.object_type = 'product' and monetization_record.pushed ? l.identifier))
      from internal.monetization_objects(monetization_record.live) l
      join internal.monetization_objects(declared) d on (d.object_type, d.identifier) = (l.object_type, l.identifier)
     where monetization_record.touched @> jsonb_build_array(jsonb_build_array(l.object_type, l.identifier))
        or internal.monetization_filled(d.document, l.document) = l.document));
  delete from app.monetization_applied_objects a
   where not exists (select from internal.monetization_objects(declared) d
                      where (d.object_type, d.identifier) = (a.object_type, a.identifier))
     and not exists (select from internal.monetization_objects(monetization_record.live) l
                      where (l.object_type, l.identifier) = (a.object_type, a.identifier));
  return internal.reply(200, 'true');
end $$;
comment on function api.monetization_record is
  'For the job of an apply: remembers as applied what it has touched and what is as declared, and forgets what is
   neither declared nor live. touched is [[object_type, identifier]], pushed the identifiers of products that are in
   their stores now. Safe to repeat.';
