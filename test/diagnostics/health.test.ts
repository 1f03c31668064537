import { expect, test } from 'vitest'
import type { Media } from '#server/media/media.ts'
import { startHarness } from '#test/support/harness.ts'

/** What the storage does next: null as always. */
const world: { stat: (() => Promise<never>) | null } = { stat: null }
const watched = (media: Media): Media => ({
  ...media,
  storage: { ...media.storage, stat: (name) => (world.stat ? world.stat() : media.storage.stat(name)) },
})
const harness = await startHarness({ providers: { media: watched } })
const project = await harness.project()
const health = async () => {
  const { status, data } = await project.admin.get('/diagnostics/health')
  expect(status).toBe(200)
  return data
}

test('says that the storage does not answer, and goes on answering itself', async () => {
  expect(await health()).toMatchObject({ storage_ok: true, database: { ok: true } })
  world.stat = () => Promise.reject(new Error('the bucket is away'))
  expect(await health()).toMatchObject({ storage_ok: false, database: { ok: true }, webhook_dlq: 0 })
  world.stat = null
  expect(await health()).toMatchObject({ storage_ok: true })
})

test('counts tasks that nobody does, with the age of the oldest', async () => {
  await project.drain()
  const before = await health()
  await project.sql(`select internal.enqueue('webhooks__probe', gen_random_uuid()::text)`)
  harness.advance(90)
  const after = await health()
  expect(after.outbox_pending).toBe(before.outbox_pending + 1)
  expect(after.queue_lag_seconds).toBeGreaterThanOrEqual(89)
})
