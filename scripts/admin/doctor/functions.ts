import type { Client } from 'pg'
import { lineOf, sourcesOf } from '#fleet/checks/finding.ts'
import { checkFunctions, type Signatures, signaturesOf } from '#fleet/checks/names.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { controlName } from '#server/database/names.ts'
import { root } from '#server/root.ts'
import type { Run } from '../arguments.ts'
import { inBusiest } from './busiest.ts'
import { type Finding, fail, ok } from './findings.ts'

const check = 'functions'

/**
 * Functions that fail when they are called, as they name what is not there: those of control and of the project that was written to last, and of other
 * projects those that differ, which somebody has changed by hand. To look at all functions of a database takes seconds.
 */
export const functionChecks = async (run: Run): Promise<Finding[]> => {
  const { cluster, foundation } = run
  const sources = sourcesOf(root)
  const wrong: string[] = []
  const look = async (client: Client, where: string, known?: Signatures) => {
    for (const found of await checkFunctions(client, sources, known)) wrong.push(`in ${where}, ${lineOf(found)}`)
  }
  const control = await connectAdmin(cluster, controlName(foundation.config.DATABASE_PREFIX))
  await look(control, 'control').finally(() => control.end())
  let known: Signatures | undefined
  const count = await inBusiest(run, async (client, project) => {
    await look(client, `project ${project}`, known)
    known ??= await signaturesOf(client)
  })
  if (wrong.length === 0) return [ok(check, `those of control and of ${count} projects name nothing that is not there`)]
  const more = wrong.length > 3 ? `; and ${wrong.length - 3} more` : ''
  return [
    fail(
      check,
      `${wrong.slice(0, 3).join('; ')}${more}`,
      'Calls of them answer 500. Correct their files and run npm run db:reload; what was changed by hand, in its database.',
    ),
  ]
}
