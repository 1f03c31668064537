import { connect, type Socket } from 'node:net'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { refusal } from '#server/errors.ts'
import { type Column, cellText, csvHead, csvRow, linesOf } from '#server/http/csv.ts'
import { envelopeOf, send } from '#server/http/errors.ts'
import { type Batch, type StreamFormat, streamRows } from '#server/http/stream.ts'

/** The stream by itself, on a bare server: what each test reads from is `source`. */
const app = Fastify({ forceCloseConnections: true })
let url = ''
let source: (cursor: string | null) => string[] | Error = () => []
let reads = 0
let columns: Column[] = ['id']

/** Batch after batch under cursors 0, 1, 2, ...; an empty list ends it. */
const reader =
  (format: StreamFormat) =>
  async (cursor: string | null): Promise<Batch> => {
    reads += 1
    const rows = source(cursor)
    if (rows instanceof Error) throw rows
    const next_cursor = rows.length > 0 ? String(Number(cursor ?? -1) + 1) : null
    return { lines: linesOf(format, columns, rows, cursor === null), next_cursor }
  }
const batches = (...given: (string[] | Error)[]) => {
  reads = 0
  source = (cursor) => given[Number(cursor ?? -1) + 1] ?? []
}

beforeAll(async () => {
  app.get<{ Querystring: { format: StreamFormat } }>('/', async (request, reply) => {
    try {
      const { format } = request.query
      return send(reply, await streamRows({ format, filename: 'audit "x"\r\n2026', read: reader(format) }))
    } catch (error) {
      return send(reply, { status: 404, body: envelopeOf(error as ReturnType<typeof refusal>) })
    }
  })
  url = await app.listen({ port: 0 })
})
afterAll(() => app.close())

const get = (format: StreamFormat) => fetch(`${url}/?format=${format}`)
/** A client of our own, which reads when it is told to. */
const open = (version = '1.1', format = 'ndjson'): Promise<Socket> =>
  new Promise((resolve) => {
    const socket: Socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.pause()
      socket.write(`GET /?format=${format} HTTP/${version}\r\nHost: x\r\nConnection: close\r\n\r\n`)
      resolve(socket)
    })
  })
const still = async () => {
  for (let last = -1; last !== reads; ) {
    last = reads
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return reads
}

describe('NDJSON', () => {
  test('has every row of every batch on a line of its own, spelled as the database spelled it', async () => {
    batches(['{"n":1.50}', '{"n":12345678901234567890}'], ['{\n"a": "b\\nc"\r\n}'], ['{"z":null}'])
    const answer = await get('ndjson')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="audit__x___2026.ndjson"')
    const text = await answer.text()
    expect(text.split('\n')).toEqual([
      '{"n":1.50}',
      '{"n":12345678901234567890}',
      '{ "a": "b\\nc"  }',
      '{"z":null}',
      '',
    ])
  })

  test('of nothing is an empty body', async () => {
    batches()
    const answer = await get('ndjson')
    expect([answer.status, await answer.text()]).toEqual([200, ''])
  })
})

describe('CSV', () => {
  test('has a line of names, then each row, and names alone when there is none', async () => {
    columns = ['id', { name: 'who', cell: (row) => (row['actor'] as { id: string }).id }, 'at']
    batches(['{"id":"a","actor":{"id":"x, y"},"at":null}'], ['{"id":"b","actor":{"id":"z"}}'])
    const answer = await get('csv')
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(answer.headers.get('content-disposition')).toMatch(/\.csv"$/)
    expect(await answer.text()).toBe('id,who,at\r\na,"x, y",\r\nb,z,\r\n')
    batches()
    expect(await (await get('csv')).text()).toBe('id,who,at\r\n')
  })

  test.each([
    ['"=1+1"', "'=1+1"],
    ['"+1"', "'+1"],
    ['"-1"', "'-1"],
    ['"@sum"', "'@sum"],
    ['"＝1"', "'＝1"],
    ['"＋1"', "'＋1"],
    ['"－1"', "'－1"],
    ['"＠sum"', "'＠sum"],
    // one quote more, so that the way back takes one away
    ['"\'=1"', "''=1"],
    ['"\'x"', "'x"],
    ['"\\tx"', "'\tx"],
    ['"\\rx"', '"\'\rx"'],
    ['" =1"', ' =1'],
    ['"1=1"', '1=1'],
    ['-1', '-1'],
    ['-1.50', '-1.50'],
    ['12345678901234567890.10', '12345678901234567890.10'],
    ['true', 'true'],
    ['null', ''],
    ['""', ''],
    ['"a\\"b"', '"a""b"'],
    ['"a\\nb"', '"a\nb"'],
    ['{"a":-1.0,"b":[12345678901234567890]}', '"{""a"":-1.0,""b"":[12345678901234567890]}"'],
    ['{"a": 1.50}', '"{""a"":1.50}"'],
    ['{"a": [1, 2e3]}', '"{""a"":[1,2e3]}"'],
    ['{"a": [-0]}', '"{""a"":[-0]}"'],
    ['{"a": 1234567890123456789}', '"{""a"":1234567890123456789}"'],
    ['{"a": 7}', '"{""a"":7}"'],
    // keys with escapes
    ['{"k\\t\\\\":1.5,"k, \\r":1.5}', '"{""k\\t\\\\"":1.5,""k, \\r"":1.5}"'],
    ['-0', '-0'],
    ['1e2', '1e2'],
  ])('%s is %j', (json, cell) => {
    expect(csvRow(['x', 'y'], `{"x":${json},"y":0}`)).toBe(`${cell},0\r\n`)
  })

  test('names of columns are quoted as cells are; a generated cell is checked like any other', () => {
    expect(csvHead(['a,b', 'c'])).toBe('"a,b",c\r\n')
    for (const first of '=+-@\t\r\uff1d\uff0b\uff0d\uff20') expect(cellText(`${first}x|y`)).toBe(`'${first}x|y`)
    expect(cellText(undefined)).toBeNull()
  })
})

describe('a stream', () => {
  const row = `{"x":"${'x'.repeat(1000)}"}`
  const full = Array.from({ length: 500 }, () => row)

  test('that is refused at its first batch is an ordinary refusal', async () => {
    batches(refusal(404, 'NOT_FOUND', 'There is no such user.'))
    const answer = await get('ndjson')
    expect(answer.status).toBe(404)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(await answer.json()).toEqual({ error: { code: 'NOT_FOUND', message: 'There is no such user.' } })
  })

  test.each(['csv', 'ndjson'] as const)('of %s that fails later never looks complete', async (format) => {
    columns = ['x']
    batches(full, full, new Error('the database is gone'))
    const answer = await get(format)
    expect(answer.status).toBe(200)
    await expect(answer.text()).rejects.toThrow(/terminated|aborted|reset/)
    expect(reads).toBe(3)
  })

  test('that fails is reset, so that a client of HTTP/1.0, to whom the end of the connection is the end, sees it too', async () => {
    batches(full, full, full, new Error('the database is gone'))
    const socket = await open('1.0')
    const ended = new Promise((resolve) => {
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code))
      socket.on('end', () => resolve('end'))
    })
    socket.resume()
    expect(await ended).toBe('ECONNRESET')
  })

  test('waits for its client, and goes on when that reads', async () => {
    const many = 400
    reads = 0
    source = (cursor) => (Number(cursor ?? -1) + 1 < many ? full : [])
    const socket = await open('1.0')
    // the kernel's own buffers hold some megabytes: 200 MB do not pass them unread
    expect(await still()).toBeLessThan(40)
    let bytes = 0
    let ahead = 0
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      ahead = Math.max(ahead, reads - bytes / (500 * row.length))
    })
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.resume()
    await closed
    expect(reads).toBe(many + 1)
    expect(bytes).toBeGreaterThan(many * 500 * row.length)
    // what was read and not yet received is what the server may hold
    expect(ahead).toBeLessThan(40)
  })

  test('ends when its client goes away', async () => {
    reads = 0
    source = () => full
    const socket = await open()
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket.destroy()
    const count = await still()
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(reads).toBe(count)
  })

  test('asked for by HEAD reads one batch and sends none of it', async () => {
    reads = 0
    source = () => full
    const answer = await fetch(`${url}/?format=csv`, { method: 'HEAD' })
    expect([answer.status, await answer.text(), await still()]).toEqual([200, '', 1])
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  })
})
