import { describe, expect, test, vi } from 'vitest'
import { record } from '#server/ai/calls.ts'
import { refusal } from '#server/errors.ts'
import { dialects } from '#server/providers/ai/gateway.ts'
import { createEventReader } from '#server/providers/ai/server_events.ts'
import {
  begin,
  eventsIn,
  finished,
  hello,
  json,
  models,
  type Name,
  names,
  openStream,
  said,
  startAi,
  streams,
  trickle,
} from '#test/support/ai.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Streams: what is passed on, when, and what is recorded of a stream that ends before its end. */
const { provider, harness, project, admin, prompt } = await startAi()
const user = await project.user()
const streaming = { ...hello, stream: true }
const path = (name: string) => `/client/ai/prompts/${name}/invoke`
const nameOf = ({ url, body }: { url: string; body: any }): Name =>
  url.includes('/v1beta/')
    ? 'google'
    : url === '/v1/messages'
      ? 'anthropic'
      : body.max_tokens === undefined
        ? 'openai'
        : 'mistral'
const textIn = (events: readonly { event: string; data: any }[]) =>
  events.map(({ event, data }) => (event === 'delta' ? data.text : '')).join('')

/** What a reader and a dialect make of a stream, cut at these places. */
const readCut = (name: Name, text: string, cuts: readonly number[]) => {
  const bytes = Buffer.from(text)
  const read = createEventReader()
  const pieces = [0, ...cuts].flatMap((start, index) =>
    read(bytes.subarray(start, cuts[index] ?? bytes.length)).map(dialects[name].readEvent),
  )
  return {
    text: pieces.map((piece) => piece?.text ?? '').join(''),
    usage: Object.assign({}, ...pieces.map((piece) => piece?.usage)),
    reason: pieces.findLast((piece) => piece?.finishReason)?.finishReason,
    isBroken: pieces.some((piece) => piece?.isError),
  }
}

test('of an event four million characters are kept at most, and fields that the format does not know are skipped', () => {
  const line = Buffer.from('x'.repeat(1024 * 1024))
  const read = createEventReader()
  expect(read(Buffer.from('other: 1\nretry: soon\ndata: '))).toEqual([])
  for (let times = 0; times < 3; times += 1) expect(read(line)).toEqual([])
  expect(() => read(line)).toThrow()

  const reader = createEventReader()
  const lines = Buffer.from(`data: ${'x'.repeat(64 * 1024)}\n`)
  expect(() => {
    for (let times = 0; times < 65; times += 1) reader(lines)
  }).toThrow()
})

describe.for(names)('the documented stream of %s', (name) => {
  const whole = { text: said, usage: { input: 12, output: 34 }, reason: 'stop', isBroken: false }

  test.for(['\n', '\r\n', '\r'])('cut at every byte, and into single bytes, with line breaks %j', (lineBreak) => {
    const text = streams[name].replaceAll('\n', lineBreak)
    const { length } = Buffer.from(text)
    const wrong = Array.from({ length }, (_, at) => at).filter(
      (at) => JSON.stringify(readCut(name, text, [at])) !== JSON.stringify(readCut(name, text, [])),
    )
    expect(wrong).toEqual([])
    expect(readCut(name, text, [])).toEqual(whole)
    expect(
      readCut(
        name,
        text,
        Array.from({ length: length - 1 }, (_, at) => at + 1),
      ),
    ).toEqual(whole)
  })

  test('comes through a server that sends single bytes', async () => {
    provider.answer((asked, response) => trickle(response, streams[nameOf(asked)]))
    const prompted = await prompt({ provider: name, model: models[name] })
    const answer = await user.post(path(prompted), streaming)
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const events = eventsIn(answer.text)
    expect(textIn(events)).toBe(said)
    expect(events.at(-1)).toEqual({
      event: 'done',
      data: {
        id: expect.any(String),
        prompt: prompted,
        version: 1,
        usage: { input_tokens: 12, output_tokens: 34, cost_usd: expect.any(Number) },
        finish_reason: 'stop',
      },
    })
    const asked = provider.asked[0]!
    if (name === 'google') expect(asked.url).toBe('/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse')
    else expect(asked.body.stream).toBe(true)
    if (name === 'openai') expect(asked.body.stream_options).toEqual({ include_usage: true })
    expect(await finished(project, prompted)).toMatchObject({
      status: 'succeeded',
      is_estimated: false,
      output_tokens: 34,
    })
  })

  test('that ends too early is an error, paid for what came', async () => {
    const half = streams[name].slice(0, streams[name].indexOf('🎉'))
    for (const isReset of [false, true]) {
      provider.answer((_asked, response) => {
        begin(response)
        response.write(half, () => (isReset ? response.destroy() : response.end()))
      })
      const prompted = await prompt({ provider: name, model: models[name] })
      const events = eventsIn((await user.post(path(prompted), streaming)).text)
      expect(events.at(-1)).toEqual({ event: 'error', data: { code: 'PROVIDER_FAILED', message: expect.any(String) } })
      expect(textIn(events)).toBe('Grüße aus 東京')
      const row = await finished(project, prompted)
      expect(row).toMatchObject({ status: 'failed', error_code: 'PROVIDER_FAILED', is_estimated: true })
      expect(row.cost_usd).toBeGreaterThan(0)
    }
  })
})

test('an error within a stream', async () => {
  for (const [name, text] of [
    [
      'anthropic',
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    ],
    ['openai', 'data: {"error":{"message":"secret"}}\n\n'],
    ['google', 'data: {"error":{"code":503,"message":"secret"}}\n\n'],
    ['mistral', 'data: not json\n\n'],
  ] as const) {
    provider.answer((_asked, response) => {
      begin(response)
      response.end(text)
    })
    const answer = await user.post(path(await prompt({ provider: name, model: models[name] })), streaming)
    expect(eventsIn(answer.text)).toEqual([
      { event: 'error', data: { code: 'PROVIDER_FAILED', message: expect.any(String) } },
    ])
    expect(answer.text).not.toContain('secret')
  }
})

test('each piece is passed on before the next one exists', async () => {
  let write: (text: string) => void = () => undefined
  provider.answer((_asked, response) => {
    begin(response)
    write = (text) => void response.write(text)
    write('data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n')
  })
  const stream = await openStream(harness, path(await prompt()), user.headers, streaming)
  expect(await stream.next()).toBe('event: delta\ndata: {"text":"one"}\n\n')
  write('data: {"choices":[{"index":0,"delta":{"content":"two"}}]}\n\n')
  expect(await stream.next()).toBe('event: delta\ndata: {"text":"two"}\n\n')
  write('data: [DONE]\n\n')
  expect(await stream.next()).toContain('event: done')
})

describe('a client that hangs up', () => {
  test('stops the stream of the provider and pays for what came', async () => {
    provider.answer((_asked, response) => {
      begin(response)
      response.write('data: {"choices":[{"index":0,"delta":{"content":"one two three four"}}]}\n\n')
    })
    const name = await prompt()
    const stream = await openStream(harness, path(name), user.headers, streaming)
    await stream.next()
    stream.hangUp()
    await provider.asked[0]!.closed
    const row = await finished(project, name)
    expect(row).toMatchObject({ status: 'cancelled', error_code: 'ABORTED', is_estimated: true, output_tokens: 5 })
    expect((await admin.get(`/ai/prompts/${name}/spend`)).data.spend_usd).toBe(row.cost_usd)
  })

  test('pays what was reserved when the user is deleted meanwhile', async () => {
    let end: () => void = () => undefined
    provider.answer((_asked, response) => {
      begin(response)
      response.write('data: {"choices":[{"index":0,"delta":{"content":"one two three four"}}]}\n\n')
      end = () => void response.end('data: [DONE]\n\n')
    })
    const name = await prompt({ max_tokens: 1000 })
    await admin.put(`/ai/prompts/${name}/budget`, { budget_usd: 0.001 })
    const passing = await project.user()
    const stream = await openStream(harness, path(name), passing.headers, streaming)
    await stream.next()
    const [{ reserved_usd }] = await project.sql('select reserved_usd from app.ai_invocations where prompt = $1', [
      name,
    ])
    expect((await admin.delete(`/users/${passing.id}`)).status).toBe(200)
    end()
    expect(await stream.next()).toContain('event: done')
    const { period_spend_usd } = (await admin.get(`/ai/prompts/${name}/budget`)).data
    expect(period_spend_usd).toBe(Number(reserved_usd))
    // else an account for each call would be a way around the budget
    expectRefusal(await user.post(path(name), { ...streaming, max_tokens: 1000 }), 429, 'ai_budget_exceeded')
  })

  test('pays what the provider has reported', async () => {
    provider.answer((_asked, response) => {
      begin(response)
      response.write(streams.anthropic.slice(0, streams.anthropic.indexOf('event: content_block_stop')))
    })
    const name = await prompt({ provider: 'anthropic', model: models.anthropic })
    const stream = await openStream(harness, path(name), user.headers, streaming)
    let text = ''
    while (!text.includes('\\\\n')) text += await stream.next()
    stream.hangUp()
    expect(await finished(project, name)).toMatchObject({ status: 'cancelled', input_tokens: 12, output_tokens: 8 })
  })

  test('before the provider has answered, with and without a stream', async () => {
    for (const stream of [true, false]) {
      provider.answer(() => undefined)
      const name = await prompt()
      const controller = new AbortController()
      const asked = fetch(`${harness.url}/v1${path(name)}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...user.headers },
        body: JSON.stringify({ ...hello, stream }),
        signal: controller.signal,
      }).catch(() => 'aborted')
      await vi.waitFor(() => expect(provider.asked).toHaveLength(1))
      controller.abort()
      expect(await asked).toBe('aborted')
      await provider.asked[0]!.closed
      expect(await finished(project, name)).toMatchObject({ status: 'cancelled', is_estimated: true })
    }
  })
})

test('a record is tried again while the database is busy, and not for another reason', async () => {
  const recording = (failures: readonly number[]) => {
    const left = [...failures]
    let calls = 0
    const call = async () => {
      calls += 1
      const status = left.shift()
      if (status !== undefined) throw refusal(status, 'X', 'x')
      return { status: 200, body: '{"data":true}', headers: null, dueAt: null, changed: [], milliseconds: 0 }
    }
    const services = { ...harness.running.services, database: { ...harness.running.services.database, call } }
    const context = {
      services,
      resolved: { place: {}, role: 'app_user', claims: {}, project: { projectId: project.id } },
    }
    return record(context as never, 'ai_finish', {}).then(
      () => calls,
      () => -calls,
    )
  }
  expect(await recording([])).toBe(1)
  expect(await recording([503, 429])).toBe(3)
  expect(await recording([500])).toBe(-1)
})

test('a refusal before the stream is an ordinary response', async () => {
  const name = await prompt()
  await admin.put(`/ai/prompts/${name}/budget`, { budget_usd: 0 })
  provider.answer()
  expectRefusal(await user.post(path(name), streaming), 429, 'ai_budget_exceeded')
  expect(provider.asked).toHaveLength(0)
})

describe('rules of moderation for output', async () => {
  const other = await harness.project({ environment: 'development' })
  await other.admin.post('/ai/providers', { name: 'openai', api_key: 'key-0123456789' })
  const reader = await other.user()
  await other.admin.post('/ai/prompts', { name: 'p', provider: 'openai', model: 'gpt-4o-mini', client_invokable: true })
  const rule = async (rule_type: string, config: object) =>
    expect((await other.admin.post('/moderation/rules', { name: 'r', rule_type, config })).status).toBeLessThan(300)
  await rule('keyword', { words: ['forbidden'], action: 'block', applies_to: ['ai_output'] })
  const answerWith = (text: string) =>
    provider.answer((asked, response) => {
      if (!asked.body.stream)
        return json(response, 200, {
          choices: [{ message: { content: text }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 1, completion_tokens: 2 },
        })
      begin(response)
      for (const content of text.match(/.{1,4}/g) ?? [])
        response.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`)
      return response.end('data: [DONE]\n\n')
    })

  test('hold a stream back until they have evaluated it', async () => {
    answerWith('some forbidden words')
    const refused = await reader.post('/client/ai/prompts/p/invoke', streaming)
    expect(eventsIn(refused.text)).toEqual([
      { event: 'error', data: { code: 'CONTENT_REJECTED', message: expect.any(String) } },
    ])
    expect(refused.text).not.toContain('forb')
    answerWith('some harmless words')
    const events = eventsIn((await reader.post('/client/ai/prompts/p/invoke', streaming)).text)
    expect(events.map(({ event }) => event)).toEqual(['delta', 'done'])
    expect(textIn(events)).toBe('some harmless words')
  })

  test('refuse an answer, which is paid for and stands in the queue', async () => {
    answerWith('forbidden')
    expectRefusal(await reader.post('/client/ai/prompts/p/invoke', hello), 400, 'CONTENT_REJECTED')
    const [row] = (await other.admin.get('/ai/invocations?status=rejected')).data
    expect(row).toMatchObject({ user_id: reader.id, error_code: 'CONTENT_REJECTED', output_tokens: 2 })
    const [item] = (await other.admin.get('/moderation/queue')).data
    expect(item).toMatchObject({
      subject_type: 'ai_invocation',
      subject_id: row.id,
      snapshot: { kind: 'ai_output', text: 'forbidden', prompt: 'p' },
    })
    // administrators are not moderated
    expect((await other.admin.post('/ai/prompts/p/invoke', hello)).status).toBe(200)
  })

  test('of input refuse before the provider is called', async () => {
    await rule('keyword', { words: ['blocked'], action: 'block', applies_to: ['ai_input'] })
    await rule('keyword', { words: ['hidden'], action: 'hide', applies_to: ['ai_input'] })
    await rule('keyword', { words: ['queued'], action: 'queue', applies_to: ['ai_input'] })
    answerWith('fine')
    const say = (content: string, context = {}) =>
      reader.post('/client/ai/prompts/p/invoke', { messages: [{ role: 'user', content }], context })
    expectRefusal(await say('it is blocked'), 400, 'CONTENT_REJECTED')
    expectRefusal(await say('fine', { a: ['blocked'] }), 400, 'CONTENT_REJECTED')
    // what a placeholder may show of an object, and what a schema tells the model
    expectRefusal(await say('fine', { a: { 'it is blocked': 1 } }), 400, 'CONTENT_REJECTED')
    const schema = { properties: { a: { description: 'it is blocked' } } }
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } }
    const shaped = { messages: [{ role: 'user', content: 'fine' }], response_format }
    expectRefusal(await reader.post('/client/ai/prompts/p/invoke', shaped), 400, 'CONTENT_REJECTED')
    expectRefusal(await say('it is hidden'), 400, 'CONTENT_REJECTED')
    expect(provider.asked).toHaveLength(0)
    expect((await say('it is queued')).status).toBe(200)
    const texts = (await other.admin.get('/moderation/queue')).data.map(({ snapshot }: any) => snapshot.text)
    expect(texts).toEqual(expect.arrayContaining(['it is hidden', 'it is queued']))
    await other.sql(`update app.users set muted_until = now() + interval '1 hour' where id = $1`, [reader.id])
    expectRefusal(await say('fine'), 403, 'USER_MUTED')
  })
})
