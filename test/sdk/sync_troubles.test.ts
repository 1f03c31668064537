import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { network } from '#test/support/sdk.ts'
import { pullRoute, pushRoute, startNotes, syncOf } from '#test/support/sync_devices.ts'
import { memorySyncStore, type Realtime, type SyncStore } from '../../sdk/src/index.ts'

/** `createSync` in apps that fail, on devices that fail, and told of more than it can fetch. */
const harness = await startHarness()
const { project, start, another, stored, write } = await startNotes(harness)
const full = () => new DOMException('The quota has been exceeded.', 'QuotaExceededError')

/** A store that fails, or ends with its app, at writes that a test names. */
const fragile = (store: SyncStore = memorySyncStore()) => {
  const made = {
    ...store,
    fails: undefined as ((keys: string[]) => boolean) | undefined,
    lists: [] as string[],
    list(prefix: string) {
      made.lists.push(prefix)
      return store.list(prefix)
    },
    async write(changes: ReadonlyMap<string, unknown>) {
      if (made.fails?.([...changes.keys()])) throw full()
      await store.write(changes)
    },
  }
  return made
}
const isOfPull = (keys: string[]) => keys.some((key) => key.endsWith('/state')) && keys.length > 1
const put = (title: string) => ({ op: 'put', collection: 'notes', row_id: randomUUID(), data: { title } }) as const

test('what JSON cannot say is refused to its writer, and holds up nothing', async () => {
  const phone = await start()
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  await expect(phone.notes.insert({ title: 'a', n: 1n as never })).rejects.toThrow(TypeError)
  await expect(phone.sync.transaction([put('b'), { ...put('c'), data: circle }])).rejects.toThrow(TypeError)
  expect(await phone.sync.size()).toBe(0)
  const id = await phone.notes.insert({ title: new Date(0) as never })
  expect(await phone.notes.get(id)).toMatchObject({ title: '1970-01-01T00:00:00.000Z' })
  await phone.sync.now()
  expect(await stored(id)).toMatchObject({ title: '1970-01-01T00:00:00.000Z' })
})

test('an app that fails at a verdict or at rows is told, and keeps nobody from anything', async () => {
  const errors: unknown[] = []
  const told: string[] = []
  const phone = await start(
    {},
    {
      onError: (error) => errors.push((error as Error).message),
      onVerdict: ({ mutation }) => {
        told.push(mutation.row_id)
        throw new Error('verdict')
      },
    },
  )
  const seen: number[] = []
  phone.notes.subscribe(() => {
    throw new Error('rows')
  })
  phone.notes.subscribe((rows) => seen.push(rows.length))
  const ids = [await phone.notes.insert({ title: 'a' }), await phone.notes.insert({ title: 'b' })]
  expect(seen.at(-1)).toBe(2)
  await phone.sync.now()
  expect(told).toEqual(ids)
  expect(errors.filter((message) => message === 'verdict')).toHaveLength(2)
  expect(errors).toContain('rows')
})

test('a store that cannot be read is told, and rejects nothing that nobody waits for', async () => {
  const errors: unknown[] = []
  const store = memorySyncStore()
  const broken = { ...store, list: () => Promise.reject(full()) }
  const phone = await start({}, { store: broken, onError: (error) => errors.push(error) })
  phone.notes.subscribe(() => undefined)
  await expect.poll(() => errors).toMatchObject([{ name: 'QuotaExceededError' }])
})

test('a full device refuses a write to its writer, and takes it when there is room', async () => {
  const store = fragile()
  const phone = await start({}, { store })
  store.fails = () => true
  await expect(phone.notes.insert({ title: 'a' })).rejects.toMatchObject({ name: 'QuotaExceededError' })
  expect(await phone.titles()).toEqual([])
  store.fails = undefined
  const id = await phone.notes.insert({ title: 'b' })
  await phone.sync.now()
  expect(await stored(id)).toMatchObject({ title: 'b' })
})

test('rows and their checkpoint are stored together: an app that ends in the middle of a pull loses nothing', async () => {
  const phone = await start()
  await phone.sync.transaction(Array.from({ length: 30 }, (_, n) => put(`${n}`)))
  await phone.sync.now()
  const kept = memorySyncStore()
  const store = fragile(kept)
  store.fails = isOfPull
  const tablet = await another(phone, {}, { store })
  await expect(tablet.sync.now()).rejects.toMatchObject({ name: 'QuotaExceededError' })
  expect(await tablet.titles()).toEqual([])
  tablet.sync.close()
  const again = syncOf(tablet.app, { store: kept })
  await again.sync.now()
  expect(await again.titles()).toHaveLength(30)
})

test('an app that ends between a push and its verdicts is told them after its start', async () => {
  const kept = memorySyncStore()
  const store = fragile(kept)
  const phone = await start({}, { store })
  const bad = await phone.notes.insert({ n: 1 })
  const good = await phone.notes.insert({ title: 'good' })
  store.fails = (keys) => keys.some((key) => key.includes('/queue/'))
  await expect(phone.sync.now()).rejects.toMatchObject({ name: 'QuotaExceededError' })
  phone.sync.close()
  await write(good, 'of another device')
  const again = syncOf(phone.app, { store: kept })
  expect(await again.sync.size()).toBe(2)
  await again.sync.now()
  expect(again.verdicts).toMatchObject([
    { mutation: { row_id: bad }, status: 'rejected', code: 'NOT_NULL_VIOLATION' },
    { mutation: { row_id: good }, status: 'applied' },
  ])
  expect(await again.titles()).toEqual(['of another device'])
})

test('a refused write with many later ones on the same row takes these with it, and no others', async () => {
  const phone = await start()
  const bad = await phone.notes.insert({ n: 1 })
  for (let n = 0; n < 20; n += 1) await phone.notes.patch(bad, { n }, { ifUnchanged: n % 2 === 0 })
  const other = await phone.notes.insert({ title: 'other' })
  expect(await phone.notes.get(bad)).toMatchObject({ n: 19 })
  await phone.sync.now()
  expect(phone.verdicts.map(({ status, code }) => code ?? status)).toEqual([
    'NOT_NULL_VIOLATION',
    ...Array.from({ length: 20 }, () => 'NOT_FOUND'),
    'applied',
  ])
  expect((await phone.notes.rows()).map(({ id }) => id)).toEqual([other])
  expect(await phone.sync.size()).toBe(0)
})

test('a checkpoint that expires in the middle of a pull begins it again', async () => {
  const phone = await start()
  for (let page = 0; page < 3; page += 1) {
    await phone.sync.transaction(Array.from({ length: 400 }, (_, n) => put(`${page}-${n}`)))
  }
  await phone.sync.now()
  const net = network()
  const whole = net.fetch
  let pulls = 0
  const expiring = Object.assign(net, {
    async fetch(url: string, init: unknown) {
      if (new URL(url).pathname.endsWith('/pull')) pulls += 1
      if (pulls === 2) await project.sql('delete from app.sync_checkpoints')
      return whole(url, init)
    },
  })
  const tablet = await another(phone, { net: expiring })
  await tablet.sync.now()
  expect(pulls).toBe(4)
  expect(new Set(await tablet.titles()).size).toBe(1200)
})

test('two tabs with one store send each write once, and both show it', async () => {
  const store = memorySyncStore()
  const one = await start({}, { store })
  const two = syncOf(one.app, { store })
  await Promise.all(
    [one, two].flatMap(({ notes }, tab) => [1, 2, 3].map((n) => notes.insert({ title: `${tab} ${n}` }))),
  )
  const titles = ['0 1', '0 2', '0 3', '1 1', '1 2', '1 3']
  expect(await one.titles()).toEqual(titles)
  await Promise.all([one.sync.now(), two.sync.now(), one.sync.now(), two.sync.now()])
  expect([...one.verdicts, ...two.verdicts].map(({ isCurrent }) => isCurrent)).toEqual(titles.map(() => true))
  expect(await one.titles()).toEqual(titles)
  expect(await two.titles()).toEqual(titles)
})

test('however often a sync is asked for, one waits for all who ask', async () => {
  const phone = await start()
  await phone.notes.insert({ title: 'a' })
  await Promise.all(Array.from({ length: 50 }, () => phone.sync.now()))
  expect(phone.net.count(pullRoute)).toBe(1)
  // one that has begun may be too early for who asks now
  phone.net.answer = (route) => {
    if (route === pullRoute) {
      phone.net.answer = undefined
      for (let n = 0; n < 10; n += 1) later.push(phone.sync.now())
    }
    return undefined
  }
  const later: Promise<void>[] = []
  await phone.sync.now()
  await Promise.all(later)
  expect(phone.net.count(pullRoute)).toBe(3)
})

test('a storm of pokes is two pulls', async () => {
  let poke: () => void = () => undefined
  const realtime = {
    subscribe(_: string, { onEvent }: { onEvent: () => void }) {
      poke = onEvent
      return () => undefined
    },
  } as unknown as Realtime
  const phone = await start({}, { realtime })
  const pulls = () => phone.net.count(pullRoute)
  const storm = () => {
    for (let n = 0; n < 500; n += 1) poke()
  }
  storm()
  phone.net.answer = (route) => {
    if (route === pullRoute) storm()
    return undefined
  }
  await expect.poll(pulls).toBe(1)
  phone.net.answer = undefined
  storm()
  await expect.poll(pulls).toBe(2)
  const note = await another(phone)
  await note.notes.insert({ title: 'last' })
  await note.sync.now()
  storm()
  await expect.poll(phone.titles).toEqual(['last'])
  expect(pulls()).toBe(3)
})

test('a clock that is set forward delays nothing', async () => {
  const online: (() => void)[] = []
  vi.stubGlobal('addEventListener', (type: string, listener: () => void) => type === 'online' && online.push(listener))
  onTestFinished(() => void vi.unstubAllGlobals())
  let ahead = 0
  const phone = await start({ now: () => Date.now() + ahead })
  await phone.notes.insert({ title: 'a' })
  ahead = 40 * 365 * 86_400_000
  for (const listener of online) listener()
  await expect.poll(() => phone.net.count(pushRoute)).toBe(1)
})

test('a write costs the same however many wait', async () => {
  const store = fragile()
  const phone = await start({}, { store })
  await phone.sync.transaction(Array.from({ length: 500 }, (_, n) => put(`${n}`)))
  store.lists.length = 0
  for (let n = 0; n < 5; n += 1) await phone.notes.insert({ title: `more ${n}` })
  expect(store.lists).toEqual([])
  // in the order in which they were written, also behind a queue of an earlier version
  await store.write(
    new Map((await store.list('')).filter(([key]) => key.endsWith('/last')).map(([key]) => [key, undefined])),
  )
  await phone.notes.insert({ title: 'behind' })
  expect((await phone.notes.rows()).at(-1)).toMatchObject({ title: 'behind' })
})
