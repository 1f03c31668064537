import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { Pool } from 'undici'
import { afterAll, expect, test } from 'vitest'
import { exchange } from '#server/rest/exchange.ts'

let answer: (response: ServerResponse) => void = () => undefined
const server = createServer((_request, response) => answer(response))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { connections: 1 })
afterAll(async () => {
  await pool.destroy()
  server.close()
})

const get = () => exchange(pool, { path: '/', method: 'GET', headers: {} })
const bytes = (size: number) => Buffer.from(Array.from({ length: size }, (_, n) => n % 251))

test.each([0, 1, 262_144])('a response of %i bytes is whole', async (size) => {
  answer = (response) => response.writeHead(206, { 'content-range': '0-1/*' }).end(bytes(size))
  const { status, headers, body } = await get()
  expect([status, headers['content-range']]).toEqual([206, '0-1/*'])
  expect(Buffer.isBuffer(body) && body.equals(bytes(size))).toBe(true)
})

test('a larger one is a stream of the same bytes, and is not read ahead of its reader', async () => {
  const part = bytes(65_536)
  let written = 0
  const write = (response: ServerResponse) => {
    while (written < 400) {
      written += 1
      if (!response.write(part)) return void response.once('drain', () => write(response))
    }
    response.end()
  }
  answer = write
  const { body } = await get()
  // what is written stays at what the two sockets and the collected part hold
  let before = -1
  await expect
    .poll(
      () => {
        const isStill = written === before
        before = written
        return isStill
      },
      { interval: 200 },
    )
    .toBe(true)
  expect(written).toBeLessThan(400)
  const got = await buffer(body as Readable)
  expect(got.length).toBe(400 * part.length)
  expect(got.subarray(-part.length).equals(part)).toBe(true)
})

test('an end before the end fails: of a small one the call, of a large one the stream', async () => {
  answer = (response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('a')
    response.socket?.destroy()
  }
  await expect(get()).rejects.toThrow()
  answer = (response) => {
    response.writeHead(200, { 'content-length': '10000000' })
    response.write(bytes(400_000), () => response.socket?.destroySoon())
  }
  const { body } = await get()
  await expect(buffer(body as Readable)).rejects.toThrow()
})

test('a reader that goes ends the response, and its connection serves the next request', async () => {
  const gone = Promise.withResolvers<void>()
  answer = (response) => {
    response.once('close', gone.resolve)
    const write = () => {
      while (response.write(bytes(65_536)));
      response.once('drain', write)
    }
    write()
  }
  const { body } = await get()
  ;(body as Readable).on('error', () => undefined).destroy()
  await gone.promise
  answer = (response) => void response.end('next')
  expect(String((await get()).body)).toBe('next')
})
