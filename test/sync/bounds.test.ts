import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define, insertAll } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { deviceOf, patch, put } from '#test/support/sync.ts'

const harness = await startHarness()
const project = await harness.project()
const columns = [
  { name: 'title', type: 'text' },
  { name: 'n', type: 'integer' },
]
const notes = await define(project, { name: 'notes', sync: true, columns })
const device = async () => {
  const user = await project.user()
  return { user, phone: deviceOf(project, user) }
}
const long = () => randomBytes(400_000).toString('hex')

describe('the rows of the results of a push are 8 MB together', () => {
  test('of writes to long rows: what has more is refused as a whole, and fits in parts', async () => {
    const { user, phone } = await device()
    const [row] = await insertAll(user, notes, [{ title: long(), n: 0 }])
    const mutations = Array.from({ length: 15 }, (_, n) => ({
      id: randomUUID(),
      ...patch('notes', row.id, { n: n + 1 }),
    }))
    const push = (some: readonly object[]) =>
      user.post('/client/sync/push', { client_id: phone.client_id, mutations: some })
    expectRefusal(await push(mutations), 400, 'BATCH_TOO_LARGE')
    expect((await user.get(`${notes}/${row.id}`)).data.n).toBe(0)
    for (const from of [0, 5, 10]) {
      const { data, text } = await push(mutations.slice(from, from + 5))
      expect(data, text.slice(0, 300)).toBeDefined()
      expect(data.results.map(({ status }: any) => status)).toEqual(Array(5).fill('applied'))
    }
    // and of repeated ones
    expectRefusal(await push(mutations), 400, 'BATCH_TOO_LARGE')
    expectRefusal(await push(Array(15).fill(mutations[0])), 400, 'BATCH_TOO_LARGE')
    const again = await push(mutations.slice(10))
    expect(again.data.results.map(({ status }: any) => status)).toEqual(Array(5).fill('duplicate'))
    const one = { id: randomUUID(), ...patch('notes', row.id, { n: 30 }) }
    expectRefusal(await push(Array(15).fill(one)), 400, 'BATCH_TOO_LARGE')
    expect((await user.get(`${notes}/${row.id}`)).data.n).toBe(15)
  })

  test('of new rows that are inserted together too, alone and beside others', async () => {
    const { user, phone } = await device()
    const rows = await define(project, {
      name: 'wide',
      sync: true,
      columns: [
        { name: 'n', type: 'integer' },
        { name: 'title', type: 'text', default: long() },
      ],
    })
    const puts = Array.from({ length: 11 }, (_, n) => ({ id: randomUUID(), ...put('wide', randomUUID(), { n }) }))
    const push = (mutations: readonly object[]) =>
      user.post('/client/sync/push', { client_id: phone.client_id, mutations })
    for (const more of [[], [{ id: randomUUID(), ...put('wide', randomUUID(), {}) }]])
      expectRefusal(await push([...puts, ...more]), 400, 'BATCH_TOO_LARGE')
    expect((await user.get(rows)).data).toEqual([])
    expect((await push(puts.slice(0, 5))).status).toBe(200)
  })
})

describe('an id that a user chooses', () => {
  test('is one of a push alone: the routes make their own', async () => {
    const { user, phone } = await device()
    const { user: other } = await device()
    const [theirs] = await insertAll(other, notes, [{ title: 'theirs' }])
    const taken = randomUUID()
    for (const id of [theirs.id, taken]) {
      const one = await user.post(notes, { id, title: 'x' })
      expect([one.status, one.data.id === id]).toEqual([201, false])
      const many = await user.post(`${notes}/batch`, { rows: [{ id, title: 'x' }] })
      expect([many.status, many.data[0].id === id]).toEqual([201, false])
      const operations = [{ op: 'insert', collection: 'notes', data: { id, title: 'x' } }]
      const together = await user.post('/client/collections/transaction', { operations })
      expect([together.status, together.data[0].id === id]).toEqual([200, false])
      const target = { op: 'upsert', collection: 'notes', data: { id, title: 'x' }, conflict_target: ['id'] }
      const upserted = await user.post('/client/collections/transaction', { operations: [target] })
      expect([upserted.status, upserted.error?.code]).toEqual([400, 'INVALID_CONFLICT_TARGET'])
    }
    expect((await phone.push([put('notes', theirs.id, { title: 'x' })])).results[0].code).toBe('CONFLICT')
    expect((await other.get(`${notes}/${theirs.id}`)).data.title).toBe('theirs')
  })
})
