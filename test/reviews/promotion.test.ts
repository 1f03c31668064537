import { expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { exportOf } from '#test/support/promotion.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** The settings of reviews as a definition that is copied and kept in files. */
const harness = await startHarness()
const owner = await harness.developer()
const [from, to] = [await harness.project({ developer: owner }), await harness.project({ developer: owner })]

const settingsOf = async (of: Project) => (await of.admin.get('/reviews/settings')).data
const documentOf = (settings: unknown, key = 'settings') => ({
  document: { version: 1, definitions: { reviews: { [key]: settings } } },
})
const planOf = async () => (await from.admin.post('/promotion/plan', { target_project_id: to.id })).data
const promote = async () => {
  const plan = await planOf()
  const body = { plan_hash: plan.plan_hash, confirm: plan.plan_hash }
  const applied = await from.admin.post('/promotion/apply', body)
  expect(applied.status, applied.text).toBe(202)
  return plan.ops.map(({ op, kind, key }: Record<string, string>) => `${op} ${kind} ${key}`)
}

test('are in the document once they were set, with the key of their segment, and are copied', async () => {
  expect((await exportOf(from)).definitions.reviews).toBeUndefined()
  const { id } = (await from.admin.post('/segments', { key: 'fans', name: 'Fans', kind: 'static' })).data
  const prompt = { segment_id: id, min_sessions: 7, gap_days: 30 }
  expect((await from.admin.put('/reviews/settings', { reviews_auto_publish: false, prompt })).status).toBe(200)
  expect((await exportOf(from)).definitions.reviews).toEqual({
    settings: {
      ...{ reviews_auto_publish: false, reviews_require_purchase: false },
      prompt: { ...prompt, segment_id: 'fans' },
    },
  })
  expect(await promote()).toEqual(['create segments fans', 'create reviews settings'])
  const there = (await to.admin.get('/segments/fans')).data.id
  expect(there).not.toBe(id)
  expect(await settingsOf(to)).toEqual({ ...(await settingsOf(from)), prompt: { ...prompt, segment_id: there } })
  expect((await planOf()).clean).toBe(true)
  expect(await to.sql(`select action from app.audit_events where action = 'reviews.settings'`)).toHaveLength(1)

  // back to the defaults, which are a definition too
  const body = { reviews_auto_publish: true, prompt: { segment_id: null, min_sessions: 3, gap_days: 90 } }
  await from.admin.put('/reviews/settings', body)
  expect(await promote()).toEqual(['update reviews settings'])
  expect(await settingsOf(to)).toMatchObject(body)
  expect((await planOf()).clean).toBe(true)
})

test('a document of the defaults makes them a definition, once', async () => {
  const other = await harness.project({ developer: owner })
  const { settings } = (await exportOf(from)).definitions.reviews
  const sent = documentOf(settings)
  expect((await other.admin.post('/promotion/import?dry_run=false', sent)).status).toBe(202)
  expect((await exportOf(other)).definitions.reviews).toEqual({ settings })
  expect((await other.admin.post('/promotion/import?dry_run=true', sent)).data.clean).toBe(true)
})

test('fields that a document leaves out stay, those of prompt too; nothing deletes them', async () => {
  await to.admin.put('/reviews/settings', { reviews_require_purchase: true, prompt: { min_sessions: 9 } })
  const sent = documentOf({ prompt: { gap_days: 1 } })
  expect((await to.admin.post('/promotion/import?dry_run=false', sent)).status).toBe(202)
  expect(await settingsOf(to)).toMatchObject({
    reviews_require_purchase: true,
    prompt: { min_sessions: 9, gap_days: 1 },
  })
  const nothing = { document: { version: 1, definitions: {} }, kinds: ['reviews'], prune: true }
  expect((await to.admin.post('/promotion/import?dry_run=true', nothing)).data.clean).toBe(true)
})

test.each([
  ['another key', documentOf({ reviews_auto_publish: true }, 'other'), /only key|at most 1/],
  ['a number of sessions that is none', documentOf({ prompt: { min_sessions: 'x' } }), /min_sessions/],
  ['a fraction', documentOf({ prompt: { min_sessions: 1.5 } }), /min_sessions/],
  ['a negative gap', documentOf({ prompt: { gap_days: -1 } }), /gap_days/],
  ['too long a gap', documentOf({ prompt: { gap_days: 3651 } }), /gap_days/],
  ['no number', documentOf({ prompt: { gap_days: null } }), /gap_days/],
  ['an unknown field', documentOf({ prompt: { colour: 'red' } }), /colour/],
  ['an unknown segment', documentOf({ prompt: { segment_id: 'nobody' } }), /no segment nobody/],
])('%s is blocked', async (_why, sent, said) => {
  const before = await settingsOf(to)
  const plan = await to.admin.post('/promotion/import?dry_run=true', sent)
  expect(plan.status, plan.text).toBe(200)
  expect(plan.data.blocked).toMatchObject([{ kind: 'reviews', reason: expect.stringMatching(said) }])
  expect(await settingsOf(to)).toEqual(before)
})

test.each([
  ['a word for a switch', documentOf({ reviews_auto_publish: 'yes' })],
  ['no object', documentOf({ prompt: 7 })],
  ['a field that there is not', documentOf({ stars: 6 })],
])('%s is refused', async (_why, sent) => {
  expectRefusal(await to.admin.post('/promotion/import?dry_run=true', sent), 400, 'INVALID_BODY')
})
