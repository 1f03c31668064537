import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { createFleet, type Fleet } from '#fleet/fleet.ts'
import type { Foundation } from '#fleet/postgres.ts'
import { type Installed, type OwnProgram, prepare } from '#fleet/prepare.ts'
import { devicePage } from '#server/accounts/device_page.ts'
import { invitePage } from '#server/accounts/invite_page.ts'
import { createPasswords, type PasswordCost } from '#server/accounts/passwords.ts'
import { createStatements } from '#server/collections/statements.ts'
import { consolePages } from '#server/console/console.ts'
import { welcome } from '#server/console/welcome.ts'
import type { Place } from '#server/database/cluster.ts'
import { adminConfig, type Cluster } from '#server/database/cluster.ts'
import { createDatabase, migrationPending } from '#server/database/database.ts'
import { cutWhenMoved, followHosts } from '#server/database/hosts.ts'
import { controlName } from '#server/database/names.ts'
import { createNotifier } from '#server/database/notifier.ts'
import { followReplica } from '#server/database/replica.ts'
import { createWaker } from '#server/database/waker.ts'
import { watchTenants } from '#server/database/watch.ts'
import { createSourceMaps } from '#server/diagnostics/source_maps.ts'
import { graphiql } from '#server/graphql/graphiql.ts'
import { createGraphQL } from '#server/graphql/graphql.ts'
import { createApp, type Observer } from '#server/http/app.ts'
import { loadAreas } from '#server/http/areas.ts'
import { type CachedProject, createProjectCache } from '#server/http/project_cache.ts'
import { createRateLimiter } from '#server/http/rate_limiter.ts'
import type { Area, Route } from '#server/http/route.ts'
import { createSessions } from '#server/http/sessions.ts'
import { createTokens } from '#server/http/tokens.ts'
import { createMedia, type Media } from '#server/media/media.ts'
import { servePublicMedia } from '#server/media/public.ts'
import { serveMedia } from '#server/media/serve.ts'
import { createIssuers } from '#server/oauth/clients.ts'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { readPrices } from '#server/providers/ai/prices.ts'
import { type BillingProvider, loadBilling } from '#server/providers/billing.ts'
import { createDomainChecks } from '#server/providers/domains.ts'
import { createIdentityProviders } from '#server/providers/identity.ts'
import { createMail } from '#server/providers/mail.ts'
import { createOutbound } from '#server/providers/outbound.ts'
import { tracedOutbound } from '#server/providers/outbound_traced.ts'
import type { ProjectFiles } from '#server/providers/project_files.ts'
import { createUpstream } from '#server/providers/upstream.ts'
import { announcePublished, createRealtime, type Realtime } from '#server/realtime/realtime.ts'
import { serveAuth } from '#server/rest/auth.ts'
import { serveRedirects } from '#server/rest/auth_redirects.ts'
import { serveBroadcasts } from '#server/rest/broadcasts.ts'
import { restArea } from '#server/rest/caller.ts'
import { createRestProcesses } from '#server/rest/processes.ts'
import { serveChannels } from '#server/rest/realtime.ts'
import { serveRest } from '#server/rest/serve.ts'
import { serveStorage } from '#server/rest/storage/serve.ts'
import type { Services } from '#server/services.ts'
import { createSqlQueries } from '#server/sql/queries.ts'
import { createStopping } from '#server/stopping.ts'
import { serveMetrics } from '#server/telemetry/serve.ts'
import { createTelemetry } from '#server/telemetry/telemetry.ts'
import { createTraffic } from '#server/traffic.ts'
import { startWorkers, type Workers } from '#workers/runner.ts'

/** What only tests pass: their clock, their eyes, their SQL, their outside world. None of it can be reached by a request or the environment. */
export type Harness = OwnProgram & {
  readonly clock?: () => Date | null
  readonly observe?: Observer
  readonly billing?: BillingProvider
  readonly files?: ProjectFiles
  /** Stands in for the storage, or watches it. */
  readonly media?: (media: Media) => Media
  /** Less than a real one: a hash costs as much CPU as the rest of a test. */
  readonly passwordCost?: PasswordCost
}

export type Starting = {
  readonly running: Running
  /** Rejects where the databases cannot be brought to this program; `running` is stopped by then. */
  readonly prepared: Promise<Running>
}

/**
 * Brings the databases to this program, and makes what serves them: already while the template is being built, which leaves a core idle. A new
 * installation has no projects, so it may serve before its template is there: /health says so, and provisioning waits for the workers, which wait for
 * `prepared`. Nothing listens or works yet.
 */
export const prepareAndAssemble = async (foundation: Foundation): Promise<Starting> => {
  let early: Promise<Running> | undefined
  const opened = Promise.withResolvers<Running>()
  const onControl = (installed: Installed, isNew: boolean) => {
    early = assemble(foundation, installed).then(async (running) => {
      await running.makeRoutes()
      return running
    })
    // `prepared` awaits it; until then an error must not go unhandled
    early.then(isNew ? opened.resolve : undefined, () => undefined)
  }
  const prepareAll = async (): Promise<Running> => {
    try {
      const installed = await prepare(foundation, {}, { onControl })
      return await (early ?? assemble(foundation, installed))
    } catch (error) {
      const running = await early?.catch(() => undefined)
      await running?.stop()
      throw error
    }
  }
  const prepared = prepareAll()
  return { running: await Promise.race([opened.promise, prepared]), prepared }
}

export type Running = {
  readonly services: Services
  readonly areas: readonly Area[]
  readonly jobs: pg.Pool
  /** Makes the HTTP application, which does not listen yet: hundreds of routes take a part of a second. */
  makeRoutes(): Promise<void>
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
  // a connection that is made later goes to the host that is the primary then
  class Following extends pg.Client {
    constructor(config: pg.ClientConfig = {}) {
      super({ ...config, ...adminConfig(cluster, database), keepAlive: true })
      cutWhenMoved(this)
    }
  }
  const pool = new pg.Pool({ ...adminConfig(cluster, database), max: 15, Client: Following })
  const lost = (error: Error) => log.warn({ error: error.message }, 'a connection of the job queue was lost')
  pool.on('error', lost)
  // a connection that is lent out when the server goes away would otherwise end the process
  pool.on('connect', (client) => client.on('error', lost))
  return pool
}

/** Makes everything that serves and works, and starts none of it. */
export const assemble = async (
  foundation: Foundation,
  { programs, cluster, upgrade }: Installed,
  harness: Harness = {},
): Promise<Running> => {
  const { config, log, secrets } = foundation
  const areas = await loadAreas()
  const billing = harness.billing ?? (await loadBilling(config.BILLING_MODULE, () => services.publicUrl))
  const now = () => harness.clock?.() ?? new Date()
  const stopping = createStopping(config.SHUTDOWN_SECONDS)
  const clock = () => harness.clock?.()?.toISOString() ?? null
  const telemetry = await createTelemetry(config, log)
  const hosts = followHosts(log)
  const replica = config.DATABASE_REPLICA_URL
    ? followReplica({
        dsn: config.DATABASE_REPLICA_URL,
        primary: cluster.dsn,
        mostLagSeconds: config.DATABASE_REPLICA_LAG_SECONDS,
        log,
      })
    : undefined
  const tenants = createDatabase({
    secrets,
    measures: telemetry.measures,
    limits: {
      total: config.DATABASE_CONNECTIONS,
      perTenant: config.DATABASE_CONNECTIONS_PER_TENANT,
      named: config.DATABASE_STATEMENTS === 'named',
    },
    timeoutMs: config.STATEMENT_TIMEOUT_MS,
    log,
    clock,
    isBehind: (place) => behind.has(place.database),
    onUnsealed: () => waker.seal(),
    replica,
  })
  const watched = watchTenants(tenants, (projectId) => fleet.confirm(projectId), log)
  const database = announcePublished(watched, (projectId) => realtime.published(projectId))
  const statements = createStatements(database, config.STATEMENT_CACHE_MB * 1_048_576)
  const behind = new Set<string>()
  const controlPlace: Place = { cluster, database: controlName(config.DATABASE_PREFIX), kind: 'control' }
  const jobs = createJobsPool(cluster, controlPlace.database, log)

  const sessions = createSessions()
  const graphql = createGraphQL({ log })
  const sqlQueries = createSqlQueries({ mode: config.SQL_QUERIES, secrets })
  const tokens = createTokens(secrets, now)
  const realtime: Realtime = createRealtime({
    database,
    control: controlPlace,
    projectCache: () => projectCache,
    tokens,
    notifier: () => notifier,
    log,
    now,
  })
  const rest = createRestProcesses({ config, database, secrets, log, clock })
  // the project cache asks the fleet where a cluster is, the fleet invalidates entries of the project cache
  let fleet: Fleet
  const projectCache = createProjectCache(database, controlPlace, (id) => fleet.clusterOf(id))
  const drop = (changed: string) => {
    projectCache.drop(changed)
    sessions.drop(changed)
    statements.drop(changed)
    realtime.drop(changed)
    graphql.drop(changed)
    rest.drop(changed)
  }
  const notifier = createNotifier({ cluster, database: controlPlace.database, secrets }, log, drop, () => {
    projectCache.clear()
    sessions.clear()
    realtime.checkAll()
    rest.checkAll()
  })
  fleet = createFleet({
    database,
    control: controlPlace,
    ownClusterId: cluster.id,
    upgrade,
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
  const caFile = config.WEBHOOK_CA_FILE
  const outbound = tracedOutbound(createOutbound({ allowedCidrs, ...(caFile ? { caFile } : {}) }))

  const upstream = createUpstream({ urls: config, log, measures: telemetry.measures })

  const mail = createMail({
    measures: telemetry.measures,
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

  const issuers = createIssuers(outbound, now)

  const areaByRoute = new Map<Route, Area>(
    [...areas, restArea].flatMap((area) => area.routes.map((route) => [route, area] as const)),
  )
  const areaOf = (route: Route): Area => {
    const found = areaByRoute.get(route)
    if (!found) throw new Error(`${route.method} ${route.path} belongs to no area`)
    return found
  }
  const checkMigrated = (project: CachedProject, route: Route): void => {
    const { programs } = fleet
    if (project.place && project.isBehind) behind.add(project.place.database)
    else if (project.place) behind.delete(project.place.database)
    if (project.contentHash === programs.tenant.contentHash) return
    // some routes of the REST access are of no area, and need no migration of one
    const stem = areaByRoute.get(route)?.stem
    const needed = stem === undefined ? undefined : programs.tenant.newestOf(stem)
    if (needed && project.schemaVersion < needed) throw migrationPending()
  }

  const ownMedia = createMedia({ config, secrets, log, publicUrl: () => publicUrl, now })
  const media = harness.media?.(ownMedia) ?? ownMedia
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
    tokens,
    passwords: createPasswords(harness.passwordCost),
    rateLimiter: createRateLimiter(config.GENERAL_RATE_LIMITS),
    outbound,
    upstream,
    aiPrices: readPrices(config.AI_PRICES_FILE),
    mail,
    domains: createDomainChecks({
      servers: config.DNS_SERVERS,
      siteHost: () => new URL(publicUrl).hostname,
      mailHost: () => config.MAIL_HOST ?? new URL(publicUrl).hostname,
    }),
    billing,
    traffic: createTraffic({ database, control: controlPlace, now, log }),
    files: harness.files ?? media.storage.files,
    media,
    sourceMaps: createSourceMaps(),
    identity,
    issuers,
    waker,
    notifier,
    realtime,
    graphql,
    sqlQueries,
    rest,
    telemetry,
    stopping: stopping.signals,
    now,
    areas,
    areaOf,
    checkMigrated,
  }
  telemetry.observe({
    database,
    control: controlPlace,
    maxConnections: config.DATABASE_CONNECTIONS,
    caches: () => ({ ...sessions.caches(), ...projectCache.caches() }),
    contentHash: () => fleet.programs.tenant.contentHash,
    placeOf: (projectId) => fleet.placeOf(projectId),
    log,
  })
  // made for a server alone: a worker and the operator's commands serve nothing
  let app: ReturnType<typeof createApp> | undefined
  let workers: Promise<Workers> | undefined
  let stopped: Promise<void> | undefined

  /** Also those that are just starting: the job queue's connections must outlive that. */
  const stopWorkers = async () => {
    const started = await workers?.catch(() => undefined)
    await started?.stop()
  }

  const stop = async (): Promise<void> => {
    cancelWhenOver(services)
    stopping.ask()
    await Promise.all([app?.close(), realtime.stop(), stopWorkers()])
    await telemetry.close()
    await services.traffic.close()
    await Promise.all([graphql.close(), sqlQueries.close()])
    await rest.stop()
    await waker.close()
    await notifier.close()
    await outbound.close()
    await upstream.close()
    mail.close()
    await Promise.all([media.close(), services.sourceMaps.close()])
    await Promise.all([hosts.close(), replica?.close()])
    await database.close()
    await jobs.end()
  }

  const makeApp = () => {
    if (!app) {
      app = createApp({ areas, services, ...(harness.observe ? { observe: harness.observe } : {}) })
      void app.register(devicePage)
      void app.register(invitePage)
      void app.register(consolePages, { services })
      void app.register(welcome, { services })
      void app.register(serveMedia(services))
      void app.register(servePublicMedia(services))
      void app.register(graphiql)
      void app.register(serveRest(services))
      void app.register(serveMetrics(services))
      void app.register(serveAuth(services))
      void app.register(serveRedirects(services))
      void app.register(serveStorage(services))
      void app.register(serveChannels(services))
      void app.register(serveBroadcasts(services))
    }
    return app
  }

  return {
    services,
    areas,
    jobs,
    async makeRoutes() {
      await makeApp().ready()
    },
    async listen() {
      const app = makeApp()
      // Fastify logs its addresses when it listens; the start announces them once (main.ts)
      app.log.level = 'warn'
      await Promise.all([app.listen({ host: config.HOST, port: config.PORT }), telemetry.listen()])
      app.log.level = log.level
      const address = app.server.address()
      const port = typeof address === 'object' && address ? address.port : config.PORT
      if (!config.PUBLIC_URL)
        publicUrl = `http://${config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST}:${port}`
      return port
    },
    async work(concurrency) {
      const begin = async () => {
        await telemetry.listen()
        return startWorkers(services, jobs, concurrency)
      }
      workers = begin()
      const started = await workers
      void fleet
        .inspect()
        .catch((error: Error) => log.warn({ error: error.message }, 'the databases were not looked at'))
      return started
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
