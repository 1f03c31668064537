import type { Duplex } from 'node:stream'
import pg from 'pg'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { destroy } from '#server/database/hosts.ts'
import { interceptorOf } from '#server/database/row_interceptor.ts'

/** The parts of pg that it does not promise, and that are used all the same: an upgrade without one of them has to fail here, and not in production. */
const connect = async () => {
  const client = new pg.Client({ connectionString: inject('dsn') })
  client.on('error', () => undefined)
  onTestFinished(() => client.end().catch(() => undefined))
  await client.connect()
  return { client, stream: (client as unknown as { connection: { stream: Duplex } }).connection.stream }
}

test('a sign-in passes the salt of the server to Client.prototype._handleAuthSASLContinue (passwords.ts)', async () => {
  const internals = pg.Client.prototype as unknown as {
    _handleAuthSASLContinue(message: { data: string }): Promise<void>
  }
  const proceed = vi.spyOn(internals, '_handleAuthSASLContinue')
  onTestFinished(() => proceed.mockRestore())
  await connect()
  expect(proceed).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ data: expect.stringMatching(/(?:^|,)s=[^,]+/) }),
  )
})

test('connection.stream is what ends a connection, with the error it is given (hosts.ts)', async () => {
  const { client, stream } = await connect()
  const pending = client.query('select pg_sleep(60)')
  destroy(client)
  await expect(pending).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(stream.destroyed).toBe(true)
})

test('one data listener is all that reads the stream, and parses whole messages that it is given (row_interceptor.ts)', async () => {
  const { client, stream } = await connect()
  expect(stream.listeners('data')).toHaveLength(1)
  const [parse] = stream.listeners('data')
  const rows: Buffer[] = []
  const close = interceptorOf(stream).open(() => (bytes, start, end) => void rows.push(bytes.subarray(start, end)))
  expect(stream.listeners('data')).toHaveLength(1)
  expect(stream.listeners('data')).not.toContain(parse)
  const taken = await client.query(`select repeat('x', 100000) from generate_series(1, 3)`)
  expect([taken.rows, taken.rowCount, rows.length]).toEqual([[], 3, 3])
  close()
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
})
