import type { Writable } from 'node:stream'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { type Entry, writeArchive } from '#fleet/backup/archive.ts'
import { json, manifestName, type ProjectManifest, type ProjectPoint, pointName } from '#fleet/backup/manifest.ts'
import { projectNameOf } from '#fleet/backup/places.ts'
import { type Catalog, type CatalogItem, readCatalog, unmakeable } from '#fleet/move/catalog.ts'
import { type MovedTable, movedTables, plainSession } from '#fleet/move/copy.ts'
import { adminConfig, type Cluster } from '#server/database/cluster.ts'
import { keysStatus } from '#server/database/keys.ts'
import { StartError } from '#server/errors.ts'
import type { MediaStorage, StoredName } from '#server/media/storage.ts'

/** The statements that make what the database has besides rows; its tables in the order of their folders of rows; and its sequences. */
export const catalogName = 'catalog.json'
export const tablesName = 'tables.json'
export const sequencesName = 'sequences.json'
export type Sequences = readonly { readonly name: string; readonly last: string }[]
export type Catalogued = readonly CatalogItem[]

/** `rows/00012/000345` is a part of the rows of the twelfth table, as binary COPY writes them; the parts one after another are all of it. */
export const rowsName = (table: number, part: number) =>
  `rows/${String(table).padStart(5, '0')}/${String(part).padStart(6, '0')}`
const partBytes = 4 * 1024 * 1024

export type ProjectBackupOptions = {
  readonly cluster: Cluster
  readonly database: string
  readonly control: pg.Client
  readonly project: ProjectManifest['project']
  readonly schemaVersion: string
  readonly storage: MediaStorage
  readonly recipients: readonly string[]
  readonly version: string
  readonly say: (line: string) => void
  readonly begin: (name: string) => Promise<Writable>
}

export type ProjectBackedUp = { readonly name: string; readonly point: ProjectPoint }

const text = (client: pg.Client, sql: string) =>
  client.query<{ text: string }>(sql).then(({ rows }) => rows[0]?.text ?? '')

/** A lock that a change of a table's structure waits for, as pg_dump takes it: what the catalog says is true for as long as rows are read. */
const lockTables = async (client: pg.Client): Promise<readonly MovedTable[]> => {
  const tables = await movedTables(client)
  if (tables.length > 0)
    await client.query(`lock table ${tables.map(({ name }) => name).join(', ')} in access share mode`)
  return tables
}

/** Tables come by their size, which changes while the project is used. */
const shapeOf = (tables: readonly MovedTable[]) => JSON.stringify(tables.map((table) => JSON.stringify(table)).sort())

/** A backup that could not be restored is none: what no statement of ours makes is named before anything is written. */
const checkContents = async (client: pg.Client, catalog: Catalog): Promise<void> => {
  const lost = unmakeable(catalog)
  const { rowCount } = await client.query('select from pg_catalog.pg_largeobject_metadata limit 1')
  if (rowCount) lost.push('large objects')
  if (lost.length > 0)
    throw new StartError(
      `A backup of one project cannot hold this: ${lost.slice(0, 5).join('; ')}${lost.length > 5 ? ` and ${lost.length - 5} more` : ''}. Drop it, or use pg_dump.`,
    )
}

/**
 * One snapshot of everything in a database: what was answered before it is in it. Structure is read as of now and not as of the snapshot, so the snapshot is taken
 * again while a table was made or taken away in between.
 */
const openSnapshot = async ({ cluster, database }: ProjectBackupOptions) => {
  const client = new pg.Client({ ...adminConfig(cluster, database, false), application_name: 'trellis_backup' })
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query(`${plainSession}; set lock_timeout = '10s'`)
    for (let attempt = 1; ; attempt += 1) {
      await client.query('begin isolation level repeatable read read only')
      const tables = await lockTables(client)
      const at = await text(client, `select to_json(now() at time zone 'UTC') #>> '{}' || 'Z' as text`)
      const [catalog, again] = [await readCatalog(client), await movedTables(client)]
      await checkContents(client, catalog)
      if (shapeOf(again) === shapeOf(tables)) return { client, tables, catalog, at }
      await client.query('rollback')
      if (attempt === 5)
        throw new StartError('Tables of this project are made and taken away all the time: try again later.')
    }
  } catch (error) {
    await client.end()
    throw error
  }
}

/** Parts of a stream whose size nobody knows before its end. */
const inParts = async function* (source: AsyncIterable<Buffer>) {
  let waiting: Buffer[] = []
  let size = 0
  for await (const chunk of source) {
    waiting.push(chunk)
    size += chunk.length
    if (size < partBytes) continue
    yield Buffer.concat(waiting)
    waiting = []
    size = 0
  }
  if (size > 0) yield Buffer.concat(waiting)
}

/** Files that were committed; what was made of pictures is made again. */
const isOriginal = ({ isUpload, path, version }: StoredName) => !isUpload && path.endsWith(`/${version}`)

/**
 * Backs up one project while it is used, on whatever server its database is: its structure, with what was made by hand, its rows as of one snapshot, and its media.
 * What other projects and accounts have is not in it, nor are its API keys.
 */
export const backUpProject = async (options: ProjectBackupOptions): Promise<ProjectBackedUp> => {
  const { control, project, storage, say } = options
  const { keys } = await keysStatus(control)
  const begunAt = new Date()
  const { client, tables, catalog, at } = await openSnapshot(options)
  try {
    const name = projectNameOf(begunAt, project.id, options.recipients.length > 0)
    const major = Number(
      await text(client, `select (current_setting('server_version_num')::int / 10000)::text as text`),
    )
    const manifest: ProjectManifest = {
      format: 1,
      kind: 'project',
      begun_at: begunAt.toISOString(),
      version: options.version,
      postgres: major,
      keys: keys.filter((key) => !key.is_droppable).map(({ id, key_check: check }) => ({ id, check })),
      schema_version: options.schemaVersion,
      project,
    }
    let files = 0
    const fill = async (put: (entry: Entry) => Promise<void>) => {
      await put(json(manifestName, manifest))
      await put(json(catalogName, [...catalog.values()] satisfies Catalogued))
      await put(json(tablesName, tables))
      for (const [index, { name: table, columns }] of tables.entries()) {
        let part = 0
        const source = client.query(copyTo(`copy (select ${columns} from only ${table}) to stdout (format binary)`))
        for await (const body of inParts(source)) {
          await put({ name: rowsName(index, part), mode: 0o600, type: 'file', size: body.length, body })
          part += 1
        }
      }
      const { rows } = await client.query<Sequences[number]>(
        `select format('%I.%I', q.schemaname, q.sequencename) as name, q.last_value::text as last
           from pg_catalog.pg_sequences q where q.last_value is not null and q.schemaname !~ '^pg_'`,
      )
      await put(json(sequencesName, rows))
      await client.query('commit')
      say(`${tables.length} tables`)
      // after the rows: what they register is there, unless it was deleted meanwhile
      for await (const names of storage.list(project.id))
        for (const stored of names.filter(isOriginal)) files += await putMedium(put, storage, project.id, stored)
      say(`${files} files`)
      await put(json(pointName, { at, tables: tables.length, files } satisfies ProjectPoint))
    }
    await writeArchive(await options.begin(name), options.recipients, fill)
    return { name, point: { at, tables: tables.length, files } }
  } finally {
    await client.end()
  }
}

const putMedium = async (
  put: (entry: Entry) => Promise<void>,
  storage: MediaStorage,
  projectId: string,
  { assetId, version }: StoredName,
): Promise<number> => {
  const name = { projectId, assetId, object: version }
  const found = await storage.stat(name)
  if (!found) return 0
  const body = await storage.read(name)
  await put({ name: `media/${assetId}/${version}`, mode: 0o600, type: 'file', size: found.size, body })
  return 1
}
