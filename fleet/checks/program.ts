import type { Client } from 'pg'
import { checkDefiners } from '#fleet/checks/definers.ts'
import { type Finding, lineOf, sourcesOf } from '#fleet/checks/finding.ts'
import { checkFunctions, type Signatures } from '#fleet/checks/names.ts'
import { checkPolicyRules } from '#fleet/checks/policies.ts'
import { checkRoutes } from '#fleet/checks/routes.ts'
import { checkBodies, checkPolicies, checkTables } from '#fleet/checks/sql.ts'
import { StartError } from '#server/errors.ts'
import type { Area } from '#server/http/route.ts'
import { root } from '#server/root.ts'

export { lineOf } from '#fleet/checks/finding.ts'

type CheckOptions = {
  readonly base?: string
  /** Leaves out warnings that take time to find. */
  readonly isQuick?: boolean
  /** The functions that were there before: only what may have become wrong since is looked at. Null: none of their bodies is. */
  readonly former?: Signatures | null
  /** Only functions were loaded, and policies are not yet: privileges are not looked at. */
  readonly isTrial?: boolean
}

/** What requests would find wrong with this database, which holds the files of `base`: said before a request does. */
export const checkDatabase = async (
  client: Client,
  kind: 'control' | 'tenant',
  areas: readonly Area[],
  { base = root, isQuick = false, former, isTrial = false }: CheckOptions = {},
): Promise<Finding[]> => {
  const sources = sourcesOf(base)
  const errors = [
    ...(await checkRoutes(client, kind, areas, sources, { isTrial })),
    ...(await checkTables(client, kind, sources)),
    ...(former === null ? [] : await checkFunctions(client, sources, former)),
  ]
  const found = isTrial ? errors : [...errors, ...(await checkPolicyRules(client, kind, sources))]
  if (isQuick) return found
  return [
    ...found,
    ...(await checkPolicies(client, kind, sources)),
    ...(await checkBodies(client, kind, sources)),
    ...(await checkDefiners(client, kind, sources)),
  ]
}

/** Refuses a program under which requests would fail. What may be meant is for `npm run check:sql` alone. */
export const refuseErrors = (findings: readonly Finding[]): void => {
  const errors = findings.filter(({ severity }) => severity === 'error')
  if (errors.length > 0)
    throw new StartError(['The program does not fit together:', ...errors.map(lineOf)].join('\n  '))
}
