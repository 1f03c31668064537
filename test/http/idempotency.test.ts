import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const post = (client: Client, key: string, body: unknown = { event_name: 'paid' }) =>
  client.post('/client/events', body, { 'idempotency-key': key })
const countOf = async (userId: string) =>
  Number(
    (
      await project.sql(`select count(*) from app.engagement_events where app_user_id = $1 and source <> 'system'`, [
        userId,
      ])
    )[0].count,
  )

describe('Idempotency-Key', () => {
  test('a replay answers 200 with the first body, byte for byte, and Idempotency-Replayed', async () => {
    const user = await project.user()
    for (const body of [{ event_name: 'paid' }, { events: [{ event_name: 'a' }, { event_name: ' bad' }] }]) {
      const key = randomUUID()
      const first = await post(user, key, body)
      const again = await post(user, key, body)
      expect([first.status, again.status]).toEqual([201, 200])
      expect(again.text).toBe(first.text)
      expect(first.headers.get('idempotency-replayed')).toBeNull()
      expect(again.headers.get('idempotency-replayed')).toBe('true')
    }
    expect(await countOf(user.id)).toBe(2)
  })

  test('another body under the key: 409', async () => {
    const user = await project.user()
    const key = randomUUID()
    await post(user, key)
    const { status, error } = await post(user, key, { event_name: 'other' })
    expect([status, error?.code]).toEqual([409, 'IDEMPOTENCY_CONFLICT'])
    expect(await countOf(user.id)).toBe(1)
  })

  test('a failed request does not use the key up', async () => {
    const user = await project.user()
    const key = randomUUID()
    expect((await post(user, key, { event_name: ' bad' })).status).toBe(400)
    expect((await post(user, key, { events: [{ event_name: ' bad' }] })).status).toBe(400)
    expect((await post(user, key)).status).toBe(201)
  })

  test('keys are per user, and per server key', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const key = randomUUID()
    const answers = [
      await post(one, key),
      await post(two, key),
      await post(project.server, key, { event_name: 'paid', app_user_id: one.id }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(await countOf(one.id)).toBe(2)
    // a server key on behalf of a user is that user
    expect((await post(project.onBehalfOf(one.id), key)).headers.get('idempotency-replayed')).toBe('true')
  })

  test('twenty at once under one key store one event and answer the same', async () => {
    const user = await project.user()
    const key = randomUUID()
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(user, key)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(await countOf(user.id)).toBe(1)
  })

  test('is kept for 24 hours', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const server = project.onBehalfOf((await project.user()).id)
    const key = randomUUID()
    await post(server, key)
    harness.setTime('2026-11-22T09:59:59Z')
    expect((await post(server, key)).status).toBe(200)
    harness.setTime('2026-11-22T10:00:01Z')
    expect((await post(server, key, { event_name: 'other' })).status).toBe(201)
    harness.setTime('2026-11-24T10:00:00Z')
    await project.as('app_worker', { 'app.clock': '2026-11-24T10:00:00Z' }, 'select api.tenant_purge()')
    expect(await project.sql(`select from app.idempotency_keys where created_at < '2026-11-23'`)).toEqual([])
  })

  test.each([
    ['empty', ''],
    ['too long', 'x'.repeat(256)],
    ['not ASCII', 'ü'],
  ])('%s: 400', async (_name, key) => {
    const { status, error } = await post(await project.user(), key)
    expect([status, error?.code, error?.details.field]).toEqual([400, 'VALIDATION_ERROR', 'Idempotency-Key'])
  })

  test('of 255 printable characters is taken', async () => {
    const key = '!~ "'.repeat(64).slice(0, 255)
    expect((await post(await project.user(), key)).status).toBe(201)
  })

  test('answers again also after the expiry that was sent, and what it used was closed', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const user = await project.user()
    const server = project.onBehalfOf(user.id)
    const expires_at = '2026-11-21T11:00:00Z'
    const [credit, grant] = [
      { amount: 5, reason: 'gift', expires_at },
      { entitlement_id: 'premium', expiration_date: expires_at },
    ]
    await project.admin.post('/currencies', { code: 'GOLD', name: 'Gold' })
    await project.admin.post('/catalog', { key: 'sword', name: 'Sword', item_type: 'consumable' })
    await project.admin.post('/leaderboards', { key: 'best', name: 'Best', source: { type: 'manual' } })
    const key = { 'idempotency-key': randomUUID() }
    const requests = () => [
      server.post('/client/currencies/GOLD/credit', credit, key),
      project.admin.post(
        '/currencies/transactions',
        { app_user_id: user.id, adjustments: [{ currency_code: 'GOLD', amount: 5 }], reason: 'gift', expires_at },
        key,
      ),
      server.post('/client/inventory/grant', { catalog_item_key: 'sword', expires_at }, key),
      project.admin.post(`/users/${user.id}/entitlements`, grant, key),
      server.post('/client/leaderboards/best/scores', { score: 5 }, key),
    ]
    const first = await Promise.all(requests())
    expect(first.map(({ status, error }) => [status, error])).toEqual(first.map(() => [201, undefined]))
    harness.setTime('2026-11-21T12:00:00Z')
    await project.admin.patch('/currencies/GOLD', { is_active: false })
    await project.admin.patch('/leaderboards/best', { max_score: 1 })
    const again = await Promise.all(requests())
    expect(again.map(({ status, text }) => [status, text])).toEqual(first.map(({ text }) => [200, text]))
    const late = await project.admin.post(`/users/${user.id}/entitlements`, grant)
    expect([late.status, late.error?.details.field]).toEqual([400, 'expiration_date'])
  })

  test('nobody but its functions reads the store', async () => {
    for (const role of ['app_user', 'app_server', 'app_admin', 'app_anon'] as const)
      await expect(project.as(role, {}, 'select from app.idempotency_keys')).rejects.toThrow(/permission denied/)
  })
})
