import pg from 'pg'
import { expect, inject } from 'vitest'
import { type Role, targetOf } from '#server/database/cluster.ts'
import { createSecrets } from '#server/secrets.ts'
import type { Project } from '#test/support/harness.ts'

export type OpenTransaction = {
  query<T extends pg.QueryResultRow = any>(text: string, values?: unknown[]): Promise<T[]>
  commit(): Promise<void>
  /** Ends the connection as a crash would, without a word. */
  kill(): Promise<void>
}

const connect = async (config: pg.ClientConfig) => {
  const client = new pg.Client(config)
  client.on('error', () => undefined)
  await client.connect()
  return client
}

/** As the login of a role, which need not be a superuser. */
const connectAs = (database: string, role: Role) => {
  const cluster = { id: 'test', dsn: inject('dsn'), socketDirectory: inject('socketDirectory') }
  const { host, port, user, password } = targetOf(cluster, database, role, createSecrets(inject('secretsKey')))
  return connect({ host, port, user, password, database })
}

/** A transaction that stays open beside the server's own, as a serving role under claims: what others must wait for. */
export const openTransaction = async (
  project: Project,
  role: Role,
  claims: Readonly<Record<string, string>>,
): Promise<OpenTransaction> => {
  const client = await connectAs(project.database, role)
  const { rows } = await client.query('select pg_backend_pid() as pid')
  await client.query('begin')
  for (const [name, value] of Object.entries(claims))
    await client.query('select set_config($1, $2, true)', [name, value])
  await client.query(`set local role ${role}`)
  return {
    query: async (text, values = []) => (await client.query(text, values)).rows,
    async commit() {
      await client.query('commit')
      await client.end()
    },
    async kill() {
      const admin = await connect({ connectionString: inject('dsn') })
      await admin.query('select pg_terminate_backend($1, 5000)', [rows[0].pid])
      await admin.end()
    },
  }
}

/** Waits until somebody in the project's database waits for a lock, or as many as `count`. */
export const untilBlocked = async (project: Project, count = 1): Promise<void> => {
  const admin = await connect({ connectionString: inject('dsn') })
  try {
    const waiting = async () => {
      const { rows } = await admin.query(
        `select count(*)::int as count from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`,
        [project.database],
      )
      return rows[0].count
    }
    await expect.poll(waiting, { interval: 10 }).toBeGreaterThanOrEqual(count)
  } finally {
    await admin.end()
  }
}
