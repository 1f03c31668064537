import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define } from '#test/support/collections.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
const other = await project.user()
const everyType = await define(project, {
  name: 'everything',
  columns: [
    { name: 'a_text', type: 'text' },
    { name: 'an_integer', type: 'integer' },
    { name: 'a_bigint', type: 'bigint' },
    { name: 'a_numeric', type: 'numeric' },
    { name: 'a_double', type: 'double' },
    { name: 'a_boolean', type: 'boolean' },
    { name: 'a_uuid', type: 'uuid' },
    { name: 'a_date', type: 'date' },
    { name: 'a_time', type: 'timestamptz' },
    { name: 'a_json', type: 'jsonb' },
    { name: 'a_vector', type: 'vector', dimensions: 3 },
    { name: 'texts', type: 'text[]' },
    { name: 'integers', type: 'integer[]' },
    { name: 'bigints', type: 'bigint[]' },
    { name: 'numerics', type: 'numeric[]' },
    { name: 'booleans', type: 'boolean[]' },
    { name: 'uuids', type: 'uuid[]' },
  ],
})
const id = randomUUID()
const whole = {
  a_text: 'Äö "quoted" \\ 😀',
  an_integer: -2147483648,
  a_bigint: 9007199254740991,
  a_numeric: 12.5,
  a_double: 0.1,
  a_boolean: false,
  a_uuid: id,
  a_date: '2026-02-28',
  a_time: '2026-10-03T10:00:00.123Z',
  a_json: { a: [1, null, { b: 'c' }], 'x.y': true },
  a_vector: [1, -0.5, 0.25],
  texts: ['a', null, 'b,"c"\\', ''],
  integers: [1, -2],
  bigints: [1, 2],
  numerics: [0.5, 2],
  booleans: [true, false, null],
  uuids: [id],
}

describe('a row', () => {
  test('of every type comes back as it was sent, and is read again as it was answered', async () => {
    const made = await user.post(everyType, whole)
    expect(made.status).toBe(201)
    expect(made.data).toMatchObject({ ...whole, user_id: user.id, deleted_at: null })
    expect(Object.keys(made.data).slice(0, 5)).toEqual(['id', 'user_id', 'created_at', 'updated_at', 'deleted_at'])
    expect(made.headers.get('etag')).toMatch(/^"[0-9a-f]+"$/)
    const read = await user.get(`${everyType}/${made.data.id}`)
    expect(read.status).toBe(200)
    expect(read.data).toEqual(made.data)
    expect(read.headers.get('etag')).toBe(made.headers.get('etag'))
  })

  test('is null where nothing was sent', async () => {
    const made = await user.post(everyType, {})
    expect(made.status).toBe(201)
    for (const column of Object.keys(whole)) expect(made.data[column]).toBeNull()
  })

  test('is found with find', async () => {
    const found = await user.post(`${everyType}/find`, { filter: { column: 'a_uuid', op: 'eq', value: id } })
    expect(found.error).toBeUndefined()
    expect(found.data).toHaveLength(1)
    expect(found.body.next_cursor).toBeNull()
    expect((await other.post(`${everyType}/find`, {})).data).toEqual([])
  })
})
