-- Everything that a database holds besides rows, one row for each object: rank (what is made first), kind, identity,
-- the statement that makes it, and the one that takes it away. make is null for a kind that is compared and cannot be
-- made here. Two databases with the same rows have the same structure. Left out: what belongs to an extension, what
-- Postgres makes with another object, and the names of indexes and constraints that a partition inherits. Of what a
-- database may hold and this cannot make, the last rows name everything: a backup of it is refused, instead of being
-- one that cannot be restored.
with spaces as (
  select n.oid, n.nspname, n.nspowner, n.nspacl from pg_catalog.pg_namespace n
   where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
     and not exists (select from pg_catalog.pg_depend d
                      where d.classid = 'pg_namespace'::regclass and d.objid = n.oid and d.deptype = 'e')
), relations as (
  select c.*, c.oid::regclass::text as name
    from pg_catalog.pg_class c
    join spaces s on s.oid = c.relnamespace
   where not exists (select from pg_catalog.pg_depend d
                      where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
), tables as (
  select r.*, (select i.inhparent::regclass::text from pg_catalog.pg_inherits i where i.inhrelid = r.oid) as parent
    from relations r where r.relkind in ('r', 'p')
), views as (
  select r.* from relations r where r.relkind in ('v', 'm')
), columns as (
  select t.oid, t.name, string_agg(format('%I %s%s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                     case when a.attcollation <> 0 and a.attcollation <> y.typcollation then ' collate '
                          || a.attcollation::regcollation else '' end,
                     case when a.attidentity <> '' then format(' generated %s as identity (sequence name %s start '
                                                               'with %s increment by %s minvalue %s maxvalue %s cache '
                                                               '%s%s)',
                                 case a.attidentity when 'a' then 'always' else 'by default' end, q.seqrelid::regclass,
                                 q.seqstart, q.seqincrement, q.seqmin, q.seqmax,
                                 q.seqcache, case when q.seqcycle then ' cycle' else '' end)
                          when a.attgenerated = 's' then format(' generated always as (%s) stored',
                                                                pg_get_expr(d.adbin, d.adrelid))
                          when a.attgenerated = 'v' then format(' generated always as (%s)',
                                                                pg_get_expr(d.adbin, d.adrelid))
                          when d.oid is not null then ' default ' || pg_get_expr(d.adbin, d.adrelid) else '' end,
                     case when a.attnotnull then ' not null' else '' end,
                     case when a.attstorage <> y.typstorage
                          and t.parent is null then format(' /* storage %s */', a.attstorage) else '' end), ', '
                   order by a.attnum) as list
    from tables t
    join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
    join pg_catalog.pg_type y on y.oid = a.atttypid
    left join pg_catalog.pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum
    left join pg_catalog.pg_sequence q on a.attidentity <> '' and q.seqrelid = (
         select l.objid from pg_catalog.pg_depend l
          where l.classid = 'pg_class'::regclass and l.refclassid = 'pg_class'::regclass and l.refobjid = t.oid
            and l.refobjsubid = a.attnum and l.deptype = 'i'
            and exists (select from pg_catalog.pg_class s where s.oid = l.objid and s.relkind = 'S'))
   group by 1, 2
), functions as (
  select p.*, p.oid::regprocedure::text as name
    from pg_catalog.pg_proc p
    join spaces s on s.oid = p.pronamespace
   where not exists (select from pg_catalog.pg_depend d
                      where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype in ('e', 'i'))
), types as (
  select y.*, y.oid::regtype::text as name
    from pg_catalog.pg_type y
    join spaces s on s.oid = y.typnamespace
    left join pg_catalog.pg_class c on c.oid = y.typrelid
   where (y.typtype in ('e', 'd', 'r', 'b') and y.typelem = 0 or y.typtype = 'c' and c.relkind = 'c')
     and not exists (select from pg_catalog.pg_depend d
                      where d.classid = 'pg_type'::regclass and d.objid = y.oid and d.deptype = 'e')
), constraints as (
  select k.*, t.name as on_table
    from pg_catalog.pg_constraint k
    join tables t on t.oid = k.conrelid
   where k.contype in ('c', 'p', 'u', 'x', 'f') and k.conparentid = 0 and k.coninhcount = 0
), indexed as (
  select r.oid from relations r where r.relkind in ('r', 'p', 'm')
), indexes as (
  select i.*, c.relname, i.indexrelid::regclass::text as name
    from pg_catalog.pg_index i
    join indexed t on t.oid = i.indrelid
    join pg_catalog.pg_class c on c.oid = i.indexrelid
   where i.indisvalid
     and not exists (select from pg_catalog.pg_inherits h where h.inhrelid = i.indexrelid)
     and not exists (select from pg_catalog.pg_constraint k
                      where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))
), triggers as (
  select g.*, t.name as on_table, t.relkind
    from pg_catalog.pg_trigger g
    join relations t on t.oid = g.tgrelid
   where not g.tgisinternal and g.tgparentid = 0
), policies as (
  select p.*, t.name as on_table from pg_catalog.pg_policy p join tables t on t.oid = p.polrelid
), rules as (
  select w.*, t.name as on_table from pg_catalog.pg_rewrite w join relations t on t.oid = w.ev_class
   where w.rulename <> '_RETURN'
), statistics as (
  select x.*, format('%I.%I', s.nspname, x.stxname) as name
    from pg_catalog.pg_statistic_ext x
    join relations r on r.oid = x.stxrelid
    join pg_catalog.pg_namespace s on s.oid = x.stxnamespace
), granted (kind, name, acl, owner, rank) as (
  select case f.prokind when 'p' then 'procedure' else 'function' end, f.name,
         coalesce(f.proacl, acldefault('f', f.proowner)), f.proowner, 80 from functions f
  union all
  select case r.relkind when 'S' then 'sequence' else 'table' end, r.name, r.relacl, r.relowner, 80 from relations r
   where r.relacl is not null and r.relkind in ('r', 'p', 'v', 'm', 'S')
  union all
  select 'schema', format('%I', s.nspname), s.nspacl, s.nspowner, 80 from spaces s where s.nspacl is not null
  union all
  select 'type', y.name, coalesce(y.typacl, acldefault('T', y.typowner)), y.typowner, 80 from types y
), described (kind, name, class, object, part) as (
  select 'table', t.name, 'pg_class'::regclass, t.oid, 0 from tables t
  union all
  select 'column', format('%s.%I', t.name, a.attname), 'pg_class'::regclass, t.oid, a.attnum
    from (select t.oid, t.name from tables t union all select v.oid, v.name from views v) t
    join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  union all
  select case v.relkind when 'v' then 'view' else 'materialized view' end, v.name, 'pg_class'::regclass, v.oid, 0
    from views v
  union all
  select 'sequence', r.name, 'pg_class'::regclass, r.oid, 0 from relations r where r.relkind = 'S'
  union all
  select case y.typtype when 'd' then 'domain' else 'type' end, y.name, 'pg_type'::regclass, y.oid, 0 from types y
  union all
  select 'schema', format('%I', s.nspname), 'pg_namespace'::regclass, s.oid, 0 from spaces s where s.nspname <> 'public'
  union all
  select 'rule', format('%I on %s', w.rulename, w.on_table), 'pg_rewrite'::regclass, w.oid, 0 from rules w
  union all
  select 'index', i.name, 'pg_class'::regclass, i.indexrelid, 0 from indexes i
  union all
  select case f.prokind when 'p' then 'procedure' when 'a' then 'aggregate' else 'function' end, f.name,
         'pg_proc'::regclass, f.oid, 0 from functions f
  union all
  select 'constraint', format('%I on %s', k.conname, k.on_table), 'pg_constraint'::regclass, k.oid, 0 from constraints k
  union all
  select 'trigger', format('%I on %s', g.tgname, g.on_table), 'pg_trigger'::regclass, g.oid, 0 from triggers g
  union all
  select 'policy', format('%I on %s', p.polname, p.on_table), 'pg_policy'::regclass, p.oid, 0 from policies p
)
select 10 as rank, 'schema' as kind, format('%I', s.nspname) as identity, format('create schema %I', s.nspname) as make,
       null::text as unmake from spaces s
union all
select 15, 'type', y.name,
       case y.typtype
         when 'e' then format('create type %s as enum (%s)', y.name,
           (select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder) from pg_catalog.pg_enum e
             where e.enumtypid = y.oid))
         when 'c' then format('create type %s as (%s)', y.name,
           (select string_agg(format('%I %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                              case when a.attcollation <> 0 and a.attcollation <> b.typcollation then ' collate '
                                   || a.attcollation::regcollation else '' end), ', '
                              order by a.attnum)
              from pg_catalog.pg_attribute a join pg_catalog.pg_type b on b.oid = a.atttypid
             where a.attrelid = y.typrelid and a.attnum > 0 and not a.attisdropped))
         when 'd' then (
           select format('create domain %s as %s%s%s%s%s', y.name, format_type(y.typbasetype, y.typtypmod),
                         case when y.typcollation <> 0 and y.typcollation <> b.typcollation then ' collate '
                              || y.typcollation::regcollation else '' end,
                         ' default ' || y.typdefault, case when y.typnotnull then ' not null' else '' end,
                         (select string_agg(format(' constraint %I %s', k.conname, pg_get_constraintdef(k.oid)),
                                            '' order by k.conname)
                            from pg_catalog.pg_constraint k where k.contypid = y.oid and k.contype = 'c'))
             from pg_catalog.pg_type b where b.oid = y.typbasetype)
         when 'r' then (
           select format('create type %s as range (subtype = %s%s%s%s, multirange_type_name = %s)', y.name,
                         format_type(g.rngsubtype, null),
                         ', subtype_diff = ' || nullif(g.rngsubdiff, 0)::regproc,
                         ', canonical = ' || nullif(g.rngcanonical, 0)::regproc,
                         ', collation = ' || nullif(g.rngcollation, b.typcollation)::regcollation,
                         g.rngmultitypid::regtype)
             from pg_catalog.pg_range g join pg_catalog.pg_type b on b.oid = g.rngsubtype
            where g.rngtypid = y.oid) end,
       format('drop type %s', y.name)
  from types y
union all
select 20, 'function', f.name,
       case when f.prokind in ('f', 'p', 'w') then pg_get_functiondef(f.oid)
            else (select format('create or replace aggregate %I.%I(%s) (sfunc = %s, stype = %s%s%s%s%s%s%s%s, '
                                'parallel = %s)', s.nspname, f.proname, pg_get_function_arguments(f.oid),
                                a.aggtransfn, format_type(a.aggtranstype, null),
                                ', sspace = ' || nullif(a.aggtransspace, 0),
                                ', finalfunc = ' || nullif(a.aggfinalfn, 0)::regproc || case
                                        when a.aggfinalextra then ', finalfunc_extra' else '' end
                                  || ', finalfunc_modify = ' || case a.aggfinalmodify when 'r' then 'read_only'
                                                                     when 's' then 'shareable' else 'read_write' end,
                                ', combinefunc = ' || nullif(a.aggcombinefn, 0)::regproc,
                                ', serialfunc = ' || nullif(a.aggserialfn, 0)::regproc,
                                ', deserialfunc = ' || nullif(a.aggdeserialfn, 0)::regproc,
                                ', initcond = ' || quote_literal(a.agginitval),
                                ', sortop = operator(' || (select format('%I.%s', n.nspname, o.oprname)
                                                             from pg_catalog.pg_operator o
                                                               join pg_catalog.pg_namespace n on n.oid = o.oprnamespace
                                                            where o.oid = a.aggsortop) || ')',
                                case f.proparallel when 's' then 'safe' when 'r' then 'restricted' else 'unsafe' end)
                    from pg_catalog.pg_aggregate a
                    join spaces s on s.oid = f.pronamespace
                   where a.aggfnoid = f.oid and a.aggkind = 'n' and a.aggmtransfn = 0) end,
       format('drop routine %s', f.name)
  from functions f
union all
select 25, 'sequence', r.name,
       format('create sequence %s as %s increment %s minvalue %s maxvalue %s start %s cache %s%s', r.name,
              q.seqtypid::regtype, q.seqincrement, q.seqmin, q.seqmax,
              q.seqstart, q.seqcache, case when q.seqcycle then ' cycle' else '' end), null
  from relations r
  join pg_catalog.pg_sequence q on q.seqrelid = r.oid
 where not exists (select from pg_catalog.pg_depend d
                    where d.classid = 'pg_class'::regclass and d.objid = r.oid and d.deptype = 'i')
union all
select case when t.parent is null then 30 else 35 end, 'table', t.name,
       case when t.relispartition and t.relkind = 'r'
            then format('create table %s partition of %s %s', t.name, t.parent, pg_get_expr(t.relpartbound, t.oid))
            when t.parent is null
            then format('create %stable %s (%s)%s%s', case t.relpersistence when 'u' then 'unlogged ' else '' end,
                        t.name, coalesce(k.list, ''),
                        case when t.relkind = 'p' then ' partition by ' || pg_get_partkeydef(t.oid) else '' end,
                        coalesce(' with (' || array_to_string(t.reloptions, ', ') || ')', '')) end,
       format('drop table %s', t.name)
  from tables t left join columns k on k.oid = t.oid
union all
select 37, case v.relkind when 'v' then 'view' else 'materialized view' end, v.name,
       format('create %s %s%s as %s', case v.relkind when 'v' then 'or replace view' else 'materialized view' end,
              v.name,
              ' with (' || array_to_string(v.reloptions, ', ') || ')', rtrim(pg_get_viewdef(v.oid), ';'))
       || case v.relkind when 'm' then ' with no data' else '' end
       || coalesce((select string_agg(format('; alter view %s alter column %I set default %s', v.name, a.attname,
                                             pg_get_expr(d.adbin, d.adrelid)), '' order by a.attnum)
                      from pg_catalog.pg_attrdef d join pg_catalog.pg_attribute a on a.attrelid = d.adrelid
                        and a.attnum = d.adnum where d.adrelid = v.oid), ''),
       format('drop %s %s', case v.relkind when 'v' then 'view' else 'materialized view' end, v.name)
  from views v
union all
select 38, 'owner of sequence', r.name, format('alter sequence %s owned by %s.%I', r.name, d.refobjid::regclass,
                                               a.attname), format('alter sequence %s owned by none', r.name)
  from relations r
  join pg_catalog.pg_depend d on d.classid = 'pg_class'::regclass and d.objid = r.oid
    and d.refclassid = 'pg_class'::regclass and d.deptype = 'a'
  join pg_catalog.pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
 where r.relkind = 'S'
union all
select case when k.contype = 'f' or not k.convalidated then 50 else 40 end, 'constraint',
       format('%I on %s', k.conname, k.on_table),
       format('alter table %s add constraint %I %s', k.on_table, k.conname, pg_get_constraintdef(k.oid)),
       format('alter table %s drop constraint %I', k.on_table, k.conname)
  from constraints k
union all
select 45, 'index', i.name, pg_get_indexdef(i.indexrelid), format('drop index %s', i.name) from indexes i
union all
select 45, 'statistics', x.name, pg_get_statisticsobjdef(x.oid), format('drop statistics %s', x.name) from statistics x
union all
select 60, 'trigger', format('%I on %s', g.tgname, g.on_table),
       pg_get_triggerdef(g.oid) || case g.tgenabled when 'O' then ''
                                        else format('; alter table %s %s trigger %I', g.on_table,
         case g.tgenabled when 'D' then 'disable' when 'R' then 'enable replica' else 'enable always' end,
         g.tgname) end,
       format('drop trigger %I on %s', g.tgname, g.on_table)
  from triggers g
union all
select 62, 'rule', format('%I on %s', w.rulename, w.on_table), pg_get_ruledef(w.oid),
       format('drop rule %I on %s', w.rulename, w.on_table) from rules w
union all
select 65, 'policy', format('%I on %s', p.polname, p.on_table),
       format('create policy %I on %s as %s for %s to %s', p.polname, p.on_table,
              case when p.polpermissive then 'permissive' else 'restrictive' end,
              case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
                   else 'all' end,
              coalesce((select string_agg(format('%I', r.rolname), ', ' order by r.rolname) from pg_catalog.pg_roles r
                         where r.oid = any (p.polroles)), 'public'))
       || coalesce(' using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
                   '') || coalesce(' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', ''),
       format('drop policy %I on %s', p.polname, p.on_table)
  from policies p
union all
select 70, 'row security', t.name, format('alter table %s enable row level security', t.name),
       format('alter table %s disable row level security', t.name)
  from tables t where t.relrowsecurity
union all
select 71, 'forced row security', t.name, format('alter table %s force row level security', t.name),
       format('alter table %s no force row level security', t.name)
  from tables t where t.relforcerowsecurity
union all
select 72, 'owner', f.name, format('alter %s %s owner to %I',
                                   case f.prokind when 'p' then 'procedure' when 'a' then 'aggregate'
                                        else 'function' end, f.name,
                                   pg_get_userbyid(f.proowner)), null
  from functions f
union all
select 72, 'owner', r.name, format('alter %s %s owner to %I',
                                   case r.relkind when 'S' then 'sequence' when 'v' then 'view'
                                        when 'm' then 'materialized view' else 'table' end,
                                   r.name, pg_get_userbyid(r.relowner)), null
  from relations r
 where r.relkind in ('r', 'p', 'v', 'm') or (r.relkind = 'S' and not exists (
         select from pg_catalog.pg_depend d where d.classid = 'pg_class'::regclass and d.objid = r.oid
            and d.deptype in ('i', 'a')))
union all
select 72, 'owner', 'type ' || y.name, format('alter type %s owner to %I', y.name, pg_get_userbyid(y.typowner)), null
  from types y
union all
select 72, 'owner', format('schema %I', s.nspname),
       format('alter schema %I owner to %I', s.nspname, pg_get_userbyid(s.nspowner)), null from spaces s
         where s.nspname <> 'public'
union all
select a.rank, 'privilege', concat_ws(' ', x.privilege_type, 'on', a.kind, a.name, 'to', coalesce(r.rolname, 'public'),
                                      case when x.is_grantable then 'grantable' end),
       format('grant %s on %s %s to %s%s', x.privilege_type, a.kind, a.name, coalesce(quote_ident(r.rolname), 'public'),
              case when x.is_grantable then ' with grant option' else '' end),
       format('revoke %s on %s %s from %s', x.privilege_type, a.kind, a.name,
              coalesce(quote_ident(r.rolname), 'public'))
  from granted a
 cross join lateral aclexplode(a.acl) x
  left join pg_catalog.pg_roles r on r.oid = x.grantee
 where x.grantee <> a.owner
union all
select 81, 'privilege', concat_ws(' ', x.privilege_type, 'on', t.name, a.attname, 'to', coalesce(r.rolname, 'public')),
       format('grant %s (%I) on %s to %s', x.privilege_type, a.attname, t.name,
              coalesce(quote_ident(r.rolname), 'public')),
       format('revoke %s (%I) on %s from %s', x.privilege_type, a.attname, t.name,
              coalesce(quote_ident(r.rolname), 'public'))
  from (select t.oid, t.name, t.relowner from tables t union all select v.oid, v.name, v.relowner from views v) t
  join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and a.attacl is not null
 cross join lateral aclexplode(a.attacl) x
  left join pg_catalog.pg_roles r on r.oid = x.grantee
 where x.grantee <> t.relowner
union all
select 90, 'comment', n.kind || ' ' || n.name, format('comment on %s %s is %L', n.kind, n.name, d.description),
       format('comment on %s %s is null', n.kind, n.name)
  from described n
  join pg_catalog.pg_description d on (d.classoid, d.objoid, d.objsubid) = (n.class, n.object, n.part)
union all
select 92, 'default privilege', concat_ws(' ', pg_get_userbyid(f.defaclrole), k.word, n.nspname),
       -- one of a schema adds to what everybody is given, one of all schemas replaces it
       case when n.oid is null
              then format('alter default privileges for role %1$I revoke all on %2$s from public, %1$I; ',
                          pg_get_userbyid(f.defaclrole), k.word) else '' end
       || (select string_agg(format('alter default privileges for role %I%s grant %s on %s to %s%s',
                                    pg_get_userbyid(f.defaclrole), ' in schema ' || quote_ident(n.nspname),
                                    e.privilege_type, k.word, coalesce(quote_ident(r.rolname), 'public'),
                                    case when e.is_grantable then ' with grant option' else '' end), '; '
                             order by r.rolname, e.privilege_type)
             from aclexplode(f.defaclacl) e left join pg_catalog.pg_roles r on r.oid = e.grantee), null
  from pg_catalog.pg_default_acl f
  left join pg_catalog.pg_namespace n on n.oid = f.defaclnamespace
 cross join lateral (
   select case f.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions'
               when 'T' then 'types' when 'n' then 'schemas' when 'L' then 'large objects' end as word) k
union all
-- a view of rows, which are there again when it was read once more
select 98, 'rows of', v.name, format('refresh materialized view %s', v.name), null from views v
 where v.relkind = 'm' and v.relispopulated
union all
select 5, 'extension', e.extname, format('create extension if not exists %I with schema %I', e.extname, s.nspname), null
  from pg_catalog.pg_extension e join pg_catalog.pg_namespace s on s.oid = e.extnamespace
union all
select 99, 'event trigger', v.evtname, null, null from pg_catalog.pg_event_trigger v
union all
select 99, 'foreign table', r.name, null, null from relations r where r.relkind = 'f'
union all
select 99, 'object', pg_describe_object(o.class, o.oid, 0), null, null
  from (select 'pg_operator'::regclass as class, x.oid from pg_catalog.pg_operator x
        union all select 'pg_opclass'::regclass, x.oid from pg_catalog.pg_opclass x
        union all select 'pg_opfamily'::regclass, x.oid from pg_catalog.pg_opfamily x
        union all select 'pg_cast'::regclass, x.oid from pg_catalog.pg_cast x
        union all select 'pg_collation'::regclass, x.oid from pg_catalog.pg_collation x
        union all select 'pg_conversion'::regclass, x.oid from pg_catalog.pg_conversion x
        union all select 'pg_transform'::regclass, x.oid from pg_catalog.pg_transform x
        union all select 'pg_language'::regclass, x.oid from pg_catalog.pg_language x
        union all select 'pg_am'::regclass, x.oid from pg_catalog.pg_am x
        union all select 'pg_ts_config'::regclass, x.oid from pg_catalog.pg_ts_config x
        union all select 'pg_ts_dict'::regclass, x.oid from pg_catalog.pg_ts_dict x
        union all select 'pg_ts_parser'::regclass, x.oid from pg_catalog.pg_ts_parser x
        union all select 'pg_ts_template'::regclass, x.oid from pg_catalog.pg_ts_template x
        union all select 'pg_foreign_server'::regclass, x.oid from pg_catalog.pg_foreign_server x
        union all select 'pg_foreign_data_wrapper'::regclass, x.oid
          from pg_catalog.pg_foreign_data_wrapper x) o (class, oid)
 -- what initdb made has smaller ones
 where o.oid >= 16384
   and not exists (select from pg_catalog.pg_depend d
                    where d.classid = o.class and d.objid = o.oid and d.deptype in ('e', 'i'))
