import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { network } from '#test/support/sdk.ts'
import { pullRoute, pushRoute, startNotes } from '#test/support/sync_devices.ts'
import type { App, Refusal } from '../../sdk/src/index.ts'
import { createLibrary, type LibraryOptions, type LibraryWrite } from '../../sdk/src/sync_library.ts'

/** What the adapters of other libraries have in common. */
const harness = await startHarness()
const { project, devices, stored, write } = await startNotes(harness)

const open = (app: App, options: LibraryOptions = {}) => {
  const told: Refusal[] = []
  const collections = ['notes']
  const columns = ['title', 'n']
  const onRejected = (refusal: Refusal) => told.push(refusal)
  return { told, ...createLibrary(app, { collections, columns, onRejected, ...options }) }
}
const put = (title: string | undefined, more: Partial<LibraryWrite> = {}): LibraryWrite => ({
  op: 'put',
  collection: 'notes',
  row_id: randomUUID(),
  data: { title },
  ...more,
})
const idsOf = (rows: ReadonlyMap<string, unknown> | undefined) => [...(rows ?? [])].map(([id]) => id)

test('a write that is tried again counts once, by what it is tried with', async () => {
  const { phone } = await devices(network)
  const library = open(phone.app)
  const one = put('a', { key: {} })
  phone.net.losing.push(...Array.from({ length: 4 }, () => pushRoute))
  await expect(library.push([one])).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  await write(one.row_id, 'of another program')
  expect(await library.push([one])).toEqual([])
  expect(await stored(one.row_id)).toMatchObject({ title: 'of another program' })
})

test('what a pull has of rows that are pushed meanwhile is left to the push, and to the next pull', async () => {
  const { phone } = await devices(network)
  const library = open(phone.app)
  const [a, b] = [put('a'), put('b')]
  await library.push([a, b])
  let sent: Promise<unknown> | undefined
  phone.net.answer = (route) => {
    if (route === pullRoute && !sent) sent = library.push([put('a again', { row_id: a.row_id })])
    return undefined
  }
  const pulled = await library.pull(null)
  await sent
  expect(idsOf(pulled.changes.get('notes'))).toEqual([b.row_id])
  expect(pulled.isGone('notes', a.row_id)).toBe(false)
  const next = await library.pull(pulled.checkpoint)
  expect(next.changes.get('notes')?.get(a.row_id)).toMatchObject({ title: 'a again' })
})

test('a pull of enough rows goes on where it ended, and one from an expired checkpoint has all of them', async () => {
  const library = open((await devices(network)).phone.app)
  const writes = Array.from({ length: 7 }, (_, n) => put(`${n}`))
  await library.push(writes)
  const first = await library.pull(null, 3)
  expect(first.changes.get('notes')?.size).toBe(3)
  expect(first.isReplaced).toBe(false)
  await project.sql('delete from app.sync_checkpoints')
  const second = await library.pull(first.checkpoint, 3)
  expect(idsOf(second.changes.get('notes')).sort()).toEqual(writes.map(({ row_id }) => row_id).sort())
  expect(second.isReplaced).toBe(true)
  expect(second.isGone('notes', randomUUID())).toBe(true)
})

test('rows of refusals are in each pull until the library has them', async () => {
  const library = open((await devices(network)).phone.app, { isKeeping: true })
  const one = put('a', { data: { title: 'a', n: 1 } })
  await library.push([one])
  const { checkpoint } = await library.pull(null)
  const bad = put(undefined)
  const refused = await library.push([{ ...one, op: 'patch', data: { n: 101 } }, bad])
  expect(refused).toMatchObject([{ row: { n: 1 } }, { row: null, code: 'NOT_NULL_VIOLATION' }])
  expect(library.told).toEqual(refused)
  for (const _ of [1, 2]) {
    const { changes } = await library.pull(checkpoint)
    expect(changes.get('notes')?.get(one.row_id)).toMatchObject({ n: 1 })
    expect(changes.get('notes')?.get(bad.row_id)).toBeNull()
  }
  await library.forget()
  expect((await library.pull(checkpoint)).changes.get('notes')?.has(bad.row_id)).toBe(false)
})

test('a row is no conflict while it is what was assumed, and a deletion of what is gone is done', async () => {
  const library = open((await devices(network)).phone.app)
  const one = put('a', { data: { title: 'a', n: 1 } })
  await library.push([one])
  const assumed = { title: 'a', n: 1, updated_at: '2020-01-01T00:00:00.000Z' }
  const patch = (title: string): LibraryWrite => ({
    ...one,
    op: 'patch',
    data: { title },
    assumed,
    row: { title, n: 1 },
  })
  expect(await library.push([patch('b')])).toEqual([])
  expect(await library.push([patch('c')])).toMatchObject([{ status: 'conflict', row: { title: 'b' } }])
  // what is wanted is there already
  expect(await library.push([patch('b')])).toEqual([])
  const gone: LibraryWrite = { op: 'delete', collection: 'notes', row_id: randomUUID() }
  expect(await library.push([gone])).toEqual([])
  expect(library.told).toEqual([])
})
