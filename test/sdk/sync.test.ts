import { randomUUID } from 'node:crypto'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { group } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'
import { appOf, device, lossyNetwork, network } from '#test/support/sdk.ts'
import { pullRoute as pull, pushRoute as push, startNotes, syncOf } from '#test/support/sync_devices.ts'
import { createRealtime, memorySyncStore, onPoke } from '../../sdk/src/index.ts'

/** `createSync`: rows on a device, which are written without a network and come together with those of the server. */
const harness = await startHarness()
const { project, start, another } = await startNotes(harness)
afterEach(() => harness.setTime(null))
const stored = (id: string): Promise<any[]> =>
  project.sql('select title, n, deleted_at is not null as is_deleted from collections.notes where id = $1', [id])

test('what is written is shown at once, and comes to another device', async () => {
  const phone = await start()
  const seen: string[][] = []
  const stop = phone.notes.subscribe((rows) => seen.push(rows.map(({ title }) => title)))
  phone.net.isOffline = true
  const id = await phone.notes.insert({ title: 'a' })
  await phone.notes.patch(id, { title: 'b' })
  expect(seen.at(-1)).toEqual(['b'])
  expect(await phone.notes.get(id)).toEqual({ id, title: 'b' })
  expect(await phone.sync.size()).toBe(2)
  phone.net.isOffline = false
  await phone.sync.now()
  expect(phone.verdicts.map(({ status }) => status)).toEqual(['applied', 'applied'])
  expect(await phone.notes.get(id)).toMatchObject({ id, title: 'b', n: 7, user_id: phone.userId })
  expect(await phone.sync.size()).toBe(0)
  const tablet = await another(phone)
  await tablet.sync.now()
  expect(await tablet.titles()).toEqual(['b'])
  await tablet.notes.remove(id)
  expect(await tablet.titles()).toEqual([])
  await tablet.sync.now()
  await phone.sync.now()
  expect(await phone.notes.rows()).toEqual([])
  stop()
  await phone.notes.insert({ title: 'c' })
  expect(seen.at(-1)).toEqual([])
})

test('writes outlive a restart without a network', async () => {
  const store = memorySyncStore()
  const first = await start({ retries: 0 }, { store })
  first.net.isOffline = true
  const id = await first.notes.insert({ title: 'a' })
  await expect(first.sync.now()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  first.sync.close()
  const second = await start({ store: first.store }, { store })
  expect(await second.titles()).toEqual(['a'])
  await second.sync.now()
  expect(await stored(id)).toMatchObject([{ title: 'a' }])
})

test('two devices come together over a network that loses every third answer', async () => {
  const phone = await start({ net: lossyNetwork() })
  const tablet = await another(phone, { net: lossyNetwork() })
  const both = [phone, tablet]
  const all: string[] = []
  for (let round = 0; round < 6; round += 1) {
    for (const [n, one] of both.entries()) {
      all.push(await one.notes.insert({ title: `${round} of ${n}` }))
      const id = all[round] as string
      if (await one.notes.get(id)) await one.notes.patch(id, { n: round * 2 + n })
    }
    for (const one of both) await one.sync.now()
  }
  await phone.notes.remove(all[3] as string)
  for (const one of [...both, ...both]) await one.sync.now()
  const sorted = async (one: typeof phone) => (await one.notes.rows()).sort((a, b) => (a.id < b.id ? -1 : 1))
  const rows = await sorted(phone)
  expect(rows).toHaveLength(11)
  expect(await sorted(tablet)).toEqual(rows)
  for (const { id, title, n } of rows) expect(await stored(id)).toEqual([{ title, n, is_deleted: false }])
  expect([...phone.verdicts, ...tablet.verdicts].every(({ status }) => status === 'applied')).toBe(true)
})

test('a write whose answer is lost is applied once, and shown until a pull has it', async () => {
  const phone = await start({ retries: 0 })
  const id = await phone.notes.insert({ title: 'a' })
  phone.net.losing.push(push)
  await expect(phone.sync.now()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  const [before] = await stored(id)
  expect(before).toMatchObject({ title: 'a' })
  await project.sql('update collections.notes set n = 50 where id = $1', [id])
  phone.net.losing.push(pull)
  await expect(phone.sync.now()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  expect(phone.verdicts).toMatchObject([{ status: 'applied', isCurrent: false }])
  expect(await phone.titles()).toEqual(['a'])
  await phone.sync.now()
  expect(await phone.notes.get(id)).toMatchObject({ title: 'a', n: 50 })
})

test('a refused write is taken back, with its code', async () => {
  const phone = await start()
  const id = await phone.notes.insert({ title: 'a' })
  await phone.sync.now()
  await phone.notes.patch(id, { n: 101 })
  const bad = await phone.notes.insert({ n: 1 })
  expect(await phone.notes.get(bad)).toMatchObject({ n: 1 })
  await phone.sync.now()
  expect(phone.verdicts.slice(1)).toMatchObject([
    { status: 'rejected', code: expect.any(String), row: { n: 7 } },
    { status: 'rejected', code: 'NOT_NULL_VIOLATION', row: null },
  ])
  expect(await phone.notes.get(id)).toMatchObject({ n: 7 })
  expect(await phone.notes.get(bad)).toBeUndefined()
})

test('the last write of a column wins, and with `ifUnchanged` the first of the row', async () => {
  const phone = await start()
  const id = await phone.notes.insert({ title: 'a' })
  await phone.sync.now()
  const tablet = await another(phone)
  await tablet.sync.now()
  await tablet.notes.patch(id, { title: 'tablet' })
  await tablet.sync.now()
  await phone.notes.patch(id, { n: 8 })
  await phone.sync.now()
  expect(await phone.notes.get(id)).toMatchObject({ title: 'tablet', n: 8 })
  await tablet.notes.patch(id, { title: 'mine' }, { ifUnchanged: true })
  await tablet.notes.patch(id, { n: 9 }, { ifUnchanged: true })
  await tablet.sync.now()
  expect(tablet.verdicts.slice(-2)).toMatchObject([{ status: 'conflict', row: { n: 8 } }, { status: 'conflict' }])
  expect(await tablet.notes.get(id)).toMatchObject({ title: 'tablet', n: 8 })
  // one's own write before is no conflict
  await tablet.notes.patch(id, { title: 'now' }, { ifUnchanged: true })
  await tablet.notes.patch(id, { n: 10 }, { ifUnchanged: true })
  await tablet.sync.now()
  expect(tablet.verdicts.slice(-2)).toMatchObject([{ status: 'applied' }, { status: 'applied' }])
  expect(await stored(id)).toMatchObject([{ title: 'now', n: 10 }])
})

test('a transaction is applied together or not at all', async () => {
  const phone = await start()
  const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()]
  const put = (row_id: string, data: Record<string, unknown>) =>
    ({ op: 'put', collection: 'notes', row_id, data }) as const
  await phone.sync.transaction([put(a, { title: 'a' }), put(b, { n: 1 })])
  await phone.sync.transaction([
    put(c, { title: 'c' }),
    { op: 'patch', collection: 'notes', row_id: c, data: { n: 5 } },
  ])
  expect((await phone.notes.rows()).length).toBe(3)
  await phone.sync.now()
  expect(phone.verdicts).toMatchObject([
    { status: 'rejected', code: 'TRANSACTION_ROLLED_BACK' },
    { status: 'rejected', code: 'NOT_NULL_VIOLATION' },
    { status: 'applied' },
    { status: 'applied' },
  ])
  expect(await phone.notes.rows()).toMatchObject([{ id: c, n: 5 }])
  expect(await stored(a)).toEqual([])
})

test('rows of a group go and come with the membership', async () => {
  const [phone, friend] = [await start(), await start()]
  const team = await group(project, [[{ id: friend.userId } as never, 'member']])
  const id = await friend.plans.insert({ title: 'plan', group_id: team })
  await friend.sync.now()
  await phone.sync.now()
  expect(await phone.plans.rows()).toEqual([])
  const join = () =>
    project.sql(`insert into app.group_members (group_id, app_user_id, role) values ($1, $2, 'member')`, [
      team,
      phone.userId,
    ])
  await join()
  await phone.sync.now()
  expect(await phone.plans.rows()).toMatchObject([{ id, title: 'plan' }])
  await phone.plans.patch(id, { title: 'changed' })
  await project.sql('delete from app.group_members where group_id = $1 and app_user_id = $2', [team, phone.userId])
  await phone.sync.now()
  expect(phone.verdicts).toMatchObject([{ status: 'rejected', code: 'NOT_FOUND', row: null }])
  expect(await phone.plans.rows()).toEqual([])
  await join()
  await phone.sync.now()
  expect(await phone.plans.rows()).toMatchObject([{ id, title: 'plan' }])
})

test('after a checkpoint that has expired everything comes again, and writes that wait are kept', async () => {
  const phone = await start()
  const kept = await phone.notes.insert({ title: 'kept' })
  const gone = await phone.notes.insert({ title: 'gone' })
  await phone.sync.now()
  await project.sql('update collections.notes set deleted_at = now() where id = $1', [gone])
  await project.sql('delete from app.sync_checkpoints')
  phone.net.isOffline = true
  await phone.notes.patch(kept, { n: 3 })
  await phone.notes.insert({ title: 'new' })
  phone.net.isOffline = false
  phone.net.answer = (route) => (route === push ? new Response('{}', { status: 500 }) : undefined)
  await expect(phone.sync.now()).rejects.toMatchObject({ status: 500 })
  phone.net.answer = undefined
  expect(await phone.titles()).toEqual(['gone', 'kept', 'new'])
  await phone.sync.now()
  expect(await phone.titles()).toEqual(['kept', 'new'])
  expect(await phone.notes.get(kept)).toMatchObject({ n: 3 })
})

test('rows have the columns of now, also those that nobody has written since these were added', async () => {
  const phone = await start()
  const id = await phone.notes.insert({ title: 'a' })
  await phone.sync.now()
  await phone.sync.now()
  const added = { name: 'state', type: 'text', default: 'open' }
  expect((await project.admin.post('/collections/notes/columns', added)).status).toBe(201)
  const waiting = await phone.notes.insert({ title: 'b' })
  await phone.sync.now()
  expect(await phone.notes.get(id)).toMatchObject({ title: 'a', state: 'open' })
  expect(await phone.notes.get(waiting)).toMatchObject({ title: 'b', state: 'open' })
  const pulls = phone.net.count(pull)
  await phone.sync.now()
  expect(phone.net.count(pull)).toBe(pulls + 1)
  expect((await project.admin.delete('/collections/notes/columns/state?confirm=state')).status).toBe(200)
  await phone.sync.now()
  expect(await phone.notes.get(id)).not.toHaveProperty('state')
})

test('rows of one user are never shown to another, and what waits is sent for its user alone', async () => {
  const store = memorySyncStore()
  const phone = await start({}, { store })
  const first = phone.userId
  await phone.notes.insert({ title: 'sent' })
  await phone.sync.now()
  const seen: string[][] = []
  phone.notes.subscribe((rows) => seen.push(rows.map(({ title }) => title)))
  await expect.poll(() => seen.at(-1)).toEqual(['sent'])
  const waiting = await phone.notes.insert({ title: 'waiting' })
  await phone.app.signOut()
  await expect.poll(() => seen.at(-1)).toEqual([])
  await expect(phone.notes.insert({ title: 'nobody' })).rejects.toMatchObject({ code: 'ABORTED' })
  const second = await phone.app.ensureSignedIn()
  expect(second.userId).not.toBe(first)
  await phone.sync.now()
  expect(await phone.notes.rows()).toEqual([])
  expect(await stored(waiting)).toEqual([])
  // on the disk are no rows any more, but what was not sent
  const left = await store.list('')
  expect(left.filter(([key]) => key.includes('/row/'))).toEqual([])
  expect(left.filter(([key]) => key.includes('/queue/'))).toHaveLength(1)
})

test('a deleted user leaves nothing', async () => {
  const store = memorySyncStore()
  const phone = await start({}, { store })
  await phone.notes.insert({ title: 'a' })
  await phone.sync.now()
  await phone.notes.insert({ title: 'b' })
  const { deleteMe } = await import('../../sdk/src/generated/client.ts')
  await phone.app.call(deleteMe, { body: { confirm: 'DELETE' } })
  await expect.poll(() => store.list('')).toEqual([])
})

test('a user who signs in in the middle of a pass gets nothing of it', async () => {
  const store = memorySyncStore()
  const net = network()
  const phone = await start({ net }, { store })
  await phone.notes.insert({ title: 'of the first' })
  net.answer = (route) => {
    if (route !== push) return undefined
    net.answer = undefined
    void phone.app.signOut()
    return undefined
  }
  await phone.sync.now().catch(() => undefined)
  await phone.app.ensureSignedIn()
  await phone.sync.now()
  expect(await phone.notes.rows()).toEqual([])
  const second = (await phone.app.session())?.userId
  const keys = (await store.list('')).map(([key]) => key)
  expect(keys.filter((key) => key.includes(`${second}/row`))).toEqual([])
})

test('what waits is not sent for a user who signs in before it is sent', async () => {
  const store = memorySyncStore()
  const phone = await start()
  let before = async () => undefined as unknown
  const slow = {
    ...store,
    async write(changes: ReadonlyMap<string, unknown>) {
      await before()
      await store.write(changes)
    },
  }
  const sync = syncOf(phone.app, { store: slow })
  const id = await sync.notes.insert({ title: 'of the first' })
  before = async () => {
    before = async () => undefined
    await phone.app.signOut()
    await phone.app.ensureSignedIn()
  }
  await expect(sync.sync.now()).rejects.toMatchObject({ code: 'ABORTED' })
  expect(phone.net.count(push)).toBe(0)
  await sync.sync.now()
  expect(await stored(id)).toEqual([])
})

test('collections that are not kept any more leave, and come whole again', async () => {
  const store = memorySyncStore()
  const phone = await start({}, { store })
  const id = await phone.notes.insert({ title: 'a' })
  await phone.sync.now()
  phone.sync.close()
  const less = syncOf(phone.app, { store, collections: ['plans'] })
  await less.sync.now()
  expect(await less.notes.rows()).toEqual([])
  less.sync.close()
  const again = syncOf(phone.app, { store })
  await again.sync.now()
  expect(await again.notes.rows()).toMatchObject([{ id }])
})

test('more than a request holds goes in several, and none of a page is missing', async () => {
  const phone = await start()
  const writes = Array.from({ length: 1100 }, (_, n) => `note ${n}`)
  for (const title of writes.slice(0, 20)) await phone.notes.insert({ title })
  await phone.sync.transaction(
    writes.slice(20, 500).map((title) => ({ op: 'put', collection: 'notes', row_id: randomUUID(), data: { title } })),
  )
  for (const from of [500, 800]) {
    await phone.sync.transaction(
      writes.slice(from, from + 300).map((title) => ({
        op: 'put',
        collection: 'notes',
        row_id: randomUUID(),
        data: { title },
      })),
    )
  }
  await phone.sync.now()
  expect(phone.net.count(push)).toBeGreaterThan(2)
  const tablet = await another(phone)
  await tablet.sync.now()
  expect(await tablet.titles()).toEqual([...writes].sort())
})

test('sends by itself, and again when the network is back', async () => {
  let tries = 0
  const net = network()
  const whole = net.fetch
  const counted = Object.assign(net, {
    fetch(url: string, init: unknown) {
      tries += 1
      return whole(url, init)
    },
  })
  const phone = await start({ retries: 0, net: counted }, { delay: 1 })
  await expect.poll(() => net.count(pull)).toBe(1)
  net.isOffline = true
  const before = tries
  const id = await phone.notes.insert({ title: 'a' })
  await expect.poll(() => tries).toBeGreaterThan(before)
  net.isOffline = false
  await expect.poll(() => stored(id)).toHaveLength(1)
})

test('a poke brings what another device writes, to everybody who waits for one', async () => {
  const store = device()
  const { app } = appOf(harness, project, { store })
  await app.ensureSignedIn()
  const realtime = createRealtime(app)
  onTestFinished(() => realtime.close())
  let pokes = 0
  const stop = onPoke(realtime, () => {
    pokes += 1
  })
  const phone = syncOf(app, { delay: 1, realtime })
  const tablet = await another({ store })
  await expect.poll(() => pokes).toBeGreaterThan(0)
  await tablet.notes.insert({ title: 'of the tablet' })
  await tablet.sync.now()
  await expect.poll(phone.titles).toEqual(['of the tablet'])
  stop()
  const before = pokes
  await tablet.notes.insert({ title: 'second' })
  await tablet.sync.now()
  await expect.poll(phone.titles).toEqual(['of the tablet', 'second'])
  expect(pokes).toBe(before)
})

test('an id in capitals is the same row', async () => {
  const phone = await start()
  const id = randomUUID()
  await phone.notes.put(id.toUpperCase(), { title: 'a' })
  await phone.sync.now()
  expect((await phone.notes.rows()).map((row) => row.id)).toEqual([id])
})

test('a refusal that waiting does not end is told', async () => {
  const errors: unknown[] = []
  await start({}, { collections: ['nowhere'], delay: 1, onError: (error) => errors.push(error) })
  await expect.poll(() => errors).toMatchObject([{ code: 'COLLECTION_NOT_FOUND' }])
})
