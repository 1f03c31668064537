import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

/** Statements that take longer than two seconds are broken off. */
const harness = await startHarness({ env: { STATEMENT_TIMEOUT_MS: '2000' } })

test('rules that take too long are refused by name, and may be evaluated all the same', {
  timeout: 180_000,
}, async () => {
  const project = await harness.project()
  await project.sql(
    `insert into app.users (display_name, properties) select 'U', '{"n": 1}' from generate_series(1, 40000)`,
  )
  const leaf = { source: 'property', column: 'n', op: 'eq', value: 1 }
  const rules = { and: Array.from({ length: 50 }, () => leaf) }
  expect(await project.admin.post('/segments/preview', { rules })).toMatchObject({
    status: 400,
    error: { code: 'SEGMENT_TOO_EXPENSIVE' },
  })
  // the worker has more time than a request; nobody is in it, so that nobody has to be told
  const made = await project.admin.post('/segments', { key: 'slow', name: 'Slow', rules: { not: rules } })
  expect(made.status).toBe(201)
  await project.drain()
  expect((await project.admin.get('/segments/slow')).data.member_count).toBe(0)
  expect((await project.sql('select last_error from app.outbox')).map(({ last_error }) => last_error)).toEqual([null])
})
