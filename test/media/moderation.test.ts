import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { commit, presign, presignPut, put, register, setTier, storedOf, upload } from '#test/support/media.ts'
import { startModeration } from '#test/support/moderation.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Files as subjects of reports and of the queue. */
const { harness, project, define, itemOf, report, move } = await startModeration()
const judge = async (id: string, verb: string) => move(String((await itemOf(id))?.['id']), verb)
const storedOfAsset = async (id: string) => (await storedOf(harness, project)).filter((name) => name.includes(id))

test('a file is reported by whoever has its id, except by its owner; pending and unknown ones by nobody', async () => {
  const [owner, other] = [await project.user(), await project.user()]
  const asset = await upload(owner, 'hello', { filename: 'rude.txt' })
  expect((await report(other, 'media', asset.id, 'spam')).status).toBe(201)
  expect((await report(other, 'media', asset.id, 'spam')).status).toBe(200)
  expectRefusal(await report(owner, 'media', asset.id), 400, 'SELF_REPORT')
  expect(await itemOf(asset.id)).toMatchObject({
    subject_type: 'media',
    subject_user_id: owner.id,
    snapshot: { key: asset.key, filename: 'rude.txt', mime_type: 'text/plain', size_bytes: 5, alt_text: null },
    report_count: 1,
  })
  const pending = await register(owner)
  const stranger = await upload(await (await harness.project()).user())
  for (const id of [pending.id, stranger.id, randomUUID()])
    expectRefusal(await report(other, 'media', id), 404, 'SUBJECT_NOT_FOUND')
})

test('a blocked file is hidden from its owner and from catalogs, and shown again when it is approved', async () => {
  await setTier(harness, project, 'pro')
  await define('report_threshold', { count: 1, window_hours: 1, applies_to: ['media'] })
  const [owner, other] = [await project.user(), await project.user()]
  const key = `user/${owner.id}/avatar.txt`
  const signed = await presignPut(owner, key)
  await put(signed.data.url, 'hello')
  const { id } = (await commit(owner, signed.data.asset_id)).data
  await project.admin.post('/media/catalogs', { slug: 'shown', name: 'Shown', asset_ids: [id] })
  const catalog = async () => (await project.app.get('/client/media/catalogs/shown')).data.assets.length
  expect((await report(other, 'media', id)).status).toBe(201)
  expect((await itemOf(id))?.['is_hidden']).toBe(true)
  expectRefusal(await owner.get(`/client/media/${id}`), 404, 'NOT_FOUND')
  expectRefusal(await owner.delete(`/client/media/${id}`), 404, 'NOT_FOUND')
  expectRefusal(await presign(owner, key), 404, 'NOT_FOUND')
  // no new bytes under the key that is blocked
  expectRefusal(await presignPut(owner, key), 409, 'KEY_IN_USE')
  expect([(await owner.get('/client/media')).body.total, await catalog()]).toEqual([0, 0])
  expect(await project.as('app_user', { 'app.user_id': owner.id }, 'select id from app.media_assets')).toEqual([])
  // moderators see what they judge
  expect((await project.admin.get(`/media/${id}`)).status).toBe(200)
  expect((await project.server.get(`/client/media/${id}`)).status).toBe(200)
  expect((await judge(id, 'approve')).status).toBe(200)
  expect((await owner.get(`/client/media/${id}`)).status).toBe(200)
  expect([(await owner.get('/client/media')).body.total, await catalog()]).toEqual([1, 1])
})

test('a rejected file is deleted with its bytes and leaves its catalogs', async () => {
  const [owner, other] = [await project.user(), await project.user()]
  const asset = await upload(owner)
  await project.admin.post('/media/catalogs', { slug: 'other', name: 'Other', asset_ids: [asset.id] })
  await report(other, 'media', asset.id)
  expect((await judge(asset.id, 'reject')).status).toBe(200)
  expectRefusal(await project.admin.get(`/media/${asset.id}`), 404, 'NOT_FOUND')
  expect((await project.admin.get('/media/catalogs/other')).data.asset_ids).toEqual([])
  await project.drain()
  expect(await storedOfAsset(asset.id)).toEqual([])
  expect((await fetch(asset.storage_url)).status).toBe(404)
  const [sums] = await project.sql(
    `select (select sum(stored_bytes)::int from app.media_totals) as counted,
            (select coalesce(sum(size_bytes), 0)::int from app.media_assets where status = 'committed') as real`,
  )
  expect(sums.counted).toBe(sums.real)
})
