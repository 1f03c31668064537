import { randomBytes } from 'node:crypto'
import { utimes } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Upload, type UploadOptions } from 'tus-js-client'
import { afterAll, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { setTier, storedOf } from '#test/support/media.ts'
import { startS3 } from '#test/support/s3.ts'
import { newBucket, storageOf } from '#test/support/supabase_storage.ts'
import { loadTasks } from '#workers/task.ts'

/** Resumable uploads by the client that Supabase's documentation names, over both kinds of storage. */
const s3 = await startS3()
afterAll(() => s3.stop())

describe.each([
  ['files', {}],
  ['S3', { STORAGE_URL: s3.url }],
] as const)('in %s', async (kind, env) => {
  const harness = await startHarness({ env: { ...env, LOG_LEVEL: 'silent' } })
  const project = await harness.project()
  await setTier(harness, project, 'pro')
  await project.admin.patch('', { rest_enabled: true })
  const [user, other] = [await project.user(), await project.user()]
  const files = storageOf(harness, project, user.sessionToken).from('media')
  const endpoint = `${harness.url}/storage/v1/upload/resumable`
  const headersOf = (session: string) => ({ apikey: project.clientKey, authorization: `Bearer ${session}` })
  const own = (name: string) => `user/${user.id}/${name}`
  const bytesOf = async (path: string, of = files) => {
    const { data, error } = await of.download(path)
    return data ? Buffer.from(await data.arrayBuffer()) : error
  }
  /** What is stored of uploads that have not become files. */
  const underWay = async () =>
    (kind === 'S3' ? [...s3.objects.keys()].map((key) => key.replace(/^.*?\//, '')) : await storedOf(harness, project))
      .map((name) => name.replace(`${project.id}/`, ''))
      .filter((name) => name.startsWith('uploads/'))

  /** One run of the client: what it sent, and how it ended. */
  const send = (
    name: string,
    bytes: Buffer,
    more: Partial<UploadOptions> = {},
    untilChunk = Number.POSITIVE_INFINITY,
  ) =>
    new Promise<{ url: string | null; sent: string[]; error: Error | null }>((resolve) => {
      const sent: string[] = []
      let chunks = 0
      const upload: Upload = new Upload(bytes, {
        endpoint,
        chunkSize: 100_000,
        retryDelays: null,
        headers: headersOf(user.sessionToken),
        metadata: { bucketName: 'media', objectName: own(name), contentType: 'application/octet-stream' },
        onBeforeRequest: (request) =>
          void sent.push(`${request.getMethod()} ${request.getHeader('Upload-Offset') ?? ''}`),
        onSuccess: () => resolve({ url: upload.url, sent, error: null }),
        onError: (error) => resolve({ url: upload.url, sent, error }),
        onChunkComplete() {
          chunks += 1
          if (chunks === untilChunk) void upload.abort().then(() => resolve({ url: upload.url, sent, error: null }))
        },
        ...more,
      })
      upload.start()
    })
  const metadata = (fields: Record<string, string>) =>
    Object.entries(fields)
      .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
      .join(',')
  /** A request of the protocol, by hand. */
  const ask = (
    method: string,
    url: string,
    headers: Record<string, string> = {},
    body?: Buffer,
    session = user.sessionToken,
  ) =>
    fetch(url, {
      method,
      headers: { 'tus-resumable': '1.0.0', ...headersOf(session), ...headers },
      ...(body ? { body: new Uint8Array(body) } : {}),
    })
  const create = (
    name: string,
    size: number,
    headers: Record<string, string> = {},
    fields: Record<string, string> = {},
  ) =>
    ask('POST', endpoint, {
      'upload-length': String(size),
      'upload-metadata': metadata({ bucketName: 'media', objectName: own(name), contentType: 'text/plain', ...fields }),
      ...headers,
    })
  const patch = (url: string, offset: number, body: Buffer, headers: Record<string, string> = {}, session?: string) =>
    ask(
      'PATCH',
      url,
      { 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream', ...headers },
      body,
      session,
    )
  const locationOf = (answer: Response) => answer.headers.get('location') as string
  const offsetOf = async (url: string, session?: string) => {
    const { status, headers } = await ask('HEAD', url, {}, undefined, session)
    return status === 200 ? Number(headers.get('upload-offset')) : status
  }

  test('a file goes up in parts, with its type and its metadata', async () => {
    const bytes = randomBytes(350_000)
    const fields = {
      bucketName: 'media',
      objectName: own('parts.txt'),
      contentType: 'text/plain;charset=utf-8',
      cacheControl: '3600',
      metadata: JSON.stringify({ album: 'ä' }),
    }
    const { sent, error } = await send('parts.txt', bytes, { metadata: fields })
    expect(error).toBeNull()
    expect(sent).toEqual(['POST ', 'PATCH 0', 'PATCH 100000', 'PATCH 200000', 'PATCH 300000'])
    expect(await bytesOf(own('parts.txt'))).toEqual(bytes)
    const { data } = await files.info(own('parts.txt'))
    expect(data).toMatchObject({ size: 350_000, contentType: 'text/plain;charset=utf-8', metadata: { album: 'ä' } })
    expect(await underWay()).toEqual([])
    // with the first bytes in the creation, as Supabase's example does
    const early = await send('early.bin', bytes, { uploadDataDuringCreation: true, chunkSize: 6_291_456 })
    expect([early.error, early.sent]).toEqual([null, ['POST ']])
    expect(await bytesOf(own('early.bin'))).toEqual(bytes)
  })

  test('an upload that stopped goes on where it was, and only for whoever began it', async () => {
    const bytes = randomBytes(250_000)
    const { url } = await send('stopped.bin', bytes, {}, 1)
    expect(await offsetOf(url as string)).toBe(100_000)
    expect((await files.exists(own('stopped.bin'))).data).toBe(false)
    for (const method of ['HEAD', 'DELETE'])
      expect((await ask(method, url as string, {}, undefined, other.sessionToken)).status).toBe(404)
    expect((await patch(url as string, 100_000, bytes.subarray(100_000), {}, other.sessionToken)).status).toBe(404)
    const again = await send('stopped.bin', bytes, { uploadUrl: url })
    expect([again.error, again.sent]).toEqual([null, ['HEAD ', 'PATCH 100000', 'PATCH 200000']])
    expect(await bytesOf(own('stopped.bin'))).toEqual(bytes)
    // the answer to the last part was lost: it has become the file
    expect(await offsetOf(url as string)).toBe(250_000)
    expect((await patch(url as string, 250_000, Buffer.alloc(0))).status).toBe(204)
    expect((await ask('DELETE', url as string)).status).toBe(404)
  })

  test('what came of a part that broke off counts', async () => {
    const bytes = randomBytes(24_000_000)
    const url = locationOf(await create('broken.bin', bytes.length))
    const { hostname, port, pathname } = new URL(url)
    const socket = connect(Number(port), hostname)
    const head = Object.entries({
      ...headersOf(user.sessionToken),
      host: hostname,
      'tus-resumable': '1.0.0',
      'upload-offset': '0',
      'content-type': 'application/offset+octet-stream',
      'content-length': String(bytes.length),
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`PATCH ${pathname} HTTP/1.1\r\n${head.join('')}\r\n`)
    // more than sockets hold: some of it has been taken when the last of it is on its way
    socket.write(bytes.subarray(0, 20_000_000), () => socket.destroy())
    await expect.poll(() => offsetOf(url), { timeout: 20_000 }).toBeGreaterThan(0)
    const offset = await offsetOf(url)
    expect(offset).toBeLessThanOrEqual(20_000_000)
    expect((await patch(url, offset, bytes.subarray(offset))).status).toBe(204)
    // a comparison of the test library would take a minute
    expect(bytes.equals((await bytesOf(own('broken.bin'))) as Buffer)).toBe(true)
  })

  test('a file is replaced when it has come whole; of two uploads to one place the later one counts', async () => {
    const [first, second] = [randomBytes(60_000), randomBytes(60_000)]
    expect((await send('place.bin', first)).error).toBeNull()
    expect((await create('place.bin', 5)).status).toBe(409)
    const upsert = { 'x-upsert': 'true' }
    const [left, taken] = [
      locationOf(await create('place.bin', 60_000, upsert)),
      locationOf(await create('place.bin', 60_000, upsert)),
    ]
    expect(await offsetOf(left)).toBe(404)
    expect((await patch(taken, 0, second.subarray(0, 10_000))).status).toBe(204)
    expect(await bytesOf(own('place.bin'))).toEqual(first)
    // given up, the former one stays
    expect((await ask('DELETE', taken)).status).toBe(204)
    expect([await underWay(), await offsetOf(taken)]).toEqual([[], 404])
    expect(await bytesOf(own('place.bin'))).toEqual(first)
    const last = locationOf(await create('place.bin', 60_000, upsert))
    expect((await patch(last, 0, second)).status).toBe(204)
    expect(await bytesOf(own('place.bin'))).toEqual(second)
    // one that never was a file is gone
    const gone = locationOf(await create('gone.bin', 10))
    await patch(gone, 0, Buffer.from('hello'))
    expect((await ask('DELETE', gone)).status).toBe(204)
    expect([await offsetOf(gone), await underWay()]).toEqual([404, []])
  })

  test('what does not fit is refused, at the beginning and at the end', async () => {
    const refused = async (answer: Response) => [answer.status, ((await answer.json()) as { code: string }).code]
    expect(await refused(await create('a', 52_428_801))).toEqual([413, 'EntityTooLarge'])
    expect(await refused(await create('a', 0))).toEqual([400, 'INVALID_INPUT'])
    expect(await refused(await create('a', 5, {}, { objectName: `user/${other.id}/a` }))).toEqual([403, 'AccessDenied'])
    expect(await refused(await create('a', 5, {}, { bucketName: 'nowhere' }))).toEqual([404, 'NoSuchBucket'])
    expect(await refused(await create('a', 5, {}, { contentType: 'text/html' }))).toEqual([415, 'InvalidMimeType'])
    expect(await refused(await create('a', 5, {}, { metadata: '[]' }))).toEqual([400, 'INVALID_INPUT'])
    expect((await create('a', 5, {}, { metadata: JSON.stringify({ a: 'x'.repeat(2100) }) })).status).toBe(400)
    const old = await create('a', 5, { 'tus-resumable': '0.2.2' })
    expect([old.status, old.headers.get('tus-version')]).toEqual([412, '1.0.0'])
    expect((await fetch(endpoint, { method: 'POST', headers: { apikey: project.clientKey } })).status).toBe(401)
    for (const id of ['x', Buffer.from('{}').toString('base64url')])
      expect(await offsetOf(`${endpoint}/${id}`)).toBe(404)

    const url = locationOf(await create('a', 10))
    const wrong = await patch(url, 3, Buffer.from('hello'))
    expect([wrong.status, wrong.headers.get('tus-resumable')]).toEqual([409, '1.0.0'])
    expect((await patch(url, 0, Buffer.from('hello'), { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await patch(url, 0, Buffer.alloc(11))).status).toBe(413)
    // an address that says another size is held to what was registered
    const place = JSON.parse(Buffer.from(url.split('/').at(-1) as string, 'base64url').toString())
    const longer = `${endpoint}/${Buffer.from(JSON.stringify({ ...place, size: 20 })).toString('base64url')}`
    expect((await patch(longer, 0, Buffer.alloc(20))).status).toBe(400)
    expect((await files.exists(own('a'))).data).toBe(false)
    await ask('DELETE', url)

    // a bucket that takes less than it did, and a user who was banned meanwhile
    const server = storageOf(harness, project)
    const bucket = await newBucket(server, { public: false, fileSizeLimit: 1000 })
    const inBucket = { bucketName: bucket.name, objectName: `${user.id}/a` }
    expect(await refused(await create('', 1001, {}, inBucket))).toEqual([413, 'EntityTooLarge'])
    const late = locationOf(await create('', 900, {}, inBucket))
    await server.updateBucket(bucket.name, { public: false, fileSizeLimit: 100 })
    expect(await refused(await patch(late, 0, Buffer.alloc(900, 'a')))).toEqual([413, 'EntityTooLarge'])
    const banned = locationOf(await create('banned', 5))
    await project.sql('update app.users set is_banned = true where id = $1', [user.id])
    expect((await patch(banned, 0, Buffer.from('hello'))).status).toBe(403)
    await project.sql('update app.users set is_banned = false where id = $1', [user.id])
  })

  test('what a day has not completed goes', async () => {
    const url = locationOf(await create('forgotten', 10))
    await patch(url, 0, Buffer.from('hello'))
    expect((await send('kept', Buffer.from('whole'))).error).toBeNull()
    const over = locationOf(await create('kept', 10, { 'x-upsert': 'true' }))
    await patch(over, 0, Buffer.from('hello'))
    expect((await underWay()).length).toBeGreaterThan(1)
    const at = new Date(harness.now().getTime() - 25 * 3_600_000)
    const folder = join(harness.running.services.config.DATA_DIR, 'media', project.id)
    if (kind === 'files') for (const name of await storedOf(harness, project)) await utimes(join(folder, name), at, at)
    for (const [key, kept] of s3.objects) s3.objects.set(key, { ...kept, at })
    await project.sql(`update app.media_assets set created_at = created_at - interval '25 hours',
      upload_expires_at = upload_expires_at - interval '25 hours'`)
    const { jobs } = await loadTasks()
    await jobs.find(({ name }) => name === 'fleet__maintain')?.run(harness.running.services, {})
    await project.drain()
    expect(await underWay()).toEqual([])
    expect(String(await bytesOf(own('kept')))).toBe('whole')
    expect(await offsetOf(url)).toBe(404)
    expect(await offsetOf(over)).toBe(404)
  })
})
