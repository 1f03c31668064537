import { describe, expect, test } from 'vitest'
import { Score } from '#server/http/schemas.ts'
import { startLeaderboards } from '#test/support/leaderboards.ts'

const { project, board, someone, people, submit, scores, ranks, show, checkCounts } = await startLeaderboards()
const score = async (who: Awaited<ReturnType<typeof someone>>, key: string, text: string) =>
  submit(who, key, (text.length < 16 ? Number(text) : text) as number)

/** Neighbours that doubles confuse, from the best down. */
const large = [
  '1000000000000000000',
  '999999999999999999',
  '9007199254740993',
  '9007199254740992',
  '9007199254740991',
  '9007199254740990.5',
  '0.1',
  '-9007199254740993',
  '-999999999999999999.999999999',
  '-1000000000000000000',
]
/** As answers write them: a number where a double is exactly that. */
const asNumbers = ['1000000000000000000', '9007199254740992', '9007199254740991', '0.1', '-1000000000000000000']
const shown = (text: string) => (asNumbers.includes(text) ? Number(text) : text)

describe('scores are exact to 10^18', () => {
  test.each(['best', 'last', 'sum'])('%s, in ranks, around somebody and at the edges', async (scoring) => {
    const { key } = await board({ scoring })
    const users = await people(large.length)
    // neither in their order nor against it
    const order = large.map((_, index) => (index * 7 + 3) % large.length)
    for (const index of order) {
      const { entry, previous } = await score(users[index]!, key, large[index]!)
      expect([entry.score, previous]).toEqual([shown(large[index]!), null])
    }
    const expected = large.map((text, index) => [users[index]!.id, shown(text)])
    expect(await scores(users[0]!, key)).toEqual(expected)
    expect(await ranks(users[0]!, key)).toEqual(users.map(({ id }, index) => [id, index + 1]))
    expect((await show(users[3]!, key, '?around=me&limit=3')).data.map((entry: any) => entry.score)).toEqual(
      large.slice(2, 5).map(shown),
    )
    expect((await users[2]!.get(`/client/leaderboards/${key}/me`)).data).toMatchObject({
      score: shown(large[2]!),
      rank: 3,
    })
    const kept = await project.sql(
      `select e.score::text from app.leaderboard_entries e join app.leaderboard_runs r on r.id = e.run_id
         join app.leaderboards b on b.id = r.leaderboard_id where b.key = $1 order by e.place`,
      [key],
    )
    expect(kept.map((row) => row['score'])).toEqual(large)
    await checkCounts()
  })

  test('sums of them, also beyond 10^18', async () => {
    const { key } = await board({ scoring: 'sum' })
    const [a, b] = (await people(2)) as [Awaited<ReturnType<typeof someone>>, Awaited<ReturnType<typeof someone>>]
    await score(a, key, '9007199254740993')
    expect((await score(a, key, '0.000000001')).entry.score).toBe('9007199254740993.000000001')
    for (let n = 0; n < 3; n += 1) await score(b, key, '1000000000000000000')
    expect((await score(b, key, '1')).entry.score).toBe('3000000000000000001')
    const { entry, previous, improved } = await score(b, key, '-1')
    expect([entry.score, entry.rank, previous.score, improved]).toEqual([3e18, 1, '3000000000000000001', false])
  })

  test('ties are ties to the last digit, and an ascending board turns them round', async () => {
    const { key } = await board({ sort: 'asc' })
    const users = await people(3)
    for (const [index, text] of ['9007199254740993', '9007199254740992', '9007199254740993'].entries())
      await score(users[index]!, key, text)
    expect(await ranks(users[0]!, key)).toEqual([
      [users[1]!.id, 1],
      [users[0]!.id, 2],
      [users[2]!.id, 3],
    ])
  })

  test('by an administrator, by import, within bounds, and in what events say', async () => {
    const bounds = { min_score: '9007199254740993', max_score: '999999999999999999' }
    const made = await board(bounds)
    expect(made).toMatchObject(bounds)
    const user = await someone()
    const refused = await user.post(`/client/leaderboards/${made.key}/scores`, { score: 9007199254740992 })
    expect(refused.error).toMatchObject({ code: 'SCORE_OUT_OF_RANGE', details: bounds })
    expect((await score(user, made.key, '9007199254740993')).entry.score).toBe('9007199254740993')

    const entries = `/leaderboards/${made.key}/entries`
    const put = await project.admin.put(`${entries}/${user.id}`, { score: '999999999999999999' })
    expect(put.data.score).toBe('999999999999999999')
    const [other] = await people(1)
    await project.admin.post(`${entries}/import`, {
      entries: [{ app_user_id: other!.id, score: '-999999999999999999' }],
    })
    expect(await scores(user, made.key)).toEqual([
      [user.id, '999999999999999999'],
      [other!.id, '-999999999999999999'],
    ])

    const source = { type: 'event', event_name: 'scored', value_property: 'points' }
    for (const scoring of ['best', 'sum']) await board({ source, scoring })
    const event = await user.post(
      '/client/events',
      '{"event_name": "scored", "properties": {"points": 1000000000000000000}}',
    )
    expect(event.data.effects.leaderboards.map((effect: any) => effect.score)).toEqual([1e18, 1e18])
    const beyond = await user.post('/client/events', '{"event_name": "scored", "properties": {"points": 2e18}}')
    expect(beyond.data.effects.leaderboards).toBeUndefined()
  })
})

test('what is no score is refused by name', async () => {
  const { key } = await board()
  const user = await someone()
  const wrong = [
    '1000000000000000001',
    '1000000000000000000.000000001',
    '-1000000000000000001',
    '1e18',
    '1',
    '123456789012.345',
    '',
    ' 1',
    '0x10',
    'NaN',
    'Infinity',
    '9'.repeat(41),
    '1'.repeat(500_000),
    null,
    true,
    [1],
    {},
    { rawJSON: '1' },
    Number('1000000000000000256'),
    1e300,
  ]
  for (const score of wrong) {
    const { status, error } = await user.post(`/client/leaderboards/${key}/scores`, { score })
    expect([status, error?.code, error?.details.field], String(score)).toEqual([400, 'VALIDATION_ERROR', 'score'])
  }
})

test('a number that came as it was written is read as one', () => {
  const raw = (text: string) => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text)
  for (const text of ['9007199254740993', '-999999999999999999.5', '1.5000000000000000001e3', '1000000000000000000.0'])
    expect(Score.safeParse(raw(text)).success, text).toBe(true)
  for (const text of ['1000000000000000001', '1.0000000000000000001e18', '1e400', '-1000000000000000000.1'])
    expect(Score.safeParse(raw(text)).success, text).toBe(false)
})
