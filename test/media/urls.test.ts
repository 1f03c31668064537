import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { put, refusedWith, register, upload } from '#test/support/media.ts'

const harness = await startHarness()
const project = await harness.project()

const MB = 1048576

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
      'content-disposition': 'inline; filename="photo.png"',
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

  test.each([
    [
      'Überweisung März.pdf',
      'application/pdf',
      `inline; filename="_berweisung M_rz.pdf"; filename*=UTF-8''%C3%9Cberweisung%20M%C3%A4rz.pdf`,
    ],
    [
      '絵 😀 (1).zip',
      'application/zip',
      `attachment; filename="_ _ _1_.zip"; filename*=UTF-8''%E7%B5%B5%20%F0%9F%98%80%20%281%29.zip`,
    ],
    ['a"b|c%7C;.svg', 'image/svg+xml', `attachment; filename="a_b_c_7C_.svg"; filename*=UTF-8''a%22b%7Cc%257C%3B.svg`],
    ['../etc/passwd', 'text/plain', `inline; filename=".._etc_passwd"`],
  ])('of %j is saved under this name, wherever its URL comes from', async (filename, mime_type, disposition) => {
    const user = await project.user()
    const file = await upload(user, 'bytes', { filename, mime_type })
    expect(file['filename']).toBe(filename)
    await project.admin.post('/media/catalogs', { slug: 'names', name: 'Names', is_public: true, asset_ids: [file.id] })
    const { data: catalog } = await project.app.get('/client/media/catalogs/names')
    const { data: signed } = await user.post('/client/media/presign', { bucket: 'media', key: file.key, method: 'GET' })
    const listed = (await user.get('/client/media')).data[0]
    for (const url of [file.storage_url, catalog.assets[0].url, signed.url, listed.storage_url])
      expect((await fetch(url)).headers.get('content-disposition')).toBe(disposition)
    await project.admin.delete('/media/catalogs/names')
  })

  test('answers ranges', async () => {
    const ranges: [string, number, number][] = [
      ['bytes=0-0', 0, 0],
      ['BYTES=10-99', 10, 99],
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
