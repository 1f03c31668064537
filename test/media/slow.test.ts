import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { discardBody, limitBodies } from '#server/http/protocol.ts'
import { cutOffSilence } from '#server/media/serve.ts'

let app: FastifyInstance
let port: number
beforeAll(async () => {
  app = Fastify({ frameworkErrors: (_error, _request, reply) => void reply.raw.writeHead(404).end() })
  limitBodies(app, 300)
  app.addHook('onRequest', async (request, reply) => {
    if (request.method === 'OPTIONS') return reply.status(204).send()
  })
  app.addHook('preParsing', async (request) => {
    if (request.headers['content-encoding']) throw Object.assign(new Error('not decoded'), { statusCode: 415 })
  })
  app.options('/usual', async () => null)
  app.post('/usual', async ({ body }) => ({ body }))
  app.post('/slow', { config: { isSlow: true } }, async ({ body }) => ({ body }))
  app.addContentTypeParser('text/plain', (_request, payload, done) => done(null, payload))
  app.post('/refused', { config: { isSlow: true } }, async ({ raw }, reply) => {
    discardBody(raw, 300)
    return reply.status(400).send({ body: null })
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as { port: number }).port
})
afterAll(() => app.close())

/** Sends the beginning of a body, and the rest `after` so long or never; answers all that came back. */
const send = (path: string, after: number | null) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes
      if (text.includes('"body"')) socket.end()
    })
    socket.on('error', reject).on('close', () => resolve(text))
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n"ab`)
    if (after !== null) setTimeout(() => socket.write('c"'), after)
  })

test('a body that does not come whole in time is 408, unless its route is slow', async () => {
  const [late, whole, slow] = await Promise.all([send('/usual', null), send('/usual', 1), send('/slow', 900)])
  expect(late).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/)
  expect(late).toContain('"code":"REQUEST_TIMEOUT"')
  expect(whole).toMatch(/^HTTP\/1\.1 200 /)
  expect(slow).toMatch(/^HTTP\/1\.1 200 /)
})

/** Sends the head and then a byte at a time, until the server ends the connection; answers the statuses that came back. */
const drip = (head: string) =>
  new Promise<string[]>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes
    })
    const timer = setInterval(() => socket.write('x'), 50)
    socket
      .on('error', () => undefined)
      .on('close', () => {
        clearInterval(timer)
        resolve([...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status = '']) => status))
      })
    socket.write(`${head}\r\nHost: x\r\nContent-Length: 100000\r\n\r\n`)
  })

test('a request that was answered before its body came does not hold its connection', async () => {
  const heads = [
    'OPTIONS /usual HTTP/1.1',
    'POST /usual HTTP/1.1\r\nContent-Encoding: gzip',
    'POST /%zz HTTP/1.1',
    'GET /none HTTP/1.1',
    'POST /refused HTTP/1.1\r\nContent-Type: text/plain',
  ]
  expect((await Promise.all(heads.map(drip))).map(([status]) => status)).toEqual(['204', '415', '404', '404', '400'])
})

test('an upload of which a byte comes now and then ends after the longest time', async () => {
  const source = new PassThrough()
  const timer = setInterval(() => source.write('x'), 20)
  const stop = cutOffSilence(source, { silentMs: 10_000, longestMs: 200 })
  const error = await new Promise((resolve) => source.resume().once('error', resolve))
  clearInterval(timer)
  stop()
  expect(error).toMatchObject({ status: 408, code: 'REQUEST_TIMEOUT' })
})
