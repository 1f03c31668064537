-- A cheap stand-in for fingerprint.sql: of the rows of the catalog and of the loader's records that a fingerprint is
-- made of, how many each transaction wrote. A row that is changed has another writer, and one that is dropped is
-- missing among the rows of its writer, so while the numbers are the same the rows are, and so is the fingerprint;
-- nothing is written out, looked up or hashed as text. Rows of pg_class are compared by content, as Postgres also
-- writes them for indexes and partitions. What a project adds at run time (partitions, tables of collections) is left
-- out, as in the fingerprint. Rows are grouped where they are read, since a group by the number of a transaction costs
-- less than anything that is done with each row.
with spaces as (
  select n.oid, n.nspname, n.xmin as writer from pg_catalog.pg_namespace n
   where n.nspname in ('app', 'internal', 'api', 'ops', 'collections', 'extensions')
), ours as (
  select s.oid from spaces s where s.nspname in ('app', 'internal', 'api', 'ops')
), tables as materialized (
  select c.oid, c.relname, c.relnamespace, c.relkind, c.relowner, c.relrowsecurity, c.relforcerowsecurity,
         (select sum(hash_aclitem_extended(a, 0)) from unnest(c.relacl) a) as acl
    from pg_catalog.pg_class c
   where c.relnamespace = any (array(select o.oid from ours o)) and c.relkind in ('r', 'p', 'v', 'm', 'S')
     and not c.relispartition
), objects (part, class, id, writer) as materialized (
  select 'function', 'pg_catalog.pg_proc'::regclass::oid, p.oid, p.xmin from pg_catalog.pg_proc p
   where p.pronamespace = any (array(select o.oid from ours o))
  union all
  select 'policy', 'pg_catalog.pg_policy'::regclass, p.oid, p.xmin from pg_catalog.pg_policy p
   where p.polrelid in (select t.oid from tables t)
  union all
  select 'trigger', 'pg_catalog.pg_trigger'::regclass, g.oid, g.xmin
    from pg_catalog.pg_trigger g where g.tgrelid in (select t.oid from tables t) and not g.tgisinternal
      and g.tgparentid = 0
), written (part, writer, rows) as materialized (
  select o.part, o.writer, count(*) from objects o group by o.part, o.writer
  union all
  select 'comment', d.xmin, count(*)
    from pg_catalog.pg_description d
   where d.objsubid = 0 and d.objoid >= 16384 and (d.classoid, d.objoid) in (select o.class, o.id from objects o)
   group by d.xmin
  union all
  select 'column', a.xmin, count(*)
    from pg_catalog.pg_attribute a where a.attrelid in (select t.oid from tables t) and a.attnum > 0
      and not a.attisdropped
   group by a.xmin
  union all
  select 'view', r.xmin, count(*) from pg_catalog.pg_rewrite r
   where r.ev_class in (select t.oid from tables t where t.relkind in ('v', 'm')) group by r.xmin
  union all
  select 'schema', s.writer, count(*) from spaces s group by s.writer
  union all
  select 'type', y.xmin, count(*) from pg_catalog.pg_type y
   where y.typnamespace = any (array(select o.oid from ours o)) and y.typtype in ('e', 'd') group by y.xmin
  union all
  select 'label', e.xmin, count(*) from pg_catalog.pg_enum e
    join pg_catalog.pg_type y on y.oid = e.enumtypid and y.typnamespace = any (array(select o.oid from ours o))
      group by e.xmin
  union all
  select 'default', f.xmin, count(*) from pg_catalog.pg_default_acl f group by f.xmin
  union all
  select 'event trigger', e.xmin, count(*) from pg_catalog.pg_event_trigger e group by e.xmin
  union all
  select 'file', f.xmin, count(*) from ops.files f group by f.xmin
  union all
  select 'object', o.xmin, count(*) from ops.objects o group by o.xmin
  union all
  select 'grant', g.xmin, count(*) from ops.grants g group by g.xmin
  union all
  -- the registries and the migrations that there are: see checksumHere
  select r.part, r.writer, count(*) from (/* rows */) r (part, writer) group by r.part, r.writer
), counted as (
  select w.part, sum(w.rows) as rows, sum(hashint8extended((w.writer::text::bigint << 32) | w.rows, 0)) as sum
    from written w
   group by w.part
)
select md5((select string_agg(concat_ws(' ', c.part, c.rows, c.sum), ',' order by c.part) from counted c) ||
           (select sum(hash_record_extended(row(t.oid, t.relname::text, t.relnamespace, t.relkind, t.relowner,
                                                t.relrowsecurity, t.relforcerowsecurity, t.acl), 0))
              from tables t)::text)::uuid::text as checksum,
       (select string_agg(c.part || ' ' || c.rows, ',' order by c.part) from counted c) || ',table ' || (select count(*)
                                        from tables) as counts,
       array(select distinct w.writer::text from written w) as writers
