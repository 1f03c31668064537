import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { lossyNetwork, network } from '#test/support/sdk.ts'
import { startNotes } from '#test/support/sync_devices.ts'
import {
  type AsyncStorageLike,
  asyncStorageSyncStore,
  memorySyncStore,
  type SyncStore,
  sqliteSyncStore,
} from '../../sdk/src/index.ts'

/** Where rows are kept: what each store promises, and a device that uses it. */
const harness = await startHarness()
const { start, stored } = await startNotes(harness)

/** As expo-sqlite is used, `(sql, params) => db.getAllAsync(sql, params)`. */
const sqlite = () => {
  const database = new DatabaseSync(':memory:')
  onTestFinished(() => database.close())
  return async (sql: string, params: string[]) => database.prepare(sql).all(...params)
}
/** The interface of AsyncStorage over a map, in which each call may be the last one of an app. */
const asyncStorage = () => {
  const values = new Map<string, string>()
  let left = Number.POSITIVE_INFINITY
  const step = async <T>(work: () => T): Promise<T> => {
    left -= 1
    if (left < 0) throw new Error('The app has ended.')
    return work()
  }
  const storage: AsyncStorageLike = {
    getItem: (key) => step(() => values.get(key) ?? null),
    setItem: (key, value) => step(() => void values.set(key, value)),
    removeItem: (key) => step(() => void values.delete(key)),
    getAllKeys: () => step(() => [...values.keys()]),
    multiGet: (keys) => step(() => keys.map((key) => [key, values.get(key) ?? null] as const)),
    // one value after the other: the last call of an app has written some of them
    async multiSet(pairs) {
      for (const [key, value] of pairs) await step(() => values.set(key, value))
    },
    async multiRemove(keys) {
      for (const key of keys) await step(() => values.delete(key))
    },
  }
  return {
    values,
    storage,
    endAfter: (calls: number) => {
      left = calls
    },
  }
}

const stores: Record<string, () => SyncStore> = {
  memory: memorySyncStore,
  SQLite: () => sqliteSyncStore(sqlite()),
  AsyncStorage: () => asyncStorageSyncStore(asyncStorage().storage),
}

describe.each(Object.entries(stores))('%s', (_, make) => {
  test('values are kept by keys, in the order of the keys', async () => {
    const store = make()
    expect(await store.get('a')).toBeUndefined()
    expect(await store.list('')).toEqual([])
    const value = { title: 'ä"\u0000\ud800', n: 1.5, list: [null, true] }
    await store.write(
      new Map<string, unknown>([
        ['b/2', 2],
        ['b/1', value],
        ['c', null],
        ['b', 'x'],
      ]),
    )
    expect(await store.get('b/1')).toEqual(value)
    expect(await store.get('c')).toBeNull()
    expect(await store.list('b/')).toEqual([
      ['b/1', value],
      ['b/2', 2],
    ])
    expect((await store.list('')).map(([key]) => key)).toEqual(['b', 'b/1', 'b/2', 'c'])
    await store.write(
      new Map<string, unknown>([
        ['b/1', undefined],
        ['nothing', undefined],
        ['b/2', 3],
      ]),
    )
    expect(await store.list('b')).toEqual([
      ['b', 'x'],
      ['b/2', 3],
    ])
    await store.write(new Map())
    expect((await store.list('')).length).toBe(3)
  })

  test('more than one journal part, and calls that come at once', async () => {
    const store = make()
    const long = 'x'.repeat(400_000)
    const many = (from: number) => new Map(Array.from({ length: 4 }, (_, n) => [`${from + n}`, long] as const))
    await Promise.all([store.write(many(0)), store.write(many(4)), store.get('0')])
    expect((await store.list('')).every(([, value]) => value === long)).toBe(true)
    expect(await store.list('')).toHaveLength(8)
  })

  test('a device outlives a restart with it, over a network that loses every third answer', async () => {
    const store = make()
    const first = await start({ net: lossyNetwork() }, { store })
    const ids: string[] = []
    for (let n = 0; n < 12; n += 1) ids.push(await first.notes.insert({ title: `${n}` }))
    await first.sync.now()
    await first.notes.remove(ids[0] as string)
    await first.notes.patch(ids[1] as string, { n: 3 })
    first.sync.close()
    const second = await start({ store: first.store, net: network() }, { store })
    expect(await second.notes.rows()).toHaveLength(11)
    expect(await second.sync.size()).toBe(2)
    await second.sync.now()
    expect(await stored(ids[0] as string)).toBeUndefined()
    expect(await stored(ids[1] as string)).toMatchObject({ n: 3 })
  })
})

test('a journal of AsyncStorage is cut in no character that the storage would not keep', async () => {
  const { storage } = asyncStorage()
  // as a database that has its texts in UTF-8
  const multiSet: AsyncStorageLike['multiSet'] = (pairs) =>
    storage.multiSet(pairs.map(([key, value]) => [key, value.toWellFormed()]))
  const store = asyncStorageSyncStore({ ...storage, multiSet })
  for (const before of ['', 'x']) {
    const value = before + '\u{1f600}'.repeat(300_000)
    await store.write(new Map([['a', value]]))
    expect((await store.get('a')) === value).toBe(true)
  }
})

test('an app that ends in the middle of a write to AsyncStorage has all of it or nothing', async () => {
  const seen = new Set<string>()
  for (let calls = 0; calls < 20; calls += 1) {
    const { storage, endAfter, values } = asyncStorage()
    const before = new Map<string, unknown>([
      ['a', 1],
      ['b', 1],
    ])
    await asyncStorageSyncStore(storage).write(before)
    endAfter(calls)
    const after = new Map<string, unknown>([
      ['a', undefined],
      ['b', 2],
      ['c', 2],
    ])
    const isWritten = await asyncStorageSyncStore(storage)
      .write(after)
      .then(() => true)
      .catch(() => false)
    endAfter(Number.POSITIVE_INFINITY)
    const list = JSON.stringify(await asyncStorageSyncStore(storage).list(''))
    const whole = JSON.stringify([
      ['b', 2],
      ['c', 2],
    ])
    expect([JSON.stringify([...before]), whole]).toContain(list)
    if (isWritten) expect(list).toBe(whole)
    seen.add(list)
    // what the app has of its own is let alone
    expect([...values.keys()].every((key) => key.startsWith('trellis-sync'))).toBe(true)
  }
  expect(seen.size).toBe(2)
})

test('a write to AsyncStorage that failed is seen by nobody, or by all', async () => {
  const { storage, endAfter } = asyncStorage()
  const store = asyncStorageSyncStore(storage)
  await store.write(new Map([['a', 1]]))
  endAfter(0)
  await expect(store.write(new Map([['a', 2]]))).rejects.toThrow('ended')
  endAfter(Number.POSITIVE_INFINITY)
  expect(await store.get('a')).toBe(1)
  // the journal is written, the value is not
  endAfter(3)
  await expect(store.write(new Map([['a', 3]]))).rejects.toThrow('ended')
  endAfter(Number.POSITIVE_INFINITY)
  expect(await store.get('a')).toBe(3)
})
