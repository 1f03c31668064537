import { execFile } from 'node:child_process'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { ask, endServer, freePort, type ServerProcess, startServer, tellStory } from '#test/support/process.ts'

const started: ServerProcess[] = []
const folders = new Set<string>()
const start = async (env: Record<string, string> = {}) => {
  const server = await startServer(env)
  started.push(server)
  folders.add(server.dataDir)
  return server
}
afterAll(async () => {
  for (const server of started) await endServer(server)
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
}, 60_000)

/** Whether any program runs on this folder: /proc where there is one, so that nothing but Node is needed; ps elsewhere. */
const postgresRuns = async (dataDir: string): Promise<boolean> => {
  const ids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')))
  if (ids.length > 0) return lines.some((line) => line.includes(dataDir))
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'args'])
  return stdout.includes(dataDir)
}

test('the first start makes everything, the next keeps the data; Ctrl-C ends all of it with 0', {
  timeout: 60_000,
}, async () => {
  const first = await start()
  expect(first.output()).toContain('Next: open an account')
  const story = await tellStory(first.url)
  expect((await ask(first.url, 'POST', '/v1/client/events', { event_name: 'kept' }, story.user)).status).toBe(201)

  // as a terminal does it: the signal goes to the whole group
  process.kill(-(first.child.pid ?? 0), 'SIGINT')
  expect(await first.ended).toBe(0)
  expect(await postgresRuns(first.dataDir)).toBe(false)

  const second = await start({ DATA_DIR: first.dataDir })
  const me = await ask(second.url, 'GET', '/v1/client/users/me', undefined, story.user)
  expect(me).toMatchObject({ status: 200, body: { data: { id: story.userId } } })
  await endServer(second)
})

test('kill -9 loses nothing that was answered, and the next start takes over', { timeout: 60_000 }, async () => {
  const first = await start()
  const story = await tellStory(first.url)
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

  const second = await start({ DATA_DIR: first.dataDir })
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

test('two servers on one data folder share its Postgres, and the last one stops it', { timeout: 60_000 }, async () => {
  const first = await start()
  const second = await start({ DATA_DIR: first.dataDir })
  const story = await tellStory(first.url)
  expect((await ask(second.url, 'GET', '/v1/client/users/me', undefined, story.user)).status).toBe(200)
  await endServer(first)
  expect((await ask(second.url, 'POST', '/v1/client/events', { event_name: 'still' }, story.user)).status).toBe(201)
  await endServer(second)
  expect(await postgresRuns(first.dataDir)).toBe(false)
})

test('several server processes serve one port', { timeout: 60_000 }, async () => {
  const server = await start({ WEB_CONCURRENCY: '2' })
  const story = await tellStory(server.url)
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => ask(server.url, 'GET', '/v1/client/users/me', undefined, story.user)),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  process.kill(-(server.child.pid ?? 0), 'SIGINT')
  expect(await server.ended).toBe(0)
  expect(await postgresRuns(server.dataDir)).toBe(false)
})

test('a port in use, a wrong key and bad variables give a sentence, and nothing keeps running', {
  timeout: 60_000,
}, async () => {
  const port = String(await freePort())
  const first = await start({ PORT: port })
  const second = await start({ PORT: port })
  expect(await second.ended).toBe(1)
  expect(second.output()).toMatch(/choose another port: PORT=4001 npm start/)
  expect(await postgresRuns(second.dataDir)).toBe(false)
  await endServer(first)

  await writeFile(join(first.dataDir, 'secrets.key'), `${Buffer.alloc(32, 9).toString('base64')}\n`)
  const wrong = await start({ DATA_DIR: first.dataDir })
  expect(await wrong.ended).toBe(1)
  expect(wrong.output()).toMatch(/SECRETS_KEY|key/)
  expect(wrong.output()).not.toMatch(/ at .*\.ts:/)

  const bad = await start({ PORT: 'many', LOG_LEVEL: 'loud' })
  expect(await bad.ended).toBe(1)
  expect(bad.output()).toMatch(/PORT: .*\n.*LOG_LEVEL: /)

  const lonely = await start({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/x' })
  expect(await lonely.ended).toBe(1)
  expect(lonely.output()).toContain('DATABASE_URL needs SECRETS_KEY')
})

test('nothing secret is logged, not even at the most talkative level', { timeout: 60_000 }, async () => {
  const server = await start({ LOG_LEVEL: 'trace' })
  const story = await tellStory(server.url)
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
