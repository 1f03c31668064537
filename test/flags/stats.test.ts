import { afterEach, expect, test } from 'vitest'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
// a personal access token, because a session would expire when these tests move the clock
const { token } = await personalToken(project.developer, { expires_in_days: null })
const developer = withBearer(harness.anyone, token)
const root = `/admin/projects/${project.id}/flags`
const start = '2030-03-01T12:00:00.000Z'
const day = 86_400
afterEach(async () => {
  harness.setTime(null)
  await project.sql('delete from app.flags')
  await project.sql('delete from app.outbox')
})

const flagOf = async (body: Record<string, unknown> = {}) => {
  const answer = await developer.post(root, { key: 'flag', ...body })
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const stats = async (query = '') => (await developer.get(`${root}/flag/stats${query}`)).data
const keys = async (query: string) =>
  (await developer.get(`${root}?${query}`)).data.map(({ key }: { key: string }) => key)

test('evaluations and users are counted per value and day, at once and after a worker has counted', async () => {
  harness.setTime(start)
  await flagOf()
  const [a, b] = [await project.user(), await project.user()]
  const get = (who: typeof project.app) => who.get('/client/flags')
  await developer.put(`${root}/flag/overrides`, { [b.id]: true })
  await get(a)
  await get(a)
  await get(b)
  await get(project.app)
  await a.get('/client/flags/flag')
  await a.post('/client/flags/evaluate', {})
  const first = { evaluations: 6, users: 2, is_sampled: false, days: 30 }
  const values = [
    { value: false, evaluations: 5, users: 1 },
    { value: true, evaluations: 1, users: 1 },
  ]
  expect(await stats()).toEqual({
    ...{ ...first, values },
    by_day: values.map((counts) => ({ day: '2030-03-01', ...counts })),
  })
  // a 304 counts as an evaluation too
  const tag = (await get(a)).headers.get('etag') ?? ''
  expect((await a.get('/client/flags', { 'if-none-match': tag })).status).toBe(304)
  expect((await stats()).evaluations).toBe(8)

  const onBehalf = project.onBehalfOf(a.id)
  harness.advance(day)
  await get(onBehalf)
  await developer.patch(`${root}/flag`, { default_value: true })
  await get(onBehalf)
  harness.advance(300)
  await project.drain()
  const [{ count }] = await project.sql('select count(*)::int from app.flag_evaluations')
  expect(count).toBe(0)
  expect(await stats()).toMatchObject({
    ...{ evaluations: 10, users: 2 },
    values: [
      { value: false, evaluations: 8, users: 1 },
      { value: true, evaluations: 2, users: 2 },
    ],
    by_day: [
      { day: '2030-03-01', value: false, evaluations: 7, users: 1 },
      { day: '2030-03-01', value: true, evaluations: 1, users: 1 },
      { day: '2030-03-02', value: false, evaluations: 1, users: 1 },
      { day: '2030-03-02', value: true, evaluations: 1, users: 1 },
    ],
  })
  expect(await stats('?days=1')).toMatchObject({
    ...{ days: 1, evaluations: 2, users: 1 },
    values: [{ users: 1 }, { users: 1 }],
  })
  expect((await developer.get(`${root}/flag`)).data.last_evaluated_at).toBe('2030-03-02T12:00:00.000Z')
  expect((await stats('?days=91')).days).toBe(90)
  for (const bad of ['0', '-1', 'x', '1.5'])
    expect(await developer.get(`${root}/flag/stats?days=${bad}`), bad).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT' },
    })
})

test('fifty requests at once are all counted, and so are those of a user who became another', async () => {
  await flagOf()
  const users = await Promise.all(Array.from({ length: 5 }, () => project.user()))
  await Promise.all(Array.from({ length: 50 }, (_, n) => (users[n % 5] ?? project.app).get('/client/flags')))
  expect(await stats()).toMatchObject({ evaluations: 50, users: 5 })
  await users[0]?.get('/client/flags')
  await project.sql('delete from app.users where id = $1', [users[1]?.id])
  const [{ merged }] = await project.sql(
    `select internal.merge_rows('app.flag_users', 'app_user_id', $1, $2) as merged`,
    [users[2]?.id, users[3]?.id],
  )
  expect(merged).toBe(0)
  expect(await stats()).toMatchObject({ evaluations: 51, users: 4 })
})

test('after ten thousand of a day one request in a hundred is counted, a hundredfold, until the next day', async () => {
  harness.setTime(start)
  const flag = await flagOf()
  const user = await project.user()
  const note = (count: number) =>
    project.sql(
      `insert into app.flag_evaluations (app_user_id, evaluated_at, notes)
       select $1, $4, jsonb_build_array(jsonb_build_array($2::uuid, false, null, $3::int))`,
      [user.id, flag.id, count, start],
    )
  await note(9999)
  expect((await stats()).is_sampled).toBe(false)
  await user.get('/client/flags')
  expect(await stats()).toMatchObject({ evaluations: 10_000, is_sampled: true })
  // sampled in the database: two thousand samples with a probability of 1 in 100
  await project.sql(
    `select set_config('app.clock', $1, true), internal.flags_record_evaluations($2, jsonb_build_array(jsonb_build_array($3::uuid, false, null)))
       from generate_series(1, 2000)`,
    [start, user.id, flag.id],
  )
  const notes = await project.sql('select notes from app.flag_evaluations')
  expect(notes.length).toBeGreaterThan(2)
  expect(notes.length).toBeLessThan(60)
  for (const { notes: kept } of notes) expect(kept[0][3]).toBe(100)
  expect((await stats()).evaluations).toBe(10_000 + notes.length * 100)
  harness.advance(day)
  await project.onBehalfOf(user.id).get('/client/flags')
  expect((await stats('?days=1')).evaluations).toBe(1)
})

test('stale is what nobody asked for in thirty days, or what gave everybody one value for sixty', async () => {
  harness.setTime(start)
  await flagOf({ key: 'unused' })
  await flagOf({ key: 'constant' })
  await flagOf({ key: 'varied', rules: [{ filter: { column: 'x', op: 'eq', value: 1 }, value: true }] })
  const ask = async () => {
    for (const x of [1, 2]) {
      const keys = ['constant', 'varied']
      expect((await project.app.post('/client/flags/evaluate', { attributes: { x }, keys })).status).toBe(200)
    }
  }
  await ask()
  expect(await keys('stale=true')).toEqual([])
  harness.advance(29.99 * day)
  expect(await keys('stale=true')).toEqual([])
  await ask()
  harness.advance(0.01 * day)
  expect(await keys('stale=true')).toEqual(['unused'])
  harness.advance(29.9 * day)
  await ask()
  expect(await keys('stale=true')).toEqual(['unused'])
  harness.advance(0.2 * day)
  expect(await keys('stale=true')).toEqual(['constant', 'unused'])
  expect(await keys('stale=false')).toEqual(['varied'])
  expect((await developer.get(`${root}?stale=true&limit=1`)).body).toMatchObject({ total: 2, limit: 1 })
  expect(await keys('limit=9')).toEqual(['varied', 'constant', 'unused'])
  // a single other value, long ago, does not prevent a flag from being stale
  harness.advance(40 * day)
  expect(await keys('stale=true')).toEqual(['varied', 'constant', 'unused'])
})

test('what is older than stats show is forgotten', async () => {
  harness.setTime(start)
  await flagOf()
  await (await project.user()).get('/client/flags')
  expect((await stats('?days=90')).users).toBe(1)
  const forget = async (at: string) => {
    await project.as('app_worker', { 'app.caller': 'worker', 'app.clock': at }, 'select internal.purge__flags()')
    return project.sql('select 1 from app.flag_users union all select 1 from app.flag_counts')
  }
  expect(await forget('2030-05-29T00:00:00Z')).toHaveLength(2)
  expect(await forget('2030-05-30T00:00:00Z')).toHaveLength(0)
})
