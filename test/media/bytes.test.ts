import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { open, readFile, truncate, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendStream } from '#server/http/stream.ts'
import { appendFile, fileBody, storeBytes } from '#server/media/bytes.ts'
import { endPrograms, temporaryFolder } from '#test/support/process.ts'

const folder = await temporaryFolder()
const file = join(folder, 'file')
const size = 3_000_001
/** More than the buffers of a connection hold. */
const sparse = join(folder, 'sparse')
const sparseSize = 64_000_000
const content = randomBytes(size)
/** The sockets of requests that came. */
const asked: Socket[] = []
const app = Fastify()
app.get('/:name/:start/:end', async (request, reply) => {
  asked.push(request.raw.socket)
  const { name, start, end } = request.params as Record<'name' | 'start' | 'end', string>
  reply.header('content-length', Number(end) - Number(start) + 1)
  return sendStream(reply, fileBody(await open(join(folder, name)), Number(start), Number(end)))
})
// stays unanswered
app.get('/never', () => new Promise(() => undefined))
let port: number
beforeAll(async () => {
  await writeFile(file, content)
  await writeFile(sparse, '')
  await truncate(sparse, sparseSize)
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as AddressInfo).port
})
afterAll(async () => {
  app.server.closeAllConnections()
  await app.close()
  await endPrograms()
})

/** Descriptors of the files that this process holds. */
const opened = () =>
  readdirSync('/proc/self/fd').filter((name) => {
    try {
      return [file, sparse].includes(readlinkSync(join('/proc/self/fd', name)))
    } catch {
      return false
    }
  }).length
const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
/** Asks for bytes over a connection of its own, and reads nothing before it is told to. */
const ask = async (...paths: string[]) => {
  const socket = connect(port, '127.0.0.1').pause()
  await once(socket, 'connect')
  socket.write(paths.map((path) => `GET /${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  return socket
}

describe('a file as a body', () => {
  test('is whole for each of a hundred readers at once, slow and fast ones', async () => {
    const ranges = Array.from({ length: 100 }, (_, n) => [n * 1000, size - 1 - n * 7] as const)
    const sockets = await Promise.all(ranges.map(([start, end]) => ask(`file/${start}/${end}`)))
    // all have begun, and wait for their readers: the memory of one must not be that of another
    await expect.poll(() => asked.filter(({ bytesWritten }) => bytesWritten > 0).length).toBe(100)
    const read = async (n: number) => {
      const [start, end] = ranges[n] as (typeof ranges)[number]
      const parts: Buffer[] = []
      let [got, wanted] = [0, Number.POSITIVE_INFINITY]
      for await (const part of sockets[n] as AsyncIterable<Buffer>) {
        parts.push(part)
        got += part.length
        if (wanted === Number.POSITIVE_INFINITY)
          wanted = Buffer.concat(parts).indexOf('\r\n\r\n') + 4 + (end - start + 1)
        if (got >= wanted) break
      }
      const body = Buffer.concat(parts).subarray(-(end - start + 1))
      return hash(body) === hash(content.subarray(start, end + 1))
    }
    const order = ranges.map((_, n) => n).sort((a, b) => ((a * 37) % 100) - ((b * 37) % 100))
    expect(new Set(await Promise.all(order.map(read)))).toEqual(new Set([true]))
    await expect.poll(opened).toBe(0)
  })

  test('one after the other on a connection', async () => {
    for (let n = 0; n < 50; n += 1) {
      const answer = await fetch(`http://127.0.0.1:${port}/file/${n}/${size - 1}`)
      expect(hash(Buffer.from(await answer.arrayBuffer()))).toBe(hash(content.subarray(n)))
    }
    await expect.poll(opened).toBe(0)
  })

  test('is closed when its reader goes, also one that stands behind another', async () => {
    const path = `sparse/0/${sparseSize - 1}`
    const sockets = await Promise.all([ask(path), ask('never', path)])
    await expect.poll(opened).toBe(2)
    for (const socket of sockets) socket.destroy()
    await expect.poll(opened).toBe(0)
  })

  test('that became shorter ends the connection', async () => {
    const socket = await ask(`file/0/${size + 10}`)
    const ended = new Promise((resolve) => socket.on('error', resolve))
    socket.resume()
    expect(await ended).toMatchObject({ code: 'ECONNRESET' })
    await expect.poll(opened).toBe(0)
  })
})

describe('what is stored', () => {
  const stored = async (pieces: Iterable<Buffer>, more: { skip?: number; most?: number } = {}) => {
    const target = join(folder, randomBytes(6).toString('hex'))
    const handle = await open(target, 'wx')
    try {
      const count = await storeBytes(handle, Readable.from(pieces, { objectMode: false }), {
        most: size,
        tooLong: () => new Error('too long'),
        ...more,
      })
      return { count, bytes: await readFile(target) }
    } finally {
      await handle.close()
    }
  }
  const split = (bytes: Buffer, length: number) =>
    Array.from({ length: Math.ceil(bytes.length / length) }, (_, n) =>
      Buffer.from(new Uint8Array(bytes.subarray(n * length, (n + 1) * length)).buffer),
    )

  test('is what came, and the memory of each piece is given back', async () => {
    const pieces = split(content, 65_536)
    const { count, bytes } = await stored(pieces)
    expect([count, bytes.equals(content)]).toEqual([size, true])
    expect(pieces.every((piece) => piece.length === 0)).toBe(true)
  })

  test('memory that pieces share with others stays', async () => {
    const shared = Buffer.from('hello world')
    expect((await stored([shared.subarray(0, 5), shared.subarray(5)])).bytes.toString()).toBe('hello world')
    expect(shared.toString()).toBe('hello world')
  })

  test('leaves out what came before, and is refused when it is too long', async () => {
    for (const skip of [0, 1, 99, 100, 101, 65_536, size - 1, size])
      expect((await stored(split(content, 100_000), { skip })).bytes.equals(content.subarray(skip)), `${skip}`).toBe(
        true,
      )
    await expect(stored(split(content, 1000), { most: size - 1 })).rejects.toThrow('too long')
  })

  test('one file is appended to another from a position on', async () => {
    const target = await open(join(folder, 'appended'), 'w+')
    const from = await open(file)
    await target.write('before')
    await appendFile(target, from, 1_000_000)
    await appendFile(target, from, size)
    await Promise.all([target.close(), from.close()])
    const wanted = Buffer.concat([Buffer.from('before'), content.subarray(1_000_000)])
    expect((await readFile(join(folder, 'appended'))).equals(wanted)).toBe(true)
  })
})
