import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { asText, secret, startInbound } from '#test/support/inbound.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Webhooks of the paywall provider. */
const { harness, project, connect, send, paywall, stored, outcomes } = await startInbound()

describe('an event of the paywall provider', () => {
  test('becomes one engagement event, which moves streaks, XP and segments', async () => {
    const own = await harness.project()
    await connect('superwall', { webhook_secret: secret }, own)
    const made = await Promise.all([
      own.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'paywall.paywall_open' }),
      own.admin.post('/xp/rules', { key: 'open', name: 'Open', event_name: 'paywall.paywall_open', amount: 7 }),
      own.admin.post('/segments', {
        ...{ key: 'openers', name: 'Openers' },
        rules: { source: 'event', event_name: 'paywall.paywall_open', measure: 'count', op: 'gte', value: 1 },
      }),
    ])
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201])
    const user = await own.user()
    const body = { id: 'evt-1', event: 'paywall_open', user_id: user.id, paywall: { key: 'p1', products: ['a'] } }
    const query = `?project_id=${own.id}`
    for (let i = 0; i < 3; i += 1) expect((await paywall(body, {}, query)).status).toBe(200)
    await own.drain()
    await own.drain()
    const events = await own.sql(
      `select app_user_id, event_name, properties, source from app.engagement_events where event_name like 'paywall.%'`,
    )
    expect(events).toEqual([
      {
        ...{ app_user_id: user.id, event_name: 'paywall.paywall_open', source: 'webhook' },
        properties: { id: 'evt-1', paywall: { key: 'p1', products: ['a'] } },
      },
    ])
    expect((await user.get('/client/xp')).data.total).toBe(7)
    expect((await user.get('/client/streaks')).data).toMatchObject([{ key: 'daily', current_count: 1 }])
    expect((await own.admin.get(`/segments/openers/members/${user.id}/explain`)).data.member).toBe(true)
    // neither a replay nor the same event again counts twice
    const { data } = await own.admin.get('/integrations/superwall/events')
    expect((await own.admin.post(`/integrations/superwall/events/${data[0].id}/replay`)).status).toBe(202)
    await own.drain()
    expect((await own.admin.get('/integrations/superwall/events')).data).toMatchObject([{ outcome: 'duplicate' }])
    expect((await user.get('/client/xp')).data.total).toBe(7)
  })

  test("is taken in the vendor's own form and signature too", async () => {
    // superwall/docs, content/docs/integrations/webhooks/index.mdx
    harness.setTime(harness.now())
    const user = await project.user()
    const body = asText({
      ...{ object: 'event', type: 'renewal', projectId: 3827, applicationId: 1, timestamp: harness.now().getTime() },
      data: {
        ...{ id: '42fc6339-dc28-470b-a0fa-0d13c92d8b61:renewal', name: 'renewal', periodType: 'NORMAL', price: 9.99 },
        ...{ originalAppUserId: user.id, store: 'APP_STORE', productId: 'com.example.premium.monthly' },
      },
    })
    const key = Buffer.from('a secret of twenty-four b')
    await connect('superwall', { webhook_secret: `whsec_${key.toString('base64')}` })
    const sign = (seconds: number, text = body) => ({
      'svix-id': 'msg_1',
      'svix-timestamp': String(seconds),
      'svix-signature': `v1,AAAA v1,${createHmac('sha256', key).update(`msg_1.${seconds}.${text}`).digest('base64')}`,
    })
    const post = (headers: Record<string, string>) =>
      send(`/webhooks/superwall?project_id=${project.id}`, body, headers)
    const now = Math.floor(harness.now().getTime() / 1000)
    for (const headers of [
      sign(now - 301),
      sign(now + 302),
      sign(now, '{}'),
      { ...sign(now), 'svix-timestamp': `${now - 1}` },
    ])
      expectRefusal(await post(headers), 401, 'INVALID_SIGNATURE')
    expect((await post(sign(now))).status).toBe(200)
    expect((await post(sign(now - 299))).status).toBe(200)
    await project.drain()
    expect(await outcomes()).toEqual(['applied'])
    expect(
      await project.sql(`select event_name from app.engagement_events where app_user_id = $1 and source = 'webhook'`, [
        user.id,
      ]),
    ).toEqual([{ event_name: 'paywall.renewal' }])
  })

  test('is kept and marked when nothing can follow from it', async () => {
    const user = await project.user()
    const old = new Date(harness.now().getTime() - 31 * 86_400_000).toISOString()
    const cases: [body: string, outcome: string][] = [
      [asText({ event: 'open', user_id: 'nobody' }), 'unknown_user'],
      [asText({ event: 'open' }), 'without_effect'],
      [asText({ user_id: user.id }), 'without_effect'],
      [asText({ event: 7, user_id: user.id }), 'without_effect'],
      [asText({ event: 'x'.repeat(300), user_id: user.id }), 'malformed'],
      [asText({ event: 'open', user_id: user.id, timestamp: old }), 'malformed'],
      [asText({ event: 'open', user_id: user.id, text: 'x'.repeat(40_000) }), 'malformed'],
      [`{"event":"open","user_id":"${user.id}","text":"\\u0000"}`, 'malformed'],
    ]
    for (const [body] of cases) expect((await paywall(body)).status).toBe(200)
    await project.drain()
    const rows = await stored()
    expect(cases.map(([body]) => rows.find((row) => row.body === body)?.outcome)).toEqual(
      cases.map(([, outcome]) => outcome),
    )
    expect(
      await project.sql(`select from app.engagement_events where app_user_id = $1 and source = 'webhook'`, [user.id]),
    ).toEqual([])
  })

  test('is known again by id, by event_id, or by its body', async () => {
    const user = await project.user()
    const base = { event: 'open', user_id: user.id }
    for (const body of [
      { ...base, id: 'a' },
      { ...base, id: 'a', more: 1 },
      { ...base, event_id: 'b' },
      { ...base, event_id: 'b', more: 2 },
      { ...base, id: null, at: 1 },
      { ...base, id: null, at: 1 },
      { ...base, at: 2 },
      // numbers that JavaScript takes for the same
      `{"event": "open", "user_id": "${user.id}", "id": 9007199254740993}`,
      `{"event": "open", "user_id": "${user.id}", "id": 9007199254740992}`,
      `{"event": "again", "user_id": "${user.id}", "id": 9007199254740993}`,
    ])
      expect((await paywall(body)).status).toBe(200)
    expect((await stored()).map(({ event_key }) => event_key.replace(/(?<=^sha256 ).*/, '…')).sort()).toEqual([
      ...['id 9007199254740992', 'id 9007199254740993', 'id a', 'id b', 'sha256 …', 'sha256 …'],
    ])
  })
})
