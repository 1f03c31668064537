import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { deviceOf } from '#server/accounts/sessions.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { type Device, newEmail, password, startStage } from '#test/support/sign_in.ts'

const stage = await startStage()
const { harness, project, app, device } = stage
afterEach(() => harness.setTime(null))

describe('sessions', () => {
  const list = (by: Device, query = '') => by.get(`/client/auth/sessions${query}`)

  test('are listed newest first, with what the app says of itself, and the one that asks', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const email = newEmail()
    const me = await stage.signup(email)
    harness.advance(60)
    const phoneHeaders = { 'x-service-platform': 'ios', 'x-service-app-version': '2.1.0 (47)', 'cf-ipcountry': 'DE' }
    const phone = device(await app.post('/client/auth/email/login', { email, password }, phoneHeaders))
    harness.advance(60)
    await app.post('/client/auth/refresh', { refresh_token: me.refresh }, { 'x-service-platform': 'web' })
    const { status, body } = await list(me)
    expect(status).toBe(200)
    expect(body).toEqual({
      data: [
        {
          id: decodeJwt(phone.token)['sid'],
          created_at: '2026-11-22T10:01:00.000Z',
          last_used_at: '2026-11-22T10:01:00.000Z',
          platform: 'ios',
          app_version: '2.1.0 (47)',
          ip_country: 'DE',
          current: false,
        },
        {
          id: decodeJwt(me.token)['sid'],
          created_at: '2026-11-22T10:00:00.000Z',
          last_used_at: '2026-11-22T10:02:00.000Z',
          platform: 'web',
          app_version: null,
          ip_country: null,
          current: true,
        },
      ],
      total: 2,
      offset: 0,
      limit: 50,
    })
    const page = await list(me, '?limit=1&offset=1')
    expect([page.data.map((row: any) => row.current), page.body.total, page.body.limit]).toEqual([[true], 2, 1])
    expect((await list(me, '?limit=5000')).body.limit).toBe(200)
    expect((await list(me, '?offset=2147483648')).body).toMatchObject({ data: [], total: 2 })
    for (const query of ['?limit=0', '?limit=x', '?offset=-1'])
      expectRefusal(await list(me, query), 400, 'INVALID_INPUT')
    // odd header values are truncated or dropped, and are never an error
    const odd = { 'x-service-platform': 'x'.repeat(300), 'cf-ipcountry': 'XX', 'x-service-app-version': ' ' }
    const guest = device(await app.post('/client/auth/anonymous', {}, odd))
    expect((await list(guest)).data[0]).toMatchObject({ platform: 'x'.repeat(50), ip_country: null, app_version: null })
  })

  test('believe in a country only where a proxy is trusted to name it', () => {
    const from = (TRUST_PROXY: unknown) =>
      deviceOf({ request: { headers: { 'cf-ipcountry': 'DE' } }, services: { config: { TRUST_PROXY } } } as never)
    expect([from(false).ip_country, from(true).ip_country, from(1).ip_country]).toEqual([undefined, 'DE', 'DE'])
  })

  test('end one by one: only one’s own, only live ones', async () => {
    const email = newEmail()
    const me = await stage.signup(email)
    const elsewhere = device(await stage.login(email))
    const stranger = await stage.anonymous()
    const idOf = (one: Device) => String(decodeJwt(one.token)['sid'])
    const end = (by: Device, id: string) => by.delete(`/client/auth/sessions/${id}`)
    expectRefusal(await end(stranger, idOf(me)), 404, 'NOT_FOUND')
    expectRefusal(await end(me, randomUUID()), 404, 'NOT_FOUND')
    expectRefusal(await end(me, 'x'), 400, 'INVALID_ID')
    expect((await end(me, idOf(elsewhere).toUpperCase())).data).toEqual({ deleted: true })
    expectRefusal(await stage.me(elsewhere), 401, 'UNAUTHORIZED')
    expectRefusal(await app.post('/client/auth/refresh', { refresh_token: elsewhere.refresh }), 401, 'INVALID_TOKEN')
    expectRefusal(await end(me, idOf(elsewhere)), 404, 'NOT_FOUND')
    expect((await list(me)).body.total).toBe(1)
    expect((await end(me, idOf(me))).status).toBe(200)
    expectRefusal(await list(me), 401, 'UNAUTHORIZED')
  })

  test('logout of all ends every one, also those of other devices, and needs one of them', async () => {
    const email = newEmail()
    const me = await stage.signup(email)
    const elsewhere = device(await stage.login(email))
    const stranger = await stage.anonymous()
    const logout = (by: Pick<Device, 'post'>, body: object) => by.post('/client/auth/logout', body)
    expectRefusal(await logout(app, { refresh_token: me.refresh, all: true }), 401, 'UNAUTHORIZED')
    expectRefusal(
      await logout(project.onBehalfOf(me.id), { refresh_token: me.refresh, all: true }),
      403,
      'SESSION_REQUIRED',
    )
    expectRefusal(await logout(me, { refresh_token: me.refresh, all: 'yes' }), 400, 'INVALID_INPUT')
    harness.setTime(new Date(Date.now() + 2 * 3600_000))
    expectRefusal(await logout(me, { refresh_token: me.refresh, all: true }), 401, 'TOKEN_EXPIRED')
    harness.setTime(null)
    for (const one of [me, elsewhere]) expect((await stage.me(one)).status).toBe(200)
    // an invalid refresh token makes no difference
    expect((await logout(me, { refresh_token: 'dead', all: true })).data).toEqual({ success: true })
    for (const one of [me, elsewhere]) {
      expectRefusal(await stage.me(one), 401, 'UNAUTHORIZED')
      expectRefusal(await app.post('/client/auth/refresh', { refresh_token: one.refresh }), 401, 'INVALID_TOKEN')
    }
    expect((await stage.me(stranger)).status).toBe(200)
    expectRefusal(await logout(me, { refresh_token: me.refresh, all: true }), 401, 'UNAUTHORIZED')
  })
})

test('however many sessions end at once, the servers are notified of their user, not of each session', async () => {
  const me = await stage.signup(newEmail())
  await project.sql(
    `insert into app.user_sessions (app_user_id, refresh_hash, expires_at)
     select $1, 'x', now() + interval '90 days' from generate_series(1, 500)`,
    [me.id],
  )
  const { sessions } = harness.running.services
  const drop = sessions.drop
  const emittedEvents: string[] = []
  sessions.drop = (changed) => {
    emittedEvents.push(changed)
    drop(changed)
  }
  try {
    expect((await me.post('/client/auth/logout', { refresh_token: me.refresh, all: true })).status).toBe(200)
  } finally {
    sessions.drop = drop
  }
  expect(new Set(emittedEvents)).toEqual(new Set([`user:${me.id}`]))
  expect(
    await project.sql('select 1 from app.user_sessions where app_user_id = $1 and ended_at is null', [me.id]),
  ).toEqual([])
  expectRefusal(await stage.me(me), 401, 'UNAUTHORIZED')
})
