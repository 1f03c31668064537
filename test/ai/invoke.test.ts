import { describe, expect, test } from 'vitest'
import { answers, eventsIn, finished, hello, json, said, startAi, usual } from '#test/support/ai.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

/** Invocations of prompts as a whole: who may call, what a call may contain, and how it fails. */
const { provider, harness, project, admin, prompt } = await startAi()
const user = await project.user()
const invoke = (name: string, body: object = hello, as: any = user) =>
  as.post(`/client/ai/prompts/${name}/invoke`, body)

describe('who may invoke what', () => {
  test('apps only what is client_invokable, administrators everything', async () => {
    provider.answer()
    const name = await prompt({ client_invokable: false })
    expectRefusal(await invoke(name), 404, 'NOT_FOUND')
    expect((await admin.post(`/ai/prompts/${name}/invoke`, hello)).status).toBe(200)
    expectRefusal(await admin.post('/ai/prompts/none/invoke', hello), 404, 'NOT_FOUND')
    const listed = (await user.get('/client/ai/prompts')).data.map((one: { name: string }) => one.name)
    expect(listed).not.toContain(name)
    await admin.delete(`/ai/prompts/${name}`)
    expectRefusal(await invoke(name), 404, 'NOT_FOUND')
  })

  test('another project has neither prompt nor provider', async () => {
    const other = await harness.project()
    const stranger = await other.user()
    const name = await prompt()
    expectRefusal(await invoke(name, hello, stranger), 404, 'NOT_FOUND')
    expectRefusal(
      await other.admin.post(`/ai/prompts`, { name: 'p', provider: 'openai', model: 'm' }),
      409,
      'PROVIDER_NOT_REGISTERED',
    )
    expectRefusal(await project.admin.with(other.developer.headers).get('/ai/prompts'), 403, 'PROJECT_FORBIDDEN')
  })

  test('a prompt whose provider is gone', async () => {
    const name = await prompt({ provider: 'mistral', model: 'm' })
    await project.sql(`delete from app.ai_providers where name = 'mistral'`)
    expectRefusal(await invoke(name), 409, 'PROVIDER_NOT_REGISTERED', { provider: 'mistral' })
    expectRefusal(await admin.post(`/ai/prompts/${name}/invoke`, hello), 409, 'PROVIDER_NOT_REGISTERED')
    await admin.post('/ai/providers', { name: 'mistral', api_key: 'key-of-mistral-0123456789abcdef' })
  })

  test('apps list the names, descriptions and variables of their prompts', async () => {
    const name = await prompt({
      description: 'Greets',
      system_prompt: '{{tone}} {{user.properties.team}} {{tone}} {{a.b|c}} {{ x }} {{1}} {{}}',
    })
    const listed = (await user.get('/client/ai/prompts')).data.find((one: { name: string }) => one.name === name)
    expect(listed).toEqual({ name, description: 'Greets', variables: ['tone', 'a.b', 'x'], cost: null })
  })

  test('a user sees the own calls of today', async () => {
    provider.answer()
    const other = await project.user()
    expect((await other.get('/client/ai/usage')).data).toMatchObject({ calls: 0, input_tokens: 0, output_tokens: 0 })
    await invoke(await prompt(), hello, other)
    expect((await other.get('/client/ai/usage')).data).toEqual({
      date: new Date().toISOString().slice(0, 10),
      calls: 1,
      input_tokens: 12,
      output_tokens: 34,
    })
  })
})

describe('what a request may contain', async () => {
  const name = await prompt()
  test.for<[object, string]>([
    [{ messages: [{ role: 'system', content: 'x' }] }, 'messages.0.role'],
    [{ messages: [{ role: 'user', content: '' }] }, 'messages.0.content'],
    [{ messages: [{ role: 'user', content: [] }] }, 'messages.0.content'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }] }] },
      'messages.0.content.0.image_url.url',
    ],
    [{ messages: Array(201).fill({ role: 'user', content: 'x' }) }, 'messages'],
    [{ messages: 'x' }, 'messages'],
    [{ ...hello, max_tokens: 0 }, 'max_tokens'],
    [{ ...hello, max_tokens: 200_001 }, 'max_tokens'],
    [{ ...hello, stream: 'yes' }, 'stream'],
    [{ ...hello, context: [] }, 'context'],
    [{ ...hello, context: { x: 'y'.repeat(66_000) } }, 'context'],
    [{ ...hello, response_format: 'xml' }, 'response_format'],
    [{}, 'messages'],
  ])('case %# is refused', async ([body, field]) => {
    const said = JSON.stringify(body).length > 300 ? '' : JSON.stringify(body)
    const answer = await invoke(name, body)
    expect(answer.status, said).toBe(400)
    expectInvalid(answer, field)
    const asAdmin = await admin.post(`/ai/prompts/${name}/invoke`, body)
    // an administrator's system message needs another one beside it
    expectRefusal(asAdmin, 400, 'INVALID_INPUT', field === 'messages.0.role' ? 'messages' : field)
  })

  test('an administrator may send system messages, beside others', async () => {
    provider.answer()
    const messages = [{ role: 'system', content: 'Be brief.' }, ...hello.messages]
    expect((await admin.post(`/ai/prompts/${name}/invoke`, { messages })).status).toBe(200)
    expect(provider.asked[0]!.body.messages).toEqual([{ role: 'system', content: 'Be brief.' }, ...hello.messages])
  })

  test('without messages the system prompt is the message', async () => {
    provider.answer()
    const other = await prompt({ system_prompt: 'A haiku about {{topic}}.' })
    expect((await invoke(other, { context: { topic: 'rain' } })).status).toBe(200)
    expect(provider.asked[0]!.body.messages).toEqual([{ role: 'user', content: 'A haiku about rain.' }])
  })

  test('what is too long for a placeholder, or is none, stays in the system prompt', async () => {
    provider.answer()
    const [path, fallback] = ['p'.repeat(200), 'f'.repeat(250)]
    const others = `{{${path}p}} {{x|${fallback}f}} {{1}} {{}}`
    const other = await prompt({ system_prompt: `{{${path}}} {{x|${fallback}}} {{{ x | }}} ${others}` })
    expect((await invoke(other, { context: { [path]: '{{x}}', [`${path}p`]: 'no' } })).status).toBe(200)
    expect(provider.asked[0]!.body.messages).toEqual([{ role: 'user', content: `{{x}} ${fallback} { } ${others}` }])
  })

  test('a context that makes a huge prompt', async () => {
    const other = await prompt({ system_prompt: '{{x}}'.repeat(100) })
    expectInvalid(await invoke(other, { context: { x: 'y'.repeat(20_000) } }), 'context')
  })
})

test('max_tokens is capped by the prompt', async () => {
  const name = await prompt({ max_tokens: 10 })
  for (const [sent, passed] of [
    [undefined, 10],
    [5, 5],
    [11, 10],
  ]) {
    provider.answer()
    await invoke(name, { ...hello, max_tokens: sent })
    expect(provider.asked[0]!.body.max_completion_tokens).toBe(passed)
  }
})

describe('failures of the provider', () => {
  test.for([401, 404, 429, 500, 529])('status %i is 502 PROVIDER_FAILED', async (status) => {
    provider.answer((_asked, response) => json(response, status, { error: { message: 'secret words' } }))
    for (const stream of [false, true]) {
      // five failures in a row would open the circuit of the project
      const other = await harness.project({ environment: 'development' })
      await other.admin.post('/ai/providers', { name: 'openai', api_key: 'key-0123456789' })
      await other.admin.post('/ai/prompts', { name: 'p', provider: 'openai', model: 'm' })
      const answer = await other.admin.post('/ai/prompts/p/invoke', { ...hello, stream })
      expectRefusal(answer, 502, 'PROVIDER_FAILED', { provider_status: status })
      expect(answer.text).not.toContain('secret')
      expect(await finished(other, 'p')).toMatchObject({ status: 'failed', input_tokens: 0, cost_usd: 0 })
    }
  })

  test('a body that is none of the provider', async () => {
    const name = await prompt()
    for (const body of [{}, { choices: [] }, { choices: 'x' }]) {
      provider.answer((_asked, response) => json(response, 200, body))
      expectRefusal(await invoke(name), 502, 'PROVIDER_FAILED')
    }
    provider.answer()
    expect((await invoke(name)).status).toBe(200)
  })

  test('images for a model that takes none', async () => {
    const messages = [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.org/a.png' } }] },
    ]
    provider.answer()
    const text = await prompt({ model: 'o3-mini' })
    expectRefusal(await invoke(text, { messages }), 422, 'ai_model_not_multimodal')
    expectRefusal(await admin.post(`/ai/prompts/${text}/invoke`, { messages }), 422, 'ai_model_not_multimodal')
    expect(provider.asked).toHaveLength(0)
    // of an unknown model the provider says so
    const unknown = await prompt({ model: 'gpt-99' })
    provider.answer((_asked, response) =>
      json(response, 400, {
        error: { message: 'Invalid content type. image_url is only supported by certain models.' },
      }),
    )
    expectRefusal(await invoke(unknown, { messages }), 422, 'ai_model_not_multimodal')
    provider.answer(usual)
    expect((await invoke(unknown, { messages })).status).toBe(200)
  })
})

test('the provider of development answers with the last message, in development only', async () => {
  const name = await prompt({ provider: 'echo', model: 'echo' })
  provider.answer()
  const { data } = await invoke(name, {
    messages: [...hello.messages, { role: 'user', content: 'one two three' }],
    max_tokens: 2,
  })
  expect(data).toMatchObject({
    output: 'one two ',
    usage: { input_tokens: 4, output_tokens: 2, cost_usd: 0 },
    finish_reason: 'length',
  })
  const streamed = eventsIn((await invoke(name, { ...hello, stream: true })).text)
  expect(streamed.map(({ event }) => event)).toEqual(['delta', 'done'])
  expect(provider.asked).toHaveLength(0)
  const production = await harness.project({ environment: 'production' })
  expectRefusal(
    await production.admin.post('/ai/prompts', { name: 'p', provider: 'echo', model: 'echo' }),
    409,
    'PROVIDER_NOT_REGISTERED',
  )
})

test('log_payloads keeps what was said, without images; otherwise nothing is kept', async () => {
  provider.answer()
  const [silent, logged] = [await prompt(), await prompt({ log_payloads: true })]
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Look' },
        { type: 'image_url', image_url: { url: 'https://example.org/a.png' } },
      ],
    },
  ]
  await invoke(silent, { messages })
  await invoke(logged, { messages, context: { a: 1 } })
  expect((await finished(project, silent)).payload).toBeNull()
  const row = await finished(project, logged)
  expect(row).toMatchObject({
    kind: 'invoke',
    user_id: user.id,
    status: 'succeeded',
    payload: { context: { a: 1 }, messages: [{ role: 'user', content: 'Look\n[image]' }], output: said },
  })
})

test('an answer that Postgres cannot hold is recorded all the same, and paid for', async () => {
  const name = await prompt({ log_payloads: true })
  // a NUL character, and a pair of surrogates at the place where the log is cut
  const odd = `\0${'x'.repeat(199_998)}🎉`
  provider.answer((_asked, response) => json(response, 200, answers(odd).openai))
  const answer = await invoke(name)
  expect(answer.status, answer.text.slice(0, 200)).toBe(200)
  expect(answer.data.output).toBe(odd)
  const { status, cost_usd, payload } = await finished(project, name)
  expect([status, Number(cost_usd) > 0]).toEqual(['succeeded', true])
  expect(payload.output).toBe(`\ufffd${'x'.repeat(199_998)}\ufffd`)
})

test('svc.ai.invoked is an event of the user', async () => {
  provider.answer()
  const name = await prompt()
  const { data } = await invoke(name)
  const [event] = await project.sql(
    `select app_user_id, properties from app.engagement_events where event_name = 'svc.ai.invoked' and properties ->> 'prompt' = $1`,
    [name],
  )
  expect(event).toEqual({
    app_user_id: user.id,
    properties: {
      invocation_id: data.id,
      prompt: name,
      version: 1,
      provider: 'openai',
      model: 'gpt-4o-mini',
      input_tokens: 12,
      output_tokens: 34,
      cost_usd: data.usage.cost_usd,
    },
  })
})
