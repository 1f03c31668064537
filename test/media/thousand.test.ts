import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { upload } from '#test/support/media.ts'
import { endPrograms, startWorker } from '#test/support/process.ts'

/** A thousand images at once, hostile ones among them: what they cost has a bound, and others are answered meanwhile. */
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
const project = await harness.project()
const dataDir = harness.running.services.config.DATA_DIR
afterAll(endPrograms)
const user = await project.user()

const white = (side: number) =>
  sharp({ create: { width: side, height: side, channels: 3, background: '#fff' }, limitInputPixels: false })
const picture = (bytes: Buffer) => upload(user, bytes, { mime_type: 'image/png', filename: 'picture.png' })
const good = await picture(await white(64).png().toBuffer())
const bomb = await picture(await white(8000).png().toBuffer())
const broken = await picture(Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(1000)]))

const childrenOf = async (pid: number) =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').filter(Boolean).map(Number)
/** Processes of this one that change images. */
const imageProcesses = async (pid: number) => {
  const programs = await Promise.all(
    (await childrenOf(pid)).map((child) => readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '')),
  )
  return programs.filter((program) => program.includes('image_worker')).length
}
const most = <T>(values: readonly T[], of: (value: T) => number) => Math.max(...values.map(of))

test('a thousand variants at once: two processes, eight files, the rest is told to come later, and others are answered', async () => {
  const signed = await Promise.all(
    Array.from({ length: 1000 }, async (_, n) => {
      const { key } = [good, bomb, broken, good][n % 4] ?? good
      const body = { bucket: 'media', key, method: 'GET', w: 1 + n }
      return (await project.server.post('/client/media/presign', body)).data.url as string
    }),
  )
  const waiting = { isOver: false }
  const work = Promise.all(
    signed.map(async (url) => {
      const answer = await fetch(url)
      const type = answer.headers.get('content-type') ?? ''
      const code = type.includes('json') ? ((await answer.json()) as any).error.code : (await answer.blob()).type
      return `${answer.status} ${code} ${answer.headers.get('retry-after') ?? ''}`
    }),
  ).finally(() => {
    waiting.isOver = true
  })
  const seen: { processes: number; files: number; healthy: boolean; answered: boolean }[] = []
  while (!waiting.isOver) {
    const [health, list] = await Promise.all([fetch(`${harness.url}/health`), user.get('/client/media')])
    seen.push({
      processes: await imageProcesses(process.pid),
      files: (await readdir(join(dataDir, 'images')).catch(() => [])).length,
      healthy: health.status === 200,
      answered: list.status === 200,
    })
  }
  const kinds = new Set(await work)
  expect(kinds).toContain('200 image/webp ')
  expect(kinds).toContain('422 TOO_MANY_PIXELS ')
  expect(kinds).toContain('422 UNREADABLE_IMAGE ')
  expect(
    [...kinds].filter(
      (kind) => !/^(200 image\/webp |422 (TOO_MANY_PIXELS|UNREADABLE_IMAGE) |503 IMAGES_BUSY 5)$/.test(kind),
    ),
  ).toEqual([])
  expect(seen.length).toBeGreaterThan(1)
  expect(most(seen, ({ processes }) => processes)).toBeLessThanOrEqual(2)
  expect(most(seen, ({ files }) => files)).toBeLessThanOrEqual(8)
  expect(seen.every(({ healthy, answered }) => healthy && answered)).toBe(true)
  // afterwards as before
  const { url } = (await user.post('/client/media/presign', { bucket: 'media', key: good.key, method: 'GET', w: 7 }))
    .data
  expect((await fetch(url)).status).toBe(200)
})

test('a thousand jobs, by a worker of their own: each ends as its image deserves', { timeout: 400_000 }, async () => {
  const operations = JSON.stringify([{ type: 'resize', width: 20 }])
  // the limit of a minute is of the route: all of them are due at once
  await project.sql(
    `with made as (
       insert into app.media_jobs (asset_id, version, operations)
       select a.id, a.object_version, $2::jsonb from generate_series(1, 1000) n
         join app.media_assets a on a.id = ($1::uuid[])[1 + case when n % 20 = 0 then 1 when n % 20 = 1 then 2 else 0 end]
       returning id
     )
     select internal.enqueue('media__job', m.id::text) from made m`,
    [[good.id, bomb.id, broken.id], operations],
  )
  const worker = await startWorker({
    DATABASE_URL: inject('dsn'),
    DATABASE_PREFIX: harness.prefix,
    SECRETS_KEY: inject('secretsKey'),
    DATA_DIR: dataDir,
  })
  const pid = worker.child.pid ?? 0
  const processes: number[] = []
  const counts = () =>
    project.sql(
      `select j.status, j.error_code as code, count(*)::int as n from app.media_jobs j where not j.is_thumbnail group by 1, 2 order by 1, 2`,
    )
  await expect
    .poll(
      async () => {
        processes.push(await imageProcesses(pid))
        return (await counts()).filter(({ status }) => ['queued', 'running'].includes(status))
      },
      { timeout: 380_000, interval: 200 },
    )
    .toEqual([])
  expect(await counts()).toEqual([
    { status: 'failed', code: 'TOO_MANY_PIXELS', n: 50 },
    { status: 'failed', code: 'UNREADABLE_IMAGE', n: 50 },
    { status: 'succeeded', code: null, n: 900 },
  ])
  expect(Math.max(...processes)).toBeGreaterThan(0)
  expect(Math.max(...processes)).toBeLessThanOrEqual(2)
  const [{ made }] = await project.sql(
    `select count(*)::int as made from app.media_assets where source = 'job' and status = 'committed'`,
  )
  expect(made).toBe(900)
})
