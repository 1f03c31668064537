import { randomInt, randomUUID } from 'node:crypto'
import { throughPrism } from '#test/support/prism.ts'
import { requestText } from '#test/support/request_text.ts'

export type Answer<T = any> = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body, its `data`, and its `error`. */
  readonly body: any
  readonly data: T
  readonly error: { code: string; message: string; details?: any } | undefined
}

export type Client = {
  readonly headers: Record<string, string>
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  put(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  patch(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  delete(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  with(headers: Record<string, string>): Client
}

/** A fresh address each time, so that limits per address meet only the tests that are about them. */
let address = randomInt(2 ** 24)
export const freshIp = () => {
  address = (address + 1) % 2 ** 24
  return `10.${address >> 16}.${(address >> 8) & 255}.${address & 255}`
}
export const freshEmail = () => `dev-${randomUUID()}@example.org`

/** Where `npm run proof:prism` has a validating proxy. */
const prism = process.env['TRELLIS_PRISM']

/** Requests to the server at `url`: as JSON, each from an address of its own. */
export const createClient = (url: string) => {
  const client = (headers: Record<string, string>, base = '/v1'): Client => {
    const request: Client['request'] = async (method, path, body, more = {}) => {
      const { status, received, text } = await (prism ? throughPrism(prism) : requestText)(
        url + (path.startsWith('//') ? path.slice(1) : base + path),
        {
          method,
          headers: {
            'x-forwarded-for': freshIp(),
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
            ...more,
          },
          ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        },
      )
      let parsed: any
      try {
        parsed = JSON.parse(text)
      } catch {
        parsed = undefined
      }
      return {
        status,
        get headers() {
          return headersOf(received)
        },
        text,
        body: parsed,
        data: parsed?.data,
        error: parsed?.error,
      }
    }
    return {
      headers,
      request,
      get: (path, more) => request('GET', path, undefined, more),
      post: (path, body = {}, more = undefined) => request('POST', path, body, more),
      put: (path, body = {}, more = undefined) => request('PUT', path, body, more),
      patch: (path, body = {}, more = undefined) => request('PATCH', path, body, more),
      delete: (path, body, more) => request('DELETE', path, body, more),
      with: (more) => client({ ...headers, ...more }, base),
    }
  }
  return client
}

/** Few tests look at them. */
const headersOf = (received: Readonly<Record<string, string | string[] | undefined>>): Headers => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(received))
    for (const one of [value ?? []].flat()) headers.append(name, one)
  return headers
}
