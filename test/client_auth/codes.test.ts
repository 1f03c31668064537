import { afterEach, describe, expect, test } from 'vitest'
import { deletionCodeHash } from '#server/accounts/one_time_codes.ts'
import { magicLinkUrl } from '#server/providers/sign_in_messages.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { newEmail, startStage } from '#test/support/sign_in.ts'

const stage = await startStage({ env: { LOG_LEVEL: 'silent' } })
const { harness, project, app, mail, device } = stage

afterEach(() => {
  harness.setTime(null)
  mail.refuse(null)
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
    // four wrong attempts do not lock a code
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
    // a sign-in code cannot link, and a link code cannot sign in
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
      // a sign-in request ignores an expired session
      expect((await user.post('/client/auth/email/otp/request', { email })).status).toBe(200)
      harness.setTime(null)
    }
    // a deletion code is sent to the account's own address only
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

  test('a banned user is refused as banned, and the code is not used up', async () => {
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
      const [row] = await project.sql(`select internal.code_consume('delete', 'email', $1, $2, $3) as used`, values)
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
    for (const body of [{}, { token: '' }, { token: 7 }])
      expectRefusal(await app.post('/client/auth/magic-link/verify', body), 400, 'INVALID_INPUT')
    for (const body of [{}, { email: 'nobody' }])
      expectRefusal(await app.post('/client/auth/magic-link/request', body), 400, 'INVALID_INPUT')
    expect((await stage.verifyLink(token)).status).toBe(201)
  })

  test('a banned user is refused as banned', async () => {
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

describe('a request does not reveal whether an account exists', () => {
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
      // a request that reads app.users now fails
      for (const email of [known, newEmail()])
        for (const path of ['/client/auth/email/otp/request', '/client/auth/magic-link/request'])
          expect((await app.post(path, { email })).status).toBe(200)
    } finally {
      await project.sql('grant select on app.users to app_auth')
    }
    expect((await stage.login(known)).status).toBe(200)
  })
})
