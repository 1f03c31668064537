import { createPublicKey, randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { dkimPurpose } from '#server/providers/domains.ts'
import { verifyDkim } from '#test/support/dkim.ts'
import { type Answer, type Project, startHarness } from '#test/support/harness.ts'
import { templatesOf } from '#test/support/mail_templates.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { newEmail } from '#test/support/sign_in.ts'
import { startMailServer } from '#test/support/smtp.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({
  env: {
    SMTP_URL: mail.url,
    MAIL_FROM: 'Installation <no-reply@trellis.example>',
    PUBLIC_URL: 'https://api.trellis.example',
  },
})
const project = await harness.project()
// sends are limited to ten in a second: the clock of each test is at a second of its own
let second = Date.now() + 60_000
const nextSecond = () => {
  second += 2000
  harness.setTime(new Date(second))
}
afterEach(() => {
  mail.refuse(null)
  nextSecond()
})
nextSecond()

const define = templatesOf(project)
const send = (fields: object, on: Project = project) => on.admin.post('/email/send', fields)
const plain = (to: string, more: object = {}) => ({ to, subject: 'Hello', text: 'Hello there', ...more })
const queued = async (answer: Promise<Answer>): Promise<{ id: string; status: string }> => {
  const { status, data, text } = await answer
  expect(status, text).toBe(202)
  return data
}
const get = async (id: string, on: Project = project) => (await on.admin.get(`/email/messages/${id}`)).data
/** The next attempt of all messages, whenever it is due, without moving the clock far. */
const attempt = async (on: Project = project) => {
  await on.sql(`update app.outbox set due_at = internal.now() - interval '1 minute' where task = 'email__send'`)
  await on.drain()
}
const verified = async (domain: string, on: Project = project) => {
  await harness.control(`select internal.domain_put($1, $2, 'email', 'verified')`, [on.id, domain])
}

describe('a message', () => {
  test('is queued, sent once by a worker, and forgets its content', async () => {
    const to = newEmail()
    const { id, status } = await queued(
      send(plain(to, { html: '<p>Hello</p>', headers: { 'X-Order': '17' }, reply_to: 'help@example.org' })),
    )
    expect(status).toBe('queued')
    expect(mail.to(to)).toEqual([])
    await project.drain()
    await attempt()
    const [received, ...more] = mail.to(to)
    expect(more).toEqual([])
    expect(received?.headers).toMatchObject({
      subject: 'Hello',
      from: 'test <no-reply@trellis.example>',
      'reply-to': 'help@example.org',
      'x-order': '17',
      'auto-submitted': 'auto-generated',
      'message-id': `<${id}@trellis.example>`,
    })
    expect(received?.headers['list-unsubscribe']).toBeUndefined()
    expect(received?.raw).toContain('text/html')
    const message = await get(id)
    expect(message).toMatchObject({ status: 'sent', attempts: 1, sent_at: expect.any(String), next_attempt_at: null })
    expect(message.events.map(({ type }: { type: string }) => type)).toEqual(['queued', 'sent'])
    expect(await project.sql('select from app.email_bodies where message_id = $1', [id])).toEqual([])
  })

  test('comes from a verified domain, signed by its key, with the envelope that its DNS allows', async () => {
    const on = await harness.project()
    const domain = `d${Date.now()}.example.com`
    const attached = await on.admin.post('/domains', { domain, kind: 'email' })
    const requested = plain(newEmail(), { from: `Sales <sales@${domain}>` })
    const refused = await send(requested, on)
    expectRefusal(refused, 400, 'INVALID_SENDER')
    expect(refused.error?.details).toMatchObject({ field: 'from' })
    await verified(domain, on)
    await queued(send(requested, on))
    await on.developer.patch(`/admin/projects/${on.id}`, {
      default_from_email: `hello@${domain}`,
      default_from_name: 'Hello',
    })
    const usual = plain(newEmail())
    await queued(send(usual, on))
    await on.drain()
    const [one] = mail.to(requested.to)
    const [two] = mail.to(usual.to)
    expect(one?.headers['from']).toBe(`Sales <sales@${domain}>`)
    expect(two?.headers['from']).toBe(`Hello <hello@${domain}>`)
    expect(one?.from).toBe(`bounces@send.${domain}`)
    const [row] = await harness.control('select dkim_sealed, dkim_public from app.domains where id = $1', [
      attached.data.id,
    ])
    const pem = harness.running.services.secrets.decrypt(dkimPurpose(on.id, domain), row.dkim_sealed)
    expect(createPublicKey(pem).export({ type: 'spki', format: 'der' }).toString('base64')).toBe(row.dkim_public)
    expect(verifyDkim(one?.raw ?? '', pem)).toBe(true)
    expect(verifyDkim((one?.raw ?? '').replace('Hello there', 'Hello where'), pem)).toBe(false)
    // a domain that is lost meanwhile: the installation's address, under the project's name
    const late = plain(newEmail(), { from: `sales@${domain}` })
    await queued(send(late, on))
    await harness.control(`update app.domains set status = 'failed' where domain = $1`, [domain])
    await on.drain()
    expect(mail.to(late.to)[0]?.headers['from']).toMatch(/<no-reply@trellis\.example>$/)
    expect(mail.to(late.to)[0]?.headers['dkim-signature']).toBeUndefined()
  })

  test('is tried again after 1, 5, 30 minutes, 2 and 8 hours, and then failed', async () => {
    const on = await harness.project()
    const to = newEmail()
    mail.refuse(451)
    const { id } = await queued(send(plain(to), on))
    const start = second
    for (const [index, seconds] of [0, 60, 300, 1800, 7200, 28_800].entries()) {
      if (index > 0) harness.advance(seconds - 1)
      await on.drain()
      const [{ attempts: before }] = await on.sql('select attempts from app.email_messages where id = $1', [id])
      expect(before).toBe(index === 0 ? 1 : index)
      if (index > 0) harness.advance(1)
      await on.drain()
      const [row] = await on.sql('select status, attempts, last_error from app.email_messages where id = $1', [id])
      expect(row).toMatchObject({ status: index === 5 ? 'failed' : 'queued', attempts: index + 1 })
      expect(row.last_error).toContain('refused by the test')
    }
    expect(mail.to(to)).toEqual([])
    second = start
    expect(await on.sql(`select from app.outbox where task = 'email__send'`)).toEqual([])
    expect(await on.sql('select from app.email_bodies')).toEqual([])
  })

  test('that the mail server refuses with 550 is failed at once', async () => {
    mail.refuse(550)
    const { id } = await queued(send(plain(newEmail())))
    await project.drain()
    expect(await get(id)).toMatchObject({
      status: 'failed',
      attempts: 1,
      last_error: expect.stringContaining('refused'),
    })
  })

  test('waits for send_at, and is cancelled until it is sent', async () => {
    const at = new Date(second + 3600_000).toISOString()
    const [one, two] = [newEmail(), newEmail()]
    const first = await queued(send(plain(one, { send_at: at })))
    const other = await queued(send(plain(two, { send_at: at })))
    await project.drain()
    expect(await get(first.id)).toMatchObject({ status: 'queued', send_at: at, attempts: 0 })
    const cancel = (id: string) => project.admin.post(`/email/messages/${id}/cancel`)
    expect((await cancel(first.id)).data).toMatchObject({ id: first.id, status: 'cancelled' })
    expectRefusal(await cancel(first.id), 409, 'CONFLICT')
    await attempt()
    expect(mail.to(one)).toEqual([])
    expect(mail.to(two)).toHaveLength(1)
    expectRefusal(await cancel(other.id), 409, 'CONFLICT')
    expectRefusal(await cancel(randomUUID()), 404, 'NOT_FOUND')
    expectRefusal(await cancel('x'), 400, 'INVALID_ID')
  })

  test('is not cancelled while a worker sends it', async () => {
    const { id } = await queued(send(plain(newEmail())))
    const worker = await openTransaction(project, 'app_worker', { 'app.caller': 'worker' })
    await worker.query('select api.email_attempt_begin($1)', [id])
    const cancelling = project.admin.post(`/email/messages/${id}/cancel`)
    await untilBlocked(project)
    await worker.commit()
    expectRefusal(await cancelling, 409, 'CONFLICT')
  })

  test('whose worker ended during the attempt is sent again when it is transactional, under the same id, and says so', async () => {
    const [to, other] = [newEmail(), newEmail()]
    const first = await queued(send(plain(to)))
    const second = await queued(send(plain(other, { category: 'news' })))
    for (const { id } of [first, second])
      await project.as('app_worker', { 'app.caller': 'worker' }, 'select api.email_attempt_begin($1)', [id])
    await attempt()
    const [again, ...more] = mail.to(to)
    expect([again?.headers['message-id'], more]).toEqual([`<${first.id}@trellis.example>`, []])
    const message = await get(first.id)
    expect(message).toMatchObject({ status: 'sent', attempts: 2 })
    expect(message.events.map(({ type }: { type: string }) => type)).toEqual(['queued', 'outcome_unknown', 'sent'])
    expect(mail.to(other)).toEqual([])
    expect(await get(second.id)).toMatchObject({
      status: 'failed',
      last_error: expect.stringContaining('OUTCOME_UNKNOWN'),
    })
    // what the worker that was taken for dead reports later changes nothing
    await project.as(
      'app_worker',
      { 'app.caller': 'worker' },
      `select api.email_attempt_end($1, 1, 'failed', 'late')`,
      [first.id],
    )
    expect(await get(first.id)).toMatchObject({ status: 'sent' })
  })

  test('takes one address, one sender and harmless headers', async () => {
    const to = newEmail()
    for (const [fields, field] of [
      [{ to: 'a@example.org, b@example.org' }, 'to'],
      [{ to: 'A <a@example.org>' }, 'to'],
      [{ to: 'a@example.org\r\nBcc: b@example.org' }, 'to'],
      [{ to: 'a@localhost' }, 'to'],
      [{ to: undefined }, 'to'],
      [{ user_id: randomUUID() }, 'to'],
      [{ subject: undefined }, 'subject'],
      [{ subject: '' }, 'subject'],
      [{ subject: 'a\r\nBcc: b@example.org' }, 'subject'],
      [{ subject: 'x'.repeat(301) }, 'subject'],
      [{ text: undefined }, 'html'],
      [{ template_key: 'a' }, 'template_key'],
      [{ from: 'a@example.org, b@example.org' }, 'from'],
      [{ from: 'a\r\nBcc: b@example.org <a@example.org>' }, 'from'],
      [{ reply_to: 'x' }, 'reply_to'],
      [{ headers: { Bcc: 'b@example.org' } }, 'headers'],
      [{ headers: { 'X-A\r\nBcc': 'b@example.org' } }, 'headers'],
      [{ headers: { 'X-A': 'a\r\nBcc: b@example.org' } }, 'headers'],
      [{ headers: { 'X-A': 1 } }, 'headers'],
      [{ headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`X-${n}`, 'a'])) }, 'headers'],
      [{ send_at: 'tomorrow' }, 'send_at'],
      [{ category: 'No!' }, 'category'],
      [{ variables: [] }, 'variables'],
    ] as const)
      expectInvalid(await send({ ...plain(to), ...fields }), field)
    expectInvalid(await send({ to, template_key: 'nothing' }), 'template_key')
    expectRefusal(await send({ user_id: randomUUID(), subject: 'a', text: 'b' }), 404, 'USER_NOT_FOUND')
    const user = await project.user()
    expectInvalid(await send({ user_id: user.id, subject: 'a', text: 'b' }), 'user_id')
    // each part has less than 1 MB, and both together more
    const { key } = await define({ subject: 'x', html: '{{a}}'.repeat(300), text: '{{a}}'.repeat(300) })
    expectInvalid(await send({ to, template_key: key, variables: { a: 'x'.repeat(2000) } }), 'variables')
    expect(await project.sql('select from app.email_messages where to_address = $1', [to])).toEqual([])
  })

  test('with an Idempotency-Key is sent once', async () => {
    const to = newEmail()
    const key = { 'idempotency-key': randomUUID() }
    const once = () => project.admin.post('/email/send', plain(to), key)
    const answers = await Promise.all([once(), once(), once()])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 202])
    expect(new Set(answers.map(({ data }) => data.id)).size).toBe(1)
    expectRefusal(await project.admin.post('/email/send', plain(newEmail()), key), 409, 'IDEMPOTENCY_CONFLICT')
    await project.drain()
    expect(mail.to(to)).toHaveLength(1)
  })

  test('ten calls a second, for each project', async () => {
    const on = await harness.project()
    const answers = await Promise.all(Array.from({ length: 14 }, () => send(plain(newEmail()), on)))
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(10)
    const refused = answers.find(({ status }) => status === 429)
    expect([refused?.error?.code, refused?.headers.get('retry-after')]).toEqual(['RATE_LIMITED', '1'])
    expectRefusal(await on.admin.post('/email/send-batch', { messages: [plain(newEmail())] }), 429, 'RATE_LIMITED')
    nextSecond()
    await queued(send(plain(newEmail()), on))
  })
})

describe('a batch', () => {
  const batch = (messages: unknown) => project.admin.post('/email/send-batch', { messages })
  test('is queued whole, in order', async () => {
    const to = Array.from({ length: 100 }, () => newEmail())
    const answer = await batch(to.map((each) => plain(each)))
    expect([answer.status, answer.data.length], answer.text).toEqual([202, 100])
    expect((await get(answer.data[42].id)).to).toBe(to[42])
    await project.drain()
    expect(to.map((each) => mail.to(each).length)).toEqual(to.map(() => 1))
  })

  test('or not at all', async () => {
    const good = plain(newEmail())
    expectInvalid(await batch([]), 'messages')
    expectInvalid(await batch(Array.from({ length: 101 }, () => good)), 'messages')
    expectInvalid(await batch([good, { ...good, to: 'x' }]), 'messages.1.to')
    expectInvalid(await batch([good, { to: good.to, template_key: 'nothing' }]), 'messages.1.template_key')
    expectRefusal(await batch([good, { user_id: randomUUID(), subject: 'a', text: 'b' }]), 404, 'USER_NOT_FOUND')
    const { key } = await define()
    expectRefusal(await batch([good, { to: good.to, template_key: key }]), 400, 'TEMPLATE_VARIABLE_MISSING')
    expectRefusal(await batch([good, { ...good, from: 'a@example.org' }]), 400, 'INVALID_SENDER')
    expect(await project.sql('select from app.email_messages where to_address = $1', [good.to])).toEqual([])
  })
})

test('the list is newest first, by status and user, and pages by cursor', async () => {
  const on = await harness.project()
  const user = await on.user()
  const email = newEmail()
  await on.sql('update app.users set email = $2 where id = $1', [user.id, email])
  const ids: string[] = []
  for (let n = 0; n < 5; n += 1) {
    nextSecond()
    ids.unshift((await queued(send(n % 2 ? plain(email) : plain(newEmail()), on))).id)
  }
  const list = async (query: string) => (await on.admin.get(`/email/messages?${query}`)).body
  const first = await list('limit=3')
  expect(first.pagination.total).toBeNull()
  const second = await list(`limit=3&cursor=${first.pagination.next_cursor}`)
  expect([...first.data, ...second.data].map(({ id }: { id: string }) => id)).toEqual(ids)
  expect(second.pagination.next_cursor).toBeNull()
  // a message to an address is its user's too
  expect((await list(`user_id=${user.id}`)).data.map(({ id }: { id: string }) => id)).toEqual([ids[1], ids[3]])
  expect((await list('status=sent')).data).toEqual([])
  expect((await list('status=queued')).data).toHaveLength(5)
  expectRefusal(await on.admin.get('/email/messages?cursor=x'), 400, 'INVALID_INPUT')
  expectRefusal(await on.admin.get('/email/messages?status=x'), 400, 'INVALID_INPUT')
  expectRefusal(await project.admin.get(`/email/messages/${ids[0]}`), 404, 'NOT_FOUND')
  // a deleted user's messages go with the user, and what is queued is not sent
  await on.admin.delete(`/users/${user.id}`)
  expect((await list('')).data).toHaveLength(3)
  await on.drain()
  expect(mail.to(email)).toEqual([])
})

test('nobody but administrators sends', async () => {
  const user = await project.user()
  for (const client of [user, project.app, project.server, harness.anyone])
    expect([401, 403]).toContain(
      (await client.post(`/admin/projects/${project.id}/email/send`, plain(newEmail()))).status,
    )
  await expect(
    project.as(
      'app_user',
      { 'app.caller': 'user', 'app.user_id': user.id },
      `select internal.email_queue('{}', '{}', '')`,
    ),
  ).rejects.toThrow(/permission denied/)
})
