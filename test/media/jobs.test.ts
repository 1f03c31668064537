import { randomUUID } from 'node:crypto'
import { mkdir, readdir, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { outOfMemory } from '#server/media/image_work.ts'
import { createImages, ImageError } from '#server/media/images.ts'
import { createShares, createTurns, mostWaiting, type Share } from '#server/media/shares.ts'
import { type Client, startHarness, type User } from '#test/support/harness.ts'
import { register, setTier, storedOf, upload } from '#test/support/media.ts'
import { endPrograms, temporaryFolder } from '#test/support/process.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
let user: User
let photo: Buffer
afterAll(endPrograms)
beforeAll(async () => {
  user = await project.user()
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 40 }
  photo = await sharp({ create: { width: 1200, height: 800, channels: 3, background: '#fff', noise } })
    .withExif({ IFD0: { Copyright: 'someone' } })
    .jpeg()
    .toBuffer()
})

const picture = (client: Client = user, bytes = photo, more: object = {}) =>
  upload(client, bytes, { mime_type: 'image/jpeg', filename: 'photo.jpg', ...more })
const post = (asset_id: string, operations: unknown, headers: Record<string, string> = {}) =>
  admin.post('/media/jobs', { asset_id, operations }, headers)
const jobOf = async (id: string) => (await admin.get(`/media/jobs/${id}`)).data
const run = async (asset_id: string, operations: unknown) => {
  const { status, data, text } = await post(asset_id, operations)
  expect(status, text).toBe(202)
  await project.drain()
  return jobOf(data.id)
}
const bytesOf = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer())

describe('thumbnails', () => {
  test('are made of every image after its commit, and go with it', async () => {
    const { id, thumbnail_url } = await picture()
    expect(thumbnail_url).toBeNull()
    await project.drain()
    const asset = (await user.get(`/client/media/${id}`)).data
    const made = await fetch(asset.thumbnail_url)
    expect(made.headers.get('content-type')).toBe('image/webp')
    const { format, width, height, exif } = await sharp(Buffer.from(await made.arrayBuffer())).metadata()
    expect({ format, width, height, exif }).toEqual({ format: 'webp', width: 512, height: 341, exif: undefined })
    const [job] = (await admin.get(`/media/jobs?asset_id=${id}`)).data
    expect(job).toMatchObject({ status: 'succeeded', attempts: 1, error: null, result_asset_id: null })
    await user.delete(`/client/media/${id}`)
    expect((await fetch(asset.thumbnail_url)).status).toBe(404)
    expect((await storedOf(harness, project)).filter((name) => name.includes(id))).toEqual([])
  })

  test('are made anew when the bytes are replaced, and once for each', async () => {
    const paid = await harness.project()
    await setTier(harness, paid, 'pro')
    const payer = await paid.user()
    const presign = async (bytes: Buffer) => {
      const { data } = await payer.post('/client/media/presign', {
        bucket: 'media',
        key: `user/${payer.id}/me.png`,
        method: 'PUT',
        content_type: 'image/png',
      })
      await fetch(data.url, { method: 'PUT', body: new Uint8Array(bytes), headers: { 'content-type': 'image/png' } })
      return (await payer.post('/client/media/commit', { upload_id: data.asset_id, asset_id: data.asset_id })).data
    }
    const of = (width: number) =>
      sharp({ create: { width, height: 100, channels: 3, background: '#00f' } })
        .png()
        .toBuffer()
    const { id } = await presign(await of(100))
    // replaced before its thumbnail is made
    await presign(await of(300))
    await paid.drain()
    const asset = (await payer.get(`/client/media/${id}`)).data
    expect((await sharp(await bytesOf(asset.thumbnail_url)).metadata()).width).toBe(300)
    const jobs = (await paid.admin.get(`/media/jobs?asset_id=${id}`)).data
    expect(jobs.map(({ status, error }: any) => [status, error?.code])).toEqual([
      ['succeeded', undefined],
      ['failed', 'ASSET_GONE'],
    ])
    // the former one is not shown with other bytes
    const next = await presign(await of(200))
    expect(next.thumbnail_url).toBeNull()
  })
})

describe('jobs', () => {
  test('make a new file of the same owner', async () => {
    const { id } = await picture(user, photo, { filename: 'My photo.jpg' })
    const job = await run(id, [
      { type: 'resize', width: 300, height: 300, fit: 'cover' },
      { type: 'convert', format: 'webp', quality: 50 },
    ])
    expect(job).toMatchObject({
      status: 'succeeded',
      asset_id: id,
      attempts: 1,
      error: null,
      finished_at: expect.any(String),
    })
    const made = (await user.get(`/client/media/${job.result_asset_id}`)).data
    expect(made).toMatchObject({
      filename: 'My photo.webp',
      mime_type: 'image/webp',
      uploaded_by: user.id,
      status: 'committed',
    })
    expect(made.key).toMatch(new RegExp(`^user/${user.id}/\\d+_${made.id}_My_photo\\.webp$`))
    const bytes = await bytesOf(made.storage_url)
    expect(made.size_bytes).toBe(bytes.length)
    const { format, width, height } = await sharp(bytes).metadata()
    expect({ format, width, height }).toEqual({ format: 'webp', width: 300, height: 300 })
  })

  test.each([
    ['contain', [{ type: 'resize', width: 300, height: 300, fit: 'contain' }], 300, 300, 'jpeg'],
    ['one side', [{ type: 'resize', width: 600 }], 600, 400, 'jpeg'],
    ['crop', [{ type: 'crop', width: 100, height: 5000 }], 100, 800, 'jpeg'],
    [
      'resize, crop and resize',
      [
        { type: 'resize', width: 600 },
        { type: 'crop', width: 200, height: 200 },
        { type: 'resize', height: 50 },
      ],
      50,
      50,
      'jpeg',
    ],
    ['thumbnail', [{ type: 'thumbnail', width: 120 }], 120, 80, 'webp'],
    [
      'png',
      [
        { type: 'resize', width: 30 },
        { type: 'convert', format: 'png' },
      ],
      30,
      20,
      'png',
    ],
    [
      'avif',
      [
        { type: 'resize', width: 30 },
        { type: 'convert', format: 'avif' },
      ],
      30,
      20,
      'heif',
    ],
  ])('%s', async (_, operations, width, height, format) => {
    const { id } = await picture()
    const job = await run(id, operations)
    expect(job.status, JSON.stringify(job.error)).toBe('succeeded')
    const made = (await admin.get(`/media/${job.result_asset_id}`)).data
    const found = await sharp(await bytesOf(made.storage_url)).metadata()
    expect({ width: found.width, height: found.height, format: found.format }).toEqual({ width, height, format })
  })

  test('strip_metadata removes what else is kept', async () => {
    const { id } = await picture()
    const exifOf = async (operations: unknown) => {
      const { result_asset_id } = await run(id, operations)
      const { storage_url } = (await admin.get(`/media/${result_asset_id}`)).data
      return (await sharp(await bytesOf(storage_url)).metadata()).exif !== undefined
    }
    expect(await exifOf([{ type: 'resize', width: 100 }])).toBe(true)
    expect(await exifOf([{ type: 'strip_metadata' }])).toBe(false)
  })

  test('are repeated safely under a key, limited, and refused by name', async () => {
    const { id } = await picture()
    const operations = [{ type: 'strip_metadata' }]
    const key = { 'idempotency-key': randomUUID() }
    const first = await post(id, operations, key)
    const again = await post(id, operations, key)
    expect([first.status, again.status, again.data]).toEqual([202, 200, first.data])
    expectRefusal(await post(id, [{ type: 'thumbnail' }], key), 409, 'IDEMPOTENCY_CONFLICT')
    expectRefusal(await post(randomUUID(), operations), 404, 'NOT_FOUND')
    expectRefusal(await admin.get(`/media/jobs/${randomUUID()}`), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/media/jobs/x'), 400, 'INVALID_ID')
    expectRefusal(await admin.get('/media/jobs?status=x'), 400, 'INVALID_INPUT', 'status')
    const text = await upload(user)
    expectRefusal(await post(text.id, operations), 400, 'MIME_NOT_ALLOWED', 'asset_id')
    const pending = await register(user, { mime_type: 'image/png' })
    expectRefusal(await post(pending.id, operations), 404, 'NOT_FOUND')
    for (const wrong of [
      [],
      Array(11).fill({ type: 'strip_metadata' }),
      [{ type: 'blur' }],
      [{ type: 'resize' }],
      [{ type: 'crop' }],
      [{ type: 'convert' }],
      [{ type: 'convert', format: 'gif' }],
      [{ type: 'resize', width: 0 }],
      [{ type: 'resize', width: 8193 }],
      [{ type: 'resize', width: 10, fit: 'fill' }],
      [{ type: 'convert', format: 'png', quality: 101 }],
      [{ type: 'strip_metadata', other: 1 }],
      'x',
    ])
      expectRefusal(await post(id, wrong), 400, 'VALIDATION_ERROR')
    expectInvalid(await post('x', operations), 'asset_id')
    await project.drain()
  })

  test('at most 100 a minute', async () => {
    const own = await harness.project()
    const { id } = await picture(await own.user())
    harness.setTime(new Date())
    const body = { asset_id: id, operations: [{ type: 'strip_metadata' }] }
    const answers = await Promise.all(Array.from({ length: 105 }, () => own.admin.post('/media/jobs', body)))
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(100)
    const refused = answers.find(({ status }) => status === 429)
    expect([refused?.error?.code, refused?.headers.get('retry-after')]).toEqual(['RATE_LIMITED', '60'])
    harness.advance(60)
    expect((await own.admin.post('/media/jobs', body)).status).toBe(202)
    harness.setTime(null)
  })

  test('count against the budget of a free project', async () => {
    const own = await harness.project()
    const owner = await own.user()
    const { id } = await picture(owner)
    for (let n = 0; n < 4; n += 1) await register(owner, { size_bytes: 50 * 1048576 })
    await register(owner, { size_bytes: 50 * 1048576 - photo.length })
    const { data } = await own.admin.post('/media/jobs', { asset_id: id, operations: [{ type: 'strip_metadata' }] })
    await own.drain()
    const job = (await own.admin.get(`/media/jobs/${data.id}`)).data
    expect([job.status, job.error.code, job.attempts]).toEqual(['failed', 'FREE_TIER_LIMIT_REACHED', 1])
    // the image, its thumbnail, and nothing of the result
    expect(await storedOf(harness, own)).toHaveLength(2)
  })

  test('of a file that goes meanwhile fail, and leave nothing', async () => {
    const { id } = await picture()
    const { data } = await post(id, [{ type: 'strip_metadata' }])
    await user.delete(`/client/media/${id}`)
    await project.drain()
    expect(await jobOf(data.id)).toMatchObject({ status: 'failed', error: { code: 'ASSET_GONE' } })
  })
})

describe('hostile images', () => {
  const broken = async (bytes: Buffer, mime_type = 'image/png') => {
    const { id } = await picture(user, bytes, { mime_type })
    await project.drain()
    const [job] = (await admin.get(`/media/jobs?asset_id=${id}`)).data
    return [job.status, job.error?.code, job.attempts]
  }

  test('fail their own jobs at once', async () => {
    const pixels = { width: 8000, height: 8000, channels: 3 as const, background: '#fff' }
    const bomb = await sharp({ create: pixels, limitInputPixels: false }).png().toBuffer()
    expect(await broken(bomb)).toEqual(['failed', 'TOO_MANY_PIXELS', 1])
    for (const bytes of [
      Buffer.from('not an image'),
      photo.subarray(0, photo.length / 2),
      Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(1000)]),
    ])
      expect(await broken(bytes)).toEqual(['failed', 'UNREADABLE_IMAGE', 1])
    // no vector graphics, whatever they are called: they could read files and take for ever
    const svg = Buffer.from(
      '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="5" height="5"/></svg>',
    )
    for (const type of ['image/svg+xml', 'image/png'])
      expect(await broken(svg, type)).toEqual(['failed', 'UNREADABLE_IMAGE', 1])
    // and others are made as before
    const { id } = await picture()
    await project.drain()
    expect((await user.get(`/client/media/${id}`)).data.thumbnail_url).not.toBeNull()
  })
})

describe('the processes', () => {
  /** A pool with a program that does what the operation says. */
  const poolOf = async (code: string, more: object = {}) => {
    const folder = await temporaryFolder()
    const program = join(folder, 'program.mjs')
    await writeFile(
      program,
      `process.on('disconnect', () => process.exit(0)); process.on('message', (m) => { const ok = { ok: true, format: 'png', size: 1, width: 1, height: 1 }; const what = m.operations[0].type; ${code} })`,
    )
    const work = join(folder, 'work')
    const one = { projectId: 'p', owner: 'o' }
    const images = createImages({ folder: work, processes: 2, program, ...more })
    const change = (type: string, share: Share = one, signal?: AbortSignal) =>
      images.change(
        async () => Readable.from([Buffer.from('x')]),
        [{ type: type as 'resize' }],
        async ({ width }) => width,
        share,
        signal,
      )
    return { images, change, work, left: () => readdir(work) }
  }

  test('that hang for one project leave a process to others, whose images are made meanwhile', async () => {
    const { images, change } = await poolOf(
      `if (what === 'hang') setTimeout(() => process.send(ok), 2500); else process.send(ok)`,
      { timeoutMs: 10_000 },
    )
    const greedy = { projectId: 'greedy', owner: 'user/1' }
    // what it takes is known after the first
    await change('hang', greedy)
    const hanging = Promise.allSettled(Array.from({ length: 30 }, () => change('hang', greedy)))
    const began = performance.now()
    await change('ok', { projectId: 'other', owner: 'user/2' })
    expect(performance.now() - began).toBeLessThan(2000)
    await images.close()
    const answers = await hanging
    expect(answers.every(({ status }) => status === 'rejected')).toBe(true)
  })

  test('get few images at once: the others wait and take no room', async () => {
    const { images } = await poolOf(`setTimeout(() => process.send(ok), 5)`)
    let [copied, most, done] = [0, 0, 0]
    const source = async () => {
      copied += 1
      most = Math.max(most, copied - done)
      return Readable.from([Buffer.from('x')])
    }
    const change = (_: unknown, n: number) =>
      images.change(
        source,
        [{ type: 'resize' }],
        async () => {
          done += 1
        },
        { projectId: `p${n % 3}`, owner: 'o' },
      )
    await Promise.all(Array.from({ length: 60 }, change))
    expect([copied, most]).toEqual([60, 8])
    await images.close()
  })

  test('that hang are killed, and others go on', async () => {
    const { images, change, left } = await poolOf(`if (what === 'hang') for (;;) {} else process.send(ok)`, {
      timeoutMs: 1500,
    })
    const answers = await Promise.allSettled([change('hang'), change('ok'), change('hang'), change('ok'), change('ok')])
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    const [hung] = answers
    expect((hung as PromiseRejectedResult).reason).toMatchObject({ code: 'IMAGE_TIMEOUT', isFinal: false })
    expect(await left()).toEqual([])
    await images.close()
  })

  test('that die fail one work, and nothing else', async () => {
    const { images, change } = await poolOf(
      `if (what === 'die') process.kill(process.pid, 'SIGSEGV'); else if (what === 'memory') process.kill(process.pid, '${outOfMemory}'); else process.send(ok)`,
    )
    const codes: string[] = []
    for (const type of ['die', 'ok', 'memory', 'ok', 'die'])
      codes.push(
        await change(type).then(
          () => 'ok',
          (error: ImageError) => `${error.code} ${error.isFinal}`,
        ),
      )
    expect(codes).toEqual(['IMAGE_FAILED false', 'ok', 'IMAGE_TOO_LARGE true', 'ok', 'IMAGE_FAILED false'])
    await images.close()
    await expect(change('ok')).rejects.toThrow(ImageError)
  })

  test('find no files of a server that crashed', async () => {
    const { images, change, work, left } = await poolOf('process.send(ok)')
    for (const [name, hours] of [
      ['image-old', 2],
      ['image-new', 0],
    ] as const) {
      await mkdir(join(work, name), { recursive: true })
      await writeFile(join(work, name, 'input'), 'x')
      const at = new Date(Date.now() - hours * 3_600_000)
      await utimes(join(work, name), at, at)
    }
    await change('ok')
    expect(await left()).toEqual(['image-new'])
    await images.close()
  })

  test('are few, however many ask', async () => {
    const { images, change } = await poolOf(
      `globalThis.n = (globalThis.n ?? 0) + 1; process.send({ ...ok, width: process.pid })`,
    )
    const answers = await Promise.allSettled(
      Array.from({ length: 1000 }, (_, n) => change('ok', { projectId: `p${n % 10}`, owner: 'o' })),
    )
    const pids = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
    const busy = answers.flatMap((answer) => (answer.status === 'rejected' ? [(answer.reason as ImageError).code] : []))
    expect(new Set(pids).size).toBeLessThanOrEqual(2)
    expect(new Set(busy)).toEqual(busy.length > 0 ? new Set(['IMAGES_BUSY']) : new Set())
    expect(pids.length).toBeGreaterThanOrEqual(200)
    await images.close()
  })

  test('have room for those who come, when one owner and one project have taken their share', async () => {
    const turns = createTurns(8)
    const taken: Promise<() => void>[] = []
    const ask = (projectId: string, owner: string) => {
      const turn = turns.take({ projectId, owner })
      turn.catch(() => undefined)
      taken.push(turn)
      return turn
    }
    // six work, and as many wait as may
    for (let n = 0; n < 6 + mostWaiting.owner; n += 1) ask('greedy', 'user/1')
    await expect(ask('greedy', 'user/1')).rejects.toThrow('of this owner')
    for (let n = mostWaiting.owner; n < mostWaiting.project; n += 1) ask('greedy', 'user/2')
    await expect(ask('greedy', 'user/3')).rejects.toThrow('of this project')
    // two places are left to others, at once
    await Promise.all([ask('other', 'user/1'), ask('third', 'user/1')])
    const waits = ask('fourth', 'user/1')
    const end = await (taken[0] as Promise<() => void>)
    end()
    await waits
    turns.close('over')
  })

  test('are for those that wait for them: whoever goes gives the turn up', async () => {
    const turns = createTurns(1)
    const share = { projectId: 'p', owner: 'o' }
    const end = await turns.take(share)
    const controller = new AbortController()
    const gone = turns.take(share, controller.signal)
    const next = turns.take(share)
    controller.abort()
    await expect(gone).rejects.toThrow('Nobody waits')
    end()
    const endNext = await next
    await expect(turns.take(share, controller.signal)).rejects.toThrow('Nobody waits')
    endNext()
  })

  test('serve the project that has used the least of late', () => {
    let now = 0
    const shares = createShares(2, () => now)
    const work = (projectId: string) => ({ share: { projectId, owner: 'o' } })
    const used = (projectId: string, ms: number) => {
      const end = shares.begin({ projectId, owner: 'o' })
      now += ms
      end()
    }
    used('a', 500)
    expect(shares.choose([work('a'), work('b')])?.share.projectId).toBe('b')
    used('b', 1500)
    expect(shares.choose([work('a'), work('b')])?.share.projectId).toBe('a')
    // whose work takes long has one of two processes, whoever waits
    used('slow', 30_000)
    const end = shares.begin({ projectId: 'slow', owner: 'o' })
    expect(shares.choose([work('slow')])).toBeUndefined()
    end()
    expect(shares.choose([work('slow')])?.share.projectId).toBe('slow')
  })

  test('that are busy cost a job no attempt', async () => {
    const { id } = await picture()
    await project.drain()
    const { data } = await post(id, [{ type: 'strip_metadata' }])
    const { media } = harness.running.services
    const busy = vi
      .spyOn(media.images, 'change')
      .mockRejectedValue(new ImageError('IMAGES_BUSY', 'Too many images wait to be changed.', false))
    for (let n = 0; n < 5; n += 1) {
      await project.drain()
      expect(await jobOf(data.id)).toMatchObject({ status: 'queued', attempts: 0, error: null })
      harness.advance(20)
    }
    busy.mockRestore()
    await project.drain()
    expect(await jobOf(data.id)).toMatchObject({ status: 'succeeded', attempts: 1 })
    harness.setTime(null)
  })

  test('that break off are tried three times', async () => {
    const { id } = await picture()
    const { data } = await post(id, [{ type: 'strip_metadata' }])
    const { media } = harness.running.services
    // as if the server had died in each attempt
    await project.sql(`update app.media_jobs set status = 'running', attempts = 3 where id = $1`, [data.id])
    await project.drain()
    expect(await jobOf(data.id)).toMatchObject({ status: 'failed', attempts: 3, error: { code: 'IMAGE_FAILED' } })
    // a storage that is away: three attempts, with back-off
    const other = await picture()
    await project.drain()
    const { data: queued } = await post(other.id, [{ type: 'strip_metadata' }])
    const [row] = await project.sql('select object_version from app.media_assets where id = $1', [other.id])
    await media.storage.removeObject({ projectId: project.id, assetId: other.id, object: row.object_version })
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await project.drain()
      expect(await jobOf(queued.id)).toMatchObject({ attempts: attempt, status: attempt < 3 ? 'queued' : 'failed' })
      harness.advance(3600)
    }
    harness.setTime(null)
  })
})

describe('variants in signed URLs', () => {
  const sign = async (key: string, more: object = {}) =>
    user.post('/client/media/presign', { bucket: 'media', key, method: 'GET', ...more })

  test('are made once, kept beside the image, and go with it', async () => {
    const { id, key } = await picture()
    await project.drain()
    const { data } = await sign(key, { w: 200, h: 100, fit: 'cover', format: 'png' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(data.url)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const [first] = answers
    expect([first?.headers.get('content-type'), first?.headers.get('etag')]).toEqual([
      'image/png',
      expect.stringMatching(/^"[0-9a-f]{24}\.[0-9a-f]{16}\.png"$/),
    ])
    const { width, height, format } = await sharp(Buffer.from(await (first as Response).arrayBuffer())).metadata()
    expect({ width, height, format }).toEqual({ width: 200, height: 100, format: 'png' })
    const stored = async () => (await storedOf(harness, project)).filter((name) => name.includes(id))
    // the image, its thumbnail, the variant
    expect(await stored()).toHaveLength(3)
    const half = await sharp(await bytesOf((await sign(key, { w: 600 })).data.url)).metadata()
    expect([half.format, half.width, half.height]).toEqual(['webp', 600, 400])
    // what it was changed to, its ending says
    expect(first?.headers.get('content-disposition')).toBe('inline; filename="photo.png"')
    const { thumbnail_url } = (await user.get(`/client/media/${id}`)).data
    expect((await fetch(thumbnail_url)).headers.get('content-disposition')).toBe('inline; filename="photo.webp"')
    expect((await fetch(data.url.replace('variant=200', 'variant=201'))).status).toBe(403)
    await user.delete(`/client/media/${id}`)
    expect(await stored()).toEqual([])
    expect((await fetch(data.url)).status).toBe(404)
  })

  test('that could not be made in time are not begun again for a while', async () => {
    const { media } = harness.running.services
    const { id } = await picture()
    const late = vi
      .spyOn(media.images, 'change')
      .mockRejectedValue(new ImageError('IMAGE_TIMEOUT', 'The work took too long.', false))
    const link = {
      projectId: project.id,
      assetId: id,
      key: 'user/1/x',
      filename: 'x.png',
      mimeType: 'image/png',
      variant: null,
    }
    const [row] = await project.sql('select object_version as object from app.media_assets where id = $1', [id])
    const asked = () => media.variantOf({ ...link, object: row.object }, '4096-4096-cover-avif')
    await expect(asked()).rejects.toMatchObject({ status: 503, code: 'IMAGE_TIMEOUT', headers: { 'Retry-After': '5' } })
    await expect(asked()).rejects.toMatchObject({ code: 'IMAGE_TIMEOUT' })
    expect(late).toHaveBeenCalledTimes(1)
    harness.advance(601)
    await expect(asked()).rejects.toMatchObject({ code: 'IMAGE_TIMEOUT' })
    expect(late).toHaveBeenCalledTimes(2)
    harness.setTime(null)
    late.mockRestore()
  })

  test('whose clients have gone are not made', async () => {
    const { media } = harness.running.services
    const { id } = await picture()
    const signals: AbortSignal[] = []
    const change = vi.spyOn(media.images, 'change').mockImplementation((async (...args: unknown[]) => {
      const signal = args[4] as AbortSignal
      signals.push(signal)
      await new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new ImageError('IMAGES_BUSY', 'gone', false))),
      )
    }) as never)
    const [row] = await project.sql('select object_version as object from app.media_assets where id = $1', [id])
    const link = {
      projectId: project.id,
      assetId: id,
      key: 'user/1/x',
      filename: 'x.png',
      mimeType: 'image/png',
      variant: null,
    }
    const clients = [new AbortController(), new AbortController()]
    const asked = clients.map(({ signal }) =>
      media.variantOf({ ...link, object: row.object }, '31-31-cover-webp', { signal }).catch((error) => error.code),
    )
    await expect.poll(() => signals.length).toBe(1)
    clients[0]?.abort()
    expect(signals[0]?.aborted).toBe(false)
    clients[1]?.abort()
    expect(signals[0]?.aborted).toBe(true)
    expect(await Promise.all(asked)).toEqual(['IMAGES_BUSY', 'IMAGES_BUSY'])
    change.mockRestore()
  })

  test('are at most 32 of an image', async () => {
    const { id, key } = await picture(user, await sharp(photo).resize(50).jpeg().toBuffer())
    for (let w = 1; w <= 34; w += 1) expect((await fetch((await sign(key, { w })).data.url)).status).toBe(200)
    const kept = (await storedOf(harness, project)).filter((name) => name.includes(id) && name.endsWith('.webp'))
    expect(kept.filter((name) => !name.includes('thumbnail'))).toHaveLength(32)
  })

  test('have 64 MB of an image, as the budget of a project does not count them', async () => {
    const { id, key } = await picture(user, await sharp(photo).resize(50).jpeg().toBuffer())
    const folder = join(harness.running.services.config.DATA_DIR, 'media', project.id, 'objects', id.slice(-2), id)
    const sizes = async () => {
      const names = (await readdir(folder)).filter((name) => name.endsWith('.webp') && !name.includes('thumbnail'))
      return Promise.all(names.map(async (name) => (await stat(join(folder, name))).size))
    }
    expect((await fetch((await sign(key, { w: 20 })).data.url)).status).toBe(200)
    const [made = ''] = (await readdir(folder)).filter((name) => name.endsWith('.webp') && !name.includes('thumbnail'))
    // sparse: what is counted is the size
    await truncate(join(folder, made), 60_000_000)
    await writeFile(join(folder, `${made.split('.')[0]}.0000000000000000.webp`), '')
    await truncate(join(folder, `${made.split('.')[0]}.0000000000000000.webp`), 60_000_000)
    expect((await fetch((await sign(key, { w: 30 })).data.url)).status).toBe(200)
    expect((await sizes()).reduce((sum, size) => sum + size, 0)).toBeLessThan(67_108_864)
    expect(await sizes()).toHaveLength(2)
  })

  test('are refused for what is no image, or broken', async () => {
    const { key } = await upload(user)
    expectRefusal(await sign(key, { w: 100 }), 400, 'INVALID_INPUT', 'w')
    const image = await picture(user, Buffer.from('not an image'))
    for (const [more, field] of [
      [{ w: 0 }, 'w'],
      [{ h: 4097 }, 'h'],
      [{ fit: 'fill' }, 'fit'],
      [{ format: 'gif' }, 'format'],
    ] as const)
      expectRefusal(await sign(image.key, more), 400, 'INVALID_INPUT', field)
    const answer = await fetch((await sign(image.key, { w: 10 })).data.url)
    expect([answer.status, ((await answer.json()) as any).error.code]).toEqual([422, 'UNREADABLE_IMAGE'])
  })
})
