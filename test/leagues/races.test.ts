import { expect, test } from 'vitest'
import { startLeagues } from '#test/support/leagues.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const { harness, project, admin, league, people, score, scoring, scoreIn, cohorts, place, close, checkSeats } =
  await startLeagues()
const at = '2026-10-03T20:00:00Z'
const rows = (key: string) => cohorts(key, '2026-W40')

test('who leaves a cohort waits for nobody who is entering it; the count is mended', async () => {
  harness.setTime(at)
  const { key } = await league()
  const [a, b, c, d] = (await people(4)) as [any, any, any, any]
  for (const who of [a, b, c]) await score(who, 1)
  const open = await scoring(at)
  await scoreIn(open, d, 1)
  expect((await admin.delete(`/users/${a.id}`)).status).toBeLessThan(300)
  await place(b, key, 'gold')
  await open.commit()
  await project.drain()
  expect(await rows(key)).toMatchObject([
    { tier_key: 'bronze', members: 2 },
    { tier_key: 'gold', members: 1 },
  ])
  await checkSeats()
})

test('who enters waits for nobody who is leaving', async () => {
  harness.setTime(at)
  const { key } = await league()
  const [a, b, c] = (await people(3)) as [any, any, any]
  for (const who of [a, b]) await score(who, 1)
  await project.sql(`begin; delete from app.league_entries where app_user_id = '${a.id}'; commit`)
  const leaving = await openTransaction(project, 'app_admin', { 'app.caller': 'developer', 'app.clock': at })
  await leaving.query('select api.user_delete($1)', [b.id])
  expect(await score(c, 1)).toMatchObject({ points: 1, rank: 1 })
  await leaving.commit()
  expect((await rows(key)).map((one: any) => one.members)).toEqual([0, 1])
  await checkSeats()
})

test('while eight cohorts are being filled the ninth who comes waits, and takes a seat in one of them', async () => {
  harness.setTime(at)
  const { key } = await league()
  const users = await people(9)
  // the run is there, and one cohort in it
  const [first] = (await people(1)) as [any]
  await score(first, 1)
  const open = []
  for (const who of users.slice(0, 8)) {
    const one = await scoring(at)
    await scoreIn(one, who, 1)
    open.push(one)
  }
  const ninth = score(users[8]!, 1)
  await untilBlocked(project)
  for (const one of open) await one.commit()
  expect(await ninth).toMatchObject({ points: 1, previous_rank: null })
  const members = (await rows(key)).map((one: any) => one.members)
  expect([members.length, members.reduce((sum: number, of: number) => sum + of)]).toEqual([8, 10])
  await checkSeats()
})

test('a cohort that was not committed leaves its lane to another', async () => {
  harness.setTime(at)
  const { key } = await league()
  const [a, b] = (await people(2)) as [any, any]
  const lost = await scoring(at)
  await scoreIn(lost, a, 1)
  await lost.kill()
  await score(b, 1)
  expect(await rows(key)).toMatchObject([{ members: 1 }])
})

test('joins in several leagues, moves, resets and deletions in all orders never deadlock, and seats add up', async () => {
  harness.setTime(at)
  // points of the one come before those of the other in the same transaction
  expect(
    (await admin.post('/xp/rules', { key: 'scored', name: 'Scored', event_name: 'scored', amount: 1 })).status,
  ).toBe(201)
  const leagues = [await league(), await league({ points: { type: 'xp' } }), await league()]
  const users = await people(48)
  const acts = users.map(async (who, n): Promise<number[]> => {
    const other = users[(n + 1) % users.length]!
    const pair = n % 2 === 0 ? [who, other] : [other, who]
    const events = pair.map(({ id }) => ({ event_name: 'scored', app_user_id: id, properties: { points: 1 } }))
    const answers = [await admin.post('/events', { events }), await who.post('/client/events', events[0]!)]
    if (n % 4 === 0) answers.push(await admin.delete(`/users/${other.id}/reset?sections=leagues`))
    if (n % 4 === 1) answers.push(await admin.delete(`/users/${who.id}`))
    if (n % 4 === 2)
      answers.push(await admin.put(`/leagues/${leagues[n % 3]!.key}/users/${other.id}`, { tier_key: 'gold' }))
    answers.push(await admin.post('/events', { events: [...events].reverse() }))
    return answers.map(({ status }) => status)
  })
  const statuses = (await Promise.all(acts)).flat()
  expect(statuses.filter((status) => status >= 500)).toEqual([])
  await project.drain()
  await checkSeats()
  for (const { key } of leagues) {
    const members = (await rows(key)).flatMap((one: any) => one.entries.map((entry: any) => entry.app_user_id))
    expect(new Set(members).size).toBe(members.length)
    await close(key)
  }
  await project.drain()
})
