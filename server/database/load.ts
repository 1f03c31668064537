import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { DatabaseError } from '#server/database/failures.ts'
import { type Program, type SqlFile, stemOf } from '#server/database/files.ts'
import { loadFresh } from '#server/database/load_fresh.ts'
import { findMovedGrants, keepGrants, takeGrants } from '#server/database/moved_grants.ts'
import { registries } from '#server/database/state.ts'

/**
 * Applies functions, policies and seeds whose content changed, one transaction a file. What a file no longer says is
 * gone afterwards: it made these functions, triggers, policies and grants, and ops.* and a comment on each policy say so.
 * A DBA's own objects carry neither and are left alone.
 */
export const loadProgram = async (client: Client, program: Program): Promise<string[]> => {
  const known = await appliedFiles(client)
  if (![...known.keys()].some((path) => !path.startsWith('sql/') || path.startsWith('sql/seeds/'))) {
    // what fails here is tried file by file, which names the line of a mistake and finds an order
    const loaded = await loadFresh(client, program).catch(() => null)
    if (loaded) return loaded
  }
  const isChanged = (file: SqlFile) => known.get(file.path) !== file.hash
  const applied: string[] = []
  const refreshed = new Set<string>()

  const todo = new Set(program.functions.filter(isChanged))
  const absent = absentFiles(program, known)
  const leaving = new Set([...program.policies.filter(isChanged).map(({ path }) => path), ...absent])
  for (const file of todo) {
    const { files, result } = await applyFirst(client, file, [...todo], { policies: program.policies, absent, leaving })
    for (const path of result.refreshed) {
      refreshed.add(path)
      leaving.delete(path)
    }
    for (const path of result.outdated) known.delete(path)
    for (const done of files) {
      todo.delete(done)
      applied.push(done.path)
    }
  }
  for (const file of program.policies.filter((file) => isChanged(file) && !refreshed.has(file.path))) {
    leaving.delete(file.path)
    await inTransaction(client, () => applyPolicies(client, file, [...leaving]))
    applied.push(file.path)
  }
  for (const file of program.seeds.filter(isChanged)) {
    await inTransaction(client, () => applyPlain(client, file))
    applied.push(file.path)
  }
  applied.push(...(await dropAbsent(client, program, known)))
  if (applied.some((path) => path.startsWith('policies/'))) await dropUndeclared(client)
  return applied
}

/** Files that are not applied here as they are in this program, and files applied here that it does not have. */
export const changedFiles = async (client: Client, program: Program): Promise<string[]> => {
  const { rows } = await client.query<{ exists: boolean }>(`select to_regclass('ops.files') is not null as exists`)
  const known = rows[0]?.exists ? await appliedFiles(client) : new Map<string, string>()
  const files = [...program.base, ...program.functions, ...program.policies, ...program.seeds]
  const changed = files.filter((file) => known.get(file.path) !== file.hash).map((file) => file.path)
  return [...changed, ...absentFiles(program, known)]
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
 * Work in a transaction that `begin` opens. Schema changes take exclusive locks, and requests lock the same tables in orders of their own: we
 * give up well before Postgres looks for deadlocks (after a second), so that it is never a request which is broken off, and try again.
 */
export const retryPassing = async <T>(client: Client, begin: string, work: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query(begin)
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

export const inTransaction = <T>(client: Client, work: () => Promise<T>): Promise<T> =>
  retryPassing(
    client,
    `begin; set local lock_timeout = '200ms'; set local check_function_bodies = off; set local search_path = ''`,
    work,
  )

export const run = async (client: Client, file: SqlFile): Promise<void> => {
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

/** What else a version has: its policy files, files that it has no more, and those of both whose grants may have moved. */
type Others = {
  readonly policies: readonly SqlFile[]
  readonly absent: readonly string[]
  readonly leaving: ReadonlySet<string>
}

/**
 * A file alone, if that can be. Where a signature or a result changed, what its area made, and what leans on it, is dropped and made anew,
 * the whole area at once: its policies name functions of any of its files, and now and then of another area, so as a last resort
 * everything is.
 */
const applyFirst = async (
  client: Client,
  file: SqlFile,
  todo: readonly SqlFile[],
  { policies, absent, leaving }: Others,
): Promise<{ files: readonly SqlFile[]; result: FunctionsApplied }> => {
  const area = todo.filter((other) => stemOf(other.path) === stemOf(file.path))
  const apply = async (files: readonly SqlFile[], anew: boolean) => {
    const theirs = [...new Set(files.flatMap((one) => policiesFor(one, policies)))]
    // what stood in a file that is gone may stand in one of these, under other arguments
    const gone = anew ? absent.filter((path) => files.some((one) => stemOf(one.path) === stemOf(path))) : []
    const work = () => applyFunctions(client, files, theirs, { anew, absent: gone, leaving })
    return { files, result: await inTransaction(client, work) }
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
  { anew, absent, leaving }: { anew: boolean } & Pick<Others, 'absent' | 'leaving'>,
): Promise<FunctionsApplied> => {
  const before = new Map<string, MadeObject[]>()
  for (const path of [...files.map((file) => file.path), ...absent]) before.set(path, await objectsOf(client, path))
  const leaning = anew ? await setAside(client, [...before.values()].flat()) : []
  let isNew = false
  let isLess = anew
  for (const [index, file] of files.entries()) {
    const had = before.get(file.path) ?? []
    const made = await applyFile(client, file, index > 0)
    const gone = had.filter((old) => !made.some((now) => now.kind === old.kind && now.identity === old.identity))
    if (!anew && gone.length > 0) leaning.push(...(await setAside(client, gone)))
    isLess ||= gone.length > 0
    isNew ||= made.some((now) => !had.some((old) => old.identity === now.identity))
  }
  await functionsLoaded(client)
  if (isLess) {
    await regrant(client)
    for (const [index, policy] of policies.entries()) {
      const applied = new Set(policies.slice(0, index + 1).map(({ path }) => path))
      await applyPolicies(
        client,
        policy,
        [...leaving].filter((path) => !applied.has(path)),
      )
    }
    // what these files made, they have made again, if they still want it
    const others = leaning.filter(({ madeBy }) => !policies.some(({ path }) => path === madeBy))
    for (const { restore } of others) await client.query(restore)
    return { refreshed: policies.map((policy) => policy.path), outdated: [] }
  }
  return { refreshed: [], outdated: isNew ? policies.map((policy) => policy.path) : [] }
}

/**
 * Compiles what is made of the functions that are there, in the transaction that changed them; only the database of a project has such things.
 * `isReplayed`: functions came with what was compiled of them, from another database.
 */
export const functionsLoaded = (client: Client, isReplayed = false) =>
  client.query(
    `do $loaded$ begin
       if to_regprocedure('ops.functions_loaded(boolean)') is not null then perform ops.functions_loaded(${isReplayed}); end if;
     end $loaded$`,
  )

/** Runs a file, and notes what it made as its own; answers that. `isLater`: other files ran in this transaction before. */
const applyFile = async (client: Client, file: SqlFile, isLater: boolean): Promise<MadeObject[]> => {
  const known = new Set(isLater ? (await madeHere(client)).map(keyOf) : [])
  await run(client, file)
  const made = (await madeHere(client)).filter((object) => !known.has(keyOf(object)))
  await remember(client, file)
  // a file that this takes something from has to be applied again if a later version has it as it was
  await client.query(
    `update ops.files f set hash = ''
      where f.path <> $1
        and f.path in (select d.path
                         from ops.objects d
                         join json_to_recordset($2) as o (kind text, identity text) using (kind, identity))`,
    [file.path, JSON.stringify(made)],
  )
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

/**
 * Functions that internal.definition_compile made of a definition, by the end of their comment. They belong to the row in internal.definitions, and
 * are no file's: they are compiled by the policy file that declares the row, and again whenever the compiler changes.
 */
const isCompiled = `coalesce(obj_description(p.oid, 'pg_proc') like '% Made by internal.definition_compile.', false)`

/** Drops what was compiled of definitions that no file declares any more. */
const dropUndeclared = (client: Client) =>
  inTransaction(client, () =>
    client.query(`
      do $undeclared$
      declare undeclared regprocedure;
      begin
        if to_regclass('internal.definitions') is not null then
          for undeclared in
            select p.oid::regprocedure
              from pg_catalog.pg_proc p
             where p.pronamespace = 'internal'::regnamespace and strpos(p.proname, '__') > 0 and ${isCompiled}
               and split_part(p.proname, '__', 1) not in (select d.kind from internal.definitions d)
          loop
            execute format('drop function %s', undeclared);
          end loop;
        end if;
      end $undeclared$`),
  )

/** Rows of the catalog that this very transaction wrote: what the file made or replaced. */
const madeHere = async (client: Client): Promise<MadeObject[]> => {
  const { rows } = await client.query<MadeObject>(`
    select 'function' as kind, p.oid::regprocedure::text as identity
      from pg_catalog.pg_proc p
     where p.xmin = pg_current_xact_id()::xid and p.pronamespace in ('api'::regnamespace, 'internal'::regnamespace)
       and not ${isCompiled}
    union all
    select 'trigger', format('%I on %s', t.tgname, t.tgrelid::regclass)
      from pg_catalog.pg_trigger t
     where t.xmin = pg_current_xact_id()::xid and not t.tgisinternal and t.tgparentid = 0`)
  return rows
}

/** A policy that was dropped with a function: the file that made it, if one did, and the statement that brings it back. */
type Leaning = { readonly madeBy: string; readonly restore: string }

/** Drops the policies p for which the condition holds, and answers how each is brought back unless a file has made it again. */
const dropPolicies = async (client: Client, condition: string, values: readonly unknown[]): Promise<Leaning[]> => {
  const { rows } = await client.query<Leaning & { drop: string }>(
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
  const { rows } = await client.query<Leaning & { identity: string }>(
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

/** Drops objects, and answers the functions and policies which leaned on them and were dropped as well. */
const setAside = async (client: Client, objects: readonly MadeObject[]): Promise<Leaning[]> => {
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

/** `leaving` are the files of which something may have moved into this one: they change or go with this version, and are applied later. */
const applyPolicies = async (client: Client, file: SqlFile, leaving: readonly string[]): Promise<void> => {
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
  // one that moved here may be made before the file that made it is applied; which ones the file makes shows afterwards
  const aside = await dropPolicies(
    client,
    `obj_description(p.oid, 'pg_policy') in (select 'Made by ' || l from unnest($1::text[]) l) and strpos($2, p.polname) > 0`,
    [leaving, file.text],
  )
  const moved = await findMovedGrants(client, file, leaving)
  if (moved.length > 0) await takeGrants(client, moved)
  await run(client, file)
  await remember(client, file)
  await client.query(
    `insert into ops.grants (path, kind, identity, columns, grantee, privilege)
     select $1, a.*
       from (select w.kind, w.identity, w.columns, w.grantee, w.privilege from ops.acl_written w where w.written_by = pg_current_xact_id()::xid
             except select * from pg_temp.acl_before) a
     on conflict do nothing`,
    [file.path],
  )
  if (moved.length > 0) await keepGrants(client, file, moved)
  for (const { restore } of aside) await client.query(restore)
  await client.query(`
    do $mark$
    declare made record;
    begin
      for made in
        select p.polname, p.polrelid::regclass as relation from pg_catalog.pg_policy p
         where p.xmin = pg_current_xact_id()::xid
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
      await functionsLoaded(client)
      if (leaning.length > 0) throw new Error(`${path} is gone, but policies still use its functions`)
    })
  }
  return absent
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
