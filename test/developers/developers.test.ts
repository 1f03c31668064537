import { randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { freshEmail, startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const { anyone } = harness
const password = 'a long passphrase'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const signup = (email: string, more: object = {}) => anyone.post('/auth/developer/signup', { email, password, ...more })
const login = (email: string, word = password) => anyone.post('/auth/developer/login', { email, password: word })
const refresh = (token: string) => anyone.post('/auth/developer/refresh', { refresh_token: token })
const logout = (token: string) => anyone.post('/auth/developer/logout', { refresh_token: token })
const me = (token: string) => anyone.get('/auth/developer/me', { authorization: `Bearer ${token}` })

/** A mailbox that no other test knows. */
const fresh = () => randomUUID().replaceAll('-', '')

afterEach(() => harness.setTime(null))

describe('sign-up', () => {
  test('opens an account and signs in to it', async () => {
    const email = freshEmail()
    const { status, data } = await signup(email, { name: 'Ada' })
    expect(status).toBe(201)
    expect(data.developer).toEqual({
      id: expect.stringMatching(uuid),
      email,
      name: 'Ada',
      oauth_providers: [],
      email_verified: false,
      has_password: true,
      account_state: 'sandbox',
      can_provision: true,
      created_at: expect.stringMatching(time),
      updated_at: data.developer.created_at,
    })
    expect((await me(data.access_token)).data.id).toBe(data.developer.id)
    expect(Object.keys(data).sort()).toEqual(['access_token', 'developer', 'refresh_token'])
  })

  test('trims and lower-cases the address; a name is optional', async () => {
    const name = fresh()
    const { data } = await signup(`  ${name.toUpperCase()}@Example.ORG `)
    expect(data.developer).toMatchObject({ email: `${name}@example.org`, name: null })
  })

  test.each([
    ['no email', { password }, 'email'],
    ['no password', { email: 'a@example.org' }, 'password'],
    ['a number for an email', { email: 5, password }, 'email'],
    ['null for a password', { email: 'a@example.org', password: null }, 'password'],
    ['no at sign', { email: 'example.org', password }, 'email'],
    ['no dotted domain', { email: 'a@localhost', password }, 'email'],
    ['two at signs', { email: 'a@b@example.org', password }, 'email'],
    ['a header injection', { email: 'a@example.org\r\nBcc: b@example.org', password }, 'email'],
    ['a list of addresses', { email: 'a@example.org,b@example.org', password }, 'email'],
    ['a long address', { email: `${'a'.repeat(60)}@${'b.'.repeat(100)}example.org`, password }, 'email'],
    ['a long password', { email: 'a@example.org', password: 'x'.repeat(1001) }, 'password'],
    ['a long name', { email: 'a@example.org', password, name: '🌱'.repeat(201) }, 'name'],
    ['a name that is no text', { email: 'a@example.org', password, name: ['x'] }, 'name'],
  ])('refuses %s', async (_what, body, field) => {
    const { status, error } = await anyone.post('/auth/developer/signup', body)
    expect([status, error?.code, error?.details.field]).toEqual([400, 'INVALID_INPUT', field])
    expect(error?.details.reason).toEqual(expect.any(String))
  })

  test.each(['{', '[]', '"text"', 'null', '{"email": "a\\u0000@example.org", "password": "12345678"}'])(
    'refuses the body %s',
    async (body) => {
      const { status, error } = await anyone.post('/auth/developer/signup', body)
      expect([status, error?.code]).toEqual([400, 'INVALID_INPUT'])
    },
  )

  test('counts the password in characters, not in UTF-16 units', async () => {
    for (const weak of ['', '1234567', '🌱🌱🌱🌱🌱🌱🌱']) {
      const { status, error } = await signup(freshEmail(), { password: weak })
      expect([status, error?.code, error?.details.field]).toEqual([400, 'WEAK_PASSWORD', 'password'])
    }
    expect((await signup(freshEmail(), { password: '🌱🌱🌱🌱🌱🌱🌱🌱' })).status).toBe(201)
    expect((await signup(freshEmail(), { password: '12345678', name: '🌱'.repeat(200) })).status).toBe(201)
  })

  test.each(['mailinator.com', 'x.mailinator.com', 'a.b.MAILINATOR.com'])(
    'refuses the disposable inbox at %s',
    async (domain) => {
      const { status, error } = await signup(`${fresh()}@${domain}`)
      expect([status, error?.code]).toEqual([400, 'DISPOSABLE_EMAIL'])
    },
  )

  test('takes a domain that only ends like a disposable one', async () => {
    expect((await signup(`${fresh()}@ourmailinator.example`)).status).toBe(201)
  })

  test.each([
    ['case', 'example.org', (name: string) => `${name.toUpperCase()}@EXAMPLE.org`],
    ['a +tag', 'example.org', (name: string) => `${name}+news+more@example.org`],
    ['dots at Gmail', 'gmail.com', (name: string) => `${name[0]}.${name.slice(1, 4)}.${name.slice(4)}@gmail.com`],
    ['the other name of Gmail', 'gmail.com', (name: string) => `${name[0]}.${name.slice(1)}+x@GoogleMail.com`],
    ['a former alias', 'googlemail.com', (name: string) => `${name}@gmail.com`],
  ])('knows a mailbox again by %s', async (_what, domain, alias) => {
    const name = fresh()
    expect((await signup(`${name}@${domain}`)).status).toBe(201)
    const { status, error } = await signup(alias(name))
    expect([status, error?.code]).toEqual([409, 'EMAIL_EXISTS'])
    // the password opens the one account under any of its names
    expect((await login(alias(name))).status).toBe(200)
  })

  test('keeps dots apart at other providers', async () => {
    const name = fresh()
    expect((await signup(`${name}@example.org`)).status).toBe(201)
    expect((await signup(`${name[0]}.${name.slice(1)}@example.org`)).status).toBe(201)
  })

  test('twenty at once for one mailbox: one account', async () => {
    const name = fresh()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => signup(`${name}${index % 2 ? `+${index}` : ''}@example.org`)),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'EMAIL_EXISTS')).toHaveLength(19)
    const stored = await harness.control('select 1 from app.developers where mailbox = $1', [`${name}@example.org`])
    expect(stored).toHaveLength(1)
  })

  test('stores a hash of the password and of the refresh token, and neither of them', async () => {
    const server = await startHarness({ realPasswords: true })
    const { data } = await server.anyone.post('/auth/developer/signup', { email: freshEmail(), password })
    const rows = await server.control(
      'select d.*, s.* from app.developers d join app.developer_sessions s on s.developer_id = d.id where d.id = $1',
      [data.developer.id],
    )
    expect(rows).toHaveLength(1)
    expect(rows[0].password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(rows[0].refresh_hash).toMatch(/^[0-9a-f]{64}$/)
    const stored = JSON.stringify(rows)
    for (const secret of [password, data.refresh_token, data.access_token]) expect(stored).not.toContain(secret)
  })
})

describe('login', () => {
  test('answers as sign-up does, in a session of its own', async () => {
    const { email, id } = await harness.developer()
    const { status, data } = await login(` ${email.toUpperCase()} `)
    expect(status).toBe(200)
    expect(data.developer).toMatchObject({ id, email })
    expect((await me(data.access_token)).status).toBe(200)
    const sessions = await harness.control('select 1 from app.developer_sessions where developer_id = $1', [id])
    expect(sessions).toHaveLength(2)
  })

  test('says the same of a wrong password, an unknown address and an account without a password', async () => {
    const { email, id } = await harness.developer()
    const wrong = await login(email, 'not the passphrase')
    const unknown = await login(freshEmail())
    await harness.control('update app.developers set password_hash = null where id = $1', [id])
    const none = await login(email)
    for (const answer of [wrong, unknown, none]) {
      expect(answer.status).toBe(401)
      expect(answer.body).toEqual({ error: { code: 'INVALID_CREDENTIALS', message: wrong.error?.message } })
    }
  })

  test.each([
    { email: 'a@example.org' },
    { password },
    { email: 'nobody', password },
    { email: 'a@example.org', password: '' },
  ])('refuses %j', async (body) => {
    const { status, error } = await anyone.post('/auth/developer/login', body)
    expect([status, error?.code]).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('the current developer', () => {
  test('sees the account and the token that is held', async () => {
    harness.setTime('2026-11-20T09:30:00Z')
    const { accessToken, id, email } = await harness.developer()
    const { status, data } = await me(accessToken)
    expect(status).toBe(200)
    expect(data).toMatchObject({
      id,
      email,
      has_password: true,
      organizations: [{ name: email.split('@')[0], role: 'owner' }],
    })
    expect(data.token).toEqual({ type: 'session', scopes: null, expires_at: '2026-11-21T09:30:00.000Z' })
  })

  test('is nobody once the account is gone', async () => {
    const { accessToken, id } = await harness.developer()
    expect((await me(accessToken)).status).toBe(200)
    await harness.control('delete from app.developers where id = $1', [id])
    expect((await me(accessToken)).error?.code).toBe('INVALID_DEVELOPER_TOKEN')
  })
})

describe('access tokens', () => {
  const refused = async (authorization: string | undefined) => {
    const { status, error } = await anyone.get(
      '/auth/developer/me',
      authorization === undefined ? {} : { authorization },
    )
    expect([status, error?.code]).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
  }
  const { secrets } = harness.running.services
  const key = secrets.derive('developer access tokens')
  const forge = (claims: object, signing: Uint8Array = key, issued = Date.now() / 1000) =>
    new SignJWT({ typ: 'access', ...claims })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuedAt(Math.floor(issued))
      .setExpirationTime(Math.floor(issued) + 86_400)
      .sign(signing)
  const sessionOf = async () => {
    const { id, accessToken, refreshToken } = await harness.developer()
    const [row] = await harness.control('select id from app.developer_sessions where developer_id = $1', [id])
    return { sub: id, sid: row.id as string, accessToken, refreshToken }
  }

  test('live for 24 hours', async () => {
    harness.setTime('2026-11-20T09:30:00Z')
    const { accessToken } = await harness.developer()
    harness.setTime('2026-11-21T09:29:59Z')
    expect((await me(accessToken)).status).toBe(200)
    harness.setTime('2026-11-21T09:30:00Z')
    await refused(`Bearer ${accessToken}`)
  })

  test('are refused when missing, malformed, altered or of another kind', async () => {
    const { sub, sid, accessToken, refreshToken } = await sessionOf()
    const [head, body] = accessToken.split('.')
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`
    for (const token of [
      '',
      'x',
      'a.b.c',
      refreshToken,
      none,
      `${head}.${body}.`,
      `${accessToken}x`,
      'x'.repeat(5000),
    ]) {
      await refused(`Bearer ${token}`)
    }
    for (const header of [undefined, accessToken, `Basic ${accessToken}`]) await refused(header)
    await refused(`Bearer ${await forge({ sub, sid }, new Uint8Array(32))}`)
    await refused(`Bearer ${await forge({ sub, sid, typ: 'refresh' })}`)
    // what proves the refusals: the same claims under the right key are taken
    expect((await me(await forge({ sub, sid }))).status).toBe(200)
  })

  test('need a session that is known', async () => {
    const { sub, sid } = await sessionOf()
    await refused(`Bearer ${await forge({ sub })}`)
    await refused(`Bearer ${await forge({ sub, sid: 'no uuid' })}`)
    await refused(`Bearer ${await forge({ sub, sid: randomUUID() })}`)
    await refused(`Bearer ${await forge({ sid })}`)
  })

  test('from before the cutover are refused, even with a live session', async () => {
    harness.setTime('2026-10-14T23:59:59Z')
    const { sub, sid, accessToken } = await sessionOf()
    await refused(`Bearer ${accessToken}`)
    harness.setTime('2026-10-15T00:00:00Z')
    await refused(`Bearer ${accessToken}`)
    expect((await me(await forge({ sub, sid }, key, Date.parse('2026-10-15T00:00:00Z') / 1000))).status).toBe(200)
  })
})

describe('refresh', () => {
  test('replaces the refresh token; access tokens already issued keep working', async () => {
    const { accessToken, refreshToken } = await harness.developer()
    const { status, data } = await refresh(refreshToken)
    expect(status).toBe(200)
    expect(Object.keys(data).sort()).toEqual(['access_token', 'refresh_token'])
    expect(data.refresh_token).not.toBe(refreshToken)
    expect((await me(accessToken)).status).toBe(200)
    expect((await me(data.access_token)).status).toBe(200)
    expect((await refresh(data.refresh_token)).status).toBe(200)
  })

  test('a replaced token ends the whole session, and only that one', async () => {
    const { email, accessToken, refreshToken } = await harness.developer()
    const other = (await login(email)).data
    const { data } = await refresh(refreshToken)
    expect((await me(accessToken)).status).toBe(200)
    const reused = await refresh(refreshToken)
    expect([reused.status, reused.error?.code]).toEqual([401, 'REFRESH_TOKEN_REUSED'])
    for (const token of [accessToken, data.access_token]) {
      expect((await me(token)).error?.code).toBe('INVALID_DEVELOPER_TOKEN')
    }
    for (const token of [refreshToken, data.refresh_token]) {
      expect((await refresh(token)).error?.code).toBe('INVALID_TOKEN')
    }
    expect((await me(other.access_token)).status).toBe(200)
    expect((await refresh(other.refresh_token)).status).toBe(200)
  })

  test('twenty at once with one token: one answer, and the session has ended', async () => {
    const { id, accessToken, refreshToken } = await harness.developer()
    const row = `select from app.developer_sessions where developer_id = '${id}' for update`
    const answers = await meetingBehind(harness.running.services.control.database, row, () =>
      Array.from({ length: 20 }, () => refresh(refreshToken)),
    )
    const good = answers.filter(({ status }) => status === 200)
    expect(good).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'REFRESH_TOKEN_REUSED')).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'INVALID_TOKEN')).toHaveLength(18)
    for (const token of [accessToken, good[0]?.data.access_token]) expect((await me(token)).status).toBe(401)
    expect((await refresh(good[0]?.data.refresh_token)).error?.code).toBe('INVALID_TOKEN')
  })

  test('renews the 30 days of the session', async () => {
    harness.setTime('2026-11-01T00:00:00Z')
    const { refreshToken } = await harness.developer()
    harness.setTime('2026-11-30T00:00:00Z')
    const { data } = await refresh(refreshToken)
    harness.setTime('2026-12-29T23:59:59Z')
    const again = await refresh(data.refresh_token)
    expect(again.status).toBe(200)
    harness.setTime('2027-01-28T23:59:59Z')
    expect((await refresh(again.data.refresh_token)).error?.code).toBe('INVALID_TOKEN')
  })

  test('refuses what is no refresh token', async () => {
    const { accessToken } = await harness.developer()
    const key = harness.running.services.secrets.derive('developer refresh tokens')
    const forge = (claims: object, signing: Uint8Array) =>
      new SignJWT({ typ: 'refresh', ...claims })
        .setProtectedHeader({ alg: 'HS256' })
        .setExpirationTime('1h')
        .sign(signing)
    const bad = [
      'x',
      accessToken,
      await forge({ sid: randomUUID() }, key),
      await forge({}, key),
      await forge({}, new Uint8Array(32)),
    ]
    for (const token of bad) expect((await refresh(token)).error?.code).toBe('INVALID_TOKEN')
    for (const body of [{}, { refresh_token: '' }, { refresh_token: 1 }]) {
      const { status, error } = await anyone.post('/auth/developer/refresh', body)
      expect([status, error?.code]).toEqual([400, 'INVALID_INPUT'])
    }
  })
})

describe('logout', () => {
  test('ends this sign-in at once, and not the others; doing it twice is no mistake', async () => {
    const { email, accessToken, refreshToken } = await harness.developer()
    const other = (await login(email)).data
    expect((await me(accessToken)).status).toBe(200)
    for (let times = 0; times < 2; times += 1) {
      const { status, data } = await logout(refreshToken)
      expect([status, data]).toEqual([200, { success: true }])
      expect((await me(accessToken)).error?.code).toBe('INVALID_DEVELOPER_TOKEN')
      expect((await refresh(refreshToken)).error?.code).toBe('INVALID_TOKEN')
    }
    expect((await me(other.access_token)).status).toBe(200)
    expect((await refresh(other.refresh_token)).status).toBe(200)
  })

  test('takes a dead, foreign or forged token without doing anything', async () => {
    harness.setTime('2026-11-01T00:00:00Z')
    const { accessToken, refreshToken } = await harness.developer()
    for (const token of ['x', accessToken, `${refreshToken}x`])
      expect((await logout(token)).data).toEqual({ success: true })
    expect((await me(accessToken)).status).toBe(200)
    harness.setTime('2026-12-01T00:00:00Z')
    expect((await logout(refreshToken)).data).toEqual({ success: true })
    const { status, error } = await anyone.post('/auth/developer/logout', {})
    expect([status, error?.code]).toEqual([400, 'INVALID_INPUT'])
  })

  test('reaches another server process in a moment', async () => {
    const second = await startSecond(harness)
    const { accessToken, refreshToken } = await harness.developer()
    const there = second.as({ authorization: `Bearer ${accessToken}` })
    expect((await there.get('/auth/developer/me')).status).toBe(200)
    await logout(refreshToken)
    await expect.poll(async () => (await there.get('/auth/developer/me')).status, { timeout: 10_000 }).toBe(401)
  })
})
