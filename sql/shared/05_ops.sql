-- What the loader knows of its own work: files applied, the functions and triggers that each made, the grants that each
-- gave.
create schema if not exists ops;

create table if not exists ops.files (
  path       text primary key,
  hash       text not null,
  applied_at timestamptz not null default now()
);
comment on table ops.files is 'Files of sql/, functions/, policies/ and seeds applied here, by content hash.';

create table if not exists ops.objects (
  path     text not null references ops.files on delete cascade,
  kind     text not null constraint objects_kind_known check (kind in ('function', 'trigger')),
  identity text not null
);
comment on table ops.objects is
  'Functions (as regprocedure) and triggers ("name on schema.table") that a file made: what it no longer says is
   dropped.';

create table if not exists ops.grants (
  path       text not null references ops.files on delete cascade,
  kind       text not null,
  identity   text not null,
  columns    text not null default '',
  grantee    text not null,
  privilege  text not null
);
comment on table ops.grants is
  'Grants that a policy file gave, so that those it no longer says are revoked. A DBA''s own are not here.';

create table if not exists ops.loaded (
  fingerprint uuid not null,
  checksum     uuid not null,
  former      uuid
);
comment on table ops.loaded is
  'One row: the fingerprint of what the loader left here, the checksum that it had then (sql/cluster/checksum.sql), and
   in a template the fingerprint of the template before. While the checksum is the same, nobody has changed what the
   loader manages. Numbers of a fixed size, so that there is no TOAST table.';

-- read and written whole, or by path: their keys were as large as they, in the database of every project
alter table ops.objects drop constraint if exists objects_pkey;
alter table ops.grants drop constraint if exists grants_pkey;

create or replace view ops.acl_written as
  select 'table' as kind, format('%I.%I', n.nspname, c.relname) as identity, '' as columns,
         g.rolname::text as grantee, a.privilege_type as privilege, c.xmin as written_by
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('app', 'internal')
   cross join lateral aclexplode(c.relacl) a
    join pg_catalog.pg_roles g on g.oid = a.grantee
   where c.relkind in ('r', 'p', 'v', 'm') and a.grantee <> c.relowner
  union all
  select 'sequence', format('%I.%I', n.nspname, c.relname), '', g.rolname, a.privilege_type, c.xmin
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('app', 'internal')
   cross join lateral aclexplode(c.relacl) a
    join pg_catalog.pg_roles g on g.oid = a.grantee
   where c.relkind = 'S' and a.grantee <> c.relowner
  union all
  select 'table', format('%I.%I', n.nspname, c.relname), format('%I', t.attname), g.rolname, a.privilege_type, t.xmin
    from pg_catalog.pg_attribute t
    join pg_catalog.pg_class c on c.oid = t.attrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('app', 'internal')
   cross join lateral aclexplode(t.attacl) a
    join pg_catalog.pg_roles g on g.oid = a.grantee
   where t.attnum > 0 and not t.attisdropped
  union all
  select 'function', p.oid::regprocedure::text, '', g.rolname, a.privilege_type, p.xmin
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('api', 'internal')
   cross join lateral aclexplode(p.proacl) a
    join pg_catalog.pg_roles g on g.oid = a.grantee
   where a.grantee <> p.proowner;
comment on view ops.acl_written is
  'ops.acl with the transaction that last wrote the row of the catalog which holds the privilege: what a file granted '
  'is found without reading all.';

create or replace view ops.acl as
  select w.kind, w.identity, w.columns, w.grantee, w.privilege from ops.acl_written w;
comment on view ops.acl is
  'Every privilege that a role other than the owner holds on our tables, columns, sequences and functions. Tables of '
  'collections are the tenants'' own:
   one that is made while a policy file is applied must not be taken for that file''s work.';
