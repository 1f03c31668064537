import { createHmac, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Answer } from '#test/support/harness.ts'
import { asText, hmac, secret, startInbound } from '#test/support/inbound.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Webhooks that are refused: who may send them. */
const { harness, project, connect, send, purchases, paywall, stored, purchaseOf } = await startInbound()

describe('a webhook is refused', () => {
  test('without a project, and for one that does not exist', async () => {
    const body = purchaseOf('someone')
    for (const query of [
      '',
      '?project_id=',
      '?project_id=x',
      `?project_id=${project.id}x`,
      `?project_id=${project.id}&project_id=${project.id}`,
    ]) {
      expectRefusal(await purchases(body, {}, query), 400, 'MISSING_PROJECT')
      expectRefusal(await paywall(body, {}, query), 400, 'MISSING_PROJECT')
    }
    expectRefusal(await purchases(body, {}, `?project_id=${randomUUID()}`), 404, 'NOT_CONFIGURED')
    expectRefusal(await paywall(body, {}, `?project_id=${randomUUID()}`), 404, 'NOT_CONFIGURED')
    expect((await purchases(body, {}, `?project_id=${project.id.toUpperCase()}`)).status).toBe(200)
  })

  test.each([
    ['none', undefined],
    ['an empty one', 'Bearer '],
    ['another', 'Bearer other'],
    ['one that begins with it', `Bearer ${secret}x`],
    ['its beginning', `Bearer ${secret.slice(0, -1)}`],
    ['the secret alone', secret],
    ['another scheme', `Basic ${secret}`],
  ])('by the subscription provider with %s as the secret', async (_name, authorization) => {
    const answer = await send(
      `/webhooks/revenuecat?project_id=${project.id}`,
      asText(purchaseOf('someone')),
      authorization === undefined ? {} : { authorization },
    )
    expectRefusal(answer, 401, 'INVALID_SIGNATURE')
    expect(await stored()).toEqual([])
  })

  test.each([
    ['no signature', () => ''],
    ['the signature of another body', () => hmac('{}')],
    ['a signature under another secret', (body: string) => hmac(body, 'other')],
    ['a signature cut short', (body: string) => hmac(body).slice(0, 62)],
    ['a signature in base64', (body: string) => createHmac('sha256', secret).update(body).digest('base64')],
  ])('by the paywall provider with %s', async (_name, sign) => {
    const body = asText({ event: 'paywall_open', user_id: 'someone' })
    expectRefusal(await paywall(body, { 'x-superwall-signature': sign(body) }), 401, 'INVALID_SIGNATURE')
    const unsigned = await send(`/webhooks/superwall?project_id=${project.id}`, body, {})
    expectRefusal(unsigned, 401, 'INVALID_SIGNATURE')
    expect(await stored()).toEqual([])
  })

  test('with a wrong signature before its body is looked at, and then for a body that is no JSON object', async () => {
    const wrong = { 'x-superwall-signature': hmac('other'), authorization: 'Bearer other' }
    const bodies = ['{', '', '[]', '"text"', 'null', '{"a":1}x']
    for (const body of bodies) {
      expectRefusal(await paywall(body, wrong), 401, 'INVALID_SIGNATURE')
      expectRefusal(await purchases(body, wrong), 401, 'INVALID_SIGNATURE')
      expectRefusal(await paywall(body), 400, 'INVALID_BODY')
      expectRefusal(await purchases(body), 400, 'INVALID_BODY')
    }
    for (const body of [{}, { event: 'text' }, { event: [] }, { event: null }])
      expectRefusal(await purchases(body), 400, 'INVALID_BODY')
    const notText = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])
    const broken = await send(`/webhooks/superwall?project_id=${project.id}`, notText, {
      'x-superwall-signature': hmac(notText),
    })
    expectRefusal(broken, 400, 'INVALID_BODY')
    expect(await stored()).toEqual([])
  })

  test('under the former secret as soon as there is another, or none', async () => {
    const body = asText({ event: 'paywall_open', user_id: 'someone' })
    expect((await paywall(body)).status).toBe(200)
    await connect('superwall', { webhook_secret: 'second' })
    await connect('revenuecat', { webhook_secret: 'second' })
    expectRefusal(await paywall(body), 401, 'INVALID_SIGNATURE')
    expect((await paywall(body, { 'x-superwall-signature': hmac(body, 'second') })).status).toBe(200)
    expectRefusal(await purchases(purchaseOf('someone')), 401, 'INVALID_SIGNATURE')
    expect((await purchases(purchaseOf('someone'), { authorization: 'bearer second' })).status).toBe(200)
    await connect('superwall')
    await connect('revenuecat')
    expectRefusal(await paywall(body), 404, 'NOT_CONFIGURED')
    expectRefusal(await purchases(purchaseOf('someone')), 404, 'NOT_CONFIGURED')
  })

  test('while the integration is off, after it is deleted, and under the secret of another project', async () => {
    const body = asText({ event: 'paywall_open', user_id: 'someone' })
    for (const provider of ['superwall', 'revenuecat']) {
      expect((await project.admin.patch(`/integrations/${provider}`, { is_active: false })).status).toBe(200)
    }
    expectRefusal(await paywall(body), 404, 'NOT_CONFIGURED')
    expectRefusal(await purchases(purchaseOf('someone')), 404, 'NOT_CONFIGURED')
    for (const provider of ['superwall', 'revenuecat']) {
      await project.admin.patch(`/integrations/${provider}`, { is_active: true })
      await project.admin.delete(`/integrations/${provider}`)
    }
    expectRefusal(await paywall(body), 404, 'NOT_CONFIGURED')
    expectRefusal(await purchases(purchaseOf('someone')), 404, 'NOT_CONFIGURED')
    const other = await harness.project()
    await connect('superwall', { webhook_secret: 'of the other' }, other)
    await connect('revenuecat', { webhook_secret: 'of the other' }, other)
    expectRefusal(await paywall(body, {}, `?project_id=${other.id}`), 401, 'INVALID_SIGNATURE')
    expectRefusal(await purchases(purchaseOf('someone'), {}, `?project_id=${other.id}`), 401, 'INVALID_SIGNATURE')
    expect(await other.sql('select from app.inbound_events')).toEqual([])
  })

  test('over 100 a second in a project; forged ones do not count', async () => {
    harness.setTime('2026-11-20T10:00:00Z')
    for (let i = 0; i < 5; i += 1) await purchases(purchaseOf('someone'), { authorization: 'Bearer other' })
    const answers: Answer[] = []
    for (let i = 0; i < 50; i += 1) {
      answers.push(
        ...(await Promise.all([purchases(purchaseOf('someone')), paywall({ event: 'open', user_id: `u${i}` })])),
      )
    }
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(200))
    const over = await purchases(purchaseOf('someone'))
    expectRefusal(over, 429, 'RATE_LIMITED')
    expect(over.headers.get('retry-after')).toBe('1')
    expectRefusal(await paywall({ event: 'open', user_id: 'x' }), 429, 'RATE_LIMITED')
    harness.advance(1)
    expect((await purchases(purchaseOf('someone'))).status).toBe(200)
  })

  test('with 500 when it cannot be stored, so that the provider sends it again', async () => {
    await project.sql('alter table app.inbound_events add constraint nothing_more check (false) not valid')
    expectRefusal(await purchases(purchaseOf('someone')), 500, 'WEBHOOK_PROCESSING_FAILED')
    expectRefusal(await paywall({ event: 'open', user_id: 'x' }), 500, 'WEBHOOK_PROCESSING_FAILED')
    await project.sql('alter table app.inbound_events drop constraint nothing_more')
    expect((await purchases(purchaseOf('someone'))).status).toBe(200)
  })
})
