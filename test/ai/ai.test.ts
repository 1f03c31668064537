import { describe, expect, inject, test } from 'vitest'
import { createSecrets } from '#server/secrets.ts'
import { hello, json, startAi } from '#test/support/ai.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** Providers and prompts as administrators define them, their versions, evaluation, and the log. */
const { provider, harness, project, admin, prompt } = await startAi()

describe('a provider', () => {
  test('is registered, listed without its key, rotated and revoked', async () => {
    const other = await harness.project()
    const made = await other.admin.post('/ai/providers', { name: 'openai', api_key: 'sk-proj-abcdefghijklmnop' })
    expect([made.status, made.data]).toEqual([
      201,
      { name: 'openai', configured: true, api_key_preview: 'sk-pro…mnop' },
    ])
    const rotated = await other.admin.post('/ai/providers', { name: 'openai', api_key: 'short-key' })
    expect([rotated.status, rotated.data.api_key_preview]).toEqual([200, '…ey'])
    expect((await other.admin.get('/ai/providers')).data).toEqual([rotated.data])
    expect((await other.admin.delete('/ai/providers/openai')).data).toEqual({ deleted: true })
    expectRefusal(await other.admin.delete('/ai/providers/openai'), 404, 'NOT_FOUND')
    expect((await other.admin.get('/ai/providers')).data).toEqual([])
  })

  test('has its key encrypted for this project and provider alone', async () => {
    const [{ api_key_sealed }] = await project.sql(`select api_key_sealed from app.ai_providers where name = 'openai'`)
    expect(api_key_sealed).not.toContain('key-of-openai')
    const secrets = createSecrets(inject('secretsKey'))
    expect(secrets.decrypt(`ai provider ${project.id} openai`, api_key_sealed)).toBe('key-of-openai-0123456789abcdef')
    expect(() => secrets.decrypt(`ai provider ${project.id} mistral`, api_key_sealed)).toThrow()
    const audit = (await admin.get('/audit-events?limit=200')).text
    expect(audit).toContain('ai_providers.create')
    expect(audit).not.toMatch(/key-of-|0123…|cdef/)
  })

  test.for<[object, string]>([
    [{ name: 'echo', api_key: 'x' }, 'name'],
    [{ name: 'cohere', api_key: 'x' }, 'name'],
    [{ name: 'openai' }, 'api_key'],
    [{ name: 'openai', api_key: '' }, 'api_key'],
    [{ name: 'openai', api_key: 'with space' }, 'api_key'],
    [{ name: 'openai', api_key: 'x\r\ny' }, 'api_key'],
    [{ name: 'openai', api_key: 'x'.repeat(501) }, 'api_key'],
  ])('case %# is refused', async ([body, field]) => {
    expectRefusal(await admin.post('/ai/providers', body), 400, 'INVALID_INPUT', field)
  })

  test('with prompts is not revoked, also when one is being registered', async () => {
    const other = await harness.project()
    await other.admin.post('/ai/providers', { name: 'openai', api_key: 'sk-1234567890' })
    await other.admin.post('/ai/prompts', { name: 'greeter', provider: 'openai', model: 'm' })
    expectRefusal(await other.admin.delete('/ai/providers/openai'), 409, 'PROVIDER_HAS_PROMPTS', {
      prompts: ['greeter'],
    })
    await other.admin.delete('/ai/prompts/greeter')
    const writer = await openTransaction(other, 'app_admin', { 'app.caller': 'developer' })
    await writer.query(`select api.ai_prompt_put('{"name":"late","provider":"openai","model":"m"}', false)`)
    const revoked = other.admin.delete('/ai/providers/openai')
    await untilBlocked(other)
    await writer.commit()
    expectRefusal(await revoked, 409, 'PROVIDER_HAS_PROMPTS', { prompts: ['late'] })
  })
})

describe('a prompt', () => {
  const defaults = {
    system_prompt: null,
    max_tokens: 4096,
    rate_limit: null,
    client_invokable: false,
    description: null,
    log_payloads: false,
    cost: null,
  }

  test('is registered, its next version replaces it, and former ones stay', async () => {
    const first = await admin.post('/ai/prompts', { name: 'greeter', provider: 'openai', model: 'gpt-4o-mini' })
    expect([first.status, first.data]).toEqual([
      200,
      { name: 'greeter', version: 1, provider: 'openai', model: 'gpt-4o-mini', client_invokable: false },
    ])
    const row = { name: 'greeter', version: 1, provider: 'openai', model: 'gpt-4o-mini', ...defaults }
    const times = { created_at: expect.any(String), updated_at: expect.any(String) }
    expect((await admin.get('/ai/prompts/greeter')).data).toEqual({ ...row, ...times })
    const full = {
      provider: 'anthropic',
      model: 'claude-haiku-4-5',
      system_prompt: 'Hi {{x}}',
      max_tokens: 7,
      rate_limit: { window: 60, max: 5, key: 'ip' },
      client_invokable: true,
      description: 'Greets',
      log_payloads: true,
      cost: null,
    }
    expect((await admin.post('/ai/prompts', { name: 'greeter', ...full })).data.version).toBe(2)
    expect((await admin.get('/ai/prompts/greeter')).data).toEqual({ name: 'greeter', version: 2, ...full, ...times })
    expect(
      (
        await admin.post('/ai/prompts', {
          name: 'greeter',
          provider: 'openai',
          model: 'm',
          rate_limit: { window: 1, max: 1 },
        })
      ).data.version,
    ).toBe(3)
    const { data, total } = (await admin.get('/ai/prompts/greeter/versions')).body
    expect(total).toBe(3)
    expect(data.map(({ version }: any) => version)).toEqual([3, 2, 1])
    expect(data[1]).toEqual({ version: 2, ...full, created_at: expect.any(String) })
    expect(data[0].rate_limit).toEqual({ window: 1, max: 1, key: 'user' })
    // rolled back is rolled forward
    expect((await admin.post('/ai/prompts/greeter/rollback', { version: 2 })).data).toEqual({
      name: 'greeter',
      version: 4,
      provider: 'anthropic',
      model: 'claude-haiku-4-5',
      client_invokable: true,
    })
    expect((await admin.get('/ai/prompts/greeter')).data).toMatchObject({ version: 4, ...full })
    expect((await admin.delete('/ai/prompts/greeter')).data).toEqual({ name: 'greeter' })
    for (const path of ['', '/versions', '/budget', '/spend'])
      expectRefusal(await admin.get(`/ai/prompts/greeter${path}`), 404, 'NOT_FOUND')
    expectRefusal(await admin.delete('/ai/prompts/greeter'), 404, 'NOT_FOUND')
    expect((await admin.post('/ai/prompts', { name: 'greeter', provider: 'openai', model: 'm' })).data.version).toBe(1)
  })

  test('is rolled back only to a version and a provider that are there', async () => {
    const name = await prompt({ provider: 'mistral' })
    expectRefusal(await admin.post(`/ai/prompts/${name}/rollback`, { version: 2 }), 404, 'NOT_FOUND')
    expectRefusal(await admin.post('/ai/prompts/none/rollback', { version: 1 }), 404, 'NOT_FOUND')
    expectRefusal(
      await admin.post(`/ai/prompts/${name}/rollback`, { version: 'x' }),
      400,
      'VALIDATION_ERROR',
      'version',
    )
    await project.sql(`delete from app.ai_providers where name = 'mistral'`)
    expectRefusal(await admin.post(`/ai/prompts/${name}/rollback`, { version: 1 }), 409, 'PROVIDER_NOT_REGISTERED')
    await admin.post('/ai/providers', { name: 'mistral', api_key: 'key-of-mistral-0123456789abcdef' })
  })

  test.for<[object, string]>([
    [{ name: 'Greeter' }, 'name'],
    [{ name: `a${'b'.repeat(128)}` }, 'name'],
    [{ name: undefined }, 'name'],
    [{ provider: 'x' }, 'provider'],
    [{ provider: undefined }, 'provider'],
    [{ model: '' }, 'model'],
    [{ model: 'x'.repeat(201) }, 'model'],
    [{ provider: 'google', model: 'models/..' }, 'model'],
    [{ system_prompt: 'x'.repeat(100_001) }, 'system_prompt'],
    [{ system_prompt: '{{x}}'.repeat(101) }, 'system_prompt'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ max_tokens: 200_001 }, 'max_tokens'],
    [{ max_tokens: 1.5 }, 'max_tokens'],
    [{ client_invokable: 'yes' }, 'client_invokable'],
    [{ log_payloads: 1 }, 'log_payloads'],
    [{ description: 'x'.repeat(2001) }, 'description'],
    [{ rate_limit: { window: 0, max: 1 } }, 'rate_limit.window'],
    [{ rate_limit: { window: 86_401, max: 1 } }, 'rate_limit.window'],
    [{ rate_limit: { window: 1, max: 0 } }, 'rate_limit.max'],
    [{ rate_limit: { window: 1, max: 1, key: 'device' } }, 'rate_limit.key'],
    [{ cost: { currency_code: 'NONE', amount: 1 } }, 'cost.currency_code'],
    [{ cost: { currency_code: 'NONE', amount: 0 } }, 'cost.amount'],
  ])('case %# is refused', async ([fields, field]) => {
    const body = { name: 'p', provider: 'openai', model: 'm', ...fields }
    expectRefusal(await admin.post('/ai/prompts', body), 400, 'INVALID_INPUT', field)
  })

  test('at most 500, listed by name in pages', async () => {
    const other = await harness.project({ environment: 'development' })
    await other.sql(
      `insert into app.ai_prompts (name, provider, model) select 'p' || lpad(n::text, 3, '0'), 'echo', 'm' from generate_series(1, 500) n`,
    )
    expectRefusal(
      await other.admin.post('/ai/prompts', { name: 'one-more', provider: 'echo', model: 'm' }),
      409,
      'LIMIT_REACHED',
      { limit: 500 },
    )
    expect((await other.admin.post('/ai/prompts', { name: 'p001', provider: 'echo', model: 'm' })).data.version).toBe(2)
    const { data, total, offset, limit } = (await other.admin.get('/ai/prompts?limit=2&offset=1')).body
    expect([data.map(({ name }: any) => name), total, offset, limit]).toEqual([['p002', 'p003'], 500, 1, 2])
  })

  test('keeps its newest 1000 versions', async () => {
    const name = await prompt()
    await project.sql(`update app.ai_prompts set version = 1000 where name = $1`, [name])
    await admin.post('/ai/prompts', { name, provider: 'openai', model: 'm' })
    expect((await admin.get(`/ai/prompts/${name}/versions`)).data.map(({ version }: any) => version)).toEqual([1001])
  })

  test('twenty versions at once are twenty versions', async () => {
    const name = await prompt()
    await Promise.all(
      Array.from({ length: 20 }, () => admin.post('/ai/prompts', { name, provider: 'openai', model: 'm' })),
    )
    expect((await admin.get(`/ai/prompts/${name}/versions`)).body.total).toBe(21)
  })
})

describe('an evaluation', () => {
  const answerWith = (of: (said: string, call: number) => string) => {
    let calls = 0
    provider.answer((asked, response) => {
      calls += 1
      json(response, 200, {
        choices: [{ message: { content: of(asked.body.messages.at(-1).content, calls) }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 10, completion_tokens: 10 },
      })
    })
  }
  const say = (content: string) => [{ role: 'user', content }]

  test('says how many cases pass, and what they cost', async () => {
    const name = await prompt({ rate_limit: { window: 60, max: 1 }, client_invokable: false })
    answerWith((said) => (said === 'NUL' ? 'an \0 answer' : said))
    const { data, status, text } = await admin.post(`/ai/prompts/${name}/evaluate`, {
      cases: [
        { messages: say('one two'), expect: { contains: 'two' } },
        { messages: say('one two'), expect: { contains: 'Two' } },
        { messages: say('order 66'), expect: { regex: '^order \\d+$', contains: 'order' } },
        { messages: say('```json\n{"a": 1}\n```'), expect: { json_schema: { type: 'object', required: ['a'] } } },
        { messages: say('{"a": 1}'), expect: { json_schema: { type: 'object', required: ['b'] } } },
        { messages: say('{"a": '), expect: { json_schema: {} } },
        // deeper than Postgres reads
        { messages: say('['.repeat(100_000)), expect: { json_schema: {} } },
        { messages: say('NUL'), expect: { contains: 'answer' } },
      ],
    })
    expect(status, text).toBe(200)
    expect(data).toMatchObject({ prompt: name, version: 1, pass_rate: 0.5 })
    expect(data.cases.map(({ pass_rate }: any) => pass_rate)).toEqual([1, 0, 1, 1, 0, 0, 0, 1])
    const each = (10 * 0.15 + 10 * 0.6) / 1e6
    expect(data.cost_usd).toBeCloseTo(8 * each, 10)
    expect(data.cases[0]).toEqual({
      pass_rate: 1,
      cost_usd: each,
      runs: [{ passed: true, output: 'one two', error: null, cost_usd: each }],
    })
    expect((await admin.get(`/ai/invocations?prompt=${name}`)).data.map(({ kind }: any) => kind)).toEqual(
      Array(8).fill('evaluate'),
    )
  })

  test('runs cases several times, and counts failures as not passed', async () => {
    const name = await prompt()
    let calls = 0
    provider.answer((_asked, response) => {
      calls += 1
      if (calls % 2 === 0) json(response, 500, {})
      else
        json(response, 200, {
          choices: [{ message: { content: 'x' } }],
          usage: { prompt_tokens: 1, completion_tokens: 1 },
        })
    })
    const { data } = await admin.post(`/ai/prompts/${name}/evaluate`, {
      runs: 4,
      cases: [{ ...hello, expect: { contains: 'x' } }],
    })
    expect(data.pass_rate).toBe(0.5)
    expect(data.cases[0].runs.filter(({ error }: any) => error?.code === 'PROVIDER_FAILED')).toHaveLength(2)
    await admin.put(`/ai/prompts/${name}/budget`, { budget_usd: 0 })
    const refused = await admin.post(`/ai/prompts/${name}/evaluate`, {
      cases: [{ ...hello, expect: { contains: 'x' } }],
    })
    expect(refused.data).toMatchObject({ pass_rate: 0, version: null, cost_usd: 0 })
    expect(refused.data.cases[0].runs[0].error.code).toBe('ai_budget_exceeded')
  })

  test('refuses what cannot be evaluated, before anything is called', async () => {
    const name = await prompt()
    provider.answer()
    const expected = (expect: object) => ({ cases: [{ ...hello, expect }] })
    for (const [body, field] of [
      [{}, 'cases'],
      [{ cases: [] }, 'cases'],
      [{ cases: Array(21).fill({ ...hello, expect: { contains: 'x' } }) }, 'cases'],
      [expected({}), 'cases.0.expect'],
      [expected({ regex: '(' }), 'cases.0.expect.regex'],
      [expected({ json_schema: { type: 'odd' } }), 'cases.0.expect.json_schema.type'],
      [{ runs: 6, ...expected({ contains: 'x' }) }, 'runs'],
    ] as const)
      expectRefusal(await admin.post(`/ai/prompts/${name}/evaluate`, body), 400, 'VALIDATION_ERROR', field)
    expectRefusal(await admin.post('/ai/prompts/none/evaluate', expected({ contains: 'x' })), 404, 'NOT_FOUND')
    expect(provider.asked).toHaveLength(0)
  })
})

test('pages and bodies of the wrong form', async () => {
  const name = await prompt()
  for (const path of ['/ai/prompts', `/ai/prompts/${name}/versions`, '/ai/invocations'])
    expectRefusal(await admin.get(`${path}?limit=0`), 400, 'INVALID_INPUT')
  for (const path of ['/ai/providers', '/ai/prompts', '/ai/messages', '/ai/embeddings', `/ai/prompts/${name}/invoke`])
    expectRefusal(await admin.request('POST', path, '[1]'), 400, 'INVALID_INPUT')
  const user = await project.user()
  for (const [client, path] of [
    [admin, `/ai/prompts/${name}/rollback`],
    [admin, `/ai/prompts/${name}/evaluate`],
    [user, `/client/ai/prompts/${name}/invoke`],
  ] as const)
    for (const body of ['[1]', '{"a":']) expectRefusal(await client.request('POST', path, body), 400, 'INVALID_BODY')
})
