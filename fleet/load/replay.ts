import type { Client } from 'pg'
import { run } from '#fleet/load/apply.ts'
import { checksumHere, isUndisturbed, type Known, noteHere, noteLoaded } from '#fleet/load/checksum.ts'
import { statementsOf } from '#fleet/load/difference.ts'
import type { Program, SqlFile } from '#fleet/load/files.ts'
import { functionsLoaded } from '#fleet/load/functions.ts'
import { loadProgram } from '#fleet/load/load.ts'
import { fingerprintHere, itemKey, type State } from '#fleet/load/state.ts'
import { type Managed, managedOf, readTarget, type Target, type Upgrade } from '#fleet/load/target.ts'
import { inTransaction } from '#fleet/load/transactions.ts'
import type { DatabaseError } from '#server/database/failures.ts'

/** How to upgrade databases that are in one known state to a program. */
type Plan = {
  readonly statements: string
  /** Run as files in each database, because their effect depends on its rows, such as a project's collections. */
  readonly seeds: readonly SqlFile[]
  readonly hasFunctions: boolean
  readonly fingerprint: string | null
  readonly counts: string
  readonly applied: readonly string[]
  /** Whether it has produced its fingerprint in one database. Then it does so in every database with the same fingerprint before, unless somebody interferes. */
  isProven: boolean
  /** Whether it replaces so many rows of the catalog that a vacuum afterwards is worth its time. */
  readonly isLarge: boolean
}

/** The state of a database before its migrations ran. */
export type Origin = Known & {
  /** What else a plan depends on: the server, and the migrations that ran since. */
  readonly path: string
  readonly target?: TargetOf | undefined
}

/**
 * The target of databases with this fingerprint, if it is the fingerprint of the previous template; null otherwise. `before` reads the state of such a
 * database, where it is not known already; it may be called at any time, and reads once.
 */
export type TargetOf = (
  fingerprint: string,
  before: () => Promise<Managed>,
) => Promise<Pick<Upgrade, 'before' | 'target'> | null>

/** Loads programs into many databases, and computes each difference once. */
export type Loader = {
  /**
   * Loads what changed, and returns the paths of the applied files. A database that equals the previous template is upgraded by the difference between
   * its catalog and the template's, in one transaction that must end with the template's fingerprint. Of the other databases, the first with each fingerprint
   * is loaded file by file, and its difference is replayed in the others with the same fingerprint. A replay that fails is rolled back, and the database is
   * loaded file by file.
   */
  load(client: Client, program: Program, from: Origin): Promise<string[]>
}

/** Plans kept at a time: each database that somebody changed by hand has a fingerprint, and so a plan, of its own. */
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
        // the first database failed: this one takes its place
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

/** Upgrades the first database with a fingerprint, and finds the plan for the others. */
const workOut = async (
  client: Client,
  program: Program,
  { fingerprint, since, target: targetOf }: Origin,
): Promise<Worked> => {
  let reading: Promise<Managed> | undefined
  const read = () => {
    reading ??= managedOf(client)
    return reading
  }
  const ended = () =>
    reading?.then(
      () => undefined,
      () => undefined,
    )
  // two databases may be read in parallel; both reads end before an error of either is thrown
  const found = await Promise.resolve(targetOf?.(fingerprint, read)).finally(ended)
  const before = found?.before ?? (await read())
  if (found) {
    const plan = planOf(program, before, found.target)
    if (plan && (await replay(client, plan, since))) return { plan, applied: plan.applied }
  }
  const applied = await loadProgram(client, program)
  await noteLoaded(client)
  return { plan: planOf(program, before, await readTarget(client, before)), applied }
}

/** Null where the difference cannot be expressed as statements. */
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
  const gone = [...before.state]
    .filter(([key, { kind }]) => kind === 'file' && !target.state.has(key))
    .map(([, item]) => item)
  const changed = [...program.functions, ...program.policies, ...program.seeds].filter(({ path }) => isChanged(path))
  return {
    statements,
    seeds: program.seeds.filter((seed) => changed.includes(seed)),
    hasFunctions: [...before.state, ...target.state].some(
      ([key, { kind }]) =>
        kind === 'function' && before.state.get(key)?.definition !== target.state.get(key)?.definition,
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

/** Returns whether the plan produced its fingerprint. If not, the transaction was rolled back. Throws if the connection is lost. */
const replay = async (client: Client, plan: Plan, since: string): Promise<boolean> => {
  try {
    await inTransaction(client, async () => {
      await client.query(plan.statements)
      if (plan.hasFunctions) await functionsLoaded(client, true)
      for (const file of plan.seeds) await run(client, file)
      const found = await checksumHere(client)
      const isSure = plan.isProven && found.counts === plan.counts && (await isUndisturbed(client, found, since))
      if (!isSure && (await fingerprintHere(client)) !== plan.fingerprint) throw new Different()
      if (plan.fingerprint !== null) await noteHere(client, { fingerprint: plan.fingerprint, checksum: found.checksum })
    })
  } catch (error) {
    // Postgres refused a statement, because of an object that the fingerprint does not cover
    if (error instanceof Different || (error as DatabaseError).code) return false
    throw error
  }
  plan.isProven = true
  if (plan.isLarge) await freeSpace(client)
  return true
}

/**
 * Vacuums the tables of the catalog that an upgrade rewrote, so that the next one uses their free space: autovacuum comes only after minutes, and a database
 * without other activity would grow with each version. Requests do not wait for its locks, and a table that is locked is skipped.
 */
const freeSpace = (client: Client) =>
  client.query(
    `vacuum (skip_locked, truncate false)
       pg_catalog.pg_proc, pg_catalog.pg_description, pg_catalog.pg_policy, pg_catalog.pg_depend, ops.files, ops.objects, ops.grants`,
  )
