import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()

test('a developer makes a project, a user signs in and posts an event', async () => {
  const project = await harness.project()
  const status = await project.admin.get('/provisioning-status')
  expect(status.data.status).toBe('ready')
  const user = await project.user()
  const me = await user.get('/client/users/me')
  expect(me.data).toMatchObject({ id: user.id, email: null, timezone: null })
  const event = await user.post('/client/events', { event_name: 'opened' })
  expect(event.status).toBe(201)
  expect(event.data.event).toMatchObject({ app_user_id: user.id, event_name: 'opened', source: 'client' })
})
