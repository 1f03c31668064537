import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Agent, type Dispatcher } from 'undici'
import type { Config } from '#server/config.ts'
import { createCircuits } from '#server/providers/circuits.ts'
import {
  type CallRequest,
  type ProviderName,
  providers,
  type StreamRequest,
  type UpstreamRequest,
} from '#server/providers/upstream_requests.ts'
import { setAnswered, traceHeaders, upstreamSpan } from '#server/providers/upstream_span.ts'
import { type Measures, noMeasures } from '#server/telemetry/measures.ts'
import { errorType, within } from '#server/telemetry/spans.ts'

export type ProviderUrls = Pick<Config, (typeof providers)[ProviderName]>

const usualTimeoutMs = 15_000
const connectTimeoutMs = 5_000
const usualIdleMs = 60_000
const usualMaxBytes = 4 * 1024 * 1024
const maxHeaderBytes = 32 * 1024
const maxAttempts = 3
const firstBackoffMs = 250
const maxBackoffMs = 5_000
export type FailureCode = 'PROVIDER_TIMEOUT' | 'PROVIDER_UNAVAILABLE' | 'PROVIDER_FAILED' | 'ABORTED'

/**
 * Why there is no response. PROVIDER_UNAVAILABLE: nobody answers, or the circuit is open. PROVIDER_FAILED: the response broke off, was too
 * large or no HTTP. `reason` is one of our own words, never the provider's.
 */
export type Failure = {
  readonly failure: FailureCode
  readonly reason: string
  /** False when the provider has certainly not received the request. */
  readonly isSent: boolean
}

/** What the provider answered, whatever the status; redirects are not followed. */
export type Response = {
  readonly failure: null
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Buffer
  /** The body as JSON; undefined when it is none. */
  json(): unknown
}

export type StreamedResponse = {
  readonly failure: null
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The body as it arrives, bytes unchanged. It must be read or destroyed. Errors of it are read by `failureOf`. */
  readonly body: Dispatcher.ResponseData['body']
}

export type Upstream = {
  /** One exchange, read to its end. Rejects only for a request that cannot be written. */
  call(request: CallRequest): Promise<Response | Failure>
  /** One exchange whose body is passed on unread. The stream errors when the signal fires, when it pauses too long, or breaks off. */
  stream(request: StreamRequest): Promise<StreamedResponse | Failure>
  /** Ends what is in progress. */
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly upstream: Upstream
  }
}

export type UpstreamOptions = {
  readonly urls: ProviderUrls
  readonly log: Pick<Logger, 'debug'>
  readonly measures?: Pick<Measures, 'providerCall'>
  /** Waits before a retry; a test passes its own. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** Milliseconds of a clock that never goes back. */
  readonly clock?: () => number
  readonly random?: () => number
}

/** Failures by the code of the error behind them; anything else is a response that is not valid HTTP. */
const failures: readonly (readonly [pattern: RegExp, code: FailureCode, reason: string, isSent: boolean])[] = [
  [/^TRELLIS_TIMEOUT$|^ETIMEDOUT$|^UND_ERR_(HEADERS|BODY)_TIMEOUT$/, 'PROVIDER_TIMEOUT', 'no answer in time', true],
  [/^TRELLIS_ABORTED$|^UND_ERR_ABORTED$/, 'ABORTED', 'the caller went away', true],
  [/^TRELLIS_TOO_LARGE$/, 'PROVIDER_FAILED', 'response is too large', true],
  [/^UND_ERR_CONNECT_TIMEOUT$/, 'PROVIDER_TIMEOUT', 'no connection in time', false],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$/, 'PROVIDER_UNAVAILABLE', 'no connection', false],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'PROVIDER_UNAVAILABLE', 'host name does not resolve', false],
  [/^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL|EPROTO)/, 'PROVIDER_UNAVAILABLE', 'TLS failed', false],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'PROVIDER_FAILED', 'connection broke off', true],
]
const coded = (code: string) => Object.assign(new Error(code), { code })
const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? '')

/** The failure behind an error of an exchange or of a streamed body. Contains nothing that the provider wrote. */
export const failureOf = (error: unknown): Failure => {
  const [, failure, reason, isSent] = failures.find(([pattern]) => pattern.test(codeOf(error))) ?? [
    ...([null, 'PROVIDER_FAILED' as const, 'response is not valid', true] as const),
  ]
  return { failure, reason, isSent }
}

type Received = { readonly failure: null; readonly status: number; readonly headers: Readonly<Record<string, string>> }

const transient = new Set([429, 502, 503, 504])
/** Whether a repetition may help: the provider is overloaded, or the connection failed. */
const isTransient = (answer: Received | Failure): boolean =>
  answer.failure === null ? transient.has(answer.status) : !answer.isSent || answer.reason === 'connection broke off'

/** Seconds or a date; null when the header is missing or unreadable. */
export const retryAfterMs = (header: string | undefined, now = Date.now()): number | null => {
  const text = header?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

const encodeParam = (name: string, value: string | undefined): string => {
  // these three would name another path
  if (!value || value === '.' || value === '..') throw new Error(`the path parameter ${name} cannot be sent`)
  return encodeURIComponent(value)
}

const addressOf = (base: string, { path, params = {}, query = {} }: UpstreamRequest) => {
  const { origin, pathname } = new URL(base)
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeParam(name, params[name]))
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  )
  const search = pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ''
  return { origin, path: `${pathname.replace(/\/+$/, '')}${filled}${search}` }
}

const textHeaders = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
    ),
  )

/** Aborts with the signal of the caller, and at the end of a call's time. */
const createBounds = (signal: AbortSignal | undefined, timeoutMs: number, totalMs?: number) => {
  const controller = new AbortController()
  const onAbort = () => controller.abort(coded('TRELLIS_ABORTED'))
  const onTime = () => controller.abort(coded('TRELLIS_TIMEOUT'))
  const timer = setTimeout(onTime, timeoutMs)
  const lastTimer = totalMs === undefined ? undefined : setTimeout(onTime, totalMs)
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  const stopTimer = () => clearTimeout(timer)
  const end = () => {
    stopTimer()
    clearTimeout(lastTimer)
    signal?.removeEventListener('abort', onAbort)
  }
  // the caller's signal stays in force when the time limit is over
  return { signal: controller.signal, stopTimer, end }
}
type Bounds = ReturnType<typeof createBounds>

const readAll = async (body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw coded('TRELLIS_TOO_LARGE')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

const parsed = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** The request as undici takes it. Throws for a parameter that cannot be in a path, and for JSON that cannot be written. */
const prepared = (base: string, request: UpstreamRequest): Dispatcher.RequestOptions & { readonly origin: string } => {
  const { method, json, body = null, headers = {} } = request
  return {
    ...addressOf(base, request),
    method,
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'Service-Upstream/1',
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    },
    body: json === undefined ? body : JSON.stringify(json),
  }
}

/** How one kind of exchange sends, drops an answer that is not kept, and ends. */
type Kind<T extends Received> = {
  readonly send: (options: ReturnType<typeof prepared>, bounds: Bounds) => Promise<T>
  readonly drop: (answer: T) => unknown
  readonly whenOver: (answer: T, end: (error?: unknown) => void) => unknown
}

/**
 * The client for the APIs of providers. Base URLs come from the environment and are trusted; URLs that a tenant configures are called by
 * `Outbound`. No redirects, cookies or proxies. Retries are made for idempotent requests only, on 429, 502 to 504 and broken connections, as
 * long as the time of the call allows; Retry-After is honoured within it.
 */
export const createUpstream = (options: UpstreamOptions): Upstream => {
  const { urls, log, measures = noMeasures, random = Math.random, clock = () => performance.now() } = options
  const wait = options.wait ?? ((ms, signal) => sleep(ms, undefined, { signal }))
  const circuits = createCircuits(clock)
  // undici's limits are exact to a second only: bounds of our own replace them, except for pauses of a stream
  const agent = new Agent({
    connect: { timeout: connectTimeoutMs },
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: maxHeaderBytes,
    allowH2: false,
  })

  /** How long to wait before the next attempt, null when there is none. */
  const pauseAfter = (attempt: number, answer: Received | Failure, leftMs: number): number | null => {
    if (attempt >= maxAttempts || !isTransient(answer)) return null
    const asked = answer.failure === null ? retryAfterMs(answer.headers['retry-after']) : null
    // full jitter, so that callers who failed together do not return together
    const pause = asked ?? random() * Math.min(maxBackoffMs, firstBackoffMs * 2 ** (attempt - 1))
    return pause < leftMs ? pause : null
  }

  const attempts = async <T extends Received>(
    request: UpstreamRequest,
    kind: Kind<T>,
    bounds: Bounds,
    until: number,
  ) => {
    const base = urls[providers[request.provider]]
    const options = prepared(base, request)
    options.headers = { ...options.headers, ...traceHeaders(request.provider, base) }
    const mayRepeat = request.idempotent ?? request.method === 'GET'
    for (let made = 1; ; made += 1) {
      const answer = await kind.send(options, bounds).catch(failureOf)
      const pause = mayRepeat ? pauseAfter(made, answer, until - clock()) : null
      if (pause === null) return { answer, made }
      if (answer.failure === null) kind.drop(answer)
      await wait(pause, bounds.signal).catch(() => undefined)
      if (bounds.signal.aborted) return { answer: failureOf(bounds.signal.reason), made }
    }
  }

  const exchange = async <T extends Received>(
    request: UpstreamRequest,
    kind: Kind<T>,
    totalMs?: number,
  ): Promise<T | Failure> => {
    const { provider, projectId, method, path, signal, timeoutMs = usualTimeoutMs } = request
    const key = `${provider} ${projectId}`
    const began = clock()
    const span = upstreamSpan(request, urls[providers[provider]])
    const finished = (answer: Received | Failure, attempts: number, status: number | null) => {
      if (answer.failure === 'ABORTED') circuits.undecided(key)
      else if (answer.failure !== null || answer.status >= 500) circuits.failed(key)
      else circuits.succeeded(key)
      const ms = Math.round(clock() - began)
      const fields = {
        provider,
        project: projectId,
        method,
        route: path,
        status,
        attempts,
        failure: answer.failure,
        ms,
      }
      log.debug(fields, 'provider called')
      measures.providerCall(provider, answer.failure ?? `${Math.floor(answer.status / 100)}xx`, ms)
      setAnswered(span, status, attempts)
      span.end(answer.failure ?? (answer.status >= 400 ? String(answer.status) : undefined))
    }
    if (!circuits.admits(key)) {
      span.end('circuit_open')
      return { failure: 'PROVIDER_UNAVAILABLE', reason: 'circuit is open', isSent: false }
    }
    const bounds = createBounds(signal, timeoutMs, totalMs)
    try {
      const { answer, made } = await within(span, () => attempts(request, kind, bounds, began + timeoutMs))
      if (answer.failure !== null) {
        bounds.end()
        finished(answer, made, null)
        return answer
      }
      kind.whenOver(answer, (error) => {
        bounds.end()
        finished(error === undefined ? answer : failureOf(error), made, answer.status)
      })
      return answer
    } catch (error) {
      // a request that cannot be sent is a defect of its caller, and says nothing about the provider
      bounds.end()
      span.end(errorType(error))
      circuits.undecided(key)
      throw error
    }
  }

  return {
    call: ({ maxBytes = usualMaxBytes, ...request }) =>
      exchange<Response>(request, {
        async send(options, { signal }) {
          const { statusCode: status, headers, body } = await agent.request({ ...options, signal })
          const bytes = await readAll(body, maxBytes)
          return { failure: null, status, headers: textHeaders(headers), bytes, json: () => parsed(bytes) }
        },
        drop: () => undefined,
        whenOver: (_answer, end) => end(),
      }),
    stream: ({ idleMs = usualIdleMs, totalMs, ...request }) =>
      exchange<StreamedResponse>(
        request,
        {
          async send(options, { signal, stopTimer }) {
            const {
              statusCode: status,
              headers,
              body,
            } = await agent.request({ ...options, signal, bodyTimeout: idleMs })
            // the body of an error stays under the limit of the call
            if (status < 400) stopTimer()
            return { failure: null, status, headers: textHeaders(headers), body }
          },
          drop: ({ body }) => body.on('error', () => undefined).destroy(),
          whenOver({ body }, end) {
            let broken: unknown
            body.on('error', (error) => {
              broken = error
            })
            body.on('close', () => end(broken))
          },
        },
        totalMs,
      ),
    close: () => agent.destroy(),
  }
}
