import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { runScript } from '#test/support/admin.ts'
import { ask, type createTestProject, startServer, temporaryFolder } from '#test/support/process.ts'

type Project = Awaited<ReturnType<typeof createTestProject>>

/** A server on an embedded Postgres of its own, and another embedded Postgres that control knows as "second". */
export const startTwoServers = async (env: Record<string, string> = {}) => {
  const dataDir = await temporaryFolder()
  const secretsKey = randomBytes(32).toString('base64')
  const settings = { DATA_DIR: dataDir, SECRETS_KEY: secretsKey, DATABASE_CONNECTIONS_PER_TENANT: '20' }
  const server = await startServer({ ...settings, ...env })
  const other: EmbeddedPostgres = await startEmbeddedPostgres({
    dataDir: join(await temporaryFolder(), 'second'),
    superuserPassword: 'second',
    log: () => undefined,
  })
  const cluster = (...args: string[]) =>
    runScript('scripts/database.ts', ['cluster', ...args], { ...settings, CLUSTER_URL: other.url })
  const added = await cluster('add', 'second', '10')
  if (added.code !== 0) throw new Error(added.err)
  const own = new URL((await runScript('scripts/database.ts', ['url'], settings)).out.trim())
  own.searchParams.delete('options')
  const sql = async <T extends object = any>(
    where: 'own' | 'second',
    database: string,
    text: string,
    values: unknown[] = [],
  ) => {
    const url = new URL(where === 'own' ? own : other.url)
    url.pathname = `/${database}`
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    return (await client.query<T>(text, values).finally(() => client.end())).rows
  }
  return { server, settings, other, cluster, sql, secretsKey, dataDir }
}

export const databaseOf = ({ projectId }: Project) => `trellis_${projectId.replaceAll('-', '')}`

export type Sent = { readonly id: string; readonly status: number }

/**
 * Events with ids of their own, by several callers at once until it is stopped. `pause` is the longest time between two answers that were not 503, and what
 * was refused is sent again with the same id, as an app does.
 */
export const startLoad = (url: string, project: Project, callers = 4) => {
  const accepted: string[] = []
  const statuses = new Map<string, number>()
  const refusals: { status: number; retryAfter: string | null; reason: unknown }[] = []
  let isRunning = true
  let last = performance.now()
  let pauseMs = 0
  const send = async () => {
    while (isRunning) {
      const id = randomUUID()
      for (let isAnswered = false; !isAnswered; ) {
        const answer = await fetch(`${url}/v1/client/events`, {
          method: 'POST',
          headers: { ...project.user, 'content-type': 'application/json' },
          body: JSON.stringify({ events: [{ id, event_name: 'moved' }] }),
        })
        const body = (await answer.json()) as { error?: { code?: string; details?: { reason?: string } } }
        statuses.set(String(answer.status), (statuses.get(String(answer.status)) ?? 0) + 1)
        if (answer.status === 201) {
          accepted.push(id)
          pauseMs = Math.max(pauseMs, performance.now() - last)
          last = performance.now()
          isAnswered = true
        } else {
          refusals.push({
            status: answer.status,
            retryAfter: answer.headers.get('retry-after'),
            reason: body.error?.details?.reason ?? body.error?.code,
          })
          await new Promise((resolve) => setTimeout(resolve, 20))
          if (!isRunning) return
        }
      }
    }
  }
  const ended = Promise.allSettled(Array.from({ length: callers }, send))
  return {
    accepted,
    statuses,
    refusals,
    get pauseMs() {
      return pauseMs
    },
    async stop() {
      isRunning = false
      for (const result of await ended) if (result.status === 'rejected') throw result.reason
    },
  }
}

export const me = (url: string, project: Project) => ask(url, 'GET', '/v1/client/users/me', undefined, project.user)
