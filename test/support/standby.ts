import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chown, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { superuser } from '#fleet/embedded/folder.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { temporaryFolder } from '#test/support/process.ts'

export const password = 'standby-test'

export type Running = EmbeddedPostgres & {
  readonly dataDir: string
  sql<T extends object = any>(text: string, values?: unknown[], database?: string): Promise<T[]>
  /** As a machine that loses power: nothing is said to anybody. */
  kill(): Promise<void>
}

const running = (postgres: EmbeddedPostgres, dataDir: string): Running => ({
  ...postgres,
  dataDir,
  async sql<T extends object>(text: string, values: unknown[] = [], database = 'postgres') {
    const url = new URL(postgres.url)
    url.pathname = `/${database}`
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    return (await client.query<T>(text, values).finally(() => client.end())).rows
  },
  async kill() {
    process.kill(postgres.pid, 'SIGKILL')
    const client = () => new pg.Client({ connectionString: postgres.url, connectionTimeoutMillis: 1000 })
    for (;;) {
      const one = client()
      one.on('error', () => undefined)
      const isThere = await one.connect().then(
        () => true,
        () => false,
      )
      if (!isThere) return
      await one.end()
    }
  },
})

export const startPrimary = async (): Promise<Running> => {
  const dataDir = await temporaryFolder()
  return running(
    await startEmbeddedPostgres({ dataDir, superuserPassword: password, log: () => undefined, maxConnections: 300 }),
    dataDir,
  )
}

/** A copy of the primary that follows it, as pg_basebackup makes it; where that is wanted, over a network that can go. */
export const startStandby = async (
  primary: Running,
  name: string,
  through: { readonly port: number } = primary,
): Promise<Running> => {
  const dataDir = await temporaryFolder()
  const [from, to] = [join(primary.dataDir, 'cluster'), join(dataDir, 'cluster')]
  const session = new pg.Client({ connectionString: primary.url })
  await session.connect()
  await session.query('select pg_create_physical_replication_slot($1, true)', [name])
  await session.query(`select pg_backup_start('standby', true)`)
  // files that go while they are copied are no mistake
  await promisify(execFile)('cp', ['-a', from, to]).catch(() => undefined)
  const { rows } = await session.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
  await session.end()
  for (const file of ['postmaster.pid', 'postmaster.opts']) await rm(join(to, file), { force: true })
  for (const folder of ['pg_wal', 'pg_replslot'])
    for (const entry of await readdir(join(to, folder)))
      if (entry !== 'archive_status' && entry !== 'summaries') await rm(join(to, folder, entry), { recursive: true })
  const { uid, gid } = await stat(from)
  for (const [file, text] of [
    ['backup_label', rows[0]?.labelfile ?? ''],
    ['standby.signal', ''],
  ] as const) {
    await writeFile(join(to, file), text, { mode: 0o600 })
    await chown(join(to, file), uid, gid)
  }
  const url = new URL(primary.url)
  return running(
    await startEmbeddedPostgres({
      dataDir,
      superuserPassword: password,
      log: () => undefined,
      maxConnections: 300,
      settings: {
        primary_conninfo: `host=127.0.0.1 port=${through.port} user=${url.username} password=${password} application_name=${name}`,
        primary_slot_name: name,
        max_standby_streaming_delay: '2s',
      },
    }),
    dataDir,
  )
}

/** Starts one that has ended on its data again, on the same port; as a standby that follows nobody where that is wanted. */
export const startAgain = async ({ dataDir }: Running, asStandby = false): Promise<Running> => {
  if (asStandby) {
    const file = join(dataDir, 'cluster/standby.signal')
    const { uid, gid } = await stat(join(dataDir, 'cluster'))
    await writeFile(file, '', { mode: 0o600 })
    await chown(file, uid, gid)
  }
  return running(
    await startEmbeddedPostgres({ dataDir, superuserPassword: password, log: () => undefined, maxConnections: 300 }),
    dataDir,
  )
}

/** The way to a server over a network that can go: from then on nothing is passed on, nothing is closed, and nobody is told. */
export const startNetwork = async ({ port }: Running) => {
  const sockets = new Set<Socket>()
  let isGone = false
  const server = createServer((near) => {
    sockets.add(near)
    near.on('error', () => undefined)
    if (isGone) return
    const far = connect(port, '127.0.0.1')
    sockets.add(far)
    far.on('error', () => undefined)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (bytes: Buffer) => {
        if (!isGone) to.write(bytes)
      })
      from.on('close', () => {
        if (!isGone) to.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    vanish() {
      isGone = true
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The address of all, as an operator writes it. */
export const addressOf = (...servers: readonly { readonly port: number }[]): string => {
  const list = servers.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return `postgres://${superuser}:${password}@${list}/postgres?sslmode=disable&target_session_attrs=read-write`
}

/** From now on a commit is answered when the standby has it on its disk too. */
export const makeSynchronous = async (primary: Running): Promise<void> => {
  const until = Date.now() + 30_000
  while ((await primary.sql(`select from pg_stat_replication where state = 'streaming'`)).length === 0) {
    if (Date.now() > until) throw new Error('the standby does not follow')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await primary.sql(`alter system set synchronous_standby_names = '*'`)
  await primary.sql('select pg_reload_conf()')
  while ((await primary.sql(`select from pg_stat_replication where sync_state = 'sync'`)).length === 0)
    await new Promise((resolve) => setTimeout(resolve, 50))
}
