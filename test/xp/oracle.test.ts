import { expect, test } from 'vitest'
import { startXp } from '#test/support/xp.ts'

/** Totals and unlocks against what is counted here, one event after the other, over events and rules made up at random. */
const { harness, project, someone } = await startXp()

type Rule = {
  key: string
  event_name: string
  amount?: number
  amount_property?: string
  multiplier?: number
  max_per_event?: number
  max_per_day?: number
  max_total?: number
  cooldown_seconds?: number
}
type Sent = { app_user_id: string; event_name: string; occurred_at: string; properties: { n: number } }

let seed = 20261123
const random = () => {
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed / 2147483648
}
const pick = (most: number) => Math.floor(random() * most)

const rules: Rule[] = [
  { key: 'plain', event_name: 'e0', amount: 7 },
  { key: 'daily', event_name: 'e0', amount: 10, max_per_day: 35 },
  { key: 'all', event_name: 'e1', amount: 9, max_total: 100 },
  {
    key: 'both',
    event_name: 'e1',
    amount_property: 'n',
    multiplier: 1.5,
    max_per_event: 12,
    max_per_day: 40,
    max_total: 150,
  },
  { key: 'slow', event_name: 'e2', amount: 5, cooldown_seconds: 7200 },
  { key: 'slowest', event_name: 'e2', amount: 8, cooldown_seconds: 20_000, max_per_day: 20, max_total: 90 },
]

/** What a rule gives for an event after those before it. */
const oracle = () => {
  const given: { user: string; rule: string; at: number; amount: number }[] = []
  return {
    given,
    take(event: Sent) {
      const at = Date.parse(event.occurred_at)
      for (const rule of rules.filter(({ event_name }) => event_name === event.event_name)) {
        const before = given.filter(({ user, rule: key }) => user === event.app_user_id && key === rule.key)
        const sum = (rows: typeof given) => rows.reduce((total, { amount }) => total + amount, 0)
        const requested = Math.floor(rule.amount ?? event.properties.n * (rule.multiplier ?? 1))
        const cooling = before.some((row) => Math.abs(row.at - at) < (rule.cooldown_seconds ?? 0) * 1000)
        const day = event.occurred_at.slice(0, 10)
        const ofDay = before.filter((row) => new Date(row.at).toISOString().slice(0, 10) === day)
        const amount = cooling
          ? 0
          : Math.max(
              0,
              Math.min(
                requested,
                rule.max_per_event ?? Infinity,
                (rule.max_per_day ?? Infinity) - sum(ofDay),
                (rule.max_total ?? Infinity) - sum(before),
              ),
            )
        if (amount > 0) given.push({ user: event.app_user_id, rule: rule.key, at, amount })
      }
    },
  }
}

test('random batches of random users give what one by one would give', { timeout: 180_000 }, async () => {
  harness.setTime('2026-11-21T12:00:00Z')
  for (const rule of rules)
    expect((await project.admin.post('/xp/rules', { name: rule.key, ...rule })).status).toBe(201)
  const users = (await Promise.all(Array.from({ length: 4 }, someone))).map(({ id }) => id)
  const expected = oracle()
  for (let round = 0; round < 25; round += 1) {
    const events: Sent[] = Array.from({ length: 1 + pick(20) }, () => ({
      app_user_id: users[pick(users.length)] ?? '',
      event_name: `e${pick(4)}`,
      // distinct times, so that the order within a batch is the one that both know
      occurred_at: new Date(Date.parse('2026-11-16T00:00:00Z') + pick(5 * 86_400_000)).toISOString(),
      properties: { n: pick(20) },
    }))
    const answer = await project.server.post('/client/events', { events })
    expect(answer.status, answer.text).toBe(201)
    for (const event of events.toSorted((a, b) => a.occurred_at.localeCompare(b.occurred_at))) expected.take(event)
  }
  for (const id of users) {
    const rows = await project.sql(
      `select rule_key, sum(amount)::int as amount from app.xp_transactions where app_user_id = $1 group by 1`,
      [id],
    )
    const sums = new Map<string, number>()
    for (const { user, rule, amount } of expected.given) if (user === id) sums.set(rule, (sums.get(rule) ?? 0) + amount)
    expect(Object.fromEntries(rows.map(({ rule_key, amount }) => [rule_key, amount]))).toEqual(Object.fromEntries(sums))
    const [stored] = await project.sql('select total::int from app.xp_totals where app_user_id = $1', [id])
    expect(stored?.total).toBe([...sums.values()].reduce((a, b) => a + b, 0))
    // and the ledger is whole: each row goes on where the one before ended
    const ledger = await project.sql(
      'select amount::int, total_after::int from app.xp_transactions where app_user_id = $1 order by id',
      [id],
    )
    let total = 0
    for (const { amount, total_after } of ledger) {
      total += amount
      expect(total_after).toBe(total)
    }
  }
})

test('achievements of random batches unlock for those whose count or XP reaches, and pay once', {
  timeout: 180_000,
}, async () => {
  const other = await harness.project()
  const criteria = [
    ...[1, 4, 9, 30].map((target_value) => ({ type: 'event_count', event_name: 'a', target_value })),
    ...[2, 7].map((target_value) => ({ type: 'event_count', event_name: 'b', target_value })),
    ...[50, 120, 400].map((target_value) => ({ type: 'xp_threshold', target_value })),
  ]
  const xpReward = 11
  const ids: string[] = []
  for (const [n, one] of criteria.entries()) {
    const body = { key: `k${n}`, name: 'n', xp_reward: xpReward, criteria: one }
    ids.push((await other.admin.post('/achievements', body)).data.id)
  }
  await other.admin.post('/xp/rules', { key: 'a', name: 'a', event_name: 'a', amount: 5 })
  const users = await Promise.all(Array.from({ length: 5 }, async () => (await other.user()).id))
  const counts = new Map(users.map((id) => [id, { a: 0, b: 0, c: 0 }]))
  for (let round = 0; round < 20; round += 1) {
    const events = Array.from({ length: 1 + pick(15) }, () => {
      const app_user_id = users[pick(users.length)] ?? ''
      const event_name = (['a', 'b', 'c'] as const)[pick(3)] ?? 'c'
      const mine = counts.get(app_user_id)
      if (mine) mine[event_name] += 1
      return { app_user_id, event_name }
    })
    expect((await other.server.post('/client/events', { events })).status).toBe(201)
  }
  for (const id of users) {
    const { a, b } = counts.get(id) ?? { a: 0, b: 0 }
    // XP of unlocks may reach further ones: to a fixed point
    let unlocked: number[] = []
    for (;;) {
      const xp = a * 5 + unlocked.length * xpReward
      const now = criteria.flatMap((one, n) => {
        const value = one.type === 'xp_threshold' ? xp : 'event_name' in one && one.event_name === 'a' ? a : b
        return value >= one.target_value ? [n] : []
      })
      if (now.length === unlocked.length) break
      unlocked = now
    }
    const rows = await other.sql('select achievement_id from app.user_achievements where app_user_id = $1', [id])
    expect(rows.map(({ achievement_id }) => ids.indexOf(achievement_id)).sort()).toEqual(unlocked.sort())
    const [stored] = await other.sql('select total::int from app.xp_totals where app_user_id = $1', [id])
    expect(stored?.total ?? 0).toBe(a * 5 + unlocked.length * xpReward)
  }
})
