-- A cheap stand-in for fingerprint.sql: the rows of the catalog and of the loader's records that a fingerprint is made of, each by its number and the
-- transaction that wrote it. While the same transactions wrote the same rows, the fingerprint is the same; nothing is written out, looked up or
-- hashed as text. Rows of pg_class are compared by content, as Postgres also writes them for indexes and partitions. What a project adds at run time
-- (partitions, tables of collections) is left out, as in the fingerprint.
with spaces as (
  select n.oid, n.nspname, n.xmin as writer from pg_catalog.pg_namespace n where n.nspname in ('app', 'internal', 'api', 'ops', 'collections', 'extensions')
), ours as (
  select s.oid from spaces s where s.nspname in ('app', 'internal', 'api', 'ops')
), tables as materialized (
  select c.oid, c.relname, c.relnamespace, c.relkind, c.relowner, c.relrowsecurity, c.relforcerowsecurity,
         (select sum(hash_aclitem_extended(a, 0)) from unnest(c.relacl) a) as acl
    from pg_catalog.pg_class c
   where c.relnamespace = any (array(select o.oid from ours o)) and c.relkind in ('r', 'p', 'v', 'm', 'S') and not c.relispartition
), objects (part, class, id, writer) as materialized (
  select 'function', 'pg_catalog.pg_proc'::regclass, p.oid, p.xmin from pg_catalog.pg_proc p where p.pronamespace = any (array(select o.oid from ours o))
  union all
  select 'policy', 'pg_catalog.pg_policy'::regclass, p.oid, p.xmin from pg_catalog.pg_policy p join tables t on t.oid = p.polrelid
  union all
  select 'trigger', 'pg_catalog.pg_trigger'::regclass, g.oid, g.xmin
    from pg_catalog.pg_trigger g join tables t on t.oid = g.tgrelid where not g.tgisinternal and g.tgparentid = 0
), written (part, id, writer) as materialized (
  select o.part, o.id::bigint, o.writer from objects o
  union all
  select 'comment', d.objoid::bigint, d.xmin
    from pg_catalog.pg_description d join objects o on o.class = d.classoid and o.id = d.objoid
   where d.objsubid = 0
  union all
  select 'column', t.oid::bigint * 2048 + a.attnum, a.xmin
    from tables t join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  union all
  select 'view', r.oid::bigint, r.xmin from pg_catalog.pg_rewrite r join tables t on t.oid = r.ev_class and t.relkind in ('v', 'm')
  union all
  select 'schema', s.oid::bigint, s.writer from spaces s
  union all
  select 'type', y.oid::bigint, y.xmin from pg_catalog.pg_type y
   where y.typnamespace = any (array(select o.oid from ours o)) and y.typtype in ('e', 'd')
  union all
  select 'label', e.oid::bigint, e.xmin from pg_catalog.pg_enum e
    join pg_catalog.pg_type y on y.oid = e.enumtypid and y.typnamespace = any (array(select o.oid from ours o))
  union all
  select 'default', f.oid::bigint, f.xmin from pg_catalog.pg_default_acl f
  union all
  select 'event trigger', e.oid::bigint, e.xmin from pg_catalog.pg_event_trigger e
  union all
  select 'file', 0, f.xmin from ops.files f
  union all
  select 'object', 0, o.xmin from ops.objects o
  union all
  select 'grant', 0, g.xmin from ops.grants g
  union all
  -- the registries and the migrations that there are: see witnessOf
  select r.part, 0, r.writer from (/* rows */) r (part, writer)
), counted as (
  select w.part, count(*) as rows, sum(hashint8extended((w.id << 32) | w.writer::text::bigint, 0)) as sum
    from written w
   group by w.part
)
select md5((select string_agg(concat_ws(' ', c.part, c.rows, c.sum), ',' order by c.part) from counted c) ||
           (select sum(hash_record_extended(row(t.oid, t.relname::text, t.relnamespace, t.relkind, t.relowner, t.relrowsecurity, t.relforcerowsecurity, t.acl), 0))
              from tables t)::text)::uuid::text as witness,
       (select string_agg(c.part || ' ' || c.rows, ',' order by c.part) from counted c) || ',table ' || (select count(*) from tables) as counts,
       array(select distinct w.writer::text from written w) as writers
