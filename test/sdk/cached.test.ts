import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { appOf, device, network } from '#test/support/sdk.ts'
import { createConfig, createFlags, upload } from '../../sdk/src/index.ts'

/** Config and flags from the cache, and uploads. */
const harness = await startHarness()
const project = await harness.project()
const config = 'GET /v1/client/config'

test('config is asked for once, then by its ETag, and outlives a restart without network', async () => {
  await project.admin.post('/config', { key: 'welcome', value: 'Hello' })
  await project.admin.post('/config', { key: 'limit', value: 5, value_type: 'number' })
  const store = device()
  let ahead = 0
  const { app, net } = appOf(harness, project, { store, now: () => Date.now() + ahead })
  await app.ensureSignedIn()
  const values = createConfig(app)
  expect(values.get('welcome', 'Hi')).toBe('Hi')
  await Promise.all([values.load(), values.load()])
  await values.load()
  expect(net.count(config)).toBe(1)
  expect([
    values.get('welcome', 'Hi'),
    values.get('limit', 1),
    values.get('welcome', 7),
    values.get('none', 'x'),
  ]).toEqual(['Hello', 5, 7, 'x'])
  // older than the answer said: the server is asked, and says that nothing has changed
  ahead = 120_000
  expect(await values.load()).toEqual({ welcome: 'Hello', limit: 5 })
  expect(net.count(config)).toBe(2)
  expect(net.statuses.slice(-2)).toEqual([200, 304])
  await project.admin.patch('/config/welcome', { value: 'Bye' })
  expect(await values.load({ force: true })).toEqual({ welcome: 'Bye', limit: 5 })

  const offline = network()
  offline.isOffline = true
  const again = appOf(harness, project, { store, net: offline, retries: 0, now: () => Date.now() + 86_400_000 })
  const kept = createConfig(again.app)
  expect(await kept.load()).toEqual({ welcome: 'Bye', limit: 5 })
  // what is kept is one user's
  await again.app.signOut()
  await expect(kept.load()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
})

test('flags have their values for the user', async () => {
  await project.admin.post('/flags', { key: 'checkout', rules: [{ value: true }] })
  const { app } = appOf(harness, project)
  await app.ensureSignedIn()
  const flags = createFlags(app)
  expect((await flags.load())['checkout']).toMatchObject({ value: true, reason: 'rule' })
  expect([flags.get('checkout', false), flags.get('other', 'no')]).toEqual([true, 'no'])
})

test('a file is uploaded in parts, with progress, and goes on behind a part that was lost', async () => {
  const { app, net } = appOf(harness, project)
  await app.ensureSignedIn()
  const bytes = new Uint8Array(250_000).map((_, index) => index % 251)
  const told: number[] = []
  let parts = 0
  const { fetch } = net
  const lossy = appOf(harness, project, {
    net: {
      ...net,
      fetch: async (url, init) => {
        const answer = await fetch(url, init)
        if (init.method !== 'PUT' || ++parts !== 2) return answer
        await answer.text()
        throw new TypeError('fetch failed')
      },
    },
  })
  await lossy.app.ensureSignedIn()
  const file = await upload(lossy.app, bytes, {
    filename: 'a.bin',
    type: 'application/octet-stream',
    partSize: 100_000,
    onProgress: ({ sent, total }) => told.push(sent, total),
  })
  expect(told).toEqual([100_000, 250_000, 200_000, 250_000, 250_000, 250_000])
  const stored = await (await globalThis.fetch(file.storage_url)).arrayBuffer()
  expect(Buffer.from(stored).equals(Buffer.from(bytes))).toBe(true)
  const controller = new AbortController()
  const aborted = upload(app, bytes, {
    filename: 'b.bin',
    partSize: 100_000,
    signal: controller.signal,
    onProgress: () => controller.abort(),
  })
  await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' })
})
