import type { Client } from 'pg'
import { whereIs } from '#fleet/rollout.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import type { Run } from '../arguments.ts'

/** At most so many projects are opened, those that were written to last. */
const looked = 20

/** Works on the database of each of them, in that order; one that cannot be reached is left to the checks of servers. Answers how many there are. */
export const inBusiest = async (
  { control, cluster, foundation }: Run,
  work: (client: Client, project: string) => Promise<void>,
): Promise<number> => {
  const { config, secrets } = foundation
  const { rows } = await control.query<{ project_id: string }>(
    `select t.project_id from app.tenants t join app.projects p on p.id = t.project_id and p.deleted_at is null
      where t.status = 'ready' and t.hold is null order by t.last_written_at desc limit $1`,
    [looked],
  )
  for (const { project_id: project } of rows) {
    const place = await whereIs(cluster, config.DATABASE_PREFIX, project, secrets)
    const own = place.dsn === cluster.dsn ? cluster : { id: '', dsn: place.dsn }
    const client = await connectAdmin(own, place.database).catch(() => null)
    if (client) await work(client, project).finally(() => client.end())
  }
  return rows.length
}
