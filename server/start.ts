import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { checkDatabase, refuseErrors } from '#server/checks/program.ts'
import type { Config } from '#server/config.ts'
import { adminConfig, type Cluster } from '#server/database/cluster.ts'
import { createDatabase, migrationPending, type Place } from '#server/database/database.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#server/database/embedded.ts'
import { existingHome } from '#server/database/embedded-folder.ts'
import { readProgram, root } from '#server/database/files.ts'
import { createFleet, type Fleet } from '#server/database/fleet.ts'
import { createNotifier } from '#server/database/notifier.ts'
import { type Check, controlName, type Programs, prepareInstallation } from '#server/database/prepare.ts'
import { logged, type Progress } from '#server/database/progress.ts'
import { createStatements } from '#server/database/statements.ts'
import { createWaker } from '#server/database/waker.ts'
import { watchTenants } from '#server/database/watch.ts'
import { StartError } from '#server/errors.ts'
import { createApp, type Observer } from '#server/http/app.ts'
import { loadAreas } from '#server/http/areas.ts'
import { createSessions } from '#server/http/callers.ts'
import { type CachedProject, createProjectCache } from '#server/http/project_cache.ts'
import { createRateLimiter } from '#server/http/rate_limiter.ts'
import type { Area, Route } from '#server/http/route.ts'
import { createTokens } from '#server/http/tokens.ts'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { type BillingProvider, createNoBilling } from '#server/providers/billing.ts'
import { createDomainChecks } from '#server/providers/domains.ts'
import { createIdentityProviders } from '#server/providers/identity.ts'
import { createMail } from '#server/providers/mail.ts'
import { createOutbound } from '#server/providers/outbound.ts'
import { createProjectFiles, type ProjectFiles } from '#server/providers/project_files.ts'
import { createSecrets, loadSecretsKey, type Secrets } from '#server/secrets.ts'
import type { Services } from '#server/services.ts'
import { createStopping } from '#server/stopping.ts'
import { startWorkers, type Workers } from '#workers/runner.ts'

/** Where the databases are: embedded, or a server of the operator's. */
export type Postgres = { readonly dsn: string; readonly socketDirectory: string | null; stop(): Promise<void> }

export type Foundation = {
  readonly config: Config
  readonly log: Logger
  readonly secrets: Secrets
  readonly postgres: Postgres
}

/** What only tests pass: their clock, their eyes, their SQL, their outside world. None of it can be reached by a request or the environment. */
export type Harness = {
  readonly clock?: () => Date | null
  readonly observe?: Observer
  readonly sqlRoot?: string
  /** Whoever checks the program afterwards and wants to name all that is wrong. */
  readonly isUnchecked?: boolean
  readonly billing?: BillingProvider
  readonly files?: ProjectFiles
}

export const embeddedPassword = (secrets: Secrets): string =>
  secrets.derive('embedded superuser', 24).toString('base64url')

/** Starts embedded Postgres, or takes the one of DATABASE_URL. */
export const startPostgres = async (config: Config, log: Logger): Promise<Foundation> => {
  const secrets = createSecrets(await loadSecretsKey(config.SECRETS_KEY, config.DATA_DIR))
  if (config.DATABASE_URL) {
    const dsn = config.DATABASE_URL
    return { config, log, secrets, postgres: { dsn, socketDirectory: null, stop: async () => undefined } }
  }
  const start = () =>
    startEmbeddedPostgres({
      dataDir: config.DATA_DIR,
      superuserPassword: embeddedPassword(secrets),
      log: (message) => log.info(message),
      maxConnections: 300,
    })
  return { config, log, secrets, postgres: supervise(await start(), start, log) }
}

/** As `startPostgres`, where there are data already. An operator's command makes none: it refuses, and writes nothing. */
export const startExistingPostgres = async (config: Config, log: Logger): Promise<Foundation> => {
  if (!config.DATABASE_URL && !(await existingHome(config.DATA_DIR))) throw new StartError(noDatabases)
  return startPostgres(config, log)
}

export const noDatabases = 'There are no databases here yet: run npm start, or npm run db:migrate.'

/** Embedded Postgres is ours to look after: one that was killed is started again, where it was. */
const supervise = (first: EmbeddedPostgres, start: () => Promise<EmbeddedPostgres>, log: Logger): Postgres => {
  let current = first
  let restarting: Promise<void> | undefined
  const restart = async (): Promise<void> => {
    log.warn({ pid: current.pid }, 'embedded Postgres is gone: starting it again')
    await start().then(
      (next) => {
        // else Postgres would look used for ever, and outlive the server
        current.release()
        current = next
        if (next.url !== first.url) log.error('embedded Postgres came back on another port: start the server again')
      },
      (error: Error) => log.error({ error: error.message }, 'embedded Postgres cannot be started'),
    )
    restarting = undefined
  }
  const timer = setInterval(() => {
    if (!restarting && !isAlive(current.pid)) restarting = restart()
  }, 500)
  timer.unref()
  return {
    dsn: first.url,
    socketDirectory: first.socketDirectory,
    async stop() {
      clearInterval(timer)
      await restarting
      await current.stop()
    },
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The program, and where control is. */
export type Installed = { readonly programs: Programs; readonly cluster: Cluster }

/** Brings the databases to this program, and answers where control is. */
export const prepare = async (
  foundation: Foundation,
  harness: Harness = {},
  progress: Progress = logged(foundation.log),
): Promise<Installed> => {
  const { config, log, secrets, postgres } = foundation
  const base = harness.sqlRoot ?? root
  const [control, tenant] = await Promise.all([readProgram('control', base), readProgram('tenant', base)])
  const programs = { control, tenant }
  const cluster = { id: '', dsn: postgres.dsn, socketDirectory: postgres.socketDirectory }
  const options = { log, progress, ...(harness.isUnchecked ? {} : { check: checkFor(base) }) }
  const { clusterId } = await prepareInstallation(cluster, config.DATABASE_PREFIX, programs, secrets, options)
  return { programs, cluster: { ...cluster, id: clusterId } }
}

/** Refuses a program whose routes and SQL do not fit together, before it reaches a project. */
export const checkFor =
  (base: string): Check =>
  async (client, kind) =>
    refuseErrors(await checkDatabase(client, kind, await loadAreas(), base))

export type Running = {
  readonly services: Services
  readonly areas: readonly Area[]
  readonly jobs: pg.Pool
  /** Serves HTTP; answers the port. */
  listen(): Promise<number>
  work(concurrency?: number): Promise<Workers>
  /**
   * Ends in order: no new requests, those under way and background work together, wake-ups, connections. What is under way gets
   * SHUTDOWN_SECONDS; then connections are reset, statements cancelled, and what workers hold handed back. Postgres is the caller's.
   */
  stop(): Promise<void>
  /** Ends the time that a stop gives. */
  endNow(): void
}

/** graphile-worker's connections, as the owner of its tables. */
const createJobsPool = (cluster: Cluster, database: string, log: Logger): pg.Pool => {
  const pool = new pg.Pool({ ...adminConfig(cluster, database), max: 14 })
  const lost = (error: Error) => log.warn({ error: error.message }, 'a connection of the job queue was lost')
  pool.on('error', lost)
  // a connection that is lent out when the server goes away would otherwise end the process
  pool.on('connect', (client) => client.on('error', lost))
  return pool
}

/** Makes everything that serves and works, and starts none of it. */
export const assemble = async (
  foundation: Foundation,
  { programs, cluster }: Installed,
  harness: Harness = {},
): Promise<Running> => {
  const { config, log, secrets } = foundation
  const areas = await loadAreas()
  const now = () => harness.clock?.() ?? new Date()
  const stopping = createStopping(config.SHUTDOWN_SECONDS)
  const tenants = createDatabase({
    secrets,
    limits: {
      total: config.DATABASE_CONNECTIONS,
      perTenant: config.DATABASE_CONNECTIONS_PER_TENANT,
      named: config.DATABASE_STATEMENTS === 'named',
    },
    timeoutMs: config.STATEMENT_TIMEOUT_MS,
    log,
    clock: () => harness.clock?.()?.toISOString() ?? null,
    isBehind: (place) => behind.has(place.database),
    onUnsealed: () => waker.seal(),
  })
  const database = watchTenants(tenants, (projectId) => fleet.confirm(projectId), log)
  const statements = createStatements(database)
  const behind = new Set<string>()
  const controlPlace: Place = { cluster, database: controlName(config.DATABASE_PREFIX), kind: 'control' }
  const jobs = createJobsPool(cluster, controlPlace.database, log)

  const sessions = createSessions()
  // the project cache asks the fleet where a cluster is, the fleet invalidates entries of the project cache
  let fleet: Fleet
  const projectCache = createProjectCache(database, controlPlace, (id) => fleet.clusterOf(id))
  const drop = (changed: string) => {
    projectCache.drop(changed)
    sessions.drop(changed)
    statements.drop(changed)
  }
  const notifier = createNotifier({ cluster, database: controlPlace.database }, log, drop, () => {
    projectCache.clear()
    sessions.clear()
  })
  fleet = createFleet({
    database,
    control: controlPlace,
    ownClusterId: cluster.id,
    prefix: config.DATABASE_PREFIX,
    programs,
    secrets,
    jobs,
    log,
    publish: (changed) => notifier.publish(changed),
    placeOf: async (projectId) => (await projectCache.byProject(projectId))?.place ?? null,
  })
  const waker = createWaker(jobs, log, async (ids) => {
    await database.call(controlPlace, 'control_worker', { caller: 'worker' }, 'tenants_written', { project_ids: ids })
  })
  const allowedCidrs = parseAllowedCidrs(config.WEBHOOK_ALLOWED_CIDRS)
  const outbound = createOutbound({
    allowedCidrs,
    ...(config.WEBHOOK_CA_FILE ? { caFile: config.WEBHOOK_CA_FILE } : {}),
  })

  const mail = createMail({
    smtpUrl: config.SMTP_URL,
    from: config.MAIL_FROM,
    folder: join(config.DATA_DIR, 'mail'),
    now,
    log,
    allowedCidrs,
  })

  const identity = createIdentityProviders({
    apple: { jwksUrl: config.APPLE_JWKS_URL, issuer: config.APPLE_ISSUER },
    google: { jwksUrl: config.GOOGLE_JWKS_URL, issuer: config.GOOGLE_ISSUER },
    now,
    log,
  })

  const areaByRoute = new Map<Route, Area>(areas.flatMap((area) => area.routes.map((route) => [route, area] as const)))
  const areaOf = (route: Route): Area => {
    const found = areaByRoute.get(route)
    if (!found) throw new Error(`${route.method} ${route.path} belongs to no area`)
    return found
  }
  const checkMigrated = (project: CachedProject, route: Route): void => {
    const { programs } = fleet
    if (project.contentHash === programs.tenant.contentHash) {
      if (project.place) behind.delete(project.place.database)
      return
    }
    if (project.place) behind.add(project.place.database)
    const needed = programs.tenant.newestOf(areaOf(route).stem)
    if (needed && project.schemaVersion < needed) throw migrationPending()
  }

  let publicUrl = config.PUBLIC_URL?.replace(/\/+$/, '') ?? `http://${config.HOST}:${config.PORT}`
  const services: Services = {
    config,
    get publicUrl() {
      return publicUrl
    },
    log,
    secrets,
    database,
    statements,
    control: controlPlace,
    fleet,
    projectCache,
    sessions,
    tokens: createTokens(secrets, now),
    rateLimiter: createRateLimiter(config.GENERAL_RATE_LIMITS),
    outbound,
    mail,
    domains: createDomainChecks({
      servers: config.DNS_SERVERS,
      siteHost: () => new URL(publicUrl).hostname,
      mailHost: () => config.MAIL_HOST ?? new URL(publicUrl).hostname,
    }),
    billing: harness.billing ?? createNoBilling(),
    files: harness.files ?? createProjectFiles(join(config.DATA_DIR, 'media')),
    identity,
    waker,
    notifier,
    stopping: stopping.signals,
    now,
    areas,
    areaOf,
    checkMigrated,
  }
  // made when it listens: a worker and the operator's commands serve nothing, and hundreds of routes take a second
  let app: ReturnType<typeof createApp> | undefined
  let workers: Workers | undefined
  let stopped: Promise<void> | undefined

  const stop = async (): Promise<void> => {
    cancelWhenOver(services)
    stopping.ask()
    await Promise.all([app?.close(), workers?.stop()])
    await waker.close()
    await notifier.close()
    await outbound.close()
    mail.close()
    await database.close()
    await jobs.end()
  }

  return {
    services,
    areas,
    jobs,
    async listen() {
      app = createApp({ areas, services, ...(harness.observe ? { observe: harness.observe } : {}) })
      // Fastify logs its addresses when it listens; the start announces them once (main.ts)
      app.log.level = 'warn'
      await app.listen({ host: config.HOST, port: config.PORT })
      app.log.level = log.level
      const address = app.server.address()
      const port = typeof address === 'object' && address ? address.port : config.PORT
      if (!config.PUBLIC_URL)
        publicUrl = `http://${config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST}:${port}`
      return port
    },
    async work(concurrency) {
      workers = await startWorkers(services, jobs, concurrency)
      void fleet
        .inspect()
        .catch((error: Error) => log.warn({ error: error.message }, 'the databases were not looked at'))
      return workers
    },
    endNow: () => stopping.end(),
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

/** At the end of a stop: what runs is cancelled at once, and later what has been found running for a second. */
const cancelWhenOver = ({ database, log, stopping }: Services): void => {
  const cancel = async () => {
    let cancelled = await database.cancel()
    for (let times = 0; times < 5; times += 1) {
      await sleep(500, undefined, { ref: false })
      cancelled += await database.cancel({ olderThanMs: 1000 })
    }
    if (cancelled > 0) log.warn({ cancelled }, 'the time to stop was over: statements were cancelled')
  }
  stopping.over.addEventListener('abort', () => void cancel(), { once: true })
}
