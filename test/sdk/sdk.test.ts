import { describe, expect, test } from 'vitest'
import { freshEmail, startHarness } from '#test/support/harness.ts'
import { appOf, device, network } from '#test/support/sdk.ts'
import { listStreakDefinitions } from '../../sdk/src/generated/admin.ts'
import {
  getMe,
  getStreak,
  listStreaks,
  requestEmailCode,
  sendEvents,
  signInWithPassword,
  signUpWithPassword,
  updateMe,
} from '../../sdk/src/generated/client.ts'
import { createDeveloper, createServer, isRefusal, isTemporary, TrellisError } from '../../sdk/src/index.ts'

/** The SDK against a real server: sessions, credentials, refusals and what the network does to them. */
const harness = await startHarness()
const project = await harness.project()
const password = 'a long passphrase'
const refresh = 'POST /v1/client/auth/refresh'
const anonymous = 'POST /v1/client/auth/anonymous'

/** Lets the session token of a stored session expire for the server: the device does not know. */
const expire = () => harness.setTime(new Date(Date.now() + 3_700_000))

describe('sessions', () => {
  test('the first user is anonymous, and the same one for all who ask and after a restart', async () => {
    const { app, net, store } = appOf(harness, project)
    expect(await app.session()).toBeNull()
    const sessions = await Promise.all(Array.from({ length: 5 }, () => app.ensureSignedIn()))
    expect(new Set(sessions.map(({ userId }) => userId)).size).toBe(1)
    expect(net.count(anonymous)).toBe(1)
    const again = appOf(harness, project, { store })
    expect((await again.app.ensureSignedIn()).userId).toBe(sessions[0]?.userId)
    expect((await again.app.call(getMe)).data.id).toBe(sessions[0]?.userId)
    expect(again.net.count(anonymous)).toBe(0)
  })

  test('a sign-in whose answer is lost makes no second user, nor does a restart before the answer', async () => {
    const { app, net, store } = appOf(harness, project, { retries: 0 })
    net.losing.push(anonymous)
    await expect(app.ensureSignedIn()).rejects.toMatchObject({ code: 'NETWORK_ERROR', status: 0 })
    const [before] = await project.sql('select count(*)::int as users from app.users')
    const again = appOf(harness, project, { store })
    const session = await again.app.ensureSignedIn()
    const [after] = await project.sql('select count(*)::int as users from app.users')
    expect(after.users).toBe(before.users)
    expect((await again.app.call(getMe)).data.id).toBe(session.userId)
  })

  test('many calls with an expired token are one refresh', async () => {
    const { app, net } = appOf(harness, project)
    const first = await app.ensureSignedIn()
    expire()
    try {
      const all = await Promise.all(Array.from({ length: 8 }, () => app.call(getMe)))
      expect(new Set(all.map(({ data }) => data.id))).toEqual(new Set([first.userId]))
      expect(net.count(refresh)).toBe(1)
      expect((await app.session())?.refreshToken).not.toBe(first.refreshToken)
    } finally {
      harness.setTime(null)
    }
  })

  test('two apps on one store, as two tabs are, refresh once', async () => {
    const store = device()
    const a = appOf(harness, project, { store })
    const b = appOf(harness, project, { store })
    await a.app.ensureSignedIn()
    await b.app.call(getMe)
    expire()
    try {
      await Promise.all([a.app.call(getMe), b.app.call(getMe), a.app.call(listStreaks), b.app.call(listStreaks)])
      expect(a.net.count(refresh) + b.net.count(refresh)).toBe(1)
      expect(await a.app.session()).toEqual(await b.app.session())
    } finally {
      harness.setTime(null)
    }
  })

  test('an anonymous user whose refresh was lost signs in again as the same user', async () => {
    const { app, net } = appOf(harness, project)
    const { userId } = await app.ensureSignedIn()
    expire()
    try {
      net.losing.push(refresh)
      await expect(app.call(getMe)).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
      // the server has replaced the token: presenting it again ends the session
      expect((await app.call(getMe)).data.id).toBe(userId)
      expect(net.count(anonymous)).toBe(2)
    } finally {
      harness.setTime(null)
    }
  })

  test('who has an identity and no session any more is told, once', async () => {
    const { app } = appOf(harness, project)
    const told: unknown[] = []
    app.onSession((session, end) => told.push([session?.userId ?? null, end]))
    const session = await app.signIn(signUpWithPassword, { body: { email: freshEmail(), password } })
    await project.sql('update app.user_sessions set ended_at = now() where app_user_id = $1', [session.userId])
    await project.sql(`select internal.changed('session:' || id) from app.user_sessions where app_user_id = $1`, [
      session.userId,
    ])
    expire()
    try {
      await expect(app.call(getMe)).rejects.toMatchObject({ status: 401 })
      expect(told).toEqual([
        [session.userId, undefined],
        [null, 'expired'],
      ])
      expect(await app.session()).toBeNull()
    } finally {
      harness.setTime(null)
    }
  })

  test('a wrong clock of the device neither refreshes all the time nor never', async () => {
    for (const hours of [-30, 30]) {
      const { app, net } = appOf(harness, project, { now: () => Date.now() + hours * 3_600_000 })
      await app.ensureSignedIn()
      await app.call(getMe)
      await app.call(getMe)
      expect(net.count(refresh)).toBe(0)
      expect(Math.abs(app.now() - Date.now())).toBeLessThan(60_000)
    }
  })

  test('a link keeps the user; the anonymous id is no credential any more', async () => {
    const { app, store } = appOf(harness, project)
    const { userId } = await app.ensureSignedIn()
    const email = freshEmail()
    await app.call(requestEmailCode, { body: { email, purpose: 'link' } })
    const refused = await app.link({ provider: 'email', email, code: '000000' }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ status: 401, code: 'OTP_INVALID' })
    expect(isRefusal(refused, 'OTP_INVALID')).toBe(true)
    expect((await app.session())?.anonymousId).toMatch(/^anon_/)
    // what a link answers, without the mail
    await app.inside.sessions.know({ ...(await app.call(getMe)).data, email })
    expect(await app.session()).toMatchObject({ userId, anonymousId: null })
    expect((await appOf(harness, project, { store }).app.session())?.anonymousId).toBeNull()
  })

  test('a sign-in with merge brings the progress of the anonymous user along', async () => {
    const email = freshEmail()
    const owner = appOf(harness, project)
    const { userId } = await owner.app.signIn(signUpWithPassword, { body: { email, password } })
    const { app } = appOf(harness, project)
    const before = await app.ensureSignedIn()
    await app.call(sendEvents, { body: { event_name: 'played' } })
    expect((await app.signIn(signInWithPassword, { body: { email, password }, merge: true })).userId).toBe(userId)
    const rows = await project.sql(`select app_user_id from app.engagement_events where event_name = 'played'`)
    expect(rows).toEqual([{ app_user_id: userId }])
    expect(await project.sql('select from app.users where id = $1', [before.userId])).toEqual([])
  })

  test('after the sign-out nothing is left, on the server either', async () => {
    const { app, store } = appOf(harness, project)
    const session = await app.ensureSignedIn()
    await app.signOut()
    expect(await app.session()).toBeNull()
    expect([...(store as ReturnType<typeof device>).values.keys()]).toEqual([])
    const again = await project.app.post('/client/auth/refresh', { refresh_token: session.refreshToken })
    expect(again.status).toBe(401)
  })
})

describe('calls', () => {
  test('paths, queries, bodies and answers are those of the document', async () => {
    const { app } = appOf(harness, project)
    await app.ensureSignedIn()
    const { data } = await app.call(updateMe, { body: { display_name: 'Ä & "B"' } })
    expect(data.display_name).toBe('Ä & "B"')
    const refused = await app.call(getStreak, { path: { idOrKey: 'a/b?c' } }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(TrellisError)
    expect(refused).toMatchObject({ status: 404, code: 'STREAK_NOT_FOUND', requestId: expect.any(String) })
    expect(isTemporary(refused)).toBe(false)
  })

  test('a server acts with its key, and for a user', async () => {
    const user = await project.user()
    const { call, as } = createServer({ url: `${harness.url}/v1/`, key: project.serverKey })
    expect((await as(user.id).call(getMe)).data.id).toBe(user.id)
    await expect(call(getMe)).rejects.toMatchObject({ status: expect.any(Number) })
  })

  test('a developer calls the routes of projects', async () => {
    const { call } = createDeveloper({ url: harness.url, token: () => project.developer.accessToken })
    const list = await call(listStreakDefinitions, { path: { projectId: project.id }, query: { limit: 5 } })
    expect(list).toMatchObject({ data: [], total: 0 })
    const without = createDeveloper({ url: harness.url })
    const path = { projectId: project.id }
    await expect(without.call(listStreakDefinitions, { path })).rejects.toMatchObject({ status: 401 })
  })
})

describe('repetition', () => {
  const busy = (retryAfter: string, status = 429) =>
    new Response(JSON.stringify({ error: { code: 'RATE_LIMITED', message: 'Wait.' } }), {
      status,
      headers: { 'content-type': 'application/json', 'retry-after': retryAfter },
    })

  test('a call that was told to wait is sent again; a long wait is the caller’s to decide', async () => {
    const { app, net } = appOf(harness, project)
    await app.ensureSignedIn()
    let refusals = 2
    net.answer = () => (refusals-- > 0 ? busy('0') : undefined)
    expect((await app.call(updateMe, { body: { display_name: 'again' } })).data.display_name).toBe('again')
    net.answer = () => busy('3600')
    const refused = await app.call(getMe).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'RATE_LIMITED', retryAfter: 3600 })
    expect(isTemporary(refused)).toBe(true)
  })

  test('a lost answer repeats what may be repeated, and nothing else', async () => {
    const { app, net } = appOf(harness, project)
    await app.ensureSignedIn()
    net.losing.push('GET /v1/client/users/me')
    await app.call(getMe)
    expect(net.count('GET /v1/client/users/me')).toBe(2)
    net.losing.push('POST /v1/client/events')
    const body = { event_name: 'once' }
    await expect(app.call(sendEvents, { body })).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
    expect(net.count('POST /v1/client/events')).toBe(1)
    net.losing.push('POST /v1/client/events')
    const headers = { 'Idempotency-Key': 'k1' }
    await app.call(sendEvents, { body, headers })
    const rows = await project.sql(`select count(*)::int as n from app.engagement_events where event_name = 'once'`)
    expect(rows).toEqual([{ n: 2 }])
  })

  test('what gives up says why', async () => {
    const net = network()
    const { app } = appOf(harness, project, { net, retries: 0, timeout: 20 })
    const hanging = appOf(harness, project, {
      net: {
        ...net,
        fetch: (_url, { signal }) => new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason))),
      },
      retries: 0,
      timeout: 20,
    })
    await expect(hanging.app.call(getMe)).rejects.toMatchObject({ code: 'TIMEOUT' })
    net.answer = () => new Response('<html>', { status: 502 })
    await expect(app.call(getMe)).rejects.toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 502 })
    net.answer = undefined
    net.isOffline = true
    await expect(app.call(getMe)).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
    const aborted = appOf(harness, project)
    await expect(aborted.app.call(getMe, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'ABORTED' })
    expect(aborted.net.sent).toEqual([])
  })
})
