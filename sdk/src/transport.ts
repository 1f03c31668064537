import { TrellisError } from './errors.ts'
import type { Operation } from './operation.ts'
import { type Fetch, type FetchReply, platform, type Signal } from './platform.ts'

export type TransportOptions = {
  /** The address of the server, with or without `/v1`. */
  readonly url: string
  readonly fetch?: Fetch | undefined
  /** Milliseconds until a request is given up: 30,000. */
  readonly timeout?: number | undefined
  /** How often a call is repeated that may be: 3 times. */
  readonly retries?: number | undefined
  /** The longest `Retry-After` in seconds that a call waits for by itself: 30. Longer ones are thrown at once. */
  readonly longestWait?: number | undefined
  /** The device's clock, in milliseconds. */
  readonly now?: (() => number) | undefined
  /** 0 to 1, for the jitter of repetitions. */
  readonly random?: (() => number) | undefined
}

export type CallOptions = {
  readonly signal?: Signal | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The call may be sent again when its answer was lost. GET, PUT and DELETE may; so may a POST with an `Idempotency-Key`. */
  readonly repeatable?: boolean | undefined
  readonly retries?: number | undefined
}

export type Input = {
  readonly path?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}
type WithInput<I> = Record<never, never> extends I ? [input?: I & CallOptions] : [input: I & CallOptions]

/** Calls an operation, and answers what the server did: `{data, ...}`, as the type of the operation says. */
export type Call = <I, R>(operation: Operation<I, R>, ...input: WithInput<I>) => Promise<R>

export type Answer<R> = { readonly status: number; readonly headers: FetchReply['headers']; readonly body: R }

/** Credentials of a call: asked for before each attempt. `renew` is asked once, when a token has expired. */
export type Credentials = {
  headers(): Promise<Readonly<Record<string, string>>>
  renew?(used: Readonly<Record<string, string>>): Promise<boolean>
}

export type Transport = {
  readonly root: string
  readonly now: () => number
  readonly random: () => number
  readonly fetch: Fetch
  send<I, R>(credentials: Credentials, operation: Operation<I, R>, input?: Input & CallOptions): Promise<Answer<R>>
  /** Server time minus device time in milliseconds, as far as it is known. */
  skew: number | undefined
}

/** Waits, unless the caller gives up before. */
export const pause = (ms: number, signal?: Signal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = platform.setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    const stop = () => {
      platform.clearTimeout(timer)
      reject(new TrellisError('ABORTED', 'The call was aborted.', { cause: signal?.reason }))
    }
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop)
  })

/** Full jitter: callers that failed together do not come back together. */
export const backoff = (attempt: number, random: () => number, least = 250, most = 20_000) =>
  random() * Math.min(most, least * 2 ** attempt)

const withParameters = (root: string, path: string, { path: values = {}, query = {} }: Input): string => {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])))
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`)
  return `${root}${filled}${pairs.length > 0 ? `?${pairs.join('&')}` : ''}`
}

/** JSON, unless it is what `fetch` takes as it is: text, bytes, a Blob, a form, a stream. */
const isPlain = (body: unknown) => {
  if (typeof body !== 'object' || body === null) return typeof body !== 'string'
  const prototype = Object.getPrototypeOf(body)
  return Array.isArray(body) || prototype === null || Object.getPrototypeOf(prototype) === null
}

const headersOf = (
  credentials: Readonly<Record<string, string>>,
  { header = {}, headers = {}, body }: Input & CallOptions,
) => {
  const all: Record<string, string> = { accept: 'application/json', ...credentials }
  for (const [name, value] of Object.entries({ ...header, ...headers })) {
    if (value !== undefined && value !== null) all[name.toLowerCase()] = String(value)
  }
  if (body !== undefined && isPlain(body)) all['content-type'] ??= 'application/json'
  return all
}

const secondsOf = (reply: FetchReply): number | undefined => {
  const seconds = Number(reply.headers.get('retry-after') ?? Number.NaN)
  return seconds >= 0 ? seconds : undefined
}

/**
 * Whether an answer tells the time: one that a cache stored has the time at which it was stored (RFC 9111, 4.2.3). Refusals of what caches answer may come from
 * something in between, and tell none.
 */
const isFresh = (method: string, { headers, status }: FetchReply): boolean => {
  const isStored = method === 'GET' && (status >= 400 || !/\bno-store\b/.test(headers.get('cache-control') ?? ''))
  return !isStored && headers.get('age') === null && !Number.isNaN(Date.parse(headers.get('date') ?? ''))
}

const parsed = (text: string): unknown => {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The refusal of an answer that is not a success. */
const failureOf = async (reply: FetchReply): Promise<TrellisError> => {
  const body = parsed(await reply.text()) as
    | { error?: { code?: string; message?: string; details?: object } }
    | undefined
  const { code = 'UNEXPECTED_ANSWER', message = `The server answered ${reply.status}.`, details } = body?.error ?? {}
  const retryAfter = secondsOf(reply)
  return new TrellisError(code, message, {
    status: reply.status,
    requestId: reply.headers.get('x-request-id'),
    ...(details ? { details: details as Readonly<Record<string, unknown>> } : {}),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  })
}

const bodyOf = async (reply: FetchReply): Promise<unknown> => {
  if (reply.status === 304 || reply.status === 204) return undefined
  const type = reply.headers.get('content-type') ?? ''
  if (!type.startsWith('application/json')) return reply
  const text = await reply.text()
  const body = parsed(text)
  if (body === undefined && text !== '') {
    throw new TrellisError('UNEXPECTED_ANSWER', 'The answer is not JSON.', { status: reply.status })
  }
  return body
}

const safeMethods = ['GET', 'HEAD', 'PUT', 'DELETE']

export const createTransport = (options: TransportOptions): Transport => {
  const root = options.url.replace(/\/+$/, '').replace(/\/v1$/, '')
  const { now = Date.now, random = Math.random, timeout = 30_000, longestWait = 30 } = options
  // called without a receiver: browsers refuse fetch as a method of another object
  const fetch: Fetch = options.fetch ?? ((url, init) => (platform.fetch as Fetch)(url, init))

  const attempt = async (url: string, method: string, headers: Record<string, string>, input: Input & CallOptions) => {
    const controller = platform.AbortController ? new platform.AbortController() : undefined
    const { signal, body } = input
    let isLate = false
    const stop = () => controller?.abort(signal?.reason)
    if (signal?.aborted) throw new TrellisError('ABORTED', 'The call was aborted.', { cause: signal.reason })
    signal?.addEventListener('abort', stop)
    const timer = platform.setTimeout(() => {
      isLate = true
      controller?.abort()
    }, timeout)
    try {
      const sent = body === undefined ? {} : { body: (isPlain(body) ? JSON.stringify(body) : body) as never }
      const aborted = controller ? { signal: controller.signal as never } : {}
      const reply = await fetch(url, { method, headers, ...sent, ...aborted })
      // the header has whole seconds: half of one is its middle
      if (isFresh(method, reply)) transport.skew = Date.parse(reply.headers.get('date') ?? '') + 500 - now()
      // a stream may last longer than a call
      return reply.status < 400 ? { reply, body: await bodyOf(reply) } : { reply, failure: await failureOf(reply) }
    } catch (cause) {
      if (cause instanceof TrellisError) throw cause
      if (signal?.aborted) throw new TrellisError('ABORTED', 'The call was aborted.', { cause })
      if (isLate) throw new TrellisError('TIMEOUT', `No answer within ${timeout} ms.`, { cause })
      throw new TrellisError('NETWORK_ERROR', 'The server could not be reached.', { cause })
    } finally {
      platform.clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  /** How long to wait before the call is sent again, or nothing if it must not be. */
  const waitFor = (failure: TrellisError, tries: number, isRepeatable: boolean): number | undefined => {
    const { status, code, retryAfter } = failure
    // refused before anything was done
    const isUnharmed = status === 429 || code === 'TENANT_UNAVAILABLE' || code === 'TENANT_MIGRATION_PENDING'
    const isLost = code === 'NETWORK_ERROR' || code === 'TIMEOUT' || status === 502 || status === 503 || status === 504
    if (!isUnharmed && !(isLost && isRepeatable)) return undefined
    if (retryAfter !== undefined && retryAfter > longestWait) return undefined
    return (retryAfter ?? 0) * 1000 + backoff(tries, random)
  }

  const send: Transport['send'] = async (credentials, operation, input = {}) => {
    const [method = '', path = ''] = operation.split(' ')
    const url = withParameters(root, path, input)
    const hasKey = Object.keys({ ...input.header, ...input.headers }).some((n) => n.toLowerCase() === 'idempotency-key')
    const isRepeatable = input.repeatable ?? (hasKey || safeMethods.includes(method))
    const most = input.retries ?? options.retries ?? 3
    let isRenewed = false
    for (let tries = 0; ; tries += 1) {
      const known = await credentials.headers()
      let failure: TrellisError
      try {
        const got = await attempt(url, method, headersOf(known, input), input)
        if (!got.failure) return { status: got.reply.status, headers: got.reply.headers, body: got.body as never }
        failure = got.failure
      } catch (error) {
        failure = error as TrellisError
      }
      if (failure.status === 401 && !isRenewed && credentials.renew) {
        isRenewed = true
        if (await credentials.renew(known)) {
          tries -= 1
          continue
        }
      }
      const wait = tries < most ? waitFor(failure, tries, isRepeatable) : undefined
      if (wait === undefined) throw failure
      await pause(wait, input.signal)
    }
  }

  const transport: Transport = { root, now, random, fetch, send, skew: undefined }
  return transport
}
