import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { createEconomy } from '#test/support/currencies.ts'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** What changes of balances record: events, rewards, and the rows of the ledger. */
const harness = await startHarness()
const { project, currency, someone, give, balance, spend, ledger } = await createEconomy(harness)

afterEach(() => harness.setTime(null))

describe('events of a balance are emitted', () => {
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
      `select api.currency_transaction_reverse('${id}', null, null)`,
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
