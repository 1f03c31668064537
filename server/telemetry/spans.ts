import { AsyncLocalStorage } from 'node:async_hooks'

/** Names are those of OpenTelemetry's semantic conventions where these have one; values name nobody and are no value of a row. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

export type SpanKind = 'internal' | 'server' | 'client' | 'consumer'

/** An operation under way, part of the trace of a request or of a job. */
export type Span = {
  readonly traceId: string
  readonly spanId: string
  /** Whether it is exported. One that is not still has its ids, for the log and for `traceparent`. */
  readonly isSampled: boolean
  /** Whether it has ended. What goes on after that (a timer, a connection kept for others) is no part of it. */
  readonly isOver: boolean
  /** `began` in milliseconds of performance.now(), for one that is told of afterwards. */
  child(name: string, kind: SpanKind, attributes?: SpanAttributes, began?: number): Span
  rename(name: string): void
  set(attributes: SpanAttributes): void
  /** `error`, a code or a class of errors and never a message, marks it as failed. */
  end(error?: string): void
}

/** Where there is no trace, or one that is not exported: nothing is kept. */
export const noSpan: Span = {
  traceId: '',
  spanId: '',
  isSampled: false,
  isOver: true,
  child: () => noSpan,
  rename: () => undefined,
  set: () => undefined,
  end: () => undefined,
}

const storage = new AsyncLocalStorage<Span>()

/** The span that surrounds this call, whether it is exported or not. */
export const activeSpan = (): Span | undefined => storage.getStore()

/** Starts a part of the surrounding span; without one that is exported, `noSpan`. */
export const startSpan = (name: string, kind: SpanKind, attributes?: SpanAttributes): Span => {
  const parent = storage.getStore()
  return parent?.isSampled ? parent.child(name, kind, attributes) : noSpan
}

/** Runs work that is nobody's part, though it is begun within a span: a timer that serves all. */
export const outside = <T>(work: () => T): T => storage.exit(work)

/** Runs work with this span around it. */
export const within = <T>(span: Span, work: () => T): T => (span === noSpan ? work() : storage.run(span, work))

/** Work as a part of the surrounding span. `failed` says what an error is called; by default the error's code or name. */
export const spanned = async <T>(
  name: string,
  kind: SpanKind,
  attributes: SpanAttributes,
  work: (span: Span) => Promise<T>,
  failed: (error: unknown) => string = errorType,
): Promise<T> => {
  const span = startSpan(name, kind, attributes)
  if (span === noSpan) return work(span)
  try {
    const result = await storage.run(span, work, span)
    span.end()
    return result
  } catch (error) {
    span.end(failed(error))
    throw error
  }
}

/** What an error is called in a span: a code or the name of its class, because its message may repeat what a caller sent. */
export const errorType = (error: unknown): string => {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return typeof code === 'string' ? code : typeof name === 'string' ? name : 'Error'
}

/** The span as the W3C header `traceparent` names it. */
export const traceparentOf = ({ traceId, spanId, isSampled }: Span): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`

/** What each log line within a span has. */
export const traceFields = (): { trace_id?: string; span_id?: string } => {
  const span = storage.getStore()
  return span && !span.isOver ? { trace_id: span.traceId, span_id: span.spanId } : {}
}
