import type { Place } from '#server/database/cluster.ts'
import { dataOf } from '#server/database/database.ts'
import { type NamedTable, planNames } from '#server/graphql/naming.ts'
import type { Services } from '#server/services.ts'

/** Another definition may change between the reading of the names and their keeping. */
const tries = 3

/** Makes the names of a project's collections in GraphQL and keeps them, so that a name that was told once stays. */
export const keepNames = async (
  services: Pick<Services, 'database'>,
  place: Place,
  projectId: string,
): Promise<void> => {
  const claims = { caller: 'worker' as const, projectId }
  const call = (name: string, args: Record<string, unknown>) =>
    services.database.call(place, 'app_worker', claims, name, args)
  for (let n = 0; n < tries; n += 1) {
    const { tables, basis } = dataOf<{ tables: NamedTable[]; basis: string }>(await call('graphql_tables', {}))
    const names = Object.fromEntries(
      [...planNames(tables)].map(([name, { list, columns }]) => [
        name,
        { name: list, columns: Object.fromEntries([...columns].map(([column, { field }]) => [column, field])) },
      ]),
    )
    if (dataOf<boolean>(await call('graphql_names_keep', { names, basis }))) return
  }
}
