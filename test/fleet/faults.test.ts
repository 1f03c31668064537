import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { ask, createTestProject, endPrograms, endServer, startServer, temporaryFolder } from '#test/support/process.ts'

let postgres: EmbeddedPostgres | undefined
afterAll(async () => {
  await postgres?.stop()
  await endPrograms()
}, 180_000)

type Load = {
  answered: string[]
  statuses: Map<number, number>
  broken: number
  stop(): Promise<void>
}

/** Posts events from several callers until stopped, and writes down what was answered. */
const post = (url: string, user: Record<string, string>, callers = 8): Load => {
  const load: Load = { answered: [], statuses: new Map(), broken: 0, stop: async () => undefined }
  let running = true
  const caller = async () => {
    while (running) {
      const id = crypto.randomUUID()
      const answer = await ask(url, 'POST', '/v1/client/events', { event_name: 'under load', id }, user).catch(
        () => null,
      )
      if (!answer) load.broken += 1
      else load.statuses.set(answer.status, (load.statuses.get(answer.status) ?? 0) + 1)
      if (answer?.status === 201) load.answered.push(id)
      else await sleep(20)
    }
  }
  const all = Promise.all(Array.from({ length: callers }, caller))
  load.stop = async () => {
    running = false
    await all
  }
  return load
}

const missing = async (url: string, user: Record<string, string>, ids: readonly string[]): Promise<number> => {
  let accepted = 0
  for (let from = 0; from < ids.length; from += 500) {
    const events = ids.slice(from, from + 500).map((id) => ({ event_name: 'under load', id }))
    const { body } = await ask(url, 'POST', '/v1/client/events', { events }, user)
    accepted += body.data.accepted
  }
  return accepted
}

const recovered = async (url: string, user: Record<string, string>, load: Load) => {
  const before = load.answered.length
  await expect.poll(() => load.answered.length, { timeout: 30_000 }).toBeGreaterThan(before + 20)
  await load.stop()
  expect([...load.statuses.keys()].filter((status) => status !== 201 && status !== 503)).toEqual([])
  expect(load.broken, 'requests that got no answer within the time of ask').toBe(0)
  expect(await missing(url, user, load.answered), 'answered events that were lost').toBe(0)
}

test('embedded Postgres killed under load: 503 or success, nothing lost, back by itself', {
  timeout: 180_000,
}, async () => {
  const server = await startServer({ LOG_LEVEL: 'silent' })
  const story = await createTestProject(server.url)
  const load = post(server.url, story.user)
  await expect.poll(() => load.answered.length, { timeout: 20_000 }).toBeGreaterThan(50)
  const pid = Number((await readFile(join(server.dataDir, 'cluster/postmaster.pid'), 'utf8')).split('\n')[0])
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => load.statuses.get(503) ?? 0, { timeout: 20_000 }).toBeGreaterThan(0)
  await recovered(server.url, story.user, load)
  expect((await ask(server.url, 'GET', '/health')).status).toBe(200)

  // workers have come back as well: a new project gets its database
  await createTestProject(server.url)

  // the one that was started again ends with the server
  const again = Number((await readFile(join(server.dataDir, 'cluster/postmaster.pid'), 'utf8')).split('\n')[0])
  expect(again).not.toBe(pid)
  await endServer(server)
  const isThere = () => {
    try {
      return process.kill(again, 0)
    } catch {
      return false
    }
  }
  // ended, it still has its number until init has taken note of it
  await expect.poll(isThere).toBe(false)
})

test('the server of DATABASE_URL restarted under load, health says so meanwhile', { timeout: 180_000 }, async () => {
  const folder = await temporaryFolder()
  const run = () =>
    startEmbeddedPostgres({ dataDir: folder, superuserPassword: 'faults', log: () => undefined, maxConnections: 200 })
  postgres = await run()
  const server = await startServer({
    DATABASE_URL: postgres.url,
    SECRETS_KEY: Buffer.alloc(32, 3).toString('base64'),
    LOG_LEVEL: 'silent',
  })
  const story = await createTestProject(server.url)
  const load = post(server.url, story.user)
  await expect.poll(() => load.answered.length, { timeout: 20_000 }).toBeGreaterThan(50)
  await postgres.stop()
  const down = await ask(server.url, 'GET', '/health')
  expect(down).toMatchObject({ status: 503, body: { data: { status: 'failing', parts: { database: 'failing' } } } })
  postgres = await run()
  await recovered(server.url, story.user, load)
  await expect.poll(async () => (await ask(server.url, 'GET', '/health')).status).toBe(200)
  await endServer(server)
  await postgres.stop()
})
