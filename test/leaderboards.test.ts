import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()

test('smoke', async () => {
  const made = await project.admin.post('/leaderboards', { key: 'b', name: 'B', client_writable: true })
  expect(made.status, made.text).toBe(201)
  const user = await project.user()
  const first = await user.post('/client/leaderboards/b/scores', { score: 10.5 })
  expect(first.status, first.text).toBe(201)
  const list = await user.get('/client/leaderboards/b')
  expect(list.status, list.text).toBe(200)
  console.log(first.text, list.text)
  const me = await user.get('/client/leaderboards/b/me')
  expect(me.status, me.text).toBe(200)
  const all = await user.get('/client/leaderboards')
  expect(all.status, all.text).toBe(200)
})
