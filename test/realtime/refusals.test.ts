// What realtime refuses before a connection is open, by plain HTTP.
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()

test('two tickets, and channels that are none, are invalid', async () => {
  const user = await project.user()
  const long = 'x'.repeat(201)
  expectRefusal(await user.get('/client/realtime?ticket=a&ticket=b'), 400, 'INVALID_INPUT', 'ticket')
  expectRefusal(await user.get(`/client/realtime?ticket=${long}`), 401, 'UNAUTHORIZED')
  expectRefusal(await user.get('/client/realtime/stream?channels=,'), 400, 'INVALID_INPUT', 'channels')
})

test('a session token that has expired opens no stream', async () => {
  harness.setTime(new Date())
  const user = await project.user()
  harness.advance(3601)
  expectRefusal(await user.get('/client/realtime/stream?channels=room:a'), 401, 'TOKEN_EXPIRED')
  expect((await user.get('/client/users/me')).status).toBe(401)
})
