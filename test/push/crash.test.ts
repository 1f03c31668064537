import { afterAll, expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { endHeartbeats } from '#test/support/jobs.ts'
import { endPrograms, startWorker, type WorkerProcess } from '#test/support/process.ts'
import { campaignOf, crowd, deliveriesOf, pushed, shown } from '#test/support/push.ts'
import { startApns, startFcm } from '#test/support/push_providers.ts'
import { openTransaction } from '#test/support/transaction.ts'

let clock: () => Date = () => new Date()
const apns = await startApns(() => clock())
const fcm = await startFcm(() => clock())
const env = {
  APNS_BASE_URL: apns.url,
  FCM_BASE_URL: fcm.url,
  WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
  WEBHOOK_CA_FILE: fcm.caFile,
}
const harness = await startHarness({ env })
clock = harness.now
afterAll(async () => {
  await endPrograms()
  await Promise.all([apns.close(), fcm.close()])
})

const project = await harness.project()
await project.admin.post('/integrations', { provider: 'apns', config: apns.config })
await project.admin.post('/integrations', { provider: 'fcm', config: fcm.config })
const worker = () =>
  startWorker({
    ...env,
    DATABASE_URL: inject('dsn'),
    DATABASE_PREFIX: harness.prefix,
    SECRETS_KEY: inject('secretsKey'),
    DATA_DIR: harness.running.services.config.DATA_DIR,
  })
/** Kills a worker as soon as the providers have got so many messages in all. */
const killAt = async (running: WorkerProcess, most: number) => {
  await expect
    .poll(() => apns.pushes.length + fcm.pushes.length, { timeout: 60_000, interval: 5 })
    .toBeGreaterThan(most)
  running.child.kill('SIGKILL')
  await running.ended
}
/** What a killed worker held is due again: as when its leases have ended. */
const endLeases = async () => {
  await endHeartbeats(harness)
  await project.sql(`update app.campaign_deliveries set due_at = now() where status = 'sending'`)
  await project.sql(`update app.outbox set locked_until = null, attempts = 0`)
}

test('workers that are killed in between send nothing twice and leave nobody out', async () => {
  const users = 1500
  await crowd(project, users, 'android')
  await crowd(project, users, 'ios')
  const slow = () => new Promise<undefined>((done) => setTimeout(() => done(undefined), 20))
  apns.answer(slow)
  fcm.answer(slow)
  const { id } = await campaignOf(project, { send_now: true })
  for (const most of [400, 1200]) {
    const running = await worker()
    await killAt(running, most)
    await endLeases()
  }
  await project.drain()
  const campaign = await shown(project, id)
  const rows = await deliveriesOf(project, id)
  expect(campaign.status).toBe('sent')
  expect(rows.map(({ status, code }) => [status, code]).filter(([status]) => status !== 'sent')).toEqual(
    rows.some(({ status }) => status === 'failed') ? [['failed', 'OUTCOME_UNKNOWN']] : [],
  )
  expect(rows.reduce((sum, { n }) => sum + n, 0)).toBe(2 * users)
  // FCM got each message at most once; what it may have got and nobody recorded has failed
  const tokens = fcm.pushes.map(({ body }) => body.message.token)
  expect(new Set(tokens).size).toBe(tokens.length)
  const failed = rows.find(({ status }) => status === 'failed')?.n ?? 0
  expect(tokens.length).toBeGreaterThanOrEqual(users - failed)
  // APNs got each message, and shows those of one collapse id once
  expect(new Set(apns.pushes.map(({ headers }) => headers['apns-collapse-id'])).size).toBe(users)
  expect(new Set(apns.pushes.map(({ headers }) => headers['apns-id'])).size).toBe(users)
  expect(campaign.counts).toMatchObject({ targeted: 2 * users, sent: 2 * users - failed, failed, skipped: 0 })
})

test('a plan goes on where a killed worker has left it', async () => {
  const planned = await harness.project({ environment: 'development' })
  await crowd(planned, 500)
  const { id } = await campaignOf(planned, { send_now: true })
  const claims = { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() }
  const step = 'select r.body from api.campaign_plan_step($1, 150) r'
  expect((await planned.as('app_worker', claims, step, [id]))[0].body.data).toEqual({ is_over: false, planned: 150 })
  // killed before its commit: nothing of the step is left
  const killed = await openTransaction(planned, 'app_worker', claims)
  expect((await killed.query(step, [id]))[0].body.data).toEqual({ is_over: false, planned: 150 })
  await killed.kill()
  expect((await shown(planned, id)).counts.targeted).toBe(150)
  await planned.drain()
  expect(await deliveriesOf(planned, id)).toEqual([{ status: 'sent', reason: null, code: null, n: 500 }])
  expect(await shown(planned, id)).toMatchObject({ status: 'sent', counts: { targeted: 500, sent: 500 } })
})

test('two workers at once share a campaign, and claim no delivery twice', async () => {
  const shared = await harness.project({ environment: 'development' })
  await crowd(shared, 300)
  const { id } = await campaignOf(shared, { send_now: true })
  const claims = { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() }
  await shared.as('app_worker', claims, 'select api.campaign_plan_step($1)', [id])
  const claim = () =>
    shared
      .as('app_worker', claims, 'select r.body from api.campaign_claim($1, 50, false) r', [id])
      .then(([row]) => row.body.data)
  const answers = await Promise.all(Array.from({ length: 8 }, claim))
  const ids = answers.flatMap(({ deliveries }) => deliveries.map((each: { id: string }) => each.id))
  expect([ids.length, new Set(ids).size]).toEqual([300, 300])
})

test('a user who is deleted while messages go out takes the deliveries along, and nobody waits in a circle', async () => {
  const busy = await harness.project({ environment: 'development' })
  const users = await Promise.all(Array.from({ length: 6 }, () => pushed(busy)))
  const { id } = await campaignOf(busy, { send_now: true })
  const [, ...answers] = await Promise.all([
    busy.drain(),
    ...users.slice(0, 3).map((user) => busy.admin.delete(`/users/${user.id}`)),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  await busy.drain()
  const rows = await busy.sql('select app_user_id as id, status from app.campaign_deliveries where campaign_id = $1', [
    id,
  ])
  expect(rows.map((row) => row.id).sort()).toEqual(
    users
      .slice(3)
      .map((user) => user.id)
      .sort(),
  )
  expect(rows.every(({ status }) => status === 'sent')).toBe(true)
})
