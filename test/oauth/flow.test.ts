import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { appAddress, newPkce, startOauthStage, webAddress } from '#test/support/oauth.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { newEmail, password } from '#test/support/sign_in.ts'

const { harness, oidc, begin, way, exchange, newBrowser, project } = await startOauthStage()
const { app } = project

afterEach(() => harness.setTime(null))

/** A login that the provider knows, with a new address. */
const newLogin = (more: object = {}) => {
  const login = `login-${randomUUID()}`
  const email = newEmail()
  oidc.accounts.set(login, { email, email_verified: true, ...more })
  return { login, email }
}
const asked = { provider: 'acme', code_challenge: newPkce().challenge }

test('a user signs in at the provider with its pages, and is known again', async () => {
  const { login, email } = newLogin({ name: 'Ada Byron' })
  const { answer, verifier } = await way({ login })
  const first = await exchange(answer.get('code'), verifier)
  expect(first.status, first.text).toBe(201)
  expect(first.data).toMatchObject({
    is_new_user: true,
    user: {
      email,
      email_verified: true,
      display_name: 'Ada Byron',
      auth_providers: [{ provider: 'acme', provider_id: login }],
    },
  })
  const again = await way({ login })
  const second = await exchange(again.answer.get('code'), again.verifier)
  expect([second.status, second.data.user.id]).toEqual([200, first.data.user.id])
  const me = await app.get('/client/users/me', { authorization: `Bearer ${second.data.session_token}` })
  expect(me.data.email).toBe(email)
  const events = await project.sql(
    `select event_name, properties ->> 'method' as method from app.engagement_events where app_user_id = $1 order by id`,
    [first.data.user.id],
  )
  expect(events).toEqual([
    { event_name: 'svc.user.created', method: 'acme' },
    { event_name: 'svc.user.signed_in', method: 'acme' },
    { event_name: 'svc.user.signed_in', method: 'acme' },
  ])
})

test('what the provider is asked: state, nonce, a challenge of our own, the callback of the project, scopes once', async () => {
  await project.admin.put('/oauth/providers/scoped', {
    issuer: oidc.issuer,
    client_id: 'trellis',
    scopes: ['email', 'groups'],
  })
  const more = { provider: 'scoped', scopes: ['groups', 'phone'], login_hint: 'ada@example.org', prompt: 'login' }
  const { url, challenge } = await begin(more)
  const { origin, searchParams } = new URL(url)
  expect(origin).toBe(oidc.issuer)
  expect(Object.fromEntries(searchParams)).toEqual({
    client_id: 'trellis',
    redirect_uri: `${harness.url}/p/${project.id}/auth/v1/callback`,
    response_type: 'code',
    scope: 'openid email profile groups phone',
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
    login_hint: 'ada@example.org',
    prompt: 'login',
  })
  expect(searchParams.get('code_challenge')).not.toBe(challenge)
  const [flow] = await project.sql('select * from app.oauth_flows order by created_at desc limit 1')
  // neither the state nor what derives from it can be read in the database
  for (const name of ['state', 'nonce', 'code_challenge'])
    expect(JSON.stringify(flow)).not.toContain(searchParams.get(name))
})

test('the browser returns where the app asks, by default to the first address, and the query of the app stays', async () => {
  const { login } = newLogin()
  const at = async (redirect_to?: string) => {
    const { url } = await begin(redirect_to === undefined ? {} : { redirect_to })
    return newBrowser().visit(url, { login })
  }
  expect(await at()).toMatch(/^https:\/\/orchard\.example\.com\/signed-in\?code=[\w-]{43}$/)
  expect(await at(webAddress)).toMatch(/^https:\/\/orchard\.example\.com\/signed-in\?code=[\w-]{43}$/)
  expect(await at(appAddress)).toMatch(/^com\.example\.orchard:\/\/signed-in\?code=[\w-]{43}$/)
  expect(await at('https://orchard.example.com/deep/er?next=%2Fhome')).toMatch(
    /^https:\/\/orchard\.example\.com\/deep\/er\?next=%2Fhome&code=[\w-]{43}$/,
  )
})

test('an address that is not in the list is refused before anything begins', async () => {
  const before = await project.sql('select count(*) from app.oauth_flows')
  for (const redirect_to of [
    'https://orchard.example.com/signed-in/',
    'https://orchard.example.com/signed-in?x=1',
    'https://orchard.example.com.evil.example/deep/a',
    'https://evil.example/https://orchard.example.com/deep/',
    'http://orchard.example.com/deep/a',
    'https://orchard.example.com/deep/..%2fsigned-out',
    'https://orchard.example.com/deep/../signed-out',
    'https://user@orchard.example.com/deep/a',
    'https:\\\\orchard.example.com/deep/a',
    'javascript:alert(1)',
    'com.example.orchard://signed-out',
    'nothing',
  ])
    expectRefusal(await app.post('/client/auth/oauth/begin', { ...asked, redirect_to }), 400, 'REDIRECT_NOT_ALLOWED')
  expect(await project.sql('select count(*) from app.oauth_flows')).toEqual(before)
})

test('a project without addresses has no sign-in by redirect', async () => {
  const other = await harness.project()
  await other.admin.put('/oauth/providers/acme', { issuer: oidc.issuer, client_id: 'trellis' })
  expectRefusal(await other.app.post('/client/auth/oauth/begin', asked), 400, 'REDIRECT_NOT_ALLOWED')
})

test('what begins a sign-in is checked', async () => {
  const attempt = (more: object) => app.post('/client/auth/oauth/begin', { ...asked, ...more })
  expectRefusal(await attempt({ provider: 'nobody' }), 400, 'PROVIDER_UNKNOWN')
  await project.admin.put('/oauth/providers/off', { issuer: oidc.issuer, client_id: 'x', is_active: false })
  expectRefusal(await attempt({ provider: 'off' }), 400, 'PROVIDER_DISABLED')
  for (const wrong of [
    { provider: 'A' },
    { code_challenge: 'short' },
    { code_challenge: `${'a'.repeat(42)}+` },
    { code_challenge_method: 'plain' },
    { scopes: ['a b'] },
    { scopes: Array.from({ length: 21 }, (_, n) => `s${n}`) },
    { prompt: '' },
    { redirect_to: 'x'.repeat(2001) },
  ])
    expectRefusal(await attempt(wrong), 400, 'VALIDATION_ERROR')
})

test('a state is answered once, within ten minutes, and in its project alone', async () => {
  const { login } = newLogin()
  const { url } = await begin()
  const state = new URL(url).searchParams.get('state')
  const callback = `${harness.url}/p/${project.id}/auth/v1/callback`
  const open = async (address: string) => {
    const response = await fetch(address, { redirect: 'manual' })
    return { status: response.status, location: response.headers.get('location'), text: await response.text() }
  }
  const other = await harness.project()
  for (const address of [
    `${harness.url}/p/${other.id}/auth/v1/callback?code=x&state=${state}`,
    `${callback}?code=x&state=nothing`,
    `${callback}?code=x`,
    callback,
  ]) {
    const unknown = await open(address)
    expect([unknown.status, unknown.location, JSON.parse(unknown.text).error_code]).toEqual([
      400,
      null,
      'bad_oauth_state',
    ])
  }
  // the callback is one of a project
  for (const at of [harness.url, `${harness.url}/p/${randomUUID()}`]) {
    const lost = await open(`${at}/auth/v1/callback?code=x&state=${state}`)
    expect([lost.status, JSON.parse(lost.text).details.code]).toEqual([404, 'PROJECT_NOT_NAMED'])
  }
  const answer = new URL(await newBrowser().visit(url, { login })).searchParams
  expect(answer.get('code')).toMatch(/^[\w-]{43}$/)
  const replayed = await open(`${callback}?code=x&state=${state}`)
  expect(replayed.status).toBe(303)
  expect(new URL(replayed.location ?? '').searchParams.get('error_code')).toBe('bad_oauth_state')

  const late = await begin()
  harness.advance(601)
  const told = new URL(await newBrowser().visit(late.url, { login })).searchParams
  expect(Object.fromEntries(told)).toEqual({
    error: 'invalid_request',
    error_code: 'bad_oauth_state',
    error_description: 'This sign-in took longer than ten minutes: begin again.',
  })
})

test('a code is exchanged once, within five minutes, by the verifier of its sign-in, in its project', async () => {
  const { login } = newLogin()
  const other = await harness.project()
  const first = await way({ login })
  expectRefusal(await exchange(first.answer.get('code'), first.verifier, other), 404, 'FLOW_NOT_FOUND')
  expect((await exchange(first.answer.get('code'), first.verifier)).status).toBe(201)
  expectRefusal(await exchange(first.answer.get('code'), first.verifier), 404, 'FLOW_NOT_FOUND')

  const wrong = await way({ login })
  expectRefusal(await exchange(wrong.answer.get('code'), newPkce().verifier), 400, 'CODE_VERIFIER_INVALID')
  // the attempt has spent it
  expectRefusal(await exchange(wrong.answer.get('code'), wrong.verifier), 404, 'FLOW_NOT_FOUND')

  const late = await way({ login })
  harness.advance(301)
  expectRefusal(await exchange(late.answer.get('code'), late.verifier), 422, 'FLOW_EXPIRED')
  expectRefusal(await exchange(late.answer.get('code'), late.verifier), 404, 'FLOW_NOT_FOUND')
  expectRefusal(await exchange('nothing', newPkce().verifier), 404, 'FLOW_NOT_FOUND')
  expectRefusal(await exchange('nothing', 'short'), 400, 'VALIDATION_ERROR')
  expectRefusal(await exchange('', newPkce().verifier), 400, 'VALIDATION_ERROR')
})

test('of twenty who exchange one code at once, one gets a session', async () => {
  const { login } = newLogin()
  const { answer, verifier } = await way({ login })
  const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(answer.get('code'), verifier)))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 404)).toHaveLength(19)
  const user = answers.find(({ status }) => status === 201)?.data.user.id
  const sessions = await project.sql('select count(*)::int as n from app.user_sessions where app_user_id = $1', [user])
  expect(sessions[0].n).toBe(1)
})

test('nothing is made before the exchange, and a user who gives up comes back with the error', async () => {
  const { login } = newLogin()
  const users = () => project.sql('select count(*)::int as n from app.users')
  const before = await users()
  await way({ login })
  expect(await users()).toEqual(before)
  const { answer } = await way({ login, aborts: true })
  expect(Object.fromEntries(answer)).toEqual({
    error: 'access_denied',
    error_code: 'bad_oauth_callback',
    error_description: 'End-User aborted interaction',
  })
})

test('an account with a proved address is not taken over, one with an unproved address is, and an unproved claim is nobody’s', async () => {
  const link = newLogin()
  const code = await app.post('/client/auth/email/signup', { email: link.email, password })
  await project.sql('update app.users set email_verified = true where id = $1', [code.data.user.id])
  const proved = await way({ login: link.login })
  expectRefusal(await exchange(proved.answer.get('code'), proved.verifier), 409, 'LINK_REQUIRED')

  const claimed = newLogin()
  const squatter = await app.post('/client/auth/email/signup', { email: claimed.email, password })
  const taken = await way({ login: claimed.login })
  const owner = await exchange(taken.answer.get('code'), taken.verifier)
  expect(owner.data.user).toMatchObject({ id: squatter.data.user.id, email_verified: true })
  const login = await app.post('/client/auth/email/login', { email: claimed.email, password })
  expect(login.status, 'the password of the squatter is gone').toBe(401)

  for (const email_verified of [false, undefined]) {
    const unproved = newLogin({ email_verified })
    const victim = await app.post('/client/auth/email/signup', { email: unproved.email, password })
    const { answer, verifier } = await way({ login: unproved.login })
    const { status, data } = await exchange(answer.get('code'), verifier)
    expect([status, data.user.email]).toEqual([201, null])
    expect(data.user.id).not.toBe(victim.data.user.id)
  }
})

test('a banned user gets no session', async () => {
  const { login } = newLogin()
  const first = await way({ login })
  const { data } = await exchange(first.answer.get('code'), first.verifier)
  await project.sql('update app.users set is_banned = true where id = $1', [data.user.id])
  const again = await way({ login })
  expectRefusal(await exchange(again.answer.get('code'), again.verifier), 403, 'USER_BANNED')
})

test('a provider that is switched off meanwhile ends the sign-ins that are under way', async () => {
  const { login } = newLogin()
  const set = (is_active: boolean) =>
    project.admin.put('/oauth/providers/acme', { issuer: oidc.issuer, client_id: 'trellis', is_active })
  const [atProvider, atApp] = [await begin(), await way({ login })]
  await set(false)
  try {
    const told = new URL(await newBrowser().visit(atProvider.url, { login })).searchParams
    expect(told.get('error_code')).toBe('provider_disabled')
    expectRefusal(await exchange(atApp.answer.get('code'), atApp.verifier), 400, 'PROVIDER_DISABLED')
  } finally {
    await set(true)
  }
})

test('flows go a day after they expired', async () => {
  await begin()
  const purged = async (days: number) => {
    const at = new Date(Date.now() + days * 86_400_000 + 601_000).toISOString()
    return (await project.as('app_worker', { 'app.clock': at }, 'select internal.purge__oauth() as n'))[0].n
  }
  expect(await purged(0)).toBe('0')
  expect(Number(await purged(1))).toBeGreaterThan(0)
  expect(await project.sql('select from app.oauth_flows')).toHaveLength(0)
})
