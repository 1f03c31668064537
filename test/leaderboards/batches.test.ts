import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startLeaderboards } from '#test/support/leaderboards.ts'

/** Batches move boards as a set: what many users do in one request must read as if each had done it, and be told once. */
const { project, board, people, show, eventsOf, checkCounts } = await startLeaderboards()
const { admin } = project

type Submission = { readonly who: number; readonly score: number }
const batchOf = (all: readonly { id: string }[], event_name: string, batch: readonly Submission[]) => {
  const began = Date.now() - 3600_000
  return batch.map(({ who, score }, n) => ({
    event_name,
    app_user_id: all[who]?.id,
    occurred_at: new Date(began + n).toISOString(),
    properties: { score },
  }))
}
const post = async (events: object[], more: object = {}) => {
  const answer = await project.server.post('/client/events', { events, ...more })
  expect(answer.status, answer.text).toBe(201)
  return answer.body
}

test.each([
  ['best', 'desc'],
  ['best', 'asc'],
  ['sum', 'desc'],
  ['count', 'desc'],
  ['last', 'asc'],
])(
  '%s, %s: batches of many users give the order, the effects and the news of the top 10 that one by one would',
  async (scoring, sort) => {
    const name = `batch_${scoring}_${sort}`
    const { key } = await board({ source: { type: 'event', event_name: name, value_property: 'score' }, scoring, sort })
    const all = (await people(25)) as any[]
    const place = new Map(all.map(({ id }, n) => [id, n]))
    const list = async () =>
      (await show(all[0], key, '?limit=200')).data.map((entry: any) => ({
        who: place.get(entry.app_user_id) as number,
        score: entry.score as number,
      }))
    const news = async () =>
      Object.fromEntries(
        await Promise.all(all.map(async ({ id }, n) => [n, (await eventsOf(id)).map(({ reason }) => reason)])),
      ) as Record<string, string[]>

    const scores = new Map<number, number>()
    const expected: Record<string, string[]> = Object.fromEntries(all.map((_, n) => [n, []]))
    const submission = fc.record({ who: fc.nat({ max: 24 }), score: fc.integer({ min: 1, max: 40 }) })
    const batches = fc.sample(fc.array(submission, { minLength: 1, maxLength: 40 }), 6)
    for (const batch of batches) {
      const before = await list()
      const { data } = await post(batchOf(all, name, batch), { include_effects: true })
      for (const { who, score } of batch) {
        const had = scores.get(who)
        const next = {
          best: had === undefined ? score : sort === 'desc' ? Math.max(had, score) : Math.min(had, score),
          sum: (had ?? 0) + score,
          count: (had ?? 0) + 1,
          last: score,
        }[scoring]
        scores.set(who, next as number)
      }
      const after = await list()
      expect(new Map(after.map(({ who, score }: any) => [who, score]))).toEqual(scores)
      const sorted = [...after].sort((a: any, b: any) => (sort === 'desc' ? b.score - a.score : a.score - b.score))
      expect(after.map(({ score }: any) => score)).toEqual(sorted.map(({ score }: any) => score))

      const users = new Set(batch.map(({ who }) => who))
      const entries = data.effects.leaderboards ?? []
      for (const entry of entries) {
        const who = users.size === 1 ? [...users][0] : place.get(entry.app_user_id)
        expect(entry.score).toBe(scores.get(who as number))
        expect(entry.rank).toBe(after.findIndex((one: any) => one.who === who) + 1)
        const wasThere = before.some((one: any) => one.who === who)
        expect(entry.previous_rank === null).toBe(!wasThere)
      }
      const changed = [...users].filter(
        (who) => before.find((one: any) => one.who === who)?.score !== scores.get(who as number),
      )
      const shown = entries.map((entry: any) => (users.size === 1 ? [...users][0] : place.get(entry.app_user_id)))
      expect(shown).toEqual(expect.arrayContaining(changed))

      const [top, wasTop] = [after, before].map(
        (entries) => new Set<number>(entries.slice(0, 10).map(({ who }: any) => who)),
      ) as [Set<number>, Set<number>]
      for (const who of top) if (!wasTop.has(who)) expected[who]?.push('entered_top_10')
      for (const who of wasTop) if (!top.has(who)) expected[who]?.push('left_top_10')
      await project.drain()
      expect(await news()).toEqual(expected)
    }
    await checkCounts()
  },
)

test('friends who were passed get an event for each friend who passed them in a batch', async () => {
  const name = 'batch_friends'
  const { key } = await board({ source: { type: 'event', event_name: name, value_property: 'score' } })
  const all = (await people(15)) as any[]
  await post(
    batchOf(
      all,
      name,
      all.map((_, who) => ({ who, score: 100 - who })),
    ),
  )
  for (const [one, other] of [
    [14, 11],
    [13, 11],
    [14, 3],
  ] as const) {
    const [low, high] = [all[one].id, all[other].id].sort()
    await project.sql(
      `insert into app.friendships (user_a, user_b, status, requested_by, responded_at) values ($1, $2, 'accepted', $1, now())`,
      [low, high],
    )
  }
  // both pass the friend at 12, neither the one at 4; the other moves pass nobody's friend
  await post(
    batchOf(all, name, [
      { who: 14, score: 90 },
      { who: 13, score: 90 },
      { who: 12, score: 89 },
    ]),
  )
  await project.drain()
  const passed = (await eventsOf(all[11].id)).filter(({ reason }) => reason === 'passed_by_friend')
  expect(passed.map(({ by_user_id }) => by_user_id).sort()).toEqual([all[13].id, all[14].id].sort())
  for (const who of [3, 10])
    expect((await eventsOf(all[who].id)).filter(({ reason }) => reason === 'passed_by_friend')).toEqual([])
  expect((await show(all[0], key)).me).toMatchObject({ rank: 1, score: 100 })
})

test('a batch of several boards and periods makes their runs, and history moves none', async () => {
  const name = 'batch_runs'
  const source = { type: 'event', event_name: name }
  const daily = await board({ source, scoring: 'count', period: 'daily' })
  const ever = await board({ source, scoring: 'count' })
  const all = (await people(3)) as any[]
  const midnight = new Date(new Date().setUTCHours(0, 0, 0, 0)).getTime()
  const at = (milliseconds: number, who: number) => ({
    event_name: name,
    app_user_id: all[who].id,
    occurred_at: new Date(milliseconds).toISOString(),
  })
  await post([at(midnight + 1, 0), at(midnight + 2, 1), at(midnight + 3, 1)])
  await post([at(midnight - 1000 * 86_400_000, 2), at(midnight - 999 * 86_400_000, 2)], { historical: true })
  expect((await show(all[1], daily.key)).data.map((entry: any) => [entry.app_user_id, entry.score])).toEqual([
    [all[1].id, 2],
    [all[0].id, 1],
  ])
  expect((await show(all[1], ever.key)).total).toBe(2)
  expect((await admin.get(`/leaderboards/${daily.key}/runs`)).body.data).toHaveLength(1)
  await checkCounts()
})
