import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { vi } from 'vitest'
import { type Harness, type Project, startHarness } from '#test/support/harness.ts'

/** A request that a provider received. */
export type Asked = {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: any
  /** Resolves when the caller has hung up, or the answer is over. */
  readonly closed: Promise<unknown>
}
export type Decide = (asked: Asked, response: ServerResponse) => unknown

const sse = (events: readonly (readonly [event: string | null, data: string])[]) =>
  events.map(([event, data]) => `${event ? `event: ${event}\n` : ''}data: ${data}\n\n`).join('')

const words = ['Grüße', ' aus', ' 東京', ' 🎉', ' "x"\\n']
export const said = words.join('')

const chunk = (choices: object[], more: object = {}) =>
  JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })

/** Streams in the formats that the providers document, with the same text: 12 tokens read, 34 written. */
export const streams = {
  anthropic: sse([
    [
      'message_start',
      JSON.stringify({
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          content: [],
          model: 'claude-haiku-4-5',
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 10, cache_read_input_tokens: 2, output_tokens: 1 },
        },
      }),
    ],
    ['content_block_start', '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'],
    ['ping', '{"type": "ping"}'],
    ...words.map(
      (text) =>
        [
          'content_block_delta',
          JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
        ] as const,
    ),
    ['content_block_stop', '{"type":"content_block_stop","index":0}'],
    [
      'message_delta',
      '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":34}}',
    ],
    ['message_stop', '{"type":"message_stop"}'],
  ]),
  openai: sse([
    [null, chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }], { usage: null })],
    ...words.map(
      (content) => [null, chunk([{ index: 0, delta: { content }, finish_reason: null }], { usage: null })] as const,
    ),
    [null, chunk([{ index: 0, delta: {}, finish_reason: 'stop' }], { usage: null })],
    [null, chunk([], { usage: { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 } })],
    [null, '[DONE]'],
  ]),
  google: sse([
    ...words.map(
      (text) =>
        [null, JSON.stringify({ candidates: [{ content: { parts: [{ text }], role: 'model' }, index: 0 }] })] as const,
    ),
    [
      null,
      JSON.stringify({
        candidates: [{ content: { parts: [{ text: '' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 30, thoughtsTokenCount: 4, totalTokenCount: 46 },
        modelVersion: 'gemini-2.5-flash',
      }),
    ],
  ]),
  mistral: sse([
    ...words.map((content) => [null, chunk([{ index: 0, delta: { content }, finish_reason: null }])] as const),
    [
      null,
      chunk([{ index: 0, delta: { content: '' }, finish_reason: 'stop' }], {
        usage: { prompt_tokens: 12, total_tokens: 46, completion_tokens: 34 },
      }),
    ],
    [null, '[DONE]'],
  ]),
} as const
export type Name = keyof typeof streams
export const names = Object.keys(streams) as Name[]

/** Whole answers in the documented formats. */
export const answers = (text: string): Readonly<Record<Name, object>> => ({
  anthropic: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-haiku-4-5',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 12, output_tokens: 34 },
  },
  openai: {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-4o-mini',
    choices: [{ index: 0, message: { role: 'assistant', content: text, refusal: null }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 },
  },
  google: {
    candidates: [{ content: { parts: [{ text }], role: 'model' }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 34, totalTokenCount: 46 },
    modelVersion: 'gemini-2.5-flash',
  },
  mistral: {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'mistral-small-latest',
    choices: [{ index: 0, message: { role: 'assistant', content: text, tool_calls: null }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 },
  },
})

export const models: Readonly<Record<Name, string>> = {
  anthropic: 'claude-haiku-4-5',
  openai: 'gpt-4o-mini',
  google: 'gemini-2.5-flash',
  mistral: 'mistral-small-latest',
}

/** Which provider a path of the one server is of. */
const nameOf = (asked: Asked): Name => {
  if (asked.url.includes('/v1beta/')) return 'google'
  if (asked.url.startsWith('/v1/messages')) return 'anthropic'
  return asked.body?.max_tokens === undefined ? 'openai' : 'mistral'
}

const isStream = ({ url, body }: Asked) => url.includes(':streamGenerateContent') || body?.stream === true

export const json = (response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

/** Begins a stream of events. */
export const begin = (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  response.socket?.setNoDelay(true)
}

/** The documented answer of each provider, to a stream as to a whole call; embeddings are of three dimensions or those that were asked for. */
export const usual: Decide = (asked, response) => {
  if (asked.url === '/v1/embeddings') {
    const inputs = [asked.body.input].flat()
    const data = inputs.map((text: string, index: number) => ({
      object: 'embedding',
      index,
      embedding: Array.from({ length: asked.body.dimensions ?? 3 }, (_, at) => (at === text.length % 3 ? 1 : 0)),
    }))
    return json(response, 200, {
      object: 'list',
      data: data.reverse(),
      model: asked.body.model,
      usage: { prompt_tokens: 5, total_tokens: 5 },
    })
  }
  if (!isStream(asked)) return json(response, 200, answers(said)[nameOf(asked)])
  begin(response)
  return response.end(streams[nameOf(asked)])
}

/** Writes bytes one at a time, each in a packet of its own as far as the system lets it. */
export const trickle = async (response: ServerResponse, text: string) => {
  begin(response)
  for (const byte of Buffer.from(text)) {
    response.write(Buffer.of(byte))
    await turn()
  }
  response.end()
}

/** One server that answers as all four providers do. */
export const startAiProvider = async () => {
  const asked: Asked[] = []
  let decide: Decide = usual
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    const closed = once(response, 'close')
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const { method = '', url = '', headers } = request
      const one = { method, url, headers, text, body: text ? JSON.parse(text) : undefined, closed }
      asked.push(one)
      void decide(one, response)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    asked,
    env: { ANTHROPIC_BASE_URL: url, OPENAI_BASE_URL: url, GOOGLE_AI_BASE_URL: url, MISTRAL_BASE_URL: url },
    answer(next: Decide = usual) {
      decide = next
      asked.length = 0
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

let made = 0

/** A project with all four providers registered, and prompts on demand. */
export const startAi = async (env: Record<string, string> = {}) => {
  const provider = await startAiProvider()
  const harness = await startHarness({ env: { ...provider.env, ...env } })
  harness.beforeStop(provider.close)
  const project = await harness.project({ environment: 'development' })
  for (const name of names)
    await project.admin.post('/ai/providers', { name, api_key: `key-of-${name}-0123456789abcdef` })
  const prompt = async (fields: Record<string, unknown> = {}): Promise<string> => {
    made += 1
    const name = `prompt-${made}`
    const answer = await project.admin.post('/ai/prompts', {
      name,
      provider: 'openai',
      model: 'gpt-4o-mini',
      client_invokable: true,
      ...fields,
    })
    if (answer.status !== 200) throw new Error(answer.text)
    return name
  }
  return { provider, harness, project, admin: project.admin, prompt }
}
export type Ai = Awaited<ReturnType<typeof startAi>>

export const hello = { messages: [{ role: 'user', content: 'Hello' }] }

/** The events of a stream as text. */
export const eventsIn = (text: string): { event: string; data: any }[] =>
  text
    .split('\n\n')
    .filter((block) => block.startsWith('event: '))
    .map((block) => {
      const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
      return { event, data: JSON.parse(data) }
    })

/** A stream that is read by hand. */
export const openStream = async (harness: Harness, path: string, headers: Record<string, string>, body: object) => {
  const controller = new AbortController()
  const response = await fetch(`${harness.url}/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: controller.signal,
  })
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  return {
    response,
    /** The next bytes as text, null at the end. */
    async next(): Promise<string | null> {
      const { value, done } = await reader.read()
      return done ? null : decoder.decode(value, { stream: true })
    },
    hangUp: () => controller.abort(),
  }
}

/** The newest invocation of a prompt, once it is no longer running: the end of a stream is recorded after its last byte. */
export const finished = (project: Project, prompt: string): Promise<any> =>
  vi.waitFor(
    async () => {
      const [row] = (await project.admin.get(`/ai/invocations?prompt=${prompt}&limit=1`)).data
      if (!row || row.status === 'running') throw new Error(`no call of ${prompt} has ended`)
      return row
    },
    { timeout: 10_000, interval: 20 },
  )
