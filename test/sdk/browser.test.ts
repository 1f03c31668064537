import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { startChromium } from '#test/support/chromium.ts'
import { startHarness } from '#test/support/harness.ts'

/** The SDK in a real browser: its storage, its locks between tabs, its network, its sockets. */
const harness = await startHarness()
const project = await harness.project()
const setting = JSON.stringify({ url: harness.url, key: project.clientKey })
const source = `
  import * as sdk from './src/index.ts'
  import * as client from './src/generated/client.ts'
  import { defaultSyncStore } from './src/sync_store.ts'
  const ahead = Number(new URLSearchParams(location.search).get('ahead') ?? 0)
  const app = sdk.createApp({ ...${setting}, now: () => Date.now() + ahead })
  globalThis.sdk = { ...sdk, client, app, defaultSyncStore, events: sdk.createEvents(app, { delay: 50 }) }`
const { open, profile } = await startChromium(source, join(root, 'sdk'))
/** Code in a page, where everything of the SDK is in `sdk`. */
const run = (page: { evaluate(code: string): Promise<any> }, code: string) =>
  page.evaluate(`(async () => { ${code} })()`)

test('a session outlives a reload, and is that of all tabs', async () => {
  const context = await profile()
  const page = await open(context)
  const made = await run(page, 'return (await sdk.app.ensureSignedIn()).userId')
  await page.reload()
  await page.waitForFunction('globalThis.sdk !== undefined')
  const me = 'return (await sdk.app.call(sdk.client.getMe)).data.id'
  expect(await run(page, me)).toBe(made)
  expect(await run(await open(context), me)).toBe(made)
  expect(await run(await open(await profile()), 'return await sdk.app.session()')).toBeNull()
  await context.close()
})

test('two tabs whose token has expired refresh it once', async () => {
  const context = await profile()
  const tabs = [await open(context), await open(context)]
  const user = await run(tabs[0]!, 'return (await sdk.app.ensureSignedIn()).userId')
  const refreshes: string[] = []
  context.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/auth/refresh')) refreshes.push(request.url())
  })
  harness.setTime(new Date(Date.now() + 3_700_000))
  try {
    const calls = 'return Promise.all([1, 2, 3].map(async () => (await sdk.app.call(sdk.client.getMe)).data.id))'
    const got = await Promise.all(tabs.map((tab) => run(tab, calls)))
    expect(got.flat()).toEqual(Array.from({ length: 6 }, () => user))
    expect(refreshes).toHaveLength(1)
  } finally {
    harness.setTime(null)
  }
  await context.close()
})

test('two tabs that sign in at the same time are one user', async () => {
  const context = await profile()
  const tabs = [await open(context), await open(context)]
  const users = await Promise.all(tabs.map((tab) => run(tab, 'return (await sdk.app.ensureSignedIn()).userId')))
  expect(users[0]).toBe(users[1])
  await context.close()
})

test('events of an offline tab that was closed are sent by the next one, once', async () => {
  const context = await profile()
  const tabs = [await open(context), await open(context)]
  await run(tabs[0]!, 'await sdk.app.ensureSignedIn()')
  await context.setOffline(true)
  const track = (n: number) => `return Promise.all([1, 2, 3].map((i) => sdk.events.track('seen', { n: ${n} + i })))`
  const ids = (await Promise.all(tabs.map((tab, index) => run(tab, track(index * 10))))).flat()
  const failure = await run(tabs[0]!, 'return sdk.events.flush().catch((error) => error.code)')
  expect(failure).toBe('NETWORK_ERROR')
  for (const tab of tabs) await tab.close()
  await context.setOffline(false)
  const next = await open(context)
  await expect.poll(() => run(next, 'return sdk.events.size()')).toBe(0)
  const rows = await project.sql(`select id from app.engagement_events where event_name = 'seen'`)
  expect(rows.map(({ id }) => id).sort()).toEqual(ids.sort())
  await context.close()
})

test('events that two tabs store at once are all kept', async () => {
  const context = await profile()
  const tabs = [await open(context), await open(context)]
  await context.setOffline(true)
  const track = "await Promise.all(Array.from({ length: 50 }, () => sdk.events.track('stored')))"
  await Promise.all(tabs.map((tab) => run(tab, track)))
  expect(await Promise.all(tabs.map((tab) => run(tab, 'return sdk.events.size()')))).toEqual([100, 100])
  await context.close()
})

test('a wrong clock moves no event', async () => {
  const context = await profile()
  const page = await open(context)
  await page.goto(`${page.url()}?ahead=${86_400_000 * 40}`)
  await page.waitForFunction('globalThis.sdk !== undefined')
  await run(page, "await sdk.events.track('timed'); await sdk.events.flush(); await sdk.app.call(sdk.client.getMe)")
  const [row] = await project.sql(`select occurred_at from app.engagement_events where event_name = 'timed'`)
  expect(Math.abs(row.occurred_at.getTime() - Date.now())).toBeLessThan(60_000)
  await context.close()
})

test('realtime, config and an upload work in a page', async () => {
  await project.admin.post('/config', { key: 'color', value: 'blue' })
  const context = await profile()
  const page = await open(context)
  const received = await run(
    page,
    `const realtime = sdk.createRealtime(sdk.app)
     const got = new Promise((resolve) => realtime.subscribe('room:page', { onEvent: ({ payload }) => resolve(payload) }))
     const again = setInterval(() => realtime.publish('room:page', 'hello', { from: 'page' }).catch(() => 0), 200)
     const payload = await got
     clearInterval(again)
     realtime.close()
     return payload`,
  )
  expect(received).toEqual({ from: 'page' })
  const config = 'const config = sdk.createConfig(sdk.app); await config.load(); return config.get("color", "red")'
  expect(await run(page, config)).toBe('blue')
  const told = await run(
    page,
    `const told = []
     const file = await sdk.upload(sdk.app, new Blob(['x'.repeat(30)], { type: 'text/plain' }),
       { filename: 'a.txt', partSize: 10, onProgress: ({ sent }) => told.push(sent) })
     return [file.size_bytes, told]`,
  )
  expect(told).toEqual([30, [10, 20, 30]])
  await context.close()
})

test('rows are in the page’s IndexedDB: they outlive a reload, and the tabs show the same', async () => {
  await project.admin.post('/collections', {
    name: 'notes',
    sync: true,
    columns: [{ name: 'title', type: 'text', nullable: false }],
  })
  const context = await profile()
  const tabs = [await open(context), await open(context)] as const
  const begin = (every: number) =>
    `globalThis.sync = sdk.createSync(sdk.app, { collections: ['notes'], delay: ${every}, every: ${every} })
     globalThis.notes = sync.collection('notes')
     globalThis.seen = []
     notes.subscribe((rows) => { globalThis.seen = rows.map(({ title }) => title).sort() })`
  await run(tabs[0], 'await sdk.app.ensureSignedIn()')
  for (const tab of tabs) await run(tab, begin(3_600_000))
  await context.setOffline(true)
  // both write at once, and each shows what the other one wrote
  await Promise.all(
    tabs.map((tab, n) => run(tab, `for (let i = 0; i < 10; i += 1) await notes.insert({ title: '${n}' + i })`)),
  )
  for (const tab of tabs) await expect.poll(() => run(tab, 'return seen.length')).toBe(20)
  expect(await run(tabs[0], 'return sync.now().catch(({ code }) => code)')).toBe('NETWORK_ERROR')
  for (const tab of tabs) await tab.close()
  await context.setOffline(false)
  const next = await open(context)
  await run(next, begin(20))
  expect(await run(next, 'return (await notes.rows()).length')).toBe(20)
  await expect.poll(() => run(next, 'return sync.size()')).toBe(0)
  const [{ n }] = (await project.sql('select count(*)::int n from collections.notes')) as [{ n: number }]
  expect(n).toBe(20)
  // whoever comes next on this page sees nothing of it, and finds nothing
  await run(next, 'await sdk.app.signOut(); await sdk.app.ensureSignedIn(); await sync.now()')
  expect(await run(next, 'return notes.rows()')).toEqual([])
  await context.close()
})

test('IndexedDB has all of a write or nothing, and is opened again when the browser has closed it', async () => {
  const context = await profile()
  const page = await open(context)
  const got = await run(
    page,
    `const store = sdk.defaultSyncStore()
     await store.write(new Map([['a', 1]]))
     const error = await store.write(new Map([['a', 2], ['b', () => 1], ['c', 3]])).catch(({ name }) => name)
     const { transaction } = IDBDatabase.prototype
     let closed = 0
     IDBDatabase.prototype.transaction = function (...args) {
       if (closed++ === 0) this.close()
       return transaction.apply(this, args)
     }
     await store.write(new Map([['d', 4]]))
     return [error, closed, await store.list('')]`,
  )
  expect(got).toEqual([
    'DataCloneError',
    2,
    [
      ['a', 1],
      ['d', 4],
    ],
  ])
  await context.close()
})
