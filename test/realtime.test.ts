import { expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { openSocketOf, Refused } from '#test/support/realtime.ts'

const harness = await startHarness()
const project = await harness.project()
const connect = (user: User, query = '') => openSocketOf(harness, user, query)

test('a room carries what one publishes to all who listen, numbered', async () => {
  const [ada, ben] = [await project.user(), await project.user()]
  const [a, b] = [await connect(ada), await connect(ben)]
  const ack = await a.subscribe('room:lobby')
  expect(ack).toMatchObject({ type: 'ack', channel: 'room:lobby', seq: expect.any(Number) })
  await b.subscribe('room:lobby')
  expect(await b.ask({ type: 'publish', channel: 'room:lobby', event: 'hello', payload: { n: 1 } })).toMatchObject({
    type: 'ack',
  })
  for (const socket of [a, b]) {
    expect(await socket.next({ type: 'event' })).toMatchObject({
      channel: 'room:lobby',
      event: 'hello',
      payload: { n: 1 },
      seq: ack['seq'] + 1,
      at: expect.stringMatching(/Z$/),
    })
  }
})

test('without credentials the upgrade is refused as any request is', async () => {
  const user = await project.user()
  const refused = await connect({ ...user, headers: { 'x-api-key': project.clientKey } }).catch((error) => error)
  expect(refused).toBeInstanceOf(Refused)
  expect(refused).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } })
})
