import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { commit, presign, put, refusedWith, register, setTier, storedOf, textOf, upload } from '#test/support/media.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const paid = await harness.project()
await setTier(harness, paid, 'pro')

const MB = 1048576

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
      is_public: false,
      public_url: null,
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
    expect(got.headers.get('content-disposition')).toBe('attachment; filename="a.json"')
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
    for (const role of ['app_anon', 'app_auth', 'app_worker'] as const)
      await expect(project.as(role, {}, 'select from app.media_assets')).rejects.toThrow(/permission denied/)
    await expect(project.as('app_dashboard', {}, 'select object_version from app.media_assets')).rejects.toThrow(
      /permission denied/,
    )
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
