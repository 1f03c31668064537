// Limits in an hour on what one user creates for others, so that nobody floods the lists of strangers.
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { conversations } from '#test/support/messaging.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()

test('a user creates at most 100 conversations an hour; conversations that exist do not count, nor do refused requests', async () => {
  harness.setTime('2026-11-21T12:00:00Z')
  const [one, two, three] = await Promise.all([project.user(), project.user(), project.user()])
  const me = project.onBehalfOf(one.id)
  const group = { type: 'group', participant_ids: [two.id] }
  expect((await me.post(conversations, { participant_ids: [two.id] })).status).toBe(201)
  for (let n = 0; n < 99; n += 1) {
    expect((await me.post(conversations, group)).status, `${n}`).toBe(201)
    if (n < 5) expect((await me.post(conversations, { participant_ids: [two.id] })).status).toBe(200)
    if (n < 5) expect((await me.post(conversations, { participant_ids: [] })).status).toBe(400)
  }
  const over = await me.post(conversations, group)
  expectRefusal(over, 429, 'RATE_LIMITED', { retry_after_seconds: 3600 })
  expect(over.headers.get('retry-after')).toBe('3600')
  expectRefusal(await me.post(conversations, { participant_ids: [three.id] }), 429, 'RATE_LIMITED', {
    retry_after_seconds: 3600,
  })
  // what is there is still returned, and the refusals created nothing
  expect((await me.post(conversations, { participant_ids: [two.id] })).status).toBe(200)
  expect((await me.get(`${conversations}?limit=1`)).body.total).toBe(100)
  expect(
    (await project.onBehalfOf(two.id).post(conversations, { type: 'group', participant_ids: [one.id] })).status,
  ).toBe(201)

  harness.setTime('2026-11-21T13:00:00Z')
  expect((await project.onBehalfOf(one.id).post(conversations, group)).status).toBe(201)
})
