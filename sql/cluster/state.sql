-- What the loader manages in a database, one row for each object: kind, identity, definition, and of a function its
-- shape, which create or replace cannot change; of a policy, what alter policy cannot. Two databases with the same rows
-- behave the same, and one program changes both in the same way. The definition of a policy and of a trigger is the SQL
-- that makes it. Left out: partitions and schema collections, whose number is a matter of data. Run with an empty
-- search_path, so that every name is qualified.
with tables as (
  select c.oid, c.oid::regclass::text as name, c.relkind, c.relowner, c.relacl, c.relrowsecurity, c.relforcerowsecurity,
         c.relnamespace
    from pg_catalog.pg_class c
   where c.relnamespace in (select n.oid from pg_catalog.pg_namespace n
                             where n.nspname in ('app', 'internal', 'api', 'ops'))
     and c.relkind in ('r', 'p', 'v', 'm', 'S')
     and not c.relispartition
), functions as (
  select p.*, p.oid::regprocedure::text as name
    from pg_catalog.pg_proc p
   where p.pronamespace in (select n.oid from pg_catalog.pg_namespace n
                             where n.nspname in ('app', 'internal', 'api', 'ops'))
), acls (kind, name, acl, owner) as (
  select 'function', f.name, coalesce(f.proacl, acldefault('f', f.proowner)), f.proowner from functions f
  union all
  select case t.relkind when 'S' then 'sequence' else 'table' end, t.name, t.relacl, t.relowner from tables t
   where t.relacl is not null
  union all
  select 'column', format('%I %s', a.attname, t.name), a.attacl, 0
    from tables t join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
      and a.attacl is not null
  union all
  select 'schema', format('%I', n.nspname), n.nspacl, n.nspowner from pg_catalog.pg_namespace n
   where n.nspname in ('app', 'internal', 'api', 'ops', 'collections', 'extensions') and n.nspacl is not null
)
select 'function' as kind, f.name as identity,
       md5(concat_ws(e'\x01', f.prosrc, f.proargnames, f.proargmodes, pg_get_function_arguments(f.oid),
                     f.prorettype::regtype, f.proretset, f.provolatile,
                 f.proparallel, f.prosecdef, f.proleakproof, f.proisstrict, f.procost, f.prorows, f.proconfig,
                 f.prokind, f.prolang, f.proowner::regrole,
                 case when f.prosqlbody is not null then pg_get_function_sqlbody(f.oid) end))
       || ' ' || md5(coalesce(d.description, '')) as definition,
       concat_ws(e'\x01', f.proargnames, f.proargmodes, f.pronargdefaults, f.prorettype::regtype, f.proretset,
                 f.prokind,
                 case when f.proallargtypes is not null then f.proallargtypes::regtype[] end) as shape
  from functions f
  left join pg_catalog.pg_description d on d.objoid = f.oid and d.classoid = 'pg_catalog.pg_proc'::regclass
    and d.objsubid = 0
union all
select 'policy', format('%I on %s', p.polname, t.name),
       format('create policy %I on %s as %s for %s to %s', p.polname, t.name,
              case when p.polpermissive then 'permissive' else 'restrictive' end,
              case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
                   else 'all' end,
              coalesce((select string_agg(format('%I', r.rolname), ', ' order by r.rolname) from pg_catalog.pg_roles r
                         where r.oid = any (p.polroles)), 'public'))
       || coalesce(' using (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
       || coalesce(' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '')
       || coalesce(format('; comment on policy %I on %s is %L', p.polname, t.name, d.description), ''),
       concat_ws(' ', p.polpermissive, p.polcmd, p.polqual is null, p.polwithcheck is null)
  from pg_catalog.pg_policy p
  join tables t on t.oid = p.polrelid
  left join pg_catalog.pg_description d on d.objoid = p.oid and d.classoid = 'pg_catalog.pg_policy'::regclass
    and d.objsubid = 0
union all
select 'trigger', format('%I on %s', g.tgname, t.name),
       pg_get_triggerdef(g.oid)
       || case when g.tgenabled <> 'O' then format('; alter table %s %s trigger %I', t.name,
                                                   case g.tgenabled when 'D' then 'disable'
                                                    when 'R' then 'enable replica' else 'enable always' end,
                                                      g.tgname) else '' end
       || coalesce(format('; comment on trigger %I on %s is %L', g.tgname, t.name, d.description), ''), null
  from pg_catalog.pg_trigger g
  join tables t on t.oid = g.tgrelid
  left join pg_catalog.pg_description d on d.objoid = g.oid and d.classoid = 'pg_catalog.pg_trigger'::regclass
    and d.objsubid = 0
 where not g.tgisinternal and g.tgparentid = 0
union all
select 'row security', t.name, format('%s %s', case when t.relrowsecurity then 'enable' else 'disable' end,
                                      case when t.relforcerowsecurity then 'force' else 'no force' end), null
  from tables t where t.relkind in ('r', 'p')
union all
select 'privileges', a.kind || ' ' || a.name,
       json_agg(json_build_array(x.privilege_type, coalesce(format('%I', r.rolname), 'public'), x.is_grantable)
                order by x.privilege_type, r.rolname, x.is_grantable)::text, null
  from acls a
 cross join lateral aclexplode(a.acl) x
  left join pg_catalog.pg_roles r on r.oid = x.grantee
 where x.grantee <> a.owner
 group by a.kind, a.name
union all
-- what follows changes with a migration or by hand, and with no file of functions or policies
select 'table', t.name,
       concat_ws(' ', t.relkind, t.relowner::regrole,
                 (select string_agg(format('%I %s%s%s', a.attname, a.atttypid::regtype,
                                           case when a.attnotnull then ' not null' else '' end, a.attgenerated), ', '
                                    order by a.attname) from pg_catalog.pg_attribute a
                                      where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped),
                 case when t.relkind in ('v', 'm') then pg_get_viewdef(t.oid) end), null
  from tables t
union all
select 'type', y.oid::regtype::text, concat_ws(' ', y.typtype, y.typowner::regrole,
                                               (select string_agg(e.enumlabel, ',' order by e.enumsortorder)
                                                  from pg_catalog.pg_enum e where e.enumtypid = y.oid)), null
  from pg_catalog.pg_type y
 where y.typnamespace in (select n.oid from pg_catalog.pg_namespace n
                           where n.nspname in ('app', 'internal', 'api', 'ops'))
   and y.typtype in ('e', 'd')
union all
select 'file', f.path, f.hash, null from ops.files f
union all
select 'objects', o.path, json_agg(json_build_array(o.kind, o.identity) order by o.kind, o.identity)::text, null
  from ops.objects o group by o.path
union all
select 'grants', g.path,
       json_agg(json_build_array(g.kind, g.identity, g.columns, g.grantee, g.privilege) order by g.kind, g.identity,
                g.columns, g.grantee, g.privilege)::text, null
  from ops.grants g group by g.path
