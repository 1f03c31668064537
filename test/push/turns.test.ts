// How turns of sending end: what is being sent at that moment, by this turn or by another, is looked at again soon.
import { setImmediate as nextTick } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import type { Services } from '#server/services.ts'
import { startHarness } from '#test/support/harness.ts'
import { campaignOf, crowd, device, message, pushed, shown } from '#test/support/push.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { drainTenant } from '#workers/drain.ts'
import { loadTasks } from '#workers/task.ts'

const harness = await startHarness()
afterEach(() => harness.setTime(null))
const projectAt = (time: string) => {
  harness.setTime(time)
  return harness.project({ environment: 'development' })
}
const claims = () => ({ 'app.caller': 'worker', 'app.clock': harness.now().toISOString() })

test('a turn that finds only what another turn is sending comes back in seconds, not when the lease ends', async () => {
  const project = await projectAt('2026-12-01T10:00:00Z')
  await crowd(project, 3)
  const { id } = await campaignOf(project, { send_now: true })
  await project.as('app_worker', claims(), 'select api.campaign_plan_step($1)', [id])
  const claim = async () =>
    (await project.as('app_worker', claims(), 'select r.body from api.campaign_claim($1, 500, false) r', [id]))[0].body
      .data
  const one = await claim()
  expect(one.deliveries).toHaveLength(3)
  const two = await claim()
  expect([two.deliveries, two.next_at]).toEqual([[], '2026-12-01T10:00:05.000Z'])
  // a lease that ends sooner is the time at which its deliveries are claimed again
  harness.setTime('2026-12-01T10:01:58Z')
  expect((await claim()).next_at).toBe('2026-12-01T10:02:00.000Z')
})

test('a claim that is answered after the outcomes which it did not see is made again', async () => {
  const project = await harness.project({ environment: 'development' })
  await pushed(project)
  const { id } = await campaignOf(project, { send_now: true })
  const { services } = harness.running
  let claimed = 0
  const seen = Promise.withResolvers<void>()
  const recorded = Promise.withResolvers<void>()
  const call = (async (...args: Parameters<Services['database']['call']>) => {
    const name = args[3]
    if (name === 'push_record') await seen.promise
    const reply = await services.database.call(...args)
    if (name === 'push_record') recorded.resolve()
    if (name === 'campaign_claim') {
      claimed += 1
      // the second claim has read the delivery as being sent; its answer arrives after the outcome is recorded
      if (claimed === 2) {
        seen.resolve()
        await recorded.promise
        await nextTick()
      }
    }
    return reply
  }) as Services['database']['call']
  const { outbox } = await loadTasks()
  const slow = { ...services, database: { ...services.database, call } }
  await drainTenant(slow, outbox, project.id, { turnMs: 120_000 })
  expect(claimed).toBeGreaterThan(2)
  expect((await shown(project, id)).status).toBe('sent')
})

test('due_at is when a delivery was claimed, also while it is sent and afterwards', async () => {
  const project = await projectAt('2026-12-02T10:00:00Z')
  const user = await pushed(project)
  const { id } = await campaignOf(project, { send_now: true })
  const due = async () => (await project.admin.get(`/push/campaigns/${id}/deliveries`)).data[0]
  await project.as('app_worker', claims(), 'select api.campaign_plan_step($1)', [id])
  harness.setTime('2026-12-02T10:00:07Z')
  await project.as('app_worker', claims(), 'select api.campaign_claim($1, 500, false)', [id])
  expect(await due()).toMatchObject({ status: 'sending', due_at: '2026-12-02T10:00:07.000Z' })
  harness.setTime('2026-12-02T10:02:08Z')
  await project.drain()
  expect(await due()).toMatchObject({ app_user_id: user.id, status: 'sent', due_at: '2026-12-02T10:02:08.000Z' })
})

test('a delivery that is not sent yet can be neither opened nor received', async () => {
  const project = await harness.project({ environment: 'development' })
  const user = await pushed(project)
  const sent = await project.admin.post('/push/send', { user_ids: [user.id], message })
  const [id] = sent.data.delivery_ids
  for (const verb of ['opened', 'received'])
    expectRefusal(await user.post(`/client/push/deliveries/${id}/${verb}`), 404, 'NOT_FOUND')
  await project.drain()
  expect((await user.post(`/client/push/deliveries/${id}/opened`)).status).toBe(200)
  expect((await user.get('/client/push/inbox')).data).toHaveLength(1)
})

test('a workflow id that is taken says so also when the day has no campaign left', async () => {
  const project = await harness.project({ environment: 'development' })
  const body = { name: 'x', message, audience: { all: true }, workflow_id: 'welcome' }
  const post = (fields: object) => project.admin.post('/push/campaigns', { ...body, ...fields })
  expect((await post({})).status).toBe(201)
  await project.sql(
    `insert into app.campaigns (channel, name, message, audience) select 'push', 'c', '{"title": "t", "body": "b"}', '{"all": true}' from generate_series(1, 99)`,
  )
  expectRefusal(await post({}), 409, 'ALREADY_SCHEDULED', { field: 'workflow_id' })
  expectRefusal(await post({ workflow_id: 'other' }), 409, 'LIMIT_REACHED', { limit: 100 })
})

test('what placeholders make longer than 4 KB ends at a whole character, and fails where data leave no place for it', async () => {
  const project = await harness.project({ environment: 'development' })
  const user = await pushed(project)
  await device(user, 'android')
  await user.patch('/client/users/me', { properties: { words: '👩‍👩‍👧‍👦'.repeat(40) } })
  const send = async (fields: object) => {
    const sent = await project.admin.post('/push/send', { user_ids: [user.id], message: { title: 'T', ...fields } })
    expect(sent.status, sent.text).toBe(202)
    await project.drain()
    return (await project.admin.get(`/push/deliveries?user_id=${user.id}`)).data[0]
  }
  const long = await send({ body: '{{words}}'.repeat(20) })
  expect(long.status).toBe('sent')
  for (const { payload } of long.attempts) {
    expect(Buffer.byteLength(JSON.stringify(payload))).toBeLessThanOrEqual(4096)
    expect(Buffer.byteLength(JSON.stringify(payload))).toBeGreaterThan(4060)
    expect(payload.aps.alert.body).toMatch(/^(👩‍👩‍👧‍👦)+…$/u)
  }
  // the inbox has no such limit
  expect((await user.get('/client/push/inbox')).data[0].body).toHaveLength(20 * 440)
  const full = await send({
    title: '{{words}}{{words}}',
    body: 'x'.repeat(100),
    data: { a: 'x'.repeat(3000) },
    deep_link: `app://${'y'.repeat(500)}`,
  })
  expect(full).toMatchObject({ status: 'failed', code: 'PAYLOAD_TOO_LARGE' })
})
