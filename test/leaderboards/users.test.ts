import { expect, test } from 'vitest'
import { startLeaderboards } from '#test/support/leaderboards.ts'

const { harness, project, board, people, submit, show, ranks, scores, checkCounts } = await startLeaderboards()
const { admin } = project

test('who is banned is hidden and ranks close up; let in again, they stand where they stood', async () => {
  const { key } = await board()
  const [a, b, c] = (await people(3)) as [any, any, any]
  for (const [who, score] of [
    [a, 30],
    [b, 20],
    [c, 10],
  ] as const)
    await submit(who, key, score)
  await admin.patch(`/users/${b.id}`, { is_banned: true })
  expect(await show(a, key)).toMatchObject({ total: 2, data: [{ rank: 1 }, { app_user_id: c.id, rank: 2 }] })
  expect((await admin.get(`/leaderboards/${key}/entries`)).body.total).toBe(2)
  // a score meanwhile stays hidden, and counts afterwards
  expect((await admin.put(`/leaderboards/${key}/entries/${b.id}`, { score: 25 })).data.rank).toBeNull()
  expect(await ranks(a, key)).toEqual([
    [a.id, 1],
    [c.id, 2],
  ])
  expect((await a.get(`/client/leaderboards/${key}?around=${b.id}`)).status).toBe(404)
  await admin.patch(`/users/${b.id}`, { is_banned: false })
  expect(await scores(a, key)).toEqual([
    [a.id, 30],
    [b.id, 25],
    [c.id, 10],
  ])
  // one who is banned already is hidden from the first score on
  const other = await board()
  await admin.patch(`/users/${c.id}`, { is_banned: true })
  await admin.put(`/leaderboards/${other.key}/entries/${c.id}`, { score: 1 })
  expect((await show(a, other.key)).total).toBe(0)
  await checkCounts()
})

test('deleted and reset users leave no entry and no gap; the export has theirs', async () => {
  const { key } = await board()
  const [a, b, c] = (await people(3)) as [any, any, any]
  for (const [who, score] of [
    [a, 30],
    [b, 20],
    [c, 10],
  ] as const)
    await submit(who, key, score)
  const lines = (await admin.get(`/users/${b.id}/export`)).text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.filter(({ section }) => section === 'leaderboard_entries')).toMatchObject([
    { data: { score: 20, submissions: 1 } },
  ])
  await admin.delete(`/users/${a.id}`)
  expect(await ranks(b, key)).toEqual([
    [b.id, 1],
    [c.id, 2],
  ])
  const reset = await admin.delete(`/users/${b.id}/reset?sections=leaderboards`)
  expect(reset.data.rows_deleted).toEqual({ leaderboards: 1 })
  expect(await ranks(c, key)).toEqual([[c.id, 1]])
  await submit(b, key, 40)
  expect(await ranks(c, key)).toEqual([
    [b.id, 1],
    [c.id, 2],
  ])
  await checkCounts()
})

test('two users who become one are united by the scoring of each board; what is over stays as it was', async () => {
  harness.setTime('2026-10-03T12:00:00Z')
  const wanted = { best: 30, sum: 50, last: 20, count: 2 }
  const keys: Record<string, string> = {}
  for (const scoring of Object.keys(wanted)) keys[scoring] = (await board({ scoring })).key
  const over = await board({ period: 'daily' })
  const alone = await board({ period: 'daily' })
  const [me, guest, third] = (await people(3)) as [any, any, any]
  for (const key of Object.values(keys)) {
    harness.setTime('2026-10-03T12:00:00Z')
    await submit(guest, key, 30)
    harness.setTime('2026-10-03T12:00:01Z')
    await submit(me, key, 20)
    await submit(third, key, 25)
  }
  await submit(guest, over.key, 9)
  await submit(me, over.key, 5)
  await submit(guest, alone.key, 9)
  harness.setTime('2026-10-04T12:00:00Z')
  await project.drain()
  await project.sql(`begin; set local app.clock = '2026-10-04T12:00:00Z'; set local app.caller = 'user'; set local app.user_id = '${me.id}';
                     select internal.users_merge('${me.id}', '${guest.id}'); commit`)
  for (const [scoring, score] of Object.entries(wanted)) {
    const page = await show(me, keys[scoring] as string)
    expect(page.total).toBe(2)
    expect([scoring, page.me.score, page.me.submissions]).toEqual([scoring, score, 2])
  }
  expect(await scores(me, over.key, '?run=previous')).toEqual([[me.id, 5]])
  expect(await ranks(me, alone.key, '?run=previous')).toEqual([[me.id, 1]])
  await checkCounts()
})
