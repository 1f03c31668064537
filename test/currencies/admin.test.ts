import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { createEconomy } from '#test/support/currencies.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { checkCurrencies } from '#workers/tasks/currencies__check.ts'

/** Administration of balances: adjustments, reversals, the ledger of all users, statistics, and the nightly check. */
const harness = await startHarness()
const { project, currency, someone, give, balance, spend, ledger } = await createEconomy(harness)
afterEach(() => harness.setTime(null))

const adjust = (body: Record<string, unknown>, headers?: Record<string, string>) =>
  project.admin.post('/currencies/transactions', { reason: 'support', ...body }, headers)
const reverse = (id: string, headers?: Record<string, string>) =>
  project.admin.post(`/currencies/transactions/${id}/reverse`, {}, headers)

describe('an adjustment', () => {
  test('of several currencies is answered in the order of codes, under one source, and replayed', async () => {
    const [a, b] = [await currency(), await currency({ initial_grant: 10 })]
    const { id } = await someone()
    const body = {
      app_user_id: id,
      adjustments: [
        { currency_code: b, amount: -4 },
        { currency_code: a, amount: 7 },
      ],
      metadata: { ticket: 5 },
    }
    const header = { 'idempotency-key': randomUUID() }
    const answer = await adjust(body, header)
    expect(answer.status).toBe(201)
    const codes = [a, b].sort()
    expect(answer.data.transactions.map((row: { currency_code: string }) => row.currency_code)).toEqual(codes)
    expect(new Set(answer.data.transactions.map((row: { source_id: string }) => row.source_id)).size).toBe(1)
    expect(answer.data.transactions[0]).toMatchObject({
      metadata: { ticket: 5 },
      source_type: 'admin',
      reason: 'support',
    })
    expect(answer.data.balances).toEqual({ [a]: 7, [b]: 6 })
    const again = await adjust(body, header)
    expect([again.status, again.body]).toEqual([200, answer.body])
    expectRefusal(await adjust({ ...body, reason: 'other' }, header), 409, 'IDEMPOTENCY_CONFLICT')
    expect((await project.admin.get(`/users/${id}/balances`)).data).toMatchObject({ [a]: 7, [b]: 6 })
  })

  test('is all or nothing', async () => {
    const [a, b, full] = [await currency(), await currency(), await currency({ max_balance: 1 })]
    const { id } = await someone()
    const parts = (...amounts: [string, number][]) => ({
      app_user_id: id,
      adjustments: amounts.map(([currency_code, amount]) => ({ currency_code, amount })),
    })
    expectRefusal(await adjust(parts([a, 5], [b, -1])), 409, 'INSUFFICIENT_FUNDS', {
      currency_code: b,
      balance: 0,
      required: 1,
    })
    expectRefusal(await adjust(parts([a, 5], [full, 2])), 409, 'BALANCE_LIMIT_EXCEEDED', { currency_code: full })
    expectRefusal(await adjust(parts([a, 5], ['NOPE', 2])), 400, 'VALIDATION_ERROR', {
      field: 'adjustments.1.currency_code',
    })
    expectRefusal(await adjust(parts([a, 5], [a, 2])), 400, 'VALIDATION_ERROR', { field: 'adjustments' })
    expect(await ledger(id, a)).toEqual([])
  })

  test('needs 1 to 10 items, whole amounts up to two billion, a user and a reason', async () => {
    const code = await currency()
    const { id } = await someone()
    const one = { currency_code: code, amount: 1 }
    for (const adjustments of [[], Array(11).fill(one), 'x', [{ currency_code: code, amount: 0 }], [{ amount: 1 }]])
      expectRefusal(await adjust({ app_user_id: id, adjustments }), 400, 'VALIDATION_ERROR')
    for (const amount of [2_000_000_001, -2_000_000_001, 1.5, '1'])
      expectRefusal(
        await adjust({ app_user_id: id, adjustments: [{ currency_code: code, amount }] }),
        400,
        'VALIDATION_ERROR',
        {
          field: 'adjustments.0.amount',
        },
      )
    expectRefusal(await adjust({ app_user_id: id, adjustments: [one], reason: '' }), 400, 'VALIDATION_ERROR')
    expectRefusal(await adjust({ app_user_id: 'x', adjustments: [one] }), 400, 'VALIDATION_ERROR', {
      field: 'app_user_id',
    })
    expectRefusal(await adjust({ app_user_id: randomUUID(), adjustments: [one] }), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.post('/currencies/transactions', '[]'), 400, 'INVALID_BODY')
    const ten = await Promise.all(Array.from({ length: 10 }, () => currency()))
    const all = ten.map((currency_code) => ({ currency_code, amount: 2_000_000_000 }))
    expect((await adjust({ app_user_id: id, adjustments: all })).status).toBe(201)
  })

  test('in opposite orders by many at once never deadlocks, and adds up', async () => {
    const [a, b] = [await currency({ initial_grant: 50 }), await currency({ initial_grant: 50 })]
    const { id } = await someone()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        adjust({
          app_user_id: id,
          adjustments: (n % 2 ? [a, b] : [b, a]).map((currency_code, place) => ({
            currency_code,
            amount: place ? -5 : 3,
          })),
        }),
      ),
    )
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true)
    const won = answers.filter(({ status }) => status === 201).length
    expect(won).toBeGreaterThan(0)
    const [left, right] = [(await ledger(id, a)).at(-1), (await ledger(id, b)).at(-1)]
    expect(Number(left?.balance_after) + Number(right?.balance_after)).toBe(100 - 2 * won)
  })
})

describe('a reversal', () => {
  test('undoes a credit and a debit, once each, twenty at once', async () => {
    const code = await currency()
    const { id, user } = await someone()
    const given = await give(id, code, 10)
    const spent = (await spend(user, code, 4)).data.transaction
    const answers = await Promise.all(Array.from({ length: 20 }, () => reverse(spent.id)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 201)) expectRefusal(answer, 409, 'ALREADY_REVERSED')
    const undone = answers.find(({ status }) => status === 201)
    expect(undone?.data).toMatchObject({
      balance: 10,
      transaction: {
        amount: 4,
        source_type: 'refund',
        source_id: spent.id,
        reason: 'reversal',
        metadata: { reversed_reason: 'hint' },
      },
    })
    const header = { 'idempotency-key': 'reverse' }
    const back = await reverse(given.id, header)
    expect([back.status, back.data.balance]).toEqual([201, 0])
    const again = await reverse(given.id, header)
    expect([again.status, again.body]).toEqual([200, back.body])
    expectRefusal(await reverse(given.id), 409, 'ALREADY_REVERSED')
    expect((await ledger(id, code)).map(({ amount }) => amount)).toEqual([10, -4, 4, -10])
  })

  test('takes nothing that is spent, gives nothing that does not fit, and undoes neither the clock nor a reversal', async () => {
    const code = await currency({ max_balance: 10 })
    const { id, user } = await someone()
    const given = await give(id, code, 10)
    const spent = (await spend(user, code, 4)).data.transaction
    expectRefusal(await reverse(given.id), 409, 'INSUFFICIENT_FUNDS', { balance: 6, required: 10 })
    await give(id, code, 2)
    expectRefusal(await reverse(spent.id), 409, 'BALANCE_LIMIT_EXCEEDED')
    await spend(user, code, 8)
    const undone = await reverse(spent.id)
    expectRefusal(await reverse(undone.data.transaction.id), 409, 'CONFLICT')
    expectRefusal(await reverse(randomUUID()), 404, 'NOT_FOUND')
    expectRefusal(await reverse('x'), 400, 'INVALID_ID')
    expectRefusal(await reverse(given.id, { 'idempotency-key': '\u00e9' }), 400, 'VALIDATION_ERROR')
    await ledger(id, code)
  })

  test('gives credits that expire back with the life that they had left, and takes the ones that it undoes', async () => {
    harness.setTime(new Date())
    const code = await currency()
    const { id, server } = await someone()
    const at = (hours: number) => new Date(harness.now().getTime() + hours * 3_600_000).toISOString()
    const soon = at(10)
    await give(id, code, 5)
    await give(id, code, 5, { expires_at: soon })
    const spent = (await spend(server, code, 7)).data.transaction
    harness.advance(4 * 3600)
    await reverse(spent.id)
    expect(await balance(server, code)).toMatchObject({ balance: 10, expiring: { amount: 5, at: at(10) } })
    const later = await give(id, code, 5, { expires_at: at(20) })
    await reverse(later.id)
    expect(await balance(server, code)).toMatchObject({ balance: 10, expiring: { amount: 5, at: at(10) } })
    harness.advance(11 * 3600)
    expect((await balance(server, code)).balance).toBe(5)
    expect(soon < harness.now().toISOString()).toBe(true)
  })
})

describe('the ledger of all', () => {
  test('is filtered by user, currency and reason, and paged', async () => {
    const [a, b] = [await currency(), await currency()]
    const [one, two] = [await someone(), await someone()]
    const reason = `r ${randomUUID()}`
    for (const [who, code, more] of [
      [one, a, { reason }],
      [one, b, {}],
      [two, a, { reason }],
    ] as const)
      await give(who.id, code, 1, more)
    const list = async (query: Record<string, string>) => {
      const answer = await project.admin.get(`/currencies/transactions?${new URLSearchParams(query)}`)
      expect(answer.status, answer.text).toBe(200)
      return answer
    }
    expect((await list({ user_id: one.id })).data).toHaveLength(2)
    expect((await list({ currency_code: a })).data.map((row: { app_user_id: string }) => row.app_user_id)).toEqual([
      two.id,
      one.id,
    ])
    expect((await list({ reason })).data).toHaveLength(2)
    expect((await list({ reason, user_id: one.id, currency_code: a })).data).toHaveLength(1)
    expect((await list({ reason, currency_code: b })).data).toEqual([])
    const first = await list({ reason, limit: '1' })
    const second = await list({ reason, limit: '1', cursor: first.body.pagination.next_cursor })
    expect([first.data[0].app_user_id, second.data[0].app_user_id]).toEqual([two.id, one.id])
    expect(second.body.pagination).toEqual({ next_cursor: null, total: null })
    for (const bad of ['user_id=x', 'cursor=x', 'limit=x'])
      expectRefusal(await project.admin.get(`/currencies/transactions?${bad}`), 400, 'INVALID_INPUT')
  })
})

describe('figures', () => {
  test('of a currency', async () => {
    const code = await currency({ initial_grant: 10 })
    const [one, two] = [await someone(), await someone()]
    await give(one.id, code, 5)
    await give(two.id, code, 1, { reason: 'other' })
    await spend(one.user, code, 3)
    expect((await project.admin.get(`/currencies/${code}/stats`)).data).toEqual({
      currency_code: code,
      minted: 26,
      burned: 3,
      circulating: 23,
      holders: 2,
      is_estimate: false,
      margin: 0,
      top_holders: [
        { app_user_id: one.id, display_name: expect.any(String), balance: 12 },
        { app_user_id: two.id, display_name: expect.any(String), balance: 11 },
      ],
      reasons: [
        { reason: 'initial_grant', minted: 20, burned: 0, transactions: 2 },
        { reason: 'test', minted: 5, burned: 0, transactions: 1 },
        { reason: 'hint', minted: 0, burned: 3, transactions: 1 },
        { reason: 'other', minted: 1, burned: 0, transactions: 1 },
      ],
    })
  })

  test('of balances need a user', async () => {
    expectRefusal(await project.admin.get(`/users/${randomUUID()}/balances`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.get('/users/x/balances'), 400, 'INVALID_ID')
  })
})

describe('the proof', () => {
  test('is null before the first night, sees that all adds up, and finds what does not', async () => {
    const other = await harness.project()
    expect((await other.admin.get('/currencies/integrity')).data).toBeNull()
    await other.admin.post('/currencies', { code: 'GOLD', name: 'Gold', initial_grant: 5 })
    const users = await Promise.all(Array.from({ length: 5 }, () => other.user()))
    for (const { id } of users)
      await other.admin.post('/currencies/transactions', {
        app_user_id: id,
        adjustments: [{ currency_code: 'GOLD', amount: 1 }],
        reason: 'x',
      })
    const place = await harness.running.services.fleet.placeOf(other.id)
    if (!place) throw new Error('no place')
    const prove = () => checkCurrencies(harness.running.services, place, other.id, 2)
    await prove()
    expect((await other.admin.get('/currencies/integrity')).data).toEqual({
      checked_at: expect.any(String),
      finished_at: expect.any(String),
      ok: true,
      balances: 5,
      mismatched: 0,
      mismatches: [],
    })
    const [{ id } = { id: '' }] = users
    await other.sql('update app.currency_balances set balance = 600 where app_user_id = $1', [id])
    await prove()
    const mismatch = { app_user_id: id, currency_code: 'GOLD', balance: 600, ledger: 6, expiring: 0 }
    expect((await other.admin.get('/currencies/integrity')).data).toMatchObject({
      ok: false,
      balances: 5,
      mismatched: 1,
      mismatches: [mismatch],
    })
  })
})
