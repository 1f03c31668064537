import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { startHttpsReceiver } from '#test/support/https.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { newEmail, newPhone, startStage } from '#test/support/sign_in.ts'

let smsStatus = 200
const receiver = await startHttpsReceiver({
  handler: (_request, response) => {
    response.statusCode = smsStatus
    response.end('taken')
  },
})
afterAll(() => receiver.close())
const stage = await startStage({
  env: { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile, LOG_LEVEL: 'silent' },
})
const { harness, project, app } = stage

afterEach(() => {
  harness.setTime(null)
  smsStatus = 200
})

describe('phone codes', () => {
  const connect = (config: object = {}) =>
    project.admin.post('/integrations', {
      provider: 'sms',
      config: { url: receiver.url, body_template: '{"to": "{{to}}", "body": "{{text}}"}', ...config },
    })
  const requestPhone = (phone: string, more: object = {}, by = app) =>
    by.post('/client/auth/phone/otp/request', { phone, ...more })
  const verifyPhone = (phone: string, code: string) => app.post('/client/auth/phone/otp/verify', { phone, code })
  const codeSent = async () => {
    await project.drain()
    return /(\d{6}) is your Orchard code/.exec(receiver.requests.at(-1)?.body ?? '')?.[1] ?? ''
  }

  test('need the integration', async () => {
    expectRefusal(await requestPhone(newPhone()), 400, 'PROVIDER_NOT_CONFIGURED')
    expectRefusal(await verifyPhone(newPhone(), '123456'), 400, 'PROVIDER_NOT_CONFIGURED')
    expect((await connect()).status).toBe(201)
    expect((await requestPhone(newPhone())).status).toBe(200)
    await project.sql('update app.integrations set is_active = false')
    expectRefusal(await requestPhone(newPhone()), 400, 'PROVIDER_NOT_CONFIGURED')
    // a code that was requested before is not sent, and its task does not fail
    const before = receiver.requests.length
    await project.drain()
    expect(receiver.requests.length).toBe(before)
    await project.sql('update app.integrations set is_active = true')
  })

  test('sign a new user up, verified, and know them again', async () => {
    const phone = newPhone()
    expect((await requestPhone(phone)).data).toEqual({ ok: true })
    const code = await codeSent()
    expect(JSON.parse(receiver.requests.at(-1)?.body ?? '')).toEqual({
      to: phone,
      body: `${code} is your Orchard code. It is valid for 10 minutes. Give it to nobody.`,
    })
    const answer = await verifyPhone(phone, code)
    expect(answer.status).toBe(201)
    expect(answer.data.user).toMatchObject({
      phone,
      phone_verified: true,
      email: null,
      auth_providers: [{ provider: 'phone', provider_id: phone }],
    })
    expectRefusal(await verifyPhone(phone, code), 401, 'OTP_INVALID')
    await requestPhone(phone)
    const again = await verifyPhone(phone, await codeSent())
    expect([again.status, again.data.user.id]).toEqual([200, answer.data.user.id])
    await project.sql('update app.users set is_banned = true where phone = $1', [phone])
    await requestPhone(phone)
    expectRefusal(await verifyPhone(phone, await codeSent()), 403, 'USER_BANNED')
  })

  test('a number that an administrator set is verified by it', async () => {
    const phone = newPhone()
    const user = await stage.signup(newEmail())
    await project.sql('update app.users set phone = $2, phone_verified = false where id = $1', [user.id, phone])
    await requestPhone(phone)
    const { status, data } = await verifyPhone(phone, await codeSent())
    expect([status, data.user.id, data.user.phone_verified]).toEqual([200, user.id, true])
    // nothing else has changed: the email is still unverified, and its password still works
    expect(data.user.email_verified).toBe(false)
    expect((await stage.login(user.user.email)).status).toBe(200)
  })

  test.each([
    '',
    '0151123456',
    '+0151123456',
    '+49',
    '+491511234567890123',
    '+49 151 123456',
    'x',
    4915112345678,
    null,
  ])('the number %j is refused', async (phone) => {
    expectRefusal(await app.post('/client/auth/phone/otp/request', { phone }), 400, 'INVALID_INPUT')
    expectRefusal(await app.post('/client/auth/phone/otp/verify', { phone, code: '123456' }), 400, 'INVALID_INPUT')
  })

  test('go out as the provider wants them: headers, form or JSON, escaped', async () => {
    const phone = newPhone()
    await project.developer.patch(`/admin/projects/${project.id}`, { auth_email_brand_name: 'A "B" & C' })
    await connect({
      headers: { Authorization: 'Basic c2VjcmV0', 'Content-Type': 'application/x-www-form-urlencoded' },
      body_template: 'To={{to}}&Body={{ text }}',
    })
    await requestPhone(phone)
    await project.drain()
    const form = receiver.requests.at(-1)
    expect(form?.headers['authorization']).toBe('Basic c2VjcmV0')
    expect(form?.headers['content-type']).toBe('application/x-www-form-urlencoded')
    const fields = new URLSearchParams(form?.body)
    expect(fields.get('To')).toBe(phone)
    expect(fields.get('Body')).toContain('A "B" & C')
    await connect()
    await requestPhone(phone)
    await project.drain()
    expect(JSON.parse(receiver.requests.at(-1)?.body ?? '').body).toContain('A "B" & C')
    await project.developer.patch(`/admin/projects/${project.id}`, { auth_email_brand_name: 'Orchard' })
  })

  test('wait for a provider that fails, and come under one id', async () => {
    const phone = newPhone()
    const before = receiver.requests.length
    smsStatus = 500
    harness.setTime('2026-11-22T10:00:00Z')
    await requestPhone(phone)
    await project.drain()
    smsStatus = 202
    harness.advance(10)
    const code = await codeSent()
    const sent = receiver.requests.slice(before)
    expect(sent).toHaveLength(2)
    expect(sent[1]?.body).toBe(sent[0]?.body)
    expect(sent[1]?.headers['idempotency-key']).toBe(sent[0]?.headers['idempotency-key'])
    expect((await verifyPhone(phone, code)).status).toBe(201)
  })

  test('a link is for the session that asked', async () => {
    const phone = newPhone()
    expectRefusal(await requestPhone(phone, { purpose: 'link' }), 401, 'UNAUTHORIZED')
    const user = await stage.anonymous()
    const onBehalf = project.onBehalfOf(user.id)
    expectRefusal(await requestPhone(phone, { purpose: 'link' }, onBehalf), 403, 'SESSION_REQUIRED')
    harness.setTime(new Date(Date.now() + 2 * 3600_000))
    expectRefusal(await requestPhone(phone, { purpose: 'link' }, user), 401, 'TOKEN_EXPIRED')
    harness.setTime(null)
    await requestPhone(phone, { purpose: 'link' }, user)
    const code = await codeSent()
    expectRefusal(await verifyPhone(phone, code), 401, 'OTP_INVALID')
    const linked = await user.post('/client/auth/link', { provider: 'phone', phone, code })
    expect(linked.data).toMatchObject({ phone, phone_verified: true })
    // a deletion code is sent to the account's own number only
    expect((await requestPhone(phone, { purpose: 'delete' }, user)).status).toBe(200)
    const [row] = await project.sql(
      `select app_user_id, purpose from app.user_codes where address = $1 and used_at is null`,
      [phone],
    )
    expect(row).toEqual({ app_user_id: user.id, purpose: 'delete' })
  })
})
