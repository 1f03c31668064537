import { randomUUID } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import { afterEach, expect, test } from 'vitest'
import { appAddress, newPkce, startOauthStage } from '#test/support/oauth.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { appOf } from '#test/support/sdk.ts'
import { newEmail, password } from '#test/support/sign_in.ts'
import { createRedirectSignIn } from '../../sdk/src/index.ts'

/** A provider that a signed-in user links by redirect. */
const { harness, oidc, project, way, exchange, newBrowser } = await startOauthStage()
await project.admin.patch('', { rest_enabled: true })
const { app } = project
afterEach(() => harness.setTime(null))

const newLogin = (more: object = {}) => {
  const login = `login-${randomUUID()}`
  const email = newEmail()
  oidc.accounts.set(login, { email, email_verified: true, ...more })
  return { login, email }
}
const bearer = (token: string) => app.with({ authorization: `Bearer ${token}` })

/** The way of a signed-in user at the provider: the code that the app gets, and its verifier. */
const linking = async (token: string, login: string) => {
  const { verifier, challenge } = newPkce()
  const begun = await bearer(token).post('/client/auth/oauth/link', { provider: 'acme', code_challenge: challenge })
  expect(begun.status, begun.text).toBe(200)
  const { searchParams } = new URL(await newBrowser().visit(begun.data.url, { login }))
  return { code: searchParams.get('code'), verifier }
}
const ofUser = async (id: string) =>
  (
    await project.sql(
      'select provider, provider_id from app.user_identities where app_user_id = $1 order by provider',
      [id],
    )
  ).map(({ provider, provider_id }) => `${provider} ${provider_id}`)

test('an anonymous user becomes one with an identity, stays the same user, and signs in by it from then on', async () => {
  const user = await project.user()
  const { login, email } = newLogin()
  const { code, verifier } = await linking(user.sessionToken, login)
  const linked = await exchange(code, verifier)
  expect(linked.status, linked.text).toBe(200)
  expect(linked.data).toMatchObject({ is_new_user: false, user: { id: user.id, email, email_verified: true } })
  expect(await ofUser(user.id)).toEqual([`acme ${login}`])
  const again = await way({ login })
  expect((await exchange(again.answer.get('code'), again.verifier)).data.user.id).toBe(user.id)
  // the code is spent
  expectRefusal(await exchange(code, verifier), 404, 'FLOW_NOT_FOUND')
  const events = await project.sql(
    `select event_name from app.engagement_events where app_user_id = $1 and event_name like '%linked'`,
    [user.id],
  )
  expect(events).toEqual([{ event_name: 'svc.user.identity_linked' }])
})

test('an account whose address it is: LINK_REQUIRED, and after the link the provider signs in', async () => {
  const { login, email } = newLogin()
  const made = await project.admin.post('/users', { email, password, verify_email: true })
  const first = await way({ login })
  expectRefusal(await exchange(first.answer.get('code'), first.verifier), 409, 'LINK_REQUIRED')
  const { session_token } = (await app.post('/client/auth/email/login', { email, password })).data
  const { code, verifier } = await linking(session_token, login)
  expect((await exchange(code, verifier)).data.user.id).toBe(made.data.id)
  const again = await way({ login })
  expect((await exchange(again.answer.get('code'), again.verifier)).data.user.id).toBe(made.data.id)
  // and what was linked by its own name is unlinked by it
  const unlinked = await bearer(session_token).post('/client/auth/unlink', { provider: 'acme' })
  expect(unlinked.status, unlinked.text).toBe(200)
  expect(await ofUser(made.data.id)).toEqual([`email ${email}`])
})

test('an identity that another user has is not taken', async () => {
  const { login } = newLogin()
  const first = await way({ login })
  const owner = (await exchange(first.answer.get('code'), first.verifier)).data.user.id
  const user = await project.user()
  const { code, verifier } = await linking(user.sessionToken, login)
  const refused = await exchange(code, verifier)
  expectRefusal(refused, 409, 'IDENTITY_IN_USE')
  expect(refused.error?.details).toEqual({ merge_available: true })
  expect([await ofUser(owner), await ofUser(user.id)]).toEqual([[`acme ${login}`], []])
})

test.each([
  ['a sign-out', async (token: string) => bearer(token).post('/client/auth/logout', { refresh_token: 'x', all: true })],
  ['a ban', async (_: string, id: string) => project.admin.patch(`/users/${id}`, { is_banned: true })],
])('%s ends what the session began: nothing is linked', async (_, end) => {
  const user = await project.user()
  const { login } = newLogin()
  const { code, verifier } = await linking(user.sessionToken, login)
  expect((await end(user.sessionToken, user.id)).status).toBe(200)
  expectRefusal(await exchange(code, verifier), 401, 'UNAUTHORIZED')
  expect(await ofUser(user.id)).toEqual([])
  expectRefusal(await exchange(code, verifier), 404, 'FLOW_NOT_FOUND')
})

test('a user who is deleted meanwhile takes the flow along', async () => {
  const user = await project.user()
  const { code, verifier } = await linking(user.sessionToken, newLogin().login)
  expect((await project.admin.delete(`/users/${user.id}`)).status).toBe(200)
  expectRefusal(await exchange(code, verifier), 404, 'FLOW_NOT_FOUND')
})

test('a code without its verifier links nothing, and is spent', async () => {
  const user = await project.user()
  const { login } = newLogin()
  const { code, verifier } = await linking(user.sessionToken, login)
  expectRefusal(await exchange(code, newPkce().verifier), 400, 'CODE_VERIFIER_INVALID')
  expectRefusal(await exchange(code, verifier), 404, 'FLOW_NOT_FOUND')
  expect(await ofUser(user.id)).toEqual([])
})

test('eight exchanges of one code: one links', async () => {
  const user = await project.user()
  const { login } = newLogin()
  const { code, verifier } = await linking(user.sessionToken, login)
  const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(code, verifier)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404, 404, 404, 404])
  expect(await ofUser(user.id)).toEqual([`acme ${login}`])
})

test('is begun by the session of a user alone', async () => {
  const user = await project.user()
  const body = { provider: 'acme', code_challenge: newPkce().challenge }
  const flows = async () => (await project.sql('select count(*)::int as n from app.oauth_flows'))[0].n
  const before = await flows()
  expectRefusal(await app.post('/client/auth/oauth/link', body), 401, 'UNAUTHORIZED')
  expectRefusal(await project.onBehalfOf(user.id).post('/client/auth/oauth/link', body), 403, 'SESSION_REQUIRED')
  const unknown = { ...body, provider: 'nowhere' }
  expectRefusal(await user.post('/client/auth/oauth/link', unknown), 400, 'PROVIDER_UNKNOWN')
  await project.admin.put('/oauth/providers/off', { issuer: oidc.issuer, client_id: 'x', is_active: false })
  const off = { ...body, provider: 'off' }
  expectRefusal(await user.post('/client/auth/oauth/link', off), 400, 'PROVIDER_DISABLED')
  const elsewhere = { ...body, redirect_to: 'https://evil.example.com/' }
  expectRefusal(await user.post('/client/auth/oauth/link', elsewhere), 400, 'REDIRECT_NOT_ALLOWED')
  expect(await flows()).toBe(before)
})

test('the SDK links and goes on as the same user', async () => {
  const { app: own } = appOf(harness, project)
  const { userId } = await own.ensureSignedIn()
  const redirect = createRedirectSignIn(own)
  const url = await redirect.link('acme', { redirectTo: appAddress })
  const { login } = newLogin()
  const session = await redirect.finish(await newBrowser().visit(url, { login }))
  expect(session.userId).toBe(userId)
  expect((await own.session())?.userId).toBe(userId)
  expect(await ofUser(userId)).toEqual([`acme ${login}`])
})

test('linkIdentity and exchangeCodeForSession of supabase-js, unmodified', async () => {
  const kept = new Map<string, string>()
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
  const client = createClient(harness.url, project.clientKey, {
    auth: { flowType: 'pkce', autoRefreshToken: false, storage },
  })
  const before = await client.auth.signInAnonymously()
  const { login, email } = newLogin()
  const asked = { provider: 'acme' as 'google', options: { redirectTo: appAddress } }
  const { data, error } = await client.auth.linkIdentity(asked)
  expect(error).toBeNull()
  const address = new URL(await newBrowser().visit(data.url ?? '', { login }))
  const session = await client.auth.exchangeCodeForSession(address.searchParams.get('code') ?? '')
  expect(session.error).toBeNull()
  expect(session.data.user).toMatchObject({
    id: before.data.user?.id,
    email,
    is_anonymous: false,
    identities: [{ provider: 'acme', id: login }],
  })
  await client.auth.signOut()
  expect((await client.auth.linkIdentity(asked)).error).not.toBeNull()
})
