-- What is wrong with the privileges on databases of this server: $1 prefix, $2 the roles of control, $3 those of
-- tenants. Privileges on a database are copied neither from its template nor by pg_dump, so a database that was
-- restored by hand is open to every login. `can_repair` is false for a database that other programs use, or that
-- belongs to somebody else.
with own as (
  select array(select 'login_' || r from unnest($2::text[]) r) as control,
         array(select 'login_' || r from unnest($3::text[]) r) as tenant,
         $2::text[] || $3::text[] as roles
), me as (
  select r.oid, r.rolsuper as is_super, r.rolname = 'trellis_superuser' as is_embedded
    from pg_catalog.pg_roles r
   where r.rolname = current_user
), strangers as (
  -- logins that would lose by a revoke from PUBLIC
  select exists (select from pg_catalog.pg_roles r, own, me
                  where r.rolcanlogin and not r.rolsuper and r.oid <> me.oid
                    and r.rolname <> all (own.control || own.tenant)) as exist
), found as (
  select d.oid, d.datname, d.datdba, d.datallowconn,
         coalesce(d.datacl, acldefault('d', d.datdba)) as acl,
         case when d.datname = $1 || '_control' then 'control'
              when d.datname = $1 || '_template' then 'template'
              when d.datname in ('postgres', 'template1', current_database()) then 'shared'
              else 'tenant' end as kind
    from pg_catalog.pg_database d
   where d.datname in ('postgres', 'template1', current_database(), $1 || '_control', $1 || '_template')
      or d.datname ~ ('^' || $1 || '_[0-9a-f]{32}$')
), granted as (
  select f.oid, coalesce(r.rolname, 'public') as grantee, a.privilege_type as privilege
    from found f
   cross join lateral aclexplode(f.acl) a
    left join pg_catalog.pg_roles r on r.oid = a.grantee
   where a.grantee <> f.datdba
), evaluated as (
  select f.datname, f.kind, f.datdba,
         array_remove(array[
           case when f.kind in ('control', 'tenant') and f.datdba::regrole::text <> 'trellis_owner'
                then 'it does not belong to trellis_owner' end,
           case when f.kind = 'template' and f.datallowconn then 'it takes connections' end,
           case when f.kind <> 'template' and f.datallowconn
                and 'public' = any (g.connecting) then 'every login may connect' end,
           case when f.kind <> 'template' and f.datallowconn
                and 'public' = any (g.temporary) then 'every login may make temporary tables' end,
           case when f.kind in ('control', 'tenant') and exists (
                  select from unnest(g.connecting || g.temporary) l
                   where l = any (own.control || own.tenant || own.roles)
                     and (l <> all (case f.kind when 'control' then own.control else own.tenant end)
                          or l = any (g.temporary)))
                then 'a login may more than it needs' end,
           case when f.kind in ('control', 'tenant')
                and not g.connecting @> case f.kind when 'control' then own.control else own.tenant end
                then 'a login may not connect' end], null) as problems,
         f.kind <> 'shared' or me.is_embedded
           or ((me.is_super or pg_has_role(me.oid, f.datdba, 'usage')) and not strangers.exist) as can_repair
    from found f
   cross join own
   cross join me
   cross join strangers
   cross join lateral (
     select coalesce(array_agg(g.grantee::text) filter (where g.privilege = 'CONNECT'), '{}') as connecting,
            coalesce(array_agg(g.grantee::text) filter (where g.privilege <> 'CONNECT'), '{}') as temporary
       from granted g where g.oid = f.oid) g
)
select j.datname as database, j.kind, j.problems, j.can_repair as "canRepair",
       case when j.kind = 'shared' then
         format('grant connect on database %1$I to %2$I; revoke connect, temporary on database %1$I from public',
                j.datname, current_user)
       end as remedy
  from evaluated j
 where j.problems <> '{}'
 order by j.kind, j.datname
