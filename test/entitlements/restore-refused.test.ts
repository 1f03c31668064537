import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { readPurchases } from '#server/providers/revenuecat_customers.ts'
import type { Response, Upstream } from '#server/providers/upstream.ts'
import type { CallRequest } from '#server/providers/upstream_requests.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { day, startRestores } from '#test/support/restores.ts'
import { purchaseOf, subscriptionOf } from '#test/support/revenuecat.ts'

/** Restoring purchases without the provider's answer changes nothing. */
const { provider, harness, project, now, connect, someone, restore, restored, entitled, tell, subscriptions } =
  await startRestores()

describe('fails closed', () => {
  const refused = async (respond: Parameters<typeof provider.respondBy>[0], reason: string) => {
    const user = await someone()
    await tell({ app_user_id: user.id, original_transaction_id: randomUUID() })
    provider.customers.set(user.id, {
      subscriptions: [subscriptionOf(randomUUID(), ['more'], now() + day)],
      purchases: [purchaseOf(randomUUID(), ['extra'], now())],
    })
    provider.respondBy(respond)
    const answer = await restore(user)
    expectRefusal(answer, 502, 'RESTORE_UPSTREAM_FAILED', { reason })
    expect(answer.text).not.toMatch(/sk_|secret words/)
    provider.respondBy(() => false)
    expect((await entitled(user)).map(({ entitlement_id, is_active }: any) => [entitlement_id, is_active])).toEqual([
      ['premium', true],
    ])
  }
  const plain = (status: number, body: string) => (at: RegExp) => (response: any, path: string) => {
    if (!at.test(path)) return false
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    return true
  }

  test.each([400, 401, 403, 423, 429, 500, 503])('at %i of any of the three lists', async (status) => {
    await refused(plain(status, '{"message": "secret words"}')(/purchases$/), `HTTP_${status}`)
    await project.sql('delete from app.rate_limits')
  })

  test('at answers that are not as documented', async () => {
    await refused(plain(200, 'secret words')(/subscriptions$/), 'HTTP_200')
    await refused(plain(200, '{"items": {}}')(/subscriptions$/), 'HTTP_200')
    await refused(plain(200, '{"items": [{"id": 1}]}')(/subscriptions$/), 'UNEXPECTED_ANSWER')
    await refused(plain(200, '{"items": [], "next_page": "/v2/nothing"}')(/subscriptions$/), 'UNEXPECTED_ANSWER')
    await refused(plain(404, '{}')(/purchases$/), 'UNEXPECTED_ANSWER')
  })

  test('at a list that never ends', async () => {
    await refused(
      plain(200, '{"items": [], "next_page": "/x?starting_after=y"}')(/subscriptions$/),
      'UNEXPECTED_ANSWER',
    )
  })

  test('at a broken connection, and then at once while the circuit is open', async () => {
    const own = await harness.project()
    await own.admin.post('/integrations', {
      provider: 'revenuecat',
      config: { secret_api_key: provider.key, project_id: provider.project },
    })
    const user = await own.user()
    provider.respondBy((response) => Boolean(response.destroy()))
    expectRefusal(await restore(user), 502, 'RESTORE_UPSTREAM_FAILED', { reason: 'PROVIDER_FAILED' })
    // each restore counts at least one failure, of five that open the circuit
    for (let n = 0; n < 4; n += 1) await restore(user)
    expectRefusal(await restore(user), 502, 'RESTORE_UPSTREAM_FAILED', { reason: 'PROVIDER_UNAVAILABLE' })
    provider.respondBy(() => false)
    // of another project nothing is refused
    expect((await restored(await someone())).restored_count).toBe(0)
  })

  test('at the first failure, and gives the other requests up', async () => {
    const signals: AbortSignal[] = []
    const upstream = {
      call: ({ path, signal }: CallRequest) => {
        signals.push(signal!)
        const isRefused = path.endsWith('/purchases')
        if (isRefused) return Promise.resolve({ failure: null, status: 400, json: () => ({}) } as Response)
        const aborted = { failure: 'ABORTED', reason: '', isSent: true } as const
        return new Promise<typeof aborted>((resolve) => signal?.addEventListener('abort', () => resolve(aborted)))
      },
    } as Upstream
    const names = ['one', 'other']
    const found = await readPurchases(upstream, randomUUID(), { secret_api_key: 'sk', project_id: 'proj' }, names)
    expect(found).toEqual({ failure: 'HTTP_400' })
    expect(signals.map(({ aborted }) => aborted)).toEqual(Array(6).fill(true))
  })

  test('at a project id or names that cannot be asked for', async () => {
    const user = await someone()
    await project.admin.patch(`/users/${user.id}`, { external_id: '..' })
    provider.customers.set(user.id, { purchases: [purchaseOf(randomUUID(), ['mine'], now())] })
    expect((await restored(user)).restored_count).toBe(1)
  })
})

describe('is refused', () => {
  test('without an active integration', async () => {
    const user = await someone()
    await project.admin.patch('/integrations/revenuecat', { is_active: false })
    expectRefusal(await restore(user), 409, 'RESTORE_UNAVAILABLE')
    await project.admin.patch('/integrations/revenuecat', { is_active: true })
    await project.admin.delete('/integrations/revenuecat')
    expectRefusal(await restore(user), 409, 'RESTORE_UNAVAILABLE')
    expect(provider.requests.filter(({ path }) => path.includes(user.id))).toEqual([])
  })

  test('to nobody, and for a user who does not exist', async () => {
    expectRefusal(await project.app.post('/client/entitlements/restore'), 401, 'UNAUTHORIZED')
    expectRefusal(await restore(project.onBehalfOf(randomUUID())), 404, 'USER_NOT_FOUND')
    const stranger = await (await harness.project()).user()
    const mixed = project.app.with({ authorization: `Bearer ${stranger.sessionToken}` })
    expectRefusal(await restore(mixed), 401, 'UNAUTHORIZED')
  })

  test('the eleventh time in a minute', async () => {
    harness.setTime('2026-11-20T10:00:00Z')
    const user = await someone()
    for (let i = 0; i < 10; i += 1) expect((await restore(user)).status).toBe(200)
    expectRefusal(await restore(user), 429, 'RATE_LIMITED')
    expect((await restore(await someone())).status).toBe(200)
    harness.advance(60)
    expect((await restore(user)).status).toBe(200)
  })

  test('with RESTORE_FAILED when the answer cannot be stored, and changes nothing', async () => {
    const user = await someone()
    provider.customers.set(user.id, { subscriptions: [subscriptionOf(randomUUID(), ['premium'], now() + day)] })
    await project.sql('alter table app.entitlement_grants add constraint nothing_more check (false) not valid')
    expectRefusal(await restore(user), 500, 'RESTORE_FAILED')
    await project.sql('alter table app.entitlement_grants drop constraint nothing_more')
    expect(await subscriptions(user)).toEqual([])
  })
})

test('the credentials of the subscription provider are tried, and never shown', async () => {
  const tried = () => project.admin.post('/integrations/revenuecat/test')
  expect((await tried()).data).toEqual({ ok: true, latency_ms: expect.any(Number), error: null })
  expect(provider.requests.map(({ path }) => path)).toContain('/v2/projects/proj1/customers')
  await connect({ project_id: undefined })
  expect((await tried()).data.ok).toBe(true)
  expect(provider.requests.map(({ path }) => path)).toContain('/v2/projects')
  await connect({ secret_api_key: 'sk_wrong' })
  const wrong = await tried()
  expect([wrong.status, wrong.data.ok, wrong.data.error]).toEqual([200, false, 'INVALID_CREDENTIALS'])
  expect(wrong.text).not.toContain('sk_wrong')
  await connect({ project_id: 'proj_of_another' })
  expect((await tried()).data).toMatchObject({ ok: false, error: 'HTTP_404' })
  for (const project_id of [7, '..', 'a/b', 'x'.repeat(256)])
    expectRefusal(await connect({ project_id }), 400, 'INVALID_CONFIG', 'config.project_id')
})
