import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { begin, eventsIn, finished, hello, json, openStream, startAi, usual } from '#test/support/ai.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** What calls may cost: budgets that are reserved and booked, rate limits, prices in currency. */
const { provider, harness, project, admin, prompt } = await startAi()
const user = await project.user()
afterEach(() => harness.setTime(null))
const invoke = (name: string, body: object = hello, as: any = user) =>
  as.post(`/client/ai/prompts/${name}/invoke`, body)
const budget = async (name: string, budget_usd: number | null, budget_period?: string) => {
  const answer = await admin.put(`/ai/prompts/${name}/budget`, {
    budget_usd,
    ...(budget_period ? { budget_period } : {}),
  })
  expect(answer.status, answer.text).toBe(200)
  return answer.data
}
const spend = async (name: string, period?: string) =>
  (await admin.get(`/ai/prompts/${name}/spend${period ? `?period=${period}` : ''}`)).data
/** gpt-4o-mini: 12 tokens in, 34 out. */
const callUsd = (12 * 0.15 + 34 * 0.6) / 1e6

describe('a budget', () => {
  test('is read, set, cleared, and keeps its period', async () => {
    const name = await prompt()
    const none = {
      budget_usd: null,
      budget_period: 'monthly',
      period_spend_usd: 0,
      remaining_usd: null,
      exceeded: false,
    }
    expect((await admin.get(`/ai/prompts/${name}/budget`)).data).toEqual(none)
    expect(await budget(name, 12.5, 'daily')).toEqual({
      ...none,
      budget_usd: 12.5,
      budget_period: 'daily',
      remaining_usd: 12.5,
    })
    expect(await budget(name, 3)).toMatchObject({ budget_usd: 3, budget_period: 'daily' })
    expect(await budget(name, 0)).toMatchObject({ remaining_usd: 0, exceeded: true })
    expect(await budget(name, null)).toEqual({ ...none, budget_period: 'daily' })
    for (const [body, field] of [
      [{}, 'budget_usd'],
      [{ budget_usd: -1 }, 'budget_usd'],
      [{ budget_usd: '5' }, 'budget_usd'],
      [{ budget_usd: 1e13 }, 'budget_usd'],
      [{ budget_usd: 1e-20 }, 'budget_usd'],
      [{ budget_usd: 1, budget_period: 'weekly' }, 'budget_period'],
    ] as const)
      expectRefusal(await admin.put(`/ai/prompts/${name}/budget`, body), 400, 'INVALID_INPUT', field)
    expectRefusal(await admin.put('/ai/prompts/none/budget', { budget_usd: 1 }), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/ai/prompts/none/budget'), 404, 'NOT_FOUND')
    expectRefusal(await admin.get('/ai/prompts/none/spend'), 404, 'NOT_FOUND')
    expectRefusal(await admin.get(`/ai/prompts/${name}/spend?period=weekly`), 400, 'INVALID_INPUT', 'period')
    // a new version of the prompt keeps it
    await budget(name, 7)
    await admin.post('/ai/prompts', { name, provider: 'openai', model: 'gpt-4o' })
    expect((await admin.get(`/ai/prompts/${name}/budget`)).data.budget_usd).toBe(7)
  })

  test('counts what was used, by day, by month and in all', async () => {
    provider.answer()
    harness.setTime('2026-10-30T23:30:00Z')
    const name = await prompt()
    await budget(name, 1)
    const server = project.onBehalfOf(user.id)
    expect((await invoke(name, hello, server)).status).toBe(200)
    expect(await spend(name)).toEqual({
      name,
      period: 'monthly',
      period_start: '2026-10-01T00:00:00.000Z',
      spend_usd: expect.closeTo(callUsd, 12),
      budget_usd: 1,
      exceeded: false,
    })
    harness.setTime('2026-10-31T00:30:00Z')
    expect((await invoke(name, hello, server)).status).toBe(200)
    expect(await spend(name, 'daily')).toMatchObject({
      period_start: '2026-10-31T00:00:00.000Z',
      spend_usd: expect.closeTo(callUsd, 12),
    })
    expect((await spend(name, 'monthly')).spend_usd).toBeCloseTo(2 * callUsd, 12)
    harness.setTime('2026-11-01T00:00:00Z')
    expect((await spend(name, 'monthly')).spend_usd).toBe(0)
    expect(await spend(name, 'total')).toMatchObject({
      period_start: '2026-10-30T23:30:00.000Z',
      spend_usd: expect.closeTo(2 * callUsd, 12),
    })
  })

  test('refuses before the provider is called, and says to administrators what is missing', async () => {
    provider.answer()
    const name = await prompt({ max_tokens: 1000 })
    // 1000 tokens of output cost 0.0006, and Hello some more
    await budget(name, 0.0006)
    const refused = await invoke(name)
    expectRefusal(refused, 429, 'ai_budget_exceeded')
    expect(refused.error?.details).toBeUndefined()
    const told = await admin.post(`/ai/prompts/${name}/invoke`, hello)
    expectRefusal(told, 429, 'ai_budget_exceeded', { budget_usd: 0.0006, period_spend_usd: 0, reserved_usd: 0 })
    expect(told.error?.details.call_usd).toBeGreaterThan(0.0006)
    expect(provider.asked).toHaveLength(0)
    // a smaller call fits
    expect((await invoke(name, { ...hello, max_tokens: 100 })).status).toBe(200)
    await budget(name, 0.000001, 'total')
    expect((await admin.get(`/ai/prompts/${name}/budget`)).data).toMatchObject({ exceeded: true, remaining_usd: 0 })
  })

  test('is not exceeded by 50 callers at once', async () => {
    const name = await prompt({ max_tokens: 1000 })
    const callers = await Promise.all(Array.from({ length: 10 }, () => project.user()))
    let most = 0
    let open = 0
    const waiting: (() => void)[] = []
    provider.answer((asked, response) => {
      open += 1
      most = Math.max(most, open)
      waiting.push(() => {
        open -= 1
        // each uses all that it may
        json(response, 200, {
          choices: [{ message: { content: 'x' }, finish_reason: 'length' }],
          usage: { prompt_tokens: 21, completion_tokens: asked.body.max_completion_tokens },
        })
      })
    })
    // 21 bytes in (16 for the message) and 1000 tokens out: five calls and no sixth
    const each = (21 * 0.15 + 1000 * 0.6) / 1e6
    await budget(name, each * 5.5)
    const calls = Array.from({ length: 50 }, (_, index) => invoke(name, hello, callers[index % 10]))
    const refusals: number[] = []
    for (const call of calls) void call.then((answer: any) => answer.status === 429 && refusals.push(answer.status))
    await expect.poll(() => refusals.length, { timeout: 60_000 }).toBe(45)
    expect([open, most]).toEqual([5, 5])
    for (const answer of waiting) answer()
    const statuses = (await Promise.all(calls)).map(({ status }: any) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(5)
    expect((await spend(name)).spend_usd).toBeCloseTo(each * 5, 10)
    expect((await spend(name)).spend_usd).toBeLessThanOrEqual(each * 5.5)
  }, 120_000)

  test('keeps the reservation of a call that its server has not finished, until its cost is known', async () => {
    const name = await prompt({ max_tokens: 1000 })
    await budget(name, 0.0007)
    const waiting: ServerResponse[] = []
    provider.answer((_asked, response) => waiting.push(response))
    const controller = new AbortController()
    void fetch(`${harness.url}/v1/client/ai/prompts/${name}/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...user.headers },
      body: JSON.stringify(hello),
      signal: controller.signal,
    }).catch(() => undefined)
    await expect.poll(() => provider.asked.length).toBe(1)
    expectRefusal(await invoke(name), 429, 'ai_budget_exceeded')
    // a server that crashed may have crashed after the provider's answer, which was paid for
    harness.advance(15 * 60)
    expectRefusal(await invoke(name, hello, await project.user()), 429, 'ai_budget_exceeded')
    await project.drain()
    const { data } = await admin.get(`/ai/invocations?prompt=${name}&status=failed`)
    expect(data).toMatchObject([{ error_code: 'ABANDONED', is_estimated: true }])
    expect(data[0].cost_usd).toBeGreaterThan(0.0006)
    expectRefusal(await invoke(name, hello, await project.user()), 429, 'ai_budget_exceeded')
    // a server that was merely slow books its cost after all, in place of the reservation
    controller.abort()
    await expect
      .poll(async () => (await admin.get(`/ai/invocations?prompt=${name}&status=cancelled`)).data.length)
      .toBe(1)
    expect(
      await project.sql(
        'select calls::int from app.ai_prompt_days d join app.ai_prompts p on p.id = d.prompt_id where p.name = $1',
        [name],
      ),
    ).toEqual([{ calls: 1 }])
    expect((await spend(name)).spend_usd).toBeLessThan(0.0006)
    const admitted = invoke(name, hello, await project.user())
    await expect.poll(() => provider.asked.length).toBe(2)
    await usual(provider.asked[1]!, waiting[1]!)
    expect((await admitted).status).toBe(200)
  })
})

describe('a rate limit', () => {
  test('by user, in its window, with Retry-After', async () => {
    provider.answer()
    harness.setTime('2026-11-22T10:00:00Z')
    const [one, other] = [await project.user(), await project.user()]
    const name = await prompt({ rate_limit: { window: 60, max: 2 } })
    for (let call = 0; call < 2; call += 1) expect((await invoke(name, hello, one)).status).toBe(200)
    const refused = await invoke(name, hello, one)
    expectRefusal(refused, 429, 'RATE_LIMITED', { retry_after_seconds: 60 })
    expect(refused.headers.get('retry-after')).toBe('60')
    expect((await invoke(name, hello, other)).status).toBe(200)
    expect((await admin.post(`/ai/prompts/${name}/invoke`, hello)).status).toBe(200)
    expect((await admin.post(`/ai/prompts/${name}/invoke`, hello)).status).toBe(200)
    expectRefusal(await admin.post(`/ai/prompts/${name}/invoke`, hello), 429, 'RATE_LIMITED')
    harness.advance(60)
    expect((await invoke(name, hello, one)).status).toBe(200)
  })

  test('by address and by project', async () => {
    provider.answer()
    const [one, other] = [await project.user(), await project.user()]
    const byAddress = await prompt({ rate_limit: { window: 60, max: 1, key: 'ip' } })
    const from = (ip: string) => ({
      post: (path: string, body: object) => one.post(path, body, { 'x-forwarded-for': ip }),
    })
    expect((await invoke(byAddress, hello, from('10.1.1.1'))).status).toBe(200)
    expectRefusal(await invoke(byAddress, hello, from('10.1.1.1')), 429, 'RATE_LIMITED')
    expect((await invoke(byAddress, hello, from('10.1.1.2'))).status).toBe(200)
    const byProject = await prompt({ rate_limit: { window: 60, max: 1, key: 'project' } })
    expect((await invoke(byProject, hello, one)).status).toBe(200)
    expectRefusal(await invoke(byProject, hello, other), 429, 'RATE_LIMITED')
  })

  test('is exact for 20 callers at once', async () => {
    provider.answer()
    const name = await prompt({ rate_limit: { window: 60, max: 7, key: 'project' } })
    const callers = await Promise.all(Array.from({ length: 20 }, () => project.user()))
    const statuses = (await Promise.all(callers.map((caller) => invoke(name, hello, caller)))).map(
      ({ status }) => status,
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(7)
  })
})

describe('a price in currency', async () => {
  const code = 'COINS'
  await admin.post('/currencies', { code, name: 'Coins' })
  const give = async (app_user_id: string, amount: number) => {
    const adjustments = [{ currency_code: code, amount }]
    const answer = await admin.post('/currencies/transactions', { app_user_id, adjustments, reason: 'test' })
    expect(answer.status, answer.text).toBe(201)
  }
  const balance = (id: string) =>
    project
      .sql('select balance::int from app.currency_balances where app_user_id = $1 and currency_code = $2', [id, code])
      .then(([row]) => row?.balance ?? 0)

  test('is taken first, and given back when the provider fails', async () => {
    const name = await prompt({ cost: { currency_code: code, amount: 30 } })
    const payer = await project.user()
    provider.answer()
    expectRefusal(await invoke(name, hello, payer), 409, 'INSUFFICIENT_FUNDS')
    expect(provider.asked).toHaveLength(0)
    await give(payer.id, 100)
    expect((await invoke(name, hello, payer)).status).toBe(200)
    expect(await balance(payer.id)).toBe(70)
    provider.answer((_asked, response) => json(response, 400, {}))
    expectRefusal(await invoke(name, hello, payer), 502, 'PROVIDER_FAILED')
    expect(await balance(payer.id)).toBe(70)
    const ledger = await project.sql(
      `select amount::int, reason from app.currency_transactions where app_user_id = $1 and reason in ('ai', 'reversal') order by id`,
      [payer.id],
    )
    expect(ledger).toEqual([
      { amount: -30, reason: 'ai' },
      { amount: -30, reason: 'ai' },
      { amount: 30, reason: 'reversal' },
    ])
    // administrators pay nothing
    provider.answer()
    expect((await admin.post(`/ai/prompts/${name}/invoke`, hello)).status).toBe(200)
    expect((await user.get('/client/ai/prompts')).data.find((one: any) => one.name === name).cost).toEqual({
      currency_code: code,
      amount: 30,
    })
  })

  test('of a stream that breaks is given back, of one that its reader leaves is not', async () => {
    const name = await prompt({ cost: { currency_code: code, amount: 30 } })
    const payer = await project.user()
    await give(payer.id, 100)
    provider.answer((_asked, response) => {
      begin(response)
      response.end('data: {"choices":[{"delta":{"content":"one"}}]}\n\n')
    })
    const events = eventsIn((await invoke(name, { ...hello, stream: true }, payer)).text)
    expect(events.map(({ event }) => event)).toEqual(['delta', 'error'])
    expect(await balance(payer.id)).toBe(100)
    provider.answer((_asked, response) => {
      begin(response)
      response.write('data: {"choices":[{"delta":{"content":"one"}}]}\n\n')
    })
    const stream = await openStream(harness, `/client/ai/prompts/${name}/invoke`, payer.headers, {
      ...hello,
      stream: true,
    })
    await stream.next()
    stream.hangUp()
    expect(await finished(project, name)).toMatchObject({ status: 'cancelled' })
    expect(await balance(payer.id)).toBe(70)
  })

  test('of a call whose server crashed is given back once, by a worker', async () => {
    const name = await prompt({ cost: { currency_code: code, amount: 30 } })
    const payer = await project.user()
    await give(payer.id, 30)
    await project.as(
      'app_worker',
      { 'app.caller': 'user', 'app.user_id': payer.id, 'app.clock': harness.now().toISOString() },
      `select api.ai_begin($1, true, 'invoke', '{}', 'Hello', 5, 0, true, null, '10.0.0.1', true, '{}')`,
      [name],
    )
    expect(await balance(payer.id)).toBe(0)
    await project.drain()
    expect(await balance(payer.id)).toBe(0)
    harness.advance(15 * 60 + 1)
    await project.drain()
    expect(await balance(payer.id)).toBe(30)
    expect(await finished(project, name)).toMatchObject({ status: 'failed', error_code: 'ABANDONED' })
    // its server comes to its end after all
    const [{ id }] = await project.sql('select id from app.ai_invocations where prompt = $1', [name])
    await project.as(
      'app_worker',
      { 'app.caller': 'user', 'app.user_id': payer.id },
      `select api.ai_finish($1, 'failed', 1, 1, false)`,
      [id],
    )
    expect(await balance(payer.id)).toBe(30)
  })
})

test('twenty users who pay at once pay once each, and a rotated key is used at once', async () => {
  provider.answer(usual)
  const name = await prompt()
  await admin.post('/ai/providers', { name: 'openai', api_key: 'another-key-0123456789' })
  await invoke(name)
  expect(provider.asked[0]?.headers.authorization).toBe('Bearer another-key-0123456789')
  const answers = await Promise.all(Array.from({ length: 20 }, () => invoke(name)))
  const paid = answers.filter(({ status }: any) => status === 200).length
  expect((await spend(name)).spend_usd).toBeCloseTo(callUsd * (paid + 1), 10)
})
