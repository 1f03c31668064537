import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { address } from '#server/database/cluster.ts'
import { type CallSettings, createDatabase } from '#server/database/database.ts'
import { currentHost, followHosts, locate, withHosts } from '#server/database/hosts.ts'
import { createLag, followReplica, type Replica } from '#server/database/replica.ts'
import { loadAreas } from '#server/http/areas.ts'
import { startHarness } from '#test/support/harness.ts'
import { startLoad } from '#test/support/moving.ts'
import { ask, createTestProject, endPrograms, endServer, startServer, startWorker } from '#test/support/process.ts'
import {
  addressOf,
  makeSynchronous,
  type Running,
  startAgain,
  startNetwork,
  startPrimary,
  startStandby,
} from '#test/support/standby.ts'

const servers: Running[] = []
const networks: { close(): Promise<void> }[] = []
const started = async (server: Promise<Running>) => {
  const one = await server
  servers.push(one)
  return one
}
afterAll(async () => {
  await endPrograms()
  for (const network of networks) await network.close()
  for (const server of servers) await server.stop()
}, 120_000)

const settings = { SECRETS_KEY: randomBytes(32).toString('base64'), LOG_LEVEL: 'info' }

test('a machine that answers nothing any more is left, and one connection watches its successor', {
  timeout: 240_000,
}, async () => {
  const primary = await started(startPrimary())
  await endServer(await startServer({ ...settings, DATABASE_URL: primary.url }))
  const standby = await started(startStandby(primary, 'one'))
  await makeSynchronous(primary)
  const network = await startNetwork(primary)
  networks.push(network)
  const env = { ...settings, DATABASE_URL: addressOf(network, standby) }
  const server = await startServer({ ...env, WORKER: 'off' })
  const worker = await startWorker(env)
  const project = await createTestProject(server.url)
  const load = startLoad(server.url, project)
  await expect.poll(() => load.accepted.length, { timeout: 30_000 }).toBeGreaterThan(50)
  network.vanish()
  await primary.kill()
  const before = load.accepted.length
  await standby.sql('select pg_promote()')
  await expect.poll(() => load.accepted.length, { timeout: 30_000 }).toBeGreaterThan(before + 50)
  await load.stop()
  // 429: four calls of one user wait for the machine, and the user may have no more
  expect([...load.statuses.keys()].filter((status) => !['200', '201', '429', '503'].includes(status))).toEqual([])
  await createTestProject(server.url)
  const watching = () =>
    standby.sql(`select from pg_stat_activity where application_name = 'trellis_hosts'`).then(({ length }) => length)
  // the server's and the worker's
  await expect.poll(watching, { timeout: 30_000 }).toBe(2)
  // each is asked once a second, and not twice
  const began = Date.now()
  const questions = new Set<string>()
  while (Date.now() < began + 4000)
    for (const { pid, at } of await standby.sql<{ pid: number; at: string }>(
      `select pid, query_start::text as at from pg_stat_activity where application_name = 'trellis_hosts'`,
    ))
      questions.add(`${pid} ${at}`)
  expect(questions.size).toBeLessThanOrEqual(2 * (1 + Math.ceil((Date.now() - began) / 1000)))
  await Promise.all([endServer(server), endServer(worker)])
})

test('while the only primary is a standby requests are answered 503, and all goes on once it is a primary again', {
  timeout: 240_000,
}, async () => {
  const primary = await started(startPrimary())
  const never = { port: 1 }
  const env = { ...settings, DATABASE_URL: addressOf(primary, never) }
  const server = await startServer(env)
  const project = await createTestProject(server.url)
  const event = () => ask(server.url, 'POST', '/v1/client/events', { events: [{ event_name: 'moved' }] }, project.user)
  expect((await event()).status).toBe(201)
  await primary.stop()
  const demoted = await started(startAgain(primary, true))
  expect(demoted.port).toBe(primary.port)
  const found = new Set<string>()
  for (let sent = 0; sent < 40; sent += 1) {
    const { status, body } = await event()
    found.add(`${status} ${body.error?.code}`)
    await sleep(50)
  }
  expect([...found].filter((one) => !one.startsWith('503'))).toEqual([])
  await demoted.sql('select pg_promote()')
  await expect.poll(async () => (await event()).status, { timeout: 30_000 }).toBe(201)
  // the queue too
  await createTestProject(server.url)
  await endServer(server)
})

test('a former primary that comes back is not written to, whichever is named first', { timeout: 120_000 }, async () => {
  const primary = await started(startPrimary())
  const standby = await started(startStandby(primary, 'three'))
  await primary.kill()
  await standby.sql('select pg_promote()')
  await started(startAgain(primary))
  for (const order of [
    [primary, standby],
    [standby, primary],
  ]) {
    const dsn = withHosts(addressOf(...order), 'DATABASE_URL')
    await locate(dsn)
    expect(currentHost(dsn)?.port).toBe(standby.port)
  }
  // and not while its successor is away either
  await standby.kill()
  await expect(locate(withHosts(addressOf(primary, standby), 'DATABASE_URL'))).rejects.toThrow('None of 127.0.0.1:')
})

test('a primary that goes on though a standby was promoted is left', { timeout: 120_000 }, async () => {
  const primary = await started(startPrimary())
  const standby = await started(startStandby(primary, 'five'))
  const dsn = withHosts(addressOf(primary, standby), 'DATABASE_URL')
  await locate(dsn)
  expect(currentHost(dsn)?.port).toBe(primary.port)
  const said: object[] = []
  const own = new Set<unknown>([primary.port, standby.port, `127.0.0.1:${primary.port}`])
  // other addresses of this process are followed too
  const noted = (about: { port?: number; hosts?: string }, text: string) =>
    own.has(about.port ?? about.hosts) && said.push({ ...about, text })
  const following = followHosts({ info: noted, warn: noted } as never)
  // it has a connection to the one that it follows, and asks it, before another is promoted
  await expect
    .poll(
      () =>
        primary.sql(
          `select from pg_stat_activity where application_name = 'trellis_hosts' and query_start > backend_start + interval '0.5 seconds'`,
        ),
      { timeout: 30_000 },
    )
    .not.toHaveLength(0)
  await standby.sql('select pg_promote()')
  await expect.poll(() => currentHost(dsn)?.port, { timeout: 30_000 }).toBe(standby.port)
  await expect
    .poll(() => said, { timeout: 30_000 })
    .toEqual([
      {
        hosts: `127.0.0.1:${primary.port}`,
        text: 'takes writes, but another was promoted since, so it is not used: stop it',
      },
      { host: '127.0.0.1', port: standby.port, text: 'this is the primary' },
    ])
  await following.close()
})

const followed: Replica[] = []
afterAll(() => Promise.all(followed.map((replica) => replica.close())))
const follow = (replica: { readonly port: number }, primary: Running, mostLagSeconds: number) => {
  const said: string[] = []
  const noted = (about: { readonly why?: string }) => said.push(about.why ?? 'used')
  const found = followReplica({
    dsn: addressOf(replica),
    primary: primary.url,
    mostLagSeconds,
    log: { info: noted, warn: noted } as never,
  })
  followed.push(found)
  return { replica: found, said }
}

test('a standby that receives nothing is not read, though it has replayed all that it received', {
  timeout: 120_000,
}, async () => {
  const primary = await started(startPrimary())
  const wire = await startNetwork(primary)
  networks.push(wire)
  const standby = await started(startStandby(primary, 'four', wire))
  const stranger = await started(startPrimary())
  const { replica, said } = follow(standby, primary, 1)
  await expect.poll(() => replica.usable(), { timeout: 30_000 }).toMatchObject({ port: standby.port })
  const other = follow(standby, stranger, 3600)
  const network = await startNetwork(standby)
  networks.push(network)
  const remote = follow(network, primary, 3600)
  await expect.poll(() => remote.replica.usable(), { timeout: 30_000 }).not.toBeNull()
  wire.vanish()
  await primary.sql('create table unseen ()')
  await expect.poll(() => replica.usable(), { timeout: 30_000 }).toBeNull()
  expect(said.at(-1)).toMatch(/^it is \d+ s behind$/)
  expect(other.said).toEqual(['it is the standby of another server'])
  let lost = 0
  remote.replica.onLost(() => {
    lost += 1
  })
  network.vanish()
  await expect.poll(() => lost, { timeout: 30_000 }).toBeGreaterThan(0)
  expect(remote.replica.usable()).toBeNull()
})

test('the lag is the time since the primary had what the standby lacks', () => {
  const lag = createLag()
  lag.written(1_000, 10n)
  expect(lag.after(1_500, 5n)).toBe(0.5)
  lag.written(2_000, 10n)
  lag.written(3_000, 20n)
  expect(lag.after(4_000, 9n)).toBe(3)
  expect(lag.after(4_000, 10n)).toBe(1)
  expect(lag.after(900_000, 20n)).toBe(0)
  // nothing was written meanwhile
  lag.written(900_000, 20n)
  lag.written(901_000, 30n)
  expect(lag.after(901_000, 20n)).toBe(0)
  // a primary that was restored is at an earlier place
  lag.written(902_000, 7n)
  expect(lag.after(903_000, 6n)).toBe(1)
  expect(lag.after(903_000, 7n)).toBe(0)
})

test('only reads go to a replica: no route that writes is declared so, and no call that writes asks it', async () => {
  const harness = await startHarness()
  const { services } = harness.running
  const routes = (await loadAreas()).flatMap(({ routes }) => routes).filter(({ stale }) => stale)
  expect(routes.length).toBeGreaterThan(10)
  expect(routes.filter(({ readOnly, method }) => !(readOnly ?? method === 'GET'))).toEqual([])
  const warned: string[] = []
  let cut = () => undefined as unknown
  const database = createDatabase({
    secrets: services.secrets,
    limits: { total: 10, perTenant: 4 },
    timeoutMs: 500,
    log: { warn: (_: object, text: string) => warned.push(text), error: () => undefined } as never,
    replica: {
      // nothing answers there
      usable: () => ({ host: '127.0.0.1', port: 1, ssl: undefined }),
      onLost: (listener) => {
        cut = listener
        return () => undefined
      },
    },
  })
  const place = { ...services.control, cluster: { ...services.control.cluster, isOwn: true } }
  const run = (text: string, settings: CallSettings) =>
    database.execute(place, 'control_worker', { caller: 'worker' }, () => ({ name: '', text, values: [] }), settings)
  const write = "select set_config('app.changed', current_setting('transaction_read_only'), true)"
  expect((await run(write, { stale: true })).row).toEqual(['off'])
  expect((await run(write, { readOnly: true })).row).toEqual(['on'])
  expect(warned).toEqual([])
  // a read asks it first, and then the primary, where it cannot write either
  expect((await run(write, { stale: true, readOnly: true })).row).toEqual(['on'])
  expect(warned).toEqual(['the replica did not answer: the primary does'])
  // a server that cannot be asked is not waited for
  cut()
  expect((await run('select 1', {})).row).toEqual(['1'])
  await database.close()
})

test('what a replica took too long for is not asked of the primary too', async () => {
  const harness = await startHarness()
  const { services } = harness.running
  const warned: string[] = []
  const { cluster } = services.control
  const { host, port } = address(cluster)
  const database = createDatabase({
    secrets: services.secrets,
    limits: { total: 10, perTenant: 4 },
    timeoutMs: 200,
    log: { warn: (_: object, text: string) => warned.push(text), error: () => undefined } as never,
    replica: { usable: () => ({ host, port, ssl: undefined }), onLost: () => () => undefined },
  })
  const place = { ...services.control, cluster: { ...cluster, isOwn: true } }
  const slow = database.execute(
    place,
    'control_worker',
    { caller: 'worker' },
    () => ({ name: '', text: 'select pg_sleep(600)', values: [] }),
    { stale: true, readOnly: true },
  )
  await expect(slow).rejects.toMatchObject({ code: '57014' })
  expect(warned).toEqual([])
  await database.close()
})
