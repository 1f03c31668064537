import { generateKeyPairSync } from 'node:crypto'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Project, startHarness, type User } from '#test/support/harness.ts'
import { campaignOf, deliveriesOf, message, pushed, shown } from '#test/support/push.ts'
import { startApns, startFcm } from '#test/support/push_providers.ts'
import { expectRefusal } from '#test/support/refusals.ts'

let clock: () => Date = () => new Date()
const apns = await startApns(() => clock())
const fcm = await startFcm(() => clock())
const harness = await startHarness({
  env: {
    APNS_BASE_URL: apns.url,
    FCM_BASE_URL: fcm.url,
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: fcm.caFile,
    LOG_LEVEL: 'silent',
  },
})
clock = harness.now
afterAll(() => Promise.all([apns.close(), fcm.close()]))

let project: Project
const connect = (provider: 'apns' | 'fcm', config: object) => project.admin.post('/integrations', { provider, config })
beforeEach(async () => {
  project = await harness.project()
  await connect('apns', apns.config)
  await connect('fcm', fcm.config)
})
afterEach(() => {
  harness.setTime(null)
  apns.answer(() => undefined)
  fcm.answer(() => undefined)
  fcm.grant(() => undefined)
  apns.pushes.splice(0)
  fcm.pushes.splice(0)
})

const send = async (users: readonly User[], fields: object = {}) => {
  const answer = await project.admin.post('/push/send', {
    user_ids: users.map(({ id }) => id),
    message: { ...message, ...fields },
  })
  expect(answer.status, answer.text).toBe(202)
  await project.drain()
  return answer.data.delivery_ids as string[]
}
const deliveryOf = async (user: User) => (await project.admin.get(`/push/deliveries?user_id=${user.id}`)).data[0]
const isActive = async (user: User) =>
  (await project.sql('select is_active from app.push_tokens where app_user_id = $1', [user.id]))[0]?.is_active

describe('APNs', () => {
  test('gets the message as it is documented, over one connection with one token', async () => {
    const users = [await pushed(project), await pushed(project), await pushed(project)]
    const opened = apns.opened()
    const [id] = await send(users, { badge: 3, sound: 'ping', category: 'news', data: { a: 1 }, ttl_seconds: 60 })
    expect(apns.pushes).toHaveLength(3)
    const push = apns.pushes.find(({ body }) => body._did === id)
    expect(push?.path).toBe(`/3/device/${users[0]?.token}`)
    expect(push?.body).toEqual({
      a: 1,
      _did: id,
      aps: {
        alert: { title: 'Hello', body: 'A message.' },
        sound: 'ping',
        badge: 3,
        'mutable-content': 1,
        category: 'news',
        'thread-id': 'news',
      },
    })
    expect(push?.headers).toMatchObject({
      'apns-topic': 'com.example.app',
      'apns-push-type': 'alert',
      'apns-priority': '10',
      'apns-collapse-id': id,
      'apns-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(Number(push?.headers['apns-expiration'])).toBeGreaterThan(harness.now().getTime() / 1000)
    await send(users)
    expect([apns.opened() - opened, new Set(apns.pushes.map(({ headers }) => headers.authorization)).size]).toEqual([
      1, 1,
    ])
  })

  test('signs anew after 50 minutes, and connects anew after a GOAWAY', async () => {
    const user = await pushed(project)
    await send([user])
    const [opened, tokens] = [apns.opened(), apns.tokens.size]
    apns.goAway()
    harness.advance(51 * 60)
    await project.sql(
      `insert into app.campaign_deliveries (queue_id, channel, app_user_id, message, due_at)
       values ('00000000-0000-0000-0000-000000000000', 'push', $1, $2, now())`,
      [user.id, JSON.stringify(message)],
    )
    await project.sql(`select internal.enqueue('push__direct')`)
    await project.drain()
    expect(apns.pushes).toHaveLength(2)
    expect([apns.opened(), apns.tokens.size]).toEqual([opened + 1, tokens + 1])
  })

  test.each([
    [410, 'Unregistered'],
    [400, 'BadDeviceToken'],
    [410, 'ExpiredToken'],
  ])('a dead device (%i %s) is switched off at once', async (status, reason) => {
    const user = await pushed(project)
    apns.answer(() => ({ status, body: { reason, timestamp: Date.now() } }))
    await send([user])
    expect(await deliveryOf(user)).toMatchObject({
      status: 'failed',
      code: reason,
      attempts: [{ outcome: 'failed', status, code: reason, n: 1 }],
    })
    expect(await isActive(user)).toBe(false)
  })

  test('429 and 5xx are tried again for six hours, then the delivery has failed', async () => {
    harness.setTime(new Date())
    const user = await pushed(project)
    apns.answer(() => ({ status: 503, body: { reason: 'ServiceUnavailable' } }))
    await send([user])
    const minutes = [1, 5, 15, 30, 60, 60, 60, 60, 60].map((each) => each * 60)
    for (const [index, seconds] of [1, 5, 25, ...minutes].entries()) {
      expect(Date.parse((await deliveryOf(user)).due_at) - harness.now().getTime(), String(index)).toBe(seconds * 1000)
      harness.advance(seconds)
      await project.drain()
      expect(apns.pushes, String(index)).toHaveLength(index + 2)
    }
    harness.advance(3600)
    await project.drain()
    expect(apns.pushes).toHaveLength(13)
    expect(await deliveryOf(user)).toMatchObject({ status: 'failed', code: 'ServiceUnavailable' })
    expect(await isActive(user)).toBe(true)
    expect(new Set(apns.pushes.map(({ headers }) => headers['apns-id'])).size).toBe(1)
  })

  test('a message is not tried beyond its ttl_seconds, and providers are told what is left of it', async () => {
    harness.setTime(new Date())
    const began = Math.floor(harness.now().getTime() / 1000)
    const user = await pushed(project)
    apns.answer(() => ({ status: 503, body: { reason: 'ServiceUnavailable' } }))
    await send([user], { ttl_seconds: 20 })
    for (const seconds of [1, 5, 60]) {
      harness.advance(seconds)
      await project.drain()
    }
    expect(apns.pushes.map(({ headers }) => Number(headers['apns-expiration']) - began)).toEqual([20, 20, 20])
    expect(await deliveryOf(user)).toMatchObject({ status: 'failed', code: 'ServiceUnavailable' })
  })

  test('what has changed while a message waited counts: quiet hours, an opt-out, a ban, a device that is gone', async () => {
    harness.setTime('2026-11-26T20:00:00Z')
    const [quiet, out, banned, gone] = [
      await pushed(project),
      await pushed(project),
      await pushed(project),
      await pushed(project),
    ]
    apns.answer(() => ({ status: 503, body: { reason: 'ServiceUnavailable' } }))
    await send([quiet, out, banned, gone])
    await quiet.put('/client/push/preferences', { quiet_hours: { start: '19:00', end: '23:00' } })
    await out.put('/client/push/preferences', { enabled: false })
    await project.admin.patch(`/users/${banned.id}`, { is_banned: true })
    await gone.delete('/client/users/me/push-token', { token: gone.token })
    harness.advance(2)
    await project.drain()
    const ended = async (user: User) => {
      const { status, reason, code } = await deliveryOf(user)
      return [status, reason, code]
    }
    expect(await ended(quiet)).toEqual(['skipped', 'quiet_hours', null])
    expect(await ended(out)).toEqual(['skipped', 'opted_out', null])
    expect(await ended(banned)).toEqual(['skipped', 'opted_out', null])
    expect(await ended(gone)).toEqual(['failed', null, 'ServiceUnavailable'])
    expect(apns.pushes).toHaveLength(4)
  })

  test('the push of a chat message that waited is not sent when the message is read or deleted, or its sender blocked', async () => {
    harness.setTime(new Date())
    const sender = await project.user()
    const ended = async (change: (user: User, path: string, messageId: string) => Promise<{ status: number }>) => {
      const user = await pushed(project)
      const talk = (await sender.post('/client/messaging/conversations', { participant_ids: [user.id] })).data
      const path = `/client/messaging/conversations/${talk.id}`
      apns.answer(() => ({ status: 503, body: { reason: 'ServiceUnavailable' } }))
      const { data } = await sender.post(`${path}/messages`, { body: 'x' })
      await project.drain()
      expect((await change(user, path, data.id)).status).toBeLessThan(300)
      harness.advance(2)
      apns.answer(() => undefined)
      await project.drain()
      const { status, reason } = await deliveryOf(user)
      return [status, reason]
    }
    expect(await ended((user, path) => user.post(`${path}/read`))).toEqual(['skipped', 'cancelled'])
    expect(await ended((_user, path, id) => sender.delete(`${path}/messages/${id}`))).toEqual(['skipped', 'cancelled'])
    expect(await ended((user) => user.post(`/client/friends/${sender.id}/block`))).toEqual(['skipped', 'cancelled'])
    expect(await ended((user) => user.get('/client/users/me'))).toEqual(['sent', null])
  })

  test.each([
    ['in seconds', () => '40', 40],
    ['as a date', () => new Date(Date.now() + 40_000).toUTCString(), 40],
  ])('Retry-After %s is waited for', async (_name, header, seconds) => {
    harness.setTime(new Date())
    const user = await pushed(project)
    apns.answer(() => ({
      status: 429,
      headers: { 'retry-after': header() },
      body: { reason: 'TooManyRequests' },
    }))
    await send([user])
    apns.answer(() => undefined)
    harness.advance(seconds - 5)
    await project.drain()
    expect(apns.pushes).toHaveLength(1)
    harness.advance(5)
    await project.drain()
    expect(apns.pushes).toHaveLength(2)
    const delivery = await deliveryOf(user)
    expect(delivery.status).toBe('sent')
    expect(JSON.stringify(delivery)).not.toContain('retry_after')
  })

  test('a connection that has died without a word is replaced, and its message is sent at once on another', async () => {
    const user = await pushed(project)
    await send([user])
    const opened = apns.opened()
    apns.silence()
    const began = performance.now()
    await send([user])
    // a PING and its deadline, not the ten seconds of a request
    expect(performance.now() - began).toBeLessThan(9_000)
    expect([apns.pushes.length, apns.opened() - opened]).toEqual([2, 1])
    expect((await deliveryOf(user)).attempts).toMatchObject([{ outcome: 'sent', n: 1 }])
  })

  test('credentials that are refused fail the campaign, and the rest of it is skipped', async () => {
    const user = await pushed(project)
    const other = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey
    await connect('apns', { ...apns.config, private_key: other.export({ type: 'pkcs8', format: 'pem' }) })
    await project.sql(`select internal.set_setting('push.sends_per_second', '1')`)
    const waiting = await pushed(project)
    const { id } = await campaignOf(project, { audience: { user_ids: [user.id, waiting.id] }, send_now: true })
    await project.drain()
    expect(await shown(project, id)).toMatchObject({ status: 'failed', failure: 'InvalidProviderToken' })
    expect(await deliveriesOf(project, id)).toEqual([
      { status: 'failed', reason: null, code: 'InvalidProviderToken', n: 1 },
      { status: 'skipped', reason: 'cancelled', code: null, n: 1 },
    ])
    expect(apns.pushes).toHaveLength(0)
    expect(JSON.stringify(await project.sql('select * from app.campaign_deliveries'))).not.toContain('PRIVATE KEY')
  })
})

describe('FCM', () => {
  test('gets the message as it is documented; one access token serves until it expires', async () => {
    const users = [await pushed(project, 'android'), await pushed(project, 'android')]
    const issued = fcm.issued()
    const [id] = await send(users, { data: { n: 1, s: 'x' }, collapse_key: 'k', priority: 'normal', ttl_seconds: 0 })
    expect(fcm.pushes).toHaveLength(2)
    const push = fcm.pushes.find(({ body }) => body.message.data._did === id)
    expect(push?.path).toBe('/v1/projects/example/messages:send')
    expect(push?.body).toEqual({
      message: {
        token: users[0]?.token,
        notification: { title: 'Hello', body: 'A message.' },
        data: { n: '1', s: 'x', _did: id },
        android: { priority: 'NORMAL', ttl: '0s', collapse_key: 'k' },
      },
    })
    await send(users)
    expect(fcm.issued() - issued).toBe(1)
    // a token that Google revoked is replaced, and nothing is lost
    fcm.revoke()
    await send(users)
    expect([fcm.issued() - issued, fcm.pushes.length]).toEqual([2, 6])
  })

  test('UNREGISTERED switches the device off; other refusals of a device do not', async () => {
    const [gone, bad] = [await pushed(project, 'android'), await pushed(project, 'android')]
    fcm.answer(({ body }) =>
      body.message.token === gone.token
        ? fcm.error(404, 'NOT_FOUND', 'UNREGISTERED')
        : fcm.error(403, 'PERMISSION_DENIED', 'SENDER_ID_MISMATCH'),
    )
    await send([gone, bad])
    expect([(await deliveryOf(gone)).code, await isActive(gone)]).toEqual(['UNREGISTERED', false])
    expect([(await deliveryOf(bad)).code, await isActive(bad)]).toEqual(['SENDER_ID_MISMATCH', true])
  })

  test('a device that registered again meanwhile stays on', async () => {
    const user = await pushed(project, 'android')
    fcm.answer(async () => {
      await user.post('/client/users/me/push-token', { token: user.token, platform: 'android' })
      return fcm.error(404, 'NOT_FOUND', 'UNREGISTERED')
    })
    await send([user])
    expect(await isActive(user)).toBe(true)
  })

  test('a request without an answer is never sent again', async () => {
    const user = await pushed(project, 'android')
    fcm.answer(() => {
      fcm.destroy()
      return undefined
    })
    await send([user])
    harness.advance(300)
    await project.drain()
    expect(await project.sql('select status, code from app.campaign_deliveries')).toEqual([
      { status: 'failed', code: 'OUTCOME_UNKNOWN' },
    ])
    expect(fcm.pushes).toHaveLength(1)
  })

  test.each([
    ['invalid_grant', () => ({ status: 400, body: { error: 'invalid_grant' } }), 'NO_ACCESS_TOKEN'],
    ['an address that is not allowed', null, 'TOKEN_URI_NOT_ALLOWED'],
  ] as const)('a token endpoint with %s refuses the credentials', async (_name, grant, code) => {
    const account = fcm.config.service_account_json
    // another config, so that no access token is known
    const token_uri = grant ? `${fcm.tokenUrl}?other` : 'https://10.0.0.1/token'
    await connect('fcm', { service_account_json: JSON.stringify({ ...account, token_uri }) })
    if (grant) fcm.grant(grant)
    const user = await pushed(project, 'android')
    await send([user])
    expect(await deliveryOf(user)).toMatchObject({ status: 'failed', code, attempts: [{ outcome: 'refused' }] })
    expect(fcm.pushes).toHaveLength(0)
  })

  test.each([
    ['Retry-After', { 'retry-after': '40' }, 40],
    ['no Retry-After: a minute', {}, 60],
  ])('a quota that is used up, with %s, is waited for', async (_name, headers, seconds) => {
    harness.setTime(new Date())
    const user = await pushed(project, 'android')
    fcm.answer(() => ({ ...fcm.error(429, 'RESOURCE_EXHAUSTED', 'QUOTA_EXCEEDED'), headers }))
    await send([user], { ttl_seconds: 600 })
    fcm.answer(() => undefined)
    harness.advance(seconds - 2)
    await project.drain()
    expect(fcm.pushes).toHaveLength(1)
    harness.advance(2)
    await project.drain()
    expect((await deliveryOf(user)).status).toBe('sent')
    // the rest of its time
    expect(fcm.pushes.map(({ body }) => body.message.android.ttl)).toEqual(['600s', `${600 - seconds}s`])
  })

  test('a token endpoint that asks to be left alone is, and its messages wait', async () => {
    harness.setTime(new Date())
    const account = fcm.config.service_account_json
    await connect('fcm', { service_account_json: { ...account, token_uri: `${fcm.tokenUrl}?busy` } })
    const users = [await pushed(project, 'android'), await pushed(project, 'android')]
    let asked = 0
    fcm.grant(() => {
      asked += 1
      return { status: 503, headers: { 'retry-after': '40' }, body: {} }
    })
    await send(users.slice(0, 1))
    await send(users.slice(1))
    fcm.grant(() => undefined)
    harness.advance(41)
    await project.drain()
    expect(asked).toBe(1)
    for (const user of users) {
      // the assertion is for another address than the endpoint expects
      expect((await deliveryOf(user)).attempts.map(({ code }: { code: string | null }) => code)).toEqual([
        'NO_ACCESS_TOKEN',
        'NO_ACCESS_TOKEN',
      ])
    }
  })

  test('50 failures in a row hold all messages for 30 seconds; a success lets them go', async () => {
    harness.setTime(new Date())
    await project.sql(
      `with made as (insert into app.users (display_name) select 'user ' || n from generate_series(1, 60) n returning id)
       insert into app.push_tokens (app_user_id, token, platform) select m.id, 'token-' || m.id, 'android' from made m`,
    )
    fcm.answer(() => fcm.error(503, 'UNAVAILABLE', 'UNAVAILABLE'))
    const { id } = await campaignOf(project, { send_now: true })
    await project.drain()
    expect(fcm.pushes).toHaveLength(60)
    harness.advance(10)
    await project.drain()
    expect(fcm.pushes).toHaveLength(60)
    harness.advance(21)
    await project.drain()
    // ten at a time, and these failed too
    expect(fcm.pushes).toHaveLength(70)
    fcm.answer(() => undefined)
    harness.advance(31)
    await project.drain()
    expect((await shown(project, id)).counts).toMatchObject({ sent: 60, failed: 0 })
  })
})

describe('POST integrations/:provider/test', () => {
  const tested = async (provider: string) => (await project.admin.post(`/integrations/${provider}/test`)).data

  test('says whether the provider accepts the credentials, and sends nothing', async () => {
    const ok = { ok: true, latency_ms: expect.any(Number), error: null }
    expect([await tested('apns'), await tested('fcm')]).toEqual([ok, ok])
    await connect('apns', { ...apns.config, team_id: 'OTHER' })
    expect(await tested('apns')).toMatchObject({ ok: false, error: 'InvalidProviderToken' })
    await connect('apns', { ...apns.config, private_key: 'no key' })
    expect(await tested('apns')).toMatchObject({ ok: false, error: 'INVALID_CREDENTIALS' })
    await connect('fcm', { service_account_json: '{}' })
    expect(await tested('fcm')).toMatchObject({ ok: false, error: 'INVALID_CREDENTIALS' })
    expect([apns.pushes, fcm.pushes]).toEqual([[], []])
    await project.admin.post('/integrations', { provider: 'log', config: {} })
    expect(await tested('log')).toEqual({ ok: true, latency_ms: 0, error: null })
  })

  test('refuses providers that are not connected, or cannot be tested', async () => {
    expectRefusal(await project.admin.post('/integrations/nobody/test'), 404, 'NOT_CONFIGURED')
    expectRefusal(await project.admin.post('/integrations/smtp/test'), 404, 'NOT_CONFIGURED')
    await project.admin.post('/integrations', { provider: 'payments', config: { secret_key: 'sk' } })
    expectRefusal(await project.admin.post('/integrations/payments/test'), 400, 'PROVIDER_UNKNOWN')
  })

  test('integrations are listed, switched off and disconnected', async () => {
    const { admin } = project
    const { data } = await admin.get('/integrations')
    expect(data.map(({ provider }: { provider: string }) => provider)).toEqual(['apns', 'fcm'])
    expect((await admin.get('/integrations/apns')).data).toEqual(data[0])
    expect((await admin.patch('/integrations/apns', {})).data).toEqual(data[0])
    expect((await admin.patch('/integrations/apns', { is_active: false })).data.is_active).toBe(false)
    const user = await pushed(project)
    expectRefusal(await admin.post('/push/send', { user_ids: [user.id], message }), 400, 'PUSH_NOT_CONFIGURED')
    expect((await admin.delete('/integrations/apns')).data).toEqual({ deleted: true })
    for (const verb of ['get', 'delete'] as const)
      expectRefusal(await admin[verb]('/integrations/apns'), 404, 'NOT_CONFIGURED')
    expectRefusal(await admin.patch('/integrations/apns', { is_active: true }), 404, 'NOT_CONFIGURED')
  })
})
