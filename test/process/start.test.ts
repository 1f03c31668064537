import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { requireFreePort } from '#server/http/port.ts'
import { root } from '#server/root.ts'
import {
  ask,
  createTestProject,
  endPrograms,
  endServer,
  freePort,
  programEnvironment,
  startServer,
  temporaryFolder,
} from '#test/support/process.ts'

afterAll(endPrograms, 60_000)

/** Whether any program runs on this folder: /proc where there is one, so that nothing but Node is needed; ps elsewhere. */
const postgresRuns = async (dataDir: string): Promise<boolean> => {
  const ids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')))
  if (ids.length > 0) return lines.some((line) => line.includes(dataDir))
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'args'])
  return stdout.includes(dataDir)
}

test('the first start makes everything, the next keeps the data; Ctrl-C ends all of it with 0', {
  timeout: 180_000,
}, async () => {
  const first = await startServer({ DATA_DIR: await temporaryFolder() })
  expect(first.output()).toContain(`"api":"${first.url}/v1"`)
  expect(first.output()).not.toContain('Server listening')
  const story = await createTestProject(first.url)
  expect((await ask(first.url, 'POST', '/v1/client/events', { event_name: 'kept' }, story.user)).status).toBe(201)

  // as a terminal does it: the signal goes to the whole group
  process.kill(-(first.child.pid ?? 0), 'SIGINT')
  expect(await first.ended).toBe(0)
  expect(await postgresRuns(first.dataDir)).toBe(false)

  const second = await startServer({ DATA_DIR: first.dataDir })
  const me = await ask(second.url, 'GET', '/v1/client/users/me', undefined, story.user)
  expect(me).toMatchObject({ status: 200, body: { data: { id: story.userId } } })
  await endServer(second)
})

test('a new installation answers while its template is being built; a stop lets that finish, and no later start repeats it', {
  timeout: 180_000,
}, async () => {
  const built = 'trellis_template built'
  const first = await startServer({ DATA_DIR: await temporaryFolder(), LOG_LEVEL: 'info' })
  const health = await ask(first.url, 'GET', '/health')
  const credentials = { email: 'early@example.org', password: 'a long passphrase' }
  expect((await ask(first.url, 'POST', '/v1/auth/developer/signup', credentials)).status).toBe(201)
  first.child.kill('SIGTERM')
  expect(await first.ended).toBe(0)
  const said = first.output()
  expect(said.indexOf('Trellis is running')).toBeLessThan(said.indexOf(built))
  expect(health).toMatchObject({
    status: 503,
    body: { data: { status: 'failing', parts: { database: 'ok', template: 'failing', tenants: 'ok' } } },
  })

  const second = await startServer({ DATA_DIR: first.dataDir, LOG_LEVEL: 'info' })
  expect(await ask(second.url, 'GET', '/health')).toMatchObject({ status: 200, body: { data: { status: 'ok' } } })
  expect((await ask(second.url, 'POST', '/v1/auth/developer/login', credentials)).status).toBe(200)
  expect(second.output()).not.toContain(built)
  await endServer(second)
})

test('kill -9 loses nothing that was answered, and the next start takes over', { timeout: 180_000 }, async () => {
  const first = await startServer()
  const story = await createTestProject(first.url)
  const answered: string[] = []
  const posting = (async () => {
    for (;;) {
      const id = crypto.randomUUID()
      const answer = await ask(first.url, 'POST', '/v1/client/events', { event_name: 'counted', id }, story.user).catch(
        () => null,
      )
      if (answer?.status !== 201) return
      answered.push(id)
      if (answered.length === 50) first.child.kill('SIGKILL')
    }
  })()
  await posting
  expect(await first.ended).toBe('SIGKILL')
  expect(answered.length).toBeGreaterThanOrEqual(50)

  const second = await startServer({ DATA_DIR: first.dataDir })
  const again = await ask(
    second.url,
    'POST',
    '/v1/client/events',
    { events: answered.slice(0, 500).map((id) => ({ event_name: 'counted', id })) },
    story.user,
  )
  expect(again.body.data).toMatchObject({ accepted: 0, duplicates: Math.min(500, answered.length), rejected: 0 })
  await endServer(second)
})

test('two servers on one data folder share its Postgres, and the last one stops it', { timeout: 180_000 }, async () => {
  const first = await startServer()
  const second = await startServer({ DATA_DIR: first.dataDir })
  const story = await createTestProject(first.url)
  expect((await ask(second.url, 'GET', '/v1/client/users/me', undefined, story.user)).status).toBe(200)
  await endServer(first)
  expect((await ask(second.url, 'POST', '/v1/client/events', { event_name: 'still' }, story.user)).status).toBe(201)
  await endServer(second)
  expect(await postgresRuns(first.dataDir)).toBe(false)
})

test('several server processes serve one port, and each its own metrics', { timeout: 180_000 }, async () => {
  // below the ports that the system gives to others
  const metrics = 20_000 + ((process.pid * 3) % 10_000)
  const server = await startServer({ WEB_CONCURRENCY: '2', METRICS_PORT: String(metrics) })
  const story = await createTestProject(server.url)
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => ask(server.url, 'GET', '/v1/client/users/me', undefined, story.user)),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  const texts = await Promise.all(
    [0, 1, 2].map(async (number) => (await fetch(`http://127.0.0.1:${metrics + number}/metrics`)).text()),
  )
  const counted = texts.map((text) =>
    [...text.matchAll(/^http_server_request_duration_count\{.*"\/client\/users\/me".*\} (\d+)$/gm)].map(([, count]) =>
      Number(count),
    ),
  )
  // the first process serves no requests, and no process counts those of another
  expect(counted[0]).toEqual([])
  expect(counted.flat().reduce((sum, count) => sum + count, 0)).toBe(40)
  expect(counted[1]?.length).toBe(1)
  expect(counted[2]?.length).toBe(1)
  process.kill(-(server.child.pid ?? 0), 'SIGINT')
  expect(await server.ended).toBe(0)
  expect(await postgresRuns(server.dataDir)).toBe(false)
})

test('a port in use, a wrong key and bad variables give a sentence, and nothing keeps running', {
  timeout: 180_000,
}, async () => {
  const port = String(await freePort())
  const first = await startServer({ PORT: port })
  const second = await startServer({ PORT: port, DATA_DIR: await temporaryFolder() })
  expect(await second.ended).toBe(1)
  expect(second.output()).toMatch(/choose another port: PORT=4001 npm start/)
  // said before anything was written
  expect(await readdir(second.dataDir)).toEqual([])
  await endServer(first)

  await writeFile(join(first.dataDir, 'secrets.key'), `${Buffer.alloc(32, 9).toString('base64')}\n`)
  const wrong = await startServer({ DATA_DIR: first.dataDir })
  expect(await wrong.ended).toBe(1)
  expect(wrong.output()).toMatch(/SECRETS_KEY|key/)
  expect(wrong.output()).not.toMatch(/ at .*\.ts:/)

  const bad = await startServer({ PORT: 'many', LOG_LEVEL: 'loud' })
  expect(await bad.ended).toBe(1)
  expect(bad.output()).toMatch(/PORT: .*\n.*LOG_LEVEL: /)

  const lonely = await startServer({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/x' })
  expect(await lonely.ended).toBe(1)
  expect(lonely.output()).toContain('DATABASE_URL needs SECRETS_KEY')
})

test('a port is free when it is on each address that the name of the host has', async () => {
  const both = ['127.0.0.1', '127.0.0.2']
  for (const host of both) {
    const other = createServer().listen({ host, port: 0 })
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    await expect(
      requireFreePort('both', port, async () => both),
      host,
    ).rejects.toMatchObject({ code: 'EADDRINUSE' })
    other.close()
    await once(other, 'close')
    await requireFreePort('both', port, async () => both)
    // an address of a family that the machine does not have is passed over, unless it is the only one
    await requireFreePort('both', port, async () => [...both, '192.0.2.1'])
    await expect(requireFreePort('192.0.2.1', port)).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' })
  }
})

test('nothing secret is logged, not even at the most talkative level', { timeout: 180_000 }, async () => {
  const server = await startServer({ LOG_LEVEL: 'trace' })
  const story = await createTestProject(server.url)
  await ask(server.url, 'POST', '/v1/auth/developer/login', {
    email: 'me@example.org',
    password: 'wrong-password-here',
  })
  await ask(server.url, 'GET', '/v1/client/users/me?secret=query-value', undefined, story.user)
  await endServer(server)
  const key = (await readFile(join(server.dataDir, 'secrets.key'), 'utf8')).trim()
  const postgresLog = await readFile(join(server.dataDir, 'postgres.log'), 'utf8')
  for (const secret of [
    'correct horse 42 battery',
    'wrong-password-here',
    'query-value',
    story.key['x-api-key'],
    story.serverKey,
    story.user.authorization.slice(7),
    story.developer.authorization.slice(7),
    key,
  ]) {
    expect(server.output()).not.toContain(secret)
    expect(postgresLog).not.toContain(secret)
  }
  expect(server.output()).toContain('"route":"GET /client/users/me"')
})

test("operators' commands make no data, and db:url starts nothing", { timeout: 180_000 }, async () => {
  const fresh = join(await temporaryFolder(), 'data')
  const run = (
    dataDir: string,
    script: string,
    ...args: string[]
  ): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      const env = { ...programEnvironment, DATA_DIR: dataDir }
      execFile(process.execPath, [join(root, script), ...args], { env }, (error, out, err) =>
        resolve({ code: error ? Number(error.code) : 0, out, err }),
      )
    })
  const database = (...args: string[]) => run(fresh, 'scripts/database.ts', ...args)
  const none = { code: 1, out: '', err: 'There are no databases here yet: run npm start, or npm run db:migrate.\n' }
  for (const command of ['status', 'reload', 'cluster', 'url']) expect(await database(command), command).toEqual(none)
  expect(await run(fresh, 'scripts/admin.ts', 'invite', 'list')).toEqual(none)
  await expect(readdir(fresh)).rejects.toThrow('ENOENT')

  const server = await startServer()
  const { projectId } = await createTestProject(server.url)
  const url = (...args: string[]) => run(server.dataDir, 'scripts/database.ts', 'url', ...args)
  const found = await url(projectId)
  expect(found).toMatchObject({ code: 0, err: '' })
  const client = new pg.Client({ connectionString: found.out.trim() })
  await client.connect()
  expect((await client.query('select count(*)::int as users, current_user::text from app.users')).rows).toEqual([
    { users: 1, current_user: 'trellis_owner' },
  ])
  await client.end()
  expect((await url()).out).toContain('/trellis_control?')
  for (const args of [['nonsense'], [projectId, 'more'], ["'; select 1"]])
    expect(await url(...args)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^Say the project's id, a uuid/),
    })
  const unknown = '00000000-0000-4000-8000-000000000000'
  expect(await url(unknown)).toEqual({ code: 1, out: '', err: `There is no project ${unknown} here.\n` })

  await endServer(server)
  expect(await url(projectId)).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^No server runs on /) })
  expect(await postgresRuns(server.dataDir)).toBe(false)
})
