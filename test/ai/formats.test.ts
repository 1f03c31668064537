import { describe, expect, test } from 'vitest'
import { answers, finished, hello, json, models, names, said, startAi } from '#test/support/ai.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Whole answers of prompts, in each provider's documented format. */
const { provider, project, admin, prompt } = await startAi()
const user = await project.user()
const invoke = (name: string, body: object = hello, as: any = user) =>
  as.post(`/client/ai/prompts/${name}/invoke`, body)

describe('each provider in its documented format', () => {
  test.for(names)('%s', async (name) => {
    provider.answer()
    const prompted = await prompt({
      provider: name,
      model: models[name],
      system_prompt: 'You greet {{user.display_name}} from {{place|nowhere}}.',
      max_tokens: 100,
    })
    const image = 'data:image/png;base64,iVBORw0KGgo='
    const answer = await invoke(prompted, {
      context: { place: 'Paris {{user.display_name}}', user: { display_name: 'an impostor' } },
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url: image } },
          ],
        },
      ],
      max_tokens: 50,
    })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.data).toEqual({
      id: expect.any(String),
      prompt: prompted,
      version: 1,
      output: said,
      usage: { input_tokens: 12, output_tokens: 34, cost_usd: expect.any(Number) },
      finish_reason: 'stop',
    })
    const { display_name } = (await user.get('/client/users/me')).data
    // what is filled in is not read for placeholders
    const system = `You greet ${display_name} from Paris {{user.display_name}}.`
    const chatOf = (image_url: unknown) => [
      { role: 'system', content: system },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url },
        ],
      },
    ]
    const [asked] = provider.asked
    const expected = {
      anthropic: {
        url: '/v1/messages',
        headers: { 'x-api-key': 'key-of-anthropic-0123456789abcdef', 'anthropic-version': '2023-06-01' },
        body: {
          model: 'claude-haiku-4-5',
          max_tokens: 50,
          system,
          messages: [
            { role: 'user', content: 'Hi' },
            { role: 'assistant', content: 'Hello' },
            {
              role: 'user',
              content: [
                { type: 'text', text: 'What is it?' },
                { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
              ],
            },
          ],
        },
      },
      openai: {
        url: '/v1/chat/completions',
        headers: { authorization: 'Bearer key-of-openai-0123456789abcdef' },
        body: {
          model: 'gpt-4o-mini',
          max_completion_tokens: 50,
          messages: chatOf({ url: image }),
        },
      },
      mistral: {
        url: '/v1/chat/completions',
        headers: { authorization: 'Bearer key-of-mistral-0123456789abcdef' },
        body: {
          model: 'mistral-small-latest',
          max_tokens: 50,
          messages: chatOf(image),
        },
      },
      google: {
        url: '/v1beta/models/gemini-2.5-flash:generateContent',
        headers: { 'x-goog-api-key': 'key-of-google-0123456789abcdef' },
        body: {
          systemInstruction: { parts: [{ text: system }] },
          contents: [
            { role: 'user', parts: [{ text: 'Hi' }] },
            { role: 'model', parts: [{ text: 'Hello' }] },
            {
              role: 'user',
              parts: [{ text: 'What is it?' }, { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }],
            },
          ],
          generationConfig: { maxOutputTokens: 50 },
        },
      },
    }[name]
    expect(asked!.url).toBe(expected.url)
    expect(asked!.headers).toMatchObject(expected.headers)
    expect(asked!.body).toEqual(expected.body)
  })

  test('the model of a request stays within the path', async () => {
    provider.answer()
    const name = await prompt({ provider: 'google', model: 'models/../../secrets?x=1#y' })
    await invoke(name)
    expect(provider.asked[0]?.url).toBe('/v1beta/models/..%2F..%2Fsecrets%3Fx%3D1%23y:generateContent')
  })
})

test('cost is that of the model by its longest known name, and of the dearest one where the model is unknown', async () => {
  provider.answer()
  // 12 tokens in and 34 out
  for (const [model, cost] of [
    ['gpt-4o-mini', (12 * 0.15 + 34 * 0.6) / 1e6],
    ['gpt-4o-mini-2024-07-18', (12 * 0.15 + 34 * 0.6) / 1e6],
    ['gpt-4o-2024-11-20', (12 * 2.5 + 34 * 10) / 1e6],
    ['gpt-99', (12 * 150 + 34 * 600) / 1e6],
  ] as const) {
    const { data } = await invoke(await prompt({ model }))
    expect(data.usage.cost_usd, model).toBeCloseTo(cost, 10)
  }
})

describe('response_format', () => {
  test.for(names)('json of %s is an object', async (name) => {
    provider.answer((_asked, response) =>
      json(response, 200, answers('```json\n{"a": [1, "x"]}\n```')[name as 'openai']),
    )
    const prompted = await prompt({ provider: name, model: models[name], system_prompt: 'Think.' })
    const { data, status } = await invoke(prompted, { ...hello, response_format: 'json' })
    expect(status).toBe(200)
    expect(data).toMatchObject({ object: { a: [1, 'x'] } })
    expect(data).not.toHaveProperty('output')
    const { body } = provider.asked[0]!
    if (name === 'google') expect(body.generationConfig.responseMimeType).toBe('application/json')
    else if (name === 'anthropic') expect(body.system).toContain('JSON')
    else expect(body.response_format).toEqual({ type: 'json_object' })
  })

  test('a schema is passed on, or told to a model that has no such mode', async () => {
    const schema = { type: 'object', properties: { a: { type: 'integer' } } }
    const asking = { ...hello, response_format: { type: 'json_schema', json_schema: { name: 'thing', schema } } }
    for (const name of names) {
      provider.answer((_asked, response) => json(response, 200, answers('{"a": 1}')[name]))
      const { data } = await invoke(await prompt({ provider: name, model: models[name] }), asking)
      expect(data.object).toEqual({ a: 1 })
      if (name === 'openai' || name === 'mistral')
        expect(provider.asked[0]!.body.response_format).toEqual(asking.response_format)
      else {
        // with what the user says: the system prompt is the developer's own
        const { messages = [], contents = [] } = provider.asked[0]!.body
        expect(JSON.stringify([...messages, ...contents].at(-1))).toContain(
          JSON.stringify(JSON.stringify(schema)).slice(1, -1),
        )
        const { system, systemInstruction } = provider.asked[0]!.body
        expect(JSON.stringify(system ?? systemInstruction)).not.toContain('properties')
      }
    }
    // and where the last message is the model's own
    provider.answer((_asked, response) => json(response, 200, answers('{"a": 1}').anthropic))
    const name = await prompt({ provider: 'anthropic', model: models.anthropic })
    await invoke(name, { ...asking, messages: [{ role: 'assistant', content: 'Well' }] })
    expect(provider.asked[0]!.body.messages).toEqual([
      { role: 'assistant', content: 'Well' },
      { role: 'user', content: expect.stringContaining('JSON Schema') },
    ])
  })

  test('a reply that is no JSON is a failure that was paid for', async () => {
    provider.answer()
    const name = await prompt()
    expectRefusal(await invoke(name, { ...hello, response_format: { type: 'json_object' } }), 502, 'PROVIDER_FAILED')
    expect(await finished(project, name)).toMatchObject({
      status: 'failed',
      error_code: 'PROVIDER_FAILED',
      output_tokens: expect.any(Number),
    })
    expect((await admin.get(`/ai/prompts/${name}/spend`)).data.spend_usd).toBeGreaterThan(0)
  })
})
