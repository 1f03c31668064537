import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { boundOf } from '#server/providers/ai/bounds.ts'
import {
  answers,
  begin,
  hello,
  json,
  models,
  type Name,
  names,
  openStream,
  startAi,
  streams,
  trickle,
} from '#test/support/ai.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Bodies in the providers' own formats, embeddings, and searches by text. */
const { provider, harness, project, admin } = await startAi()
const bodies: Readonly<Record<Name, object>> = {
  anthropic: { model: models.anthropic, max_tokens: 5, ...hello, metadata: { user_id: 'ü' } },
  openai: { model: models.openai, ...hello, seed: 1.5 },
  mistral: { model: models.mistral, max_tokens: 5, ...hello, safe_prompt: true },
  google: { contents: [{ parts: [{ text: 'Hi' }] }] },
}
const paths: Readonly<Record<Name, readonly [whole: string, stream: string]>> = {
  anthropic: ['/v1/messages', '/v1/messages'],
  openai: ['/v1/chat/completions', '/v1/chat/completions'],
  mistral: ['/v1/chat/completions', '/v1/chat/completions'],
  google: [
    '/v1beta/models/gemini-2.5-flash:generateContent',
    '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
  ],
}
const sent = (name: Name, more: object = {}) => ({
  ...bodies[name],
  ...(name === 'google' ? { model: 'gemini-2.5-flash' } : {}),
  ...more,
})
const rows = async () => (await admin.get('/ai/invocations?limit=1')).data
const recorded = (wanted: object) =>
  expect.poll(async () => (await rows())[0], { timeout: 10_000 }).toMatchObject(wanted)

describe.for(names)('messages of %s', (name) => {
  test('are forwarded, and answered, as they are', async () => {
    const text = `{ "odd" : 1.50,\n "n":12345678901234567890, ${JSON.stringify(answers('x')[name]).slice(1)}\n`
    provider.answer((_asked, response) => {
      response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'x-secret': 'no' }).end(text)
    })
    const answer = await admin.post('/ai/messages', { provider: name, body: sent(name) })
    expect([answer.status, answer.text]).toEqual([200, text])
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.headers.get('x-secret')).toBeNull()
    expect(provider.asked[0]).toMatchObject({ url: paths[name][0], body: bodies[name] })
    await recorded({
      kind: 'messages',
      provider: name,
      prompt: null,
      status: 'succeeded',
      input_tokens: 12,
      output_tokens: 34,
    })
  })

  test('stream, byte for byte', async () => {
    provider.answer((_asked, response) => trickle(response, streams[name]))
    const answer = await admin.post('/ai/messages', { provider: name, body: sent(name, { stream: true }) })
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(createHash('sha256').update(answer.text).digest('hex')).toBe(
      createHash('sha256').update(streams[name]).digest('hex'),
    )
    expect(provider.asked[0]!.url).toBe(paths[name][1])
    await recorded({ provider: name, status: 'succeeded', input_tokens: 12, output_tokens: 34, is_estimated: false })
  })

  test('that the provider refuses come with its status and its words', async () => {
    provider.answer((_asked, response) => json(response, 429, { error: { type: 'slow_down' } }, { 'retry-after': '7' }))
    const answer = await admin.post('/ai/messages', { provider: name, body: sent(name) })
    expect([answer.status, answer.body]).toEqual([429, { error: { type: 'slow_down' } }])
    expect(answer.headers.get('retry-after')).toBe('7')
    await recorded({ provider: name, status: 'failed', input_tokens: 0, cost_usd: 0 })
  })
})

describe('messages', () => {
  test('numbers are forwarded as they were written', async () => {
    provider.answer()
    await admin.request(
      'POST',
      '/ai/messages',
      '{"provider":"openai","body":{"seed":12345678901234567890,"top_p":0.10,"__proto__":{"a":1}}}',
    )
    expect(provider.asked[0]!.text).toBe('{"seed":12345678901234567890,"top_p":0.1,"__proto__":{"a":1}}')
  })

  test('that come in another encoding are passed on with its name', async () => {
    const packed = gzipSync(JSON.stringify(answers('x').openai))
    provider.answer((_asked, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(packed)
    })
    const answer = await admin.post('/ai/messages', { provider: 'openai', body: sent('openai') })
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect(answer.body.choices[0].message.content).toBe('x')
    await recorded({ status: 'succeeded', is_estimated: true })
    expect((await rows())[0].output_tokens).toBeGreaterThan(10)
    // an answer of another form is paid for by its length
    provider.answer((_asked, response) => json(response, 200, { text: 'x'.repeat(4000) }))
    await admin.post('/ai/messages', { provider: 'openai', body: sent('openai') })
    await recorded({ status: 'succeeded', is_estimated: true })
    expect((await rows())[0].output_tokens).toBeGreaterThan(1000)
  })

  test('of a provider that does not answer', async () => {
    provider.answer((_asked, response) => response.destroy())
    expectRefusal(await admin.post('/ai/messages', { provider: 'openai', body: {} }), 502, 'PROVIDER_FAILED')
    await recorded({ status: 'failed', error_code: 'PROVIDER_FAILED', model: 'unknown' })
  })

  test('refuse other bodies and providers', async () => {
    for (const [body, field] of [
      [{ provider: 'echo', body: {} }, 'provider'],
      [{ provider: 'openai', body: [] }, 'body'],
      [{ provider: 'openai' }, 'body'],
      [{ provider: 'google', body: {} }, 'body.model'],
      [{ provider: 'google', body: { model: '..' } }, 'body.model'],
      [{ provider: 'google', body: { model: 'models/..' } }, 'body.model'],
    ] as const)
      expectRefusal(await admin.post('/ai/messages', body), 400, 'INVALID_INPUT', field)
    const other = await harness.project()
    expectRefusal(
      await other.admin.post('/ai/messages', { provider: 'openai', body: {} }),
      409,
      'PROVIDER_NOT_REGISTERED',
    )
  })

  test('reserve a token for each byte of their text, a number for an image, and the limit of their answer', () => {
    const image = 'A'.repeat(100_000)
    const bound = (body: Record<string, unknown>) => {
      const { input, output } = boundOf(body, Buffer.byteLength(JSON.stringify(body)))
      return [input, output]
    }
    const bytes = (body: object) => Buffer.byteLength(JSON.stringify(body))
    const plain = { model: 'm', max_tokens: 7, messages: [{ role: 'user', content: 'Grüße' }] }
    expect(bound(plain)).toEqual([bytes(plain), 7])
    for (const [part, held] of [
      [{ type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } }, 100_022],
      [{ type: 'image_url', image_url: `data:image/png;base64,${image}` }, 100_022],
      [{ type: 'image_url', image_url: { url: 'https://pictures.example/a' } }, 0],
      [{ type: 'image_url', image_url: 'https://pictures.example/a' }, 0],
      [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } }, 100_000],
      [{ type: 'image', source: { type: 'url', url: 'https://pictures.example/a' } }, 0],
      [{ inlineData: { mimeType: 'image/png', data: image } }, 100_000],
      [{ inline_data: { mime_type: 'image/png', data: image } }, 100_000],
      [{ fileData: { mimeType: 'image/png', fileUri: 'https://pictures.example/a' } }, 0],
    ] as const) {
      const body = { messages: [{ role: 'user', content: [part] }], max_tokens: 1 }
      expect(bound(body), JSON.stringify(part).slice(0, 60)).toEqual([bytes(body) - held + 3000, 1])
    }
    // documents are read page by page: their bytes bound them
    const source = { type: 'base64', media_type: 'application/pdf', data: image }
    expect(bound({ messages: [{ content: [{ type: 'document', source }] }] })[0]).toBeGreaterThan(100_000)
    for (const [body, most] of [
      [{ max_completion_tokens: 5, max_tokens: 9 }, 5],
      [{ max_tokens: 5, n: 3 }, 15],
      [{ generationConfig: { maxOutputTokens: 5, candidateCount: 2 } }, 10],
      [{ generation_config: { max_output_tokens: 5, candidate_count: 2 } }, 10],
      [{}, 16_384],
      [{ max_tokens: null, n: 0 }, 16_384],
      [{ max_tokens: '5', n: 'x' }, 16_384],
      [{ max_tokens: -5, n: -5 }, 16_384],
      [{ max_tokens: 1e308, n: 1e308 }, 16_384],
      [{ max_tokens: 9_007_199_254_740_991, n: 9 }, 10_000_000],
      [{ generationConfig: 'x' }, 16_384],
    ] as const)
      expect(bound(body)[1], JSON.stringify(body)).toBe(most)
  })

  test('that nobody has answered are paid for as what was sent', async () => {
    provider.answer((_asked, response) => response.destroy())
    const content = 'word '.repeat(1000)
    const body = { model: models.openai, messages: [{ role: 'user', content }] }
    expectRefusal(await admin.post('/ai/messages', { provider: 'openai', body }), 502, 'PROVIDER_FAILED')
    await recorded({ status: 'failed', is_estimated: true })
    expect((await rows())[0].input_tokens).toBeGreaterThan(1000)
  })

  test('a client that hangs up stops the stream of the provider', async () => {
    provider.answer((_asked, response) => {
      begin(response)
      response.write(streams.anthropic.slice(0, 700))
    })
    const stream = await openStream(harness, `/admin/projects/${project.id}/ai/messages`, project.developer.headers, {
      provider: 'anthropic',
      body: sent('anthropic', { stream: true }),
    })
    await stream.next()
    stream.hangUp()
    await provider.asked[0]!.closed
    await recorded({ kind: 'messages', status: 'cancelled', input_tokens: 12 })
  })
})

describe('embeddings', () => {
  test('of a text and of texts, in their order', async () => {
    provider.answer()
    const one = await admin.post('/ai/embeddings', {
      provider: 'openai',
      model: 'text-embedding-3-small',
      input: 'abc',
    })
    expect(one.status, one.text).toBe(200)
    expect(one.data).toEqual({ embeddings: [[1, 0, 0]], usage: { prompt_tokens: 5, total_tokens: 5 } })
    expect(provider.asked[0]).toMatchObject({
      url: '/v1/embeddings',
      body: { model: 'text-embedding-3-small', input: 'abc' },
    })
    const two = await admin.post('/ai/embeddings', { provider: 'openai', model: 'm', input: ['a', 'bb'] })
    expect(two.data.embeddings).toEqual([
      [0, 1, 0],
      [0, 0, 1],
    ])
    await recorded({ kind: 'embeddings', model: 'm', status: 'succeeded', input_tokens: 5, output_tokens: 0 })
  })

  test('that the provider does not count are estimated, and what breaks off is paid for as what was sent', async () => {
    const ask = () => admin.post('/ai/embeddings', { provider: 'openai', model: 'm', input: ['a'.repeat(400)] })
    for (const usage of [
      undefined,
      null,
      'x',
      {},
      { prompt_tokens: null },
      { prompt_tokens: '5' },
      { prompt_tokens: -5 },
    ]) {
      provider.answer((_asked, response) => json(response, 200, { data: [{ index: 0, embedding: [1] }], usage }))
      expect((await ask()).data.usage).toEqual({ prompt_tokens: 100, total_tokens: 100 })
      await recorded({ kind: 'embeddings', status: 'succeeded', input_tokens: 100, is_estimated: true })
    }
    provider.answer((_asked, response) => response.destroy())
    expectRefusal(await ask(), 502, 'PROVIDER_FAILED')
    await recorded({ kind: 'embeddings', status: 'failed', input_tokens: 100, is_estimated: true })
    provider.answer((_asked, response) => json(response, 400, {}))
    expectRefusal(await ask(), 502, 'PROVIDER_FAILED')
    await recorded({ kind: 'embeddings', status: 'failed', input_tokens: 0 })
  })

  test('refuse other providers, inputs, and answers that are none', async () => {
    const ask = (body: object) => admin.post('/ai/embeddings', { provider: 'openai', model: 'm', input: 'a', ...body })
    for (const [body, field] of [
      [{ provider: 'mistral' }, 'provider'],
      [{ model: '' }, 'model'],
      [{ input: '' }, 'input'],
      [{ input: [] }, 'input'],
      [{ input: [''] }, 'input.0'],
      [{ input: 5 }, 'input'],
    ] as const)
      expectRefusal(await ask(body), 400, 'INVALID_INPUT', field)
    for (const data of [undefined, [], [{ index: 0, embedding: ['x'] }], [{ index: 1, embedding: [1] }]]) {
      provider.answer((_asked, response) => json(response, 200, { data }))
      expectRefusal(await ask({}), 502, 'PROVIDER_FAILED')
    }
    provider.answer((_asked, response) => json(response, 401, { error: { message: 'secret' } }))
    const refused = await ask({})
    expectRefusal(refused, 502, 'PROVIDER_FAILED', { provider_status: 401 })
    expect(refused.text).not.toContain('secret')
    const other = await harness.project()
    expectRefusal(
      await other.admin.post('/ai/embeddings', { provider: 'openai', model: 'm', input: 'a' }),
      409,
      'PROVIDER_NOT_REGISTERED',
    )
  })
})

describe('find-nearest by text', async () => {
  await admin.post('/collections', {
    name: 'notes',
    read_policy: 'public',
    columns: [
      { name: 'name', type: 'text' },
      { name: 'near', type: 'vector', dimensions: 3 },
      { name: 'far', type: 'vector', dimensions: 2000 },
    ],
  })
  const user = await project.user()
  for (const [name, near] of [
    ['x', [1, 0, 0]],
    ['y', [0, 1, 0]],
    ['z', [0, 0, 1]],
  ] as const)
    await user.post('/client/collections/notes', { name, near })
  const find = (body: object) => user.post('/client/collections/notes/find-nearest', body)

  test('asks for a vector of the length of the column', async () => {
    provider.answer()
    const { data, status, text } = await find({ column: 'near', text: 'a cat', limit: 1 })
    expect(status, text).toBe(200)
    expect(data).toMatchObject([{ name: 'z', _distance: 0 }])
    expect(provider.asked[0]!.body).toEqual({ model: 'text-embedding-3-small', input: 'a cat', dimensions: 3 })
    await recorded({ kind: 'embeddings', user_id: user.id, input_tokens: 5 })
    provider.answer()
    await find({ column: 'far', text: 'a cat' })
    expect(provider.asked[0]!.body).toEqual({ model: 'text-embedding-3-large', input: 'a cat', dimensions: 2000 })
    const all = await admin.post('/collections/notes/find-nearest', { column: 'near', text: 'a cat', limit: 1 })
    expect(all.data).toMatchObject([{ name: 'z' }])
  })

  test('asks for none where there is no such column', async () => {
    provider.answer()
    expectRefusal(await find({ column: 'name', text: 'a cat' }), 400, 'INVALID_COLUMN')
    expectRefusal(await find({ column: 'none', text: 'a cat' }), 400, 'INVALID_COLUMN')
    expectRefusal(
      await user.post('/client/collections/none/find-nearest', { column: 'near', text: 'a' }),
      404,
      'COLLECTION_NOT_FOUND',
    )
    expectRefusal(await find({ column: 'near', text: '' }), 400, 'INVALID_BODY')
    expect(provider.asked).toHaveLength(0)
  })

  test('fails with the provider', async () => {
    provider.answer((_asked, response) => json(response, 500, {}))
    expectRefusal(await find({ column: 'near', text: 'a cat' }), 502, 'PROVIDER_FAILED')
    expectRefusal(
      await admin.post('/collections/notes/find-nearest', { column: 'near', text: 'a' }),
      502,
      'PROVIDER_FAILED',
    )
  })
})
