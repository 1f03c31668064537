import { appendFileSync } from 'node:fs'
import { afterAll, afterEach, expect, inject, onTestFinished } from 'vitest'
import type { Role } from '#server/database/cluster.ts'
import { controlName } from '#server/database/names.ts'
import type { Harness as Hooks, Running } from '#server/start.ts'
import { type Client, createClient, freshEmail } from '#test/support/client.ts'
import { metered } from '#test/support/cpu.ts'
import { isRelayed, problemOf } from '#test/support/declared.ts'
import { cheapPasswords, startTestServer, type TestServer } from '#test/support/server.ts'
import { drainTenant } from '#workers/drain.ts'
import { loadTasks } from '#workers/task.ts'

export { type Answer, type Client, createClient, freshEmail, freshIp } from '#test/support/client.ts'

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
  /** Hash passwords at the cost that a server of the product does. */
  readonly realPasswords?: boolean
  /** The outside world, as this test file wants it. */
  readonly providers?: Pick<Hooks, 'billing' | 'files' | 'media'>
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
  /** What ends before the harness and its databases do, such as another server; also where it was started within a test. */
  beforeStop(end: () => Promise<void>): void
  stop(): Promise<void>
}

const isInTest = () => {
  try {
    onTestFinished(() => undefined)
    return true
  } catch {
    return false
  }
}

/**
 * A server of this test file's own, with a control database of its own, on the run's Postgres. Call it at the top of a file:
 * it ends by itself, and fails a test that saw an answer which its route does not declare. Called within a test, it ends with that test.
 */
export const startHarness = (options: HarnessOptions = {}): Promise<Harness> => metered('start', () => start(options))

const start = async (options: HarnessOptions): Promise<Harness> => {
  let clock: Date | null = null
  const violations: string[] = []
  const observe = observeInto(violations)
  const server = await startTestServer(inject('base'), options.env ?? {}, {
    clock: () => clock,
    observe,
    ...(options.realPasswords ? {} : { passwordCost: cheapPasswords }),
    ...(options.sqlRoot ? { sqlRoot: options.sqlRoot } : {}),
    ...options.providers,
  })
  const { running, url, prefix, admin } = server
  if (options.work) await running.work(4)

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

  const project: Harness['project'] = (wanted = {}) => metered('projects', () => makeProject(wanted))
  const makeProject = async (wanted: { developer?: Developer; environment?: string }) => {
    const owning = wanted.developer ?? (await developer())
    const { environment } = wanted
    const made = await owning.post('/admin/projects', { name: 'test', ...(environment ? { environment } : {}) })
    const { project, api_keys: keys } = made.data
    // with workers in this process it is theirs to make
    if (options.work) await untilReady(owning, project.id)
    else {
      await server.makeReady(project.id, clock !== null)
      await running.services.fleet.provision(project.id)
    }
    return projectOn(server, owning, project.id, keys.client.key, keys.server.key)
  }

  const endings: (() => Promise<void>)[] = []
  const stopAll = () =>
    metered('stop', async () => {
      await Promise.all(endings.map((end) => end()))
      await server.stop()
    })
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= stopAll()
    return stopped
  }
  const checkAnswers = () => {
    const found = violations.splice(0)
    expect(found, 'answers that their routes do not declare').toEqual([])
  }
  if (isInTest()) {
    onTestFinished(async () => {
      await stop()
      checkAnswers()
    })
  } else {
    afterEach(checkAnswers)
    afterAll(stop)
  }

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
    beforeStop: (end) => void endings.push(end),
    control: async (text, values = []) => (await server.owner(controlName(prefix)).query(text, values)).rows,
    stop,
  }
}

/** What this process has told `seenFile` already. */
const seen = new Set<string>()

/** Notes which declared answers were seen, and those that are not declared. */
const observeInto = (violations: string[]): NonNullable<Hooks['observe']> => {
  const seenFile = inject('seenFile')
  return (route, area, status, body, headers) => {
    const problem = problemOf(route, area, status, body, headers)
    if (problem) violations.push(problem)
    const code =
      route.replies[status] || isRelayed(route, headers)
        ? '-'
        : (JSON.parse(body) as { error: { code: string } }).error.code
    const line = JSON.stringify({ route: `${route.method} ${route.path}`, status, code })
    if (seen.has(line)) return
    seen.add(line)
    appendFileSync(seenFile, `${line}\n`)
  }
}

const projectOn = (
  server: TestServer,
  developer: Developer,
  id: string,
  clientKey: string,
  serverKey: string,
): Project => {
  const { running, url, prefix } = server
  const client = createClient(url)
  const database = `${prefix}_${id.replaceAll('-', '')}`
  const app = client({ 'x-api-key': clientKey })
  const withServerKey = client({ 'x-api-key': serverKey })
  return {
    id,
    database,
    clientKey,
    serverKey,
    developer,
    admin: client(developer.headers, `/v1/admin/projects/${id}`),
    app,
    server: withServerKey,
    onBehalfOf: (userId) => withServerKey.with({ 'x-on-behalf-of': userId }),
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
    sql: async (text, values = []) => (await server.owner(database).query(text, values)).rows,
    as: (role, claims, text, values = []) => runAs(server, database, role, claims, text, values),
    async drain() {
      const { outbox } = await loadTasks()
      // to the end, however slow the machine is: nothing wakes a tenant again here
      await drainTenant(running.services, outbox, id, { turnMs: 120_000 })
    },
  }
}

const runAs = async (
  server: TestServer,
  database: string,
  role: Role,
  claims: Record<string, string>,
  text: string,
  values: unknown[],
) => {
  const login = await server.login(database, role).connect()
  let isBroken = true
  try {
    await login.query(`begin; set local role ${role}`)
    for (const [name, value] of Object.entries(claims))
      await login.query('select set_config($1, $2, true)', [name, value])
    const { rows } = await login.query(text, values)
    await login.query('commit')
    isBroken = false
    return rows
  } finally {
    login.release(isBroken)
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
