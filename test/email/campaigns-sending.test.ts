// Campaigns of mail: who gets a message, when, and what is cancelled.
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { defineTemplate, mailCampaign, mailCampaignOf, reader, readers } from '#test/support/mail_campaigns.ts'
import { deliveriesOf } from '#test/support/push.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { startMailServer } from '#test/support/smtp.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url, PUBLIC_URL: 'https://api.trellis.example' } })
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

const campaigns = '/email/campaigns'
const withTemplate = async () => {
  const on = await harness.project()
  await defineTemplate(on)
  return on
}

describe('sending', () => {
  test('two users who merge get one message of a campaign: the one that has come further, else the survivor’s', async () => {
    const on = await withTemplate()
    const claims = { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() }
    const pairs = await Promise.all([0, 1].map(async () => [await reader(on), await reader(on)] as const))
    const { id } = await mailCampaign(on, { send_now: true })
    await on.as('app_worker', claims, 'select api.campaign_plan_step($1)', [id])
    await on.as('app_worker', claims, 'select api.campaign_claim($1, 500, false)', [id])
    const messageOf = async (user: { id: string }) =>
      (await on.sql('select id from app.email_messages where app_user_id = $1', [user.id]))[0].id as string
    const [[kept, merged], [waits, arrived]] = pairs as [(typeof pairs)[number], (typeof pairs)[number]]
    const message = await messageOf(arrived)
    await on.as('app_worker', claims, 'select api.email_attempt_begin($1)', [message])
    await on.as('app_worker', claims, `select api.email_attempt_end($1, 1, 'sent')`, [message])
    for (const [survivor, other] of [
      [kept, merged],
      [waits, arrived],
    ] as const)
      await on.sql('select internal.merge__push_deliveries($1, $2)', [survivor.id, other.id])
    await on.drain()
    expect([kept, merged, waits].map(({ email }) => mail.to(email).length)).toEqual([1, 0, 0])
    expect(await mailCampaignOf(on, id)).toMatchObject({
      status: 'sent',
      counts: { targeted: 4, sent: 2, skipped: 2, failed: 0 },
    })
    const left = await on.sql('select app_user_id, status from app.campaign_deliveries order by app_user_id')
    expect(left.map(({ app_user_id }) => app_user_id).sort()).toEqual([kept.id, waits.id].sort())
  })

  test('of two users who merge, the message that a mail server is taking stays, and the other is cancelled', async () => {
    const on = await withTemplate()
    const claims = { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() }
    const [survivor, other] = [await reader(on), await reader(on)]
    const { id } = await mailCampaign(on, { send_now: true })
    await on.as('app_worker', claims, 'select api.campaign_plan_step($1)', [id])
    await on.as('app_worker', claims, 'select api.campaign_claim($1, 500, false)', [id])
    const [message] = await on.sql('select id from app.email_messages where app_user_id = $1', [other.id])
    await on.as('app_worker', claims, 'select api.email_attempt_begin($1)', [message.id])
    await on.sql('select internal.merge__push_deliveries($1, $2)', [survivor.id, other.id])
    await on.as('app_worker', claims, `select api.email_attempt_end($1, 1, 'sent')`, [message.id])
    await on.drain()
    expect(mail.to(survivor.email)).toEqual([])
    expect(await mailCampaignOf(on, id)).toMatchObject({
      status: 'sent',
      counts: { targeted: 2, sent: 1, skipped: 1, failed: 0 },
    })
  })

  test('goes by the path of all mail, in the language of each user, with the headers to unsubscribe', async () => {
    const on = await withTemplate()
    await on.admin.patch('/email/templates/news', {
      locales: { de: { subject: 'Neues für {{display_name|dich}}', text: '{{offer}} {{pet|Tier}}' } },
    })
    const [one, two] = [
      await reader(on, { offer: '<mine>', pet: 'Cat' }),
      await reader(on, { locale: 'de-AT', pet: 'Hund' }),
    ]
    const { id } = await mailCampaign(on, {
      variables: { offer: '20 % & more' },
      reply_to: 'help@example.org',
      send_now: true,
    })
    await on.drain()
    const [first] = mail.to(one.email)
    expect(first?.headers).toMatchObject({
      subject: 'News for Reader',
      'reply-to': 'help@example.org',
      'list-unsubscribe': expect.stringMatching(/^<https:\/\/api\.trellis\.example\/u\/v2\./),
      'list-unsubscribe-post': 'List-Unsubscribe=One-Click',
    })
    // what the campaign says wins over what users write about themselves
    expect(first?.text).toContain('20 % & more')
    expect(first?.text).toContain('https://api.trellis.example/u/')
    expect(first?.raw).not.toContain('/e/v1')
    expect(mail.to(two.email)[0]).toMatchObject({ text: '20 % & more Hund' })
    const campaign = await mailCampaignOf(on, id)
    expect(campaign).toMatchObject({
      status: 'sent',
      counts: { targeted: 2, sent: 2, failed: 0, skipped: 0 },
      finished_at: expect.any(String),
    })
    const { data } = await on.admin.get(`${campaigns}/${id}/deliveries?status=sent`)
    expect(data).toHaveLength(2)
    const [{ message_id }] = data.filter((each: { app_user_id: string }) => each.app_user_id === one.id)
    expect((await on.admin.get(`/email/messages/${message_id}`)).data).toMatchObject({
      status: 'sent',
      template_key: 'news',
      category: 'news',
      user_id: one.id,
    })
    expect(first?.headers['message-id']).toContain(message_id)
    expectRefusal(await on.admin.patch(`${campaigns}/${id}`, { name: 'late' }), 409, 'CAMPAIGN_LOCKED')
    expectRefusal(await on.admin.post(`${campaigns}/${id}/schedule`), 409, 'ALREADY_SCHEDULED')
    for (const verb of ['pause', 'resume', 'cancel'])
      expectRefusal(await on.admin.post(`${campaigns}/${id}/${verb}`), 409, 'CAMPAIGN_LOCKED')
  })

  test('skips whoever has no address, is suppressed, has unsubscribed, is banned or in quiet hours', async () => {
    harness.setTime('2026-12-05T23:30:00Z')
    const on = await withTemplate()
    const users = await Promise.all(Array.from({ length: 7 }, () => reader(on)))
    const [plain, bounced, complained, left, chose, banned, day] = users
    const none = await on.user()
    await on.admin.post('/email/suppressions', { address: bounced!.email, reason: 'bounce' })
    await on.admin.post('/email/suppressions', { address: complained!.email, reason: 'complaint' })
    await on.admin.post('/email/suppressions', { address: left!.email, reason: 'unsubscribe', category: 'news' })
    await chose!.put('/client/email/preferences', { categories: { news: false } })
    await on.sql(`update app.users set timezone = case id when $1 then 'Asia/Tokyo' else 'UTC' end`, [day!.id])
    const fields = { audience: { user_ids: [...users.map(({ id }) => id), none.id] } }
    const draft = await mailCampaign(on, fields)
    const preview = await on.admin.post(`${campaigns}/${draft.id}/preview`, {})
    expect(preview.data, preview.text).toMatchObject({
      audience_count: 8,
      addresses: 7,
      by_locale: { default: 8 },
      skipped: { no_address: 1, suppressed: 2, opted_out: 2, quiet: 0, capped: 0 },
    })
    const { id } = await mailCampaign(on, { ...fields, quiet_hours: { start: '23:00', end: '06:00' }, send_now: true })
    expect((await on.admin.post(`${campaigns}/${id}/preview`, {})).data.skipped.quiet).toBe(2)
    await on.as(
      'app_worker',
      { 'app.caller': 'worker', 'app.clock': '2026-12-05T23:30:00Z' },
      'select api.campaign_plan_step($1)',
      [id],
    )
    // after the plan: what becomes of users until their message is due counts
    await on.sql('update app.users set is_banned = true where id = $1', [banned!.id])
    await on.drain()
    const rows = await on.sql(
      'select app_user_id as id, status, reason from app.campaign_deliveries where campaign_id = $1',
      [id],
    )
    const outcome = Object.fromEntries(rows.map((row) => [row.id, row.reason ?? row.status]))
    expect([...users, none].map((user) => outcome[user!.id])).toEqual([
      'quiet_hours',
      'suppressed',
      'suppressed',
      'opted_out',
      'opted_out',
      'opted_out',
      'sent',
      'no_address',
    ])
    expect(mail.to(day!.email)).toHaveLength(1)
    expect(mail.to(plain!.email)).toEqual([])
    expect((await mailCampaignOf(on, id)).counts).toMatchObject({ targeted: 8, sent: 1, skipped: 7 })
    expect(await on.sql('select count(*)::int as n from app.email_messages')).toEqual([{ n: 1 }])
  })

  test('a template that lacks a variable for a user fails that message alone', async () => {
    const on = await withTemplate()
    await on.admin.patch('/email/templates/news', { text: '{{pet}} {{city}}', html: null })
    const [known, unknown] = [await reader(on, { pet: 'Cat' }), await reader(on)]
    const { id } = await mailCampaign(on, { variables: { city: 'Bonn' } })
    const rendered = async (user_id?: string) =>
      (await on.admin.post(`${campaigns}/${id}/preview`, { user_id })).data.rendered
    expect(await rendered(known.id)).toEqual({
      subject: 'News for Reader',
      html: null,
      text: 'Cat Bonn',
      locale: null,
      missing: [],
    })
    expect(await rendered()).toMatchObject({ missing: ['pet'] })
    expectRefusal(await on.admin.post(`${campaigns}/${id}/preview`, { user_id: randomUUID() }), 404, 'USER_NOT_FOUND')
    const test = (user_ids: string[]) => on.admin.post(`${campaigns}/${id}/test`, { user_ids })
    expectRefusal(await test([known.id, unknown.id]), 400, 'TEMPLATE_VARIABLE_MISSING')
    expect((await on.admin.post(`${campaigns}/${id}/schedule`)).status).toBe(202)
    await on.drain()
    expect(await deliveriesOf(on, id)).toEqual([
      { status: 'failed', reason: null, code: 'TEMPLATE_VARIABLE_MISSING', n: 1 },
      { status: 'sent', reason: null, code: null, n: 1 },
    ])
    expect(await mailCampaignOf(on, id)).toMatchObject({ status: 'sent', counts: { sent: 1, failed: 1 } })
    expect(mail.to(unknown.email)).toEqual([])
  })

  test('ten messages in a second, of all campaigns of the project together, and the throttle of each', async () => {
    const on = await withTemplate()
    await readers(on, 30)
    const [one, two] = [
      await mailCampaign(on, { send_now: true }),
      await mailCampaign(on, { send_now: true, throttle_per_minute: 60 }),
    ]
    const sent = async ({ id }: { id: string }) => (await mailCampaignOf(on, id)).counts.sent
    await on.drain()
    expect((await sent(one)) + (await sent(two))).toBe(10)
    const before = await sent(two)
    harness.advance(1)
    await on.drain()
    expect((await sent(one)) + (await sent(two))).toBe(20)
    expect((await sent(two)) - before).toBeLessThanOrEqual(1)
    // an administrator may set another rate for the project
    await on.sql(`select internal.set_setting('email.sends_per_second', '1000')`)
    harness.advance(1)
    await on.drain()
    // where two messages are the last at the same time, the campaign looks for itself within ten seconds
    harness.advance(10)
    await on.drain()
    expect(await mailCampaignOf(on, one.id)).toMatchObject({ status: 'sent', counts: { sent: 30 } })
  })

  test('a campaign lasts until the mail server has taken or refused each message', async () => {
    const on = await withTemplate()
    const user = await reader(on)
    mail.refuse(451)
    const { id } = await mailCampaign(on, { send_now: true })
    await on.drain()
    expect(await mailCampaignOf(on, id)).toMatchObject({ status: 'sending', counts: { targeted: 1, sent: 0 } })
    mail.refuse(null)
    harness.advance(61)
    await on.drain()
    expect(await mailCampaignOf(on, id)).toMatchObject({ status: 'sent', counts: { sent: 1 } })
    expect(mail.to(user.email)).toHaveLength(1)
    mail.refuse(550)
    const refused = await mailCampaign(on, { send_now: true })
    await on.drain()
    expect(await deliveriesOf(on, refused.id)).toEqual([{ status: 'failed', reason: null, code: 'NOT_ACCEPTED', n: 1 }])
    expect(await mailCampaignOf(on, refused.id)).toMatchObject({ status: 'sent', counts: { failed: 1 } })
  })

  test('caps count mail, not pushes, and goals count what was sent', async () => {
    const on = await withTemplate()
    const user = await reader(on)
    const fields = { frequency_cap: { max: 1, hours: 24 }, goal_event: 'bought', send_now: true }
    await on.sql(
      `insert into app.campaign_deliveries (queue_id, channel, app_user_id, status, sent_at, due_at) values (gen_random_uuid(), 'push', $1, 'sent', $2, $2)`,
      [user.id, new Date(second)],
    )
    const one = await mailCampaign(on, fields)
    await on.drain()
    nextSecond()
    const two = await mailCampaign(on, fields)
    await on.drain()
    expect(await deliveriesOf(on, one.id)).toMatchObject([{ status: 'sent' }])
    expect(await deliveriesOf(on, two.id)).toMatchObject([{ status: 'skipped', reason: 'capped' }])
    await on.admin.post('/events', { app_user_id: user.id, event_name: 'bought' })
    const { data } = await on.admin.get(`${campaigns}/${one.id}/stats`)
    expect(data).toMatchObject({ sent: 1, converted: 1, conversion_rate: 1, clicked: 0, click_rate: 0 })
  })

  test('variants share the users, each with its template, and the rest is held out', async () => {
    const on = await withTemplate()
    await defineTemplate(on, { key: 'second', category: 'offers', subject: 'B' })
    await on.sql(`select internal.set_setting('email.sends_per_second', '1000')`)
    await readers(on, 60)
    const { id } = await mailCampaign(on, {
      send_now: true,
      variants: [
        { key: 'a', weight: 40, template_key: 'news' },
        { key: 'b', weight: 40, template_key: 'second' },
      ],
    })
    await on.drain()
    const rows = await on.sql(
      `select d.variant, d.reason, m.template_key, m.category, count(*)::int as n from app.campaign_deliveries d
         left join app.email_messages m on m.delivery_id = d.id where d.campaign_id = $1 group by 1, 2, 3, 4 order by 1`,
      [id],
    )
    expect(rows.map(({ n: _, ...row }) => row)).toEqual([
      { variant: 'a', reason: null, template_key: 'news', category: 'news' },
      { variant: 'b', reason: null, template_key: 'second', category: 'offers' },
      { variant: null, reason: 'holdout', template_key: null, category: null },
    ])
    const { data } = await on.admin.get(`${campaigns}/${id}/stats`)
    expect(data.variants).toMatchObject([
      { key: 'a', sent: rows[0].n },
      { key: 'b', sent: rows[1].n },
    ])
  })

  test('a test goes to users who are named, all or none', async () => {
    const on = await withTemplate()
    const [one, two, left, none] = [await reader(on), await reader(on), await reader(on), await on.user()]
    await on.admin.post('/email/suppressions', { address: left.email, reason: 'unsubscribe' })
    const { id } = await mailCampaign(on)
    const test = (...users: { id: string }[]) =>
      on.admin.post(`${campaigns}/${id}/test`, { user_ids: users.map((user) => user.id) })
    const sent = await test(one, two, one)
    expect([sent.status, sent.data?.delivery_ids.length], sent.text).toEqual([202, 2])
    expectRefusal(await test(one, left), 409, 'SUPPRESSED')
    expectInvalid(await test(one, none), 'user_id')
    expectRefusal(await test(one, { id: randomUUID() }), 404, 'USER_NOT_FOUND')
    await on.drain()
    expect([mail.to(one.email).length, mail.to(two.email).length, mail.to(left.email).length]).toEqual([1, 1, 0])
    expect(await mailCampaignOf(on, id)).toMatchObject({ status: 'draft', counts: { targeted: 0, sent: 0 } })
    nextSecond()
    const many = await Promise.all(Array.from({ length: 12 }, () => test(one)))
    expect(many.map(({ status }) => status).sort()).toEqual([...Array(10).fill(202), 429, 429])
    expectRefusal(many.find(({ status }) => status === 429)!, 429, 'RATE_LIMITED')
  })
})

describe('what is cancelled', () => {
  test('is not sent: neither what is planned nor what waits for another attempt', async () => {
    const on = await withTemplate()
    await readers(on, 12)
    mail.refuse(451)
    const { id } = await mailCampaign(on, { send_now: true })
    await on.drain()
    expect((await on.admin.post(`${campaigns}/${id}/pause`)).data.status).toBe('paused')
    expectRefusal(await on.admin.delete(`${campaigns}/${id}`), 409, 'CAMPAIGN_LOCKED')
    harness.advance(1)
    await on.drain()
    expect(await on.sql('select count(*)::int as n from app.email_messages')).toEqual([{ n: 10 }])
    mail.refuse(null)
    expect((await on.admin.post(`${campaigns}/${id}/resume`)).data.status).toBe('sending')
    expect((await on.admin.post(`${campaigns}/${id}/cancel`)).data.status).toBe('cancelled')
    harness.advance(3600)
    await on.drain()
    expect(await deliveriesOf(on, id)).toEqual([{ status: 'skipped', reason: 'cancelled', code: null, n: 12 }])
    expect((await mailCampaignOf(on, id)).counts).toMatchObject({ targeted: 12, sent: 0, skipped: 12 })
    expect(await on.sql('select distinct status from app.email_messages')).toEqual([{ status: 'cancelled' }])
    expect((await on.admin.delete(`${campaigns}/${id}`)).status).toBe(200)
    await on.drain()
    expect(
      await on.sql(
        'select (select count(*)::int from app.campaign_deliveries) as d, (select count(*)::int from app.email_messages) as m',
      ),
    ).toEqual([{ d: 0, m: 10 }])
  })

  test('a message whose attempt was in progress is not tried again', async () => {
    const on = await withTemplate()
    const user = await reader(on)
    const { id } = await mailCampaign(on, { send_now: true })
    const claims = { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() }
    await on.as('app_worker', claims, 'select api.campaign_plan_step($1)', [id])
    await on.as('app_worker', claims, 'select api.campaign_claim($1, 500, false)', [id])
    const [{ id: message }] = await on.sql('select id from app.email_messages')
    await on.as('app_worker', claims, 'select api.email_attempt_begin($1)', [message])
    await on.admin.post(`${campaigns}/${id}/cancel`)
    await on.as('app_worker', claims, `select api.email_attempt_end($1, 1, 'retry', 'busy')`, [message])
    harness.advance(120)
    await on.drain()
    expect(mail.to(user.email)).toEqual([])
    expect(await deliveriesOf(on, id)).toMatchObject([{ status: 'skipped', reason: 'cancelled' }])
  })
})

test('two workers at once queue one message for each user', async () => {
  const on = await withTemplate()
  await readers(on, 40)
  await on.sql(`select internal.set_setting('email.sends_per_second', '1000')`)
  const { id } = await mailCampaign(on, { send_now: true })
  const claims = { 'app.caller': 'worker', 'app.clock': harness.now().toISOString() }
  await on.as('app_worker', claims, 'select api.campaign_plan_step($1)', [id])
  const claim = () => on.as('app_worker', claims, 'select api.campaign_claim($1, 8, false)', [id])
  // one that is killed before its commit leaves nothing behind, and those behind it go on
  const killed = await openTransaction(on, 'app_worker', claims)
  await killed.query('select api.campaign_claim($1, 8, false)', [id])
  const others = Array.from({ length: 5 }, claim)
  await untilBlocked(on, 3)
  await killed.kill()
  await Promise.all(others)
  expect(
    await on.sql(
      `select count(*)::int as n, count(distinct app_user_id)::int as users, count(distinct delivery_id)::int as deliveries from app.email_messages`,
    ),
  ).toEqual([{ n: 40, users: 40, deliveries: 40 }])
})
