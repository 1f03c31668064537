import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { createEconomy } from '#test/support/currencies.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Spending and crediting a balance, and repeating these requests under an Idempotency-Key. */
const harness = await startHarness()
const { project, currency, someone, give, balance, spend, ledger } = await createEconomy(harness)

afterEach(() => harness.setTime(null))

const key = (value: string = randomUUID()) => ({ 'idempotency-key': value })

describe('a spend', () => {
  test('takes from the balance, and is a row of the ledger', async () => {
    const code = await currency()
    const { user, id } = await someone()
    await give(id, code, 100)
    const answer = await user.post(`/client/currencies/${code}/spend`, {
      amount: 30,
      reason: 'hint',
      metadata: { level: 4 },
    })
    expect(answer.status).toBe(201)
    expect(answer.data).toEqual({
      balance: 70,
      transaction: {
        id: expect.any(String),
        app_user_id: id,
        currency_code: code,
        amount: -30,
        balance_after: 70,
        kind: 'debit',
        reason: 'hint',
        source_type: 'spend',
        source_id: expect.any(String),
        idempotency_key: null,
        expires_at: null,
        metadata: { level: 4 },
        created_at: expect.any(String),
      },
    })
    expect(await balance(user, code)).toEqual({ code, name: code, icon_url: null, balance: 70 })
    expect((await ledger(id, code)).map(({ amount }) => amount)).toEqual([100, -30])
  })

  test('of all there is succeeds, of one more is refused and changes nothing', async () => {
    const code = await currency()
    const { user, id } = await someone()
    await give(id, code, 5)
    expectRefusal(await spend(user, code, 6), 409, 'INSUFFICIENT_FUNDS', {
      currency_code: code,
      balance: 5,
      required: 6,
    })
    expect((await spend(user, code, 5)).data.balance).toBe(0)
    expectRefusal(await spend(user, code, 1), 409, 'INSUFFICIENT_FUNDS', { balance: 0, required: 1 })
    expect(await ledger(id, code)).toHaveLength(2)
  })

  test('by an app needs client_spendable; a server key may always', async () => {
    const code = await currency({ client_spendable: false })
    const { user, id, server } = await someone()
    await give(id, code, 10)
    expectRefusal(await spend(user, code, 1), 403, 'SPEND_NOT_ALLOWED')
    expect((await spend(server, code, 1)).status).toBe(201)
    expect(await ledger(id, code)).toHaveLength(2)
  })

  test('a hundred at once on one balance: exactly as many as it holds succeed, and ledger and balance agree', async () => {
    const code = await currency()
    const { id, server } = await someone()
    await give(id, code, 370)
    // more than sixty a minute: the rate limit is tested elsewhere
    const answers = await Promise.all(
      Array.from({ length: 100 }, () =>
        project
          .as(
            'app_user',
            { 'app.user_id': id, 'app.caller': 'user' },
            `select (r).status from (select api.currency_spend($1, 10, 'race') as r) s`,
            [code],
          )
          .then(
            ([row]) => row.status as number,
            (error: Error) => {
              expect(error.message).toContain('There is not enough')
              return 409
            },
          ),
      ),
    )
    expect(answers.filter((status) => status === 201)).toHaveLength(37)
    expect(answers.filter((status) => status === 409)).toHaveLength(63)
    expect((await ledger(id, code)).at(-1)?.balance_after).toBe(0)
    expect((await balance(server, code)).balance).toBe(0)
  })

  test.each([[0], [-5], [1.5], ['5'], [2_000_000_001], [null], [Number.MAX_SAFE_INTEGER]])(
    'of %s is refused, and changes nothing',
    async (amount) => {
      const code = await currency({ initial_grant: 10 })
      const { user, id } = await someone()
      expectRefusal(await spend(user, code, amount), 400, 'VALIDATION_ERROR', { field: 'amount' })
      expect(await ledger(id, code)).toEqual([])
    },
  )

  test('needs a reason of 1 to 200 characters, metadata of at most 8192, and a body that is an object', async () => {
    const code = await currency({ initial_grant: 10 })
    const { user } = await someone()
    const path = `/client/currencies/${code}/spend`
    for (const reason of [undefined, '', 'x'.repeat(201), 5])
      expectRefusal(await user.post(path, { amount: 1, reason }), 400, 'VALIDATION_ERROR', { field: 'reason' })
    expect((await user.post(path, { amount: 1, reason: 'x'.repeat(200) })).status).toBe(201)
    const metadata = { note: 'x'.repeat(8193) }
    expectRefusal(await user.post(path, { amount: 1, reason: 'x', metadata }), 400, 'VALIDATION_ERROR', {
      field: 'metadata',
    })
    expectRefusal(await user.post(path, '[1]'), 400, 'INVALID_BODY')
  })

  test('of an unknown currency, or one out of use, is refused', async () => {
    const code = await currency({ initial_grant: 10, is_active: false })
    const { user } = await someone()
    for (const unknown of [code, 'NOPE', 'x']) expectRefusal(await spend(user, unknown, 1), 404, 'NOT_FOUND')
    expect(await balance(user, code)).toBeUndefined()
  })

  test('sixty a minute for each user, the sixty-first is refused until the minute is over', async () => {
    harness.setTime(new Date())
    const code = await currency({ initial_grant: 100 })
    const [one, two] = [await someone(), await someone()]
    for (let n = 0; n < 60; n += 1) expect((await spend(one.server, code, 1)).status).toBe(201)
    const over = await spend(one.server, code, 1)
    expectRefusal(over, 429, 'RATE_LIMITED')
    expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await spend(two.server, code, 1)).status).toBe(201)
    harness.advance(61)
    expect((await spend(one.server, code, 1)).data.balance).toBe(39)
  })
})

describe('an Idempotency-Key', () => {
  test('answers a repeated spend with the first answer, for ever, and spends once', async () => {
    harness.setTime(new Date())
    const code = await currency({ initial_grant: 100 })
    const { server, id } = await someone()
    const header = key()
    const first = await spend(server, code, 10, header)
    expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([201, null])
    expect(first.data.transaction.idempotency_key).toBe(header['idempotency-key'])
    harness.advance(400 * 86_400)
    const again = await spend(server, code, 10, header)
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
    expect(again.body).toEqual(first.body)
    expectRefusal(await spend(server, code, 11, header), 409, 'IDEMPOTENCY_CONFLICT')
    expect((await ledger(id, code)).at(-1)?.balance_after).toBe(90)
  })

  test("is each user's and each route's own: another user, currency or route under the same key is another request", async () => {
    const [code, other] = [await currency({ initial_grant: 100 }), await currency({ initial_grant: 100 })]
    const [one, two] = [await someone(), await someone()]
    const header = key('the same key for all')
    for (const who of [one, two]) {
      expect((await spend(who.server, code, 10, header)).status).toBe(201)
      expect((await spend(who.server, other, 10, header)).status).toBe(201)
      const credit = { amount: 10, reason: 'hint' }
      expect((await who.server.post(`/client/currencies/${code}/credit`, credit, header)).status).toBe(201)
    }
  })

  test('twenty at once spend once', async () => {
    const code = await currency({ initial_grant: 100 })
    const { server, id } = await someone()
    const header = key()
    const answers = await Promise.all(Array.from({ length: 20 }, () => spend(server, code, 10, header)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
    expect((await ledger(id, code)).at(-1)?.balance_after).toBe(90)
  })

  test('is not used up by a refusal', async () => {
    const code = await currency()
    const { server, id } = await someone()
    const header = key()
    expectRefusal(await spend(server, code, 10, header), 409, 'INSUFFICIENT_FUNDS')
    await give(id, code, 10)
    expect((await spend(server, code, 10, header)).status).toBe(201)
  })

  test('is 1 to 255 printable ASCII characters', async () => {
    const code = await currency({ initial_grant: 100 })
    const { server, id } = await someone()
    expect((await spend(server, code, 1, key('x'.repeat(255)))).status).toBe(201)
    for (const bad of ['x'.repeat(256), 'caf\u00e9', 'a\tb'])
      expectRefusal(await spend(server, code, 1, key(bad)), 400, 'VALIDATION_ERROR', { field: 'Idempotency-Key' })
    const body = { app_user_id: id, adjustments: [{ currency_code: code, amount: 1 }], reason: 'x' }
    expectRefusal(await project.admin.post('/currencies/transactions', body, key('\u00e9')), 400, 'VALIDATION_ERROR')
  })
})

describe('a credit', () => {
  test("is for server keys: an app's key is refused, and changes nothing", async () => {
    const code = await currency()
    const { user, id, server } = await someone()
    const body = { amount: 5, reason: 'level_finished' }
    expectRefusal(await user.post(`/client/currencies/${code}/credit`, body), 403, 'SERVER_KEY_REQUIRED')
    expect(await ledger(id, code)).toEqual([])
    const answer = await server.post(`/client/currencies/${code}/credit`, body, key('k1'))
    expect([answer.status, answer.data.balance, answer.data.transaction.kind]).toEqual([201, 5, 'credit'])
    const again = await server.post(`/client/currencies/${code}/credit`, body, key('k1'))
    expect([again.status, again.body]).toEqual([200, answer.body])
    const other = { amount: 6, reason: 'level_finished' }
    expectRefusal(await server.post(`/client/currencies/${code}/credit`, other, key('k1')), 409, 'IDEMPOTENCY_CONFLICT')
  })

  test('up to max_balance, not one more', async () => {
    const code = await currency({ max_balance: 100 })
    const { server, id } = await someone()
    const credit = (amount: unknown) => server.post(`/client/currencies/${code}/credit`, { amount, reason: 'x' })
    expect((await credit(99)).status).toBe(201)
    expectRefusal(await credit(2), 409, 'BALANCE_LIMIT_EXCEEDED', {
      currency_code: code,
      balance: 99,
      max_balance: 100,
    })
    expect((await credit(1)).data.balance).toBe(100)
    expectRefusal(await credit(1), 409, 'BALANCE_LIMIT_EXCEEDED')
    expectRefusal(await credit(0), 400, 'VALIDATION_ERROR')
    expectRefusal(await server.post('/client/currencies/NOPE/credit', { amount: 1, reason: 'x' }), 404, 'NOT_FOUND')
    expectRefusal(await server.post(`/client/currencies/${code}/credit`, '1'), 400, 'INVALID_BODY')
    expect(await ledger(id, code)).toHaveLength(2)
  })

  test('twenty at once beside max_balance: exactly as many as fit', async () => {
    const code = await currency({ max_balance: 70 })
    const { server, id } = await someone()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => server.post(`/client/currencies/${code}/credit`, { amount: 10, reason: 'x' })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(7)
    expect((await ledger(id, code)).at(-1)?.balance_after).toBe(70)
  })

  test.each([['soon'], ['2020-01-01T00:00:00Z'], ['infinity'], [''], [5]])(
    'that expires at %s is refused',
    async (expires_at) => {
      const code = await currency()
      const { server } = await someone()
      const body = { amount: 1, reason: 'x', expires_at }
      const answer = await server.post(`/client/currencies/${code}/credit`, body)
      expectRefusal(answer, 400, 'VALIDATION_ERROR', { field: 'expires_at' })
    },
  )
})
