import type pg from 'pg'
import type { Logger } from 'pino'
import { grantConnect } from '#fleet/cluster.ts'
import type { Programs } from '#fleet/installation.ts'
import { createTenantDatabase, migrateDatabase } from '#fleet/load/migrate.ts'
import { createLoader, type TargetOf } from '#fleet/load/replay.ts'
import type { Upgrade } from '#fleet/load/target.ts'
import { withClusterLock, withDatabaseLock } from '#fleet/locks.ts'
import { repairPrivileges, restoredAmong } from '#fleet/privileges.ts'
import { logged, timed } from '#fleet/progress.ts'
import { buildTemplate, dropFormer, readTemplate } from '#fleet/templates.ts'
import type { Place } from '#server/database/cluster.ts'
import { type Cluster, connectAdmin, maintenanceDatabase, tenantRoles } from '#server/database/cluster.ts'
import { type Database, dataOf } from '#server/database/database.ts'
import { templateName } from '#server/database/names.ts'
import type { Secrets } from '#server/secrets.ts'

/** What workers do to databases: make them, and bring them to the newest program. */
export type Fleet = {
  readonly programs: Programs
  clusterOf(id: string): Promise<Cluster | null>
  /** Where a ready tenant is, or null; cached for at most 30 seconds, and looked up again once control says that it changed. */
  placeOf(projectId: string): Promise<Place | null>
  /** Makes a project's database, from the first step that has not succeeded on; safe to run again. */
  provision(projectId: string): Promise<void>
  /** Brings one tenant to this program; a failure is recorded, and thrown so that the job is retried. */
  migrate(projectId: string): Promise<void>
  /**
   * Asks a project's own cluster whether the database is there, and records in control when that has changed: lost, or restored.
   * Answers whether it has. A cluster that does not answer throws, and changes nothing.
   */
  confirm(projectId: string): Promise<boolean>
  /** Checks every cluster for databases that were lost or restored, and for privileges that a restore has lost. */
  inspect(): Promise<void>
  /** Drops the templates that newer ones have replaced. It forces checkpoints: only workers call it, never a request. */
  tidy(): Promise<void>
  /** Removes a deleted project's database, then its rows in control; safe to run again. */
  remove(projectId: string): Promise<void>
  /** Queues the making or the removing of a database again, for the sweep. */
  queueAgain(task: 'provision' | 'remove', projectId: string): Promise<void>
  /** Queues the purging of a place that is due. */
  queuePurge(purgeId: string): Promise<void>
  /** Ends the operations whose jobs have failed as often as they may, as failed, and removes those jobs. */
  endExhausted(): Promise<void>
  /** Queues a job for each tenant that runs another program. Answers how many. */
  queueMigrations(): Promise<number>
}

declare module '#server/services.ts' {
  interface Services {
    readonly fleet: Fleet
  }
}

export type FleetOptions = {
  readonly database: Database
  readonly control: Place
  readonly ownClusterId: string
  /** What the template changes in tenants, where this process has just built it. */
  readonly upgrade?: Upgrade | null | undefined
  readonly prefix: string
  readonly programs: Programs
  readonly secrets: Secrets
  readonly jobs: pg.Pool
  readonly log: Logger
  readonly publish: (changed: readonly string[]) => Promise<void>
  /** Where a ready tenant is, from the cache of projects that changes in control invalidate. */
  readonly placeOf: Fleet['placeOf']
}

type TenantRow = {
  project_id: string
  cluster_id: string
  database_name: string
  status: string
  steps: { name: string; status: string }[]
  attempt: number
  is_gone: boolean
}

type TemplateRow = { schema_version: string; content_hash: string }

export const createFleet = (options: FleetOptions): Fleet => {
  const { database, control, prefix, programs, secrets, log } = options
  const asWorker = async <T>(name: string, args: Record<string, unknown> = {}) => {
    const reply = await database.call(control, 'control_worker', { caller: 'worker' }, name, args)
    if (reply.changed.length > 0) await options.publish(reply.changed)
    return dataOf<T>(reply)
  }

  const loader = createLoader()
  const clusters = new Map<string, Cluster>([[options.ownClusterId, control.cluster]])
  const clusterOf = async (id: string): Promise<Cluster | null> => {
    const known = clusters.get(id)
    if (known) return known
    const rows = await asWorker<{ id: string; dsn_sealed: string | null }[]>('cluster_list')
    const row = rows.find((candidate) => candidate.id === id)
    if (!row?.dsn_sealed) return null
    const cluster = { id, dsn: secrets.decrypt('cluster dsn', row.dsn_sealed) }
    clusters.set(id, cluster)
    return cluster
  }

  const tenantOf = (projectId: string) => asWorker<TenantRow | null>('tenant_get', { project_id: projectId })

  const templateOf = async (cluster: Cluster): Promise<TemplateRow | null> => {
    const rows = await asWorker<{ id: string; template: TemplateRow | null }[]>('cluster_list')
    return rows.find((row) => row.id === cluster.id)?.template ?? null
  }

  /** Whether the template is of this program. If not, a newer release is being rolled out, or db:reload has run, and neither is to be undone. */
  const isCurrent = async () => (await templateOf(control.cluster))?.content_hash === programs.tenant.contentHash

  /** Another cluster's template is made when the first tenant is placed there. */
  const ensureTemplate = async (cluster: Cluster): Promise<void> => {
    if (cluster.id === options.ownClusterId) return
    if ((await templateOf(cluster))?.content_hash === programs.tenant.contentHash) return
    await withClusterLock(cluster, (admin) => buildTemplate(cluster, admin, templateName(prefix), programs.tenant), log)
    await asWorker('template_built', {
      cluster_id: cluster.id,
      schema_version: programs.tenant.schemaVersion,
      content_hash: programs.tenant.contentHash,
    })
  }

  /** Of each cluster: the fingerprint of the template before the one that is there; null where that one is not of this program. */
  const formers = new Map<string, Promise<string | null>>()
  let { upgrade } = options
  if (upgrade) formers.set(options.ownClusterId, Promise.resolve(upgrade.former))
  const targetOn =
    (cluster: Cluster): TargetOf =>
    async (fingerprint, before) => {
      if (cluster.id === options.ownClusterId && upgrade?.former === fingerprint) {
        // the loader keeps the difference that it makes of it
        const known = upgrade
        upgrade = null
        return known
      }
      const former = formers.get(cluster.id)
      if (former && (await former) !== fingerprint) return null
      const read = async () => {
        // a reload has no migrations, so it cannot make a template where there is none
        if (programs.tenant.migrations.length > 0) await ensureTemplate(cluster)
        return readTemplate(cluster, templateName(prefix), programs.tenant, fingerprint, before())
      }
      const reading = read().catch(async (error: Error) => {
        // an error of the tenant says nothing about the template
        await before()
        log.warn(
          { cluster: cluster.id, error: error.message },
          'the template cannot be read: tenants are loaded file by file',
        )
        return null
      })
      const forgotten = () => {
        formers.delete(cluster.id)
        return null
      }
      if (!former)
        formers.set(
          cluster.id,
          reading.then((found) => found?.former ?? null, forgotten),
        )
      return (await reading)?.upgrade ?? null
    }

  const asAdmin = async <T>(cluster: Cluster, work: (admin: pg.Client) => Promise<T>): Promise<T> => {
    const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
    try {
      return await work(admin)
    } finally {
      await admin.end()
    }
  }

  const steps = (row: TenantRow, cluster: Cluster): Record<string, () => Promise<void>> => ({
    async create_database() {
      await ensureTemplate(cluster)
      const make = async (admin: pg.Client) => {
        if (await tenantOf(row.project_id)) await createTenantDatabase(admin, row.database_name, templateName(prefix))
      }
      await withDatabaseLock(cluster, row.database_name, make, log)
    },
    async run_migrations() {
      // a template that is not ours was made by a newer version, or by db:reload: what it says is right, not what we read at start
      if ((await templateOf(cluster))?.content_hash !== programs.tenant.contentHash) return
      await migrateDatabase(cluster, row.database_name, programs.tenant, { log })
    },
    // logins belong to the cluster; what a new database needs is that they may connect to it
    create_roles: () => asAdmin(cluster, (admin) => grantConnect(admin, row.database_name, tenantRoles)),
    async seed_defaults() {
      const owner = await connectAdmin(cluster, row.database_name)
      try {
        await owner.query(`select internal.set_setting('project_id', to_jsonb($1::text))`, [row.project_id])
      } finally {
        await owner.end()
      }
    },
    async verify() {
      const place: Place = { cluster, database: row.database_name, kind: 'tenant' }
      const claims = { caller: 'worker', projectId: row.project_id }
      await database.call(place, 'app_worker', claims, 'events_maintain', {})
      await database.call(place, 'app_worker', claims, 'audit_maintain', {})
    },
  })

  const dropDatabase = async (cluster: Cluster, name: string): Promise<void> => {
    await database.pools.forget(`${cluster.id}/${name}`)
    // other servers may have connections open; nothing that comes through them is wanted any more
    await withDatabaseLock(cluster, name, (admin) => admin.query(`drop database if exists "${name}" with (force)`), log)
  }

  const provision = async (projectId: string): Promise<void> => {
    const row = await tenantOf(projectId)
    if (row?.status !== 'provisioning') return
    const cluster = await clusterOf(row.cluster_id)
    const work = cluster ? steps(row, cluster) : {}
    const mine = { project_id: projectId, attempt: row.attempt }
    /** False when another attempt has begun, whose steps are not ours to note: this one ends. */
    const note = (step: string, status: string) => asWorker<boolean>('provision_step', { ...mine, step, status })
    for (const { name, status } of row.steps) {
      if (status === 'succeeded') continue
      if (!(await note(name, 'running'))) return
      try {
        const step = work[name]
        if (!step) throw new Error('its cluster is not known to this server')
        await step()
        // the step stalled and the project was deleted concurrently: the removal drops the database
        if (!(await tenantOf(projectId))) return
      } catch (error) {
        log.error({ project: projectId, step: name, error: (error as Error).message }, 'provisioning failed')
        await note(name, 'failed')
        await asWorker('provision_end', {
          ...mine,
          error_code: 'PROVISIONING_FAILED',
          error_message: `The step ${name} failed. It can be tried again.`,
        })
        return
      }
      if (!(await note(name, 'succeeded'))) return
    }
    await asWorker('provision_end', { ...mine, ...(cluster ? await templateOf(cluster) : null) })
  }

  /** Only pg_database proves that a database is lost: one that restarts, or takes no connections, still exists. */
  const isThere = async (cluster: Cluster, name: string): Promise<boolean> => {
    const text = 'select from pg_catalog.pg_database where datname = $1'
    const found =
      cluster.id === options.ownClusterId
        ? await options.jobs.query(text, [name])
        : await asAdmin(cluster, (admin) => admin.query(text, [name]))
    return found.rowCount === 1
  }

  const confirm = async (projectId: string): Promise<boolean> => {
    const row = await tenantOf(projectId)
    if (!row || (row.status !== 'ready' && !row.is_gone)) return false
    const cluster = await clusterOf(row.cluster_id)
    if (!cluster || (await isThere(cluster, row.database_name)) !== row.is_gone) return false
    // the row was read before its database was looked for, and is changed only if it is still the same
    const hasChanged = await asWorker<boolean>('tenant_seen', {
      project_id: projectId,
      attempt: row.attempt,
      is_there: row.is_gone,
    })
    if (hasChanged && row.is_gone) log.warn({ project: projectId, database: row.database_name }, 'a database is back')
    if (hasChanged && !row.is_gone) log.error({ project: projectId, database: row.database_name }, 'a database is gone')
    return hasChanged
  }

  const inspectCluster = async (id: string): Promise<void> => {
    const cluster = await clusterOf(id)
    if (!cluster) return
    const { databases, restored } = await asAdmin(cluster, async (admin) => {
      const { rows } = await admin.query<{ datname: string }>(
        `select datname from pg_catalog.pg_database where starts_with(datname, $1)`,
        [`${prefix}_`],
      )
      const restored = restoredAmong(await repairPrivileges(cluster, admin, prefix, log))
      return { databases: rows.map(({ datname }) => datname), restored }
    })
    if (restored.length > 0) await asWorker('tenants_restored', { cluster_id: id, databases: restored })
    const moved = await asWorker<string[]>('fleet_moved', { cluster_id: id, databases })
    for (const projectId of moved) await confirm(projectId)
  }

  return {
    programs,
    clusterOf,
    confirm,
    async inspect() {
      const rows = await asWorker<{ id: string }[]>('cluster_list')
      await Promise.all(
        rows.map(({ id }) =>
          inspectCluster(id).catch((error: Error) =>
            log.warn({ cluster: id, error: error.message }, 'a cluster cannot be inspected'),
          ),
        ),
      )
    },
    async tidy() {
      for (const { id } of await asWorker<{ id: string }[]>('cluster_list')) {
        const cluster = await clusterOf(id)
        const drop = () => cluster && asAdmin(cluster, (admin) => dropFormer(cluster, admin, templateName(prefix)))
        await drop()?.catch((error: Error) =>
          log.warn({ cluster: id, error: error.message }, 'a former template cannot be dropped'),
        )
      }
    },
    placeOf: options.placeOf,
    provision,
    async migrate(projectId) {
      const row = await tenantOf(projectId)
      const cluster = row?.status === 'ready' ? await clusterOf(row.cluster_id) : null
      if (!row || !cluster) return
      if (!(await isCurrent()))
        throw new Error('The template is of another program: a server of that program brings this project to it.')
      const name = row.database_name
      try {
        await timed(logged(log), name, 'updated', () =>
          migrateDatabase(cluster, name, programs.tenant, { log, loader, target: targetOn(cluster) }),
        )
      } catch (error) {
        await asWorker('fleet_migrated', { project_id: projectId, error: (error as Error).message.slice(0, 2000) })
        throw error
      }
      await asWorker('fleet_migrated', {
        project_id: projectId,
        schema_version: programs.tenant.schemaVersion,
        content_hash: programs.tenant.contentHash,
      })
    },
    async remove(projectId) {
      const row = await asWorker<Pick<TenantRow, 'cluster_id' | 'database_name'> | null>('removal_begin', {
        project_id: projectId,
      })
      if (!row) return
      if (row.database_name) {
        const cluster = await clusterOf(row.cluster_id)
        if (!cluster) throw new Error('the cluster of this project is not known to this server')
        await dropDatabase(cluster, row.database_name)
      }
      await asWorker('removal_end', { project_id: projectId })
    },
    async queueAgain(task, projectId) {
      await options.jobs.query(
        `select graphile_worker.add_job('tenant__' || $1, json_build_object('project_id', $2::text), job_key := $1 || ' ' || $2)`,
        [task, projectId],
      )
    },
    async queuePurge(purgeId) {
      await options.jobs.query(
        `select graphile_worker.add_job('files__purge', json_build_object('purge_id', $1::text), job_key := 'purge ' || $1,
                                        queue_name := 'purges ' || (hashtext($1) & 1))`,
        [purgeId],
      )
    },
    async endExhausted() {
      const { rows } = await options.jobs.query<{ job_id: string; operation_id: string }>(
        `select j.id as job_id, substr(j.key, length('operation ') + 1) as operation_id
           from graphile_worker.jobs j
          where j.key like 'operation %' and j.attempts >= j.max_attempts and j.locked_at is null`,
      )
      for (const { job_id, operation_id } of rows) {
        await asWorker('operation_end', {
          operation_id,
          failed_reason: 'The work failed each time it was tried. The operation can be started again.',
        })
        await options.jobs.query('select graphile_worker.complete_jobs(array[$1::bigint])', [job_id])
      }
    },
    async queueMigrations() {
      if (!(await isCurrent())) return 0
      const behind = await asWorker<string[]>('fleet_behind', {
        content_hash: programs.tenant.contentHash,
        batch: 100_000,
      })
      for (let from = 0; from < behind.length; from += 100) {
        await options.jobs.query(
          `select graphile_worker.add_job('tenant__migrate', json_build_object('project_id', p), job_key := 'migrate ' || p, max_attempts := 25)
             from json_array_elements_text($1) p`,
          [JSON.stringify(behind.slice(from, from + 100))],
        )
      }
      return behind.length
    },
  }
}
