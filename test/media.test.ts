import { randomBytes, randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Client, startHarness, type User } from '#test/support/harness.ts'
import { commit, put, register, setTier, storedOf, upload } from '#test/support/media.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const paid = await harness.project()
await setTier(harness, paid, 'pro')
const MB = 1048576

const presign = (client: Client, key: string, more: Record<string, unknown> = {}) =>
  client.post('/client/media/presign', { bucket: 'media', key, method: 'GET', ...more })
const presignPut = (client: Client, key: string, more: Record<string, unknown> = {}) =>
  presign(client, key, { method: 'PUT', content_type: 'text/plain', ...more })
const textOf = async (url: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(url, { headers })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}
/** The envelope of an answer to a signed URL. */
const refusedWith = async (answer: Response) => {
  const text = await answer.text()
  return [answer.status, (JSON.parse(text) as { error: { code: string } }).error.code]
}

describe('an upload', () => {
  test('is registered, put, committed, read, listed and deleted', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const user = await project.user()
    const { id, uploadUrl, answer } = await register(user, { filename: 'C:\\x/Grüße 1.txt' })
    const path = `${project.id}/user/${user.id}/${Date.parse('2026-11-22T10:00:00Z')}_${id}_Gr__e_1.txt`
    expect(answer.data).toEqual({
      id,
      filename: 'C:\\x/Grüße 1.txt',
      storage_url: expect.stringContaining(path),
      uploaded_by: user.id,
    })
    expect(answer.body.upload_url_expires_at).toBe('2026-11-22T10:10:00.000Z')
    // pending: hidden
    expectRefusal(await user.get(`/client/media/${id}`), 404, 'NOT_FOUND')
    expect((await user.get('/client/media')).body).toEqual({ data: [], total: 0, offset: 0, limit: 50 })
    expectRefusal(await presign(user, path), 404, 'NOT_FOUND')
    expectRefusal(await commit(user, id), 409, 'UPLOAD_NOT_FOUND')
    expect((await fetch(answer.data.storage_url)).status).toBe(404)

    const stored = await put(uploadUrl, 'hello')
    expect([stored.status, await stored.json()]).toEqual([200, { data: { size_bytes: 5 } }])
    const committed = await commit(user, id)
    expect(committed.status, committed.text).toBe(200)
    expect(committed.data).toEqual({
      id,
      key: path.slice(37),
      filename: 'C:\\x/Grüße 1.txt',
      mime_type: 'text/plain',
      status: 'committed',
      storage_url: expect.stringContaining(path),
      thumbnail_url: null,
      alt_text: null,
      metadata: {},
      size_bytes: 5,
      folder_id: null,
      uploaded_by: user.id,
      created_at: '2026-11-22T10:00:00.000Z',
      updated_at: '2026-11-22T10:00:00.000Z',
    })
    expect((await commit(user, id)).data).toEqual(committed.data)
    expect((await user.get(`/client/media/${id}`)).data).toEqual(committed.data)
    expect((await user.get('/client/media')).body).toMatchObject({ data: [committed.data], total: 1 })
    // the URL that the registration gave leads to the bytes too
    expect(await textOf(answer.data.storage_url)).toMatchObject({ status: 200, text: 'hello' })
    // a commit closes the window: nothing replaces the bytes, and the asset may be deleted
    expect(await refusedWith(await put(uploadUrl, 'HELLO'))).toEqual([403, 'FORBIDDEN'])
    expect(await storedOf(harness, project)).toHaveLength(1)
    const deleted = await user.delete(`/client/media/${id}`)
    expect([deleted.status, deleted.data], deleted.text).toEqual([200, { id, deleted: true }])
    expect(await storedOf(harness, project)).toEqual([])
    expect((await fetch(committed.data.storage_url)).status).toBe(404)
    for (const again of [await user.delete(`/client/media/${id}`), await user.get(`/client/media/${id}`)])
      expectRefusal(again, 404, 'NOT_FOUND')
    expectRefusal(await commit(user, id), 404, 'NOT_FOUND')
    expect((await user.get('/client/media')).body.total).toBe(0)
    harness.setTime(null)
  })

  test('is committed by a GET of its id, and by twenty commits at once', async () => {
    const user = await project.user()
    const first = await register(user)
    await put(first.uploadUrl, 'hello')
    const got = await user.get(`/client/media/${first.id}`)
    expect([got.status, got.data.status, got.data.size_bytes]).toEqual([200, 'committed', 5])
    const second = await register(user)
    await put(second.uploadUrl, 'world')
    const answers = await Promise.all(Array.from({ length: 20 }, () => commit(user, second.id)))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(await textOf(answers[0]?.data.storage_url)).toMatchObject({ status: 200, text: 'world' })
  })

  test('takes the types that are named, and no other', async () => {
    const user = await project.user()
    for (const mime_type of [
      'image/png',
      'image/svg+xml',
      'audio/mpeg',
      'video/mp4',
      'application/pdf',
      'text/plain',
      'application/json',
      'application/zip',
      'application/octet-stream',
      'IMAGE/PNG',
    ])
      await register(user, { mime_type, filename: 'x' })
    for (const mime_type of [
      'text/html',
      'application/javascript',
      'image',
      'image/',
      'image/png; a=b',
      'x',
      'image/png\n',
    ])
      expectRefusal(
        await user.post('/client/media/upload', { filename: 'x', mime_type, size_bytes: 5 }),
        400,
        'MIME_NOT_ALLOWED',
      )
  })

  test('has bounds, and names the field that is wrong', async () => {
    const user = await project.user()
    const good = { filename: 'a', mime_type: 'text/plain', size_bytes: 5 }
    const wrong: [object, string][] = [
      [{ filename: '' }, 'filename'],
      [{ filename: 'x'.repeat(256) }, 'filename'],
      [{ filename: 5 }, 'filename'],
      [{ filename: undefined }, 'filename'],
      [{ mime_type: 5 }, 'mime_type'],
      [{ mime_type: undefined }, 'mime_type'],
      [{ size_bytes: 0 }, 'size_bytes'],
      [{ size_bytes: -1 }, 'size_bytes'],
      [{ size_bytes: 1.5 }, 'size_bytes'],
      [{ size_bytes: '5' }, 'size_bytes'],
      [{ size_bytes: 50 * MB + 1 }, 'size_bytes'],
    ]
    for (const [more, field] of wrong)
      expectRefusal(await user.post('/client/media/upload', { ...good, ...more }), 400, 'INVALID_INPUT', field)
    for (const body of ['[]', '"x"', '{'])
      expectRefusal(await user.post('/client/media/upload', body), 400, 'INVALID_BODY')
    expectRefusal(
      await user.post('/client/media/upload', { ...good, size_bytes: undefined }),
      400,
      'SIZE_REQUIRED',
      'size_bytes',
    )
    const { answer } = await register(user, { filename: `${'y'.repeat(250)}.txt`, ignored: true })
    expect(answer.data.filename).toHaveLength(254)
    // on a paid project the size may be left out, and then counts when it comes
    const payer = await paid.user()
    const { id, uploadUrl } = await register(payer, { size_bytes: undefined })
    await put(uploadUrl, 'any size')
    expect((await commit(payer, id)).data.size_bytes).toBe(8)
  })

  test('must have the type and the size that were registered', async () => {
    const user = await project.user()
    const { id, uploadUrl } = await register(user)
    for (const answer of [
      await put(uploadUrl, 'hello', 'text/html'),
      await put(uploadUrl, 'hello', 'text/plain; charset=utf-8'),
      await put(uploadUrl, 'hell'),
      await put(uploadUrl, 'hello!'),
      await put(uploadUrl, ''),
      // without a length, as a stream
      await put(uploadUrl, new Blob(['hello!']).stream()),
      await put(uploadUrl, new Blob(['hell']).stream()),
    ])
      expect(await refusedWith(answer)).toEqual([400, 'INVALID_INPUT'])
    expect(await storedOf(harness, project)).not.toContainEqual(expect.stringContaining(id))
    expectRefusal(await commit(user, id), 409, 'UPLOAD_NOT_FOUND')
    const chunked = await put(uploadUrl, new Blob(['hello']).stream(), 'Text/Plain')
    expect(chunked.status).toBe(200)
    // bytes that changed on the way to the storage are refused again at the commit
    await project.sql('update app.media_assets set size_bytes = 4 where id = $1', [id])
    expectRefusal(await commit(user, id), 400, 'INVALID_INPUT', 'asset_id')
    expectRefusal(await user.get(`/client/media/${id}`), 404, 'NOT_FOUND')
  })

  test('of JSON is bytes like any other, and may be longer than a body of the API', async () => {
    const user = await project.user()
    const text = JSON.stringify('x'.repeat(2 * MB))
    const asset = await upload(user, text, { mime_type: 'application/json', filename: 'a.json' })
    const got = await fetch(asset.storage_url)
    expect(got.headers.get('content-disposition')).toMatch(/^attachment; filename="\d+_[0-9a-f-]+_a\.json"$/)
    expect(await got.text()).toBe(text)
    expectRefusal(await user.post('/client/media/upload', text), 413, 'PAYLOAD_TOO_LARGE')
  })

  test('that is broken off leaves nothing', async () => {
    const user = await project.user()
    const { id, uploadUrl } = await register(user, { size_bytes: 1000 })
    const { pathname, search, hostname, port } = new URL(uploadUrl)
    const socket = connect(Number(port), hostname)
    socket.write(
      `PUT ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhello`,
    )
    const names = () => storedOf(harness, project).then((all) => all.filter((name) => name.includes(id)))
    await expect.poll(names).toEqual([expect.stringMatching(/\.tmp$/)])
    socket.destroy()
    await expect.poll(names).toEqual([])
    expect((await put(uploadUrl, 'x'.repeat(1000))).status).toBe(200)
  })
})

test('an upload URL takes four requests at once, so that it cannot fill the disk', async () => {
  const user = await project.user()
  const { id, uploadUrl } = await register(user, { size_bytes: 1000 })
  const { pathname, search, hostname, port } = new URL(uploadUrl)
  const sockets = [1, 2, 3, 4].map(() => {
    const socket = connect(Number(port), hostname)
    socket.write(
      `PUT ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhello`,
    )
    return socket
  })
  const names = () => storedOf(harness, project).then((all) => all.filter((name) => name.includes(id)))
  await expect.poll(names).toHaveLength(4)
  const refused = await put(uploadUrl, 'x'.repeat(1000))
  expect([refused.headers.get('retry-after'), ...(await refusedWith(refused))]).toEqual(['5', 429, 'RATE_LIMITED'])
  for (const socket of sockets) socket.destroy()
  await expect.poll(names).toEqual([])
  expect((await put(uploadUrl, 'x'.repeat(1000))).status).toBe(200)
})

test('an upload that is refused is read to its end, so that its sender sees the answer', async () => {
  const { uploadUrl } = await register(await project.user(), { size_bytes: 4 * MB })
  const { pathname, search, hostname, port } = new URL(uploadUrl)
  for (const [path, status] of [
    [`${pathname}${search}`, 400],
    [`${pathname}${search}x`, 403],
  ] as const) {
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes
    })
    socket.write(`PUT ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\nContent-Length: ${4 * MB}\r\n\r\n`)
    await expect.poll(() => text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    text = ''
    socket.write(Buffer.alloc(4 * MB))
    socket.write('GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await expect.poll(() => text).toMatch(/^HTTP\/1.1 200 /)
    socket.destroy()
  }
})

describe('resumable parts', () => {
  const part = (url: string, text: string, range: string) => put(url, text, 'text/plain', { 'content-range': range })
  const offsetOf = async (url: string) => {
    const answer = await fetch(url, { method: 'HEAD' })
    return [answer.status, Number(answer.headers.get('upload-offset'))]
  }

  test('come in order, again, and after a lost answer', async () => {
    const user = await project.user()
    const { id, uploadUrl } = await register(user, { size_bytes: 12 })
    expect(await offsetOf(uploadUrl)).toEqual([200, 0])
    const first = await part(uploadUrl, 'abcd', 'bytes 0-3/12')
    expect([first.status, first.headers.get('upload-offset'), first.headers.get('range')]).toEqual([
      308,
      '4',
      'bytes=0-3',
    ])
    expect(await offsetOf(uploadUrl)).toEqual([200, 4])
    // after a gap, and again: nothing is stored, and the answer says where to go on
    for (const [text, range] of [
      ['ijkl', 'bytes 8-11/12'],
      ['abcd', 'bytes 0-3/12'],
      ['ab', 'bytes 0-1/12'],
    ] as const) {
      const answer = await part(uploadUrl, text, range)
      expect([answer.status, answer.headers.get('upload-offset')], range).toEqual([308, '4'])
    }
    // one that overlaps what is there
    const second = await part(uploadUrl, 'cdefgh', 'bytes 2-7/12')
    expect([second.status, second.headers.get('upload-offset')]).toEqual([308, '8'])
    expectRefusal(await commit(user, id), 409, 'UPLOAD_NOT_FOUND')
    const last = await part(uploadUrl, 'ijkl', 'bytes 8-11/12')
    expect([last.status, await last.json()]).toEqual([200, { data: { size_bytes: 12 } }])
    expect(await offsetOf(uploadUrl)).toEqual([200, 12])
    const { data } = await commit(user, id)
    expect((await textOf(data.storage_url)).text).toBe('abcdefghijkl')
    expect((await storedOf(harness, project)).filter((name) => name.includes(id))).toHaveLength(1)
  })

  test('that overlap store no byte twice', async () => {
    const user = await project.user()
    const { id, uploadUrl } = await register(user, { size_bytes: 12 })
    for (const end of [3, 4, 5, 6]) {
      const answer = await part(uploadUrl, 'abcdefg'.slice(0, end + 1), `bytes 0-${end}/12`)
      expect([answer.status, answer.headers.get('upload-offset')]).toEqual([308, String(end + 1)])
    }
    const parts = (await storedOf(harness, project)).flatMap((name) =>
      name.includes(id) ? (/part-\d+-\d+$/.exec(name) ?? []) : [],
    )
    expect(parts.sort()).toEqual(['part-0-3', 'part-4-4', 'part-5-5', 'part-6-6'])
    expect((await part(uploadUrl, 'fghijkl', 'bytes 5-11/12')).status).toBe(200)
    expect((await textOf((await commit(user, id)).data.storage_url)).text).toBe('abcdefghijkl')
  })

  test('are at most a thousand', async () => {
    const user = await project.user()
    const { uploadUrl } = await register(user, { size_bytes: 2000 })
    for (let at = 0; at < 1000; at += 1) await part(uploadUrl, 'x', `bytes ${at}-${at}/2000`)
    expect(await offsetOf(uploadUrl)).toEqual([200, 1000])
    expect(await refusedWith(await part(uploadUrl, 'x', 'bytes 1000-1000/2000'))).toEqual([400, 'INVALID_INPUT'])
    // as a whole it may still come
    expect((await put(uploadUrl, 'x'.repeat(2000))).status).toBe(200)
  })

  test('are refused where they do not fit', async () => {
    const user = await project.user()
    const { uploadUrl } = await register(user, { size_bytes: 12 })
    for (const range of [
      'bytes 0-3/13',
      'bytes 0-3/*',
      'bytes 4-3/12',
      'bytes 0-12/12',
      '0-3/12',
      'bytes 0-4/12',
      'bytes */12',
    ])
      expect(await refusedWith(await part(uploadUrl, 'abcd', range)), range).toEqual([400, 'INVALID_INPUT'])
    expect(await offsetOf(uploadUrl)).toEqual([200, 0])
  })
})

describe('a signed URL', () => {
  test('that is altered in any bit is refused', async () => {
    const user = await project.user()
    const asset = await upload(user)
    const { uploadUrl } = await register(user)
    for (const [url, method] of [
      [asset.storage_url, 'GET'],
      [uploadUrl, 'PUT'],
    ] as const) {
      const { origin, pathname, search } = new URL(url)
      const path = pathname + search
      const begin = '/storage/'.length
      // raw, because a client would normalise a path
      const answers = await Promise.all(
        Array.from({ length: path.length - begin }, async (_, n) => {
          const code = path.charCodeAt(begin + n) ^ (1 << (n % 7))
          // what is no character of a request line never reaches the route
          const sign = code <= 0x20 || code === 0x7f ? 'é'.charCodeAt(0) : code
          const altered = path.slice(0, begin + n) + encodeURI(String.fromCharCode(sign)) + path.slice(begin + n + 1)
          return raw(origin, method, altered)
        }),
      )
      expect(new Set(answers)).toEqual(new Set([403]))
      for (const other of [`${path}&x=1`, `${path}A`, path.slice(0, -1), path.split('&signature=')[0] ?? ''])
        expect(await raw(origin, method, other)).toBe(403)
    }
    expect((await fetch(asset.storage_url)).status).toBe(200)
  })

  test('is for its method and its time, and for the host that it is asked of', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const user = await project.user()
    const asset = await upload(user)
    const { uploadUrl } = await register(user)
    const tried = async (url: string, method: string) =>
      refusedWith(
        await fetch(url, {
          method,
          ...(method === 'GET' ? {} : { body: 'hello' }),
          headers: { 'content-type': 'text/plain' },
        }),
      )
    for (const method of ['PUT', 'POST', 'DELETE', 'PATCH'])
      expect(await tried(asset.storage_url, method)).toEqual([403, 'FORBIDDEN'])
    for (const method of ['GET', 'POST', 'DELETE', 'PATCH'])
      expect(await tried(uploadUrl, method)).toEqual([403, 'FORBIDDEN'])
    // one key's signature under another
    const other = await upload(user, 'other')
    const stolen = `${asset.storage_url.split('?')[0]}?${other.storage_url.split('?')[1]}`
    expect(await tried(stolen, 'GET')).toEqual([403, 'FORBIDDEN'])
    harness.setTime('2026-11-22T10:09:59Z')
    expect((await put(uploadUrl, 'hello')).status).toBe(200)
    harness.setTime('2026-11-22T10:10:00Z')
    expect(await tried(uploadUrl, 'PUT')).toEqual([403, 'FORBIDDEN'])
    harness.setTime('2026-11-22T10:59:59Z')
    expect((await fetch(asset.storage_url)).status).toBe(200)
    harness.setTime('2026-11-22T11:15:00Z')
    expect(await tried(asset.storage_url, 'GET')).toEqual([403, 'FORBIDDEN'])
    harness.setTime(null)
  })

  test('stays the same for a while, so that caches know it again', async () => {
    harness.setTime('2026-11-22T10:01:00Z')
    const user = await project.user()
    const { id, storage_url } = await upload(user)
    harness.setTime('2026-11-22T10:14:00Z')
    expect((await user.get(`/client/media/${id}`)).data.storage_url).toBe(storage_url)
    harness.setTime('2026-11-22T10:16:00Z')
    expect((await user.get(`/client/media/${id}`)).data.storage_url).not.toBe(storage_url)
    harness.setTime(null)
  })
})

/** The status of a request whose path no client has looked at. */
const raw = (origin: string, method: string, path: string) =>
  new Promise<number>((resolve, reject) => {
    const { hostname, port } = new URL(origin)
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])))
    const body = method === 'PUT' ? 'Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello' : '\r\n'
    socket.end(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${body}`)
  })

describe('a download', () => {
  const bytes = randomBytes(3 * MB)
  let asset: Awaited<ReturnType<typeof upload>>
  beforeAll(async () => {
    asset = await upload(await project.user(), bytes, { mime_type: 'image/png', filename: 'photo.png' })
  })
  const get = async (headers: Record<string, string> = {}, method = 'GET') => {
    const answer = await fetch(asset.storage_url, { method, headers })
    return { status: answer.status, headers: answer.headers, body: Buffer.from(await answer.arrayBuffer()) }
  }

  test('has the type that was registered, and runs nothing', async () => {
    const { status, headers, body } = await get()
    expect([status, body.equals(bytes)]).toEqual([200, true])
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(bytes.length),
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-disposition': expect.stringMatching(/^inline; filename="\d+_[0-9a-f-]{36}_photo\.png"$/),
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'cache-control': 'private, max-age=300',
      'access-control-allow-origin': '*',
      etag: expect.stringMatching(/^"[0-9a-f]{24}"$/),
      'last-modified': expect.any(String),
    })
    const head = await get({}, 'HEAD')
    expect([head.status, head.headers.get('content-length'), head.body.length]).toEqual([200, String(bytes.length), 0])
    // SVG could run scripts: it is saved
    const svg = await upload(await project.user(), '<svg/>', { mime_type: 'image/svg+xml', filename: 'x.svg' })
    expect((await fetch(svg.storage_url)).headers.get('content-disposition')).toMatch(/^attachment/)
  })

  test('answers ranges', async () => {
    const ranges: [string, number, number][] = [
      ['bytes=0-0', 0, 0],
      ['bytes=10-99', 10, 99],
      ['bytes=100-', 100, bytes.length - 1],
      ['bytes=-10', bytes.length - 10, bytes.length - 1],
      [`bytes=-${bytes.length * 2}`, 0, bytes.length - 1],
      [`bytes=5-${bytes.length * 2}`, 5, bytes.length - 1],
    ]
    for (const [range, start, end] of ranges) {
      const { status, headers, body } = await get({ range })
      expect([status, headers.get('content-range')], range).toEqual([206, `bytes ${start}-${end}/${bytes.length}`])
      expect(body.equals(bytes.subarray(start, end + 1)), range).toBe(true)
    }
    for (const range of ['bytes=5-3', 'bytes=a-b', 'bytes=0-1,3-4', 'lines=0-1', 'bytes=-', 'bytes'])
      expect((await get({ range })).status, range).toBe(200)
    for (const range of [`bytes=${bytes.length}-`, 'bytes=-0']) {
      const { status, headers } = await get({ range })
      expect([status, headers.get('content-range')], range).toEqual([416, `bytes */${bytes.length}`])
    }
  })

  test('answers If-Range and If-None-Match', async () => {
    const { headers } = await get()
    const [etag, modified] = [String(headers.get('etag')), String(headers.get('last-modified'))]
    const range = 'bytes=0-9'
    expect((await get({ range, 'if-range': etag })).status).toBe(206)
    expect((await get({ range, 'if-range': modified })).status).toBe(206)
    expect((await get({ range, 'if-range': '"other"' })).status).toBe(200)
    expect((await get({ range, 'if-range': `W/${etag}` })).status).toBe(200)
    expect((await get({ range, 'if-range': 'Sat, 21 Nov 2020 10:00:00 GMT' })).status).toBe(200)
    for (const known of [etag, `W/${etag}`, `"a", ${etag}`, '*']) {
      const answer = await get({ 'if-none-match': known })
      expect([answer.status, answer.body.length, answer.headers.get('etag')], known).toEqual([304, 0, etag])
    }
    expect((await get({ 'if-none-match': '"a"' })).status).toBe(200)
  })
})

describe('whose it is', () => {
  test('another user, key and project see nothing; server keys see all', async () => {
    const [user, other, stranger] = [await project.user(), await project.user(), await paid.user()]
    const { id, key } = await upload(user)
    for (const client of [other, stranger, paid.server]) {
      expectRefusal(await client.get(`/client/media/${id}`), 404, 'NOT_FOUND')
      expectRefusal(await commit(client, id), 404, 'NOT_FOUND')
      expectRefusal(await client.delete(`/client/media/${id}`), 404, 'NOT_FOUND')
    }
    expect((await other.get('/client/media')).body.total).toBe(0)
    expectRefusal(await project.app.get('/client/media'), 401, 'UNAUTHORIZED')
    expectRefusal(await project.app.post('/client/media/upload', {}), 401, 'UNAUTHORIZED')
    for (const client of [project.server, project.onBehalfOf(user.id)]) {
      expect((await client.get(`/client/media/${id}`)).data.id).toBe(id)
      expect((await client.get('/client/media')).data.map((asset: { id: string }) => asset.id)).toContain(id)
      expect((await presign(client, key)).status).toBe(200)
    }
    expectRefusal(await project.onBehalfOf(other.id).get(`/client/media/${id}`), 404, 'NOT_FOUND')
    expectRefusal(await project.onBehalfOf(randomUUID()).get('/client/media'), 404, 'USER_NOT_FOUND')
    for (const wrong of ['x', randomUUID(), '1'])
      expectRefusal(await user.get(`/client/media/${wrong}`), 404, 'NOT_FOUND')
    expect((await project.server.delete(`/client/media/${id}`)).status).toBe(200)
  })

  test('roles read only what their policies show', async () => {
    const [user, other] = [await project.user(), await project.user()]
    const asset = await upload(user)
    const pending = await register(user)
    const seen = async (role: 'app_user' | 'app_server' | 'app_admin', id: string) =>
      (
        await project.as(role, { 'app.user_id': id }, 'select id from app.media_assets where id = any ($1)', [
          [asset.id, pending.id],
        ])
      ).length
    expect([await seen('app_user', user.id), await seen('app_user', other.id)]).toEqual([1, 0])
    expect([await seen('app_server', ''), await seen('app_admin', '')]).toEqual([1, 2])
    for (const role of ['app_anon', 'app_auth', 'app_worker', 'app_dashboard'] as const)
      await expect(project.as(role, {}, 'select from app.media_assets')).rejects.toThrow(/permission denied/)
  })

  test('lists are paged, newest first', async () => {
    const user = await project.user()
    const ids: string[] = []
    for (const text of ['1', '2', '3']) ids.unshift((await upload(user, text)).id)
    const list = (query: string) => user.get(`/client/media?${query}`)
    const idsOf = (answer: { data: { id: string }[] }) => answer.data.map(({ id }) => id)
    expect(idsOf(await list(''))).toEqual(ids)
    expect((await list('limit=1&offset=1')).body).toMatchObject({
      data: [{ id: ids[1] }],
      total: 3,
      offset: 1,
      limit: 1,
    })
    expect((await list('limit=1000')).body.limit).toBe(200)
    expect((await list(`folder_id=${randomUUID()}`)).body).toMatchObject({ data: [], total: 0 })
    for (const [query, field] of [
      ['limit=0', 'limit'],
      ['offset=-1', 'offset'],
      ['folder_id=x', 'folder_id'],
    ] as const)
      expectRefusal(await list(query), 400, 'INVALID_INPUT', field)
  })
})

describe('presigning', () => {
  test('PUT: a key is an asset, whose bytes a later upload replaces', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const user = await paid.user()
    const key = `user/${user.id}/pictures/me and "ü|'(1)'.txt`
    const first = await presignPut(user, key)
    expect(first.status, first.text).toBe(200)
    expect(first.data).toEqual({
      url: expect.any(String),
      expires_at: '2026-11-22T10:10:00.000Z',
      asset_id: expect.any(String),
    })
    const id = first.data.asset_id
    // the project's id in front is accepted
    const again = await presignPut(user, `${paid.id}/${key}`, { expires_in_seconds: 100_000 })
    expect([again.data.asset_id, again.data.expires_at]).toEqual([id, '2026-11-22T11:00:00.000Z'])
    expect((await put(first.data.url, 'one')).status).toBe(200)
    const one = (await commit(user, id)).data
    expect(one).toMatchObject({ key, filename: `me and "ü|'(1)'.txt`, size_bytes: 3, mime_type: 'text/plain' })
    expect(await textOf(one.storage_url)).toMatchObject({ status: 200, text: 'one' })
    const signed = await presign(user, key, { expires_in_seconds: 1_000_000 })
    expect(signed.data).toEqual({ url: expect.any(String), expires_at: '2026-11-23T10:00:00.000Z' })
    const got = await textOf(signed.data.url)
    expect(got.text).toBe('one')
    expect(got.headers.get('content-disposition')).toBe(
      `inline; filename="me and _____1__.txt"; filename*=UTF-8''me%20and%20%22%C3%BC%7C%27%281%29%27.txt`,
    )
    // a new upload: what is there stays until it is committed
    const next = await presignPut(user, key, { content_type: 'image/png' })
    expect(next.data.asset_id).toBe(id)
    expect((await user.get(`/client/media/${id}`)).data).toEqual(one)
    expect((await commit(user, id)).data).toEqual(one)
    expect(await refusedWith(await put(next.data.url, 'two!'))).toEqual([400, 'INVALID_INPUT'])
    expect((await put(next.data.url, 'two!', 'image/png')).status).toBe(200)
    expect((await textOf(one.storage_url)).text).toBe('one')
    const two = (await commit(user, id)).data
    expect(two).toMatchObject({ id, size_bytes: 4, mime_type: 'image/png' })
    expect((await textOf(two.storage_url)).text).toBe('two!')
    expect((await fetch(one.storage_url)).status).toBe(404)
    expect((await storedOf(harness, paid)).filter((name) => name.includes(id))).toHaveLength(1)
    harness.setTime(null)
  })

  test('with another type is another upload: what came before is not taken for it', async () => {
    const user = await paid.user()
    const key = `user/${user.id}/typed`
    const first = await presignPut(user, key)
    expect((await put(first.data.url, 'hello')).status).toBe(200)
    const second = await presignPut(user, key, { content_type: 'image/png' })
    expect(second.data.asset_id).toBe(first.data.asset_id)
    expectRefusal(await commit(user, first.data.asset_id), 409, 'UPLOAD_NOT_FOUND')
    expect((await put(second.data.url, 'png', 'image/png')).status).toBe(200)
    const { mime_type, size_bytes } = (await commit(user, first.data.asset_id)).data
    expect({ mime_type, size_bytes }).toEqual({ mime_type: 'image/png', size_bytes: 3 })
  })

  test('the same key at once is one asset', async () => {
    const user = await paid.user()
    const answers = await meetingBehind(paid.database, `select from app.users where id = '${user.id}' for update`, () =>
      Array.from({ length: 20 }, () => presignPut(user, `user/${user.id}/same.txt`)),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ data }) => data.asset_id)).size).toBe(1)
  })

  test('refuses bad keys, plain and percent-encoded, and the keys of others', async () => {
    const [user, other] = [await paid.user(), await paid.user()]
    const mine = `user/${user.id}`
    for (const key of [
      'x',
      'user',
      'user/',
      mine,
      `${mine}/`,
      `${mine}/a/`,
      `${mine}//a`,
      `/${mine}/a`,
      `${mine}/./a`,
      `${mine}/../a`,
      `${mine}/a/..`,
      `${mine}/.`,
      `${mine}/%2e%2e/a`,
      `${mine}/%2E/a`,
      `${mine}/a%2fb`,
      `${mine}/a%`,
      `${mine}/a?b`,
      `${mine}/a#b`,
      `${mine}/a\\b`,
      `${mine}/a\u0001`,
      `${mine}/a\u007f`,
      `${mine}/a\n`,
      `${mine}/${'x'.repeat(256)}`,
      `${mine}/${'x/'.repeat(510)}x`,
      `other/${user.id}/a`,
      `${randomUUID()}/${mine}/a`,
      `${paid.id}/${paid.id}/${mine}/a`,
    ])
      for (const answer of [await presignPut(user, key), await presign(user, key)])
        expectRefusal(answer, 400, 'INVALID_INPUT', 'key')
    for (const key of [`user/${other.id}/a`, 'user/x/a', `user/${user.id.toUpperCase()}/a`])
      for (const answer of [await presignPut(user, key), await presign(user, key)])
        expectRefusal(answer, 403, 'FORBIDDEN')
    const theirs = (await upload(other)).key
    expectRefusal(await presign(user, theirs), 403, 'FORBIDDEN')
    expectRefusal(await presign(user, `${mine}/none`), 404, 'NOT_FOUND')
    // a file that was registered with an upload has its key for itself
    const { key } = await upload(user)
    expectRefusal(await presignPut(user, key), 409, 'KEY_IN_USE')
  })

  test('refuses what is wrong by its own code', async () => {
    const user = await paid.user()
    const key = `user/${user.id}/a.txt`
    expectRefusal(await presignPut(user, key, { bucket: 'other' }), 404, 'BUCKET_NOT_FOUND')
    expectRefusal(await presignPut(user, key, { bucket: 'exports' }), 404, 'BUCKET_NOT_FOUND')
    for (const method of ['DELETE', 'put', 'HEAD'])
      expectRefusal(await presignPut(user, key, { method }), 400, 'INVALID_METHOD', 'method')
    expectRefusal(await presignPut(user, key, { content_type: 'text/html' }), 400, 'MIME_NOT_ALLOWED')
    expectRefusal(await presignPut(user, key, { content_type: undefined }), 400, 'INVALID_INPUT', 'content_type')
    for (const expires_in_seconds of [0, -1, 1.5, '60'])
      expectRefusal(await presignPut(user, key, { expires_in_seconds }), 400, 'INVALID_INPUT', 'expires_in_seconds')
    for (const field of ['bucket', 'key', 'method'])
      for (const value of [undefined, 5, ''])
        expectRefusal(await presignPut(user, key, { [field]: value }), 400, 'INVALID_INPUT', field)
    expectRefusal(await user.post('/client/media/presign', '[]'), 400, 'INVALID_BODY')
    const poor = await project.user()
    expectRefusal(await presignPut(poor, `user/${poor.id}/a.txt`), 400, 'PRESIGN_PUT_NOT_AVAILABLE')
    expectRefusal(await presign(poor, `user/${poor.id}/a.txt`), 404, 'NOT_FOUND')
  })

  test('a server key presigns for a user that exists', async () => {
    const user = await paid.user()
    const key = `user/${user.id}/by-server.txt`
    const { data } = await presignPut(paid.server, key)
    await put(data.url, 'hello')
    expect((await commit(paid.server, data.asset_id)).data.uploaded_by).toBe(user.id)
    expect((await user.get(`/client/media/${data.asset_id}`)).status).toBe(200)
    for (const id of [randomUUID(), 'x', user.id.toUpperCase()])
      expectRefusal(await presignPut(paid.server, `user/${id}/a.txt`), 404, 'USER_NOT_FOUND')
    expectRefusal(await presign(paid.server, `user/${user.id}/none`), 404, 'NOT_FOUND')
  })
})

test('commit names one upload', async () => {
  const user = await project.user()
  const { id } = await register(user)
  const post = (body: object) => user.post('/client/media/commit', body)
  for (const [body, field] of [
    [{ asset_id: id }, 'upload_id'],
    [{ upload_id: id }, 'asset_id'],
    [{ asset_id: id, upload_id: randomUUID() }, 'upload_id'],
    [{ asset_id: 'x', upload_id: 'x' }, 'upload_id'],
  ] as const)
    expectRefusal(await post(body), 400, 'INVALID_INPUT', field)
  expectRefusal(await post({ asset_id: randomUUID(), upload_id: id }), 400, 'INVALID_INPUT', 'upload_id')
  const none = randomUUID()
  expectRefusal(await post({ asset_id: none, upload_id: none }), 404, 'NOT_FOUND')
  expectRefusal(await user.post('/client/media/commit', '[]'), 400, 'INVALID_BODY')
})

describe('free projects', () => {
  const registerAs = (user: User, size_bytes: number) =>
    user.post('/client/media/upload', { filename: 'a', mime_type: 'text/plain', size_bytes })

  test('have 250 MB, counted from the registration, exact under fifty callers', async () => {
    const own = await harness.project()
    const users = await Promise.all(Array.from({ length: 5 }, () => own.user()))
    const answers = await meetingBehind(own.database, `select internal.advisory_lock('media budget')`, () =>
      Array.from({ length: 50 }, (_, n) => registerAs(users[n % 5] as User, 25 * MB)),
    )
    const statuses = answers.map(({ status }) => status)
    expect([
      statuses.filter((status) => status === 201).length,
      statuses.filter((status) => status === 402).length,
    ]).toEqual([10, 40])
    const user = users[0] as User
    expectRefusal(await registerAs(user, 1), 402, 'FREE_TIER_LIMIT_REACHED', {
      limit: 'media_storage',
      used: 250 * MB,
      max: 250 * MB,
    })
    // the sums are those of the rows
    const sums = () =>
      own.sql(
        `select (select sum(registered_bytes)::int from app.media_totals) as counted,
                (select coalesce(sum(size_bytes), 0)::int from app.media_assets where status <> 'deleted') as real,
                (select sum(stored_bytes)::int from app.media_totals) as stored`,
      )
    expect(await sums()).toEqual([{ counted: 250 * MB, real: 250 * MB, stored: 0 }])
    // a paid project has no budget; back on the free tier its files count
    await setTier(harness, own, 'pro')
    expect((await registerAs(user, 5)).status).toBe(201)
    await setTier(harness, own, 'free')
    expectRefusal(await registerAs(user, 1), 402, 'FREE_TIER_LIMIT_REACHED')
    // deleting a user frees what was registered
    await own.admin.delete(`/users/${user.id}`)
    const [left] = await sums()
    expect(left.counted).toBe(left.real)
    expect(left.real).toBeLessThanOrEqual(225 * MB)
    expect((await registerAs(users[1] as User, 25 * MB)).status).toBe(201)
  })

  test('keep what is registered while its upload URL is valid', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const user = await project.user()
    const { id, uploadUrl } = await register(user)
    harness.setTime('2026-11-22T10:04:00Z')
    const refused = await user.delete(`/client/media/${id}`)
    expectRefusal(refused, 409, 'UPLOAD_WINDOW_OPEN', { retry_after_seconds: 360 })
    expectRefusal(await project.admin.delete(`/media/${id}`), 409, 'UPLOAD_WINDOW_OPEN')
    expect(refused.headers.get('retry-after')).toBe('360')
    harness.setTime('2026-11-22T10:10:00Z')
    expect((await user.delete(`/client/media/${id}`)).status).toBe(200)
    expect(await refusedWith(await put(uploadUrl, 'hello'))).toEqual([403, 'FORBIDDEN'])
    // a paid project deletes at once, and the URL is worth nothing then
    const payer = await paid.user()
    const pending = await register(payer)
    await put(pending.uploadUrl, 'hello')
    expect((await payer.delete(`/client/media/${pending.id}`)).status).toBe(200)
    expect(await refusedWith(await put(pending.uploadUrl, 'hello'))).toEqual([403, 'FORBIDDEN'])
    expect((await storedOf(harness, paid)).filter((name) => name.includes(pending.id))).toEqual([])
    harness.setTime(null)
  })
})
