import type { Attributes, Link, Span as OtelSpan, SpanContext, Tracer } from '@opentelemetry/api'
import type { Sampler, SpanExporter } from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import type { Config } from '#server/config.ts'
import { noSpan, type Span, type SpanAttributes, type SpanKind } from '#server/telemetry/spans.ts'

/** Begins traces: requests, jobs and rows of outboxes. What happens within them joins by itself (spans.ts). */
export type Traces = {
  readonly isOn: boolean
  /** The trace of a request goes on where its `traceparent` says, if it has a valid one. */
  request(name: string, traceparent: string | string[] | undefined, attributes: SpanAttributes): Span
  /** A trace of its own, with links to what caused it. */
  job(name: string, attributes: SpanAttributes, causes: readonly (Span | string | undefined)[]): Span
  close(): Promise<void>
}

export const noTraces: Traces = {
  isOn: false,
  request: () => noSpan,
  job: () => noSpan,
  close: async () => undefined,
}

type Settings = Pick<
  Config,
  'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_TRACES_EXPORTER' | 'OTEL_TRACES_SAMPLER' | 'OTEL_TRACES_SAMPLER_ARG'
>

/** Values of our own are short; what is longer was not meant. */
const longestValue = 256

/** OpenTelemetry's SDK, which sends spans in batches by OTLP. Its modules are read only here, where they are wanted. */
export const createTraces = async (
  config: Settings,
  resourceAttributes: Attributes,
  log: Pick<Logger, 'warn'>,
): Promise<Traces> => {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT
  if (endpoint === undefined || config.OTEL_TRACES_EXPORTER === 'none') return noTraces
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }, { parseTraceParent }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/core'),
  ])
  const { ROOT_CONTEXT, SpanStatusCode, trace } = api
  const kinds = {
    internal: api.SpanKind.INTERNAL,
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    consumer: api.SpanKind.CONSUMER,
  } as const satisfies Record<SpanKind, number>

  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces`, timeoutMillis: 3000 })
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes(resourceAttributes),
    sampler: samplerOf(sdk, config),
    spanLimits: { attributeValueLengthLimit: longestValue },
    // a queue that is full drops what comes then: a collector that is down costs 2,048 spans of memory
    // the exporter's own limit is the longest silence: one that sends a byte now and then would hold the server's stop for half a minute
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: reporting(exporter, log), exportTimeoutMillis: 5000 })],
  })
  const tracer: Tracer = provider.getTracer('trellis')

  class LiveSpan implements Span {
    readonly traceId: string
    readonly spanId: string
    readonly isSampled: boolean
    readonly #span: OtelSpan
    isOver = false
    constructor(span: OtelSpan) {
      const { traceId, spanId, traceFlags } = span.spanContext()
      this.#span = span
      this.traceId = traceId
      this.spanId = spanId
      this.isSampled = (traceFlags & api.TraceFlags.SAMPLED) !== 0
    }
    child(name: string, kind: SpanKind, attributes: SpanAttributes = {}, began?: number): Span {
      if (this.isOver) return noSpan
      const options = {
        kind: kinds[kind],
        attributes: attributes as Attributes,
        ...(began === undefined ? {} : { startTime: performance.timeOrigin + began }),
      }
      return new LiveSpan(tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, this.#span)))
    }
    rename(name: string) {
      this.#span.updateName(name)
    }
    set(attributes: SpanAttributes) {
      if (!this.isOver) this.#span.setAttributes(attributes as Attributes)
    }
    end(error?: string) {
      if (this.isOver) return
      this.isOver = true
      if (error !== undefined) {
        this.#span.setAttribute('error.type', error)
        this.#span.setStatus({ code: SpanStatusCode.ERROR })
      }
      this.#span.end()
    }
  }

  const contextOf = (cause: Span | string | undefined): SpanContext | null => {
    if (cause === undefined || cause === noSpan) return null
    if (typeof cause === 'string') return parseTraceParent(cause)
    const { traceId, spanId, isSampled } = cause
    return { traceId, spanId, traceFlags: isSampled ? api.TraceFlags.SAMPLED : api.TraceFlags.NONE }
  }

  return {
    isOn: true,
    request(name, traceparent, attributes) {
      // of a list none is the caller's for sure
      const sent = typeof traceparent === 'string' ? parseTraceParent(traceparent) : null
      const parent = sent ? trace.setSpanContext(ROOT_CONTEXT, { ...sent, isRemote: true }) : ROOT_CONTEXT
      return new LiveSpan(tracer.startSpan(name, { kind: kinds.server, attributes: attributes as Attributes }, parent))
    },
    job(name, attributes, causes) {
      const links: Link[] = []
      for (const cause of causes) {
        const context = contextOf(cause)
        if (context) links.push({ context })
      }
      const options = { kind: kinds.consumer, attributes: attributes as Attributes, links }
      return new LiveSpan(tracer.startSpan(name, options, ROOT_CONTEXT))
    },
    close: () =>
      provider.shutdown().catch((error: Error) => log.warn({ error: error.message }, 'the last spans were not sent')),
  }
}

/** The samplers of the specification, by their names there. */
const samplerOf = (sdk: typeof import('@opentelemetry/sdk-trace'), config: Settings): Sampler => {
  const { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio = 1 } = config
  const root = name.endsWith('always_on')
    ? new sdk.AlwaysOnSampler()
    : name.endsWith('always_off')
      ? new sdk.AlwaysOffSampler()
      : new sdk.TraceIdRatioBasedSampler(ratio)
  return name.startsWith('parentbased_') ? new sdk.ParentBasedSampler({ root }) : root
}

/** Tells once when spans cannot be sent, and again after they could. */
const reporting = (exporter: SpanExporter, log: Pick<Logger, 'warn'>): SpanExporter => {
  let isFailing = false
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const hasFailed = result.error !== undefined || result.code !== 0
        if (hasFailed && !isFailing)
          log.warn({ error: result.error?.message, spans: spans.length }, 'spans were not sent')
        isFailing = hasFailed
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
    ...(exporter.forceFlush ? { forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve() } : {}),
  }
}
