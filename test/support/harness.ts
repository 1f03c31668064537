import { randomBytes, randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, afterEach, expect, inject } from 'vitest'
import { readConfig } from '#server/config.ts'
import { connectAdmin, maintenanceDatabase, type Role, targetOf } from '#server/database/cluster.ts'
import { controlName, templateName } from '#server/database/prepare.ts'
import { createSecrets } from '#server/secrets.ts'
import { assemble, type Harness as Hooks, prepare, type Running } from '#server/start.ts'
import { problemOf } from '#test/support/declared.ts'
import { drainTenant } from '#workers/drain.ts'
import { loadTasks } from '#workers/task.ts'

export type Answer<T = any> = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body, its `data`, and its `error`. */
  readonly body: any
  readonly data: T
  readonly error: { code: string; message: string; details?: any } | undefined
}

export type Client = {
  readonly headers: Record<string, string>
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  put(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  patch(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  delete(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  with(headers: Record<string, string>): Client
}

export type User = Client & {
  readonly id: string
  readonly sessionToken: string
  readonly refreshToken: string
  readonly data: any
}

export type Project = {
  readonly id: string
  readonly database: string
  readonly clientKey: string
  readonly serverKey: string
  readonly developer: Developer
  /** `/admin/projects/<id>` in front of each path. */
  readonly admin: Client
  /** The client key alone. */
  readonly app: Client
  readonly server: Client
  onBehalfOf(userId: string): Client
  /** Signs a new end user in, anonymously. */
  user(): Promise<User>
  /** SQL in the project's database as the owner of everything. */
  sql<T extends Record<string, unknown> = any>(text: string, values?: unknown[]): Promise<T[]>
  /** SQL as one of the serving roles, under claims, in a transaction of its own. */
  as<T extends Record<string, unknown> = any>(
    role: Role,
    claims: Record<string, string>,
    text: string,
    values?: unknown[],
  ): Promise<T[]>
  /** Runs what is due in the outbox now, by the passed clock. */
  drain(): Promise<void>
}

export type Developer = Client & {
  readonly id: string
  readonly email: string
  readonly accessToken: string
  readonly refreshToken: string
}

export type HarnessOptions = {
  /** Environment variables of this server, over the test's own. */
  readonly env?: Record<string, string>
  /** Start workers in this process. Without them tests drain by hand. */
  readonly work?: boolean
  readonly sqlRoot?: string
  /** The outside world, as this test file wants it. */
  readonly providers?: Pick<Hooks, 'billing' | 'files'>
}

export type Harness = {
  readonly running: Running
  readonly url: string
  readonly anyone: Client
  readonly prefix: string
  developer(): Promise<Developer>
  /** A new session of a developer who has lost theirs. */
  signIn(developer: Developer): Promise<Developer>
  project(options?: { developer?: Developer; environment?: string }): Promise<Project>
  /** Moves the clock that requests see; null is the real one. */
  setTime(at: Date | string | null): void
  advance(seconds: number): void
  now(): Date
  control<T extends Record<string, unknown> = any>(text: string, values?: unknown[]): Promise<T[]>
  /** Ends a connection by its `processID`, as an administrator does: logins may not. */
  endConnection(client: object): Promise<void>
  stop(): Promise<void>
}

/** A fresh address each time, so that limits per address meet only the tests that are about them. */
export const freshIp = () => `10.${randomBytes(3).join('.')}`
export const freshEmail = () => `dev-${randomUUID()}@example.org`

/** Requests to the server at `url`: as JSON, each from an address of its own. */
export const createClient = (url: string) => {
  const client = (headers: Record<string, string>, base = '/v1'): Client => {
    const request: Client['request'] = async (method, path, body, more = {}) => {
      const response = await fetch(url + (path.startsWith('//') ? path.slice(1) : base + path), {
        method,
        headers: {
          'x-forwarded-for': freshIp(),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
          ...more,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await response.text()
      let parsed: any
      try {
        parsed = JSON.parse(text)
      } catch {
        parsed = undefined
      }
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: parsed,
        data: parsed?.data,
        error: parsed?.error,
      }
    }
    return {
      headers,
      request,
      get: (path, more) => request('GET', path, undefined, more),
      post: (path, body = {}, more = undefined) => request('POST', path, body, more),
      put: (path, body = {}, more = undefined) => request('PUT', path, body, more),
      patch: (path, body = {}, more = undefined) => request('PATCH', path, body, more),
      delete: (path, body, more) => request('DELETE', path, body, more),
      with: (more) => client({ ...headers, ...more }, base),
    }
  }
  return client
}

/**
 * A server of this test file's own, with a control database of its own, on the run's Postgres. Call it at the top of a file:
 * it ends by itself, and fails a test that saw an answer which its route does not declare.
 */
export const startHarness = async (options: HarnessOptions = {}): Promise<Harness> => {
  const dsn = inject('dsn')
  const prefix = `t${randomBytes(5).toString('hex')}`
  const secretsKey = inject('secretsKey')
  const config = readConfig({
    DATABASE_URL: dsn,
    SECRETS_KEY: secretsKey,
    DATABASE_PREFIX: prefix,
    DATA_DIR: join(tmpdir(), `trellis-${prefix}`),
    PORT: '0',
    LOG_LEVEL: 'warn',
    TRUST_PROXY: 'true',
    GENERAL_RATE_LIMITS: 'off',
    DATABASE_STATEMENTS: process.env['DATABASE_STATEMENTS'],
    ...options.env,
  })
  const secrets = createSecrets(secretsKey)
  const postgres = { dsn, socketDirectory: inject('socketDirectory'), stop: async () => undefined }
  const cluster = { id: 'test', dsn, socketDirectory: postgres.socketDirectory }
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  await admin.query(
    `create database "${controlName(prefix)}" owner trellis_owner template "${controlName('trellis_base')}"`,
  )
  await admin.query(
    `create database "${templateName(prefix)}" owner trellis_owner template "${templateName('trellis_base')}"`,
  )
  await admin.query(`alter database "${templateName(prefix)}" allow_connections false`)

  let clock: Date | null = null
  const violations: string[] = []
  const seenFile = inject('seenFile')
  const log = pino({ level: config.LOG_LEVEL })
  const foundation = { config, log, secrets, postgres }
  const harness = {
    clock: () => clock,
    observe: (
      route: Parameters<typeof problemOf>[0],
      area: Parameters<typeof problemOf>[1],
      status: number,
      body: string,
      headers: Record<string, unknown>,
    ) => {
      const problem = problemOf(route, area, status, body, headers)
      if (problem) violations.push(problem)
      const code = route.replies[status] ? '-' : (JSON.parse(body) as { error: { code: string } }).error.code
      appendFileSync(seenFile, `${JSON.stringify({ route: `${route.method} ${route.path}`, status, code })}\n`)
    },
    ...(options.sqlRoot ? { sqlRoot: options.sqlRoot } : {}),
    ...options.providers,
  }
  const running = await assemble(foundation, await prepare(foundation, harness), harness)
  const port = await running.listen()
  if (options.work) await running.work(4)
  const url = `http://127.0.0.1:${port}`

  const owner = new Map<string, pg.Pool>()
  const ownerPool = (database: string): pg.Pool => {
    let pool = owner.get(database)
    if (!pool) {
      const url = new URL(dsn)
      url.pathname = `/${database}`
      pool = new pg.Pool({ connectionString: url.href, options: '-c role=trellis_owner', max: 4 })
      pool.on('error', () => undefined)
      owner.set(database, pool)
    }
    return pool
  }

  const client = createClient(url)
  const anyone = client({})

  const developerOf = async (path: string, email: string): Promise<Developer> => {
    const { data } = await anyone.post(path, { email, password: 'a long passphrase' })
    return {
      ...client({ authorization: `Bearer ${data.access_token}` }),
      id: data.developer.id,
      email,
      accessToken: data.access_token,
      refreshToken: data.refresh_token,
    }
  }
  const developer = () => developerOf('/auth/developer/signup', freshEmail())
  const signIn = ({ email }: Developer) => developerOf('/auth/developer/login', email)

  const project: Harness['project'] = async (wanted = {}) => {
    const owning = wanted.developer ?? (await developer())
    const made = await owning.post('/admin/projects', {
      name: 'test',
      ...(wanted.environment ? { environment: wanted.environment } : {}),
    })
    const { id } = made.data.project
    // with workers in this process it is theirs to make
    if (options.work) await untilReady(owning, id)
    else await running.services.fleet.provision(id)
    const database = `${prefix}_${id.replaceAll('-', '')}`
    const clientKey = made.data.api_keys.client.key
    const serverKey = made.data.api_keys.server.key
    const app = client({ 'x-api-key': clientKey })
    const server = client({ 'x-api-key': serverKey })
    return {
      id,
      database,
      clientKey,
      serverKey,
      developer: owning,
      admin: client(owning.headers, `/v1/admin/projects/${id}`),
      app,
      server,
      onBehalfOf: (userId) => server.with({ 'x-on-behalf-of': userId }),
      async user() {
        const { data } = await app.post('/client/auth/anonymous')
        return {
          ...app.with({ authorization: `Bearer ${data.session_token}` }),
          id: data.user.id,
          sessionToken: data.session_token,
          refreshToken: data.refresh_token,
          data: data.user,
        }
      },
      sql: async (text, values = []) => (await ownerPool(database).query(text, values)).rows,
      as: (role, claims, text, values = []) => runAs(database, role, claims, text, values),
      async drain() {
        const { outbox } = await loadTasks()
        // to the end, however slow the machine is: nothing wakes a tenant again here
        await drainTenant(running.services, outbox, id, { turnMs: 120_000 })
      },
    }
  }

  const runAs = async (
    database: string,
    role: Role,
    claims: Record<string, string>,
    text: string,
    values: unknown[],
  ) => {
    const target = targetOf(cluster, database, role, secrets)
    const login = new pg.Client({
      host: target.host,
      port: target.port,
      database,
      user: target.user,
      password: target.password,
    })
    await login.connect()
    try {
      await login.query(`begin; set local role ${role}`)
      for (const [name, value] of Object.entries(claims))
        await login.query('select set_config($1, $2, true)', [name, value])
      const { rows } = await login.query(text, values)
      await login.query('commit')
      return rows
    } finally {
      await login.end()
    }
  }

  let stopped = false
  const stop = async () => {
    if (stopped) return
    stopped = true
    await running.stop()
    for (const pool of owner.values()) await pool.end()
    const { rows } = await admin.query<{ datname: string }>(`select datname from pg_database where datname like $1`, [
      `${prefix}\\_%`,
    ])
    for (const { datname } of rows)
      await admin.query(`drop database if exists "${datname}" with (force)`).catch(() => undefined)
    await admin.end()
  }
  afterEach(() => {
    const found = violations.splice(0)
    expect(found, 'answers that their routes do not declare').toEqual([])
  })
  afterAll(stop)

  return {
    running,
    url,
    anyone,
    prefix,
    developer,
    signIn,
    project,
    setTime(at) {
      clock = at === null ? null : new Date(at)
    },
    advance(seconds) {
      clock = new Date((clock ?? new Date()).getTime() + seconds * 1000)
    },
    now: () => clock ?? new Date(),
    async endConnection(client) {
      await admin.query('select pg_terminate_backend($1)', [(client as { processID?: number }).processID])
    },
    control: async (text, values = []) => (await ownerPool(controlName(prefix)).query(text, values)).rows,
    stop,
  }
}

const untilReady = async (owner: Client, projectId: string): Promise<void> => {
  for (;;) {
    const { data } = await owner.get(`/admin/projects/${projectId}/provisioning-status`)
    if (data.status === 'ready') return
    if (data.status === 'failed') throw new Error(`provisioning failed: ${JSON.stringify(data.error)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
