import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { DatabaseError } from '#server/database/failures.ts'
import { type Program, type SqlFile, stemOf } from '#server/database/files.ts'

/**
 * Applies functions, policies and seeds whose content changed, one transaction a file. What a file no longer says is
 * gone afterwards: it made these functions, triggers, policies and grants, and ops.* and a comment on each policy say so.
 * A DBA's own objects carry neither and are left alone.
 */
export const loadProgram = async (client: Client, program: Program): Promise<string[]> => {
  const known = await appliedFiles(client)
  const isChanged = (file: SqlFile) => known.get(file.path) !== file.hash
  const applied: string[] = []
  const refreshed = new Set<string>()

  const todo = new Set(program.functions.filter(isChanged))
  const absent = absentFiles(program, known)
  for (const file of todo) {
    const { files, result } = await applyFirst(client, file, [...todo], program.policies, absent)
    for (const path of result.refreshed) refreshed.add(path)
    for (const path of result.outdated) known.delete(path)
    for (const done of files) {
      todo.delete(done)
      applied.push(done.path)
    }
  }
  for (const file of program.policies.filter((file) => isChanged(file) && !refreshed.has(file.path))) {
    await inTransaction(client, () => applyPolicies(client, file))
    applied.push(file.path)
  }
  for (const file of program.seeds.filter(isChanged)) {
    await inTransaction(client, () => applyPlain(client, file))
    applied.push(file.path)
  }
  applied.push(...(await dropAbsent(client, program, known)))
  return applied
}

/** sql/: idempotent, so it is simply run again when its content changed. */
export const loadBase = async (client: Client, program: Program): Promise<void> => {
  const { rows } = await client.query<{ exists: boolean }>(`select to_regclass('ops.files') is not null as exists`)
  const known = rows[0]?.exists ? await appliedFiles(client) : new Map<string, string>()
  if (program.base.every((file) => known.get(file.path) === file.hash)) return
  await inTransaction(client, async () => {
    for (const file of program.base) await run(client, file)
    for (const file of program.base) await remember(client, file)
  })
}

const appliedFiles = async (client: Client): Promise<Map<string, string>> => {
  const { rows } = await client.query<{ path: string; hash: string }>('select path, hash from ops.files')
  return new Map(rows.map((row) => [row.path, row.hash]))
}

/** Locks that others hold, and catalog rows that autovacuum has just touched. */
const isPassing = ({ code = '', message }: DatabaseError) =>
  ['55P03', '40P01', '40001'].includes(code) || message.includes('tuple concurrently updated')

/**
 * One file, one transaction. Policy changes take exclusive locks, and requests lock the same tables in orders of their own: we
 * give up well before Postgres looks for deadlocks (after a second), so that it is never a request which is broken off.
 */
const inTransaction = async <T>(client: Client, work: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query(
        `begin; set local lock_timeout = '200ms'; set local check_function_bodies = off; set local search_path = ''`,
      )
      const result = await work()
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback').catch(() => undefined)
      if (attempt >= 100 || !isPassing(error as DatabaseError)) throw error
      await sleep(Math.min(500, 20 * attempt) + Math.random() * 50)
    }
  }
}

const run = async (client: Client, file: SqlFile): Promise<void> => {
  await client.query(`select set_config('trellis.file', $1, true)`, [file.path])
  try {
    await client.query(file.text)
  } catch (error) {
    const { position, message } = error as DatabaseError & { position?: string }
    const line = position ? file.text.slice(0, Number(position)).split('\n').length : '?'
    throw Object.assign(error as Error, { message: `${file.path}:${line}: ${message}` })
  }
}

const remember = (client: Client, file: SqlFile) =>
  client.query(
    `insert into ops.files (path, hash) values ($1, $2)
     on conflict (path) do update set hash = excluded.hash, applied_at = now()`,
    [file.path, file.hash],
  )

const applyPlain = async (client: Client, file: SqlFile): Promise<void> => {
  await run(client, file)
  await remember(client, file)
}

const isSignatureChange = (
  error: unknown, // 42725: the former signature stands beside the new one, and a comment or a grant without arguments fits both
) => ['42P13', '2BP01', '42725'].includes((error as DatabaseError).code ?? '')

/** A policy names a function of a file that comes later. */
const isMissingFunction = (error: unknown) => (error as DatabaseError).code === '42883'

/**
 * A file alone, if that can be. Where a signature or a result changed, what its area made, and what leans on it, is dropped and made anew,
 * the whole area at once: its policies name functions of any of its files, and now and then of another area, so as a last resort
 * everything is.
 */
const applyFirst = async (
  client: Client,
  file: SqlFile,
  todo: readonly SqlFile[],
  policies: readonly SqlFile[],
  absent: readonly string[],
): Promise<{ files: readonly SqlFile[]; result: FunctionsApplied }> => {
  const area = todo.filter((other) => stemOf(other.path) === stemOf(file.path))
  const apply = async (files: readonly SqlFile[], anew: boolean) => {
    const theirs = [...new Set(files.flatMap((one) => policiesFor(one, policies)))]
    // what stood in a file that is gone may stand in one of these, under other arguments
    const gone = anew ? absent.filter((path) => files.some((one) => stemOf(one.path) === stemOf(path))) : []
    return { files, result: await inTransaction(client, () => applyFunctions(client, files, theirs, anew, gone)) }
  }
  return apply([file], false)
    .catch((error) => {
      if (!isSignatureChange(error) && !isMissingFunction(error)) throw error
      return apply(area, true)
    })
    .catch((error) => {
      if (!isMissingFunction(error) || area.length === todo.length) throw error
      return apply(todo, true)
    })
}

const policiesFor = (file: SqlFile, policies: readonly SqlFile[]) =>
  policies.filter((policy) => stemOf(policy.path) === stemOf(file.path))

type FunctionsApplied = { readonly refreshed: string[]; readonly outdated: string[] }

/** Files, and the policies of their areas where these have to be given again. `anew` drops first what the files made before. */
const applyFunctions = async (
  client: Client,
  files: readonly SqlFile[],
  policies: readonly SqlFile[],
  anew: boolean,
  absent: readonly string[],
): Promise<FunctionsApplied> => {
  const before = new Map<string, MadeObject[]>()
  for (const path of [...files.map((file) => file.path), ...absent]) before.set(path, await objectsOf(client, path))
  const leaning = anew ? await setAside(client, [...before.values()].flat()) : []
  let isNew = false
  let isLess = anew
  for (const file of files) {
    const had = before.get(file.path) ?? []
    const made = await applyFile(client, file)
    const gone = had.filter((old) => !made.some((now) => now.kind === old.kind && now.identity === old.identity))
    if (!anew && gone.length > 0) leaning.push(...(await setAside(client, gone)))
    isLess ||= gone.length > 0
    isNew ||= made.some((now) => !had.some((old) => old.identity === now.identity))
  }
  if (isLess) {
    await regrant(client)
    for (const policy of policies) await applyPolicies(client, policy)
    for (const statement of leaning) await client.query(statement)
    return { refreshed: policies.map((policy) => policy.path), outdated: [] }
  }
  return { refreshed: [], outdated: isNew ? policies.map((policy) => policy.path) : [] }
}

/** Runs a file, and notes what it made as its own; answers that. */
const applyFile = async (client: Client, file: SqlFile): Promise<MadeObject[]> => {
  const known = new Set((await madeHere(client)).map(keyOf))
  await run(client, file)
  const made = (await madeHere(client)).filter((object) => !known.has(keyOf(object)))
  await remember(client, file)
  // a function that moved here from another file is this file's now, whichever of the two is applied first
  await client.query(
    `delete from ops.objects d
      where d.path = $1
         or (d.kind, d.identity) in (select o.kind, o.identity from json_to_recordset($2) as o (kind text, identity text))`,
    [file.path, JSON.stringify(made)],
  )
  await client.query(
    `insert into ops.objects (path, kind, identity)
     select $1, o.kind, o.identity from json_to_recordset($2) as o (kind text, identity text)`,
    [file.path, JSON.stringify(made)],
  )
  return made
}

const keyOf = ({ kind, identity }: MadeObject) => `${kind} ${identity}`

type MadeObject = { kind: 'function' | 'trigger'; identity: string }

const objectsOf = async (client: Client, path: string): Promise<MadeObject[]> => {
  const { rows } = await client.query<MadeObject>('select kind, identity from ops.objects where path = $1', [path])
  return rows
}

/** Rows of the catalog that this very transaction wrote: what the file made or replaced. */
const madeHere = async (client: Client): Promise<MadeObject[]> => {
  const { rows } = await client.query<MadeObject>(`
    with here as (select (pg_current_xact_id()::text::numeric % 4294967296)::bigint::text as xid)
    select 'function' as kind, p.oid::regprocedure::text as identity
      from pg_catalog.pg_proc p, here
     where p.xmin::text = here.xid and p.pronamespace in ('api'::regnamespace, 'internal'::regnamespace)
    union all
    select 'trigger', format('%I on %s', t.tgname, t.tgrelid::regclass)
      from pg_catalog.pg_trigger t, here
     where t.xmin::text = here.xid and not t.tgisinternal and t.tgparentid = 0`)
  return rows
}

/** Drops objects, and answers the statements that bring back the policies which leaned on them. */
const setAside = async (client: Client, objects: readonly MadeObject[]): Promise<string[]> => {
  const functions = objects.filter((object) => object.kind === 'function').map((object) => object.identity)
  const { rows } = await client.query<{ drop: string; restore: string }>(
    `select format('drop policy %I on %s', p.polname, p.polrelid::regclass) as drop,
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
      where exists (select from pg_catalog.pg_depend d
                     where d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_proc'::regclass
                       and d.refobjid in (select to_regprocedure(f)::oid from unnest($1::text[]) f))`,
    [functions],
  )
  for (const row of rows) await client.query(row.drop)
  for (const object of objects.filter((candidate) => candidate.kind === 'trigger')) {
    const [name, table] = object.identity.split(' on ')
    await client.query(`drop trigger if exists ${name} on ${table}`)
  }
  for (const identity of functions) await client.query(`drop function if exists ${identity}`)
  return rows.map((row) => row.restore)
}

/** Gives back the recorded grants of functions that were dropped and made again with the same signature. */
const regrant = async (client: Client): Promise<void> => {
  const { rows } = await client.query<{ statement: string }>(`
    select format('grant %s on function %s to %I', g.privilege, g.identity, g.grantee) as statement
      from ops.grants g
     -- a case, because the conditions of an "and" may be tried in any order, and a table's name is no signature
     where case when g.kind = 'function' then to_regprocedure(g.identity) is not null else false end
       and not exists (select from ops.acl a where (a.kind, a.identity, a.grantee) = (g.kind, g.identity, g.grantee))`)
  for (const row of rows) await client.query(row.statement)
}

const applyPolicies = async (client: Client, file: SqlFile): Promise<void> => {
  // what others gave, read before any lock is taken
  await client.query('create temporary table if not exists acl_before (like ops.acl) on commit drop')
  await client.query('truncate pg_temp.acl_before')
  await client.query(
    `insert into pg_temp.acl_before
     select * from ops.acl except select g.kind, g.identity, g.columns, g.grantee, g.privilege from ops.grants g where g.path = $1`,
    [file.path],
  )
  await lockTables(client, file.path)
  await withdraw(client, file.path)
  await run(client, file)
  await remember(client, file)
  await client.query(
    `insert into ops.grants (path, kind, identity, columns, grantee, privilege)
     select $1, a.* from (select * from ops.acl except select * from pg_temp.acl_before) a
     on conflict do nothing`,
    [file.path],
  )
  await client.query(`
    do $mark$
    declare made record;
    begin
      for made in
        select p.polname, p.polrelid::regclass as relation from pg_catalog.pg_policy p
         where p.xmin::text = (pg_current_xact_id()::text::numeric % 4294967296)::bigint::text
           and obj_description(p.oid, 'pg_policy') is null
      loop
        execute format('comment on policy %I on %s is %L', made.polname, made.relation,
                       'Made by ' || current_setting('trellis.file'));
      end loop;
    end $mark$`)
}

/**
 * All tables of a policy file at once, parents first, as requests reach them: locked one by one while the file runs, they would
 * meet requests that hold one and want another.
 */
const lockTables = async (client: Client, path: string): Promise<void> => {
  const { rows } = await client.query<{ names: string | null }>(
    `select string_agg(t.oid::regclass::text, ', ' order by t.oid) as names
       from pg_catalog.pg_class t
      where t.oid in (select p.polrelid from pg_catalog.pg_policy p where obj_description(p.oid, 'pg_policy') = 'Made by ' || $1)`,
    [path],
  )
  if (rows[0]?.names) await client.query(`lock table ${rows[0].names} in access exclusive mode`)
}

/** Takes back the policies, grants and registry rows that a policy file gave. */
const withdraw = async (client: Client, path: string): Promise<void> => {
  const { rows } = await client.query<{ statement: string }>(
    `select format('drop policy %I on %s', p.polname, p.polrelid::regclass) as statement
       from pg_catalog.pg_policy p where obj_description(p.oid, 'pg_policy') = 'Made by ' || $1
     union all
     select format('revoke %s %s on %s %s from %I', g.privilege, case when g.columns <> '' then '(' || g.columns || ')' end,
                   g.kind, g.identity, g.grantee)
       from ops.grants g
      where g.path = $1
        and case g.kind when 'function' then to_regprocedure(g.identity) is not null else to_regclass(g.identity) is not null end`,
    [path],
  )
  for (const row of rows) await client.query(row.statement)
  await client.query('delete from ops.grants where path = $1', [path])
  for (const registry of registries) {
    await client.query(`
      do $registry$ begin
        if to_regclass(${literal(registry)}) is not null then
          delete from ${registry} where declared_in = ${literal(path)};
        end if;
      end $registry$`)
  }
}

/** Tables whose rows policy files declare: a file's rows are replaced with it. */
const registries = ['internal.user_data', 'internal.definitions']

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

const absentFiles = (program: Program, known: ReadonlyMap<string, string>): string[] => {
  const present = new Set(
    [...program.base, ...program.functions, ...program.policies, ...program.seeds].map((f) => f.path),
  )
  return [...known.keys()].filter((path) => !present.has(path))
}

/** Files that are gone take what they made with them. */
const dropAbsent = async (client: Client, program: Program, known: Map<string, string>): Promise<string[]> => {
  const absent = absentFiles(program, known)
  for (const path of absent) {
    await inTransaction(client, async () => {
      await withdraw(client, path)
      const leaning = await setAside(client, await objectsOf(client, path))
      await client.query('delete from ops.files where path = $1', [path])
      if (leaning.length > 0) throw new Error(`${path} is gone, but policies still use its functions`)
    })
  }
  return absent
}
