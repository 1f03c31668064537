import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { createReviews } from '#test/support/reviews.ts'

const harness = await startHarness()
const { project, admin, segment, settings } = await createReviews(harness)

afterEach(() => harness.setTime(null))

const defaults = {
  reviews_auto_publish: true,
  reviews_require_purchase: false,
  prompt: { segment_id: null, min_sessions: 3, gap_days: 90 },
}

test('settings have defaults, and take the fields that are sent', async () => {
  expect((await admin.get('/reviews/settings')).data).toEqual(defaults)
  expect(await settings({ prompt: { gap_days: 10 } })).toEqual({
    ...defaults,
    prompt: { ...defaults.prompt, gap_days: 10 },
  })
  expect(await settings({ reviews_require_purchase: true })).toMatchObject({
    reviews_require_purchase: true,
    prompt: { gap_days: 10, min_sessions: 3 },
  })
  expect(await settings({})).toMatchObject({ reviews_require_purchase: true })
  for (const [field, body] of [
    ['prompt.min_sessions', { prompt: { min_sessions: 1001 } }],
    ['prompt.min_sessions', { prompt: { min_sessions: -1 } }],
    ['prompt.gap_days', { prompt: { gap_days: 3651 } }],
    ['prompt.segment_id', { prompt: { segment_id: randomUUID() } }],
    ['reviews_auto_publish', { reviews_auto_publish: null }],
  ] as const)
    expectInvalid(await admin.put('/reviews/settings', body), field)
  expect(await settings(defaults)).toEqual(defaults)
  const rows = await project.sql(
    `select changes from app.audit_events where action = 'reviews.settings' order by position`,
  )
  expect(rows.map(({ changes }) => Object.keys(changes))).toEqual([
    ['prompt'],
    ['reviews_require_purchase'],
    ['prompt', 'reviews_require_purchase'],
  ])
})

test('two administrators who set different fields at once keep both', async () => {
  await Promise.all([settings({ prompt: { min_sessions: 5 } }), settings({ prompt: { gap_days: 7 } })])
  expect((await admin.get('/reviews/settings')).data.prompt).toMatchObject({ min_sessions: 5, gap_days: 7 })
  await settings(defaults)
})

test('the first reason against a prompt, in their order', async () => {
  const user = await project.user()
  const asked = async () => {
    const { should_prompt, reason } = (await user.get('/client/reviews/prompt')).data
    expect(should_prompt).toBe(reason === 'ok')
    return reason
  }
  const session = async () => expect((await user.post('/client/sessions/start', {})).status).toBe(201)
  const some = await segment()
  await settings({ prompt: { segment_id: some.id } })
  expect(await asked()).toBe('not_in_segment')
  expect((await admin.post(`/segments/${some.id}/members`, { user_ids: [user.id] })).status).toBeLessThan(300)
  expect(await asked()).toBe('too_few_sessions')
  for (let n = 0; n < 3; n += 1) {
    expect(await asked()).toBe('too_few_sessions')
    await session()
  }
  expect(await asked()).toBe('ok')
  const shown = await user.post('/client/reviews/prompt-shown')
  expect([shown.status, shown.data]).toEqual([201, { shown_at: expect.any(String) }])
  expect(await asked()).toBe('shown_recently')
  expectRefusal(await admin.delete(`/segments/${some.id}`), 409, 'SEGMENT_IN_USE')
  await settings({ prompt: { segment_id: null, gap_days: 0 } })
  expect(await asked()).toBe('ok')
  expect((await admin.delete(`/segments/${some.id}`)).status).toBe(200)
  await settings({ prompt: { gap_days: 90 } })
  const later = project.onBehalfOf(user.id)
  const reasonAfter = async (seconds: number) => {
    harness.setTime(new Date(Date.parse(shown.data.shown_at) + seconds * 1000))
    return (await later.get('/client/reviews/prompt')).data.reason
  }
  expect(await reasonAfter(90 * 86_400 - 1)).toBe('shown_recently')
  // the answer has milliseconds
  expect(await reasonAfter(90 * 86_400 + 1)).toBe('ok')
  await project.sql('delete from app.app_sessions')
  await later.post('/client/reviews/prompt-shown')
  expect(await reasonAfter(90 * 86_400)).toBe('too_few_sessions')
})
