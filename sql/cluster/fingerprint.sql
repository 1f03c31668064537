-- One value for all that state.sql lists, and for what else decides how the loader's statements work: two databases of
-- one cluster with the same fingerprint are changed in the same way by the same program. Sums of hashes, so that no
-- order matters and nothing is sorted. Roles go in by their number, which a cluster has once; all other objects by
-- name, because their numbers differ from database to database.
with spaces as (
  select n.oid, n.nspname, n.nspacl from pg_catalog.pg_namespace n
   where n.nspname in ('app', 'internal', 'api', 'ops', 'collections', 'extensions')
), ours as (
  select s.oid from spaces s where s.nspname in ('app', 'internal', 'api', 'ops')
), tables as materialized (
  select c.oid, c.oid::regclass::text as name, c.relkind, c.relowner, c.relrowsecurity, c.relforcerowsecurity,
         (select sum(hash_aclitem_extended(a, 0)) from unnest(c.relacl) a) as acl
    from pg_catalog.pg_class c
   where c.relnamespace = any (array(select o.oid from ours o)) and c.relkind in ('r', 'p', 'v', 'm', 'S')
     and not c.relispartition
), comments as materialized (
  select d.objoid, d.classoid, d.description
    from pg_catalog.pg_description d
   where d.classoid in ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_policy'::regclass) and d.objsubid = 0
     and d.objoid >= 16384
), hashed (h) as (
  select hash_record_extended(row(
           p.oid::regprocedure::text, p.prosrc, p.proargnames, p.proargmodes, p.prorettype::regtype::text, p.proretset,
             p.provolatile, p.proparallel,
           p.prosecdef, p.proleakproof, p.proisstrict, p.procost, p.prorows, p.proconfig, p.prokind, p.prolang,
           p.proowner,
           case when p.proallargtypes is not null then p.proallargtypes::regtype[]::text end,
           case when p.proargdefaults is not null then pg_get_expr(p.proargdefaults, 0) end,
           case when p.prosqlbody is not null then pg_get_function_sqlbody(p.oid) end, d.description,
           (select sum(hash_aclitem_extended(a, 0)) from unnest(coalesce(p.proacl, acldefault('f', p.proowner))) a)), 0)
    from pg_catalog.pg_proc p
    left join comments d on d.objoid = p.oid and d.classoid = 'pg_catalog.pg_proc'::regclass
   where p.pronamespace = any (array(select o.oid from ours o))
  union all
  select hash_record_extended(row(
           'policy'::text, p.polname, t.name, p.polpermissive, p.polcmd,
             (select sum(hashoidextended(r, 0)) from unnest(p.polroles) r),
           pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid), d.description), 0)
    from pg_catalog.pg_policy p
    join tables t on t.oid = p.polrelid
    left join comments d on d.objoid = p.oid and d.classoid = 'pg_catalog.pg_policy'::regclass
  union all
  -- a comment at a time: few triggers have one, and the planner would read all comments for each
  select hash_record_extended(row('trigger'::text, pg_get_triggerdef(g.oid), g.tgenabled,
                                  (select d.description from pg_catalog.pg_description d
                                    where d.objoid = g.oid and d.classoid = 'pg_catalog.pg_trigger'::regclass
                                      and d.objsubid = 0)), 0)
    from pg_catalog.pg_trigger g
    join tables t on t.oid = g.tgrelid
   where not g.tgisinternal and g.tgparentid = 0
  union all
  select hash_record_extended(row('table'::text, t.name, t.relkind, t.relowner, t.relrowsecurity, t.relforcerowsecurity,
                                  t.acl,
                                  case when t.relkind in ('v', 'm') then pg_get_viewdef(t.oid) end), 0)
    from tables t
  union all
  select hash_record_extended(row(
           'column'::text, t.name, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated,
           (select sum(hash_aclitem_extended(x, 0)) from unnest(a.attacl) x)), 0)
    from tables t
    join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  union all
  select hash_record_extended(row('schema'::text, s.nspname,
                                  (select sum(hash_aclitem_extended(a, 0)) from unnest(s.nspacl) a)), 0) from spaces s
  union all
  select hash_record_extended(row('type'::text, y.typname, y.typtype, y.typowner,
                                  (select string_agg(e.enumlabel, ',' order by e.enumsortorder)
                                     from pg_catalog.pg_enum e where e.enumtypid = y.oid)), 0)
    from pg_catalog.pg_type y
   where y.typnamespace = any (array(select o.oid from ours o)) and y.typtype in ('e', 'd')
  union all
  select hash_record_extended(row('default'::text, f.defaclrole, f.defaclnamespace::regnamespace::text, f.defaclobjtype,
                                  (select sum(hash_aclitem_extended(a, 0)) from unnest(f.defaclacl) a)), 0)
    from pg_catalog.pg_default_acl f
  union all
  select hash_record_extended(row('event trigger'::text, e.evtname, e.evtenabled), 0) from pg_catalog.pg_event_trigger e
  union all
  select hash_record_extended(row('file'::text, f.path, f.hash), 0) from ops.files f
  union all
  select hash_record_extended(row('object'::text, o.path, o.kind, o.identity), 0) from ops.objects o
  union all
  select hash_record_extended(row('grant'::text, g.path, g.kind, g.identity, g.columns, g.grantee, g.privilege), 0)
    from ops.grants g
)
select count(*) || ' ' || sum(h.h) as fingerprint from hashed h
