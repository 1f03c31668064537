import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import type { ReadEntry } from '#fleet/backup/archive.ts'
import { type ProjectManifest, type ProjectPoint, projectPoint } from '#fleet/backup/manifest.ts'
import { type Catalogued, catalogName, type Sequences, sequencesName, tablesName } from '#fleet/backup/project.ts'
import { bytesOf, checkKey, readBackup } from '#fleet/backup/restore.ts'
import { databaseExists, grantConnect } from '#fleet/cluster.ts'
import type { Program } from '#fleet/load/files.ts'
import { createTenantDatabase, migrateDatabase } from '#fleet/load/migrate.ts'
import { withDatabaseLock } from '#fleet/locks.ts'
import { type Catalog, keyOf, reproduceAll, reproduceTables } from '#fleet/move/catalog.ts'
import { emptyTables, type MovedTable, plainSession } from '#fleet/move/copy.ts'
import { connect, onServer } from '#fleet/move/replication.ts'
import type { Ask } from '#fleet/move/switch.ts'
import { fence, reopen } from '#fleet/move/switch.ts'
import { type Cluster, connectAdmin, tenantRoles } from '#server/database/cluster.ts'
import { sealedColumns } from '#server/database/keys.ts'
import { StartError } from '#server/errors.ts'
import type { MediaStorage } from '#server/media/storage.ts'
import type { Secrets } from '#server/secrets.ts'

export type ProjectRestoreOptions = {
  readonly identities: readonly string[]
  readonly secrets: Secrets
  readonly program: Program
  readonly template: string
  readonly storage: MediaStorage
  readonly ask: Ask
  readonly say: (line: string) => void
  /** A folder for what is read before it is stored. */
  readonly temporary: string
  /** Where it goes, once it is known what it is. */
  readonly destination: (manifest: ProjectManifest) => Promise<Destination>
  /** Makes the other project, whose database is whole now. */
  readonly register: () => Promise<void>
}

export type Destination = {
  readonly cluster: Cluster
  readonly projectId: string
  /** The name that the database has in the end; in place another one has it until then. */
  readonly database: string
  readonly isInPlace: boolean
}

export type ProjectRestored = {
  readonly manifest: ProjectManifest
  readonly point: ProjectPoint
  readonly to: Destination
  /** Whether the project had a database, which is kept beside. */
  readonly isFormerKept: boolean
}

const onlyOurs = (name: string) =>
  new StartError(`This backup has an entry that none of ours has: ${JSON.stringify(name)}.`)

/** Takes the entries of a project in their order, and fills a database that nobody is served from. */
const createFilling = async (
  { secrets, storage, temporary }: ProjectRestoreOptions,
  to: Destination,
  database: string,
) => {
  const { cluster, projectId } = to
  const [owner, target] = [await connectAdmin(cluster, database), await connect(cluster, database)]
  const folder = await mkdtemp(join(temporary, 'restore-'))
  const [ends, made] = [{ owner, admin: target }, new Map()]
  let catalog: Catalog = new Map()
  let tables: readonly MovedTable[] = []
  let copying: { readonly table: number; readonly source: PassThrough; readonly ended: Promise<void> } | null = null
  /** Of this run: what was there before stays when the run fails. */
  const stored: { readonly assetId: string; readonly object: string }[] = []

  const endCopy = async () => {
    if (!copying) return
    copying.source.end()
    await copying.ended
    copying = null
  }
  const rows = async (table: number, { body }: ReadEntry) => {
    if (copying?.table !== table) {
      await endCopy()
      const found = tables[table]
      if (!found) throw new StartError('This backup has rows of a table that it does not have.')
      const source = new PassThrough()
      const ended = pipeline(
        source,
        owner.query(copyFrom(`copy ${found.name} (${found.columns}) from stdin (format binary)`)),
      )
      // told where it is awaited
      ended.catch(() => undefined)
      copying = { table, source, ended }
    }
    const { source, ended } = copying
    for await (const chunk of body)
      if (!source.write(chunk)) await Promise.race([new Promise((resolve) => source.once('drain', resolve)), ended])
  }
  const medium = async (assetId: string, object: string, { body }: ReadEntry) => {
    const name = { projectId, assetId, object }
    // a name never changes what it stands for
    if (await storage.stat(name)) return
    const file = join(folder, randomUUID())
    await pipeline(body, createWriteStream(file))
    const { rows: found } = await target.query<{ mime_type: string }>(
      'select a.mime_type from app.media_assets a where a.id = $1',
      [assetId],
    )
    await storage.write(name, file, found[0]?.mime_type ?? 'application/octet-stream')
    stored.push({ assetId, object })
    await rm(file)
  }
  return {
    async take(entry: ReadEntry): Promise<void> {
      const table = /^rows\/(\d{5})\/\d{6}$/.exec(entry.name)
      const file = /^media\/([0-9a-f-]{36})\/([0-9a-z]{1,64})$/.exec(entry.name)
      const parsed = async <T>() => JSON.parse((await bytesOf(entry)).toString('utf8')) as T
      if (table) return rows(Number(table[1]), entry)
      await endCopy()
      if (file) return medium(file[1] ?? '', file[2] ?? '', entry)
      if (entry.name === catalogName) {
        const wanted = await parsed<Catalogued>()
        catalog = new Map(wanted.map((item) => [keyOf(item), item]))
        await reproduceTables(catalog, ends, made)
        await emptyTables(owner)
      } else if (entry.name === tablesName) {
        tables = await parsed<readonly MovedTable[]>()
        await owner.query(`${plainSession}; set synchronous_commit = off`)
      } else if (entry.name === sequencesName) {
        const found = await parsed<Sequences>()
        await owner.query(`select setval(n::regclass, v::bigint) from unnest($1::text[], $2::text[]) as s (n, v)`, [
          found.map(({ name }) => name),
          found.map(({ last }) => last),
        ])
      } else throw onlyOurs(entry.name)
    },
    /** What is bound to the project that was backed up is bound to this one. Then what waited for the rows is made: triggers, foreign keys. */
    async bind(former: string): Promise<void> {
      await endCopy()
      for (const { table, column, key, of, purpose, hasKeyId } of sealedColumns.tenant) {
        const read = [...new Set([key, ...of])].map((name) => `${name}::text as ${name}`).join(', ')
        const { rows: found } = await owner.query<Record<string, string> & { sealed_text: string }>(
          `select ${read}, ${column} as sealed_text from app.${table} where ${column} is not null`,
        )
        for (const row of found) {
          const plain = secrets.decrypt(purpose(row, former), row.sealed_text)
          const sealed = secrets.encrypt(purpose(row, projectId), plain)
          const keyed = hasKeyId ? ', key_id = $3' : ''
          await owner.query(`update app.${table} set ${column} = $2${keyed} where ${key}::text = $1`, [
            row[key],
            sealed,
            ...(hasKeyId ? [secrets.current] : []),
          ])
        }
      }
      await owner.query('select internal.tenant_arrived()')
      await reproduceAll(catalog, ends, made)
      await owner.query('set synchronous_commit = on')
      await owner.query('analyze')
    },
    async takeBack(): Promise<void> {
      for (const { assetId, object } of stored) await storage.removeObject({ projectId, assetId, object })
    },
    async end(): Promise<void> {
      copying?.source.destroy()
      await Promise.all([owner, target].map((client) => client.end().catch(() => undefined)))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const drop = (cluster: Cluster, database: string) =>
  onServer(cluster, (admin) => admin.query(`drop database if exists "${database}" with (force)`))

/** The names of both databases change in one transaction; what was there is kept beside, closed. */
const swap = async (to: Destination, made: string, former: string, ask: Ask): Promise<boolean> => {
  const { cluster, database, projectId } = to
  await ask('operator_restore_hold', { project_id: projectId, is_held: true })
  try {
    return await onServer(cluster, async (admin) => {
      const isThere = await databaseExists(admin, database)
      if (isThere) await fence(admin, database, [])
      await admin.query(`drop database if exists "${former}" with (force)`)
      await admin.query('begin')
      if (isThere) await admin.query(`alter database "${database}" rename to "${former}"`)
      await admin.query(`alter database "${made}" rename to "${database}"`)
      await admin.query('commit')
      return isThere
    })
  } catch (error) {
    await reopen(cluster, database).catch(() => undefined)
    await ask('operator_restore_hold', { project_id: projectId, is_held: false })
    throw error
  }
}

/** What the former database of a project that was restored in place is called. */
export const formerName = (database: string) => `${database}_replaced`

/**
 * Restores a backup of one project, in place or as another project. A database beside is filled first, and gets its name when everything was read, every checksum was
 * right, and the migrations that it lacks have run; what fails leaves nothing.
 */
export const restoreProject = async (source: Readable, options: ProjectRestoreOptions): Promise<ProjectRestored> => {
  const { identities, secrets, program, template, ask, say } = options
  let to: Destination | undefined
  let made = ''
  let filling: Awaited<ReturnType<typeof createFilling>> | undefined
  let isKept = false
  let isFormerKept = false
  try {
    const { manifest, end } = await readBackup(
      source,
      identities,
      async (found) => {
        if (found.kind !== 'project')
          throw new StartError('This is a backup of an installation: leave --project and --new-project away.')
        if (found.schema_version !== program.schemaVersion)
          throw new StartError(
            `This backup has the tables of Trellis ${found.version} (${found.schema_version}), and these are ${program.schemaVersion}: restore it with that release, into an installation of its own, and upgrade that.`,
          )
        checkKey(found, secrets)
        to = await options.destination(found)
        const { cluster } = to
        made = to.isInPlace ? `${to.database}_restoring` : to.database
        await withDatabaseLock(cluster, made, async (admin) => {
          await admin.query(`drop database if exists "${made}" with (force)`)
          await createTenantDatabase(admin, made, template)
          // nobody is served from it before it is whole
          for (const role of tenantRoles) await admin.query(`revoke connect on database "${made}" from login_${role}`)
        })
        filling = await createFilling(options, to, made)
        say(`of ${found.begun_at}, by Trellis ${found.version}: project ${found.project.id}`)
        return found
      },
      async (entry) => filling?.take(entry),
    )
    if (!to || !filling) throw new Error('a backup without a beginning')
    const point = projectPoint.parse(end)
    await filling.bind(manifest.project.id)
    say(`every checksum is right; ${point.tables} tables, ${point.files} files`)
    const { cluster } = to
    await migrateDatabase(cluster, made, program)
    await onServer(cluster, (admin) => grantConnect(admin, made, tenantRoles))
    await filling.end()
    if (to.isInPlace) {
      isFormerKept = await swap(to, made, formerName(to.database), ask)
      isKept = true
      await ask('operator_project_restored', {
        project_id: to.projectId,
        schema_version: program.schemaVersion,
        content_hash: program.contentHash,
        restored_at: point.at,
      })
    } else await options.register()
    isKept = true
    return { manifest, point, to, isFormerKept }
  } finally {
    await filling?.end()
    if (!isKept && to && made) {
      await filling?.takeBack().catch(() => undefined)
      await drop(to.cluster, made)
    }
  }
}
