import { randomUUID } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import { afterEach, expect, test } from 'vitest'
import { appAddress, startOauthStage, webAddress } from '#test/support/oauth.ts'
import { newEmail } from '#test/support/sign_in.ts'

const { harness, oidc, newBrowser, project } = await startOauthStage()
await project.admin.patch('', { rest_enabled: true })
const root = `${harness.url}/p/${project.id}`

afterEach(() => harness.setTime(null))

const storage = () => {
  const kept = new Map<string, string>()
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
}
const newClient = (url = root, key = project.clientKey, flowType: 'pkce' | 'implicit' = 'pkce') =>
  createClient(url, key, { auth: { flowType, autoRefreshToken: false, storage: storage() } })
const newLogin = () => {
  const login = `login-${randomUUID()}`
  const email = newEmail()
  oidc.accounts.set(login, { email, email_verified: true, name: 'Ada Byron' })
  return { login, email }
}
// the client types the names that Supabase has
const acme = { provider: 'acme' as 'google' }
const open = async (address: string) => {
  const response = await fetch(address, { redirect: 'manual' })
  const text = await response.text()
  return {
    status: response.status,
    location: response.headers.get('location'),
    body: text === '' ? null : JSON.parse(text),
  }
}

test('signInWithOAuth and exchangeCodeForSession, unmodified', async () => {
  const client = newClient()
  const { login, email } = newLogin()
  const { data, error } = await client.auth.signInWithOAuth({ ...acme, options: { redirectTo: appAddress } })
  expect([error, data.provider]).toEqual([null, 'acme'])
  const address = new URL(await newBrowser().visit(data.url ?? '', { login }))
  expect(address.href).toMatch(/^com\.example\.orchard:\/\/signed-in\?code=/)
  const code = address.searchParams.get('code') ?? ''
  const session = await client.auth.exchangeCodeForSession(code)
  expect(session.error).toBeNull()
  expect(session.data.user).toMatchObject({
    email,
    app_metadata: { provider: 'acme', providers: ['acme'] },
    user_metadata: { display_name: 'Ada Byron' },
    identities: [{ provider: 'acme', identity_data: { sub: login } }],
  })
  expect(session.data.session).toMatchObject({ token_type: 'bearer', expires_in: 3600 })
  expect((await client.auth.getUser()).data.user?.email).toBe(email)
  // the session is one of our own
  expect((await client.from('nothing').select()).error?.code).toBe('PGRST205')

  const second = newClient()
  await second.auth.signInWithOAuth(acme)
  expect((await second.auth.exchangeCodeForSession(code)).error).toMatchObject({
    status: 404,
    code: 'flow_state_not_found',
  })
})

test('refusals of the exchange have the codes of GoTrue', async () => {
  const { login } = newLogin()
  const arrived = async () => {
    const client = newClient()
    const { data } = await client.auth.signInWithOAuth(acme)
    const code = new URL(await newBrowser().visit(data.url ?? '', { login })).searchParams.get('code') ?? ''
    return { client, code }
  }
  const [first, late] = [await arrived(), await arrived()]
  const other = newClient()
  await other.auth.signInWithOAuth(acme)
  expect((await other.auth.exchangeCodeForSession(first.code)).error).toMatchObject({
    status: 400,
    code: 'bad_code_verifier',
  })
  harness.advance(301)
  expect((await late.client.auth.exchangeCodeForSession(late.code)).error).toMatchObject({
    status: 422,
    code: 'flow_state_expired',
  })
  harness.setTime(null)
  const response = await fetch(`${root}/auth/v1/token?grant_type=pkce`, {
    method: 'POST',
    headers: { apikey: project.clientKey, 'content-type': 'application/json' },
    body: '{}',
  })
  expect([response.status, ((await response.json()) as any).error_code]).toEqual([400, 'validation_failed'])
})

test('the project is named by the root of the client, or by the client key in the address', async () => {
  const { data } = await newClient(harness.url).auth.signInWithOAuth(acme)
  const lost = await open(data.url ?? '')
  expect([lost.status, lost.body.error_code]).toEqual([404, 'PROJECT_NOT_NAMED'])
  const other = await harness.project()
  const at = (apikey: string, url = harness.url) =>
    newClient(url).auth.signInWithOAuth({ ...acme, options: { queryParams: { apikey } } })
  const keyed = await open((await at(project.clientKey)).data.url ?? '')
  expect([keyed.status, new URL(keyed.location ?? '').origin]).toEqual([302, oidc.issuer])
  // the key of a server has no place in an address, and no other project's key under this root
  for (const [key, url] of [
    [project.serverKey, harness.url],
    [other.clientKey, root],
    ['nothing', harness.url],
  ] as const) {
    const refused = await open((await at(key, url)).data.url ?? '')
    expect([refused.status, refused.body.details.code]).toEqual([401, 'UNAUTHORIZED'])
  }
})

test('the implicit flow, unknown providers, other addresses and wrong challenges are refused by name', async () => {
  const implicit = await newClient(root, project.clientKey, 'implicit').auth.signInWithOAuth(acme)
  const refused = await open(implicit.data.url ?? '')
  expect(refused).toMatchObject({
    status: 400,
    body: { code: 400, error_code: 'validation_failed', details: { code: 'INVALID_INPUT', field: 'code_challenge' } },
  })
  expect(refused.body.msg).toContain('pkce')
  const { data } = await newClient().auth.signInWithOAuth(acme)
  const good = new URL(data.url ?? '')
  const changed = async (changes: Record<string, string>) => {
    const url = new URL(good)
    for (const [name, value] of Object.entries(changes)) url.searchParams.set(name, value)
    const { status, body } = await open(url.href)
    return [status, body?.error_code, body?.details?.code]
  }
  await project.admin.put('/oauth/providers/off', { issuer: oidc.issuer, client_id: 'x', is_active: false })
  expect(await changed({ provider: 'nobody' })).toEqual([400, 'oauth_provider_not_supported', 'PROVIDER_UNKNOWN'])
  expect(await changed({ provider: 'off' })).toEqual([400, 'provider_disabled', 'PROVIDER_DISABLED'])
  expect(await changed({ redirect_to: 'https://evil.example/' })).toEqual([
    400,
    'validation_failed',
    'REDIRECT_NOT_ALLOWED',
  ])
  for (const wrong of [
    { code_challenge: 'short' },
    { code_challenge_method: 's512' },
    { provider: 'x'.repeat(65) },
    { provider: '\0' },
    { scopes: 'ä' },
  ])
    expect(await changed(wrong as Record<string, string>)).toEqual([400, 'validation_failed', 'INVALID_INPUT'])
  await project.admin.patch('', { rest_enabled: false })
  try {
    expect(await changed({})).toEqual([403, 'REST_DISABLED', 'REST_DISABLED'])
  } finally {
    await project.admin.patch('', { rest_enabled: true })
  }
})

test('scopes and parameters of pages are passed on, those of the protocol are not', async () => {
  const queryParams = {
    prompt: 'select_account',
    access_type: 'offline',
    redirect_uri: 'https://evil.example/',
    state: 'x',
  }
  const { data } = await newClient().auth.signInWithOAuth({
    ...acme,
    options: { scopes: 'email groups', queryParams, redirectTo: webAddress },
  })
  const { searchParams } = new URL((await open(data.url ?? '')).location ?? '')
  expect(Object.fromEntries(searchParams)).toMatchObject({
    scope: 'openid email profile groups',
    prompt: 'select_account',
    access_type: 'offline',
    redirect_uri: `${root}/auth/v1/callback`,
    state: expect.stringMatching(/^[\w-]{43}$/),
  })
})

test('skip_http_redirect answers the address', async () => {
  const { data } = await newClient().auth.signInWithOAuth(acme)
  const { status, body } = await open(`${data.url}&skip_http_redirect=true`)
  expect([status, body.provider, new URL(body.url).origin]).toEqual([200, 'acme', oidc.issuer])
})

test('a plain challenge is taken, as auth-js makes one where there is no SHA-256', async () => {
  const verifier = 'v'.repeat(43)
  const { login } = newLogin()
  const address = `${root}/auth/v1/authorize?provider=acme&code_challenge=${verifier}&code_challenge_method=plain`
  const code = new URL(await newBrowser().visit(address, { login })).searchParams.get('code')
  const response = await fetch(`${root}/auth/v1/token?grant_type=pkce`, {
    method: 'POST',
    headers: { apikey: project.clientKey, 'content-type': 'application/json' },
    body: JSON.stringify({ auth_code: code, code_verifier: verifier }),
  })
  expect(response.status).toBe(200)
})

test('settings name the providers that are on', async () => {
  const response = await fetch(`${root}/auth/v1/settings`, { headers: { apikey: project.clientKey } })
  expect(((await response.json()) as any).external).toMatchObject({
    acme: true,
    mock: true,
    google: false,
    email: true,
  })
})

test('a provider that is away sends the user back to the app', async () => {
  await project.admin.put('/oauth/providers/away', { issuer: 'https://127.0.0.1:9', client_id: 'x' })
  const { data } = await newClient().auth.signInWithOAuth({
    provider: 'away' as 'google',
    options: { redirectTo: appAddress },
  })
  const { status, location } = await open(data.url ?? '')
  expect(status).toBe(302)
  expect(Object.fromEntries(new URL(location ?? '').searchParams)).toMatchObject({
    error: 'temporarily_unavailable',
    error_code: 'unexpected_failure',
  })
  const skipped = await open(`${data.url}&skip_http_redirect=true`)
  expect([skipped.status, skipped.body.details.code]).toEqual([503, 'SERVICE_UNAVAILABLE'])
})
