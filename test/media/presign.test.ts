import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import {
  commit,
  presign,
  presignPut,
  put,
  refusedWith,
  setTier,
  storedOf,
  textOf,
  upload,
} from '#test/support/media.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const paid = await harness.project()
await setTier(harness, paid, 'pro')

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
