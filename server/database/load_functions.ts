import type { Client } from 'pg'
import { remember, run } from '#server/database/apply.ts'
import type { DatabaseError } from '#server/database/failures.ts'
import { type SqlFile, stemOf } from '#server/database/files.ts'
import { applyPolicies, regrant } from '#server/database/load_policies.ts'
import { type MadeObject, setAside } from '#server/database/set_aside.ts'
import { inTransaction } from '#server/database/transactions.ts'

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
export const applyFirst = async (
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

export const objectsOf = async (client: Client, path: string): Promise<MadeObject[]> => {
  const { rows } = await client.query<MadeObject>('select kind, identity from ops.objects where path = $1', [path])
  return rows
}

/**
 * Functions that internal.definition_compile made of a definition, by the end of their comment. They belong to the row in internal.definitions, and
 * are no file's: they are compiled by the policy file that declares the row, and again whenever the compiler changes.
 */
const isCompiled = `coalesce(obj_description(p.oid, 'pg_proc') like '% Made by internal.definition_compile.', false)`

/** Drops what was compiled of definitions that no file declares any more. */
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
