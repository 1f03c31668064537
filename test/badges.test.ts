import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()

test('retiring makes all badges inactive, once', async () => {
  const { data } = await project.admin.post('/badges', { key: 'first-week', name: 'First week' })
  expect(data).toMatchObject({ key: 'first-week', is_active: true })
  expect((await project.admin.post('/badges/retire')).data).toEqual({ retired: 1 })
  expect((await project.admin.get('/badges/first-week')).data).toMatchObject({ is_active: false })
  expect((await project.admin.post('/badges/retire')).data).toEqual({ retired: 0 })
})
