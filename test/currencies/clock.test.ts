import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { createEconomy } from '#test/support/currencies.ts'
import { type Client, startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

const harness = await startHarness()
const { project, currency, someone, balance, spend, ledger } = await createEconomy(harness)
afterEach(() => harness.setTime(null))

/** Whole seconds, so that a second-by-second simulation can be compared with the result of the database. */
const begin = () => {
  harness.setTime(new Date(Math.floor(Date.now() / 1000) * 1000))
  return harness.now().getTime() / 1000
}
const iso = (seconds: number) => new Date(seconds * 1000).toISOString()
const credit = (who: Client, code: string, amount: number, expires_at?: string) =>
  who.post(`/client/currencies/${code}/credit`, { amount, reason: 'test', ...(expires_at ? { expires_at } : {}) })

type Rules = { amount: number; every: number; cap: number; initial: number }

/** The oracle: simulates each second, first regeneration, then expiry. */
const createOracle = (rules: Rules, from: number) => {
  let now = from
  let held = rules.initial
  let anchor: number | null = held < rules.cap ? from : null
  let lots: { at: number; left: number }[] = []
  const settle = () => {
    if (held >= rules.cap) anchor = null
    else anchor ??= now
  }
  return {
    pass(seconds: number) {
      for (let n = 0; n < seconds; n += 1) {
        now += 1
        if (anchor !== null && (now - anchor) % rules.every === 0) held = Math.min(rules.cap, held + rules.amount)
        settle()
        held -= lots.filter(({ at }) => at <= now).reduce((sum, { left }) => sum + left, 0)
        lots = lots.filter(({ at }) => at > now)
        settle()
      }
    },
    spend(amount: number) {
      if (amount > held) return false
      held -= amount
      let due = amount
      for (const lot of lots.sort((a, b) => a.at - b.at)) {
        const part = Math.min(due, lot.left)
        lot.left -= part
        due -= part
      }
      lots = lots.filter(({ left }) => left > 0)
      settle()
      return true
    },
    credit(amount: number, life: number | null) {
      held += amount
      if (life !== null) lots.push({ at: now + life, left: amount })
      settle()
    },
    see() {
      const at = Math.min(...lots.map((lot) => lot.at))
      const amount = lots.filter((lot) => lot.at === at).reduce((sum, { left }) => sum + left, 0)
      return {
        balance: held,
        ...(anchor === null
          ? {}
          : { next_regen_at: iso(anchor + (Math.floor((now - anchor) / rules.every) + 1) * rules.every) }),
        ...(lots.length > 0 ? { expiring: { amount, at: iso(at) } } : {}),
      }
    },
  }
}

const act = fc.oneof(
  fc.record({ kind: fc.constant('spend' as const), amount: fc.integer({ min: 1, max: 12 }) }),
  fc.record({
    kind: fc.constant('credit' as const),
    amount: fc.integer({ min: 1, max: 9 }),
    life: fc.option(fc.integer({ min: 1, max: 60 })),
  }),
)
const life = fc.record({
  rules: fc.record({
    amount: fc.integer({ min: 1, max: 4 }),
    every: fc.integer({ min: 1, max: 20 }),
    cap: fc.integer({ min: 1, max: 20 }),
    initial: fc.integer({ min: 0, max: 25 }),
  }),
  acts: fc.array(fc.record({ wait: fc.integer({ min: 0, max: 40 }), act }), { minLength: 6, maxLength: 14 }),
})

test('regenerating and expiring at once, the balance is what a second-by-second reckoning comes to', {
  timeout: 240_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(life, async ({ rules, acts }) => {
      const from = begin()
      const regen = { amount: rules.amount, every_seconds: rules.every, cap: rules.cap }
      const code = await currency({ initial_grant: rules.initial, regen })
      const { id, server } = await someone()
      const oracle = createOracle(rules, from)
      for (const { wait, act } of acts) {
        harness.advance(wait)
        oracle.pass(wait)
        expect(await balance(server, code)).toMatchObject(oracle.see())
        if (act.kind === 'spend') {
          const answer = await spend(server, code, act.amount)
          expect(answer.status, answer.text).toBe(oracle.spend(act.amount) ? 201 : 409)
        } else {
          const at = act.life === null ? undefined : iso(harness.now().getTime() / 1000 + act.life)
          expect((await credit(server, code, act.amount, at)).status).toBe(201)
          oracle.credit(act.amount, act.life)
        }
        const { code: _c, name: _n, icon_url: _i, ...seen } = await balance(server, code)
        expect(seen).toEqual(oracle.see())
      }
      await ledger(id, code)
    }),
    { numRuns: sized(8, 25) },
  )
})

describe('regeneration', () => {
  test('starts at initial_grant, grows in whole ticks up to the cap, and is one row at the next write', async () => {
    const from = begin()
    const code = await currency({ initial_grant: 2, regen: { amount: 2, every_seconds: 60, cap: 9 } })
    const { id, server } = await someone()
    expect(await balance(server, code)).toMatchObject({ balance: 2, next_regen_at: iso(from + 60) })
    harness.advance(59)
    expect(await balance(server, code)).toMatchObject({ balance: 2 })
    harness.advance(1)
    expect(await balance(server, code)).toMatchObject({ balance: 4, next_regen_at: iso(from + 120) })
    harness.advance(3000)
    expect(await balance(server, code)).toEqual({ code, name: code, icon_url: null, balance: 9 })
    expect(await ledger(id, code)).toEqual([])
    expect((await spend(server, code, 4)).data.balance).toBe(5)
    expect((await ledger(id, code)).map(({ amount, source_type, reason }) => [amount, source_type, reason])).toEqual([
      [2, 'reward', 'initial_grant'],
      [7, 'regen', 'regen'],
      [-4, 'spend', 'hint'],
    ])
    // the regeneration interval restarted at the spend
    expect(await balance(server, code)).toMatchObject({ next_regen_at: iso(from + 3120) })
  })

  test('never takes from who has more than the cap, and a year away is no overflow', async () => {
    begin()
    const code = await currency({
      initial_grant: 50,
      regen: { amount: 2_000_000_000, every_seconds: 1, cap: 2_000_000_000 },
    })
    const low = await currency({ initial_grant: 50, regen: { amount: 1, every_seconds: 1, cap: 10 } })
    const { server } = await someone()
    harness.advance(366 * 86_400)
    expect((await balance(server, code)).balance).toBe(2_000_000_000)
    expect((await balance(server, low)).balance).toBe(50)
  })

  test('that is switched on later counts from then', async () => {
    const from = begin()
    const code = await currency({ initial_grant: 1 })
    const { id, server } = await someone()
    await credit(server, code, 1)
    harness.advance(600)
    await project.admin.patch(`/currencies/${code}`, { regen: { amount: 1, every_seconds: 60, cap: 10 } })
    expect(await balance(server, code)).toMatchObject({ balance: 2, next_regen_at: iso(from + 660) })
    harness.advance(120)
    expect((await spend(server, code, 4)).data.balance).toBe(0)
    await project.admin.patch(`/currencies/${code}`, { regen: null })
    harness.advance(600)
    expect(await balance(server, code)).toEqual({ code, name: code, icon_url: null, balance: 0 })
    await ledger(id, code)
  })
})

describe('credits that expire', () => {
  test('are spent first, the soonest first, and what never expires last', async () => {
    begin()
    const code = await currency()
    const { id, server } = await someone()
    const at = (days: number) => new Date(harness.now().getTime() + days * 86_400_000).toISOString()
    await credit(server, code, 10)
    await credit(server, code, 10, at(20))
    await credit(server, code, 10, at(10))
    expect(await balance(server, code)).toMatchObject({ balance: 30, expiring: { amount: 10, at: at(10) } })
    await spend(server, code, 14)
    expect(await balance(server, code)).toMatchObject({ balance: 16, expiring: { amount: 6, at: at(20) } })
    harness.advance(20 * 86_400)
    expect((await balance(server, code)).balance).toBe(10)
    expect((await spend(server, code, 11)).error?.details).toMatchObject({ balance: 10 })
    await spend(server, code, 1)
    expect((await ledger(id, code)).slice(-2).map(({ amount, source_type }) => [amount, source_type])).toEqual([
      [-6, 'expiry'],
      [-1, 'spend'],
    ])
  })

  test("get the currency's expiry_days when they name no time; what was bought and the initial grant never expire", async () => {
    begin()
    const code = await currency({ initial_grant: 3, expiry_days: 30 })
    const { id, server } = await someone()
    await credit(server, code, 5)
    await project.sql(
      `select internal.currency_transact_many($1, $2, 'shop', 'purchase', 'p1', '{}', internal.now() + interval '1 hour')`,
      [id, JSON.stringify([{ currency_code: code, amount: 7 }])],
    )
    harness.advance(30 * 86_400 - 1)
    expect((await balance(server, code)).balance).toBe(15)
    harness.advance(1)
    expect((await balance(server, code)).balance).toBe(10)
  })
})

describe('the initial grant', () => {
  test('is there from the first read, and is written once, however many write first', async () => {
    const code = await currency({ initial_grant: 100 })
    const { id, server } = await someone()
    expect((await balance(server, code)).balance).toBe(100)
    const answers = await Promise.all(Array.from({ length: 10 }, () => spend(server, code, 1)))
    expect(answers.every(({ status }) => status === 201)).toBe(true)
    const rows = await ledger(id, code)
    expect(rows.filter(({ source_id }) => source_id === 'initial_grant')).toHaveLength(1)
    expect(rows.at(-1)?.balance_after).toBe(90)
  })
})

describe('a merge', () => {
  test('adds what was earned, not what every account starts with, and leaves one ledger that adds up', async () => {
    const [code, energy] = [
      await currency({ initial_grant: 100 }),
      await currency({ initial_grant: 5, regen: { amount: 1, every_seconds: 60, cap: 5 } }),
    ]
    const [me, guest] = [await someone(), await someone()]
    await credit(me.server, code, 7)
    await credit(guest.server, code, 40, '2099-01-01T00:00:00Z')
    await spend(guest.server, energy, 3)
    const answer = await me.user.post('/client/auth/merge', { from_session_token: guest.user.sessionToken })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.data.merged.currency_balances).toBe(1)
    expect(await balance(me.server, code)).toMatchObject({
      balance: 147,
      expiring: { amount: 40, at: '2099-01-01T00:00:00.000Z' },
    })
    expect((await ledger(me.id, code)).at(-1)).toMatchObject({ amount: 40, source_type: 'merge', source_id: guest.id })
    expect((await balance(me.server, energy)).balance).toBe(5)
    expect(await project.sql('select from app.currency_transactions where app_user_id = $1', [guest.id])).toEqual([])
  })

  test('of guests who spent their start money does not farm it: it is owed, never below nothing', async () => {
    const code = await currency({ initial_grant: 100 })
    const me = await someone()
    for (const left of [30, 0]) {
      const guest = await someone()
      await spend(guest.server, code, 70)
      expect((await me.user.post('/client/auth/merge', { from_session_token: guest.user.sessionToken })).status).toBe(
        200,
      )
      expect((await balance(me.server, code)).balance).toBe(left)
    }
    await ledger(me.id, code)
  })

  test('holds max_balance', async () => {
    const code = await currency({ max_balance: 50 })
    const [me, guest] = [await someone(), await someone()]
    await credit(me.server, code, 40)
    await credit(guest.server, code, 40)
    await me.user.post('/client/auth/merge', { from_session_token: guest.user.sessionToken })
    expect((await balance(me.server, code)).balance).toBe(50)
    await ledger(me.id, code)
  })
})
