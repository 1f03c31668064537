import { anthropic } from '#server/providers/ai/anthropic.ts'
import {
  at,
  type ChatRequest,
  countOf,
  type Dialect,
  type Piece,
  textOf,
  type Usage,
  usageOf,
  type Wire,
} from '#server/providers/ai/chat.ts'
import { google } from '#server/providers/ai/google.ts'
import { mistral, openai } from '#server/providers/ai/openai.ts'
import { createEventReader } from '#server/providers/ai/server_events.ts'
import { modelSpan, problemType, setUsed } from '#server/providers/ai/span.ts'
import { type Failure, failureOf, type StreamedResponse, type Upstream } from '#server/providers/upstream.ts'
import { noSpan, type Span, within } from '#server/telemetry/spans.ts'

export const dialects = { anthropic, openai, google, mistral } as const
export type AiProvider = keyof typeof dialects
export const aiProviders = Object.keys(dialects) as readonly AiProvider[]

/** A response with 200,000 tokens, and what JSON makes of it. */
const maxBytes = 16 * 1024 * 1024
/** Faster than any of the providers writes: what a call that broke off may have cost is estimated with it. */
const tokensPerSecond = 100

/** Why a provider's answer cannot be used. `usage` is what it may have cost. */
export type ProviderProblem = {
  readonly code: 'PROVIDER_FAILED' | 'PROVIDER_TIMEOUT' | 'ai_model_not_multimodal' | 'ABORTED'
  readonly status: number | null
  readonly isSent: boolean
}

export class ProviderError extends Error {
  readonly problem: ProviderProblem
  constructor(problem: ProviderProblem) {
    super(problem.code)
    this.name = 'ProviderError'
    this.problem = problem
  }
}

export const failed = (status: number | null = null) =>
  new ProviderError({ code: 'PROVIDER_FAILED', status, isSent: status === null })

export const problemOf = ({ failure, isSent }: Failure): ProviderError =>
  new ProviderError({
    code: failure === 'PROVIDER_TIMEOUT' || failure === 'ABORTED' ? failure : 'PROVIDER_FAILED',
    status: null,
    isSent,
  })

/** A refusal of the provider. Its words are not passed on: only whether the model takes no images is read from them. */
const refusalOf = (status: number, body: unknown, hasImages: boolean): ProviderError => {
  const message = textOf(at(body, 'error', 'message')) || textOf(at(body, 'message'))
  const isAboutImages = hasImages && (status === 400 || status === 422) && /image|vision|multimodal/i.test(message)
  return isAboutImages ? new ProviderError({ code: 'ai_model_not_multimodal', status, isSent: false }) : failed(status)
}

export type Exchange = {
  readonly upstream: Upstream
  readonly projectId: string
  readonly dialect: Dialect
  readonly apiKey: string
  readonly signal: AbortSignal
  /** Limit of a call, and of the pauses of a stream. */
  readonly timeoutMs: number
  /** Limit of a whole stream of a prompt. */
  readonly streamMs: number
}

const requestOf = (
  { projectId, dialect, apiKey, signal, timeoutMs }: Exchange,
  { path, params, query, json }: Wire,
) => ({
  provider: dialect.provider,
  projectId,
  method: 'POST' as const,
  path,
  ...(params ? { params } : {}),
  ...(query ? { query } : {}),
  headers: dialect.headers(apiKey),
  json,
  timeoutMs,
  signal,
})

/** Work within the span of a call of a model, which ends with it, or, where it is kept open, only when it fails. */
const inSpan = async <T>(span: Span, work: () => Promise<T>, isKeptOpen = false): Promise<T> => {
  try {
    const result = await within(span, work)
    if (!isKeptOpen) span.end()
    return result
  } catch (error) {
    span.end(problemType(error))
    throw error
  }
}

/** A whole answer. Throws ProviderError. */
export const complete = (exchange: Exchange, chat: ChatRequest, hasImages: boolean): Promise<Piece> => {
  const { upstream, dialect } = exchange
  const span = modelSpan('chat', dialect.provider, chat.model, chat)
  return inSpan(span, async () => {
    const answer = await upstream.call({ ...requestOf(exchange, dialect.request(chat)), maxBytes })
    if (answer.failure !== null) throw problemOf(answer)
    if (answer.status >= 300) throw refusalOf(answer.status, answer.json(), hasImages)
    const piece = dialect.read(answer.json())
    if (!piece) throw failed()
    setUsed(span, piece.usage ?? {}, piece.finishReason)
    return piece
  })
}

/** Opens a stream: resolves when the provider has begun to answer. Throws ProviderError. */
export const openStream = async (
  exchange: Exchange,
  chat: ChatRequest,
  hasImages: boolean,
): Promise<AsyncIterable<readonly Piece[]>> => {
  const { upstream, dialect, timeoutMs: idleMs, streamMs: totalMs } = exchange
  const span = modelSpan('chat', dialect.provider, chat.model, chat)
  const open = async () => {
    const answer = await upstream.stream({ ...requestOf(exchange, dialect.request(chat)), idleMs, totalMs })
    if (answer.failure !== null) throw problemOf(answer)
    if (answer.status >= 300) throw refusalOf(answer.status, await readRefusal(answer), hasImages)
    return answer
  }
  const read = pieces(dialect, await inSpan(span, open, true))
  return span === noSpan ? read : observed(span, read)
}

/** Ends the span of a stream when the stream ends, however it does. */
async function* observed(span: Span, read: AsyncIterable<readonly Piece[]>) {
  let usage: Usage = {}
  let error: string | undefined = 'ABORTED'
  try {
    for await (const found of read) {
      for (const piece of found) {
        usage = { ...usage, ...piece.usage }
        setUsed(span, usage, piece.finishReason)
      }
      yield found
    }
    error = undefined
  } catch (thrown) {
    error = problemType(thrown)
    throw thrown
  } finally {
    span.end(error)
  }
}

/** The beginning of a refusal's body. */
const readRefusal = async ({ body }: StreamedResponse): Promise<unknown> => {
  let text = ''
  try {
    for await (const chunk of body) {
      text += String(chunk)
      if (text.length > 65_536) break
    }
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function* pieces({ readEvent, endsSilently }: Dialect, { body }: StreamedResponse) {
  const read = createEventReader()
  let isOver = false
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      const found = read(chunk as Uint8Array)
        .map(readEvent)
        .filter((piece) => piece !== null)
      if (found.some(({ isError }) => isError)) throw failed()
      isOver ||= found.some((piece) => piece.isLast || (endsSilently && piece.finishReason !== undefined))
      if (found.length > 0) yield found
      // what may come after the last event is of no interest, and the connection is kept for the next call
      if (found.some(({ isLast }) => isLast)) {
        body.resume()
        return
      }
    }
  } catch (error) {
    throw error instanceof ProviderError ? error : problemOf(failureOf(error))
  }
  // a stream that broke off looks like one that ended
  if (!isOver) throw failed()
}

/** The provider's own request and response, bytes unchanged, and its span, which its reader ends. Throws ProviderError. */
export const relay = async (
  exchange: Exchange,
  wire: Wire,
  model: string,
): Promise<StreamedResponse & { readonly span: Span }> => {
  const { upstream, dialect, timeoutMs: idleMs } = exchange
  const span = modelSpan('chat', dialect.provider, model)
  const open = async () => {
    const answer = await upstream.stream({ ...requestOf(exchange, wire), idleMs })
    if (answer.failure !== null) throw problemOf(answer)
    return answer
  }
  return { ...(await inSpan(span, open, true)), span }
}

/** Whether the body of a native request asks for a stream. */
export const isStreamed = (body: Readonly<Record<string, unknown>>) => body['stream'] === true

type EmbeddingRequest = {
  readonly model: string
  readonly input: string | readonly string[]
  readonly dimensions?: number
}
type Embedded = {
  readonly embeddings: readonly (readonly number[])[]
  /** As far as the provider has reported them. */
  readonly usage: { readonly input: number | undefined; readonly total: number | undefined }
}

/** Embeddings in OpenAI's format. Throws ProviderError. */
export const embed = (exchange: Exchange, json: EmbeddingRequest): Promise<Embedded> => {
  const span = modelSpan('embeddings', exchange.dialect.provider, json.model)
  return inSpan(span, async () => {
    const made = await embedUntraced(exchange, json)
    setUsed(span, usageOf(made.usage.input, undefined))
    return made
  })
}

const embedUntraced = async (exchange: Exchange, json: EmbeddingRequest): Promise<Embedded> => {
  const answer = await exchange.upstream.call({
    ...requestOf(exchange, { path: '/v1/embeddings', json }),
    maxBytes: 64 * 1024 * 1024,
  })
  if (answer.failure !== null) throw problemOf(answer)
  if (answer.status >= 300) throw failed(answer.status)
  const body = answer.json()
  const rows = at(body, 'data')
  const wanted = typeof json.input === 'string' ? 1 : json.input.length
  if (!Array.isArray(rows) || rows.length !== wanted) throw failed()
  const embeddings: number[][] = []
  for (const [place, row] of rows.entries()) {
    const vector = at(row, 'embedding')
    const index = countOf(at(row, 'index') ?? place)
    if (index === undefined || index >= wanted || embeddings[index]) throw failed()
    if (!Array.isArray(vector) || vector.some((value) => typeof value !== 'number')) throw failed()
    embeddings[index] = vector
  }
  const count = (name: string) => countOf(at(body, 'usage', name))
  return { embeddings, usage: { input: count('prompt_tokens'), total: count('total_tokens') } }
}

export type Spent = { readonly input: number; readonly output: number; readonly isEstimated: boolean }

/** Tokens of a text of so many bytes, where nobody has counted them. */
const tokensOf = (bytes: number) => Math.ceil(bytes / 4)

export type Seen = {
  readonly usage: Usage
  readonly inputBytes: number
  readonly outputBytes: number
  readonly maxTokens: number
  /** Of an answer that did not come to its end, how long it was waited for, if none of it was seen. */
  readonly unseenMs?: number
  readonly isComplete: boolean
}

/** What a call has used: as the provider reports it, else estimated. */
export const spentOf = ({ usage, inputBytes, outputBytes, maxTokens, unseenMs = 0, isComplete }: Seen): Spent => {
  const input = usage.input ?? tokensOf(inputBytes)
  if (isComplete && usage.output !== undefined)
    return { input, output: usage.output, isEstimated: usage.input === undefined }
  // a stream that broke off has reported the tokens of its beginning, or none
  const unseen = Math.min(maxTokens, Math.ceil((unseenMs / 1000) * tokensPerSecond))
  return { input, output: Math.max(usage.output ?? 0, tokensOf(outputBytes), unseen), isEstimated: true }
}
