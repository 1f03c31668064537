import type { Client } from 'pg'
import { changedFunctions, statementsOf } from '#server/database/delta.ts'
import type { DatabaseError } from '#server/database/failures.ts'
import type { Program, SqlFile } from '#server/database/files.ts'
import { functionsLoaded, inTransaction, loadProgram, run } from '#server/database/load.ts'
import {
  dependenciesOf,
  fingerprintHere,
  fingerprintOf,
  functionTexts,
  itemKey,
  stateOf,
} from '#server/database/state.ts'

/** What loading a program changed in one database, for others that were in the same state. */
type Plan = {
  readonly statements: string
  /** Run as files: what they do depends on rows, such as a project's collections. */
  readonly seeds: readonly SqlFile[]
  readonly fingerprint: string | null
  readonly applied: readonly string[]
}

/** Loads programs into many databases, and works each change out once. */
export type Loader = {
  /**
   * Loads what changed, in a database whose fingerprint was `from` before its migrations ran; answers the files applied. The first database of a
   * fingerprint is loaded file by file. In the others its difference is replayed in one transaction, which must end with the same fingerprint;
   * whatever stands against that is undone, and the database is loaded file by file as well.
   */
  load(client: Client, program: Program, from: string): Promise<string[]>
}

/** Databases that somebody changed by hand each have a fingerprint of their own. */
const mostPlans = 20

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
      const key = `${program.contentHash} ${from}`
      for (;;) {
        const known = plans.get(key)
        if (!known) break
        const plan = await known.catch(() => undefined)
        // the database that was first has failed: this one is the first now
        if (plan === undefined) continue
        if (plan && (await replay(client, plan))) return [...plan.applied]
        return loadProgram(client, program)
      }
      const learning = learn(client, program)
      keep(
        key,
        learning.then(
          ({ plan }) => plan,
          (error) => {
            plans.delete(key)
            throw error
          },
        ),
      )
      plans.get(key)?.catch(() => undefined)
      return (await learning).applied
    },
  }
}

/** Loads file by file, and notes the difference. */
const learn = async (client: Client, program: Program): Promise<{ plan: Plan | null; applied: string[] }> => {
  const before = await stateOf(client)
  const dependenciesBefore = await dependenciesOf(client)
  const applied = await loadProgram(client, program)
  const after = await stateOf(client)
  const dependenciesAfter = await dependenciesOf(client)
  const texts = await functionTexts(client, changedFunctions(before, after, dependenciesBefore))
  const statements = statementsOf({
    before,
    after,
    dependenciesBefore,
    dependenciesAfter,
    textOf: (identity) => texts.get(identity),
  })
  if (statements === null) return { plan: null, applied }
  const seeds = program.seeds.filter(
    ({ path }) => before.get(itemKey('file', path))?.definition !== after.get(itemKey('file', path))?.definition,
  )
  return { plan: { statements, seeds, fingerprint: await fingerprintOf(client), applied }, applied }
}

class Different extends Error {}

/** Whether the plan led where it should. If not, nothing was changed. A connection that is lost throws. */
const replay = async (client: Client, plan: Plan): Promise<boolean> => {
  try {
    await inTransaction(client, async () => {
      await client.query(plan.statements)
      await functionsLoaded(client, true)
      for (const file of plan.seeds) await run(client, file)
      if ((await fingerprintHere(client)) !== plan.fingerprint) throw new Different()
    })
    return true
  } catch (error) {
    // Postgres refused a statement, because of something that the fingerprint does not show
    if (error instanceof Different || (error as DatabaseError).code) return false
    throw error
  }
}
