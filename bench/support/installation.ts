import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { pino } from 'pino'
import { startPostgres } from '#fleet/postgres.ts'
import { readConfig } from '#server/config.ts'
import type { Target } from '#server/database/cluster.ts'
import { type Cluster, connectAdmin, targetOf } from '#server/database/cluster.ts'
import { tenantName } from '#server/database/names.ts'
import { createSecrets } from '#server/secrets.ts'
import {
  ask,
  createTestProject,
  endServer,
  type ServerProcess,
  startServer,
  temporaryFolder,
} from '#test/support/process.ts'
import type { CallerCommand } from './caller.ts'
import { type Child, startChild } from './child.ts'

/** An embedded Postgres of this run's own, as `npm start` would run it: durable, in a folder that goes when the run ends. */
export type Installation = {
  readonly dataDir: string
  readonly secretsKey: string
  readonly cluster: Cluster
  readonly postmaster: number
  readonly postgresVersion: string
  /** Starts the program on it, in a process of its own. */
  serve(env?: Record<string, string>): Promise<ServerProcess>
  end(): Promise<void>
}

export const install = async (): Promise<Installation> => {
  const dataDir = await temporaryFolder()
  const secretsKey = randomBytes(32).toString('base64')
  const environment = { DATA_DIR: dataDir, SECRETS_KEY: secretsKey, LOG_LEVEL: 'warn' }
  const { postgres } = await startPostgres(readConfig(environment), pino({ level: 'warn' }))
  const cluster = { id: 'bench', dsn: postgres.dsn, socketDirectory: postgres.socketDirectory }
  const { version, postmaster } = await identify(cluster)
  const servers: ServerProcess[] = []
  return {
    dataDir,
    secretsKey,
    cluster,
    postmaster,
    postgresVersion: version,
    async serve(env = {}) {
      const server = await startServer({ ...environment, ...env })
      servers.push(server)
      if (server.child.exitCode !== null) throw new Error(`the server has ended: ${server.output()}`)
      return server
    },
    async end() {
      for (const server of servers) await endServer(server)
      await postgres.stop()
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

const identify = async (cluster: Cluster): Promise<{ version: string; postmaster: number }> => {
  const admin = await connectAdmin(cluster, 'postgres', false)
  try {
    const { rows } = await admin.query<{ version: string; file: string }>(
      `select current_setting('server_version') as version, pg_read_file('postmaster.pid') as file`,
    )
    return { version: rows[0]?.version ?? '', postmaster: Number(rows[0]?.file.split('\n')[0]) }
  } finally {
    await admin.end()
  }
}

/** Runs one statement as the superuser. */
export const asAdmin = async <T extends Record<string, unknown>>(
  cluster: Cluster,
  database: string,
  text: string,
  values: unknown[] = [],
): Promise<T[]> => {
  const admin = await connectAdmin(cluster, database, false)
  try {
    return (await admin.query<T>(text, values)).rows
  } finally {
    await admin.end()
  }
}

export type User = {
  readonly userId: string
  readonly sessionId: string
  readonly headers: Readonly<Record<string, string>>
}

/** Signs an end user in, anonymously, and says what a call would claim of it. */
export const signIn = async (url: string, key: Readonly<Record<string, string>>): Promise<User> => {
  const { status, body } = await ask(url, 'POST', '/v1/client/auth/anonymous', {}, { ...key, ...address() })
  if (status >= 300) throw new Error(`sign-in answered ${status}: ${JSON.stringify(body)}`)
  const token = body.data.session_token as string
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { sid: string }
  return { userId: body.data.user.id, sessionId: claims.sid, headers: { ...key, authorization: `Bearer ${token}` } }
}

/** Sign-ups and sign-ins are limited per address: each comes from one of its own. */
export const address = () => ({ 'x-forwarded-for': `10.${randomBytes(3).join('.')}` })

export type Scenario = {
  readonly server: ServerProcess
  readonly projectId: string
  readonly database: string
  readonly users: readonly User[]
  /** As the pools of the program reach the tenant for end users. */
  readonly target: Target
  /** Switches interfaces of the project on. Returns the headers of its developer. */
  switchOn(switches: {
    readonly rest_enabled?: true
    readonly graphql_enabled?: true
  }): Promise<Readonly<Record<string, string>>>
  /** A process that makes database calls as these users. */
  caller(): Promise<Child>
}

/** A server with these settings, a ready project and signed-in users. */
export const createScenario = async (
  installation: Installation,
  users: number,
  env: Record<string, string> = {},
): Promise<Scenario> => {
  const { cluster, secretsKey } = installation
  const server = await installation.serve(env)
  const { projectId, key, developer } = await createTestProject(server.url)
  const signedIn: User[] = []
  for (let count = 0; count < users; count += 1) signedIn.push(await signIn(server.url, key))
  const database = tenantName('trellis', projectId)
  return {
    server,
    projectId,
    database,
    users: signedIn,
    target: targetOf(cluster, database, 'app_user', createSecrets(secretsKey)),
    async switchOn(switches) {
      const { status } = await ask(server.url, 'PATCH', `/v1/admin/projects/${projectId}`, switches, developer)
      if (status !== 200) throw new Error(`the interfaces stay off: ${status}`)
      return developer
    },
    async caller() {
      const child = startChild('caller.ts')
      const claims = signedIn.map(({ userId, sessionId }) => ({ userId, sessionId }))
      await child.ask({
        kind: 'begin',
        cluster,
        database,
        secretsKey,
        projectId,
        users: claims,
      } satisfies CallerCommand)
      return child
    },
  }
}
