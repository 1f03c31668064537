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

/** How many in a database wait for a lock. */
const waitersIn = async (admin: pg.Client, database: string): Promise<number> => {
  const { rows } = await admin.query(
    `select count(*)::int as count from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`,
    [database],
  )
  return rows[0].count
}

/** Waits until somebody, or as many, in the project's database wait for a lock. */
export const untilBlocked = async (project: Project, many = 1): Promise<void> => {
  const admin = await connect({ connectionString: inject('dsn') })
  try {
    await expect.poll(() => waitersIn(admin, project.database), { interval: 10 }).toBeGreaterThanOrEqual(many)
  } finally {
    await admin.end()
  }
}

/**
 * Calls that really meet: what `statement` locks is held until each of them waits for it or has its answer, however long that takes on a
 * busy machine; then all go on together. Where some wait behind others outside of Postgres it is enough that no more of them come.
 */
export const meetingBehind = async <T>(
  database: string,
  statement: string,
  calls: () => readonly Promise<T>[],
): Promise<T[]> => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${database}`
  const holder = await connect({ connectionString: url.href })
  const admin = await connect({ connectionString: inject('dsn') })
  try {
    await holder.query(`begin; ${statement}`)
    const begun = calls()
    const answers = Promise.all(begun)
    let answered = 0
    for (const call of begun) call.finally(() => (answered += 1)).catch(() => undefined)
    let [before, quiet] = [0, 0]
    const isComplete = async () => {
      const waiting = await waitersIn(admin, database)
      if (waiting > 0 && waiting + answered >= begun.length) return true
      quiet = waiting > 0 && waiting === before ? quiet + 1 : 0
      before = waiting
      return quiet >= 40
    }
    await expect.poll(isComplete, { interval: 25, timeout: 30_000 }).toBe(true)
    await holder.query('commit')
    return await answers
  } finally {
    await Promise.all([holder.end(), admin.end()])
  }
}
