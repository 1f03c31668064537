import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startInbound } from '#test/support/inbound.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Received webhooks: their list, replay, and how long they are kept. */
const { harness, project, purchases, paywall, outcomes, purchaseOf } = await startInbound()

describe('received webhooks', () => {
  test('are listed, newest first, and processed again by administrators alone', async () => {
    const name = `customer-${randomUUID()}`
    await purchases(purchaseOf('nobody'))
    const late = { event: 'paywall_open', user_id: name }
    await paywall(late)
    await project.drain()
    const { data } = await project.admin.get('/integrations/superwall/events?outcome=unknown_user')
    expect(data).toEqual([
      {
        id: expect.any(String),
        provider: 'superwall',
        event_key: expect.stringMatching(/^sha256 [0-9a-f]{64}$/),
        outcome: 'unknown_user',
        body: JSON.stringify(late),
        received_at: expect.any(String),
        processed_at: expect.any(String),
      },
    ])
    expect((await project.admin.get('/integrations/superwall/events?outcome=applied')).data).toEqual([])
    const path = `/integrations/superwall/events/${data[0].id}/replay`
    const { data: user } = await project.admin.post('/users', { external_id: name })
    const again = await project.admin.post(path)
    expect([again.status, again.data.outcome]).toEqual([202, null])
    await project.drain()
    expect((await project.admin.get('/integrations/superwall/events')).data).toMatchObject([{ outcome: 'applied' }])
    expect(
      await project.sql(`select from app.engagement_events where app_user_id = $1 and source = 'webhook'`, [user.id]),
    ).toHaveLength(1)
    expect((await project.admin.get('/audit-events?action=integrations.replay')).data).toMatchObject([
      { target: { id: data[0].id } },
    ])
    expectRefusal(await project.admin.post(`/integrations/revenuecat/events/${data[0].id}/replay`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.post(`/integrations/superwall/events/${randomUUID()}/replay`), 404, 'NOT_FOUND')
    expectRefusal(await project.admin.post('/integrations/superwall/events/x/replay'), 400, 'INVALID_ID')
    expectRefusal(await project.admin.get('/integrations/superwall/events?limit=0'), 400, 'INVALID_INPUT')
    const stranger = await harness.developer()
    for (const answer of [
      await stranger.get(`/admin/projects/${project.id}/integrations/superwall/events`),
      await stranger.post(`/admin/projects/${project.id}${path}`),
    ])
      expectRefusal(answer, 403, 'PROJECT_FORBIDDEN')
    for (const role of ['app_user', 'app_server', 'app_anon', 'app_worker'] as const)
      await expect(project.as(role, {}, 'select from app.inbound_events')).rejects.toThrow(/permission denied/)
  })

  test('that fail stay queued, and nothing of them is half done', async () => {
    const user = await project.user()
    await purchases(purchaseOf(user.id))
    await project.sql('alter table app.entitlement_grants add constraint nothing_more check (false) not valid')
    await project.drain()
    expect(await outcomes()).toEqual([null])
    expect(await project.sql('select from app.subscription_events')).toEqual([])
    await project.sql('alter table app.entitlement_grants drop constraint nothing_more')
    harness.advance(1800)
    await project.drain()
    expect(await outcomes()).toEqual(['applied'])
    expect((await user.get('/client/entitlements')).data).toHaveLength(1)
  })

  test('are deleted after 90 days, and events whose user never appears after 400', async () => {
    const user = await project.user()
    await purchases(purchaseOf(user.id))
    await purchases(purchaseOf('nobody'))
    await project.drain()
    const count = async (table: string) => (await project.sql(`select count(*)::int as n from app.${table}`))[0].n
    const purge = (days: number) =>
      project.sql(
        `select internal.purge__inbound(), internal.purge__subscription_events() from set_config('app.clock', $1, true)`,
        [new Date(harness.now().getTime() + days * 86_400_000).toISOString()],
      )
    await purge(89)
    expect([await count('inbound_events'), await count('subscription_events')]).toEqual([2, 2])
    await purge(91)
    expect([await count('inbound_events'), await count('subscription_events')]).toEqual([0, 2])
    await purge(401)
    expect(await project.sql('select app_user_id from app.subscription_events')).toEqual([{ app_user_id: user.id }])
  })

  test('are received and processed by the server alone', async () => {
    for (const call of [
      `api.inbound_receive('revenuecat', 'k', '{}')`,
      'api.inbound_process(internal.new_id())',
      `api.subscription_resume('purchase x')`,
      'api.restore_begin(internal.new_id())',
      `api.subscriptions_restore(internal.new_id(), '{}', '[]', true, now())`,
    ])
      await expect(project.sql(`select ${call} from set_config('app.caller', 'user', true)`)).rejects.toThrow(
        /not by user/,
      )
    await expect(
      project.sql(
        `select internal.inbound_replay('revenuecat', internal.new_id()) from set_config('app.caller', 'user', true)`,
      ),
    ).rejects.toThrow(/not by user/)
  })
})
