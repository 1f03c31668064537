import { mkdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, inject, test, vi } from 'vitest'
import { adminOf, runScript } from '#test/support/admin.ts'
import { startHarness } from '#test/support/harness.ts'
import { ask, createTestProject, endPrograms, endServer, freePort, startServer } from '#test/support/process.ts'

/** npm run admin -- doctor, and slow list: what is wrong is really broken first. */
vi.setConfig({ testTimeout: 240_000 })
const harness = await startHarness()
const { admin, folder } = await adminOf(harness)
const project = await harness.project()
afterAll(endPrograms, 120_000)

type Finding = { check: string; state: string; found: string; remedy: string | null }
const doctor = async (env: Record<string, string> = {}, ...args: string[]) => {
  const ran = await admin(['doctor', '--json', ...args], env)
  expect(ran.err).toBe('')
  const findings = JSON.parse(ran.out) as Finding[]
  expect(ran.code).toBe(findings.some(({ state }) => state === 'failed') ? 1 : 0)
  return (check: string) => {
    const found = findings.find((finding) => finding.check === check)
    expect(found, `${check} in ${ran.out}`).toBeDefined()
    return found as Finding
  }
}

test('finds what is broken, and says of each what to do', async () => {
  // of a Postgres of one's own, nothing has been stored yet in DATA_DIR
  const before = await doctor({ DATA_DIR: join(folder, 'not', 'made', 'yet') })
  expect(before('privileges').state).toBe('ok')
  expect(before('migrations').state).toBe('ok')
  expect(before('dead jobs').state).toBe('ok')
  expect(before('held projects').state).toBe('ok')
  expect(before('backups').state).toBe('skipped')
  // no worker runs in these tests
  expect(before('workers')).toMatchObject({ state: 'failed', remedy: expect.stringContaining('npm run worker') })
  for (const check of ['clock', 'disk', 'key', 'role', 'primary', 'servers', 'transaction ids'])
    expect(before(check)).toMatchObject({ state: 'ok', remedy: null })
  // the Postgres of npm is for trying: it comes later than its security fixes
  expect(before('version of Postgres')).toMatchObject({
    state: 'warning',
    remedy: expect.stringContaining('has security fixes'),
  })

  expect(before('functions')).toMatchObject({ state: 'ok', remedy: null })

  const superuser = new pg.Client({ connectionString: inject('dsn') })
  await superuser.connect()
  await project.sql(
    `create function internal.misspelt() returns int language plpgsql as 'begin return (select nothing from app.users); end'`,
  )
  await superuser.query(`grant connect on database "${project.database}" to public`)
  await harness.control(`select graphile_worker.add_job('nobody__knows', max_attempts := 1)`)
  await harness.control(`update graphile_worker._private_jobs set attempts = 1 where attempts < 1 and max_attempts = 1`)
  await harness.control(`select graphile_worker.add_job('late__one', run_at := now() - interval '1 hour')`)
  await harness.control(`update ops.files set hash = 'another' where path = (select min(path) from ops.files)`)
  const moving = await harness.project()
  await harness.control(
    `update app.tenants set hold = 'moving', held_since = now() - interval '1 hour' where project_id = $1`,
    [moving.id],
  )
  await project.sql(`select internal.enqueue('t', 'late', due_at => now() - interval '1 hour')`)
  await project.sql(`select internal.enqueue('t', 'failed')`)
  await project.sql(`update app.outbox set failed_at = now() where key = 'failed'`)
  await harness.control("update app.workers set heartbeat_at = now() - interval '1 hour'")
  const backups = join(folder, 'backups')
  await mkdir(backups)
  await writeFile(join(backups, 'old'), 'x')
  await utimes(join(backups, 'old'), new Date('2026-01-01'), new Date('2026-01-01'))
  const nobody = await freePort()
  const broken = {
    PUBLIC_URL: `https://127.0.0.1:${nobody}`,
    SMTP_URL: `smtp://a:b@127.0.0.1:${nobody}`,
    STORAGE_URL: `s3://a:b@127.0.0.1:${nobody}/bucket?region=x&tls=off`,
    DATABASE_CONNECTIONS: '100000',
  }
  const after = await doctor(broken, '--backups', backups)
  expect(after('privileges').found).toContain('every login may connect')
  expect(after('dead jobs').found).toContain('nobody__knows')
  expect(after('jobs that wait').found).toContain('late__one')
  expect(after('migrations').remedy).toContain('npm run db:migrate')
  expect(after('held projects').found).toContain(moving.id)
  expect(after('outbox').found).toContain(project.id)
  expect(after('failed work').remedy).toBe(`npm run admin -- failed list ${project.id}`)
  expect(after('functions').found).toContain('internal.misspelt() would fail: column "nothing" does not exist')
  for (const check of [
    'functions',
    'certificate',
    'TRUST_PROXY',
    'mail',
    'media',
    'backups',
    'max_connections',
    'outbox',
    'migrations',
  ])
    expect(after(check), check).toMatchObject({ state: 'failed', remedy: expect.any(String) })
  await superuser.query(`revoke connect on database "${project.database}" from public`)
  await superuser.end()
  const text = await admin(['doctor'])
  expect(text.out).toMatch(/^FAILED +workers: /m)
  expect(text.out).toMatch(/\d+ failed, \d+ warnings/)
})

test('a key that others can read, and a database that is lost', async () => {
  const lost = await harness.project()
  const superuser = new pg.Client({ connectionString: inject('dsn') })
  await superuser.connect()
  await harness.running.services.database.pools.forget(
    `${harness.running.services.control.cluster.id}/${lost.database}`,
  )
  await superuser.query(`drop database "${lost.database}" with (force)`)
  await superuser.end()
  expect((await doctor())('lost databases')).toMatchObject({ state: 'failed', found: lost.database })
})

test('slow list names functions and projects, and says when the extension is missing', async () => {
  const missing = await admin(['slow', 'list'])
  expect(missing).toMatchObject({ code: 1, out: '' })
  expect(missing.err).toContain('shared_preload_libraries')

  const server = await startServer()
  const story = await createTestProject(server.url)
  const url = (await runScript('scripts/database.ts', ['url'], { DATA_DIR: server.dataDir })).out.trim()
  const superuser = async (text: string) => {
    const at = new URL(url)
    at.pathname = '/postgres'
    at.searchParams.delete('options')
    const client = new pg.Client({ connectionString: at.href })
    await client.connect()
    await client.query(text).finally(() => client.end())
  }
  await superuser(`alter system set shared_preload_libraries = 'pg_stat_statements'`)
  await superuser('create extension pg_stat_statements')
  const list = (...args: string[]) =>
    runScript('scripts/admin.ts', ['slow', 'list', ...args], { DATA_DIR: server.dataDir })
  // it is there, but not loaded
  expect((await list()).err).toContain('restart Postgres')
  await endServer(server)

  const again = await startServer({ DATA_DIR: server.dataDir })
  expect((await ask(again.url, 'GET', '/v1/client/users/me', undefined, story.user)).status).toBe(200)
  const ran = await list('--json', '--limit', '500')
  expect(ran.code, ran.err).toBe(0)
  const rows = JSON.parse(ran.out) as { function: string; project_id: string | null; database: string; calls: number }[]
  expect(rows.some(({ database }) => database === 'trellis_control')).toBe(true)
  const own = rows.filter(({ project_id }) => project_id === story.projectId)
  expect(own.map(({ function: name }) => name)).toContain('api.auth_session')
  expect((await list()).out).toMatch(/^ *total ms +calls/)
})
