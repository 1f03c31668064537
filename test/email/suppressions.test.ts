import { createHmac, randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type Answer, type Project, startHarness, type User } from '#test/support/harness.ts'
import { mailCampaign } from '#test/support/mail_campaigns.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { newEmail } from '#test/support/sign_in.ts'
import { startMailServer } from '#test/support/smtp.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url, PUBLIC_URL: 'https://api.trellis.example' } })
const project = await harness.project()
let second = Date.now() + 60_000
const nextSecond = () => {
  second += 2000
  harness.setTime(new Date(second))
}
afterEach(nextSecond)
nextSecond()

const send = (to: string, category = 'transactional', on: Project = project) =>
  on.admin.post('/email/send', { to, subject: 'Hello', text: 'Hello {{unsubscribe_url}}', category })
const sent = async (to: string, category?: string) => {
  const answer = await send(to, category)
  expect(answer.status, answer.text).toBe(202)
  await project.drain()
  const last = mail.to(to).at(-1)
  if (!last) throw new Error('there is a mail')
  return { id: answer.data.id as string, mail: last }
}
const suppress = (fields: object) => project.admin.post('/email/suppressions', fields)
const withEmail = async (isVerified = true): Promise<User & { email: string }> => {
  const user = await project.user()
  const email = newEmail()
  await project.sql('update app.users set email = $2, email_verified = $3 where id = $1', [user.id, email, isVerified])
  return { ...user, email }
}
const events = async (user: User) =>
  project.sql(
    `select event_name, properties from app.engagement_events where app_user_id = $1 and event_name like 'svc.email.%' order by received_at, id`,
    [user.id],
  )

describe('a suppression', () => {
  test('stops everything, or after an unsubscription what is not transactional', async () => {
    for (const reason of ['manual', 'bounce', 'complaint']) {
      const address = newEmail()
      expect((await suppress({ address: address.toUpperCase(), reason })).data).toMatchObject({
        address,
        reason,
        category: null,
      })
      expectRefusal(await send(address), 409, 'SUPPRESSED')
      expectRefusal(await send(address, 'news'), 409, 'SUPPRESSED')
      expect(await project.sql('select from app.email_messages where to_address = $1', [address])).toEqual([])
      nextSecond()
    }
    const [one, all] = [newEmail(), newEmail()]
    await suppress({ address: one, reason: 'unsubscribe', category: 'news' })
    await suppress({ address: all, reason: 'unsubscribe' })
    expectRefusal(await send(one, 'news'), 409, 'SUPPRESSED')
    expect((await send(one, 'offers')).status).toBe(202)
    expectRefusal(await send(all, 'offers'), 409, 'SUPPRESSED')
    expect((await send(all)).status).toBe(202)
  })

  test('stops codes and links of sign-in too, and nobody is told', async () => {
    for (const reason of ['manual', 'bounce', 'complaint']) {
      const address = newEmail()
      const me = await withEmail()
      const guest = await project.user()
      await suppress({ address, reason })
      await suppress({ address: me.email.toUpperCase(), reason })
      const asked = [
        project.app.post('/client/auth/email/otp/request', { email: address }),
        project.app.post('/client/auth/magic-link/request', { email: address }),
        guest.post('/client/auth/email/otp/request', { email: address, purpose: 'link' }),
        me.post('/client/auth/email/otp/request', { email: me.email, purpose: 'delete' }),
      ]
      const free = await project.app.post('/client/auth/email/otp/request', { email: newEmail() })
      for (const answer of await Promise.all(asked)) expect([answer.status, answer.data]).toEqual([200, free.data])
      await project.drain()
      expect([...mail.to(address), ...mail.to(me.email)]).toEqual([])
      nextSecond()
    }
    const unsubscribed = newEmail()
    await suppress({ address: unsubscribed, reason: 'unsubscribe' })
    await project.app.post('/client/auth/email/otp/request', { email: unsubscribed })
    await project.drain()
    expect(mail.to(unsubscribed)).toHaveLength(1)
  })

  test('is kept once, listed newest first, and deleted by address', async () => {
    const address = newEmail()
    const first = await suppress({ address })
    expect([first.status, first.data.reason]).toEqual([201, 'manual'])
    expect((await suppress({ address })).data).toEqual(first.data)
    expect((await suppress({ address })).status).toBe(200)
    await suppress({ address, reason: 'unsubscribe', category: 'news' })
    const listed = await project.admin.get(`/email/suppressions?address=${address}`)
    expect(listed.body).toMatchObject({ total: 2, data: [{ category: 'news' }, { reason: 'manual' }] })
    expect((await project.admin.get(`/email/suppressions?address=${address}&reason=manual`)).body.total).toBe(1)
    expect((await project.admin.delete(`/email/suppressions?address=${address}`)).data).toEqual({ deleted: true })
    expectRefusal(await project.admin.delete('/email/suppressions', { address }), 404, 'NOT_FOUND')
    expect((await send(address)).status).toBe(202)
    expectInvalid(await project.admin.delete('/email/suppressions', {}), 'address')
    expectInvalid(await suppress({ address, category: 'news' }), 'category')
    expectInvalid(await suppress({ address, reason: 'unsubscribe', category: 'transactional' }), 'category')
    expectInvalid(await suppress({ address: 'x' }), 'address')
    expectInvalid(await suppress({ address, reason: 'x' }), 'reason')
    expectRefusal(await project.admin.get('/email/suppressions?reason=x'), 400, 'INVALID_INPUT')
    const { data } = await project.admin.get('/audit-events?limit=20')
    expect(data.map(({ action }: { action: string }) => action)).toContain('email.delete')
  })

  test('that comes while a message is queued stops it; in a batch it is noted', async () => {
    const address = newEmail()
    const { data } = await send(address)
    await suppress({ address })
    await project.drain()
    expect(mail.to(address)).toEqual([])
    expect((await project.admin.get(`/email/messages/${data.id}`)).data).toMatchObject({
      status: 'suppressed',
      attempts: 0,
    })
    const other = newEmail()
    const message = { subject: 'a', text: 'b' }
    const batch = await project.admin.post('/email/send-batch', {
      messages: [
        { to: address, ...message },
        { to: other, ...message },
      ],
    })
    expect(batch.data.map(({ status }: { status: string }) => status)).toEqual(['suppressed', 'queued'])
  })

  test('of one project says nothing in another', async () => {
    const other = await harness.project()
    const address = newEmail()
    await suppress({ address })
    expect((await send(address, 'transactional', other)).status).toBe(202)
    expect((await other.admin.get('/email/suppressions')).body.total).toBe(0)
  })
})

describe('the link to unsubscribe', () => {
  const open = (method: string, url: string, init: RequestInit = {}) =>
    fetch(url.replace('https://api.trellis.example', harness.url), { method, ...init })
  const linkOf = (headers: Readonly<Record<string, string>>) =>
    /^<(.*)>$/.exec(headers['list-unsubscribe'] ?? '')?.[1] ?? ''

  test('is in mail that is not transactional, in headers and content', async () => {
    const to = newEmail()
    const { mail: news } = await sent(to, 'news')
    const url = linkOf(news.headers)
    expect(url).toMatch(/^https:\/\/api\.trellis\.example\/u\/v2\.[\w.-]+$/)
    expect(news.headers['list-unsubscribe-post']).toBe('List-Unsubscribe=One-Click')
    expect(news.text).toBe(`Hello ${url}`)
    const { mail: plain } = await sent(to)
    expect(plain.headers['list-unsubscribe']).toBeUndefined()
  })

  test('asks on GET and changes nothing; POST unsubscribes from that category, once', async () => {
    const user = await withEmail()
    const url = linkOf((await sent(user.email, 'news')).mail.headers)
    const page = await open('GET', url, { headers: { 'accept-language': 'de' } })
    const html = await page.text()
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(html).toContain('<html lang="de">')
    expect(html).toContain('<form method="post"><button>Abbestellen</button>')
    expect(html).not.toContain(user.email)
    expect((await send(user.email, 'news')).status).toBe(202)
    const click = {
      body: 'List-Unsubscribe=One-Click',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }
    const clicks = await Promise.all([open('POST', url, click), open('POST', url, click), open('POST', url)])
    expect(clicks.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await clicks[0]?.text()).not.toContain('<form')
    expectRefusal(await send(user.email, 'news'), 409, 'SUPPRESSED')
    expect((await send(user.email, 'offers')).status).toBe(202)
    expect(await events(user)).toEqual([{ event_name: 'svc.email.unsubscribed', properties: { category: 'news' } }])
    expect((await user.get('/client/email/preferences')).data.categories).toMatchObject({ news: false })
    // an address without a user
    const stranger = newEmail()
    const other = linkOf((await sent(stranger, 'news')).mail.headers)
    expect((await open('POST', other)).status).toBe(200)
    expectRefusal(await send(stranger, 'news'), 409, 'SUPPRESSED')
  })

  test('that was altered, or made for something else, is 404', async () => {
    const url = linkOf((await sent(newEmail(), 'news')).mail.headers)
    const { secrets } = harness.running.services
    const token = url.split('/u/')[1] ?? ''
    const altered = [...token].map((letter, index) =>
      index % 17 === 5 ? `${token.slice(0, index)}${letter === 'A' ? 'B' : 'A'}${token.slice(index + 1)}` : null,
    )
    const gone = secrets.encrypt('mail unsubscription', JSON.stringify([randomUUID(), 'a@example.org', 'news']))
    for (const bad of [
      ...altered.filter((each) => each !== null),
      'x',
      `${token}.x`,
      secrets.encrypt('another', '[]'),
      gone,
    ])
      for (const method of ['GET', 'POST'])
        expect((await open(method, `${harness.url}/u/${bad}`)).status, `${method} ${bad}`).toBe(404)
  })
})

describe('preferences', () => {
  const put = (user: User, body: object): Promise<Answer> => user.put('/client/email/preferences', body)

  test('are the user’s own, merge by category, and stop what is not transactional', async () => {
    const [user, other] = [await withEmail(), await withEmail()]
    expect((await put(user, { categories: { news: false } })).data).toMatchObject({
      categories: { news: false },
      unsubscribed_all: false,
    })
    expect((await put(user, { categories: { tips: true } })).data.categories).toMatchObject({ news: false, tips: true })
    expectRefusal(await send(user.email, 'news'), 409, 'SUPPRESSED')
    expect((await send(other.email, 'news')).status).toBe(202)
    expect((await put(user, { unsubscribed_all: true })).data.unsubscribed_all).toBe(true)
    expectRefusal(await send(user.email, 'tips'), 409, 'SUPPRESSED')
    expect((await send(user.email)).status).toBe(202)
    expect(await events(user)).toEqual([
      { event_name: 'svc.email.unsubscribed', properties: { category: 'news' } },
      { event_name: 'svc.email.unsubscribed', properties: { category: null } },
    ])
    expect((await other.get('/client/email/preferences')).data.unsubscribed_all).toBe(false)
    await expect(
      project.as('app_user', { 'app.caller': 'user', 'app.user_id': other.id }, 'select * from app.email_preferences'),
    ).rejects.toThrow(/permission denied/)
  })

  test('show the categories of the templates', async () => {
    const on = await harness.project()
    const template = { key: 'weekly', name: 'Weekly', subject: 'a', text: 'b', category: 'weekly-news' }
    await on.admin.post('/email/templates', template)
    const user = await on.user()
    expect((await user.get('/client/email/preferences')).data).toEqual({
      categories: { 'weekly-news': true },
      unsubscribed_all: false,
    })
  })

  test('take back an unsubscription only for who has proved the address', async () => {
    for (const isVerified of [true, false]) {
      const user = await withEmail(isVerified)
      await suppress({ address: user.email, reason: 'unsubscribe', category: 'news' })
      await suppress({ address: user.email, reason: 'unsubscribe' })
      const answer = await put(user, { categories: { news: true }, unsubscribed_all: false })
      expect(answer.data).toMatchObject({ categories: { news: isVerified }, unsubscribed_all: !isVerified })
      expect((await send(user.email, 'news')).status).toBe(isVerified ? 202 : 409)
    }
  })

  test('of two users who merge: what either refused', async () => {
    const [survivor, other] = [await withEmail(), await project.user()]
    await project.sql('update app.users set external_id = $2 where id = $1', [survivor.id, survivor.id])
    await put(survivor, { categories: { a: false, b: true, c: true } })
    await put(other, { categories: { b: false, d: false }, unsubscribed_all: false })
    const merged = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
    expect(merged.status, merged.text).toBe(200)
    expect((await survivor.get('/client/email/preferences')).data).toMatchObject({
      categories: { a: false, b: false, c: true, d: false },
      unsubscribed_all: false,
    })
  })

  test('refuse what is no choice', async () => {
    const user = await withEmail()
    for (const categories of [[], { A: true }, { transactional: false }, { a: 1 }, { a: null }])
      expectInvalid(await put(user, { categories }), 'categories')
    const many = (from: number) => Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`c${from + n}`, false]))
    expectInvalid(await put(user, { categories: { ...many(0), x: true } }), 'categories')
    expect((await put(user, { categories: many(0) })).status).toBe(200)
    expectInvalid(await put(user, { categories: { x: true } }), 'categories')
    expectInvalid(await put(user, { unsubscribed_all: 'yes' }), 'unsubscribed_all')
    expect((await put(user, {})).status).toBe(200)
  })
})

describe('the webhook of mail providers', () => {
  const secret = 'a secret of the provider'
  const post = (body: object | string, more: { key?: string; query?: string; signature?: string } = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const signature =
      more.signature ??
      createHmac('sha256', more.key ?? secret)
        .update(text)
        .digest('hex')
    return fetch(`${harness.url}/webhooks/email${more.query ?? `?project_id=${project.id}`}`, {
      method: 'POST',
      body: text,
      headers: { 'content-type': 'application/json', 'x-email-signature': signature },
    }).then(async (answer) => ({ status: answer.status, body: JSON.parse(await answer.text()) }))
  }
  const configure = (config: object, on: Project = project) =>
    on.admin.post('/integrations', { provider: 'smtp', config })
  const codeOf = (answer: { status: number; body: any }) => [answer.status, answer.body.error?.code]

  test('needs a project, a secret and a signature', async () => {
    const event = { id: randomUUID(), type: 'bounce' }
    expect(codeOf(await post(event))).toEqual([404, 'NOT_CONFIGURED'])
    const server = { host: '127.0.0.1', port: 2525 }
    await configure(server)
    expect(codeOf(await post(event))).toEqual([404, 'NOT_CONFIGURED'])
    const made = await configure({ ...server, webhook_secret: secret })
    expect(made.data.webhook_url).toBe(`https://api.trellis.example/webhooks/email?project_id=${project.id}`)
    expect(codeOf(await post(event, { query: '' }))).toEqual([400, 'MISSING_PROJECT'])
    expect(codeOf(await post(event, { query: '?project_id=x' }))).toEqual([400, 'MISSING_PROJECT'])
    expect(codeOf(await post(event, { query: `?project_id=${randomUUID()}` }))).toEqual([404, 'NOT_CONFIGURED'])
    for (const wrong of [{ key: 'wrong' }, { signature: '' }, { signature: 'x'.repeat(64) }, { signature: 'ab' }])
      expect(codeOf(await post(event, wrong))).toEqual([401, 'INVALID_SIGNATURE'])
    for (const bad of [
      '',
      '{',
      '[]',
      { type: 'bounce' },
      { id: '', type: 'bounce' },
      { id: 'a', type: 'x' },
      { id: 'a', type: 'bounce', address: 1 },
    ])
      expect(codeOf(await post(bad))).toEqual([400, 'INVALID_BODY'])
    expect((await post(event)).body).toEqual({ data: { received: true, is_new: true } })
    expect((await post(event)).body).toEqual({ data: { received: true, is_new: false } })
  })

  test('moves a message, and suppresses its address after a hard bounce or a complaint', async () => {
    await project.sql(`update app.integrations set is_active = false where provider = 'smtp'`)
    const user = await withEmail()
    const messages: { id: string; mail: { headers: Readonly<Record<string, string>> } }[] = []
    for (let n = 0; n < 4; n += 1) messages.push(await sent(user.email))
    const [one, two, three, four] = messages
    await project.sql(`update app.integrations set is_active = true where provider = 'smtp'`)
    const report = (type: string, of: typeof one, more: object = {}) =>
      post({ id: randomUUID(), type, message_id: of?.mail.headers['message-id'], ...more })
    const statusOf = async (of: typeof one) => (await project.admin.get(`/email/messages/${of?.id}`)).data.status
    await report('delivered', one)
    await report('bounce', two, { bounce_type: 'soft' })
    expect([await statusOf(one), await statusOf(two)]).toEqual(['delivered', 'sent'])
    expect((await project.admin.get(`/email/suppressions?address=${user.email}`)).body.total).toBe(0)
    // the address of the message counts, not that of the report
    await report('bounce', three, { address: 'somebody@example.org' })
    expect(await statusOf(three)).toBe('bounced')
    await report('delivered', three)
    expect(await statusOf(three)).toBe('bounced')
    await report('complaint', one)
    expect(await statusOf(one)).toBe('complained')
    const { data } = await project.admin.get(`/email/suppressions?address=${user.email}`)
    expect(data.map(({ reason }: { reason: string }) => reason).sort()).toEqual(['bounce', 'complaint'])
    expect((await project.admin.get('/email/suppressions?address=somebody@example.org')).body.total).toBe(0)
    expectRefusal(await send(user.email), 409, 'SUPPRESSED')
    expect((await events(user)).map(({ properties }) => properties.bounce_type)).toEqual(['soft', 'hard'])
    expect(await statusOf(four)).toBe('sent')
    // without a message the address decides
    const address = newEmail()
    await post({ id: randomUUID(), type: 'bounce', bounce_type: 'permanent', address: address.toUpperCase() })
    expectRefusal(await send(address), 409, 'SUPPRESSED')
  })

  test('the same event from two deliveries at once counts once', async () => {
    const user = await withEmail()
    const event = { id: randomUUID(), type: 'bounce', address: user.email }
    const answers = await Promise.all(Array.from({ length: 6 }, () => post(event)))
    expect(answers.filter(({ body }) => body.data?.is_new)).toHaveLength(1)
    expect(await events(user)).toHaveLength(1)
  })

  test('takes 100 a second', async () => {
    nextSecond()
    const answers: Awaited<ReturnType<typeof post>>[] = []
    for (let n = 0; n < 105; n += 15)
      answers.push(
        ...(await Promise.all(Array.from({ length: 15 }, () => post({ id: randomUUID(), type: 'delivered' })))),
      )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(100)
    expect(answers.filter(({ body }) => body.error?.code === 'RATE_LIMITED')).toHaveLength(5)
  })
})

/** The HTML of a message as a mail client reads it. */
const htmlOf = ({ raw }: { raw: string }) =>
  (raw.split('text/html')[1] ?? '')
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

test('a mark in a value stays text: in HTML, text and subject, in a locale and from a campaign, in the name of a project', async () => {
  const mark = '{{unsubscribe_url}}'
  const on = await harness.project()
  const made = await on.admin.post('/email/templates', {
    key: 'marked',
    name: 'News',
    category: 'news',
    subject: 'For {{display_name}}',
    html: '<p>{{display_name}}</p><a href="{{unsubscribe_url}}">no more</a>',
    text: '{{display_name}}: {{ unsubscribe_url | none }}',
    locales: { de: { text: 'Hallo {{display_name}}: {{unsubscribe_url}}' } },
  })
  expect(made.status, made.text).toBe(201)
  const readers = await Promise.all(
    ['en', 'de'].map(async (locale) => {
      const { id } = await on.user()
      const email = newEmail()
      await on.sql(`update app.users set email = $2, display_name = $3, properties = $4 where id = $1`, [
        id,
        email,
        mark,
        { locale },
      ])
      return { id, email, locale }
    }),
  )
  for (const { id } of readers) {
    const variables = { display_name: mark }
    expect((await on.admin.post('/email/send', { user_id: id, template_key: 'marked', variables })).status).toBe(202)
  }
  await on.drain()
  await mailCampaign(on, { template_key: 'marked', send_now: true })
  await on.drain()
  const links = (text: string) => text.match(/https:\/\/api\.trellis\.example\/u\/[\w.-]+/g) ?? []
  for (const { email, locale } of readers) {
    const mails = mail.to(email)
    expect(mails).toHaveLength(2)
    for (const { headers, text, raw } of mails) {
      expect(headers['subject']).toBe(`For ${mark}`)
      expect(text).toMatch(
        locale === 'de' ? /^Hallo \{\{unsubscribe_url\}\}: https:/ : /^\{\{unsubscribe_url\}\}: https:/,
      )
      expect(htmlOf({ raw })).toContain(`<p>${mark}</p>`)
      expect([links(text).length, links(htmlOf({ raw })).length]).toEqual([1, 1])
    }
  }
  // a message without a template is the sender's own: its marks are filled in
  const plain = newEmail()
  expect((await send(plain, 'news', on)).status).toBe(202)
  await on.drain()
  expect(links(mail.to(plain)[0]?.text ?? '')).toHaveLength(1)

  await on.developer.patch(`/admin/projects/${on.id}`, { name: '{{code}}' })
  const address = newEmail()
  await on.app.post('/client/auth/email/otp/request', { email: address })
  await on.drain()
  const [code] = mail.to(address)
  expect(code?.text).toContain('{{code}}')
  expect(code?.text).toMatch(/\b\d{6}\b/)
})
