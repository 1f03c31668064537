import type { Client } from 'pg'
import { run } from '#server/database/apply.ts'
import { statementsOf } from '#server/database/delta.ts'
import type { DatabaseError } from '#server/database/failures.ts'
import type { Program, SqlFile } from '#server/database/files.ts'
import { loadProgram } from '#server/database/load.ts'
import { functionsLoaded } from '#server/database/load_functions.ts'
import { fingerprintHere, itemKey, type State } from '#server/database/state.ts'
import { type Managed, managedOf, readTarget, type Target } from '#server/database/target.ts'
import { inTransaction } from '#server/database/transactions.ts'
import { isUndisturbed, type Known, noteHere, noteLoaded, witnessHere } from '#server/database/witness.ts'

/** What brings databases that are in one state to a program. */
type Plan = {
  readonly statements: string
  /** Run as files: what they do depends on rows, such as a project's collections. */
  readonly seeds: readonly SqlFile[]
  readonly hasFunctions: boolean
  readonly fingerprint: string | null
  readonly counts: string
  readonly applied: readonly string[]
  /** Whether it has led to its fingerprint in a database: then, where nobody interferes, it does so in all that have the same one before. */
  isProven: boolean
  /** Writes so many rows of the catalog that the space of the former ones is worth finding. */
  readonly isLarge: boolean
}

/** A database before its migrations ran. */
export type Origin = Known & {
  /** What else decides how the database is brought to the program: its server, and the migrations that ran since. */
  readonly path: string
  readonly target?: TargetOf | undefined
}

/**
 * What databases with this fingerprint are brought to, where they are as the template before was; null for all others. It is read while `before`, what
 * the loader manages in such a database, is read too.
 */
export type TargetOf = (fingerprint: string, before: Promise<Managed>) => Promise<Target | null>

/** Loads programs into many databases, and works each change out once. */
export type Loader = {
  /**
   * Loads what changed, and answers the files applied. A database that is as the template before was is brought to the template by the difference
   * of their catalogs, in one transaction, which must end with the template's fingerprint. Of other databases the first with a fingerprint
   * is loaded file by file, and its difference is replayed in those with the same one. Whatever stands against a replay undoes it, and that database is
   * loaded file by file.
   */
  load(client: Client, program: Program, from: Origin): Promise<string[]>
}

/** Databases that somebody changed by hand each have a fingerprint of their own. */
const mostPlans = 20

type Worked = { readonly plan: Plan | null; readonly applied: readonly string[] }

export const createLoader = (): Loader => {
  const plans = new Map<string, Promise<Plan | null>>()

  const keep = (key: string, plan: Promise<Plan | null>) => {
    plans.set(key, plan)
    for (const oldest of plans.keys()) {
      if (plans.size <= mostPlans) break
      plans.delete(oldest)
    }
  }

  return {
    async load(client, program, from) {
      const key = `${program.contentHash} ${from.fingerprint} ${from.path}`
      for (;;) {
        const known = plans.get(key)
        if (!known) break
        const plan = await known.catch(() => undefined)
        // the database that was first has failed: this one is the first now
        if (plan === undefined) continue
        if (plan && (await replay(client, plan, from.since))) return [...plan.applied]
        return loadProgram(client, program)
      }
      const working = workOut(client, program, from)
      keep(
        key,
        working.then(
          ({ plan }) => plan,
          (error) => {
            plans.delete(key)
            throw error
          },
        ),
      )
      plans.get(key)?.catch(() => undefined)
      return [...(await working).applied]
    },
  }
}

/** Of the first database with a fingerprint: brings it to the program, and finds the plan for the others. */
const workOut = async (
  client: Client,
  program: Program,
  { fingerprint, since, target: targetOf }: Origin,
): Promise<Worked> => {
  const reading = managedOf(client)
  // the two are in databases of their own, and a server has more than one core; each is ended before an error of the other is thrown
  const [read, found] = await Promise.allSettled([reading, targetOf?.(fingerprint, reading)])
  if (read.status === 'rejected') throw read.reason
  if (found.status === 'rejected') throw found.reason
  const before = read.value
  if (found.value) {
    const plan = planOf(program, before, found.value)
    if (plan && (await replay(client, plan, since))) return { plan, applied: plan.applied }
  }
  const applied = await loadProgram(client, program)
  await noteLoaded(client)
  return { plan: planOf(program, before, await readTarget(client, before)), applied }
}

/** Null where the difference cannot be said in statements. */
const planOf = (program: Program, before: Managed, target: Target): Plan | null => {
  const statements = statementsOf({
    before: before.state,
    after: target.state,
    dependenciesBefore: before.dependencies,
    dependenciesAfter: target.dependencies,
    textOf: (identity) => target.texts.get(identity),
  })
  if (statements === null) return null
  const isChanged = (path: string) => {
    const key = itemKey('file', path)
    return before.state.get(key)?.definition !== target.state.get(key)?.definition
  }
  const gone = [...before.state.values()].filter(
    ({ kind, identity }) => kind === 'file' && !target.state.has(itemKey(kind, identity)),
  )
  const changed = [...program.functions, ...program.policies, ...program.seeds].filter(({ path }) => isChanged(path))
  return {
    statements,
    seeds: program.seeds.filter((seed) => changed.includes(seed)),
    hasFunctions: [...before.state.values(), ...target.state.values()].some(
      ({ kind, identity }) =>
        kind === 'function' &&
        before.state.get(itemKey(kind, identity))?.definition !== target.state.get(itemKey(kind, identity))?.definition,
    ),
    fingerprint: target.fingerprint,
    counts: target.counts,
    isProven: false,
    isLarge: changedDefinitions(before.state, target.state) > 50,
    applied: [...changed.map(({ path }) => path), ...gone.map(({ identity }) => identity)],
  }
}

const changedDefinitions = (before: State, after: State): number =>
  [...after].filter(
    ([key, { kind, definition }]) =>
      (kind === 'function' || kind === 'policy') && before.has(key) && before.get(key)?.definition !== definition,
  ).length

class Different extends Error {}

/** Whether the plan led where it should. If not, nothing was changed. A connection that is lost throws. */
const replay = async (client: Client, plan: Plan, since: string): Promise<boolean> => {
  try {
    await inTransaction(client, async () => {
      await client.query(plan.statements)
      if (plan.hasFunctions) await functionsLoaded(client, true)
      for (const file of plan.seeds) await run(client, file)
      const found = await witnessHere(client)
      const isSure = plan.isProven && found.counts === plan.counts && (await isUndisturbed(client, found, since))
      if (!isSure && (await fingerprintHere(client)) !== plan.fingerprint) throw new Different()
      if (plan.fingerprint !== null) await noteHere(client, { fingerprint: plan.fingerprint, witness: found.witness })
    })
  } catch (error) {
    // Postgres refused a statement, because of something that the fingerprint does not show
    if (error instanceof Different || (error as DatabaseError).code) return false
    throw error
  }
  plan.isProven = true
  if (plan.isLarge) await freeSpace(client)
  return true
}

/**
 * Lets the next version use the space of the rows that this one has replaced; autovacuum would come after minutes, and a database in which
 * nothing else happens would grow with each version. It takes no lock that a request waits for, and leaves out a table that is locked.
 */
const freeSpace = (client: Client) =>
  client.query(
    `vacuum (skip_locked, truncate false)
       pg_catalog.pg_proc, pg_catalog.pg_description, pg_catalog.pg_policy, pg_catalog.pg_depend, ops.files, ops.objects, ops.grants`,
  )
