import { randomUUID } from 'node:crypto'
import { createRxDatabase, type RxConflictHandler } from 'rxdb/plugins/core'
import { replicateRxCollection } from 'rxdb/plugins/replication'
import { getRxStorageMemory } from 'rxdb/plugins/storage-memory'
import { expect, onTestFinished, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { network } from '#test/support/sdk.ts'
import { comeTogether, followGroup, type LibraryDevice, startNotes } from '#test/support/sync_devices.ts'
import type { App, Refusal } from '../../sdk/src/index.ts'
import { type RxdbOptions, rxdbSync } from '../../sdk/src/rxdb.ts'

/** RxDB's replication, as it is published, against the server. */
const harness = await startHarness()
const all = await startNotes(harness)
const { project, devices, stored, write } = all

type Doc = { id: string; title?: string; n?: number; updated_at?: string; group_id?: string }
const schema = {
  version: 0,
  primaryKey: 'id',
  type: 'object',
  properties: {
    id: { type: 'string', maxLength: 36 },
    title: { type: 'string' },
    n: { type: 'number' },
    group_id: { type: 'string' },
    updated_at: { type: 'string' },
  },
  required: ['id'],
} as const

const open = async (app: App, options: RxdbOptions & { conflictHandler?: RxConflictHandler<Doc> } = {}) => {
  const { conflictHandler, ...more } = options
  const database = await createRxDatabase({ name: randomUUID(), storage: getRxStorageMemory(), multiInstance: false })
  onTestFinished(async () => void (await database.close()))
  const own = conflictHandler ? { conflictHandler } : {}
  const made = await database.addCollections({ notes: { schema, ...own }, plans: { schema } })
  const refusals: Refusal[] = []
  const sync = async (name: 'notes' | 'plans' = 'notes') => {
    const collection = made[name]
    if (!collection) throw new Error(name)
    const replication = replicateRxCollection<Doc, { at: string | null }>({
      replicationIdentifier: 'trellis',
      live: false,
      retryTime: 1,
      waitForLeadership: false,
      ...rxdbSync(app, collection, { onRejected: (refusal) => refusals.push(refusal), ...more }),
    })
    await replication.awaitInSync()
  }
  const notes = made['notes'] as NonNullable<(typeof made)['notes']>
  return {
    refusals,
    sync,
    make: async (doc: Partial<Doc>) => {
      const id = randomUUID()
      await notes.insert({ id, ...doc } as Doc)
      return id
    },
    set: async (id: string, changes: Partial<Doc>) =>
      void (await (await notes.findOne(id).exec(true)).incrementalPatch(changes)),
    remove: async (id: string) => void (await (await notes.findOne(id).exec(true)).incrementalRemove()),
    rows: async (name: 'notes' | 'plans' = 'notes'): Promise<Doc[]> =>
      ((await made[name]?.find().exec()) ?? [])
        .map((doc) => doc.toMutableJSON() as Doc)
        .sort((a, b) => (a.id < b.id ? -1 : 1)),
  }
}
const shown = (rows: Doc[]) => rows.map(({ id, title, n }) => ({ id, title, n }))
const two = async (apps: readonly App[], options: Parameters<typeof open>[1] = {}) => {
  const [phone, tablet] = await Promise.all(apps.map((app) => open(app, options)))
  return { phone: phone as Awaited<ReturnType<typeof open>>, tablet: tablet as Awaited<ReturnType<typeof open>> }
}

const ofLibrary = (one: Awaited<ReturnType<typeof open>>): LibraryDevice => ({
  ...one,
  async sync() {
    await one.sync('notes')
    await one.sync('plans')
  },
  notes: async () => shown(await one.rows()),
  plans: () => one.rows('plans'),
})

test('two devices come together over a network that loses every third answer', async () => {
  const { phone, tablet } = await two((await devices()).apps)
  await comeTogether(ofLibrary(phone), ofLibrary(tablet), all)
  expect([...phone.refusals, ...tablet.refusals]).toEqual([])
})

test('a conflict goes to the conflict handler: without one of yours the server wins', async () => {
  const { phone, tablet } = await two((await devices(network)).apps)
  const id = await phone.make({ title: 'a', n: 1 })
  await phone.sync()
  await phone.sync()
  await tablet.sync()
  await phone.set(id, { title: 'phone' })
  await phone.sync()
  await tablet.set(id, { title: 'tablet' })
  await tablet.sync()
  await tablet.sync()
  expect(await tablet.rows()).toMatchObject([{ title: 'phone' }])
  expect(await stored(id)).toMatchObject({ title: 'phone' })
  expect(tablet.refusals).toEqual([])
})

test('a conflict handler that merges is heard', async () => {
  const conflictHandler: RxConflictHandler<Doc> = {
    isEqual: (a, b) => JSON.stringify(a) === JSON.stringify(b),
    resolve: async ({ realMasterState, newDocumentState }) => ({
      ...realMasterState,
      title: `${realMasterState.title} and ${newDocumentState.title}`,
    }),
  }
  const { phone, tablet } = await two((await devices(network)).apps, { conflictHandler })
  const id = await phone.make({ title: 'a', n: 1 })
  for (const one of [phone, phone, tablet]) await one.sync()
  await phone.set(id, { title: 'phone' })
  await phone.sync()
  await tablet.set(id, { title: 'tablet' })
  for (const one of [tablet, tablet, phone]) await one.sync()
  expect(await stored(id)).toMatchObject({ title: 'phone and tablet' })
  expect(await phone.rows()).toMatchObject([{ title: 'phone and tablet' }])
})

test('writes of one device after another are no conflict, nor is one whose answer was lost', async () => {
  const { phone: made } = await devices(network)
  const phone = await open(made.app)
  const id = await phone.make({ title: 'a' })
  await phone.sync()
  for (const [before, title] of ['ab', 'bc', 'cd']) {
    await phone.sync()
    expect(await phone.rows()).toMatchObject([{ title: before }])
    await phone.set(id, { title: title as string })
  }
  made.net.losing.push(...Array.from({ length: 5 }, () => 'POST /v1/client/sync/push'))
  await phone.sync()
  expect(await phone.rows()).toMatchObject([{ title: 'd' }])
  expect(await stored(id)).toMatchObject({ title: 'd' })
  expect(phone.refusals).toEqual([])
})

test('a refused write is taken back, and told', async () => {
  const phone = await open((await devices(network)).apps[0])
  const id = await phone.make({ title: 'a', n: 1 })
  await phone.sync()
  const bad = await phone.make({ n: 1 })
  await phone.set(id, { n: 101 })
  await phone.sync()
  expect(phone.refusals.map(({ code }) => code)).toContain('NOT_NULL_VIOLATION')
  expect(phone.refusals).toHaveLength(2)
  expect(shown(await phone.rows())).toEqual([{ id, title: 'a', n: 1 }])
  expect(await stored(bad)).toBeUndefined()
})

test('a transaction is rolled back as a whole', async () => {
  const phone = await open((await devices(network)).apps[0], {
    tx: ({ n }) => (Number(n) > 50 ? 'order' : undefined),
  })
  const alone = await phone.make({ title: 'alone' })
  const good = await phone.make({ title: 'good', n: 51 })
  await phone.make({ n: 52 })
  await phone.sync()
  expect(phone.refusals.map(({ code }) => code).sort()).toEqual(['NOT_NULL_VIOLATION', 'TRANSACTION_ROLLED_BACK'])
  expect(shown(await phone.rows())).toMatchObject([{ id: alone }])
  expect(await stored(good)).toBeUndefined()
  // with what has been pushed before, of which RxDB does not know the time
  const [a, b] = [await phone.make({ title: 'x', n: 60 }), await phone.make({ title: 'y', n: 60 })]
  await phone.sync()
  for (const title of ['first', 'second', 'z']) {
    await phone.sync()
    for (const id of [a, b]) await phone.set(id, { title })
  }
  await phone.sync()
  expect([await stored(a), await stored(b)]).toMatchObject([{ title: 'z' }, { title: 'z' }])
  expect(phone.refusals).toHaveLength(2)
})

test('rows of a group go and come with the membership', async () => {
  const { apps, userId } = await devices()
  await followGroup(ofLibrary(await open(apps[0])), userId, all)
})

test('after a checkpoint that has expired everything comes again, and what was not pushed is kept', async () => {
  const phone = await open((await devices(network)).apps[0])
  const [kept, gone] = [await phone.make({ title: 'kept', n: 1 }), await phone.make({ title: 'gone' })]
  await phone.sync()
  await phone.sync()
  await project.sql('update collections.notes set deleted_at = now() where id = $1', [gone])
  await project.sql('delete from app.sync_checkpoints')
  await phone.set(kept, { n: 3 })
  const fresh = await phone.make({ title: 'new', n: 4 })
  await phone.sync()
  const rows = [
    { id: kept, title: 'kept', n: 3 },
    { id: fresh, title: 'new', n: 4 },
  ]
  expect(shown(await phone.rows())).toEqual(rows.sort((a, b) => (a.id < b.id ? -1 : 1)))
  expect(await stored(kept)).toMatchObject({ n: 3 })
  await write(kept, 'changed')
  await phone.sync()
  expect((await phone.rows()).find(({ id }) => id === kept)).toMatchObject({ title: 'changed' })
})

test('a live replication has more rows than a batch, and pulls again when it is told to', async () => {
  const { apps } = await devices(network)
  const { phone, tablet } = await two(apps)
  for (let n = 0; n < 25; n += 1) await phone.make({ title: `${n}` })
  await phone.sync()
  const database = await createRxDatabase({ name: randomUUID(), storage: getRxStorageMemory(), multiInstance: false })
  onTestFinished(async () => void (await database.close()))
  const { notes } = await database.addCollections({ notes: { schema } })
  const options = rxdbSync(apps[1], notes as never)
  const replication = replicateRxCollection<Doc, { at: string | null }>({
    replicationIdentifier: 'trellis',
    waitForLeadership: false,
    collection: options.collection as never,
    push: options.push,
    pull: { ...options.pull, batchSize: 10 },
  })
  await replication.awaitInSync()
  expect(await notes?.count().exec()).toBe(25)
  await tablet.make({ title: 'more' })
  await tablet.sync()
  replication.reSync()
  await replication.awaitInSync()
  expect(await notes?.count().exec()).toBe(26)
  await replication.cancel()
})
