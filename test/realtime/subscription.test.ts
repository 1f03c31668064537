import { expect, test } from 'vitest'
import { type Frame, readEvent } from '#server/realtime/protocol.ts'
import { createSubscription, deliver, goLive } from '#server/realtime/subscription.ts'
import type { Connection } from '#server/realtime/types.ts'

test('an event that is read twice, or was replayed before it is read, is sent once', () => {
  const sent: Frame[] = []
  const connection = { userId: 'u', send: (frame: Frame) => sent.push(frame) } as unknown as Connection
  const subscription = createSubscription(connection, 'room:a', {})
  const event = (seq: number) => readEvent(['room:a', seq, 'e', String(seq), null, '2026-01-01T00:00:00.000Z'])
  subscription.seq = 4
  for (const seq of [3, 5, 6, 6]) deliver(subscription, event(seq))
  expect(sent).toEqual([])
  goLive(subscription)
  for (const seq of [5, 6, 7, 7]) deliver(subscription, event(seq))
  expect(sent.map(({ seq }) => seq)).toEqual([5, 6, 7])
})
