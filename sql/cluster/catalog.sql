-- Everything that a database holds besides rows, one row for each object: rank (what is made first), kind, identity, the statement that makes it, and the
-- one that takes it away. make is null for a kind that is compared and cannot be made here. Two databases with the same rows have the same structure.
-- Left out: what belongs to an extension, what Postgres makes with another object, and the names of indexes and constraints that a partition inherits.
with spaces as (
  select n.oid, n.nspname, n.nspowner, n.nspacl from pg_catalog.pg_namespace n
   where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
     and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_namespace'::regclass and d.objid = n.oid and d.deptype = 'e')
), relations as (
  select c.*, c.oid::regclass::text as name
    from pg_catalog.pg_class c
    join spaces s on s.oid = c.relnamespace
   where not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
), tables as (
  select r.*, (select i.inhparent::regclass::text from pg_catalog.pg_inherits i where i.inhrelid = r.oid) as parent
    from relations r where r.relkind in ('r', 'p')
), columns as (
  select t.oid, t.name, string_agg(format('%I %s%s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                     case when a.attcollation <> 0 and a.attcollation <> y.typcollation then ' collate ' || a.attcollation::regcollation else '' end,
                     case when a.attidentity <> '' then format(' generated %s as identity', case a.attidentity when 'a' then 'always' else 'by default' end)
                          when a.attgenerated = 's' then format(' generated always as (%s) stored', pg_get_expr(d.adbin, d.adrelid))
                          when a.attgenerated = 'v' then format(' generated always as (%s)', pg_get_expr(d.adbin, d.adrelid))
                          when d.oid is not null then ' default ' || pg_get_expr(d.adbin, d.adrelid) else '' end,
                     case when a.attnotnull then ' not null' else '' end,
                     case when a.attstorage <> y.typstorage and t.parent is null then format(' /* storage %s */', a.attstorage) else '' end), ', '
                   order by a.attnum) as list
    from tables t
    join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
    join pg_catalog.pg_type y on y.oid = a.atttypid
    left join pg_catalog.pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum
   group by 1, 2
), functions as (
  select p.*, p.oid::regprocedure::text as name
    from pg_catalog.pg_proc p
    join spaces s on s.oid = p.pronamespace
   where not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
), types as (
  select y.*, y.oid::regtype::text as name
    from pg_catalog.pg_type y
    join spaces s on s.oid = y.typnamespace
    left join pg_catalog.pg_class c on c.oid = y.typrelid
   where y.typtype in ('e', 'd', 'r') or (y.typtype = 'c' and c.relkind = 'c')
), constraints as (
  select k.*, t.name as on_table
    from pg_catalog.pg_constraint k
    join tables t on t.oid = k.conrelid
   where k.contype in ('c', 'p', 'u', 'x', 'f') and k.conparentid = 0 and k.coninhcount = 0
), indexes as (
  select i.*, c.relname, i.indexrelid::regclass::text as name
    from pg_catalog.pg_index i
    join tables t on t.oid = i.indrelid
    join pg_catalog.pg_class c on c.oid = i.indexrelid
   where i.indisvalid
     and not exists (select from pg_catalog.pg_inherits h where h.inhrelid = i.indexrelid)
     and not exists (select from pg_catalog.pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))
), triggers as (
  select g.*, t.name as on_table
    from pg_catalog.pg_trigger g
    join tables t on t.oid = g.tgrelid
   where not g.tgisinternal and g.tgparentid = 0
), policies as (
  select p.*, t.name as on_table from pg_catalog.pg_policy p join tables t on t.oid = p.polrelid
), granted (kind, name, acl, owner, rank) as (
  select 'function', f.name, coalesce(f.proacl, acldefault('f', f.proowner)), f.proowner, 80 from functions f
  union all
  select case r.relkind when 'S' then 'sequence' else 'table' end, r.name, r.relacl, r.relowner, 80 from relations r
   where r.relacl is not null and r.relkind in ('r', 'p', 'v', 'm', 'S')
  union all
  select 'schema', format('%I', s.nspname), s.nspacl, s.nspowner, 80 from spaces s where s.nspacl is not null
), described (kind, name, class, object, part) as (
  select 'table', t.name, 'pg_class'::regclass, t.oid, 0 from tables t
  union all
  select 'column', format('%s.%I', t.name, a.attname), 'pg_class'::regclass, t.oid, a.attnum
    from tables t join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  union all
  select 'index', i.name, 'pg_class'::regclass, i.indexrelid, 0 from indexes i
  union all
  select 'function', f.name, 'pg_proc'::regclass, f.oid, 0 from functions f where f.prokind = 'f'
  union all
  select 'constraint', format('%I on %s', k.conname, k.on_table), 'pg_constraint'::regclass, k.oid, 0 from constraints k
  union all
  select 'trigger', format('%I on %s', g.tgname, g.on_table), 'pg_trigger'::regclass, g.oid, 0 from triggers g
  union all
  select 'policy', format('%I on %s', p.polname, p.on_table), 'pg_policy'::regclass, p.oid, 0 from policies p
)
select 10 as rank, 'schema' as kind, format('%I', s.nspname) as identity, format('create schema %I', s.nspname) as make, null::text as unmake from spaces s
union all
select 15, 'type', y.name,
       case when y.typtype = 'e' then format('create type %s as enum (%s)', y.name,
         (select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder) from pg_catalog.pg_enum e where e.enumtypid = y.oid)) end, null
  from types y
union all
select 20, 'function', f.name, case when f.prokind in ('f', 'p') then pg_get_functiondef(f.oid) end, format('drop function %s', f.name) from functions f
union all
select 25, 'sequence', r.name,
       format('create sequence %s as %s increment %s minvalue %s maxvalue %s start %s cache %s%s', r.name, q.seqtypid::regtype, q.seqincrement, q.seqmin, q.seqmax,
              q.seqstart, q.seqcache, case when q.seqcycle then ' cycle' else '' end), null
  from relations r
  join pg_catalog.pg_sequence q on q.seqrelid = r.oid
 where not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_class'::regclass and d.objid = r.oid and d.deptype = 'i')
union all
select case when t.parent is null then 30 else 35 end, 'table', t.name,
       case when t.relispartition and t.relkind = 'r'
            then format('create table %s partition of %s %s', t.name, t.parent, pg_get_expr(t.relpartbound, t.oid))
            when t.parent is null
            then format('create %stable %s (%s)%s%s', case t.relpersistence when 'u' then 'unlogged ' else '' end, t.name, coalesce(k.list, ''),
                        case when t.relkind = 'p' then ' partition by ' || pg_get_partkeydef(t.oid) else '' end,
                        coalesce(' with (' || array_to_string(t.reloptions, ', ') || ')', '')) end,
       format('drop table %s', t.name)
  from tables t left join columns k on k.oid = t.oid
union all
select case k.contype when 'f' then 50 else 40 end, 'constraint', format('%I on %s', k.conname, k.on_table),
       format('alter table %s add constraint %I %s', k.on_table, k.conname, pg_get_constraintdef(k.oid)),
       format('alter table %s drop constraint %I', k.on_table, k.conname)
  from constraints k
union all
select 45, 'index', i.name, pg_get_indexdef(i.indexrelid), format('drop index %s', i.name) from indexes i
union all
select 60, 'trigger', format('%I on %s', g.tgname, g.on_table),
       pg_get_triggerdef(g.oid) || case g.tgenabled when 'O' then '' else format('; alter table %s %s trigger %I', g.on_table,
         case g.tgenabled when 'D' then 'disable' when 'R' then 'enable replica' else 'enable always' end, g.tgname) end,
       format('drop trigger %I on %s', g.tgname, g.on_table)
  from triggers g
union all
select 65, 'policy', format('%I on %s', p.polname, p.on_table),
       format('create policy %I on %s as %s for %s to %s', p.polname, p.on_table, case when p.polpermissive then 'permissive' else 'restrictive' end,
              case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
              coalesce((select string_agg(format('%I', r.rolname), ', ' order by r.rolname) from pg_catalog.pg_roles r where r.oid = any (p.polroles)), 'public'))
       || coalesce(' using (' || pg_get_expr(p.polqual, p.polrelid) || ')', '') || coalesce(' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', ''),
       format('drop policy %I on %s', p.polname, p.on_table)
  from policies p
union all
select 70, 'row security', t.name, format('alter table %s enable row level security', t.name), format('alter table %s disable row level security', t.name)
  from tables t where t.relrowsecurity
union all
select 71, 'forced row security', t.name, format('alter table %s force row level security', t.name), format('alter table %s no force row level security', t.name)
  from tables t where t.relforcerowsecurity
union all
select 72, 'owner', f.name, format('alter %s %s owner to %I', case f.prokind when 'p' then 'procedure' when 'a' then 'aggregate' else 'function' end, f.name,
                                   pg_get_userbyid(f.proowner)), null
  from functions f
union all
select 72, 'owner', r.name, format('alter %s %s owner to %I', case r.relkind when 'S' then 'sequence' else 'table' end, r.name, pg_get_userbyid(r.relowner)), null
  from relations r
 where r.relkind in ('r', 'p') or (r.relkind = 'S' and not exists (
         select from pg_catalog.pg_depend d where d.classid = 'pg_class'::regclass and d.objid = r.oid and d.deptype in ('i', 'a')))
union all
select a.rank, 'privilege', concat_ws(' ', x.privilege_type, 'on', a.kind, a.name, 'to', coalesce(r.rolname, 'public'), case when x.is_grantable then 'grantable' end),
       format('grant %s on %s %s to %s%s', x.privilege_type, a.kind, a.name, coalesce(quote_ident(r.rolname), 'public'),
              case when x.is_grantable then ' with grant option' else '' end),
       format('revoke %s on %s %s from %s', x.privilege_type, a.kind, a.name, coalesce(quote_ident(r.rolname), 'public'))
  from granted a
 cross join lateral aclexplode(a.acl) x
  left join pg_catalog.pg_roles r on r.oid = x.grantee
 where x.grantee <> a.owner
union all
select 81, 'privilege', concat_ws(' ', x.privilege_type, 'on', t.name, a.attname, 'to', coalesce(r.rolname, 'public')),
       format('grant %s (%I) on %s to %s', x.privilege_type, a.attname, t.name, coalesce(quote_ident(r.rolname), 'public')),
       format('revoke %s (%I) on %s from %s', x.privilege_type, a.attname, t.name, coalesce(quote_ident(r.rolname), 'public'))
  from tables t
  join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and a.attacl is not null
 cross join lateral aclexplode(a.attacl) x
  left join pg_catalog.pg_roles r on r.oid = x.grantee
 where x.grantee <> t.relowner
union all
select 90, 'comment', n.kind || ' ' || n.name, format('comment on %s %s is %L', n.kind, n.name, d.description), format('comment on %s %s is null', n.kind, n.name)
  from described n
  join pg_catalog.pg_description d on (d.classoid, d.objoid, d.objsubid) = (n.class, n.object, n.part)
union all
select 95, case r.relkind when 'v' then 'view' when 'm' then 'materialized view' else 'foreign table' end, r.name, null, null
  from relations r where r.relkind in ('v', 'm', 'f')
union all
select 95, 'extension', e.extname, null, null from pg_catalog.pg_extension e
union all
select 95, 'event trigger', v.evtname, null, null from pg_catalog.pg_event_trigger v
