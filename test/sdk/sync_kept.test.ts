import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { startNotes, syncOf } from '#test/support/sync_devices.ts'
import { memorySyncStore } from '../../sdk/src/index.ts'

/** `createSync`: which rows are on a device, when collections and users come and go. */
const harness = await startHarness()
const { project, start, stored, write } = await startNotes(harness)
const put = (title: string) => ({ op: 'put', collection: 'notes', row_id: randomUUID(), data: { title } }) as const

test('a collection that this sync does not keep takes no write', async () => {
  const phone = await start({}, { collections: ['notes'] })
  await expect(phone.plans.insert({ title: 'a' })).rejects.toMatchObject({ code: 'COLLECTION_NOT_FOUND' })
  await expect(phone.sync.transaction([put('a'), { ...put('b'), collection: 'plans' }])).rejects.toMatchObject({
    code: 'COLLECTION_NOT_FOUND',
  })
  expect(await phone.sync.size()).toBe(0)
})

test('a collection that the server does not sync takes back what is written to it', async () => {
  const phone = await start({}, { collections: undefined })
  const typo = phone.sync.collection('ntoes')
  const good = await phone.notes.insert({ title: 'good' })
  await typo.insert({ title: 'a' } as never)
  await phone.sync.now()
  expect(phone.verdicts).toMatchObject([{ status: 'applied' }, { code: 'COLLECTION_NOT_FOUND' }])
  expect(await typo.rows()).toEqual([])
  expect(await stored(good)).toMatchObject({ title: 'good' })
})

test('a collection that the project has dropped is told, and keeps the others from nothing', async () => {
  const errors: unknown[] = []
  await project.admin.post('/collections', { name: 'old', sync: true, columns: [{ name: 'title', type: 'text' }] })
  const phone = await start({}, { collections: ['notes', 'old'], onError: (error) => errors.push(error) })
  const old = phone.sync.collection('old')
  await old.insert({ title: 'old' } as never)
  const id = await phone.notes.insert({ title: 'a' })
  await phone.sync.now()
  expect(await old.rows()).toHaveLength(1)
  expect((await project.admin.delete('/collections/old?confirm=old')).status).toBe(200)
  await write(id, 'b')
  await phone.sync.now()
  await write(id, 'c')
  await phone.sync.now()
  expect(await phone.titles()).toEqual(['c'])
  expect(await old.rows()).toEqual([])
  expect(errors).toMatchObject([{ code: 'COLLECTION_NOT_FOUND' }])
})

test('rows of a user who has left go, also where the app ended before', async () => {
  const store = memorySyncStore()
  const phone = await start({}, { store })
  await phone.notes.insert({ title: 'of the first' })
  await phone.sync.now()
  await phone.notes.insert({ title: 'not sent' })
  phone.sync.close()
  const kinds = async () => {
    const keys = (await store.list('')).map(([key]) => key.split('/')[2])
    return [keys.filter((kind) => kind === 'row').length, keys.filter((kind) => kind === 'queue').length]
  }
  expect(await kinds()).toEqual([1, 1])
  // a start of whoever is signed in leaves them
  const same = syncOf(phone.app, { store })
  await same.sync.now()
  expect(await kinds()).toEqual([2, 0])
  await same.notes.insert({ title: 'not sent' })
  same.sync.close()
  await phone.app.signOut()
  expect(await kinds()).toEqual([2, 1])
  // nobody is signed in
  const nobody = syncOf(phone.app, { store })
  await expect.poll(kinds).toEqual([0, 1])
  nobody.sync.close()
})

test('rows of a user who has left go when another one syncs', async () => {
  const store = memorySyncStore()
  const phone = await start({}, { store })
  await phone.notes.insert({ title: 'of the first' })
  await phone.sync.now()
  phone.sync.close()
  const other = await start({}, { store })
  await other.notes.insert({ title: 'of the second' })
  await other.sync.now()
  const rows = (await store.list('')).filter(([key]) => key.includes('/row/'))
  expect(rows).toMatchObject([[expect.stringContaining(other.userId), { row: { title: 'of the second' } }]])
})

test('what was written for a collection before an update of the app that drops it is sent, and not kept', async () => {
  const store = memorySyncStore()
  const phone = await start({}, { store })
  await phone.sync.now()
  phone.sync.close()
  const updated = syncOf(phone.app, { store, collections: ['plans'] })
  await updated.sync.now()
  updated.sync.close()
  const former = syncOf(phone.app, { store })
  const id = await former.notes.insert({ title: 'a' })
  former.sync.close()
  const less = syncOf(phone.app, { store, collections: ['plans'] })
  await less.sync.now()
  expect(await stored(id)).toMatchObject({ title: 'a' })
  expect((await store.list('')).filter(([key]) => key.includes('/row/'))).toEqual([])
})
