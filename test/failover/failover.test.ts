import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { readConfig } from '#server/config.ts'
import { libpqUrl, withHosts } from '#server/database/hosts.ts'
import { runScript } from '#test/support/admin.ts'
import { databaseOf, startLoad } from '#test/support/moving.ts'
import { ask, createTestProject, endPrograms, endServer, startServer, startWorker } from '#test/support/process.ts'
import { addressOf, makeSynchronous, type Running, startPrimary, startStandby } from '#test/support/standby.ts'

const servers: Running[] = []
const started = async (server: Promise<Running>) => {
  const one = await server
  servers.push(one)
  return one
}
afterAll(async () => {
  await endPrograms()
  for (const server of servers) await server.stop()
}, 120_000)

const key = randomBytes(32).toString('base64')

test('a standby is promoted under load: what was answered is there once, servers and workers come back by themselves', {
  timeout: 240_000,
}, async () => {
  const primary = await started(startPrimary())
  const env = { DATABASE_URL: primary.url, SECRETS_KEY: key, LOG_LEVEL: 'warn' }
  // what is there before the standby is copied with it
  await endServer(await startServer(env))
  const standby = await started(startStandby(primary, 'one'))
  await makeSynchronous(primary)
  // also when the address names the standby first
  const both = { ...env, DATABASE_URL: addressOf(standby, primary) }
  const server = await startServer({ ...both, WORKER: 'off' })
  expect(server.output()).not.toContain('StartError')
  const worker = await startWorker(both)
  const project = await createTestProject(server.url)
  const load = startLoad(server.url, project)
  await expect.poll(() => load.accepted.length, { timeout: 30_000 }).toBeGreaterThan(50)
  await primary.kill()
  await expect.poll(() => load.refusals.length, { timeout: 30_000 }).toBeGreaterThan(3)
  const before = load.accepted.length
  await standby.sql('select pg_promote()')
  await expect.poll(() => load.accepted.length, { timeout: 30_000 }).toBeGreaterThan(before + 50)
  await load.stop()
  // 200: it was committed, its answer was lost with the connection, and it was sent again
  expect([...load.statuses.keys()].filter((status) => !['200', '201', '503'].includes(status))).toEqual([])
  const refused = load.refusals.filter(({ status }) => status === 503)
  expect(refused.filter(({ retryAfter }) => !(Number(retryAfter) > 0))).toEqual([])
  const rows = await standby.sql<{ ids: number; events: number }>(
    `select count(distinct e.id)::int as ids, count(*)::int as events from app.engagement_events e where e.event_name = 'moved'`,
    [],
    databaseOf(project),
  )
  expect(rows[0]?.ids).toBeGreaterThanOrEqual(load.accepted.length)
  expect(rows[0]?.events).toBe(rows[0]?.ids)
  const again = { events: load.accepted.slice(0, 500).map((id) => ({ id, event_name: 'moved' })) }
  const repeated = await ask(server.url, 'POST', '/v1/client/events', again, project.user)
  expect(repeated.body.data.accepted).toBe(0)
  // background work: a project is provisioned by the worker
  await createTestProject(server.url)
  const { out } = await runScript('scripts/database.ts', ['url'], both)
  expect(out).toContain(`@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/trellis_control`)
  await Promise.all([endServer(server), endServer(worker)])
})

test('without a server that takes writes nothing starts, and it is said why', { timeout: 120_000 }, async () => {
  const primary = await started(startPrimary())
  const standby = await started(startStandby(primary, 'two'))
  await primary.kill()
  const server = await startServer({ DATABASE_URL: addressOf(primary, standby), SECRETS_KEY: key })
  expect(await server.ended).toBe(1)
  expect(server.output()).toContain(
    `None of 127.0.0.1:${primary.port}, 127.0.0.1:${standby.port} is a Postgres that takes writes`,
  )
})

test('a replica answers exports and statistics while it is not too far behind; the primary answers everything else', {
  timeout: 240_000,
}, async () => {
  const primary = await started(startPrimary())
  const env = { DATABASE_URL: primary.url, SECRETS_KEY: key, LOG_LEVEL: 'info' }
  await endServer(await startServer(env))
  const replica = await started(startStandby(primary, 'three'))
  const server = await startServer({ ...env, DATABASE_REPLICA_URL: replica.url, DATABASE_REPLICA_LAG_SECONDS: '3600' })
  const project = await createTestProject(server.url)
  const admin = `/v1/admin/projects/${project.projectId}`
  const exported = async () => {
    const response = await fetch(`${server.url}${admin}/users/export`, { headers: project.developer })
    // without the line of names
    return (await response.text()).trim().split('\n').filter(Boolean).length - 1
  }
  const signUp = () => ask(server.url, 'POST', '/v1/client/auth/anonymous', {}, project.key)
  await signUp()
  await expect.poll(() => server.output(), { timeout: 30_000 }).toContain('the replica is used')
  await expect.poll(exported, { timeout: 30_000 }).toBe(2)
  await replica.sql('select pg_wal_replay_pause()')
  while (
    (await replica.sql(`select from pg_stat_activity where false or pg_get_wal_replay_pause_state() = 'paused'`))
      .length === 0
  )
    await sleep(20)
  await signUp()
  // the replica does not have it yet; a list is read from the primary
  expect(await exported(), server.output().slice(-3000)).toBe(2)
  const listed = await ask(server.url, 'GET', `${admin}/users`, undefined, project.developer)
  expect(listed.body.total).toBe(3)
  const stats = await ask(server.url, 'GET', `${admin}/xp/stats`, undefined, project.developer)
  expect(stats.status, JSON.stringify(stats.body)).toBe(200)
  await replica.kill()
  // a backend that has not noticed yet may answer once more
  await expect.poll(exported, { timeout: 30_000 }).toBe(3)
  await expect.poll(() => server.output(), { timeout: 30_000 }).toContain('the replica is not used')
  await endServer(server)
})

test('a replica that is too far behind, and one that was promoted, are not read', { timeout: 240_000 }, async () => {
  const primary = await started(startPrimary())
  const env = { DATABASE_URL: primary.url, SECRETS_KEY: key, LOG_LEVEL: 'info' }
  await endServer(await startServer(env))
  const replica = await started(startStandby(primary, 'four'))
  const server = await startServer({ ...env, DATABASE_REPLICA_URL: replica.url, DATABASE_REPLICA_LAG_SECONDS: '1' })
  await expect.poll(() => server.output(), { timeout: 30_000 }).toContain('the replica is used')
  await replica.sql('select pg_wal_replay_pause()')
  const project = await createTestProject(server.url)
  await expect.poll(() => server.output(), { timeout: 30_000 }).toMatch(/the replica is not used/)
  await replica.sql('select pg_wal_replay_resume()')
  const used = () => server.output().split('the replica is used').length - 1
  await expect.poll(used, { timeout: 30_000 }).toBe(2)
  await replica.sql('select pg_promote()')
  await expect.poll(() => server.output(), { timeout: 30_000 }).toContain('it is no standby')
  const path = `/v1/admin/projects/${project.projectId}/xp/stats`
  expect((await ask(server.url, 'GET', path, undefined, project.developer)).status).toBe(200)
  await endServer(server)
})

describe('an address of several hosts', () => {
  const read = (url: string) => readConfig({ DATABASE_URL: url, SECRETS_KEY: key }).DATABASE_URL ?? ''

  test('is read as libpq reads it, and written so again', () => {
    for (const url of [
      'postgres://u:p%40ss@a.example:5432,b.example:5433/postgres?target_session_attrs=read-write',
      'postgresql://u:p@[::1]:5432,[fe80::2]:5433,c/db?sslmode=require&target_session_attrs=primary',
    ])
      expect(libpqUrl(new URL(read(url)))).toBe(url)
    expect(libpqUrl(new URL(read('postgres://u:p@a,b/x')))).toBe('postgres://u:p@a,b/x?target_session_attrs=read-write')
    expect(read('postgres://u:p@a:5432/x')).toBe('postgres://u:p@a:5432/x')
  })

  test('that nobody can use is refused by name', () => {
    for (const [url, why] of [
      ['postgres://u:p@a:1,b:99999/x', 'each of several hosts is host:port'],
      ['postgres://u:secret@p@a:1,b:2/x', 'each of several hosts is host:port'],
      ['postgres://u:p@a/x?host=a,b', 'each of several hosts is host:port'],
      ['postgres://u:p@a/x?hosts=a:1,', 'each of several hosts is host:port'],
      ['postgres://u:p@a:1,,b:2/x', 'each of several hosts is host:port'],
      ['postgres://u:p@a:1,b:2/x?target_session_attrs=standby', 'must be read-write or primary'],
      [`postgres://u:p@${Array.from({ length: 9 }, (_, n) => `h${n}`).join()}/x`, 'at most 8 hosts'],
      ['not a url', 'DATABASE_URL is no URL'],
    ] as const)
      expect(() => read(url), url).toThrow(why)
    expect(() => withHosts('postgres://u:p@a:1,b:x/y', 'CLUSTER_URL')).toThrow('CLUSTER_URL')
    const replica = (DATABASE_REPLICA_URL: string, DATABASE_URL?: string) =>
      readConfig({ DATABASE_REPLICA_URL, SECRETS_KEY: key, ...(DATABASE_URL ? { DATABASE_URL } : {}) })
    expect(() => replica('postgres://u:p@a/x')).toThrow('DATABASE_URL, which is not set')
    expect(() => replica('postgres://u:p@a,b/x', 'postgres://u:p@c/x')).toThrow('DATABASE_REPLICA_URL has one host')
  })
})
