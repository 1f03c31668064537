import type pg from 'pg'
import type { Logger } from 'pino'
import { bootstrapRoles } from '#fleet/cluster.ts'
import { type Check, checked, noteRestored, type Programs } from '#fleet/installation.ts'
import type { Program } from '#fleet/load/files.ts'
import { tryFunctions } from '#fleet/load/load.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { withClusterLock } from '#fleet/locks.ts'
import { isLockedDown, repairPrivileges, restoredAmong, type Wrong, wrongPrivileges } from '#fleet/privileges.ts'
import { type Progress, timed } from '#fleet/progress.ts'
import { buildDraft, publishDraft } from '#fleet/templates.ts'
import { type Cluster, connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { controlName, templateName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'
import type { Secrets } from '#server/secrets.ts'

/** A ready tenant as control knows it. */
export type Tenant = { readonly projectId: string; readonly database: string; readonly schemaVersion: string }

export type Failure = { readonly database: string; readonly message: string }

export type Rollout = { readonly done: number; readonly failures: readonly Failure[] }

const withControl = async <T>(
  cluster: Cluster,
  prefix: string,
  work: (control: pg.Client) => Promise<T>,
): Promise<T> => {
  const control = await connectAdmin(cluster, controlName(prefix))
  try {
    return await work(control)
  } finally {
    await control.end()
  }
}

/** Every tenant that is ready, those written to lately first; `except` leaves out those that run that program already. */
export const readyTenants = (cluster: Cluster, prefix: string, except = ''): Promise<Tenant[]> =>
  withControl(cluster, prefix, async (control) => {
    const { rows } = await control.query<Tenant>(
      `select t.project_id as "projectId", t.database_name as database, t.schema_version as "schemaVersion"
         from app.tenants t
         join app.projects p on p.id = t.project_id and p.deleted_at is null
        where t.status = 'ready' and t.content_hash <> $1
        order by t.last_written_at desc, t.project_id`,
      [except],
    )
    return rows
  })

type RollOutOptions = { readonly parallel?: number; readonly progress?: Progress }

/** Updates a few tenants at a time, independently: a tenant that fails is reported and does not block others. */
export const rollOut = async (
  tenants: readonly Tenant[],
  migrate: (tenant: Tenant) => Promise<void>,
  { parallel = 4, progress = () => undefined }: RollOutOptions = {},
): Promise<Rollout> => {
  const failures: Failure[] = []
  const waiting = tenants.values()
  let done = 0
  const work = async () => {
    for (const { database, ...tenant } of waiting) {
      const began = performance.now()
      const error = await migrate({ database, ...tenant }).then(
        () => undefined,
        ({ message }: Error) => message,
      )
      if (error !== undefined) failures.push({ database, message: error })
      done += 1
      const step = { database, seconds: (performance.now() - began) / 1000, done, of: tenants.length }
      progress(error === undefined ? { ...step, action: 'updated' } : { ...step, action: 'failed', error })
    }
  }
  await Promise.all(Array.from({ length: parallel }, work))
  return { done, failures }
}

/** The same program without its migrations: what a reload applies. */
export const withoutMigrations = (program: Program): Program => ({ ...program, migrations: [] })

/** Of a tenant that lacks tables which the functions may speak of. */
export const needsMigrating = (what: string): StartError =>
  new StartError(`${what} has migrations to come: run npm run db:migrate.`)

type ReloadOptions = {
  readonly log?: Pick<Logger, 'warn'>
  readonly progress?: Progress
  readonly check?: Check
}

/**
 * Functions, policies, seeds and sql/ of control and of the template, without migrations. The template is closed to connections
 * and is therefore built anew, and checked before it takes the place of the former; the functions of control are tried and undone before. Answers the cluster's id, whether each of the two
 * changed, and what tenants need that follow at once.
 */
export const reloadInstallation = (
  cluster: Cluster,
  prefix: string,
  programs: Programs,
  { log = { warn: () => undefined }, progress = () => undefined, check = async () => undefined }: ReloadOptions = {},
) =>
  withClusterLock(cluster, async (admin) => {
    const restored = restoredAmong(await repairPrivileges(cluster, admin, prefix, log))
    const own = await withControl(cluster, prefix, (control) => checkReloadable(control, programs))
    const isCurrent = own.contentHash === programs.tenant.contentHash
    const control = controlName(prefix)
    const template = templateName(prefix)
    const reloadControl = async () => {
      const applied = await timed(
        progress,
        control,
        'updated',
        () => migrateDatabase(cluster, control, withoutMigrations(programs.control)),
        ({ length }) => length > 0,
      )
      await checked(cluster, control, 'control', check)
      await withControl(cluster, prefix, (connected) => noteRestored(connected, own.id, restored))
      return applied.length > 0
    }
    const copying = Promise.withResolvers<void>()
    const buildTemplate = () =>
      timed(progress, template, 'built', () =>
        buildDraft(cluster, admin, template, programs.tenant, {
          check: (draft, former) => checked(cluster, draft, 'tenant', check, former),
          onCopying: copying.resolve,
          isRolledOut: true,
        }),
      )
    const building = isCurrent ? Promise.resolve(null) : buildTemplate()
    // the check of control reads the modules of all routes, for which there is time while Postgres copies
    const trying = Promise.race([copying.promise, building]).then(() =>
      withControl(cluster, prefix, (client) => tryFunctions(client, programs.control, check)),
    )
    // each is ended before an error of the other is thrown
    const [tried, built] = await Promise.allSettled([trying, building])
    if (tried.status === 'rejected') throw tried.reason
    if (built.status === 'rejected') throw built.reason
    // both are known to be right: from here on something changes
    const isReloaded = await reloadControl()
    if (!isCurrent) {
      await publishDraft(admin, template)
      await withControl(cluster, prefix, (connected) =>
        connected.query('update app.templates set content_hash = $2, built_at = now() where cluster_id = $1', [
          own.id,
          programs.tenant.contentHash,
        ]),
      )
    }
    return { clusterId: own.id, control: isReloaded, template: !isCurrent, upgrade: built.value }
  })

const checkReloadable = async (
  control: pg.Client,
  { control: ours, tenant }: Programs,
): Promise<{ readonly id: string; readonly contentHash: string }> => {
  const { rows: applied } = await control.query<{ version: string }>('select version from ops.schema_migrations')
  const known = new Set(applied.map((row) => row.version))
  if (ours.migrations.some((version) => !known.has(version))) throw needsMigrating('Control')
  const { rows } = await control.query<{ id: string; schemaVersion: string; contentHash: string }>(
    `select c.id, t.schema_version as "schemaVersion", t.content_hash as "contentHash"
       from app.clusters c join app.templates t on t.cluster_id = c.id where c.name = 'own'`,
  )
  if (!rows[0] || rows[0].schemaVersion < tenant.schemaVersion) throw needsMigrating('The template')
  return rows[0]
}

/** A server for databases as it answers now; `error` where it does not. */
export type ClusterStatus = {
  readonly name: string
  readonly error: string | null
  /** Databases of projects that control takes for ready and that are not there. */
  readonly missing: readonly { project_id: string; database: string }[]
  readonly wrong: readonly Wrong[]
}

export type FleetStatus = {
  readonly clusters: readonly ClusterStatus[]
  /** Whether logins may not execute what lock_down.sql takes from them. */
  readonly isLockedDown: boolean
  readonly control: { readonly version: string; readonly pending: number; readonly changed: number }
  readonly template: { readonly version: string; readonly isCurrent: boolean } | null
  readonly queued: number
  readonly tenants: {
    readonly tenants: number
    readonly ready: number
    readonly provisioning: number
    readonly not_made: number
    readonly gone: readonly { project_id: string; database: string }[]
    readonly current: number
    readonly behind: number
    readonly failed: readonly { project_id: string; database: string; error: string }[]
    readonly versions: Readonly<Record<string, number>>
  }
}

type PlacedTenant = { project_id: string; database: string; cluster_id: string }

const statusOf = async (
  cluster: Cluster,
  prefix: string,
  name: string,
  ready: readonly PlacedTenant[],
): Promise<ClusterStatus> => {
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    const { rows } = await admin.query<{ datname: string }>('select datname from pg_catalog.pg_database')
    const there = new Set(rows.map(({ datname }) => datname))
    const missing = ready
      .filter((tenant) => !there.has(tenant.database))
      .map(({ project_id, database }) => ({ project_id, database }))
    return { name, error: null, missing, wrong: await wrongPrivileges(admin, prefix) }
  } finally {
    await admin.end()
  }
}

/** Asks every server itself: what control notes may be a minute old. */
const clusterStatuses = async (
  own: Cluster,
  prefix: string,
  control: pg.Client,
  secrets: Pick<Secrets, 'decrypt'>,
): Promise<ClusterStatus[]> => {
  const { rows: clusters } = await control.query<{ id: string; name: string; dsn_sealed: string | null }>(
    'select id, name, dsn_sealed from app.clusters order by created_at, id',
  )
  const { rows: ready } = await control.query<PlacedTenant>(
    `select t.project_id, t.database_name as database, t.cluster_id
       from app.tenants t
       join app.projects p on p.id = t.project_id and p.deleted_at is null
      where t.status = 'ready'
      order by t.project_id`,
  )
  const ask = async ({ id, name, dsn_sealed }: (typeof clusters)[number]): Promise<ClusterStatus> => {
    const cluster = name === 'own' ? own : { id, dsn: secrets.decrypt('cluster dsn', dsn_sealed ?? '') }
    return statusOf(
      cluster,
      prefix,
      name,
      ready.filter(({ cluster_id }) => cluster_id === id),
    )
  }
  return Promise.all(
    clusters.map((row) =>
      ask(row).catch((error: Error) => ({ name: row.name, error: error.message, missing: [], wrong: [] })),
    ),
  )
}

/** What runs where: control's notes, and what the servers say. It changes nothing. */
export const fleetStatus = (
  cluster: Cluster,
  prefix: string,
  programs: Programs,
  secrets: Pick<Secrets, 'decrypt'>,
): Promise<FleetStatus> =>
  withControl(cluster, prefix, async (control) => {
    const { rows: versions } = await control.query<{ version: string }>('select version from ops.schema_migrations')
    const { rows: files } = await control.query<{ path: string; hash: string }>('select path, hash from ops.files')
    const { rows: templates } = await control.query<{ schema_version: string; content_hash: string }>(
      `select t.schema_version, t.content_hash from app.templates t join app.clusters c on c.id = t.cluster_id and c.name = 'own'`,
    )
    const { rows: jobs } = await control.query<{ queued: number }>(
      `select count(*)::int as queued from graphile_worker.jobs where task_identifier = 'tenant__migrate'`,
    )
    const { rows: fleet } = await control.query<{ body: { data: FleetStatus['tenants'] } }>(
      'select r.body from api.fleet_status($1) r',
      [programs.tenant.contentHash],
    )
    const known = new Set(versions.map((row) => row.version))
    const hashes = new Map(files.map((row) => [row.path, row.hash]))
    const { base, functions, policies, seeds, migrations } = programs.control
    const [template] = templates
    return {
      clusters: await clusterStatuses(cluster, prefix, control, secrets),
      isLockedDown: await isLockedDown(control),
      control: {
        version:
          versions
            .map((row) => row.version)
            .sort()
            .at(-1) ?? '',
        pending: migrations.filter((version) => !known.has(version)).length,
        changed: [...base, ...functions, ...policies, ...seeds].filter((file) => hashes.get(file.path) !== file.hash)
          .length,
      },
      template: template
        ? { version: template.schema_version, isCurrent: template.content_hash === programs.tenant.contentHash }
        : null,
      queued: jobs[0]?.queued ?? 0,
      tenants: fleet[0]!.body.data,
    }
  })

/** Where the database of a project is, for `db:url`. Throws a StartError for a project that has none. */
export const whereIs = (
  cluster: Cluster,
  prefix: string,
  projectId: string,
  secrets: Pick<Secrets, 'decrypt'>,
): Promise<{ dsn: string; database: string }> =>
  withControl(cluster, prefix, async (control) => {
    const { rows } = await control.query<{
      database: string | null
      status: string
      code: string | null
      dsn_sealed: string | null
    }>(
      `select t.database_name as database, t.status, t.error ->> 'code' as code, c.dsn_sealed
         from app.projects p
         left join app.tenants t on t.project_id = p.id
         left join app.clusters c on c.id = t.cluster_id
        where p.id = $1 and p.deleted_at is null`,
      [projectId],
    )
    const [row] = rows
    if (!row) throw new StartError(`There is no project ${projectId} here.`)
    const state = row.code === 'DATABASE_GONE' ? 'is gone' : 'is not made yet'
    if (!row.database || row.status !== 'ready') throw new StartError(`The database of project ${projectId} ${state}.`)
    const dsn = row.dsn_sealed ? secrets.decrypt('cluster dsn', row.dsn_sealed) : cluster.dsn
    return { dsn, database: row.database }
  })

export type ClusterRow = {
  readonly name: string
  readonly capacity: number
  readonly is_open: boolean
  readonly tenants: number
}

export const listClusters = (cluster: Cluster, prefix: string): Promise<ClusterRow[]> =>
  withControl(cluster, prefix, async (control) => {
    const { rows } = await control.query<ClusterRow>(
      `select c.name, c.capacity, c.is_open, count(t.project_id)::int as tenants
         from app.clusters c left join app.tenants t on t.cluster_id = c.id
        group by c.id order by c.created_at, c.id`,
    )
    return rows
  })

/**
 * Prepares another Postgres server for tenants and records it in control; new projects are placed there from then on. Under
 * a name that is known, its address is replaced. The template is made with the first project.
 */
export const addCluster = async (
  cluster: Cluster,
  prefix: string,
  secrets: Secrets,
  added: { name: string; dsn: string; capacity: number },
): Promise<void> => {
  if (added.name === 'own') throw new StartError('"own" is the server of the control database. Choose another name.')
  const placed = await withControl(cluster, prefix, async (control) => {
    const { rows } = await control.query<{ name: string }>(
      `select t.database_name as name from app.tenants t join app.clusters c on c.id = t.cluster_id
        where c.name = $1 and t.status = 'ready'`,
      [added.name],
    )
    return rows.map(({ name }) => name)
  })
  await withClusterLock({ id: '', dsn: added.dsn }, async (admin) => {
    const { rows } = await admin.query('select from pg_catalog.pg_database where datname = any ($1) limit 1', [placed])
    // each of them would count as lost, and be created again empty there
    if (placed.length > 0 && rows.length === 0)
      throw new StartError(
        `None of the ${placed.length} databases of "${added.name}" is on that server: is the address right?`,
      )
    await bootstrapRoles(admin, secrets)
  })
  await withControl(cluster, prefix, (control) =>
    control.query(
      `insert into app.clusters (name, dsn_sealed, capacity) values ($1, $2, $3)
       on conflict on constraint clusters_name_unique do update
          set dsn_sealed = excluded.dsn_sealed, capacity = excluded.capacity`,
      [added.name, secrets.encrypt('cluster dsn', added.dsn), added.capacity],
    ),
  )
}
