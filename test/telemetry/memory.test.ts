import { readdir, readFile } from 'node:fs/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createStatements } from '#server/collections/statements.ts'
import type { Place } from '#server/database/cluster.ts'
import type { Database } from '#server/database/database.ts'
import { callStatement } from '#server/database/statements.ts'
import { createCache } from '#server/http/cache.ts'
import { createLru } from '#server/lru.ts'

/** What a process keeps has a bound. `npm run proof:memory` shows that it holds for a server that is used. */

afterEach(() => void vi.useRealTimers())

describe('a map of the least recently used', () => {
  test('holds so many entries, or bytes, and no more', () => {
    const entries = createLru<string>(10)
    const bytes = createLru<string>(1000, { bytesOf: (value, key) => value.length + key.length })
    for (let n = 100; n < 200; n += 1) {
      entries.set(`key ${n}`, 'x')
      bytes.set(`key ${n}`, 'x'.repeat(93))
    }
    expect(entries.size).toBe(10)
    expect([bytes.size, bytes.calculatedSize]).toEqual([10, 1000])
    expect(bytes.has('key 199')).toBe(true)
    // one that alone is larger is not kept, nor anything lost for it
    bytes.set('large', 'x'.repeat(1000))
    expect([bytes.has('large'), bytes.size]).toEqual([false, 10])
  })

  test('lets expired entries go that nobody asks for again', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    // lru-cache takes a start at 0 for none
    vi.advanceTimersByTime(1)
    const kept = createLru<string>(1000, { ttlMs: 1000 })
    const cache = createCache<string>(1000, 1000)
    for (let n = 0; n < 100; n += 1) {
      kept.set(`key ${n}`, 'x')
      cache.set(`key ${n}`, 'x')
    }
    vi.advanceTimersByTime(1500)
    kept.set('new', 'x')
    cache.set('new', 'x')
    expect(kept.size).toBe(1)
    expect(cache.state.entries).toBe(1)
  })
})

describe('compiled queries of collections', () => {
  const megabyte = 1_048_576
  const compiled = (version: string) => ({
    text: 'select 1',
    version,
    params: [],
    pages: false,
    patterns: null,
    raw: null,
  })
  /** A database whose compiler answers with a text of so many bytes. */
  const databaseOf = (bytes: number) => {
    const asked: string[] = []
    const database = {
      call: async (place: Place) => {
        asked.push(place.database)
        const data = { ...compiled('1'), text: 'x'.repeat(bytes) }
        return { status: 200, body: JSON.stringify({ data }), headers: null, dueAt: null, changed: [], milliseconds: 0 }
      },
      execute: async () => ({ row: ['200', '{"data":[]}', null, null, null, '1'], milliseconds: 0 }),
    } as unknown as Database
    return { asked, database }
  }
  const placeOf = (n: number) => ({ cluster: { id: 'c' }, database: `d${n}`, kind: 'tenant' }) as unknown as Place
  const ask = (statements: ReturnType<typeof createStatements>, project: number, shape: number) =>
    statements.ask(
      placeOf(project),
      'app_user',
      {},
      { kind: 'find', collection: 'notes', shape: `s${shape}`, request: {} },
      {},
    )

  test('of one project take a part of the memory alone, and of all together no more than there is', async () => {
    const { database } = databaseOf(10_000)
    const statements = createStatements(database, megabyte)
    for (let shape = 0; shape < 100; shape += 1) await ask(statements, 0, shape)
    expect(statements.state).toMatchObject({ places: 1, entries: 3 })
    expect(statements.state.bytes).toBeLessThanOrEqual(megabyte / 16)
    for (let project = 1; project < 40; project += 1)
      for (let shape = 0; shape < 4; shape += 1) await ask(statements, project, shape)
    expect(statements.state.bytes).toBeLessThanOrEqual(megabyte)
    expect(statements.state.bytes).toBeGreaterThan(megabyte / 2)
  })

  test('go first where a project has asked for none for longest', async () => {
    const { database, asked } = databaseOf(10_000)
    const statements = createStatements(database, megabyte)
    for (let project = 0; project < 18; project += 1) {
      for (let shape = 0; shape < 3; shape += 1) await ask(statements, project, shape)
      // the first one is in use all the time
      await ask(statements, 0, 0)
    }
    asked.length = 0
    await ask(statements, 0, 0)
    await ask(statements, 16, 0)
    expect(asked).toEqual([])
    await ask(statements, 1, 0)
    expect(asked).toEqual(['d1'])
  })

  test('are all forgotten with a database that is another one', async () => {
    const { database } = databaseOf(100)
    const statements = createStatements(database, megabyte)
    for (let project = 0; project < 5; project += 1) await ask(statements, project, 0)
    expect(statements.state).toMatchObject({ places: 5, entries: 5 })
    statements.drop('tenant:0')
    expect(statements.state).toEqual({ bytes: 0, places: 0, entries: 0 })
  })

  test('that are larger than a project may have are compiled each time', async () => {
    const { database, asked } = databaseOf(30_000)
    const statements = createStatements(database, megabyte / 4)
    await ask(statements, 0, 0)
    await ask(statements, 0, 0)
    expect(asked).toHaveLength(2)
    expect(statements.state).toMatchObject({ bytes: 0, entries: 0 })
  })
})

test('shapes of calls beyond a number that no program has are kept nowhere', () => {
  const names = Array.from({ length: 14 }, (_, n) => `a${n}`)
  const shapes = Array.from({ length: 2 ** 14 }, (_, n) => names.filter((_name, bit) => n & (1 << bit)))
  const calls = shapes.map((shape) => callStatement('reply', 'f', Object.fromEntries(shape.map((name) => [name, 1]))))
  // the program's own calls are among the 10,000, and those of every test before this one
  const kept = calls.filter(({ name }) => name !== '').length
  expect(kept).toBeLessThanOrEqual(10_000)
  expect(kept).toBeGreaterThan(5_000)
  expect(calls.at(-1)).toMatchObject({ name: '', text: expect.stringContaining('"a13" => $14') })
})

test('every cache is in the list of docs/memory.md', async () => {
  const listed = await readFile('docs/memory.md', 'utf8')
  const files = (await readdir('.', { recursive: true })).filter((file) => /^(server|workers)\/.*\.ts$/.test(file))
  expect(files.length).toBeGreaterThan(300)
  const keeping: string[] = []
  for (const file of files) {
    const text = await readFile(file, 'utf8')
    const isModules = /^(export )?const \w+ = new (Map|Set)(<.*>)?\(\)$/m.test(text)
    if ((isModules || /\b(createLru|createCache)(<.*>)?\(/.test(text)) && !/^server\/(lru|http\/cache)\.ts$/.test(file))
      keeping.push(file)
  }
  expect(keeping.length).toBeGreaterThan(12)
  expect(keeping.filter((file) => !listed.includes(`\`${file}\``))).toEqual([])
})
