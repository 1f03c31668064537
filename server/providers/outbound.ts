import { createHash, createHmac, timingSafeEqual, X509Certificate } from 'node:crypto'
import { promises as dns } from 'node:dns'
import { readFileSync } from 'node:fs'
import { isIP, type LookupFunction, type TcpNetConnectOpts } from 'node:net'
import {
  type ConnectionOptions,
  connect,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type TLSSocket,
} from 'node:tls'
import { type buildConnector, Client } from 'undici'
import { StartError } from '#server/errors.ts'
import { type Cidr, isExempt, isPublicAddress } from '#server/providers/addresses.ts'

const maxUrlLength = 2048
const maxBodyBytes = 64 * 1024
const maxHeaderBytes = 16 * 1024
const usualExcerptBytes = 1024
// long enough for a distant host, and short enough that a host which answers on one address family only leaves time to try the other
const msPerAddress = 1000

type Code = 'TARGET_URL_NOT_ALLOWED' | 'TARGET_URL_NOT_HTTPS'

/** Why a target URL is refused, in the form of a response with status 400. */
export type UrlProblem = { readonly code: Code; readonly message: string }

/** The outcome of one POST. A delivery is acknowledged when the status is 2xx and `error` is null. */
export type Outcome = {
  /** Null when no status line was received. */
  readonly statusCode: number | null
  /** A short text, or null for every complete response that is not a redirect, also for a 500. */
  readonly error: string | null
  readonly durationMs: number
  /** The start of the response body: at most 1 KB of valid UTF-8 without NUL, so that Postgres can store it. */
  readonly responseExcerpt: string
  /** Retry-After of a 429 or 503 in seconds; not capped. */
  readonly retryAfter: number | null
  /** The SSRF filter refuses the target, so a retry is useless. */
  readonly refused: boolean
}

export type OutboundRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** For whom it is, by default a receiver of webhooks. */
  readonly purpose?: 'webhook' | 'sms' | 'push_token'
  /** How much of the response body to return, at most 64 KB; 1 KB by default. */
  readonly excerptBytes?: number
}

export type FetchRequest = {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export type Address = { readonly address: string; readonly family: number }
export type Resolve = (hostname: string) => Promise<readonly Address[]>

export type OutboundOptions = {
  /** Networks that are exempt from the SSRF filter: their private addresses and ports other than 443 are allowed. */
  readonly allowedCidrs: readonly Cidr[]
  /** PEM file of certificate authorities to trust besides the default ones. */
  readonly caFile?: string | undefined
  readonly resolve?: Resolve | undefined
  /** The limit for the DNS look-up, the connection and the whole response together. */
  readonly timeoutMs?: number | undefined
}

export type Outbound = {
  /** Null when the URL may be called now. This does not hold later: `post` checks again. */
  checkUrl(url: string): Promise<UrlProblem | null>
  /** Makes one POST over a new connection. Never rejects. */
  post(request: OutboundRequest): Promise<Outcome>
  /**
   * `fetch` for a library that takes one, over a new connection and under the same filter: the whole response of at most 256 KB, a redirect as it is.
   * Rejects with an error whose message says plainly what failed.
   */
  fetch(url: string, request: FetchRequest): Promise<Response>
  /** Aborts requests in progress with the error `closed`. */
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly outbound: Outbound
  }
}

type Failure = Error & { readonly plain: string }
const failure = (plain: string): Failure => Object.assign(new Error(plain), { plain })
const isFailure = (error: unknown): error is Failure => error instanceof Error && 'plain' in error

const refusals: Record<Code, string> = {
  TARGET_URL_NOT_ALLOWED:
    'target_url must name a public host on port 443: every address that it resolves to must be public.',
  TARGET_URL_NOT_HTTPS: 'target_url must begin with https://.',
}
const isCode = (plain: string): plain is Code => Object.hasOwn(refusals, plain)

type Target = { readonly url: URL; readonly hostname: string; readonly port: number }

// Checks the host as normalised by the WHATWG URL parser, so that 0x7f000001, 127.1 and 127.0.0.1 in fullwidth digits
// are the same address in the check and in the connection.
const parseTarget = (text: string): Target => {
  const url = text.length <= maxUrlLength ? URL.parse(text) : null
  if (url?.protocol === 'http:') throw failure('TARGET_URL_NOT_HTTPS')
  if (url?.protocol !== 'https:' || url.username || url.password) throw failure('TARGET_URL_NOT_ALLOWED')
  // the final dot of an absolute name would fail the comparison with the certificate
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  if (hostname.split('.').includes('')) throw failure('TARGET_URL_NOT_ALLOWED')
  return { url, hostname, port: Number(url.port || 443) }
}

/**
 * Queries name servers directly (those of the machine by default), both address families concurrently. The system's own look-up is not
 * used, because it blocks one of few threads for as long as a name server is slow, so that one tenant could block all others.
 */
export const resolveByDns = (servers?: readonly string[]): Resolve => {
  const resolver = new dns.Resolver({ timeout: 3000, tries: 2 })
  if (servers) resolver.setServers(servers)
  return async (hostname) => {
    const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    return found.flatMap((answer) =>
      answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family: isIP(address) })) : [],
    )
  }
}

// An installation that allows private networks also allows names from the machine's hosts file, such as localhost.
export const resolveBySystem: Resolve = (hostname) => dns.lookup(hostname, { all: true })

const resolved = async (hostname: string, resolve: Resolve): Promise<readonly Address[]> => {
  // an IP literal needs no resolution; it is checked like any other address
  const addresses = isIP(hostname) ? [{ address: hostname }] : await resolve(hostname).catch(() => [])
  if (addresses.length === 0) throw failure('host name does not resolve')
  return addresses.map(({ address }) => ({ address, family: isIP(address) }))
}

const within = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> =>
  new Promise((done, fail) => {
    if (signal.aborted) fail(signal.reason)
    signal.addEventListener('abort', () => fail(signal.reason), { once: true })
    work.then(done, fail)
  })

type Check = (target: Target, signal: AbortSignal) => Promise<readonly Address[]>

// A name server that rebinds may return one public address among private ones, so every address must be allowed.
const createCheck =
  (allowed: readonly Cidr[], resolve: Resolve): Check =>
  async (target, signal) => {
    const addresses = await within(signal, resolved(target.hostname, resolve))
    const isAllowed = ({ address }: Address) =>
      isExempt(address, allowed) || (target.port === 443 && isPublicAddress(address))
    if (!addresses.every(isAllowed)) throw failure('TARGET_URL_NOT_ALLOWED')
    return addresses
  }

// Returns the checked addresses as the result of the socket's look-up; the host name stays in use for SNI and the certificate.
const lookupAnswering =
  (addresses: readonly Address[]): LookupFunction =>
  (_hostname, options, done) => {
    if (options.all) return done(null, [...addresses])
    done(null, addresses[0]!.address, addresses[0]!.family)
  }

const openSocket = (target: Target, addresses: readonly Address[], secureContext: SecureContext): TLSSocket => {
  const options: ConnectionOptions & Partial<TcpNetConnectOpts> = {
    host: target.hostname,
    port: target.port,
    ...(isIP(target.hostname) ? {} : { servername: target.hostname }),
    lookup: lookupAnswering(addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: msPerAddress,
    secureContext,
    // set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED cannot disable verification
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  }
  return connect(options)
}

type Opened = (error: Error | null, socket: TLSSocket | null) => void

const dial = (socket: TLSSocket, signal: AbortSignal, opened: Opened) => {
  signal.addEventListener('abort', () => socket.destroy(), { once: true })
  let isSettled = false
  const settle: Opened = (error, open) => {
    if (isSettled) return
    isSettled = true
    opened(error, open)
  }
  // this listener is never removed: an error after all other listeners are gone must not crash the process
  socket.on('error', (error) => settle(error, null))
  socket.on('close', () => settle(failure('connection closed'), null))
  socket.once('secureConnect', () => settle(null, socket))
  socket.setNoDelay(true)
}

// The SSRF check is in the connector, which creates every socket, so that no connection can bypass it.
const createConnector =
  (target: Target, signal: AbortSignal, check: Check, secureContext: SecureContext): buildConnector.connector =>
  (_options, done) => {
    const opened: Opened = (error, socket) => (socket ? done(null, socket) : done(error ?? failure('closed'), null))
    check(target, signal)
      .then((addresses) => {
        signal.throwIfAborted()
        dial(openSocket(target, addresses, secureContext), signal, opened)
      })
      .catch((error) => opened(error, null))
  }

type Received = { statusCode: number | null; retryAfter: number | null; start: Buffer[]; excerptBytes: number }

const readBody = async (body: AsyncIterable<Buffer>, received: Received) => {
  let bytes = 0
  for await (const chunk of body) {
    // only the start of the body is kept; the rest is read and dropped, so that a receiver with a long response is not cut off while it writes
    if (bytes < 2 * received.excerptBytes) received.start.push(chunk)
    bytes += chunk.length
    if (bytes >= maxBodyBytes) return
  }
}

const lowerCased = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

type Wait = { readonly signal: AbortSignal; readonly received: Received }

const exchange = async (target: Target, request: OutboundRequest, connector: buildConnector.connector, wait: Wait) => {
  // bodyTimeout and headersTimeout are off because the signal limits the whole request
  const limits = { maxHeaderSize: maxHeaderBytes, headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  const client = new Client(target.url.origin, { connect: connector, ...limits })
  try {
    const response = await client.request({
      method: 'POST',
      path: target.url.pathname + target.url.search,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Service-Webhooks/1',
        'accept-encoding': 'identity',
        ...lowerCased(request.headers),
      },
      body: request.body,
      signal: wait.signal,
      reset: true,
    })
    wait.received.statusCode = response.statusCode
    wait.received.retryAfter = retryAfterSeconds(response.statusCode, response.headers['retry-after'])
    await readBody(response.body, wait.received)
  } finally {
    await client.destroy()
  }
}

const maxFetchedBytes = 256 * 1024

const exchangeWhole = async (
  target: Target,
  { method, headers, body }: FetchRequest,
  connector: buildConnector.connector,
  signal: AbortSignal,
): Promise<Response> => {
  const limits = { maxHeaderSize: maxHeaderBytes, headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  const client = new Client(target.url.origin, { connect: connector, ...limits })
  try {
    const response = await client.request({
      method,
      path: target.url.pathname + target.url.search,
      headers: { 'user-agent': 'Trellis', 'accept-encoding': 'identity', ...lowerCased(headers) },
      body: body ?? null,
      signal,
      reset: true,
    })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > maxFetchedBytes) throw failure('response is too large')
      chunks.push(chunk)
    }
    const { 'content-type': type = 'text/plain', date } = response.headers
    const isEmpty = [204, 205, 304].includes(response.statusCode)
    return new Response(isEmpty ? null : Buffer.concat(chunks), {
      status: response.statusCode,
      headers: { 'content-type': String(type), ...(date ? { date: String(date) } : {}) },
    })
  } finally {
    await client.destroy()
  }
}

const imfDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

const retryAfterSeconds = (status: number, header: string | string[] | undefined): number | null => {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (!text || (status !== 429 && status !== 503)) return null
  if (/^\d+$/.test(text)) return Math.min(Number(text), Number.MAX_SAFE_INTEGER)
  const at = imfDate.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - Date.now()) / 1000))
}

// `stream` drops a character that is cut in the middle instead of decoding it as U+FFFD
const decodeStart = (bytes: Uint8Array) => new TextDecoder().decode(bytes, { stream: true })

const excerpt = ({ start, excerptBytes }: Received): string => {
  const text = decodeStart(Buffer.concat(start).subarray(0, 2 * excerptBytes)).replaceAll('\0', '')
  return decodeStart(Buffer.from(text).subarray(0, excerptBytes))
}

// matched by error code, else by name: undici's parser errors have no code
const plainByCode: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'connection refused'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_CLOSED|UND_ERR_DESTROYED)$/, 'connection closed'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EACCES|EPERM)$/, 'host unreachable'],
  [/^(ETIMEDOUT|ERR_SOCKET_CONNECTION_TIMEOUT)$/, 'timeout'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'certificate is not for this host name'],
  [/^CERT_HAS_EXPIRED$/, 'certificate has expired'],
  [/SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|CERT_UNTRUSTED/, 'certificate is not signed by a trusted authority'],
  [/^(ERR_TLS_)?CERT|_CERT_|_CA$|HOSTNAME_MISMATCH|INVALID_PURPOSE|PATH_LENGTH/, 'certificate is not valid'],
  [/^(ERR_SSL_|ERR_TLS_|EPROTO)/, 'TLS handshake failed'],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'response headers are too large'],
  [/^(HTTPParserError$|HPE_|UND_ERR_(RES|INFO|NOT_SUPPORTED))/, 'response is not valid HTTP'],
]

const plainError = (error: unknown): string => {
  if (isFailure(error)) return error.plain
  const { code, name } = error as NodeJS.ErrnoException
  return plainByCode.find(([pattern]) => pattern.test(code ?? name))?.[1] ?? 'request failed'
}

const outcome = (received: Received, problem: string | null, durationMs: number): Outcome => {
  const status = received.statusCode
  const isRedirect = status !== null && status >= 300 && status < 400
  return {
    statusCode: status,
    error: problem ?? (isRedirect ? 'redirect' : null),
    durationMs: Math.round(durationMs),
    responseExcerpt: excerpt(received),
    retryAfter: received.retryAfter,
    refused: problem !== null && isCode(problem),
  }
}

const trusting = (caFile: string | undefined): SecureContext => {
  if (!caFile) return createSecureContext()
  try {
    const pem = readFileSync(caFile, 'utf8')
    // throws when the file contains no certificate, which OpenSSL would ignore silently
    new X509Certificate(pem)
    return createSecureContext({ ca: [...getCACertificates('default'), pem] })
  } catch (error) {
    throw new StartError(`${caFile} cannot be used as a certificate authority: ${(error as Error).message}`)
  }
}

// Runs requests, each of which is aborted after `timeoutMs` or when all are aborted.
const createBounds = (timeoutMs: number) => {
  const running = new Map<AbortController, Promise<unknown>>()
  let isClosed = false
  const bounded = <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    if (isClosed) return Promise.reject(failure('closed'))
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(failure('timeout')), timeoutMs)
    const result = work(controller.signal)
      .catch((error) => {
        throw controller.signal.aborted ? controller.signal.reason : error
      })
      .finally(() => {
        clearTimeout(timer)
        running.delete(controller)
      })
    running.set(controller, result)
    return result
  }
  const close = async () => {
    isClosed = true
    for (const controller of running.keys()) controller.abort(failure('closed'))
    await Promise.allSettled(running.values())
  }
  return { bounded, close }
}

/**
 * The client for all outbound requests to URLs that a tenant configures. Its SSRF filter checks every address of the host in the connector
 * that creates the socket, so that DNS rebinding cannot reach a private network. No redirects, cookies, proxies or
 * reused connections. Throws a StartError when `caFile` cannot be used.
 */
export const createOutbound = (options: OutboundOptions): Outbound => {
  const resolve = options.resolve ?? (options.allowedCidrs.length > 0 ? resolveBySystem : resolveByDns())
  const check = createCheck(options.allowedCidrs, resolve)
  const secureContext = trusting(options.caFile)
  const { bounded, close } = createBounds(options.timeoutMs ?? 10_000)
  return {
    close,
    async checkUrl(url) {
      const work = bounded(async (signal) => check(parseTarget(url), signal))
      const problem = await work.then(() => null, plainError)
      if (problem === null) return null
      // a name that does not resolve, now or in time, cannot be shown to be public
      const code = isCode(problem) ? problem : 'TARGET_URL_NOT_ALLOWED'
      return { code, message: refusals[code] }
    },
    async post(request) {
      const began = performance.now()
      const excerptBytes = request.excerptBytes ?? usualExcerptBytes
      const received: Received = { statusCode: null, retryAfter: null, start: [], excerptBytes }
      const work = bounded(async (signal) => {
        const target = parseTarget(request.url)
        const connector = createConnector(target, signal, check, secureContext)
        await exchange(target, request, connector, { signal, received })
      })
      const problem = await work.then(() => null, plainError)
      return outcome(received, problem, performance.now() - began)
    },
    fetch: (url, request) =>
      bounded(async (signal) => {
        const target = parseTarget(url)
        return exchangeWhole(target, request, createConnector(target, signal, check, secureContext), signal)
      }).catch((error) => {
        throw new Error(plainError(error))
      }),
  }
}

const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')

/**
 * The value of `X-Service-Signature`: `t=<unix seconds>,v1=<hex HMAC-SHA-256 of "<t>.<body>">`. The key is the secret's
 * 64 characters as text, not the 32 bytes that they encode.
 */
export const signature = (secret: string, timestampSeconds: number, body: string): string =>
  `t=${timestampSeconds},v1=${hmac(secret, `${timestampSeconds}.${body}`)}`

/** Verifies a signature as a receiver does: false when it is malformed or wrong, or when its time is further from now than the tolerance. */
export const verifySignature = (
  header: string,
  secret: string,
  body: string,
  nowSeconds: number,
  toleranceSeconds = 300,
): boolean => {
  const [, time, given] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header) ?? []
  if (!time || !given) return false
  const isRight = timingSafeEqual(Buffer.from(given), Buffer.from(hmac(secret, `${time}.${body}`)))
  return isRight && Math.abs(nowSeconds - Number(time)) <= toleranceSeconds
}

/** The value of `X-Service-Idempotency-Key`: UUID version 5 (RFC 9562) of the event's id in the subscription's namespace. */
export const idempotencyKey = (subscriptionId: string, eventId: string): string => {
  const namespace = Buffer.from(subscriptionId.replaceAll('-', ''), 'hex')
  if (namespace.length !== 16) throw new Error('a subscription id is a UUID')
  const bytes = createHash('sha1').update(namespace).update(eventId).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
