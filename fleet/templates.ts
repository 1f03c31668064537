import type pg from 'pg'
import { type Signatures, signaturesOf } from '#fleet/checks/names.ts'
import { databaseExists } from '#fleet/cluster.ts'
import { formerNotedIn, knownOf, noteLoaded } from '#fleet/load/checksum.ts'
import type { Program } from '#fleet/load/files.ts'
import { changedFiles } from '#fleet/load/load.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { pendingMigrations } from '#fleet/load/migrations.ts'
import { type Managed, managedOf, readTarget, type Upgrade } from '#fleet/load/target.ts'
import { withClusterLock, withDatabaseLock } from '#fleet/locks.ts'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'

/** What a template is to tenants. */
export type Template = {
  /** Fingerprint of the template before: a tenant with the same one was changed by nobody. Null where there was none. */
  readonly former: string | null
  /** What such tenants are and what they are brought to; null where another fingerprint was asked for. */
  readonly upgrade: Pick<Upgrade, 'before' | 'target'> | null
}

/**
 * Reads the template for tenants with this fingerprint. It is closed to connections, and opened for the time of the reading; a tenant that is made
 * meanwhile waits. Null where it holds another program than this one. Takes the cluster lock.
 */
export const readTemplate = (
  cluster: Cluster,
  template: string,
  program: Program,
  fingerprint: string,
  before: Promise<Managed>,
): Promise<Template | null> =>
  withClusterLock(cluster, (admin) =>
    whileOpen(cluster, admin, template, async (client) => {
      const isOther = (await changedFiles(client, program)).length > 0
      if (isOther || (await pendingMigrations(client, program)).length > 0) return null
      const former = await formerNotedIn(client)
      if (former !== fingerprint) return { former, upgrade: null }
      const target = await readTarget(client, before)
      return { former, upgrade: { before: await before, target } }
    }),
  )

/** Null where there is no such database. */
const whileOpen = async <T>(
  cluster: Cluster,
  admin: pg.Client,
  database: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T | null> => {
  if (!(await databaseExists(admin, database))) return null
  await admin.query(`alter database "${database}" allow_connections true`)
  try {
    const client = await connectAdmin(cluster, database)
    return await work(client).finally(() => client.end())
  } finally {
    await admin.query(`alter database "${database}" allow_connections false`)
  }
}

/** More changed files than this are loaded faster into an empty database, in one transaction, than one by one. Migrations take as long in either. */
const fewFiles = 20

type DraftOptions = {
  /** Throws when the draft would fail requests: it then stays a draft. */
  readonly check?: (draft: string, former: Signatures | null) => Promise<void>
  /** Called as soon as Postgres copies files, for some tenths of a second in which this process is idle. */
  readonly onCopying?: () => void
  /** Whether tenants follow at once: then what they need of the former template and the new one is read while the new one is made and checked. */
  readonly isRolledOut?: boolean
}

/**
 * Builds a new template beside the old one, so that it is never open for connections and never half made: a copy of the old one in which
 * few files change and the new migrations run, and otherwise a new database. The cluster lock must be held until publishDraft has renamed it. Answers
 * what `isRolledOut` asks for; null where there was no template, or where migrations change what is there before the files are loaded.
 */
export const buildDraft = async (
  cluster: Cluster,
  admin: pg.Client,
  template: string,
  program: Program,
  { check = async () => undefined, onCopying = () => undefined, isRolledOut = false }: DraftOptions = {},
): Promise<Upgrade | null> => {
  const draft = draftOf(template)
  await admin.query(`drop database if exists "${draft}" with (force)`)
  const former = await whileOpen(cluster, admin, template, async (client) => ({
    ...(await distanceOf(client, program)),
    fingerprint: (await knownOf(client))?.fingerprint ?? null,
    signatures: await signaturesOf(client),
  }))
  const source = former?.isNear ? `"${template}" strategy wal_log` : `template0 encoding 'UTF8'`
  const copied = admin.query(`create database "${draft}" owner trellis_owner template ${source}`)
  onCopying()
  await copied
  await admin.query(`revoke all on database "${draft}" from public`)
  const isFollowed = isRolledOut && former?.fingerprint && former.isMigrated
  const [before] = await allOf([
    isFollowed ? whileOpen(cluster, admin, template, managedOf) : null,
    migrateDatabase(cluster, draft, program, { isProvisional: true }),
  ])
  const client = await connectAdmin(cluster, draft, true, '-c synchronous_commit=off')
  try {
    if (!former?.isNear) await compact(client)
    const noting = noteLoaded(client, former?.fingerprint)
    const read = async (managed: Managed) => {
      const reader = await connectAdmin(cluster, draft)
      return readTarget(reader, managed, noting).finally(() => reader.end())
    }
    const [target] = await allOf([before && read(before), noting, check(draft, former?.signatures ?? null)])
    return former?.fingerprint && before && target ? { former: former.fingerprint, before, target } : null
  } finally {
    await client.end()
  }
}

/** Waits for all of them, each with a connection of its own, before an error of one is thrown. */
const allOf = async <T extends readonly unknown[]>(work: T): Promise<{ [K in keyof T]: Awaited<T[K]> }> => {
  const results = await Promise.allSettled(work)
  for (const result of results) if (result.status === 'rejected') throw result.reason
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as { [K in keyof T]: Awaited<T[K]> }
}

/**
 * How far a database is from a program. `isNear`: the migrations that are missing are new ones, and of the files only a few of functions, policies
 * and seeds differ.
 */
const distanceOf = async (
  client: pg.Client,
  program: Program,
): Promise<{ readonly isNear: boolean; readonly isMigrated: boolean }> => {
  const changed = await changedFiles(client, program)
  const pending = await pendingMigrations(client, program).catch(() => null)
  const bases = new Set(program.base.map(({ path }) => path))
  const isNear = pending !== null && changed.length <= fewFiles && !changed.some((path) => bases.has(path))
  return { isNear, isMigrated: pending?.length === 0 }
}

export const draftOf = (template: string) => `${template}_draft`

/**
 * Renames the draft into the place of the template. The former template is put aside: dropping a database forces a checkpoint, which takes seconds
 * on a busy server, so this is left to `dropFormer`.
 */
export const publishDraft = async (admin: pg.Client, template: string): Promise<void> => {
  const draft = draftOf(template)
  await admin.query(`alter database "${draft}" allow_connections false`)
  const { rows } = await admin.query<{ oid: string }>('select oid from pg_catalog.pg_database where datname = $1', [
    template,
  ])
  if (rows[0]) await admin.query(`alter database "${template}" rename to "${template}_former_${rows[0].oid}"`)
  await admin.query(`alter database "${draft}" rename to "${template}"`)
}

/** Drops the templates that were put aside. */
export const dropFormer = async (cluster: Cluster, admin: pg.Client, template: string): Promise<void> => {
  const { rows } = await admin.query<{ name: string }>(
    `select d.datname as name
       from pg_catalog.pg_database d
      where starts_with(d.datname, $1) and substr(d.datname, length($1) + 1) ~ '^_former_[0-9]+$'`,
    [template],
  )
  for (const { name } of rows)
    await withDatabaseLock(cluster, name, (client) => client.query(`drop database if exists "${name}" with (force)`))
}

export const buildTemplate = async (
  cluster: Cluster,
  admin: pg.Client,
  template: string,
  program: Program,
): Promise<void> => {
  await buildDraft(cluster, admin, template, program)
  await publishDraft(admin, template)
}

/**
 * Every project's database is a copy of the template, with what loading left behind: dead rows of the catalog, and free space maps and
 * visibility maps, which are files of their own. Rewrites only tables that have something to lose, as this is a part of the first start.
 */
const compact = async (client: pg.Client): Promise<void> => {
  const { rows } = await client.query<{ names: string }>(
    `select string_agg(format('%I.%I', n.nspname, c.relname), ', ' order by array_position($1, c.relname::text) nulls first, c.oid) as names
       from pg_catalog.pg_class c
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'm') and not c.relisshared and n.nspname <> 'pg_toast'
        and (pg_relation_size(c.oid, 'fsm') > 0 or pg_relation_size(c.oid, 'vm') > 0 or pg_table_size(c.oid) > 65536)`,
    // last: each table that is rewritten leaves dead rows in these
    [['pg_index', 'pg_type', 'pg_depend', 'pg_attribute', 'pg_class']],
  )
  await client.query(`vacuum (full) ${rows[0]?.names}`)
}
