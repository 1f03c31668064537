import { readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { endHeartbeats } from '#test/support/jobs.ts'
import { commit, put, register, setTier, storedOf, upload } from '#test/support/media.ts'
import { endPrograms, type ServerProcess, startServer, startWorker, type WorkerProcess } from '#test/support/process.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { loadTasks } from '#workers/task.ts'

/** Servers and workers that are killed with -9 on the databases and files of this one, which plays the server that starts afterwards. */
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
const project = await harness.project()
await setTier(harness, project, 'pro')
const { services } = harness.running
const dataDir = services.config.DATA_DIR
const env = {
  DATABASE_URL: inject('dsn'),
  DATABASE_PREFIX: harness.prefix,
  SECRETS_KEY: inject('secretsKey'),
  DATA_DIR: dataDir,
}
afterAll(endPrograms)

const serve = () => startServer({ ...env, WORKER: 'off' })
const kill = async (program: WorkerProcess) => {
  program.child.kill('SIGKILL')
  await program.ended
}
/** A signed URL, asked of another server. */
const at = (server: ServerProcess, url: string) => server.url + new URL(url).pathname + new URL(url).search
/** A request of the API, asked of another server; its answer may never come. */
const askOf = (server: ServerProcess, method: string, path: string, headers: object, body?: object) =>
  fetch(`${server.url}/v1${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...(headers as Record<string, string>) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  }).then(
    ({ status }) => status,
    () => 'no answer',
  )
const storedOfAsset = async (id: string) => (await storedOf(harness, project)).filter((name) => name.includes(id))
const textOf = async (url: string) => (await fetch(url)).text()
/** A day later: everything that is stored is as old, and the daily maintenance runs. */
const nextDay = async () => {
  const old = new Date(harness.now().getTime() - 25 * 3_600_000)
  for (const name of await storedOf(harness, project)) await utimes(join(dataDir, 'media', project.id, name), old, old)
  const { jobs } = await loadTasks()
  await jobs.find(({ name }) => name === 'fleet__maintain')?.run(services, {})
  await project.drain()
}

/** Runs a statement and keeps what it locks; ends those that wait for it as the crash of their server does. */
const hold = async (statement: string, values: unknown[]) => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const [holder, admin] = [new pg.Client(url.href), new pg.Client(inject('dsn'))]
  for (const client of [holder, admin]) client.on('error', () => undefined)
  await Promise.all([holder.connect(), admin.connect()])
  await holder.query('begin')
  await holder.query(statement, values)
  const blocked = async () =>
    (
      await admin.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`,
        [project.database],
      )
    ).rows.map(({ pid }) => pid)
  return {
    untilBlocked: () => expect.poll(async () => (await blocked()).length, { interval: 10 }).toBeGreaterThan(0),
    async release() {
      for (const pid of await blocked()) await admin.query('select pg_terminate_backend($1, 5000)', [pid])
      await holder.query('rollback')
      await Promise.all([holder.end(), admin.end()])
    },
  }
}

/** The beginning of an upload of a thousand bytes. */
const begin = (url: string, bytes: number, headers = '') => {
  const { hostname, port, pathname, search } = new URL(url)
  const socket = connect(Number(port), hostname).on('error', () => undefined)
  socket.write(
    `PUT ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n${headers}Content-Length: ${bytes}\r\n\r\nhello`,
  )
  return socket
}
const isTemporary = expect.stringMatching(/\.tmp$/)

describe('a server that is killed', () => {
  test('in the middle of an upload loses nothing that was answered, and what is left goes with the commit or the cleanup', async () => {
    const user = await project.user()
    const server = await serve()
    const [whole, parts, never] = [
      await register(user, { size_bytes: 1000 }),
      await register(user, { size_bytes: 12 }),
      await register(user, { size_bytes: 1000 }),
    ]
    const answered = await register(user)
    expect((await put(at(server, answered.uploadUrl), 'hello')).status).toBe(200)
    const first = await put(at(server, parts.uploadUrl), 'abcd', 'text/plain', { 'content-range': 'bytes 0-3/12' })
    expect([first.status, first.headers.get('upload-offset')]).toEqual([308, '4'])
    begin(at(server, whole.uploadUrl), 1000)
    begin(at(server, never.uploadUrl), 1000)
    begin(at(server, parts.uploadUrl), 8, 'Content-Range: bytes 4-11/12\r\n')
    for (const { id } of [whole, parts, never]) await expect.poll(() => storedOfAsset(id)).toContainEqual(isTemporary)
    await kill(server)

    expect(await textOf((await commit(user, answered.id)).data.storage_url)).toBe('hello')
    // what came and was answered is there; the rest comes again
    const head = await fetch(parts.uploadUrl, { method: 'HEAD' })
    expect(head.headers.get('upload-offset')).toBe('4')
    const rest = await put(parts.uploadUrl, 'efghijkl', 'text/plain', { 'content-range': 'bytes 4-11/12' })
    expect(rest.status).toBe(200)
    expect(await textOf((await commit(user, parts.id)).data.storage_url)).toBe('abcdefghijkl')
    expectRefusal(await commit(user, whole.id), 409, 'UPLOAD_NOT_FOUND')
    expect((await put(whole.uploadUrl, 'x'.repeat(1000))).status).toBe(200)
    expect(await textOf((await commit(user, whole.id)).data.storage_url)).toBe('x'.repeat(1000))
    for (const { id } of [whole, parts]) expect(await storedOfAsset(id)).not.toContainEqual(isTemporary)
    expect(await storedOfAsset(never.id)).toEqual([isTemporary])
    await nextDay()
    expect(await storedOfAsset(never.id)).toEqual([])
    expect(await textOf((await user.get(`/client/media/${whole.id}`)).data.storage_url)).toBe('x'.repeat(1000))
  })

  test('between the bytes and the record of a commit leaves what the next commit, or the cleanup, completes', async () => {
    const user = await project.user()
    const [again, late] = [await register(user), await register(user)]
    for (const { id, uploadUrl } of [again, late]) {
      expect((await put(uploadUrl, 'hello')).status).toBe(200)
      const server = await serve()
      const held = await hold('select from app.media_assets where id = $1 for update', [id])
      const answer = askOf(server, 'POST', '/client/media/commit', user.headers, { upload_id: id, asset_id: id })
      await held.untilBlocked()
      // the bytes are in their place, the record is not
      expect(await storedOfAsset(id)).toEqual([expect.stringMatching(/^objects\//)])
      await kill(server)
      expect(await answer).toBe('no answer')
      await held.release()
      expect(await project.sql('select status from app.media_assets where id = $1', [id])).toEqual([
        { status: 'pending' },
      ])
    }
    const { data } = await commit(user, again.id)
    expect([data.status, data.size_bytes, await textOf(data.storage_url)]).toEqual(['committed', 5, 'hello'])
    // nobody asks again: the bytes have come, so the cleanup commits them
    const day = `update app.media_assets set created_at = created_at - interval '25 hours', upload_expires_at = now() - interval '1 hour' where id = $1`
    await project.sql(day, [late.id])
    await nextDay()
    const kept = (await user.get(`/client/media/${late.id}`)).data
    expect([kept.status, await textOf(kept.storage_url)]).toEqual(['committed', 'hello'])
  })

  test.each(['the repeated request', 'the task'])(
    'in the middle of a deletion has hidden the file, and %s removes the rest',
    async (by) => {
      const user = await project.user()
      const { id, storage_url } = await upload(user)
      const [object = ''] = await storedOfAsset(id)
      const many = 20_000
      const names = Array.from({ length: many }, (_, n) => `${object}.v${n}.webp`)
      for (let from = 0; from < many; from += 1000)
        await Promise.all(
          names.slice(from, from + 1000).map((name) => writeFile(join(dataDir, 'media', project.id, name), '')),
        )
      const server = await serve()
      const answer = askOf(server, 'DELETE', `/client/media/${id}`, user.headers)
      const folder = join(dataDir, 'media', project.id, object, '..')
      await expect
        .poll(async () => (await readdir(folder)).length, { interval: 1, timeout: 20_000 })
        .toBeLessThan(many + 1)
      await kill(server)
      expect(await answer).toBe('no answer')
      expect((await storedOfAsset(id)).length).toBeGreaterThan(0)
      expectRefusal(await user.get(`/client/media/${id}`), 404, 'NOT_FOUND')
      expectRefusal(await commit(user, id), 404, 'NOT_FOUND')
      if (by === 'the task') {
        harness.advance(61)
        await project.drain()
        harness.setTime(null)
      } else expect((await user.delete(`/client/media/${id}`)).data).toEqual({ id, deleted: true })
      expect(await storedOfAsset(id)).toEqual([])
      expect(await project.sql('select from app.media_removals')).toEqual([])
      expect((await fetch(storage_url)).status).toBe(404)
    },
  )
})

describe('a worker that is killed', () => {
  let photo: Buffer
  beforeAll(async () => {
    const noise = { type: 'gaussian' as const, mean: 128, sigma: 40 }
    photo = await sharp({ create: { width: 600, height: 400, channels: 3, background: '#fff', noise } })
      .jpeg()
      .toBuffer()
  })
  const jobOf = async (id: string) => (await project.admin.get(`/media/jobs/${id}`)).data
  const queue = async (operation: object) => {
    const user = await project.user()
    const asset = await upload(user, photo, { mime_type: 'image/jpeg', filename: 'photo.jpg' })
    await project.drain()
    const { data } = await project.admin.post('/media/jobs', { asset_id: asset.id, operations: [operation] })
    return { asset, job: data.id as string }
  }
  /** What a killed worker held is due again: as when its leases have ended. */
  const endLeases = async () => {
    await endHeartbeats(harness)
    await project.sql('update app.outbox set locked_until = null, attempts = 0')
  }
  const childrenOf = async (pid: number) =>
    (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').filter(Boolean).map(Number)
  const isAlive = async (pid: number) =>
    !/^State:\s+Z/m.test(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'State:\tZ'))

  test('in the middle of an image job takes its processes along, and the job is made by the next one', async () => {
    // takes seconds
    const { asset, job } = await queue({ type: 'convert', format: 'avif' })
    const worker = await startWorker(env)
    await expect
      .poll(async () => [(await jobOf(job)).status, (await childrenOf(worker.child.pid ?? 0)).length > 0], {
        timeout: 30_000,
        interval: 5,
      })
      .toEqual(['running', true])
    const children = await childrenOf(worker.child.pid ?? 0)
    await kill(worker)
    await expect.poll(async () => (await Promise.all(children.map(isAlive))).includes(true)).toBe(false)
    expect(await jobOf(job)).toMatchObject({ status: 'running', attempts: 1 })
    const images = join(dataDir, 'images')
    const left = await readdir(images)
    expect(left.length).toBeGreaterThan(0)
    await endLeases()
    await project.drain()
    const done = await jobOf(job)
    expect([done.status, done.attempts]).toEqual(['succeeded', 2])
    const { data } = await project.admin.get(`/media/${done.result_asset_id}`)
    const { format, width } = await sharp(Buffer.from(await (await fetch(data.storage_url)).arrayBuffer())).metadata()
    expect([format, width]).toEqual(['heif', 600])
    // its working files go with the cleanup of the next day, which another process does
    const old = new Date(Date.now() - 25 * 3_600_000)
    for (const name of left) await utimes(join(images, name), old, old)
    await project.sql(`select internal.enqueue('media__clean')`)
    const next = await startWorker(env)
    await expect.poll(() => readdir(images), { timeout: 30_000 }).toEqual([])
    await kill(next)
    await endLeases()
    await project.drain()
    expect((await project.admin.get(`/media/${asset.id}`)).status).toBe(200)
  })

  test('between the bytes and the record of a result leaves bytes that the cleanup removes', async () => {
    const { asset, job } = await queue({ type: 'strip_metadata' })
    const before = await storedOf(harness, project)
    const held = await hold('select from app.media_assets where id = $1 for update', [asset.id])
    const worker = await startWorker(env)
    await expect
      .poll(async () => (await storedOf(harness, project)).length, { timeout: 60_000 })
      .toBeGreaterThan(before.length)
    await held.untilBlocked()
    await kill(worker)
    await held.release()
    const orphans = (await storedOf(harness, project)).filter((name) => !before.includes(name))
    expect(orphans).toHaveLength(1)
    await endLeases()
    await project.drain()
    const done = await jobOf(job)
    expect([done.status, done.attempts]).toEqual(['succeeded', 2])
    await nextDay()
    const stored = await storedOf(harness, project)
    expect(stored).not.toContain(orphans[0])
    expect(stored.filter((name) => name.includes(done.result_asset_id)).length).toBeGreaterThan(0)
    expect((await fetch(asset.storage_url)).status).toBe(200)
  })
})
