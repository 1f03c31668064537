import type { Client } from 'pg'

/** A policy that was dropped with a function: the file that made it, if one did, and the statement that brings it back. */
export type Dependent = { readonly madeBy: string; readonly restore: string }

/** Drops the policies p for which the condition holds, and answers how each is brought back unless a file has made it again. */
export const dropPolicies = async (
  client: Client,
  condition: string,
  values: readonly unknown[],
): Promise<Dependent[]> => {
  const { rows } = await client.query<Dependent & { drop: string }>(
    `select format('drop policy %I on %s', p.polname, p.polrelid::regclass) as drop,
            coalesce(substring(obj_description(p.oid, 'pg_policy') from '^Made by (.*)$'), '') as "madeBy",
            format('do $restore$ begin if not exists (select from pg_policy where polrelid = %L::regclass and polname = %L) then
                      execute %L; execute %L; end if; end $restore$',
              p.polrelid::regclass, p.polname,
              format('create policy %I on %s as %s for %s to %s %s %s', p.polname, p.polrelid::regclass,
                case when p.polpermissive then 'permissive' else 'restrictive' end,
                case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
                coalesce((select string_agg(quote_ident(r.rolname), ', ') from pg_roles r where r.oid = any (p.polroles)), 'public'),
                'using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
                'with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')'),
              format('comment on policy %I on %s is %L', p.polname, p.polrelid::regclass, obj_description(p.oid, 'pg_policy'))) as restore
       from pg_catalog.pg_policy p
      where ${condition}`,
    [...values],
  )
  for (const row of rows) await client.query(row.drop)
  return rows
}

/** Functions of other files whose body Postgres has parsed, and that cannot stand without these; those that others need come first. */
const parsedCallers = async (client: Client, functions: readonly string[]) => {
  const { rows } = await client.query<Dependent & { identity: string }>(
    `with recursive callers (oid, depth) as (
       select to_regprocedure(f)::oid, 0 from unnest($1::text[]) f
       union
       select d.objid, c.depth + 1
         from callers c
         join pg_catalog.pg_depend d on d.refclassid = 'pg_proc'::regclass and d.refobjid = c.oid and d.classid = 'pg_proc'::regclass and d.deptype = 'n'
        where c.depth < 50
     )
     select p.oid::regprocedure::text as identity, '' as "madeBy",
            format('do $restore$ begin if to_regprocedure(%L) is null then execute %L; execute %L; %s end if; end $restore$',
              p.oid::regprocedure, pg_get_functiondef(p.oid),
              format('comment on function %s is %L', p.oid::regprocedure, obj_description(p.oid, 'pg_proc')),
              (select string_agg(format('execute %L;', format('grant %s on function %s to %I', a.privilege_type, p.oid::regprocedure, r.rolname)), ' ')
                 from aclexplode(p.proacl) a join pg_catalog.pg_roles r on r.oid = a.grantee where a.grantee <> p.proowner)) as restore
       from (select c.oid, max(c.depth) as depth from callers c group by c.oid) c
       join pg_catalog.pg_proc p on p.oid = c.oid
      where p.oid <> all (array(select to_regprocedure(f)::oid from unnest($1::text[]) f where to_regprocedure(f) is not null))
      order by c.depth, p.oid`,
    [functions],
  )
  return rows
}

/** Functions without triggers of other makers, such as those of collections' tables: these functions are replaced where they are. */
const droppable = async (client: Client, objects: readonly MadeObject[]): Promise<string[]> => {
  const named = (kind: MadeObject['kind']) =>
    objects.filter((object) => object.kind === kind).map((one) => one.identity)
  const { rows } = await client.query<{ identity: string }>(
    `select f.identity
       from unnest($1::text[]) with ordinality as f (identity, place)
      where not exists (
        select from pg_catalog.pg_trigger t
         cross join lateral (select format('%I on %s', t.tgname, t.tgrelid::regclass) as identity) n
         where t.tgfoid = to_regprocedure(f.identity) and t.tgparentid = 0 and n.identity <> all ($2::text[])
           and not exists (select from ops.objects o where (o.kind, o.identity) = ('trigger', n.identity)))
      order by f.place`,
    [named('function'), named('trigger')],
  )
  return rows.map(({ identity }) => identity)
}

/** Drops objects, and answers the functions and policies which leaned on them and were dropped as well. */
export const dropWithDependents = async (client: Client, objects: readonly MadeObject[]): Promise<Dependent[]> => {
  const named = await droppable(client, objects)
  const callers = await parsedCallers(client, named)
  const functions = [...named, ...callers.map(({ identity }) => identity)]
  const rows = await dropPolicies(
    client,
    `exists (select from pg_catalog.pg_depend d
              where d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_proc'::regclass
                and d.refobjid in (select to_regprocedure(f)::oid from unnest($1::text[]) f))`,
    [functions],
  )
  for (const object of objects.filter((candidate) => candidate.kind === 'trigger')) {
    const [name, table] = object.identity.split(' on ')
    await client.query(`drop trigger if exists ${name} on ${table}`)
  }
  // in one statement: a function may be in the body of another one of these
  if (functions.length > 0)
    await client
      .query(`drop function if exists ${functions.join(', ')}`)
      .catch((error: Error & { detail?: string }) => {
        throw Object.assign(error, { message: `${error.message}: ${error.detail}` })
      })
  return [...callers, ...rows]
}

export type MadeObject = { kind: 'function' | 'trigger'; identity: string }
