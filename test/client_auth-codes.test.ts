import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { deletionCodeHash } from '#server/http/codes.ts'
import { magicLinkUrl } from '#server/providers/sign_in_messages.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { startSecond } from '#test/support/second.ts'
import { expectRefusal, newEmail, newPhone, startStage } from '#test/support/sign_in.ts'

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
const { harness, project, app, mail, device } = stage

afterEach(() => {
  harness.setTime(null)
  mail.refuse(null)
  smsStatus = 200
})

const request = (email: string, more: object = {}) => app.post('/client/auth/email/otp/request', { email, ...more })
const wrongOf = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0')
const count = async (sql: string, values: unknown[]) => (await project.sql(sql, values)).length

describe('email codes', () => {
  test('sign a new user up, verified and with a generated name, and know them again', async () => {
    const email = newEmail()
    const answer = await stage.verifyCode(email, await stage.code(` ${email.toUpperCase()} `))
    expect([answer.status, answer.data.is_new_user]).toEqual([201, true])
    expect(answer.data.user).toMatchObject({
      email,
      email_verified: true,
      display_name: expect.stringMatching(/^[A-Z][a-z]+ [A-Z][a-z]+$/),
      auth_providers: [{ provider: 'email', provider_id: email }],
    })
    expect((await stage.me(device(answer))).data.id).toBe(answer.data.user.id)
    const again = await stage.verifyCode(email, await stage.code(email))
    expect([again.status, again.data.is_new_user, again.data.user.id]).toEqual([200, false, answer.data.user.id])
  })

  test('work once: of twenty at once one signs in', async () => {
    const email = newEmail()
    const code = await stage.code(email)
    const answers = await Promise.all(Array.from({ length: 20 }, () => stage.verifyCode(email, code)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'OTP_INVALID')).toHaveLength(19)
    expect(await count('select 1 from app.users where email = $1', [email])).toBe(1)
  })

  test('lock after five wrong tries, also when all come at once; a new one is good again', async () => {
    const email = newEmail()
    const code = await stage.code(email)
    const tries = await Promise.all(Array.from({ length: 5 }, () => stage.verifyCode(email, wrongOf(code))))
    for (const answer of tries) expectRefusal(answer, 401, 'OTP_INVALID')
    expectRefusal(await stage.verifyCode(email, code), 401, 'OTP_INVALID')
    expect((await stage.verifyCode(email, await stage.code(email))).status).toBe(201)
    // four are forgiven
    const other = newEmail()
    const good = await stage.code(other)
    for (let times = 0; times < 4; times += 1)
      expectRefusal(await stage.verifyCode(other, wrongOf(good)), 401, 'OTP_INVALID')
    expect((await stage.verifyCode(other, good)).status).toBe(201)
  })

  test('live ten minutes', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const [early, late] = [newEmail(), newEmail()]
    const codes = [await stage.code(early), await stage.code(late)] as const
    harness.setTime('2026-11-22T10:09:59Z')
    expect((await stage.verifyCode(early, codes[0])).status).toBe(201)
    harness.setTime('2026-11-22T10:10:00Z')
    expectRefusal(await stage.verifyCode(late, codes[1]), 401, 'OTP_INVALID')
  })

  test('a new request replaces the code that is out', async () => {
    const email = newEmail()
    const [first, second] = [await stage.code(email), await stage.code(email)]
    expect(mail.to(email)).toHaveLength(2)
    if (first !== second) expectRefusal(await stage.verifyCode(email, first), 401, 'OTP_INVALID')
    expect((await stage.verifyCode(email, second)).status).toBe(201)
  })

  test('are bound to their address, purpose, user and project', async () => {
    const [mine, theirs] = [newEmail(), newEmail()]
    const code = await stage.code(mine)
    await stage.code(theirs)
    expectRefusal(await stage.verifyCode(theirs, code), 401, 'OTP_INVALID')
    const me = await stage.anonymous()
    // a code to sign in links nothing, and the other way round
    expectRefusal(await me.post('/client/auth/link', { provider: 'email', email: mine, code }), 401, 'OTP_INVALID')
    const toLink = await stage.code(mine, 'link', me)
    if (toLink !== code) expectRefusal(await stage.verifyCode(mine, toLink), 401, 'OTP_INVALID')
    const other = await stage.anonymous()
    expectRefusal(
      await other.post('/client/auth/link', { provider: 'email', email: mine, code: toLink }),
      401,
      'OTP_INVALID',
    )
    const elsewhere = await stage.newProject()
    expectRefusal(await elsewhere.app.post('/client/auth/email/otp/verify', { email: mine, code }), 401, 'OTP_INVALID')
    expect((await stage.verifyCode(mine, code)).status).toBe(201)
  })

  test('are asked for a link or a deletion by a session only', async () => {
    const email = newEmail()
    for (const purpose of ['link', 'delete']) {
      expectRefusal(await request(email, { purpose }), 401, 'UNAUTHORIZED')
      const user = await stage.anonymous()
      const onBehalf = project.onBehalfOf(user.id)
      expectRefusal(await onBehalf.post('/client/auth/email/otp/request', { email, purpose }), 403, 'SESSION_REQUIRED')
      harness.setTime(new Date(Date.now() + 2 * 3600_000))
      expectRefusal(await user.post('/client/auth/email/otp/request', { email, purpose }), 401, 'TOKEN_EXPIRED')
      // a request to sign in takes no notice of a session that has ended
      expect((await user.post('/client/auth/email/otp/request', { email })).status).toBe(200)
      harness.setTime(null)
    }
    // to delete an account there is a code for its own address, and none for another
    const owner = await stage.signup(email)
    await stage.code(email, 'delete', owner)
    const stranger = newEmail()
    expect((await owner.post('/client/auth/email/otp/request', { email: stranger, purpose: 'delete' })).status).toBe(
      200,
    )
    await project.drain()
    expect(mail.to(stranger)).toEqual([])
    expect(await count('select 1 from app.user_codes where address = $1', [stranger])).toBe(0)
  })

  test.each([
    ['request', {}, 'email'],
    ['request', { email: 'nobody' }, 'email'],
    ['request', { email: 'a@example.org', purpose: 'steal' }, 'purpose'],
    ['verify', { email: 'a@example.org' }, 'code'],
    ['verify', { email: 'a@example.org', code: 123456 }, 'code'],
    ['verify', { email: 'a@example.org', code: '12345' }, 'code'],
    ['verify', { email: 'a@example.org', code: '1234567' }, 'code'],
    ['verify', { email: 'a@example.org', code: '١٢٣٤٥٦' }, 'code'],
    ['verify', { email: 'a@example.org', code: '12345\n' }, 'code'],
    ['verify', { code: '123456' }, 'email'],
  ])('%s of %j is refused', async (what, body, field) => {
    const answer = await app.post(`/client/auth/email/otp/${what}`, body)
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
  })

  test('a banned user is told so, and the code is not used up', async () => {
    const email = newEmail()
    const { id } = await stage.signup(email)
    await project.sql('update app.users set is_banned = true where id = $1', [id])
    const code = await stage.code(email)
    expectRefusal(await stage.verifyCode(email, code), 403, 'USER_BANNED')
    await project.sql('update app.users set is_banned = false where id = $1', [id])
    expect((await stage.verifyCode(email, code)).status).toBe(200)
  })
})

describe('a code to delete the account', () => {
  test('is good once, for its user and address, and is locked by wrong tries', async () => {
    const { secrets } = harness.running.services
    const use = async (by: { id: string; user: { email: string } }, code: string) => {
      const hash = deletionCodeHash(secrets, project.id, by.id, code)
      const values = [by.user.email, by.id, hash]
      const [row] = await project.sql(`select internal.code_use('delete', 'email', $1, $2, $3) as used`, values)
      return row.used
    }
    const [me, other] = [await stage.signup(newEmail()), await stage.signup(newEmail())]
    const code = await stage.code(me.user.email, 'delete', me)
    expect(await use(other, code)).toBe(false)
    expect(await use({ ...me, user: other.user }, code)).toBe(false)
    expect(await use(me, wrongOf(code))).toBe(false)
    expect(await use(me, code)).toBe(true)
    expect(await use(me, code)).toBe(false)
    const next = await stage.code(me.user.email, 'delete', me)
    for (let times = 0; times < 5; times += 1) expect(await use(me, wrongOf(next))).toBe(false)
    expect(await use(me, next)).toBe(false)
  })
})

describe('magic links', () => {
  test('sign a new user up, verified and with a generated name, and know them again', async () => {
    const email = newEmail()
    const answer = await stage.verifyLink(await stage.magicToken(email.toUpperCase()))
    expect(answer.status).toBe(201)
    expect(answer.data.user).toMatchObject({ email, email_verified: true })
    expect(answer.data.user.display_name).toMatch(/^[A-Z][a-z]+ [A-Z][a-z]+$/)
    const again = await stage.verifyLink(await stage.magicToken(email))
    expect([again.status, again.data.user.id]).toEqual([200, answer.data.user.id])
  })

  test('work once: of twenty at once, over two servers, one signs in, and used_at says when', async () => {
    const email = newEmail()
    const second = (await startSecond(harness)).as(app.headers)
    const token = await stage.magicToken(email)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 ? app : second).post('/client/auth/magic-link/verify', { token }),
      ),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status, error }) => status === 401 && error?.code === 'INVALID_TOKEN')).toHaveLength(19)
    const [row] = await project.sql('select used_at, sealed from app.user_codes where address = $1', [email])
    expect(row).toEqual({ used_at: expect.any(Date), sealed: null })
  })

  test('live fifteen minutes, are 32 bytes, and an older one stays good beside a newer', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const [one, two] = [newEmail(), newEmail()]
    const tokens = [await stage.magicToken(one), await stage.magicToken(one), await stage.magicToken(two)] as const
    for (const token of tokens) expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    harness.setTime('2026-11-22T10:14:59Z')
    expect((await stage.verifyLink(tokens[0])).status).toBe(201)
    expect((await stage.verifyLink(tokens[1])).status).toBe(200)
    harness.setTime('2026-11-22T10:15:00Z')
    expectRefusal(await stage.verifyLink(tokens[2]), 401, 'INVALID_TOKEN')
  })

  test('unknown tokens, those of another project, and codes in their place are refused', async () => {
    const email = newEmail()
    const token = await stage.magicToken(email)
    const elsewhere = await stage.newProject()
    expectRefusal(await elsewhere.app.post('/client/auth/magic-link/verify', { token }), 401, 'INVALID_TOKEN')
    const [row] = await project.sql('select secret_hash from app.user_codes where address = $1', [email])
    for (const wrong of [
      'x',
      `${token}x`,
      token.slice(1),
      token.toLowerCase(),
      row.secret_hash,
      await stage.code(email),
    ])
      expectRefusal(await stage.verifyLink(wrong), 401, 'INVALID_TOKEN')
    for (const body of [{}, { token: '' }, { token: 7 }, { token: 'x'.repeat(201) }])
      expectRefusal(await app.post('/client/auth/magic-link/verify', body), 400, 'INVALID_INPUT')
    for (const body of [{}, { email: 'nobody' }])
      expectRefusal(await app.post('/client/auth/magic-link/request', body), 400, 'INVALID_INPUT')
    expect((await stage.verifyLink(token)).status).toBe(201)
  })

  test('a banned user is told so', async () => {
    const email = newEmail()
    const { id } = await stage.signup(email)
    await project.sql('update app.users set is_banned = true where id = $1', [id])
    expectRefusal(await stage.verifyLink(await stage.magicToken(email)), 403, 'USER_BANNED')
  })

  test.each([
    ['https://app.example/done', 'https://app.example/done?token=T'],
    ['https://app.example/done?a=1', 'https://app.example/done?a=1&token=T'],
    ['https://app.example/done?', 'https://app.example/done?token=T'],
    ['https://app.example/done?a=1&', 'https://app.example/done?a=1&token=T'],
    ['https://app.example/done#/in', 'https://app.example/done?token=T#/in'],
    ['https://app.example/?a=1#x?y=2', 'https://app.example/?a=1&token=T#x?y=2'],
    ['orchard://signed-in', 'orchard://signed-in?token=T'],
    ['https://app.example', 'https://app.example?token=T'],
  ])('the token is added to %s', (url, wanted) => expect(magicLinkUrl(url, 'T')).toBe(wanted))
})

describe('what is mailed', () => {
  const lastTo = async (email: string, on = project) => {
    await on.drain()
    const last = mail.to(email).at(-1)
    if (!last) throw new Error('there is a mail')
    return last
  }

  test('comes in the brand’s name; no subject holds a secret', async () => {
    const email = newEmail()
    const token = await stage.magicToken(email)
    const link = await lastTo(email)
    expect(link.headers['subject']).toBe('Sign in to Orchard')
    expect(link.headers['from']).toMatch(/^Orchard </)
    expect(link.text).toContain(`orchard://signed-in?token=${token}`)
    const code = await stage.code(email)
    const mailed = await lastTo(email)
    expect(mailed.headers['subject']).toBe('Your sign-in code for Orchard')
    expect(mailed.text).toContain(code)
    const me = await stage.anonymous()
    await stage.code(email, 'link', me)
    expect((await lastTo(email)).headers['subject']).toBe('Confirm your address for Orchard')
    const owner = await stage.signup(newEmail())
    await stage.code(owner.user.email, 'delete', owner)
    expect((await lastTo(owner.user.email)).headers['subject']).toBe('Confirm the deletion of your account at Orchard')
  })

  test('comes from the project’s sender where it has one, and under its name where it has no brand', async () => {
    const other = await harness.project()
    await other.developer.patch(`/admin/projects/${other.id}`, {
      name: 'Plain <b>&amp;',
      default_reply_to: 'help@example.org',
    })
    const email = newEmail()
    await other.app.post('/client/auth/magic-link/request', { email })
    const plain = await lastTo(email, other)
    expect(plain.headers['subject']).toBe('Sign in to Plain <b>&amp;')
    expect(plain.headers['reply-to']).toBe('help@example.org')
    expect(plain.raw).not.toContain('<b>&amp;</')
    // without a redirect URL the token itself is there to be entered
    expect(plain.text).toMatch(/^[\w-]{43}$/m)
    const verified = await other.app.post('/client/auth/magic-link/verify', {
      token: /^([\w-]{43})$/m.exec(plain.text)?.[1],
    })
    expect(verified.status).toBe(201)
    // a verified sending domain is another area's to check; here is what comes of the fields
    await harness.control(
      `update app.projects set default_from_email = 'hello@orchard.example', default_from_name = 'The Orchard' where id = $1`,
      [other.id],
    )
    await other.app.post('/client/auth/email/otp/request', { email })
    const own = await lastTo(email, other)
    expect(own.headers['from']).toMatch(/^"?The Orchard"? <hello@orchard.example>$/)
    expect(own.from).toBe('hello@orchard.example')
  })

  test('waits for a mail server that refuses, and then comes once, for as long as it is good', async () => {
    const [patient, late] = [newEmail(), newEmail()]
    mail.refuse(451)
    harness.setTime('2026-11-22T10:00:00Z')
    for (const email of [patient, late]) expect((await request(email)).status).toBe(200)
    for (let times = 0; times < 4; times += 1) {
      await project.drain()
      harness.advance(40)
    }
    expect(mail.to(patient)).toEqual([])
    mail.refuse(null)
    await project.sql(`update app.user_codes set expires_at = expires_at - interval '10 minutes' where address = $1`, [
      late,
    ])
    harness.advance(300)
    await project.drain()
    expect(mail.to(patient)).toHaveLength(1)
    expect(mail.to(late)).toEqual([])
    const code = /^(\d{6})$/m.exec(mail.to(patient)[0]?.text ?? '')?.[1] ?? ''
    expect((await stage.verifyCode(patient, code)).status).toBe(201)
    expect(await count(`select 1 from app.outbox where task like 'client_auth%'`, [])).toBe(0)
  })

  test('a worker that dies after sending sends the same code under the same id; what was replaced is not sent', async () => {
    const email = newEmail()
    await request(email)
    const [queued] = await project.sql(
      `select o.key, o.payload, c.sealed from app.outbox o join app.user_codes c on c.id::text = o.key where c.address = $1`,
      [email],
    )
    expect(queued.payload).toEqual({})
    await project.drain()
    await project.sql('update app.user_codes set sealed = $2, sent_at = null where address = $1', [
      email,
      queued.sealed,
    ])
    await project.sql(`insert into app.outbox (task, key) values ('client_auth__mail', $1)`, [queued.key])
    await project.drain()
    const [one, two] = mail.to(email)
    expect(two?.text).toBe(one?.text)
    expect(two?.headers['message-id']).toBe(one?.headers['message-id'])
    // two requests before the worker comes: one mail, with the code that is good
    const other = newEmail()
    await request(other)
    await request(other)
    await project.drain()
    expect(mail.to(other)).toHaveLength(1)
    const code = /^(\d{6})$/m.exec(mail.to(other)[0]?.text ?? '')?.[1] ?? ''
    expect((await stage.verifyCode(other, code)).status).toBe(201)
  })

  test('no code or token stands anywhere in plain: no table, no queue, no log', async () => {
    const lines: string[] = []
    const sink = new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk))
        done()
      },
    })
    const server = await startSecond(harness, pino({ level: 'trace' }, sink))
    const there = server.as(app.headers)
    const email = newEmail()
    const dump = async () => {
      const tables = await project.sql(
        `select c.oid::regclass::text as name from pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind = 'r'
            and c.relname not in ('timezones', 'name_words')`,
      )
      const rows = await Promise.all(tables.map(({ name }) => project.sql(`select t::text from ${name} t`)))
      return JSON.stringify(rows)
    }
    await there.post('/client/auth/email/otp/request', { email })
    await there.post('/client/auth/magic-link/request', { email })
    const waiting = await dump()
    await project.drain()
    const texts = mail.to(email).map(({ text }) => text)
    const code = texts.map((text) => /^(\d{6})$/m.exec(text)?.[1]).find(Boolean) ?? 'none'
    const token = texts.map((text) => /token=([\w-]{43})/.exec(text)?.[1]).find(Boolean) ?? 'none'
    expect([code, token].map((secret) => secret.length)).toEqual([6, 43])
    const sent = await dump()
    expectRefusal(await there.post('/client/auth/email/otp/verify', { email, code: wrongOf(code) }), 401, 'OTP_INVALID')
    await there.post('/client/auth/email/otp/verify', { email, code })
    await there.post('/client/auth/magic-link/verify', { token })
    const used = await dump()
    const log = lines.join('')
    expect(log).toContain('/client/auth/magic-link/verify')
    for (const text of [waiting, sent, used, log]) {
      expect(text).not.toContain(token)
      // a code as a word of its own: six digits stand in ids and times too
      expect(text).not.toMatch(new RegExp(`(?<![0-9a-f.-])${code}(?![0-9a-f.-])`))
    }
    const [hash] = await project.sql(`select secret_hash from app.user_codes where address = $1 and kind = 'code'`, [
      email,
    ])
    expect(hash.secret_hash).toMatch(/^[0-9a-f]{64}$/)
  })

  test('old codes and links are forgotten, sessions a month after their end', async () => {
    const email = newEmail()
    await stage.code(email)
    const user = await stage.anonymous()
    await user.post('/client/auth/logout', { refresh_token: user.refresh })
    const forget = (at: string) =>
      project.as('app_worker', { 'app.caller': 'worker', 'app.clock': at }, 'select api.tenant_forget()')
    const left = async () => [
      await count('select 1 from app.user_codes where address = $1', [email]),
      await count('select 1 from app.user_sessions where app_user_id = $1', [user.id]),
    ]
    const days = (number: number) => new Date(Date.now() + number * 86_400_000).toISOString()
    await forget(days(0.9))
    expect(await left()).toEqual([1, 1])
    await forget(days(1.1))
    expect(await left()).toEqual([0, 1])
    await forget(days(30.1))
    expect(await left()).toEqual([0, 0])
  })
})

describe('a request tells nothing', () => {
  test('of whether the address is registered: same status, same body, same headers', async () => {
    const known = newEmail()
    await stage.signup(known)
    for (const path of ['/client/auth/email/otp/request', '/client/auth/magic-link/request']) {
      const [one, two] = [await app.post(path, { email: known }), await app.post(path, { email: newEmail() })]
      expect([one.status, one.text]).toEqual([200, '{"data" : {"ok": true}}'])
      expect([two.status, two.text]).toEqual([one.status, one.text])
      expect([...one.headers.keys()]).toEqual([...two.headers.keys()])
    }
  })

  test('by its time: nobody’s account is looked up', async () => {
    const known = newEmail()
    await stage.signup(known)
    await project.sql('revoke select on app.users from app_auth')
    try {
      // whoever read the users now would be refused
      for (const email of [known, newEmail()])
        for (const path of ['/client/auth/email/otp/request', '/client/auth/magic-link/request'])
          expect((await app.post(path, { email })).status).toBe(200)
    } finally {
      await project.sql('grant select on app.users to app_auth')
    }
    expect((await stage.login(known)).status).toBe(200)
  })
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
    // what was asked for before is not sent any more, and nothing fails
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
    // and nothing else has changed: the email is still a claim, its password still there
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
    // to delete the account: its own number
    expect((await requestPhone(phone, { purpose: 'delete' }, user)).status).toBe(200)
    const [row] = await project.sql(
      `select app_user_id, purpose from app.user_codes where address = $1 and used_at is null`,
      [phone],
    )
    expect(row).toEqual({ app_user_id: user.id, purpose: 'delete' })
  })
})
