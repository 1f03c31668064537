import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const grant = (userId: string, body: unknown, headers?: Record<string, string>) =>
  project.admin.post(`/users/${userId}/entitlements`, body, headers)
const days = (n: number) => new Date(harness.now().getTime() + n * 86_400_000).toISOString()
/** A user with a server key's client: sessions end after an hour, server keys do not. */
const someone = async () => {
  const user = await project.user()
  return { id: user.id, user, server: project.onBehalfOf(user.id) }
}
/** A grant as a store's would be. */
const sold = (userId: string, entitlement: string, more: Record<string, unknown> = {}) => {
  const row = {
    app_user_id: userId,
    entitlement_id: entitlement,
    source: 'subscription_provider',
    source_ref: randomUUID(),
    product_id: 'yearly',
    store: 'app_store',
    period_type: 'normal',
    purchase_date: days(-1),
    ...more,
  }
  return project.sql(
    `insert into app.entitlement_grants (${Object.keys(row).join(', ')}) values (${Object.keys(row)
      .map((_, n) => `$${n + 1}`)
      .join(', ')})`,
    Object.values(row),
  )
}
const eventsOf = async (userId: string) =>
  (
    await project.sql(
      `select event_name from app.engagement_events where app_user_id = $1 and event_name like 'svc.entitlement.%' order by id`,
      [userId],
    )
  ).map(({ event_name }) => event_name)

describe('a grant', () => {
  test('is 201 the first time, 200 when refreshed, and ends by itself', async () => {
    harness.setTime(new Date())
    const { id, server } = await someone()
    const made = await grant(id, { entitlement_id: 'premium', duration_days: 10, product_id: 'gift', reason: 'sorry' })
    expect(made.status).toBe(201)
    expect(made.data).toEqual({
      entitlement_id: 'premium',
      is_active: true,
      product_id: 'gift',
      store: 'promotional',
      purchase_date: days(0),
      expiration_date: days(10),
      period_type: 'promotional',
    })
    expect((await server.get('/client/entitlements')).data).toEqual([made.data])
    expect((await server.get('/client/entitlements/premium')).data).toEqual(made.data)
    const again = await grant(id, { entitlement_id: 'premium', expiration_date: days(20) })
    expect([again.status, again.data.expiration_date, again.data.product_id]).toEqual([200, days(20), 'gift'])
    expect(await eventsOf(id)).toEqual(['svc.entitlement.granted', 'svc.entitlement.granted'])
    const end = days(20)
    harness.advance(20 * 86_400 - 1)
    expect((await server.get('/client/entitlements/premium')).data.is_active).toBe(true)
    harness.advance(1)
    expect((await server.get('/client/entitlements/premium')).data).toMatchObject({
      is_active: false,
      expiration_date: end,
    })
    expect((await server.get('/client/entitlements?active_only=true')).data).toEqual([])
    expect((await server.get('/client/entitlements?active_only=false')).data).toHaveLength(1)
  })

  test('is never shortened while it lives, and begins anew after its end', async () => {
    harness.setTime(new Date())
    const { id } = await someone()
    await grant(id, { entitlement_id: 'gold', duration_days: 10 })
    expect((await grant(id, { entitlement_id: 'gold', duration_days: 3 })).data.expiration_date).toBe(days(10))
    harness.advance(11 * 3600)
    expect((await grant(id, { entitlement_id: 'gold', expiration_date: null })).data.expiration_date).toBeNull()
    expect((await grant(id, { entitlement_id: 'gold', duration_days: 1 })).data.expiration_date).toBeNull()
    const other = await someone()
    await grant(other.id, { entitlement_id: 'gold', expiration_date: days(0.1) })
    harness.advance(3 * 3600)
    const anew = await grant(other.id, { entitlement_id: 'gold', duration_days: 1 })
    expect([anew.status, anew.data.expiration_date, anew.data.purchase_date]).toEqual([200, days(1), days(0)])
  })

  test('is given once under an Idempotency-Key, also when ten ask at once', async () => {
    const { id } = await someone()
    const key = { 'idempotency-key': 'one' }
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => grant(id, { entitlement_id: 'gold', duration_days: 1 }, key)),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(await eventsOf(id)).toHaveLength(1)
    expectRefusal(await grant(id, { entitlement_id: 'gold', duration_days: 2 }, key), 409, 'IDEMPOTENCY_CONFLICT')
    expectRefusal(await grant(id, { entitlement_id: 'gold' }, { 'idempotency-key': '\u00e9' }), 400, 'INVALID_BODY')
  })

  test.each([
    [{}, 'entitlement_id'],
    [{ entitlement_id: '' }, 'entitlement_id'],
    [{ entitlement_id: 'x'.repeat(129) }, 'entitlement_id'],
    [{ entitlement_id: 'a', duration_days: 0 }, 'duration_days'],
    [{ entitlement_id: 'a', duration_days: 36_501 }, 'duration_days'],
    [{ entitlement_id: 'a', expiration_date: '2020-01-01T00:00:00Z' }, 'expiration_date'],
    [{ entitlement_id: 'a', expiration_date: 'soon' }, 'expiration_date'],
    [{ entitlement_id: 'a', duration_days: 1, expiration_date: '2099-01-01T00:00:00Z' }, 'duration_days'],
    [{ entitlement_id: 'a', reason: 'x'.repeat(501) }, 'reason'],
  ])('of %j is refused', async (body, field) => {
    const { id } = await someone()
    expectRefusal(await grant(id, body), 400, 'INVALID_BODY', { field })
    expect((await project.admin.get(`/users/${id}/entitlements`)).data).toEqual([])
  })

  test('needs a user', async () => {
    // granting chooses its codes by area, the two others by the part of the request
    for (const [id, status, code, others] of [
      [randomUUID(), 404, 'NOT_FOUND', 'NOT_FOUND'],
      ['x', 400, 'INVALID_USER_ID', 'INVALID_ID'],
      ['%00', 400, 'INVALID_USER_ID', 'INVALID_ID'],
    ] as const) {
      expectRefusal(await grant(id, { entitlement_id: 'a' }), status, code)
      expectRefusal(await project.admin.get(`/users/${id}/entitlements`), status, others)
      expectRefusal(await project.admin.delete(`/users/${id}/entitlements/a`), status, others)
    }
  })
})

describe('an entitlement', () => {
  test('is its best grant: the end of one never ends what another pays for', async () => {
    harness.setTime(new Date())
    const { id, server } = await someone()
    await sold(id, 'premium', { expiration_date: days(5) })
    await sold(id, 'premium', { expiration_date: days(30), store: 'play_store', product_id: 'monthly' })
    await grant(id, { entitlement_id: 'premium', duration_days: 2 })
    const shown = async () => (await server.get('/client/entitlements/premium')).data
    expect(await shown()).toMatchObject({ is_active: true, store: 'play_store', expiration_date: days(30) })
    harness.advance(6 * 86_400)
    expect(await shown()).toMatchObject({ is_active: true, store: 'play_store' })
    await sold(id, 'premium', { product_id: 'forever' })
    expect(await shown()).toMatchObject({ is_active: true, expiration_date: null, product_id: 'forever' })
  })

  test('in grace shows the end of grace; a refund ends it at once', async () => {
    harness.setTime(new Date())
    const { id, server } = await someone()
    await sold(id, 'graced', { expiration_date: days(-1), grace_until: days(2) })
    await sold(id, 'refunded', { expiration_date: days(30), refunded_at: days(0) })
    await sold(id, 'refunded_for_life', { refunded_at: days(0) })
    expect((await server.get('/client/entitlements')).data).toMatchObject([
      { entitlement_id: 'graced', is_active: true, expiration_date: days(2) },
      { entitlement_id: 'refunded', is_active: false, expiration_date: days(0) },
      { entitlement_id: 'refunded_for_life', is_active: false },
    ])
    harness.advance(2 * 86_400)
    expect((await server.get('/client/entitlements?active_only=true')).data).toEqual([])
  })

  test('is shown to its user alone, and to administrators with its grants', async () => {
    const [one, two] = [await someone(), await someone()]
    await grant(one.id, { entitlement_id: 'premium' })
    await sold(one.id, 'premium', { expiration_date: days(3) })
    expect((await two.user.get('/client/entitlements')).data).toEqual([])
    expectRefusal(await two.user.get('/client/entitlements/premium'), 404, 'NOT_FOUND')
    expectRefusal(await two.user.get('/client/entitlements?active_only=maybe'), 400, 'INVALID_INPUT')
    const [row] = (await project.admin.get(`/users/${one.id}/entitlements`)).data
    expect(row).toMatchObject({ entitlement_id: 'premium', store: 'promotional', expiration_date: null })
    expect(row.grants.map(({ source }: { source: string }) => source)).toEqual(['promotional', 'subscription_provider'])
    const [section] = await project.as('app_admin', {}, 'select internal.user_section__entitlements($1) as rows', [
      one.id,
    ])
    expect(section.rows).toEqual((await one.user.get('/client/entitlements')).data)
  })

  test('is withdrawn only as far as we gave it', async () => {
    const { id, user } = await someone()
    await grant(id, { entitlement_id: 'premium' })
    await sold(id, 'premium', { expiration_date: days(3) })
    const path = `/users/${id}/entitlements/premium`
    expect((await project.admin.delete(path)).data).toEqual({ deleted: true, still_active: true })
    expect((await user.get('/client/entitlements/premium')).data).toMatchObject({ is_active: true, store: 'app_store' })
    expectRefusal(await project.admin.delete(path), 404, 'NOT_FOUND')
    await grant(id, { entitlement_id: 'gold' })
    expect((await project.admin.delete(`/users/${id}/entitlements/gold`)).data.still_active).toBe(false)
    expect((await eventsOf(id)).slice(-1)).toEqual(['svc.entitlement.revoked'])
    const audited = await project.sql(`select action from app.audit_events where target_id = $1 order by position`, [
      id,
    ])
    expect(audited.map(({ action }) => action)).toEqual([
      'entitlements.grant',
      'entitlements.revoke',
      'entitlements.grant',
      'entitlements.revoke',
    ])
  })

  test('is written by nobody but the functions that check their caller', async () => {
    const { id } = await someone()
    const claims = { 'app.user_id': id, 'app.caller': 'user' }
    const attacks = [
      `insert into app.entitlement_grants (app_user_id, entitlement_id, source, source_ref, store, period_type, purchase_date)
       values ('${id}', 'premium', 'purchase', 'x', 'x', 'x', now())`,
      `update app.entitlement_grants set expiration_date = null`,
      `delete from app.entitlement_grants`,
      `select internal.entitlement_give('${id}', 'premium', 'purchase', 'x', null)`,
      `select internal.reward__entitlements('${id}', '[{"entitlement_id": "premium"}]', 'x', 'x')`,
    ]
    for (const role of ['app_user', 'app_admin', 'app_server', 'app_worker', 'app_anon'] as const)
      for (const attack of attacks) await expect(project.as(role, claims, attack)).rejects.toThrow(/permission denied/)
    for (const call of [
      `select internal.entitlement_grant('${id}', 'premium', null, null, null, null, null)`,
      `select internal.entitlement_withdraw('${id}', 'premium')`,
    ])
      await expect(project.as('app_admin', claims, call)).rejects.toThrow(/not by user/)
  })

  test('moves with a merge, once for its source', async () => {
    const [me, guest] = [await someone(), await someone()]
    await grant(guest.id, { entitlement_id: 'premium', duration_days: 3 })
    await grant(me.id, { entitlement_id: 'premium', duration_days: 5 })
    await sold(guest.id, 'gold')
    const merged = await me.user.post('/client/auth/merge', { from_session_token: guest.user.sessionToken })
    expect(merged.status, merged.text).toBe(200)
    const { data } = await project.admin.get(`/users/${me.id}/entitlements`)
    expect(data.map((row: any) => [row.entitlement_id, row.grants.length])).toEqual([
      ['gold', 1],
      ['premium', 1],
    ])
  })
})

describe('a reward', () => {
  const reward = async (userId: string, entitlements: unknown, source = 'level', id = '1') =>
    (
      await project.sql('select internal.grant_reward($1, $2, $3, $4) as outcome', [
        userId,
        JSON.stringify({ entitlements }),
        source,
        id,
      ])
    )[0].outcome?.entitlements

  test('gives each entitlement once for its source; another source is another grant', async () => {
    const { id } = await someone()
    const part = [
      { entitlement_id: 'premium', duration_days: 7 },
      { entitlement_id: 'badge', duration_days: null },
    ]
    expect(await reward(id, part)).toMatchObject({ given: true })
    expect(await reward(id, part)).toBeUndefined()
    await reward(id, part, 'referral', 'r1')
    const { data } = await project.admin.get(`/users/${id}/entitlements`)
    expect(data.map((row: any) => [row.entitlement_id, row.grants.map((g: any) => g.source).sort()])).toEqual([
      ['badge', ['referral', 'reward']],
      ['premium', ['referral', 'reward']],
    ])
    expect(data[0].expiration_date).toBeNull()
  })

  test('that cannot be given is recorded with its reason, gives the rest, and fails nothing', async () => {
    const { id, user } = await someone()
    const outcome = await reward(id, [
      { entitlement_id: 'good', duration_days: 1 },
      { entitlement_id: 'x'.repeat(129) },
      { entitlement_id: 'bad', duration_days: -1 },
      { entitlement_id: 'bad', duration_days: 'x' },
      { duration_days: 1 },
      5,
    ])
    expect(outcome.entitlements.filter((part: { given: boolean }) => part.given)).toHaveLength(1)
    expect(outcome.entitlements).toHaveLength(6)
    expect((await user.get('/client/entitlements')).data).toHaveLength(1)
  })
})
