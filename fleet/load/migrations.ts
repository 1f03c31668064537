import { type Client, escapeLiteral } from 'pg'
import { type Program, type SqlFile, versionOf } from '#fleet/load/files.ts'
import { retryPassing } from '#fleet/load/transactions.ts'
import type { DatabaseError } from '#server/database/failures.ts'

/** Where dbmate notes what it applied, and so do we: `dbmate --migrations-table ops.schema_migrations` works on the same databases. */
const table = 'ops.schema_migrations'

type Migration = { readonly up: string; readonly firstLine: number; readonly inTransaction: boolean }

const wrong = (file: SqlFile, message: string) => new Error(`${file.path}: ${message}`)

/** The part of a dbmate file that leads up: from `-- migrate:up` to `-- migrate:down`, with its option `transaction:false`. */
export const parseMigration = (file: SqlFile): Migration => {
  const lines = file.text.split('\n')
  const places = (direction: string) =>
    lines.flatMap((line, index) => (new RegExp(`^--\\s*migrate:${direction}(\\s|$)`).test(line) ? [index] : []))
  const [ups, downs] = [places('up'), places('down')]
  const [up, down] = [ups[0], downs[0]]
  if (up === undefined) throw wrong(file, 'has no line "-- migrate:up"')
  if (down === undefined) throw wrong(file, 'has no line "-- migrate:down"')
  if (ups.length > 1 || downs.length > 1) throw wrong(file, 'has more than one "-- migrate:up" or "-- migrate:down"')
  if (up > down) throw wrong(file, '"-- migrate:up" must come before "-- migrate:down"')
  if (lines.slice(0, up).some((line) => !/^\s*(--.*)?$/.test(line)))
    throw wrong(file, 'has a statement before "-- migrate:up"')
  return {
    up: lines.slice(up, down).join('\n'),
    firstLine: up + 1,
    inTransaction: !/\stransaction:false(\s|$)/.test(lines[up] ?? ''),
  }
}

const appliedVersions = async (client: Client): Promise<Set<string>> => {
  const { rows: found } = await client.query<{ exists: boolean }>(
    `select to_regclass('${table}') is not null as exists`,
  )
  if (!found[0]?.exists) return new Set()
  const { rows } = await client.query<{ version: string }>(`select version from ${table}`)
  return new Set(rows.map((row) => row.version))
}

export const pendingMigrations = async (client: Client, program: Program): Promise<string[]> => {
  if (program.migrations.length === 0) return []
  const applied = await appliedVersions(client)
  const pending = program.migrations.filter((version) => !applied.has(version))
  // as dbmate --strict: later migrations may already build on what the database does not have
  const newest = [...applied].sort().at(-1)
  if (pending[0] && newest && pending[0] <= newest)
    throw new Error(
      `Migration ${pending[0]} is older than ${newest}, which is applied here: a new migration needs a version after all others.`,
    )
  return pending
}

/** Runs these as dbmate does: each in a transaction of its own with its row in ops.schema_migrations. The migration lock must be held. */
export const runMigrations = async (client: Client, program: Program, versions: readonly string[]): Promise<void> => {
  await client.query(`create table if not exists ${table} (version varchar(128) primary key)`)
  const files = versions.map((version) => {
    const file = program.migrationFiles.find((candidate) => versionOf(candidate.path) === version)
    if (!file) throw new Error(`The file of migration ${version} is missing.`)
    return file
  })
  for (const file of await runTogether(client, files)) await runOne(client, file, versionOf(file.path))
  // a migration may have changed a setting of the session
  if (versions.length > 0) await client.query('reset all')
}

const begin = `begin; set local lock_timeout = '200ms'`
const noteText = (version: string) => `insert into ${table} (version) values (${escapeLiteral(version)})`

/**
 * Sends many migrations in one message, still one transaction each, so that Postgres need not wait for this process, which has other work at a first
 * start. Answers those that are left: what fails here is run by itself, which names the line of a mistake and tries again where a lock is held.
 */
const runTogether = async (client: Client, files: readonly SqlFile[]): Promise<readonly SqlFile[]> => {
  const text = textOf(files)
  if (files.length < 2 || text === null) return files
  await client.query(text).catch(() => client.query('rollback'))
  // asked also where nothing failed: a comment that one file leaves open swallows what follows
  const applied = await appliedVersions(client)
  return files.filter(({ path }) => !applied.has(versionOf(path)))
}

/** Null where one cannot be sent so: it must not run in a transaction, or is no migration. */
const textOf = (files: readonly SqlFile[]): string | null => {
  try {
    const migrations = files.map((file) => ({ ...parseMigration(file), version: versionOf(file.path) }))
    if (migrations.some(({ inTransaction }) => !inTransaction)) return null
    return migrations.map(({ up, version }) => `${begin};\n${up}\n;${noteText(version)};\ncommit;`).join('\n')
  } catch {
    return null
  }
}

const runOne = async (client: Client, file: SqlFile, version: string): Promise<void> => {
  const migration = parseMigration(file)
  const note = () => client.query(noteText(version))
  const run = () =>
    client.query(migration.up).catch((error: DatabaseError & { position?: string }) => {
      const line = error.position
        ? migration.firstLine + migration.up.slice(0, Number(error.position)).split('\n').length - 1
        : '?'
      throw Object.assign(error, { message: `${file.path}:${line}: ${error.message}` })
    })
  if (!migration.inTransaction) {
    await run()
    await note()
    return
  }
  await retryPassing(client, begin, async () => {
    await run()
    await note()
  })
}
