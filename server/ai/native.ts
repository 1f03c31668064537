/** Calls in a provider's own format, and embeddings: passed on, with what they use read in passing. */
import { Readable } from 'node:stream'
import {
  exchangeWith,
  finish,
  type Outcome,
  providerRefusal,
  reserve,
  type Surroundings,
  watchClient,
} from '#server/ai/calls.ts'
import { embedded, type Wanted } from '#server/ai/embeddings.ts'
import { refusal } from '#server/errors.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'
import { boundOf } from '#server/providers/ai/bounds.ts'
import { type Dialect, type Piece, parsed, textOf, type Usage } from '#server/providers/ai/chat.ts'
import { type AiProvider, dialects, isStreamed, ProviderError, relay, spentOf } from '#server/providers/ai/gateway.ts'
import { createEventReader } from '#server/providers/ai/server_events.ts'
import { setUsed } from '#server/providers/ai/span.ts'
import type { StreamedResponse } from '#server/providers/upstream.ts'
import type { Span } from '#server/telemetry/spans.ts'

/** The end of a response is read for its usage, up to this length. */
const mostRead = 4 * 1024 * 1024

/** Reads in passing what a response says of its usage. */
const createTap = ({ read, readEvent }: Dialect, headers: StreamedResponse['headers']) => {
  const isEvents = String(headers['content-type']).startsWith('text/event-stream')
  const seen = { usage: {} as Usage, outputBytes: 0 }
  const note = (piece: Piece | null) => {
    seen.usage = { ...seen.usage, ...piece?.usage }
    seen.outputBytes += Buffer.byteLength(piece?.text ?? '')
  }
  const readEvents = createEventReader()
  const chunks: Uint8Array[] = []
  let length = 0
  // identity is asked for; what comes in another encoding all the same is passed on unread
  let isReadable = (headers['content-encoding'] ?? 'identity') === 'identity'
  return {
    seen,
    take(chunk: Uint8Array) {
      // what cannot be read has been written all the same
      if (!isReadable) {
        seen.outputBytes += chunk.length
        return
      }
      try {
        if (isEvents) readEvents(chunk).map(readEvent).forEach(note)
        else {
          length += chunk.length
          isReadable = length <= mostRead
          chunks.push(chunk)
          if (!isReadable) seen.outputBytes += length
        }
      } catch {
        // what cannot be read is passed on all the same
        isReadable = false
      }
    },
    end() {
      if (isEvents || !isReadable) return
      const piece = read(parsed(Buffer.concat(chunks).toString()))
      if (piece) note(piece)
      else seen.outputBytes += length
    },
  }
}

type Relayed = {
  readonly id: string
  readonly provider: AiProvider
  readonly inputBytes: number
  readonly maxTokens: number
}

async function* bytesOf(
  context: Surroundings,
  client: ReturnType<typeof watchClient>,
  { status, headers, body, span }: StreamedResponse & { readonly span: Span },
  { id, provider, inputBytes, maxTokens }: Relayed,
) {
  const tap = createTap(dialects[provider], headers)
  let outcome: Outcome['outcome'] = 'cancelled'
  try {
    for await (const chunk of body) {
      tap.take(chunk as Uint8Array)
      yield chunk as Uint8Array
    }
    tap.end()
    outcome = status < 300 ? 'succeeded' : 'failed'
  } catch (error) {
    outcome = client.signal.aborted ? 'cancelled' : 'failed'
    if (outcome === 'failed') throw error
  } finally {
    client.release()
    setUsed(span, tap.seen.usage)
    span.end(outcome === 'succeeded' ? undefined : outcome === 'failed' ? String(status) : 'ABORTED')
    // a refused request costs nothing
    const spent =
      status < 300
        ? spentOf({ ...tap.seen, inputBytes, maxTokens, isComplete: outcome === 'succeeded' })
        : { input: 0, output: 0, isEstimated: false }
    await finish(context, id, {
      outcome,
      error_code: outcome === 'failed' ? 'PROVIDER_FAILED' : null,
      input_tokens: spent.input,
      output_tokens: spent.output,
      is_estimated: spent.isEstimated,
    })
  }
}

/** How a call ended of which no answer came: a request that was sent has been read, and an answer may have been begun. */
const unanswered = ({ problem }: ProviderError, { inputBytes, maxTokens }: Relayed, unseenMs: number): Outcome => {
  const spent = problem.isSent
    ? spentOf({ usage: {}, inputBytes, outputBytes: 0, maxTokens, unseenMs, isComplete: false })
    : { input: 0, output: 0, isEstimated: true }
  return {
    outcome: problem.code === 'ABORTED' ? 'cancelled' : 'failed',
    error_code: problem.code,
    input_tokens: spent.input,
    output_tokens: spent.output,
    is_estimated: spent.isEstimated,
  }
}

/** Forwards a request in the provider's own format, and the response with its status and its bytes as they come. */
export const forward = async (context: HandlerContext): Promise<Answer> => {
  const { provider, body } = context.body as { provider: AiProvider; body: Record<string, unknown> }
  // numbers as they were sent
  const { body: sent } = context.sent as { body: Record<string, unknown> }
  const wire = dialects[provider].native(sent)
  if (!wire) {
    const reason = "is required: Google's model is in the path of its requests"
    throw refusal(400, 'INVALID_INPUT', `body.model: ${reason}`, { field: 'body.model', reason })
  }
  const client = watchClient(context)
  let isHandedOver = false
  try {
    const model = textOf(body['model']) || 'unknown'
    const bound = boundOf(body, Buffer.byteLength(JSON.stringify(sent)))
    const { begun, reserved } = await reserve(
      context,
      { kind: 'messages', provider, model, most_input: bound.input, most_output: bound.output },
      client,
    )
    const relayed = { id: begun.id, provider, inputBytes: bound.textBytes, maxTokens: bound.output }
    const exchange = exchangeWith(context, provider, begun.api_key_sealed, client.signal)
    const began = performance.now()
    const answer = await relay(exchange, wire, model).catch(async (error: unknown) => {
      if (!(error instanceof ProviderError)) throw error
      await reserved
      await finish(context, begun.id, unanswered(error, relayed, performance.now() - began))
      throw providerRefusal(error)
    })
    await reserved
    const stream = Readable.from(bytesOf(context, client, answer, relayed), { objectMode: false })
    stream.once('close', client.abort)
    isHandedOver = true
    const { 'content-type': type, 'content-encoding': encoding, 'retry-after': wait } = answer.headers
    return {
      status: answer.status,
      body: stream,
      headers: {
        'content-type': type ?? 'application/octet-stream',
        ...(encoding ? { 'content-encoding': encoding } : {}),
        ...(wait ? { 'retry-after': wait } : {}),
        ...(isStreamed(sent) ? { 'x-accel-buffering': 'no' } : {}),
      },
    }
  } finally {
    if (!isHandedOver) client.release()
  }
}

export const embeddings = async (context: HandlerContext): Promise<Answer> => {
  const { model, input } = context.body as Wanted
  const data = await embedded(context, { model, input })
  return { status: 200, body: JSON.stringify({ data }) }
}
