import { afterAll, expect, test } from 'vitest'
import { type Harness, type Project, startHarness } from '#test/support/harness.ts'
import { newEmail } from '#test/support/sign_in.ts'
import { startMailServer } from '#test/support/smtp.ts'

const [installation, own] = [await startMailServer(), await startMailServer()]
afterAll(() => Promise.all([installation.stop(), own.stop()]))
const port = Number(new URL(own.url).port)
const connect = (project: Project, config: object = {}) =>
  project.admin.post('/integrations', {
    provider: 'smtp',
    config: { host: '127.0.0.1', port, secure: false, ...config },
  })
const send = async (project: Project, to: string) => {
  const answer = await project.admin.post('/email/send', { to, subject: 'Hello', text: 'Hello' })
  expect(answer.status, answer.text).toBe(202)
  await project.drain()
  return (await project.admin.get(`/email/messages/${answer.data.id}`)).data
}
const start = (env: Record<string, string>): Promise<Harness> =>
  startHarness({ env: { SMTP_URL: installation.url, ...env } })

test('a project’s own mail server delivers its messages, while it is connected', async () => {
  const harness = await start({ WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8' })
  const [project, other] = [await harness.project(), await harness.project()]
  await connect(project)
  const [mine, theirs, later] = [newEmail(), newEmail(), newEmail()]
  expect(await send(project, mine)).toMatchObject({ status: 'sent' })
  expect(await send(other, theirs)).toMatchObject({ status: 'sent' })
  expect([own.to(mine).length, own.to(theirs).length]).toEqual([1, 0])
  expect([installation.to(mine).length, installation.to(theirs).length]).toEqual([0, 1])
  await project.sql(`update app.integrations set is_active = false where provider = 'smtp'`)
  await send(project, later)
  expect([own.to(later).length, installation.to(later).length]).toEqual([0, 1])
  // a mail server that nobody can reach: the message waits, and the installation's is not taken in its place
  await project.sql(`update app.integrations set is_active = true where provider = 'smtp'`)
  await connect(project, { port: 1 })
  const waiting = newEmail()
  expect(await send(project, waiting)).toMatchObject({
    status: 'queued',
    attempts: 1,
    last_error: expect.stringContaining('ECONNREFUSED'),
  })
  expect(installation.to(waiting)).toEqual([])
})

test('integrations/smtp/test says whether the mail server accepts the credentials, and sends nothing', async () => {
  const harness = await start({ WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8' })
  const project = await harness.project()
  const tested = async () => (await project.admin.post('/integrations/smtp/test')).data
  const before = own.received.length
  await connect(project)
  expect(await tested()).toEqual({ ok: true, latency_ms: expect.any(Number), error: null })
  await connect(project, { username: 'me', password: 'not this one' })
  expect(await tested()).toMatchObject({ ok: false, error: expect.stringMatching(/Invalid login/) })
  await connect(project, { port: 1 })
  expect(await tested()).toMatchObject({ ok: false, error: expect.stringContaining('ECONNREFUSED') })
  await connect(project, { host: '10.0.0.1' })
  expect(await tested()).toMatchObject({ ok: false, error: expect.stringContaining('must be public') })
  expect(own.received.length).toBe(before)
})

test('a private mail server is refused, by address and by name, and so are other ports', async () => {
  const harness = await start({})
  const project = await harness.project()
  const { mail } = harness.running.services
  for (const host of ['127.0.0.1', '::1', '10.0.0.1', '169.254.169.254', '::ffff:127.0.0.1', '0.0.0.0'])
    await expect(mail.verify({ host, port: 25 })).rejects.toThrow(/must be public/)
  await expect(mail.verify({ host: '192.0.2.1', port: 22 })).rejects.toThrow(/must be public/)
  await connect(project)
  const to = newEmail()
  expect(await send(project, to)).toMatchObject({
    status: 'queued',
    last_error: expect.stringContaining('must be public'),
  })
  expect([own.to(to), installation.to(to)]).toEqual([[], []])
})
