import type { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectAdmin } from '#server/database/cluster.ts'
import { startHarness } from '#test/support/harness.ts'

/** Sums that are kept in slots (internal.slots_declare), so that writers wait for nobody. */
const harness = await startHarness()
const project = await harness.project()
let [one, other]: Client[] = []

const key = '00000000-0000-4000-8000-000000000001'
const sums: [name: string, add: string, sum: string][] = [
  [
    'count_change',
    `internal.count_change('things', '${key}', 1)`,
    'select sum(n) from app.row_counts where name = $$things$$',
  ],
  [
    'usage_add',
    "internal.usage_add('2026-01-01', 'push_sent', 1)",
    "select sum(amount) from app.usage_days where meter = 'push_sent'",
  ],
  ['media_usage_add', 'internal.media_usage_add(1, 2, 3)', 'select sum(registered_bytes) from app.media_totals'],
  [
    'campaign_count',
    `internal.campaign_count('${key}', 'a', sent => 1)`,
    `select sum(sent) from app.campaign_counts where hour = '-infinity'`,
  ],
]
const sumOf = async (sum: string) => Number((await other?.query(sum))?.rows[0].sum ?? 0)

beforeAll(async () => {
  const { cluster } = harness.running.services.control
  one = await connectAdmin(cluster, project.database)
  other = await connectAdmin(cluster, project.database)
})
afterAll(() => Promise.all([one?.end(), other?.end()]))

test.each(sums)('%s adds, into one slot while nobody else writes', async (_, add, sum) => {
  const before = await sumOf(sum)
  for (let n = 0; n < 3; n += 1) await one?.query(`select ${add}`)
  expect((await sumOf(sum)) - before).toBe(3)
  const [, table] = / from (app\.\w+)/.exec(sum) ?? []
  expect(Number((await one?.query(`select count(*) from ${table}`))?.rows[0].count)).toBeLessThan(3)
})

test.each(sums)('%s waits for nobody who holds the slot', async (_, add, sum) => {
  const before = await sumOf(sum)
  await one?.query('begin')
  await one?.query(`select ${add}`)
  await other?.query(`set statement_timeout = 5000; select ${add}; reset statement_timeout`)
  expect((await sumOf(sum)) - before).toBe(1)
  await one?.query('commit')
  expect((await sumOf(sum)) - before).toBe(2)
})

test.each(sums)('%s does not fail in a snapshot in which the slot was another', async (_, add, sum) => {
  await other?.query(`select ${add}`)
  const before = await sumOf(sum)
  await one?.query('begin isolation level repeatable read')
  await one?.query('select 1')
  await other?.query(`select ${add}`)
  await one?.query(`select ${add}`)
  await one?.query('commit')
  expect((await sumOf(sum)) - before).toBe(2)
})
