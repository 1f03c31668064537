import { runMigrations } from 'graphile-worker'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Signatures } from '#fleet/checks/names.ts'
import { bootstrapRoles, databaseExists } from '#fleet/cluster.ts'
import type { Program } from '#fleet/load/files.ts'
import { createControl, migrateDatabase } from '#fleet/load/migrate.ts'
import type { Upgrade } from '#fleet/load/target.ts'
import { withClusterLock } from '#fleet/locks.ts'
import { repairPrivileges, restoredAmong } from '#fleet/privileges.ts'
import { logged, type Progress, timed } from '#fleet/progress.ts'
import { buildDraft, publishDraft } from '#fleet/templates.ts'
import { adminConfig, type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { checkKeys, storeKeys } from '#server/database/keys.ts'
import { controlName, templateName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'
import type { Secrets } from '#server/secrets.ts'

export type Programs = { readonly control: Program; readonly tenant: Program }

/**
 * Throws when a database that holds the program would fail requests. `former` is what it, or the database that it takes the place of, held before; null where that
 * was nothing, or the same.
 */
export type Check = (
  client: pg.Client,
  kind: 'control' | 'tenant',
  former: Signatures | null,
  /** Functions were loaded, and policies are not yet. */
  isTrial?: boolean,
) => Promise<void>

export const checked = async (
  cluster: Cluster,
  database: string,
  kind: 'control' | 'tenant',
  check: Check,
  former: Signatures | null = null,
) => {
  const client = await connectAdmin(cluster, database)
  await check(client, kind, former).finally(() => client.end())
}

type PrepareOptions = {
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly progress?: Progress
  readonly check?: Check
  /**
   * Called when control is ready, with the id of its cluster, while the template is still being built. `isNew`: there was no control before, so there
   * are no projects, and nobody who needs the template at once.
   */
  readonly onControl?: (clusterId: string, isNew: boolean) => void
  /** Whether tenants follow at once. */
  readonly isRolledOut?: boolean
}

export type Prepared = {
  readonly clusterId: string
  /** What tenants need that follow at once; null where it is still to be read. */
  readonly upgrade: Upgrade | null
}

/**
 * Brings the server of the control database to this program: roles, control, graphile-worker's tables, the template. Under
 * one lock for the cluster, so that any number of processes may start at once. Tenants follow by jobs (fleet.ts).
 */
export const prepareInstallation = (
  cluster: Cluster,
  prefix: string,
  programs: Programs,
  secrets: Secrets,
  {
    log,
    progress = logged(log),
    check = async () => undefined,
    onControl = () => undefined,
    isRolledOut = false,
  }: PrepareOptions,
): Promise<Prepared> =>
  withClusterLock(
    cluster,
    async (admin) => {
      await checkVersion(admin)
      const control = controlName(prefix)
      // before the logins get new passwords: a wrong key must not lock running servers out
      const isNew = !(await databaseExists(admin, control))
      if (!isNew) await checkKey(cluster, control, secrets)
      await bootstrapRoles(admin, secrets)
      await createControl(admin, control)
      const restored = restoredAmong(await repairPrivileges(cluster, admin, prefix, log))
      const template = templateName(prefix)
      if (await isOlder(cluster, control, programs)) {
        log.warn(
          'The databases are of a newer release than this server: nothing in them is changed. To go back to this release, run npm run db:reload.',
        )
        return withControl(cluster, control, async (client) => ({
          clusterId: await ensureCluster(client),
          upgrade: null,
        }))
      }
      const isBuilt = await isTemplateBuilt(cluster, admin, prefix, programs.tenant)
      const prepareControl = async () => {
        await timed(
          progress,
          control,
          'migrated',
          () => migrateControl(cluster, control, programs.control, log),
          (applied) => applied.length > 0,
        )
        // control is as it is by now, so it is checked each time; a template that is refused is built again next time
        await checked(cluster, control, 'control', check)
        if (isBuilt) return
        const clusterId = await withControl(cluster, control, async (client) => {
          // what is served from now on is sealed with these keys, also where this process does not live to see the template
          if (isNew) await storeKeys(client, secrets)
          return ensureCluster(client)
        })
        onControl(clusterId, isNew)
      }
      const prepareTemplate = () =>
        timed(progress, template, 'built', () =>
          buildDraft(cluster, admin, template, programs.tenant, {
            check: (draft, former) => checked(cluster, draft, 'tenant', check, former),
            isRolledOut,
          }),
        )
      // the two need nothing of each other, and a server has more than one core; each is ended before an error of the other is thrown
      const [migrated, built] = await Promise.allSettled([prepareControl(), isBuilt ? null : prepareTemplate()])
      if (migrated.status === 'rejected') throw migrated.reason
      if (built.status === 'rejected') throw built.reason
      const client = await connectAdmin(cluster, control)
      try {
        await storeKeys(client, secrets)
        const clusterId = await ensureCluster(client)
        await noteRestored(client, clusterId, restored)
        if (!isBuilt) {
          await publishDraft(admin, template)
          await noteTemplate(client, clusterId, programs.tenant)
        }
        return { clusterId, upgrade: built.value }
      } finally {
        await client.end()
      }
    },
    log,
  )

const withControl = async <T>(
  cluster: Cluster,
  control: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = await connectAdmin(cluster, control)
  return work(client).finally(() => client.end())
}

/** Whether control or the template has a migration that comes after all of this program's: a server that restarts in the middle of an upgrade. */
const isOlder = (cluster: Cluster, control: string, programs: Programs): Promise<boolean> =>
  withControl(cluster, control, async (client) => {
    const { rows: found } = await client.query<{ exists: boolean }>(
      `select to_regclass('ops.schema_migrations') is not null and to_regclass('app.templates') is not null as exists`,
    )
    if (!found[0]?.exists) return false
    const { rows } = await client.query<{ older: boolean }>(
      `select exists (select from ops.schema_migrations m where m.version > $1)
              or exists (select from app.templates t join app.clusters c on c.id = t.cluster_id and c.name = 'own' where t.schema_version > $2) as older`,
      [programs.control.schemaVersion, programs.tenant.schemaVersion],
    )
    return rows[0]?.older === true
  })

const migrateControl = async (
  cluster: Cluster,
  control: string,
  program: Program,
  log: Pick<Logger, 'warn'>,
): Promise<string[]> => {
  const jobs = new pg.Pool({ ...adminConfig(cluster, control), max: 1 })
  jobs.on('error', () => undefined)
  jobs.on('connect', (client) => client.on('error', () => undefined))
  const afterBase = () => runMigrations({ pgPool: jobs, schema: 'graphile_worker' })
  try {
    return await migrateDatabase(cluster, control, program, { afterBase, log, isProvisional: true })
  } finally {
    await jobs.end()
  }
}

const checkVersion = async (admin: pg.Client): Promise<void> => {
  const { rows } = await admin.query<{ version: string }>(`select current_setting('server_version_num') as version`)
  const version = Number(rows[0]?.version)
  if (version < 150000)
    throw new StartError(`Postgres ${Math.floor(version / 10000)} is too old: 15 to 18 are supported.`)
}

const checkKey = async (cluster: Cluster, control: string, secrets: Secrets): Promise<void> => {
  const client = await connectAdmin(cluster, control, false)
  try {
    const { rows } = await client.query<{ exists: boolean }>(
      `select to_regclass('app.installation') is not null as exists`,
    )
    if (!rows[0]?.exists) return
    await client.query('set role trellis_owner')
    await checkKeys(client, secrets)
  } finally {
    await client.end()
  }
}

/** In control, that these databases may be older than it says. */
export const noteRestored = async (control: pg.Client, clusterId: string, databases: readonly string[]) => {
  if (databases.length === 0) return
  await control.query('select from api.tenants_restored($1, $2)', [clusterId, JSON.stringify(databases)])
}

const ensureCluster = async (control: pg.Client): Promise<string> => {
  await control.query(
    `insert into app.clusters (name) values ('own') on conflict on constraint clusters_name_unique do nothing`,
  )
  const { rows } = await control.query<{ id: string }>(`select id from app.clusters where name = 'own'`)
  return rows[0]?.id ?? ''
}

/** Whether the template holds this program; it is closed to connections, so control knows what it holds. */
const isTemplateBuilt = async (
  cluster: Cluster,
  admin: pg.Client,
  prefix: string,
  program: Program,
): Promise<boolean> => {
  if (!(await databaseExists(admin, templateName(prefix)))) return false
  const control = await connectAdmin(cluster, controlName(prefix))
  try {
    const { rows: found } = await control.query(`select to_regclass('app.templates') is not null as exists`)
    if (!found[0]?.exists) return false
    const { rows } = await control.query<{ content_hash: string }>(
      `select t.content_hash from app.templates t join app.clusters c on c.id = t.cluster_id and c.name = 'own'`,
    )
    return rows[0]?.content_hash === program.contentHash
  } finally {
    await control.end()
  }
}

const noteTemplate = (control: pg.Client, clusterId: string, program: Program) =>
  control.query(
    `insert into app.templates (cluster_id, schema_version, content_hash) values ($1, $2, $3)
     on conflict (cluster_id) do update
        set schema_version = excluded.schema_version, content_hash = excluded.content_hash, built_at = now()`,
    [clusterId, program.schemaVersion, program.contentHash],
  )
