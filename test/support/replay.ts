import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import { checksumHere } from '#fleet/load/checksum.ts'
import { type Program, readProgram } from '#fleet/load/files.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { createLoader, type Loader, type TargetOf } from '#fleet/load/replay.ts'
import { fingerprintOf, stateOf } from '#fleet/load/state.ts'
import { managedOf, readTarget } from '#fleet/load/target.ts'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { templateName } from '#server/database/names.ts'
import { root } from '#server/root.ts'
import type { Harness } from '#test/support/harness.ts'

/** Databases of one program, whose files a test edits: the first is loaded file by file and stands for the template, the others follow it. */
export type Replay = {
  readonly base: () => string
  nameOf(n: number): string
  client(n: number): Client
  program(): Promise<Program>
  /** Of the administrator's, outside these databases. */
  onMaintenance(text: string): Promise<void>
  edit(path: string, change: (text: string) => string): Promise<void>
  /** Makes database n a copy of database 0. */
  cloneOf(n: number): Promise<void>
  migrate(n: number, loader?: Loader, target?: TargetOf): Promise<string[]>
  snapshot(n: number): Promise<string[]>
  /**
   * Brings database 0 to the files of `base` one by one, and 1 and 2 to what it is then; all must end the same. Answers of both whether a difference
   * was replayed.
   */
  upgradeAll(): Promise<{ replayed: boolean[] }>
  /** A further, empty database, which is dropped after `work`. */
  withDatabase<T>(name: string, work: (client: Client, database: string) => Promise<T>): Promise<T>
}

/** Everything that the loader manages, as text. */
export const linesOf = async (client: Client): Promise<string[]> =>
  [...(await stateOf(client)).values()].map((item) => Object.values(item).join(' | ')).sort()

/** Areas that need no other one: what is not about them is tested with these, in a fifth of the time. */
const fewAreas = ['definitions', 'idempotency', 'outbox', 'push_tokens', 'roles', 'settings']
const fewSeeds = ['ai_prices', 'name_words', 'timezones']

const leaveOnly = async (folder: string, stems: readonly string[]) => {
  for (const name of await readdir(folder))
    if (!stems.includes(name.replace('.sql', ''))) await rm(join(folder, name), { recursive: true })
}

type Options = {
  /** How many databases. */
  readonly count: number
  /** Whether all areas are in the program, or few of them. The tables are the same. */
  readonly areas: 'all' | 'few'
}

/** Call it at the top of a file: the databases go with the harness. */
export const startReplay = (harness: Harness, { count, areas }: Options): Replay => {
  const { cluster } = harness.running.services.control
  const clients: Client[] = []
  let base = ''
  const nameOf = (n: number) => `${harness.prefix}_replay_${n}`
  const client = (n: number) => clients[n]!
  const program = () => readProgram('tenant', base)

  const onMaintenance = async (text: string) => {
    const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
    await admin.query(text).finally(() => admin.end())
  }
  const create = (name: string, template: string) =>
    onMaintenance(
      template === 'template0'
        ? `create database "${name}" owner trellis_owner template template0`
        : `create database "${name}" owner trellis_owner template "${template}" strategy file_copy`,
    )
  const drop = (name: string) => onMaintenance(`drop database if exists "${name}" with (force)`)
  const connect = async (n: number) => {
    clients[n] = await connectAdmin(cluster, nameOf(n))
  }

  beforeAll(async () => {
    base = await mkdtemp(join(tmpdir(), 'trellis-replay-'))
    for (const folder of ['sql', 'functions', 'policies', 'db'])
      await cp(join(root, folder), join(base, folder), { recursive: true })
    if (areas === 'all') await create(nameOf(0), templateName(harness.prefix))
    else {
      for (const kind of ['functions', 'policies']) await leaveOnly(join(base, kind, 'tenant'), fewAreas)
      await leaveOnly(join(base, 'sql/seeds/tenant'), fewSeeds)
      await create(nameOf(0), 'template0')
      await migrateDatabase(cluster, nameOf(0), await program())
    }
    for (let n = 1; n < count; n += 1) await create(nameOf(n), nameOf(0))
    for (let n = 0; n < count; n += 1) await connect(n)
  })
  afterAll(async () => {
    for (const open of clients) await open.end()
    for (let n = 0; n < count; n += 1) await drop(nameOf(n))
    await rm(base, { recursive: true, force: true })
  })

  const migrate: Replay['migrate'] = async (n, loader, target) => {
    const log = { warn: () => undefined }
    return migrateDatabase(cluster, nameOf(n), await program(), { log, ...(loader ? { loader, target } : {}) })
  }
  const snapshot = (n: number) => linesOf(client(n))

  return {
    base: () => base,
    nameOf,
    client,
    program,
    onMaintenance,
    async edit(path, change) {
      const file = join(base, path)
      const text = await readFile(file, 'utf8')
      expect(change(text), path).not.toBe(text)
      await writeFile(file, change(text))
    },
    async cloneOf(n) {
      for (const one of [0, n]) await client(one).end()
      await drop(nameOf(n))
      await create(nameOf(n), nameOf(0))
      for (const one of [0, n]) await connect(one)
    },
    migrate,
    snapshot,
    async upgradeAll() {
      const former = await fingerprintOf(client(1))
      const before = managedOf(client(1))
      await migrate(0)
      const target = await readTarget(client(0), before)
      const templates: TargetOf = async (fingerprint, read) =>
        fingerprint === former ? { before: await read(), target } : null
      const loader = createLoader()
      const began = [await transactionsOf(client(1)), await transactionsOf(client(2))]
      const applied = await migrate(1, loader, templates)
      expect(applied.length).toBeGreaterThan(0)
      expect(await migrate(2, loader, templates)).toEqual(applied)
      const [first, second, third] = [await snapshot(0), await snapshot(1), await snapshot(2)]
      expect(second).toEqual(first)
      expect(third).toEqual(first)
      expect(await fingerprintOf(client(2))).toBe(await fingerprintOf(client(0)))
      const ended = [await transactionsOf(client(1)), await transactionsOf(client(2))]
      return { replayed: ended.map((transactions, n) => transactions <= began[n]! + 1) }
    },
    async withDatabase(name, work) {
      const whole = `${harness.prefix}_replay_${name}`
      await create(whole, 'template0')
      const open = await connectAdmin(cluster, whole)
      try {
        return await work(open, whole)
      } finally {
        await open.end()
        await drop(whole)
      }
    },
  }
}

/** Transactions that wrote which files are applied: file by file there is one for each. */
const transactionsOf = async (client: Client) => {
  const { rows } = await client.query<{ n: string }>('select count(distinct xmin::text)::int as n from ops.files')
  return Number(rows[0]?.n)
}

/** Whether what was noted when this database was loaded still counts. */
export const isNoted = async (client: Client): Promise<boolean> => {
  const { rows } = await client.query<{ checksum: string }>('select checksum from ops.loaded')
  return rows[0]?.checksum === (await checksumHere(client)).checksum
}
