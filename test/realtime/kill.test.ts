import { afterAll, expect, test } from 'vitest'
import { ask, createTestProject, endPrograms, startServer } from '#test/support/process.ts'
import { openSocket } from '#test/support/realtime.ts'

afterAll(endPrograms)

/** Publishes numbers one after the other until told to stop; resolves with those that were acknowledged. */
const publishing = (url: string, projectId: string, developer: Record<string, string>, from: number) => {
  let isOver = false
  const work = async () => {
    const acknowledged: number[] = []
    for (let n = from; !isOver; n += 1) {
      const body = { channel: 'room:kept', event: 'n', payload: n }
      const answer = await ask(
        url,
        'POST',
        `/v1/admin/projects/${projectId}/realtime/broadcast`,
        body,
        developer,
      ).catch(() => null)
      if (answer?.status !== 202) break
      acknowledged.push(n)
    }
    return acknowledged
  }
  const done = work()
  return {
    done,
    end() {
      isOver = true
      return done
    },
  }
}

test('a server that is killed in the middle: the client connects again with since, misses nothing and gets nothing twice', {
  timeout: 180_000,
}, async () => {
  const first = await startServer()
  const { developer, projectId, user } = await createTestProject(first.url)
  const before = await openSocket(first.url, user)
  const { seq } = await before.subscribe('room:kept')
  const early = publishing(first.url, projectId, developer, 1)
  await before.next(({ payload }) => payload === 20)
  first.child.kill('SIGKILL')
  expect(await before.closed).toBe(1006)
  const acknowledged = await early.done
  const received = before.frames.filter(({ type }) => type === 'event')
  const since = (received.at(-1)?.['seq'] ?? seq) as number

  const second = await startServer({ PORT: new URL(first.url).port, DATA_DIR: first.dataDir })
  const after = await openSocket(second.url, user)
  expect(await after.subscribe('room:kept', { since })).toMatchObject({ type: 'ack' })
  const late = publishing(second.url, projectId, developer, 1001)
  await after.next(({ payload }) => payload === 1005)
  const more = await late.end()
  // the frame of the last one may have come before its answer
  if (!after.frames.some(({ payload }) => payload === more.at(-1)))
    await after.next(({ payload }) => payload === more.at(-1))

  const all = [...received, ...after.frames.filter(({ type }) => type === 'event')]
  expect(after.frames.filter(({ type }) => type === 'resync')).toEqual([])
  const numbers = all.map(({ payload }) => payload as number)
  // one that was written when the server died, without its answer, may be among them
  expect(numbers.filter((n) => acknowledged.includes(n) || more.includes(n))).toEqual([...acknowledged, ...more])
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(all.map((frame) => frame['seq'])).toEqual(all.map((_, n) => seq + 1 + n))

  // a stop in order says so to its clients, and takes no longer for them
  const stopping = second.child.kill('SIGTERM')
  expect([stopping, await after.closed]).toEqual([true, 1012])
  expect(await second.ended).toBe(0)
})
