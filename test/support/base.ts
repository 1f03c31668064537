import { createHash } from 'node:crypto'
import { cpSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { binariesIn } from '#fleet/embedded/binaries.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { prepare } from '#fleet/prepare.ts'
import { readConfig } from '#server/config.ts'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { controlName, tenantName } from '#server/database/names.ts'
import { root } from '#server/root.ts'
import { createSecrets } from '#server/secrets.ts'
import { assemble } from '#server/start.ts'
import { createClient, freshEmail } from '#test/support/client.ts'
import { type Base, basePrefix, readyDatabase } from '#test/support/server.ts'

/** Prepared clusters of former runs of a part of the suite, each under a hash of all that it was made from. */
const kept = join(root, 'node_modules/.cache/trellis-tests')

export type StartedBase = Base & {
  /** The process that the backends are children of; null for the server of DATABASE_URL. */
  readonly postmaster: number | null
  stop(): Promise<void>
}

/**
 * One Postgres for the whole run: embedded in `folder`, or the server of DATABASE_URL. Its control database, its template and a
 * ready project's database are made once, for every test to copy. `mayKeep` takes them from a former run where nothing has changed since.
 */
export const startBase = async (folder: string, mayKeep: boolean): Promise<StartedBase> => {
  const keep = mayKeep && !otherVersion
  const secretsKey = process.env['SECRETS_KEY'] ?? Buffer.alloc(32, 7).toString('base64')
  const given = process.env['DATABASE_URL']
  if (given) {
    const server = { dsn: given, socketDirectory: null, secretsKey }
    return { ...server, clusterId: await prepareBase(server, folder), postmaster: null, stop: async () => undefined }
  }
  const from = join(kept, await hashOfBase(secretsKey))
  const isKept = keep && (await restore(from, folder))
  let postgres = await start(folder)
  const server = () => ({ dsn: postgres.url, socketDirectory: postgres.socketDirectory, secretsKey })
  if (!isKept) await prepareBase(server(), folder)
  if (keep && !isKept) {
    // files of a Postgres that runs are no copy of its data
    await postgres.stop()
    await store(folder, from)
    postgres = await start(folder)
  }
  const found = server()
  return { ...found, clusterId: await clusterIdOf(found), postmaster: postgres.pid, stop: () => postgres.stop() }
}

/** The package of another version of Postgres, of which nothing is kept: `npm run proof:versions` names each. */
const otherVersion = process.env['TRELLIS_POSTGRES']

const start = async (dataDir: string): Promise<EmbeddedPostgres> =>
  startEmbeddedPostgres({
    dataDir,
    ...(otherVersion ? { binaries: await binariesIn(otherVersion) } : {}),
    superuserPassword: 'test',
    sync: false,
    maxConnections: 600,
    log: () => undefined,
  })

type Server = Omit<Base, 'clusterId'>

const clusterIdOf = async (server: Server): Promise<string> => {
  const control = await connectAdmin({ id: 'test', ...server }, controlName(basePrefix))
  try {
    const { rows } = await control.query<{ id: string }>(`select id from app.clusters where name = 'own'`)
    return rows[0]?.id ?? ''
  } finally {
    await control.end()
  }
}

/** Answers the cluster's id. */
const prepareBase = async (server: Server, folder: string): Promise<string> => {
  const { cluster } = await prepareAs(basePrefix, server, folder)
  await provisionReady(server, folder)
  return cluster.id
}

const foundationOf = (prefix: string, { dsn, socketDirectory, secretsKey }: Server, folder: string) => ({
  config: readConfig({
    DATABASE_URL: dsn,
    SECRETS_KEY: secretsKey,
    DATA_DIR: folder,
    DATABASE_PREFIX: prefix,
    PORT: '0',
    LOG_LEVEL: 'warn',
  }),
  log: pino({ level: 'warn' }),
  secrets: createSecrets(secretsKey),
  postgres: { dsn, socketDirectory, stop: async () => undefined },
})

const prepareAs = (prefix: string, server: Server, folder: string) => prepare(foundationOf(prefix, server, folder))

/** A project is really provisioned, by the server; its database becomes what the projects of tests are copied from. */
const provisionReady = async (server: Server, folder: string): Promise<void> => {
  const prefix = 'trellis_making'
  const cluster = { id: 'test', ...server }
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  try {
    const drop = (name: string) => admin.query(`drop database if exists "${name}" with (force)`)
    for (const name of ['control', 'template']) {
      await drop(`${prefix}_${name}`)
      await admin.query(`create database "${prefix}_${name}" owner trellis_owner template "${basePrefix}_${name}"`)
    }
    // a copy takes connections, which the start would repair with a warning
    await admin.query(`alter database "${prefix}_template" allow_connections false`)
    const foundation = foundationOf(prefix, server, folder)
    const running = await assemble(foundation, await prepare(foundation))
    let made: string
    try {
      const client = createClient(`http://127.0.0.1:${await running.listen()}`)({})
      const developer = { email: freshEmail(), password: 'a long passphrase' }
      const { data: session } = await client.post('/auth/developer/signup', developer)
      const as = client.with({ authorization: `Bearer ${session.access_token}` })
      const { data } = await as.post('/admin/projects', { name: 'ready' })
      await running.services.fleet.provision(data.project.id)
      made = tenantName(prefix, data.project.id)
    } finally {
      await running.stop()
    }
    await drop(readyDatabase)
    await admin.query(`alter database "${made}" rename to "${readyDatabase}"`)
    await admin.query(`alter database "${readyDatabase}" allow_connections false`)
    for (const name of ['control', 'template']) await drop(`${prefix}_${name}`)
  } finally {
    await admin.end()
  }
}

/** All that a prepared cluster is made from: SQL, the programs that load it, Postgres and graphile-worker, and the key of its secrets. */
const hashOfBase = async (secretsKey: string): Promise<string> => {
  const hash = createHash('sha256').update(`${process.arch} ${process.getuid?.()} ${secretsKey}`)
  const files = ['package-lock.json', 'server/start.ts', 'server/secrets.ts', 'test/support/base.ts']
  for (const folder of ['db', 'functions', 'policies', 'sql', 'server/database', 'fleet']) {
    const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true })
    for (const entry of entries) if (entry.isFile()) files.push(join(entry.parentPath, entry.name).slice(root.length))
  }
  const texts = await Promise.all(files.sort().map(async (file) => [file, await readFile(join(root, file))] as const))
  for (const [file, text] of texts) hash.update(`${file} ${text.length}\n`).update(text)
  return hash.digest('hex').slice(0, 24)
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

/** The copy belongs to us; where we are root, the start gives it to the user that runs Postgres. */
const copyCluster = async (from: string, to: string): Promise<void> => {
  cpSync(from, to, { recursive: true })
  await chmod(to, 0o700)
}

const restore = async (from: string, folder: string): Promise<boolean> => {
  if (!(await isThere(from))) return false
  const to = join(folder, 'cluster')
  try {
    await copyCluster(from, to)
    return true
  } catch {
    // another run replaces it at this moment
    await rm(to, { recursive: true, force: true })
    return false
  }
}

/** Keeps one: a change of the SQL makes another, and nobody goes back often. */
const store = async (folder: string, to: string): Promise<void> => {
  const cluster = join(folder, 'cluster')
  // it stands elsewhere where root's Postgres cannot reach the folder
  if (!(await isThere(cluster))) return
  await mkdir(kept, { recursive: true, mode: 0o700 })
  for (const name of await readdir(kept)) await rm(join(kept, name), { recursive: true, force: true })
  const draft = `${to}.${process.pid}`
  await copyCluster(cluster, draft)
  // another run may have kept the same meanwhile
  await rename(draft, to).catch(() => rm(draft, { recursive: true, force: true }))
}
