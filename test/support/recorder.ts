import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'

const textOf = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

export type Recorder = {
  readonly url: string
  /** Method, path and body of each request, in order, digits and all. */
  readonly requests: { readonly method: string; readonly path: string; readonly text: string }[]
  /** Called before a request goes on. */
  before: (request: Recorder['requests'][number]) => unknown
  /** Paths that an older server does not have. */
  missing: RegExp | null
}

/** A server in front of another one: notes what it is sent, and passes it on with its credentials. */
export const startRecorder = async (target: string): Promise<Recorder> => {
  const made: { -readonly [K in keyof Recorder]: Recorder[K] } = {
    url: '',
    requests: [],
    before: () => undefined,
    missing: null,
  }
  const server = createServer(async (request, response) => {
    const noted = { method: request.method ?? 'GET', path: request.url ?? '', text: await textOf(request) }
    made.requests.push(noted)
    await made.before(noted)
    const isGone = made.missing?.test(noted.path) === true
    const real = await fetch(`${target}${isGone ? '/v1/nothing' : noted.path}`, {
      method: noted.method,
      headers: {
        authorization: request.headers.authorization ?? '',
        ...(noted.text === '' ? {} : { 'content-type': 'application/json' }),
      },
      ...(noted.text === '' ? {} : { body: noted.text }),
    })
    response.writeHead(real.status, { 'content-type': real.headers.get('content-type') ?? '' })
    response.end(await real.text())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  afterAll(() => void server.close())
  made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return made
}
