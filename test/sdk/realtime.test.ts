import { expect, onTestFinished, test } from 'vitest'
import { layCable } from '#test/support/cable.ts'
import { startHarness } from '#test/support/harness.ts'
import { device } from '#test/support/sdk.ts'
import { createApp, createEvents, createRealtime, type Realtime, type RealtimeOptions } from '../../sdk/src/index.ts'

/** Realtime, and events, through a connection that breaks. */
const harness = await startHarness()
const project = await harness.project()

const start = async (options: RealtimeOptions = {}) => {
  const cable = await layCable(harness.url)
  onTestFinished(() => cable.cut())
  const app = createApp({ url: cable.url, key: project.clientKey, store: device(), random: () => 0 })
  const realtime = createRealtime(app, options)
  onTestFinished(() => realtime.close())
  return { cable, app, realtime }
}
const broadcast = (channel: string, n: number) =>
  project.admin.post('/realtime/broadcast', { channel, event: 'n', payload: { n } })

/** Listens, and resolves when the server has taken the subscription: a publication of its own comes back. */
const listening = async (realtime: Realtime, channel: string) => {
  const seen: number[] = []
  const marks: unknown[] = []
  const resyncs: number[] = []
  const stop = realtime.subscribe(channel, {
    onEvent: ({ event, payload }) => {
      if (event === 'mark') marks.push(payload)
      else seen.push((payload as { n: number }).n)
    },
    onResync: () => resyncs.push(seen.length),
  })
  await expect
    .poll(async () => {
      if (marks.length === 0) await realtime.publish(channel, 'mark', null)
      return marks.length
    })
    .toBeGreaterThan(0)
  return { seen, resyncs, stop }
}

test('what is published while the connection is broken comes afterwards, once and in order', async () => {
  const statuses: string[] = []
  const { cable, realtime } = await start({ onStatus: (status) => statuses.push(status) })
  const { seen, resyncs } = await listening(realtime, 'room:break')
  await broadcast('room:break', 1)
  await expect.poll(() => seen).toEqual([1])
  for (const round of [1, 2]) {
    await cable.cut()
    await expect.poll(() => statuses.at(-1)).not.toBe('open')
    for (let n = 0; n < 5; n += 1) await broadcast('room:break', round * 10 + n)
    await cable.mend()
    await expect.poll(() => seen.length).toBe(1 + round * 5)
  }
  await broadcast('room:break', 99)
  await expect.poll(() => seen).toEqual([1, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 99])
  expect(resyncs).toEqual([])
})

test('after a crash of Postgres, which loses the events, that is told, and the numbers that begin again hide nothing', async () => {
  const { cable, realtime } = await start()
  const { seen, resyncs } = await listening(realtime, 'room:lost')
  for (const n of [1, 2, 3]) await broadcast('room:lost', n)
  await expect.poll(() => seen).toEqual([1, 2, 3])
  await cable.cut()
  await project.sql(
    `truncate app.realtime_servers, app.realtime_connections, app.realtime_readers, app.realtime_channels, app.realtime_publications, app.realtime_events, app.realtime_presences restart identity`,
  )
  await cable.mend()
  await expect.poll(() => resyncs).toEqual([3])
  await broadcast('room:lost', 4)
  await expect.poll(() => seen).toEqual([1, 2, 3, 4])
})

test('a subscription that is refused ends with its code, and others go on', async () => {
  const { realtime } = await start()
  const ended: unknown[] = []
  realtime.subscribe('conversation:none', { onEnd: ({ code }) => ended.push(code) })
  const { seen, stop } = await listening(realtime, 'room:on')
  await expect.poll(() => ended).toEqual(['CONVERSATION_NOT_FOUND'])
  await broadcast('room:on', 1)
  await expect.poll(() => seen).toEqual([1])
  stop()
  await realtime.publish('room:on', 'n', { n: 2 })
  expect(seen).toEqual([1])
  expect(() => realtime.subscribe('room:on', {})).not.toThrow()
  expect(() => realtime.subscribe('room:on', {})).toThrow(TypeError)
})

test('who is present is so again after a break', async () => {
  const { cable, realtime } = await start()
  const { app, realtime: other } = await start()
  const states: unknown[] = []
  await app.ensureSignedIn()
  other.subscribe('room:here', {
    onPresence: ({ state = [], joins }) => states.push(...[...state, ...joins].map((one) => one.state)),
  })
  await listening(realtime, 'room:here')
  await realtime.present('room:here', { typing: true })
  await expect.poll(() => states).toEqual([{ typing: true }])
  await cable.cut()
  await cable.mend()
  await expect.poll(() => states.length).toBeGreaterThan(1)
  expect(states.every((state) => JSON.stringify(state) === '{"typing":true}')).toBe(true)
})

test('events wait for a server that was killed', async () => {
  const { cable, app } = await start()
  const events = createEvents(app, { delay: 1 })
  onTestFinished(() => events.close())
  await app.ensureSignedIn()
  await cable.cut()
  await events.track('waited')
  await expect(events.flush()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  await cable.mend()
  await expect.poll(() => events.size()).toBe(0)
  const rows = await project.sql(`select from app.engagement_events where event_name = 'waited'`)
  expect(rows).toHaveLength(1)
})

test('a subscription says when it is live, and again after each break', async () => {
  const { cable, realtime } = await start()
  const lives: boolean[] = []
  const seen: number[] = []
  const stop = realtime.subscribe('room:live', {
    onLive: ({ isAgain }) => void lives.push(isAgain),
    onEvent: ({ payload }) => void seen.push((payload as { n: number }).n),
  })
  await stop.live
  // nothing is missed from now on
  await broadcast('room:live', 1)
  await expect.poll(() => seen).toEqual([1])
  await cable.cut()
  await cable.mend()
  await expect.poll(() => lives).toEqual([false, true])
  await stop.live
})

test('what never becomes live says so', async () => {
  const { realtime } = await start()
  const refused: unknown[] = []
  const stop = realtime.subscribe('conversation:00000000-0000-4000-8000-000000000000', {
    onEnd: ({ code }) => void refused.push(code),
  })
  await expect(stop.live).rejects.toMatchObject({ code: expect.stringMatching(/FORBIDDEN|NOT_FOUND|CONVERSATION/) })
  expect(refused).toHaveLength(1)
  const ended = realtime.subscribe('room:ended', {})
  ended()
  await expect(ended.live).rejects.toMatchObject({ code: 'ABORTED' })
})
