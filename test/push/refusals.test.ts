// What the routes of campaigns refuse by form: malformed ids, fields of the wrong type, and audiences that are gone.
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { campaignOf } from '#test/support/push.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project({ environment: 'development' })
const { admin } = project
const campaigns = '/push/campaigns'

test('fields of the wrong type and malformed ids', async () => {
  const { id } = await campaignOf(project, {})
  expectRefusal(await admin.patch(`${campaigns}/${id}`, { name: 5 }), 400, 'VALIDATION_ERROR', 'name')
  expectRefusal(
    await admin.post(`${campaigns}/${id}/schedule`, { send_at: 'soon' }),
    400,
    'VALIDATION_ERROR',
    'send_at',
  )
  expectRefusal(await admin.post(`${campaigns}/${id}/preview`, { user_id: 'me' }), 400, 'VALIDATION_ERROR', 'user_id')
  expectRefusal(await admin.patch(`${campaigns}/none`, { name: 'x' }), 400, 'INVALID_ID')
  expect((await admin.get(`${campaigns}/${id}`)).data.status).toBe('draft')
})

test('the copy of a campaign whose segment is gone', async () => {
  const segment = (await admin.post('/segments', { key: 'gone', name: 'Gone', kind: 'static' })).data
  const user = await project.user()
  await admin.post('/users/bulk-update', { updates: [{ user_id: user.id, add_segments: ['gone'] }] })
  const { id } = await campaignOf(project, { audience: { segment_id: segment.id }, send_at: '2100-01-01T00:00:00Z' })
  expect((await admin.delete(`/segments/${segment.id}`)).status).toBe(409)
  expect((await admin.post(`${campaigns}/${id}/cancel`)).status).toBe(200)
  expect((await admin.delete(`/segments/${segment.id}`)).status).toBe(200)
  expectRefusal(await admin.post(`${campaigns}/${id}/duplicate`), 400, 'VALIDATION_ERROR')
})
