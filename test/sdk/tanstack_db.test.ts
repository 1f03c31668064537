import { randomUUID } from 'node:crypto'
import { createCollection, createLiveQueryCollection, createTransaction, gt } from '@tanstack/db'
import { expect, onTestFinished, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { network } from '#test/support/sdk.ts'
import { comeTogether, followGroup, type LibraryDevice, startNotes } from '#test/support/sync_devices.ts'
import { type App, createSync, memorySyncStore, type Row, type Verdict } from '../../sdk/src/index.ts'
import { tanstackMutation, tanstackSync } from '../../sdk/src/tanstack_db.ts'

/** TanStack DB, as it is published, against the server. */
const harness = await startHarness()
const all = await startNotes(harness)
const { devices, teamOf, stored } = all
type Note = Row & { readonly title?: string; readonly n?: number }

const open = async (app: App, store = memorySyncStore()) => {
  const verdicts: Verdict[] = []
  const sync = createSync(app, {
    collections: ['notes', 'plans'],
    store,
    delay: 3_600_000,
    every: 3_600_000,
    onVerdict: (verdict) => verdicts.push(verdict),
  })
  onTestFinished(() => sync.close())
  const notes = createCollection(tanstackSync<Note>(sync, 'notes'))
  const plans = createCollection(tanstackSync<Note>(sync, 'plans'))
  await Promise.all([notes.preload(), plans.preload()])
  const make = async (row: Partial<Note>) => {
    const id = randomUUID()
    const made = notes.insert({ id, ...row } as Note)
    expect(notes.has(id), 'shown at once').toBe(true)
    await made.isPersisted.promise
    expect(notes.has(id), 'and still').toBe(true)
    return id
  }
  const set = (id: string, changes: Partial<Note>) =>
    notes.update(id, (draft) => void Object.assign(draft, changes)).isPersisted.promise
  const rows = () => notes.toArray.map(({ id, title, n }) => ({ id, title, n })).sort((a, b) => (a.id < b.id ? -1 : 1))
  return { sync, notes, plans, verdicts, make, set, rows }
}

const ofLibrary = (one: Awaited<ReturnType<typeof open>>): LibraryDevice => ({
  ...one,
  remove: (id) => one.notes.delete(id).isPersisted.promise,
  sync: () => one.sync.now(),
  notes: one.rows,
  plans: () => one.plans.toArray,
})

test('two devices come together over a network that loses every third answer', async () => {
  const { apps } = await devices()
  const [phone, tablet] = [await open(apps[0]), await open(apps[1])]
  await comeTogether(ofLibrary(phone), ofLibrary(tablet), all)
  expect([...phone.verdicts, ...tablet.verdicts].every(({ status }) => status === 'applied')).toBe(true)
})

test('writes outlive a restart, and live queries follow', async () => {
  const store = memorySyncStore()
  const { phone: made } = await devices(network)
  const first = await open(made.app, store)
  made.net.isOffline = true
  const id = await first.make({ title: 'a', n: 5 })
  first.sync.close()
  const second = await open(made.app, store)
  const many = createLiveQueryCollection((q) => q.from({ note: second.notes }).where(({ note }) => gt(note.n, 4)))
  await many.preload()
  expect(many.toArray.map(({ title }) => title)).toEqual(['a'])
  made.net.isOffline = false
  await second.sync.now()
  expect(await stored(id)).toMatchObject({ n: 5 })
  await second.set(id, { n: 3 })
  expect(many.toArray).toEqual([])
})

test('the last write of a column wins', async () => {
  const { apps } = await devices(network)
  const [phone, tablet] = [await open(apps[0]), await open(apps[1])]
  const id = await phone.make({ title: 'a', n: 1 })
  await phone.sync.now()
  await tablet.sync.now()
  await phone.set(id, { title: 'phone' })
  await tablet.set(id, { n: 2 })
  for (const one of [phone, tablet, phone]) await one.sync.now()
  expect(phone.rows()).toEqual([{ id, title: 'phone', n: 2 }])
})

test('a refused write is taken back, and a transaction as a whole', async () => {
  const { team } = await teamOf()
  const { apps } = await devices(network)
  const phone = await open(apps[0])
  const id = await phone.make({ title: 'a', n: 1 })
  await phone.sync.now()
  await phone.set(id, { n: 101 })
  expect(phone.rows()).toMatchObject([{ n: 101 }])
  await phone.sync.now()
  expect(phone.rows()).toMatchObject([{ n: 1 }])
  const transaction = createTransaction({ mutationFn: tanstackMutation(phone.sync) })
  const good = randomUUID()
  transaction.mutate(() => {
    phone.notes.insert({ id: good, title: 'good' })
    // a group that the user is not in
    phone.plans.insert({ id: randomUUID(), title: 'plan', group_id: team })
  })
  await transaction.isPersisted.promise
  expect([phone.rows().length, phone.plans.size]).toEqual([2, 1])
  await phone.sync.now()
  expect(phone.verdicts.slice(2).map(({ code }) => code)).toEqual(['TRANSACTION_ROLLED_BACK', 'NOT_A_GROUP_MEMBER'])
  expect([phone.rows(), phone.plans.size]).toEqual([[{ id, title: 'a', n: 1 }], 0])
  expect(await stored(good)).toBeUndefined()
})

test('rows of a group go and come with the membership', async () => {
  const { apps, userId } = await devices()
  await followGroup(ofLibrary(await open(apps[0])), userId, all)
})
