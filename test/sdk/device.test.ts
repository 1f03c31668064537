import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { device, network } from '#test/support/sdk.ts'
import { deleteMe, getConfig, getMe, getMediaCatalog, sendEvents, updateMe } from '../../sdk/src/generated/client.ts'
import { createApp, createEvents, createRealtime, imageUrl } from '../../sdk/src/index.ts'

/** What the device knows and the server must learn: its time, its zone, and that an account is gone. */
const harness = await startHarness()
const project = await harness.project()
const anonymous = 'POST /v1/client/auth/anonymous'
const appOn = (
  setting: { zone?: () => string | undefined; fetch?: unknown; store?: ReturnType<typeof device> } = {},
) => {
  const net = network()
  const store = setting.store ?? device()
  const app = createApp({
    url: harness.url,
    key: project.clientKey,
    store,
    fetch: (setting.fetch ?? net.fetch) as never,
    random: () => 0,
    timeZone: setting.zone ?? (() => 'UTC'),
  })
  return { app, net, store }
}

describe('the time', () => {
  const ago = 240_000
  /** A cache, which answers what it stored four minutes ago with the Date of that time. */
  const cached =
    (isStored: (route: string) => boolean, more: Record<string, string> = {}) =>
    async (url: string, init: RequestInit) => {
      const answer = await fetch(url, init)
      if (!isStored(`${init.method} ${new URL(url).pathname}`)) return answer
      const headers = new Headers(answer.headers)
      headers.set('date', new Date(Date.now() - ago).toUTCString())
      for (const [name, value] of Object.entries(more)) headers.set(name, value)
      return new Response(await answer.text(), { status: answer.status, headers })
    }
  const isNow = (time: number) => expect(Math.abs(time - Date.now())).toBeLessThan(5000)

  test('is not taken from what a cache stored', async () => {
    const stored = ['GET /v1/client/config', 'GET /v1/client/media/catalogs/none']
    const { app } = appOn({ fetch: cached((route) => stored.includes(route)) })
    await app.ensureSignedIn()
    await app.call(getConfig)
    isNow(app.now())
    await expect(app.call(getMediaCatalog, { path: { slug: 'none' } })).rejects.toMatchObject({ status: 404 })
    isNow(app.now())
    const events = createEvents(app, { delay: 100_000 })
    await events.track('cached_time', { at: Date.now() })
    await events.flush()
    events.close()
    const [event] = await project.sql(
      `select extract(epoch from occurred_at) * 1000 as at, properties from app.engagement_events where event_name = 'cached_time'`,
    )
    expect(Math.abs(Number(event.at) - event.properties.at)).toBeLessThan(2000)
  })

  test('is not taken from what a proxy says that it stored, and is from answers that nobody stores', async () => {
    const aged = appOn({ fetch: cached((route) => route === 'GET /v1/client/users/me', { age: '240' }) })
    await aged.app.ensureSignedIn()
    await aged.app.call(getMe)
    isNow(aged.app.now())
    // a device whose clock is wrong by four minutes
    const off = appOn({ fetch: cached(() => true) })
    await off.app.ensureSignedIn()
    await off.app.call(getMe)
    expect(Math.abs(off.app.now() - (Date.now() - ago))).toBeLessThan(5000)
  })
})

describe('the time zone', () => {
  const zoneOf = async (id: string) =>
    (await project.sql('select timezone from app.users where id = $1', [id]))[0].timezone

  test('of the device is that of a new user, once for a device', async () => {
    const { app, net, store } = appOn({ zone: () => 'Asia/Tokyo' })
    const { userId } = await app.ensureSignedIn()
    expect(await zoneOf(userId)).toBe('Asia/Tokyo')
    const asked = net.count('GET /v1/client/users/me')
    await app.ensureSignedIn()
    const again = appOn({ zone: () => 'Asia/Tokyo', store })
    await again.app.ensureSignedIn()
    expect([asked, net.count('GET /v1/client/users/me'), again.net.count('GET /v1/client/users/me')]).toEqual([1, 1, 0])
  })

  test('follows the device while it runs, unless the user has chosen another', async () => {
    let zone = 'Europe/Berlin'
    const { app } = appOn({ zone: () => zone })
    const { userId } = await app.ensureSignedIn()
    zone = 'America/New_York'
    await app.call(sendEvents, { body: { event_name: 'moved' } })
    await expect.poll(() => zoneOf(userId)).toBe('America/New_York')
    await app.call(updateMe, { body: { timezone: 'Asia/Tokyo' } })
    zone = 'Europe/Paris'
    await app.ensureSignedIn()
    expect(await zoneOf(userId)).toBe('Asia/Tokyo')
    // what the server does not know as a zone harms nothing
    zone = 'Mars/Olympus'
    await app.ensureSignedIn()
    expect((await app.call(getMe)).data.timezone).toBe('Asia/Tokyo')
  })

  test('is not asked of a device that has none', async () => {
    const { app, net } = appOn({ zone: () => undefined })
    const { userId } = await app.ensureSignedIn()
    expect([await zoneOf(userId), net.count('GET /v1/client/users/me')]).toEqual([null, 0])
  })
})

describe('a deleted account', () => {
  test('ends the session here, and nothing makes another user by itself', async () => {
    const { app, net, store } = appOn()
    const ends: unknown[] = []
    app.onSession((session, end) => ends.push([session?.userId ?? null, end]))
    const first = await app.ensureSignedIn()
    const events = createEvents(app, { delay: 1 })
    const realtime = createRealtime(app)
    const listening = realtime.subscribe('room:deleted', {})
    await listening.live
    await project.sql('update app.user_sessions set signed_in_at = now() where app_user_id = $1', [first.userId])
    await app.call(deleteMe, { query: { confirm: 'DELETE' } })
    expect([await app.session(), ends.at(-1)]).toEqual([null, [null, 'deleted']])
    expect([...store.values.keys()].filter((key) => /session|anonymous|zone/.test(key))).toEqual([])
    await events.flush()
    // nor does what happens now: it waits
    await events.track('seen after it')
    expect(await events.flush()).toMatchObject({ accepted: 0, left: 1 })
    const later = realtime.subscribe('room:later', {})
    await expect(app.call(getMe)).rejects.toMatchObject({ status: 401 })
    expect(net.count(anonymous)).toBe(1)
    // whoever goes on is somebody else
    const second = await app.ensureSignedIn()
    expect(second.userId).not.toBe(first.userId)
    await later.live
    expect(await events.flush()).toMatchObject({ left: 0 })
    expect(net.count(anonymous)).toBe(2)
    events.close()
    realtime.close()
  })

  test('elsewhere ends the session too, and only the app makes another user', async () => {
    const { app } = appOn()
    const first = await app.ensureSignedIn()
    await project.admin.delete(`/users/${first.userId}`)
    const before = await app.session()
    expect(before?.userId).toBe(first.userId)
    await expect(app.call(getMe)).rejects.toMatchObject({ status: 401 })
    expect(await app.session()).toBeNull()
    const second = await app.ensureSignedIn()
    expect(second.userId).not.toBe(first.userId)
    const [{ users }] = await project.sql('select count(*)::int as users from app.users where anonymous_id = $1', [
      first.anonymousId,
    ])
    expect(users).toBe(1)
  })

  test('or a session that ended in another tab is nobody here either', async () => {
    const { app, net, store } = appOn()
    await app.ensureSignedIn()
    await app.call(getMe)
    await appOn({ store }).app.signOut()
    const events = createEvents(app, { delay: 100_000 })
    const realtime = createRealtime(app)
    await events.track('afterwards')
    expect(await events.flush()).toMatchObject({ accepted: 0, left: 1 })
    const listening = realtime.subscribe('room:tab', {})
    await app.ensureSignedIn()
    await listening.live
    expect(net.count(anonymous)).toBe(2)
    events.close()
    realtime.close()
  })

  test('that was signed out makes no user for events and subscriptions that wait', async () => {
    const { app, net } = appOn()
    const events = createEvents(app, { delay: 100_000 })
    const realtime = createRealtime(app)
    await app.ensureSignedIn()
    const listening = realtime.subscribe('room:out', {})
    await listening.live
    net.isOffline = true
    await events.track('left')
    net.isOffline = false
    await app.signOut()
    expect(await events.flush()).toMatchObject({ left: 1 })
    expect([await app.session(), net.count(anonymous)]).toEqual([null, 1])
    // the subscription goes on for whoever signs in next
    const lives: boolean[] = []
    const other = realtime.subscribe('room:next', { onLive: ({ isAgain }) => void lives.push(isAgain) })
    await app.ensureSignedIn()
    await other.live
    expect(lives).toEqual([false])
    events.close()
    realtime.close()
  })
})

test('the address of a public image has the parameters that were asked for', () => {
  expect(imageUrl('https://a/m/p/i', { w: 96, h: 96, fit: 'cover', format: 'webp' })).toBe(
    'https://a/m/p/i?w=96&h=96&fit=cover&format=webp',
  )
  expect([imageUrl('https://a/m/p/i', {}), imageUrl(null, { w: 1 })]).toEqual(['https://a/m/p/i', null])
})
