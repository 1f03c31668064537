import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { createEconomy } from '#test/support/currencies.ts'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

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

describe('what happens is told', () => {
  test('as svc.currency.credited and svc.currency.debited', async () => {
    const code = await currency()
    const { user, id } = await someone()
    const credit = await give(id, code, 9)
    await spend(user, code, 4)
    const events = await project.sql(
      `select event_name, properties from app.engagement_events where app_user_id = $1 and event_name like 'svc.currency.%' order by id`,
      [id],
    )
    expect(events).toEqual([
      {
        event_name: 'svc.currency.credited',
        properties: {
          transaction_id: credit.id,
          currency_code: code,
          amount: 9,
          balance: 9,
          reason: 'test',
          source_type: 'admin',
          source_id: credit.source_id,
        },
      },
      {
        event_name: 'svc.currency.debited',
        properties: expect.objectContaining({ amount: 4, balance: 5, reason: 'hint', source_type: 'spend' }),
      },
    ])
  })

  test('in the answer of the event that caused it, several rewards as one sum', async () => {
    const code = await currency()
    const name = `milestones_${code.toLowerCase()}`
    const reward = { currencies: [{ currency_code: code, amount: 10 }] }
    for (const key of [`${name}_a`, `${name}_b`]) {
      const made = await project.admin.post('/streaks', {
        key,
        name: key,
        qualifying_event: name,
        milestones: [{ count: 1, reward }],
      })
      expect(made.status, made.text).toBe(201)
    }
    const { user, id } = await someone()
    const answer = await user.post('/client/events', { event_name: name })
    expect(answer.data.effects.currencies).toEqual([{ code, amount: 20, balance: 20 }])
    expect((await ledger(id, code)).map(({ source_type, amount }) => [source_type, amount])).toEqual([
      ['reward', 10],
      ['reward', 10],
    ])
  })
})

describe('a reward', () => {
  const reward = async (userId: string, currencies: unknown, source: string = randomUUID()) =>
    (
      await project.sql(`select internal.grant_reward($1, $2, 'test', $3) as outcome`, [
        userId,
        JSON.stringify({ currencies }),
        source,
      ])
    )[0].outcome?.currencies

  test('gives each of its currencies once for its source', async () => {
    const [a, b] = [await currency(), await currency()]
    const { id } = await someone()
    const parts = [
      { currency_code: b, amount: 2 },
      { currency_code: a, amount: 1 },
      { currency_code: a, amount: 5 },
    ]
    expect(await reward(id, parts, 'one')).toMatchObject({ given: true })
    expect(await reward(id, parts, 'one')).toBeUndefined()
    expect((await ledger(id, a)).map(({ amount, source_id }) => [amount, source_id])).toEqual([
      [1, 'test:one'],
      [5, 'test:one:2'],
    ])
    expect(await ledger(id, b)).toHaveLength(1)
  })

  test('that cannot be given is recorded with its reason, gives the rest, and fails nothing', async () => {
    const [good, full] = [await currency(), await currency({ max_balance: 3 })]
    const { id } = await someone()
    const outcome = await reward(id, [
      { currency_code: good, amount: 7 },
      { currency_code: full, amount: 4 },
      { currency_code: 'NOPE', amount: 4 },
      { currency_code: good, amount: -4 },
      { currency_code: good, amount: 1e300 },
      { currency_code: good, amount: '5' },
      { currency_code: good },
      5,
      null,
    ])
    expect(outcome.given).toBe(true)
    expect(outcome.currencies.filter((part: { given: number }) => part.given > 0)).toEqual([
      { currency_code: good, given: 7, balance: 7 },
    ])
    expect(outcome.currencies).toHaveLength(9)
    expect(await ledger(id, good)).toHaveLength(1)
    expect(await ledger(id, full)).toEqual([])
    for (const odd of [{}, 'x', 5, null]) expect((await reward(id, odd))?.given).not.toBe(true)
  })
})

describe('the ledger', () => {
  test("is paged newest first, each row once, and is the caller's own", async () => {
    const code = await currency()
    const [one, two] = [await someone(), await someone()]
    for (let n = 1; n <= 5; n += 1) await give(one.id, code, n)
    await give(two.id, code, 99)
    const path = `/client/currencies/${code}/transactions`
    const seen: number[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const answer: Answer = await one.user.get(`${path}?limit=2${cursor && `&cursor=${cursor}`}`)
      expect([answer.status, answer.body.pagination.total]).toEqual([200, null])
      seen.push(...answer.data.map((row: { amount: number }) => row.amount))
      cursor = answer.body.pagination.next_cursor
    }
    expect(seen).toEqual([5, 4, 3, 2, 1])
    expect((await two.user.get(path)).data).toHaveLength(1)
    expectRefusal(await one.user.get('/client/currencies/NOPE/transactions'), 404, 'NOT_FOUND')
    for (const bad of ['x', '%20', 'AAAA', 'A'.repeat(101)])
      expectRefusal(await one.user.get(`${path}?cursor=${bad}`), 400, 'INVALID_INPUT')
    expectRefusal(await one.user.get(`${path}?limit=0`), 400, 'INVALID_INPUT')
  })

  test('is only ever added to, and balances are written by nobody but the functions that check their caller', async () => {
    const code = await currency({ initial_grant: 10 })
    const { id } = await someone()
    await give(id, code, 5)
    await expect(
      project.sql('update app.currency_transactions set amount = 1000 where app_user_id = $1', [id]),
    ).rejects.toThrow(/only ever added to/)
    const claims = { 'app.user_id': id, 'app.caller': 'user' }
    const attacks = [
      `update app.currency_balances set balance = 1000`,
      `insert into app.currency_balances (app_user_id, currency_code, balance) values ('${id}', '${code}', 9)`,
      `insert into app.currency_transactions (app_user_id, currency_code, amount, balance_after, reason, source_type, source_id)
       values ('${id}', '${code}', 9, 9, 'x', 'admin', 'x')`,
      `delete from app.currency_transactions`,
      `update app.currency_lots set expires_at = 'infinity'`,
      `delete from app.ledger_requests`,
      `select internal.currency_transact_many('${id}', '[{"currency_code": "${code}", "amount": 9}]', 'x', 'admin', 'x')`,
      `select internal.currency_apply('${id}', c, 9, 'x', 'admin', 'x') from app.currencies c`,
      `select internal.reward__currencies('${id}', '[]', 'x', 'x')`,
    ]
    for (const role of ['app_user', 'app_admin', 'app_server', 'app_worker', 'app_anon'] as const)
      for (const attack of attacks) await expect(project.as(role, claims, attack)).rejects.toThrow(/permission denied/)
    expect((await ledger(id, code)).at(-1)?.balance_after).toBe(15)
  })

  test('the functions ask who calls, also when they are reached by SQL', async () => {
    const code = await currency({ initial_grant: 10, client_spendable: false })
    const { id } = await someone()
    const as = (caller: string, text: string) =>
      project.as('app_user', { 'app.user_id': id, 'app.caller': caller }, text, [code])
    await expect(as('user', `select internal.currency_transact($1, 9, 'x', '{}', null, null, null)`)).rejects.toThrow(
      /Only a server key/,
    )
    await expect(as('user', `select api.currency_credit($1, 9, 'x')`)).rejects.toThrow(/Only a server key/)
    await expect(as('user', `select internal.currency_transact($1, -9, 'x', '{}', null, null, null)`)).rejects.toThrow(
      /may not spend/,
    )
    for (const caller of ['none', 'client_key', 'developer', 'server_key'])
      await expect(
        as(caller, `select internal.currency_transact($1, -9, 'x', '{}', null, null, null)`),
      ).rejects.toThrow(/not by/)
    for (const call of [
      `select internal.currency_adjust('${id}', '[]', 'x', '{}', null, null, null)`,
      `select internal.currency_reverse('${id}', null, null)`,
    ])
      await expect(project.as('app_admin', { 'app.caller': 'user', 'app.user_id': id }, call)).rejects.toThrow(/not by/)
    await expect(project.as('app_worker', { 'app.caller': 'user' }, 'select api.currencies_check()')).rejects.toThrow(
      /not by/,
    )
    expect(await ledger(id, code)).toEqual([])
  })

  test("of one user is not another's to read", async () => {
    const code = await currency()
    const [one, two] = [await someone(), await someone()]
    await give(one.id, code, 5, { expires_at: '2099-01-01T00:00:00Z' })
    for (const table of ['currency_balances', 'currency_transactions', 'currency_lots']) {
      const rows = (id: string) =>
        project.as('app_user', { 'app.user_id': id }, `select from app.${table} where currency_code = $1`, [code])
      expect([(await rows(one.id)).length, (await rows(two.id)).length]).toEqual([1, 0])
    }
    expect((await balance(two.user, code)).balance).toBe(0)
  })
})
