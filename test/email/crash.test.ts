// Workers that are killed while they send: what the guide promises about messages whose outcome nobody knows.
import pg from 'pg'
import { afterAll, afterEach, expect, inject, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { endHeartbeats } from '#test/support/jobs.ts'
import { defineTemplate, mailCampaign, mailCampaignOf, readers } from '#test/support/mail_campaigns.ts'
import { endPrograms, startWorker, type WorkerProcess } from '#test/support/process.ts'
import { deliveriesOf } from '#test/support/push.ts'
import { newEmail } from '#test/support/sign_in.ts'
import { startMailServer } from '#test/support/smtp.ts'
import { untilBlocked } from '#test/support/transaction.ts'

const mail = await startMailServer()
const env = { SMTP_URL: mail.url }
const harness = await startHarness({ env })
afterEach(() => mail.before250(null))
afterAll(async () => {
  await endPrograms()
  await mail.stop()
})

const worker = () =>
  startWorker({
    ...env,
    DATABASE_URL: inject('dsn'),
    DATABASE_PREFIX: harness.prefix,
    SECRETS_KEY: inject('secretsKey'),
    DATA_DIR: harness.running.services.config.DATA_DIR,
  })
const kill = async ({ child, ended }: WorkerProcess) => {
  child.kill('SIGKILL')
  await ended
}
/** What a killed worker held is due again: as when its leases have ended. */
const endLeases = async (project: Project) => {
  await endHeartbeats(harness)
  await project.sql('update app.outbox set locked_until = null, attempts = 0, due_at = least(due_at, internal.now())')
}
const messageOf = async (project: Project, id: string) => (await project.admin.get(`/email/messages/${id}`)).data
const typesOf = (message: { events: { type: string }[] }) => message.events.map(({ type }) => type)
const idOf = (received: { headers: Readonly<Record<string, string>> }) => received.headers['message-id'] ?? ''

/** Kills a worker after it has got the 250 for a message and before the outcome is stored, of which the test holds the row. */
const killAfter250 = async (project: Project, to: string) => {
  const holder = new pg.Client({ connectionString: inject('dsn').replace(/\/[^/?]*(\?|$)/, `/${project.database}$1`) })
  await holder.connect()
  const asked = Promise.withResolvers<void>()
  mail.before250(async (message) => {
    if (!message.to.includes(to)) return
    await holder.query('begin')
    await holder.query('select from app.email_messages where to_address = $1 for update', [to])
    asked.resolve()
  })
  const running = await worker()
  await asked.promise
  await untilBlocked(project)
  mail.before250(null)
  await kill(running)
  // the statement of a dead client: with its machine its backend would be gone too
  await holder.query(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`,
    [project.database],
  )
  await holder.query('rollback')
  await holder.end()
  await endLeases(project)
}

test('killed between the 250 and its record, a transactional message goes out again, under its Message-ID, and says so', async () => {
  const project = await harness.project()
  const to = newEmail()
  const sent = await project.admin.post('/email/send', { to, subject: 'Code', text: '1234' })
  await killAfter250(project, to)
  expect(mail.to(to)).toHaveLength(1)
  expect(await messageOf(project, sent.data.id)).toMatchObject({ status: 'queued', attempts: 1 })
  await project.drain()
  const [one, two, ...more] = mail.to(to)
  expect([idOf(one!), more]).toEqual([idOf(two!), []])
  expect(idOf(one!)).toContain(sent.data.id)
  const message = await messageOf(project, sent.data.id)
  expect(message).toMatchObject({ status: 'sent', attempts: 2 })
  expect(typesOf(message)).toEqual(['queued', 'outcome_unknown', 'sent'])
})

test('killed between the 250 and its record, any other message fails and is never sent again', async () => {
  const project = await harness.project()
  const to = newEmail()
  const sent = await project.admin.post('/email/send', { to, subject: 'News', text: 'News', category: 'news' })
  await killAfter250(project, to)
  await project.drain()
  harness.advance(10 * 3600)
  await project.drain()
  harness.setTime(null)
  expect(mail.to(to)).toHaveLength(1)
  expect(await messageOf(project, sent.data.id)).toMatchObject({
    status: 'failed',
    last_error: expect.stringContaining('OUTCOME_UNKNOWN'),
  })
})

test('killed in the middle of a batch, nobody is left out, and only what was uncertain comes twice', async () => {
  const project = await harness.project()
  const to = Array.from({ length: 40 }, newEmail)
  const batch = await project.admin.post('/email/send-batch', {
    messages: to.map((address) => ({ to: address, subject: 'Order', text: 'Shipped' })),
  })
  expect(batch.status, batch.text).toBe(202)
  mail.before250(() => new Promise((done) => setTimeout(done, 20)))
  const before = mail.received.length
  for (const most of [8, 24]) {
    const running = await worker()
    await expect
      .poll(() => mail.received.length - before, { timeout: 60_000, interval: 5 })
      .toBeGreaterThanOrEqual(most)
    await kill(running)
    await endLeases(project)
  }
  await project.drain()
  const rows = await project.sql('select to_address, status, events from app.email_messages')
  expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(['sent']))
  for (const row of rows) {
    const copies = mail.to(row.to_address)
    const uncertain = typesOf(row).filter((type: string) => type === 'outcome_unknown').length
    expect(copies.length).toBeGreaterThanOrEqual(1)
    expect(copies.length).toBeLessThanOrEqual(1 + uncertain)
    expect(new Set(copies.map(idOf)).size).toBe(1)
  }
})

test('killed in the middle of a campaign, each user gets the message at most once, and who may not have it is counted', async () => {
  const project = await harness.project()
  await defineTemplate(project)
  await readers(project, 60)
  await project.sql(`select internal.set_setting('email.sends_per_second', '1000')`)
  mail.before250(() => new Promise((done) => setTimeout(done, 20)))
  const before = mail.received.length
  const { id } = await mailCampaign(project, { send_now: true })
  for (const most of [10, 30]) {
    const running = await worker()
    await expect
      .poll(() => mail.received.length - before, { timeout: 60_000, interval: 5 })
      .toBeGreaterThanOrEqual(most)
    await kill(running)
    await endLeases(project)
  }
  await project.drain()
  // where two messages are the last at the same time, the campaign looks for itself within ten seconds
  harness.advance(11)
  await project.drain()
  harness.setTime(null)
  const got = mail.received.slice(before).map(({ to: [address] }) => address)
  expect(new Set(got).size).toBe(got.length)
  const rows = await deliveriesOf(project, id)
  const failed = rows.find(({ status }) => status === 'failed')?.n ?? 0
  expect(rows).toEqual([
    ...(failed > 0 ? [{ status: 'failed', reason: null, code: 'OUTCOME_UNKNOWN', n: failed }] : []),
    { status: 'sent', reason: null, code: null, n: 60 - failed },
  ])
  // a message that the server took and nobody recorded is among the failed ones
  expect(got.length).toBeGreaterThanOrEqual(60 - failed)
  expect(await mailCampaignOf(project, id)).toMatchObject({
    status: 'sent',
    counts: { targeted: 60, sent: 60 - failed, failed, skipped: 0 },
  })
  expect(await project.sql('select count(*)::int as n from app.email_messages')).toEqual([{ n: 60 }])
})
