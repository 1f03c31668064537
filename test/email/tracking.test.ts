import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, expect, test } from 'vitest'
import { withTracking } from '#server/providers/mail_tracking.ts'
import { startHarness } from '#test/support/harness.ts'
import { defineTemplate, mailCampaign, mailCampaignOf, reader } from '#test/support/mail_campaigns.ts'
import { startMailServer } from '#test/support/smtp.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url, PUBLIC_URL: 'https://api.trellis.example' } })
const project = await harness.project()
const { admin } = project
let second = Date.now() + 60_000
const nextSecond = () => {
  second += 2000
  harness.setTime(new Date(second))
}
afterEach(nextSecond)
nextSecond()

const html = `<html><body><p><a class="x" href="https://shop.example/?a=1&amp;b=2">Shop</a> <a href='http://shop.example/é'>More</a>
<a href="mailto:help@example.org">Help</a> <a href="#top">Top</a> <a href="{{unsubscribe_url}}">No more</a></p></body></html>`
/** The addresses in the HTML of a message, as a mail client reads them. */
const addressesIn = (raw: string) => {
  const encoded = raw.split('text/html')[1] ?? ''
  const text = Buffer.from(
    encoded
      .replace(/=\r\n/g, '')
      .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()
  return {
    links: [...text.matchAll(/href=["']([^"']*)["']/g)].map(([, url]) => url ?? ''),
    pictures: [...text.matchAll(/<img src="([^"]*)"/g)].map(([, url]) => url ?? ''),
  }
}
const open = (url: string, method = 'GET') =>
  fetch(url.replace('https://api.trellis.example', harness.url), { method, redirect: 'manual' })
const send = async (to: object, fields: object = {}) => {
  const answer = await admin.post('/email/send', {
    subject: 'Hello',
    text: 'Hello https://shop.example',
    html,
    ...to,
    ...fields,
  })
  expect(answer.status, answer.text).toBe(202)
  await project.drain()
  return answer.data.id as string
}
const shown = async (id: string) => (await admin.get(`/email/messages/${id}`)).data
const typesOf = (message: { events: { type: string; detail?: string }[] }) =>
  message.events.map(({ type, detail }) => (detail ? `${type} ${detail}` : type))
const emitted = (id: string) =>
  project.sql(
    `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.email.opened'`,
    [id],
  )

test('with track, a picture reports opening and links report clicks, each once; a click opens too', async () => {
  const user = await reader(project)
  const id = await send({ user_id: user.id }, { track: true, category: 'news' })
  const [received] = mail.to(user.email)
  const { links, pictures } = addressesIn(received?.raw ?? '')
  expect(links.map((url) => url.replace(/\/([eu])\/v2\..*/, '/$1/...'))).toEqual([
    'https://api.trellis.example/e/...',
    'https://api.trellis.example/e/...',
    'mailto:help@example.org',
    '#top',
    'https://api.trellis.example/u/...',
  ])
  expect(pictures).toHaveLength(1)
  expect(received?.text).toContain('https://shop.example')
  expect(await shown(id)).toMatchObject({ track: true, opened_at: null, clicked_at: null })
  for (let n = 0; n < 2; n += 1) {
    const picture = await open(pictures[0] ?? '')
    expect([picture.status, picture.headers.get('content-type'), picture.headers.get('cache-control')]).toEqual([
      200,
      'image/gif',
      'no-store, private',
    ])
    expect(
      Buffer.from(await picture.arrayBuffer())
        .subarray(0, 6)
        .toString(),
    ).toBe('GIF89a')
  }
  expect(typesOf(await shown(id))).toEqual(['queued', 'sent', 'opened'])
  expect(await emitted(user.id)).toEqual([{ properties: { message_id: id, campaign_id: null, variant: null } }])
  for (const url of [links[0], links[0], links[1]]) {
    const answer = await open(url ?? '')
    expect(answer.status).toBe(302)
  }
  expect((await open(links[0] ?? '')).headers.get('location')).toBe('https://shop.example/?a=1&b=2')
  const message = await shown(id)
  expect(typesOf(message)).toEqual([
    'queued',
    'sent',
    'opened',
    'clicked https://shop.example/?a=1&b=2',
    'clicked http://shop.example/%C3%A9',
  ])
  expect(message).toMatchObject({ status: 'sent', opened_at: expect.any(String), clicked_at: expect.any(String) })
  const other = await send({ user_id: user.id }, { track: true })
  const [link] = addressesIn(mail.to(user.email)[1]?.raw ?? '').links
  await open(link ?? '')
  expect(typesOf(await shown(other))).toEqual(['queued', 'sent', 'opened', 'clicked https://shop.example/?a=1&b=2'])
  expect(await emitted(user.id)).toHaveLength(2)
})

test('a link in any script is followed: it leads to its percent-encoded form', async () => {
  const user = await reader(project)
  const url = `https://例え.jp/${'日'.repeat(200)}?q=ü`
  const long = `https://shop.example/${'日'.repeat(1000)}`
  const id = await send({ user_id: user.id }, { track: true, html: `<a href="${url}">a</a><a href="${long}">b</a>` })
  const [link = '', plain] = addressesIn(mail.to(user.email)[0]?.raw ?? '').links
  const answer = await open(link)
  expect([answer.status, answer.headers.get('location')]).toEqual([302, new URL(url).href])
  // its token would not fit into a request
  expect(plain).toBe(long)
  expect(await shown(id)).toMatchObject({ clicked_at: expect.any(String) })
})

test('without track the content is sent as it is', async () => {
  const user = await reader(project)
  const id = await send({ user_id: user.id })
  expect(mail.to(user.email)[0]?.raw).not.toContain('trellis.example/e/')
  expect(await shown(id)).toMatchObject({ track: false })
  // a token for it would record nothing: nobody has agreed to it
  const { services } = harness.running
  const [, url] = /src="([^"]+)"/.exec(withTracking(services, project.id, id, '')) ?? []
  expect((await open(url ?? '')).status).toBe(404)
  expect(await shown(id)).toMatchObject({ opened_at: null })
})

test('no token can be made up or changed, and no redirect leads elsewhere', async () => {
  const user = await reader(project)
  const id = await send({ user_id: user.id }, { track: true })
  const [url = ''] = addressesIn(mail.to(user.email)[0]?.raw ?? '').links
  const token = url.split('/e/')[1] ?? ''
  const parts = token.split('.')
  const changed = parts.map((part, n) =>
    parts.map((each, k) => (k === n ? (part[0] === 'A' ? 'B' : 'A') + part.slice(1) : each)).join('.'),
  )
  const foreign = harness.running.services.secrets.encrypt(
    'mail unsubscription',
    JSON.stringify([project.id, id, 'https://evil.example']),
  )
  for (const bad of [...changed, foreign, 'x', `${token}.x`, 'https:%2F%2Fevil.example', 'v1.a.b.c']) {
    const answer = await open(`${harness.url}/e/${bad}`)
    expect([answer.status, answer.headers.get('location')], bad).toEqual([404, null])
    expect(await answer.json()).toMatchObject({ error: { code: 'NOT_FOUND' } })
  }
  const more = await open(`${url}?url=https://evil.example`)
  expect(more.headers.get('location')).toBe('https://shop.example/?a=1&b=2')
})

test('a link ends with its message, after 90 days, and with its project; a database that is away keeps nobody from it', async () => {
  const on = await harness.project()
  const tracked = async (from: typeof on) => {
    const user = await reader(from)
    const made = await from.admin.post('/email/send', { user_id: user.id, subject: 'Hello', html, track: true })
    expect(made.status, made.text).toBe(202)
    await from.drain()
    const { links, pictures } = addressesIn(mail.to(user.email)[0]?.raw ?? '')
    return { id: made.data.id as string, link: links[0] ?? '', picture: pictures[0] ?? '' }
  }
  const statuses = async ({ link, picture }: { link: string; picture: string }) => {
    const [one, other] = [await open(link), await open(picture)]
    return [one.status, other.status, one.headers.get('location')]
  }
  const followed = [302, 200, 'https://shop.example/?a=1&b=2']
  const over = [404, 404, null]

  const away = await tracked(on)
  await on.sql('alter function api.email_track rename to email_track_gone')
  expect(await statuses(away)).toEqual(followed)
  const sentAt = second
  second += 90 * 86_400_000
  harness.setTime(new Date(second))
  expect(await statuses(away)).toEqual(over)
  await on.sql('alter function api.email_track_gone rename to email_track')
  second = sentAt
  harness.setTime(new Date(second))
  expect(await statuses(away)).toEqual(followed)

  const gone = await tracked(on)
  await on.sql('delete from app.email_messages where id = $1', [gone.id])
  expect(await statuses(gone)).toEqual(over)

  const left = await tracked(on)
  const hold = async (reason: string | null) => {
    await harness.control('update app.tenants set hold = $2 where project_id = $1', [on.id, reason])
    harness.running.services.projectCache.drop(`project:${on.id}`)
  }
  await hold('paused')
  expect(await statuses(left)).toEqual(over)
  // for the moment of a move
  await hold('moving')
  expect(await statuses(left)).toEqual(followed)
  await hold(null)
  expect(await statuses(left)).toEqual(followed)
  expect((await on.admin.delete('')).status).toBe(200)
  expect(await statuses(left)).toEqual(over)
  expect(await statuses(away)).toEqual(over)
})

test('only links to web pages are rewritten, wherever the attribute stands', () => {
  const { services } = harness.running
  const rewritten = (text: string) =>
    withTracking(services, project.id, randomUUID(), text)
      .replace(/"[^"]*\/e\/v2\.[\w.-]*"/g, '"T"')
      .replace(/<img src="T"[^>]*>/, '<IMG>')
  expect(rewritten('<A HREF = "https://a.example" title=">">x</A>')).toBe('<A HREF = "T" title=">">x</A><IMG>')
  expect(rewritten(`<a title='a > b' data-x href='https://a.example'>x</a>`)).toBe(
    `<a title='a > b' data-x href="T">x</a><IMG>`,
  )
  for (const kept of [
    '<a href="javascript:alert(1)">x</a>',
    '<a href="//a.example">x</a>',
    '<a href="https://a b">x</a>',
    '<a data-href="https://a.example">x</a>',
    '<area href="https://a.example">',
    '<p>https://a.example</p>',
    '<!-- <a href="https://a.example">x</a> -->',
    `<img alt="<a href='https://a.example'>">`,
    '<a href="https://a.example',
    `<a href="https://a.example/${'x'.repeat(4000)}">x</a>`,
  ])
    expect(rewritten(kept)).toBe(`${kept}<IMG>`)
  expect(rewritten('<body>x</body></html>')).toBe('<body>x<IMG></body></html>')
  const started = performance.now()
  rewritten(`<a ${'a="'.repeat(50_000)}`)
  rewritten('<a "'.repeat(100_000))
  rewritten('<a href=" '.repeat(100_000))
  rewritten('</body'.repeat(50_000))
  rewritten(`<a ${' '.repeat(300_000)}>`)
  // in one pass; a pattern that begins again at each tag took minutes
  expect(performance.now() - started).toBeLessThan(5000)
})

test('the first 200 links of a message are tracked: a message of nothing but links does not grow to many times its size', () => {
  const { services } = harness.running
  const link = '<a href="https://a.example">x</a>'
  const text = `<p><a href="#top">x</a></p>${link.repeat(20_000)}`
  const made = withTracking(services, project.id, randomUUID(), text)
  expect(made.match(/\/e\/v2\./g)).toHaveLength(201)
  expect(made.endsWith(link) || made.slice(0, made.lastIndexOf('<img')).endsWith(link)).toBe(true)
  expect(made.length).toBeLessThan(text.length + 100_000)
})

test('of a campaign a message that comes back has not been sent; one that was opened before has come', async () => {
  const on = await harness.project()
  await defineTemplate(on, { html, text: null })
  const [one, two] = [await reader(on), await reader(on)]
  const { id } = await mailCampaign(on, { track: true, send_now: true })
  await on.drain()
  await open(addressesIn(mail.to(two.email)[0]?.raw ?? '').pictures[0] ?? '')
  const claims = { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() }
  const report = async (user: { email: string }, bounce_type: string) =>
    on.as('app_worker', claims, 'select api.email_provider_event($1)', [
      JSON.stringify({
        id: randomUUID(),
        type: 'bounce',
        bounce_type,
        message_id: mail.to(user.email)[0]?.headers['message-id'],
      }),
    ])
  await report(one, 'soft')
  expect((await mailCampaignOf(on, id)).counts).toMatchObject({ sent: 2, failed: 0 })
  for (const user of [one, two]) for (let n = 0; n < 2; n += 1) await report(user, 'hard')
  expect((await mailCampaignOf(on, id)).counts).toMatchObject({ sent: 1, failed: 1, opened: 1 })
  const deliveries = (await on.admin.get(`/email/campaigns/${id}/deliveries`)).data
  const of = (user: { id: string }) =>
    deliveries.find(({ app_user_id }: { app_user_id: string }) => app_user_id === user.id)
  expect([of(one), of(two)]).toMatchObject([
    { status: 'failed', code: 'BOUNCED' },
    { status: 'opened', code: null },
  ])
  // whoever opens it has got it after all
  await open(addressesIn(mail.to(one.email)[0]?.raw ?? '').pictures[0] ?? '')
  expect((await mailCampaignOf(on, id)).counts).toMatchObject({ sent: 2, failed: 0, opened: 2 })
})

test('of a campaign opens and clicks are counted, and prove what was uncertain', async () => {
  const on = await harness.project()
  await defineTemplate(on, { html, text: null })
  const [one, two] = [await reader(on), await reader(on)]
  const { id } = await mailCampaign(on, { track: true, send_now: true })
  await on.drain()
  const of = (email: string) => addressesIn(mail.to(email)[0]?.raw ?? '')
  await open(of(one.email).pictures[0] ?? '')
  await open(of(two.email).links[0] ?? '')
  await open(of(two.email).links[1] ?? '')
  expect((await mailCampaignOf(on, id)).counts).toMatchObject({ sent: 2, opened: 2, clicked: 1 })
  const { data } = await on.admin.get(`/email/campaigns/${id}/stats`)
  expect(data).toMatchObject({ open_rate: 1, click_rate: 0.5, hours: [{ sent: 2, opened: 2, clicked: 1 }] })
  const deliveries = (await on.admin.get(`/email/campaigns/${id}/deliveries?status=opened`)).data
  expect(deliveries.filter(({ clicked_at }: { clicked_at: string | null }) => clicked_at)).toHaveLength(1)
  // an attempt without an outcome failed; whoever opens the message proves that it arrived
  const again = await mailCampaign(on, { track: true, audience: { user_ids: [one.id] }, send_now: true })
  const claims = { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() }
  await on.as('app_worker', claims, 'select api.campaign_plan_step($1)', [again.id])
  await on.as('app_worker', claims, 'select api.campaign_claim($1, 500, false)', [again.id])
  const [{ id: message }] = await on.sql(`select m.id from app.email_messages m where m.status = 'queued'`)
  await on.as('app_worker', claims, 'select api.email_attempt_begin($1)', [message])
  await on.drain()
  expect((await mailCampaignOf(on, again.id)).counts).toMatchObject({ sent: 0, failed: 1, opened: 0 })
  await on.as('app_worker', claims, 'select api.email_track($1)', [message])
  expect((await mailCampaignOf(on, again.id)).counts).toMatchObject({ sent: 1, failed: 0, opened: 1 })
  expect((await on.admin.get(`/email/messages/${message}`)).data.status).toBe('sent')
})
