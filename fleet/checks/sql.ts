import type { Client } from 'pg'
import { escapeRegExp, type Finding, type Sources } from '#fleet/checks/finding.ts'
import { stemOf } from '#fleet/load/files.ts'

type Kind = 'control' | 'tenant'

/** What a newcomer forgets beside a table: row security, a row in the registry of what belongs to users. */
export const checkTables = async (client: Client, kind: Kind, sources: Sources): Promise<Finding[]> => {
  const placeOf = (table: string) =>
    sources.find(new RegExp(`create table ${escapeRegExp(table)}\\b`), `db/${kind}/migrations/`)
  const policyFile = (table: string) => policyFileOf(table, kind, sources)
  const { rows: open } = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_catalog.pg_class c
      where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and not c.relrowsecurity`,
  )
  const users = kind === 'tenant' ? await unregistered(client) : []
  return [
    ...open.map(
      ({ name }): Finding => ({
        place: placeOf(name),
        severity: 'error',
        problem: `${name} has no row-level security: a role with a grant sees every row.`,
        remedy: `Write in ${policyFile(name)}: alter table ${name} enable row level security;`,
      }),
    ),
    ...users.map(
      ({ name, column }): Finding => ({
        place: placeOf(name),
        severity: 'error',
        problem: `${name}.${column} refers to a user, and the registry internal.user_data has no row for it: export, reset, merge and deletion would pass it over.`,
        remedy: `Write in ${policyFile(name)}: insert into internal.user_data (table_name, user_column, ..., declared_in) values ('${name}', '${column}', ..., current_setting('trellis.file')); see CONTRIBUTING, "Add a policy".`,
      }),
    ),
  ]
}

const policyFileOf = (table: string, kind: Kind, sources: Sources) => {
  const area = sources.find(new RegExp(`\\bon ${escapeRegExp(table)}\\b`), `policies/${kind}/`)
  return area.includes(':') ? area.replace(/:\d+$/, '') : `policies/${kind}/<area>.sql`
}

/** Privileges that reach no row. */
export const checkPolicies = async (client: Client, kind: Kind, sources: Sources): Promise<Finding[]> => {
  const { rows: blind } = await client.query<{ name: string; role: string; command: string }>(withoutPolicy)
  return blind.map(({ name, role, command }) => ({
    place: sources.find(new RegExp(`\\bon ${escapeRegExp(name)}\\b[^;]*\\b${role}\\b`), `policies/${kind}/`),
    severity: 'warning',
    problem: `${role} has the privilege ${command} on ${name}, and no policy lets it reach a row.`,
    remedy: `Write in ${policyFileOf(name, kind, sources)}: create policy "..." on ${name} for ${command} to ${role} ...; or take the grant back.`,
  }))
}

/** Grants to a serving role under which row security shows nothing, as no permissive policy is for that role and command. */
const withoutPolicy = `
  with granted as (
    select c.oid, a.grantee, a.privilege_type as privilege
      from pg_catalog.pg_class c cross join lateral aclexplode(c.relacl) a
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and c.relrowsecurity and not c.relispartition
    union
    select c.oid, a.grantee, a.privilege_type
      from pg_catalog.pg_class c
      join pg_catalog.pg_attribute t on t.attrelid = c.oid and t.attnum > 0 and not t.attisdropped
     cross join lateral aclexplode(t.attacl) a
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and c.relrowsecurity and not c.relispartition
  )
  select g.oid::regclass::text as name, r.rolname::text as role, lower(g.privilege) as command
    from granted g
    join pg_catalog.pg_roles r on r.oid = g.grantee and r.rolname ~ '^(app|control)_'
   where g.privilege in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
     and not exists (
       select from pg_catalog.pg_policy p
        where p.polrelid = g.oid and p.polpermissive and (g.grantee = any (p.polroles) or 0 = any (p.polroles))
          and p.polcmd in ('*', case g.privilege when 'SELECT' then 'r' when 'INSERT' then 'a' when 'UPDATE' then 'w' else 'd' end::"char"))
   order by 1, 2, 3`

const unregistered = async (client: Client): Promise<{ name: string; column: string }[]> => {
  const { rows } = await client.query<{ name: string; column: string }>(
    `select a.attrelid::regclass::text as name, a.attname::text as column
       from pg_catalog.pg_attribute a
       join pg_catalog.pg_class c on c.oid = a.attrelid and c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      where a.attnum > 0 and not a.attisdropped
        and (a.attname = 'app_user_id'
             or exists (select from pg_catalog.pg_constraint k
                         where k.contype = 'f' and k.conrelid = a.attrelid and k.confrelid = to_regclass('app.users') and a.attnum = any (k.conkey)))
        and not exists (select from internal.user_data d where d.table_name = a.attrelid::regclass::text and d.user_column = a.attname)
      order by 1, 2`,
  )
  return rows
}

type Body = {
  readonly name: string
  readonly schema: string
  readonly isDefiner: boolean
  readonly text: string
  readonly path: string | null
  readonly grantees: readonly string[]
}

type Needed = { readonly privilege: string; readonly on: string; readonly kind: 'table' | 'function' }

const words = {
  from: 'SELECT',
  join: 'SELECT',
  'insert into': 'INSERT',
  update: 'UPDATE',
  'delete from': 'DELETE',
} as const

/** Comments and texts are taken out, so that words in them do not count. */
const codeOf = (text: string) =>
  text
    .replaceAll(/--[^\n]*/g, '')
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/'[^']*'/g, "''")
    .toLowerCase()

/** What the words of a body reach: tables after from, join, insert into, update and delete from, and functions in front of a bracket. */
export const neededBy = (text: string): Needed[] => {
  const code = codeOf(text)
  const tables = [
    ...code.matchAll(/\b(delete\s+from|insert\s+into|from|join|update)\s+(?:only\s+)?(app\.[a-z_0-9]+)\b/g),
  ].map(
    ([, word = '', on = '']): Needed => ({
      privilege: words[word.replaceAll(/\s+/g, ' ') as keyof typeof words],
      on,
      kind: 'table',
    }),
  )
  const functions = [...code.matchAll(/\b((?:internal|api)\.[a-z_0-9]+)\s*\(/g)].map(
    ([, on = '']): Needed => ({ privilege: 'EXECUTE', on, kind: 'function' }),
  )
  return [...tables, ...functions]
}

const bodiesOf = async (client: Client): Promise<Body[]> => {
  const { rows } = await client.query<Omit<Body, 'path'> & { identity: string }>(
    `select p.proname::text as name, p.pronamespace::regnamespace::text as schema, p.prosecdef as "isDefiner",
            p.oid::regprocedure::text as identity, coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) as text,
            -- a role that may by its membership in another one is not named beside it
            array(select r.rolname::text from pg_catalog.pg_roles r
                   where r.rolname ~ '^(app|control)_' and has_function_privilege(r.oid, p.oid, 'execute')
                     and not exists (select from pg_catalog.pg_auth_members m
                                       join pg_catalog.pg_roles g on g.oid = m.roleid and g.rolname ~ '^(app|control)_'
                                      where m.member = r.oid and has_function_privilege(g.oid, p.oid, 'execute'))) as grantees
       from pg_catalog.pg_proc p
       join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname in ('sql', 'plpgsql')
      where p.pronamespace in ('api'::regnamespace, 'internal'::regnamespace) and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype`,
  )
  // joined here: a join on a text that Postgres works out anew for each pair takes seconds
  const { rows: made } = await client.query<{ path: string; identity: string }>(
    `select path, identity from ops.objects where kind = 'function'`,
  )
  const paths = new Map(made.map(({ path, identity }) => [identity, path]))
  return rows.map(({ identity, ...body }) => ({ ...body, path: paths.get(identity) ?? null }))
}

type Held = { readonly tables: ReadonlySet<string>; readonly known: ReadonlySet<string> }

/** "role PRIVILEGE app.table" for each privilege on a table or on one of its columns. */
const heldOnTables = async (client: Client): Promise<Held> => {
  const { rows } = await client.query<{ name: string; held: string[] }>(
    `select c.oid::regclass::text as name,
            array(select r.rolname || ' ' || v.privilege
                    from pg_catalog.pg_roles r cross join (values ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) v (privilege)
                   where r.rolname ~ '^(app|control)_'
                     and (has_table_privilege(r.oid, c.oid, v.privilege)
                          or (v.privilege <> 'DELETE' and has_any_column_privilege(r.oid, c.oid, case when v.privilege = 'DELETE' then 'SELECT' else v.privilege end)))) as held
       from pg_catalog.pg_class c
      where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p', 'v')`,
  )
  return {
    tables: new Set(rows.flatMap(({ name, held }) => held.map((one) => `${one} ${name}`))),
    known: new Set(rows.map(({ name }) => name)),
  }
}

/**
 * Functions that run with the rights of their caller, and what they reach without a grant. One is named where none of the roles
 * that may execute it has the privilege: what only some of them lack may lie behind a condition.
 */
export const checkBodies = async (client: Client, kind: Kind, sources: Sources): Promise<Finding[]> => {
  const bodies = await bodiesOf(client)
  const held = await heldOnTables(client)
  const executable = new Map<string, Set<string>>()
  for (const { schema, name, grantees } of bodies) {
    const all = executable.get(`${schema}.${name}`) ?? new Set()
    executable.set(`${schema}.${name}`, all)
    for (const role of grantees) all.add(role)
  }
  const may = (role: string, { privilege, on, kind: what }: Needed) =>
    what === 'table' ? held.tables.has(`${role} ${privilege} ${on}`) : executable.get(on)?.has(role)
  const isKnown = ({ on, kind: what }: Needed) => (what === 'table' ? held.known.has(on) : executable.has(on))

  return bodies
    .filter((body) => !body.isDefiner && body.grantees.length > 0)
    .flatMap((body) => {
      const needed = new Map(neededBy(body.text).map((one) => [`${one.privilege} ${one.on}`, one]))
      return [...needed.values()]
        .filter((one) => isKnown(one) && !body.grantees.some((role) => may(role, one)))
        .map((one): Finding => {
          const name = `${body.schema}.${body.name}`
          const area = body.path ? stemOf(body.path) : '<area>'
          const roles = body.grantees.join(', ')
          const on = one.kind === 'table' ? one.on : `function ${one.on}`
          return {
            place: sources.find(new RegExp(`function ${escapeRegExp(name)}\\(`), body.path ?? `functions/${kind}/`),
            severity: 'warning',
            problem: `${name} runs with the rights of its caller, and ${one.kind === 'table' ? `uses ${one.privilege} on` : 'calls'} ${one.on}, which none of its callers (${roles}) may.`,
            remedy: `Write in policies/${kind}/${area}.sql: grant ${one.privilege.toLowerCase()} on ${on} to ${roles};`,
          }
        })
    })
}
