import type { Client } from 'pg'
import { remember, run } from '#fleet/load/apply.ts'
import { dropWithDependents, type MadeObject } from '#fleet/load/dependents.ts'
import { type SqlFile, stemOf } from '#fleet/load/files.ts'
import { applyPolicies, regrant } from '#fleet/load/policies.ts'
import { inTransaction } from '#fleet/load/transactions.ts'
import type { DatabaseError } from '#server/database/failures.ts'

export const isSignatureChange = (
  error: unknown, // 42725: the former signature stands beside the new one, and a comment or a grant without arguments fits both
) => ['42P13', '2BP01', '42725'].includes((error as DatabaseError).code ?? '')

/** For example, a policy file refers to a function of a file that is applied later. */
export const isMissingFunction = (error: unknown) => (error as DatabaseError).code === '42883'

/** Other files of the upgrade: all policy files (`policies`), files that the new version no longer has (`absent`), and files from which a grant or policy may have moved (`leaving`). */
type Others = {
  readonly policies: readonly SqlFile[]
  readonly absent: readonly string[]
  readonly leaving: ReadonlySet<string>
}

/**
 * Applies one file, by itself if possible. If a signature or a result type changed, the objects of all files of its area, and what depends on them, are
 * dropped and created again in one transaction, because policies of an area refer to functions of any of its files. If that fails because a function of another area
 * is missing, all remaining files are applied in one transaction.
 */
export const applyFirst = async (
  client: Client,
  file: SqlFile,
  todo: readonly SqlFile[],
  { policies, absent, leaving }: Others,
): Promise<{ files: readonly SqlFile[]; result: FunctionsApplied }> => {
  const area = todo.filter((other) => stemOf(other.path) === stemOf(file.path))
  const apply = async (files: readonly SqlFile[], anew: boolean) => {
    const theirs = [...new Set(files.flatMap((one) => policiesFor(one, policies)))]
    // a function of a removed file may have moved into one of these with other arguments
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

/** Applies files, and the policy files of their areas if functions were dropped. `anew` first drops everything that the files created before. */
const applyFunctions = async (
  client: Client,
  files: readonly SqlFile[],
  policies: readonly SqlFile[],
  { anew, absent, leaving }: { anew: boolean } & Pick<Others, 'absent' | 'leaving'>,
): Promise<FunctionsApplied> => {
  const before = new Map<string, MadeObject[]>()
  for (const path of [...files.map((file) => file.path), ...absent]) before.set(path, await objectsOf(client, path))
  const leaning = anew ? await dropWithDependents(client, [...before.values()].flat()) : []
  let isNew = false
  let isLess = anew
  for (const [index, file] of files.entries()) {
    const had = before.get(file.path) ?? []
    const made = await applyFile(client, file, index > 0)
    const gone = had.filter((old) => !made.some((now) => now.kind === old.kind && now.identity === old.identity))
    if (!anew && gone.length > 0) leaning.push(...(await dropWithDependents(client, gone)))
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
    // policies of the files above were created again when the files were applied, if the files still define them
    const others = leaning.filter(({ madeBy }) => !policies.some(({ path }) => path === madeBy))
    for (const { restore } of others) await client.query(restore)
    return { refreshed: policies.map((policy) => policy.path), outdated: [] }
  }
  return { refreshed: [], outdated: isNew ? policies.map((policy) => policy.path) : [] }
}

/**
 * Generates the dispatcher of events from the present functions, and refreshes the plans of events, in the transaction that changed the functions. Only
 * databases of projects have these. `isReplayed`: the dispatcher was replayed with the functions, so only the plans are refreshed.
 */
export const functionsLoaded = (client: Client, isReplayed = false) =>
  client.query(
    `do $loaded$ begin
       if to_regprocedure('ops.functions_loaded(boolean)') is not null then perform ops.functions_loaded(${isReplayed}); end if;
     end $loaded$`,
  )

/** Runs a file, records the objects that it created, and returns them. `isLater`: other files ran in this transaction before. */
const applyFile = async (client: Client, file: SqlFile, isLater: boolean): Promise<MadeObject[]> => {
  const known = new Set(isLater ? (await madeHere(client)).map(keyOf) : [])
  await run(client, file)
  const made = (await madeHere(client)).filter((object) => !known.has(keyOf(object)))
  await remember(client, file)
  // an object moved here from another file: clear that file's hash, so that a version that moves the object back applies that file again
  await client.query(
    `update ops.files f set hash = ''
      where f.path <> $1
        and f.path in (select d.path
                         from ops.objects d
                         join json_to_recordset($2) as o (kind text, identity text) using (kind, identity))`,
    [file.path, JSON.stringify(made)],
  )
  // an object that moved here from another file belongs to this file from now on, regardless of which file is applied first
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

export const objectsOf = async (client: Client, path: string): Promise<MadeObject[]> => {
  const { rows } = await client.query<MadeObject>('select kind, identity from ops.objects where path = $1', [path])
  return rows
}

/**
 * Recognizes functions that internal.definition_compile generated, by the end of their comment. They belong to a row in internal.definitions and to no
 * file: the policy file that declares the row generates them, and so does every change of the compiler.
 */
const isCompiled = `coalesce(obj_description(p.oid, 'pg_proc') like '% Made by internal.definition_compile.', false)`

/** Drops generated functions of definitions that no file declares any more. */
export const dropUndeclared = (client: Client) =>
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

/** Functions and triggers whose catalog rows this transaction wrote: those that the file created or replaced. */
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
