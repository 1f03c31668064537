import type { Client } from 'pg'
import { type Finding, lineOf, sourcesOf } from '#server/checks/finding.ts'
import { checkRoutes } from '#server/checks/routes.ts'
import { checkBodies, checkPolicies, checkSyntax, checkTables } from '#server/checks/sql.ts'
import { root } from '#server/database/files.ts'
import { StartError } from '#server/errors.ts'
import type { Area } from '#server/http/route.ts'

export { lineOf } from '#server/checks/finding.ts'

/**
 * What requests would find wrong with this database, which holds the files of `base`: said before a request does. `errorsOnly` leaves out what
 * is only ever a warning, and the time that it takes.
 */
export const checkDatabase = async (
  client: Client,
  kind: 'control' | 'tenant',
  areas: readonly Area[],
  { base = root, errorsOnly = false }: { readonly base?: string; readonly errorsOnly?: boolean } = {},
): Promise<Finding[]> => {
  const sources = sourcesOf(base)
  const errors = [...(await checkRoutes(client, kind, areas, sources)), ...(await checkTables(client, kind, sources))]
  if (errorsOnly) return errors
  return [
    ...errors,
    ...(await checkSyntax(client, sources)),
    ...(await checkPolicies(client, kind, sources)),
    ...(await checkBodies(client, kind, sources)),
  ]
}

/** Refuses a program under which requests would fail. What may be meant is for `npm run check:sql` alone. */
export const refuseErrors = (findings: readonly Finding[]): void => {
  const errors = findings.filter(({ severity }) => severity === 'error')
  if (errors.length > 0)
    throw new StartError(['The program does not fit together:', ...errors.map(lineOf)].join('\n  '))
}
