import { randomUUID } from 'node:crypto'
import { createClient, type UserIdentity } from '@supabase/supabase-js'
import { expect, test } from 'vitest'
import { newEmail, newPhone, password, startStage } from '#test/support/sign_in.ts'

const { harness, project, mail, magicToken, login, socialToken } = await startStage()
await project.admin.patch('', { rest_enabled: true })

/** A client as an app has it: its session is its own. */
const newClient = (key = project.clientKey) =>
  createClient(harness.url, key, { auth: { autoRefreshToken: false, persistSession: false } })

/** The code in the last mail to an address. */
const mailedCode = async (email: string): Promise<string> => {
  await project.drain()
  return /^(\d{6})$/m.exec(mail.to(email).at(-1)?.text ?? '')?.[1] ?? ''
}
const notThat = (code: string) => (code === '000000' ? '111111' : '000000')

/** A request as auth-js sends it, with what it does not show of the response. */
const ask = async (path: string, body: unknown, headers: Record<string, string> = {}, method = 'POST') => {
  const response = await fetch(`${harness.url}/auth/v1${path}`, {
    method,
    headers: { apikey: project.clientKey, 'content-type': 'application/json;charset=UTF-8', ...headers },
    ...(method === 'GET' ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
}

test('sign up, sign out, sign in again', async () => {
  const client = newClient()
  const email = newEmail()
  const made = await client.auth.signUp({ email, password, options: { data: { display_name: 'Ada', level: 3 } } })
  expect(made.error).toBeNull()
  expect(made.data.session).toMatchObject({ token_type: 'bearer', expires_in: 3600 })
  expect(made.data.user).toMatchObject({
    email,
    aud: 'authenticated',
    role: 'authenticated',
    is_anonymous: false,
    app_metadata: { provider: 'email', providers: ['email'] },
    user_metadata: { display_name: 'Ada', level: 3 },
  })
  expect((await client.auth.getUser()).data.user?.id).toBe(made.data.user?.id)
  const { claims } = (await client.auth.getClaims()).data ?? {}
  expect(claims).toMatchObject({
    sub: made.data.user?.id,
    iss: expect.stringMatching(/\/auth\/v1$/),
    aud: 'authenticated',
    role: 'authenticated',
    aal: 'aal1',
    session_id: claims?.['sid'],
    pid: project.id,
    anon: null,
    email,
    is_anonymous: false,
  })
  const token = made.data.session?.access_token as string
  expect(await client.auth.signOut()).toEqual({ error: null })
  expect(await ask('/user', null, { authorization: `Bearer ${token}` }, 'GET')).toMatchObject({
    status: 401,
    body: { code: 401, error_code: 'session_not_found' },
  })
  const again = await client.auth.signInWithPassword({ email, password })
  expect(again.data.user?.id).toBe(made.data.user?.id)
  // the session is one of our own: the other routes know it
  const rows = await client.from('nothing').select()
  expect(rows.error?.code).toBe('PGRST205')
})

test('refusals have the codes of GoTrue, with our own beside them', async () => {
  const client = newClient()
  const email = newEmail()
  const weak = await client.auth.signUp({ email, password: 'short' })
  expect(weak.error).toMatchObject({ name: 'AuthWeakPasswordError', code: 'weak_password', reasons: ['length'] })
  await client.auth.signUp({ email, password })
  expect((await client.auth.signUp({ email, password })).error).toMatchObject({
    status: 409,
    code: 'user_already_exists',
  })
  const wrong = await newClient().auth.signInWithPassword({ email, password: 'another passphrase' })
  expect(wrong.error).toMatchObject({ status: 401, code: 'invalid_credentials', name: 'AuthApiError' })
  expect((await ask('/token?grant_type=password', { email, password: 'another one' })).body).toEqual({
    code: 401,
    error_code: 'invalid_credentials',
    msg: 'Invalid login credentials',
    details: { code: 'UNAUTHORIZED', message: 'The email or the password is wrong.' },
  })
  expect((await newClient('svc_nothing').auth.signInAnonymously()).error?.code).toBe('UNAUTHORIZED')
  expect((await client.auth.signUp({ phone: newPhone(), password })).error?.code).toBe('validation_failed')
  expect((await client.auth.signInWithPassword({ phone: newPhone(), password })).error?.code).toBe('validation_failed')
  expect(await ask('/token?grant_type=web3', {})).toMatchObject({
    status: 400,
    body: { error_code: 'validation_failed', details: { code: 'INVALID_INPUT', field: 'grant_type' } },
  })
  expect((await ask('/signup', '[]')).body.error_code).toBe('validation_failed')
  expect((await ask('/signup', '{"data":[]}')).body.error_code).toBe('validation_failed')
  expect((await ask('/signup', '{"email":7,"password":"x"}')).body.error_code).toBe('validation_failed')
  expect(await ask('/factors', {})).toMatchObject({ status: 404, body: { error_code: 'NOT_FOUND', code: 404 } })
  expect(await ask('/user', null, {}, 'GET')).toMatchObject({ status: 401, body: { error_code: 'no_authorization' } })
})

test('texts that apps compare are those of GoTrue', async () => {
  const email = newEmail()
  const client = newClient()
  const said = async (made: PromiseLike<{ error: { message: string } | null }>) => (await made).error?.message
  expect(await said(client.auth.signUp({ email, password: 'short' }))).toBe('Password should be at least 8 characters.')
  expect(await said(client.auth.signUp({ email: 'nobody', password }))).toBe(
    'Unable to validate email address: invalid format',
  )
  await client.auth.signUp({ email, password })
  expect(await said(client.auth.signUp({ email, password }))).toBe('User already registered')
  expect(await said(client.auth.signInWithPassword({ email, password: 'another passphrase' }))).toBe(
    'Invalid login credentials',
  )
  expect(await said(client.auth.verifyOtp({ email, token: '123456', type: 'email' }))).toBe(
    'Token has expired or is invalid',
  )
  expect(await said(newClient().auth.refreshSession({ refresh_token: 'nothing' }))).toBe(
    'Invalid Refresh Token: Refresh Token Not Found',
  )
  expect(await said(client.auth.signInWithOtp({ phone: '0123' }))).toBe('Invalid phone number format (E.164 required)')
  // a change with a wrong current password is no sign-in
  expect(await said(client.auth.updateUser({ password: 'x'.repeat(12), current_password: 'wrong' }))).not.toMatch(
    'login',
  )
})

test('a phone number may come without its plus, as GoTrue takes it', async () => {
  const verified = async (phone: string) =>
    (await newClient().auth.verifyOtp({ phone, token: '123456', type: 'sms' })).error?.code
  // what is asked next: whether texts are sent at all
  expect(await verified(newPhone().slice(1))).toBe('phone_provider_disabled')
  expect(await verified('0123')).toBe('validation_failed')
})

test('an anonymous user, whose address is linked with a code', async () => {
  const client = newClient()
  const { data } = await client.auth.signInAnonymously({ options: { data: { level: 1 } } })
  expect(data.user).toMatchObject({ is_anonymous: true, email: '', identities: [] })
  expect(data.user?.user_metadata).toEqual({ level: 1, display_name: expect.any(String) })
  const email = newEmail()
  const sent = await client.auth.updateUser({ email })
  expect(sent.error).toBeNull()
  expect(sent.data.user).toMatchObject({ new_email: email, is_anonymous: true })
  const six = await mailedCode(email)
  expect((await client.auth.updateUser({ email, nonce: notThat(six) })).error?.code).toBe('otp_expired')
  const linked = await client.auth.updateUser({ email, nonce: six })
  expect(linked.data.user).toMatchObject({ id: data.user?.id, email, is_anonymous: false })
})

test('codes and links by mail', async () => {
  const client = newClient()
  const email = newEmail()
  expect((await client.auth.signInWithOtp({ email })).error).toBeNull()
  const six = await mailedCode(email)
  const wrong = await client.auth.verifyOtp({ email, token: notThat(six), type: 'email' })
  expect(wrong.error).toMatchObject({ status: 401, code: 'otp_expired' })
  const verified = await client.auth.verifyOtp({ email, token: six, type: 'email' })
  expect(verified.data.user).toMatchObject({ email, email_confirmed_at: expect.any(String) })
  const link = await client.auth.verifyOtp({ token_hash: await magicToken(email), type: 'magiclink' })
  expect(link.data.user?.id).toBe(verified.data.user?.id)
  expect((await client.auth.resetPasswordForEmail(email)).error).toBeNull()
  const refused = [
    await client.auth.signInWithOtp({ email, options: { shouldCreateUser: false } }),
    await client.auth.signInWithOtp({ phone: newPhone(), options: { channel: 'whatsapp' } }),
    await client.auth.verifyOtp({ email, token: '123456', type: 'email_change' }),
  ]
  expect(refused.map(({ error }) => error?.code)).toEqual(Array(3).fill('validation_failed'))
  // no SMS provider is set up
  expect((await client.auth.signInWithOtp({ phone: newPhone() })).error?.code).toBe('phone_provider_disabled')
})

test('guesses are counted together with those of our own route', async () => {
  const email = newEmail()
  const client = newClient()
  await client.auth.signUp({ email, password })
  const codes = []
  for (let attempt = 0; attempt < 5; attempt += 1) {
    codes.push((await newClient().auth.signInWithPassword({ email, password: 'another passphrase' })).error?.code)
    codes.push((await login(email, 'another passphrase')).error?.code)
  }
  expect(new Set(codes)).toEqual(new Set(['invalid_credentials', 'UNAUTHORIZED']))
  const locked = await ask('/token?grant_type=password', { email, password })
  expect(locked).toMatchObject({
    status: 429,
    body: { error_code: 'over_request_rate_limit', details: { code: 'RATE_LIMIT_EXCEEDED' } },
  })
  expect(Number(locked.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('a session is refreshed, once, and the user of it comes along', async () => {
  const client = newClient()
  const { data } = await client.auth.signInAnonymously()
  const first = data.session?.refresh_token as string
  const next = await client.auth.refreshSession()
  expect(next.data.user?.id).toBe(data.user?.id)
  expect(next.data.session?.refresh_token).not.toBe(first)
  expect(await ask('/token?grant_type=refresh_token', { refresh_token: 'x' })).toMatchObject({
    status: 401,
    body: { error_code: 'refresh_token_not_found', details: { code: 'INVALID_TOKEN' } },
  })
})

test('a refresh token that was replaced, a wrong current password, a token of nobody', async () => {
  const client = newClient()
  const email = newEmail()
  const { data } = await client.auth.signUp({ email, password })
  const first = data.session?.refresh_token as string
  await client.auth.refreshSession()
  const again = await ask('/token?grant_type=refresh_token', { refresh_token: first })
  expect(again).toMatchObject({ status: 401, body: { error_code: 'refresh_token_already_used' } })
  const signedIn = await newClient().auth.signInWithPassword({ email, password })
  const authorization = `Bearer ${signedIn.data.session?.access_token}`
  const wrong = { password: 'a new passphrase', current_password: 'not this one' }
  expect(await ask('/user', wrong, { authorization }, 'PUT')).toMatchObject({
    status: 401,
    body: { error_code: 'invalid_credentials', details: { code: 'UNAUTHORIZED' } },
  })
  const nobody = await ask('/user', null, { authorization: 'Bearer nonsense' }, 'GET')
  expect(nobody).toMatchObject({ status: 401, body: { error_code: 'session_not_found' } })
  const foreign = await ask('/token?grant_type=id_token', { provider: 'google', id_token: 'x' })
  expect(foreign).toMatchObject({ status: 401, body: { error_code: 'bad_jwt', details: { code: 'INVALID_TOKEN' } } })
})

test('an identity is unlinked, but never the last one, and none of somebody else', async () => {
  const client = newClient()
  const [email, sub] = [newEmail(), randomUUID()]
  const { data } = await client.auth.signUp({ email, password })
  const linked = await fetch(`${harness.url}/v1/client/auth/link`, {
    method: 'POST',
    headers: {
      'x-api-key': project.clientKey,
      authorization: `Bearer ${data.session?.access_token}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ provider: 'google', id_token: await socialToken('google', { sub }) }),
  })
  expect(linked.status).toBe(200)
  const identities = (await client.auth.getUserIdentities()).data?.identities ?? []
  const [google, mail] = ['google', 'email'].map((name) => identities.find(({ provider }) => provider === name))
  expect([google?.identity_id, mail?.identity_id]).toEqual([sub, email])
  const other = newClient()
  await other.auth.signUp({ email: newEmail(), password })
  const foreign = await other.auth.unlinkIdentity(google as UserIdentity)
  expect(foreign.error).toMatchObject({ status: 404, code: 'identity_not_found' })
  expect((await client.auth.unlinkIdentity(google as UserIdentity)).error).toBeNull()
  const left = (await client.auth.getUserIdentities()).data?.identities.map(({ provider }) => provider)
  expect(left).toEqual(['email'])
  const last = await client.auth.unlinkIdentity(mail as UserIdentity)
  expect(last.error).toMatchObject({ status: 409, code: 'single_identity_not_deletable' })
  const nobody = await ask(`/user/identities/${sub}`, {}, {}, 'DELETE')
  expect(nobody).toMatchObject({ status: 401, body: { error_code: 'no_authorization' } })
})

test('what is offered, and that the service is there', async () => {
  const plain = await harness.project()
  await plain.admin.patch('', { rest_enabled: true })
  const offered = async (key: string) =>
    (await ask('/settings', null, { apikey: key }, 'GET')).body as { external: object }
  expect(await offered(plain.clientKey)).toMatchObject({
    external: { anonymous_users: true, apple: false, google: false, email: true, phone: false },
    disable_signup: false,
    mailer_autoconfirm: true,
  })
  const refused = await ask(
    '/token?grant_type=id_token',
    { provider: 'google', id_token: 'x' },
    { apikey: plain.clientKey },
  )
  expect(refused).toMatchObject({ status: 400, body: { error_code: 'provider_disabled' } })
  expect((await offered(project.clientKey)).external).toMatchObject({ apple: true, google: true })
  expect(await ask('/health', null, {}, 'GET')).toMatchObject({
    status: 200,
    body: { name: 'Trellis', version: '1.0.0' },
  })
  const nobody = await ask('/settings', null, { apikey: 'svc_nothing' }, 'GET')
  expect(nobody).toMatchObject({ status: 401, body: { error_code: 'UNAUTHORIZED', details: { code: 'UNAUTHORIZED' } } })
})

test('the user changes their metadata and their password', async () => {
  const client = newClient()
  const email = newEmail()
  await client.auth.signUp({ email, password })
  const changed = await client.auth.updateUser({ data: { display_name: 'Grace', big: { a: [1] } } })
  expect(changed.data.user?.user_metadata).toMatchObject({ display_name: 'Grace', big: { a: [1] } })
  expect((await client.auth.updateUser({ password: 'short' })).error?.code).toBe('weak_password')
  // the sign-in is young: the current password need not be sent
  expect((await client.auth.updateUser({ password: 'a longer passphrase' })).error).toBeNull()
  expect((await newClient().auth.signInWithPassword({ email, password: 'a longer passphrase' })).error).toBeNull()
  expect((await client.auth.updateUser({ data: { display_name: '' } })).error?.code).toBe('validation_failed')
})

test('sign out of this device, of the others, of all', async () => {
  const email = newEmail()
  const [here, there, everywhere] = [newClient(), newClient(), newClient()]
  await here.auth.signUp({ email, password })
  const tokens = await Promise.all(
    [there, everywhere].map(async (one) => (await one.auth.signInWithPassword({ email, password })).data.session),
  )
  const alive = async (token?: string) => (await ask('/user', null, { authorization: `Bearer ${token}` }, 'GET')).status
  expect((await there.auth.signOut({ scope: 'local' })).error).toBeNull()
  expect(await Promise.all(tokens.map((one) => alive(one?.access_token)))).toEqual([401, 200])
  expect((await here.auth.signOut({ scope: 'others' })).error).toBeNull()
  expect(await alive(tokens[1]?.access_token)).toBe(401)
  expect((await here.auth.getUser()).error).toBeNull()
  expect((await ask('/logout?scope=most', {}, { authorization: `Bearer ${tokens[1]?.access_token}` })).status).toBe(400)
})

test('the access is closed together with that to rows', async () => {
  const closed = await harness.project()
  const refused = await newClient(closed.clientKey).auth.signInAnonymously()
  expect(refused.error).toMatchObject({ status: 403, code: 'REST_DISABLED' })
})

test('browsers of every origin may use it', async () => {
  const preflight = await fetch(`${harness.url}/auth/v1/token`, {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' },
  })
  expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
})
