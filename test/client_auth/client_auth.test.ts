import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { freshEmail, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const { app } = project
const password = 'a long passphrase'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const anonymous = (anonymous_id?: string) => app.post('/client/auth/anonymous', { anonymous_id })
const signup = (email: string, more: object = {}) => app.post('/client/auth/email/signup', { email, password, ...more })
const login = (email: string, word = password) => app.post('/client/auth/email/login', { email, password: word })
const refresh = (token: string) => app.post('/client/auth/refresh', { refresh_token: token })
const logout = (token: string) => app.post('/client/auth/logout', { refresh_token: token })
const me = (token: string) => app.get('/client/users/me', { authorization: `Bearer ${token}` })
const anonymousId = () => `anon_${randomUUID()}`

afterEach(() => harness.setTime(null))

describe('anonymous sign-in', () => {
  test('makes a user with a name of its own and a session', async () => {
    const { status, data } = await anonymous()
    expect(status).toBe(201)
    expect(data).toEqual({
      session_token: expect.any(String),
      refresh_token: expect.any(String),
      is_new_user: true,
      user: {
        id: expect.stringMatching(uuid),
        email: null,
        phone: null,
        display_name: expect.stringMatching(/^[A-Z][a-z]+ [A-Z][a-z]+$/),
        avatar_url: null,
        external_id: null,
        anonymous_id: expect.stringMatching(/^anon_[0-9a-f]{64}$/),
        auth_providers: [],
        properties: {},
        timezone: null,
        email_verified: false,
        phone_verified: false,
        first_seen_at: expect.stringMatching(time),
        last_seen_at: expect.stringMatching(time),
      },
    })
    expect((await me(data.session_token)).data.id).toBe(data.user.id)
  })

  test('comes back by the id, in another session, and is seen then', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const requestedId = anonymousId()
    const first = await anonymous(requestedId)
    expect([first.status, first.data.user.anonymous_id]).toEqual([201, requestedId])
    harness.advance(3600)
    const again = await anonymous(requestedId)
    expect([again.status, again.data.is_new_user, again.data.user.id]).toEqual([200, false, first.data.user.id])
    expect(again.data.user).toMatchObject({
      first_seen_at: '2026-11-21T10:00:00.000Z',
      last_seen_at: '2026-11-21T11:00:00.000Z',
    })
    expect(decodeJwt(again.data.session_token)['sid']).not.toBe(decodeJwt(first.data.session_token)['sid'])
  })

  test('a name that is sent is not taken', async () => {
    const { data } = await app.post('/client/auth/anonymous', {
      display_name: 'Mallory',
      user_id: randomUUID(),
      email: 'a@b.org',
    })
    expect(data.user.display_name).not.toBe('Mallory')
    expect(data.user.email).toBeNull()
  })

  test.each([
    ['an email', `update app.users set email = gen_random_uuid() || '@example.org' where id = $1`],
    ['a phone', `update app.users set phone = gen_random_uuid()::text where id = $1`],
    ['a password', `insert into app.user_passwords (app_user_id, password_hash) values ($1, 'x')`],
    [
      'a linked provider',
      `insert into app.user_identities (app_user_id, provider, provider_id) values ($1, 'apple', gen_random_uuid())`,
    ],
  ])('is refused once the user has %s', async (_what, sql) => {
    const requestedId = anonymousId()
    const { data } = await anonymous(requestedId)
    expect((await anonymous(requestedId)).status).toBe(200)
    await project.sql(sql, [data.user.id])
    expectRefusal(await anonymous(requestedId), 401, 'UNAUTHORIZED')
  })

  test('waits for an identity that is being linked, and is refused then', async () => {
    const requestedId = anonymousId()
    const { data } = await anonymous(requestedId)
    const linking = await openTransaction(project, 'app_auth', {})
    await linking.query(
      `insert into app.user_identities (app_user_id, provider, provider_id) values ($1, 'apple', gen_random_uuid())`,
      [data.user.id],
    )
    const coming = anonymous(requestedId)
    await untilBlocked(project)
    await linking.commit()
    expectRefusal(await coming, 401, 'UNAUTHORIZED')
  })

  test('an id is a credential: long enough, of plain letters', async () => {
    for (const bad of [
      `anon_${'x'.repeat(31)}`,
      `anon_${'x'.repeat(129)}`,
      'x'.repeat(64),
      `anon_${'x'.repeat(32)} `,
      `anon_${'ä'.repeat(32)}`,
      '',
      7,
      null,
    ]) {
      expectRefusal(await app.post('/client/auth/anonymous', { anonymous_id: bad }), 400, 'INVALID_INPUT')
    }
    expect((await anonymous(`anon_${'x'.repeat(32)}`)).status).toBe(201)
    expect((await anonymous(`anon_${'x'.repeat(31)}X`)).status).toBe(201)
  })

  test('twenty at once with one id make one user', async () => {
    const requestedId = anonymousId()
    const answers = await Promise.all(Array.from({ length: 20 }, () => anonymous(requestedId)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
    expect(new Set(answers.map(({ data }) => data.user.id)).size).toBe(1)
    const rows = await project.sql('select 1 from app.users where anonymous_id = $1', [requestedId])
    expect(rows).toHaveLength(1)
  })

  test('the same id in another project is another user', async () => {
    const other = await harness.project()
    const requestedId = anonymousId()
    const [mine, theirs] = [
      await anonymous(requestedId),
      await other.app.post('/client/auth/anonymous', { anonymous_id: requestedId }),
    ]
    expect([mine.status, theirs.status]).toEqual([201, 201])
    expect(mine.data.user.id).not.toBe(theirs.data.user.id)
  })
})

describe('email sign-up', () => {
  test('makes a user, signed in, with the address trimmed, lower-cased and unverified', async () => {
    const email = freshEmail()
    const { status, data } = await signup(` ${email.toUpperCase()} `, { display_name: '🌱'.repeat(100) })
    expect([status, data.is_new_user]).toEqual([201, true])
    expect(data.user).toMatchObject({
      email,
      email_verified: false,
      display_name: '🌱'.repeat(100),
      anonymous_id: null,
      auth_providers: [{ provider: 'email', provider_id: email }],
    })
    expect((await me(data.session_token)).data).toEqual(data.user)
    const [row] = await project.sql('select password_hash from app.user_passwords where app_user_id = $1', [
      data.user.id,
    ])
    expect(row.password_hash).toMatch(/^\$argon2id\$/)
    expect((await signup(freshEmail())).data.user.display_name).toMatch(/^[A-Z][a-z]+ [A-Z][a-z]+$/)
  })

  test.each([
    [{ password }, 'email'],
    [{ email: 'a@example.org' }, 'password'],
    [{ email: 'nobody', password }, 'email'],
    [{ email: 'a@example.org\nb@example.org', password }, 'email'],
    [{ email: ['a@example.org'], password }, 'email'],
    [{ email: 'a@example.org', password: 'x'.repeat(1001) }, 'password'],
    [{ email: 'a@example.org', password, display_name: '' }, 'display_name'],
    [{ email: 'a@example.org', password, display_name: '\u00a0 \t' }, 'display_name'],
    [{ email: 'a@example.org', password, display_name: '🌱'.repeat(101) }, 'display_name'],
    [{ email: 'a@example.org', password, display_name: null }, 'display_name'],
  ])('refuses %j', async (body, field) => {
    const answer = await app.post('/client/auth/email/signup', body)
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
  })

  test('counts the password in characters', async () => {
    for (const weak of ['', '1234567', '🌱🌱🌱🌱🌱🌱🌱']) {
      expectRefusal(await signup(freshEmail(), { password: weak }), 400, 'WEAK_PASSWORD')
    }
    expect((await signup(freshEmail(), { password: '🌱🌱🌱🌱🌱🌱🌱🌱' })).status).toBe(201)
  })

  test('an address belongs to one user; twenty at once make one', async () => {
    const email = freshEmail()
    const spelled = (index: number) => (index % 2 ? email.toUpperCase() : `${email} `)
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => signup(spelled(index))))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'EMAIL_EXISTS')).toHaveLength(19)
    // the losing requests left no rows behind
    const [left] = await project.sql(
      `select (select count(*) from app.users where email = $1)::int as users,
              (select count(*) from app.user_identities where provider_id = $1)::int as identities`,
      [email],
    )
    expect(left).toEqual({ users: 1, identities: 1 })
    expectRefusal(await signup(email), 409, 'EMAIL_EXISTS')
    // an alias is a different address here, and each project is separate
    const [name, domain] = email.split('@')
    expect((await signup(`${name}+x@${domain}`)).status).toBe(201)
    expect((await (await harness.project()).app.post('/client/auth/email/signup', { email, password })).status).toBe(
      201,
    )
  })
})

describe('email login', () => {
  test('signs in under any spelling of the address', async () => {
    const email = freshEmail()
    const { data: made } = await signup(email)
    const { status, data } = await login(`  ${email.toUpperCase()}`)
    expect([status, data.is_new_user, data.user.id]).toEqual([200, false, made.user.id])
    expect((await me(data.session_token)).status).toBe(200)
  })

  test('says the same of a wrong password, an unknown address and a user without a password', async () => {
    const email = freshEmail()
    const { data } = await signup(email)
    const wrong = await login(email, 'not the passphrase')
    const unknown = await login(freshEmail())
    await project.sql('delete from app.user_passwords where app_user_id = $1', [data.user.id])
    const none = await login(email)
    for (const answer of [wrong, unknown, none]) {
      expect(answer.status).toBe(401)
      expect(answer.body).toEqual({ error: { code: 'UNAUTHORIZED', message: wrong.error?.message } })
    }
    for (const body of [{ email }, { password }, { email: 'x', password }, { email, password: '' }]) {
      expectRefusal(await app.post('/client/auth/email/login', body), 400, 'INVALID_INPUT')
    }
  })
})

describe('a banned user', () => {
  test('cannot sign in, refresh or use what they hold', async () => {
    const [email, requestedId] = [freshEmail(), anonymousId()]
    const byEmail = (await signup(email)).data
    const byId = (await anonymous(requestedId)).data
    await project.sql('update app.users set is_banned = true where id in ($1, $2)', [byEmail.user.id, byId.user.id])
    expectRefusal(await login(email), 403, 'USER_BANNED')
    expectRefusal(await login(email, 'wrong'), 401, 'UNAUTHORIZED')
    expectRefusal(await anonymous(requestedId), 403, 'USER_BANNED')
    expectRefusal(await refresh(byEmail.refresh_token), 403, 'USER_BANNED')
    expectRefusal(await me(byId.session_token), 401, 'UNAUTHORIZED')
    expect((await logout(byId.refresh_token)).status).toBe(200)
    await project.sql('update app.users set is_banned = false where id = $1', [byEmail.user.id])
    expect((await refresh(byEmail.refresh_token)).status).toBe(200)
  })
})
