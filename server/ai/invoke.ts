/** Invoking a prompt: one answer, or a stream of its pieces, from the admission of the call to its record. */
import { Readable } from 'node:stream'
import {
  admit,
  allowsEcho,
  exchangeWith,
  isComped,
  messageOf,
  providerRefusal,
  finish as recordEnd,
  watchClient,
} from '#server/ai/calls.ts'
import { chatOf, formatOf, type Invocation, loggedMessages, measure } from '#server/ai/requests.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'
import type { ChatRequest, Piece, Usage } from '#server/providers/ai/chat.ts'
import { echo } from '#server/providers/ai/echo.ts'
import {
  type AiProvider,
  complete,
  openStream,
  ProviderError,
  type ProviderProblem,
  spentOf,
} from '#server/providers/ai/gateway.ts'

/** What api.ai_begin answers. */
type Begun = {
  readonly id: string
  readonly prompt: string
  readonly version: number
  readonly provider: AiProvider | 'echo'
  readonly model: string
  readonly system: string | null
  readonly max_tokens: number
  readonly moderates_output: boolean
  readonly log_payloads: boolean
  readonly api_key_sealed: string | null
}

export type Kind = 'invoke' | 'evaluate'

const rejected = () => refusal(400, 'CONTENT_REJECTED', 'A moderation rule of the app rejects the answer of the model.')

/** Admits a call: throws the refusals of api.ai_begin. */
const begin = async (context: HandlerContext, prompt: string, kind: Kind, asked: Invocation, isClient: boolean) => {
  const { request, services } = context
  const { texts, bytes, images } = measure(asked)
  const { begun, reserved } = await admit<Begun>(context, 'ai_begin', {
    prompt,
    is_client: isClient,
    kind,
    context: asked.context,
    texts,
    bytes,
    images,
    has_messages: asked.messages.length > 0,
    max_tokens: asked.max_tokens ?? null,
    address: addressKey(request.ip),
    allows_echo: allowsEcho(context),
    prices: services.aiPrices,
    is_comped: isComped(context),
    is_stream: asked.stream,
  })
  return { begun, reserved, images, inputBytes: bytes + Buffer.byteLength(begun.system ?? '') }
}

type Call = {
  readonly context: HandlerContext
  readonly begun: Begun
  /** Resolves when the reservation is durable, rejects when it is not there. */
  readonly reserved: Promise<void>
  readonly asked: Invocation
  readonly chat: ChatRequest
  readonly images: number
  readonly inputBytes: number
  readonly began: number
}

type Ended = {
  readonly usage: Usage
  readonly text: string
  readonly outputBytes: number
  readonly finishReason: string | null
}

const nothing: Ended = { usage: {}, text: '', outputBytes: 0, finishReason: null }

/** A text of a provider as Postgres can hold it: without U+0000 and halves of surrogate pairs. */
export const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')

const payloadOf = ({ begun, asked }: Call, output: string) =>
  begun.log_payloads
    ? { context: asked.context, messages: loggedMessages(asked.messages), output: storable(output.slice(0, 200_000)) }
    : null

/** Records how a call ended. Resolves with its usage as the client sees it. */
const finish = async (call: Call, ended: Ended, problem: ProviderProblem | null) => {
  const { context, begun, inputBytes, began } = call
  // nothing was read of a request that was refused, or never sent
  const isUnread = problem !== null && ended === nothing && !problem.isSent
  const spent = isUnread
    ? { input: 0, output: 0, isEstimated: false }
    : spentOf({
        ...ended,
        inputBytes,
        maxTokens: begun.max_tokens,
        isComplete: problem === null,
        ...(problem && ended === nothing ? { unseenMs: performance.now() - began } : {}),
      })
  const reply = await recordEnd(context, begun.id, {
    outcome: problem === null ? 'succeeded' : problem.code === 'ABORTED' ? 'cancelled' : 'failed',
    input_tokens: spent.input,
    output_tokens: spent.output,
    is_estimated: spent.isEstimated,
    finish_reason: ended.finishReason,
    error_code: problem?.code ?? null,
    output: begun.moderates_output ? storable(ended.text) : null,
    payload: payloadOf(call, ended.text),
  })
  const { cost_usd, is_rejected } = dataOf<{ cost_usd: number; is_rejected: boolean }>(reply)
  return { usage: { input_tokens: spent.input, output_tokens: spent.output, cost_usd }, isRejected: is_rejected }
}

const exchangeOf = ({ context, begun }: Call, provider: AiProvider, signal: AbortSignal) =>
  exchangeWith(context, provider, begun.api_key_sealed ?? '', signal)

const joined = (pieces: readonly Piece[]): Ended =>
  pieces.reduce<Ended>(
    (sum, piece) => ({
      usage: { ...sum.usage, ...piece.usage },
      text: sum.text + piece.text,
      outputBytes: sum.outputBytes + Buffer.byteLength(piece.text),
      finishReason: piece.finishReason ?? sum.finishReason,
    }),
    nothing,
  )

/** The JSON of an answer; models like to fence it. */
const objectOf = (text: string): unknown => JSON.parse(text.replace(/^\s*```(?:json)?\s*|\s*```\s*$/g, ''))

const isRead = (text: string): boolean => {
  try {
    objectOf(text)
    return true
  } catch {
    return false
  }
}

export type Outcome = {
  readonly begun: Pick<Begun, 'id' | 'prompt' | 'version'>
  readonly text: string
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly cost_usd: number }
  readonly finishReason: string | null
}

const start = async (
  context: HandlerContext,
  name: string,
  kind: Kind,
  asked: Invocation,
  isClient: boolean,
  client: ReturnType<typeof watchClient>,
): Promise<Call> => {
  const { begun, reserved, images, inputBytes } = await begin(context, name, kind, asked, isClient)
  // a call that is not reserved is not made
  reserved.catch(client.abort)
  return { context, begun, reserved, asked, images, inputBytes, chat: chatOf(begun, asked), began: performance.now() }
}

/** One whole call of a prompt, from its admission to its record. Throws what refuses it. */
export const invokeOnce = async (
  context: HandlerContext,
  name: string,
  kind: Kind,
  asked: Invocation,
  isClient: boolean,
): Promise<Outcome> => {
  const client = watchClient(context)
  try {
    const call = await start(context, name, kind, asked, isClient, client)
    const { begun, chat, images } = call
    const { provider } = begun
    let ended: Ended
    try {
      ended =
        provider === 'echo'
          ? joined(echo(chat))
          : joined([await complete(exchangeOf(call, provider, client.signal), chat, images > 0)])
    } catch (error) {
      await call.reserved
      await finish(call, nothing, problemIn(error, client.signal))
      throw error instanceof ProviderError ? providerRefusal(error) : error
    }
    await call.reserved
    // a reply that is no JSON was paid for: its tokens count, its currency is given back
    const isBroken = chat.format.type !== 'text' && !isRead(ended.text)
    const { usage, isRejected } = await finish(
      call,
      ended,
      isBroken ? { code: 'PROVIDER_FAILED', status: null, isSent: true } : null,
    )
    if (isRejected) throw rejected()
    if (isBroken) throw refusal(502, 'PROVIDER_FAILED', 'The model did not answer with JSON.')
    return { begun, text: ended.text, usage, finishReason: ended.finishReason }
  } finally {
    client.release()
  }
}

const problemIn = (error: unknown, signal: AbortSignal): ProviderProblem => {
  const problem = error instanceof ProviderError ? error.problem : null
  if (signal.aborted) return { code: 'ABORTED', status: null, isSent: problem?.isSent ?? true }
  return problem ?? { code: 'PROVIDER_FAILED', status: null, isSent: true }
}

const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** How long a client may leave the end of a stream unread, after the longest time of a stream. */
const unreadMs = 1_000

/** How often a stream whose text is held back says that it is alive. */
const sayingMs = 10_000

async function* echoed(chat: ChatRequest) {
  for (const piece of echo(chat)) yield [piece]
}

/**
 * The events of a stream. Each piece of the provider's stream becomes an event as it comes, unless rules evaluate the output: then the text is held back
 * until they have. However the stream ends, what it has used is recorded.
 */
async function* events(call: Call, pieces: AsyncIterable<readonly Piece[]>, client: ReturnType<typeof watchClient>) {
  const { begun } = call
  const keepsText = begun.moderates_output || begun.log_payloads
  const seen = { usage: {} as Usage, outputBytes: 0, finishReason: null as string | null }
  const texts: string[] = []
  const ended = (): Ended => ({ ...seen, text: texts.join('') })
  let isRecorded = false
  let said = performance.now()
  try {
    for await (const found of pieces) {
      let text = ''
      for (const piece of found) {
        text += piece.text
        if (piece.usage) seen.usage = { ...seen.usage, ...piece.usage }
        seen.finishReason = piece.finishReason ?? seen.finishReason
      }
      if (text === '') continue
      seen.outputBytes += Buffer.byteLength(text)
      if (keepsText) texts.push(text)
      if (!begun.moderates_output) yield event('delta', { text })
      else if (performance.now() - said > sayingMs) {
        said = performance.now()
        yield ': \n\n'
      }
    }
    isRecorded = true
    const { usage, isRejected } = await finish(call, ended(), null)
    if (isRejected) {
      const { code, message } = rejected()
      yield event('error', { code, message })
      return
    }
    if (begun.moderates_output && texts.length > 0) yield event('delta', { text: texts.join('') })
    yield event('done', {
      id: begun.id,
      prompt: begun.prompt,
      version: begun.version,
      usage,
      finish_reason: seen.finishReason,
    })
  } catch (error) {
    if (isRecorded) throw error
    isRecorded = true
    const problem = problemIn(error, client.signal)
    await finish(call, ended(), problem)
    if (problem.code !== 'ABORTED') yield event('error', { code: problem.code, message: messageOf[problem.code] })
  } finally {
    client.release()
    // the client stopped reading between two pieces
    if (!isRecorded) await finish(call, ended(), { code: 'ABORTED', status: null, isSent: true })
  }
}

/** Begins to read at once: what has come stays there when the provider breaks off meanwhile. */
const readAhead = <T>(source: AsyncIterable<T>): AsyncIterable<T> => {
  const iterator = source[Symbol.asyncIterator]()
  const first = iterator.next()
  first.catch(() => undefined)
  return (async function* () {
    try {
      for (let step = await first; !step.done; step = await iterator.next()) yield step.value
    } finally {
      await iterator.return?.()
    }
  })()
}

const stream = async (context: HandlerContext, name: string, asked: Invocation, isClient: boolean): Promise<Answer> => {
  const client = watchClient(context)
  let isHandedOver = false
  try {
    const call = await start(context, name, 'invoke', asked, isClient, client)
    const { begun, chat, images } = call
    const { provider } = begun
    let pieces: AsyncIterable<readonly Piece[]>
    try {
      pieces =
        provider === 'echo'
          ? echoed(chat)
          : await openStream(exchangeOf(call, provider, client.signal), chat, images > 0)
    } catch (error) {
      await call.reserved
      await finish(call, nothing, problemIn(error, client.signal))
      throw error instanceof ProviderError ? providerRefusal(error) : error
    }
    const read = readAhead(pieces)
    await call.reserved
    const body = Readable.from(events(call, read, client), { objectMode: false })
    // the provider's end of a stream that is over reaches a generator only when its client reads on: one that does not is cut off
    const cut = setTimeout(() => body.destroy(), context.services.config.AI_STREAM_MS + unreadMs).unref()
    body.once('close', () => {
      clearTimeout(cut)
      // a generator that waits for the provider hears of its client's end only through the signal
      client.abort()
    })
    isHandedOver = true
    return {
      status: 200,
      body,
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        'x-accel-buffering': 'no',
      },
    }
  } finally {
    if (!isHandedOver) client.release()
  }
}

/** Invokes a prompt: one answer, or a stream of its pieces. */
export const invoke =
  (isClient: boolean) =>
  async (context: HandlerContext): Promise<Answer> => {
    const asked = context.body as Invocation
    const name = String(context.params['name'])
    if (asked.stream) return stream(context, name, asked, isClient)
    const { begun, text, usage, finishReason } = await invokeOnce(context, name, 'invoke', asked, isClient)
    const { id, prompt, version } = begun
    const isText = formatOf(asked.response_format).type === 'text'
    const content = isText ? { output: text } : { object: objectOf(text) }
    return {
      status: 200,
      body: JSON.stringify({ data: { id, prompt, version, ...content, usage, finish_reason: finishReason } }),
    }
  }
