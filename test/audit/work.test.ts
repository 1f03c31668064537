import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness({ work: true })

test('workers seal what was written, in both places, without being asked', async () => {
  const project = await harness.project()
  await project.developer.patch(`/admin/projects/${project.id}`, { name: 'sealed' })
  await project.admin.post('/webhooks', { event_name: 'ran', target_url: 'https://1.1.1.1/' })
  const verify = async () => (await project.admin.get('/audit-events/verify')).data
  await expect
    .poll(verify, { interval: 20, timeout: 20_000 })
    .toMatchObject({ verified: true, checked: 5, unsealed: 0 })
  // and the account's own
  await expect
    .poll(() => harness.control('select from app.audit_digests'), { interval: 20, timeout: 20_000 })
    .toEqual([])
})
