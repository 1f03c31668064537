import type { Client } from 'pg'
import { type Signatures, signaturesOf } from '#fleet/checks/names.ts'
import { applyPlain, remember, run } from '#fleet/load/apply.ts'
import { dropWithDependents } from '#fleet/load/dependents.ts'
import type { Program, SqlFile } from '#fleet/load/files.ts'
import { loadFresh } from '#fleet/load/fresh.ts'
import {
  applyFirst,
  dropUndeclared,
  functionsLoaded,
  isMissingFunction,
  isSignatureChange,
  objectsOf,
} from '#fleet/load/functions.ts'
import { applyPolicies, CommentedPolicy, withdraw } from '#fleet/load/policies.ts'
import { inTransaction } from '#fleet/load/transactions.ts'

/**
 * Applies functions, policies and seeds whose content changed, one transaction a file. Objects that a file no longer
 * defines are dropped: ops.* and a comment on each policy record which file created a function, trigger, policy or grant.
 * A DBA's own objects have neither and are not changed.
 */
export const loadProgram = async (client: Client, program: Program): Promise<string[]> => {
  const known = await appliedFiles(client)
  if (![...known.keys()].some((path) => !path.startsWith('sql/') || path.startsWith('sql/seeds/'))) {
    // what fails here is tried file by file, which names the line of a mistake and finds an order
    const loaded = await loadFresh(client, program).catch((error) => {
      if (error instanceof CommentedPolicy) throw error
      return null
    })
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
  const known = await appliedFiles(client)
  const files = [...program.base, ...program.functions, ...program.policies, ...program.seeds]
  const changed = files.filter((file) => known.get(file.path) !== file.hash).map((file) => file.path)
  return [...changed, ...absentFiles(program, known)]
}

/**
 * Loads the functions that changed, checks what there is then, and undoes it: control is in use, and there is no draft of it. A file with a function whose signature
 * changes is left out, because others lean on it. So are the privileges that policy files give.
 */
export const tryFunctions = async (
  client: Client,
  program: Program,
  check: (client: Client, kind: Program['kind'], former: Signatures, isTrial: boolean) => Promise<void>,
): Promise<void> => {
  const known = await appliedFiles(client)
  const todo = program.functions.filter((file) => known.get(file.path) !== file.hash)
  if (todo.length === 0) return
  const former = await signaturesOf(client)
  await client.query(`begin; set local check_function_bodies = off; set local search_path = ''`)
  try {
    for (const file of todo) {
      await client.query('savepoint file')
      await run(client, file).catch(async (error) => {
        if (!isSignatureChange(error) && !isMissingFunction(error)) throw error
        await client.query('rollback to savepoint file')
      })
    }
    await check(client, program.kind, former, true)
  } finally {
    await client.query('rollback')
  }
}

/** sql/: idempotent, so it is simply run again when its content changed. */
export const loadBase = async (client: Client, program: Program): Promise<void> => {
  const known = await appliedFiles(client)
  if (program.base.every((file) => known.get(file.path) === file.hash)) return
  await inTransaction(client, async () => {
    for (const file of program.base) await run(client, file)
    for (const file of program.base) await remember(client, file)
    await client.query(movedToBase)
  })
}

/** A function that moved here from a file of functions goes no more when that file does. */
const movedToBase = `
  delete from ops.objects o
   where o.kind = 'function' and o.path not like 'sql/%'
     and to_regprocedure(o.identity) in (select p.oid from pg_catalog.pg_proc p where p.xmin = pg_current_xact_id()::xid)`

/** Hashes of the files applied here, by path; none where the loader has never been. */
const appliedFiles = async (client: Client): Promise<Map<string, string>> => {
  const { rows: found } = await client.query<{ exists: boolean }>(
    `select to_regclass('ops.files') is not null as exists`,
  )
  if (!found[0]?.exists) return new Map()
  const { rows } = await client.query<{ path: string; hash: string }>('select path, hash from ops.files')
  return new Map(rows.map((row) => [row.path, row.hash]))
}

const absentFiles = (program: Program, known: ReadonlyMap<string, string>): string[] => {
  const present = new Set(
    [...program.base, ...program.functions, ...program.policies, ...program.seeds].map((f) => f.path),
  )
  return [...known.keys()].filter((path) => !present.has(path))
}

/** Files that are gone take what they made with them, all at once: in any other way the order would matter in which they needed each other. */
const dropAbsent = async (client: Client, program: Program, known: Map<string, string>): Promise<string[]> => {
  const absent = absentFiles(program, known)
  if (absent.length === 0) return absent
  await inTransaction(client, async () => {
    for (const path of absent) await withdraw(client, path)
    const made = []
    for (const path of absent) made.push(...(await objectsOf(client, path)))
    const leaning = await dropWithDependents(client, made)
    await client.query('delete from ops.files where path = any ($1)', [absent])
    await functionsLoaded(client)
    if (leaning.length > 0)
      throw new Error(`${absent.join(', ')} is gone, but other functions or policies still use its functions`)
  })
  return absent
}
