import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
/** Statements that take longer than a second are broken off. */
const impatient = await startHarness({ env: { STATEMENT_TIMEOUT_MS: '1000' } })

const inDatabase = (text: string) => `
  do $do$ begin
    alter table app.users disable trigger user;
    alter table app.engagement_events disable trigger user;
    ${text};
    alter table app.users enable trigger user;
    alter table app.engagement_events enable trigger user;
  end $do$`

test('rules that take too long even for a sample are refused by name, and may be evaluated all the same', {
  timeout: 180_000,
}, async () => {
  const project = await impatient.project()
  const { id } = await project.user()
  // a single user is as small as a sample gets
  await project.sql(
    inDatabase(`insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
      select gen_random_uuid(), '${id}', 'played', jsonb_build_object('n', n), now(), now(), 'server' from generate_series(1, 250000) n`),
  )
  await project.sql('analyze app.engagement_events')
  const leaf = (n: number) => ({
    ...{ source: 'event', event_name: 'played', measure: 'sum', column: 'n', op: 'gte', value: n },
    where: { or: [...'abcdefghij'].map((column) => ({ column: `${column}.x`, op: 'ilike', value: '%a%b%' })) },
  })
  const rules = { or: Array.from({ length: 8 }, (_, n) => leaf(n + 1)) }
  expect(await project.admin.post('/segments/preview', { rules })).toMatchObject({
    status: 400,
    error: { code: 'SEGMENT_TOO_EXPENSIVE' },
  })
  // the worker has more time than a request
  const made = await project.admin.post('/segments', { key: 'slow', name: 'Slow', rules })
  expect(made.status).toBe(201)
  await project.drain()
  expect((await project.admin.get('/segments/slow')).data).toMatchObject({ member_count: 0 })
  expect((await project.admin.get('/segments/slow')).data.last_evaluated_at).not.toBeNull()
  expect((await project.sql('select last_error from app.outbox')).map(({ last_error }) => last_error)).toEqual([null])
})

test('of many users a preview is an estimate, and says how far off it may be', { timeout: 180_000 }, async () => {
  const project = await harness.project()
  // users of a page resemble each other: the plan changes every 500 users
  await project.sql(
    inDatabase(`insert into app.users (display_name, properties)
      select 'U', jsonb_build_object('plan', case when n / 500 % 4 = 0 then 'pro' else 'free' end, 'n', n % 10) from generate_series(1, 60000) n`),
  )
  await project.sql('analyze app.users')
  const plan = (value: string) => ({ source: 'property', column: 'plan', op: 'eq', value })
  const cheap = await project.admin.post('/segments/preview', { rules: plan('pro') })
  expect(cheap.data).toMatchObject({ is_estimate: false, margin: 0 })
  const exact = cheap.data.count
  expect(exact).toBeGreaterThan(14_000)
  // the same users, by conditions that no index serves
  const dear = {
    and: [{ not: { not: plan('pro') } }, ...Array.from({ length: 48 }, (_, n) => ({ not: plan(`other ${n}`) }))],
  }
  const { data, text } = await project.admin.post('/segments/preview', { rules: dear })
  expect(data?.is_estimate, text).toBe(true)
  expect(data.margin).toBeGreaterThan(0)
  expect(data.margin).toBeLessThan(exact)
  expect(Math.abs(data.count - exact)).toBeLessThan(2.5 * data.margin)
  expect(data.sample).toHaveLength(10)
  expect(data.explain.rows).toBeGreaterThan(0)
  // who has what nobody in the sample has is bounded, not denied
  const rare = { and: [{ not: { not: plan('none') } }, ...dear.and.slice(1)] }
  const none = (await project.admin.post('/segments/preview', { rules: rare })).data
  expect(none).toMatchObject({ is_estimate: true, count: 0, sample: [] })
  expect(none.margin).toBeGreaterThan(0)
})

test('the margin of an estimate holds in nineteen of twenty samples', async () => {
  const project = await harness.project()
  const [row] = await project.sql(
    `with population as (
       select n, n / 25 as page, (n / 25 % 7 = 0) <> (n % 11 = 0) as is_in from generate_series(0, 49999) n
     ), drawn as (
       select seed, p.page, p.is_in
         from generate_series(1, 200) seed
         join population p on abs(hashtextextended(p.page::text, seed)) % 20 = 0
     ), estimates as (
       select d.seed, avg(d.is_in::int) * 50000 as users, internal.sample_margin(50000, array_agg(d.page order by d.page), array_agg(d.is_in order by d.page)) as margin
         from drawn d
        group by d.seed
     )
     select avg((abs(e.users - (select count(*) from population p where p.is_in)) <= e.margin)::int)::float as held, avg(e.margin)::float as margin from estimates e`,
  )
  expect(row?.held).toBeGreaterThan(0.9)
  // and it is no wider than it has to be
  expect(row?.held).toBeLessThan(1)
  expect(row?.margin).toBeLessThan(6000)
})
